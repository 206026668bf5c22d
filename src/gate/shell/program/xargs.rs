//! `xargs`: a command with words added to it that nobody knows before.

use super::super::analysis::{Effect, ReasonCode};
use super::super::table::{Given, Judge, Program, Scan};
use super::super::word::{Value, Word};

/// Judges `xargs`: the table says which options it has, and where the command begins.
pub(super) fn judge(judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
    let scan = Scan::new(program, words, start);
    judge.troubles(&scan, words);
    judge.options(program, &scan);
    let Some(&first) = scan.operands.first() else { return };
    let mut replace = None;
    let mut appends = false;
    for option in &scan.options {
        match (option.name, option.value) {
            ("-I", Given::Here(text)) => replace = Some(text),
            ("-I", Given::Next(word)) if word.text().is_some() => replace = word.text(),
            ("-I", _) => return judge.report(ReasonCode::DynamicOption, Effect::Unknown, option.word, option.name),
            ("-i" | "--replace", Given::Here(text)) => replace = Some(text),
            ("-i" | "--replace", _) => replace = Some("{}"),
            ("-n" | "-L" | "-l" | "-J" | "--max-args" | "--max-lines", _) => appends = true,
            _ => {}
        }
    }
    let command = &words[first..];
    if let Some(mark) = replace {
        if mark.is_empty() {
            return judge.report(ReasonCode::DynamicOption, Effect::Unknown, &words[start], "-I");
        }
        // Each line of the input is put into the words as it is, so it is never divided.
        let mut replaced = command.to_vec();
        replaced.iter_mut().for_each(|word| replace_mark(word, mark, "", false));
        judge.site.command(&replaced);
    }
    // With both, versions differ in which one holds.
    if replace.is_none() || appends {
        let mut appended = command.to_vec();
        appended.push(unknown_words(&words[start - 1], "", true));
        judge.site.command(&appended);
    }
}

/// Puts what is not known for `mark` in a word: it begins with `prefix`. `several`: it can become several words.
pub(super) fn replace_mark(word: &mut Word, mark: &str, prefix: &str, several: bool) {
    let Some(text) = word.text() else { return };
    let Some(index) = text.find(mark) else { return };
    let known = format!("{}{prefix}", &text[..index]);
    // Quotes say that it is one word.
    let raw = if several {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace(['"', '\'', '@', '(', '`', '{', '}', '\\'], "?"))
    };
    *word = Word { raw, span: word.span, value: dynamic(known, false) };
}

/// Words that are added to a command: any number, each beginning with `prefix`.
pub(super) fn unknown_words(near: &Word, prefix: &str, splits: bool) -> Word {
    let value = dynamic(prefix.to_owned(), splits);
    Word { raw: "{}".to_owned(), span: near.span, value }
}

/// Something that begins with `prefix`.
fn dynamic(prefix: String, splits: bool) -> Value {
    let dash = prefix.is_empty() || prefix.starts_with('-');
    Value::Dynamic { prefix, dash, splits }
}
