//! What a run came to and what happens during it, for Python.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use serde_json::{Value, json};

use super::convert::to_python;
use super::message::{PyMessage, PyUsage, to_list};
use super::outcome::PyOutcome;
use crate::agent::turn::{CallRecord, Ending, RunEvent, TurnResult};
use crate::hook::outcome::milliseconds;

/// What came of a run.
#[pyclass(frozen, name = "RunResult", module = "hookwright")]
pub struct PyRunResult {
    pub result: TurnResult,
    output: PyOnceLock<Py<PyAny>>,
}

fn call_json(call: &CallRecord) -> Value {
    json!({
        "id": call.id, "name": call.name, "arguments": call.arguments, "result": call.result,
        "is_error": call.is_error, "cause": call.cause, "ms": milliseconds(call.elapsed), "ran": call.ran,
    })
}

impl PyRunResult {
    pub fn new(result: TurnResult) -> Self {
        PyRunResult { result, output: PyOnceLock::new() }
    }

    fn reason_text(&self) -> Option<String> {
        match &self.result.ending {
            Ending::Success => None,
            Ending::Stopped { reason, .. } => Some(reason.clone()),
            Ending::Limit(reached) => Some(reached.to_string()),
            Ending::Failed(failure) => Some(failure.to_string()),
            Ending::Session(error) => Some(error.to_string()),
            Ending::Cancelled => Some("the run was cancelled".into()),
            Ending::Awaiting { calls: 1 } => Some("a call waits for a decision".into()),
            Ending::Awaiting { calls } => Some(format!("{calls} calls wait for a decision")),
        }
    }

    /// The run as data: what the notebook view and records are made from.
    fn summary(&self) -> Value {
        let steps = self.result.messages.iter().map(|message| {
            json!({
                "kind": "message", "role": message.role.as_str(), "text": message.text(),
                "calls": message.tool_calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(),
                "is_error": message.is_error,
            })
        });
        json!({
            "status": self.result.ending.status(),
            "reason": self.reason_text(),
            "text": self.result.text,
            "turn_id": self.result.turn_id,
            "rounds": self.result.rounds,
            "usage": self.result.usage,
            "cost": self.result.cost,
            "ms": milliseconds(self.result.elapsed),
            "messages": steps.collect::<Vec<_>>(),
            "tool_calls": self.result.calls.iter().map(call_json).collect::<Vec<_>>(),
            "trace": self.result.trace.iter().map(|outcome| {
                let mut summary = outcome.summary();
                if let Some(map) = summary.as_object_mut() {
                    map.shift_insert(0, "event".into(), outcome.event().as_str().into());
                }
                summary
            }).collect::<Vec<_>>(),
        })
    }
}

