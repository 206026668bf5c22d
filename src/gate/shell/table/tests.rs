//! The tables as a whole: their own examples, and every harmful option in every spelling.

use super::super::analysis::{Effect, Reason, Requirement, Span};
use super::super::word::{Value, Word};
use super::{CommandTable, DangerousOption, Site};

/// A site that judges inner commands by the same table, and knows nothing of the shell.
struct Recorder {
    table: CommandTable,
    reasons: Vec<Reason>,
    depth: usize,
}

impl Recorder {
    fn new() -> Self {
        Self { table: CommandTable::default(), reasons: Vec::new(), depth: 0 }
    }

    fn effect(&self) -> Effect {
        self.reasons.iter().map(|reason| reason.effect).max().unwrap_or(Effect::ReadOnly)
    }
}

impl Site for Recorder {
    fn found(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    fn requires(&mut self, _: Requirement) {}

    fn command(&mut self, words: &[Word]) {
        self.depth += 1;
        assert!(self.depth < 20);
        self.table.clone().judge(words, self);
        self.depth -= 1;
    }

    fn text(&mut self, text: &str, _: Span) {
        let words = split(text);
        self.command(&words);
    }
}

/// The words of a plain line: quotes and backslashes; `$name` is dynamic, `*` a glob. No more of the shell.
fn split(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut characters = line.char_indices().peekable();
    while let Some((start, first)) = characters.peek().copied() {
        if first == ' ' {
            characters.next();
            continue;
        }
        let (mut text, mut quote, mut prefix, mut splits, mut end) = (String::new(), None, None, false, start);
        while let Some((index, character)) = characters.peek().copied() {
            if quote.is_none() && character == ' ' {
                break;
            }
            characters.next();
            end = index + character.len_utf8();
            match (quote, character) {
                (None, '\'' | '"') => quote = Some(character),
                (Some(open), close) if open == close => quote = None,
                (None | Some('"'), '\\') => {
                    let (index, escaped) = characters.next().expect("an escaped character");
                    end = index + escaped.len_utf8();
                    text.push(escaped);
                }
                (None, '*' | '?') => prefix = prefix.or(Some(text.len())),
                (None | Some('"'), '$') => {
                    prefix = prefix.or(Some(text.len()));
                    splits |= quote.is_none();
                }
                _ => text.push(character),
            }
        }
        assert!(quote.is_none(), "{line}");
        let span = Span { start, end };
        let value = match prefix {
            None => Value::Static { text },
            Some(length) => Value::Dynamic { prefix: text[..length].to_owned(), splits },
        };
        words.push(Word { raw: line[start..end].to_owned(), span, value });
    }
    words
}

fn effect(line: &str) -> Effect {
    let mut site = Recorder::new();
    site.command(&split(line));
    site.effect()
}

fn is_accepted(effect: Effect) -> bool {
    matches!(effect, Effect::ReadOnly | Effect::RunsTests)
}

#[test]
fn the_examples_of_every_program_are_judged_as_they_say() {
    let mut wrong = Vec::new();
    for program in CommandTable::default().examples() {
        for line in &program.examples {
            let mut site = Recorder::new();
            site.command(&split(line));
            if !is_accepted(site.effect()) {
                wrong.push(format!("refused: {line}: {:?}", site.reasons));
            }
        }
        for line in &program.refused {
            if is_accepted(effect(line)) {
                wrong.push(format!("let through: {line}"));
            }
        }
        if program.examples.is_empty() && program.refused.is_empty() {
            wrong.push(format!("no example: {}", program.names[0]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
