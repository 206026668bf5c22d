//! Sessions for Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

use super::convert::to_python;
use super::error::exception;
use super::message::{PyMessage, history_list};
use crate::agent::transcript::Awaited;
use crate::agent::{Clock, FixedClock, Session, SessionError, SessionOptions};
use crate::message::Timestamp;

/// A conversation and where it is kept.
#[pyclass(frozen, weakref, name = "Session", module = "hookwright")]
pub struct PySession(pub Arc<Session>);

/// The exception for a session's error: `SessionBusy` where somebody else uses it.
pub fn session_error(py: Python<'_>, error: &SessionError) -> PyErr {
    exception(py, if error.is_busy() { "SessionBusy" } else { "SessionError" }, &error.to_string(), &[])
}

#[pymethods]
impl PySession {
    /// Opens the session at `path`, or makes it; without a path it lives in memory.
    ///
    /// `clock`: seconds since the epoch at which this session's time stands still, for tests.
    #[new]
    #[pyo3(signature = (path=None, *, id=None, agent=None, cwd=None, recover=false, clock=None))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        id: Option<String>,
        agent: Option<String>,
        cwd: Option<PathBuf>,
        recover: bool,
        clock: Option<f64>,
    ) -> PyResult<Self> {
        let clock = clock.map(|seconds| {
            Arc::new(FixedClock(Timestamp::from_millis((seconds * 1e3).round() as i64))) as Arc<dyn Clock>
        });
        let options = SessionOptions { id, agent, cwd, clock, recover };
        let session = match path {
            None => Ok(Session::in_memory(options)),
            Some(path) => py.detach(|| Session::open_or_create(path, options)),
        };
        session.map(|session| PySession(Arc::new(session))).map_err(|error| session_error(py, &error))
    }

    /// The session's id.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// Its folder, or `None` in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.0.path().map(PathBuf::from)
    }

    /// Its working directory.
    #[getter]
    fn cwd(&self) -> PathBuf {
        self.0.cwd().to_path_buf()
    }

    /// The messages so far.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        history_list(py, &self.0.history())
    }

    /// How it came to be: ``"new"``, ``"resumed"`` or ``"forked"``.
    #[getter]
    fn source(&self) -> &'static str {
        if self.0.was_resumed() {
            "resumed"
        } else if self.0.forked_from().is_some() {
            "forked"
        } else {
            "new"
        }
    }

    /// The mode that gates go by, such as ``"review"`` or ``"plan"``; ``None`` for none. Setting it holds from the next
    /// tool call on, also in a turn that is going on, and is kept with the session.
    #[getter]
    fn mode(&self) -> Option<String> {
        self.0.mode()
    }

    #[setter]
    fn set_mode(&self, py: Python<'_>, mode: Option<String>) -> PyResult<()> {
        py.detach(|| self.0.set_mode(mode)).map_err(|error| session_error(py, &error))
    }

    /// How many turns it has had.
    #[getter]
    fn turn_count(&self) -> u64 {
        self.0.turn_count()
    }

    /// The id of the turn that is going on, or `None`.
    #[getter]
    fn open_turn(&self) -> Option<String> {
        self.0.open_turn()
    }

    /// The turn that was under way when the process that wrote the session died.
    #[getter]
    fn interrupted_turn(&self) -> Option<&str> {
        self.0.load_report().interrupted_turn.as_deref()
    }

    /// What had to be repaired when it was opened: a dict with `bytes_removed`, `kept_as`, `line` and `reason`, or `None`.
    #[getter]
    fn repair<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(repair) = &self.0.load_report().repair else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("bytes_removed", repair.bytes_removed)?;
        dict.set_item("kept_as", &repair.kept_as)?;
        dict.set_item("line", repair.line)?;
        dict.set_item("reason", &repair.reason)?;
        Ok(Some(dict))
    }

    /// The calls that were running when the process that wrote the session died.
    #[getter]
    fn interrupted_calls(&self) -> Vec<String> {
        self.0.load_report().interrupted_calls.clone()
    }

    /// The calls that wait for a person's decision: id, name, arguments, why somebody asked, and the rule that would let
    /// such calls through.
    #[getter]
    fn awaiting<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let history = self.0.history();
        let newest = history.iter().rev().find(|message| !message.tool_calls.is_empty()).cloned();
        let call = |id: &str| newest.as_ref()?.tool_calls.iter().find(|call| call.id == id).cloned();
        let awaited = |awaited: &Awaited| -> PyResult<Option<Bound<'py, PyAny>>> {
            let Some(call) = call(&awaited.call_id) else { return Ok(None) };
            let arguments = to_python(py, &Value::Object(call.arguments().cloned().unwrap_or_default()))?;
            let parts = (&awaited.call_id, &call.name, arguments, &awaited.reason, &awaited.suggested_rule);
            Ok(Some(parts.into_pyobject(py)?.into_any()))
        };
        self.0.awaiting().iter().filter_map(|one| awaited(one).transpose()).collect()
    }

    /// Adds a message outside a turn.
    fn append(&self, py: Python<'_>, message: Bound<'_, PyMessage>) -> PyResult<PyMessage> {
        let message = message.get().0.as_ref().clone();
        self.0.append(message).map(PyMessage).map_err(|error| session_error(py, &error))
    }

    /// Begins anew with an empty history; what was said stays in the transcript.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.0.reset().map_err(|error| session_error(py, &error))
    }

    /// A session of its own that goes on from here.
    #[pyo3(signature = (path=None))]
    fn fork(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<Self> {
        match self.0.fork(path.as_deref(), SessionOptions::default()) {
            Ok(session) => Ok(PySession(Arc::new(session))),
            Err(error) => Err(session_error(py, &error)),
        }
    }

    /// Gives the folder free for others. Nothing can be added afterwards.
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(&self, _kind: Bound<'_, PyAny>, _error: Bound<'_, PyAny>, _traceback: Bound<'_, PyAny>) {
        self.0.close();
    }

    fn __len__(&self) -> usize {
        self.0.history().len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let place = self.0.path().map_or("in memory".into(), |path| format!("at {}", path.display()));
        format!("<Session {} {place}: {} messages, {} turns>", self.0.id(), self.0.history().len(), self.0.turn_count())
    }
}
