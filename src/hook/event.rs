//! The events of an agent's life and, as data, what a hook may read, write and halt on each.
//!
//! [`Event::spec`] is the single table that the dispatcher, the configuration loader, the command line and the
//! Python classes are built from; nothing else knows which event allows what.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::suggest::did_you_mean;

macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $wire:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vmeta])* #[doc = concat!("`", $wire, "`")] $variant,)* }

        impl $name {
            /// Every value, in the order of the specification's table.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The name on the wire, in configuration files and in Python.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $wire,)* }
            }

            /// Looks a wire name up; `None` if there is no such name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($wire => Some($name::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
    };
}

wire_enum! {
    /// A point in an agent's life at which hooks run.
    Event {
        SessionStart = "session_start",
        SessionEnd = "session_end",
        TurnStart = "turn_start",
        PreSendMessage = "pre_send_message",
        PostSendMessage = "post_send_message",
        SystemPromptBuilt = "system_prompt_built",
        PreLlmRequest = "pre_llm_request",
        TextDelta = "text_delta",
        PostLlmResponse = "post_llm_response",
        LlmError = "llm_error",
        PreToolBatch = "pre_tool_batch",
        PostToolBatch = "post_tool_batch",
        PreToolExecution = "pre_tool_execution",
        PermissionRequest = "permission_request",
        PermissionDecided = "permission_decided",
        PostToolExecution = "post_tool_execution",
        PostToolExecutionFailure = "post_tool_execution_failure",
        Stop = "stop",
        LimitReached = "limit_reached",
        TurnEnd = "turn_end",
        PreMicroCompact = "pre_micro_compact",
        PostMicroCompact = "post_micro_compact",
        PreAutoCompact = "pre_auto_compact",
        PostAutoCompact = "post_auto_compact",
        TeammateStart = "teammate_start",
        TeammateEnd = "teammate_end",
        TeammateIdle = "teammate_idle",
        MessageRouted = "message_routed",
    }
}

wire_enum! {
    /// A named value that an event carries or that a hook may add to it.
    Field {
        Source = "source",
        Reason = "reason",
        Messages = "messages",
        UserInput = "user_input",
        AdditionalContext = "additional_context",
        SystemPrompt = "system_prompt",
        Model = "model",
        Tools = "tools",
        InjectMessages = "inject_messages",
        Delta = "delta",
        AssistantOutput = "assistant_output",
        ToolCalls = "tool_calls",
        Usage = "usage",
        Error = "error",
        ToolName = "tool_name",
        ToolArguments = "tool_arguments",
        ToolArgumentsJson = "tool_arguments_json",
        ToolCallId = "tool_call_id",
        ToolEffect = "tool_effect",
        ToolResult = "tool_result",
        SuggestedRule = "suggested_rule",
        Decision = "decision",
        By = "by",
        Rule = "rule",
        DurationMs = "duration_ms",
        ToolError = "tool_error",
        Cause = "cause",
        RetryFeedback = "retry_feedback",
        Limit = "limit",
        Used = "used",
        Allowed = "allowed",
        Status = "status",
        TokensBefore = "tokens_before",
        TokensAfter = "tokens_after",
        TargetTokens = "target_tokens",
        Summary = "summary",
        IdsBefore = "ids_before",
        IdsAfter = "ids_after",
        Teammate = "teammate",
        Role = "role",
        WaitingFor = "waiting_for",
        OpenTasks = "open_tasks",
        Sender = "sender",
        Recipients = "recipients",
        Text = "text",
    }
}

wire_enum! {
    /// What a hook can decide about the step that its event stands for.
    Action {
        Stop = "stop",
        Skip = "skip",
        Ask = "ask",
        Allow = "allow",
        Warn = "warn",
    }
}

/// What one event allows: one row of the table in the specification.
#[derive(Debug, Clone, Copy)]
pub struct EventSpec {
    /// The fields that the event carries besides the common ones.
    pub readable: &'static [Field],
    /// The fields that a hook of role `hook` may return.
    pub writable: &'static [Field],
    /// The halting actions that a hook or gate may return. `Warn` and `Allow` are not halting.
    pub halting: &'static [Action],
    /// Whether `retry_feedback` may be returned: it sends the turn back to the model.
    pub retry: bool,
}

impl EventSpec {
    /// A notify-only event: nothing can be changed, halted or said to the user.
    pub const fn notify_only(&self) -> bool {
        self.writable.is_empty() && self.halting.is_empty()
    }

    /// Whether `action` may be returned here. `allow` and `warn` are open wherever something can be halted.
    pub fn allows(&self, action: Action) -> bool {
        match action {
            Action::Allow | Action::Warn => !self.halting.is_empty(),
            halting => self.halting.contains(&halting),
        }
    }

    /// The action that stands for "refused" here: skip where the event allows it, else stop, else nothing.
    pub fn denial(&self) -> Option<Action> {
        [Action::Skip, Action::Stop].into_iter().find(|action| self.halting.contains(action))
    }
}

const fn spec(
    readable: &'static [Field],
    writable: &'static [Field],
    halting: &'static [Action],
    retry: bool,
) -> EventSpec {
    EventSpec { readable, writable, halting, retry }
}

