//! Requests, replies and the scripted model for Python.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::convert::{text_of, to_python};
use super::message::{PyMessage, PyToolCall, PyUsage, content_from};
use crate::message::{Message, ToolCall};
use crate::model::{FailureKind, ModelFailure, Reply, Request, Scripted, Step, StopReason};

/// What a model answers.
#[pyclass(frozen, name = "Reply", module = "hookwright")]
pub struct PyReply(pub Reply);

#[pymethods]
impl PyReply {
    #[new]
    #[pyo3(signature = (content=None, tool_calls=None, *, reasoning=None, usage=None, stop_reason=None, model=None))]
    fn new(
        content: Option<Bound<'_, PyAny>>,
        tool_calls: Option<Vec<Bound<'_, PyToolCall>>>,
        reasoning: Option<String>,
        usage: Option<Bound<'_, PyUsage>>,
        stop_reason: Option<&str>,
        model: Option<String>,
    ) -> PyResult<Self> {
        let calls: Vec<ToolCall> = tool_calls.unwrap_or_default().iter().map(|call| call.get().0.clone()).collect();
        let default = if calls.is_empty() { StopReason::Stop } else { StopReason::ToolCalls };
        let mut reply = Reply::tool_calls(calls);
        if let Some(content) = content {
            reply.content = content_from(&content)?;
        }
        reply.reasoning = reasoning;
        reply.usage = usage.map(|usage| usage.get().0).unwrap_or_default();
        reply.stop_reason = stop_reason.map_or(default, StopReason::from);
        reply.model = model;
        Ok(PyReply(reply))
    }

    /// The text.
    #[getter]
    fn text(&self) -> String {
        self.0.content.text().into_owned()
    }

    /// The tools that it asks for.
    #[getter]
    fn tool_calls(&self) -> Vec<PyToolCall> {
        self.0.tool_calls.iter().cloned().map(PyToolCall).collect()
    }

    /// Why it ended: ``"stop"``, ``"tool_calls"``, ``"length"``, ``"refusal"`` or the server's own word.
    #[getter]
    fn stop_reason(&self) -> &str {
        self.0.stop_reason.as_str()
    }

    /// The tokens it used.
    #[getter]
    fn usage(&self) -> PyUsage {
        PyUsage(self.0.usage)
    }

    fn __repr__(&self) -> String {
        let calls: Vec<_> = self.0.tool_calls.iter().map(|call| call.name.as_str()).collect();
        format!("<Reply {:?} calls [{}]>", super::text::cut(&self.0.content.text(), 100), calls.join(", "))
    }
}

/// What a model is asked.
#[pyclass(frozen, name = "Request", module = "hookwright")]
pub struct PyRequest(pub Arc<Request>);

#[pymethods]
impl PyRequest {
    /// The model's name.
    #[getter]
    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// The system prompt.
    #[getter]
    fn system(&self) -> Option<&str> {
        self.0.system.as_deref()
    }

    /// The conversation, with what hooks put in for this request at its end.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = super::message::to_list(py, self.0.all_messages().cloned())?;
        if !self.0.additional_context.is_empty() {
            let text = crate::agent::turn::context_message(&self.0.additional_context.join("\n"));
            list.append(PyMessage(Arc::new(Message::user(text).from_sender("hook"))))?;
        }
        Ok(list)
    }

    /// The tools: dicts with name, description and schema.
    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let tool = |tool: &crate::model::ToolDescription| {
            let dict = PyDict::new(py);
            dict.set_item("name", &tool.name)?;
            dict.set_item("description", &tool.description)?;
            dict.set_item("schema", to_python(py, &tool.schema)?)?;
            Ok(dict)
        };
        self.0.tools.iter().map(tool).collect()
    }

    fn __repr__(&self) -> String {
        let messages = self.0.all_messages().count();
        let model = self.0.model.as_deref().unwrap_or("no model");
        format!("<Request to {model}: {messages} messages, {} tools>", self.0.tools.len())
    }
}

/// Reads what stands for a reply: text, a call, a list of calls, a `Reply`.
pub fn reply_from(object: &Bound<'_, PyAny>) -> PyResult<Reply> {
    if let Ok(reply) = object.cast::<PyReply>() {
        return Ok(reply.get().0.clone());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Reply::text(text_of(text)?));
    }
    if let Ok(call) = object.cast::<PyToolCall>() {
        return Ok(Reply::tool_calls(vec![call.get().0.clone()]));
    }
    if let Ok(message) = object.cast::<PyMessage>() {
        let message = message.get().0.as_ref().clone();
        let mut reply = Reply::tool_calls(message.tool_calls);
        reply.content = message.content;
        reply.reasoning = message.reasoning;
        return Ok(reply);
    }
    if let Ok(calls) = object.extract::<Vec<Bound<'_, PyToolCall>>>() {
        return Ok(Reply::tool_calls(calls.iter().map(|call| call.get().0.clone()).collect()));
    }
    Err(PyTypeError::new_err(format!(
        "a model answers with text, a ToolCall, a list of ToolCall or a Reply, not {}",
        object.get_type().name()?
    )))
}

/// A failure from an exception: a `ModelError` by its kind, anything else as the function's own.
pub fn failure_from(py: Python<'_>, error: &PyErr) -> ModelFailure {
    let value = error.value(py);
    let kind = value.getattr("kind").and_then(|kind| kind.extract::<String>()).ok();
    let kind = kind.and_then(|kind| serde_json::from_value::<FailureKind>(kind.into()).ok());
    let text = value.getattr("message").and_then(|text| text.extract::<String>());
    let text = text.unwrap_or_else(|_| {
        let name = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        format!("{name}: {}", value.str().map(|text| text.to_string()).unwrap_or_default())
    });
    ModelFailure::new(kind.unwrap_or(FailureKind::Function), text)
}

/// A model that answers from a list.
#[pyclass(frozen, name = "Script", module = "hookwright._native")]
pub struct PyScript(pub Arc<Scripted>);

#[pymethods]
impl PyScript {
    /// Each step: an answer (or an exception) and the text that the question must contain, or `None`.
    #[new]
    fn new(py: Python<'_>, steps: Vec<(Bound<'_, PyAny>, Option<String>)>) -> PyResult<Self> {
        let step = |(answer, expect): &(Bound<'_, PyAny>, Option<String>)| -> PyResult<Step> {
            let mut step: Step = if answer.is_instance_of::<pyo3::exceptions::PyBaseException>() {
                failure_from(py, &PyErr::from_value(answer.clone())).into()
            } else {
                reply_from(answer)?.into()
            };
            step.expect = expect.clone();
            Ok(step)
        };
        let steps = steps.iter().map(step).collect::<PyResult<Vec<_>>>()?;
        Ok(PyScript(Arc::new(Scripted::new(steps))))
    }

    /// How many steps were used.
    #[getter]
    fn used(&self) -> usize {
        self.0.used()
    }

    /// How many are left.
    #[getter]
    fn remaining(&self) -> usize {
        self.0.remaining()
    }
}
