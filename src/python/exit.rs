//! The end of the interpreter, with threads still under way.
//!
//! CPython ends a thread that wants the interpreter while it is going away by unwinding its stack, which must not happen
//! through frames of Rust: the process would abort. So a thread that is in here when exit begins is made to come out or
//! to stay where it is for good, detached, before exit goes on; the same holds for one that comes in later.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Set attached, and read attached: the interpreter's lock orders it.
static ENDED: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter; it alone may still run hooks, in other exit handlers.
static LAST: OnceLock<ThreadId> = OnceLock::new();
/// How deep each thread is in here.
static THREADS: Mutex<Vec<Weak<AtomicUsize>>> = Mutex::new(Vec::new());
static CAME_OUT: Condvar = Condvar::new();

thread_local! {
    static DEPTH: OnceCell<Arc<AtomicUsize>> = const { OnceCell::new() };
}

fn threads() -> MutexGuard<'static, Vec<Weak<AtomicUsize>>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn depth<T>(read: impl FnOnce(&AtomicUsize) -> T) -> T {
    DEPTH.with(|cell| {
        read(cell.get_or_init(|| {
            let fresh = Arc::new(AtomicUsize::new(0));
            let mut threads = threads();
            threads.retain(|thread| thread.strong_count() > 0);
            threads.push(Arc::downgrade(&fresh));
            fresh
        }))
    })
}

/// A stretch of Rust that calls into Python, for as long as this lives.
pub struct Inside;

/// Comes in. Does not return once exit has begun, but for the thread that exits.
pub fn enter(py: Python<'_>) -> Inside {
    stay_if_ended(py);
    depth(|depth| depth.store(depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
    Inside
}

impl Drop for Inside {
    fn drop(&mut self) {
        depth(|depth| depth.store(depth.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed));
        if ENDED.load(Ordering::Relaxed) {
            drop(threads());
            CAME_OUT.notify_all();
        }
    }
}

fn is_ended_for_this_thread() -> bool {
    ENDED.load(Ordering::Relaxed) && LAST.get() != Some(&std::thread::current().id())
}

/// Does not return once exit has begun, but for the thread that exits.
#[inline]
pub fn stay_if_ended(py: Python<'_>) {
    if ENDED.load(Ordering::Relaxed) {
        py.detach(stay_if_ended_detached);
    }
}

/// The same for a thread that is detached.
pub fn stay_if_ended_detached() {
    if is_ended_for_this_thread() {
        depth(|depth| depth.store(0, Ordering::Relaxed));
        drop(threads());
        CAME_OUT.notify_all();
        loop {
            std::thread::park();
        }
    }
}

/// Begins the end; called attached, on the thread that exits.
pub fn begin() {
    let _ = LAST.set(std::thread::current().id());
    ENDED.store(true, Ordering::Relaxed);
}

/// Waits until no other thread is in here, `patience` at most: one that is stuck in C code does not come out.
pub fn wait_for_others(patience: Duration) {
    let until = Instant::now() + patience;
    let own = depth(|depth| std::ptr::from_ref(depth) as usize);
    let mut guard = threads();
    loop {
        let inside = |thread: &Weak<AtomicUsize>| {
            thread
                .upgrade()
                .is_some_and(|depth| Arc::as_ptr(&depth) as usize != own && depth.load(Ordering::Relaxed) > 0)
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || !guard.iter().any(inside) {
            return;
        }
        guard = CAME_OUT.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// After a fork, in the child: the parent's other threads are not here.
pub fn after_fork_in_child() {
    // The lock is held only by attached threads, for moments; the forking thread was the one attached.
    let own = depth(|depth| std::ptr::from_ref(depth) as usize);
    threads().retain(|thread| thread.upgrade().is_some_and(|depth| Arc::as_ptr(&depth) as usize == own));
}
