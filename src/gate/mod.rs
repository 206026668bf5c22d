//! Gates: what a tool call may do.
//!
//! - [`shell`]: what a shell command would do, by parsing it: it is never run, and what is not proven harmless is not
//! - [`ToolCall`] and [`ToolClass`]: what a call does, by its tool's name and declaration and by its arguments
//! - [`ReviewGate`], [`PlanGate`], [`PermissionRules`]: gates, each usable alone and as a [`GateHook`] on a chain
//! - [`Decision`] and [`Denial`]: what a gate decides, and what it says when it refuses

pub mod shell;

mod call;
mod decision;
mod denial;
mod hook;
mod mode;
mod patch;
mod path;
mod permission;
mod place;
mod tool_class;

pub use call::{Analyzer, ToolCall};
pub use decision::{Answer, Decision};
pub use denial::{Denial, DenialCode, GateCode, Language, shell_words};
pub use hook::{Gate, GateHook};
pub use mode::{PlanGate, ReviewGate};
pub use permission::{Level, PermissionRules, RuleError, RuleLists};
pub use tool_class::{ToolClass, class_of_name};
