//! `Outcome` and its records for Python, made when they are read.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::convert::{payload, to_python, view};
use crate::hook::outcome::{milliseconds, shown};
use crate::hook::{Attributed, DEFAULT_BUDGET, Event, EventContext, Field, Moment, Outcome, Scope};

/// What came of one dispatch.
#[pyclass(frozen, name = "Outcome", module = "hookwright")]
pub struct PyOutcome {
    event: Event,
    inner: OnceLock<Box<Outcome>>,
    /// The fields of an event that nobody listened to: made into an outcome only if somebody looks.
    fields: Option<Py<PyDict>>,
}

impl PyOutcome {
    pub fn from_outcome(outcome: Outcome) -> Self {
        Self::from_boxed(Box::new(outcome))
    }

    pub fn from_boxed(outcome: Box<Outcome>) -> Self {
        PyOutcome { event: outcome.event(), inner: OnceLock::from(outcome), fields: None }
    }

    pub fn untouched(event: Event, fields: Option<Py<PyDict>>) -> Self {
        PyOutcome { event, inner: OnceLock::new(), fields }
    }

    pub fn inner(&self, py: Python<'_>) -> &Outcome {
        self.inner.get_or_init(|| {
            let mut fields = Vec::new();
            for (name, value) in self.fields.iter().flat_map(|fields| fields.bind(py).iter()) {
                if let Some(field) = name.extract::<String>().ok().and_then(|name| Field::parse(&name)) {
                    fields.push((field, payload(value)));
                }
            }
            let scope: Arc<Scope> = Arc::default();
            let context = EventContext::new(self.event, scope, fields, Moment::now(), DEFAULT_BUDGET);
            Box::new(Outcome::untouched(Arc::new(context)))
        })
    }
}

fn texts(list: &[Attributed]) -> Vec<(String, String)> {
    list.iter().map(|item| (item.hook.to_string(), item.text.clone())).collect()
}

