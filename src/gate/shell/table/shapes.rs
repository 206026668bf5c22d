//! Every program, sub-command and option of a table, for tests that make up command lines of all of them.

use super::CommandTable;
use super::program::{Arity, Kind, Meaning, Operands, Program};

/// What a program or sub-command takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandShape {
    /// The program and its sub-commands.
    pub command: Vec<String>,
    /// Its options, harmful ones included.
    pub options: Vec<OptionShape>,
    /// Whether it is said to accept any option.
    pub any_options: bool,
    /// The options that may stand alone.
    pub alone: Vec<String>,
    /// The kinds of operands, by their names in a table file.
    pub operands: Vec<&'static str>,
    /// The words that operands of the kind `choice` may be.
    pub choices: Vec<String>,
    /// The command lines that the table gives as examples, harmful ones included.
    pub examples: Vec<String>,
}

/// One option of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionShape {
    /// The option with its dashes.
    pub option: String,
    /// Whether it takes a value that may be the next word.
    pub separate_value: bool,
    /// Whether it takes a value that may be glued, or stand after `=`.
    pub inline_value: bool,
    /// Whether it is harmless whatever its value.
    pub is_safe: bool,
    /// The kind of its value where that decides, by its name in a table file.
    pub kind: Option<&'static str>,
}

impl CommandTable {
    /// All programs and sub-commands with their options, in order.
    ///
    /// ```
    /// use hookwright::gate::shell::CommandTable;
    /// let shapes = CommandTable::default().shapes();
    /// let sort = shapes.iter().find(|shape| shape.command == ["sort"]).unwrap();
    /// let output = sort.options.iter().find(|option| option.option == "-o").unwrap();
    /// assert!(!output.is_safe && output.separate_value);
    /// ```
    pub fn shapes(&self) -> Vec<CommandShape> {
        let mut found = Vec::new();
        for (name, program) in self.programs.iter() {
            collect(program, &mut vec![name.to_string()], &mut found);
        }
        found.sort_by(|one, other| one.command.cmp(&other.command));
        found
    }
}

fn collect(program: &Program, command: &mut Vec<String>, found: &mut Vec<CommandShape>) {
    let shape = |name: &str, rule: &super::program::OptionRule| OptionShape {
        option: name.to_string(),
        separate_value: rule.takes_next_word(),
        inline_value: !matches!(rule.arity, Arity::Flag | Arity::Next),
        is_safe: rule.meaning == Meaning::Safe,
        kind: match rule.meaning {
            Meaning::Checked(kind) => Some(name_of(kind)),
            _ => None,
        },
    };
    let mut options: Vec<OptionShape> = program.options.rules.iter().map(|(name, rule)| shape(name, rule)).collect();
    options.sort_by(|one, other| one.option.cmp(&other.option));
    let kinds = |operands: &Operands| operands.kinds.iter().copied().map(name_of).collect::<Vec<_>>();
    let mut operands = kinds(&program.operands);
    operands.extend(program.when.iter().filter_map(|when| when.operands.as_ref()).flat_map(kinds));
    found.push(CommandShape {
        command: command.clone(),
        options,
        any_options: program.any_options,
        alone: program.alone.iter().map(|option| option.to_string()).collect(),
        operands,
        choices: program.choices.iter().map(|choice| choice.to_string()).collect(),
        examples: program.examples.iter().chain(&program.refused).cloned().collect(),
    });
    for (name, subcommand) in &program.subcommands {
        command.push(name.to_string());
        collect(subcommand, command, found);
        command.pop();
    }
}

fn name_of(kind: Kind) -> &'static str {
    Kind::NAMES.iter().find(|(_, known)| *known == kind).map_or("text", |(name, _)| name)
}
