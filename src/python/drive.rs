//! The asynchronous driver: an awaitable that runs a dispatch on the caller's own event loop.
//!
//! `await chain.arun(…)` sends into [`Arun`], which calls synchronous hooks in place and forwards what the loop sends
//! to the coroutine of an asynchronous one. Nothing is scheduled and no task is made, so contextvars, tracebacks,
//! `asyncio.current_task()` and cancellation are those of the caller, and a chain in which nothing waits is over
//! without a visit to the loop.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::iterator::PySendResult;

use super::bridge::{self, Ticket};
use super::chain::PyHookChain;
use super::exit;
use super::function::{self, Arguments, Mode, PythonHook, failure, guarded, is_awaitable, is_cancellation};
use super::outcome::PyOutcome;
use super::watchdog::Watch;
use crate::hook::{Abort, Dispatch, Event, HookFailure, HookReply, Moment};

/// How long a cancelled coroutine may still wait while it cleans up.
const GRACE: Duration = Duration::from_millis(250);

/// What the event loop sends in.
pub enum Sent {
    Value,
    Error(PyErr),
}

/// What comes out of one step.
enum Step<'py, T> {
    Wait(Bound<'py, PyAny>),
    Done(T),
}

/// One coroutine under a deadline.
struct AsyncCall {
    coroutine: Py<PyAny>,
    deadline: Moment,
    proxy: Option<Py<PyAny>>,
    overdue: bool,
    /// Set when the task was asked to cancel while it waited here: how often it had been asked before.
    cancelled: Option<i64>,
}

/// What an awaitable is driven through. The iterator that `__await__` hands out takes a value without raising
/// StopIteration at its end, unlike the `send` of the coroutine itself.
fn iterator_of<'py>(awaitable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match awaitable.getattr_opt(intern!(awaitable.py(), "__await__"))? {
        Some(method) => method.call0(),
        // A coroutine in the form of a generator, or an iterator that was handed out before.
        None => Ok(awaitable.clone()),
    }
}

/// What became of one value sent in.
enum Sending<'py> {
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
}

fn send<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Sending<'py>> {
    let py = iterator.py();
    match iterator.cast::<pyo3::types::PyIterator>() {
        Ok(iterator) => Ok(match iterator.send(py.None().bind(py))? {
            PySendResult::Next(value) => Sending::Yielded(value),
            PySendResult::Return(value) => Sending::Returned(value),
        }),
        Err(_) => raised_or_returned(py, iterator.call_method1(intern!(py, "send"), (py.None(),))),
    }
}

fn throw<'py>(iterator: &Bound<'py, PyAny>, error: PyErr) -> PyResult<Sending<'py>> {
    let py = iterator.py();
    raised_or_returned(py, iterator.call_method1(intern!(py, "throw"), (error.into_value(py),)))
}

fn raised_or_returned<'py>(py: Python<'py>, result: PyResult<Bound<'py, PyAny>>) -> PyResult<Sending<'py>> {
    match result {
        Ok(value) => Ok(Sending::Yielded(value)),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            error.value(py).getattr("value").map(Sending::Returned)
        }
        Err(error) => Err(error),
    }
}

impl AsyncCall {
    fn new(awaitable: &Bound<'_, PyAny>, deadline: Moment) -> PyResult<Self> {
        Ok(AsyncCall::over(iterator_of(awaitable)?, deadline))
    }

    fn over(iterator: Bound<'_, PyAny>, deadline: Moment) -> Self {
        AsyncCall { coroutine: iterator.unbind(), deadline, proxy: None, overdue: false, cancelled: None }
    }

