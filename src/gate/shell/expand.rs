//! Words: what the shell makes of them, and the commands that hide in them.

use super::analysis::{ReasonCode, Span};
use super::parse::{self, BraceExpressionMember, BraceExpressionOrText, WordPiece, WordPieceWithSource};
use super::variables::{Known, Number, common};
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
    /// What it surely begins with.
    text: String,
    /// Whether something followed that is known only when it runs.
    open: bool,
    /// Whether all of it so far may turn out to be nothing, so that what comes next may be its beginning.
    pending: bool,
    /// Whether it can begin with a dash, where nothing is known of its beginning.
    dash: bool,
    splits: bool,
    /// Whether it is no word at all if it is empty.
    vanishes: bool,
    found: bool,
    number: Option<Number>,
    hash: bool,
    parts: usize,
}

impl Builder {
    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.parts += 1;
        if self.pending {
            self.dash |= text.starts_with('-');
            self.text = common(&self.text, text).to_owned();
            self.pending = false;
        } else if !self.open {
            self.text.push_str(text);
        }
    }

    /// A part that is known only when it runs. `dash`: whether it can begin with a dash; `empty`: whether it can be
    /// nothing.
    fn push_part(&mut self, prefix: &str, dash: bool, empty: bool) {
        self.parts += 1;
        self.found = false;
        if self.pending {
            self.dash |= dash;
            self.text = common(&self.text, prefix).to_owned();
            self.pending = empty;
        } else if !self.open {
            self.pending = empty && self.text.is_empty();
            self.dash = self.text.is_empty() && dash;
            if !empty || self.pending {
                self.text.push_str(prefix);
            }
        }
        self.open = true;
    }

    /// A part of which only the beginning is known.
    fn push_unknown(&mut self, prefix: &str, splits: bool) {
        self.push_part(prefix, prefix.is_empty() || prefix.starts_with('-'), prefix.is_empty());
        self.splits |= splits;
    }

    fn push_glob(&mut self) {
        let found = !self.open || self.found;
        self.push_part("", true, false);
        self.found = found;
    }

    fn push_known(&mut self, known: &Known, splits: bool, quoted: bool) {
        match known {
            Known::Text(text) if !splits => self.push(text),
            Known::Number(number) => {
                self.number = Some(*number).filter(|_| self.parts == 0);
                self.push_part("", number.negative, number.empty);
                self.vanishes |= !quoted;
                self.splits |= splits;
            }
            Known::Hash => {
                self.hash = self.parts == 0;
                self.push_part("", false, true);
                self.vanishes |= !quoted;
                self.splits |= splits;
            }
            Known::Perhaps(prefix) => {
                self.push_part(prefix, prefix.is_empty() || prefix.starts_with('-'), true);
                self.splits |= splits;
            }
            Known::File(prefix) if !splits => {
                self.push_part(prefix, prefix.is_empty() || prefix.starts_with('-'), false);
                self.found = true;
            }
            other => self.push_unknown(other.prefix(), splits),
        }
    }

    /// What a variable holds that is set to this.
    pub(super) fn known(&self) -> Known {
        match self.number {
            Some(number) if self.parts == 1 => Known::Number(number),
            _ if self.hash && self.parts == 1 => Known::Hash,
            _ if !self.open => Known::Text(self.text.clone()),
            _ if self.found && !self.splits => Known::File(self.text.clone()),
            _ if self.pending && !self.text.is_empty() => Known::Perhaps(self.text.clone()),
            _ => Known::Anything(self.text.clone()),
        }
    }

    fn value(self) -> Value {
        if !self.open {
            return Value::Static { text: self.text };
        }
        // A negative number on its own is an option of the kind that says how many lines, of no program another one.
        let number = self.number.is_some() && self.parts == 1;
        let dash = if self.text.is_empty() { self.dash && !number } else { self.text.starts_with('-') };
        // Of several words the later ones can begin with anything.
        let dash = dash || self.splits;
        let splits = self.splits || self.vanishes && self.pending;
        Value::Dynamic { prefix: self.text, dash, splits }
    }
}

