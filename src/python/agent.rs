//! The turn for the drivers in `_drive_async.py` and `_drive_blocking.py`: what it wants done comes out, what came of it goes in.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};
use serde_json::{Map, Value};

use super::bridge;
use super::chain::{PyHookChain, run_blocking};
use super::convert::{to_json, to_python};
use super::drive::Arun;
use super::model::{PyRequest, PyScript, failure_from, reply_from};
use super::outcome::PyOutcome;
use super::run::{PyRunEvent, PyRunResult};
use super::server_model::ModelCall;
use super::session::PySession;
use super::team::PyOffice;
use super::tool::{Called, PyWorkspaceTool, from_exception, timed_out, to_exception};
use crate::agent::Limits;
use crate::agent::turn::{
    Answer, Approval, CallAnswer, Desk, Effect, Prices, Spent, Step, Turn, TurnConfig, TurnInput, TurnTool, Window,
};
use crate::context::{CachedTokens, CountFunction, EstimatedTokens, MicroOptions, SelectOptions, TokenCounter};
use crate::hook::{AgentIdentity, AgentKind};
use crate::model::{FailureKind, ModelFailure, Scripted, ToolDescription};
use crate::team::{MemberDesk, team_tools};
use crate::tool::{self, DeclaredEffect, EffectOfArguments, ToolContext, ToolError, ToolErrorCode};

/// What the turns of an agent have in common.
#[pyclass(frozen, name = "TurnConfig", module = "hookwright._native")]
pub struct PyTurnConfig {
    config: Arc<TurnConfig>,
    chain: Option<Py<PyHookChain>>,
    script: Option<Arc<Scripted>>,
}

