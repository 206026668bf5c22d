//! Deadlines for synchronous Python code.
//!
//! One parked thread raises a private exception inside a function whose time is up. Whoever may run user code opens a
//! [`Watch`], which holds a slot of the thread's present nesting level, arms it before each call and disarms it when the
//! call returns; the thread wakes only for an earlier deadline than the one it sleeps towards, so a call costs two
//! atomic exchanges. A slot that fired is fired again until it is disarmed, for code that swallows every exception;
//! whatever is still pending is cleared before the caller's own code goes on.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::exit;
use crate::hook::Moment;

// A slot is one word, so that its deadline and its state change together: nanoseconds, and below them the state: two
// bits, and one that says whether it fires for an interrupt. An idle slot is zero.
const IDLE: u64 = 0;
const RUNNING: u64 = 1;
const FIRING: u64 = 2;
const FIRED: u64 = 3;
const INTERRUPT: u64 = 4;
const STATE_BITS: u32 = 3;

#[inline]
fn word(deadline: u64, state: u64) -> u64 {
    deadline << STATE_BITS | state
}

fn state_of(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1) & !INTERRUPT
}

fn deadline_of(word: u64) -> u64 {
    word >> STATE_BITS
}

/// How long a function that swallowed the exception is left alone before it is raised again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long a function on the main thread runs before the thread looks for an interrupt that it holds back, and how
/// long until it looks again.
const LOOK_NANOSECONDS: u64 = 50_000_000;

/// One nesting level of one thread.
struct Slot {
    thread: u64,
    word: AtomicU64,
    /// Whether what runs here may hold an interrupt back: it is on the main thread, inside a running event loop.
    holds_back: AtomicBool,
}

/// Whether a level fired, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// It did not.
    No,
    /// Its time was up.
    Deadline,
    /// Its caller was interrupted.
    Interrupt,
}

impl Fired {
    fn of(word: u64) -> Fired {
        if word & INTERRUPT == 0 { Fired::Deadline } else { Fired::Interrupt }
    }
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
/// Whether the thread is to look for interrupts. Set by whoever may hold one back, taken back when a look finds nobody.
static LOOKING: AtomicBool = AtomicBool::new(false);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A deadline as it stands in a slot; what is too far away (73 years) is cut off.
#[inline]
fn nanoseconds(at: Moment) -> u64 {
    at.nanoseconds().min(u64::MAX >> STATE_BITS)
}

struct Levels {
    thread: u64,
    /// Whether threads take turns in the interpreter, so that nothing fires while this one is in there.
    exclusive: bool,
    /// Whether an event loop on this thread would hold an interrupt back.
    may_hold_back: bool,
    slots: Vec<Arc<Slot>>,
    depth: usize,
}

thread_local! {
    static LEVELS: RefCell<Option<Levels>> = const { RefCell::new(None) };
    /// The registry's lock, held by the forking thread across a fork.
    static FORKING: RefCell<Option<MutexGuard<'static, Registry>>> = const { RefCell::new(None) };
}

/// A nesting level of the calling thread. It is idle until it is armed, and again after it was disarmed.
pub struct Watch {
    slot: Arc<Slot>,
    level: usize,
    outer: Option<Moment>,
    exclusive: bool,
    may_hold_back: bool,
    holds_back: bool,
    /// What was written into the slot when it was armed.
    armed: u64,
    /// A level belongs to its thread.
    of_this_thread: PhantomData<*const ()>,
}

impl Watch {
    /// Takes the next nesting level of the calling thread, until it is dropped.
    pub fn open(py: Python<'_>) -> PyResult<Watch> {
        LEVELS.with_borrow_mut(|levels| {
            let levels = match levels {
                Some(levels) => levels,
                None => {
                    let (thread, may_hold_back) =
                        py.import("hookwright._watchdog")?.call_method0("thread")?.extract()?;
                    let exclusive = has_global_lock(py)?;
                    levels.insert(Levels { thread, exclusive, may_hold_back, slots: Vec::new(), depth: 0 })
                }
            };
            // A loop, because a fork inside a watched call leaves the child at a depth without slots.
            while levels.slots.len() <= levels.depth {
                let slot =
                    Slot { thread: levels.thread, word: AtomicU64::new(IDLE), holds_back: AtomicBool::new(false) };
                let slot = Arc::new(slot);
                register(py, &slot)?;
                levels.slots.push(slot);
            }
            let level = levels.depth;
            levels.depth += 1;
            let below = levels.slots[..level].iter().map(|slot| slot.word.load(Ordering::Relaxed));
            let outer = below.filter(|word| *word != IDLE).map(deadline_of).min().map(Moment::from_nanoseconds);
            Ok(Watch {
                slot: levels.slots[level].clone(),
                level,
                outer,
                exclusive: levels.exclusive,
                may_hold_back: levels.may_hold_back,
                holds_back: false,
                armed: IDLE,
                of_this_thread: PhantomData,
            })
        })
    }

