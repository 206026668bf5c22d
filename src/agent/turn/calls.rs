//! The tool calls of one reply: checked, judged in order, run side by side, told in order.
//!
//! Each call has exactly one result in the history, whatever happens. The reply itself is kept only when hooks have
//! seen all its calls, so that what is stored is what hooks left and not what they took out.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::desk::Doing;
use super::flow::{Run, calls_json};
use super::machine::{Answer, Approval, CallAnswer, CallToRun, Effect};
use super::permission::{Permission, Question};
use super::{CallRecord, Ending, RunEvent};
use crate::agent::limits::LimitReached;
use crate::agent::transcript::Awaited;
use crate::hook::{Action, Event, Field, Outcome};
use crate::message::{Message, ToolCall};
use crate::model::with_context;
use crate::tool::{ToolError, ToolErrorCode};

/// What stands for a call until it has its result.
pub(super) enum State {
    /// Nothing is decided.
    Open,
    /// It may run.
    Ready { tool: usize, reading: bool },
    /// A person decides about it later.
    Waiting { question: Question },
    /// It has a value, from the tool or from a hook in its place.
    Value { value: Value, elapsed: Duration, ran: bool },
    /// It failed, or may not run.
    Failure { error: ToolError, cause: &'static str, elapsed: Duration, ran: bool },
    /// Its result is in the history.
    Told,
}

pub(super) fn failure(error: ToolError, cause: &'static str) -> State {
    State::Failure { error, cause, elapsed: Duration::ZERO, ran: false }
}

/// A reply and its calls.
pub(super) struct Batch {
    message: Message,
    pub(super) states: Vec<State>,
    stored: bool,
    cut_off: bool,
}

impl Batch {
    /// `cut_off`: the model ran out of tokens while it wrote the reply.
    pub(super) fn new(message: Message, cut_off: bool) -> Self {
        let states = message.tool_calls.iter().map(|_| State::Open).collect();
        Batch { message, states, stored: false, cut_off }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub(super) fn into_message(self) -> Message {
        self.message
    }

    pub(super) fn calls(&self) -> &[ToolCall] {
        &self.message.tool_calls
    }

    pub(super) fn call(&self, index: usize) -> &ToolCall {
        &self.message.tool_calls[index]
    }
}

impl Run {
    /// Takes the calls of a reply from the model's words to results in the history.
    pub(super) async fn run_batch(&mut self, batch: &mut Batch) -> Result<(), Ending> {
        let calls = calls_json(&batch.message);
        if let Some(outcome) =
            self.notify(Event::PreToolBatch, |_| vec![(Field::ToolCalls, calls.clone().into())]).await?
        {
            self.end_if_stopped(&outcome)?;
        }
        self.hold(batch);
        let mut reached = None;
        for index in 0..batch.states.len() {
            if !matches!(batch.states[index], State::Open) {
                continue; // It is held.
            }
            if let Err(limit) = self.counters.begin_call(batch.call(index)) {
                reached = Some(limit);
                break;
            }
            batch.states[index] = self.judge(batch, index).await?;
        }
        self.store(batch)?;
        for index in 0..batch.states.len() {
            if let State::Waiting { question } = &batch.states[index] {
                let (id, session) = (&batch.call(index).id, &self.config.session);
                let noted = session.await_decision(id, question.reason.clone(), question.suggested_rule.clone());
                noted.map_err(|error| Ending::Session(std::sync::Arc::new(error)))?;
            }
        }
        self.complete(batch, reached).await
    }

