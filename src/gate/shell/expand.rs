//! Words: what the shell makes of them, and the commands that hide in them.

use super::analysis::{ReasonCode, Span};
use super::parse::{self, BraceExpressionMember, BraceExpressionOrText, WordPiece, WordPieceWithSource};
use super::variables::Known;
use super::walk::Walk;
use super::word::{Value, Word};

/// How many words a brace expression may become before it is not followed any more.
const MAX_BRACES: usize = 64;
/// How many brace expressions of a word are looked at.
const MAX_BRACE_EXPRESSIONS: usize = 16;

/// How a word is read.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// An argument: braces, globs and splitting.
    Argument,
    /// A value or an operand of `[[`: no braces, no globs, no splitting.
    Single,
    /// A pattern or regular expression of `[[` and `case`: brackets and bars are ordinary.
    Pattern,
}

/// Puts the value of a word together.
#[derive(Default)]
pub(super) struct Builder {
    text: String,
    open: bool,
    splits: bool,
    found: bool,
    number: bool,
    hash: bool,
    parts: usize,
}

impl Builder {
    fn push(&mut self, text: &str) {
        self.parts += usize::from(!text.is_empty());
        if !self.open {
            self.text.push_str(text);
        }
    }

    /// A part that is known only when it runs.
    fn push_unknown(&mut self, prefix: &str, splits: bool) {
        self.parts += 1;
        if !self.open {
            self.text.push_str(prefix);
        }
        self.open = true;
        self.found = false;
        self.splits |= splits;
    }

    fn push_glob(&mut self) {
        self.parts += 1;
        self.found = !self.open || self.found;
        self.open = true;
    }

    fn push_known(&mut self, known: &Known, splits: bool) {
        match known {
            Known::Text(text) if !splits => self.push(text),
            Known::Number => {
                self.number = self.parts == 0;
                self.push_unknown(if self.text.is_empty() { "0" } else { "" }, false);
            }
            Known::Hash => {
                self.hash = self.parts == 0;
                self.push_unknown(if self.text.is_empty() { "0" } else { "" }, false);
            }
            Known::File(prefix) if !splits => {
                self.push_unknown(prefix, false);
                self.found = true;
            }
            other => self.push_unknown(other.prefix(), splits),
        }
    }

    /// What a variable holds that is set to this.
    pub(super) fn known(&self) -> Known {
        if self.number && self.parts == 1 {
            Known::Number
        } else if self.hash && self.parts == 1 {
            Known::Hash
        } else if !self.open {
            Known::Text(self.text.clone())
        } else if self.found && !self.splits {
            Known::File(self.text.clone())
        } else {
            Known::Anything(self.text.clone())
        }
    }

    fn value(self) -> Value {
        if self.open {
            Value::Dynamic { prefix: self.text, splits: self.splits }
        } else {
            Value::Static { text: self.text }
        }
    }
}

