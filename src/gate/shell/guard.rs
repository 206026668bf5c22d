//! Texts that are not given to the parser at all: too long, nested too deep, with characters that deceive the eye.
//!
//! One pass, aware of quotes, comments and here-documents. It need not be exact: what it counts too much is refused,
//! and the parser only has to be kept from nesting that it does not survive.

use super::analysis::{ReasonCode, Span};

/// The longest text that is parsed, in bytes.
pub(super) const MAX_BYTES: usize = 16 * 1024;
/// How many words, operators and lines a text may hold outside of quotes, comments and here-documents: what is parsed
/// takes time by each.
pub(super) const MAX_PIECES: usize = 1000;
/// How many constructs may stand in one another.
pub(super) const MAX_DEPTH: usize = 10;
/// How many `[` may stand side by side.
const MAX_RUN: usize = 64;
/// How many `case` may stand in one another: where one is not closed, the parser begins anew twice as often with each.
const MAX_CASES: usize = 6;
/// How many brackets of all kinds a text may hold: a second bound, which no quoting can get round.
const MAX_BRACKETS: usize = 300;
/// How many `name[` a text may hold: the parser follows subscripts into one another on its stack. Brackets that close
/// are not counted against them, since a quoted one closes nothing.
const MAX_SUBSCRIPTS: usize = 256;
/// How many `${name[…]}` may stand in the subscript of another one: the parser reads each level again and again, so that
/// it takes more than ten times as long as the one before. No deeper than this, and no more often in a text than that.
const MAX_NESTED_SUBSCRIPTS: usize = 8;
/// How many words `!` a text may hold: in `[[` the parser follows them into one another on its stack.
const MAX_NOTS: usize = 64;
/// How many subscripts of `${name[…]}` may hold quotes: where they end is then not told by the first bracket.
const MAX_QUOTED_SUBSCRIPTS: usize = 2;
/// The longest number that the parser's integers hold.
const MAX_DIGITS: usize = 18;

/// Why a text is not parsed, and where.
pub(super) type Refusal = (ReasonCode, Span);

/// Checks a text. It is known afterwards how many words, operators and lines it holds.
pub(super) fn check(text: &str) -> Result<usize, Refusal> {
    let whole = Span { start: 0, end: text.len() };
    if text.len() > MAX_BYTES {
        return Err((ReasonCode::TooLong, whole));
    }
    // Each is looked at with all behind it.
    if let Some(at) = memchr::memmem::find(text.as_bytes(), &[b'['; MAX_RUN]) {
        return Err((ReasonCode::TooDeep, Span { start: at, end: at + MAX_RUN }));
    }
    let mut scan = Scan {
        text: text.as_bytes(),
        at: 0,
        open: Vec::new(),
        words: 0,
        cases: 0,
        brackets: 0,
        pieces: 0,
        in_announced_line: false,
        documents: Vec::new(),
    };
    if let Some(refusal) = characters(text) {
        return Err(refusal);
    }
    scan.run().map_err(|(code, at)| (code, Span { start: at.min(text.len()), end: text.len() }))?;
    match scan_invisible(text) {
        Some((at, character)) => {
            Err((ReasonCode::InvisibleCharacter, Span { start: at, end: at + character.len_utf8() }))
        }
        None => Ok(scan.pieces),
    }
}

