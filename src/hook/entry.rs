//! A registered hook: what it is called, when it runs, and the trait that every kind implements.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::context::EventContext;
use super::event::Event;
use super::filter::{Filter, FilterError, FilterSpec};
use super::level::Level;
use super::moment::Moment;
use super::result::HookResult;

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $wire:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// The names, in order.
            pub const NAMES: &'static [&'static str] = &[$($wire,)*];

            /// The name in configuration files and in Python.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $wire,)* }
            }

            /// Looks a name up.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($wire => Some($name::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
    };
}

named! {
    /// What a hook may do. The order is the order in which roles run.
    Role {
        /// May change fields and halt; runs first.
        Hook = "hook",
        /// Only decides, on the final values; fails closed.
        Gate = "gate",
        /// Only watches; runs last and sees the outcome.
        Observer = "observer",
    }
}

named! {
    /// What a hook is made of.
    HookKind {
        /// A Python function or callable object.
        Python = "python",
        /// A command run through `sh -c`.
        Shell = "shell",
        /// A prompt answered by a model.
        Llm = "llm",
        /// Rust.
        Builtin = "builtin",
    }
}

named! {
    /// What happens when a hook fails.
    OnError {
        /// The failure is recorded and the chain goes on.
        Skip = "skip",
        /// The step is refused: skip where the event allows it, else stop.
        Deny = "deny",
        /// The pipeline is stopped where the event allows it, else the step is refused.
        Stop = "stop",
    }
}

/// How a Python function is kept apart from the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Runs on the calling thread.
    #[default]
    None,
    /// Runs on a thread of its own, which is left behind at the deadline.
    Thread,
}

/// Everything about a hook but the code that it runs.
#[derive(Debug, Clone)]
pub struct HookMeta {
    /// Unique in its chain.
    pub name: Arc<str>,
    /// The events on which it runs.
    pub events: Vec<Event>,
    /// What it is made of.
    pub kind: HookKind,
    /// What it may do.
    pub role: Role,
    /// Where it was configured.
    pub level: Level,
    /// Position among hooks of the same role and level; default 0.
    pub order: i64,
    /// How long one attempt may take; default 10 s, or 14 s for a hook that asks a model.
    pub timeout: Duration,
    /// How often a failed attempt is repeated; default 0, or 1 for a hook that asks a model.
    pub retry: u32,
    /// What a failure means; by default `deny` for gates and `skip` for the others.
    pub on_error: OnError,
    /// Whether what it decides is recorded and not applied.
    pub shadow: bool,
    /// Whether it runs at all.
    pub enabled: bool,
    /// On which of its events' occurrences it runs.
    pub filter: FilterSpec,
    /// Where it comes from: a file and line, or a module and function.
    pub source: String,
}

/// The default time one attempt of a Python, shell or builtin hook may take.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The default time one attempt of a hook may take that asks a model.
pub const DEFAULT_LLM_TIMEOUT: Duration = Duration::from_secs(14);
/// The default time a whole chain may take.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(30);

impl HookMeta {
    /// A hook of `kind` and `role` with the defaults of the specification.
    pub fn new(name: impl Into<Arc<str>>, events: Vec<Event>, kind: HookKind, role: Role) -> Self {
        HookMeta {
            name: name.into(),
            events,
            kind,
            role,
            level: Level::Session,
            order: 0,
            timeout: if kind == HookKind::Llm { DEFAULT_LLM_TIMEOUT } else { DEFAULT_TIMEOUT },
            retry: u32::from(kind == HookKind::Llm),
            on_error: if role == Role::Gate { OnError::Deny } else { OnError::Skip },
            shadow: false,
            enabled: true,
            filter: FilterSpec::default(),
            source: String::new(),
        }
    }
}

/// What one call of a hook came to.
#[derive(Debug, Default)]
pub struct HookReply {
    /// What the hook says.
    pub verdict: Verdict,
    /// Remarks for the record, such as lines of noise that were passed over.
    pub notes: Vec<String>,
    /// Whether what a gate lets through has to be run in the environment for reading, to do no more than was judged.
    pub reading: bool,
}

/// What a hook says.
#[derive(Debug, Default)]
pub enum Verdict {
    /// Nothing.
    #[default]
    NoChange,
    /// A result to be checked and merged.
    Result(Box<HookResult>),
    /// Refused without naming an action (a gate function that returned `False`).
    Refused,
    /// Blocked in the way of a shell hook that exits with 2: refused, or on events that send a turn back, sent back.
    Blocked(Option<String>),
}

impl From<Verdict> for HookReply {
    fn from(verdict: Verdict) -> Self {
        HookReply { verdict, notes: Vec::new(), reading: false }
    }
}