    /// Runs the calls that may run, and tells what became of all.
    async fn complete(&mut self, batch: &mut Batch, reached: Option<LimitReached>) -> Result<(), Ending> {
        let cancelled = self.execute(batch).await?;
        let mut ended = cancelled.then_some(Ending::Cancelled);
        for index in 0..batch.states.len() {
            if matches!(batch.states[index], State::Open | State::Waiting { .. }) {
                continue;
            }
            match self.tell(batch, index).await {
                Ok(()) => {}
                // A hook that stops the turn stops what comes next; the siblings have run and are told as well.
                Err(stopped @ Ending::Stopped { .. }) => {
                    ended.get_or_insert(stopped);
                }
                Err(ending) => return Err(ending),
            }
        }
        if let Some(ending) = ended {
            return Err(ending);
        }
        if let Some(reached) = reached {
            self.close_batch(batch, &Ending::Limit(reached.clone()))?;
            return Err(self.limit(reached).await);
        }
        let calls = batch.states.iter().filter(|state| matches!(state, State::Waiting { .. })).count();
        if calls > 0 {
            return Err(Ending::Awaiting { calls });
        }
        self.end_of_batch(batch).await
    }

    /// Goes on with calls that wait for a person's decision, where there is one.
    pub(super) async fn decide(&mut self, mut decisions: HashMap<String, Approval>) -> Result<(), Ending> {
        let awaiting = self.config.session.awaiting();
        let history = self.config.session.history();
        let Some(message) = history.iter().rev().find(|message| !message.tool_calls.is_empty()) else { return Ok(()) };
        if awaiting.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new(Message::clone(message), false);
        batch.stored = true;
        let decided = self.decide_each(&mut batch, &awaiting, &mut decisions).await;
        let ended = match decided {
            Ok(reached) => self.complete(&mut batch, reached).await,
            Err(ending) => Err(ending),
        };
        match ended {
            Err(ending) if !matches!(ending, Ending::Awaiting { .. }) => {
                self.close_batch(&mut batch, &ending)?;
                Err(ending)
            }
            other => other,
        }
    }

    async fn decide_each(
        &mut self,
        batch: &mut Batch,
        awaiting: &[Awaited],
        decisions: &mut HashMap<String, Approval>,
    ) -> Result<Option<LimitReached>, Ending> {
        for state in &mut batch.states {
            *state = State::Told;
        }
        for question in awaiting {
            let waits = |call: &ToolCall| call.id == question.call_id;
            let Some(index) = batch.message.tool_calls.iter().position(waits) else { continue };
            let (reason, suggested_rule) = (question.reason.clone(), question.suggested_rule.clone());
            batch.states[index] = State::Waiting { question: Question { reason, suggested_rule } };
        }
        for question in awaiting {
            let Some(approval) = decisions.remove(&question.call_id) else { continue };
            let waits = |call: &ToolCall| call.id == question.call_id;
            let Some(index) = batch.message.tool_calls.iter().position(waits) else { continue };
            if let Err(reached) = self.counters.begin_call(batch.call(index)) {
                return Ok(Some(reached));
            }
            batch.states[index] = self.judge_decided(batch, index, question, approval).await?;
        }
        Ok(None)
    }

    /// A call that a person decided about is judged again, by the hooks that are there now.
    async fn judge_decided(
        &mut self,
        batch: &mut Batch,
        index: usize,
        question: &Awaited,
        approval: Approval,
    ) -> Result<State, Ending> {
        let call = batch.call(index).clone();
        if let Permission::Denied(error) = self.decided(&call, question, approval).await? {
            return Ok(failure(error, "denied"));
        }
        let tool = match self.callable(&call.name) {
            Ok(tool) => tool,
            Err(error) => return Ok(failure(error, "unknown_tool")),
        };
        if let Err(error) = self.check_arguments(&call, tool, false) {
            return Ok(failure(error, "invalid_arguments"));
        }
        let exact = call.arguments_json().into_owned();
        let Some(outcome) = self.ask_hooks(&call, &exact).await? else {
            return Ok(State::Ready { tool, reading: false });
        };
        match outcome.action {
            Some(Action::Stop) => self.end_if_stopped(&outcome)?,
            Some(Action::Skip) => return Ok(denied(&outcome)),
            _ => {}
        }
        let changed = outcome.replaced(Field::ToolArguments).map(|value| value.json());
        if let Some(Ok(arguments)) = changed
            && arguments.as_object() != call.arguments().ok()
        {
            return Ok(failure(denial("a hook changed the call after a person had decided about it"), "denied"));
        }
        if let Some(Ok(value)) = outcome.replaced(Field::ToolResult).map(|value| value.json()) {
            return Ok(State::Value { value: value.clone(), elapsed: Duration::ZERO, ran: false });
        }
        Ok(State::Ready { tool, reading: outcome.reading })
    }

