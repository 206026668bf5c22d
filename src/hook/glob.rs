//! Globs over names and argument values: text, not paths.
//!
//! The glob libraries for files stop `*` at a `/` or read the text as bytes, so that `?` matches a third of a Chinese
//! character. A tool name or an argument has no path separators, and an argument can be megabytes long, so a pattern
//! is compiled to a [`regex::Regex`], which takes linear time.

use regex::{Regex, RegexBuilder};

/// How deep `{...}` may be nested.
const MAX_DEPTH: usize = 10;
/// How much memory one compiled pattern may take, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A compiled glob. It matches whole texts, case-sensitively.
///
/// | pattern | matches |
/// |---|---|
/// | `*` | any characters, also none, also `/` and line breaks |
/// | `?` | one character |
/// | `[a-z_]`, `[!a-z]` | one character that is, or is not, in the set; a `]` in first place stands for itself |
/// | `{a,b*}` | one of the alternatives, which may be nested |
/// | `\*` | the character after the backslash, as it is |
///
/// ```
/// use hookwright::hook::glob::Glob;
/// let glob = Glob::compile("mcp__{github,gitlab}__*")?;
/// assert!(glob.is_match("mcp__github__create_issue"));
/// assert!(!glob.is_match("mcp__slack__post"));
/// assert!(Glob::compile("*.py")?.is_match("src/main.py"));
/// # Ok::<(), hookwright::hook::glob::GlobError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Glob(Matcher);

#[derive(Debug, Clone)]
enum Matcher {
    Any,
    Exact(String),
    Prefix(String),
    Pattern(Regex),
}

/// Why a text is not a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at character {position}")]
pub struct GlobError {
    /// The character where the mistake is, counted from 1.
    pub position: usize,
    /// What is wrong there.
    pub reason: String,
}

impl Glob {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// An open `[` or `{`, a backslash with nothing after it, a reversed range, braces nested deeper than 10, or a
    /// pattern that compiles to more than 1 MiB.
    pub fn compile(pattern: &str) -> Result<Self, GlobError> {
        let translated = Translation::of(pattern)?;
        if translated.simple {
            return Ok(Glob(match (translated.star, translated.literal.is_empty()) {
                (true, true) => Matcher::Any,
                (true, false) => Matcher::Prefix(translated.literal),
                (false, _) => Matcher::Exact(translated.literal),
            }));
        }
        let regex = RegexBuilder::new(&format!(r"\A(?:{})\z", translated.regex))
            .dot_matches_new_line(true)
            .size_limit(MAX_COMPILED)
            .build()
            .map_err(|_| GlobError { position: 1, reason: "the pattern is too large".to_owned() })?;
        Ok(Glob(Matcher::Pattern(regex)))
    }

    /// Whether the whole of `text` matches. Takes time linear in the length of `text`.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.0 {
            Matcher::Any => true,
            Matcher::Exact(name) => name == text,
            Matcher::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Matcher::Pattern(regex) => regex.is_match(text),
        }
    }
}

/// A glob on its way to a regular expression.
#[derive(Default)]
struct Translation {
    regex: String,
    /// The characters that stand for themselves, as long as `simple` holds.
    literal: String,
    /// Only literal characters, and perhaps one `*` at the end.
    simple: bool,
    star: bool,
}

impl Translation {
    fn of(pattern: &str) -> Result<Self, GlobError> {
        let characters: Vec<char> = pattern.chars().collect();
        let mut this = Translation { simple: true, ..Translation::default() };
        let mut open_braces: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            match character {
                '*' => {
                    this.regex.push_str(".*");
                    this.simple &= !this.star;
                    this.star = true;
                }
                '?' => this.push_special("."),
                '[' => at = this.push_set(&characters, at)?,
                '{' if open_braces.len() == MAX_DEPTH => {
                    return Err(error(at, format!("braces are nested deeper than {MAX_DEPTH}")));
                }
                '{' => {
                    open_braces.push(at);
                    this.push_special("(?:");
                }
                ',' if !open_braces.is_empty() => this.push_special("|"),
                '}' if open_braces.pop().is_some() => this.push_special(")"),
                '\\' => {
                    at += 1;
                    let escaped =
                        characters.get(at).ok_or_else(|| error(at - 1, "a backslash with nothing after it"))?;
                    this.push_literal(*escaped);
                }
                literal => this.push_literal(literal),
            }
            at += 1;
        }
        match open_braces.pop() {
            Some(open) => Err(error(open, "\"{\" is never closed")),
            None => Ok(this),
        }
    }

    fn push_literal(&mut self, character: char) {
        self.simple &= !self.star;
        self.literal.push(character);
        self.regex.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
    }

    fn push_special(&mut self, regex: &str) {
        self.simple = false;
        self.regex.push_str(regex);
    }

    /// Translates the set that opens at `open`; returns where it closes.
    fn push_set(&mut self, characters: &[char], open: usize) -> Result<usize, GlobError> {
        let negated = matches!(characters.get(open + 1), Some('!' | '^'));
        self.push_special(if negated { "[^" } else { "[" });
        let first = open + 1 + usize::from(negated);
        let mut at = first;
        loop {
            match characters.get(at) {
                None => return Err(error(open, "\"[\" is never closed")),
                Some(']') if at > first => break,
                Some(_) => {}
            }
            let (low, after) = set_member(characters, at, open)?;
            let is_range = characters.get(after) == Some(&'-') && characters.get(after + 1).is_some_and(|c| *c != ']');
            let (high, after) = if is_range { set_member(characters, after + 1, open)? } else { (low, after) };
            if high < low {
                return Err(error(at, format!("the range {low}-{high} is reversed")));
            }
            self.regex.push_str(&format!(r"\x{{{:x}}}-\x{{{:x}}}", u32::from(low), u32::from(high)));
            at = after;
        }
        self.regex.push(']');
        Ok(at)
    }
}

