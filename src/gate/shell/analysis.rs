//! What an analysis says.

use std::fmt;

use serde::Serialize;

use super::word::Word;

/// What a command does, from harmless to unknown; a text's effect is the most severe of its commands'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changes nothing, runs no code that cannot be read, reaches no network.
    ReadOnly,
    /// It runs the project's own tests, in a shape that loads no other code.
    RunsTests,
    /// It changes files, settings or processes.
    Writes,
    /// It reaches the network.
    Network,
    /// It runs code that cannot be read.
    Executes,
    /// What it does cannot be told.
    Unknown,
}

impl Effect {
    /// All, from harmless to unknown.
    pub const ALL: [Effect; 6] =
        [Self::ReadOnly, Self::RunsTests, Self::Writes, Self::Network, Self::Executes, Self::Unknown];

    /// The name as it stands in JSON, for example `read_only`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::RunsTests => "runs_tests",
            Self::Writes => "writes",
            Self::Network => "network",
            Self::Executes => "executes",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A stretch of the text, in bytes; `text[span.start..span.end]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

macro_rules! reason_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Why a command is not read-only. The texts for each code stand in a message table, not here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        pub enum ReasonCode { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl ReasonCode {
            /// All codes.
            pub const ALL: &'static [ReasonCode] = &[$(Self::$variant,)+];

            /// The name as it stands in JSON, for example `unknown_program`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

reason_codes! {
    /// The text is longer than is parsed.
    TooLong = "too_long",
    /// A control character, or a carriage return.
    ControlCharacter = "control_character",
    /// A character that is not seen, or that turns the direction of the text.
    InvisibleCharacter = "invisible_character",
    /// Constructs are nested too deep.
    TooDeep = "too_deep",
    /// It is not valid bash.
    NotParsed = "not_parsed",
    /// It goes on in the background.
    Background = "background",
    /// A redirection writes to a file. Subject: the target.
    RedirectWrites = "redirect_writes",
    /// A variable is set that changes what programs or the shell do. Subject: its name.
    SetsVariable = "sets_variable",
    /// The name of the program is known only when it runs.
    DynamicProgram = "dynamic_program",
    /// A program by path: not the one that is known by that name. Subject: the path.
    ProgramByPath = "program_by_path",
    /// The name is defined in the text itself as a function or alias. Subject: the name.
    Shadowed = "shadowed",
    /// Text that the shell evaluates as code and that is not known.
    EvaluatesText = "evaluates_text",
    /// It changes the shell for what comes after. Subject: the builtin.
    ChangesShell = "changes_shell",
    /// Nothing is known of the program. Subject: its name.
    UnknownProgram = "unknown_program",
    /// Nothing is known of the sub-command. Subject: program and sub-command.
    UnknownSubcommand = "unknown_subcommand",
    /// Nothing is known of the option. Subject: the option.
    UnknownOption = "unknown_option",
    /// A word that can become an option when it runs. Subject: the word.
    DynamicOption = "dynamic_option",
    /// The program changes files or settings. Subject: program (and sub-command).
    ProgramWrites = "program_writes",
    /// The program reaches the network. Subject: program (and sub-command).
    ProgramNetwork = "program_network",
    /// The program runs code that cannot be read. Subject: program.
    ProgramExecutes = "program_executes",
    /// The program waits for a person: an editor, a pager with commands. Subject: program.
    Interactive = "interactive",
    /// This option makes the program write. Subject: the option.
    OptionWrites = "option_writes",
    /// This option makes the program reach the network. Subject: the option.
    OptionNetwork = "option_network",
    /// This option makes the program run code. Subject: the option.
    OptionExecutes = "option_executes",
    /// This operand is written to, or makes the program write. Subject: the operand.
    OperandWrites = "operand_writes",
    /// This operand makes the program reach the network. Subject: the operand.
    OperandNetwork = "operand_network",
    /// This operand is run. Subject: the operand.
    OperandExecutes = "operand_executes",
    /// Nothing is known of such an operand. Subject: the operand.
    UnknownOperand = "unknown_operand",
    /// The script (of sed, awk, …) writes. Subject: the command in it.
    ScriptWrites = "script_writes",
    /// The script runs commands. Subject: the command in it.
    ScriptExecutes = "script_executes",
    /// The script reaches the network. Subject: the command in it.
    ScriptNetwork = "script_network",
    /// The script cannot be read: it is not static, or not understood.
    ScriptUnknown = "script_unknown",
    /// It runs the project's tests. The only code that goes with `runs_tests`.
    RunsTests = "runs_tests",
}

/// One reason why a text is not read-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The kind of reason.
    pub code: ReasonCode,
    /// What it makes of the text.
    pub effect: Effect,
    /// Where in the text.
    pub span: Span,
    /// What it is about: a program, an option, a file.
    pub subject: String,
}

impl Reason {
    /// A reason.
    pub fn new(code: ReasonCode, effect: Effect, span: Span, subject: impl Into<String>) -> Self {
        Self { code, effect, span, subject: subject.into() }
    }
}

/// What must hold around a command for its effect to be as said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// The hardened environment: without it git runs what the repository's configuration says.
    HardenedGit,
    /// The environment for reading as a whole: whoever only looks runs everything in it.
    ReadingEnvironment,
}

impl Requirement {
    /// The name as it stands in JSON, for example `hardened_git`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HardenedGit => "hardened_git",
            Self::ReadingEnvironment => "reading_environment",
        }
    }
}

/// A simple command: a program with its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SimpleCommand {
    /// Where in the text, from the first word to the last.
    pub span: Span,
    /// Its words, the program's name first; without assignments and redirections.
    pub words: Vec<Word>,
    /// The program and what it is told to do, without options that stand before a sub-command:
    /// `git -C sub push origin` is `git push origin`. `None` for a word that is not static. What permission rules match.
    pub subject: Vec<Option<String>>,
    /// Files that its redirections write or read, as far as they are static.
    pub redirects: Vec<(Redirect, Option<String>)>,
    /// Its own effect.
    pub effect: Effect,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Redirect {
    /// It reads a file.
    Read,
    /// It writes a file.
    Write,
}

/// What an analysis found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// The most severe of [`effects`](Self::effects).
    pub effect: Effect,
    /// Each effect that some part has, from harmless to unknown.
    pub effects: Vec<Effect>,
    /// Why it is not read-only, in the order of the text. Empty if it is.
    pub reasons: Vec<Reason>,
    /// The simple commands in it, those inside substitutions, `xargs`, `env`, `bash -c` … included.
    pub commands: Vec<SimpleCommand>,
    /// What must hold for the effect to be as said.
    pub requires: Vec<Requirement>,
}
