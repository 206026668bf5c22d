//! Python functions as hooks.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyTuple};
use serde_json::Value;

use super::convert::to_json;
use super::event::arguments;
use super::exit;
use super::result::PyHookResult;
use super::watchdog::{self, Fired, Watch};
use crate::hook::{
    Abort, BoxFuture, Call, EventContext, Hook, HookFailure, HookReply, HookResult, Moment, Role, Verdict,
};

/// How a function is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On the calling thread.
    Inline,
    /// A coroutine function.
    Async,
    /// On a thread of its own.
    Thread,
}

/// A Python callable as a hook.
pub struct PythonHook {
    /// The function or callable object.
    pub callable: Py<PyAny>,
    /// How it is run.
    pub mode: Mode,
    /// What it may do.
    pub role: Role,
    /// Whether it asks a model, so that a replay leaves it out.
    asks: bool,
    warned: AtomicBool,
}

/// The arguments of a hook's call: a tuple with the event, made once for all hooks that see the same context.
#[derive(Default)]
pub struct Arguments {
    address: usize,
    made: Option<Py<PyTuple>>,
}

impl Arguments {
    /// The arguments for `context`.
    #[inline]
    pub fn of(&mut self, py: Python<'_>, context: &Arc<EventContext>) -> PyResult<&Py<PyTuple>> {
        // The event in the tuple keeps its context, so no other one can come to stand at this address.
        let address = Arc::as_ptr(context) as usize;
        if self.address != address {
            self.made = Some(arguments(py, context)?);
            self.address = address;
        }
        self.made.as_ref().ok_or_else(|| PyRuntimeError::new_err("there is no event"))
    }
}

/// What a call came to before it is read: a value or a failure.
pub type Called<'py> = Result<Bound<'py, PyAny>, HookFailure>;

impl PythonHook {
    pub fn new(callable: Py<PyAny>, mode: Mode, role: Role) -> Self {
        PythonHook { callable, mode, role, asks: false, warned: AtomicBool::new(false) }
    }

    /// An asynchronous function that asks a model.
    pub fn asking(callable: Py<PyAny>, role: Role) -> Self {
        PythonHook { asks: true, ..PythonHook::new(callable, Mode::Async, role) }
    }

    /// A copy for another chain; each chain owns its callables, so that the garbage collector can see who holds them.
    pub fn duplicate(&self, py: Python<'_>) -> Self {
        PythonHook { asks: self.asks, ..PythonHook::new(self.callable.clone_ref(py), self.mode, self.role) }
    }