    fn step<'py>(&mut self, py: Python<'py>, watch: &mut Watch, sent: Sent) -> Step<'py, function::Called<'py>> {
        let proxy = self.proxy.take();
        let told = |flag| {
            let read = |proxy: &Py<PyAny>| proxy.bind(py).getattr(flag)?.is_truthy();
            proxy.as_ref().is_some_and(|proxy| read(proxy).unwrap_or(false))
        };
        let expired = told("expired");
        // A task is cancelled through the future that it waits on, or, if it cannot wait for that, by an exception.
        if self.cancelled.is_none()
            && (told("cancel_asked") || matches!(&sent, Sent::Error(error) if is_cancellation(py, error)))
        {
            self.cancelled = Some(bridge::cancel_requests(py) - 1);
        }
        let sent = if expired {
            if self.overdue {
                return Step::Done(self.give_up(py));
            }
            self.overdue = true;
            self.deadline = Moment::now() + GRACE;
            bridge::cancelled_error(py).map_or(Sent::Value, Sent::Error)
        } else {
            sent
        };
        let deadline = self.deadline;
        let coroutine = self.coroutine.bind(py);
        let result = guarded(py, watch, deadline, || match sent {
            Sent::Value => send(coroutine),
            Sent::Error(error) => throw(coroutine, error),
        });
        match result {
            Err(error) => Step::Done(Err(self.failed(py, error))),
            Ok(Sending::Returned(_)) if self.is_being_cancelled(py) => Step::Done(Err(cancellation(py))),
            Ok(Sending::Returned(_)) if self.overdue => Step::Done(Err(self.timed_out())),
            Ok(Sending::Returned(value)) => Step::Done(Ok(value)),
            Ok(Sending::Yielded(future)) => self.wait_for(py, future),
        }
    }

    /// Passes on what the coroutine waits for, with the deadline on it.
    fn wait_for<'py>(&mut self, py: Python<'py>, future: Bound<'py, PyAny>) -> Step<'py, function::Called<'py>> {
        match bridge::proxy(&future, self.deadline) {
            Ok(Some(proxy)) => {
                self.proxy = Some(proxy.clone().unbind());
                Step::Wait(proxy)
            }
            // A bare yield: the loop comes back at once.
            Ok(None) if Moment::now() < self.deadline => Step::Wait(future),
            Ok(None) => Step::Done(self.give_up(py)),
            Err(error) => Step::Done(Err(failure(py, error))),
        }
    }

    /// What the end by an exception means.
    fn failed(&self, py: Python<'_>, failure: HookFailure) -> HookFailure {
        // A hook that made something else of the caller's cancellation must not keep it from the caller.
        if self.is_being_cancelled(py) && !matches!(failure, HookFailure::Abort(_)) {
            return cancellation(py);
        }
        let failure = match failure {
            // Before Python 3.11 a task does not tell whether a cancellation is still meant.
            HookFailure::Abort(abort)
                if self.cancelled.is_none() || self.cancelled >= Some(0) && !self.is_being_cancelled(py) =>
            {
                function::own_cancellation(py, abort)
            }
            other => other,
        };
        if self.overdue && !matches!(failure, HookFailure::Abort(_)) { self.timed_out() } else { failure }
    }

    /// Whether the caller's task was asked to cancel while this hook waited, and has not taken it back (as
    /// `asyncio.timeout` does with the cancellation that it asked for). Known from Python 3.11 on.
    fn is_being_cancelled(&self, py: Python<'_>) -> bool {
        self.cancelled.is_some_and(|before| bridge::cancel_requests(py) > before.max(0))
    }

    fn timed_out(&self) -> HookFailure {
        HookFailure::Timeout("it was still waiting at its deadline and was cancelled".into())
    }

    /// Ends a coroutine that does not end when it is cancelled.
    fn give_up<'py>(&self, py: Python<'py>) -> function::Called<'py> {
        self.close(py);
        // Whoever drops the last reference runs what the coroutine does when it is finalised, which for one that
        // swallows everything never ends: so the last reference is never dropped.
        bridge::abandon(self.coroutine.bind(py));
        Err(HookFailure::Timeout("it did not end when it was cancelled at its deadline, and was abandoned".into()))
    }

    fn close(&self, py: Python<'_>) {
        let until = Moment::now() + GRACE;
        // What it raises while it is closed concerns nobody.
        drop(Watch::open(py).map(|mut watch| {
            drop(guarded(py, &mut watch, until, || self.coroutine.bind(py).call_method0("close")));
        }));
    }
}

/// The caller's cancellation, handed on.
fn cancellation(py: Python<'_>) -> HookFailure {
    HookFailure::Abort(Box::new(bridge::cancelled_error(py).unwrap_or_else(|error| error)))
}

/// What a dispatch waits for.
enum Pending {
    Coroutine(AsyncCall),
    Foreign { call: AsyncCall, ticket: Ticket<Result<HookReply, HookFailure>> },
}

