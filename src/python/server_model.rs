//! Models behind servers, recorders and replays for Python, and one request to them under way.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bridge;
use super::convert::to_json;
use super::model::PyRequest;
use crate::hook::redact::Redactor;
use crate::model::{
    Anthropic, Ask, CassetteError, FailureKind, Key, Model, ModelFailure, OpenAi, Recorder, Replay, Reply, RetryPolicy,
    RetryRule, Server, ServerError, StreamEvent, Verify,
};

/// A model that answers from the runtime.
#[pyclass(frozen, name = "ServerModel", module = "hookwright._native")]
pub struct PyServerModel {
    model: Arc<dyn Model>,
    replay: Option<Arc<Replay>>,
}

/// A server as Python describes it; what is left out is as by default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    model: String,
    base_url: Option<String>,
    headers: Vec<(String, String)>,
    timeout: f64,
    connect_timeout: f64,
    idle_timeout: f64,
    verify: bool,
    ca_file: Option<PathBuf>,
    profile: Option<String>,
    stream: bool,
    settings: Map<String, Value>,
    retry: DescribedRetry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedRetry {
    connection: (u32, f64),
    rate_limited: (u32, f64),
    server: (u32, f64),
    overloaded: (u32, f64),
    longest_wait: f64,
    jitter: bool,
    deadline: Option<f64>,
}

fn seconds(name: &str, seconds: f64) -> PyResult<std::time::Duration> {
    std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} must be a number of seconds from 0 on, not {seconds}")))
}

fn rule((retries, wait): (u32, f64)) -> PyResult<RetryRule> {
    Ok(RetryRule { retries, first_wait: seconds("the wait of a RetryPolicy", wait)? })
}

/// The server of a description. `key`: text, a function without arguments, `None` for the usual one, `False` for none.
fn server_of(described: &Bound<'_, PyDict>, key: Option<Bound<'_, PyAny>>) -> PyResult<Server> {
    let described: Described =
        serde_json::from_value(to_json(described)?).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let retry = described.retry;
    let verify = match (described.ca_file, described.verify) {
        (Some(path), _) => Verify::CaFile(path),
        (None, true) => Verify::System,
        (None, false) => Verify::Off,
    };
    Ok(Server {
        base_url: described.base_url,
        api_key: key_of(key)?,
        headers: described.headers,
        timeout: seconds("timeout", described.timeout)?,
        connect_timeout: seconds("connect_timeout", described.connect_timeout)?,
        idle_timeout: seconds("idle_timeout", described.idle_timeout)?,
        verify,
        retry: RetryPolicy {
            connection: rule(retry.connection)?,
            rate_limited: rule(retry.rate_limited)?,
            server: rule(retry.server)?,
            overloaded: rule(retry.overloaded)?,
            longest_wait: seconds("longest_wait", retry.longest_wait)?,
            jitter: retry.jitter,
            deadline: retry.deadline.map(|deadline| seconds("deadline", deadline)).transpose()?,
        },
        profile: described.profile,
        stream: described.stream,
        settings: described.settings,
        ..Server::new(described.model)
    })
}

fn key_of(key: Option<Bound<'_, PyAny>>) -> PyResult<Key> {
    let Some(key) = key else { return Ok(Key::Usual) };
    if key.is_callable() {
        let function = key.unbind();
        // What it raises is told without its text, which might hold the key.
        return Ok(Key::from_fn(move || {
            Python::try_attach(|py| {
                let value = function.bind(py).call0();
                value.and_then(|value| value.extract::<String>()).map_err(|error| match error.get_type(py).name() {
                    Ok(name) => name.to_string(),
                    Err(_) => "an exception".to_owned(),
                })
            })
            .unwrap_or_else(|| Err("the process is exiting".to_owned()))
        }));
    }
    match key.extract::<bool>() {
        Ok(false) => Ok(Key::None),
        _ => Ok(Key::new(key.extract::<String>()?)),
    }
}

