//! Teams for the drivers in `_team.py` and `_teammate.py`: the office, and the life of one teammate.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};
use serde::Serialize;
use serde_json::{Value, json};

use super::agent::{PyTurn, PyTurnConfig};
use super::chain::PyHookChain;
use super::convert::{to_json, to_python};
use super::drive::Arun;
use super::error::exception;
use super::model::PyRequest;
use super::outcome::PyOutcome;
use super::run::PyRunResult;
use super::session::PySession;
use crate::agent::turn::TurnInput;
use crate::hook::{HostHandle, Scope};
use crate::team::{
    Draft, Ended, Life, LifeAnswer, LifeConfig, LifeEffect, LifeStep, MemberView, Office, OfficeOptions, Outcome,
    SessionJournal, Status, TaskState, TeamError, delivered_in,
};

fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn team_error(py: Python<'_>, error: &TeamError) -> PyErr {
    exception(py, "TeamError", &error.to_string(), &[])
}

/// A Python function that is called when somebody is to be woken. It is called on any thread, so it only hands on.
struct Callback(Py<PyAny>);

impl Wake for Callback {
    fn wake(self: Arc<Self>) {
        Python::attach(|py| {
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}

fn waker(function: Py<PyAny>) -> Waker {
    Waker::from(Arc::new(Callback(function)))
}

/// What a team shares.
#[pyclass(frozen, name = "Office", module = "hookwright._native")]
pub struct PyOffice {
    pub office: Arc<Office>,
    /// Whether there is a journal, for which others should not have to wait.
    writes: bool,
}

impl PyOffice {
    fn run<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Office) -> Result<T, TeamError> + Send) -> PyResult<T> {
        // Without a journal it is over before another thread could have the interpreter.
        let done = if self.writes { py.detach(|| call(&self.office)) } else { call(&self.office) };
        done.map_err(|error| team_error(py, &error))
    }
}

fn python<'py>(py: Python<'py>, value: impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &serde_json::to_value(value).map_err(bad)?)
}

fn shown(view: &MemberView) -> Value {
    let (outcome, reason) =
        view.ended.as_ref().map_or((None, None), |ended| (Some(ended.outcome), ended.reason.clone()));
    let mut status = view.status.to_json();
    status["text"] = json!(view.status.to_string());
    json!({
        "name": view.new.name, "role": view.new.role, "parent": view.new.parent, "may_spawn": view.new.may_spawn,
        "status": status, "sequence": view.sequence, "outcome": outcome, "reason": reason,
        "rounds": view.totals.rounds, "calls": view.totals.calls, "usage": view.totals.usage, "cost": view.totals.cost,
        "mail": view.mail.0, "addressed": view.mail.1, "text": view.text, "summary": view.summary,
        "asked": view.asked, "owes": view.owes, "tasks": view.tasks, "limits": view.new.limits,
    })
}

#[pymethods]
impl PyOffice {
    /// `session`: where the journal is kept; what it holds already is taken in.
    #[new]
    fn new(limits: Bound<'_, PyAny>, session: Option<Bound<'_, PySession>>) -> PyResult<Self> {
        let py = limits.py();
        let limits = serde_json::from_value(to_json(&limits)?).map_err(|error| bad(format!("limits: {error}")))?;
        let mut options = OfficeOptions { limits, ..OfficeOptions::default() };
        let (mut entries, writes) = (Vec::new(), session.is_some());
        if let Some(session) = session {
            let (journal, read) =
                SessionJournal::open(session.get().0.clone()).map_err(|error| team_error(py, &error))?;
            options.journal = Arc::new(journal);
            entries = read;
        }
        let office = Office::new(options);
        py.detach(|| office.replay(entries));
        Ok(PyOffice { office: Arc::new(office), writes })
    }

