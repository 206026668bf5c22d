//! A program as it is looked up: compiled from the source of a table.

use std::collections::HashMap;

use super::super::analysis::{Effect, Requirement};
use super::super::program::Handler;
use super::source::Style;

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    Flag,
    Required,
    /// Only glued or after `=`.
    Optional,
    /// As `Optional`, and the next word if it is a number.
    Number,
    /// The next word, also where other letters stand behind it in a cluster; glued only digits.
    Next,
}

/// What a word is for the program: what an operand or the value of an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text that does nothing.
    Text,
    /// A file or folder that is read.
    File,
    /// A file that is read, but not if its name begins with `+`: what a pager does first.
    PlainFile,
    /// A file that is read, but `host:file` is one of another machine.
    LocalFile,
    /// A file that is read, but `/inet/…` opens a connection (gawk).
    InputFile,
    /// A file that is written; `/dev/null` and the standard streams are no files.
    Output,
    /// Only text that begins with `+`: the format of `date`.
    Format,
    /// Only a number.
    Number,
    /// Only one of the program's `choices`.
    Choice,
    /// A setting `key=value` for git that is one of the program's `choices`.
    GitSetting,
    /// How git prints something, or what it sorts by.
    GitFormat,
    /// Something that is run.
    Execute,
    /// Something that is reached over the network.
    Network,
    /// Something that is changed.
    Change,
    /// The rest of the words is a command.
    Command,
    /// A script of sed.
    SedScript,
    /// A program of awk.
    AwkProgram,
    /// A plugin that is switched off: `no:cacheprovider`.
    PluginOff,
    /// A file or folder of tests inside the project.
    TestFile,
    /// A path with the name of a test inside the project, where any file would be loaded.
    NamedTest,
    /// A dotted name of a module of tests.
    TestModule,
    /// A package of the project by a relative path: `./...`.
    LocalPackage,
}

impl Kind {
    /// All, with their names in a table.
    pub(crate) const NAMES: [(&'static str, Kind); 22] = [
        ("text", Kind::Text),
        ("file", Kind::File),
        ("plain_file", Kind::PlainFile),
        ("local_file", Kind::LocalFile),
        ("input_file", Kind::InputFile),
        ("output", Kind::Output),
        ("format", Kind::Format),
        ("number", Kind::Number),
        ("choice", Kind::Choice),
        ("git_setting", Kind::GitSetting),
        ("git_format", Kind::GitFormat),
        ("execute", Kind::Execute),
        ("network", Kind::Network),
        ("change", Kind::Change),
        ("command", Kind::Command),
        ("sed_script", Kind::SedScript),
        ("awk_program", Kind::AwkProgram),
        ("plugin_off", Kind::PluginOff),
        ("test_file", Kind::TestFile),
        ("named_test", Kind::NamedTest),
        ("test_module", Kind::TestModule),
        ("local_package", Kind::LocalPackage),
    ];

    /// The kind of a name.
    pub(crate) fn from_name(name: &str) -> Option<Kind> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Whether any word at all will do.
    pub(crate) fn is_harmless(self) -> bool {
        matches!(self, Kind::Text | Kind::File)
    }
}

/// What an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Safe,
    Harmful(Effect),
    /// Its value decides.
    Checked(Kind),
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionRule {
    pub arity: Arity,
    pub meaning: Meaning,
}

/// The options of a program by their spelling, dashes included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub rules: HashMap<Box<str>, OptionRule>,
    /// Short options again, by their letter: what clusters are looked up in.
    pub letters: HashMap<char, OptionRule>,
    /// Whether `-20` is one.
    pub number: bool,
    /// Whether all are safe.
    pub harmless: bool,
}

/// What the operands mean, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operands {
    pub kinds: Vec<Kind>,
    /// Whether the last kind holds for any number of operands.
    pub repeats: bool,
}

impl Operands {
    /// The kind of the operand at `index`, or `None` if there may be none.
    pub(crate) fn kind(&self, index: usize) -> Option<Kind> {
        match self.kinds.get(index) {
            Some(kind) => Some(*kind),
            None if self.repeats => self.kinds.last().copied(),
            None => None,
        }
    }

    /// Whether all operands from the one at `index` on are of one kind, so that their number does not matter.
    pub(crate) fn is_uniform_from(&self, index: usize) -> bool {
        self.repeats && index + 1 >= self.kinds.len() || self.are_harmless_from(index)
    }

    /// Whether any number of any words is harmless from the operand at `index` on.
    pub(crate) fn are_harmless_from(&self, index: usize) -> bool {
        self.repeats && self.kinds[index.min(self.kinds.len() - 1)..].iter().all(|kind| kind.is_harmless())
    }
}

/// Other rules where certain options are given.
#[derive(Clone, Debug)]
pub(crate) struct When {
    pub options: Vec<Box<str>>,
    pub without: Vec<Box<str>>,
    pub effect: Option<Effect>,
    pub operands: Option<Operands>,
}

/// A program or a sub-command.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub names: Vec<String>,
    pub style: Style,
    pub effect: Effect,
    pub requires: Option<Requirement>,
    pub interactive: bool,
    pub any_options: bool,
    pub abbreviations: bool,
    pub alone: Vec<Box<str>>,
    pub operands: Operands,
    /// Whether the table says what the operands are: then there may be other words than sub-commands.
    pub operands_given: bool,
    pub choices: Vec<Box<str>>,
    pub handler: Option<Handler>,
    pub same_as: Option<Box<str>>,
    pub options: Options,
    pub when: Vec<When>,
    pub subcommands: HashMap<Box<str>, std::sync::Arc<Program>>,
    pub default_subcommand: Option<Box<str>>,
    pub after_dashes: Option<Box<Program>>,
    pub examples: Vec<String>,
    pub refused: Vec<String>,
}

impl Program {
    /// Whether no word can make an option that is not harmless.
    pub(crate) fn takes_any_option(&self) -> bool {
        self.any_options && self.options.harmless
    }
}

impl OptionRule {
    /// Whether its value can be the next word.
    pub(crate) fn takes_next_word(&self) -> bool {
        matches!(self.arity, Arity::Required | Arity::Number | Arity::Next)
    }
}
