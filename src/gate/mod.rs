//! Gates: what a tool call may do.
//!
//! - [`shell`]: what a shell command would do, by parsing it: it is never run, and what is not proven harmless is not

pub mod shell;