impl Event {
    /// The row of the table for this event.
    pub const fn spec(self) -> EventSpec {
        use Action::{Ask, Skip, Stop};
        use Field::*;
        match self {
            Event::SessionStart => spec(&[Source, Messages], &[], &[], false),
            Event::SessionEnd => spec(&[Reason, Messages], &[], &[], false),
            Event::TurnStart => spec(&[UserInput], &[], &[], false),
            Event::PreSendMessage => spec(&[UserInput, Messages], &[UserInput, AdditionalContext], &[Stop], false),
            Event::PostSendMessage => spec(&[UserInput, Messages], &[], &[], false),
            Event::SystemPromptBuilt => {
                spec(&[SystemPrompt, UserInput], &[SystemPrompt, AdditionalContext], &[], false)
            }
            Event::PreLlmRequest => spec(
                &[Messages, SystemPrompt, Model, Tools],
                &[Messages, SystemPrompt, InjectMessages, AdditionalContext, Tools],
                &[Stop],
                false,
            ),
            Event::TextDelta => spec(&[Delta], &[], &[], false),
            Event::PostLlmResponse => {
                spec(&[AssistantOutput, ToolCalls, Messages, Model, Usage], &[AssistantOutput], &[Stop], true)
            }
            Event::LlmError => spec(&[Error], &[AdditionalContext], &[Stop], false),
            Event::PreToolBatch => spec(&[ToolCalls], &[], &[Stop], false),
            Event::PostToolBatch => spec(&[ToolCalls], &[AdditionalContext], &[Stop], false),
            Event::PreToolExecution => spec(
                &[ToolName, ToolArguments, ToolArgumentsJson, ToolCallId, ToolEffect],
                &[ToolArguments, ToolResult],
                &[Skip, Stop, Ask],
                false,
            ),
            Event::PermissionRequest => spec(
                &[ToolName, ToolArguments, Reason, SuggestedRule],
                &[Decision, ToolArguments],
                &[Skip, Stop],
                false,
            ),
            Event::PermissionDecided => spec(&[ToolName, Decision, By, Rule], &[], &[], false),
            Event::PostToolExecution => spec(
                &[ToolName, ToolArguments, ToolCallId, ToolResult, DurationMs],
                &[ToolResult, AdditionalContext],
                &[Stop],
                false,
            ),
            Event::PostToolExecutionFailure => spec(
                &[ToolName, ToolArguments, ToolCallId, ToolError, Cause],
                &[ToolError, AdditionalContext],
                &[Stop],
                false,
            ),
            Event::Stop => spec(&[AssistantOutput, Messages, SystemPrompt, Model], &[AdditionalContext], &[Stop], true),
            Event::LimitReached => spec(&[Limit, Used, Allowed], &[AdditionalContext], &[Stop], false),
            Event::TurnEnd => spec(&[AssistantOutput, Usage, Status], &[], &[], false),
            Event::PreMicroCompact => spec(&[Messages, Model, TokensBefore, TargetTokens], &[], &[Skip], false),
            Event::PostMicroCompact => spec(&[Messages, Model, TokensBefore, TokensAfter], &[Messages], &[], false),
            Event::PreAutoCompact => {
                spec(&[Messages, SystemPrompt, Model, TokensBefore, TargetTokens], &[AdditionalContext], &[Skip], false)
            }
            Event::PostAutoCompact => {
                spec(&[Messages, Summary, IdsBefore, IdsAfter, TokensBefore, TokensAfter], &[Messages], &[], false)
            }
            Event::TeammateStart => spec(&[Teammate, Role], &[], &[], false),
            Event::TeammateEnd => spec(&[Teammate, Role, Reason], &[], &[], false),
            Event::TeammateIdle => spec(&[Teammate, WaitingFor, OpenTasks], &[], &[Stop], true),
            Event::MessageRouted => spec(&[Sender, Recipients, Text], &[Text, Recipients], &[Skip], false),
        }
    }
}

/// An event name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event {name:?}{}", .suggestion.map(|s| format!("; did you mean {s:?}?")).unwrap_or_default())]
pub struct UnknownEvent {
    /// What was asked for.
    pub name: String,
    /// The nearest real name.
    pub suggestion: Option<&'static str>,
}

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(name: &str) -> Result<Self, UnknownEvent> {
        Event::parse(name).ok_or_else(|| UnknownEvent {
            name: name.to_owned(),
            suggestion: did_you_mean(name, Event::ALL.iter().map(|event| event.as_str())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_round_trips_by_its_wire_name() {
        assert_eq!(Event::ALL.len(), 28);
        for event in Event::ALL {
            assert_eq!(event.as_str().parse::<Event>(), Ok(*event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
    }

    #[test]
    fn an_unknown_event_names_the_nearest_one() {
        let error = "pre_tool_exection".parse::<Event>().unwrap_err();
        assert_eq!(error.suggestion, Some("pre_tool_execution"));
        assert_eq!(error.to_string(), "unknown event \"pre_tool_exection\"; did you mean \"pre_tool_execution\"?");
    }

    #[test]
    fn denial_prefers_skip_then_stop() {
        assert_eq!(Event::PreToolExecution.spec().denial(), Some(Action::Skip));
        assert_eq!(Event::PreLlmRequest.spec().denial(), Some(Action::Stop));
        assert_eq!(Event::TurnEnd.spec().denial(), None);
    }
}
