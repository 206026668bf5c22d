//! The one tokio runtime of a process: made on first use, forgotten in a forked child, shut down in bounded time.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// Ends the runtime, giving what still runs `patience` to finish. Later uses are refused.
pub fn shut_down(patience: Duration) {
    let pid = std::process::id();
    let before = std::mem::replace(&mut *slot(), Slot::ShutDown { pid });
    match before {
        Slot::Running { pid: owner, runtime } if owner == pid => {
            if let Some(runtime) = Arc::into_inner(runtime) {
                runtime.shutdown_timeout(patience);
            }
        }
        // Another process's runtime, or one that a thread still uses: leave it to the operating system.
        other => std::mem::forget(other),
    }
}

/// Waits for `future` on the calling thread, looking up every `tick` to ask `check` whether to go on.
///
/// # Errors
/// What `check` returns; the future is dropped then.
pub fn block_on_ticking<T, E: From<RuntimeError>>(
    future: impl Future<Output = T>,
    tick: Duration,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<T, E> {
    runtime()?.block_on(async {
        let mut future = std::pin::pin!(future);
        loop {
            match tokio::time::timeout(tick, &mut future).await {
                Ok(value) => return Ok(value),
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
