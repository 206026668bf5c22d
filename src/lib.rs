//! hookwright: hooks, gates, teams and lessons for people who build agents.
//!
//! The rooms of the core, each of which imports only from those above it:
//!
//! - [`suggest`]: "did you mean" for error messages
//! - [`runtime`]: the one tokio runtime of a process
//! - [`process`]: the one runner for child processes
//! - [`message`]: messages, tool calls, token usage and the history they form
//! - [`hook`]: the hook chain, which everything else is built on
//!
//! The core builds and tests without Python (`--no-default-features`); the feature `python` adds the bindings.

pub mod hook;
pub mod message;
pub mod process;
pub mod runtime;
pub mod suggest;

#[cfg(feature = "python")]
mod python;
