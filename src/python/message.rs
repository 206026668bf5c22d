//! Messages, tool calls and usage for Python: frozen, shared with the core.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

use super::convert::{to_json, to_python};
use crate::message::{Content, History, Message, ToolCall, Usage};

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// One message of a conversation.
#[pyclass(frozen, eq, name = "Message", module = "hookwright")]
#[derive(PartialEq)]
pub struct PyMessage(pub Arc<Message>);

impl PyMessage {
    pub fn to_json(&self) -> Value {
        // A message is made of strings, numbers and maps with text keys, which always have a JSON form.
        serde_json::to_value(self.0.as_ref()).unwrap_or(Value::Null)
    }
}

#[pymethods]
impl PyMessage {
    #[new]
    #[pyo3(signature = (role, content=None, **fields))]
    fn new(role: &str, content: Option<Bound<'_, PyAny>>, fields: Option<Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut object = match fields {
            Some(fields) => match to_json(&fields)? {
                Value::Object(object) => object,
                _ => serde_json::Map::new(),
            },
            None => serde_json::Map::new(),
        };
        object.insert("role".into(), role.into());
        object.insert("content".into(), content.map_or(Ok(Value::Null), |content| to_json(&content))?);
        serde_json::from_value(Value::Object(object)).map(|message| PyMessage(Arc::new(message))).map_err(value_error)
    }

    /// A message from the dict that `to_dict` makes; fields that this version does not know are kept.
    #[staticmethod]
    fn from_dict(fields: Bound<'_, PyDict>) -> PyResult<Self> {
        let message = serde_json::from_value(to_json(&fields)?).map_err(value_error)?;
        Ok(PyMessage(Arc::new(message)))
    }

    /// The message as ordinary data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.to_json())
    }

    /// ``"system"``, ``"user"``, ``"assistant"`` or ``"tool"``.
    #[getter]
    fn role(&self) -> &'static str {
        self.0.role.as_str()
    }

    /// The text, or a list of parts.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.0.content).map_err(value_error)?)
    }

    /// The text alone.
    #[getter]
    fn text(&self) -> String {
        self.0.text().into_owned()
    }

    /// The tools that the message asks for.
    #[getter]
    fn tool_calls(&self) -> Vec<PyToolCall> {
        self.0.tool_calls.iter().cloned().map(PyToolCall).collect()
    }

    /// On a tool message: the call that this is the result of.
    #[getter]
    fn tool_call_id(&self) -> Option<&str> {
        self.0.tool_call_id.as_deref()
    }

    /// The thinking that a model shows apart from its answer.
    #[getter]
    fn reasoning(&self) -> Option<&str> {
        self.0.reasoning.as_deref()
    }

    /// Who wrote it, if it is neither the user nor the model.
    #[getter]
    fn sender(&self) -> Option<&str> {
        self.0.sender.as_deref()
    }

    /// Whom it is addressed to.
    #[getter]
    fn recipients(&self) -> Vec<String> {
        self.0.recipients.clone()
    }

    /// On a tool message: whether the call failed, was refused or was interrupted.
    #[getter]
    fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// On a failed tool message: what to do instead.
    #[getter]
    fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The message's name inside its session.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// When it was appended, in seconds since the epoch.
    #[getter]
    fn timestamp(&self) -> Option<f64> {
        self.0.timestamp.map(|at| at.as_millis() as f64 / 1e3)
    }

    fn __repr__(&self) -> String {
        let text = super::text::cut(&self.0.text(), 100);
        let calls: Vec<_> = self.0.tool_calls.iter().map(|call| call.name.as_str()).collect();
        let calls = if calls.is_empty() { String::new() } else { format!(" calls {}", calls.join(", ")) };
        let error = if self.0.is_error { " error" } else { "" };
        format!("<{} {}{error}{calls} {:?}>", self.0.id.as_deref().unwrap_or("message"), self.0.role, text)
    }
}

/// One call of a tool, as a model asks for it.
#[pyclass(frozen, eq, name = "ToolCall", module = "hookwright")]
#[derive(PartialEq)]
pub struct PyToolCall(pub ToolCall);

#[pymethods]
impl PyToolCall {
    #[new]
    #[pyo3(signature = (name, arguments=None, *, id=String::new()))]
    fn new(name: String, arguments: Option<Bound<'_, PyAny>>, id: String) -> PyResult<Self> {
        let call = match arguments {
            None => ToolCall::new(id, name, serde_json::Map::new()),
            Some(arguments) => match to_json(&arguments)? {
                Value::Object(arguments) => ToolCall::new(id, name, arguments),
                Value::String(text) => ToolCall::from_text(id, name, text),
                _ => return Err(PyValueError::new_err("arguments must be a dict, or text as a model would send it")),
            },
        };
        Ok(PyToolCall(call))
    }

    /// The call's id; empty until the turn gives it one.
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    /// The tool's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The decoded arguments.
    ///
    /// Raises ValueError when the model's text is no JSON object.
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &Value::Object(self.0.arguments().map_err(value_error)?.clone()))
    }

    /// The exact text of the arguments.
    #[getter]
    fn arguments_json(&self) -> String {
        self.0.arguments_json().into_owned()
    }

    fn __repr__(&self) -> String {
        format!("ToolCall({:?}, {})", self.0.name, super::text::cut(&self.0.arguments_json(), 100))
    }
}

/// Tokens that requests used.
#[pyclass(frozen, eq, name = "Usage", module = "hookwright")]
#[derive(PartialEq)]
pub struct PyUsage(pub Usage);

#[pymethods]
impl PyUsage {
    #[new]
    #[pyo3(signature = (input_tokens=0, output_tokens=0, *, cached_tokens=0, cache_write_tokens=0, reasoning_tokens=0))]
    fn new(
        input_tokens: u64,
        output_tokens: u64,
        cached_tokens: u64,
        cache_write_tokens: u64,
        reasoning_tokens: u64,
    ) -> Self {
        PyUsage(Usage { input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens })
    }

    /// Tokens sent.
    #[getter]
    fn input_tokens(&self) -> u64 {
        self.0.input_tokens
    }

    /// Tokens received.
    #[getter]
    fn output_tokens(&self) -> u64 {
        self.0.output_tokens
    }

    /// Of the tokens sent, those that the server had in its cache.
    #[getter]
    fn cached_tokens(&self) -> u64 {
        self.0.cached_tokens
    }

    /// Tokens that were put into the cache.
    #[getter]
    fn cache_write_tokens(&self) -> u64 {
        self.0.cache_write_tokens
    }

    /// Of the tokens received, those spent on thinking.
    #[getter]
    fn reasoning_tokens(&self) -> u64 {
        self.0.reasoning_tokens
    }

    /// Sent and received together.
    #[getter]
    fn total_tokens(&self) -> u64 {
        self.0.total_tokens()
    }

    fn __repr__(&self) -> String {
        format!("Usage(input_tokens={}, output_tokens={})", self.0.input_tokens, self.0.output_tokens)
    }
}

/// Text or parts from Python.
pub fn content_from(object: &Bound<'_, PyAny>) -> PyResult<Content> {
    serde_json::from_value(to_json(object)?).map_err(value_error)
}

/// The messages as Python objects that share them.
pub fn to_list<'py>(py: Python<'py>, messages: impl Iterator<Item = Arc<Message>>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for message in messages {
        list.append(PyMessage(message))?;
    }
    Ok(list)
}

/// A history as Python objects that share its messages.
pub fn history_list<'py>(py: Python<'py>, history: &History) -> PyResult<Bound<'py, PyList>> {
    to_list(py, history.iter().cloned())
}
