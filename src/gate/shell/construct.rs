//! Constructs of the shell: loops, branches, groups, functions.

use super::analysis::ReasonCode;
use super::builtin;
use super::expand::Reading;
use super::parse::{self, ast};
use super::variables::Known;
use super::walk::{MAX_WORK, Walk};
use super::word::{Value, Word};

/// How often a loop is walked until what is known of variables no longer changes.
const MAX_ROUNDS: usize = 2;

/// In how many loops around it a loop is walked so often.
const MAX_FOLLOWED_LOOPS: usize = 2;

impl Walk<'_> {
    /// Walks the body of a loop once; afterwards known is what holds wherever it was left.
    fn round(&mut self, walk: impl FnOnce(&mut Self)) {
        self.loops += 1;
        walk(self);
        self.loops -= 1;
        // A jump may lead out of several loops: only the outermost forgets them.
        let jumps = std::mem::take(&mut self.jumps);
        for left in &jumps {
            self.variables.join(left);
        }
        if self.loops > 0 {
            self.jumps = jumps;
        }
    }

    /// Walks what may run any number of times, until what is known of variables no longer changes.
    fn repeatedly(&mut self, mut walk: impl FnMut(&mut Self)) {
        self.conditional += 1;
        let mark = (self.reasons.len(), self.commands.len());
        let before = self.variables.clone();
        // Each loop around this one walks it as often again: deep inside it is walked once, with nothing known.
        let is_deep = self.loops >= MAX_FOLLOWED_LOOPS;
        if is_deep {
            self.variables.forget();
        }
        for round in 0.. {
            let start = self.variables.clone();
            self.round(&mut walk);
            self.variables.join(&start);
            if is_deep || self.variables == start {
                break;
            }
            if round == MAX_ROUNDS {
                // What it settles on is not found: then nothing is known.
                self.variables.forget();
            }
            if round > MAX_ROUNDS {
                break;
            }
            self.reasons.truncate(mark.0);
            self.commands.truncate(mark.1);
        }
        self.variables.join(&before);
        self.conditional -= 1;
    }

    pub(super) fn compound(&mut self, compound: &ast::CompoundCommand) {
        use ast::CompoundCommand as Compound;
        match compound {
            Compound::Arithmetic(command) => {
                let span = self.location(Some(&command.loc));
                if is_arithmetic(&self.text, &command.loc) {
                    self.arithmetic(&command.expr.value, span);
                } else {
                    self.refuse(ReasonCode::NotParsed, span, "((");
                }
            }
            Compound::ArithmeticForClause(clause) => {
                let span = self.location(Some(&clause.loc));
                if let Some(expression) = &clause.initializer {
                    self.arithmetic(&expression.value, span);
                }
                self.repeatedly(|walk| {
                    for expression in [&clause.condition, &clause.updater].into_iter().flatten() {
                        walk.arithmetic(&expression.value, span);
                    }
                    walk.list(&clause.body.list);
                });
            }
            Compound::BraceGroup(group) => self.list(&group.list),
            Compound::Subshell(subshell) => self.subshell(subshell),
            Compound::ForClause(clause) => self.for_loop(clause),
            Compound::CaseClause(clause) => self.case(clause),
            Compound::IfClause(clause) => {
                self.list(&clause.condition);
                self.perhaps(|walk| walk.list(&clause.then));
                for branch in clause.elses.iter().flatten() {
                    self.perhaps(|walk| {
                        if let Some(condition) = &branch.condition {
                            walk.list(condition);
                        }
                        walk.list(&branch.body);
                    });
                }
            }
            Compound::WhileClause(clause) | Compound::UntilClause(clause) => self.repeatedly(|walk| {
                walk.list(&clause.0);
                walk.list(&clause.1.list);
            }),
            Compound::Coprocess(coprocess) => {
                let span = self.location(Some(&coprocess.loc));
                self.refuse(ReasonCode::Background, span, "coproc");
                self.apart(|walk| walk.command_of(&coprocess.body));
            }
        }
    }

    pub(super) fn subshell(&mut self, shell: &ast::SubshellCommand) {
        self.apart(|walk| walk.list(&shell.list));
    }

    fn for_loop(&mut self, clause: &ast::ForClauseCommand) {
        let span = self.location(Some(&clause.loc));
        let name = clause.variable_name.as_str();
        let mut values = Vec::new();
        match &clause.values {
            Some(list) => {
                for value in list {
                    let place = self.word_span(value);
                    self.words(&value.value, place, &mut values);
                }
            }
            None => values.push(Word {
                raw: "$@".into(),
                span,
                value: Value::Dynamic { prefix: String::new(), dash: true, splits: true },
            }),
        }
        let known: Vec<Known> = values.iter().map(for_value).collect();
        if known.iter().all(|value| matches!(value, Known::Text(_))) && known.len() <= 8 && self.work < MAX_WORK / 8 {
            // Each round for itself: then what a word becomes is known exactly.
            self.conditional += 1;
            let before = self.variables.clone();
            for value in known {
                self.sets(name, value, span);
                self.round(|walk| walk.list(&clause.body.list));
            }
            self.variables.join(&before);
            self.conditional -= 1;
            return;
        }
        let first = known.first().cloned().unwrap_or(Known::Text(String::new()));
        let joined = known.iter().fold(first, |joined, value| joined.join(value));
        self.repeatedly(|walk| {
            walk.sets(name, joined.clone(), span);
            walk.list(&clause.body.list);
        });
    }

    fn case(&mut self, clause: &ast::CaseClauseCommand) {
        let span = self.word_span(&clause.value);
        let _ = self.build(&clause.value.value, span, Reading::Pattern);
        for item in &clause.cases {
            for pattern in &item.patterns {
                let span = self.word_span(pattern);
                let _ = self.build(&pattern.value, span, Reading::Pattern);
            }
            if let Some(list) = &item.cmd {
                self.perhaps(|walk| walk.list(list));
            }
        }
    }

    pub(super) fn function(&mut self, definition: &ast::FunctionDefinition) {
        let name = definition.fname.value.clone();
        // Or the line may be left before it gets here.
        let certain = self.conditional == 0 && self.stops.is_none();
        // Whoever calls it may have set anything by then. Its own name is known inside.
        if builtin::is_builtin(&name) {
            // What it stands for is built on elsewhere.
            let span = self.word_span(&definition.fname);
            self.refuse(ReasonCode::Shadowed, span, &name);
        }
        self.whole.functions.insert(name.clone());
        self.functions.insert(name.clone(), certain);
        self.defining.push(name);
        let before = self.variables.clone();
        self.variables = before.of_later();
        let outer = (self.stops.take(), std::mem::replace(&mut self.in_function, true));
        self.conditional += 1;
        self.redirect_list(definition.body.1.as_ref());
        self.compound(&definition.body.0);
        self.conditional -= 1;
        self.defining.pop();
        self.whole.functions_stop |= self.stops.is_some();
        (self.stops, self.in_function) = outer;
        let inside = std::mem::replace(&mut self.variables, before);
        self.variables.may_be_set_by(&inside);
    }
}

