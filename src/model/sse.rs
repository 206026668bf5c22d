//! Server-sent events, parsed as the bytes come in.
//!
//! The known crates wait for a blank line before they give an event out, so that the last event of a server that forgets
//! that line is lost, and they check and copy the text several times. This parser takes lines that end in CRLF, LF or CR,
//! a byte order mark, comments, data of several lines, and chunks that are cut anywhere: what it gives out depends on the
//! bytes alone, not on where they were cut. Bytes that are not UTF-8 become U+FFFD.

use memchr::memchr2;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// Its data; several lines are joined by a line break.
    pub data: &'a str,
    /// Whether the blank line behind it was there. Without it the data may be cut off.
    pub whole: bool,
}

/// Parses server-sent events from chunks of bytes.
///
/// ```
/// use hookwright::model::sse::Parser;
/// let mut parser = Parser::new();
/// let mut seen = Vec::new();
/// for chunk in [&b"event: ping\r\ndata: {\"a\":"[..], b" 1}\r\n\r", b"\n: keep-alive\n\ndata: [DONE]"] {
///     parser.push(chunk, |event| Ok::<_, ()>(seen.push((event.name.to_owned(), event.data.to_owned()))))?;
/// }
/// parser.finish(|event| Ok::<_, ()>(seen.push((event.name.to_owned(), event.data.to_owned()))))?;
/// assert_eq!(seen, [("ping".into(), "{\"a\": 1}".into()), (String::new(), "[DONE]".into())]);
/// # Ok::<(), ()>(())
/// ```
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line whose end has not come in.
    line: Vec<u8>,
    fields: Fields,
    /// The last chunk ended in CR: an LF at the start of the next belongs to it.
    after_return: bool,
}

/// The fields of the event that is coming in.
#[derive(Debug, Default)]
struct Fields {
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Whether a line was seen, behind which there can be no byte order mark.
    begun: bool,
}

impl Parser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Parser::default()
    }

    /// How many bytes are held back because their event has not ended.
    pub fn pending(&self) -> usize {
        self.line.len() + self.fields.data.len() + self.fields.name.len()
    }

    /// Takes in the next bytes and gives each event that they complete to `each`.
    ///
    /// # Errors
    /// What `each` returns; the rest of `bytes` is lost then.
    pub fn push<E>(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            let returned = bytes[end] == b'\r';
            self.after_return = returned && rest.is_empty();
            bytes = if returned { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
            if self.line.is_empty() {
                self.fields.take_line(line, &mut each)?;
            } else {
                let mut begun = std::mem::take(&mut self.line);
                begun.extend_from_slice(line);
                self.fields.take_line(&begun, &mut each)?;
                begun.clear();
                self.line = begun;
            }
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Gives what is left at the end of the stream to `each`.
    ///
    /// # Errors
    /// What `each` returns.
    pub fn finish<E>(&mut self, mut each: impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.fields.take_line(&line, &mut each)?;
        }
        self.fields.give_out(false, &mut each)
    }
}

impl Fields {
    fn take_line<E>(&mut self, line: &[u8], each: &mut impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = if self.begun { line } else { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            return self.give_out(true, each);
        }
        // A comment is a field without a name.
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn give_out<E>(&mut self, whole: bool, each: &mut impl FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let told = if self.has_data {
            let (name, data) = (String::from_utf8_lossy(&self.name), String::from_utf8_lossy(&self.data));
            each(Event { name: &name, data: &data, whole })
        } else {
            Ok(())
        };
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        told
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    type Seen = Vec<(String, String, bool)>;

    fn parse<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Seen {
        let mut seen = Seen::new();
        let mut parser = Parser::new();
        let mut each = |event: Event<'_>| {
            seen.push((event.name.to_owned(), event.data.to_owned(), event.whole));
            Ok::<(), Infallible>(())
        };
        for chunk in chunks {
            parser.push(chunk, &mut each).unwrap();
        }
        parser.finish(&mut each).unwrap();
        seen
    }

    fn data(text: &str) -> Vec<String> {
        parse([text.as_bytes()]).into_iter().map(|(_, data, _)| data).collect()
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
            "data: a\r\n\ndata: b\n\r\n",
        ] {
            assert_eq!(data(text), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn comments_marks_and_unknown_fields_are_passed_over() {
        let text = "\u{feff}: keep-alive\n\nid: 7\nretry: 10\nnonsense\n:\ndata:no space\n\ndata:  two spaces\n\n: keep-alive\n\n";
        assert_eq!(data(text), ["no space", " two spaces"]);
        assert_eq!(data("data: x\n\ndata: \u{feff}y\n\n"), ["x", "\u{feff}y"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_names_last_for_one_event() {
        let seen = parse([&b"event: error\ndata: a\ndata\ndata: b\n\ndata: c\n\nevent: lost\n\n"[..]]);
        assert_eq!(seen, [("error".into(), "a\n\nb".into(), true), (String::new(), "c".into(), true)]);
    }

    #[test]
    fn the_end_of_the_stream_ends_an_event_that_is_not_known_to_be_whole() {
        assert_eq!(parse([&b"data: a\n\ndata: b"[..]])[1], (String::new(), "b".into(), false));
        assert_eq!(parse([&b"data: a\n\ndata: b\n"[..]])[1], (String::new(), "b".into(), false));
        assert_eq!(data(""), [""; 0]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(parse([&b"data: a\xffb\xf0\x9f\n\n"[..]])[0].1, "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn the_place_of_a_cut_makes_no_difference() {
        let text = "\u{feff}data: 文😀\r\n\r\n: c\revent: x\r\rdata: a\ndata: b\r\n\ndata: {\"é\": 1}\n\ndata: [DONE]";
        let wanted = parse([text.as_bytes()]);
        assert_eq!(wanted.len(), 4);
        for cut in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(parse([left, right]), wanted, "cut at {cut}");
        }
        assert_eq!(parse(text.as_bytes().chunks(1)), wanted);
    }

    proptest! {
        #[test]
        fn any_bytes_give_the_same_events_however_they_are_cut(
            lines in prop::collection::vec(prop_oneof!["data: ?[a-z:é😀 ]{0,6}", "event: ?[a-z]{0,3}", ":.{0,3}", "", ".{0,5}"], 0..12),
            ends in prop::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 12),
            noise in prop::collection::vec(any::<u8>(), 0..4),
            size in 1_usize..9,
        ) {
            let mut bytes: Vec<u8> = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_bytes(), end.as_bytes()]).flatten().copied().collect();
            bytes.extend(noise);
            let wanted = parse([&bytes[..]]);
            prop_assert_eq!(parse(bytes.chunks(size)), wanted.clone());
            for cut in 0..=bytes.len() {
                let (left, right) = bytes.split_at(cut);
                prop_assert_eq!(parse([left, right]), wanted.clone());
            }
        }
    }
}