impl Walk<'_> {
    /// The words that one word of the text becomes.
    pub(super) fn words(&mut self, raw: &str, span: Span, words: &mut Vec<Word>) {
        let Some(braces) = braces_of(raw) else {
            words.extend(self.word(raw, span, Reading::Argument));
            return;
        };
        let pieces = if braces.plain { parse::braces(raw) } else { None };
        let Some(texts) = pieces.and_then(|pieces| expand_braces(&pieces)).filter(|texts| texts.len() > 1) else {
            // It looks like a brace expression; what it becomes is not known.
            let _ = self.word(raw, span, Reading::Argument);
            let value = Value::Dynamic { prefix: String::new(), dash: true, splits: true };
            words.push(Word { raw: raw.to_owned(), span, value });
            return;
        };
        // What becomes nothing at all is no word.
        for text in texts.iter().filter(|text| !text.is_empty()) {
            words.extend(self.word(text, span, Reading::Argument).map(|word| Word { raw: raw.to_owned(), ..word }));
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
                        self.unquoted(text, raw, span, reading, built);
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
                WordPiece::TildeExpansion(_) => {
                    let home = raw.get(piece.start_index..piece.end_index) == Some("~")
                        && matches!(raw.as_bytes().get(piece.end_index), None | Some(b'/'));
                    built.push_part(if home { "/" } else { "" }, false, false);
                }
                WordPiece::EscapeSequence(text) => match text.strip_prefix('\\') {
                    Some("\n") => {}
                    Some(character) => built.push(character),
                    None => built.push(text),
                },
                WordPiece::ParameterExpansion(expression) => {
                    let known = self.parameter(expression, span, quoted);
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits, quoted);
                }
                WordPiece::CommandSubstitution(text) => {
                    let start = piece.start_index + 2;
                    let known = self.substitution(text, raw, start, span);
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits, quoted);
                }
                WordPiece::BackquotedCommandSubstitution(text) => {
                    // What a backslash means in here depends on where the backquotes stand.
                    let source = raw.get(piece.start_index..piece.end_index).unwrap_or("\\");
                    let known = if source.contains('\\') {
                        self.refuse(ReasonCode::NotParsed, span, source);
                        Known::anything()
                    } else {
                        self.substitution(text, raw, piece.start_index + 1, span)
                    };
                    let splits = !quoted && reading == Reading::Argument && self.splits(&known);
                    built.push_known(&known, splits, quoted);
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.arithmetic(&expression.value, span);
                    built.push_known(&Known::INTEGER, self.variables.splits_elsewhere && !quoted, quoted);
                }
            }
        }
    }

    /// Whether an unquoted expansion of this can become other than one word.
    fn splits(&self, known: &Known) -> bool {
        match known {
            Known::Number(_) | Known::Hash => self.variables.splits_elsewhere,
            Known::Text(text) => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./@:%+=,-".contains(&byte);
                text.is_empty() || self.variables.splits_elsewhere || !text.bytes().all(plain)
            }
            Known::File(_) | Known::Anything(_) | Known::Perhaps(_) => true,
        }
    }

    /// `raw`: the whole word, in which a bracket may be closed by another piece.
    fn unquoted(&mut self, text: &str, raw: &str, span: Span, reading: Reading, built: &mut Builder) {
        // Inside a word the shell has no blanks and operators; if the parser left some, it lost its way.
        let lost = |character: char| character.is_ascii_whitespace() || ";&|<>()".contains(character);
        if reading != Reading::Pattern && text.contains(lost) {
            self.refuse(ReasonCode::NotParsed, span, text);
        }
        for (at, character) in text.char_indices() {
            let pattern = matches!(character, '*' | '?') || (character == '[' && raw.contains(']'));
            if reading == Reading::Argument && pattern {
                built.push_glob();
            } else if character == '~' && reading != Reading::Pattern && text[..at].ends_with(['=', ':']) {
                built.push_unknown("", false);
            } else {
                built.push(character.encode_utf8(&mut [0; 4]));
            }
        }
    }
}

