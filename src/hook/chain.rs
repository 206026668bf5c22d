//! The chain: which hooks there are, in which order, and the two ways to run them.

use std::any::Any;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::context::{EventContext, Fields, Scope};
use super::dispatch::{Abort, Dispatch};
use super::entry::{DEFAULT_BUDGET, Entry, Hook, HookKind, HookMeta, Lineup, OnError, Role};
use super::event::{Event, Field};
use super::moment::Moment;
use super::outcome::Outcome;
use super::payload::Payload;
use super::record::Recorder;
use super::stats::{HookStats, StatsTable};
use crate::suggest::did_you_mean;

mod exchange;

pub use exchange::Exchange;

/// Why a hook could not be registered or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// Two hooks of one name.
    #[error("there is already a hook named {0:?}; give this one another name=, or remove the first")]
    Duplicate(String),
    /// A gate where nothing can be refused.
    #[error("{event} only notifies, so the gate {name:?} could refuse nothing there; use role=\"observer\"")]
    GateOnNotify {
        /// The hook.
        name: String,
        /// The event.
        event: Event,
    },
    /// A pattern that cannot be compiled.
    #[error("hook {name:?}: {error}")]
    Filter {
        /// The hook.
        name: String,
        /// What the pattern compiler says.
        error: String,
    },
    /// A value out of range or a combination that means nothing.
    #[error("hook {name:?}: {problem}")]
    Invalid {
        /// The hook.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// No hook of that name.
    #[error("there is no hook named {name:?}{hint}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name, as a clause.
        hint: String,
    },
}

/// The hooks of a chain at one moment. A dispatch works on one snapshot from beginning to end.
#[derive(Clone)]
pub struct Snapshot {
    entries: Vec<Arc<Entry>>,
    by_event: Vec<Arc<Lineup>>,
    /// The time that a whole dispatch may take.
    pub budget: Duration,
    /// Whether nothing that hooks decide is applied.
    pub shadow: bool,
}

impl Snapshot {
    fn new(mut entries: Vec<Arc<Entry>>, budget: Duration, shadow: bool) -> Self {
        entries.sort_by_key(|entry| entry.order_key());
        let of = |event: &Event| {
            let heard = entries.iter().filter(|entry| entry.meta.events.contains(event));
            Arc::new(heard.cloned().collect::<Lineup>())
        };
        Snapshot { by_event: Event::ALL.iter().map(of).collect(), entries, budget, shadow }
    }

    /// All hooks, in the order in which they run.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The hooks of one event, in the order in which they run.
    pub fn of(&self, event: Event) -> &Arc<Lineup> {
        &self.by_event[event as usize]
    }
}

/// What `explain` says of one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The hook.
    pub name: String,
    /// Whether it would run.
    pub matches: bool,
    /// Why, or why not.
    pub why: String,
    /// A matcher that fits none of the given tools.
    pub warning: Option<String>,
}

struct Registry {
    next_sequence: u64,
    slots: HashMap<Arc<str>, usize>,
}

/// A chain of hooks. Cheap to share; all methods take `&self`.
pub struct HookChain {
    snapshot: ArcSwap<Snapshot>,
    registry: Mutex<Registry>,
    stats: Mutex<StatsTable>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
    recording: AtomicBool,
}

/// A poisoned lock only means that another thread panicked between two of these short updates, each of which leaves
/// the data whole; going on is right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for HookChain {
    fn default() -> Self {
        HookChain::new(DEFAULT_BUDGET, false)
    }
}

impl HookChain {
    /// An empty chain. `budget`: the time that a whole dispatch may take (30 s by default). `shadow`: hooks run and
    /// what they decide is recorded, but nothing is applied.
    pub fn new(budget: Duration, shadow: bool) -> Self {
        HookChain {
            snapshot: ArcSwap::from_pointee(Snapshot::new(Vec::new(), budget, shadow)),
            registry: Mutex::new(Registry { next_sequence: 0, slots: HashMap::new() }),
            stats: Mutex::default(),
            recorders: Mutex::default(),
            recording: AtomicBool::new(false),
        }
    }

    /// The hooks as they are now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Goes back to an earlier snapshot of this chain.
    pub fn restore(&self, snapshot: Arc<Snapshot>) {
        let _registry = lock(&self.registry);
        self.snapshot.store(snapshot);
    }

