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

    fn text(&mut self, text: &str, _: Span, _: bool) {
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
            Some(length) => {
                let prefix = text[..length].to_owned();
                let dash = prefix.is_empty() || prefix.starts_with('-');
                Value::Dynamic { prefix, dash, splits }
            }
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

/// Every way to write an option with its value, as words.
fn spellings(option: &DangerousOption) -> Vec<Vec<String>> {
    let (name, value) = (option.option.as_str(), option.harmful_value.as_str());
    let is_long = name.starts_with("--");
    let is_letter = name.chars().count() == 2;
    let mut spellings = Vec::new();
    let mut names = vec![name.to_owned()];
    if is_long {
        // A version that takes abbreviations takes every beginning that no other option shares.
        names.extend(
            (3..name.len())
                .filter(|length| name.is_char_boundary(*length))
                .map(|length| name[..length].to_owned())
                .filter(|short| {
                    option.long_options.iter().filter(|known| known.starts_with(short.as_str())).count() == 1
                }),
        );
    }
    for name in &names {
        if option.separate_value {
            spellings.push(vec![name.clone(), value.to_owned()]);
        } else if !option.inline_value || option.effect != Effect::Unknown {
            // If only its value can do harm, it does none without one.
            spellings.push(vec![name.clone()]);
        }
        if option.inline_value && (is_long || !option.clusters) {
            spellings.push(vec![format!("{name}={value}")]);
        }
    }
    if is_letter && option.clusters {
        let letter = &name[1..];
        if option.inline_value {
            spellings.push(vec![format!("-{letter}{value}")]);
        }
        for safe in &option.safe_letters {
            if option.separate_value {
                spellings.push(vec![format!("-{safe}{letter}"), value.to_owned()]);
            } else {
                spellings.push(vec![format!("-{safe}{letter}")]);
                spellings.push(vec![format!("-{letter}{safe}")]);
            }
            if option.inline_value {
                spellings.push(vec![format!("-{safe}{letter}{value}")]);
            }
        }
    }
    // Some have hundreds.
    let step = option.safe_flags.len().div_ceil(10).max(1);
    for flag in option.safe_flags.iter().step_by(step) {
        let mut words = vec![flag.clone()];
        words.extend(spellings[0].clone());
        spellings.push(words);
    }
    spellings
}

#[test]
fn a_harmful_option_is_found_however_it_is_written() {
    let table = CommandTable::default();
    let examples = table.examples();
    let (mut cases, mut telling, mut wrong) = (0, 0, Vec::new());
    for option in table.dangerous_options() {
        // Lines that are harmless without the option, and the bare command.
        let path = &option.command;
        let lines =
            examples.iter().filter(|program| program.names.contains(&path[0])).flat_map(|program| &program.examples);
        let mut bases: Vec<Vec<Word>> = lines
            .map(|line| split(line))
            .filter(|words| {
                words.len() >= path.len() && words.iter().zip(path).all(|(word, name)| word.text() == Some(name))
            })
            .take(2)
            .collect();
        bases.push(path.iter().map(|name| Word::fixed(name, Span::default())).collect());
        for spelling in spellings(&option) {
            let spelled: Vec<Word> = spelling.iter().map(|word| Word::fixed(word, Span::default())).collect();
            for base in &bases {
                let dashes = base.iter().position(|word| word.text() == Some("--")).unwrap_or(base.len());
                let mut places = vec![path.len()];
                if option.after_operands {
                    places.push(dashes.max(path.len()));
                }
                for place in places {
                    let mut words = base.clone();
                    words.splice(place..place, spelled.iter().cloned());
                    let mut site = Recorder::new();
                    site.command(&words);
                    cases += 1;
                    telling += usize::from(base.len() > path.len());
                    if is_accepted(site.effect()) {
                        wrong.push(words.iter().map(|word| &*word.raw).collect::<Vec<_>>().join(" "));
                    }
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of {cases} let through:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(cases > 5_000 && telling > 5_000, "{cases} cases, {telling} with a harmless line around");
}

#[test]
fn an_option_that_nobody_knows_is_refused_where_options_can_do_harm() {
    let table = CommandTable::default();
    let mut wrong = Vec::new();
    for option in table.dangerous_options() {
        for unknown in ["--made-up-option", "--made-up-option=x", "-\u{e9}", "-$x", "--$x", "$x", "\"$x\"", "*"] {
            let line = format!("{} {unknown}", option.command.join(" "));
            if is_accepted(effect(&line)) && !wrong.contains(&line) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