enum State {
    /// Nobody listens: finished before it began.
    Untouched(PyOutcome),
    Running {
        dispatch: Box<Dispatch>,
        arguments: Arguments,
        pending: Option<Pending>,
    },
    /// A hook was ended by an interrupt that the loop holds back. One visit to the loop, and the task sees it.
    Interrupted(PyErr),
    /// A step is being made, or the awaitable is used up.
    Taken,
}

/// The awaitable of `chain.arun(…)`.
#[pyclass(frozen, name = "ChainRun", module = "hookwright")]
pub struct Arun {
    // The Python object and not only its core: it keeps the collector from clearing the chain under a run.
    chain: Py<PyHookChain>,
    state: Mutex<State>,
}

impl Arun {
    pub fn new(chain: Py<PyHookChain>, dispatch: Dispatch) -> Self {
        Arun {
            chain,
            state: Mutex::new(State::Running {
                dispatch: Box::new(dispatch),
                arguments: Arguments::default(),
                pending: None,
            }),
        }
    }

    pub fn untouched(chain: Py<PyHookChain>, event: Event, fields: Option<Py<pyo3::types::PyDict>>) -> Self {
        Arun { chain, state: Mutex::new(State::Untouched(PyOutcome::untouched(event, fields))) }
    }

    fn take(&self) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Taken)
    }

    fn advance<'py>(&self, py: Python<'py>, sent: Sent) -> PyResult<Bound<'py, PyAny>> {
        let _inside = exit::enter(py);
        // The state is taken out, so that no lock is held while hooks run.
        let (mut dispatch, mut arguments, mut pending) = match self.take() {
            State::Running { dispatch, arguments, pending } => (dispatch, arguments, pending),
            State::Untouched(outcome) => {
                if let Sent::Error(error) = sent {
                    return Err(error);
                }
                return Err(finished(py, outcome)?);
            }
            State::Interrupted(error) => return Err(if let Sent::Error(sent) = sent { sent } else { error }),
            State::Taken => return Err(PyRuntimeError::new_err("this run was awaited already; call arun again")),
        };
        dispatch.start_now();
        let mut watch = Watch::open(py)?;
        watch.inside_loop();
        let mut sent = Some(sent);
        loop {
            let answer = match pending.take() {
                Some(mut waiting) => {
                    let sent = sent.take().unwrap_or(Sent::Value);
                    match resume(py, &mut watch, &mut waiting, sent, &dispatch) {
                        Step::Wait(future) => {
                            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                            *state = State::Running { dispatch, arguments, pending: Some(waiting) };
                            return Ok(future);
                        }
                        Step::Done(answer) => answer,
                    }
                }
                None => {
                    if let Some(Sent::Error(error)) = sent.take() {
                        return Err(error);
                    }
                    if dispatch.advance().is_none() {
                        let outcome = PyOutcome::from_boxed(self.chain.get().chain.finish_boxed(*dispatch));
                        return Err(finished(py, outcome)?);
                    }
                    match begin(py, &mut watch, &mut arguments, &dispatch) {
                        Ok(Begun::Nothing) => {
                            if let Err(abort) = dispatch.complete_unchanged() {
                                return self.aborted(py, abort);
                            }
                            warn_if_slow(py, &dispatch);
                            continue;
                        }
                        Ok(Begun::Answer(answer)) => {
                            if let Err(abort) = dispatch.complete(answer) {
                                return self.aborted(py, abort);
                            }
                            warn_if_slow(py, &dispatch);
                            continue;
                        }
                        Ok(Begun::Suspended(waiting, future)) => {
                            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                            *state = State::Running { dispatch, arguments, pending: Some(waiting) };
                            return Ok(future);
                        }
                        Ok(Begun::Waits(waiting)) => {
                            pending = Some(waiting);
                            continue;
                        }
                        Err(error) => Err(failure(py, error)),
                    }
                }
            };
            if let Err(abort) = dispatch.complete(answer) {
                return self.aborted(py, abort);
            }
        }
    }

    fn end(&self, py: Python<'_>) {
        if let State::Running { pending: Some(Pending::Coroutine(call) | Pending::Foreign { call, .. }), .. } =
            self.take()
        {
            call.close(py);
        }
    }

    /// The end of a dispatch whose caller was interrupted or cancelled.
    fn aborted<'py>(&self, py: Python<'py>, abort: Abort) -> PyResult<Bound<'py, PyAny>> {
        let error = into_pyerr(abort);
        if !function::is_caller_cancelled(py, &error) {
            return Err(error);
        }
        // The cancellation stands until the task suspends. Were it raised without that, the task would meet it once more
        // at its next wait, perhaps in the middle of cleaning up.
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Interrupted(error);
        Ok(py.None().into_bound(py))
    }
}

