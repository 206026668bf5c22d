//! The list of tasks that a team shares.

use serde::{Deserialize, Serialize};

use super::error::TeamError;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Nobody works on it.
    #[default]
    Open,
    /// Its owner works on it.
    InProgress,
    /// It is done.
    Done,
    /// It is not done, and will not be.
    Cancelled,
}

impl TaskState {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskState::Open => "open",
            TaskState::InProgress => "in_progress",
            TaskState::Done => "done",
            TaskState::Cancelled => "cancelled",
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, TaskState::Done | TaskState::Cancelled)
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// `t1`, `t2`, … in the order in which they were added.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Who works on it.
    #[serde(default)]
    pub owner: Option<String>,
    /// Where it stands.
    pub state: TaskState,
    /// The tasks that have to be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Who added it.
    pub added_by: String,
    /// What was said about it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// All tasks of a team. Each method checks everything before it changes anything.
///
/// ```
/// use hookwright::team::{TaskList, TaskState};
/// let mut tasks = TaskList::default();
/// let parser = tasks.add("ada", "write the parser", "", &[])?.id;
/// let printer = tasks.add("ada", "print trees", "", &[parser.clone()])?.id;
/// assert_eq!(tasks.claim("bob", &printer).unwrap_err().to_string(), "task t2 waits for t1 (open)");
/// tasks.claim("bob", &parser)?;
/// assert_eq!(tasks.claim("ada", &parser).unwrap_err().to_string(), "task t1 is bob's (in_progress)");
/// tasks.update("bob", &parser, Some(TaskState::Done), None)?;
/// assert_eq!(tasks.claim("ada", &printer)?.state, TaskState::InProgress);
/// # Ok::<(), hookwright::team::TeamError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    tasks: Vec<Task>,
}

impl TaskList {
    /// All, in the order in which they were added.
    pub fn all(&self) -> &[Task] {
        &self.tasks
    }