    /// Adds a hook, or with `replace` puts it in the place of one of the same name, keeping that one's position.
    /// Returns whether one was replaced.
    ///
    /// # Errors
    /// See [`RegistrationError`].
    pub fn add(&self, meta: HookMeta, hook: Arc<dyn Hook>, replace: bool) -> Result<bool, RegistrationError> {
        check(&meta)?;
        let mut registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        let present = snapshot.entries.iter().find(|entry| entry.meta.name == meta.name);
        if present.is_some() && !replace {
            return Err(RegistrationError::Duplicate(meta.name.to_string()));
        }
        let replaced = present.is_some();
        let entry = self.make_entry(&mut registry, meta, hook, present.map(|entry| entry.sequence))?;
        let mut entries = snapshot.entries.clone();
        entries.retain(|other| other.meta.name != entry.meta.name);
        entries.push(Arc::new(entry));
        self.snapshot.store(Arc::new(Snapshot::new(entries, snapshot.budget, snapshot.shadow)));
        Ok(replaced)
    }

    /// Numbers a hook that was checked, and makes room for its statistics.
    fn make_entry(
        &self,
        registry: &mut Registry,
        meta: HookMeta,
        hook: Arc<dyn Hook>,
        sequence: Option<u64>,
    ) -> Result<Entry, RegistrationError> {
        let name = meta.name.clone();
        let free = registry.slots.len();
        let slot = *registry.slots.entry(name.clone()).or_insert(free);
        let entry = Entry::new(meta, hook, sequence.unwrap_or(registry.next_sequence), slot)
            .map_err(|error| RegistrationError::Filter { name: name.to_string(), error: error.to_string() })?;
        registry.next_sequence += 1;
        lock(&self.stats).grow(slot + 1);
        Ok(entry)
    }

    fn unknown(snapshot: &Snapshot, name: &str) -> RegistrationError {
        let hint = match did_you_mean(name, snapshot.entries.iter().map(|entry| entry.meta.name.as_ref())) {
            Some(near) => format!("; did you mean {near:?}?"),
            None if snapshot.entries.is_empty() => "; the chain is empty".into(),
            None => {
                let names: Vec<_> = snapshot.entries.iter().map(|entry| entry.meta.name.as_ref()).collect();
                format!("; there are: {}", names.join(", "))
            }
        };
        RegistrationError::Unknown { name: name.to_owned(), hint }
    }

    /// Takes a hook out, from the next dispatch on.
    ///
    /// # Errors
    /// When there is no hook of that name.
    pub fn remove(&self, name: &str) -> Result<Arc<Entry>, RegistrationError> {
        let _registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        let mut entries = snapshot.entries.clone();
        let Some(position) = entries.iter().position(|entry| entry.meta.name.as_ref() == name) else {
            return Err(Self::unknown(&snapshot, name));
        };
        let removed = entries.remove(position);
        self.snapshot.store(Arc::new(Snapshot::new(entries, snapshot.budget, snapshot.shadow)));
        Ok(removed)
    }

    /// Takes all hooks out.
    pub fn clear(&self) {
        let _registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        self.snapshot.store(Arc::new(Snapshot::new(Vec::new(), snapshot.budget, snapshot.shadow)));
    }

