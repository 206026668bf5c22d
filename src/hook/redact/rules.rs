//! What secrets look like.

/// A kind of secret.
pub(super) struct Rule {
    /// A regular expression for what stands before the secret and is kept.
    pub(super) kept: &'static str,
    /// A regular expression for how the secret begins: of bounded length, without groups.
    pub(super) begins: &'static str,
    /// Given the text, what is kept, and where the match of `begins` starts and ends: where the secret ends, or `None`
    /// if it is none. Looks only a bounded way ahead before it says `None`.
    pub(super) end: fn(&str, &str, usize, usize) -> Option<usize>,
}

/// How far a rule looks ahead to tell whether something is a secret, in bytes.
const LOOK_AHEAD: usize = 64;
/// How long a passphrase with spaces or quotes in it may be, and the header of a web token, in bytes.
const LONGEST: usize = 256;

macro_rules! secret_name {
    () => {
        "(?i:password|passwd|passphrase|pwd|secret|token|credentials?|(?:api|access|secret|private|auth|signing|encryption)[_-]?key)"
    };
}

/// A name and what separates it from its value; quotes may be escaped, since JSON is often written into JSON.
macro_rules! assigned {
    ($($rest:literal),*) => {
        concat!(secret_name!(), r#"(?:\\{0,3}["'])?[ \t]{0,4}(?::|=>|={1,2})[ \t]{0,4}"#, $($rest),*)
    };
}

pub(super) const RULES: &[Rule] = &[
    Rule { kept: "", begins: r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----", end: private_key },
    Rule { kept: "", begins: r"\bsk-[A-Za-z0-9_-]{16}", end: key_with_digit },
    Rule { kept: "", begins: r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10}", end: key_with_digit },
    Rule { kept: "", begins: r"\b(?:gh[pousr]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20})", end: key_with_digit },
    Rule { kept: "", begins: r"\bgl[a-z]{2,6}-[A-Za-z0-9_-]{16}", end: key_with_digit },
    Rule { kept: "", begins: r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", end: exactly },
    Rule { kept: "", begins: r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10}", end: key_with_digit },
    Rule { kept: "", begins: r"\bAIza[A-Za-z0-9_-]{30}", end: key_with_digit },
    Rule { kept: "", begins: r"\b(?:hf|npm)_[A-Za-z0-9]{20}", end: key_with_digit },
    Rule { kept: "", begins: r"\bpypi-[A-Za-z0-9_-]{30}", end: key_with_digit },
    Rule { kept: "", begins: r"\beyJ[A-Za-z0-9_-]{8}", end: web_token },
    Rule {
        kept: r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@?#\x22'<>\\`]{0,100}:",
        begins: r"[^\s/@?#\x22'<>\\`][^\s/?#\x22'<>\\`]{0,255}@",
        end: url_password,
    },
    Rule {
        kept: r#"(?i:authorization)(?:\\{0,3}["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}["'])?(?:(?i:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,4})?"#,
        begins: r"[A-Za-z0-9._~+/=-]{8}",
        end: header_value,
    },
    Rule { kept: r"\b(?i:bearer)[ \t]{1,4}", begins: r"[A-Za-z0-9._~+/=-]{16}", end: header_value },
    Rule { kept: assigned!(r#"\\{0,3}["'`]"#), begins: r#"[^"'`\s\\]"#, end: quoted_value },
    Rule { kept: assigned!(), begins: r#"[^"'`\s\\,;&<>()\[\]{}|$*]{6}"#, end: plain_value },
    Rule {
        kept: concat!("--[a-z-]{0,20}", secret_name!(), " {1,2}"),
        begins: r#"[^"'`\s\\,;&<>()\[\]{}|$*]{6}"#,
        end: plain_value,
    },
];

/// Where the run of bytes that `belongs` accepts ends.
fn run(text: &str, from: usize, belongs: fn(u8) -> bool) -> usize {
    text.as_bytes()[from..].iter().position(|byte| !belongs(*byte)).map_or(text.len(), |length| from + length)
}

/// The bytes from `start`, as far as a decision may look ahead of `end`.
fn window(text: &str, start: usize, end: usize) -> &[u8] {
    &text.as_bytes()[start..text.len().min(end + LOOK_AHEAD)]
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_header_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte)
}

/// What an unquoted value is made of; bytes of characters beyond ASCII belong to it.
fn is_plain_byte(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && byte != 0x0b && !b"\"'`\\,;&<>()[]{}|$*".contains(&byte)
}

fn exactly(_: &str, _: &str, _: usize, end: usize) -> Option<usize> {
    Some(end)
}

/// Random letters and digits nearly always hold a digit; a word with hyphens does not.
fn key_with_digit(text: &str, _: &str, start: usize, end: usize) -> Option<usize> {
    let mut key = window(text, start, end).iter().take_while(|byte| is_key_byte(**byte));
    key.any(u8::is_ascii_digit).then(|| run(text, end, is_key_byte))
}

/// The block to its last line, or as much of it as is there. The header alone, as code mentions it, is no secret.
fn private_key(text: &str, _: &str, _: usize, end: usize) -> Option<usize> {
    const SHORTEST: usize = 16;
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\:,.-".contains(&byte);
    let bytes = text.as_bytes();
    let mut body_end = end;
    let mut letters = 0;
    while body_end < bytes.len() && is_body(bytes[body_end]) && !bytes[body_end..].starts_with(b"-----") {
        letters += usize::from(bytes[body_end].is_ascii_alphanumeric());
        body_end += 1;
    }
    if letters < SHORTEST {
        return None;
    }
    // The last line, which holds the same words as the first.
    let last_line = text[body_end..].strip_prefix("-----END ").and_then(|rest| {
        let length = rest.bytes().take(100).position(|byte| byte == b'-')?;
        rest[length..].starts_with("-----").then_some("-----END ".len() + length + "-----".len())
    });
    Some(body_end + last_line.unwrap_or(0))
}

/// A JSON web token: a header, a dot, and more.
fn web_token(text: &str, _: &str, start: usize, end: usize) -> Option<usize> {
    const SHORTEST_PART: usize = 10;
    let mut parts = window(text, start, end + LONGEST).split(|byte| *byte == b'.');
    let header_ends = parts.next()?.iter().all(|byte| is_key_byte(*byte));
    let second = parts.next()?.iter().take_while(|byte| is_key_byte(**byte)).count();
    if !header_ends || second < SHORTEST_PART {
        return None;
    }
    let run_end = run(text, end, |byte| is_key_byte(byte) || byte == b'.');
    // A full stop after the token belongs to the sentence.
    Some(start + text[start..run_end].trim_end_matches('.').len())
}

fn url_password(text: &str, _: &str, start: usize, end: usize) -> Option<usize> {
    let password = &text[start..end - 1];
    (!is_placeholder(password)).then_some(end - 1)
}

fn header_value(text: &str, _: &str, start: usize, end: usize) -> Option<usize> {
    let value: Vec<u8> = window(text, start, end).iter().copied().take_while(|byte| is_header_byte(*byte)).collect();
    let mixed = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    let random = value.iter().any(u8::is_ascii_digit) || value.contains(&b'=') || mixed && value.len() >= 16;
    random.then(|| run(text, end, is_header_byte))
}

/// Whether the name in `kept` is one for something that people choose, which need not look random.
fn is_password(kept: &str) -> bool {
    const NAMES: [&[u8]; 4] = [b"password", b"passwd", b"passphrase", b"pwd"];
    NAMES.iter().any(|name| kept.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name)))
}

fn quoted_value(text: &str, kept: &str, start: usize, end: usize) -> Option<usize> {
    const SHORTEST: usize = 4;
    let bytes = text.as_bytes();
    let quote = *kept.as_bytes().last()?;
    let quote_is_escaped = kept[..kept.len() - 1].ends_with('\\');
    // Spaces and other quotes are for what people choose. Nothing else goes on over them, so that a text is not looked
    // at again for each quote in it.
    let chosen = is_password(kept);
    let mut at = end;
    loop {
        match *bytes.get(at)? {
            byte if byte == quote => break,
            b'\n' | b'\r' => return None,
            b'\\' => {
                let after = at + bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
                let is_quote = bytes.get(after) == Some(&quote);
                if is_quote && quote_is_escaped {
                    break;
                }
                at = after + usize::from(is_quote);
            }
            byte if byte.is_ascii_whitespace() || b"\"'`".contains(&byte) => {
                if !chosen || at > end + LONGEST {
                    return None;
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    let value = &text[start..at];
    let looks_random = value.bytes().any(|byte| byte.is_ascii_digit()) || value.len() >= 20;
    let is_secret = value.len() >= SHORTEST && (looks_random || chosen) && !is_placeholder(value) && !is_word(value);
    is_secret.then_some(at)
}

fn plain_value(text: &str, kept: &str, start: usize, end: usize) -> Option<usize> {
    let window = window(text, start, end);
    let (mut length, mut digit, mut letter, mut symbol) = (0, false, false, false);
    for byte in window.iter().take_while(|byte| is_plain_byte(**byte)) {
        length += 1;
        digit |= byte.is_ascii_digit();
        letter |= byte.is_ascii_alphabetic();
        symbol |= b"!@#%^~+=".contains(byte);
    }
    // In front of a bracket it is a call, an index or a generic type: code.
    if window.get(length).is_some_and(|next| b"([{".contains(next)) {
        return None;
    }
    let tight = kept.ends_with('=') && !kept.trim_end_matches('=').ends_with([' ', '\t']);
    let looks_random = match is_password(kept) {
        true => digit || symbol || tight,
        false => digit && letter && length >= 8,
    };
    if !looks_random {
        return None;
    }
    let value = String::from_utf8_lossy(&window[..length]);
    let value = value.trim_end_matches(['.', ':']);
    if value.is_empty() || is_placeholder(value) || is_word(value) || is_code(value, tight) {
        return None;
    }
    // The whole of it, in case it goes on beyond the window.
    Some(if length == window.len() { run(text, end, is_plain_byte) } else { start + value.len() })
}

/// Something that stands for a secret to be filled in, or for one that was taken out.
fn is_placeholder(value: &str) -> bool {
    value.starts_with(['<', '[', '$', '%', '{', '*'])
        || value.contains("${")
        || value.contains("{{")
        || value.contains("...")
}

/// A word that stands where a secret could: a type, a constant, or the name of the thing itself.
fn is_word(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "string",
        "str",
        "bytes",
        "number",
        "integer",
        "boolean",
        "object",
        "null",
        "none",
        "true",
        "false",
        "undefined",
        "required",
        "optional",
        "default",
        "unknown",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "changeme",
    ];
    let lower = value.to_ascii_lowercase();
    let number_type = lower.trim_start_matches("u").trim_end_matches("_t");
    let digits = number_type.trim_start_matches("int").trim_start_matches("float");
    let is_number_type = digits.len() < number_type.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
    WORDS.contains(&lower.as_str()) || is_number_type
}

/// A path into an object, as `self.token` or, in an assignment with spaces around it, `settings.token_2`; a file for
/// `pwd`, which is also a folder's name.
fn is_code(value: &str, tight: bool) -> bool {
    const OWNERS: &[&str] = &["self", "this", "cls", "os", "process", "env", "config", "settings", "args", "request"];
    if value.starts_with('/') {
        return true;
    }
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let Some((owner, _)) = value.split_once('.') else { return false };
    value.split('.').all(is_name) && (!tight || OWNERS.contains(&owner))
}

/// Whether the text under `key` is a secret because of the key's name.
pub(super) fn is_secret_key(key: &str, text: &str) -> bool {
    const NAMES: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
        "signingkey",
        "encryptionkey",
        "authorization",
        "credential",
        "credentials",
        "cookie",
    ];
    if text.is_empty() || text == super::REDACTED || key.len() > 100 {
        return false;
    }
    let name: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    // `pwd` is also the name of a folder.
    NAMES.iter().any(|secret| name.ends_with(secret)) && !(name.ends_with("pwd") && text.starts_with('/'))
}