/// A word in which braces stand outside of quotes.
struct Braces {
    /// Whether they are only of the kind that the parser and the shell surely read alike: not in one another, with
    /// nothing quoted, escaped or expanded in them, and no quotes or expansions in the word that need a parser.
    plain: bool,
}

/// The brace expressions of a word, if there may be some: an unquoted `{` that is not part of `${`, then `,` or `..`, and
/// a `}`.
fn braces_of(raw: &str) -> Option<Braces> {
    let bytes = raw.as_bytes();
    let (mut at, mut quote, mut open, mut parts, mut any) = (0, 0u8, 0, false, false);
    let (mut groups, mut dollar) = (0, false);
    let mut plain = !["$'", "$\"", "$(", "${", "$[", "`", "<(", ">("].iter().any(|mark| raw.contains(mark));
    // In a word that needs a parser for its quotes, any brace is one.
    let doubtful = !plain;
    while at < bytes.len() {
        let byte = bytes[at];
        let after_dollar = std::mem::replace(&mut dollar, byte == b'$');
        match byte {
            b'\\' if quote != b'\'' => {
                plain &= open == 0;
                at += 1;
            }
            b'\'' | b'"' if quote == 0 => {
                plain &= open == 0;
                quote = byte;
            }
            _ if quote == byte => quote = 0,
            b'{' if after_dollar => {}
            b'{' if doubtful => open += 1,
            _ if quote != 0 && !doubtful => {}
            b'$' => plain &= open == 0,
            b'{' => {
                plain &= open == 0;
                open += 1;
                groups += 1;
            }
            b',' if open > 0 => parts = true,
            b'.' if open > 0 && bytes.get(at + 1) == Some(&b'.') => parts = true,
            b'}' if open > 0 => {
                any |= parts;
                open -= 1;
            }
            b'}' => plain &= doubtful,
            _ => {}
        }
        at += 1;
    }
    // A brace that is left open may begin before one that closes.
    plain &= open == 0 && groups <= MAX_BRACE_EXPRESSIONS;
    any.then_some(Braces { plain })
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
        let home = matches!(raw.as_bytes().get(1), None | Some(b'/'));
        built.push_part(if home { "/" } else { "" }, false, false);
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
            // In what looks like an assignment it is a folder, wherever that stands.
            '~' if reading != Reading::Pattern && raw[..raw.len() - rest.len() - 1].ends_with(['=', ':']) => {
                built.push_unknown("", false);
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
            // What comes behind it is read in more than one way.
            b'c' => return None,
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
        let plain = |raw: &str| braces_of(raw).map(|braces| braces.plain);
        for raw in ["{a,b}", "x{1..2}", "'x y'{a,b}\"z\"", "--include=\\*.{rs,toml}", "{a,b}{c,d}", "{,x}", "$x{a,b}"] {
            assert_eq!(plain(raw), Some(true), "{raw}");
        }
        for raw in [
            "${x}{a,b}",
            "{a,-o$'\\''}",
            "{a,\"$(echo '\"')\"}",
            "{a,{b,c}}",
            "{{a,b}",
            "{a,b}}",
            "{a,'b'}",
            "{a,\\,b}",
            "{a,$x}",
        ] {
            assert_eq!(plain(raw), Some(false), "{raw}");
        }
        assert_eq!(plain("\\${a,b}"), Some(false));
        for raw in ["'{a,b}'", "${x,}", "HEAD@{1}", "\\{a,b}", "\"{a,b}\"", "{a}", "a,b"] {
            assert_eq!(plain(raw), None, "{raw}");
        }
    }
}
