//! The transcript format: what a session's log consists of, line by line. No I/O happens here.
//!
//! A line is `{"len":N,"crc":"xxxxxxxx","entry":{…}}`: the length in bytes and the CRC-32 of the exact text of the
//! entry, then the entry. `docs/transcript-format.md` is the contract.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::message::{Message, Timestamp};

/// The version of the format that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The first line: which session this is.
    Session(Header),
    /// A message was added to the history.
    Message {
        /// The message, with its id and timestamp.
        message: Arc<Message>,
    },
    /// A turn began.
    TurnStart {
        /// `t1`, `t2`, … in order.
        turn_id: String,
        /// When.
        at: Timestamp,
    },
    /// A turn ended.
    TurnEnd {
        /// The turn that began last.
        turn_id: String,
        /// The wire name of how it ended, such as `success`.
        status: String,
        /// When.
        at: Timestamp,
    },
    /// A tool is about to run. Written before it does, so that a reader knows which calls were in flight.
    CallStarted {
        /// The call, as the assistant message names it.
        call_id: String,
        /// When.
        at: Timestamp,
    },
    /// A call waits for a person's decision. Until it has its result, it is not run and not given up.
    Awaiting(Awaited),
    /// Older messages were summarised: what is sent in the place of the first ones. The history is as before.
    Compacted {
        /// How many messages of the history they stand for.
        covered: usize,
        /// What is sent for these.
        messages: Vec<Arc<Message>>,
        /// When.
        at: Timestamp,
    },
    /// The history was emptied; what stands before this line stays in the file.
    Reset {
        /// When.
        at: Timestamp,
    },
    /// A kind that this version does not know, kept as it is.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// A call that waits for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The call, as the newest assistant message names it.
    pub call_id: String,
    /// Why somebody asked.
    pub reason: String,
    /// The rule that would let such calls through from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// The first line of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// The id of the session.
    pub id: String,
    /// When the session was created.
    pub created: Timestamp,
    /// The id of the session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

impl Entry {
    /// Reads the text of one entry.
    ///
    /// # Errors
    /// If it is not an object with a `kind`, or is of a known kind and lacks what that kind needs.
    pub fn parse(text: &str) -> serde_json::Result<Entry> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow)]
            kind: Cow<'a, str>,
        }
        #[derive(Deserialize)]
        struct OfMessage {
            message: Arc<Message>,
        }
        #[derive(Deserialize)]
        struct OfTurn {
            turn_id: String,
            #[serde(default)]
            status: String,
            at: Timestamp,
        }
        #[derive(Deserialize)]
        struct OfCall {
            call_id: String,
            at: Timestamp,
        }
        #[derive(Deserialize)]
        struct OfCompacted {
            covered: usize,
            messages: Vec<Arc<Message>>,
            at: Timestamp,
        }
        #[derive(Deserialize)]
        struct OfReset {
            at: Timestamp,
        }
        let kind: Kind = serde_json::from_str(text)?;
        Ok(match kind.kind.as_ref() {
            "session" => Entry::Session(serde_json::from_str(text)?),
            "message" => {
                let OfMessage { message } = serde_json::from_str(text)?;
                Entry::Message { message }
            }
            "turn_start" => {
                let OfTurn { turn_id, at, .. } = serde_json::from_str(text)?;
                Entry::TurnStart { turn_id, at }
            }
            "turn_end" => {
                let OfTurn { turn_id, status, at } = serde_json::from_str(text)?;
                Entry::TurnEnd { turn_id, status, at }
            }
            "call_started" => {
                let OfCall { call_id, at } = serde_json::from_str(text)?;
                Entry::CallStarted { call_id, at }
            }
            "awaiting" => Entry::Awaiting(serde_json::from_str(text)?),
            "compacted" => {
                let OfCompacted { covered, messages, at } = serde_json::from_str(text)?;
                Entry::Compacted { covered, messages, at }
            }
            "reset" => {
                let OfReset { at } = serde_json::from_str(text)?;
                Entry::Reset { at }
            }
            _ => Entry::Other(serde_json::from_str(text)?),
        })
    }
}

/// Appends the line for `entry`, with its line break, to `line`.
///
/// # Errors
/// What serde_json reports if the entry cannot be written as JSON.
///
/// ```
/// use hookwright::agent::transcript::{Entry, encode, scan};
/// use hookwright::message::Timestamp;
/// let entry = Entry::Reset { at: Timestamp::from_millis(0) };
/// let mut line = Vec::new();
/// encode(&entry, &mut line)?;
/// assert_eq!(
///     std::str::from_utf8(&line).unwrap(),
///     "{\"len\":48,\"crc\":\"cb8a24a7\",\"entry\":{\"kind\":\"reset\",\"at\":\"1970-01-01T00:00:00.000Z\"}}\n"
/// );
/// assert_eq!(scan(&line).entries, [entry]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn encode(entry: &Entry, line: &mut Vec<u8>) -> serde_json::Result<()> {
    let text = serde_json::to_vec(entry)?;
    line.reserve(text.len() + 64);
    let crc = crc32fast::hash(&text);
    write!(line, "{{\"len\":{},\"crc\":\"{crc:08x}\",\"entry\":", text.len()).map_err(serde_json::Error::io)?;
    line.extend_from_slice(&text);
    line.extend_from_slice(b"}\n");
    Ok(())
}