#[pymethods]
impl PyOutcome {
    /// The event that was dispatched.
    #[getter]
    fn event(&self) -> &'static str {
        self.event.as_str()
    }

    /// ``None``, ``"stop"``, ``"skip"`` or ``"ask"``.
    #[getter]
    fn action(&self) -> Option<&'static str> {
        self.inner.get()?.action.map(|action| action.as_str())
    }

    /// Why it was halted.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.inner.get()?.reason.as_deref()
    }

    /// The hook that halted it.
    #[getter]
    fn halted_by(&self) -> Option<&str> {
        self.inner.get()?.halted_by.as_deref()
    }

    /// What sends the turn back: ``(hook, text)`` pairs in order.
    #[getter]
    fn retry_feedback(&self, py: Python<'_>) -> Vec<(String, String)> {
        texts(&self.inner(py).retry_feedback)
    }

    /// What the model sees in addition: ``(hook, text)`` pairs in order.
    #[getter]
    fn additional_context(&self, py: Python<'_>) -> Vec<(String, String)> {
        texts(&self.inner(py).additional_context)
    }

    /// What the user sees, warnings included: ``(hook, text)`` pairs in order.
    #[getter]
    fn system_messages(&self, py: Python<'_>) -> Vec<(String, String)> {
        texts(&self.inner(py).system_messages)
    }

    /// Messages that were added to this request only.
    #[getter]
    fn inject_messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for message in &self.inner(py).inject_messages {
            list.append(to_python(py, message)?)?;
        }
        Ok(list)
    }

    /// One record per change, in order.
    #[getter]
    fn changes(&self, py: Python<'_>) -> PyResult<Vec<PyChange>> {
        let change = |change: &crate::hook::Change| {
            Ok(PyChange {
                hook: change.hook.to_string(),
                field: change.field.as_str(),
                before: change.before.as_ref().map(|value| view(py, value).map(Bound::unbind)).transpose()?,
                after: view(py, &change.after)?.unbind(),
                before_shown: change.before.as_ref().map(|value| shown(change.field, value)),
                after_shown: shown(change.field, &change.after),
            })
        };
        self.inner(py).changes.iter().map(change).collect()
    }

    /// One record per hook of the chain, in the order in which they stand.
    #[getter]
    fn runs(&self, py: Python<'_>) -> Vec<PyRun> {
        let outcome = self.inner(py);
        let run = |(hook, run): (&Arc<crate::hook::HookMeta>, &crate::hook::RunRecord)| {
            let extra = run.extra.as_deref().cloned().unwrap_or_default();
            PyRun {
                name: hook.name.to_string(),
                kind: hook.kind.as_str(),
                role: hook.role.as_str(),
                level: super::chain::level_name(hook.level),
                status: run.status.as_str(),
                attempts: run.attempts,
                ms: milliseconds(run.elapsed()),
                error: extra.error,
                detail: extra.detail,
                notes: extra.notes,
                would_halt: extra.would_halt.map(|(action, reason)| (action.as_str(), reason)),
                would_change: extra.would_change.iter().map(|field| field.as_str()).collect(),
            }
        };
        outcome.hooks.iter().zip(&outcome.runs).map(run).collect()
    }

    /// How long the whole dispatch took, in milliseconds.
    #[getter]
    fn ms(&self, py: Python<'_>) -> f64 {
        milliseconds(self.inner(py).elapsed)
    }

    /// The final fields.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, value) in self.inner(py).context.fields() {
            dict.set_item(field.as_str(), view(py, value)?)?;
        }
        Ok(dict)
    }

    /// The outcome as ordinary data for records: values that a hook took out are shown by length and hash only.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut summary = self.inner(py).summary();
        if let Some(map) = summary.as_object_mut() {
            map.shift_insert(0, "event".into(), self.event.as_str().into());
        }
        to_python(py, &summary)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let field = Field::parse(name);
        if let Some(payload) = field.and_then(|field| self.inner(py).context.get(field)) {
            return view(py, payload);
        }
        let spec = self.event.spec();
        if field.is_some_and(|field| spec.readable.contains(&field) || spec.writable.contains(&field)) {
            return Ok(py.None().into_bound(py));
        }
        Err(PyAttributeError::new_err(format!("the outcome of {} has no field {name:?}", self.event)))
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyValueError::new_err(
            "an Outcome is neither true nor false; compare outcome.action with None, \"skip\", …",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let outcome = self.inner(py);
        let mut text = format!("<Outcome {}", self.event);
        if let Some(action) = outcome.action {
            text += &format!(" {action} by {}", outcome.halted_by.as_deref().unwrap_or("?"));
            if let Some(reason) = &outcome.reason {
                text += &format!(": {:?}", super::text::cut(reason, 120));
            }
        }
        for change in &outcome.changes {
            text += &format!("; {} changed {}", change.hook, change.field);
        }
        let bad = outcome.hooks.iter().zip(&outcome.runs);
        for (hook, run) in bad {
            if let Some(error) = run.extra.as_ref().and_then(|extra| extra.error.as_ref()) {
                text += &format!("; {} {}: {}", hook.name, run.status.as_str(), super::text::cut(error, 120));
            }
        }
        let ran = outcome.runs.iter().filter(|run| run.attempts > 0).count();
        text + &format!("; {ran} of {} hooks ran, {:.3} ms>", outcome.runs.len(), milliseconds(outcome.elapsed))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("hookwright._display")?.call_method1("outcome_html", (slf.get().to_dict(slf.py())?,))
    }
}

/// One change that a hook made.
#[pyclass(frozen, get_all, name = "Change", module = "hookwright")]
pub struct PyChange {
    hook: String,
    field: &'static str,
    before: Option<Py<PyAny>>,
    after: Py<PyAny>,
    before_shown: Option<String>,
    after_shown: String,
}

#[pymethods]
impl PyChange {
    fn __repr__(&self) -> String {
        let before = self.before_shown.as_deref().unwrap_or("nothing");
        format!("<Change of {} by {}: {before} -> {}>", self.field, self.hook, self.after_shown)
    }
}

/// The run of one hook.
#[pyclass(frozen, get_all, name = "HookRun", module = "hookwright")]
pub struct PyRun {
    name: String,
    kind: &'static str,
    role: &'static str,
    level: &'static str,
    status: &'static str,
    attempts: u32,
    ms: f64,
    error: Option<String>,
    detail: Option<String>,
    notes: Vec<String>,
    would_halt: Option<(&'static str, String)>,
    would_change: Vec<&'static str>,
}

#[pymethods]
impl PyRun {
    fn __repr__(&self) -> String {
        let error = self.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        format!("<HookRun {} {} {:.3} ms{error}>", self.name, self.status, self.ms)
    }
}
