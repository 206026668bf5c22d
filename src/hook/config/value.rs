//! Typed values out of a tree that was read, each mistake reported where it stands.

use std::time::Duration;

use super::problem::Report;
use super::reader::{Node, Pair, Value, is_null};

/// A plain scalar, as the core schema of YAML 1.2 resolves it (decimal numbers only).
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scalar<'t> {
    Null,
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(&'t str),
}

fn resolve(text: &str, quoted: bool) -> Scalar<'_> {
    if quoted {
        return Scalar::Text(text);
    }
    match text {
        _ if is_null(text) => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        _ => {}
    }
    // Rust reads "inf" and "nan" as numbers too; here they are words.
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'))
        || text.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'))
    {
        return Scalar::Text(text);
    }
    if let Ok(whole) = text.parse() {
        return Scalar::Whole(whole);
    }
    text.parse().map_or(Scalar::Text(text), Scalar::Number)
}

/// What a value is, for a message: `the number 12`.
fn describe(node: &Node) -> String {
    match &node.value {
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) => "keys and values".to_owned(),
        Value::Scalar { text, quoted } => match resolve(text, *quoted) {
            Scalar::Null => "nothing".to_owned(),
            Scalar::Bool(_) => text.clone(),
            Scalar::Whole(_) | Scalar::Number(_) => format!("the number {text}"),
            Scalar::Text(text) => format!("the text {text:?}"),
        },
    }
}

impl Report {
    fn wrong_type(&mut self, pair: &Pair, wanted: &str) {
        self.add(pair.value_position(), format!("{:?} must be {wanted}, not {}", pair.key, describe(&pair.value)));
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, pair: &Pair) -> Option<String> {
        self.text_of(pair, &pair.value, pair.value_position())
    }

    fn text_of(&mut self, pair: &Pair, node: &Node, position: super::Position) -> Option<String> {
        let key = &pair.key;
        if let Value::Scalar { text, quoted } = &node.value {
            match resolve(text, *quoted) {
                Scalar::Text(text) if !text.trim().is_empty() => return Some(text.to_owned()),
                Scalar::Text(_) | Scalar::Null => {
                    self.add(position, format!("{key:?} is empty"));
                    return None;
                }
                _ => {
                    let message = format!("{key:?} must be a text, not {}", describe(node));
                    self.advise(position, message, "put it in quotes");
                    return None;
                }
            }
        }
        self.add(position, format!("{key:?} must be a text, not {}", describe(node)));
        None
    }

    /// One text or a list of texts, with their positions. `None` if it is neither; bad items are reported and left out.
    pub(super) fn texts(&mut self, pair: &Pair) -> Option<Vec<(String, super::Position)>> {
        match &pair.value.value {
            Value::Scalar { .. } => self.text(pair).map(|text| vec![(text, pair.value_position())]),
            Value::Mapping(_) => {
                self.wrong_type(pair, "a text or a list of texts");
                None
            }
            Value::Sequence(items) => Some(
                items
                    .iter()
                    .filter_map(|item| self.text_of(pair, item, item.position).map(|text| (text, item.position)))
                    .collect(),
            ),
        }
    }

    /// A scalar of any kind as it is written, for a pattern.
    pub(super) fn pattern(&mut self, pair: &Pair) -> Option<String> {
        match &pair.value.value {
            Value::Scalar { text, quoted } if resolve(text, *quoted) != Scalar::Null => Some(text.clone()),
            _ => {
                self.wrong_type(pair, "a pattern");
                None
            }
        }
    }

    pub(super) fn flag(&mut self, pair: &Pair) -> Option<bool> {
        if let Value::Scalar { text, quoted } = &pair.value.value
            && let Scalar::Bool(flag) = resolve(text, *quoted)
        {
            return Some(flag);
        }
        self.wrong_type(pair, "true or false");
        None
    }

    pub(super) fn whole(&mut self, pair: &Pair) -> Option<i64> {
        if let Value::Scalar { text, quoted } = &pair.value.value
            && let Scalar::Whole(number) = resolve(text, *quoted)
        {
            return Some(number);
        }
        self.wrong_type(pair, "a whole number");
        None
    }

    pub(super) fn count(&mut self, pair: &Pair) -> Option<u32> {
        if let Value::Scalar { text, quoted } = &pair.value.value
            && let Scalar::Whole(number) = resolve(text, *quoted)
            && let Ok(count) = u32::try_from(number)
        {
            return Some(count);
        }
        self.wrong_type(pair, "a whole number, 0 or more");
        None
    }

    /// A time in seconds, above zero.
    pub(super) fn seconds(&mut self, pair: &Pair) -> Option<Duration> {
        if let Value::Scalar { text, quoted } = &pair.value.value {
            let seconds = match resolve(text, *quoted) {
                // Exact, where a number of this size has a representation as f64.
                Scalar::Whole(seconds) => u64::try_from(seconds).ok().map(Duration::from_secs),
                Scalar::Number(seconds) => Duration::try_from_secs_f64(seconds).ok(),
                _ => None,
            };
            if let Some(seconds) = seconds.filter(|seconds| !seconds.is_zero()) {
                return Some(seconds);
            }
        }
        self.wrong_type(pair, "a number of seconds above 0");
        None
    }

    /// One of the names in `names`.
    pub(super) fn choice<T>(&mut self, pair: &Pair, names: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(pair)?;
        let found = parse(&text);
        if found.is_none() {
            self.unknown(pair.value_position(), &pair.key, &text, names);
        }
        found
    }

    pub(super) fn mapping<'n>(&mut self, pair: &'n Pair) -> Option<&'n [Pair]> {
        match &pair.value.value {
            Value::Mapping(pairs) => Some(pairs),
            _ => {
                self.wrong_type(pair, "keys and values");
                None
            }
        }
    }

    /// A list; a key without a value is an empty one.
    pub(super) fn list<'n>(&mut self, pair: &'n Pair) -> Option<&'n [Node]> {
        match &pair.value.value {
            Value::Sequence(items) => Some(items),
            Value::Scalar { text, quoted: false } if is_null(text) => Some(&[]),
            Value::Mapping(_) => {
                let message = format!("{:?} must be a list, not keys and values", pair.key);
                self.advise(pair.value_position(), message, "begin each entry with \"- \"");
                None
            }
            Value::Scalar { .. } => {
                self.wrong_type(pair, "a list");
                None
            }
        }
    }
}
