//! Reads YAML and JSON into a tree that knows where everything stands.
//!
//! A reader of our own over the event stream of the YAML parser, since a file is to be reported on as a whole: every
//! repeated key, a second document and an anchor are problems with a place, not the end of reading or, worse, passed
//! over. It keeps its own stack, so that no depth of nesting can exhaust the thread's.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

use super::problem::{Position, Report};

/// The largest configuration file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// How deep values may be nested.
const MAX_DEPTH: usize = 32;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) position: Position,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A text, and whether it stood in quotes or was written as a block: then it is nothing but a text.
    Scalar {
        text: String,
        quoted: bool,
    },
    Sequence(Vec<Node>),
    /// In the order of the file, each key once (the first of repeated ones).
    Mapping(Vec<Pair>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) position: Position,
    pub(super) value: Node,
}

impl Pair {
    /// Where to point when the value is wrong: at the value if it is on the line of its key, else at the key.
    pub(super) fn value_position(&self) -> Position {
        if self.value.position.line == self.position.line { self.value.position } else { self.position }
    }
}

/// What the mapping at the top of the file holds, or `None` if the file cannot be read as one; the reasons are in
/// `report`. An empty file is an empty mapping.
pub(super) fn read_file(path: &Path, report: &mut Report) -> Option<Vec<Pair>> {
    let bytes = match read_bytes(path) {
        Ok(bytes) => bytes,
        Err(reason) => {
            report.add(Position::default(), format!("cannot be read: {reason}"));
            return None;
        }
    };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            // Up to there it is UTF-8, as the error says.
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let message = format!("not UTF-8: byte 0x{:02x}", bytes[error.valid_up_to()]);
            report.advise(end_of(&before), message, "save the file as UTF-8");
            return None;
        }
    };
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    read_text(text.strip_prefix('\u{feff}').unwrap_or(text), is_json, report)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe or a device would be waited for, or never end.
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}

/// The position just after `text`.
fn end_of(text: &str) -> Position {
    let line = text.matches('\n').count() + 1;
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position { line, column: last.chars().count() + 1 }
}

/// Reads `text`; see [`read_file`].
pub(super) fn read_text(text: &str, is_json: bool, report: &mut Report) -> Option<Vec<Pair>> {
    if let Some(index) = text.find('\0') {
        report.add(end_of(&text[..index]), "a NUL character, which YAML does not allow");
        return None;
    }
    let joined;
    let mut text = text;
    if is_json {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            let full = error.to_string();
            let reason = full.rsplit_once(" at line ").map_or(full.as_str(), |(reason, _)| reason);
            report.add(Position { line: error.line(), column: error.column().max(1) }, format!("not JSON: {reason}"));
            return None;
        }
        joined = join_surrogates(text);
        text = &joined;
    }
    let mut builder = Builder { stack: Vec::new(), top: None, report };
    let mut parser = Parser::new(text.chars());
    loop {
        let (event, marker) = match parser.next_token() {
            Ok(token) => token,
            Err(error) => {
                let (message, hint) = (format!("not YAML: {}", error.info()), hint_for(error.info()));
                match hint {
                    Some(hint) => builder.report.advise(place(error.marker()), message, hint),
                    None => builder.report.add(place(error.marker()), message),
                }
                return None;
            }
        };
        if matches!(event, Event::StreamEnd) {
            break;
        }
        if !builder.take(event, place(&marker)) {
            return None;
        }
    }
    match builder.top {
        None => Some(Vec::new()),
        Some(Node { value: Value::Mapping(pairs), .. }) => Some(pairs),
        Some(Node { value: Value::Scalar { text, quoted: false }, .. }) if is_null(&text) => Some(Vec::new()),
        Some(Node { position, .. }) => {
            builder.report.advise(position, "the file must hold keys and values", "begin with \"version: 1\"");
            None
        }
    }
}

/// What usually helps against an error of the YAML parser.
fn hint_for(reason: &str) -> Option<&'static str> {
    if reason.contains("mapping values are not allowed") {
        return Some("put a value that contains \": \" in quotes");
    }
    if reason.contains("tab") {
        return Some("indent with spaces");
    }
    if reason.contains("unknown anchor") || reason.contains("unexpected character") {
        return Some("put a value that begins with a special character in quotes");
    }
    None
}

