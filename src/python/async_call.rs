//! One coroutine under a deadline: what is sent in, what comes out, and how it is ended.

use std::time::Duration;

use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::iterator::PySendResult;

use super::bridge;
use super::function::{self, failure, guarded, is_cancellation};
use super::watchdog::Watch;
use crate::hook::{HookFailure, Moment};

/// How long a cancelled coroutine may still wait while it cleans up.
const GRACE: Duration = Duration::from_millis(250);

/// What the event loop sends in.
pub enum Sent {
    Value,
    Error(PyErr),
}

/// What comes out of one step.
pub(super) enum Step<'py, T> {
    Wait(Bound<'py, PyAny>),
    Done(T),
}

/// One coroutine under a deadline.
pub(super) struct AsyncCall {
    coroutine: Py<PyAny>,
    deadline: Moment,
    proxy: Option<Py<PyAny>>,
    overdue: bool,
    /// Set when the task was asked to cancel while it waited here: how often it had been asked before.
    cancelled: Option<i64>,
}

/// What an awaitable is driven through. The iterator that `__await__` hands out takes a value without raising
/// StopIteration at its end, unlike the `send` of the coroutine itself.
pub(super) fn iterator_of<'py>(awaitable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match awaitable.getattr_opt(intern!(awaitable.py(), "__await__"))? {
        Some(method) => method.call0(),
        // A coroutine in the form of a generator, or an iterator that was handed out before.
        None => Ok(awaitable.clone()),
    }
}

/// What became of one value sent in.
pub(super) enum Sending<'py> {
    Yielded(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
}

pub(super) fn send<'py>(iterator: &Bound<'py, PyAny>) -> PyResult<Sending<'py>> {
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
    pub(super) fn new(awaitable: &Bound<'_, PyAny>, deadline: Moment) -> PyResult<Self> {
        Ok(AsyncCall::over(iterator_of(awaitable)?, deadline))
    }

    pub(super) fn over(iterator: Bound<'_, PyAny>, deadline: Moment) -> Self {
        AsyncCall { coroutine: iterator.unbind(), deadline, proxy: None, overdue: false, cancelled: None }
    }

    pub(super) fn step<'py>(
        &mut self,
        py: Python<'py>,
        watch: &mut Watch,
        sent: Sent,
    ) -> Step<'py, function::Called<'py>> {
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
    pub(super) fn wait_for<'py>(
        &mut self,
        py: Python<'py>,
        future: Bound<'py, PyAny>,
    ) -> Step<'py, function::Called<'py>> {
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
    pub(super) fn failed(&self, py: Python<'_>, failure: HookFailure) -> HookFailure {
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
    pub(super) fn is_being_cancelled(&self, py: Python<'_>) -> bool {
        self.cancelled.is_some_and(|before| bridge::cancel_requests(py) > before.max(0))
    }

    pub(super) fn timed_out(&self) -> HookFailure {
        HookFailure::Timeout("it was still waiting at its deadline and was cancelled".into())
    }

    /// Ends a coroutine that does not end when it is cancelled.
    pub(super) fn give_up<'py>(&self, py: Python<'py>) -> function::Called<'py> {
        self.close(py);
        // Whoever drops the last reference runs what the coroutine does when it is finalised, which for one that
        // swallows everything never ends: so the last reference is never dropped.
        bridge::abandon(self.coroutine.bind(py));
        Err(HookFailure::Timeout("it did not end when it was cancelled at its deadline, and was abandoned".into()))
    }

    pub(super) fn close(&self, py: Python<'_>) {
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
