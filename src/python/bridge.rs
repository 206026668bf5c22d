//! Waiting elsewhere: work on our runtime that wakes an asyncio loop, and the proxies that carry deadlines.

use std::cell::RefCell;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::task::AbortHandle;

use super::exit;
use crate::hook::Moment;
use crate::runtime;

/// How long a blocking wait goes on before signals are looked at.
const TICK: Duration = Duration::from_millis(20);

fn helper<'py>(py: Python<'py>, cell: &'static PyOnceLock<Py<PyAny>>, name: &str) -> PyResult<&'py Bound<'py, PyAny>> {
    cell.import(py, "hookwright._aio", name)
}

/// Where the result of work on the runtime is put.
pub struct Ticket<T>(Arc<Mutex<Option<T>>>);

impl<T> Ticket<T> {
    /// The result, once the future that came with the ticket is done.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs `work` on the runtime. Returns a future of the running asyncio loop that is done when the work is, and the
/// ticket for its result. Cancelling the future drops the work.
pub fn spawn<T: Send + 'static>(
    py: Python<'_>,
    work: impl Future<Output = T> + Send + 'static,
) -> PyResult<(Bound<'_, PyAny>, Ticket<T>)> {
    static OPEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let opened = helper(py, &OPEN, "open_future")?.call0()?;
    let (future, wake): (Bound<'_, PyAny>, Bound<'_, PyAny>) = opened.extract()?;
    let (ticket, task) = launch(work, wake.unbind())?;
    future.call_method1("add_done_callback", (Canceller(task),))?;
    Ok((future, ticket))
}

/// Runs `work` on the runtime and calls `wake`, from there, when it is done. Returns the ticket for its result and the
/// means to drop it.
pub fn launch<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    wake: Py<PyAny>,
) -> PyResult<(Ticket<T>, AbortHandle)> {
    let place = Arc::new(Mutex::new(None));
    let ticket = Ticket(place.clone());
    let task = runtime::runtime()?.spawn(async move {
        let value = work.await;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        self::wake(wake);
    });
    Ok((ticket, task.abort_handle()))
}

/// Calls `wake`: the one place where a worker of the runtime touches Python. A closed loop has nobody left to wake.
pub fn wake(wake: Py<PyAny>) {
    Python::try_attach(|py| {
        drop(wake.bind(py).call0());
        drop(wake);
    });
}

/// Ends work on the runtime when the future that stands for it was cancelled.
#[pyclass(frozen)]
struct Canceller(AbortHandle);

#[pymethods]
impl Canceller {
    fn __call__(&self, _future: Bound<'_, PyAny>) {
        // After a normal end the task is over and aborting it does nothing.
        self.0.abort();
    }
}

/// Waits on this thread for work of the runtime, with the interpreter released and signals looked at.
///
/// # Errors
/// What a signal handler raised (an interrupt), a cancellation if this runs in an asyncio task that is asked to cancel
/// (as asyncio does at Ctrl-C) or in a run that is, or why there is no runtime.
pub fn wait<T: Send>(py: Python<'_>, work: impl Future<Output = T> + Send) -> PyResult<T> {
    // Without asyncio there is no task; it is not imported to find that out.
    let in_task = py.import("sys")?.getattr("modules")?.contains("asyncio")?;
    let before = if in_task { cancel_requests(py) } else { 0 };
    let look = |py: Python<'_>| {
        py.check_signals()?;
        let asked = CANCEL.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.swap(false, Ordering::Relaxed)));
        if asked || in_task && cancel_requests(py) > before { Err(cancelled_error(py)?) } else { Ok(()) }
    };
    py.detach(|| {
        let result = runtime::block_on_ticking(work, TICK, || Python::attach(look));
        exit::stay_if_ended_detached();
        result
    })
}

thread_local! {
    /// By which the run that is going on on this thread is asked to end, from another thread.
    static CANCEL: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Puts back what was there before.
pub struct Interruptible(Option<Arc<AtomicBool>>);

impl Drop for Interruptible {
    fn drop(&mut self) {
        CANCEL.set(self.0.take());
    }
}

/// Has waits on this thread end, as if by a cancellation, when `flag` is raised; for as long as what it returns lives.
pub fn interruptible(flag: Arc<AtomicBool>) -> Interruptible {
    Interruptible(CANCEL.replace(Some(flag)))
}

/// A stand-in for a future that a coroutine waits on, which also ends at `deadline`. `None` for a bare yield.
pub fn proxy<'py>(future: &Bound<'py, PyAny>, deadline: Moment) -> PyResult<Option<Bound<'py, PyAny>>> {
    static PROXY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = future.py();
    let seconds = deadline.left().as_secs_f64();
    let proxy = helper(py, &PROXY, "proxy")?.call1((future, seconds))?;
    Ok((!proxy.is_none()).then_some(proxy))
}

/// Keeps a coroutine that does not end, beyond the life of the interpreter: its finaliser would run it once more, and
/// what swallowed its cancellation would swallow that as well and keep the process from exiting.
pub fn abandon(coroutine: &Bound<'_, PyAny>) {
    std::mem::forget(coroutine.clone().unbind());
}

/// A new `asyncio.CancelledError`.
pub fn cancelled_error(py: Python<'_>) -> Result<PyErr, PyErr> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(PyErr::from_value(CLASS.import(py, "asyncio", "CancelledError")?.call0()?))
}

/// How often the running task has been asked to cancel and has not taken it back. Zero before Python 3.11, which does
/// not count.
pub fn cancel_requests(py: Python<'_>) -> i64 {
    static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    helper(py, &ASK, "cancel_requests").and_then(|ask| ask.call0()?.extract()).unwrap_or(0)
}

/// The private deadline exception, to be raised on the side that waits.
pub fn deadline_error(py: Python<'_>, text: String) -> PyErr {
    match super::watchdog::deadline_class(py).and_then(|class| class.call1((text,))) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// A failure that was read on another thread.
pub fn remote_failure(py: Python<'_>, message: String, detail: String, is_final: bool) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match helper(py, &CLASS, "RemoteFailure").and_then(|class| class.call1((message, detail, is_final))) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// What `throw` was called with, as an exception.
pub fn thrown<'py>(
    kind: Bound<'py, PyAny>,
    value: Option<Bound<'py, PyAny>>,
    traceback: Option<Bound<'py, PyAny>>,
) -> PyResult<PyErr> {
    if value.is_none() && traceback.is_none() && kind.is_instance_of::<pyo3::exceptions::PyBaseException>() {
        return Ok(PyErr::from_value(kind));
    }
    let instance = match value {
        Some(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => value,
        Some(value) if !value.is_none() => kind.call1((value,))?,
        _ if kind.is_instance_of::<pyo3::exceptions::PyBaseException>() => kind,
        _ => kind.call0()?,
    };
    if !instance.is_instance_of::<pyo3::exceptions::PyBaseException>() {
        return Err(PyRuntimeError::new_err("throw takes an exception"));
    }
    Ok(PyErr::from_value(instance))
}
