//! Prompts of LLM hooks for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use super::convert::to_python;
use super::error::IntoPython;
use super::event::HookEvent;
use crate::hook::llm::{LlmPrompt, read_answer};
use crate::hook::{Event, Role};

/// The prompt of a hook for one role.
#[pyclass(frozen, name = "LlmPrompt", module = "hookwright._native")]
pub struct PyLlmPrompt {
    prompt: LlmPrompt,
    role: Role,
}

#[pymethods]
impl PyLlmPrompt {
    /// Reads a prompt for a hook on these events.
    #[new]
    fn new(py: Python<'_>, text: &str, events: Vec<String>, role: &str) -> PyResult<Self> {
        let events = events.iter().map(|name| name.parse::<Event>()).collect::<Result<Vec<_>, _>>();
        let events = events.map_err(|error| error.into_python(py))?;
        let role = Role::parse(role).ok_or_else(|| PyValueError::new_err(format!("unknown role {role:?}")))?;
        let prompt = LlmPrompt::parse(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        prompt.check(&events).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyLlmPrompt { prompt, role })
    }

    /// What the model is told about an event, and what it is asked: the system prompt and the prompt.
    fn ask(&self, event: PyRef<'_, HookEvent>) -> (String, String) {
        let context = &event.context;
        (self.prompt.system(context.event, self.role), self.prompt.render(context))
    }

    /// The object in an answer, and ``None``; or ``None``, and why there is none.
    fn read<'py>(
        &self,
        py: Python<'py>,
        event: PyRef<'_, HookEvent>,
        answer: &str,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<String>)> {
        match read_answer(answer, event.context.event, self.role) {
            Ok(object) => Ok((Some(to_python(py, &Value::Object(object))?), None)),
            Err(complaint) => Ok((None, Some(complaint))),
        }
    }

    /// What the model is told whose answer was none.
    fn repair(&self, event: PyRef<'_, HookEvent>, complaint: &str) -> String {
        self.prompt.repair(event.context.event, self.role, complaint)
    }
}
