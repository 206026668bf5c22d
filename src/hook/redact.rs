//! Takes secrets out of texts and JSON values, by what they look like and by the names they are given.
//!
//! A pattern can only guess. What is certain: the time is linear in the length of the text, taking out twice is the
//! same as once, and everything around a secret stays as it was.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, bytes};
use serde_json::{Map, Value};

mod rules;

use rules::{RULES, is_secret_key};

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// A pattern of one's own that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad redaction pattern {pattern:?}: {reason}")]
pub struct RedactError {
    /// What was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Takes secrets out of texts and values.
///
/// Known are the keys of the usual providers (`sk-...`, `ghp_...`, `AKIA...` and their like), JSON web tokens, private
/// key blocks, `Bearer ...`, passwords in URLs, and values that are assigned to a name such as `password`, `token` or
/// `api_key`.
///
/// ```
/// use hookwright::hook::redact::Redactor;
/// use serde_json::json;
///
/// let redactor = Redactor::new(["ACME-[0-9]{6}"])?;
/// assert_eq!(redactor.redact_text("password=hunter2 for ACME-123456"), "password=[redacted] for [redacted]");
/// assert_eq!(redactor.redact_text("max_tokens: 100"), "max_tokens: 100");
///
/// let mut value = json!({"headers": {"Authorization": "anything"}, "url": "https://me:pw@host/"});
/// redactor.redact_value(&mut value);
/// assert_eq!(value, json!({"headers": {"Authorization": "[redacted]"}, "url": "https://me:[redacted]@host/"}));
/// # Ok::<(), hookwright::hook::redact::RedactError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    extra: Vec<Regex>,
}

/// All rules in one expression: group n is what the n-th rule keeps in front of a secret.
///
/// Each rule asks only for the beginning of a secret, of bounded length, and the rest is found by hand: an expression
/// with an open end could make each search run to the end of the text.
///
/// It looks at bytes, as a chain of unions over all of Unicode would be many times larger. Every secret begins after an
/// ASCII character and ends before one, so that no character is cut.
static COMBINED: LazyLock<bytes::Regex> = LazyLock::new(|| {
    let alternatives: Vec<String> = RULES.iter().map(|rule| format!("({}){}", rule.kept, rule.begins)).collect();
    // The rules are constants, and every test of this module compiles them.
    #[expect(clippy::expect_used, reason = "a constant that is covered by tests")]
    bytes::Regex::new(&format!("(?-u:{})", alternatives.join("|"))).expect("the rules are a valid expression")
});

/// [`Redactor::redact_text`] without patterns of one's own.
pub fn redact(text: &str) -> Cow<'_, str> {
    Redactor::default().redact_text(text)
}

impl Redactor {
    /// A redactor that takes out as well whatever one of `extra_patterns`, regular expressions, matches.
    ///
    /// # Errors
    /// A pattern that is malformed, or that matches the empty text.
    pub fn new<P: AsRef<str>>(extra_patterns: impl IntoIterator<Item = P>) -> Result<Self, RedactError> {
        let compile = |pattern: P| {
            let pattern = pattern.as_ref();
            let bad = |reason: String| RedactError { pattern: pattern.to_owned(), reason };
            let regex = Regex::new(pattern).map_err(|error| bad(last_line(&error)))?;
            if regex.is_match("") {
                return Err(bad("it matches the empty text, which is everywhere".to_owned()));
            }
            Ok(regex)
        };
        Ok(Redactor { extra: extra_patterns.into_iter().map(compile).collect::<Result<_, _>>()? })
    }

    /// `text` with [`REDACTED`] in place of each secret; `text` itself if there is none.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = Cow::Borrowed(text);
        // Where something was taken out, its surroundings may now read differently. Doing it until nothing is found
        // makes doing it again the same by construction; it ends, as each round leaves less of the text.
        while let Some(next) = self.redact_once(&redacted) {
            redacted = Cow::Owned(next);
        }
        redacted
    }

    /// Takes secrets out of every text in `value`, keys included. The text under a key whose name says that it is a
    /// secret (`password`, `apiKey`, `Authorization`, ...) goes as a whole.
    pub fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact_text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(map) => {
                if map.keys().any(|key| matches!(self.redact_text(key), Cow::Owned(_))) {
                    *map = self.redact_keys(std::mem::take(map));
                }
                for (key, value) in map.iter_mut() {
                    match value {
                        Value::String(text) if is_secret_key(key, text) => REDACTED.clone_into(text),
                        other => self.redact_value(other),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn redact_keys(&self, map: Map<String, Value>) -> Map<String, Value> {
        let mut redacted = Map::with_capacity(map.len());
        for (key, value) in map {
            let name = self.redact_text(&key).into_owned();
            // Two keys may have become one; neither value may be lost.
            let mut unique = name.clone();
            let mut number = 2;
            while redacted.contains_key(&unique) {
                unique = format!("{name} ({number})");
                number += 1;
            }
            redacted.insert(unique, value);
        }
        redacted
    }

    /// One round; `None` if nothing was found.
    fn redact_once(&self, text: &str) -> Option<String> {
        let mut redacted: Option<String> = None;
        for pattern in &self.extra {
            let current = redacted.as_deref().unwrap_or(text);
            if let Some(next) = take_out(current, own_matches(pattern, current)) {
                redacted = Some(next);
            }
        }
        let current = redacted.as_deref().unwrap_or(text);
        take_out(current, Secrets { text: current, at: 0 }).or(redacted)
    }
}

/// Puts [`REDACTED`] in place of each of `ranges`, which are in order; `None` if there are none.
fn take_out(text: &str, ranges: impl Iterator<Item = (usize, usize)>) -> Option<String> {
    let mut redacted = String::new();
    let mut copied = 0;
    for (start, end) in ranges {
        redacted.push_str(&text[copied..start]);
        redacted.push_str(REDACTED);
        copied = end;
    }
    (copied > 0).then(|| redacted + &text[copied..])
}

/// What `pattern` matches, without what touches a text that was taken out already.
fn own_matches<'t>(pattern: &'t Regex, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    let taken: Vec<usize> = text.match_indices(REDACTED).map(|(start, _)| start).collect();
    let touches_taken = move |start: usize, end: usize| {
        let next = taken.partition_point(|taken| taken + REDACTED.len() <= start);
        taken.get(next).is_some_and(|taken| *taken < end)
    };
    pattern
        .find_iter(text)
        .map(|found| (found.start(), found.end()))
        .filter(move |(start, end)| start < end && !touches_taken(*start, *end))
}

/// The secrets in a text that the rules find, in order.
struct Secrets<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Secrets<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        while let Some(captures) = COMBINED.captures_at(self.text.as_bytes(), self.at) {
            let (rule, kept_from, start, end) = matched(&captures)?;
            let kept = &self.text[kept_from..start];
            match (RULES[rule].end)(self.text, kept, start, end) {
                Some(end) if &self.text[start..end] != REDACTED => {
                    self.at = end;
                    return Some((start, end));
                }
                // Not a secret after all. What is kept is passed over; without it, the first character, which is
                // ASCII in every rule.
                _ => self.at = start.max(kept_from + 1),
            }
        }
        None
    }
}

/// The rule that matched, where what it keeps begins, where the secret begins, and where the match ends.
fn matched(captures: &bytes::Captures<'_>) -> Option<(usize, usize, usize, usize)> {
    let whole = captures.get(0)?;
    (0..RULES.len()).find_map(|rule| {
        let kept = captures.get(rule + 1)?;
        Some((rule, whole.start(), kept.end(), whole.end()))
    })
}

/// The line of a message of the regex crate that says what is wrong; those before it draw the pattern.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