/// Why a call of a hook came to nothing.
#[derive(Debug)]
pub enum HookFailure {
    /// The hook failed: a short message, and details (a traceback) for the record.
    Failed {
        /// One line.
        message: String,
        /// As much as is known; may be empty.
        detail: String,
    },
    /// The same, and another attempt would come to nothing else: it is not made.
    Final {
        /// One line.
        message: String,
        /// As much as is known; may be empty.
        detail: String,
    },
    /// The deadline passed. The text says what was found late, if anything.
    Timeout(String),
    /// Not a failure of the hook: the caller was interrupted or cancelled, and so is the dispatch.
    Abort(Box<dyn Error + Send + Sync>),
}

impl HookFailure {
    /// A failure with a message and nothing more.
    pub fn failed(message: impl Into<String>) -> Self {
        HookFailure::Failed { message: message.into(), detail: String::new() }
    }
}

/// A future that owns what it needs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One call of a hook.
pub struct Call<'a> {
    /// The event as the hook sees it.
    pub context: &'a Arc<EventContext>,
    /// Until when the hook may take.
    pub deadline: Moment,
}

/// The code of a hook. Python functions, shell commands and Rust hooks all come in through this trait.
pub trait Hook: Send + Sync {
    /// Runs the hook on the calling thread until it answers, fails or the deadline passes.
    ///
    /// # Errors
    /// What went wrong; see [`HookFailure`].
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure>;

    /// The same without blocking the thread that polls.
    fn call_async(&self, context: Arc<EventContext>, deadline: Instant) -> BoxFuture<Result<HookReply, HookFailure>>;

    /// Whether [`call`](Self::call) answers at once, so that no driver hands it to another thread.
    fn is_immediate(&self) -> bool {
        false
    }

    /// For hosts to recognise their own hooks.
    fn as_any(&self) -> &dyn Any;

    /// Whether the hook starts programs or asks models, so that a replay leaves it out unless told otherwise.
    fn has_side_effects(&self) -> bool {
        false
    }
}

/// What a dispatch looks at for each hook, close together: a chain of a hundred hooks would otherwise take more room in
/// the processor's cache than there is.
pub(super) struct Summary {
    /// In nanoseconds.
    pub(super) timeout: u64,
    pub(super) role: Role,
    pub(super) enabled: bool,
    pub(super) filtered: bool,
}

/// A hook in a chain.
// In this order, because what every dispatch reads stands in front.
#[repr(C)]
pub struct Entry {
    /// The code.
    pub hook: Arc<dyn Hook>,
    pub(super) summary: Summary,
    /// Where its statistics are kept.
    pub(super) slot: usize,
    /// Registration number in its chain: the last key of the order.
    pub sequence: u64,
    /// The compiled filter.
    pub filter: Filter,
    /// Name, role, order and the rest.
    pub meta: Arc<HookMeta>,
}

/// The hooks of one event, in the order in which they run.
#[derive(Debug)]
pub struct Lineup {
    /// The hooks.
    pub entries: Box<[Arc<Entry>]>,
    /// What they are, for outcomes: those outlive a dispatch, and must not keep the code of its hooks alive.
    pub(super) metas: Arc<[Arc<HookMeta>]>,
    pub(super) has_filters: bool,
}

impl FromIterator<Arc<Entry>> for Lineup {
    fn from_iter<T: IntoIterator<Item = Arc<Entry>>>(entries: T) -> Self {
        let entries: Box<[Arc<Entry>]> = entries.into_iter().collect();
        Lineup {
            metas: entries.iter().map(|entry| entry.meta.clone()).collect(),
            has_filters: entries.iter().any(|entry| entry.summary.filtered),
            entries,
        }
    }
}

impl Entry {
    /// Compiles the filter and ties the code to the description.
    ///
    /// # Errors
    /// A pattern that cannot be compiled.
    pub fn new(meta: HookMeta, hook: Arc<dyn Hook>, sequence: u64, slot: usize) -> Result<Self, FilterError> {
        let filter = Filter::compile(&meta.filter)?;
        let summary = Summary {
            timeout: u64::try_from(meta.timeout.as_nanos()).unwrap_or(u64::MAX),
            role: meta.role,
            enabled: meta.enabled,
            filtered: !filter.is_empty(),
        };
        Ok(Entry { hook, summary, slot, sequence, filter, meta: Arc::new(meta) })
    }

    /// The key by which hooks of one event are ordered.
    pub fn order_key(&self) -> (Role, Level, i64, u64) {
        (self.meta.role, self.meta.level, self.meta.order, self.sequence)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.meta.name, self.meta.kind, self.meta.role)
    }
}