    /// Switches a hook on or off, from the next dispatch on.
    ///
    /// # Errors
    /// When there is no hook of that name.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> Result<(), RegistrationError> {
        let _registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        let mut entries = snapshot.entries.clone();
        let Some(slot) = entries.iter_mut().find(|entry| entry.meta.name.as_ref() == name) else {
            return Err(Self::unknown(&snapshot, name));
        };
        *slot = switched(slot, enabled)?;
        self.snapshot.store(Arc::new(Snapshot::new(entries, snapshot.budget, snapshot.shadow)));
        Ok(())
    }

    /// Sets the time that a whole dispatch may take.
    pub fn set_budget(&self, budget: Duration) {
        let _registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        self.snapshot.store(Arc::new(Snapshot { budget, ..(*snapshot).clone() }));
    }

    /// Whether a dispatch of `event` would reach anybody: a hook, or a recorder. Recorders do not listen to the
    /// pieces of a streamed text.
    pub fn listens(&self, event: Event) -> bool {
        !self.snapshot.load().of(event).entries.is_empty() || self.records(event)
    }

    fn records(&self, event: Event) -> bool {
        event != Event::TextDelta && self.recording.load(Ordering::Relaxed)
    }

    /// Begins a dispatch; `None` if nobody subscribed, and then nothing was built. A driver runs it and hands it to
    /// [`HookChain::finish`].
    pub fn begin(
        &self,
        event: Event,
        scope: &Arc<Scope>,
        fields: impl FnOnce() -> Vec<(Field, Payload)>,
    ) -> Option<Dispatch> {
        self.begin_within(event, scope, fields, None)
    }

    /// The same with at most `limit` for the whole dispatch, where that is less than the chain's budget.
    pub fn begin_within(
        &self,
        event: Event,
        scope: &Arc<Scope>,
        fields: impl FnOnce() -> Vec<(Field, Payload)>,
        limit: Option<Duration>,
    ) -> Option<Dispatch> {
        let Ok(dispatch) = self.try_begin(event, limit, || Ok::<_, Infallible>((scope.clone(), fields().into())));
        dispatch
    }

    /// The same for a host whose reading of the scope and the fields can fail. `read` is called only if somebody
    /// subscribed.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn try_begin<E>(
        &self,
        event: Event,
        limit: Option<Duration>,
        read: impl FnOnce() -> Result<(Arc<Scope>, Fields), E>,
    ) -> Result<Option<Dispatch>, E> {
        let snapshot = self.snapshot.load();
        let lineup = snapshot.of(event);
        if lineup.entries.is_empty() && !self.records(event) {
            return Ok(None);
        }
        let (scope, fields) = read()?;
        let budget = limit.map_or(snapshot.budget, |limit| limit.min(snapshot.budget));
        let context = EventContext::new(event, scope, fields, Moment::now(), budget);
        Ok(Some(Dispatch::new(Arc::new(context), lineup.clone(), snapshot.shadow)))
    }

    /// Ends a dispatch: counts it and, if the chain records, writes it down.
    pub fn finish(&self, dispatch: Dispatch) -> Outcome {
        *self.finish_boxed(dispatch)
    }

    /// The same, without moving the outcome out of its box.
    pub fn finish_boxed(&self, dispatch: Dispatch) -> Box<Outcome> {
        let (lineup, outcome) = dispatch.finish();
        lock(&self.stats).add(&lineup.entries, &outcome.runs);
        if self.recording.load(Ordering::Relaxed) {
            let recorders = lock(&self.recorders).clone();
            recorders.iter().for_each(|recorder| recorder.write(&outcome));
        }
        outcome
    }

    /// Runs a dispatch on the calling thread.
    ///
    /// # Errors
    /// When the caller was interrupted while a hook ran.
    pub fn run(&self, mut dispatch: Dispatch) -> Result<Outcome, Abort> {
        while dispatch.advance().is_some() {
            let answer = dispatch.entry().hook.call(dispatch.call());
            dispatch.complete(answer)?;
        }
        Ok(self.finish(dispatch))
    }

    /// Runs a dispatch without blocking the thread that polls.
    ///
    /// # Errors
    /// When the caller was interrupted while a hook ran.
    pub async fn run_async(&self, mut dispatch: Dispatch) -> Result<Outcome, Abort> {
        while let Some(deadline) = dispatch.advance() {
            let hook = dispatch.entry().hook.clone();
            let answer = hook.call_async(dispatch.context().clone(), deadline.instant()).await;
            dispatch.complete(answer)?;
        }
        Ok(self.finish(dispatch))
    }

    /// Says of each hook of `event` whether it would run and why, without running anything. `tools`: the registered
    /// tools, to find matchers that fit none of them.
    pub fn explain(&self, context: &EventContext, tools: Option<&[&str]>) -> Vec<Explanation> {
        let snapshot = self.snapshot();
        let explain = |entry: &Arc<Entry>| {
            let meta = &entry.meta;
            let (matches, why) = if !meta.events.contains(&context.event) {
                let events: Vec<_> = meta.events.iter().map(|event| event.as_str()).collect();
                (false, format!("listens to {}", events.join(", ")))
            } else if !meta.enabled {
                (false, "is disabled".into())
            } else {
                match entry.filter.explain(context) {
                    Err(mismatch) => (false, mismatch.to_string()),
                    Ok(()) if entry.filter.is_empty() => (true, "has no filter".into()),
                    Ok(()) => (true, "its filter matches".into()),
                }
            };
            let warning = tools.and_then(|tools| entry.filter.fits_any_tool(tools));
            Explanation { name: meta.name.to_string(), matches, why, warning }
        };
        snapshot.entries.iter().map(explain).collect()
    }

    /// Counts and times of every hook, in the order in which they run.
    pub fn stats(&self) -> Vec<HookStats> {
        let snapshot = self.snapshot();
        let stats = lock(&self.stats);
        snapshot.entries.iter().map(|entry| stats.read(entry.slot, &entry.meta.name)).collect()
    }

    /// Writes every dispatch from now on to `recorder`, in the place of one that writes to the same file.
    pub fn add_recorder(&self, recorder: Arc<Recorder>) {
        let mut recorders = lock(&self.recorders);
        recorders.retain(|other| other.path() != recorder.path());
        recorders.push(recorder);
        self.recording.store(true, Ordering::Relaxed);
    }

    /// Ends what [`HookChain::add_recorder`] began. Returns whether `recorder` was still in use.
    pub fn remove_recorder(&self, recorder: &Arc<Recorder>) -> bool {
        let mut recorders = lock(&self.recorders);
        let before = recorders.len();
        recorders.retain(|other| !Arc::ptr_eq(other, recorder));
        self.recording.store(!recorders.is_empty(), Ordering::Relaxed);
        recorders.len() < before
    }

    /// The hooks whose code is of type `T`: how a host finds its own.
    pub fn hooks_of<T: Any>(&self, mut visit: impl FnMut(&T)) {
        for entry in &self.snapshot.load().entries {
            if let Some(hook) = entry.hook.as_any().downcast_ref::<T>() {
                visit(hook);
            }
        }
    }
}

