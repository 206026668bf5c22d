//! What servers say when something is wrong, and what kind of failure it is.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{FailureKind, ModelFailure};
use crate::message::json;

/// How many characters of what a server says are shown.
const SHOWN: usize = 500;

/// What an error object says.
#[derive(Debug, Default)]
struct Told {
    message: String,
    /// Its type and its code, in small letters: what machines are to go by.
    words: String,
    status: Option<u16>,
}

/// The failure that a status other than 2xx stands for.
pub(super) fn of_status(status: u16, body: &str) -> ModelFailure {
    let told = match json::from_str::<Value>(body.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(object)) => read_object(&object, true).unwrap_or_default(),
        Ok(Value::Array(list)) => {
            list.first().and_then(Value::as_object).and_then(|object| read_object(object, true)).unwrap_or_default()
        }
        Ok(Value::String(message)) => Told { message, ..Told::default() },
        _ => Told { message: readable(body), ..Told::default() },
    };
    let kind = kind_of_status(status, &told);
    ModelFailure { status: Some(status), ..ModelFailure::new(kind, said(kind, &told.message)) }
}

/// The failure that `object` tells of, if it tells of one: an error object inside a reply that began well.
pub(super) fn in_reply(object: &Map<String, Value>) -> Option<ModelFailure> {
    let told = read_object(object, false)?;
    let kind = match told.status {
        Some(status) => kind_of_status(status, &told),
        None => kind_of_words(&told).unwrap_or(FailureKind::Server),
    };
    Some(ModelFailure { status: told.status, ..ModelFailure::new(kind, said(kind, &told.message)) })
}

/// A text that should have been JSON, such as a web page, as one readable line.
pub(super) fn not_json(body: &str) -> ModelFailure {
    let message = if body.trim().is_empty() {
        "the model's answer is empty".to_owned()
    } else if is_page(body) {
        format!("the server answered with a web page instead of JSON: {:?}; is base_url right?", readable(body))
    } else {
        format!("the model's answer is not JSON: {:?}", readable(body))
    };
    ModelFailure::new(FailureKind::InvalidReply, message)
}

fn said(kind: FailureKind, message: &str) -> String {
    let general = ModelFailure::new(kind, "").message;
    let message = one_line(message);
    if message.is_empty() { general } else { format!("{general}: {message}") }
}

/// Reads an error object in any of the shapes that servers write. `certain`: the status says already that it is one.
fn read_object(object: &Map<String, Value>, certain: bool) -> Option<Told> {
    let mut told = Told::default();
    let marked = ["object", "type"].iter().any(|key| object.get(*key).and_then(Value::as_str) == Some("error"));
    match object.get("error") {
        Some(Value::Object(error)) => {
            read_fields(error, &mut told);
            if told.message.is_empty() {
                told.message = Value::Object(error.clone()).to_string();
            }
        }
        Some(Value::String(message)) if !message.is_empty() => {
            told.message.clone_from(message);
            read_fields(object, &mut told);
        }
        Some(Value::Bool(true)) => read_fields(object, &mut told),
        _ if certain || marked => read_fields(object, &mut told),
        _ => return None,
    }
    Some(told)
}

fn read_fields(fields: &Map<String, Value>, told: &mut Told) {
    if told.message.is_empty() {
        let message = ["message", "detail", "error_description", "msg", "errors", "error_msg"];
        told.message = message.iter().find_map(|key| fields.get(*key)).and_then(text_of).unwrap_or_default();
    }
    // A router passes on in its own way what the provider behind it said.
    if let Some(raw) = fields.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(text_of) {
        told.message = format!("{}: {raw}", told.message);
    }
    for key in ["type", "code", "status", "status_code"] {
        match fields.get(key) {
            Some(Value::String(word)) if word.parse::<u16>().is_err() => {
                told.words.push_str(&word.to_lowercase());
                told.words.push(' ');
            }
            Some(Value::String(number)) => told.status = told.status.or(status(number.parse().ok())),
            Some(Value::Number(number)) => told.status = told.status.or(status(number.as_u64())),
            _ => {}
        }
    }
}

