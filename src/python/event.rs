//! The typed, frozen event classes that hooks written in Python receive.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::convert::{to_python, view};
use super::outcome::PyOutcome;
use crate::hook::{Event, EventContext, Field};

/// The common part of every event.
#[pyclass(frozen, subclass, name = "HookEvent", module = "hookwright")]
pub struct HookEvent {
    pub context: Arc<EventContext>,
}

impl HookEvent {
    fn field<'py>(&self, py: Python<'py>, field: Field) -> PyResult<Bound<'py, PyAny>> {
        match self.context.get(field) {
            Some(payload) => view(py, payload),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

#[pymethods]
impl HookEvent {
    /// The event's name, such as ``"pre_tool_execution"``.
    #[getter]
    fn event(&self) -> &'static str {
        self.context.event.as_str()
    }

    /// Unique among all processes.
    #[getter]
    fn event_id(&self) -> String {
        self.context.event_id()
    }

    /// The session, or an empty string outside one.
    #[getter]
    fn session_id(&self) -> &str {
        &self.context.scope.session_id
    }

    /// The turn, or an empty string outside one.
    #[getter]
    fn turn_id(&self) -> &str {
        &self.context.scope.turn_id
    }

    /// Who it happened to: name, kind (main, sub, teammate) and parent.
    #[getter]
    fn agent(&self) -> AgentView {
        let agent = &self.context.scope.agent;
        let kind = serde_json::to_value(agent.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        AgentView { name: agent.name.clone(), kind: kind.unwrap_or_default(), parent: agent.parent.clone() }
    }

    /// The working directory of the session.
    #[getter]
    fn cwd(&self) -> String {
        self.context.cwd().to_string_lossy().into_owned()
    }

    /// Seconds since the epoch.
    #[getter]
    fn timestamp(&self) -> f64 {
        self.context.timestamp()
    }

    /// How many times a hook has already sent this turn back.
    #[getter]
    fn continuation(&self) -> u32 {
        self.context.scope.continuation
    }

    /// What is left of the chain's budget, in milliseconds.
    #[getter]
    fn budget_ms(&self) -> u64 {
        self.context.budget_ms()
    }

    /// What hooks and gates decided; ``None`` but for observers.
    #[getter]
    fn outcome(&self) -> Option<PyOutcome> {
        self.context.outcome.as_ref().map(|outcome| PyOutcome::from_outcome(outcome.as_ref().clone()))
    }

    /// The event as ordinary dicts and lists: the document that a shell hook reads.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let document = self.context.document().map_err(pyo3::exceptions::PyValueError::new_err)?;
        to_python(py, &document.into())
    }

    /// A field by name, or ``default`` where the event does not carry it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match Field::parse(name).and_then(|field| self.context.get(field)) {
            Some(payload) => view(py, payload),
            None => default.into_bound_py_any(py),
        }
    }

    fn __getattr__(&self, name: &str) -> PyResult<Py<PyAny>> {
        let fields: Vec<_> = self.context.event.spec().readable.iter().map(|field| field.as_str()).collect();
        let hint = crate::suggest::did_you_mean(name, fields.iter().copied())
            .map(|near| format!("; did you mean {near:?}?"))
            .unwrap_or_else(|| format!("; it carries: {}", fields.join(", ")));
        Err(PyAttributeError::new_err(format!("{} has no field {name:?}{hint}", self.context.event)))
    }

    fn __repr__(&self) -> String {
        let fields = self.context.fields().iter().map(|(field, payload)| {
            let text = match payload.json() {
                Ok(value) => super::text::cut(&value.to_string(), 80),
                Err(_) => "<no JSON form>".into(),
            };
            format!("{field}={}", crate::hook::redact::redact(&text))
        });
        format!("<{} {}>", self.context.event, fields.collect::<Vec<_>>().join(" "))
    }
}

/// Who an event happened to.
#[pyclass(frozen, get_all, name = "AgentIdentity", module = "hookwright")]
pub struct AgentView {
    /// The agent's name; empty outside an agent.
    name: String,
    /// ``"main"``, ``"sub"`` or ``"teammate"``.
    kind: String,
    /// The agent that started it, or ``None``.
    parent: Option<String>,
}

#[pymethods]
impl AgentView {
    fn __repr__(&self) -> String {
        match &self.parent {
            Some(parent) => format!("<{} agent {:?} of {parent:?}>", self.kind, self.name),
            None => format!("<{} agent {:?}>", self.kind, self.name),
        }
    }
}