/// The end of an awaitable. The value stands alone and not in a tuple, so that the interpreter takes it as it is and
/// makes no exception object of it.
fn finished(py: Python<'_>, outcome: PyOutcome) -> PyResult<PyErr> {
    Ok(PyStopIteration::new_err(Py::new(py, outcome)?))
}

/// A synchronous function that keeps a running loop waiting this long is warned of.
const SLOW: Duration = Duration::from_millis(100);

fn warn_if_slow(py: Python<'_>, dispatch: &Dispatch) {
    let Some((entry, elapsed)) = dispatch.last_run() else { return };
    if elapsed > SLOW
        && let Some(hook) = entry.hook.as_any().downcast_ref::<PythonHook>()
        && hook.mode == Mode::Inline
        && let Err(error) = hook.warn_of_blocking(py, &entry.meta.name, crate::hook::outcome::milliseconds(elapsed))
    {
        // Somebody turned warnings into errors; a hook's slowness is still no reason to fail the run.
        error.write_unraisable(py, None);
    }
}

enum Begun<'py> {
    /// It ran to its end and said nothing.
    Nothing,
    Answer(Result<HookReply, HookFailure>),
    /// It has still to be started.
    Waits(Pending),
    /// A coroutine that was started and waits for this.
    Suspended(Pending, Bound<'py, PyAny>),
}

fn begin<'py>(
    py: Python<'py>,
    watch: &mut Watch,
    arguments: &mut Arguments,
    dispatch: &Dispatch,
) -> PyResult<Begun<'py>> {
    let call = dispatch.call();
    let entry = dispatch.entry();
    let Some(hook) = entry.hook.as_any().downcast_ref::<PythonHook>() else {
        if entry.hook.is_immediate() {
            return Ok(Begun::Answer(entry.hook.call(call)));
        }
        // Waits somewhere else (a process): our runtime does it and wakes the loop once.
        let work = entry.hook.call_async(call.context.clone(), call.deadline.instant());
        let (future, ticket) = bridge::spawn(py, work)?;
        let iterator = future.call_method0("__await__")?;
        // The other side keeps the deadline; this one only has to outlast it.
        let call = AsyncCall::new(&iterator, call.deadline + Duration::from_secs(3600))?;
        return Ok(Begun::Waits(Pending::Foreign { call, ticket }));
    };
    match hook.mode {
        Mode::Thread => {
            static RUN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let arguments = arguments.of(py, call.context)?;
            let future = RUN.import(py, "hookwright._workers", "in_thread")?.call1((&hook.callable, arguments))?;
            Ok(Begun::Waits(Pending::Coroutine(AsyncCall::new(&future, call.deadline)?)))
        }
        Mode::Inline => Ok(match hook.call_inline(py, watch, arguments, &call) {
            Ok(value) if value.is_none() => Begun::Nothing,
            Ok(value) if is_awaitable(&value) => {
                Begun::Waits(Pending::Coroutine(AsyncCall::new(&value, call.deadline)?))
            }
            Ok(value) => Begun::Answer(hook.read(&value)),
            Err(failure) => Begun::Answer(Err(failure)),
        }),
        Mode::Async => {
            let arguments = arguments.of(py, call.context)?;
            // The coroutine is made and has its first step under one deadline; most end with it.
            let started = guarded(py, watch, call.deadline, || {
                let value = hook.callable.bind(py).call1(arguments.bind(py))?;
                if value.is_none() {
                    return Ok((value.clone(), Sending::Returned(value)));
                }
                let iterator = iterator_of(&value)?;
                let sending = send(&iterator)?;
                Ok((iterator, sending))
            });
            Ok(match started {
                Ok((_, Sending::Returned(value))) if value.is_none() => Begun::Nothing,
                Ok((_, Sending::Returned(value))) => Begun::Answer(hook.read(&value)),
                Ok((iterator, Sending::Yielded(future))) => {
                    let mut waiting = AsyncCall::over(iterator, call.deadline);
                    match waiting.wait_for(py, future) {
                        Step::Wait(future) => Begun::Suspended(Pending::Coroutine(waiting), future),
                        Step::Done(Ok(value)) => Begun::Answer(hook.read(&value)),
                        Step::Done(Err(failure)) => Begun::Answer(Err(failure)),
                    }
                }
                // Nobody has cancelled what did not wait yet.
                Err(HookFailure::Abort(abort)) => Begun::Answer(Err(function::own_cancellation(py, abort))),
                Err(failure) => Begun::Answer(Err(failure)),
            })
        }
    }
}