/// Control characters are refused wherever they stand.
fn characters(text: &str) -> Option<Refusal> {
    let bytes = text.as_bytes();
    let mut digits = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte < 0x20 && byte != b'\t' && byte != b'\n' || byte == 0x7f {
            return Some((ReasonCode::ControlCharacter, Span { start: at, end: at + 1 }));
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > MAX_DIGITS {
            let before = (at + 1).checked_sub(digits + 1).map_or(0, |before| bytes[before]);
            if b"~{.+-".contains(&before) || matches!(bytes.get(at + 1), Some(b'<' | b'>')) {
                return Some((ReasonCode::NotParsed, Span { start: at + 1 - digits, end: at + 1 }));
            }
        }
    }
    if let Some(at) = subscripts(bytes) {
        return Some((ReasonCode::TooDeep, Span { start: at, end: at + 1 }));
    }
    if text.is_ascii() {
        return None;
    }
    let bad =
        |character: char| matches!(character, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.char_indices().find(|(_, character)| bad(*character)).map(|(at, character)| {
        let code = if character < '\u{a0}' { ReasonCode::ControlCharacter } else { ReasonCode::InvisibleCharacter };
        (code, Span { start: at, end: at + character.len_utf8() })
    })
}

/// Where subscripts are too many, or too deep in one another. Quotes are not looked at: what is in them is parsed as
/// well, and where this pass and the parser see different ones, nothing could be relied on.
fn subscripts(bytes: &[u8]) -> Option<usize> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // The bracket of `${name[` (also `${!name[`, `${#name[`) that begins at `at`.
    let bracket = |at: usize| {
        let mut next = at + 2 + usize::from(matches!(bytes.get(at + 2), Some(b'!' | b'#')));
        while bytes.get(next).is_some_and(|byte| is_name(*byte) || b"@*".contains(byte)) {
            next += 1;
        }
        (bytes.get(at..at + 2) == Some(b"${") && bytes.get(next) == Some(&b'[')).then_some(next)
    };
    let (mut all, mut nested, mut quoted, mut nots) = (0, 0, 0, 0);
    for at in 0..bytes.len() {
        nots += usize::from(bytes[at] == b'!' && bytes.get(at + 1).is_none_or(|next| b" \t\n(".contains(next)));
        all += usize::from(bytes[at] == b'[' && at > 0 && is_name(bytes[at - 1]));
        if all > MAX_SUBSCRIPTS || nots > MAX_NOTS {
            return Some(at);
        }
        let Some(open) = bytes.get(at).filter(|byte| **byte == b'$').and_then(|_| bracket(at)) else { continue };
        let rest = &bytes[open + 1..];
        let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
        let inside = (open + 1..open + 1 + end).filter(|at| bytes[*at] == b'$' && bracket(*at).is_some()).count();
        nested += usize::from(inside > 0);
        quoted += usize::from(rest[..end].iter().any(|byte| b"'\"\\`".contains(byte)));
        if inside > 1 || nested > MAX_NESTED_SUBSCRIPTS || quoted > MAX_QUOTED_SUBSCRIPTS {
            return Some(at);
        }
    }
    None
}

/// Characters that look like a blank or like nothing, and are neither to the shell. Quoted ones are data.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{180e}' | '\u{2000}'..='\u{200f}'
            | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{3000}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

