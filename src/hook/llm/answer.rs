//! The JSON object in a model's answer.

use serde_json::{Map, Value};

use super::super::entry::Role;
use super::super::event::Event;
use super::super::result::HookResult;

/// How many places are tried at which an object could begin. Each fails early, but a hostile answer has many.
const STARTS: usize = 4096;

/// Reads what a model answered about `event` to a hook of `role`: the one JSON object in it, fenced or with words around
/// it, checked as the result of any hook is.
///
/// # Errors
/// Why it is no answer, in words for the model: no object, several that differ, keys and values that are not allowed here,
/// a gate that does not decide.
///
/// # Example
/// ```
/// use hookwright::hook::{Event, Role, llm::read_answer};
/// let answer = "Deleting is final.\n```json\n{\"action\": \"skip\", \"reason\": \"it deletes\"}\n```";
/// let object = read_answer(answer, Event::PreToolExecution, Role::Gate).unwrap();
/// assert_eq!(object["action"], "skip");
/// ```
pub fn read_answer(answer: &str, event: Event, role: Role) -> Result<Map<String, Value>, String> {
    let object = the_object(answer)?;
    let result = HookResult::from_json(object.clone())?;
    result.check(event, role)?;
    if role == Role::Gate && result.action.is_none() && result.fields.is_empty() {
        return Err("it does not decide: \"action\" is missing".to_owned());
    }
    Ok(object)
}

/// The only object in a text. Where a model quotes one and answers with another, neither is taken.
fn the_object(text: &str) -> Result<Map<String, Value>, String> {
    let mut found: Option<Map<String, Value>> = None;
    let mut position = 0;
    let mut tries = 0;
    while let Some(start) = text[position..].find('{').map(|start| position + start) {
        tries += 1;
        if tries > STARTS {
            break;
        }
        let mut objects = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Map<String, Value>>();
        match objects.next() {
            Some(Ok(object)) => {
                if found.as_ref().is_some_and(|before| *before != object) {
                    return Err("it holds several JSON objects that differ".to_owned());
                }
                found = Some(object);
                position = start + objects.byte_offset();
            }
            _ => position = start + 1,
        }
    }
    found.ok_or_else(|| "it holds no JSON object".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Result<Map<String, Value>, String> {
        read_answer(answer, Event::PreToolExecution, Role::Hook)
    }

    #[test]
    fn the_object_may_be_fenced_or_have_words_around_it() {
        for answer in [
            "{\"action\": \"skip\"}",
            "```json\n{\"action\": \"skip\"}\n```",
            "I think {it} is bad.\n{\"action\": \"skip\"}\nDone.",
            "{\"action\": \"skip\"} {\"action\": \"skip\"}",
            "<think>{</think>{\"action\": \"skip\"}",
        ] {
            assert_eq!(read(answer).unwrap()["action"], "skip", "{answer}");
        }
        assert!(read("{}").unwrap().is_empty());
    }

    #[test]
    fn anything_else_is_no_answer() {
        for (answer, complaint) in [
            ("no", "it holds no JSON object"),
            ("{\"action\": \"ski", "it holds no JSON object"),
            ("[1]", "it holds no JSON object"),
            ("{\"action\": \"allow\"}\n{\"action\": \"skip\"}", "it holds several JSON objects that differ"),
            ("{\"action\": \"skp\"}", "unknown action \"skp\"; did you mean \"skip\"?"),
            ("{\"verdict\": 1}", "unknown key \"verdict\""),
            ("{\"tool_arguments\": 3}", "tool_arguments must be an object"),
        ] {
            let error = read(answer).unwrap_err();
            assert!(error.starts_with(complaint), "{answer}: {error}");
        }
        let gate = |answer| read_answer(answer, Event::PreToolExecution, Role::Gate);
        assert!(gate("{}").unwrap_err().contains("does not decide"));
        assert!(gate("{\"tool_arguments\": {}}").unwrap_err().contains("a gate only decides"));
        assert!(gate("{\"action\": \"allow\"}").is_ok());
        assert!(read_answer("{\"action\": \"skip\"}", Event::TurnStart, Role::Hook).is_err());
    }
}
