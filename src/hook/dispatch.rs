//! The rules of a dispatch, once, without I/O: who runs next, and what an answer does.
//!
//! A driver asks [`Dispatch::advance`] whom to call until when, calls the hook in its own way (on this thread, on an
//! event loop, on a runtime) and hands the answer to [`Dispatch::complete`]. The synchronous and the asynchronous
//! drivers therefore cannot differ in meaning.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::context::EventContext;
use super::entry::{Call, Entry, HookFailure, HookReply, Lineup, OnError, Role, Verdict};
use super::event::{Action, Event, Field};
use super::moment::Moment;
use super::outcome::{Attributed, Change, Outcome, RunExtra, RunRecord, RunStatus};
use super::result::HookResult;

/// The caller was interrupted or cancelled while a hook ran; there is no outcome.
pub type Abort = Box<dyn Error + Send + Sync>;

/// A dispatch under way.
pub struct Dispatch {
    // In a box: it passes through several hands.
    outcome: Box<Outcome>,
    lineup: Arc<Lineup>,
    position: usize,
    attempts: u32,
    halted: bool,
    observing: bool,
    shadow: bool,
    boundary: Moment,
    hook_started: Moment,
    deadline: Moment,
    begun: bool,
}

impl Dispatch {
    /// Begins a dispatch of `context` over the hooks of `lineup`.
    pub fn new(context: Arc<EventContext>, lineup: Arc<Lineup>, shadow: bool) -> Self {
        let started = context.started;
        let mut outcome = Box::new(Outcome::new(context, lineup.metas.clone()));
        outcome.runs = Vec::with_capacity(lineup.entries.len());
        Dispatch {
            outcome,
            lineup,
            position: 0,
            attempts: 0,
            halted: false,
            observing: false,
            shadow,
            boundary: started,
            hook_started: started,
            deadline: started,
            begun: false,
        }
    }

    /// Begins to count time now, on the first call: an awaitable may be made long before it is awaited.
    pub fn start_now(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        // Nobody else has the context yet.
        if let Some(context) = Arc::get_mut(&mut self.outcome.context) {
            let now = Moment::now();
            context.budget_end = now + context.budget_end.since(context.started);
            context.started = now;
            self.boundary = now;
        }
    }

    /// Moves to the next hook that is to run. Returns until when it may take; [`Dispatch::entry`] and
    /// [`Dispatch::call`] say what to call with what. `None`: all have had their turn.
    #[inline]
    pub fn advance(&mut self) -> Option<Moment> {
        if self.attempts > 0 {
            return Some(self.set_deadline(self.entry().summary.timeout));
        }
        while let Some(entry) = self.lineup.entries.get(self.position) {
            let (role, timeout) = (entry.summary.role, entry.summary.timeout);
            let status = if !entry.summary.enabled {
                RunStatus::Disabled
            } else if self.halted && role != Role::Observer {
                RunStatus::NotReached
            } else if entry.summary.filtered && !self.is_meant(entry) {
                RunStatus::Filtered
            } else if self.boundary >= self.outcome.context.budget_end {
                RunStatus::BudgetExhausted
            } else {
                if role == Role::Observer && !self.observing {
                    self.observing = true;
                    self.outcome.elapsed = self.boundary.since(self.outcome.context.started);
                    let seen = Arc::new(Outcome::clone(&self.outcome));
                    self.set_context(self.outcome.context.with_outcome(seen));
                }
                self.hook_started = self.boundary;
                return Some(self.set_deadline(timeout));
            };
            self.pass_over(status);
        }
        None
    }

    #[inline]
    fn set_deadline(&mut self, timeout: u64) -> Moment {
        self.deadline = self.boundary.later(timeout).min(self.outcome.context.budget_end);
        self.deadline
    }

    /// Whether any of the hooks has a filter.
    pub fn has_filters(&self) -> bool {
        self.lineup.has_filters
    }