    /// Decides whether a call may run: arguments, hooks and gates, permission.
    async fn judge(&mut self, batch: &mut Batch, index: usize) -> Result<State, Ending> {
        let call = batch.call(index);
        let tool = match self.callable(&call.name) {
            Ok(tool) => tool,
            Err(error) => return Ok(failure(error, "unknown_tool")),
        };
        if let Err(error) = self.check_arguments(call, tool, batch.cut_off) {
            return Ok(failure(error, "invalid_arguments"));
        }
        let exact = call.arguments_json().into_owned();
        let mut asked_before = false;
        loop {
            let outcome = self.ask_hooks(batch.call(index), &exact).await?;
            let Some(outcome) = outcome else { return Ok(State::Ready { tool, reading: false }) };
            if let Err(error) = self.take_arguments(batch, index, tool, &outcome) {
                return Ok(failure(error, "invalid_arguments"));
            }
            match outcome.action {
                Some(Action::Stop) => {
                    self.end_if_stopped(&outcome)?;
                }
                Some(Action::Skip) => return Ok(denied(&outcome)),
                Some(Action::Ask) if asked_before => {
                    let reason = outcome.reason.as_deref().unwrap_or("a hook asked again");
                    return Ok(failure(denial(&format!("a second question is a refusal: {reason}")), "denied"));
                }
                Some(Action::Ask) => {
                    asked_before = true;
                    let question = Question {
                        reason: outcome.reason.clone().unwrap_or_default(),
                        suggested_rule: outcome.suggested_rule.clone(),
                    };
                    match self.permission(batch.call(index).clone(), question).await? {
                        Permission::Allowed => {}
                        Permission::Denied(error) => return Ok(failure(error, "denied")),
                        Permission::Later(question) => return Ok(State::Waiting { question }),
                        Permission::Rewritten(arguments) => {
                            batch.message.tool_calls[index].set_arguments(arguments);
                            if let Err(error) = self.check_arguments(batch.call(index), tool, false) {
                                return Ok(failure(error, "invalid_arguments"));
                            }
                            continue; // Judged by all gates again.
                        }
                    }
                }
                _ => {}
            }
            if let Some(Ok(value)) = outcome.replaced(Field::ToolResult).map(|value| value.json()) {
                return Ok(State::Value { value: value.clone(), elapsed: Duration::ZERO, ran: false });
            }
            return Ok(State::Ready { tool, reading: outcome.reading });
        }
    }

    async fn ask_hooks(&mut self, call: &ToolCall, exact: &str) -> Result<Option<std::sync::Arc<Outcome>>, Ending> {
        self.notify(Event::PreToolExecution, |run| {
            let arguments = arguments_of(call);
            let effect = run.config.tool(&call.name).and_then(|tool| run.config.tools[tool].effect.of(&arguments));
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::ToolArguments, arguments.into()),
                (Field::ToolArgumentsJson, exact.into()),
                (Field::ToolCallId, call.id.as_str().into()),
                (Field::ToolEffect, effect.map_or(Value::Null, Value::from).into()),
            ]
        })
        .await
    }