    /// Calls the function on this thread under a deadline.
    #[inline]
    pub fn call_inline<'py>(
        &self,
        py: Python<'py>,
        watch: &mut Watch,
        arguments: &mut Arguments,
        call: &Call<'_>,
    ) -> Called<'py> {
        let arguments = arguments.of(py, call.context).map_err(|error| failure(py, error))?;
        match guarded(py, watch, call.deadline, || self.callable.bind(py).call1(arguments.bind(py))) {
            // Nobody can cancel a function that does not wait: it is an exception like any other.
            Err(HookFailure::Abort(abort)) => Err(own_cancellation(py, abort)),
            called => called,
        }
    }

    /// Calls the function as one of a row of calls under one watch. `None`: it said nothing, and the watch may still be
    /// armed; nothing but the next call may then be done before it is disarmed.
    #[inline]
    pub fn call_in_row<'py>(
        &self,
        py: Python<'py>,
        watch: &mut Watch,
        arguments: &mut Arguments,
        call: &Call<'_>,
    ) -> Option<Called<'py>> {
        let arguments = match arguments.of(py, call.context) {
            Ok(arguments) => arguments,
            Err(error) => return Some(Err(failure(py, error))),
        };
        watch.arm_next(py, call.deadline);
        match self.callable.bind(py).call1(arguments.bind(py)) {
            Ok(value) if value.is_none() && watch.may_stay() => {
                exit::stay_if_ended(py);
                None
            }
            result => match settled(py, watch, result) {
                Ok(value) if value.is_none() => None,
                Err(HookFailure::Abort(abort)) => Some(Err(own_cancellation(py, abort))),
                called => Some(called),
            },
        }
    }

    /// Runs the hook to its end on behalf of a thread that may block.
    pub fn call_blocking(
        &self,
        py: Python<'_>,
        watch: &mut Watch,
        arguments: &mut Arguments,
        call: &Call<'_>,
    ) -> Result<HookReply, HookFailure> {
        match self.mode {
            Mode::Inline => {
                let value = self.call_inline(py, watch, arguments, call)?;
                self.read_blocking(py, &value, call.deadline)
            }
            Mode::Async => {
                let coroutine = self.call_inline(py, watch, arguments, call)?;
                self.read(&self.block_on(py, &coroutine, call.deadline)?)
            }
            Mode::Thread => {
                let arguments = arguments.of(py, call.context).map_err(|error| failure(py, error))?;
                static RUN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let value = RUN
                    .import(py, "hookwright._workers", "call_in_thread")
                    .and_then(|run| run.call1((&self.callable, arguments, seconds_until(call.deadline))))
                    .map_err(|error| self.deadline_or_failure(py, error))?;
                self.read(&value)
            }
        }
    }

    /// Reads what an inline function returned; a coroutine is run to its end first.
    pub fn read_blocking(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        deadline: Moment,
    ) -> Result<HookReply, HookFailure> {
        if !value.is_none() && is_awaitable(value) {
            return self.read(&self.block_on(py, value, deadline)?);
        }
        self.read(value)
    }

    /// Runs an awaitable on the helper thread's loop while this thread waits.
    fn block_on<'py>(&self, py: Python<'py>, awaitable: &Bound<'py, PyAny>, deadline: Moment) -> Called<'py> {
        static RUN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let call = super::drive::HookCall::new(awaitable, deadline).map_err(|error| failure(py, error))?;
        RUN.import(py, "hookwright._workers", "run_on_private_loop")
            .and_then(|run| run.call1((call, seconds_until(deadline))))
            .map_err(|error| self.deadline_or_failure(py, error))
    }

    fn deadline_or_failure(&self, py: Python<'_>, error: PyErr) -> HookFailure {
        if is_caller_cancelled(py, &error) {
            return HookFailure::Abort(Box::new(error));
        }
        match watchdog::deadline_class(py) {
            Ok(class) if error.get_type(py).is(class) => HookFailure::Timeout(error.value(py).to_string()),
            _ => match error.value(py).getattr("hook_failure_detail").and_then(|detail| detail.extract()) {
                Ok(detail) if is_final(error.value(py)) => {
                    HookFailure::Final { message: error.value(py).to_string(), detail }
                }
                Ok(detail) => HookFailure::Failed { message: error.value(py).to_string(), detail },
                Err(_) => failure(py, error),
            },
        }
    }

    /// Reads what the function returned.
    pub fn read(&self, value: &Bound<'_, PyAny>) -> Result<HookReply, HookFailure> {
        if value.is_none() {
            return Ok(HookReply::default());
        }
        if let Ok(result) = value.cast::<PyHookResult>() {
            return Ok(Verdict::Result(Box::new(result.get().0.clone())).into());
        }
        if value.is_instance_of::<PyDict>() {
            let json = to_json(value).map_err(|error| {
                HookFailure::failed(format!("returned a value with no JSON form: {}", error.value(value.py())))
            })?;
            let Value::Object(object) = json else { return Ok(HookReply::default()) };
            let result = HookResult::from_json(object).map_err(HookFailure::failed)?;
            return Ok(Verdict::Result(Box::new(result)).into());
        }
        if self.role == Role::Observer {
            return Ok(HookReply::default()); // An observer has no say: whatever else it returns is its own affair.
        }
        if let Ok(flag) = value.cast::<PyBool>() {
            if !flag.is_true() {
                return Ok(Verdict::Refused.into());
            }
            if self.role == Role::Gate {
                return Ok(HookReply::default());
            }
        }
        let kind = value.get_type().name().map(|name| name.to_string()).unwrap_or_else(|_| "?".into());
        Err(HookFailure::failed(format!("returned a value of type {kind}; expected None, a dict or a HookResult")))
    }

    /// Warns once of a function that blocked a running event loop for long.
    pub fn warn_of_blocking(&self, py: Python<'_>, name: &str, milliseconds: f64) -> PyResult<()> {
        if self.warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let text = format!(
            "hook {name:?} kept the event loop from running for {milliseconds:.0} ms; make it async, or give it isolate=\"thread\""
        );
        py.import("hookwright._workers")?.call_method1("warn_of_blocking", (text,))?;
        Ok(())
    }
}

/// Runs `code` under a deadline on this thread and tells a deadline from a failure.
#[inline]
pub fn guarded<T>(
    py: Python<'_>,
    watch: &mut Watch,
    deadline: Moment,
    code: impl FnOnce() -> PyResult<T>,
) -> Result<T, HookFailure> {
    watch.arm(py, deadline);
    let result = code();
    settled(py, watch, result)
}

/// Ends the deadline of code that has returned and tells a deadline from a failure.
#[inline]
fn settled<T>(py: Python<'_>, watch: &mut Watch, result: PyResult<T>) -> Result<T, HookFailure> {
    let fired = watch.disarm(py).map_err(|error| failure(py, error))?;
    match result {
        Ok(value) if fired == Fired::No => Ok(value),
        result => Err(ended(py, result.err(), fired)),
    }
}

