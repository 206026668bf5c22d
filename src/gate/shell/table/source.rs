//! What stands in a table file, as it is written; `compile` makes the programs of it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::analysis::{Effect, Requirement};

/// How a program reads its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Style {
    /// Options may come after operands; short ones cluster; a value may begin with a dash.
    #[default]
    Gnu,
    /// As `gnu`, but the first operand ends the options: what comes after it belongs to another program.
    Posix,
    /// As `gnu`, but a word with a dash is always an option, never the value of the one before (yargs, nopt, argparse).
    Loose,
    /// Long options with one dash, none cluster: `-run`, `-run=x`, and `--run` for the same.
    SingleDash,
    /// No options at all.
    Plain,
}

/// Options by what they take, each list divided by blanks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OptionLists {
    /// No value. `--[no-]x` stands for `--x` and `--no-x`; `-NUMBER` for `-20`.
    pub flags: String,
    /// A value: glued, after `=`, or the next word.
    pub values: String,
    /// A value only if it is glued or stands after `=`.
    pub optional: String,
    /// A value that may also be the next word if that is a number (`make -j 4`).
    pub numbers: String,
    /// A value that is always the next word, never glued, whatever letters stand behind (`tree -Po pattern out`).
    pub next: String,
}

/// All options of a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OptionSource {
    pub flags: String,
    pub values: String,
    pub optional: String,
    pub numbers: String,
    pub next: String,
    pub writes: OptionLists,
    pub network: OptionLists,
    pub executes: OptionLists,
    /// Options whose value decides: the kind of the value by the option. `--x[=]` takes it only if it is glued.
    pub checked: BTreeMap<String, String>,
}

/// Other rules where certain options are given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WhenSource {
    /// At least one of these is given.
    pub options: String,
    /// None of these is given.
    pub without: String,
    pub effect: Option<Effect>,
    pub operands: Option<String>,
}

/// Options that several programs share; a name to include.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GroupSource {
    pub options: OptionSource,
    pub choices: String,
    pub alone: String,
    pub subcommand: BTreeMap<String, ProgramSource>,
}

/// A program or a sub-command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProgramSource {
    /// The names it is called by; of a sub-command: its other names.
    pub names: Vec<String>,
    pub style: Option<Style>,
    /// The effect of the program if no option or operand says otherwise; `read_only` if not given.
    pub effect: Option<Effect>,
    /// What must hold around it for its effect to be as said.
    pub requires: Option<Requirement>,
    /// It waits for a person.
    pub interactive: bool,
    /// Nothing that it accepts as an option writes, runs or reaches out: options need no list.
    pub any_options: bool,
    /// Long options may be cut to what is not ambiguous. Only where the list of options is complete.
    pub abbreviations: bool,
    /// Options that only tell about the program if they are its only word.
    pub alone: String,
    /// What operands mean, in order; the last may end in `*` for any number. `text*` if not given.
    pub operands: Option<String>,
    /// The words that operands of kind `choice` may be.
    pub choices: String,
    /// Code that judges the whole program.
    pub handler: Option<String>,
    /// Another program whose rules hold.
    pub same_as: Option<String>,
    /// Names of option groups.
    pub include: Vec<String>,
    pub options: OptionSource,
    pub when: Vec<WhenSource>,
    pub subcommand: BTreeMap<String, ProgramSource>,
    /// The sub-command that is meant if none is named.
    pub default_subcommand: Option<String>,
    /// What stands after `--`, where that is for another program.
    pub after_dashes: Option<Box<ProgramSource>>,
    /// Commands that are read-only or run tests.
    pub examples: Vec<String>,
    /// Commands that are neither.
    pub refused: Vec<String>,
}

/// The keys that a program may have, for "did you mean".
pub(crate) const PROGRAM_KEYS: [&str; 20] = [
    "names",
    "style",
    "effect",
    "requires",
    "interactive",
    "any_options",
    "abbreviations",
    "alone",
    "operands",
    "choices",
    "handler",
    "same_as",
    "include",
    "options",
    "when",
    "subcommand",
    "default_subcommand",
    "after_dashes",
    "examples",
    "refused",
];