    /// Somebody comes: name, role, parent, limits, may_spawn.
    fn join(&self, member: Bound<'_, PyAny>) -> PyResult<()> {
        let new = serde_json::from_value(to_json(&member)?).map_err(bad)?;
        self.run(member.py(), |office| office.join(new))
    }

    /// The prompt of a member.
    fn introduction(&self, name: &str) -> String {
        self.office.introduction(name)
    }

    /// Sends a letter. Returns the envelope, whom it addresses, and whether it had been sent before.
    #[pyo3(signature = (sender, text, to, *, private=false, reply_to=None, expects_reply=false, id=None))]
    #[expect(clippy::too_many_arguments, reason = "one call, by keyword")]
    fn send<'py>(
        &self,
        py: Python<'py>,
        sender: &str,
        text: String,
        to: Vec<String>,
        private: bool,
        reply_to: Option<String>,
        expects_reply: bool,
        id: Option<String>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<String>, bool)> {
        let draft = Draft { to, text, private, reply_to, expects_reply, id };
        let receipt = self.run(py, |office| office.send(sender, draft))?;
        Ok((python(py, receipt.envelope.as_ref())?, receipt.addressed, receipt.duplicate))
    }

    /// Whom a letter would address, as it would stand on the envelope.
    fn recipients(&self, py: Python<'_>, sender: &str, text: String, to: Vec<String>) -> PyResult<Vec<String>> {
        let draft = Draft { to, text, ..Draft::default() };
        self.run(py, |office| office.recipients(sender, &draft))
    }

    /// Everybody.
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let members = self.office.members();
        to_python(py, &members.iter().map(shown).collect::<Value>())
    }

    /// One of them.
    fn member<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.office.member(name).map(|view| to_python(py, &shown(&view))).transpose()
    }

    /// Whether there is something for a member to do; if not, `function` is called once there is.
    fn wake_with(&self, name: &str, function: Py<PyAny>) -> bool {
        self.office.mailbox(name).is_none_or(|mail| mail.wake_with(&waker(function)))
    }

    /// What lies in a member's mailbox is taken out and counts as delivered. For those who drive members without a model.
    fn take<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for parcel in self.office.take(name).parcels {
            list.append((python(py, parcel.envelope.as_ref())?, parcel.addressed))?;
        }
        self.office.stored(name);
        Ok(list)
    }

    /// What has happened, and who came back and needs a driver; `function` is called once there is more.
    fn news<'py>(&self, py: Python<'py>, function: Py<PyAny>) -> PyResult<(Bound<'py, PyList>, Vec<String>)> {
        let (events, revived) = self.office.news(&waker(function));
        let list = PyList::empty(py);
        for event in events {
            list.append((event.sequence, event.kind, event.teammate, to_python(py, &event.data)?))?;
        }
        Ok((list, revived))
    }

    /// Whether events are kept.
    fn watch(&self, watched: bool) {
        self.office.watch(watched);
    }

    /// Everything that a member does is to wait, without a life of its own until there is mail.
    fn waits(&self, name: &str) {
        self.office.set_status(name, Status::Waiting { for_: Vec::new() });
    }

    /// Asks a member to end; whether it was there to be asked.
    fn stop(&self, py: Python<'_>, name: &str) -> bool {
        py.detach(|| self.office.stop(name))
    }

    /// Whether somebody wants a member to end.
    fn is_stopping(&self, name: &str) -> bool {
        self.office.is_stopping(name)
    }

    /// From now on nobody ends for good.
    fn suspend(&self) {
        self.office.suspend();
    }

    /// No more letters and no more members.
    fn close(&self) {
        self.office.close();
    }

    /// A member ends without a life of its own: its driver broke before it could say so.
    fn end(&self, py: Python<'_>, name: &str, outcome: &str, reason: Option<String>) -> PyResult<bool> {
        let outcome: Outcome = serde_json::from_value(outcome.into()).map_err(bad)?;
        Ok(py.detach(|| self.office.end(name, Ended::new(outcome, reason), "")))
    }

    /// Whether nobody does anything, and nobody has mail that would wake it.
    fn is_quiet(&self) -> bool {
        self.office.is_quiet()
    }

    /// Whether everybody has ended.
    fn has_ended(&self) -> bool {
        self.office.has_ended()
    }

    /// What all together used.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.office.totals())
    }

    /// The last request of a member as it was really sent.
    fn snapshot(&self, name: &str) -> Option<PyRequest> {
        self.office.snapshot(name).map(PyRequest)
    }

    /// Why the last round's prose of a member is not to be shown.
    fn ignores(&self, name: &str) -> Option<String> {
        self.office.ignores(name)
    }

    /// What the lead has not read yet.
    fn lead_mail<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mail = self.run(py, Office::lead_mail)?;
        mail.iter().map(|envelope| python(py, envelope.as_ref())).collect()
    }

    /// The same in words for a model that leads.
    fn lead_context(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, Office::lead_context)
    }

    /// How many letters the lead has not read yet.
    fn lead_waiting(&self) -> usize {
        self.office.mailbox(crate::team::LEAD).map_or(0, |mail| mail.len())
    }

    /// All tasks.
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.office.tasks())
    }

    /// A new task.
    fn add_task<'py>(
        &self,
        py: Python<'py>,
        by: &str,
        title: &str,
        detail: &str,
        depends_on: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.run(py, |office| office.add_task(by, title, detail, &depends_on))?)
    }

    /// Somebody takes a task.
    fn claim_task<'py>(&self, py: Python<'py>, by: &str, id: &str) -> PyResult<Bound<'py, PyAny>> {
        python(py, self.run(py, |office| office.claim_task(by, id))?)
    }

    /// Somebody changes a task.
    #[pyo3(signature = (by, id, state=None, note=None))]
    fn update_task<'py>(
        &self,
        py: Python<'py>,
        by: &str,
        id: &str,
        state: Option<String>,
        note: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let state: Option<TaskState> =
            state.map(|state| serde_json::from_value(state.into())).transpose().map_err(bad)?;
        python(py, self.run(py, |office| office.update_task(by, id, state, note.as_deref()))?)
    }

    /// Notes something about a member.
    fn note(&self, name: &str, about: &str, note: Bound<'_, PyAny>) -> PyResult<()> {
        let value = to_json(&note)?;
        self.run(note.py(), |office| office.note(name, about, value))
    }

    /// What was noted.
    fn noted<'py>(&self, py: Python<'py>, name: &str, about: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.office.noted(name, about).map(|note| to_python(py, &note)).transpose()
    }

    /// The letters in a member's conversation were delivered. Whether it has to be given to a driver.
    fn delivered(&self, py: Python<'_>, name: &str, session: Bound<'_, PySession>) -> bool {
        let session = session.get().0.clone();
        py.detach(|| self.office.delivered(name, &delivered_in(&session.history())))
    }
}

