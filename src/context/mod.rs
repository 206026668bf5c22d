//! What of a conversation goes to the model: token counts, selection, and the two compactions.
//!
//! Nothing here does I/O. Messages stay shared: whatever is left as it was is the same `Arc` as in the history.
//!
//! - [`TokenCounter`], [`EstimatedTokens`], [`CachedTokens`]: how many tokens a text or a message has
//! - [`units`], [`Unit`]: a history in pieces that are sent or left out as a whole
//! - [`select`]: the part of a history that fits a budget
//! - [`micro_compact`]: old, long tool results become one line
//! - [`plan`], [`Plan::apply`]: older messages become a summary

mod auto;
mod cut;
mod estimate;
mod micro;
mod note;
mod select;
mod squeeze;
mod tokens;
mod units;

pub use auto::{Applied, AutoOptions, Plan, SUMMARY_INSTRUCTIONS, plan};
pub use cut::cut_middle;
pub use estimate::EstimatedTokens;
pub use micro::{MicroCompacted, MicroOptions, SAVED_WHOLE, micro_compact};
pub use select::{MINIMUM_BUDGET, Quotas, SelectOptions, Selection, select};
pub use tokens::{CachedTokens, CountFunction, TokenCounter};
pub use units::{Unit, UnitKind, units};
