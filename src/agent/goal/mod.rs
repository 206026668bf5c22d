//! A goal that two agents reach together: an executor that works, and a reviewer that only looks.
//!
//! The runner owns the rounds. One round: dispatch the goal to the executor, wait for it, take a sample of the
//! workspace, look at the breakers, have it reviewed, read the verdict, decide. No model can start, wait for or steer
//! another round: there is no tool for that, and what either agent says reaches the other only as fenced data.
//!
//! [`Goal`] is a state machine without I/O. Unlike a turn it is plain data, because it has to survive the process:
//! what it wants done next follows from its [`GoalState`] alone, so a state that is read back goes on where it was.
//! Each thing that it wants done carries a generation; what comes back for an earlier one changes nothing.

mod breakers;
mod commands;
mod file;
mod fingerprint;
mod machine;
mod prompt;
#[cfg(test)]
mod properties;
mod state;
#[cfg(test)]
mod tests;
mod verdict;

pub use commands::{Command, CommandAction, Commands, CommandsError};
pub use file::{GoalFile, GoalFileError};
pub use fingerprint::{Bounds, workspace_fingerprint};
pub use machine::{Answer, Effect, Goal, GoalError, NotSent, Sent, Step};
pub use state::{
    After, Delivery, Ended, Evidence, Execution, GoalSpec, GoalState, GoalStatus, Passing, Phase, Round, Sample,
};
pub use verdict::{Judgement, NoVerdict, Verdict, read_verdict};
