//! hookwright: hooks, gates, teams and lessons for people who build agents.
//!
//! The rooms of the core, each of which imports only from those above it:
//!
//! - [`suggest`]: "did you mean" for error messages
//! - [`message`]: messages, tool calls, token usage and the history they form
//! - [`agent`]: sessions and their transcripts
//! - [`hook`]: the hook chain, which everything else is built on
//!
//! The core builds and tests without Python (`--no-default-features`); the feature `python` adds the bindings.

pub mod agent;
pub mod hook;
pub mod message;
pub mod suggest;