#[pymethods]
impl PyTurnConfig {
    /// `tools`: tuples of name, description, schema, whether calls may run side by side, whether text is JSON, the
    /// declared effect (a name, a function of the arguments, or `None`), the directory that relative paths are taken from,
    /// and whether the model is told of it only once it has loaded it.
    #[new]
    #[pyo3(signature = (
        *, name, kind, parent, model, system, tools, chain, session, cwd, limits, prices, result_cap, window, count_tokens,
        checks_output, script
    ))]
    #[expect(clippy::too_many_arguments, reason = "one call, from one place, by keyword")]
    fn new(
        name: String,
        kind: &str,
        parent: Option<String>,
        model: &str,
        system: String,
        tools: Vec<Described<'_>>,
        chain: Option<Bound<'_, PyHookChain>>,
        session: Bound<'_, PySession>,
        cwd: Option<PathBuf>,
        limits: Bound<'_, PyDict>,
        prices: Bound<'_, PyDict>,
        result_cap: usize,
        window: Option<(usize, usize, Option<f64>)>,
        count_tokens: Option<Py<PyAny>>,
        checks_output: bool,
        script: Option<Bound<'_, PyScript>>,
    ) -> PyResult<Self> {
        let kind: AgentKind =
            serde_json::from_value(kind.into()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let limits: Limits = serde_json::from_value(to_json(&limits)?)
            .map_err(|error| PyValueError::new_err(format!("limits: {error}")))?;
        let prices: Prices = serde_json::from_value(to_json(&prices)?)
            .map_err(|error| PyValueError::new_err(format!("prices: {error}")))?;
        let tool = |(name, description, schema, parallel, json, effect, root, deferred): Described<'_>| {
            let schema = Arc::new(to_json(&schema)?);
            let mut tool = TurnTool::new(ToolDescription { name: name.clone(), description, schema }, parallel);
            tool.declares_json = json;
            tool.effect = declared_effect(&effect)?;
            tool.root = root;
            tool.deferred = deferred;
            tool.validator.check().map_err(|error| PyValueError::new_err(format!("the schema of {name}: {error}")))?;
            Ok(tool)
        };
        let tools = tools.into_iter().map(tool).collect::<PyResult<Vec<_>>>()?;
        let session = session.get().0.clone();
        let cwd = cwd.unwrap_or_else(|| session.cwd().to_path_buf());
        let config = TurnConfig {
            agent: AgentIdentity { name, kind, parent },
            model: model.into(),
            system,
            tools: tools.into(),
            chain: chain.as_ref().map(|chain| chain.get().chain.clone()),
            session,
            cwd,
            limits,
            prices,
            result_cap,
            window: window.map(|(tokens, reserved, auto)| Window {
                tokens,
                reserved,
                micro: MicroOptions::default(),
                auto,
                select: SelectOptions::default(),
                counter: Arc::new(CachedTokens::new(counter_of(count_tokens))),
            }),
            checks_output,
            now: Instant::now,
            desk: None,
        };
        Ok(PyTurnConfig {
            config: Arc::new(config),
            chain: chain.map(Bound::unbind),
            script: script.map(|script| script.get().0.clone()),
        })
    }

    /// The same agent in another conversation: what its tools and limits are is not read again.
    fn for_session(&self, py: Python<'_>, session: Bound<'_, PySession>, cwd: Option<PathBuf>) -> Self {
        let session = session.get().0.clone();
        let cwd = cwd.unwrap_or_else(|| session.cwd().to_path_buf());
        PyTurnConfig {
            config: Arc::new(TurnConfig { session, cwd, ..TurnConfig::clone(&self.config) }),
            chain: self.chain.as_ref().map(|chain| chain.clone_ref(py)),
            script: self.script.clone(),
        }
    }

    /// The same agent as a member of a team: under another name, with the team's tools behind its own, and with the
    /// team's prompt before its own. The first is made from an agent, others from the first, whose tools they share.
    #[pyo3(signature = (office, session, *, name, parent, prompt, cwd=None))]
    #[expect(clippy::too_many_arguments, reason = "one call, from one place, by keyword")]
    fn for_teammate(
        &self,
        py: Python<'_>,
        office: Bound<'_, PyOffice>,
        session: Bound<'_, PySession>,
        name: String,
        parent: String,
        prompt: String,
        cwd: Option<PathBuf>,
    ) -> Self {
        let session = session.get().0.clone();
        let cwd = cwd.unwrap_or_else(|| session.cwd().to_path_buf());
        let tools = match &self.config.desk {
            Some(_) => self.config.tools.clone(),
            None => self.config.tools.iter().cloned().chain(team_tools()).collect(),
        };
        let desk: Arc<dyn Desk> = Arc::new(MemberDesk::new(office.get().office.clone(), name.clone()));
        let config = TurnConfig {
            agent: AgentIdentity { name, kind: AgentKind::Teammate, parent: Some(parent) },
            system: prompt,
            tools,
            session,
            cwd,
            desk: Some(desk),
            ..TurnConfig::clone(&self.config)
        };
        PyTurnConfig {
            config: Arc::new(config),
            chain: self.chain.as_ref().map(|chain| chain.clone_ref(py)),
            script: self.script.clone(),
        }
    }

    /// The turn that begins with `text`. `watched`: whether anybody will ask for its events; `hold_text`: whether text
    /// is told only when hooks have seen the whole reply. `source`: how the session
    /// came to be, if this is its first turn here. `sender`: who says the text, if it is not the user.
    /// `resumed`: the turn goes on where an earlier one was left, and `text` is not said.
    /// `missing`: the tools that are not there in this turn. `decisions`: what was decided about calls that wait for it, as for [`PyTurn::approval`].
    #[pyo3(signature = (
        text, *, watched=false, hold_text=false, source=None, sender=None, resumed=false, missing=HashSet::new(),
        decisions=HashMap::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "one call, from one place, by keyword")]
    fn begin(
        slf: Bound<'_, Self>,
        text: String,
        watched: bool,
        hold_text: bool,
        source: Option<String>,
        sender: Option<String>,
        resumed: bool,
        missing: HashSet<String>,
        decisions: HashMap<String, (String, Option<String>)>,
    ) -> PyTurn {
        let decisions = decisions.into_iter().map(|(id, (decision, why))| (id, approval_of(&decision, why))).collect();
        let input = TurnInput {
            text,
            sender,
            extra: Map::new(),
            streamed: watched,
            hold_text,
            resumed,
            missing,
            decisions,
            session_source: source,
        };
        PyTurn::begin(slf.unbind(), input)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.chain.iter().try_for_each(|chain| visit.call(chain))?;
        self.config.tools.iter().try_for_each(|tool| match effect_function(tool) {
            Some(function) => visit.call(function),
            None => Ok(()),
        })
    }
}