fn refused(error: &ServerError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn unusable(error: &CassetteError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl PyServerModel {
    /// A model behind the chat completions API.
    #[staticmethod]
    fn openai(server: Bound<'_, PyDict>, key: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let model = OpenAi::new(server_of(&server, key)?).map_err(|error| refused(&error))?;
        Ok(Self { model: Arc::new(model), replay: None })
    }

    /// A model behind the Messages API.
    #[staticmethod]
    fn anthropic(server: Bound<'_, PyDict>, key: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let model = Anthropic::new(server_of(&server, key)?).map_err(|error| refused(&error))?;
        Ok(Self { model: Arc::new(model), replay: None })
    }

    /// The same model, its exchanges written to a cassette without what the patterns find.
    fn recorded(&self, path: PathBuf, patterns: Vec<String>) -> PyResult<Self> {
        let redactor = Redactor::new(patterns).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let model = Recorder::new(self.model.clone(), &path, redactor).map_err(|error| unusable(&error))?;
        Ok(Self { model: Arc::new(model), replay: None })
    }

    /// A model that answers from a cassette.
    #[staticmethod]
    fn replay(path: PathBuf) -> PyResult<Self> {
        let replay = Arc::new(Replay::open(&path).map_err(|error| unusable(&error))?);
        Ok(Self { model: replay.clone(), replay: Some(replay) })
    }

    /// The model's name.
    #[getter]
    fn name(&self) -> &str {
        self.model.name()
    }

    /// How many exchanges of a replay are left; `None` for other models.
    #[getter]
    fn remaining(&self) -> Option<usize> {
        self.replay.as_ref().map(|replay| replay.remaining())
    }
}

/// What has come in and whom to wake when more does.
#[derive(Default)]
struct Inbox {
    pieces: Vec<StreamEvent>,
    waker: Option<Py<PyAny>>,
    done: bool,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Inbox>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the inbox and wakes whoever waits. He is woken once: what comes in until he looks is there then.
    fn change(&self, change: impl FnOnce(&mut Inbox)) {
        let waker = {
            let mut inbox = self.lock();
            change(&mut inbox);
            inbox.waker.take()
        };
        if let Some(waker) = waker {
            bridge::wake(waker);
        }
    }
}

type Place = Arc<Mutex<Option<Result<Reply, ModelFailure>>>>;

/// One request under way.
#[pyclass(frozen, name = "ModelCall", module = "hookwright._native")]
pub struct ModelCall {
    shared: Shared,
    reply: Place,
    task: tokio::task::AbortHandle,
}

impl ModelCall {
    /// What has come in since the last time this was asked.
    pub fn pieces(&self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.shared.lock().pieces)
    }

    /// What came of it. Once it is done, and once.
    pub fn reply(&self) -> Result<Reply, ModelFailure> {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        reply.unwrap_or_else(|| Err(ModelFailure::new(FailureKind::Cancelled, "")))
    }
}

/// Asks a model. `streamed`: whether the reply is to come in pieces; else the model's own setting decides. `told`: whether
/// pieces are wanted.
#[pyfunction]
pub fn launch_model(
    model: Bound<'_, PyServerModel>,
    request: Bound<'_, PyRequest>,
    streamed: bool,
    told: bool,
) -> PyResult<ModelCall> {
    let shared = Shared::default();
    let watcher = shared.clone();
    let watch = move |event: StreamEvent| {
        // Pieces that nobody looks at wake nobody.
        if told || matches!(event, StreamEvent::Retry { .. }) {
            watcher.change(|inbox| inbox.pieces.push(event));
        }
    };
    let ask = Ask { stream: streamed.then_some(true), watch: Some(Arc::new(watch)) };
    let answer = model.get().model.ask(request.get().0.clone(), ask);
    let reply = Place::default();
    let (place, done) = (reply.clone(), shared.clone());
    let task = crate::runtime::runtime()?.spawn(async move {
        let answer = answer.await;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        done.change(|inbox| inbox.done = true);
    });
    Ok(ModelCall { shared, reply, task: task.abort_handle() })
}

#[pymethods]
impl ModelCall {
    /// Whether the reply is there.
    fn done(&self) -> bool {
        self.shared.lock().done
    }

    /// Whether something has come in that was not taken.
    fn has_pieces(&self) -> bool {
        !self.shared.lock().pieces.is_empty()
    }

    /// Has `wake` called, on another thread, when something comes in. Returns whether something is there already; then it
    /// is not called.
    fn wake_with(&self, wake: Py<PyAny>) -> bool {
        let mut inbox = self.shared.lock();
        if inbox.done || !inbox.pieces.is_empty() {
            return true;
        }
        inbox.waker = Some(wake);
        false
    }

    /// Gives the request up; its connection is closed.
    fn abort(&self) {
        self.task.abort();
    }
}
