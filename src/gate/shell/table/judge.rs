//! What a simple command does, by the rules of its program.

use super::super::analysis::{Effect, Reason, ReasonCode};
use super::super::program;
use super::super::word::{Value, Word};
use super::program::{Arity, Kind, Meaning, Operands, Program};
use super::scan::{Found, Given, Scan, Trouble, is_one_word};
use super::{CommandTable, Site};

/// A script of a small language, put together from the words that hold it.
struct Script<'w> {
    kind: Kind,
    word: &'w Word,
    /// `None` if some part is not known.
    text: Option<String>,
}

/// The judgement of one simple command.
pub(crate) struct Judge<'a> {
    pub table: &'a CommandTable,
    pub site: &'a mut dyn Site,
    /// The program and its sub-commands as they were found.
    pub path: Vec<String>,
}

/// From which word on a permission rule compares.
pub(super) struct Outcome {
    /// Position of the first word after program and sub-commands.
    pub arguments: usize,
}

impl Judge<'_> {
    /// Judges the words from position `start` on, which belong to `program`.
    pub(super) fn program(&mut self, program: &Program, words: &[Word], start: usize) -> Outcome {
        let outcome = Outcome { arguments: start };
        if let Some(requirement) = program.requires {
            self.site.requires(requirement);
        }
        if let [only] = &words[start..]
            && let Some(text) = only.text()
            && program.alone.iter().any(|option| **option == *text)
        {
            return outcome;
        }
        if let Some(handler) = program.handler {
            handler.judge(self, program, words, start);
            return outcome;
        }
        if let Some(other) = &program.same_as {
            return match self.table.programs.get(other) {
                Some(other) => self.program(&other.clone(), words, start),
                None => {
                    self.report(ReasonCode::UnknownProgram, Effect::Unknown, &words[start - 1], other.to_string());
                    outcome
                }
            };
        }
        if program.subcommands.is_empty() {
            self.leaf(program, words, start);
            return outcome;
        }
        self.subcommand(program, words, start)
    }

    fn subcommand(&mut self, program: &Program, words: &[Word], start: usize) -> Outcome {
        let scan = Scan::leading(program, words, start);
        let named = if scan.troubles.is_empty() { scan.operands.first() } else { None };
        let found = named.and_then(|&position| {
            let name = words[position].text()?;
            program.subcommands.get_key_value(name).map(|(name, found)| (position, name, found))
        });
        if let Some((position, name, found)) = found {
            self.options(program, &scan);
            self.path.push(name.to_string());
            return self.program(found, words, position + 1);
        }
        if named.is_none()
            && let Some(default) = &program.default_subcommand
        {
            self.path.push(default.to_string());
            self.program(&program.subcommands[default].clone(), words, start);
            return Outcome { arguments: start };
        }
        if program.operands_given {
            self.leaf(program, words, start);
            return Outcome { arguments: start };
        }
        let before = &words[start - 1];
        if !matches!(program.effect, Effect::ReadOnly | Effect::RunsTests) {
            self.effect(program, program.effect, before);
        } else if let Some(&position) = named {
            let subject = format!("{} {}", self.title(), words[position].raw);
            self.report(ReasonCode::UnknownSubcommand, Effect::Unknown, &words[position], subject);
        } else if scan.troubles.is_empty() {
            self.report(ReasonCode::UnknownSubcommand, Effect::Unknown, before, self.title());
        }
        self.troubles(&scan, words);
        self.options(program, &scan);
        Outcome { arguments: start }
    }

    /// A program or sub-command without sub-commands of its own.
    pub(crate) fn leaf(&mut self, program: &Program, words: &[Word], start: usize) {
        let mut scan = Scan::new(program, words, start);
        let when = program
            .when
            .iter()
            .find(|when| (when.options.is_empty() || scan.has(&when.options)) && !scan.has(&when.without));
        let effect = when.and_then(|when| when.effect).unwrap_or(program.effect);
        let operands = when.and_then(|when| when.operands.as_ref()).unwrap_or(&program.operands);
        self.effect(program, effect, &words[start - 1]);
        let mut scripts = Vec::new();
        for option in &scan.options {
            self.option(program, option, &mut scripts);
        }
        if let (Some(rest), Some(dashes)) = (&program.after_dashes, scan.dashes) {
            scan.operands.retain(|position| *position < dashes);
            self.leaf_after_dashes(rest, words, dashes + 1);
        }
        let harmless = matches!(effect, Effect::ReadOnly | Effect::RunsTests);
        if harmless {
            self.troubles(&scan, words);
        }
        self.operands(program, operands, &scan, words, harmless, &mut scripts);
        self.scripts(scripts);
    }

    fn leaf_after_dashes(&mut self, rest: &Program, words: &[Word], start: usize) {
        if start < words.len() {
            self.leaf(rest, words, start);
        }
    }

    /// What the program as a whole does.
    fn effect(&mut self, program: &Program, effect: Effect, word: &Word) {
        let code = match effect {
            _ if program.interactive => ReasonCode::Interactive,
            Effect::ReadOnly => return,
            Effect::RunsTests => ReasonCode::RunsTests,
            Effect::Writes => ReasonCode::ProgramWrites,
            Effect::Network => ReasonCode::ProgramNetwork,
            Effect::Executes => ReasonCode::ProgramExecutes,
            Effect::Unknown => ReasonCode::UnknownSubcommand,
        };
        let effect =
            if code == ReasonCode::Interactive && effect == Effect::ReadOnly { Effect::Unknown } else { effect };
        self.report(code, effect, word, self.title());
    }

    /// What the options of a scan do.
    pub(crate) fn options(&mut self, program: &Program, scan: &Scan<'_, '_>) {
        for option in &scan.options {
            self.option(program, option, &mut Vec::new());
        }
    }

    /// What a scan refused.
    pub(crate) fn troubles(&mut self, scan: &Scan<'_, '_>, words: &[Word]) {
        // A few say enough: all are of the same, highest effect.
        for &(position, trouble) in scan.troubles.iter().take(16) {
            let word = &words[position];
            let code = match trouble {
                Trouble::Unknown => ReasonCode::UnknownOption,
                Trouble::Dynamic => ReasonCode::DynamicOption,
            };
            self.report(code, Effect::Unknown, word, subject(word));
        }
    }

    fn option<'w>(&mut self, program: &Program, option: &Found<'_, 'w>, scripts: &mut Vec<Script<'w>>) {
        match option.rule.meaning {
            Meaning::Safe => {}
            Meaning::Harmful(effect) => self.harmful_option(effect, option),
            Meaning::Checked(kind) => {
                let (text, word) = match option.value {
                    Given::Here(text) => (Some(text), option.word),
                    Given::Next(word) => (word.text(), word),
                    Given::Dynamic => (None, option.word),
                    Given::Nothing if option.rule.arity == Arity::Optional => return,
                    Given::Nothing => {
                        return self.report(ReasonCode::UnknownOption, Effect::Unknown, option.word, option.name);
                    }
                };
                if matches!(kind, Kind::SedScript | Kind::AwkProgram) {
                    add_script(scripts, kind, word, text);
                } else if let Some((code, effect)) = self.value(program, kind, text, word) {
                    let code = if code == ReasonCode::OperandWrites { ReasonCode::OptionWrites } else { code };
                    self.report(code, effect, option.word, option.name);
                }
            }
        }
    }

    fn harmful_option(&mut self, effect: Effect, option: &Found<'_, '_>) {
        let code = match effect {
            Effect::Writes => ReasonCode::OptionWrites,
            Effect::Network => ReasonCode::OptionNetwork,
            _ => ReasonCode::OptionExecutes,
        };
        self.report(code, effect, option.word, option.name);
    }

    fn operands<'w>(
        &mut self,
        program: &Program,
        operands: &Operands,
        scan: &Scan<'_, 'w>,
        words: &'w [Word],
        harmless: bool,
        scripts: &mut Vec<Script<'w>>,
    ) {
        if let Some(position) = scan.may_shift
            && harmless
            && !operands.are_harmless_from(0)
        {
            self.report(ReasonCode::DynamicOption, Effect::Unknown, &words[position], subject(&words[position]));
        }
        for (index, &position) in scan.operands.iter().enumerate() {
            let word = &words[position];
            let kind = operands.kind(index);
            if kind == Some(Kind::Command) {
                return self.site.command(&words[position..]);
            }
            if !harmless {
                continue;
            }
            let Some(kind) = kind else {
                self.report(ReasonCode::UnknownOperand, Effect::Unknown, word, subject(word));
                continue;
            };
            if matches!(kind, Kind::SedScript | Kind::AwkProgram) {
                add_script(scripts, kind, word, word.text());
            } else if let Some((code, effect)) = self.value(program, kind, word.text(), word) {
                self.report(code, effect, word, subject(word));
            }
            if !is_one_word(word) && !operands.is_uniform_from(index) {
                return self.report(ReasonCode::DynamicOption, Effect::Unknown, word, subject(word));
            }
        }
    }

    /// What is wrong with a word of a kind. `text`: what it is, if that is known; `word`: where it stands.
    fn value(
        &mut self,
        program: &Program,
        kind: Kind,
        text: Option<&str>,
        word: &Word,
    ) -> Option<(ReasonCode, Effect)> {
        let unknown = Some((ReasonCode::UnknownOperand, Effect::Unknown));
        match kind {
            Kind::Text | Kind::File => None,
            Kind::Output => match text {
                Some("/dev/null" | "/dev/stdout" | "/dev/stderr") => None,
                // `>(…)`: what stands in it is judged where it stands.
                None if word.raw == "<(…)" && prefix(word) == "/dev/fd/" && is_single(word) => None,
                _ => Some((ReasonCode::OperandWrites, Effect::Writes)),
            },
            Kind::Format => match &word.value {
                Value::Static { text } if text.starts_with('+') => None,
                Value::Dynamic { prefix, splits: false, .. } if prefix.starts_with('+') => None,
                _ => Some((ReasonCode::OperandWrites, Effect::Writes)),
            },
            Kind::Change => Some((ReasonCode::OperandWrites, Effect::Writes)),
            Kind::Execute | Kind::Command => Some((ReasonCode::OperandExecutes, Effect::Executes)),
            Kind::Network => Some((ReasonCode::OperandNetwork, Effect::Network)),
            Kind::Number => {
                if text.is_some_and(program::is_amount) {
                    None
                } else {
                    unknown
                }
            }
            Kind::Choice => {
                let known = text.is_some_and(|text| program.choices.iter().any(|choice| **choice == *text));
                if known { None } else { unknown }
            }
            Kind::GitSetting => {
                let safe = text.is_some_and(|text| program::git::setting_is_harmless(text, &program.choices));
                if safe { None } else { Some((ReasonCode::OperandExecutes, Effect::Executes)) }
            }
            Kind::GitFormat => {
                let safe = text.is_some_and(program::git::format_is_harmless);
                if safe { None } else { Some((ReasonCode::OperandExecutes, Effect::Executes)) }
            }
            Kind::PlainFile => {
                let start = text.unwrap_or_else(|| prefix(word));
                if start.starts_with('+') || start.is_empty() { unknown } else { None }
            }
            Kind::LocalFile => {
                let host = text.unwrap_or_else(|| prefix(word)).split('/').next().unwrap_or_default();
                let is_local = !host.contains(':') && (text.is_some() || prefix(word).contains('/'));
                if is_local { None } else { Some((ReasonCode::OperandNetwork, Effect::Network)) }
            }
            Kind::InputFile => {
                let start = text.unwrap_or_else(|| prefix(word));
                let reaches_out =
                    start.starts_with("/inet") || text.is_none() && !start.is_empty() && "/inet".starts_with(start);
                if reaches_out { Some((ReasonCode::OperandNetwork, Effect::Network)) } else { None }
            }
            Kind::PluginOff => {
                if text.is_some_and(|text| text.starts_with("no:")) {
                    None
                } else {
                    unknown
                }
            }
            Kind::TestFile => {
                if program::is_test_file(text, prefix(word)) {
                    None
                } else {
                    unknown
                }
            }
            Kind::NamedTest => {
                if program::is_named_test(text, prefix(word)) {
                    None
                } else {
                    unknown
                }
            }
            Kind::TestModule => {
                if text.is_some_and(program::is_test_module) {
                    None
                } else {
                    unknown
                }
            }
            Kind::LocalPackage => {
                if program::is_local_package(text.unwrap_or_else(|| prefix(word))) {
                    None
                } else {
                    unknown
                }
            }
            Kind::SedScript | Kind::AwkProgram => Some((ReasonCode::ScriptUnknown, Effect::Unknown)),
        }
    }

    fn scripts(&mut self, scripts: Vec<Script<'_>>) {
        for script in scripts {
            let found = match &script.text {
                None => Some((ReasonCode::ScriptUnknown, Effect::Unknown, subject(script.word).to_owned())),
                Some(text) if script.kind == Kind::SedScript => program::sed::judge(text),
                Some(text) => program::awk::judge(text),
            };
            if let Some((code, effect, subject)) = found {
                self.report(code, effect, script.word, subject);
            }
        }
    }

    /// Program and sub-commands, for messages.
    pub(crate) fn title(&self) -> String {
        self.path.join(" ")
    }

    pub(crate) fn report(&mut self, code: ReasonCode, effect: Effect, word: &Word, subject: impl Into<String>) {
        self.site.found(Reason::new(code, effect, word.span, subject));
    }
}

/// Scripts in several options are one script of several lines.
fn add_script<'w>(scripts: &mut Vec<Script<'w>>, kind: Kind, word: &'w Word, text: Option<&str>) {
    match scripts.iter_mut().find(|script| script.kind == kind) {
        Some(script) => match (&mut script.text, text) {
            (Some(before), Some(text)) => {
                before.push('\n');
                before.push_str(text);
            }
            _ => script.text = None,
        },
        None => scripts.push(Script { kind, word, text: text.map(str::to_owned) }),
    }
}

/// A word as it is named in a message.
fn subject(word: &Word) -> &str {
    word.text().unwrap_or(&word.raw)
}

fn is_single(word: &Word) -> bool {
    matches!(word.value, Value::Dynamic { splits: false, .. })
}

fn prefix(word: &Word) -> &str {
    match &word.value {
        Value::Static { text } => text,
        Value::Dynamic { prefix, .. } => prefix,
    }
}
