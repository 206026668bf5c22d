//! The tools that are written in Rust, for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyBaseException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::Value;

use super::bridge;
use super::convert::{to_json, to_python};
use super::error::exception;
use crate::tool::{Tool, ToolContext, ToolError, ToolErrorCode, WorkspaceOptions, call, workspace_tools};

/// A tool of the workspace.
#[pyclass(frozen, name = "WorkspaceTool", module = "hookwright")]
pub struct PyWorkspaceTool(pub Arc<dyn Tool>);

/// What a call of a tool comes to.
pub type Called = Result<Value, ToolError>;

impl PyWorkspaceTool {
    pub fn start(
        &self,
        arguments: serde_json::Map<String, Value>,
        context: ToolContext,
    ) -> impl Future<Output = Called> + Send + 'static {
        let limit = self.0.spec().timeout;
        let name = self.0.spec().name.clone();
        let work = call(self.0.as_ref(), arguments, context);
        async move {
            match limit {
                None => work.await,
                Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(timed_out(&name, limit))),
            }
        }
    }
}

/// A call that took longer than its tool allows.
pub fn timed_out(name: &str, limit: Duration) -> ToolError {
    ToolError::new(
        ToolErrorCode::Timeout,
        format!("the tool {name} did not return within {} s and was given up", limit.as_secs_f64()),
    )
}

#[pymethods]
impl PyWorkspaceTool {
    /// What the model calls it by.
    #[getter]
    fn name(&self) -> &str {
        &self.0.spec().name
    }

    /// What the model reads about it.
    #[getter]
    fn description(&self) -> &str {
        &self.0.spec().description
    }

    /// The JSON Schema of its arguments.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.spec().schema)
    }

    /// What it does to the world.
    #[getter]
    fn effect(&self) -> &'static str {
        self.0.spec().effect.as_str()
    }

    /// The directory that it takes relative paths from.
    #[getter]
    fn root(&self) -> Option<PathBuf> {
        self.0.root().map(PathBuf::from)
    }

    /// Seconds after which a call is given up; `None` for no limit of its own.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.0.spec().timeout.map(|timeout| timeout.as_secs_f64())
    }

    /// Whether calls may run beside others of the same reply.
    #[getter]
    fn parallel(&self) -> bool {
        self.0.spec().parallel_safe
    }

    /// Calls the tool and waits.
    #[pyo3(signature = (**arguments))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: Option<Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = match arguments.map(|arguments| super::convert::to_json(&arguments)).transpose()? {
            Some(Value::Object(arguments)) => arguments,
            _ => serde_json::Map::new(),
        };
        let cwd = std::env::current_dir()?;
        match bridge::wait(py, self.start(arguments, ToolContext::new(cwd)))? {
            Ok(value) => to_python(py, &value),
            Err(error) => Err(to_exception(py, &error)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<tool {} ({})>", self.0.spec().name, self.0.spec().effect)
    }
}

/// A tool's error as its Python exception.
pub fn to_exception(py: Python<'_>, error: &ToolError) -> PyErr {
    let text = |text: &Option<String>| text.clone().into_pyobject(py).map(|text| text.unbind()).ok();
    let retryable = pyo3::types::PyBool::new(py, error.retryable).to_owned().into_any().unbind();
    let code = pyo3::types::PyString::new(py, error.code.as_str()).into_any().unbind();
    let mut attributes = vec![("retryable", retryable), ("code", code)];
    if let Some(field) = text(&error.field) {
        attributes.push(("field", field));
    }
    if let Some(hint) = text(&error.hint) {
        attributes.push(("hint", hint));
    }
    if let Some(wait) = error.retry_after {
        attributes.push(("retry_after", pyo3::types::PyFloat::new(py, wait.as_secs_f64()).into_any().unbind()));
    }
    exception(py, "ToolError", &error.detail, &attributes)
}

/// A tool's error from what a Python function raised or returned. How an exception reads is decided in Python.
pub fn from_exception(py: Python<'_>, error: &PyErr) -> ToolError {
    static FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let read = || -> PyResult<ToolError> {
        let fields = FIELDS.import(py, "hookwright._failures", "fields_of")?.call1((error.value(py),))?;
        serde_json::from_value(to_json(&fields)?).map_err(|error| PyValueError::new_err(error.to_string()))
    };
    read().unwrap_or_else(|_| ToolError::new(ToolErrorCode::Exception, ""))
}

/// What a Python tool returned as JSON, or the failure that it stands for.
pub fn result_of(value: &Bound<'_, PyAny>) -> Called {
    let py = value.py();
    if value.is_instance_of::<PyBaseException>() {
        return Err(from_exception(py, &PyErr::from_value(value.clone())));
    }
    if let Ok(json) = to_json(value) {
        return Ok(json);
    }
    // What has no JSON form at first sight: numbers that JSON lacks, bytes, sets. The renderer knows, or says why not.
    static RENDER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let render = || -> PyResult<Value> {
        let rendered = RENDER.import(py, "hookwright._render", "render_result")?.call1((value,))?;
        let (text, data): (String, Bound<'_, PyAny>) = rendered.extract()?;
        Ok(if data.is_none() { Value::String(text) } else { to_json(&data).unwrap_or(Value::String(text)) })
    };
    render().map_err(|error| from_exception(py, &error))
}

/// Whether what a tool returned is a failure; see `hookwright.is_failure`.
#[pyfunction]
pub fn is_failure(value: Bound<'_, PyAny>, declares_json: bool) -> bool {
    result_of(&value).map_or(true, |value| crate::tool::is_failure(&value, declares_json))
}

/// The text that a model reads of a failure, from its fields.
#[pyfunction]
pub fn render_tool_error(fields: Bound<'_, PyAny>) -> PyResult<String> {
    let error: ToolError =
        serde_json::from_value(to_json(&fields)?).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(error.render())
}

/// Every code that a `ToolError` can have.
#[pyfunction]
pub fn tool_error_codes() -> Vec<&'static str> {
    ToolErrorCode::ALL.into_iter().map(ToolErrorCode::as_str).collect()
}

/// The tools that read, search, write and run commands below `root`.
#[pyfunction]
#[pyo3(name = "workspace_tools", signature = (root=PathBuf::from("."), *, write=true, shell=true))]
pub fn py_workspace_tools(py: Python<'_>, root: PathBuf, write: bool, shell: bool) -> PyResult<Vec<PyWorkspaceTool>> {
    match workspace_tools(root, WorkspaceOptions { write, shell }) {
        Ok(tools) => Ok(tools.into_iter().map(PyWorkspaceTool).collect()),
        Err(error) => Err(to_exception(py, &error)),
    }
}
