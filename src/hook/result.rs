//! What a hook answers, and whether its event and role allow that answer.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::entry::Role;
use super::event::{Action, Event, Field};
use crate::message::Message;
use crate::suggest::did_you_mean;

/// What a hook wants changed or decided. Built from a JSON object with [`HookResult::from_json`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookResult {
    /// Stop, skip, ask, allow or warn.
    pub action: Option<Action>,
    /// Why; shown to the model or the user.
    pub reason: Option<String>,
    /// The permission rule by which it was decided.
    pub rule: Option<String>,
    /// With `ask`: the rule that would let such calls through from now on, if the person says so.
    pub suggested_rule: Option<String>,
    /// New values of fields, in the order in which they were given.
    pub fields: Vec<(Field, Value)>,
    /// Text that sends the turn back to the model.
    pub retry_feedback: Option<String>,
    /// Text that the model sees in addition.
    pub additional_context: Option<String>,
    /// Text that the user sees and the model does not.
    pub system_message: Option<String>,
    /// Messages that are added to this request only.
    pub inject_messages: Vec<Value>,
}

/// The keys that are no event field.
const RESULT_KEYS: &[&str] = &[
    "action",
    "reason",
    "abort",
    "rule",
    "suggested_rule",
    "retry_feedback",
    "additional_context",
    "system_message",
    "inject_messages",
];

/// The fields that are handled by name in [`HookResult`] and not as replaced values.
const ACCUMULATED: &[Field] = &[Field::AdditionalContext, Field::InjectMessages, Field::RetryFeedback];

fn writable_anywhere(field: Field) -> bool {
    Event::ALL.iter().any(|event| event.spec().writable.contains(&field))
}

