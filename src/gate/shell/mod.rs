//! What would this command do? Pure: nothing is run, read or looked up outside the text.
//!
//! [`analyze`] parses the text as bash does, walks every construct in which a command can hide, and judges each simple
//! command by the [`CommandTable`], which is data. Everything that is not proven read-only is not read-only.
//!
//! The rooms: `analysis` (what comes out), `guard` (texts that are not parsed at all), `parse` (the only file that
//! names the parser), `word` (what a word can become), `walk` and
//! `construct` (every construct), `variables` and `whole` (what is known of their values), `table` (programs as data), `program`
//! (what data cannot say: the small languages of sed, awk, find, …).

mod analysis;
mod builtin;
mod construct;
mod expand;
mod guard;
mod output;
mod parameter;
mod parse;
mod program;
mod simple;
mod table;
mod variables;
mod walk;
mod whole;
mod word;

pub use analysis::{Analysis, Effect, Reason, ReasonCode, Redirect, Requirement, SimpleCommand, Span};
pub use table::{
    CommandShape, CommandTable, DangerousOption, OptionShape, ProgramExamples, TableError, environment_variable_is_safe,
};
pub use word::{Value, Word};

/// What would this command do?
///
/// # Example
/// ```
/// use hookwright::gate::shell::{CommandTable, Effect, analyze};
/// let analysis = analyze("echo hello > out.txt", &CommandTable::default());
/// assert_eq!(analysis.effect, Effect::Writes);
/// assert_eq!(analysis.reasons[0].subject, "out.txt");
/// ```
pub fn analyze(command: &str, table: &CommandTable) -> Analysis {
    if command.len() <= SHORT {
        return analyze_here(command, table);
    }
    // The parser follows what stands in one another on its stack, and not all of that can be counted beforehand. In a
    // long text it may be more than the caller's stack holds.
    let analyzed = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("hookwright-shell".into()).stack_size(STACK);
        builder.spawn_scoped(scope, || analyze_here(command, table)).ok().and_then(|thread| thread.join().ok())
    });
    analyzed.unwrap_or_else(|| {
        let mut walk = walk::Walk::new(table);
        walk.refuse(ReasonCode::TooLong, Span { start: 0, end: command.len() }, "");
        walk.finish()
    })
}

/// Texts up to this many bytes are read on the caller's thread.
const SHORT: usize = 1024;
/// The stack for longer ones, in bytes; only what is used of it takes memory.
const STACK: usize = 256 * 1024 * 1024;

fn analyze_here(command: &str, table: &CommandTable) -> Analysis {
    let mut walk = walk::Walk::new(table);
    walk.read(command, walk::Origin::At(0));
    walk.finish()
}
