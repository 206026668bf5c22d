//! Programs as data: which options are safe, which take a value, what makes them write, run or reach out.

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
    /// Judges shell text that this one runs (`bash -c '…'`). `span`: where the text stands.
    fn text(&mut self, text: &str, span: Span);
}

/// What hookwright knows of programs.
#[derive(Clone, Debug, Default)]
pub struct CommandTable {}

impl CommandTable {
    /// Judges a simple command: `words[0]` is static and a bare name that is neither a builtin with rules of its own nor
    /// defined in the text. Returns what permission rules match: the words without options before a sub-command.
    pub(super) fn judge(&self, words: &[Word], site: &mut dyn Site) -> Vec<Option<String>> {
        let name = words[0].text().unwrap_or_default();
        site.found(Reason::new(ReasonCode::UnknownProgram, Effect::Unknown, words[0].span, name));
        words.iter().map(|word| word.text().map(str::to_owned)).collect()
    }

    /// Whether a variable may stand in front of a program.
    pub(super) fn environment_is_safe(&self, name: &str, _value: Option<&str>) -> bool {
        matches!(name, "CI" | "LANG" | "TZ" | "NO_COLOR")
    }
}