/// Refuses descriptions that mean nothing.
fn check(meta: &HookMeta) -> Result<(), RegistrationError> {
    let name = meta.name.to_string();
    let invalid = |problem: &str| RegistrationError::Invalid { name: name.clone(), problem: problem.into() };
    if meta.events.is_empty() {
        return Err(invalid("it has no events, so it would never run"));
    }
    if meta.timeout.is_zero() {
        return Err(invalid("timeout must be above 0 seconds"));
    }
    if meta.role == Role::Observer && meta.on_error != OnError::Skip {
        return Err(invalid("an observer cannot refuse anything, so its on_error can only be \"skip\""));
    }
    if meta.role == Role::Gate {
        let filter = &meta.filter;
        let on_tool = filter.tool_name.is_some() || filter.tool_matcher.is_some() || filter.tool_regex.is_some();
        for (set, key, field) in [
            (on_tool, "a condition on the tool's name", Field::ToolName),
            (!filter.arguments.is_empty(), "arguments", Field::ToolArguments),
            (filter.model_prefix.is_some(), "model_prefix", Field::Model),
        ] {
            if set && !meta.events.iter().any(|event| event.spec().readable.contains(&field)) {
                return Err(invalid(&format!(
                    "its filter has {key}, but none of its events carries {field}, so the gate would never run"
                )));
            }
        }
    }
    let notifies = |event: &&Event| event.spec().denial().is_none();
    // A gate of our own may listen as well, as long as it also decides.
    let decides = meta.kind == HookKind::Builtin && !meta.events.iter().all(|event| notifies(&event));
    match meta.events.iter().find(notifies) {
        Some(event) if meta.role == Role::Gate && !decides => {
            Err(RegistrationError::GateOnNotify { name, event: *event })
        }
        _ => Ok(()),
    }
}

/// The same hook, switched on or off.
fn switched(entry: &Entry, enabled: bool) -> Result<Arc<Entry>, RegistrationError> {
    let meta = HookMeta { enabled, ..HookMeta::clone(&entry.meta) };
    let name = meta.name.to_string();
    // The filter compiled before, so it compiles again.
    let entry = Entry::new(meta, entry.hook.clone(), entry.sequence, entry.slot);
    entry.map(Arc::new).map_err(|error| RegistrationError::Filter { name, error: error.to_string() })
}

impl fmt::Debug for HookChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.snapshot.load().entries()).finish()
    }
}