fn scan_invisible(text: &str) -> Option<(usize, char)> {
    if text.is_ascii() {
        return None;
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else {
            match (quote, character) {
                (None | Some('"'), '\\') => escaped = true,
                (None, '\'' | '"') => quote = Some(character),
                (Some(open), _) if open == character => quote = None,
                _ => {}
            }
        }
        if quote.is_none() && is_invisible(character) {
            return Some((at, character));
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Paren,
    /// `<(` or `>(`
    Process,
    /// The second one of `((`, in which `<<` is an operator of numbers.
    InnerParen,
    Brace,
    /// `${`
    Parameter,
    /// `$[`
    Bracket,
    Quote,
    Backtick,
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    open: Vec<Open>,
    /// How many `if`, `do`, `case`, `[[` are open.
    words: usize,
    /// How many of these are `case`.
    cases: usize,
    brackets: usize,
    pieces: usize,
    /// Whether a here-document begins at the next line.
    in_announced_line: bool,
    /// The delimiters of here-documents that begin at the next line.
    documents: Vec<Document>,
}

/// A here-document that has been announced.
struct Document {
    delimiter: Vec<u8>,
    /// Whether tabs before its lines do not count.
    tabs: bool,
    /// Whether nothing in it is expanded.
    quoted: bool,
}

impl Scan<'_> {
    fn deeper(&mut self, open: Open) -> Result<(), (ReasonCode, usize)> {
        self.open.push(open);
        self.brackets += 1;
        let deep = self.open.iter().filter(|open| **open != Open::Quote).count() + self.words;
        if deep > MAX_DEPTH || self.open.len() > 2 * MAX_DEPTH || self.brackets > MAX_BRACKETS {
            return Err((ReasonCode::TooDeep, self.at));
        }
        Ok(())
    }

    fn close(&mut self, open: Open) {
        if self.open.last() == Some(&open) {
            self.open.pop();
        }
    }

    fn in_quote(&self) -> bool {
        self.open.last() == Some(&Open::Quote)
    }

    fn next(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    fn run(&mut self) -> Result<(), (ReasonCode, usize)> {
        let mut word_begins = true;
        while self.at < self.text.len() {
            let byte = self.text[self.at];
            let begins = std::mem::replace(&mut word_begins, false);
            self.pieces += usize::from(if begins { !b" \t".contains(&byte) } else { b"\n;&|<>()".contains(&byte) });
            if self.pieces > MAX_PIECES && !self.in_quote() {
                return Err((ReasonCode::TooLong, self.at));
            }
            match byte {
                b'\\' => self.escape()?,
                b'\'' if !self.in_quote() => self.skip_single()?,
                b'"' if self.in_quote() => self.close(Open::Quote),
                b'"' => self.deeper(Open::Quote)?,
                b'`' if self.open.contains(&Open::Backtick) => {
                    while self.open.pop() != Some(Open::Backtick) {}
                    word_begins = false;
                }
                b'`' => {
                    self.deeper(Open::Backtick)?;
                    word_begins = true;
                }
                b'$' if self.in_announced_line && b"({[".contains(&self.next(1)) => {
                    return Err((ReasonCode::NotParsed, self.at));
                }
                b'$' if self.next(1) == b'(' => {
                    self.at += 1;
                    self.deeper(Open::Paren)?;
                    word_begins = true;
                }
                b'$' if self.next(1) == b'{' => {
                    self.at += 1;
                    self.deeper(Open::Parameter)?;
                }
                b'$' if self.next(1) == b'[' => {
                    self.at += 1;
                    self.deeper(Open::Bracket)?;
                }
                b'}' if self.open.last() == Some(&Open::Brace) => self.close(Open::Brace),
                b'}' if self.open.last() == Some(&Open::Parameter) => self.close(Open::Parameter),
                b']' if self.open.last() == Some(&Open::Bracket) => self.close(Open::Bracket),
                _ if self.in_quote() => {}
                b'(' if matches!(self.before(1), b'<' | b'>') => {
                    // The parser takes what is before it for a word of its own.
                    if !b" \t\n;&|(<>".contains(&self.before(2)) {
                        return Err((ReasonCode::NotParsed, self.at));
                    }
                    self.deeper(Open::Process)?;
                    word_begins = true;
                }
                b'(' => {
                    let inner = self.before(1) == b'(';
                    self.deeper(if inner { Open::InnerParen } else { Open::Paren })?;
                    word_begins = true;
                }
                b')' if self.open.last() == Some(&Open::Process) => {
                    if !b" \t\n;&|)\0".contains(&self.next(1)) {
                        return Err((ReasonCode::NotParsed, self.at));
                    }
                    self.close(Open::Process);
                    word_begins = true;
                }
                b')' => {
                    let inner = self.open.last() == Some(&Open::InnerParen);
                    if inner && self.next(1) == b')' && self.documents.is_empty() {
                        self.in_announced_line = false; // These were numbers.
                    }
                    self.close(if inner { Open::InnerParen } else { Open::Paren });
                    word_begins = true;
                }
                b'{' if self.in_expansion() => return Err((ReasonCode::NotParsed, self.at)),
                b'{' => self.deeper(Open::Brace)?,
                // What is a comment in there is read in more than one way.
                b'#' if begins && (self.in_numbers_or_expansion() || self.before(1) == b')') => {
                    return Err((ReasonCode::NotParsed, self.at));
                }
                b'#' if begins => self.skip_line(),
                b'\n' => {
                    self.in_announced_line = false;
                    self.documents()?;
                    word_begins = true;
                }
                // `{name}<file` sets a variable, and its subscript is evaluated.
                b'<' | b'>' if self.before(1) == b'}' => return Err((ReasonCode::NotParsed, self.at)),
                b'<' if self.next(1) == b'<' && self.in_expansion() => {
                    // The parser begins a document there, and reads on to its end; the shell does not.
                    return Err((ReasonCode::NotParsed, self.at));
                }
                b'<' if self.next(1) == b'<' && self.next(2) != b'<' => self.document()?,
                b'<' if self.next(1) == b'<' => self.at += 2,
                b' ' | b'\t' | b';' | b'&' | b'|' | b'<' | b'>' => word_begins = true,
                _ if begins => self.word()?,
                _ => {}
            }
            self.at += 1;
        }
        // The parser looks for the lines of an announced document for ever.
        if self.documents.is_empty() { Ok(()) } else { Err((ReasonCode::NotParsed, self.text.len())) }
    }

    /// The byte so many before this one.
    fn before(&self, offset: usize) -> u8 {
        self.at.checked_sub(offset).map_or(b'\n', |at| self.text[at])
    }

    /// Whether this stands in `${…}` or `$[…]`, however deep.
    fn in_expansion(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Open::Parameter | Open::Bracket))
    }

    /// Whether this stands in `${…}`, `$[…]` or `((…))`, however deep.
    fn in_numbers_or_expansion(&self) -> bool {
        self.in_expansion() || self.open.contains(&Open::InnerParen)
    }

    /// A backslash and what it escapes. A line that is joined to the next one must end, or that one begin, at a blank:
    /// within a word or an operator it is seen by the shell and not by the parser.
    fn escape(&mut self) -> Result<(), (ReasonCode, usize)> {
        if self.next(1) == b'\n' && !b" \t\n".contains(&self.before(1)) && !b" \t".contains(&self.next(2)) {
            return Err((ReasonCode::NotParsed, self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn skip_single(&mut self) -> Result<(), (ReasonCode, usize)> {
        let ansi = self.before(1) == b'$';
        // Whether `$$'…'` or `\$'…'` is one of these is read in more than one way.
        if ansi && matches!(self.before(2), b'$' | b'\\') {
            return Err((ReasonCode::NotParsed, self.at));
        }
        self.at += 1;
        while self.at < self.text.len() && self.text[self.at] != b'\'' {
            if ansi && self.text[self.at] == b'\\' {
                self.at += 1;
                if self.next(0) == b'\n' {
                    return Err((ReasonCode::NotParsed, self.at));
                }
            }
            self.at += 1;
        }
        Ok(())
    }

    /// To before the end of the line.
    fn skip_line(&mut self) {
        while self.at + 1 < self.text.len() && self.text[self.at + 1] != b'\n' {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<(), (ReasonCode, usize)> {
        // No longer than the longest of these words and what ends it.
        let rest = &self.text[self.at..self.text.len().min(self.at + 8)];
        let end = rest.iter().position(|byte| b" \t\n;&|()<>".contains(byte)).unwrap_or(rest.len());
        match &rest[..end] {
            b"if" | b"do" | b"case" | b"[[" | b"select" => {
                self.words += 1;
                self.cases += usize::from(rest.starts_with(b"case"));
                if self.words + self.open.len() > MAX_DEPTH || self.cases > MAX_CASES {
                    return Err((ReasonCode::TooDeep, self.at));
                }
            }
            b"fi" | b"done" | b"esac" | b"]]" => {
                self.words = self.words.saturating_sub(1);
                self.cases = self.cases.saturating_sub(usize::from(rest.starts_with(b"esac")));
            }
            _ => {}
        }
        Ok(())
    }

    /// At `<<`: notes the delimiter of the document.
    ///
    /// The parser takes what is substituted between there and the end of the line for words of their own.
    fn document(&mut self) -> Result<(), (ReasonCode, usize)> {
        self.in_announced_line = true;
        if self.open.contains(&Open::InnerParen) {
            // It may also shift a number. Then no document follows, and what follows is looked at.
            self.at += 1;
            return Ok(());
        }
        let mut at = self.at + 2;
        let tabs = self.text.get(at) == Some(&b'-');
        at += usize::from(tabs);
        while matches!(self.text.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let start = at;
        while self.text.get(at).is_some_and(|byte| !b" \t\n;&|()<>".contains(byte)) {
            at += 1;
        }
        let raw = &self.text[start..at];
        if raw.iter().any(|byte| b"$`".contains(byte)) {
            return Err((ReasonCode::NotParsed, self.at));
        }
        let quoted = raw.iter().any(|byte| b"'\"\\".contains(byte));
        let delimiter: Vec<u8> = raw.iter().copied().filter(|byte| !b"'\"\\".contains(byte)).collect();
        if delimiter.is_empty() {
            return Err((ReasonCode::NotParsed, self.at));
        }
        self.documents.push(Document { delimiter, tabs, quoted });
        self.at = at.max(self.at + 2) - 1;
        Ok(())
    }

    /// At the end of a line: passes over the documents that begin there, counting what they expand.
    fn documents(&mut self) -> Result<(), (ReasonCode, usize)> {
        for Document { delimiter, tabs, quoted } in std::mem::take(&mut self.documents) {
            let mut open: Vec<u8> = Vec::new();
            loop {
                let start = self.at + 1;
                if start >= self.text.len() {
                    return Err((ReasonCode::NotParsed, start));
                }
                let end =
                    self.text[start..].iter().position(|byte| *byte == b'\n').map_or(self.text.len(), |at| start + at);
                let mut line = &self.text[start..end];
                while tabs && line.first() == Some(&b'\t') {
                    line = &line[1..];
                }
                self.at = end;
                if line == delimiter {
                    break;
                }
                if !quoted && line.ends_with(b"\\") {
                    // The next line belongs to this one, even if it looks like the end.
                    return Err((ReasonCode::NotParsed, start));
                }
                for byte in line.iter().filter(|_| !quoted) {
                    match byte {
                        b'(' => open.push(b')'),
                        b'{' => open.push(b'}'),
                        b'[' => open.push(b']'),
                        b'`' if open.last() != Some(&b'`') => open.push(b'`'),
                        // Only what closes the innermost one closes anything.
                        _ if open.last() == Some(byte) => drop(open.pop()),
                        _ => continue,
                    }
                    self.brackets += 1;
                    if open.len() > MAX_DEPTH || self.brackets > MAX_BRACKETS {
                        return Err((ReasonCode::TooDeep, start));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<ReasonCode> {
        check(text).err().map(|(code, _)| code)
    }

    #[test]
    fn what_people_type_passes() {
        for text in [
            "ls -la",
            "git log --format='%h %s' | grep -i \"fix\" | head -20",
            "# it's a comment with ((((((((((((((((((\nls",
            "cat <<'EOF'\nit's ( ( ( ( ( ( ( text\nEOF\nls",
            "for f in *.md; do if [ -f \"$f\" ]; then wc -l \"$f\"; fi; done",
            "grep -nE '((((((((((((a))))))))))))' src",
            "echo '中文' \"\u{a0}quoted\"",
            "awk '{ if ($1) { print } }' a",
            "diff <(ls a) <(ls b) | head; cat < <(ls)",
            "ls a \\\n  b\\\n  | wc -l",
            "git log --format=$'%h\\t%s'",
            &format!("cat <<'EOF'\n{}EOF\n", "some words of prose\n".repeat(800)),
            &format!("git diff -- {}", "src/a/long/path/to/a/file.rs ".repeat(500)),
            "echo $((1 << 4)); echo ${x:1}\ncat <<EOF | wc -l\n$(ls) ${x}\nEOF\necho $(cat <<EOF\nx\nEOF\n) $(ls)",
            "echo ${x[${#x[@]}-1]} ${x[1]} ${x[2]} ${x[3]} \"${x[@]}\" ${x[\"a\"]}",
        ] {
            assert_eq!(code(text), None, "{text}");
        }
    }

    #[test]
    fn what_deceives_or_overflows_does_not() {
        for (text, expected) in [
            ("ls\0", ReasonCode::ControlCharacter),
            ("ls \u{1b}[2J", ReasonCode::ControlCharacter),
            ("ls\r\ntouch x", ReasonCode::ControlCharacter),
            ("ls\u{a0}-la", ReasonCode::InvisibleCharacter),
            ("ls \u{200b}", ReasonCode::InvisibleCharacter),
            ("echo \"\u{202e}\"", ReasonCode::InvisibleCharacter),
            (&"(".repeat(11), ReasonCode::TooDeep),
            (&"$(".repeat(11), ReasonCode::TooDeep),
            (&"\"$(".repeat(11), ReasonCode::TooDeep),
            (&"if ".repeat(11), ReasonCode::TooDeep),
            (&"{ ".repeat(11), ReasonCode::TooDeep),
            (&"x[".repeat(300), ReasonCode::TooDeep),
            ("${x[${y[${z[1]}]}]}", ReasonCode::TooDeep),
            ("\"${x[\"]}${y[\"]}${z[\"]}\"]}\"", ReasonCode::TooDeep),
            (&"${x[${#x[@]}-1]} ".repeat(9), ReasonCode::TooDeep),
            (&"a".repeat(MAX_BYTES + 1), ReasonCode::TooLong),
            (&"a ".repeat(MAX_PIECES + 1), ReasonCode::TooLong),
            (&"\n".repeat(MAX_PIECES + 1), ReasonCode::TooLong),
            (&"ls;".repeat(MAX_PIECES / 2 + 1), ReasonCode::TooLong),
            ("echo {1..99999999999999999999}", ReasonCode::NotParsed),
            ("cat <<E; $(echo touch) x\nE", ReasonCode::NotParsed),
            ("cat <<E $(touch x)\nE", ReasonCode::NotParsed),
            ("cat <<E > ${x}\nE", ReasonCode::NotParsed),
            ("cat <<E \"$[1]\"\nE", ReasonCode::NotParsed),
            ("cat <<$(x)\nE", ReasonCode::NotParsed),
            ("cat <<E\nx \\\nE\nls\nE", ReasonCode::NotParsed),
            ("cat <<E\nx", ReasonCode::NotParsed),
            ("cat <<E", ReasonCode::NotParsed),
            ("cat <<\nx\n", ReasonCode::NotParsed),
            ("echo ${x:-<<E}\nls\nE", ReasonCode::NotParsed),
            ("echo \"$[<<E]\"\nls\nE", ReasonCode::NotParsed),
            ("${<<$[  ", ReasonCode::NotParsed),
            ("$(<<  ", ReasonCode::NotParsed),
            ("<(<<-\"\"& ", ReasonCode::NotParsed),
            ("$[[<<-))<<  ", ReasonCode::NotParsed),
            ("l\\\ns", ReasonCode::NotParsed),
            ("ls $'#\\\nx'", ReasonCode::NotParsed),
            ("ls $$'\\'", ReasonCode::NotParsed),
            ("ls x<(cat a)", ReasonCode::NotParsed),
            ("${{#[[ }<<-$[$((  ", ReasonCode::NotParsed),
            ("$((|))#<<:-$[ <<-for $[", ReasonCode::NotParsed),
            ("E{#{$(<<\t<<<$[", ReasonCode::NotParsed),
            ("ls <(cat a)x", ReasonCode::NotParsed),
            ("ls {x}<a", ReasonCode::NotParsed),
            (&format!("echo $((1 << '2'))\n{}", "(".repeat(11)), ReasonCode::TooDeep),
        ] {
            assert_eq!(code(text), Some(expected), "{text}");
        }
    }
}
