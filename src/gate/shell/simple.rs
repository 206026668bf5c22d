//! Simple commands: assignments, redirections, and who judges the words.

use super::analysis::{Effect, Reason, ReasonCode, Redirect, SimpleCommand, Span};
use super::builtin;
use super::expand::Reading;
use super::parse::ast;
use super::table::environment_variable_is_safe;
use super::variables::{self, Known};
use super::walk::Walk;
use super::word::{Value, Word};

/// Where redirections may write: nothing is kept there.
const SINKS: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];
/// Folders whose programs are those that their names say.
const SYSTEM_FOLDERS: &[&str] = &["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];
/// Folders in which a project keeps the programs that it installs for itself.
const PROJECT_FOLDERS: &[&str] = &[".venv/bin/", "venv/bin/", "node_modules/.bin/"];

impl Walk<'_> {
    pub(super) fn simple(&mut self, command: &ast::SimpleCommand) {
        use ast::CommandPrefixOrSuffixItem as Item;
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        let mut arrays = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::IoRedirect(redirect) => redirects.extend(self.redirect(redirect)),
                Item::AssignmentWord(assignment, word) => assignments.push((assignment, self.word_span(word))),
                Item::Word(word) => self.words(&word.value, self.word_span(word), &mut words),
                Item::ProcessSubstitution(kind, shell) => words.extend(self.process_substitution(kind, shell)),
            }
        }
        if let Some(word) = &command.word_or_name {
            self.words(&word.value, self.word_span(word), &mut words);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::IoRedirect(redirect) => redirects.extend(self.redirect(redirect)),
                Item::AssignmentWord(assignment, word) => {
                    let span = self.word_span(word);
                    if let ast::AssignmentValue::Array(elements) = &assignment.value {
                        let name = name_of(assignment);
                        self.declares_keys(&words, &name);
                        self.array(&name, elements);
                        arrays.push(span);
                        words.push(Word { raw: word.value.clone(), span, value: unknown(&name) });
                    } else {
                        self.words(&word.value, span, &mut words);
                    }
                }
                Item::Word(word) => self.words(&word.value, self.word_span(word), &mut words),
                Item::ProcessSubstitution(kind, shell) => words.extend(self.process_substitution(kind, shell)),
            }
        }
        let redirected = command_redirects(command);
        if words.is_empty() {
            let assign =
                |walk: &mut Self| assignments.iter().for_each(|(assignment, span)| walk.assign(assignment, *span));
            if redirected {
                self.perhaps(assign)
            } else {
                assign(self)
            }
            for redirect in redirects {
                self.lone_redirect(redirect);
            }
            return;
        }
        let program = words[0].text().unwrap_or_default().to_owned();
        for (assignment, span) in assignments {
            self.assign_for(assignment, span, &program);
        }
        if let Some(span) = arrays.first().filter(|_| !builtin::declares(&program)) {
            self.refuse(ReasonCode::NotParsed, *span, "");
        }
        if redirected {
            // It does not run if a file is not there.
            self.perhaps(|walk| walk.judge(&words, redirects));
        } else {
            self.judge(&words, redirects);
        }
    }

    /// `declare -A name`: its keys are text, if this very command says so, succeeds, and it is not an array yet.
    fn declares_keys(&mut self, words: &[Word], name: &str) {
        let declares = match words.first().and_then(Word::text) {
            Some("declare" | "typeset") => true,
            Some("local") => self.in_function,
            _ => false,
        };
        let says = words.get(1).and_then(Word::text) == Some("-A");
        if declares && says && !words.iter().skip(2).any(Word::can_be_option) {
            self.variables.set_associative(name);
        }
    }

    /// Judges the words of a simple command.
    pub(super) fn judge(&mut self, words: &[Word], redirects: Vec<(Redirect, Option<String>)>) {
        let Some(first) = words.first() else { return };
        let span = Span { start: first.span.start, end: words.iter().map(|word| word.span.end).max().unwrap_or(0) };
        if !self.works(span) {
            return;
        }
        let place = self.commands.len();
        let mark = self.reasons.len();
        if let Some("declare" | "typeset" | "local") = first.text() {
            for word in words.iter().skip(1).filter(|word| !word.can_be_option()) {
                let name = word.text().filter(|name| !name.contains('='));
                if let Some(name) = name.map(str::to_owned) {
                    self.declares_keys(words, &name);
                }
            }
        }
        let writes = redirects.iter().any(|(redirect, _)| *redirect == Redirect::Write);
        self.commands.push(SimpleCommand {
            span,
            words: words.to_vec(),
            subject: Vec::new(),
            redirects,
            effect: if writes { Effect::Writes } else { Effect::ReadOnly },
        });
        let subject = self.judge_words(words);
        let effect = self.reasons[mark..].iter().map(|reason| reason.effect).max().unwrap_or(Effect::ReadOnly);
        if let Some(command) = self.commands.get_mut(place) {
            command.subject = subject;
            command.effect = command.effect.max(effect);
        }
    }

    fn judge_words(&mut self, words: &[Word]) -> Vec<Option<String>> {
        let as_they_are = || words.iter().map(|word| word.text().map(str::to_owned)).collect();
        let first = &words[0];
        let Some(name) = first.text() else {
            self.refuse(ReasonCode::DynamicProgram, first.span, &first.raw);
            return as_they_are();
        };
        // If it is not certain, it may be the function, whose body was judged, or what has the name otherwise.
        let function = self.functions.get(name).copied();
        if function.is_some() && self.whole.functions_stop {
            self.may_stop_here();
        }
        if self.defining.iter().any(|defined| defined == name) {
            // What it sets when it has called itself is not followed.
            self.refuse(ReasonCode::Shadowed, first.span, name);
        }
        if function.is_none() {
            self.whole.calls.entry(name.to_owned()).or_insert(first.span);
        }
        if function == Some(true) {
            self.whole.relies_on_function.get_or_insert(first.span);
            return as_they_are();
        }
        if name.contains('/') {
            let system = SYSTEM_FOLDERS.iter().find_map(|folder| name.strip_prefix(folder));
            let Some(bare) = system.filter(|bare| !bare.contains('/')) else {
                let own = name.strip_prefix("./").unwrap_or(name);
                let own = PROJECT_FOLDERS.iter().find_map(|folder| own.strip_prefix(folder));
                if let Some(bare) = own.filter(|bare| !bare.contains('/')).map(str::to_owned)
                    && let Some(subject) = self.own_runner(&bare, words)
                {
                    return subject;
                }
                let reason = Reason::new(ReasonCode::ProgramByPath, Effect::Executes, first.span, name);
                self.reasons.push(reason);
                return as_they_are();
            };
            let mut bare_words = words.to_vec();
            bare_words[0] = Word { raw: first.raw.clone(), ..Word::fixed(bare, first.span) };
            // By path it is the program, never the builtin of that name, so that it sets nothing in this shell; what
            // programs of such names do is known only where they are not builtins that change the shell.
            if !builtin::is_builtin(bare) {
                return self.look_up(&bare_words);
            }
            let bare = bare.to_owned();
            let mut subject = Vec::new();
            self.apart(|walk| subject = walk.builtin(&bare, &bare_words));
            return subject;
        }
        if !builtin::is_builtin(name) {
            return self.look_up(words);
        }
        let name = name.to_owned();
        let mut subject = Vec::new();
        if function.is_some() {
            self.perhaps(|walk| subject = walk.builtin(&name, words));
        } else {
            subject = self.builtin(&name, words);
        }
        subject
    }

    /// A program that the project keeps for itself, where all that it does is to run the project's tests: then it does
    /// what any of the project's code does. `None` if it does anything else.
    fn own_runner(&mut self, bare: &str, words: &[Word]) -> Option<Vec<Option<String>>> {
        let mark = (self.reasons.len(), self.commands.len());
        let mut bare_words = words.to_vec();
        bare_words[0] = Word { raw: words[0].raw.clone(), ..Word::fixed(bare, words[0].span) };
        let mut subject = Vec::new();
        self.apart(|walk| subject = walk.look_up(&bare_words));
        let found = &self.reasons[mark.0..];
        if !found.is_empty() && found.iter().all(|reason| reason.code == ReasonCode::RunsTests) {
            return Some(subject);
        }
        self.reasons.truncate(mark.0);
        self.commands.truncate(mark.1);
        None
    }

    pub(super) fn look_up(&mut self, words: &[Word]) -> Vec<Option<String>> {
        let table = self.table;
        table.judge(words, self)
    }

    fn process_substitution(
        &mut self,
        kind: &ast::ProcessSubstitutionKind,
        shell: &ast::SubshellCommand,
    ) -> Option<Word> {
        // Whichever way its data goes, its commands run.
        let _ = kind;
        self.subshell(shell);
        let span = self.place(&shell.loc);
        Some(Word {
            raw: "<(…)".into(),
            span,
            value: Value::Dynamic { prefix: "/dev/fd/".into(), dash: false, splits: false },
        })
    }

    /// A redirection: what it does to which file, for rules about files. `None` if it touches none.
    pub(super) fn redirect(&mut self, redirect: &ast::IoRedirect) -> Option<(Redirect, Option<String>)> {
        use ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        match redirect {
            ast::IoRedirect::HereDocument(_, document) => {
                let span = self.word_span(&document.here_end);
                if document.requires_expansion {
                    self.quoted_text(&document.doc.value, span);
                }
                None
            }
            ast::IoRedirect::HereString(_, word) => {
                let span = self.word_span(word);
                self.build(&word.value, span, Reading::Single);
                None
            }
            ast::IoRedirect::OutputAndError(word, _) => self.writes_to(word),
            ast::IoRedirect::File(number, kind, target) => match (kind, target) {
                // Whoever then writes to `/dev/stderr` opens that file for writing.
                (Kind::Read, Target::Filename(word)) if matches!(number, Some(1 | 2)) => {
                    let span = self.word_span(word);
                    self.write_found(span, &word.value, Known::anything())
                }
                (_, Target::ProcessSubstitution(kind, shell)) => {
                    self.process_substitution(kind, shell);
                    None
                }
                (_, Target::Fd(_)) => None,
                (Kind::Read, Target::Filename(word)) => {
                    self.whole.opens_numbered |= number.is_some_and(|number| number > 2);
                    self.reads_from(word)
                }
                (Kind::DuplicateInput | Kind::DuplicateOutput, Target::Duplicate(word) | Target::Filename(word)) => {
                    let span = self.word_span(word);
                    let value = self.build(&word.value, span, Reading::Single).known();
                    // Where what is written to a standard stream goes from now on.
                    let output =
                        matches!(number, Some(1 | 2)) || number.is_none() && matches!(kind, Kind::DuplicateOutput);
                    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                    match value {
                        Known::Text(text) if text == "-" || matches!(text.trim_end_matches('-'), "1" | "2") => None,
                        Known::Text(text) if SINKS.contains(&text.as_str()) => None,
                        // What was opened for reading is opened for writing by whoever then writes to `/dev/stdout`.
                        Known::Text(text) if digits(text.trim_end_matches('-')) && !output => {
                            self.whole.opens_numbered |= number.is_some_and(|number| number > 2);
                            None
                        }
                        Known::Text(text) if is_numbered(text.trim_end_matches('-')) => {
                            self.whole.duplicates.get_or_insert(span);
                            None
                        }
                        other => self.write_found(span, &word.value, other),
                    }
                }
                (_, Target::Filename(word) | Target::Duplicate(word)) => self.writes_to(word),
            },
        }
    }

    fn writes_to(&mut self, word: &ast::Word) -> Option<(Redirect, Option<String>)> {
        let span = self.word_span(word);
        let value = self.build(&word.value, span, Reading::Single).known();
        match value {
            Known::Text(text) if SINKS.contains(&text.as_str()) => None,
            other => self.write_found(span, &word.value, other),
        }
    }

    fn write_found(&mut self, span: Span, raw: &str, value: Known) -> Option<(Redirect, Option<String>)> {
        self.reasons.push(Reason::new(ReasonCode::RedirectWrites, Effect::Writes, span, raw));
        Some((Redirect::Write, if let Known::Text(text) = value { Some(text) } else { None }))
    }

    fn reads_from(&mut self, word: &ast::Word) -> Option<(Redirect, Option<String>)> {
        let span = self.word_span(word);
        let value = self.build(&word.value, span, Reading::Single).known();
        let reaches_out = |path: &str| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/");
        let may_reach_out = match &value {
            Known::Text(text) => reaches_out(text),
            Known::File(prefix) => !prefix.is_empty() && "/dev/tcp/".starts_with(&prefix[..prefix.len().min(9)]),
            Known::Number(_) | Known::Hash => false,
            Known::Anything(prefix) | Known::Perhaps(prefix) => {
                ["/dev/tcp/", "/dev/udp/"].iter().any(|out| out.starts_with(prefix.as_str()) || prefix.starts_with(out))
            }
        };
        if may_reach_out {
            self.reasons.push(Reason::new(ReasonCode::OperandNetwork, Effect::Network, span, &word.value));
        }
        Some((Redirect::Read, if let Known::Text(text) = value { Some(text) } else { None }))
    }

    /// An assignment of its own: it stays.
    fn assign(&mut self, assignment: &ast::Assignment, span: Span) {
        if let ast::AssignmentName::ArrayElementName(name, index) = &assignment.name {
            self.subscript(name, index, span);
            self.whole.arrays.insert(name.clone());
        }
        let value = self.assigned(assignment, span);
        self.sets(&name_of(assignment), value, span);
    }

    /// An assignment in front of a program: it is in its environment.
    fn assign_for(&mut self, assignment: &ast::Assignment, span: Span, program: &str) {
        let value = self.assigned(assignment, span);
        let name = name_of(assignment);
        if name == "IFS" && matches!(program, "read" | "mapfile" | "readarray") {
            return;
        }
        if builtin::is_builtin(program) || self.functions.contains_key(program) || program.is_empty() {
            // What runs in this shell sees it, and some of it stays.
            self.sets(&name, Known::anything(), span);
        }
        let text = if let Known::Text(text) = &value { Some(text.as_str()) } else { None };
        if assignment.append || !environment_variable_is_safe(&name, text) {
            self.refuse(ReasonCode::SetsVariable, span, &name);
        }
    }

    /// Refuses to set variables on which the shell, the loader or programs rely.
    pub(super) fn check_name(&mut self, name: &str, span: Span) {
        if variables::is_sensitive(name) {
            self.refuse(ReasonCode::SetsVariable, span, name);
        }
    }

    fn assigned(&mut self, assignment: &ast::Assignment, span: Span) -> Known {
        match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                let known = self.build(&word.value, span, Reading::Single).known();
                let element = matches!(assignment.name, ast::AssignmentName::ArrayElementName(..));
                if assignment.append || element { Known::anything() } else { known }
            }
            ast::AssignmentValue::Array(elements) => {
                let name = name_of(assignment);
                self.array(&name, elements);
                Known::anything()
            }
        }
    }

    fn array(&mut self, name: &str, elements: &[(Option<ast::Word>, ast::Word)]) {
        self.whole.arrays.insert(name.to_owned());
        for (key, value) in elements {
            if let Some(key) = key {
                let span = self.word_span(key);
                self.subscript(name, &key.value, span);
            }
            let span = self.word_span(value);
            self.words(&value.value, span, &mut Vec::new());
        }
    }

    /// `[[ … ]]`.
    pub(super) fn extended_test(&mut self, test: &ast::ExtendedTestExpr) {
        use ast::{BinaryPredicate as Binary, ExtendedTestExpr as Test, UnaryPredicate as Unary};
        match test {
            Test::And(one, two) | Test::Or(one, two) => {
                self.extended_test(one);
                self.extended_test(two);
            }
            Test::Not(inner) | Test::Parenthesized(inner) => self.extended_test(inner),
            Test::UnaryTest(predicate, word) => {
                let span = self.word_span(word);
                let value = self.build(&word.value, span, Reading::Single).known();
                if matches!(predicate, Unary::ShellVariableIsSetAndAssigned | Unary::ShellVariableIsSetAndNameRef) {
                    self.variable_name(&value, &word.value, span);
                }
            }
            Test::BinaryTest(predicate, left, right) => {
                let arithmetic = matches!(
                    predicate,
                    Binary::ArithmeticEqualTo
                        | Binary::ArithmeticNotEqualTo
                        | Binary::ArithmeticLessThan
                        | Binary::ArithmeticLessThanOrEqualTo
                        | Binary::ArithmeticGreaterThan
                        | Binary::ArithmeticGreaterThanOrEqualTo
                );
                for word in [left, right] {
                    let span = self.word_span(word);
                    if arithmetic {
                        self.arithmetic_word(&word.value, span);
                    } else {
                        self.build(&word.value, span, Reading::Pattern);
                    }
                }
            }
        }
    }

    /// A word that the shell takes for the name of a variable, and evaluates if it has a subscript.
    pub(super) fn variable_name(&mut self, value: &Known, raw: &str, span: Span) {
        let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !matches!(value, Known::Text(name) if plain(name)) {
            self.refuse(ReasonCode::EvaluatesText, span, raw);
        }
    }
}

fn name_of(assignment: &ast::Assignment) -> String {
    match &assignment.name {
        ast::AssignmentName::VariableName(name) | ast::AssignmentName::ArrayElementName(name, _) => name.clone(),
    }
}

/// Whether text names a descriptor beyond the standard ones.
fn is_numbered(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|number| number > 2)
}

fn unknown(name: &str) -> Value {
    Value::Dynamic { prefix: format!("{name}="), dash: false, splits: false }
}

/// Whether a command has a redirection that may fail: any may.
fn command_redirects(command: &ast::SimpleCommand) -> bool {
    use ast::CommandPrefixOrSuffixItem as Item;
    let items = command.prefix.iter().flat_map(|prefix| &prefix.0);
    items.chain(command.suffix.iter().flat_map(|suffix| &suffix.0)).any(|item| matches!(item, Item::IoRedirect(_)))
}