#[pymethods]
impl PyRunResult {
    /// ``"success"``, ``"stopped"``, ``"limit"``, ``"error"`` or ``"cancelled"``.
    #[getter]
    fn status(&self) -> &'static str {
        self.result.ending.status()
    }

    /// Why it did not end with success.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.reason_text()
    }

    /// The hook that stopped it.
    #[getter]
    fn stopped_by(&self) -> Option<&str> {
        match &self.result.ending {
            Ending::Stopped { by, .. } => by.as_deref(),
            _ => None,
        }
    }

    /// Which limit was reached: ``"rounds"``, ``"calls"``, ``"repeated_call"``, ``"hook_loop"``, …
    #[getter]
    fn limit(&self) -> Option<&'static str> {
        match &self.result.ending {
            Ending::Limit(reached) => Some(reached.limit.as_str()),
            _ => None,
        }
    }

    /// The kind of the model's failure, or ``"session"``.
    #[getter]
    fn error_kind(&self) -> Option<&'static str> {
        match &self.result.ending {
            Ending::Failed(failure) => Some(failure.kind.as_str()),
            Ending::Session(error) => Some(if error.is_busy() { "session_busy" } else { "session" }),
            _ => None,
        }
    }

    /// The model's last words.
    #[getter]
    fn text(&self) -> &str {
        &self.result.text
    }

    /// The turn's id within its session.
    #[getter]
    fn turn_id(&self) -> &str {
        &self.result.turn_id
    }

    /// The messages that this run added.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        to_list(py, self.result.messages.iter().cloned())
    }

    /// The tokens that were used.
    #[getter]
    fn usage(&self) -> PyUsage {
        PyUsage(self.result.usage)
    }

    /// How many requests were made to the model.
    #[getter]
    fn rounds(&self) -> u32 {
        self.result.rounds
    }

    /// How often requests that had failed were made again.
    #[getter]
    fn retries(&self) -> u32 {
        self.result.retries
    }

    /// The model's failure as data: kind, status, message, attempts; ``None`` if that is not how it ended.
    #[getter]
    fn failure<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Ending::Failed(failure) = &self.result.ending else { return Ok(None) };
        let value = serde_json::to_value(failure).unwrap_or_default();
        to_python(py, &value).map(Some)
    }

    /// What had come in of a reply that ended early.
    #[getter]
    fn partial(&self) -> Option<super::model::PyReply> {
        let Ending::Failed(failure) = &self.result.ending else { return None };
        failure.partial.as_ref().map(|reply| super::model::PyReply(reply.as_ref().clone()))
    }

    /// What the tokens cost, in the unit of the agent's prices.
    #[getter]
    fn cost(&self) -> f64 {
        self.result.cost
    }

    /// The answer as a value of the agent's output type; ``None`` without one, or if there is no answer.
    #[getter]
    fn output(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.output.get(py).map(|output| output.clone_ref(py))
    }

    fn _set_output(&self, py: Python<'_>, output: Py<PyAny>) {
        let _ = self.output.set(py, output);
    }

    /// The tool calls in order: what they were called with, what the model was told, why they failed.
    #[getter]
    fn tool_calls(&self) -> Vec<PyToolRun> {
        self.result.calls.iter().cloned().map(PyToolRun).collect()
    }

    /// Every event to which somebody listened, with its outcome.
    #[getter]
    fn trace(&self) -> Vec<PyOutcome> {
        self.result.trace.iter().map(|outcome| PyOutcome::from_outcome(outcome.as_ref().clone())).collect()
    }

    /// What hooks had to say to the user: ``(hook, text)`` pairs in order.
    #[getter]
    fn notices(&self) -> Vec<(String, String)> {
        let notices = self.result.trace.iter().flat_map(|outcome| &outcome.system_messages);
        notices.map(|notice| (notice.hook.to_string(), notice.text.clone())).collect()
    }

    /// How long it took, in milliseconds.
    #[getter]
    fn ms(&self) -> f64 {
        milliseconds(self.result.elapsed)
    }

    /// The run as ordinary data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.summary())
    }

    fn __repr__(&self) -> String {
        let reason =
            self.reason_text().map(|reason| format!(": {}", super::text::cut(&reason, 120))).unwrap_or_default();
        format!(
            "<RunResult {}{reason}; {:?}; {} rounds, {} tool calls, {:.1} ms>",
            self.result.ending.status(),
            super::text::cut(&self.result.text, 100),
            self.result.rounds,
            self.result.calls.len(),
            milliseconds(self.result.elapsed)
        )
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("hookwright._timeline")?.call_method1("run_html", (slf,))
    }
}

/// One tool call of a run.
#[pyclass(frozen, name = "ToolRun", module = "hookwright")]
pub struct PyToolRun(CallRecord);