fn approval_of(decision: &str, reason: Option<String>) -> Approval {
    match decision {
        "allow" => Approval::Allow,
        "always" => Approval::AllowAlways,
        "deny" => Approval::Deny(reason),
        "later" => Approval::Later,
        "nobody" => Approval::NoApprover,
        _ => Approval::NoAnswer,
    }
}

/// How tokens are counted: by a function of the user's, or by an estimate that learns.
fn counter_of(function: Option<Py<PyAny>>) -> Arc<dyn TokenCounter> {
    let Some(function) = function else { return Arc::new(EstimatedTokens::default()) };
    let estimate = EstimatedTokens::default();
    Arc::new(CountFunction(move |text: &str| {
        let counted = Python::attach(|py| function.bind(py).call1((text,)).and_then(|count| count.extract::<usize>()));
        // A function that fails must not end a run over a number.
        counted.unwrap_or_else(|_| estimate.count_text(text))
    }))
}

/// A tool as Python describes it.
type Described<'py> = (String, String, Bound<'py, PyAny>, bool, bool, Bound<'py, PyAny>, Option<PathBuf>, bool);

/// A tool's own function from the arguments of a call to its effect.
struct EffectFunction(Py<PyAny>);

impl EffectOfArguments for EffectFunction {
    fn effect(&self, arguments: &Map<String, Value>) -> Option<tool::Effect> {
        Python::attach(|py| {
            let call = || {
                let arguments = to_python(py, &Value::Object(arguments.clone()))?;
                to_json(&self.0.bind(py).call1((arguments,))?)
            };
            match call() {
                Ok(effect) => serde_json::from_value(effect).ok(),
                Err(error) => {
                    // Gates take it for the worst; the author of the tool hears why.
                    error.write_unraisable(py, Some(self.0.bind(py)));
                    None
                }
            }
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn declared_effect(effect: &Bound<'_, PyAny>) -> PyResult<DeclaredEffect> {
    if effect.is_none() {
        return Ok(DeclaredEffect::Undeclared);
    }
    if effect.is_callable() {
        return Ok(DeclaredEffect::ByArguments(Arc::new(EffectFunction(effect.clone().unbind()))));
    }
    serde_json::from_value(to_json(effect)?)
        .map(DeclaredEffect::Fixed)
        .map_err(|error| PyValueError::new_err(format!("effect: {error}")))
}

fn effect_function(tool: &TurnTool) -> Option<&Py<PyAny>> {
    let DeclaredEffect::ByArguments(function) = &tool.effect else { return None };
    function.as_any().downcast_ref::<EffectFunction>().map(|function| &function.0)
}

/// One turn under way. Each method hands in an answer and returns the next step as `(kind, payload)`.
#[pyclass(frozen, name = "Turn", module = "hookwright._native")]
pub struct PyTurn {
    turn: Mutex<Turn>,
    config: Py<PyTurnConfig>,
    /// Somebody wants the run to end. Whoever sees it takes it back, so that it ends the run once.
    cancel: Arc<AtomicBool>,
}

impl PyTurnConfig {
    /// What turns are made from.
    pub fn shared(&self) -> Arc<TurnConfig> {
        self.config.clone()
    }
}

impl PyTurn {
    /// A turn that has not begun.
    pub fn begin(config: Py<PyTurnConfig>, input: TurnInput) -> Self {
        let turn = Turn::new(config.get().config.clone(), input);
        PyTurn { turn: Mutex::new(turn), config, cancel: Arc::default() }
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance<'py>(
        &self,
        py: Python<'py>,
        mut answer: Option<Answer>,
        blocking: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let config = self.config.get();
        let _interruptible = blocking.then(|| bridge::interruptible(self.cancel.clone()));
        loop {
            let step = self.turn().resume(answer.take());
            let Some(step) = step else { return Err(PyRuntimeError::new_err("this turn is over")) };
            let effect = match step {
                Step::Done(result) => return step_of(py, "done", PyRunResult::new(*result)),
                Step::Effect(effect) => effect,
            };
            if self.cancel.swap(false, Ordering::Relaxed) {
                answer = Some(Answer::Cancelled);
                continue;
            }
            match effect {
                Effect::Dispatch(dispatch) => {
                    let Some(chain) = &config.chain else {
                        return Err(PyRuntimeError::new_err("hooks without a chain"));
                    };
                    if !blocking {
                        return step_of(py, "await", Arun::new(chain.clone_ref(py), *dispatch));
                    }
                    let outcome = run_blocking(py, &chain.get().chain, *dispatch)?;
                    answer = Some(Answer::Outcome(Box::new(outcome)));
                }
                Effect::Model { request, streamed } => match &config.script {
                    Some(script) => answer = Some(Answer::Reply(Box::new(script.answer(&request)))),
                    None => return step_of(py, "model", (PyRequest(request), streamed)),
                },
                Effect::MoreOfModel => return step_of(py, "more", py.None()),
                Effect::Calls(calls) => {
                    let call = |call: &crate::agent::turn::CallToRun| {
                        let arguments = call.call.arguments().cloned().unwrap_or_default();
                        let arguments = to_python(py, &Value::Object(arguments))?;
                        (call.tool, &call.call.id, arguments, call.parallel_safe, call.reading).into_bound_py_any(py)
                    };
                    let calls = calls.iter().map(call).collect::<PyResult<Vec<_>>>()?;
                    return step_of(py, "calls", calls);
                }
                Effect::Check(text) => return step_of(py, "check", text),
                Effect::Approve(request) => {
                    let call = super::message::PyToolCall(request.call);
                    return step_of(py, "approve", (Bound::new(py, call)?, request.reason, request.suggested_rule));
                }
            }
        }
    }
}

fn step_of<'py>(
    py: Python<'py>,
    kind: &'static str,
    payload: impl IntoPyObjectExt<'py>,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [pyo3::types::PyString::intern(py, kind).into_any(), payload.into_bound_py_any(py)?])
}

/// One call's answer from Python: a value, an exception, or `None` for one that was cancelled.
fn call_answer(py: Python<'_>, answer: &Bound<'_, PyAny>) -> PyResult<Option<CallAnswer>> {
    if answer.is_none() {
        return Ok(None);
    }
    let (kind, value, seconds): (String, Bound<'_, PyAny>, f64) = answer.extract()?;
    let elapsed = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let mut ran = true;
    let result = match kind.as_str() {
        "value" => super::tool::result_of(&value),
        "timeout" => {
            let (name, limit): (String, f64) = value.extract()?;
            Err(timed_out(&name, Duration::try_from_secs_f64(limit).unwrap_or_default()))
        }
        "expired" => {
            let name: String;
            (name, ran) = value.extract()?;
            let what = if ran { "was given up" } else { "was not called" };
            Err(ToolError::new(
                ToolErrorCode::Timeout,
                format!("the tool {name} {what}, because the time of the turn was used up"),
            ))
        }
        "native" => {
            let answer = value.cast::<NativeAnswer>()?;
            answer
                .get()
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .unwrap_or_else(|| Err(ToolError::new(ToolErrorCode::Cancelled, "the process is exiting")))
        }
        _ => Err(from_exception(py, &PyErr::from_value(value))),
    };
    Ok(Some(CallAnswer { result, elapsed, ran }))
}

#[pymethods]
impl PyTurn {
    /// Begins the turn.
    fn start<'py>(&self, py: Python<'py>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, None, blocking)
    }

    /// What came of a dispatch.
    fn outcome<'py>(&self, py: Python<'py>, outcome: Bound<'py, PyOutcome>) -> PyResult<Bound<'py, PyTuple>> {
        let outcome = outcome.get().inner(py).clone();
        self.advance(py, Some(Answer::Outcome(Box::new(outcome))), false)
    }

    /// What the model said.
    fn reply<'py>(&self, py: Python<'py>, reply: Bound<'py, PyAny>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        let reply =
            reply_from(&reply).map_err(|error| ModelFailure::new(FailureKind::Function, error.value(py).to_string()));
        self.advance(py, Some(Answer::Reply(Box::new(reply))), blocking)
    }

    /// What came in of the reply of a server.
    fn pieces<'py>(&self, py: Python<'py>, call: &ModelCall, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(Answer::Pieces(call.pieces())), blocking)
    }

    /// What came of a request to a server.
    fn server_reply<'py>(&self, py: Python<'py>, call: &ModelCall, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(Answer::Reply(Box::new(call.reply()))), blocking)
    }

    /// What the model's function raised.
    fn failed<'py>(&self, py: Python<'py>, error: Bound<'py, PyAny>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        let failure = failure_from(py, &PyErr::from_value(error));
        self.advance(py, Some(Answer::Reply(Box::new(Err(failure)))), blocking)
    }

    /// What came of the calls: `("value"|"error"|"timeout"|"native", …, seconds)`, or `None` for a cancelled one.
    fn calls<'py>(
        &self,
        py: Python<'py>,
        answers: Vec<Bound<'py, PyAny>>,
        cancelled: bool,
        blocking: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let answers = answers.iter().map(|answer| call_answer(py, answer)).collect::<PyResult<Vec<_>>>()?;
        self.advance(py, Some(Answer::Calls { answers, cancelled }), blocking)
    }

    /// What the approver said: `"allow"`, `"always"`, `"deny"`, `"later"`, `"nobody"` or `"late"`.
    fn approval<'py>(
        &self,
        py: Python<'py>,
        decision: &str,
        reason: Option<String>,
        blocking: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let approval = approval_of(decision, reason);
        self.advance(py, Some(Answer::Approval(approval)), blocking)
    }

    /// What is wrong with an answer that has to have a type.
    fn checked<'py>(&self, py: Python<'py>, problem: Option<String>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(Answer::Checked(problem)), blocking)
    }

    /// Adds what an agent used that this one called as a tool.
    fn add_spent(&self, result: Bound<'_, PyRunResult>) {
        let result = &result.get().result;
        self.turn().add_spent(Spent { usage: result.usage, cost: result.cost });
    }

    /// The time was used up while the model was asked.
    fn out_of_time<'py>(&self, py: Python<'py>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(Answer::OutOfTime), blocking)
    }

    /// Asks for the end of the run: the next thing that it wants done is not done. Any thread may call this.
    fn request_cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Takes the request back to act on it; whether there was one.
    fn take_cancel(&self) -> bool {
        self.cancel.swap(false, Ordering::Relaxed)
    }

    /// The run was cancelled while the last step was under way.
    fn cancelled<'py>(&self, py: Python<'py>, blocking: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.advance(py, Some(Answer::Cancelled), blocking)
    }

    /// What has happened since the last time this was asked.
    fn events(&self) -> Vec<PyRunEvent> {
        let events = self.turn().take_events();
        events.into_iter().map(PyRunEvent).collect()
    }
}

