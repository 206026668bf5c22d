//! A goal for the drivers in `_goal_drive.py`: what it wants done comes out, what came of it goes in.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::bridge;
use super::convert::{to_json, to_python};
use super::error::exception;
use crate::agent::goal::{
    Answer, Bounds, CommandAction, Commands, Execution, Goal, GoalFile, GoalFileError, GoalSpec, Sample, Sent, Step,
};

/// A goal under way, and where it is kept.
#[pyclass(frozen, name = "GoalMachine", module = "hookwright._native")]
pub struct PyGoal {
    goal: Mutex<Goal>,
    file: Option<GoalFile>,
}

fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn file_error(py: Python<'_>, error: &GoalFileError) -> PyErr {
    exception(py, "GoalError", &error.to_string(), &[])
}

fn read<T: serde::de::DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_value(to_json(value)?).map_err(bad)
}

impl PyGoal {
    fn goal(&self) -> MutexGuard<'_, Goal> {
        self.goal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyGoal {
    /// A new goal of this specification; `commands` are known besides the built-in ones.
    #[new]
    #[pyo3(signature = (spec, commands, file, runner))]
    fn new(spec: Bound<'_, PyAny>, commands: Vec<String>, file: Option<PathBuf>, runner: String) -> PyResult<Self> {
        let py = spec.py();
        let commands = Commands::with(commands).map_err(bad)?;
        let goal = Goal::new(read::<GoalSpec>(&spec)?, commands).map_err(bad)?;
        let file = file.map(|path| GoalFile::create(path, runner)).transpose();
        Ok(PyGoal { goal: Mutex::new(goal), file: file.map_err(|error| file_error(py, &error))? })
    }

    /// The goal that is kept in a file.
    #[staticmethod]
    fn resume(py: Python<'_>, path: PathBuf, commands: Vec<String>, runner: String) -> PyResult<Self> {
        let commands = Commands::with(commands).map_err(bad)?;
        let (file, state) = GoalFile::open(path, runner).map_err(|error| file_error(py, &error))?;
        Ok(PyGoal { goal: Mutex::new(Goal::restore(state, commands)), file: Some(file) })
    }

    /// What it wants done next: the generation and the effect, or `None` when it is over.
    #[pyo3(name = "next")]
    fn next_step<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyAny>)>> {
        let step = self.goal().step();
        match step {
            Step::Done(_) => Ok(None),
            Step::Effect { generation, effect } => Ok(Some((generation, to_python(py, &json!(effect))?))),
        }
    }

    /// Takes what came of an effect; whether it counts.
    fn answer(&self, generation: u64, kind: &str, value: Bound<'_, PyAny>) -> PyResult<bool> {
        let answer = match kind {
            "dispatch" => Answer::Executed(read::<Execution>(&value)?),
            "deliver" => Answer::Delivered(read::<Execution>(&value)?),
            "review" => Answer::Reviewed(read::<Execution>(&value)?),
            _ => Answer::Sampled(read::<Sample>(&value)?),
        };
        Ok(self.goal().answer(generation, answer))
    }

    /// Something the user says: `("queued", waiting)`, `("passed", id)` or `("command", (name, cancels))`.
    fn send<'py>(
        &self,
        py: Python<'py>,
        text: String,
        follow_up: bool,
        has_attachments: bool,
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let sent = self.goal().send(&text, follow_up, has_attachments);
        let sent = sent.map_err(|error| exception(py, "GoalError", &error.to_string(), &[]))?;
        Ok(match sent {
            Sent::Queued(waiting) => ("queued", to_python(py, &json!(waiting))?),
            Sent::Passed(id) => ("passed", to_python(py, &json!(id))?),
            Sent::Command(command) => {
                ("command", to_python(py, &json!([command.name, command.action == CommandAction::Cancel]))?)
            }
        })
    }

    /// What came of something that passed by the queue.
    fn passed(&self, id: u64, value: Bound<'_, PyAny>) -> PyResult<()> {
        let execution = read::<Execution>(&value)?;
        self.goal().passed(id, execution);
        Ok(())
    }

    /// Ends it; whether it was not over yet.
    fn cancel(&self) -> bool {
        self.goal().cancel()
    }

    /// Writes the state to its file, if it has one.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // The lock is held while writing, so that an older state never comes after a newer one.
        py.detach(|| file.save(self.goal().state())).map_err(|error| file_error(py, &error))
    }

    /// How it ended, or `None`.
    #[getter]
    fn status(&self) -> Option<&'static str> {
        self.goal().state().status().map(|status| status.as_str())
    }

    /// All that it remembers, as ordinary data.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state: Value = json!(self.goal().state());
        to_python(py, &state)
    }
}

/// The fingerprint of all that is in these folders.
#[pyfunction]
pub fn workspace_fingerprint(py: Python<'_>, roots: Vec<PathBuf>) -> PyResult<String> {
    let work = async move {
        let mut prints = Vec::new();
        for root in roots {
            prints.push(crate::agent::goal::workspace_fingerprint(root, Bounds::default()).await?);
        }
        Ok::<_, std::io::Error>(prints.join("-"))
    };
    bridge::wait(py, work)?.map_err(|error| PyOSError::new_err(error.to_string()))
}