    /// What to call the present hook with.
    #[inline]
    pub fn call(&self) -> Call<'_> {
        Call { context: &self.outcome.context, deadline: self.deadline }
    }

    /// Whether the filter of a hook matches. A gate also runs where the fields it asks about cannot be read: it is not
    /// passed over because of what nobody can look at.
    fn is_meant(&self, entry: &Entry) -> bool {
        let context = self.outcome.context.as_ref();
        entry.filter.matches(context) || (entry.meta.role == Role::Gate && context.is_unreadable())
    }

    /// The hook whose turn it is. Valid after [`Dispatch::advance`] returned a deadline.
    #[inline]
    pub fn entry(&self) -> &Arc<Entry> {
        &self.lineup.entries[self.position]
    }

    /// The event as the present hook sees it.
    #[inline]
    pub fn context(&self) -> &Arc<EventContext> {
        &self.outcome.context
    }

    fn set_context(&mut self, context: EventContext) {
        self.outcome.context = Arc::new(context);
    }

    /// Records a hook that does not run. A gate that the budget kept from running is a denial.
    fn pass_over(&mut self, status: RunStatus) {
        let mut extra = None;
        if status == RunStatus::BudgetExhausted {
            let entry = self.entry().clone();
            let error = "the time of the whole chain ran out before its turn".to_owned();
            let mut run = RunExtra { error: Some(error.clone()), ..RunExtra::default() };
            if entry.meta.role == Role::Gate {
                self.refuse(&entry, Action::Skip, format!("gate {:?} did not run: {error}", entry.meta.name), &mut run);
            }
            extra = Some(Box::new(run));
        }
        self.outcome.runs.push(RunRecord { status, attempts: 0, nanoseconds: 0, extra });
        self.position += 1;
    }

    /// The hook that ran last and how long it took.
    pub fn last_run(&self) -> Option<(&Arc<Entry>, Duration)> {
        let run = self.outcome.runs.last()?;
        Some((&self.lineup.entries[self.outcome.runs.len() - 1], run.elapsed()))
    }

    /// Takes the answer of the hook whose turn it was.
    ///
    /// # Errors
    /// [`HookFailure::Abort`] is not an answer: it ends the dispatch and comes back as it is.
    pub fn complete(&mut self, answer: Result<HookReply, HookFailure>) -> Result<(), Abort> {
        if let Ok(HookReply { verdict: Verdict::NoChange, notes, .. }) = &answer
            && notes.is_empty()
        {
            return self.complete_unchanged();
        }
        self.boundary = Moment::now();
        self.attempts += 1;
        self.complete_slowly(answer)
    }

    /// [`Dispatch::complete`] for a hook that said nothing, which is the usual case.
    ///
    /// # Errors
    /// None; the type is that of `complete`.
    #[inline]
    pub fn complete_unchanged(&mut self) -> Result<(), Abort> {
        self.boundary = Moment::now();
        self.attempts += 1;
        if self.boundary <= self.deadline {
            self.record(RunStatus::Ok, None);
            return Ok(());
        }
        self.complete_slowly(Ok(HookReply::default()))
    }

    fn complete_slowly(&mut self, answer: Result<HookReply, HookFailure>) -> Result<(), Abort> {
        let entry = self.entry().clone();
        let mut extra = RunExtra::default();
        // Code that cannot be interrupted may answer after its deadline; what it says then counts for nothing.
        let answer = match answer {
            Ok(_) if self.boundary > self.deadline => Err(HookFailure::Timeout(self.late())),
            answer => answer,
        };
        let is_final = matches!(answer, Err(HookFailure::Final { .. }));
        let (failure, status) = match answer {
            Ok(reply) => {
                extra.notes = reply.notes;
                self.outcome.reading |= reply.reading && !(self.shadow || entry.meta.shadow);
                match self.interpret(&entry, reply.verdict) {
                    Ok(None) => return self.done(RunStatus::Ok, extra),
                    Ok(Some(result)) => {
                        let status = self.apply(&entry, result, &mut extra);
                        return self.done(status, extra);
                    }
                    Err(message) => (message, RunStatus::Failed),
                }
            }
            Err(HookFailure::Abort(abort)) => return Err(abort),
            Err(HookFailure::Failed { message, detail } | HookFailure::Final { message, detail }) => {
                extra.detail = (!detail.is_empty()).then_some(detail);
                (message, RunStatus::Failed)
            }
            Err(HookFailure::Timeout(message)) => (message, RunStatus::Timeout),
        };
        if !is_final && self.attempts <= entry.meta.retry && self.boundary < self.outcome.context.budget_end {
            return Ok(());
        }
        extra.error = Some(failure.clone());
        let action = match (entry.meta.on_error, entry.meta.role) {
            (OnError::Skip, _) | (_, Role::Observer) => None,
            (OnError::Deny, _) => Some(Action::Skip),
            (OnError::Stop, _) => Some(Action::Stop),
        };
        if let Some(action) = action {
            let verb = if status == RunStatus::Timeout { "did not answer in time" } else { "failed" };
            let reason = format!("{} {:?} {verb}: {failure}", entry.meta.role, entry.meta.name);
            self.refuse(&entry, action, reason, &mut extra);
        }
        self.done(status, extra)
    }

    /// Says by how much an answer came late, and which limit it was.
    fn late(&self) -> String {
        let took = self.boundary.since(self.hook_started).as_secs_f64();
        format!("it answered after {took:.3} s, past its deadline")
    }

    fn done(&mut self, status: RunStatus, extra: RunExtra) -> Result<(), Abort> {
        let empty = extra.error.is_none()
            && extra.detail.is_none()
            && extra.notes.is_empty()
            && extra.would_halt.is_none()
            && extra.would_change.is_empty();
        self.record(status, (!empty).then(|| Box::new(extra)));
        Ok(())
    }

    #[inline]
    fn record(&mut self, status: RunStatus, extra: Option<Box<RunExtra>>) {
        let nanoseconds = self.boundary.nanoseconds().saturating_sub(self.hook_started.nanoseconds());
        self.outcome.runs.push(RunRecord { status, attempts: self.attempts, nanoseconds, extra });
        self.position += 1;
        self.attempts = 0;
    }

    /// Turns a verdict into a result that the event and the role allow.
    fn interpret(&self, entry: &Entry, verdict: Verdict) -> Result<Option<HookResult>, String> {
        let event = self.outcome.context.event;
        let denial =
            || event.spec().denial().ok_or_else(|| format!("{event} only notifies: nothing can be refused there"));
        let result = match verdict {
            Verdict::NoChange => return Ok(None),
            Verdict::Refused if entry.meta.role != Role::Gate => {
                return Err("returned False, which only a gate may do; return None, a dict or a HookResult".into());
            }
            Verdict::Refused => HookResult::decide(denial()?, format!("refused by {}", entry.meta.name)),
            Verdict::Blocked(reason) => {
                let reason = reason.unwrap_or_else(|| format!("blocked by {}", entry.meta.name));
                if matches!(event, Event::Stop | Event::TeammateIdle) {
                    HookResult { retry_feedback: Some(reason), ..HookResult::default() }
                } else {
                    HookResult::decide(denial()?, reason)
                }
            }
            Verdict::Result(result) => *result,
        };
        result.check(event, entry.meta.role)?;
        self.check_subset(&result)?;
        Ok((!result.is_empty()).then_some(result))
    }

    /// The tools of a request may be made fewer, never more.
    fn check_subset(&self, result: &HookResult) -> Result<(), String> {
        let Some((_, wanted)) = result.fields.iter().find(|(field, _)| *field == Field::Tools) else { return Ok(()) };
        let present = self.outcome.context.get(Field::Tools).and_then(|tools| tools.json().ok());
        let present = present.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match wanted.as_array().into_iter().flatten().find(|name| !present.contains(name)) {
            None => Ok(()),
            Some(name) => {
                Err(format!("tools may only be left out, not added: {name} is not among the request's tools"))
            }
        }
    }

    /// Merges a result that was checked.
    fn apply(&mut self, entry: &Entry, result: HookResult, extra: &mut RunExtra) -> RunStatus {
        let name = &entry.meta.name;
        let shadow = self.shadow || entry.meta.shadow;
        let mut changed = self.replace_fields(entry, result.fields, shadow, extra);
        if let Some(text) = result.additional_context {
            changed |= self.accumulate(name, Field::AdditionalContext, text.into(), shadow, extra);
        }
        for message in result.inject_messages {
            changed |= self.accumulate(name, Field::InjectMessages, message, shadow, extra);
        }
        if let Some(text) = result.retry_feedback {
            changed |= self.accumulate(name, Field::RetryFeedback, text.into(), shadow, extra);
        }
        if let Some(text) = result.system_message
            && !shadow
        {
            self.outcome.system_messages.push(Attributed { hook: name.clone(), text });
        }
        let reason = result.reason;
        let rules = (result.rule, result.suggested_rule);
        match result.action {
            None => {}
            Some(Action::Allow) => extra.notes.push(match (reason, rules.0) {
                (Some(reason), _) => format!("allowed: {reason}"),
                (None, Some(rule)) => format!("allowed by {rule}"),
                (None, None) => "allowed".into(),
            }),
            Some(Action::Warn) => {
                let text = reason.unwrap_or_else(|| format!("warning from {name}"));
                extra.notes.push(format!("warned: {text}"));
                if !shadow {
                    self.outcome.system_messages.push(Attributed { hook: name.clone(), text });
                }
            }
            Some(action) => {
                let verb = if action == Action::Ask { "wants a person to decide" } else { "refused" };
                let reason = reason.unwrap_or_else(|| format!("{name} {verb}"));
                if let Some(rule) = &rules.0 {
                    extra.notes.push(format!("by the rule {rule}"));
                }
                self.halt(entry, action, reason, rules, extra);
                if !shadow {
                    return RunStatus::Halted;
                }
            }
        }
        if changed { RunStatus::Changed } else { RunStatus::Ok }
    }

    fn replace_fields(
        &mut self,
        entry: &Entry,
        fields: Vec<(Field, Value)>,
        shadow: bool,
        extra: &mut RunExtra,
    ) -> bool {
        let mut replaced = Vec::new();
        for (field, value) in fields {
            let before = self.outcome.context.get(field).cloned();
            if before.as_ref().is_some_and(|before| before.json().is_ok_and(|before| *before == value)) {
                continue;
            }
            if shadow {
                extra.would_change.push(field);
                continue;
            }
            let after = super::payload::Payload::from(value);
            self.outcome.changes.push(Change { hook: entry.meta.name.clone(), field, before, after: after.clone() });
            replaced.push((field, after));
        }
        let changed = !replaced.is_empty();
        if changed {
            self.set_context(self.outcome.context.with_fields(replaced));
        }
        changed
    }

    fn accumulate(&mut self, hook: &Arc<str>, field: Field, value: Value, shadow: bool, extra: &mut RunExtra) -> bool {
        if shadow {
            if !extra.would_change.contains(&field) {
                extra.would_change.push(field);
            }
            return false;
        }
        let outcome = &mut self.outcome;
        outcome.changes.push(Change { hook: hook.clone(), field, before: None, after: value.clone().into() });
        match (field, value) {
            (Field::AdditionalContext, Value::String(text)) => {
                outcome.additional_context.push(Attributed { hook: hook.clone(), text });
            }
            (Field::RetryFeedback, Value::String(text)) => {
                outcome.retry_feedback.push(Attributed { hook: hook.clone(), text });
            }
            (_, message) => outcome.inject_messages.push(message),
        }
        true
    }

    /// A refusal that no hook put in words: `wanted` where the event allows it, else what stands for a denial there.
    fn refuse(&mut self, entry: &Entry, wanted: Action, reason: String, extra: &mut RunExtra) {
        let spec = self.outcome.context.event.spec();
        let action = if spec.allows(wanted) { Some(wanted) } else { spec.denial() };
        if let Some(action) = action {
            self.halt(entry, action, reason, (None, None), extra);
        }
    }

    /// `rules`: the one that decided, and the one that would let such calls through.
    fn halt(
        &mut self,
        entry: &Entry,
        action: Action,
        reason: String,
        rules: (Option<String>, Option<String>),
        extra: &mut RunExtra,
    ) {
        if self.shadow || entry.meta.shadow {
            extra.would_halt = Some((action, reason));
            return;
        }
        // Stop > skip > ask: only an ask can stand here already, since anything more severe ends the phases.
        if self.outcome.action.is_none() || action != Action::Ask {
            self.outcome.action = Some(action);
            self.outcome.reason = Some(reason);
            (self.outcome.rule, self.outcome.suggested_rule) = rules;
            self.outcome.halted_by = Some(entry.meta.name.clone());
        }
        self.halted |= action != Action::Ask;
    }

    /// The outcome, once [`Dispatch::advance`] has returned `None`, and the hooks that its records are of.
    pub fn finish(mut self) -> (Arc<Lineup>, Box<Outcome>) {
        self.outcome.elapsed = self.boundary.since(self.outcome.context.started);
        (self.lineup, self.outcome)
    }
}