impl Walk<'_> {
    /// The words that one word of the text becomes.
    pub(super) fn words(&mut self, raw: &str, span: Span, words: &mut Vec<Word>) {
        if !has_braces(raw) {
            words.extend(self.word(raw, span, Reading::Argument));
            return;
        }
        // More of them become too many words in any case, and the parser takes long for many.
        let few = raw.bytes().filter(|byte| *byte == b'{').count() <= MAX_BRACE_EXPRESSIONS;
        let pieces = if few { parse::braces(raw) } else { None };
        let expanded = pieces.and_then(|pieces| expand_braces(&pieces)).filter(|texts| texts.len() > 1);
        let Some(texts) = expanded else {
            // It looks like a brace expression; what it becomes is not known.
            let _ = self.word(raw, span, Reading::Argument);
            let value = Value::Dynamic { prefix: String::new(), splits: true };
            words.push(Word { raw: raw.to_owned(), span, value });
            return;
        };
        for text in texts {
            words.extend(self.word(&text, span, Reading::Argument).map(|word| Word { raw: raw.to_owned(), ..word }));
        }
    }

    /// A word without brace expressions. `None` if it is nothing at all when it runs.
    pub(super) fn word(&mut self, raw: &str, span: Span, reading: Reading) -> Option<Word> {
        let built = self.build(raw, span, reading);
        Some(Word { raw: raw.to_owned(), span, value: built.value() })
    }

    /// Reads a word; commands in it are judged.
    pub(super) fn build(&mut self, raw: &str, span: Span, reading: Reading) -> Builder {
        let mut built = Builder::default();
        let simple = if raw.contains(['$', '`']) { None } else { unquote(raw, reading, &mut built) };
        if simple.is_some() {
            return built;
        }
        let mut built = Builder::default();
        match parse::pieces(raw) {
            Some(pieces) => self.pieces(&pieces, raw, span, reading, false, &mut built),
            None => self.refuse(ReasonCode::NotParsed, span, raw),
        }
        built
    }

    /// Text in which quotes are ordinary characters: here-documents.
    pub(super) fn quoted_text(&mut self, text: &str, span: Span) -> Builder {
        let mut built = Builder::default();
        match parse::quoted_pieces(text) {
            Some(pieces) => self.pieces(&pieces, text, span, Reading::Single, true, &mut built),
            None => self.refuse(ReasonCode::NotParsed, span, ""),
        }
        built
    }

    fn pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        raw: &str,
        span: Span,
        reading: Reading,
        quoted: bool,
        built: &mut Builder,
    ) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => {
                    // A dollar that the parser could make nothing of, before something that the shell may.
                    let after = raw.as_bytes().get(piece.end_index).copied().unwrap_or(b' ');
                    let lone = text == "$" && (after.is_ascii_alphanumeric() || b"({[_".contains(&after));
                    if lone || text.contains('`') {
                        self.refuse(ReasonCode::NotParsed, span, text);
                    }
                    if quoted {
                        built.push(&text.replace("\\\n", ""));
                    } else {
                        self.unquoted(text, span, reading, built);
                    }
                }
                WordPiece::SingleQuotedText(text) => built.push(text),
                WordPiece::AnsiCQuotedText(text) => match decode_ansi(text) {
                    Some(text) => built.push(&text),
                    None => built.push_unknown("", false),
                },
                WordPiece::DoubleQuotedSequence(inner) => self.pieces(inner, raw, span, reading, true, built),
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(inner, raw, span, reading, true, &mut Builder::default());
                    built.push_unknown("", false);
                }
                // It becomes a path, or stays as it is; no option either way.
                WordPiece::TildeExpansion(_) => built.push_unknown("/", false),
                WordPiece::EscapeSequence(text) => match text.strip_prefix('\\') {
                    Some("\n") => {}
                    Some(character) => built.push(character),
                    None => built.push(text),
                },
                WordPiece::ParameterExpansion(expression) => {
                    let known = self.parameter(expression, span, quoted);
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits);
                }
                WordPiece::CommandSubstitution(text) => {
                    let start = piece.start_index + 2;
                    let known = self.substitution(text, raw, start, span);
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits);
                }
                WordPiece::BackquotedCommandSubstitution(text) => {
                    // What a backslash means in here depends on where the backquotes stand.
                    let source = raw.get(piece.start_index..piece.end_index).unwrap_or("\\");
                    let known = if source.contains('\\') {
                        self.refuse(ReasonCode::NotParsed, span, source);
                        Known::Anything(String::new())
                    } else {
                        self.substitution(text, raw, piece.start_index + 1, span)
                    };
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits);
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.arithmetic(&expression.value, span);
                    built.push_known(&Known::Number, false);
                }
            }
        }
    }

    /// Whether an unquoted expansion of this can become other than one word.
    fn splits(&self, known: &Known) -> bool {
        match known {
            Known::Number | Known::Hash => self.variables.splits_elsewhere,
            Known::Text(text) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./@:%+=,-".contains(&byte);
                text.is_empty() || self.variables.splits_elsewhere || !text.bytes().all(plain)
            }
            Known::File(_) | Known::Anything(_) => true,
        }
    }

    fn unquoted(&mut self, text: &str, span: Span, reading: Reading, built: &mut Builder) {
        // Inside a word the shell has no blanks and operators; if the parser left some, it lost its way.
        let lost = |character: char| character.is_ascii_whitespace() || ";&|<>()".contains(character);
        if reading != Reading::Pattern && text.contains(lost) {
            self.refuse(ReasonCode::NotParsed, span, text);
        }
        for (at, character) in text.char_indices() {
            let pattern = matches!(character, '*' | '?') || (character == '[' && text[at..].contains(']'));
            if reading == Reading::Argument && pattern {
                built.push_glob();
            } else {
                built.push(character.encode_utf8(&mut [0; 4]));
            }
        }
    }
}

