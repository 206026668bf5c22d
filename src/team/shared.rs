//! The tasks of a team: each change is written down before it is one.

use serde_json::json;

use super::address::LEAD;
use super::error::TeamError;
use super::journal::JournalEntry;
use super::office::Office;
use super::task::{Task, TaskList, TaskState};

impl Office {
    /// All tasks.
    pub fn tasks(&self) -> Vec<Task> {
        self.with(|state| state.tasks.all().to_vec())
    }

    /// A new task.
    ///
    /// # Errors
    /// As [`TaskList::add`], and a journal that cannot be written.
    pub fn add_task(&self, by: &str, title: &str, detail: &str, depends_on: &[String]) -> Result<Task, TeamError> {
        self.change_tasks(by, |tasks| tasks.add(by, title, detail, depends_on))
    }

    /// Somebody takes a task.
    ///
    /// # Errors
    /// As [`TaskList::claim`], and a journal that cannot be written.
    pub fn claim_task(&self, by: &str, id: &str) -> Result<Task, TeamError> {
        self.change_tasks(by, |tasks| tasks.claim(by, id))
    }

    /// Somebody changes a task.
    ///
    /// # Errors
    /// As [`TaskList::update`], [`NoProgress`](TeamError::NoProgress), and a journal that cannot be written.
    pub fn update_task(
        &self,
        by: &str,
        id: &str,
        state: Option<TaskState>,
        note: Option<&str>,
    ) -> Result<Task, TeamError> {
        self.change_tasks(by, |tasks| tasks.update(by, id, state, note))
    }

    fn change_tasks(
        &self,
        by: &str,
        change: impl FnOnce(&mut TaskList) -> Result<Task, TeamError>,
    ) -> Result<Task, TeamError> {
        self.with(|state| {
            let mut tasks = state.tasks.clone();
            let task = change(&mut tasks)?;
            if state.tasks.all().contains(&task) {
                return Ok(task); // Nothing is different.
            }
            let now = [by, task.state.as_str(), task.note.as_deref().unwrap_or_default()];
            if by != LEAD && !state.progress.note(format!("task {}", task.id), super::progress::fingerprint(&now)) {
                let what = format!("task {} goes to and fro ({}, {})", task.id, by, task.state.as_str());
                return Err(TeamError::NoProgress { what });
            }
            self.journal.write(&JournalEntry::TeamTask { task: task.clone() })?;
            state.tasks = tasks;
            state.emit("task", by, || json!(task));
            Ok(task)
        })
    }
}
