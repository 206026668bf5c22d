//! The one tokio runtime of a process: made on first use, forgotten in a forked child, shut down in bounded time.

use std::cell::RefCell;
use std::future::Future;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The process is exiting.
    #[error("the runtime has been shut down because the process is exiting")]
    ShutDown,
    /// The operating system refused a thread or a file descriptor.
    #[error("the runtime could not be started: {0}")]
    Start(#[from] std::io::Error),
}

enum Slot {
    Empty,
    Running { pid: u32, runtime: Arc<Runtime> },
    ShutDown { pid: u32 },
}

static SLOT: Mutex<Slot> = Mutex::new(Slot::Empty);
/// How many threads wait in [`block_on_ticking`]; told when one has ended.
static WAITING: Mutex<usize> = Mutex::new(0);
static WAIT_ENDED: Condvar = Condvar::new();

thread_local! {
    /// The locks of this module, held by the forking thread across a fork.
    static FORKING: RefCell<Option<(MutexGuard<'static, Slot>, MutexGuard<'static, usize>)>> =
        const { RefCell::new(None) };
}

fn waiting() -> MutexGuard<'static, usize> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread that waits, for as long as this lives.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        *waiting() += 1;
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *waiting() -= 1;
        WAIT_ENDED.notify_all();
    }
}

fn slot() -> MutexGuard<'static, Slot> {
    SLOT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime of this process, started if need be.
///
/// # Errors
/// When the process is exiting or the operating system refuses.
pub fn runtime() -> Result<Arc<Runtime>, RuntimeError> {
    let pid = std::process::id();
    let mut slot = slot();
    match &*slot {
        Slot::Running { pid: owner, runtime } if *owner == pid => return Ok(runtime.clone()),
        Slot::ShutDown { pid: owner } if *owner == pid => return Err(RuntimeError::ShutDown),
        _ => {}
    }
    let fresh = Builder::new_multi_thread().worker_threads(2).thread_name("hookwright").enable_all().build()?;
    let fresh = Arc::new(fresh);
    let before = std::mem::replace(&mut *slot, Slot::Running { pid, runtime: fresh.clone() });
    // A forked child inherits the parent's runtime without its threads. Dropping it would wait for them forever.
    std::mem::forget(before);
    Ok(fresh)
}

fn is_shut_down() -> bool {
    matches!(&*slot(), Slot::ShutDown { pid } if *pid == std::process::id())
}

/// Ends the runtime: waits end at their next tick, and what still runs is dropped, all within `patience`. Later uses are
/// refused.
pub fn shut_down(patience: Duration) {
    let until = Instant::now() + patience;
    let pid = std::process::id();
    let before = std::mem::replace(&mut *slot(), Slot::ShutDown { pid });
    let mut count = waiting();
    while *count > 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        count = WAIT_ENDED.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(count);
    match before {
        Slot::Running { pid: owner, runtime } if owner == pid => {
            if let Some(runtime) = Arc::into_inner(runtime) {
                runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
            }
        }
        // Another process's runtime, or one that a thread still uses: leave it to the operating system.
        other => std::mem::forget(other),
    }
}

/// Before a fork: nobody may be in the middle of this module's state.
pub fn before_fork() {
    FORKING.with_borrow_mut(|forking| *forking = Some((slot(), waiting())));
}

/// After a fork, in the parent.
pub fn after_fork_in_parent() {
    FORKING.with_borrow_mut(|forking| *forking = None);
}

/// After a fork, in the child: the runtime is the parent's, and so is whoever waits for it.
pub fn after_fork_in_child() {
    FORKING.with_borrow_mut(|forking| {
        if let Some((mut slot, mut waiting)) = forking.take() {
            *waiting = 0;
            std::mem::forget(std::mem::replace(&mut *slot, Slot::Empty));
        }
    });
}

/// Waits for `future` on the calling thread, looking up every `tick` to ask `check` whether to go on.
///
/// # Errors
/// What `check` returns, or that the process is exiting; the future is dropped then.
pub fn block_on_ticking<T, E: From<RuntimeError>>(
    future: impl Future<Output = T>,
    tick: Duration,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<T, E> {
    let _waiting = Waiting::begin();
    runtime()?.block_on(async {
        let mut future = std::pin::pin!(future);
        loop {
            match tokio::time::timeout(tick, &mut future).await {
                Ok(value) => return Ok(value),
                Err(_) if is_shut_down() => return Err(RuntimeError::ShutDown.into()),
                Err(_) => check()?,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_can_be_broken_off_between_ticks() {
        let mut looks = 0;
        let result = block_on_ticking(std::future::pending::<()>(), Duration::from_millis(1), || {
            looks += 1;
            if looks == 3 { Err(RuntimeError::ShutDown) } else { Ok(()) }
        });
        assert!(matches!(result, Err(RuntimeError::ShutDown)));
        assert_eq!(looks, 3);
        assert_eq!(block_on_ticking(async { 7 }, Duration::from_millis(1), || Ok::<(), RuntimeError>(())).unwrap(), 7);
    }
}
