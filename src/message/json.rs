//! JSON as models and servers really write it.
//!
//! JSON can spell half of a surrogate pair (`"\ud800"`), which no Rust string can hold. Such halves are replaced by
//! U+FFFD rather than refused, so that one broken character never costs a whole reply.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Reads `text` as JSON, with lone surrogate escapes replaced by U+FFFD.
///
/// # Errors
/// What serde_json reports; line and column are those of `text`, since a replacement is as long as what it replaces.
///
/// ```
/// let value: String = hookwright::message::json::from_str(r#""a\ud800b \ud83d\ude00""#)?;
/// assert_eq!(value, "a\u{fffd}b 😀");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match replace_lone_surrogates(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => serde_json::from_str(&repaired),
    })
}

/// `text` with each `\uXXXX` escape that is half of a surrogate pair without its other half written as `\ufffd`.
///
/// The text keeps its length. Escaped backslashes are understood: `\\ud800` is a backslash and five characters.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&byte| byte == b'\\') {
        at += found;
        match unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                repaired.push_str(&text[copied..at]);
                repaired.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            // Another escape, or a broken one. Whatever follows the backslash is passed over with it; if that is the
            // first byte of a longer character, its other bytes cannot be a backslash.
            None => at = (at + 2).min(bytes.len()),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

/// The UTF-16 unit that the six bytes `\uXXXX` at `at` stand for.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &byte| Some(unit * 16 + char::from(byte).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_of_a_pair_are_replaced_and_pairs_kept() {
        for (json, wanted) in [
            (r#""\ud800""#, "\u{fffd}"),
            (r#""\uDC00x""#, "\u{fffd}x"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud800\\ud800""#, "\u{fffd}\\ud800"),
            (r#""\ud800\u0041""#, "\u{fffd}A"),
            (r#""é\\\ud800é""#, "é\\\u{fffd}é"),
        ] {
            assert_eq!(from_str::<String>(json).unwrap(), wanted, "{json}");
        }
    }

    #[test]
    fn an_error_keeps_its_position_behind_a_replacement() {
        let error = from_str::<serde_json::Value>(r#"{"a": "\ud800", "b": x}"#).unwrap_err();
        assert_eq!((error.line(), error.column()), (1, 22));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_without_a_crash_and_keeps_its_length(text in r#"(\\|u|[dD][89cCfF]|[0-9a-f]{2}|"|é|.){0,24}"#) {
            prop_assert_eq!(replace_lone_surrogates(&text).len(), text.len());
        }

        #[test]
        fn a_string_of_any_units_can_be_read(units in prop::collection::vec(any::<u16>(), 0..8)) {
            let json: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            prop_assert_eq!(from_str::<String>(&format!("\"{json}\"")).unwrap(), String::from_utf16_lossy(&units));
        }
    }
}
