//! Writing to a pipe whose reader may be gone, without being killed for it.
//!
//! Rust programs and CPython ignore SIGPIPE, but a Python script may have put the default action back (many
//! command-line tools do), and then a hook that does not read its input would kill the host.

use std::io;
use std::task::Poll;

/// Runs one non-blocking write with SIGPIPE held back from this thread, and takes back the signal it may have raised.
///
/// Elsewhere than on Linux the write runs as it is.
#[cfg(target_os = "linux")]
pub(super) fn held_back(write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    use nix::sys::signal::{SigSet, SigmaskHow, Signal};
    use nix::sys::signalfd::{SfdFlags, SignalFd};

    let mut only_sigpipe = SigSet::empty();
    only_sigpipe.add(Signal::SIGPIPE);
    let Ok(mask_before) = only_sigpipe.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return write();
    };
    let result = write();
    if let Poll::Ready(Err(error)) = &result
        && error.kind() == io::ErrorKind::BrokenPipe
        && !mask_before.contains(Signal::SIGPIPE)
        // The signal is directed at this thread, so reading it here takes it from nobody else.
        && let Ok(pending) = SignalFd::with_flags(&only_sigpipe, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
    {
        let _ = pending.read_signal();
    }
    let _ = mask_before.thread_set_mask();
    result
}

/// Runs one non-blocking write.
#[cfg(not(target_os = "linux"))]
pub(super) fn held_back(write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    write()
}