fn status(number: Option<u64>) -> Option<u16> {
    number.and_then(|number| u16::try_from(number).ok()).filter(|number| (400..600).contains(number))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn kind_of_status(status: u16, told: &Told) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Authentication,
        429 => FailureKind::RateLimited,
        503 | 504 | 529 => FailureKind::Overloaded,
        500.. if kind_of_words(told) == Some(FailureKind::Overloaded) => FailureKind::Overloaded,
        500.. => FailureKind::Server,
        _ => FailureKind::InvalidRequest,
    }
}

fn kind_of_words(told: &Told) -> Option<FailureKind> {
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    let message = told.message.to_lowercase();
    let words = &told.words;
    if has(words, &["overload", "unavailable", "capacity"])
        || has(
            &message,
            &[
                "overloaded",
                "at capacity",
                "over capacity",
                "no capacity",
                "temporarily unavailable",
                "server is busy",
                "engine is busy",
            ],
        )
    {
        return Some(FailureKind::Overloaded);
    }
    if has(words, &["rate_limit", "ratelimit", "too_many_requests", "resource_exhausted", "quota"])
        || has(&message, &["rate limit", "too many requests"])
    {
        return Some(FailureKind::RateLimited);
    }
    if has(words, &["authentication", "permission", "unauthorized", "unauthenticated", "invalid_api_key", "forbidden"])
    {
        return Some(FailureKind::Authentication);
    }
    if has(words, &["invalid", "bad_request", "badrequest", "not_found", "notfound", "context_length", "too_large"])
        || has(&message, &["context length", "context window"])
    {
        return Some(FailureKind::InvalidRequest);
    }
    has(words, &["timeout", "deadline"]).then_some(FailureKind::Timeout)
}

/// Whether waiting cannot help, as there is no money left.
pub(super) fn is_used_up(body: &str) -> bool {
    ["insufficient_quota", "billing_hard_limit", "credit balance is too low"].iter().any(|word| body.contains(word))
}

fn is_page(body: &str) -> bool {
    body.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// A text of a server as one line: of a web page the title, or else its words.
fn readable(body: &str) -> String {
    if !is_page(body) {
        return one_line(body);
    }
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|open| {
        let from = open + lower[open..].find('>')? + 1;
        let to = from + lower[from..].find("</title")?;
        Some(one_line(&body[from..to]))
    });
    title.filter(|title| !title.is_empty()).unwrap_or_else(|| one_line(&words_of(body)))
}

/// What stands between the tags.
fn words_of(page: &str) -> String {
    let mut words = String::new();
    for (number, piece) in page.split('<').enumerate() {
        words.push_str(if number == 0 { piece } else { piece.split_once('>').map_or("", |(_, text)| text) });
        words.push(' ');
    }
    words
}