    /// Says that what is armed from now on runs inside an event loop of this thread, which may hold an interrupt back.
    #[inline]
    pub fn inside_loop(&mut self) {
        if self.may_hold_back {
            self.holds_back = true;
            self.slot.holds_back.store(true, Ordering::Relaxed);
        }
    }

    /// The same if a loop runs on this thread at all.
    #[inline]
    pub fn perhaps_inside_loop(&mut self, py: Python<'_>) {
        if self.may_hold_back && runs_loop(py) {
            self.inside_loop();
        }
    }

    /// Arms the level. [`Watch::disarm`] must be called before Python code of the caller runs again.
    #[inline]
    pub fn arm(&mut self, py: Python<'_>, deadline: Moment) {
        exit::stay_if_ended(py);
        let at = nanoseconds(deadline);
        self.armed = word(at, RUNNING);
        // The exchange and the load that follows it stand in one total order with what `watch` does: either it sees
        // this deadline, or this thread sees that it would sleep past it.
        self.slot.word.swap(self.armed, Ordering::SeqCst);
        if at < NEXT.load(Ordering::SeqCst) {
            wake();
        }
        if self.holds_back && !LOOKING.load(Ordering::SeqCst) {
            LOOKING.store(true, Ordering::SeqCst);
            wake();
        }
    }

    /// Arms the level for the next call of a row; it may still be armed for the one before, see [`Watch::may_stay`].
    ///
    /// A later deadline than the one that stands needs no exchange: if the thread still sees the earlier one it wakes too
    /// soon, looks again with the interpreter in hand, and sleeps on.
    #[inline]
    pub fn arm_next(&mut self, py: Python<'_>, deadline: Moment) {
        let next = word(nanoseconds(deadline), RUNNING);
        if self.armed == IDLE || next < self.armed {
            return self.arm(py, deadline);
        }
        exit::stay_if_ended(py);
        self.armed = next;
        self.slot.word.store(next, Ordering::Release);
    }

    /// Whether a call that was armed and has returned may leave the level armed for the next one, because it did not
    /// fire and cannot fire before Python code runs again. Only for a caller that lets none run in between but
    /// [`Watch::arm_next`]'s.
    #[inline]
    pub fn may_stay(&self) -> bool {
        // Firing takes the interpreter, which is in this thread's hands.
        self.exclusive && self.slot.word.load(Ordering::Acquire) == self.armed
    }

    /// Ends the deadline. Returns whether it fired; whatever was raised and not yet delivered is taken back.
    #[inline]
    pub fn disarm(&mut self, py: Python<'_>) -> PyResult<Fired> {
        let armed = std::mem::replace(&mut self.armed, IDLE);
        let fired = match self.slot.word.compare_exchange(armed, IDLE, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(Fired::No),
            Err(_) => self.take_back(py),
        };
        exit::stay_if_ended(py);
        fired
    }

    /// The nearest deadline of the levels below this one: the one of the hook in which this runs, or of one around that.
    pub fn outer_deadline(&self) -> Option<Moment> {
        self.outer
    }