/// What a transcript holds, up to the first line that is not in order.
#[derive(Debug, Default)]
pub struct Scan {
    /// The entries before that line, oldest first.
    pub entries: Vec<Entry>,
    /// How many bytes they take.
    pub intact_bytes: usize,
    /// What is wrong with the next line, if there is one.
    pub fault: Option<Fault>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// How it came about, as far as that can be told.
    pub kind: FaultKind,
}

/// How a line came to be not in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It is the last line: the process died while it wrote.
    TornTail,
    /// Lines follow it: the file was changed or damaged from outside.
    Damage,
    /// Length and checksum fit, but the entry is not one that this version can read.
    Unreadable,
}

/// Reads a transcript up to the first line that is not in order.
pub fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan::default();
    while scan.intact_bytes < bytes.len() {
        let rest = &bytes[scan.intact_bytes..];
        let line_break = rest.iter().position(|&byte| byte == b'\n');
        let read = match line_break {
            Some(end) => checked_text(&rest[..end]).and_then(|text| {
                Entry::parse(text)
                    .map_err(|error| (FaultKind::Unreadable, format!("the entry cannot be read: {error}")))
            }),
            None => Err((FaultKind::TornTail, "the line has no end".to_owned())),
        };
        match (read, line_break) {
            (Ok(entry), Some(end)) => {
                scan.entries.push(entry);
                scan.intact_bytes += end + 1;
            }
            (Err((kind, reason)), line_break) => {
                let lines_follow = line_break.is_some_and(|end| end + 1 < rest.len());
                let kind = if kind == FaultKind::TornTail && lines_follow { FaultKind::Damage } else { kind };
                scan.fault = Some(Fault { line: scan.entries.len() + 1, reason, kind });
                break;
            }
            // A line without its end is never in order.
            (Ok(_), None) => break,
        }
    }
    scan
}

/// The text of the entry in `line`, if its length and checksum fit.
fn checked_text(line: &[u8]) -> Result<&str, (FaultKind, String)> {
    #[derive(Deserialize)]
    struct Line<'a> {
        len: usize,
        crc: Cow<'a, str>,
        #[serde(borrow)]
        entry: &'a RawValue,
    }
    let torn = |reason: String| (FaultKind::TornTail, reason);
    let line: Line = serde_json::from_slice(line).map_err(|error| torn(format!("the line cannot be read: {error}")))?;
    let text = line.entry.get();
    if text.len() != line.len {
        return Err(torn(format!("the entry has {} bytes, but len says {}", text.len(), line.len)));
    }
    let crc = format!("{:08x}", crc32fast::hash(text.as_bytes()));
    if crc != line.crc {
        return Err(torn(format!("the entry has the checksum {crc}, but crc says {}", line.crc)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| encode(entry, &mut bytes).unwrap());
        bytes
    }

    fn some_entries() -> Vec<Entry> {
        let at = Timestamp::from_millis(1000);
        let header = Header { version: 1, id: "s".into(), created: at, forked_from: None };
        let other = serde_json::from_str(r#"{"kind":"weather","sun":[1,2.5,{"x":null}]}"#).unwrap();
        vec![
            Entry::Session(header),
            Entry::TurnStart { turn_id: "t1".into(), at },
            Entry::Message { message: Arc::new(Message::user("grüße 你好 \n \"x\"")) },
            Entry::CallStarted { call_id: "c1".into(), at },
            Entry::Other(other),
            Entry::Awaiting(Awaited { call_id: "c2".into(), reason: "a rule".into(), suggested_rule: None, at }),
            Entry::Compacted { covered: 1, messages: vec![Arc::new(Message::user("a summary"))], at },
            Entry::TurnEnd { turn_id: "t1".into(), status: "success".into(), at },
            Entry::Reset { at },
        ]
    }

    #[test]
    fn every_kind_also_an_unknown_one_survives_a_save_and_a_load() {
        let bytes = lines(&some_entries());
        let scan = scan(&bytes);
        assert_eq!((scan.intact_bytes, &scan.fault), (bytes.len(), &None));
        assert_eq!(scan.entries, some_entries());
        assert_eq!(lines(&scan.entries), bytes);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_whole_lines_and_a_torn_tail() {
        let bytes = lines(&some_entries());
        for length in 0..=bytes.len() {
            let scan = scan(&bytes[..length]);
            let whole = bytes[..length].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(scan.entries, some_entries()[..whole], "cut at {length}");
            let at_line_end = scan.intact_bytes == length;
            assert_eq!(scan.fault.map(|fault| fault.kind), (!at_line_end).then_some(FaultKind::TornTail));
        }
    }

    #[test]
    fn a_flipped_bit_in_any_entry_is_noticed() {
        let bytes = lines(&some_entries());
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        for at in 0..end {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let scan = scan(&damaged);
            let fault = scan.fault.unwrap_or_else(|| panic!("byte {at} went unnoticed"));
            assert_eq!((scan.entries.len(), fault.line, fault.kind), (0, 1, FaultKind::Damage), "byte {at}");
        }
    }

    #[test]
    fn an_intact_line_that_cannot_be_understood_is_not_taken_for_a_torn_one() {
        let strange = serde_json::from_str(r#"{"kind":"message","message":{"role":"oracle"}}"#).unwrap();
        let scan = scan(&lines(&[Entry::Other(strange)]));
        let fault = scan.fault.unwrap();
        assert_eq!(fault.kind, FaultKind::Unreadable);
        assert!(fault.reason.contains("oracle"), "{}", fault.reason);
    }
}
