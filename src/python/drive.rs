//! The asynchronous driver: an awaitable that runs a dispatch on the caller's own event loop.
//!
//! `await chain.arun(…)` sends into [`Arun`], which calls synchronous hooks in place and forwards what the loop sends
//! to the coroutine of an asynchronous one. Nothing is scheduled and no task is made, so contextvars, tracebacks,
//! `asyncio.current_task()` and cancellation are those of the caller, and a chain in which nothing waits is over
//! without a visit to the loop.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::async_call::{AsyncCall, Sending, Sent, Step, iterator_of, send};
use super::bridge::{self, Ticket};
use super::chain::PyHookChain;
use super::exit;
use super::function::{self, Arguments, Mode, PythonHook, failure, guarded, is_awaitable};
use super::outcome::PyOutcome;
use super::watchdog::Watch;
use crate::hook::{Abort, Dispatch, Event, HookFailure, HookReply, Moment};

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
                Err(bridge::remote_failure(py, message, detail, false))
            }
            Step::Done(Err(HookFailure::Final { message, detail })) => {
                Err(bridge::remote_failure(py, message, detail, true))
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
