//! What a table holds, for tests that make up command lines.

use super::super::analysis::Effect;
use super::CommandTable;
use super::program::{Arity, Kind, Meaning, OptionRule, Program};
use super::source::Style;

/// An option that makes a program do harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DangerousOption {
    /// The program and its sub-commands.
    pub command: Vec<String>,
    /// The option with its dashes.
    pub option: String,
    /// What it makes the program do; `Unknown` if its value decides.
    pub effect: Effect,
    /// Whether it takes a value that may be the next word.
    pub separate_value: bool,
    /// Whether it takes a value that may be glued, or stand after `=`.
    pub inline_value: bool,
    /// Whether short options share a dash, and values may be glued to them.
    pub clusters: bool,
    /// A value with which it does harm.
    pub harmful_value: String,
    /// Options of one letter without a value that are harmless: what it can be clustered behind.
    pub safe_letters: Vec<char>,
    /// Harmless options that take no value.
    pub safe_flags: Vec<String>,
    /// All long options of the program, of which abbreviations are made.
    pub long_options: Vec<String>,
    /// Whether options behind the first operand are still read.
    pub after_operands: bool,
}

/// The example lines of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramExamples {
    /// The names the program is called by.
    pub names: Vec<String>,
    /// Lines that are read-only or run tests.
    pub examples: Vec<String>,
    /// Lines that are neither.
    pub refused: Vec<String>,
}

impl CommandTable {
    /// Every option of every program and sub-command that makes it do harm.
    pub fn dangerous_options(&self) -> Vec<DangerousOption> {
        let mut found = Vec::new();
        for (name, program) in self.programs.iter() {
            collect(program, &mut vec![name.to_string()], &mut found);
        }
        found.sort_by(|one, other| (&one.command, &one.option).cmp(&(&other.command, &other.option)));
        found
    }

    /// The names of all programs, in order.
    pub fn programs(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.programs.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    /// The example lines of all programs, one entry a program, in the order of their first names.
    pub fn examples(&self) -> Vec<ProgramExamples> {
        let mut found: Vec<ProgramExamples> = self
            .programs
            .iter()
            .filter(|(name, program)| program.names.first().is_some_and(|first| **first == ***name))
            .map(|(_, program)| {
                let mut entry =
                    ProgramExamples { names: program.names.clone(), examples: Vec::new(), refused: Vec::new() };
                examples(program, &mut entry);
                entry
            })
            .collect();
        found.sort_by(|one, other| one.names.cmp(&other.names));
        found
    }
}

fn examples(program: &Program, into: &mut ProgramExamples) {
    into.examples.extend(program.examples.iter().cloned());
    into.refused.extend(program.refused.iter().cloned());
    for subcommand in program.subcommands.values() {
        examples(subcommand, into);
    }
}

/// A value of a kind that does harm; `None` if there is none.
fn harmful_value(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Text | Kind::File => None,
        Kind::SedScript => Some("w pwned"),
        Kind::AwkProgram => Some("BEGIN{system(1)}"),
        Kind::LocalFile => Some("host:pwned"),
        Kind::InputFile => Some("/inet/tcp/0/host/80"),
        Kind::PlainFile => Some("+!pwned"),
        Kind::GitSetting => Some("core.pager=./pwned"),
        Kind::GitFormat => Some("%G?"),
        Kind::TestFile | Kind::NamedTest | Kind::TestModule | Kind::LocalPackage => Some("/tmp/pwned"),
        _ => Some("./pwned"),
    }
}

fn collect(program: &Program, command: &mut Vec<String>, found: &mut Vec<DangerousOption>) {
    let is_safe_flag = |rule: &OptionRule| rule.meaning == Meaning::Safe && rule.arity == Arity::Flag;
    // `--end-of-options` is none that others can stand behind.
    let safe = program.options.rules.iter().filter(|(name, rule)| is_safe_flag(rule) && ***name != *"--end-of-options");
    let mut safe_flags: Vec<String> = safe.map(|(name, _)| name.to_string()).collect();
    safe_flags.sort();
    let mut long_options: Vec<String> =
        program.options.rules.keys().filter(|name| name.starts_with("--")).map(|name| name.to_string()).collect();
    long_options.sort();
    let safe_letters: Vec<char> = safe_flags
        .iter()
        .filter(|name| name.len() == 2 && program.style != Style::SingleDash)
        .filter_map(|name| name.chars().nth(1))
        .collect();
    let runs_a_command = program.handler.is_some_and(super::super::program::Handler::runs_a_command);
    for (name, rule) in &program.options.rules {
        let (effect, harmful_value) = match rule.meaning {
            Meaning::Safe => continue,
            Meaning::Harmful(effect) => (effect, "pwned"),
            Meaning::Checked(kind) => match harmful_value(kind) {
                Some(value) => (Effect::Unknown, value),
                None => continue,
            },
        };
        found.push(DangerousOption {
            command: command.clone(),
            option: name.to_string(),
            effect,
            separate_value: matches!(rule.arity, Arity::Required | Arity::Next),
            inline_value: !matches!(rule.arity, Arity::Flag | Arity::Next),
            clusters: program.style != Style::SingleDash,
            harmful_value: harmful_value.to_owned(),
            safe_letters: safe_letters.clone(),
            safe_flags: safe_flags.clone(),
            long_options: long_options.clone(),
            after_operands: program.style != Style::Posix && program.subcommands.is_empty() && !runs_a_command,
        });
    }
    for (name, subcommand) in &program.subcommands {
        command.push(name.to_string());
        collect(subcommand, command, found);
        command.pop();
    }
}
