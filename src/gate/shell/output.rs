//! What a substitution becomes, where that can be told from its last command.

use super::analysis::SimpleCommand;
use super::variables::Known;
use super::whole::Whole;
use super::word::Value;

/// The output of the commands of the text `text`. It may always be nothing, because they may fail.
pub(super) fn of(text: &str, commands: &[SimpleCommand], whole: &mut Whole) -> Known {
    let known = commands.last().filter(|_| is_plain_pipeline(text, commands)).and_then(|last| {
        let first = commands.len() == 1;
        known(last, first).map(|(program, known)| {
            whole.relies_on_output.push((program, last.span));
            known
        })
    });
    known.unwrap_or_else(Known::anything)
}

/// Whether only the last of the commands prints: with anything but pipes in the text others may print as well, errors
/// for example, or commands that run others, which stand in these.
fn is_plain_pipeline(text: &str, commands: &[SimpleCommand]) -> bool {
    let text = text.replace("2>/dev/null", "");
    let mut quote = None;
    let plain = !text.contains("$'")
        && text.chars().all(|character| {
            match (quote, character) {
                (None, '\'' | '"') => quote = Some(character),
                (Some(open), _) if open == character => quote = None,
                (Some('\''), _) => {}
                (Some(_), '(' | '`' | '\\') => return false,
                (None, ';' | '&' | '\n' | '(' | '{' | '`' | '\\' | '>') => return false,
                _ => {}
            }
            true
        });
    plain && commands.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start)
}

fn known(last: &SimpleCommand, alone: bool) -> Option<(&'static str, Known)> {
    let operand = |at: usize| last.words.get(at).is_some_and(|word| !word.can_be_option());
    let words: Vec<&str> = last.words.iter().map(|word| word.text().unwrap_or_default()).collect();
    Some(match words.as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] => ("wc", Known::COUNT),
        ["grep", "-c", _] if operand(2) => ("grep", Known::COUNT),
        // One file: with several it says which.
        ["grep", "-c", _, _] if operand(2) && operand(3) && one_word(last, 3) => ("grep", Known::COUNT),
        ["nproc"] => ("nproc", Known::COUNT),
        ["date", "+%s" | "+%Y" | "+%s%N"] => ("date", Known::COUNT),
        ["id", "-u" | "-g"] => ("id", Known::COUNT),
        ["git", "merge-base", _, _] if alone && operand(2) && operand(3) => ("git", Known::Hash),
        ["git", "rev-parse", "HEAD"] | ["git", "rev-parse", "--short", "HEAD"] if alone => ("git", Known::Hash),
        ["git", "rev-parse", "--show-toplevel"] if alone => ("git", Known::Perhaps("/".to_owned())),
        ["pwd"] if alone => ("pwd", Known::Perhaps("/".to_owned())),
        _ => return None,
    })
}

/// Whether a word becomes exactly one.
fn one_word(command: &SimpleCommand, at: usize) -> bool {
    let raw = command.words.get(at).map_or("", |word| word.raw.as_str());
    let splits = matches!(command.words.get(at).map(|word| &word.value), Some(Value::Dynamic { splits: true, .. }));
    !splits && (!raw.contains(['*', '?', '[']) || raw.contains(['"', '\'']))
}
