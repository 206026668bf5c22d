//! Recording and replaying for Python.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

use super::chain::{PyHookChain, drive};
use super::convert::to_python;
use super::error::os_error;
use crate::hook::Field;
use crate::hook::record::Recorder;
use crate::hook::redact::Redactor;
use crate::hook::replay::{Decision, Difference, Recorded, Replay, read_next};

/// A recording under way. Leaving a ``with`` block or `stop` ends it; so does recording to the same file again.
#[pyclass(frozen, name = "Recording", module = "hookwright")]
pub struct PyRecording {
    chain: Py<PyHookChain>,
    recorder: Arc<Recorder>,
}

impl PyRecording {
    pub fn start(chain: Bound<'_, PyHookChain>, path: &Path, patterns: Vec<String>) -> PyResult<Self> {
        let redactor = Redactor::new(patterns).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let recorder = Arc::new(Recorder::open(path, redactor).map_err(|error| os_error(error, path))?);
        chain.get().chain.add_recorder(recorder.clone());
        Ok(PyRecording { chain: chain.unbind(), recorder })
    }
}

#[pymethods]
impl PyRecording {
    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.recorder.path().to_owned()
    }

    /// How many events were written so far.
    #[getter]
    fn events(&self) -> u64 {
        self.recorder.lines()
    }

    /// Ends the recording. Returns whether it was still going.
    fn stop(&self) -> bool {
        self.chain.get().chain.remove_recorder(&self.recorder)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.stop();
    }

    fn __repr__(&self) -> String {
        format!("<Recording of {} events to {}>", self.recorder.lines(), self.recorder.path().display())
    }
}

fn decision<'py>(py: Python<'py>, decision: &Decision) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("action", decision.action.map(|action| action.as_str()))?;
    dict.set_item("reason", decision.reason.as_deref())?;
    dict.set_item("halted_by", decision.halted_by.as_deref())?;
    Ok(dict)
}

fn difference<'py>(py: Python<'py>, recorded: &Recorded, found: &Difference) -> PyResult<Bound<'py, PyDict>> {
    let value = |value: Option<&Value>| to_python(py, value.unwrap_or(&Value::Null));
    let dict = PyDict::new(py);
    dict.set_item("line", recorded.line)?;
    dict.set_item("event_id", &recorded.event_id)?;
    dict.set_item("event", recorded.event.as_str())?;
    dict.set_item("tool_name", value(recorded.field(Field::ToolName))?)?;
    dict.set_item("tool_arguments", value(recorded.field(Field::ToolArguments))?)?;
    dict.set_item("before", decision(py, &found.before)?)?;
    dict.set_item("after", decision(py, &found.after)?)?;
    let fields = PyDict::new(py);
    for (field, then, now) in &found.fields {
        fields.set_item(field.as_str(), (value(then.as_ref())?, value(now.as_ref())?))?;
    }
    dict.set_item("fields", fields)?;
    Ok(dict)
}

/// Runs the chain over the events recorded in `path`.
pub fn replay<'py>(py: Python<'py>, chain: &PyHookChain, path: &Path, shell: bool) -> PyResult<Bound<'py, PyDict>> {
    let file = File::open(path).map_err(|error| os_error(error, path))?;
    let mut reader = BufReader::new(file);
    let (differences, bad_lines) = (PyList::empty(py), PyList::empty(py));
    let (mut number, mut events) = (0, 0_u64);
    let mut replay = Replay::new(&chain.chain, shell);
    while let Some(read) = read_next(&mut reader, &mut number).map_err(|error| os_error(error, path))? {
        py.check_signals()?;
        let recorded = match read {
            Ok(recorded) => recorded,
            Err(bad) => {
                bad_lines.append((bad.line, bad.reason))?;
                continue;
            }
        };
        events += 1;
        let mut dispatch = replay.begin(&recorded);
        drive(py, &mut dispatch)?;
        if let Some(found) = replay.end(&recorded, dispatch) {
            differences.append(difference(py, &recorded, &found)?)?;
        }
    }
    let report = PyDict::new(py);
    report.set_item("events", events)?;
    report.set_item("differences", differences)?;
    report.set_item("bad_lines", bad_lines)?;
    report.set_item("left_out", replay.left_out().clone())?;
    Ok(report)
}