fn text_of(key: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("{key} must be a string, not {}", kind_of(&other))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Checks that a list holds messages that a model could be sent.
fn check_messages(key: &str, list: &Value) -> Result<(), String> {
    for (index, message) in list.as_array().into_iter().flatten().enumerate() {
        if let Err(error) = Message::deserialize(message) {
            return Err(format!("{key}[{index}] is not a message: {error}"));
        }
    }
    Ok(())
}

/// Checks that a new value has the type that its field holds.
fn check_type(field: Field, value: &Value) -> Result<(), String> {
    let fits = match field {
        Field::ToolArguments => value.is_object(),
        Field::Messages => value.as_array().is_some_and(|list| list.iter().all(Value::is_object)),
        Field::Tools | Field::Recipients => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        Field::UserInput | Field::SystemPrompt | Field::AssistantOutput | Field::Text => value.is_string(),
        Field::Decision => matches!(value.as_str(), Some("allow" | "deny")),
        _ => true,
    };
    let wanted = match field {
        Field::ToolArguments => "an object",
        Field::Messages => "a list of message objects",
        Field::Tools | Field::Recipients => "a list of names",
        Field::Decision => "\"allow\" or \"deny\"",
        _ => "a string",
    };
    if field == Field::Decision && !fits {
        return Err(format!("decision must be {wanted}, not {value}; to refuse a call, return action \"skip\""));
    }
    if !fits {
        return Err(format!("{field} must be {wanted}, not {}", kind_of(value)));
    }
    if field == Field::Messages { check_messages("messages", value) } else { Ok(()) }
}

impl HookResult {
    /// A result that only decides.
    pub fn decide(action: Action, reason: impl Into<String>) -> Self {
        HookResult { action: Some(action), reason: Some(reason.into()), ..HookResult::default() }
    }

    /// Whether the result says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == HookResult::default()
    }

    /// Reads a result from the JSON object that a hook returned. `null` values of text keys count as absent.
    ///
    /// # Errors
    /// An unknown key (with the nearest known one), an unknown action, or a value of the wrong type.
    ///
    /// ```
    /// use hookwright::hook::HookResult;
    /// let object = serde_json::json!({"actoin": "skip"});
    /// let error = HookResult::from_json(object.as_object().unwrap().clone()).unwrap_err();
    /// assert_eq!(error, "unknown key \"actoin\"; did you mean \"action\"?");
    /// ```
    pub fn from_json(object: Map<String, Value>) -> Result<Self, String> {
        let mut result = HookResult::default();
        let mut abort = false;
        for (key, value) in object {
            match key.as_str() {
                "action" if value.is_null() => {}
                "action" => {
                    let name = text_of("action", value)?;
                    result.action = Some(Action::parse(&name).ok_or_else(|| unknown("action", &name, ACTION_NAMES))?);
                }
                "abort" => {
                    abort =
                        value.as_bool().ok_or_else(|| format!("abort must be a boolean, not {}", kind_of(&value)))?;
                }
                "reason" | "rule" | "suggested_rule" | "retry_feedback" | "additional_context" | "system_message" => {
                    let slot = match key.as_str() {
                        "reason" => &mut result.reason,
                        "rule" => &mut result.rule,
                        "suggested_rule" => &mut result.suggested_rule,
                        "retry_feedback" => &mut result.retry_feedback,
                        "additional_context" => &mut result.additional_context,
                        _ => &mut result.system_message,
                    };
                    *slot = if value.is_null() { None } else { Some(text_of(&key, value)?) };
                }
                "inject_messages" => match value {
                    Value::Null => {}
                    Value::Array(list) if list.iter().all(Value::is_object) => {
                        let list = Value::Array(list);
                        check_messages("inject_messages", &list)?;
                        if let Value::Array(list) = list {
                            result.inject_messages = list;
                        }
                    }
                    other => {
                        return Err(format!(
                            "inject_messages must be a list of message objects, not {}",
                            kind_of(&other)
                        ));
                    }
                },
                other => {
                    let field = Field::parse(other).filter(|field| writable_anywhere(*field)).ok_or_else(|| {
                        let fields = Field::ALL.iter().filter(|f| writable_anywhere(**f)).map(|f| f.as_str());
                        match did_you_mean(other, RESULT_KEYS.iter().copied().chain(fields)) {
                            Some(near) => format!("unknown key {other:?}; did you mean {near:?}?"),
                            None => format!("unknown key {other:?}; known keys: {}", RESULT_KEYS.join(", ")),
                        }
                    })?;
                    check_type(field, &value)?;
                    result.fields.push((field, value));
                }
            }
        }
        if abort {
            match result.action {
                None | Some(Action::Stop) => result.action = Some(Action::Stop),
                Some(other) => return Err(format!("abort: true contradicts action {:?}", other.as_str())),
            }
        }
        let explained =
            [("reason", &result.reason), ("rule", &result.rule), ("suggested_rule", &result.suggested_rule)];
        if result.action.is_none()
            && let Some((key, _)) = explained.iter().find(|(_, text)| text.is_some())
        {
            return Err(format!("{key} without an action; add one of stop, skip, ask, allow, warn"));
        }
        Ok(result)
    }

    /// Checks the result against what `event` allows and what a hook of `role` may do there.
    ///
    /// # Errors
    /// The first thing that is not allowed, with what would be.
    pub fn check(&self, event: Event, role: Role) -> Result<(), String> {
        let spec = event.spec();
        if role == Role::Observer {
            return if self.is_empty() {
                Ok(())
            } else {
                Err("an observer cannot change or halt anything; use role \"hook\" or \"gate\"".into())
            };
        }
        if let Some(action) = self.action
            && !spec.allows(action)
        {
            let open = spec.halting.iter().map(|action| action.as_str()).collect::<Vec<_>>();
            return Err(if open.is_empty() {
                format!("{event} does not allow {action}: nothing can be halted there")
            } else {
                format!("{event} does not allow {action}; allowed: {}", open.join(", "))
            });
        }
        if self.retry_feedback.is_some() && !spec.retry {
            return Err(format!(
                "{event} does not take retry_feedback; events that do: stop, post_llm_response, teammate_idle"
            ));
        }
        if self.system_message.is_some() && spec.notify_only() {
            return Err(format!("{event} only notifies: system_message is not taken there"));
        }
        let mut written: Vec<Field> = self.fields.iter().map(|(field, _)| *field).collect();
        if self.additional_context.is_some() {
            written.push(Field::AdditionalContext);
        }
        if !self.inject_messages.is_empty() {
            written.push(Field::InjectMessages);
        }
        if role == Role::Gate
            && let Some(field) = written.iter().find(|field| **field != Field::Decision)
        {
            return Err(format!("a gate only decides: it cannot set {field}; use role \"hook\" to change fields"));
        }
        match written.iter().find(|field| !spec.writable.contains(field)) {
            None => Ok(()),
            Some(field) => {
                let open = spec.writable.iter().map(|field| field.as_str()).collect::<Vec<_>>();
                Err(if open.is_empty() {
                    format!("{event} does not let a hook write {field}: nothing can be written there")
                } else {
                    format!("{event} does not let a hook write {field}; writable: {}", open.join(", "))
                })
            }
        }
    }
}

