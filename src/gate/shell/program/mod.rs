//! What data cannot say of programs: small languages, and programs that run other commands in ways of their own.

pub(super) mod awk;
mod env;
mod find;
pub(super) mod git;
mod old_style;
pub(super) mod sed;
mod shell;
mod tests_of_project;
mod xargs;

pub(super) use tests_of_project::{is_local_package, is_named_test, is_test_file, is_test_module};

use super::analysis::{Effect, ReasonCode};
use super::table::{Judge, Program};
use super::word::Word;

/// What was found in a script: the kind of reason, the effect, and the command in it.
pub(super) type ScriptFinding = (ReasonCode, Effect, String);

/// Code that judges a whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    Find,
    Fd,
    Xargs,
    Env,
    Shell,
    /// A program whose first word may be options without a dash: `tar tf a.tar`.
    OldStyle,
}

impl Handler {
    /// All, with their names in a table.
    pub(super) const NAMES: [(&'static str, Handler); 6] = [
        ("find", Handler::Find),
        ("fd", Handler::Fd),
        ("xargs", Handler::Xargs),
        ("env", Handler::Env),
        ("shell", Handler::Shell),
        ("old_style", Handler::OldStyle),
    ];

    /// The handler of a name.
    pub(super) fn from_name(name: &str) -> Option<Handler> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, handler)| *handler)
    }

    /// Whether words at the end can belong to another program.
    pub(super) fn runs_a_command(self) -> bool {
        matches!(self, Handler::Xargs | Handler::Env | Handler::Shell | Handler::Fd)
    }

    /// Judges the words from position `start` on.
    pub(super) fn judge(self, judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
        match self {
            Handler::Find => find::judge_find(judge, words, start),
            Handler::Fd => find::judge_fd(judge, program, words, start),
            Handler::Xargs => xargs::judge(judge, program, words, start),
            Handler::Env => env::judge(judge, program, words, start),
            Handler::Shell => shell::judge(judge, program, words, start),
            Handler::OldStyle => old_style::judge(judge, program, words, start),
        }
    }
}

/// Whether it is a number as programs take it: a sign, digits, a point, a unit (`-5`, `2.5`, `10k`, `30s`).
pub(super) fn is_amount(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    text.starts_with(|character: char| character.is_ascii_digit())
        && unit.len() <= 3
        && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
}