/// Whether text may hold a brace expression outside quotes.
fn has_braces(raw: &str) -> bool {
    let Some(start) = raw.find('{') else { return false };
    let rest = &raw[start..];
    rest.contains('}') && (rest.contains(',') || rest.contains("..")) && unquoted_brace(raw)
}

/// Whether an unquoted `{` that is not part of `${` is followed by `,` or `..`, and `}`.
fn unquoted_brace(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let (mut at, mut quote, mut open, mut parts) = (0, 0u8, false, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'\'' => at += 1,
            byte @ (b'\'' | b'"') if quote == 0 => quote = byte,
            byte if quote != 0 && byte == quote => quote = 0,
            _ if quote != 0 => {}
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                // To its end, roughly: what is in there is not a brace expression, and one too many is no harm.
                while at < bytes.len() && bytes[at] != b'}' {
                    at += 1;
                }
            }
            b'{' => open = true,
            b',' if open => parts = true,
            b'.' if open && bytes.get(at + 1) == Some(&b'.') => parts = true,
            b'}' if parts => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

fn expand_braces(pieces: &[BraceExpressionOrText]) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    for piece in pieces {
        let alternatives = match piece {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut all = Vec::new();
                for member in members {
                    all.extend(expand_member(member)?);
                }
                all
            }
        };
        if texts.len() * alternatives.len() > MAX_BRACES {
            return None;
        }
        texts = texts.iter().flat_map(|text| alternatives.iter().map(move |next| format!("{text}{next}"))).collect();
    }
    Some(texts)
}

fn expand_member(member: &BraceExpressionMember) -> Option<Vec<String>> {
    let steps = |start: i64, end: i64, step: i64| -> Option<Vec<i64>> {
        let step = i64::try_from(step.unsigned_abs()).ok()?.max(1);
        if start.checked_sub(end)?.unsigned_abs() / step.unsigned_abs() >= MAX_BRACES as u64 {
            return None;
        }
        let count = start.abs_diff(end) / step.unsigned_abs();
        let sign = if end < start { -1 } else { 1 };
        Some((0..=count).map(|index| start + sign * step * i64::try_from(index).unwrap_or(0)).collect())
    };
    match member {
        BraceExpressionMember::NumberSequence { start, end, increment } => {
            Some(steps(*start, *end, *increment)?.iter().map(ToString::to_string).collect())
        }
        BraceExpressionMember::CharSequence { start, end, increment } => {
            let letters = steps(i64::from(u32::from(*start)), i64::from(u32::from(*end)), *increment)?;
            // Between the cases stand characters that mean something to the shell.
            if start.is_ascii_lowercase() != end.is_ascii_lowercase() {
                return None;
            }
            letters.iter().map(|code| Some(char::from(u8::try_from(*code).ok()?).to_string())).collect()
        }
        BraceExpressionMember::Child(pieces) => expand_braces(pieces),
    }
}