macro_rules! event_classes {
    ($($class:ident { $($getter:ident: $field:ident),* $(,)? })*) => {
        $(
            #[doc = concat!("The event class of `", stringify!($class), "`.")]
            #[pyclass(frozen, extends = HookEvent, module = "hookwright")]
            pub struct $class;

            #[pymethods]
            impl $class {
                $(
                    #[getter]
                    fn $getter<'py>(slf: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                        let py = slf.py();
                        slf.as_super().field(py, Field::$field)
                    }
                )*
            }
        )*

        fn instance(py: Python<'_>, context: Arc<EventContext>) -> PyResult<Bound<'_, PyAny>> {
            let event = context.event;
            let base = PyClassInitializer::from(HookEvent { context });
            match event {
                $(Event::$class => Ok(Bound::new(py, base.add_subclass($class))?.into_any()),)*
            }
        }

        /// Adds the classes to the module.
        pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            module.add_class::<HookEvent>()?;
            module.add_class::<AgentView>()?;
            $(module.add_class::<$class>()?;)*
            Ok(())
        }

        #[cfg(test)]
        const DECLARED: &[(Event, &[Field])] = &[$((Event::$class, &[$(Field::$field),*])),*];
    };
}

event_classes! {
    SessionStart { source: Source, messages: Messages }
    SessionEnd { reason: Reason, messages: Messages }
    TurnStart { user_input: UserInput }
    PreSendMessage { user_input: UserInput, messages: Messages }
    PostSendMessage { user_input: UserInput, messages: Messages }
    SystemPromptBuilt { system_prompt: SystemPrompt, user_input: UserInput }
    PreLlmRequest { messages: Messages, system_prompt: SystemPrompt, model: Model, tools: Tools }
    TextDelta { delta: Delta }
    PostLlmResponse {
        assistant_output: AssistantOutput, tool_calls: ToolCalls, messages: Messages, model: Model, usage: Usage,
    }
    LlmError { error: Error }
    PreToolBatch { tool_calls: ToolCalls }
    PostToolBatch { tool_calls: ToolCalls }
    PreToolExecution {
        tool_name: ToolName, tool_arguments: ToolArguments, tool_arguments_json: ToolArgumentsJson,
        tool_call_id: ToolCallId, tool_effect: ToolEffect,
    }
    PermissionRequest {
        tool_name: ToolName, tool_arguments: ToolArguments, reason: Reason, suggested_rule: SuggestedRule,
    }
    PermissionDecided { tool_name: ToolName, decision: Decision, by: By, rule: Rule }
    PostToolExecution {
        tool_name: ToolName, tool_arguments: ToolArguments, tool_call_id: ToolCallId, tool_result: ToolResult,
        duration_ms: DurationMs,
    }
    PostToolExecutionFailure {
        tool_name: ToolName, tool_arguments: ToolArguments, tool_call_id: ToolCallId, tool_error: ToolError,
        cause: Cause,
    }
    Stop { assistant_output: AssistantOutput, messages: Messages, system_prompt: SystemPrompt, model: Model }
    LimitReached { limit: Limit, used: Used, allowed: Allowed }
    TurnEnd { assistant_output: AssistantOutput, usage: Usage, status: Status }
    PreMicroCompact { messages: Messages, model: Model, tokens_before: TokensBefore, target_tokens: TargetTokens }
    PostMicroCompact { messages: Messages, model: Model, tokens_before: TokensBefore, tokens_after: TokensAfter }
    PreAutoCompact {
        messages: Messages, system_prompt: SystemPrompt, model: Model, tokens_before: TokensBefore,
        target_tokens: TargetTokens,
    }
    PostAutoCompact {
        messages: Messages, summary: Summary, ids_before: IdsBefore, ids_after: IdsAfter,
        tokens_before: TokensBefore, tokens_after: TokensAfter,
    }
    TeammateStart { teammate: Teammate, role: Role }
    TeammateEnd { teammate: Teammate, role: Role, reason: Reason }
    TeammateIdle { teammate: Teammate, waiting_for: WaitingFor, open_tasks: OpenTasks }
    MessageRouted { sender: Sender, recipients: Recipients, text: Text }
}

/// The argument tuple of a call: one event object for all hooks that see the same context.
pub fn arguments(py: Python<'_>, context: &Arc<EventContext>) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(py, [instance(py, context.clone())?])?.unbind())
}

/// The whole table as Python data: `{event: {"readable": [...], "writable": [...], "halting": [...], "retry": bool}}`.
#[pyfunction]
pub fn event_table(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for event in Event::ALL {
        let spec = event.spec();
        let row = PyDict::new(py);
        let names = |fields: &[Field]| fields.iter().map(|field| field.as_str()).collect::<Vec<_>>();
        row.set_item("readable", names(spec.readable))?;
        row.set_item("writable", names(spec.writable))?;
        row.set_item("halting", spec.halting.iter().map(|action| action.as_str()).collect::<Vec<_>>())?;
        row.set_item("retry", spec.retry)?;
        table.set_item(event.as_str(), row)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_have_exactly_the_readable_fields_of_the_table() {
        assert_eq!(DECLARED.len(), Event::ALL.len());
        for (event, fields) in DECLARED {
            assert_eq!(*fields, event.spec().readable, "{event}");
        }
    }
}