/// The member of a set at `at`, which may be escaped, and where the next one begins.
fn set_member(characters: &[char], at: usize, open: usize) -> Result<(char, usize), GlobError> {
    let at = if characters.get(at) == Some(&'\\') { at + 1 } else { at };
    characters.get(at).map(|member| (*member, at + 1)).ok_or_else(|| error(open, "\"[\" is never closed"))
}

fn error(index: usize, reason: impl Into<String>) -> GlobError {
    GlobError { position: index + 1, reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Glob::compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn a_star_crosses_slashes_and_lines() {
        assert!(matches("*.py", "src/a/b.py"));
        assert!(matches("rm *", "rm -rf /\nls"));
        assert!(matches("a*c", "a/\n/c"));
        assert!(!matches("a*c", "a/c/"));
    }

    #[test]
    fn a_question_mark_is_one_character_not_one_byte() {
        assert!(matches("?", "字"));
        assert!(matches("[一-龥]?", "字🦀"));
        assert!(!matches("?", "ab"));
        assert!(!matches("?", ""));
    }

    #[test]
    fn sets_alternatives_and_escapes() {
        assert!(matches("[!a-c]x", "dx") && !matches("[!a-c]x", "bx"));
        assert!(matches("[^a-c]x", "dx") && !matches("[^a-c]x", "bx"));
        assert!(matches("[]]", "]") && matches("[!]]", "a") && !matches("[!]]", "]"));
        assert!(matches("[a-]", "-") && matches(r"[\]x]", "]"));
        assert!(matches("*.{py,r{s,b}}", "x.rb") && !matches("*.{py,r{s,b}}", "x.ra"));
        assert!(matches("{a,}b", "b"));
        assert!(matches(r"\*\{", "*{") && !matches(r"\*", "x"));
        assert!(matches("a,b}", "a,b}"), "outside of braces a comma and a closing brace are literal");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (pattern, message) in [
            ("字[a-", "\"[\" is never closed at character 2"),
            ("[]", "\"[\" is never closed at character 1"),
            ("a{b,c", "\"{\" is never closed at character 2"),
            ("ab\\", "a backslash with nothing after it at character 3"),
            ("[z-a]", "the range z-a is reversed at character 2"),
            ("{{{{{{{{{{{", "braces are nested deeper than 10 at character 11"),
        ] {
            assert_eq!(Glob::compile(pattern).unwrap_err().to_string(), message, "{pattern}");
        }
    }

    /// The definition of `*` and `?`, without regard for speed.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|skip| by_definition(rest, &text[skip..])),
            Some(('?', rest)) => !text.is_empty() && by_definition(rest, &text[1..]),
            Some((literal, rest)) => text.first() == Some(literal) && by_definition(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab/字*?]{0,8}", text in "[ab/字\n]{0,10}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(matches(&pattern, &text), by_definition(&p, &t));
        }

        #[test]
        fn an_escaped_text_matches_itself_only(text in any::<String>(), other in any::<String>()) {
            let escaped: String = text.chars().flat_map(|c| ['\\', c]).collect();
            prop_assert!(matches(&escaped, &text));
            prop_assert_eq!(matches(&escaped, &other), text == other);
        }

        #[test]
        fn any_pattern_compiles_or_is_refused(pattern in r"[a-c\[\]{}!^,\\*?-]{0,16}") {
            if let Err(error) = Glob::compile(&pattern) {
                prop_assert!(error.position >= 1 && error.position <= pattern.chars().count());
                prop_assert_ne!(error.reason, "the pattern is too large");
            }
        }
    }
}