/// Where the answer of a workspace tool waits until it is handed to the turn, without a way through Python.
#[pyclass(frozen, name = "NativeAnswer", module = "hookwright._native")]
pub struct NativeAnswer(Mutex<Option<Called>>);

#[pymethods]
impl NativeAnswer {
    /// The tool's value; raises what it failed with.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(Ok(value)) => to_python(py, value),
            Some(Err(error)) => Err(to_exception(py, error)),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

/// Starts a workspace tool; `wake` is called, on another thread, when it is done. `whole`: what is too long to be shown is
/// kept, so that it is wanted whole.
#[pyfunction]
pub fn launch_native(
    tool: Bound<'_, PyWorkspaceTool>,
    arguments: Bound<'_, PyDict>,
    cwd: PathBuf,
    wake: Py<PyAny>,
    reading: bool,
    whole: bool,
) -> PyResult<NativeCall> {
    let Value::Object(arguments) = to_json(&arguments)? else { return Err(PyValueError::new_err("arguments")) };
    let context = ToolContext::new(cwd).reading(reading).whole(whole);
    let (ticket, task) = bridge::launch(tool.get().start(arguments, context), wake)?;
    Ok(NativeCall { ticket, task })
}

/// A workspace tool that is running.
#[pyclass(frozen, name = "NativeCall", module = "hookwright._native")]
pub struct NativeCall {
    ticket: bridge::Ticket<Called>,
    task: tokio::task::AbortHandle,
}

#[pymethods]
impl NativeCall {
    /// The answer, once it is done.
    fn take(&self) -> NativeAnswer {
        NativeAnswer(Mutex::new(self.ticket.take()))
    }

    /// Gives the call up; processes that it started are ended.
    fn abort(&self) {
        self.task.abort();
    }
}