    /// Takes in a task as it was written down: a new one, or a change.
    pub fn restore(&mut self, task: Task) {
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => self.tasks.push(task),
        }
    }

    fn find(&self, id: &str) -> Result<&Task, TeamError> {
        let known = || self.tasks.iter().map(|task| task.id.clone()).collect();
        self.tasks
            .iter()
            .find(|task| task.id == id)
            .ok_or_else(|| TeamError::UnknownTask { id: id.to_owned(), known: known() })
    }

    /// A new task.
    ///
    /// # Errors
    /// [`UnknownTask`](TeamError::UnknownTask) for one that it depends on. A task can only depend on those before it,
    /// so no task waits for itself.
    pub fn add(&mut self, by: &str, title: &str, detail: &str, depends_on: &[String]) -> Result<Task, TeamError> {
        let id = format!("t{}", self.tasks.len() + 1);
        if title.trim().is_empty() {
            return Err(TeamError::Task { id, why: "has no title".into() });
        }
        for dependency in depends_on {
            self.find(dependency)?;
        }
        let task = Task {
            id,
            title: title.trim().to_owned(),
            detail: detail.to_owned(),
            owner: None,
            state: TaskState::Open,
            depends_on: depends_on.to_vec(),
            added_by: by.to_owned(),
            note: None,
        };
        self.tasks.push(task.clone());
        Ok(task)
    }

    /// `by` takes an open task, which nobody else can then. Claiming its own again changes nothing.
    ///
    /// # Errors
    /// [`Task`](TeamError::Task) where somebody has it, it is over, or waits for another.
    pub fn claim(&mut self, by: &str, id: &str) -> Result<Task, TeamError> {
        let task = self.find(id)?;
        let refuse = |why: String| Err(TeamError::Task { id: id.to_owned(), why });
        if task.state == TaskState::InProgress && task.owner.as_deref() == Some(by) {
            return Ok(task.clone());
        }
        if let Some(owner) = task.owner.as_deref().filter(|owner| *owner != by && !task.state.is_over()) {
            return refuse(format!("is {owner}'s ({})", task.state.as_str()));
        }
        if task.state.is_over() {
            return refuse(format!("is {} already", task.state.as_str()));
        }
        for dependency in &task.depends_on {
            let state = self.find(dependency)?.state;
            if state != TaskState::Done {
                return refuse(format!("waits for {dependency} ({})", state.as_str()));
            }
        }
        self.change(id, |task| {
            task.owner = Some(by.to_owned());
            task.state = TaskState::InProgress;
        })
    }

    /// Changes a task: its owner, whoever leads the team, or anybody where nobody owns it. Open again, it has no owner.
    ///
    /// # Errors
    /// [`Task`](TeamError::Task) where it is somebody else's, or would be in progress without an owner.
    pub fn update(
        &mut self,
        by: &str,
        id: &str,
        state: Option<TaskState>,
        note: Option<&str>,
    ) -> Result<Task, TeamError> {
        let task = self.find(id)?;
        let refuse = |why: String| Err(TeamError::Task { id: id.to_owned(), why });
        match task.owner.as_deref() {
            Some(owner) if owner != by && by != super::LEAD => return refuse(format!("is {owner}'s, not yours")),
            None if state == Some(TaskState::InProgress) => return refuse("is nobody's: claim it".into()),
            _ => {}
        }
        self.change(id, |task| {
            if let Some(state) = state {
                task.state = state;
            }
            if task.state == TaskState::Open {
                task.owner = None;
            }
            if let Some(note) = note {
                task.note = Some(note.to_owned());
            }
        })
    }

    /// What `owner` has not finished is open again: it has ended.
    pub fn release(&mut self, owner: &str) -> Vec<Task> {
        let mut released = Vec::new();
        for task in &mut self.tasks {
            if task.owner.as_deref() == Some(owner) && !task.state.is_over() {
                (task.owner, task.state) = (None, TaskState::Open);
                released.push(task.clone());
            }
        }
        released
    }

    /// What `owner` works on.
    pub fn owned_by(&self, owner: &str) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| task.owner.as_deref() == Some(owner) && !task.state.is_over())
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Task)) -> Result<Task, TeamError> {
        let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) else {
            return Err(TeamError::UnknownTask { id: id.to_owned(), known: Vec::new() });
        };
        change(task);
        Ok(task.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_task_is_claimed_by_one() {
        let mut tasks = TaskList::default();
        let id = tasks.add("lead", "parse", "", &[]).unwrap().id;
        let claims: Vec<_> = ["ada", "bob", "carol"].iter().map(|name| tasks.claim(name, &id).is_ok()).collect();
        assert_eq!(claims, [true, false, false]);
        assert!(tasks.update("bob", &id, Some(TaskState::Done), None).is_err());
        assert_eq!(tasks.release("ada")[0].state, TaskState::Open);
        assert!(tasks.claim("bob", &id).is_ok());
        assert_eq!(
            tasks.update("lead", &id, Some(TaskState::Cancelled), Some("not now")).unwrap().note.as_deref(),
            Some("not now")
        );
        assert!(tasks.claim("ada", &id).unwrap_err().to_string().contains("cancelled already"));
        assert!(tasks.claim("ada", "t9").unwrap_err().to_string().contains("tasks: t1"));
    }

    proptest! {
        /// Whatever is tried: a task in progress has one owner, an open one none, and what is done stands on what is done.
        #[test]
        fn tasks_stay_consistent(steps in prop::collection::vec((0..4_usize, 0..3_usize, 1..6_usize, 0..5_usize), 0..80)) {
            let names = ["ada", "bob", "lead"];
            let states = [TaskState::Open, TaskState::InProgress, TaskState::Done, TaskState::Cancelled];
            let mut tasks = TaskList::default();
            for (what, who, which, state) in steps {
                let (by, id) = (names[who], format!("t{which}"));
                let before = tasks.clone();
                let done = match what {
                    0 => tasks.add(by, "title", "", if which > 3 { std::slice::from_ref(&id) } else { &[] }).map(drop),
                    1 => tasks.claim(by, &id).map(drop),
                    2 => tasks.update(by, &id, states.get(state).copied(), None).map(drop),
                    _ => { tasks.release(by); Ok(()) }
                };
                if done.is_err() {
                    prop_assert_eq!(&tasks, &before);
                }
                for task in tasks.all() {
                    if task.state == TaskState::InProgress {
                        prop_assert!(task.owner.is_some());
                    }
                    if task.state == TaskState::Open {
                        prop_assert_eq!(&task.owner, &None);
                    }
                }
            }
        }
    }
}
