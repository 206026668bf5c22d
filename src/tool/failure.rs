//! Whether what a tool returned is a failure. Success is computed, never assumed.
//!
//! Tools of other systems do not raise: they return `{"error": "…"}`, or a result of the Model Context Protocol with
//! `isError`. Such a value is a failed call, and is told to the model like any other. Exit codes and what a program
//! wrote to stderr are results; free text is success, whatever it says.

use serde_json::{Map, Value};

use super::error::{ToolError, ToolErrorCode};

/// Where systems put the words of an error, the likeliest first.
const WORDS: [&str; 7] = ["detail", "message", "error", "reason", "description", "msg", "title"];

/// Whether a tool's value says that the call failed.
///
/// `declares_json`: the tool says that its text is JSON; only then is text read, and only as a whole.
///
/// ```
/// use hookwright::tool::is_failure;
/// use serde_json::json;
/// assert!(is_failure(&json!({"error": "no such table"}), false));
/// assert!(is_failure(&json!({"isError": true, "content": [{"type": "text", "text": "no"}]}), false));
/// assert!(!is_failure(&json!({"error": null, "rows": []}), false));
/// assert!(!is_failure(&json!("{\"error\": \"no\"}"), false));
/// assert!(is_failure(&json!("{\"error\": \"no\"}"), true));
/// ```
pub fn is_failure(value: &Value, declares_json: bool) -> bool {
    failure_of(value, declares_json).is_some()
}

/// The failure that a tool's value stands for, if it stands for one; see [`is_failure`].
pub fn failure_of(value: &Value, declares_json: bool) -> Option<ToolError> {
    match value {
        Value::Object(object) => failure_in(object),
        Value::String(text) if declares_json && text.trim_start().starts_with('{') => {
            failure_in(serde_json::from_str::<Value>(text).ok()?.as_object()?)
        }
        _ => None,
    }
}

fn failure_in(object: &Map<String, Value>) -> Option<ToolError> {
    if object.get("isError") == Some(&Value::Bool(true)) {
        return Some(protocol_error(object));
    }
    let error = object.get("error")?;
    let rest = without(object, &["error"]);
    match error {
        Value::String(text) if !text.trim().is_empty() => Some(described(text.trim(), rest)),
        Value::Bool(true) => {
            let (words, rest) = words_of(&rest);
            Some(described(&words, rest))
        }
        Value::Object(inner) if says_something(error) => {
            let (words, mut left) = words_of(inner);
            left.extend(rest);
            Some(described(&words, left))
        }
        _ => None,
    }
}

/// A failed result of the Model Context Protocol: its text, or its structured content if it has no text.
fn protocol_error(object: &Map<String, Value>) -> ToolError {
    let part = |part: &Value| part.get("text").or(Some(part)).and_then(Value::as_str).map(str::to_owned);
    let text = match object.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let structured = || object.get("structuredContent").filter(|content| says_something(content));
    match structured() {
        Some(content) if text.trim().is_empty() => ToolError::new(ToolErrorCode::Exception, content.to_string()),
        _ => ToolError::new(ToolErrorCode::Exception, text.trim()),
    }
}

/// The words of an error object, and what else stands in it.
fn words_of(object: &Map<String, Value>) -> (String, Map<String, Value>) {
    for name in WORDS {
        match object.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => {
                return (text.trim().to_owned(), without(object, &[name]));
            }
            Some(inner @ Value::Object(nested)) if says_something(inner) => {
                let (words, mut rest) = words_of(nested);
                rest.extend(without(object, &[name]));
                return (words, rest);
            }
            _ => {}
        }
    }
    (String::new(), object.clone())
}

/// A failure in these words. What of `rest` has a place in a [`ToolError`] goes there; the remainder is told as it is,
/// since nobody but the tool knows what it is worth.
fn described(words: &str, mut rest: Map<String, Value>) -> ToolError {
    let code = rest.get("code").or_else(|| rest.get("type")).and_then(ToolErrorCode::deserialize_known);
    if code.is_some() {
        rest.retain(|name, value| {
            !(matches!(name.as_str(), "code" | "type") && ToolErrorCode::deserialize_known(value).is_some())
        });
    }
    let mut error = ToolError::new(code.unwrap_or(ToolErrorCode::Exception), words);
    let mut text = |name: &str| match rest.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => {
            let text = text.clone();
            rest.shift_remove(name);
            Some(text)
        }
        _ => None,
    };
    (error.field, error.hint) = (text("field"), text("hint"));
    let seconds = rest.get("retry_after").and_then(Value::as_f64).and_then(super::error::seconds);
    if seconds.is_some() || rest.get("retryable") == Some(&Value::Bool(true)) {
        error = error.retryable(seconds);
        rest.retain(|name, _| !matches!(name.as_str(), "retryable" | "retry_after"));
    }
    rest.retain(|_, value| says_something(value));
    if !rest.is_empty() {
        error.detail.push('\n');
        error.detail.push_str(&Value::Object(rest).to_string());
    }
    error
}

fn without(object: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let kept = object.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether there is anything in a value but nothing, no, zero and blanks.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(object) => object.values().any(says_something),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn told(value: Value) -> String {
        failure_of(&value, true).expect("a failure").render()
    }

    #[test]
    fn the_words_of_an_error_are_told_and_nothing_is_lost() {
        assert_eq!(told(json!({"error": "no such table"})), "Error (exception): no such table");
        assert_eq!(
            told(json!({"error": {"code": "not_found", "message": "no such page", "field": "url", "hint": "Search."}})),
            "Error (not_found), argument `url`: no such page\nSearch."
        );
        assert_eq!(
            told(json!({"error": {"code": 404, "message": "no page"}, "url": "a?b=<c>&d"})),
            "Error (exception): no page\n{\"code\":404,\"url\":\"a?b=<c>&d\"}"
        );
        assert_eq!(
            told(json!({"error": {"error": {"message": "deep"}}, "retry_after": 2})),
            "Error (exception): deep\nThe same call may succeed after 2 s."
        );
        assert_eq!(told(json!({"error": true, "message": "é"})), "Error (exception): é");
        assert_eq!(
            told(
                json!({"isError": true, "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "…"}, "b"]})
            ),
            "Error (exception): a\nb"
        );
        assert_eq!(
            told(json!({"isError": true, "structuredContent": {"why": "x"}})),
            "Error (exception): {\"why\":\"x\"}"
        );
        assert_eq!(told(json!({"isError": true})), "Error (exception): The tool failed without saying why.");
        assert_eq!(told(json!("{\"error\": \"as text\"}")), "Error (exception): as text");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let word =
            prop_oneof![Just("error"), Just("isError"), Just("content"), Just("message"), Just("code"), Just("x")];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[ a<&é\"\\\\{}]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((word.clone(), inner), 0..4)
                    .prop_map(|pairs| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        /// A value and its JSON text mean the same for a tool that declares JSON, and text never does for others.
        #[test]
        fn text_counts_only_when_it_is_declared(value in any_json()) {
            let text = Value::String(value.to_string());
            prop_assert!(!is_failure(&text, false));
            if value.is_object() {
                prop_assert_eq!(is_failure(&text, true), is_failure(&value, false));
            }
        }

        /// Every failure has words, and none of them is a form that Rust alone would print.
        #[test]
        fn a_failure_always_says_something(value in any_json()) {
            if let Some(error) = failure_of(&value, true) {
                let text = error.render();
                prop_assert!(!error.detail.trim().is_empty());
                prop_assert!(!text.contains("String(") && !text.contains("Object {") && !text.contains("Some("), "{}", text);
            }
        }
    }
}
