//! hookwright: hooks, gates, teams and lessons for people who build agents.
//!
//! The rooms of the core, each of which imports only from those above it:
//!
//! - [`suggest`]: "did you mean" for error messages
//! - [`runtime`]: the one tokio runtime of a process
//! - [`process`]: the one runner for child processes
//! - [`message`]: messages, tool calls, token usage and the history they form
//! - [`hook`]: the hook chain, which everything else is built on
//! - [`gate`]: what a tool call may do; shell commands are parsed, not guessed
//! - [`model`]: what models are asked and answer; a model that answers from a script
//! - [`context`]: what of a conversation goes to the model: token counts, selection, compaction
//! - [`agent`]: sessions, their transcripts, the limits of a turn
//! - [`team`]: teammates, their mail, their tasks
//! - [`tool`]: what a model can call: the trait, arguments against their schema, the workspace tools
//!
//! The core builds and tests without Python (`--no-default-features`); the feature `python` adds the bindings.

#[cfg(not(unix))]
compile_error!("hookwright runs on Linux and macOS: it starts and ends groups of processes");

pub mod agent;
pub mod context;
mod fence;
pub mod gate;
pub mod hook;
pub mod message;
pub mod model;
pub mod process;
pub mod runtime;
pub mod suggest;
pub mod team;
pub mod tool;

#[cfg(feature = "python")]
mod python;
