//! The hook chain: events, filters, order, budgets, outcomes with provenance.

pub mod event;

pub use event::{Action, Event, EventSpec, Field, UnknownEvent};
