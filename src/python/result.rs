//! `HookResult` and the helpers that make one.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use super::convert::{Text, to_json, to_python};
use crate::hook::{Action, HookResult};

/// What a hook wants changed or decided.
#[pyclass(frozen, eq, name = "HookResult", module = "hookwright")]
#[derive(PartialEq)]
pub struct PyHookResult(pub HookResult);

#[pymethods]
impl PyHookResult {
    #[new]
    #[pyo3(signature = (**keywords))]
    fn new(keywords: Option<Bound<'_, PyDict>>) -> PyResult<Self> {
        let object = match keywords {
            Some(keywords) => to_json(&keywords)?,
            None => Value::Object(Map::new()),
        };
        let Value::Object(object) = object else { return Err(PyValueError::new_err("expected keyword arguments")) };
        HookResult::from_json(object).map(PyHookResult).map_err(PyValueError::new_err)
    }

    /// ``"stop"``, ``"skip"``, ``"ask"``, ``"allow"``, ``"warn"`` or ``None``.
    #[getter]
    fn action(&self) -> Option<&'static str> {
        self.0.action.map(Action::as_str)
    }

    /// Why.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// The permission rule by which it was decided.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.0.rule.as_deref()
    }

    /// With ``"ask"``: the rule that would let such calls through from now on.
    #[getter]
    fn suggested_rule(&self) -> Option<&str> {
        self.0.suggested_rule.as_deref()
    }

    /// Text that sends the turn back to the model.
    #[getter]
    fn retry_feedback(&self) -> Option<&str> {
        self.0.retry_feedback.as_deref()
    }

    /// Text that the model sees in addition.
    #[getter]
    fn additional_context(&self) -> Option<&str> {
        self.0.additional_context.as_deref()
    }

    /// Text that the user sees and the model does not.
    #[getter]
    fn system_message(&self) -> Option<&str> {
        self.0.system_message.as_deref()
    }

    /// The new values of fields.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, value) in &self.0.fields {
            dict.set_item(field.as_str(), to_python(py, value)?)?;
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let mut parts = Vec::new();
        if let Some(action) = self.0.action {
            parts.push(format!("action={:?}", action.as_str()));
        }
        for (name, text) in [
            ("reason", &self.0.reason),
            ("rule", &self.0.rule),
            ("suggested_rule", &self.0.suggested_rule),
            ("retry_feedback", &self.0.retry_feedback),
            ("additional_context", &self.0.additional_context),
            ("system_message", &self.0.system_message),
        ] {
            if let Some(text) = text {
                parts.push(format!("{name}={:?}", super::text::cut(text, 80)));
            }
        }
        for (field, value) in &self.0.fields {
            parts.push(format!("{field}={}", super::text::cut(&value.to_string(), 80)));
        }
        format!("HookResult({})", parts.join(", "))
    }
}

fn decide(action: Action, reason: String) -> PyHookResult {
    PyHookResult(HookResult::decide(action, reason))
}

/// Stop the step and the pipeline it belongs to.
#[pyfunction]
pub fn stop(reason: Text) -> PyHookResult {
    decide(Action::Stop, reason.0)
}

/// Leave out this step; its siblings go on.
#[pyfunction]
pub fn skip(reason: Text) -> PyHookResult {
    decide(Action::Skip, reason.0)
}

/// Let a person decide.
#[pyfunction]
pub fn ask(reason: Text) -> PyHookResult {
    decide(Action::Ask, reason.0)
}

/// No objection; recorded. Never beats an ask or a refusal of another hook.
#[pyfunction]
#[pyo3(signature = (reason=None))]
pub fn allow(reason: Option<Text>) -> PyHookResult {
    PyHookResult(HookResult {
        action: Some(Action::Allow),
        reason: reason.map(|reason| reason.0),
        ..HookResult::default()
    })
}

/// Let it through with a warning that is recorded and shown to the user.
#[pyfunction]
pub fn warn(reason: Text) -> PyHookResult {
    decide(Action::Warn, reason.0)
}

/// Send the turn back to the model with this feedback.
#[pyfunction]
pub fn retry(feedback: Text) -> PyHookResult {
    PyHookResult(HookResult { retry_feedback: Some(feedback.0), ..HookResult::default() })
}