const ACTION_NAMES: &[&str] = &["stop", "skip", "ask", "allow", "warn"];

fn unknown(what: &str, name: &str, known: &[&'static str]) -> String {
    match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("unknown {what} {name:?}; did you mean {near:?}?"),
        None if matches!(name, "deny" | "block" | "refuse") => format!(
            "unknown {what} {name:?}; known: {} (to refuse: \"skip\" where the event allows it, else \"stop\")",
            known.join(", ")
        ),
        None => format!("unknown {what} {name:?}; known: {}", known.join(", ")),
    }
}

/// Whether `field` accumulates over the hooks of a chain instead of being replaced.
pub fn accumulates(field: Field) -> bool {
    ACCUMULATED.contains(&field)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<HookResult, String> {
        HookResult::from_json(value.as_object().unwrap().clone())
    }

    #[test]
    fn abort_is_another_word_for_stop() {
        assert_eq!(read(json!({"abort": true})).unwrap().action, Some(Action::Stop));
        assert_eq!(read(json!({"abort": false})).unwrap().action, None);
        assert!(read(json!({"abort": true, "action": "skip"})).is_err());
    }

    #[test]
    fn mistakes_are_named_with_a_suggestion() {
        for (value, message) in [
            (json!({"tool_argument": {}}), "unknown key \"tool_argument\"; did you mean \"tool_arguments\"?"),
            (json!({"action": "halt"}), "unknown action \"halt\"; known: stop, skip, ask, allow, warn"),
            (json!({"action": "skp"}), "unknown action \"skp\"; did you mean \"skip\"?"),
            (json!({"tool_arguments": "ls"}), "tool_arguments must be an object, not a string"),
            (json!({"reason": "x"}), "reason without an action; add one of stop, skip, ask, allow, warn"),
            (json!({"system_message": 3}), "system_message must be a string, not a number"),
            (
                json!({"decision": "block"}),
                "decision must be \"allow\" or \"deny\", not \"block\"; to refuse a call, return action \"skip\"",
            ),
            (
                json!({"action": "deny"}),
                "unknown action \"deny\"; known: stop, skip, ask, allow, warn (to refuse: \"skip\" where the event allows it, else \"stop\")",
            ),
        ] {
            assert_eq!(read(value).unwrap_err(), message);
        }
        assert!(read(json!({"tool_name": "x"})).unwrap_err().starts_with("unknown key"));
    }

    #[test]
    fn every_event_takes_exactly_the_fields_of_its_row() {
        let mut pairs = 0;
        for event in Event::ALL {
            for field in Field::ALL {
                if !writable_anywhere(*field) || accumulates(*field) {
                    continue;
                }
                let result = HookResult { fields: vec![(*field, Value::Null)], ..HookResult::default() };
                let open = event.spec().writable.contains(field);
                assert_eq!(result.check(*event, Role::Hook).is_ok(), open, "{event} {field}");
                assert!(result.check(*event, Role::Observer).is_err());
                assert_eq!(result.check(*event, Role::Gate).is_ok(), open && *field == Field::Decision);
                pairs += 1;
            }
        }
        assert!(pairs > 300, "{pairs}");
    }

    #[test]
    fn a_gate_may_decide_and_nothing_else() {
        let skip = HookResult::decide(Action::Skip, "no");
        assert!(skip.check(Event::PreToolExecution, Role::Gate).is_ok());
        assert_eq!(
            skip.check(Event::PreLlmRequest, Role::Gate).unwrap_err(),
            "pre_llm_request does not allow skip; allowed: stop"
        );
        let rewrite = HookResult { fields: vec![(Field::ToolArguments, json!({}))], ..HookResult::default() };
        assert!(rewrite.check(Event::PreToolExecution, Role::Gate).unwrap_err().contains("a gate only decides"));
    }
}
