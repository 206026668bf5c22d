//! The walk: every construct of a text in which a command can stand.

use std::collections::HashMap;
use std::rc::Rc;

use super::analysis::{Analysis, Effect, Reason, ReasonCode, Redirect, Requirement, SimpleCommand, Span};
use super::guard;
use super::parse::{self, ast};
use super::table::{CommandTable, Site};
use super::variables::{Known, Variables};
use super::whole::Whole;
use super::word::Word;

/// How many simple commands are judged before the rest is left unread: loops in loops are walked more than once.
pub(super) const MAX_WORK: usize = 1500;
/// How many commands may run one another: `env nice timeout 5 ls` are three around one.
const MAX_WRAPPERS: usize = 10;
/// Where the text that is being walked stands in the whole.
#[derive(Clone)]
pub(super) enum Origin {
    /// It begins at this byte of the whole, and runs on as there.
    At(usize),
    /// It is not in the whole as it is; it comes from here.
    Within(Span),
}

/// One walk over one text and the texts in it.
pub(super) struct Walk<'t> {
    pub(super) table: &'t CommandTable,
    pub(super) reasons: Vec<Reason>,
    pub(super) commands: Vec<SimpleCommand>,
    requires: Vec<Requirement>,
    pub(super) variables: Variables,
    /// The functions that the text defines; whether that is certain.
    pub(super) functions: HashMap<String, bool>,
    /// What holds of the text as a whole, wherever in it: order does not matter to functions, which run later.
    pub(super) whole: Whole,
    /// What was known wherever the rest of a line may be left out, until the line has ended.
    pub(super) stops: Option<Variables>,
    /// Whether a function is walked, in which variables can be local.
    pub(super) in_function: bool,
    /// Whether the text of a trap is walked.
    pub(super) in_trap: bool,
    /// The functions whose bodies are walked.
    pub(super) defining: Vec<String>,
    /// How many texts stand in one another.
    nesting: usize,
    /// Whether what is walked may not run at all.
    pub(super) conditional: usize,
    pub(super) work: usize,
    /// How many words, operators and lines were read, in all texts.
    pieces: usize,
    /// How many loops stand around what is walked.
    pub(super) loops: usize,
    /// What was known wherever a loop is left or begun anew in its middle, until the outermost loop has ended.
    pub(super) jumps: Vec<Variables>,
    /// How many commands run the one that is judged.
    wrappers: usize,
    origin: Origin,
    /// The current text.
    pub(super) text: Rc<str>,
    /// The byte at which each character of the current text begins, if they differ.
    offsets: Option<Vec<usize>>,
    length: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(table: &'t CommandTable) -> Self {
        Self {
            table,
            reasons: Vec::new(),
            commands: Vec::new(),
            requires: Vec::new(),
            variables: Variables::default(),
            functions: HashMap::new(),
            whole: Whole::default(),
            stops: None,
            in_function: false,
            in_trap: false,
            defining: Vec::new(),
            nesting: 0,
            conditional: 0,
            work: 0,
            pieces: 0,
            loops: 0,
            jumps: Vec::new(),
            wrappers: 0,
            origin: Origin::At(0),
            text: "".into(),
            offsets: None,
            length: 0,
        }
    }

    pub(super) fn finish(mut self) -> Analysis {
        self.settle();
        let order = |reason: &Reason| (reason.span.start, reason.span.end);
        self.reasons.sort_by_key(order);
        let mut seen: Vec<Reason> = Vec::with_capacity(self.reasons.len());
        for reason in self.reasons {
            // They are in order of place, so that the same ones stand near one another.
            if !seen.iter().rev().take_while(|other| other.span == reason.span).any(|other| *other == reason) {
                seen.push(reason);
            }
        }
        let mut effects: Vec<Effect> = seen.iter().map(|reason| reason.effect).collect();
        effects.extend(self.commands.iter().map(|command| command.effect));
        effects.sort_unstable();
        effects.dedup();
        if effects.is_empty() {
            effects.push(Effect::ReadOnly);
        }
        Analysis {
            effect: effects.last().copied().unwrap_or(Effect::Unknown),
            effects,
            reasons: seen,
            commands: self.commands,
            requires: self.requires,
        }
    }

    pub(super) fn refuse(&mut self, code: ReasonCode, span: Span, subject: &str) {
        self.reasons.push(Reason::new(code, Effect::Unknown, span, subject));
    }

    /// The stretch of the whole for one of the current text.
    fn span_of(&self, start: usize, end: usize) -> Span {
        match self.origin {
            Origin::Within(span) => span,
            Origin::At(base) => {
                let byte = |index: usize| match &self.offsets {
                    Some(offsets) => offsets.get(index).copied().unwrap_or(self.length),
                    None => index.min(self.length),
                };
                Span { start: base + byte(start), end: base + byte(end.max(start)) }
            }
        }
    }

    pub(super) fn location(&self, location: Option<&parse::SourceSpan>) -> Span {
        match location {
            Some(location) => self.span_of(location.start.index, location.end.index),
            None => self.whole(),
        }
    }

    fn whole(&self) -> Span {
        match self.origin {
            Origin::Within(span) => span,
            Origin::At(base) => Span { start: base, end: base + self.length },
        }
    }

    /// Where something stands that the parser gives a place.
    pub(super) fn place(&self, location: &parse::SourceSpan) -> Span {
        self.location(Some(location))
    }

    pub(super) fn word_span(&self, word: &ast::Word) -> Span {
        self.location(word.loc.as_ref())
    }

    /// Walks a text.
    pub(super) fn read(&mut self, text: &str, origin: Origin) {
        let offsets = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        let outer = (
            std::mem::replace(&mut self.origin, origin),
            std::mem::replace(&mut self.offsets, offsets),
            std::mem::replace(&mut self.length, text.len()),
            std::mem::replace(&mut self.text, text.into()),
        );
        self.nesting += 1;
        if self.nesting > guard::MAX_DEPTH {
            self.refuse(ReasonCode::TooDeep, self.whole(), "");
        } else {
            match guard::check(text) {
                Err((code, span)) => {
                    let span = match self.origin {
                        Origin::Within(outer) => outer,
                        Origin::At(base) => Span { start: base + span.start, end: base + span.end },
                    };
                    self.refuse(code, span, "");
                }
                // Each `eval` reads the same words once more.
                Ok(pieces) if self.pieces + pieces > 2 * guard::MAX_PIECES => {
                    self.refuse(ReasonCode::TooLong, self.whole(), "");
                }
                Ok(pieces) => {
                    self.pieces += pieces;
                    self.parsed(text);
                }
            }
        }
        self.nesting -= 1;
        (self.origin, self.offsets, self.length, self.text) = outer;
    }

    fn parsed(&mut self, text: &str) {
        match parse::program(text) {
            Some(program) => program.complete_commands.iter().for_each(|list| self.line(list)),
            None => self.refuse(ReasonCode::NotParsed, self.whole(), ""),
        }
    }

    /// The commands of a substitution. `start`: where its text begins in the word `raw`, which stands at `span`.
    pub(super) fn substitution(&mut self, text: &str, raw: &str, start: usize, span: Span) -> Known {
        // A comment may hold the bracket at which the parser believes the substitution ends.
        if has_comment(text) {
            self.refuse(ReasonCode::NotParsed, span, "#");
        }
        let exact = raw.len() == span.end - span.start && raw.get(start..start + text.len()) == Some(text);
        let origin = if exact && matches!(self.origin, Origin::At(_)) {
            Origin::At(span.start + start)
        } else {
            Origin::Within(span)
        };
        let first = self.commands.len();
        self.apart(|walk| walk.read(text, origin));
        super::output::of(text, &self.commands[first..], &mut self.whole)
    }

    /// One line, or several that belong together: what fails in it in a certain way leaves out the rest of it, and the
    /// next one runs.
    fn line(&mut self, list: &ast::CompoundList) {
        self.list(list);
        if let Some(left) = &self.stops {
            self.variables.join(left);
        }
        // It stays until the outermost line has ended: what a line within `eval` leaves out may be all of that.
        if self.nesting == 1 {
            self.stops = None;
        }
    }

    /// An expansion or assignment here may fail such that the rest of the line is left out.
    pub(super) fn may_stop_here(&mut self) {
        match &mut self.stops {
            Some(stops) => stops.join(&self.variables),
            None => self.stops = Some(self.variables.clone()),
        }
    }

    pub(super) fn list(&mut self, list: &ast::CompoundList) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            if matches!(separator, ast::SeparatorOperator::Async) {
                self.refuse(ReasonCode::Background, self.and_or_span(and_or), "&");
            }
            self.and_or(and_or);
        }
    }

    fn and_or_span(&self, and_or: &ast::AndOrList) -> Span {
        use parse::SourceLocation;
        self.location(and_or.location().as_ref())
    }

    fn and_or(&mut self, and_or: &ast::AndOrList) {
        self.pipeline(&and_or.first);
        for next in &and_or.additional {
            let (ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline)) = next;
            self.perhaps(|walk| walk.pipeline(pipeline));
        }
    }

    /// Walks what may not run.
    pub(super) fn perhaps(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = self.variables.clone();
        self.conditional += 1;
        walk(self);
        self.conditional -= 1;
        if self.variables != before {
            self.variables.join(&before);
        }
    }

    /// Walks what runs in a shell of its own.
    pub(super) fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let variables = self.variables.clone();
        let functions = self.functions.clone();
        let stops = self.stops.take();
        walk(self);
        self.variables = variables;
        self.functions = functions;
        self.stops = stops;
    }

    /// `break` or `continue`: what comes behind it in the loop may not run.
    pub(super) fn jumps(&mut self) {
        if self.loops > 0 && !self.jumps.contains(&self.variables) {
            self.jumps.push(self.variables.clone());
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        if let [command] = pipeline.seq.as_slice() {
            self.command_of(command);
        } else {
            for command in &pipeline.seq {
                self.apart(|walk| walk.command_of(command));
            }
        }
    }

    pub(super) fn command_of(&mut self, command: &ast::Command) {
        match command {
            ast::Command::Simple(simple) => self.simple(simple),
            ast::Command::Compound(compound, redirects) => {
                self.redirect_list(redirects.as_ref());
                if redirects.as_ref().is_some_and(|list| !list.0.is_empty()) {
                    // It does not run if a file is not there.
                    self.perhaps(|walk| walk.compound(compound));
                } else {
                    self.compound(compound);
                }
            }
            ast::Command::Function(definition) => self.function(definition),
            ast::Command::ExtendedTest(test, redirects) => {
                self.extended_test(&test.expr);
                self.redirect_list(redirects.as_ref());
            }
        }
    }

    pub(super) fn redirect_list(&mut self, redirects: Option<&ast::RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            let target = self.redirect(redirect);
            if let Some(target) = target {
                self.lone_redirect(target);
            }
        }
    }

    /// A redirection of a whole construct: rules about files have to see it.
    pub(super) fn lone_redirect(&mut self, target: (Redirect, Option<String>)) {
        let effect = if target.0 == Redirect::Write { Effect::Writes } else { Effect::ReadOnly };
        let span = self.whole();
        self.commands.push(SimpleCommand { span, words: vec![], subject: vec![], redirects: vec![target], effect });
    }

    /// A builtin that passes functions over runs the rest of its words, in this very shell.
    pub(super) fn passed_on(&mut self, words: &[Word]) {
        if self.wrappers == MAX_WRAPPERS {
            let span = words.first().map_or_else(Span::default, |word| word.span);
            return self.refuse(ReasonCode::TooDeep, span, "");
        }
        let functions = std::mem::take(&mut self.functions);
        self.wrappers += 1;
        self.judge(words, Vec::new());
        self.wrappers -= 1;
        self.functions.extend(functions);
    }

    /// Whether what is walked may not run at all.
    pub(super) fn is_conditional(&self) -> bool {
        self.conditional > 0
    }

    /// One more simple command; false once there were too many.
    pub(super) fn works(&mut self, span: Span) -> bool {
        self.work += 1;
        if self.work == MAX_WORK {
            self.refuse(ReasonCode::TooDeep, span, "");
        }
        self.work < MAX_WORK
    }
}

