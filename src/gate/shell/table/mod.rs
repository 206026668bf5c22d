//! Programs as data: which options are safe, which take a value, what makes them write, run or reach out.
//!
//! The data stands in `src/gate/commands/*.toml`. `source` is what a file may say, `compile` checks it, `program` is
//! what is looked up, `scan` reads a command line as the program would, `judge` says what it does, `environment` which
//! variables may be set, `listing` what a test needs to make up command lines.

mod builtin;
mod compile;
mod environment;
mod judge;
mod listing;
mod program;
mod scan;
mod shapes;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use compile::TableError;
pub use environment::environment_variable_is_safe;
pub(super) use judge::Judge;
pub use listing::{DangerousOption, ProgramExamples};
use program::Kind;
pub(super) use program::Program;
pub(super) use scan::{Given, Scan, is_one_word};
pub use shapes::{CommandShape, OptionShape};

use super::analysis::{Effect, Reason, ReasonCode, Requirement, Span};
use super::word::Word;

/// Where judged commands stand: what is found goes here, and what runs other commands has them judged here.
pub(super) trait Site {
    /// A reason why the text is not read-only.
    fn found(&mut self, reason: Reason);
    /// Something that must hold around the command.
    fn requires(&mut self, requirement: Requirement);
    /// Judges a command that this one runs (`env`, `xargs`, `find -exec`), as if it stood in the text.
    fn command(&mut self, words: &[Word]);
    /// Judges shell text that this one runs (`bash -c '…'`). `span`: where the text stands; `bash`: whether it is read and
    /// run as bash does both.
    fn text(&mut self, text: &str, span: Span, bash: bool);
}

/// What hookwright knows of programs. Cheap to clone. The default is what is built in.
#[derive(Clone, Debug)]
pub struct CommandTable {
    programs: Arc<HashMap<Box<str>, Arc<Program>>>,
}

impl Default for CommandTable {
    fn default() -> Self {
        Self::builtin().clone()
    }
}

impl CommandTable {
    /// The table that is built in.
    pub fn builtin() -> &'static Self {
        static TABLE: OnceLock<CommandTable> = OnceLock::new();
        TABLE.get_or_init(builtin::load)
    }

    /// This table and the programs that `toml` describes; a program of a name that is known replaces it.
    ///
    /// `origin` is how messages name the text, usually the path of the file.
    ///
    /// # Errors
    /// All mistakes in the text at once; see [`TableError`].
    ///
    /// ```
    /// use hookwright::gate::shell::CommandTable;
    /// let table = CommandTable::default().extend("[[program]]\nnames = ['ledger']\noptions.flags = '--sorted'\n", "my.toml");
    /// assert!(table.is_ok());
    /// let error = CommandTable::default().extend("[[program]]\nnames = ['ledger']\nefect = 'writes'\n", "my.toml");
    /// assert_eq!(
    ///     error.unwrap_err().to_string(),
    ///     "my.toml: program `ledger`: unknown key `efect`; did you mean `effect`?"
    /// );
    /// ```
    pub fn extend(&self, toml: &str, origin: &str) -> Result<CommandTable, TableError> {
        let more = compile::compile(toml, origin)?;
        let mut programs = HashMap::clone(&self.programs);
        programs.extend(more);
        Ok(Self { programs: Arc::new(programs) })
    }

    /// Judges a simple command: `words[0]` is static and a bare name that is neither a builtin with rules of its own nor
    /// defined in the text. Returns what permission rules match: the words without options before a sub-command.
    pub(super) fn judge(&self, words: &[Word], site: &mut dyn Site) -> Vec<Option<String>> {
        let name = words[0].text().unwrap_or_default();
        let Some(program) = self.programs.get(name) else {
            site.found(Reason::new(ReasonCode::UnknownProgram, Effect::Unknown, words[0].span, name));
            return words.iter().map(|word| word.text().map(str::to_owned)).collect();
        };
        let mut judge = Judge { table: self, site, path: vec![name.to_owned()] };
        let arguments = judge.program(program, words, 1).arguments;
        let path = judge.path.into_iter().map(Some);
        path.chain(words[arguments..].iter().map(|word| word.text().map(str::to_owned))).collect()
    }

    /// Whether a program is known, runs no other command that it is given, and needs nothing around it.
    pub(super) fn runs_nothing_else(&self, name: &str) -> bool {
        self.programs.get(name).is_some_and(|program| {
            program.handler.is_none() && program.requires.is_none() && !program.operands.kinds.contains(&Kind::Command)
        })
    }
}
