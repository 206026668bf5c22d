//! `bash -c 'text'`: a shell that runs text which stands there. Everything else that a shell runs cannot be read.

use super::super::analysis::{Effect, ReasonCode};
use super::super::table::{Judge, Program, Scan};
use super::super::word::Word;

/// Judges a shell: options by the table, the first operand is the text if `-c` is given.
pub(super) fn judge(judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
    let scan = Scan::new(program, words, start);
    judge.troubles(&scan, words);
    judge.options(program, &scan);
    let has_text = scan.options.iter().any(|option| option.name == "-c");
    let text = scan.operands.first().filter(|_| has_text).map(|position| &words[*position]);
    let readable = text.and_then(|word| Some((word, word.text()?)));
    match readable {
        Some((word, text)) if reads_as_bash(&judge.path[0], text) => {
            let bash = judge.path[0] == "bash" && !scan.options.iter().any(|option| option.name == "--posix");
            judge.site.text(text, word.span, bash);
        }
        _ => {
            let title = judge.title();
            judge.report(ReasonCode::ProgramExecutes, Effect::Executes, text.unwrap_or(&words[start - 1]), title);
        }
    }
}

/// Whether a shell of this name reads the text as bash does. A small `sh` takes `$'…'` for a dollar and a string in which
/// backslashes mean nothing, `((…))` for two subshells, and `&>` for the end of a command.
fn reads_as_bash(shell: &str, text: &str) -> bool {
    if shell == "bash" {
        return true;
    }
    let doubtful = ["$'", "$\"", "&>", "|&", "<(", ">(", "{", "<<<", "[["];
    let arithmetic = text.replace("$((", "");
    !arithmetic.contains("((")
        && doubtful.iter().all(|mark| !text.contains(mark) || *mark == "{" && !text.contains(".."))
}

#[cfg(test)]
mod tests {
    use super::reads_as_bash;

    #[test]
    fn a_small_shell_gets_only_what_both_read_alike() {
        assert!(reads_as_bash("sh", "ls | grep x && echo $((1 + 2))"));
        assert!(reads_as_bash("sh", "echo ${x}"));
        assert!(reads_as_bash("bash", r"echo $'\' ; touch pwned #'"));
        assert!(!reads_as_bash("sh", r"echo $'\' ; touch pwned #'"));
        assert!(!reads_as_bash("dash", "((touch pwned))"));
        assert!(!reads_as_bash("sh", "ls &> /dev/null"));
    }
}