fn resume<'py>(
    py: Python<'py>,
    watch: &mut Watch,
    waiting: &mut Pending,
    sent: Sent,
    dispatch: &Dispatch,
) -> Step<'py, Result<HookReply, HookFailure>> {
    match waiting {
        Pending::Coroutine(call) => match call.step(py, watch, sent) {
            Step::Wait(future) => Step::Wait(future),
            Step::Done(Err(failure)) => Step::Done(Err(failure)),
            Step::Done(Ok(value)) => match dispatch.entry().hook.as_any().downcast_ref::<PythonHook>() {
                Some(hook) => Step::Done(hook.read(&value)),
                None => Step::Done(Err(HookFailure::failed("the hook changed its kind while it ran"))),
            },
        },
        Pending::Foreign { call, ticket } => match call.step(py, watch, sent) {
            Step::Wait(future) => Step::Wait(future),
            Step::Done(Err(failure)) => Step::Done(Err(failure)),
            Step::Done(Ok(_)) => Step::Done(
                ticket.take().unwrap_or_else(|| Err(HookFailure::failed("the runtime was shut down while it ran"))),
            ),
        },
    }
}

/// The exception behind an aborted dispatch.
pub fn into_pyerr(abort: Abort) -> PyErr {
    match abort.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

/// One coroutine of a hook under its deadline, for the private loop on which synchronous runs have it executed.
#[pyclass(frozen, name = "HookCall", module = "hookwright")]
pub struct HookCall(Mutex<Option<AsyncCall>>);

impl HookCall {
    pub fn new(awaitable: &Bound<'_, PyAny>, deadline: Moment) -> PyResult<Self> {
        Ok(HookCall(Mutex::new(Some(AsyncCall::new(awaitable, deadline)?))))
    }

    fn end(&self, py: Python<'_>) {
        if let Some(call) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            call.close(py);
        }
    }

    fn advance<'py>(&self, py: Python<'py>, sent: Sent) -> PyResult<Bound<'py, PyAny>> {
        let _inside = exit::enter(py);
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut call) = taken else { return Err(PyRuntimeError::new_err("this call is over")) };
        let mut watch = Watch::open(py)?;
        match call.step(py, &mut watch, sent) {
            Step::Wait(future) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
                Ok(future)
            }
            Step::Done(Ok(value)) => Err(PyStopIteration::new_err((value.unbind(),))),
            Step::Done(Err(HookFailure::Abort(abort))) => Err(into_pyerr(abort)),
            Step::Done(Err(HookFailure::Timeout(text))) => Err(bridge::deadline_error(py, text)),
            // The traceback is in the text already; the class only has to be a failure on the other side.
            Step::Done(Err(HookFailure::Failed { message, detail })) => {
                Err(bridge::remote_failure(py, message, detail))
            }
        }
    }
}

/// The methods by which a coroutine or a task drives an awaitable; `advance` and `end` are its own.
macro_rules! awaitable {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn __await__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.advance(py, Sent::Value)
            }

            fn send<'py>(&self, py: Python<'py>, _value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.advance(py, Sent::Value)
            }

            #[pyo3(signature = (kind, value=None, traceback=None))]
            fn throw<'py>(
                &self,
                py: Python<'py>,
                kind: Bound<'py, PyAny>,
                value: Option<Bound<'py, PyAny>>,
                traceback: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.advance(py, Sent::Error(bridge::thrown(kind, value, traceback)?))
            }

            fn close(&self, py: Python<'_>) {
                self.end(py);
            }
        }
    };
}

awaitable!(Arun);
awaitable!(HookCall);