/// The folder of a teammate.
#[pyfunction]
pub fn folder_of(name: &str) -> String {
    crate::team::folder_of(name)
}

/// The life of one teammate under way. Each method hands in an answer and returns the next step as `(kind, payload)`.
#[pyclass(frozen, name = "TeammateLife", module = "hookwright._native")]
pub struct PyLife {
    life: Mutex<Life>,
    config: Py<PyTurnConfig>,
    chain: Option<Py<PyHookChain>>,
    missing: Vec<String>,
    /// How its session came to be, until its first turn has told it.
    source: Mutex<Option<String>>,
}

impl PyLife {
    fn advance<'py>(&self, py: Python<'py>, answer: Option<LifeAnswer>) -> PyResult<Bound<'py, PyTuple>> {
        let step = self.life.lock().unwrap_or_else(PoisonError::into_inner).resume(answer);
        let effect = match step {
            None => return Err(PyRuntimeError::new_err("this life is over")),
            Some(LifeStep::Done(ended)) => return step_of(py, "done", (ended.outcome.as_str(), ended.reason)),
            Some(LifeStep::Effect(effect)) => effect,
        };
        match effect {
            LifeEffect::Turn(input) => {
                let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
                let missing = self.missing.iter().cloned().collect();
                let input = TurnInput { missing, session_source: source, ..*input };
                step_of(py, "turn", PyTurn::begin(self.config.clone_ref(py), input))
            }
            LifeEffect::Dispatch(dispatch) => match &self.chain {
                Some(chain) => step_of(py, "await", Arun::new(chain.clone_ref(py), *dispatch)),
                None => Err(PyRuntimeError::new_err("hooks without a chain")),
            },
            LifeEffect::Wait(seconds) => step_of(py, "wait", seconds.map(|seconds| seconds.as_secs_f64())),
        }
    }
}