/// A word without expansions, as the shell reads it. `None` if it is not understood.
fn unquote(raw: &str, reading: Reading, built: &mut Builder) -> Option<()> {
    let mut rest = raw;
    if raw.starts_with('~') && reading != Reading::Pattern {
        built.push_unknown("/", false);
    }
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\'' => {
                let end = rest.find('\'')?;
                built.push(&rest[..end]);
                built.parts += 1;
                rest = &rest[end + 1..];
            }
            '"' => loop {
                let next = rest.chars().next()?;
                rest = &rest[next.len_utf8()..];
                match next {
                    '"' => break,
                    '\\' => {
                        let escaped = rest.chars().next()?;
                        rest = &rest[escaped.len_utf8()..];
                        match escaped {
                            '\n' => {}
                            '"' | '\\' => built.push(escaped.encode_utf8(&mut [0; 4])),
                            _ => {
                                built.push("\\");
                                built.push(escaped.encode_utf8(&mut [0; 4]));
                            }
                        }
                    }
                    _ => built.push(next.encode_utf8(&mut [0; 4])),
                }
            },
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                if escaped != '\n' {
                    built.push(escaped.encode_utf8(&mut [0; 4]));
                }
            }
            '*' | '?' if reading == Reading::Argument => built.push_glob(),
            '[' if reading == Reading::Argument && rest.contains(']') => built.push_glob(),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | ' ' | '\t' | '\n' if reading != Reading::Pattern => return None,
            _ => built.push(character.encode_utf8(&mut [0; 4])),
        }
    }
    Some(())
}

/// The text of `$'…'`. `None` for what is no text, or cuts the text short.
fn decode_ansi(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            decoded.push(bytes[at]);
            at += 1;
            continue;
        }
        let letter = *bytes.get(at + 1)?;
        at += 2;
        let number = |from: usize, most: usize, radix: u32| {
            let digits = bytes[from..].iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count();
            let value = u32::from_str_radix(std::str::from_utf8(&bytes[from..from + digits]).ok()?, radix).ok()?;
            Some((value, from + digits)).filter(|(value, _)| *value != 0)
        };
        match letter {
            b'a' => decoded.push(0x07),
            b'b' => decoded.push(0x08),
            b'e' | b'E' => decoded.push(0x1b),
            b'f' => decoded.push(0x0c),
            b'n' => decoded.push(b'\n'),
            b'r' => decoded.push(b'\r'),
            b't' => decoded.push(b'\t'),
            b'v' => decoded.push(0x0b),
            b'\\' | b'\'' | b'"' | b'?' => decoded.push(letter),
            b'0'..=b'7' => {
                let (value, next) = number(at - 1, 3, 8)?;
                decoded.push((value & 0xff) as u8);
                at = next;
            }
            b'x' => {
                let (value, next) = number(at, 2, 16)?;
                decoded.push(value as u8);
                at = next;
            }
            b'u' | b'U' => {
                let (value, next) = number(at, if letter == b'u' { 4 } else { 8 }, 16)?;
                decoded.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
                at = next;
            }
            b'c' => {
                decoded.push(*bytes.get(at)? & 0x1f);
                at += 1;
            }
            _ => decoded.extend([b'\\', letter]),
        }
    }
    String::from_utf8(decoded).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_quotes_are_decoded() {
        assert_eq!(decode_ansi(r"\x2d\055\u002dx\n").as_deref(), Some("---x\n"));
        assert_eq!(decode_ansi(r"a\0b"), None);
        assert_eq!(decode_ansi(r"\'\q").as_deref(), Some(r"'\q"));
    }

    #[test]
    fn braces_become_words() {
        let expand = |raw: &str| parse::braces(raw).and_then(|pieces| expand_braces(&pieces)).unwrap();
        assert_eq!(expand("{-o,x}y"), ["-oy", "xy"]);
        assert_eq!(expand("a{1..3}"), ["a1", "a2", "a3"]);
        assert_eq!(expand("{a,b{c,d}}"), ["a", "bc", "bd"]);
        assert_eq!(expand("{c..a}"), ["c", "b", "a"]);
        assert!(has_braces("{a,b}") && has_braces("x{1..2}") && has_braces("${x}{a,b}"));
        assert!(!has_braces("'{a,b}'") && !has_braces("${x,}") && !has_braces("HEAD@{1}"));
    }
}