    /// Takes over rewritten arguments, which have to fit the tool like the model's own.
    fn take_arguments(&self, batch: &mut Batch, index: usize, tool: usize, outcome: &Outcome) -> Result<(), ToolError> {
        let Some(Ok(Value::Object(arguments))) = outcome.replaced(Field::ToolArguments).map(|value| value.json())
        else {
            return Ok(());
        };
        batch.message.tool_calls[index].set_arguments(arguments.clone());
        self.check_arguments(batch.call(index), tool, false).map_err(|error| {
            let hook = outcome.changes.iter().rev().find(|change| change.field == Field::ToolArguments);
            let hook = hook.map(|change| change.hook.to_string()).unwrap_or_default();
            ToolError { detail: format!("the hook {} changed the arguments: {}", json!(hook), error.detail), ..error }
        })
    }

    fn check_arguments(&self, call: &ToolCall, tool: usize, cut_off: bool) -> Result<(), ToolError> {
        let arguments = call.arguments().map_err(|error| {
            if cut_off || error.is_cut_off() {
                ToolError::new(ToolErrorCode::TruncatedArguments, error.to_string())
                    .hint("The reply was cut off before the arguments ended. Send the call again, with less in it.")
            } else {
                ToolError::new(ToolErrorCode::Invalid, error.to_string())
            }
        })?;
        let validator = &self.config.tools[tool].validator;
        validator.validate(&Value::Object(arguments.clone())).map_err(|problems| ToolError::from_problems(&problems))
    }

    /// Writes the reply, with the arguments that hooks left.
    fn store(&mut self, batch: &mut Batch) -> Result<(), Ending> {
        if !batch.stored {
            self.hide_unseen_arguments(batch);
            batch.stored = true;
            self.append(batch.message.clone())?;
        }
        Ok(())
    }

    /// Runs the calls that may run. Returns whether the run was cancelled meanwhile.
    async fn execute(&mut self, batch: &mut Batch) -> Result<bool, Ending> {
        self.run_at_desk(batch).await?;
        let mut positions = Vec::new();
        let mut calls = Vec::new();
        for (index, state) in batch.states.iter().enumerate() {
            let State::Ready { tool, reading } = *state else { continue };
            let call = batch.call(index).clone();
            if let Err(error) = self.config.session.call_started(&call.id) {
                return Err(Ending::Session(std::sync::Arc::new(error)));
            }
            let arguments = call.arguments().cloned().unwrap_or_default();
            self.port.emit(|| RunEvent::ToolStarted { id: call.id.clone(), name: call.name.clone(), arguments });
            positions.push(index);
            calls.push(CallToRun { call, tool, parallel_safe: self.config.tools[tool].parallel_safe, reading });
        }
        if calls.is_empty() {
            return Ok(false);
        }
        self.doing(|| Doing::Working(calls.iter().map(|call| call.call.name.clone()).collect()));
        let (answers, cancelled) = match self.port.perform(Effect::Calls(calls)).await {
            Answer::Calls { answers, cancelled } => (answers, cancelled),
            _ => (Vec::new(), true),
        };
        let spent = self.port.take_spent();
        self.counters.add_usage(spent.usage, spent.cost);
        let mut answers = answers.into_iter();
        for index in positions {
            batch.states[index] = match answers.next().flatten() {
                Some(answer) => settled(answer),
                None => failure(cancelled_error(), "cancelled"),
            };
        }
        if cancelled {
            self.cancel();
        }
        Ok(cancelled)
    }

    async fn end_of_batch(&mut self, batch: &Batch) -> Result<(), Ending> {
        let told = self.calls.len().saturating_sub(batch.states.len());
        let outcome = self.notify(Event::PostToolBatch, |run| {
            let call = |record: &CallRecord| {
                json!({
                    "id": record.id, "name": record.name, "arguments": record.arguments,
                    "result": record.result, "is_error": record.is_error,
                })
            };
            vec![(Field::ToolCalls, run.calls[told..].iter().map(call).collect::<Value>().into())]
        });
        let Some(outcome) = outcome.await? else { return Ok(()) };
        if let Some(context) = outcome.context_text() {
            // The results are in the history already, so this stands behind them.
            self.append(Message::user(with_context("", &context)).from_sender("hook"))?;
        }
        self.end_if_stopped(&outcome)
    }