    #[cold]
    fn take_back(&mut self, py: Python<'_>) -> PyResult<Fired> {
        loop {
            let present = self.slot.word.load(Ordering::SeqCst);
            match state_of(present) {
                FIRING => std::hint::spin_loop(),
                FIRED => {
                    self.slot.word.store(IDLE, Ordering::SeqCst);
                    clear(py, self.slot.thread)?;
                    return Ok(Fired::of(present));
                }
                // The deadline was brought forward, and it had not fired.
                _ => {
                    if self.slot.word.compare_exchange(present, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                        return Ok(Fired::No);
                    }
                }
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.holds_back {
            self.slot.holds_back.store(false, Ordering::Relaxed);
        }
        LEVELS.with_borrow_mut(|levels| {
            if let Some(levels) = levels {
                levels.depth = self.level;
            }
        });
        if self.armed != IDLE {
            // Somebody left between arming and disarming, by a panic: nothing may stay behind.
            Python::try_attach(|py| drop(self.disarm(py)));
        }
    }
}

/// Has the thread look at the slots again.
#[cold]
fn wake() {
    let _registry = registry();
    WAKE.notify_one();
}

/// What is left of the innermost deadline that is armed on this thread, in seconds.
pub fn seconds_left() -> Option<f64> {
    let now = nanoseconds(Moment::now());
    LEVELS.with_borrow(|levels| {
        let levels = levels.as_ref()?;
        let open = levels.slots.iter().take(levels.depth).rev();
        let armed = open.map(|slot| slot.word.load(Ordering::SeqCst)).find(|word| *word != IDLE)?;
        Some(deadline_of(armed).saturating_sub(now) as f64 / 1e9)
    })
}

/// Whether this interpreter has its global lock.
fn has_global_lock(py: Python<'_>) -> PyResult<bool> {
    match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(ask) => ask.call0()?.is_truthy(),
        None => Ok(true),
    }
}

/// Whether an event loop runs on this thread.
fn runs_loop(py: Python<'_>) -> bool {
    static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ASK.import(py, "asyncio", "_get_running_loop").and_then(|ask| ask.call0()).is_ok_and(|running| !running.is_none())
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
    // When the next look for interrupts is due, which function ran at the last one, and which interrupt is dealt with.
    let (mut next_look, mut seen, mut known) = (u64::MAX, IDLE, None);
    let mut guard = registry();
    while !guard.ended {
        NEXT.store(u64::MAX, Ordering::SeqCst);
        let now = nanoseconds(Moment::now());
        let looks = now >= next_look;
        if looks {
            // Before the slots are read: what is armed from here on says so again.
            LOOKING.store(false, Ordering::SeqCst);
            next_look = u64::MAX;
        }
        let mut next = u64::MAX;
        let mut due = Vec::new();
        let mut holder = None;
        for slot in guard.slots.iter().filter_map(std::sync::Weak::upgrade) {
            let word = slot.word.load(Ordering::SeqCst);
            if matches!(state_of(word), RUNNING | FIRED) {
                let deadline = deadline_of(word);
                if deadline <= now { due.push(slot.clone()) } else { next = next.min(deadline) }
            }
            if state_of(word) == RUNNING && slot.holds_back.load(Ordering::Relaxed) {
                // The slots of a thread stand in the order of its levels, so the last one is what runs.
                holder = Some((slot, word));
            }
        }
        let present = holder.as_ref().map_or(IDLE, |(_, word)| *word);
        // Only a function that runs since the last look is disturbed; most have ended by then.
        let holder = holder.filter(|_| looks && seen == present);
        if looks && present != IDLE {
            LOOKING.store(true, Ordering::SeqCst);
        }
        if next_look == u64::MAX && LOOKING.load(Ordering::SeqCst) {
            next_look = now.saturating_add(LOOK_NANOSECONDS);
            seen = present;
        }
        if due.is_empty() && holder.is_none() {
            let next = next.min(next_look);
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
                fire(py, slot, Fired::Deadline);
            }
            if let Some((slot, word)) = &holder {
                let held = held_back(py);
                // The function may have returned while this was found out; then the loop has delivered the interrupt.
                if held.is_some() && held != known && slot.word.load(Ordering::SeqCst) == *word {
                    known = held;
                    fire(py, slot, Fired::Interrupt);
                }
            }
        });
        if attached.is_none() {
            return; // The interpreter is going away.
        }
        drop((due, holder));
        guard = registry();
    }
}

/// The interrupt that asyncio has made a cancellation of and that the running task has not seen yet.
fn held_back(py: Python<'_>) -> Option<(u64, u64)> {
    static LOOK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match LOOK.import(py, "hookwright._watchdog", "held_back").and_then(|look| look.call0()?.extract()) {
        Ok(held) => held,
        Err(error) => {
            tracing::error!(%error, "whether an interrupt is held back could not be found out");
            None
        }
    }
}

/// Ends the function that runs on another thread, if it is one that is watched: whoever waits for it was interrupted.
pub fn interrupt(py: Python<'_>, thread: u64) {
    let running = |slot: &Arc<Slot>| slot.thread == thread && state_of(slot.word.load(Ordering::SeqCst)) == RUNNING;
    let innermost = registry().slots.iter().rev().filter_map(std::sync::Weak::upgrade).find(running);
    if let Some(slot) = innermost {
        fire(py, &slot, Fired::Interrupt);
        // It has to be fired again if it is swallowed.
        wake();
    }
}

fn fire(py: Python<'_>, slot: &Slot, wanted: Fired) {
    let before = slot.word.load(Ordering::SeqCst);
    // The slot may have been disarmed, or armed again, while this thread waited for the interpreter.
    let now = Moment::now();
    let cause = if wanted == Fired::Interrupt { INTERRUPT } else { before & INTERRUPT };
    if !matches!(state_of(before), RUNNING | FIRED)
        || wanted == Fired::Deadline && deadline_of(before) > nanoseconds(now)
        || slot.word.compare_exchange(before, word(0, FIRING), Ordering::SeqCst, Ordering::SeqCst).is_err()
    {
        return;
    }
    let raised = deadline_class(py).and_then(|class| setter(py)?.call1((slot.thread, class)));
    if let Err(error) = raised {
        tracing::error!(%error, "a deadline could not be enforced");
    }
    slot.word.store(word(nanoseconds(now + AGAIN), FIRED | cause), Ordering::SeqCst);
}

/// Brings every deadline forward to now, at interpreter exit.
pub fn fire_all() {
    let registry = registry();
    for slot in registry.slots.iter().filter_map(std::sync::Weak::upgrade) {
        // A slot that is disarmed meanwhile stays as it is, and so does one that fires already.
        let _ = slot.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |present| {
            matches!(state_of(present), RUNNING | FIRED).then(|| word(0, state_of(present) | present & INTERRUPT))
        });
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
    LOOKING.store(false, Ordering::SeqCst);
    if armed.is_some() {
        // This thread's slots are registered again, and a thread started, with its next arming.
        LEVELS.with_borrow_mut(|levels| *levels = None);
    }
}
