//! The tools that are written in Rust, for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use serde_json::Value;

use super::bridge;
use super::convert::to_python;
use super::error::exception;
use crate::tool::{Tool, ToolContext, ToolError, ToolErrorCode, WorkspaceOptions, workspace_tools};

/// A tool of the workspace.
#[pyclass(frozen, name = "WorkspaceTool", module = "hookwright")]
pub struct PyWorkspaceTool(pub Arc<dyn Tool>);

/// What a call of a tool comes to.
pub type Called = Result<Value, ToolError>;

impl PyWorkspaceTool {
    pub fn start(
        &self,
        arguments: serde_json::Map<String, Value>,
        cwd: PathBuf,
    ) -> impl Future<Output = Called> + Send + 'static {
        let limit = self.0.spec().timeout;
        let name = self.0.spec().name.clone();
        let work = self.0.call(arguments, ToolContext::new(cwd));
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
        match bridge::wait(py, self.start(arguments, cwd))? {
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
    exception(py, "ToolError", &error.detail, &attributes)
}

/// A tool's error from what a Python function raised.
pub fn from_exception(py: Python<'_>, error: &PyErr) -> ToolError {
    let value = error.value(py);
    let get = |name: &str| value.getattr(name).ok().and_then(|value| value.extract::<String>().ok());
    let is_tool_error = value.getattr("retryable").is_ok() && value.getattr("detail").is_ok();
    if !is_tool_error {
        let name = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        let text = value.str().map(|text| text.to_string()).unwrap_or_default();
        let detail = if text.trim().is_empty() { name } else { format!("{name}: {text}") };
        return ToolError::new(ToolErrorCode::Exception, detail);
    }
    let code = get("code").and_then(|code| serde_json::from_value(code.into()).ok());
    let mut tool_error = ToolError::new(code.unwrap_or(ToolErrorCode::Exception), get("detail").unwrap_or_default());
    tool_error.field = get("field");
    tool_error.hint = get("hint");
    tool_error.retryable = value.getattr("retryable").and_then(|flag| flag.is_truthy()).unwrap_or(false);
    let after = value.getattr("retry_after").ok().and_then(|after| after.extract::<f64>().ok());
    tool_error.retry_after = after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    tool_error
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