fn step_of<'py>(py: Python<'py>, kind: &str, payload: impl IntoPyObjectExt<'py>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [pyo3::types::PyString::intern(py, kind).into_any(), payload.into_bound_py_any(py)?])
}

#[pymethods]
impl PyLife {
    /// `missing`: tools that are not there for it. `interrupted`: a turn was under way when the process died.
    #[new]
    #[pyo3(signature = (office, config, *, chain, missing, idle_timeout, max_idle_loops, interrupted, source))]
    #[expect(clippy::too_many_arguments, reason = "one call, by keyword")]
    fn new(
        office: Bound<'_, PyOffice>,
        config: Bound<'_, PyTurnConfig>,
        chain: Option<Bound<'_, PyHookChain>>,
        missing: Vec<String>,
        idle_timeout: Option<f64>,
        max_idle_loops: u32,
        interrupted: bool,
        source: Option<String>,
    ) -> PyResult<Self> {
        let turn = config.get().shared();
        let scope = Scope {
            session_id: turn.session.id().to_owned(),
            turn_id: String::new(),
            agent: turn.agent.clone(),
            cwd: turn.cwd.clone(),
            continuation: 0,
            mode: None,
            host: HostHandle::new(turn.clone()),
        };
        let idle_timeout = idle_timeout.map(Duration::try_from_secs_f64).transpose().map_err(bad)?;
        let life = Life::new(LifeConfig {
            office: office.get().office.clone(),
            name: turn.agent.name.clone(),
            chain: turn.chain.clone(),
            scope: Arc::new(scope),
            idle_timeout,
            max_idle_loops,
            interrupted,
        });
        let (config, chain) = (config.unbind(), chain.map(Bound::unbind));
        Ok(PyLife { life: Mutex::new(life), config, chain, missing, source: Mutex::new(source) })
    }

    /// Begins it.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, None)
    }

    /// A turn is over.
    fn turn_over<'py>(&self, py: Python<'py>, result: Bound<'py, PyRunResult>) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(LifeAnswer::Turn(Box::new(result.get().result.clone()))))
    }

    /// The driver of a turn broke.
    fn crashed<'py>(&self, py: Python<'py>, error: String) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(LifeAnswer::Crashed(error)))
    }

    /// What hooks came to.
    fn outcome<'py>(&self, py: Python<'py>, outcome: Bound<'py, PyOutcome>) -> PyResult<Bound<'py, PyTuple>> {
        let outcome = outcome.get().inner(py).clone();
        self.advance(py, Some(LifeAnswer::Outcome(Box::new(outcome))))
    }

    /// There is mail, or somebody wants it to look up.
    fn woken<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(LifeAnswer::Woken))
    }

    /// It has waited for as long as it may.
    fn timed_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(LifeAnswer::TimedOut))
    }

    /// What was under way was cut short.
    fn cancelled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(LifeAnswer::Cancelled))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.config)?;
        self.chain.iter().try_for_each(|chain| visit.call(chain))
    }
}