#[pymethods]
impl PyToolRun {
    /// The call's id.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The tool's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The final arguments.
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &Value::Object(self.0.arguments.clone()))
    }

    /// What the model was told.
    #[getter]
    fn result(&self) -> &str {
        &self.0.result
    }

    /// Whether it failed, was refused or was not run.
    #[getter]
    fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// Why it failed: ``"exception"``, ``"error_result"``, ``"timeout"``, ``"invalid_arguments"``,
    /// ``"unknown_tool"``, ``"denied"``, ``"cancelled"`` or ``"not_run"``.
    #[getter]
    fn cause(&self) -> Option<&'static str> {
        self.0.cause
    }

    /// How long the tool took, in milliseconds.
    #[getter]
    fn ms(&self) -> f64 {
        milliseconds(self.0.elapsed)
    }

    /// Whether the tool was entered at all.
    #[getter]
    fn ran(&self) -> bool {
        self.0.ran
    }

    fn __repr__(&self) -> String {
        let cause = self.0.cause.map(|cause| format!(" {cause}")).unwrap_or_default();
        format!("<ToolRun {}{cause} {:?}>", self.0.name, super::text::cut(&self.0.result, 80))
    }
}

/// Something that happened during a run.
#[pyclass(frozen, name = "RunEvent", module = "hookwright")]
pub struct PyRunEvent(pub RunEvent);

impl PyRunEvent {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        match &self.0 {
            RunEvent::TurnStarted { turn_id } => dict.set_item("turn_id", turn_id)?,
            RunEvent::Text { delta } => dict.set_item("delta", delta)?,
            RunEvent::Reasoning { delta } => dict.set_item("delta", delta)?,
            RunEvent::CallDelta { index, name, delta } => {
                dict.set_item("index", index)?;
                dict.set_item("name", name)?;
                dict.set_item("delta", delta)?;
            }
            RunEvent::Retry { attempt, of, failure, wait } => {
                dict.set_item("attempt", attempt)?;
                dict.set_item("of", of)?;
                dict.set_item("error", failure.to_string())?;
                dict.set_item("seconds", wait.as_secs_f64())?;
            }
            RunEvent::Fitted { left_out, shortened, summarised } => {
                dict.set_item("left_out", left_out)?;
                dict.set_item("shortened", shortened)?;
                dict.set_item("summarised", summarised)?;
            }
            RunEvent::Message(message) => dict.set_item("message", PyMessage(message.clone()))?,
            RunEvent::ToolStarted { id, name, arguments } => {
                dict.set_item("id", id)?;
                dict.set_item("name", name)?;
                dict.set_item("arguments", to_python(py, &Value::Object(arguments.clone()))?)?;
            }
            RunEvent::ToolFinished(call) => dict.set_item("call", PyToolRun(call.clone()))?,
            RunEvent::Notice { hook, text } => {
                dict.set_item("hook", hook.as_ref())?;
                dict.set_item("text", text)?;
            }
            RunEvent::Hooks(outcome) => {
                dict.set_item("outcome", PyOutcome::from_outcome(outcome.as_ref().clone()))?;
            }
        }
        Ok(dict)
    }
}

#[pymethods]
impl PyRunEvent {
    /// ``"turn_started"``, ``"text"``, ``"reasoning"``, ``"call_delta"``, ``"retry"``, ``"fitted"``, ``"message"``, ``"tool_started"``, ``"tool_finished"``, ``"notice"`` or ``"hooks"``.
    #[getter]
    fn r#type(&self) -> &'static str {
        match &self.0 {
            RunEvent::TurnStarted { .. } => "turn_started",
            RunEvent::Text { .. } => "text",
            RunEvent::Reasoning { .. } => "reasoning",
            RunEvent::CallDelta { .. } => "call_delta",
            RunEvent::Retry { .. } => "retry",
            RunEvent::Fitted { .. } => "fitted",
            RunEvent::Message(_) => "message",
            RunEvent::ToolStarted { .. } => "tool_started",
            RunEvent::ToolFinished(_) => "tool_finished",
            RunEvent::Notice { .. } => "notice",
            RunEvent::Hooks(_) => "hooks",
        }
    }

    /// What it carries, as a dict.
    fn _fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.fields(py)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let fields = self.fields(py)?;
        fields.get_item(name)?.ok_or_else(|| {
            PyAttributeError::new_err(format!("a {} event has {}, not {name:?}", self.r#type(), fields.keys()))
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<RunEvent {} {}>", self.r#type(), super::text::cut(&self.fields(py)?.repr()?.to_string(), 160)))
    }
}
