//! The hook chain: events, filters, order, budgets, outcomes with provenance.
//!
//! [`event`] is the table of what each event allows; [`chain`] holds the hooks; [`dispatch`] is the rules of one run,
//! once, for the synchronous and the asynchronous driver; [`outcome`] is what came of it.

pub mod builtin;
pub mod chain;
pub mod context;
pub mod dispatch;
pub mod entry;
pub mod event;
pub mod filter;
pub mod level;
pub mod llm;
pub mod moment;
pub mod outcome;
pub mod payload;
pub mod record;
pub mod redact;
pub mod replay;
pub mod result;
pub mod shell;
pub mod stats;

pub mod config;
pub mod glob;
mod histogram;

pub use builtin::FnHook;
pub use chain::{Exchange, Explanation, HookChain, RegistrationError, Snapshot};
pub use context::{AgentIdentity, AgentKind, EventContext, FieldSource, Fields, Host, HostHandle, Scope};
pub use dispatch::{Abort, Dispatch};
pub use entry::{
    BoxFuture, Call, DEFAULT_BUDGET, DEFAULT_TIMEOUT, Entry, Hook, HookFailure, HookKind, HookMeta, HookReply,
    Isolation, Lineup, OnError, Role, Verdict,
};
pub use event::{Action, Event, EventSpec, Field, UnknownEvent};
pub use filter::{Filter, FilterError, FilterSpec, FilterSubject, Mismatch};
pub use level::Level;
pub use moment::Moment;
pub use outcome::{Attributed, Change, Outcome, RunExtra, RunRecord, RunStatus};
pub use payload::{Foreign, Payload, PayloadError};
pub use result::HookResult;
pub use shell::ShellHook;
