//! Deadlines for synchronous Python code.
//!
//! One parked thread raises a private exception inside a function whose time is up. Each call that may run user code
//! arms a slot of its own thread and nesting level, and disarms it when the call returns; the thread wakes only for an
//! earlier deadline than the one it sleeps towards, so arming costs two atomic stores. A slot that fired is fired
//! again until it is disarmed, for code that swallows every exception; whatever is still pending is cleared before the
//! caller's own code goes on.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::exit;

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const FIRING: u8 = 2;
const FIRED: u8 = 3;

/// How long a function that swallowed the exception is left alone before it is raised again.
const AGAIN: Duration = Duration::from_millis(20);

/// One nesting level of one thread.
struct Slot {
    thread: u64,
    deadline: AtomicU64,
    state: AtomicU8,
}

struct Registry {
    slots: Vec<std::sync::Weak<Slot>>,
    thread: Option<JoinHandle<()>>,
    ended: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { slots: Vec::new(), thread: None, ended: false });
static WAKE: Condvar = Condvar::new();
/// What the thread sleeps towards; the maximum while it looks around, so that an arming then leads to a notification.
static NEXT: AtomicU64 = AtomicU64::new(u64::MAX);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds since an arbitrary point in this process, never zero.
fn nanoseconds(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(base()).as_nanos()).unwrap_or(u64::MAX - 1).saturating_add(1)
}

fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

fn instant(nanoseconds: u64) -> Option<Instant> {
    base().checked_add(Duration::from_nanos(nanoseconds))
}

struct Levels {
    thread: u64,
    slots: Vec<Arc<Slot>>,
    depth: usize,
}

thread_local! {
    static LEVELS: RefCell<Option<Levels>> = const { RefCell::new(None) };
    /// The registry's lock, held by the forking thread across a fork.
    static FORKING: RefCell<Option<MutexGuard<'static, Registry>>> = const { RefCell::new(None) };
}

/// An armed deadline. [`Armed::disarm`] must be called before Python code of the caller runs again.
pub struct Armed(Arc<Slot>);

/// Arms a deadline for the calling thread, inside those that are armed already.
pub fn arm(py: Python<'_>, deadline: Instant) -> PyResult<Armed> {
    exit::stay_if_ended(py);
    let at = nanoseconds(deadline);
    let slot = LEVELS.with_borrow_mut(|levels| -> PyResult<Arc<Slot>> {
        let levels = match levels {
            Some(levels) => levels,
            None => {
                let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
                levels.insert(Levels { thread, slots: Vec::new(), depth: 0 })
            }
        };
        if levels.depth == levels.slots.len() {
            let slot = Arc::new(Slot {
                thread: levels.thread,
                deadline: AtomicU64::new(u64::MAX),
                state: AtomicU8::new(IDLE),
            });
            register(py, &slot)?;
            levels.slots.push(slot);
        }
        let slot = levels.slots[levels.depth].clone();
        levels.depth += 1;
        Ok(slot)
    })?;
    slot.deadline.store(at, Ordering::Relaxed);
    slot.state.store(RUNNING, Ordering::SeqCst);
    if at < NEXT.load(Ordering::SeqCst) {
        let _registry = registry();
        WAKE.notify_one();
    }
    Ok(Armed(slot))
}

/// The nearest deadline that is armed on the calling thread.
pub fn nearest_deadline() -> Option<Instant> {
    LEVELS.with_borrow(|levels| {
        let levels = levels.as_ref()?;
        let armed = levels.slots[..levels.depth].iter().map(|slot| slot.deadline.load(Ordering::Relaxed));
        armed.min().and_then(instant)
    })
}

impl Armed {
    /// Ends the deadline. Returns whether it fired; whatever was raised and not yet delivered is taken back.
    pub fn disarm(self, py: Python<'_>) -> PyResult<bool> {
        LEVELS.with_borrow_mut(|levels| {
            if let Some(levels) = levels {
                levels.depth -= 1;
            }
        });
        loop {
            match self.0.state.compare_exchange(RUNNING, IDLE, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    exit::stay_if_ended(py);
                    return Ok(false);
                }
                Err(FIRING) => std::hint::spin_loop(),
                Err(_) => {
                    self.0.state.store(IDLE, Ordering::SeqCst);
                    clear(py, self.0.thread)?;
                    exit::stay_if_ended(py);
                    return Ok(true);
                }
            }
        }
    }
}

/// The private exception class that stands for a deadline.
pub fn deadline_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "hookwright._watchdog", "Deadline")
}