/// `text` without line breaks, at most [`SHOWN`] characters of it.
pub(super) fn one_line(text: &str) -> String {
    // A page of many megabytes is not worth reading to its end.
    let text = &text[..text.floor_char_boundary(text.len().min(SHOWN * 16))];
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// How long a server asks to be left alone, by the values of its headers `retry-after-ms` and `retry-after`: a number of
/// milliseconds, and a number of seconds or a date.
pub(super) fn retry_after(millis: Option<&str>, after: Option<&str>, now: jiff::Timestamp) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let millis = millis.and_then(number).and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
    millis.or_else(|| {
        let after = after?;
        if let Some(seconds) = number(after) {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let date =
            jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(after.trim()).ok()?;
        // A date that has passed is no wait; it was said that there is one, so the wait is known.
        Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: &Value) -> FailureKind {
        of_status(status, &body.to_string()).kind
    }

    #[test]
    fn a_status_and_what_is_said_with_it_make_the_kind() {
        let none = json!({});
        for (status, wanted) in [
            (400, FailureKind::InvalidRequest),
            (401, FailureKind::Authentication),
            (403, FailureKind::Authentication),
            (404, FailureKind::InvalidRequest),
            (408, FailureKind::InvalidRequest),
            (429, FailureKind::RateLimited),
            (500, FailureKind::Server),
            (502, FailureKind::Server),
            (503, FailureKind::Overloaded),
            (504, FailureKind::Overloaded),
            (529, FailureKind::Overloaded),
        ] {
            assert_eq!(kind(status, &none), wanted, "{status}");
        }
        assert_eq!(
            kind(500, &json!({"error": {"message": "The engine is currently overloaded"}})),
            FailureKind::Overloaded
        );
        assert_eq!(kind(400, &json!({"error": {"message": "overloaded"}})), FailureKind::InvalidRequest);
    }

    #[test]
    fn the_message_is_found_in_every_shape() {
        for body in [
            json!({"error": {"message": "boom", "type": "server_error"}}),
            json!({"error": "boom"}),
            json!({"type": "error", "error": {"type": "api_error", "message": "boom"}}),
            json!({"object": "error", "message": "boom"}),
            json!({"detail": "boom"}),
            json!([{"error": {"message": "boom"}}]),
            json!("boom"),
        ] {
            assert_eq!(of_status(500, &body.to_string()).message, "the model's server failed: boom", "{body}");
        }
        assert_eq!(of_status(500, "boom\n  twice").message, "the model's server failed: boom twice");
        assert_eq!(of_status(500, "").message, "the model's server failed");
        let long = of_status(500, &"x".repeat(100_000)).message;
        assert_eq!(long.chars().count(), "the model's server failed: ".len() + 501);
    }

    #[test]
    fn a_page_becomes_its_title_or_its_words() {
        let page = "<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title></head><body><p>x</p></body></html>";
        assert_eq!(of_status(502, page).message, "the model's server failed: 502 Bad Gateway");
        assert_eq!(of_status(502, "<html><h1>Nothing</h1> here").message, "the model's server failed: Nothing here");
        let told = not_json(page);
        assert_eq!(told.kind, FailureKind::InvalidReply);
        assert!(told.message.contains("web page") && told.message.contains("502 Bad Gateway"), "{told}");
    }

    #[test]
    fn an_error_inside_a_reply_is_one_only_if_it_says_so() {
        let read = |value: Value| in_reply(value.as_object().unwrap()).map(|failure| (failure.kind, failure.status));
        assert_eq!(read(json!({"error": null, "choices": []})), None);
        assert_eq!(read(json!({"message": "hi", "detail": "x"})), None);
        assert_eq!(read(json!({"error": {"message": "x", "code": 429}})), Some((FailureKind::RateLimited, Some(429))));
        assert_eq!(read(json!({"error": {"message": "x", "code": "503"}})), Some((FailureKind::Overloaded, Some(503))));
        assert_eq!(
            read(json!({"type": "error", "error": {"type": "overloaded_error"}})),
            Some((FailureKind::Overloaded, None))
        );
        assert_eq!(
            read(json!({"error": {"type": "invalid_request_error"}})),
            Some((FailureKind::InvalidRequest, None))
        );
        assert_eq!(read(json!({"error": {"type": "rate_limit_error"}})), Some((FailureKind::RateLimited, None)));
        assert_eq!(read(json!({"error": "boom"})), Some((FailureKind::Server, None)));
        assert_eq!(
            read(json!({"object": "error", "message": "boom", "code": 40001})),
            Some((FailureKind::Server, None))
        );
    }

    #[test]
    fn a_wait_is_read_as_seconds_as_a_date_and_as_milliseconds() {
        let now: jiff::Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let read = |millis, after| retry_after(millis, after, now);
        assert_eq!(read(None, Some("7")), Some(Duration::from_secs(7)));
        assert_eq!(read(None, Some(" 0.5 ")), Some(Duration::from_millis(500)));
        assert_eq!(read(None, Some("Wed, 01 Jan 2025 00:00:30 GMT")), Some(Duration::from_secs(30)));
        assert_eq!(read(None, Some("Wed, 01 Jan 2020 00:00:30 GMT")), Some(Duration::ZERO));
        assert_eq!(read(Some("1500"), Some("7")), Some(Duration::from_millis(1500)));
        assert_eq!(read(Some("x"), Some("7")), Some(Duration::from_secs(7)));
        for none in ["soon", "-1", "", "inf", "NaN", "99999999999999999999999"] {
            assert_eq!(read(None, Some(none)), None, "{none}");
        }
        assert_eq!(read(None, None), None);
    }
}