    /// Gives every call of a reply that is given up its one result.
    pub(super) fn close_batch(&mut self, batch: &mut Batch, ending: &Ending) -> Result<(), Ending> {
        let (error, cause) = match ending {
            Ending::Cancelled => (cancelled_error(), "cancelled"),
            Ending::Stopped { reason, .. } => (
                ToolError::new(
                    ToolErrorCode::Denied,
                    format!("The call was not run, because the turn was stopped: {reason}"),
                ),
                "not_run",
            ),
            Ending::Limit(reached) => (
                ToolError::new(
                    ToolErrorCode::Denied,
                    format!("The call was not run, because a limit was reached: {reached}"),
                ),
                "not_run",
            ),
            _ => (ToolError::new(ToolErrorCode::Cancelled, "The call was not run, because the turn ended."), "not_run"),
        };
        self.close_with(batch, &error, cause)
    }

    /// Gives every call the result that it was not run.
    pub(super) fn leave_out(&mut self, batch: &mut Batch, why: &str) -> Result<(), Ending> {
        self.close_with(
            batch,
            &ToolError::new(ToolErrorCode::Denied, format!("The call was not run: {why}.")),
            "not_run",
        )
    }

    /// Arguments that hooks would have seen, and perhaps taken something out of, are not kept if they have not: the turn
    /// ended before their call's turn came.
    fn hide_unseen_arguments(&self, batch: &mut Batch) {
        let listening = self.config.chain.as_ref().is_some_and(|chain| chain.listens(Event::PreToolExecution));
        if !listening {
            return;
        }
        for (call, state) in batch.message.tool_calls.iter_mut().zip(&batch.states) {
            if matches!(state, State::Open) {
                call.set_arguments(Map::new());
            }
        }
    }

    fn close_with(&mut self, batch: &mut Batch, error: &ToolError, cause: &'static str) -> Result<(), Ending> {
        self.store(batch)?;
        for index in 0..batch.states.len() {
            match std::mem::replace(&mut batch.states[index], State::Told) {
                State::Told => {}
                // What was found out before is said rather than that the turn ended.
                State::Failure { error, cause, elapsed, ran } if !ran => {
                    self.record(&batch.call(index).clone(), error.render(), Some(cause), elapsed, ran)?;
                }
                State::Value { elapsed, ran, .. } | State::Failure { elapsed, ran, .. } => {
                    self.record(&batch.call(index).clone(), unchecked().render(), Some("cancelled"), elapsed, ran)?;
                }
                _ => self.record(&batch.call(index).clone(), error.render(), Some(cause), Duration::ZERO, false)?,
            }
        }
        Ok(())
    }
}

pub(super) fn settled(answer: CallAnswer) -> State {
    let CallAnswer { result, elapsed, ran } = answer;
    match result {
        Ok(value) => State::Value { value, elapsed, ran },
        Err(error) => {
            let cause = match error.code {
                ToolErrorCode::Timeout => "timeout",
                ToolErrorCode::Cancelled => "cancelled",
                _ => "exception",
            };
            State::Failure { error, cause, elapsed, ran }
        }
    }
}

pub(super) fn cancelled_error() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "[cancelled] The run was cancelled before the call had a result.")
}

pub(super) fn unchecked() -> ToolError {
    let text = "[cancelled] The call ended, but the run was cancelled before its result could be checked.";
    ToolError::new(ToolErrorCode::Cancelled, text)
}

fn denied(outcome: &Outcome) -> State {
    failure(denial(outcome.reason.as_deref().unwrap_or_default()), "denied")
}

/// A refusal in the model's words.
pub(super) fn denial(reason: &str) -> ToolError {
    ToolError::new(ToolErrorCode::Denied, reason)
}

pub(super) fn arguments_of(call: &ToolCall) -> Map<String, Value> {
    call.arguments().cloned().unwrap_or_default()
}