fn register(py: Python<'_>, slot: &Arc<Slot>) -> PyResult<()> {
    // Imported here, with no exception pending, and not on the watchdog's own thread.
    setter(py)?;
    deadline_class(py)?;
    let mut registry = registry();
    registry.slots.retain(|slot| slot.strong_count() > 0);
    registry.slots.push(Arc::downgrade(slot));
    if registry.thread.is_none() && !registry.ended {
        registry.thread = Some(std::thread::Builder::new().name("hookwright-watchdog".into()).spawn(watch)?);
    }
    Ok(())
}

/// `PyThreadState_SetAsyncExc`, a C function: calling it runs no Python code, in which the exception could surface.
fn setter(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static SETTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    SETTER.import(py, "hookwright._watchdog", "set_async_exception")
}

fn clear(py: Python<'_>, thread: u64) -> PyResult<()> {
    static NOTHING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let nothing = NOTHING.import(py, "hookwright._watchdog", "NOTHING")?;
    setter(py)?.call1((thread, nothing))?;
    Ok(())
}

fn watch() {
    let mut guard = registry();
    while !guard.ended {
        NEXT.store(u64::MAX, Ordering::SeqCst);
        let now = nanoseconds(Instant::now());
        let mut next = u64::MAX;
        let mut due = Vec::new();
        for slot in guard.slots.iter().filter_map(std::sync::Weak::upgrade) {
            if matches!(slot.state.load(Ordering::SeqCst), RUNNING | FIRED) {
                let deadline = slot.deadline.load(Ordering::Relaxed);
                if deadline <= now { due.push(slot) } else { next = next.min(deadline) }
            }
        }
        if due.is_empty() {
            NEXT.store(next, Ordering::SeqCst);
            guard = if next == u64::MAX {
                WAKE.wait(guard).unwrap_or_else(PoisonError::into_inner)
            } else {
                let wait = Duration::from_nanos(next - now);
                WAKE.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0
            };
            continue;
        }
        // Never attach to the interpreter while holding a lock that an attached thread may want.
        drop(guard);
        let attached = Python::try_attach(|py| {
            for slot in &due {
                fire(py, slot);
            }
        });
        if attached.is_none() {
            return; // The interpreter is going away.
        }
        drop(due);
        guard = registry();
    }
}

fn fire(py: Python<'_>, slot: &Slot) {
    let before = slot.state.load(Ordering::SeqCst);
    if !matches!(before, RUNNING | FIRED)
        || slot.state.compare_exchange(before, FIRING, Ordering::SeqCst, Ordering::SeqCst).is_err()
    {
        return;
    }
    // The slot may have been armed again while this thread waited for the interpreter.
    let now = Instant::now();
    if slot.deadline.load(Ordering::Relaxed) > nanoseconds(now) {
        slot.state.store(before, Ordering::SeqCst);
        return;
    }
    slot.deadline.store(nanoseconds(now + AGAIN), Ordering::Relaxed);
    let raised = deadline_class(py).and_then(|class| setter(py)?.call1((slot.thread, class)));
    if let Err(error) = raised {
        tracing::error!(%error, "a deadline could not be enforced");
    }
    slot.state.store(FIRED, Ordering::SeqCst);
}

/// Brings every deadline forward to now, at interpreter exit.
pub fn fire_all() {
    let registry = registry();
    for slot in registry.slots.iter().filter_map(std::sync::Weak::upgrade) {
        slot.deadline.store(0, Ordering::Relaxed);
    }
    WAKE.notify_one();
}

/// Ends the thread, at interpreter exit: a thread that attaches while the interpreter goes away would take the process
/// with it. Must be called detached.
pub fn shut_down() {
    let thread = {
        let mut registry = registry();
        registry.ended = true;
        WAKE.notify_one();
        registry.thread.take()
    };
    if let Some(thread) = thread {
        // It cannot have panicked, and if it had, there would be nothing to do about it here.
        let _ = thread.join();
    }
}

/// Before a fork: nobody may be in the middle of the registry.
pub fn before_fork() {
    FORKING.with_borrow_mut(|forking| *forking = Some(registry()));
}

/// After a fork, in the parent.
pub fn after_fork_in_parent() {
    FORKING.with_borrow_mut(|forking| *forking = None);
}

/// After a fork, in the child: the watchdog's thread and all other threads are gone.
pub fn after_fork_in_child() {
    let armed = FORKING.with_borrow_mut(|forking| {
        let mut registry = forking.take()?;
        // The parent's thread is not ours to join or to let go of.
        std::mem::forget(registry.thread.take());
        registry.slots.clear();
        Some(())
    });
    NEXT.store(u64::MAX, Ordering::SeqCst);
    if armed.is_some() {
        // This thread's slots are registered again, and a thread started, with its next arming.
        LEVELS.with_borrow_mut(|levels| *levels = None);
    }
}