/// Whether a `#` begins a word of the text, or a quoted part of it: which of both is not worth a guess.
fn has_comment(text: &str) -> bool {
    let begins = |before: u8| matches!(before, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`');
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| bytes[at] == b'#' && (at == 0 || begins(bytes[at - 1])))
}

impl Site for Walk<'_> {
    fn found(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    fn requires(&mut self, requirement: Requirement) {
        if !self.requires.contains(&requirement) {
            self.requires.push(requirement);
        }
    }

    fn command(&mut self, words: &[Word]) {
        if self.wrappers == MAX_WRAPPERS {
            let span = words.first().map_or_else(Span::default, |word| word.span);
            return self.refuse(ReasonCode::TooDeep, span, "");
        }
        // Programs that run others know no functions, and what those do is not done to this shell.
        self.apart(|walk| {
            walk.functions.clear();
            walk.wrappers += 1;
            walk.judge(words, Vec::new());
            walk.wrappers -= 1;
        });
    }

    fn text(&mut self, text: &str, span: Span, bash: bool) {
        let in_function = self.in_function;
        self.apart(|walk| {
            // A shell of its own: of variables it has what is exported, of functions nothing.
            walk.variables = Variables::of_others(false);
            walk.variables.knows_nothing = !bash;
            walk.functions.clear();
            walk.in_function = false;
            walk.read(text, Origin::Within(span));
        });
        self.in_function = in_function;
    }
}
