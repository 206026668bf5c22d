//! What a substitution becomes, where that can be told from its last command.

use super::analysis::SimpleCommand;
use super::variables::Known;

/// The output of the commands of the text `text`.
pub(super) fn of(text: &str, commands: &[SimpleCommand]) -> Known {
    let anything = Known::Anything(String::new());
    // The last command of a plain pipeline: with anything else in the text others may print as well.
    let lists = text.contains([';', '&', '\n', '(', '{', '`', '$']) || text.contains("||") || text.contains("if ");
    let Some(last) = commands.last().filter(|_| !lists) else { return anything };
    let words: Option<Vec<&str>> = last.words.iter().map(|word| word.text()).collect();
    match words.as_deref() {
        Some(["wc", options @ ..]) if options.iter().all(|word| word.starts_with('-')) && options.len() == 1 => {
            Known::Number
        }
        Some(["nproc" | "tty_columns"] | ["date", "+%s" | "+%Y" | "+%s%N"] | ["id", "-u" | "-g"]) => Known::Number,
        Some(["pwd"] | ["git", "rev-parse", "--show-toplevel"]) if commands.len() == 1 => {
            Known::Anything("/".to_owned())
        }
        _ => anything,
    }
}