/// What a loop's variable holds for one word of its list.
fn for_value(word: &Word) -> Known {
    match &word.value {
        Value::Static { text } => Known::Text(text.clone()),
        Value::Dynamic { prefix, splits: false, .. } if is_glob(&word.raw) => Known::File(prefix.clone()),
        Value::Dynamic { prefix, splits: false, .. } => Known::Anything(prefix.clone()),
        Value::Dynamic { .. } => Known::anything(),
    }
}

/// Whether a word is a pattern for files and nothing else.
fn is_glob(raw: &str) -> bool {
    raw.contains(['*', '?', '[']) && !raw.contains(['$', '`', '\'', '"', '\\', '{'])
}

/// Whether bash takes what the parser took for `((…))` for that as well. The parser looks at the brackets without what
/// stands between them: `( (rm x) )` and `((ls) )` are commands in brackets to bash.
fn is_arithmetic(text: &str, location: &parse::SourceSpan) -> bool {
    let (start, end) = (location.start.index, location.end.index);
    let whole: Vec<char> = text.chars().skip(start).take(end.saturating_sub(start)).collect();
    let Some(rest) = whole.strip_prefix(&['(', '(']) else { return false };
    let mut open = 1;
    for (at, character) in rest.iter().enumerate() {
        match character {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        // The bracket that closes the inner one is followed by that which closes the outer one, and nothing else.
        if open == 0 {
            return rest[at + 1..] == [')'];
        }
    }
    false
}
