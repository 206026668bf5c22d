//! hookwright: hooks, gates, teams and lessons for people who build agents.
//!
//! The rooms of the core, each of which imports only from those above it:
//!
//! - [`suggest`]: "did you mean" for error messages
//! - [`process`]: the one runner for child processes
//! - [`hook`]: the hook chain, which everything else is built on
//! - [`tool`]: what a model can call: the trait, arguments against their schema, the workspace tools
//!
//! The core builds and tests without Python (`--no-default-features`); the feature `python` adds the bindings.

pub mod hook;
pub mod process;
pub mod suggest;
pub mod tool;