/// Why code that was guarded has no result.
#[cold]
fn ended(py: Python<'_>, error: Option<PyErr>, fired: Fired) -> HookFailure {
    match error {
        _ if fired == Fired::Interrupt => HookFailure::Abort(Box::new(caller_cancelled(py))),
        // Late, or it swallowed the deadline's exception: either way it did not answer in time.
        None => HookFailure::Timeout("it did not answer before its deadline".into()),
        Some(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => HookFailure::Abort(Box::new(error)),
        Some(_) if fired == Fired::Deadline => {
            HookFailure::Timeout("it was still running at its deadline and was ended".into())
        }
        Some(error) => match watchdog::deadline_class(py) {
            // The deadline of an outer hook, on its way out.
            Ok(class) if error.get_type(py).is(class) => HookFailure::Abort(Box::new(error)),
            Ok(_) if is_cancellation(py, &error) => HookFailure::Abort(Box::new(error)),
            Ok(_) => failure(py, error),
            Err(error) => failure(py, error),
        },
    }
}

/// What aborted a call, if it was not a cancellation; a cancellation that nobody asked for is the hook's own failure.
pub fn own_cancellation(py: Python<'_>, abort: Abort) -> HookFailure {
    match abort.downcast::<PyErr>() {
        Ok(error) if is_cancellation(py, &error) && !is_caller_cancelled(py, &error) => failure(py, *error),
        Ok(error) => HookFailure::Abort(error),
        Err(other) => HookFailure::Abort(other),
    }
}

/// What an exception means: an interrupt passes through, anything else is the hook's failure.
pub fn failure(py: Python<'_>, error: PyErr) -> HookFailure {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return HookFailure::Abort(Box::new(error));
    }
    let kind = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_else(|_| "exception".into());
    let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let message = if text.is_empty() { kind } else { format!("{kind}: {text}") };
    // The traceback is kept apart from the exception until this.
    let value = error.into_value(py);
    let detail = py
        .import("traceback")
        .and_then(|traceback| traceback.call_method1("format_exception", (&value,)))
        .and_then(|lines| lines.extract::<Vec<String>>())
        .map(|lines| lines.concat())
        .unwrap_or_default();
    if is_final(value.bind(py)) {
        return HookFailure::Final { message: text, detail };
    }
    HookFailure::Failed { message, detail }
}

/// Whether an exception says that another attempt would come to nothing else.
fn is_final(error: &Bound<'_, impl Sized>) -> bool {
    error.as_any().getattr("hook_failure_is_final").is_ok_and(|flag| flag.is_truthy().unwrap_or(false))
}

/// What ended a wait of our own: an interrupt, the cancellation of the caller's task, or a failure to wait at all.
pub fn interrupted(py: Python<'_>, error: PyErr) -> HookFailure {
    if is_cancellation(py, &error) { HookFailure::Abort(Box::new(error)) } else { failure(py, error) }
}

/// Whether an exception is asyncio's cancellation.
pub fn is_cancellation(py: Python<'_>, error: &PyErr) -> bool {
    static CANCELLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError").is_ok_and(|class| error.is_instance(py, class))
}

fn caller_cancelled_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "hookwright._workers", "CallerCancelled")
}

/// Whether an exception says that whoever called was cancelled, and not the code that raised it.
pub fn is_caller_cancelled(py: Python<'_>, error: &PyErr) -> bool {
    caller_cancelled_class(py).is_ok_and(|class| error.is_instance(py, class))
}

/// What a function that was ended by an interrupt of its caller comes to.
pub fn caller_cancelled(py: Python<'_>) -> PyErr {
    match caller_cancelled_class(py).and_then(|class| class.call0()) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Calls a function on this thread such that an interrupt ends it even where the event loop would hold it back.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub fn _call_interruptibly<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let _inside = exit::enter(py);
    let mut watch = Watch::open(py)?;
    watch.perhaps_inside_loop(py);
    watch.arm(py, Moment::from_nanoseconds(u64::MAX));
    let result = function.call1(arguments);
    match watch.disarm(py)? {
        Fired::Interrupt => Err(caller_cancelled(py)),
        // The end of the interpreter, which ends everything.
        Fired::Deadline | Fired::No => result,
    }
}

/// Ends what [`_call_interruptibly`] or a chain runs on another thread.
#[pyfunction]
pub fn _interrupt_thread(py: Python<'_>, thread: u64) {
    watchdog::interrupt(py, thread);
}

/// Whether a returned value is a coroutine or another awaitable.
pub fn is_awaitable(value: &Bound<'_, PyAny>) -> bool {
    !value.is_instance_of::<PyDict>()
        && !value.is_instance_of::<PyBool>()
        && !value.is_instance_of::<PyHookResult>()
        && value.hasattr("__await__").unwrap_or(false)
}

fn seconds_until(deadline: Moment) -> f64 {
    deadline.left().as_secs_f64()
}

impl Hook for PythonHook {
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure> {
        Python::attach(|py| {
            let mut watch = Watch::open(py).map_err(|error| failure(py, error))?;
            self.call_blocking(py, &mut watch, &mut Arguments::default(), &call)
        })
    }

    fn call_async(
        &self,
        context: Arc<EventContext>,
        deadline: std::time::Instant,
    ) -> BoxFuture<Result<HookReply, HookFailure>> {
        // Reached only when the core itself drives a chain that has Python hooks in it, which no host does today.
        drop((context, deadline));
        let error = PyRuntimeError::new_err("a Python hook runs where Python runs: await the chain from Python");
        Box::pin(std::future::ready(Err(HookFailure::Failed { message: error.to_string(), detail: String::new() })))
    }

    fn has_side_effects(&self) -> bool {
        self.asks
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