fn place(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// Whether a plain scalar means "nothing".
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Puts the two halves of a character beyond U+FFFF, as JSON escapes it, into the one escape that YAML has for it.
/// `json` is known to be well-formed.
fn join_surrogates(json: &str) -> String {
    let mut joined = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(index) = rest.find('\\') {
        joined.push_str(&rest[..index]);
        rest = &rest[index..];
        let half = |from: usize| rest.get(from..from + 6).filter(|escape| escape.starts_with("\\u")).map(|e| &e[2..]);
        let unit = |hex: &str| u32::from_str_radix(hex, 16).ok();
        let pair = half(0).and_then(unit).zip(half(6).and_then(unit));
        match pair {
            Some((high @ 0xd800..0xdc00, low @ 0xdc00..0xe000)) => {
                joined.push_str(&format!("\\U{:08x}", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
                rest = &rest[12..];
            }
            // The backslash and what it escapes, so that the second of two backslashes is not taken for a first one.
            _ => {
                let end = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                joined.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    joined.push_str(rest);
    joined
}

/// A collection that is not closed yet.
enum Open {
    Sequence { position: Position, items: Vec<Node> },
    Mapping { position: Position, pairs: Vec<Pair>, lines: HashMap<String, usize>, key: Option<(String, Position)> },
}

struct Builder<'r> {
    stack: Vec<Open>,
    top: Option<Node>,
    report: &'r mut Report,
}

impl Builder<'_> {
    /// Takes the next event; `false` if reading on makes no sense.
    fn take(&mut self, event: Event, position: Position) -> bool {
        match event {
            Event::DocumentStart if self.top.is_some() => {
                self.report.advise(position, "a second document", "put everything into one, without a line \"---\"");
                return false;
            }
            Event::Alias(_) => {
                self.no_anchors(position);
                return self.finish(Node { position, value: Value::Scalar { text: String::new(), quoted: true } });
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.check(position, anchor, tag.is_some());
                let quoted = style != TScalarStyle::Plain;
                return self.finish(Node { position, value: Value::Scalar { text, quoted } });
            }
            Event::SequenceStart(anchor, tag) => {
                self.check(position, anchor, tag.is_some());
                return self.open(Open::Sequence { position, items: Vec::new() }, position);
            }
            Event::MappingStart(anchor, tag) => {
                self.check(position, anchor, tag.is_some());
                return self
                    .open(Open::Mapping { position, pairs: Vec::new(), lines: HashMap::new(), key: None }, position);
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Open::Sequence { position, items }) => {
                    return self.finish(Node { position, value: Value::Sequence(items) });
                }
                Some(Open::Mapping { position, pairs, .. }) => {
                    // The parser gives a block mapping the place of its first colon.
                    let position = pairs.first().map_or(position, |pair| pair.position.min(position));
                    return self.finish(Node { position, value: Value::Mapping(pairs) });
                }
                None => return false,
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart | Event::DocumentEnd => {}
        }
        true
    }

    fn check(&mut self, position: Position, anchor: usize, tagged: bool) {
        if anchor > 0 {
            self.no_anchors(position);
        }
        if tagged {
            self.report.advise(position, "a tag (\"!...\"), which hook files do not use", "leave it out");
        }
    }

    fn no_anchors(&mut self, position: Position) {
        let message = "an anchor or alias (\"&\", \"*\"), which hook files do not use";
        self.report.advise(position, message, "write the value out, or put it in quotes if a text is meant");
    }

    fn open(&mut self, open: Open, position: Position) -> bool {
        if matches!(self.stack.last(), Some(Open::Mapping { key: None, .. })) {
            self.report.add(position, "a key must be a single word or text");
            return false;
        }
        if self.stack.len() == MAX_DEPTH {
            self.report.add(position, format!("nested deeper than {MAX_DEPTH} levels"));
            return false;
        }
        self.stack.push(open);
        true
    }

    /// Puts a finished value where it belongs.
    fn finish(&mut self, node: Node) -> bool {
        match self.stack.last_mut() {
            None => self.top = Some(node),
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping { pairs, lines, key, .. }) => match key.take() {
                None => {
                    // Collections are refused as keys when they open.
                    let Value::Scalar { text, .. } = node.value else { return false };
                    *key = Some((text, node.position));
                }
                Some((text, position)) => match lines.get(&text) {
                    Some(first) => {
                        let message = format!("key {text:?} is repeated (first on line {first})");
                        self.report.advise(position, message, "keep one of them");
                    }
                    None => {
                        lines.insert(text.clone(), position.line);
                        pairs.push(Pair { key: text, position, value: node });
                    }
                },
            },
        }
        true
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
