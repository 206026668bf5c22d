//! The one runner for child processes, used by shell hooks and by the shell tool.
//!
//! [`run`] starts a program in a process group of its own, feeds it, reads it, and comes back in bounded time:
//!
//! - stdin is written while stdout and stderr are read, so neither side can wait for the other for ever; a child
//!   that never reads its input is fine.
//! - When the leader (the process that was started) exits, its output gets [`ProcessSpec::drain`] to arrive. A
//!   background child that holds the pipe does not delay the result any further: what is already in the pipe is
//!   taken, and what is left of the group is killed at once.
//! - At the timeout, and when output runs over a [`Capture::Fail`] cap, the group gets TERM, then KILL after
//!   [`ProcessSpec::grace`], earlier if nothing of it is left.
//! - Dropping the future kills the group at once. The leader is still reaped, by a thread of its own, so that this
//!   does not depend on a runtime that may be shutting down.
//! - A process that left the group (`setsid`) cannot be killed with it; it does not delay the result either.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! use hookwright::process::{ProcessSpec, Status, run};
//! let output = run(ProcessSpec::shell("tr a-z A-Z").stdin("hello")).await.unwrap();
//! assert_eq!(output.status, Status::Exited(0));
//! assert_eq!(output.stdout.text(), "HELLO");
//! # });
//! ```

mod capture;
mod leader;
mod pipes;
pub mod read_only;
mod run;
mod sigpipe;
mod spec;

pub use capture::{Capture, Captured};
pub use run::run;
pub use spec::{OutputStream, ProcessError, ProcessOutput, ProcessSpec, Status, Stdin, StopReason};
