//! What a substitution becomes, where that can be told from its last command.

use super::analysis::SimpleCommand;
use super::variables::Known;
use super::word::Value;

/// The output of the commands of the text `text`.
pub(super) fn of(text: &str, commands: &[SimpleCommand]) -> Known {
    let anything = Known::Anything(String::new());
    // The last command of a plain pipeline: with anything else in the text others may print as well.
    let lists = text.contains([';', '&', '\n', '(', '{', '`']) || text.contains("||") || text.contains("if ");
    let Some(last) = commands.last().filter(|_| !lists) else { return anything };
    let operand = |at: usize| last.words.get(at).is_some_and(|word| !word.can_be_option());
    let words: Vec<&str> = last.words.iter().map(|word| word.text().unwrap_or_default()).collect();
    match words.as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] => Known::Number,
        ["grep", "-c", _] if operand(2) => Known::Number,
        // One file: with several it says which.
        ["grep", "-c", _, _] if operand(2) && operand(3) && one_word(last, 3) => Known::Number,
        ["nproc"] | ["date", "+%s" | "+%Y" | "+%s%N"] | ["id", "-u" | "-g"] => Known::Number,
        ["git", "merge-base", _, _] if commands.len() == 1 && operand(2) && operand(3) => Known::Hash,
        ["git", "rev-parse", "HEAD"] | ["git", "rev-parse", "--short", "HEAD"] if commands.len() == 1 => Known::Hash,
        ["pwd"] | ["git", "rev-parse", "--show-toplevel"] if commands.len() == 1 => Known::Anything("/".to_owned()),
        _ => anything,
    }
}

/// Whether a word becomes exactly one.
fn one_word(command: &SimpleCommand, at: usize) -> bool {
    let raw = command.words.get(at).map_or("", |word| word.raw.as_str());
    let splits = matches!(command.words.get(at).map(|word| &word.value), Some(Value::Dynamic { splits: true, .. }));
    !splits && (!raw.contains(['*', '?', '[']) || raw.contains(['"', '\'']))
}
