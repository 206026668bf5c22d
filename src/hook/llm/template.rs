//! Prompts with variables in them.

use thiserror::Error;

use super::super::event::{Event, Field};
use crate::suggest::did_you_mean;

/// The variables that a prompt may hold.
pub const VARIABLES: &[&str] = &[
    "event",
    "cwd",
    "user_input",
    "assistant_output",
    "tool_name",
    "tool_arguments",
    "tool_result",
    "tool_error",
    "model",
    "system_prompt",
    "messages",
    "session_id",
];

/// What is wrong with a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// There is no such variable.
    #[error("unknown variable {{{{{name}}}}} in the prompt; {hint}")]
    Unknown {
        /// As it stands there.
        name: String,
        /// The nearest, or all.
        hint: String,
    },
    /// Two braces that nothing closes.
    #[error("a variable in the prompt is not closed: {{{{{0}")]
    Open(String),
    /// No event of the hook has the variable.
    #[error("{event} has no {{{{{name}}}}}; it has {known}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// The event, or the first of several.
        event: Event,
        /// What stands there.
        known: String,
    },
    /// Nothing is asked.
    #[error("the prompt is empty; write what the model is asked")]
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(&'static str),
}

/// A prompt with variables such as `{{tool_arguments}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmPrompt {
    parts: Vec<Part>,
}

impl LlmPrompt {
    /// Reads a prompt.
    ///
    /// # Errors
    /// A variable that there is not, or that is not closed; an empty prompt.
    ///
    /// ```
    /// use hookwright::hook::llm::LlmPrompt;
    /// let error = LlmPrompt::parse("Is {{tool_argument}} harmless?").unwrap_err();
    /// assert_eq!(error.to_string(), "unknown variable {{tool_argument}} in the prompt; did you mean \"tool_arguments\"?");
    /// ```
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let inside = &rest[start + 2..];
            let Some(end) = inside.find("}}") else {
                return Err(TemplateError::Open(inside.chars().take(30).collect()));
            };
            let name = inside[..end].trim();
            let Some(variable) = VARIABLES.iter().find(|known| **known == name) else {
                let hint = match did_you_mean(name, VARIABLES.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("known: {}", VARIABLES.join(", ")),
                };
                return Err(TemplateError::Unknown { name: name.to_owned(), hint });
            };
            parts.push(Part::Text(rest[..start].to_owned()));
            parts.push(Part::Variable(variable));
            rest = &inside[end + 2..];
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(LlmPrompt { parts })
    }

    /// Checks that each variable can be there on one of the events.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self, events: &[Event]) -> Result<(), TemplateError> {
        let common = |name: &str| matches!(name, "event" | "cwd" | "session_id");
        let carries = |event: &Event, name: &str| {
            common(name) || Field::parse(name).is_some_and(|field| event.spec().readable.contains(&field))
        };
        for part in &self.parts {
            let Part::Variable(name) = part else { continue };
            if !events.is_empty() && !events.iter().any(|event| carries(event, name)) {
                let event = events[0];
                let known = VARIABLES.iter().copied().filter(|name| carries(&event, name)).collect::<Vec<_>>();
                return Err(TemplateError::Missing { name, event, known: known.join(", ") });
            }
        }
        Ok(())
    }

    /// The text with each variable replaced by its value, in one pass.
    pub(super) fn fill(&self, value: impl Fn(&str) -> String) -> String {
        let fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(name) => value(name),
        };
        self.parts.iter().map(fill).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_once() {
        let prompt = LlmPrompt::parse("a {{ tool_name }} b {{event}}{ {{event}}").unwrap();
        let filled = prompt.fill(|name| format!("[{name} {{{{cwd}}}}]"));
        assert_eq!(filled, "a [tool_name {{cwd}}] b [event {{cwd}}]{ [event {{cwd}}]");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| LlmPrompt::parse(text).unwrap_err().to_string();
        assert!(error("{{secret}}").starts_with("unknown variable {{secret}} in the prompt; known: event, cwd"));
        assert_eq!(error("is {{tool_name harmless?"), "a variable in the prompt is not closed: {{tool_name harmless?");
        assert!(error(" \n").contains("empty"));
        let prompt = LlmPrompt::parse("{{tool_result}}").unwrap();
        assert!(prompt.check(&[Event::TurnStart, Event::PostToolExecution]).is_ok());
        let missing = prompt.check(&[Event::TurnStart]).unwrap_err().to_string();
        assert_eq!(missing, "turn_start has no {{tool_result}}; it has event, cwd, user_input, session_id");
    }
}
