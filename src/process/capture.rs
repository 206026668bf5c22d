//! What is kept of a stream that may be longer than one wants to hold.

use std::collections::VecDeque;

/// What to keep of an output stream. Caps are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Nothing: the child writes to the null device.
    Discard,
    /// Everything; more than `cap` ends the process and is reported as
    /// [`StopReason::Overflowed`](super::StopReason::Overflowed).
    Fail {
        /// The most that may arrive.
        cap: usize,
    },
    /// The first `cap` bytes; the rest is read, counted and dropped.
    Cut {
        /// The most that is kept.
        cap: usize,
    },
    /// The first half and the last half of `cap` bytes; what lies between is counted and dropped.
    HeadTail {
        /// The most that is kept.
        cap: usize,
    },
}

/// What was kept of an output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Captured {
    /// The kept bytes from the start of the stream: all of it, unless it is [truncated](Self::is_truncated).
    pub fn bytes(&self) -> &[u8] {
        &self.head
    }

    /// The kept bytes from the start, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.head
    }

    /// The kept bytes from the end; empty unless the stream is truncated under [`Capture::HeadTail`].
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// How many bytes the process wrote, as far as they were read.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many of the bytes were not kept.
    pub fn missing(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Whether bytes were not kept.
    pub fn is_truncated(&self) -> bool {
        self.missing() > 0
    }

    /// The text to show: invalid UTF-8 replaced, and in place of what is missing a line that says how much, cut on
    /// character boundaries.
    pub fn text(&self) -> String {
        if !self.is_truncated() {
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let head = without_cut_end(&self.head);
        let tail = without_cut_start(&self.tail);
        let missing = self.total - (head.len() + tail.len()) as u64;
        let mut text = String::from_utf8_lossy(head).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[... {missing} of {} bytes left out ...]\n", self.total));
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }
}

/// `bytes` without a UTF-8 sequence that was cut off at the end.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let start = bytes.len() - back;
        let needed = match bytes[start] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if needed > back { &bytes[..start] } else { bytes };
    }
    bytes
}

/// `bytes` without the rest of a UTF-8 sequence that was cut off at the start.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xBF)).count();
    &bytes[rest..]
}

/// Collects a stream under a [`Capture`].
#[derive(Debug)]
pub(super) struct Collector {
    policy: Capture,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Collector {
    pub(super) fn new(policy: Capture) -> Self {
        Self { policy, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn take(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let (head_cap, tail_cap) = match self.policy {
            Capture::Discard => (0, 0),
            Capture::Fail { cap } | Capture::Cut { cap } => (cap, 0),
            Capture::HeadTail { cap } => (cap - cap / 2, cap / 2),
        };
        let (first, rest) = chunk.split_at(chunk.len().min(head_cap - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Whether more arrived than [`Capture::Fail`] allows.
    pub(super) fn is_overflowed(&self) -> bool {
        matches!(self.policy, Capture::Fail { cap } if self.total > cap as u64)
    }

    pub(super) fn finish(mut self) -> Captured {
        let tail = if (self.head.len() + self.tail.len()) as u64 == self.total {
            self.head.extend(&self.tail);
            Vec::new()
        } else {
            self.tail.into()
        };
        Captured { head: self.head, tail, total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(policy: Capture, chunks: &[&[u8]]) -> Captured {
        let mut collector = Collector::new(policy);
        chunks.iter().for_each(|chunk| collector.take(chunk));
        collector.finish()
    }

    #[test]
    fn a_stream_within_its_cap_is_kept_whole() {
        for policy in [Capture::Fail { cap: 6 }, Capture::Cut { cap: 6 }, Capture::HeadTail { cap: 6 }] {
            let captured = collect(policy, &[b"abc", b"def"]);
            assert_eq!((captured.bytes(), captured.total(), captured.is_truncated()), (&b"abcdef"[..], 6, false));
            assert_eq!(captured.text(), "abcdef");
        }
    }

    #[test]
    fn head_and_tail_say_how_much_is_missing_between_them() {
        let captured = collect(Capture::HeadTail { cap: 4 }, &[b"abc", b"defg", b"hij"]);
        assert_eq!((captured.bytes(), captured.tail(), captured.missing()), (&b"ab"[..], &b"ij"[..], 6));
        assert_eq!(captured.text(), "ab\n[... 6 of 10 bytes left out ...]\nij");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        // Each of these characters has four bytes, so both cuts fall inside one; three bytes each side are dropped.
        let captured = collect(Capture::HeadTail { cap: 14 }, &["😀😁😂😃😄😅".as_bytes()]);
        assert_eq!(captured.text(), "😀\n[... 16 of 24 bytes left out ...]\n😅");
    }

    proptest! {
        #[test]
        fn what_is_kept_does_not_depend_on_how_the_stream_was_chunked(
            text in "[a-z中😀]{0,60}", cap in 0usize..80, sizes in prop::collection::vec(1usize..9, 1..80),
        ) {
            for policy in [Capture::Fail { cap }, Capture::Cut { cap }, Capture::HeadTail { cap }] {
                let whole = collect(policy, &[text.as_bytes()]);
                let mut rest = text.as_bytes();
                let mut collector = Collector::new(policy);
                for size in sizes.iter().cycle() {
                    if rest.is_empty() { break; }
                    let (chunk, left) = rest.split_at(rest.len().min(*size));
                    collector.take(chunk);
                    rest = left;
                }
                let pieces = collector.finish();
                prop_assert_eq!(&pieces, &whole);
                prop_assert!(pieces.bytes().len() + pieces.tail().len() <= cap);
                prop_assert!(!pieces.text().contains(char::REPLACEMENT_CHARACTER));
            }
        }
    }
}
