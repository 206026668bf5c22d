//! The rules of a turn, from the user's message to the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::calls::Batch;
use super::desk::Doing;
use super::machine::{Answer, Effect, Port};
use super::window::{Shortened, replaced_messages};
use super::{CallRecord, Ending, HistoryPayload, RunEvent, TurnConfig, TurnInput, TurnResult};
use crate::agent::limits::{LimitReached, TurnCounters};
use crate::hook::{Action, Event, Field, HostHandle, Outcome, Payload, Scope};
use crate::message::{Content, Message};
use crate::model::with_context;
use crate::model::{FailureKind, ModelFailure, Reply, Request, StreamEvent, ToolDescription};

/// How long hooks may still take once a run was cancelled.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The state of one turn. It has one owner: the function that runs the rules.
pub(super) struct Run {
    pub(super) port: Port,
    pub(super) config: Arc<TurnConfig>,
    pub(super) scope: Arc<Scope>,
    pub(super) counters: TurnCounters,
    pub(super) calls: Vec<CallRecord>,
    pub(super) used_ids: std::collections::HashSet<String>,
    trace: Vec<Arc<Outcome>>,
    messages: Vec<Arc<Message>>,
    /// What the user said, as hooks left it.
    input: String,
    /// The system prompt of this turn, as hooks left it.
    pub(super) prompt: Option<Arc<str>>,
    text: String,
    began: Instant,
    cancelled: bool,
    streamed: bool,
    hold_text: bool,
    /// Whether pieces of the reply were told while it came in.
    told: bool,
    /// How often requests were made again.
    retries: u32,
    /// The conversation with shortened results, once there is one.
    pub(super) shortened: Option<Shortened>,
    /// The names of tools that are not there in this turn.
    pub(super) missing: std::collections::HashSet<String>,
    /// The names of deferred tools that were loaded.
    pub(super) loaded: std::collections::HashSet<String>,
    /// Whether a summary could not be had in this turn: it is not asked for again.
    pub(super) summary_failed: bool,
    /// Whether the model was asked to mend an answer without the right type.
    answer_sent_back: bool,
}

/// Runs a turn to its end.
pub(super) async fn run(port: Port, config: Arc<TurnConfig>, input: TurnInput) -> TurnResult {
    let began = (config.now)();
    let mut run = Run {
        scope: Arc::new(Scope {
            session_id: config.session.id().to_owned(),
            turn_id: String::new(),
            agent: config.agent.clone(),
            cwd: config.cwd.clone(),
            continuation: 0,
            mode: None,
            host: HostHandle::new(config.clone()),
        }),
        counters: TurnCounters::new(config.limits.clone()),
        port,
        config,
        calls: Vec::new(),
        used_ids: std::collections::HashSet::new(),
        trace: Vec::new(),
        messages: Vec::new(),
        input: String::new(),
        prompt: None,
        text: String::new(),
        began,
        cancelled: false,
        streamed: input.streamed,
        hold_text: input.hold_text,
        told: false,
        retries: 0,
        shortened: None,
        missing: std::collections::HashSet::new(),
        loaded: std::collections::HashSet::new(),
        summary_failed: false,
        answer_sent_back: false,
    };
    let ending = match run.config.session.begin_turn() {
        Err(error) => return run.result(Ending::Session(Arc::new(error))),
        Ok(turn_id) => {
            Arc::make_mut(&mut run.scope).turn_id = turn_id.clone();
            run.port.emit(|| RunEvent::TurnStarted { turn_id });
            run.go(input).await.err().unwrap_or(Ending::Success)
        }
    };
    run.finish(ending).await
}

impl Run {
    async fn go(&mut self, mut input: TurnInput) -> Result<(), Ending> {
        self.missing = std::mem::take(&mut input.missing);
        if self.config.tools.iter().any(|tool| tool.deferred) {
            self.loaded = super::registry::loaded_in(&self.config.session.history());
        }
        if let Some(source) = input.session_source.take() {
            self.notify(Event::SessionStart, |run| {
                vec![(Field::Source, source.as_str().into()), (Field::Messages, run.history_payload())]
            })
            .await?;
        }
        let (resumed, decisions) = (input.resumed, std::mem::take(&mut input.decisions));
        if resumed {
            // Nothing is said: the conversation goes on with what stands at its end.
            let text = Payload::from("");
            self.notify(Event::TurnStart, |_| vec![(Field::UserInput, text.clone())]).await?;
        } else {
            self.send(input).await?;
        }
        self.prompt = self.build_prompt().await?;
        if resumed {
            self.decide(decisions).await?;
        }
        loop {
            self.take_mail()?;
            self.check_limits().await?;
            let reply = self.request().await?;
            if self.answer(reply).await? {
                return Ok(());
            }
        }
    }

    /// The user's message: shown to hooks, then queued.
    async fn send(&mut self, input: TurnInput) -> Result<(), Ending> {
        let text = Payload::from(input.text.as_str());
        let outcome = self.notify(Event::PreSendMessage, |run| {
            vec![(Field::UserInput, text.clone()), (Field::Messages, run.history_payload())]
        });
        let outcome = outcome.await?;
        let mut text = input.text;
        let mut context = None;
        if let Some(outcome) = outcome {
            if let Some(new) = outcome.replaced(Field::UserInput).and_then(|value| value.text()) {
                text = new.to_owned();
            }
            context = outcome.context_text();
            self.end_if_stopped(&outcome)?;
        }
        self.input.clone_from(&text);
        let content = context.map_or_else(|| text.clone(), |context| with_context(&text, &context));
        for awaited in self.config.session.awaiting() {
            let text = super::calls::denial("nobody decided about the call before the conversation went on").render();
            self.append(Message::tool_result(&awaited.call_id, text).failed())?;
        }
        let mut message = Message::user(content);
        message.sender = input.sender;
        message.extra = input.extra;
        self.append(message)?;
        if let Some(desk) = &self.config.desk {
            desk.stored();
        }
        let text = Payload::from(text.as_str());
        self.notify(Event::PostSendMessage, |run| {
            vec![(Field::UserInput, text.clone()), (Field::Messages, run.history_payload())]
        })
        .await?;
        self.notify(Event::TurnStart, |_| vec![(Field::UserInput, text.clone())]).await?;
        Ok(())
    }

    /// The system prompt, put together once a turn, so that it stays the same through the turn's requests.
    async fn build_prompt(&mut self) -> Result<Option<Arc<str>>, Ending> {
        let system = self.config.system.clone();
        let input = self.input.clone();
        let outcome = self.notify(Event::SystemPromptBuilt, |_| {
            vec![(Field::SystemPrompt, system.as_str().into()), (Field::UserInput, input.as_str().into())]
        });
        let mut prompt = system.clone();
        if let Some(outcome) = outcome.await? {
            if let Some(new) = outcome.replaced(Field::SystemPrompt).and_then(|value| value.text()) {
                prompt = new.to_owned();
            }
            if let Some(context) = outcome.context_text() {
                prompt = with_context(&prompt, &context);
            }
        }
        Ok((!prompt.is_empty()).then(|| prompt.into()))
    }

    async fn check_limits(&mut self) -> Result<(), Ending> {
        let elapsed = (self.config.now)().saturating_duration_since(self.began);
        let checked = self.counters.check_time(elapsed).and_then(|()| self.counters.check_spending());
        let team = || self.config.desk.as_ref().and_then(|desk| desk.limit()).map_or(Ok(()), Err);
        match checked.and_then(|()| team()).and_then(|()| self.counters.begin_round().map(drop)) {
            Ok(()) => Ok(()),
            Err(reached) => Err(self.limit(reached).await),
        }
    }

    /// The time was used up in the middle of a request.
    pub(super) async fn out_of_time(&mut self) -> Ending {
        let allowed = Duration::try_from_secs_f64(self.config.limits.max_seconds.unwrap_or_default());
        let elapsed = (self.config.now)().saturating_duration_since(self.began);
        // The driver's clock and this one may differ by a little.
        match self.counters.check_time(elapsed.max(allowed.unwrap_or(Duration::MAX))) {
            Err(reached) => self.limit(reached).await,
            Ok(()) => self.cancel(),
        }
    }

    /// A limit is reached: hooks hear of it, and the turn ends.
    pub(super) async fn limit(&mut self, reached: LimitReached) -> Ending {
        let outcome = self.notify(Event::LimitReached, |_| {
            vec![
                (Field::Limit, reached.limit.as_str().into()),
                (Field::Used, json!(reached.used).into()),
                (Field::Allowed, json!(reached.allowed).into()),
            ]
        });
        match outcome.await {
            Err(ending) => ending,
            Ok(outcome) => match self.leave_note(outcome.as_deref()) {
                Err(ending) => ending,
                Ok(()) => Ending::Limit(reached),
            },
        }
    }

    /// What hooks say where the turn ends is there for the next turn to read.
    fn leave_note(&mut self, outcome: Option<&Outcome>) -> Result<(), Ending> {
        match outcome.and_then(Outcome::context_text) {
            Some(context) => self.append(Message::user(with_context("", &context)).from_sender("hook")),
            None => Ok(()),
        }
    }

    /// One request to the model, as hooks let it out.
    async fn request(&mut self) -> Result<Reply, Ending> {
        let system = self.prompt.clone();
        let mut request = Request {
            model: Some(self.config.model.clone()),
            system: system.clone(),
            messages: self.config.session.history(),
            tools: self
                .config
                .tools
                .iter()
                .filter(|tool| self.is_shown(tool))
                .map(|tool| tool.description.clone())
                .collect(),
            ..Request::default()
        };
        self.fitting(&mut request).await?;
        let sent = request.messages.clone();
        let outcome = self.notify(Event::PreLlmRequest, |run| {
            let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            vec![
                (Field::Messages, Payload::foreign(HistoryPayload(sent.clone()))),
                (Field::SystemPrompt, system.as_deref().unwrap_or_default().into()),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::Tools, json!(names).into()),
            ]
        });
        if let Some(outcome) = outcome.await? {
            self.end_if_stopped(&outcome)?;
            adjust(&mut request, &outcome);
        }
        self.told = false;
        let request = Arc::new(request);
        if let Some(desk) = &self.config.desk {
            desk.round(&request);
            desk.doing(Doing::Thinking);
        }
        let mut effect = Effect::Model { request: request.clone(), streamed: self.streamed };
        let answer = loop {
            match self.port.perform(effect).await {
                Answer::Pieces(pieces) => self.pieces(pieces).await?,
                Answer::Reply(answer) => break *answer,
                Answer::OutOfTime => return Err(self.out_of_time().await),
                _ => return Err(self.cancel()),
            }
            effect = Effect::MoreOfModel;
        };
        match answer {
            Ok(reply) => {
                self.learn(&request, reply.usage);
                let cost = self.config.prices.cost(reply.usage);
                self.counters.add_usage(reply.usage, cost);
                if let Some(desk) = &self.config.desk {
                    desk.spent(reply.usage, cost, reply.tool_calls.len());
                }
                Ok(reply)
            }
            Err(failure) => {
                if let Some(partial) = &failure.partial {
                    self.text = partial.content.text().into_owned();
                }
                let error = serde_json::to_value(&failure).unwrap_or_else(|_| failure.to_string().into());
                let outcome = self.notify(Event::LlmError, |_| vec![(Field::Error, error.clone().into())]).await?;
                self.leave_note(outcome.as_deref())?;
                if let Some(outcome) = outcome {
                    self.end_if_stopped(&outcome)?;
                }
                Err(Ending::Failed(failure))
            }
        }
    }

    /// What came in of a reply: whoever watches is told at once, and hooks hear of text.
    pub(super) async fn pieces(&mut self, pieces: Vec<StreamEvent>) -> Result<(), Ending> {
        for piece in pieces {
            match piece {
                StreamEvent::Text { delta } => {
                    if self.streamed && !self.hold_text {
                        self.port.emit(|| RunEvent::Text { delta: delta.clone() });
                    }
                    self.told = true;
                    self.notify(Event::TextDelta, |_| vec![(Field::Delta, delta.as_str().into())]).await?;
                }
                // What hooks have not seen is not shown where text is held.
                StreamEvent::Reasoning { .. } | StreamEvent::ToolCall { .. } if self.hold_text => {}
                StreamEvent::Reasoning { delta } => self.port.emit(|| RunEvent::Reasoning { delta }),
                StreamEvent::ToolCall { index, id: _, name, arguments_delta: delta } => {
                    self.port.emit(|| RunEvent::CallDelta { index, name, delta });
                }
                StreamEvent::Retry { attempt, of, failure, wait } => {
                    self.retries += 1;
                    let (delay, error) = (wait, failure.to_string());
                    self.doing(|| Doing::Retrying { attempt, of, delay, error });
                    self.port.emit(|| RunEvent::Retry { attempt, of, failure, wait });
                }
            }
        }
        Ok(())
    }

    /// What follows from a reply. Returns whether the turn is over.
    async fn answer(&mut self, mut reply: Reply) -> Result<bool, Ending> {
        self.unique_ids(&mut reply);
        let said = reply.content.text().into_owned();
        if self.streamed && !self.told && !said.is_empty() {
            if !self.hold_text {
                self.port.emit(|| RunEvent::Text { delta: said.clone() });
            }
            self.notify(Event::TextDelta, |_| vec![(Field::Delta, said.as_str().into())]).await?;
        }
        let cut_off = reply.stop_reason == crate::model::StopReason::Length;
        let usage = reply.usage;
        let mut message = reply.into_message();
        let outcome = self.notify(Event::PostLlmResponse, |run| {
            vec![
                (Field::AssistantOutput, said.as_str().into()),
                (Field::ToolCalls, calls_json(&message).into()),
                (Field::Messages, run.history_payload()),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::Usage, json!(usage).into()),
            ]
        });
        let outcome = match outcome.await {
            Ok(outcome) => outcome,
            Err(ending) => {
                // Nobody has looked at this reply, so it is not kept.
                return Err(ending);
            }
        };
        let mut feedback = None;
        if let Some(outcome) = &outcome {
            if let Some(new) = outcome.replaced(Field::AssistantOutput).and_then(|value| value.text()) {
                message.content = Content::from(new);
            }
            feedback = outcome.feedback();
        }
        self.text = message.text().into_owned();
        if self.hold_text && !self.text.is_empty() {
            let delta = self.text.clone();
            self.port.emit(|| RunEvent::Text { delta });
        }
        let mut batch = Batch::new(message, cut_off);
        if let Some(outcome) = &outcome
            && let Err(ending) = self.end_if_stopped(outcome)
        {
            self.close_batch(&mut batch, &ending)?;
            return Err(ending);
        }
        if let Some(feedback) = feedback {
            self.leave_out(&mut batch, "a hook sent the reply back before its calls were run")?;
            return self.send_back(&feedback).await.map(|()| false);
        }
        if batch.is_empty() {
            self.append(batch.into_message())?;
            return match self.check_output().await? {
                Some(problem) => self.send_back_answer(&problem).await.map(|()| false),
                None => self.stop().await,
            };
        }
        match self.run_batch(&mut batch).await {
            Ok(()) => Ok(self.is_over()),
            // What waits for a decision is left as it is.
            Err(ending @ Ending::Awaiting { .. }) => Err(ending),
            Err(ending) => {
                self.close_batch(&mut batch, &ending)?;
                Err(ending)
            }
        }
    }

    /// What is wrong with an answer that has to have a type.
    async fn check_output(&mut self) -> Result<Option<String>, Ending> {
        if !self.config.checks_output {
            return Ok(None);
        }
        match self.port.perform(Effect::Check(self.text.clone())).await {
            Answer::Checked(problem) => Ok(problem),
            _ => Err(self.cancel()),
        }
    }

    /// The model may mend its answer once.
    async fn send_back_answer(&mut self, problem: &str) -> Result<(), Ending> {
        if std::mem::replace(&mut self.answer_sent_back, true) {
            let message = format!("the answer does not have the type that was asked for, twice: {problem}");
            return Err(Ending::Failed(ModelFailure::new(FailureKind::InvalidReply, message)));
        }
        let text = format!("Your answer cannot be used: {problem}\nAnswer again, with the JSON and nothing else.");
        self.append(Message::user(text).from_sender("hookwright"))
    }

    /// The model is about to end its turn. Returns whether it may.
    async fn stop(&mut self) -> Result<bool, Ending> {
        let said = self.text.clone();
        let system = self.prompt.clone();
        let outcome = self.notify(Event::Stop, |run| {
            vec![
                (Field::AssistantOutput, said.as_str().into()),
                (Field::Messages, run.history_payload()),
                (Field::SystemPrompt, system.as_deref().unwrap_or_default().into()),
                (Field::Model, run.config.model.as_ref().into()),
            ]
        });
        let Some(outcome) = outcome.await? else { return Ok(true) };
        if outcome.action == Some(Action::Stop) {
            return Ok(true);
        }
        let Some(feedback) = outcome.feedback() else { return Ok(true) };
        let feedback = match outcome.context_text() {
            Some(context) => with_context(&feedback, &context),
            None => feedback,
        };
        self.send_back(&feedback).await.map(|()| false)
    }

    /// Hooks send the turn back to the model, as often as the limits allow.
    async fn send_back(&mut self, feedback: &str) -> Result<(), Ending> {
        match self.counters.send_back(feedback) {
            Err(reached) => Err(self.limit(reached).await),
            Ok(continuation) => {
                Arc::make_mut(&mut self.scope).continuation = continuation;
                self.append(Message::user(feedback).from_sender("hook"))?;
                Ok(())
            }
        }
    }

    /// Every call gets an id that no other call of this turn has; one that is made here names the turn, so that it is the
    /// only one of its session.
    fn unique_ids(&mut self, reply: &mut Reply) {
        for call in &mut reply.tool_calls {
            let mut number = self.used_ids.len();
            while call.id.is_empty() || self.used_ids.contains(&call.id) {
                number += 1;
                call.id = format!("call_{}_{number}", self.scope.turn_id);
            }
            self.used_ids.insert(call.id.clone());
        }
    }

    /// Dispatches an event if anybody listens; the fields are made only then.
    pub(super) async fn notify(
        &mut self,
        event: Event,
        fields: impl Fn(&Run) -> Vec<(Field, Payload)>,
    ) -> Result<Option<Arc<Outcome>>, Ending> {
        let Some(chain) = self.config.chain.clone() else { return Ok(None) };
        let limit = self.cancelled.then_some(AFTERMATH);
        let Some(dispatch) = chain.begin_within(event, &self.scope, || fields(self), limit) else { return Ok(None) };
        let Answer::Outcome(outcome) = self.port.perform(Effect::Dispatch(Box::new(dispatch))).await else {
            return Err(self.cancel());
        };
        let outcome = Arc::new(*outcome);
        for said in &outcome.system_messages {
            self.port.emit(|| RunEvent::Notice { hook: said.hook.clone(), text: said.text.clone() });
        }
        self.port.emit(|| RunEvent::Hooks(outcome.clone()));
        self.trace.push(outcome.clone());
        Ok(Some(outcome))
    }

    pub(super) fn cancel(&mut self) -> Ending {
        self.cancelled = true;
        Ending::Cancelled
    }

    pub(super) fn end_if_stopped(&self, outcome: &Outcome) -> Result<(), Ending> {
        if outcome.action != Some(Action::Stop) {
            return Ok(());
        }
        let reason = outcome.reason.clone().unwrap_or_else(|| "a hook stopped the turn".into());
        Err(Ending::Stopped { reason, by: outcome.halted_by.clone() })
    }

    /// Adds a message to the history and the transcript.
    pub(super) fn append(&mut self, message: Message) -> Result<(), Ending> {
        match self.config.session.append(message) {
            Ok(message) => {
                self.port.emit(|| RunEvent::Message(message.clone()));
                self.messages.push(message);
                Ok(())
            }
            Err(error) => Err(Ending::Session(Arc::new(error))),
        }
    }

    pub(super) fn history_payload(&self) -> Payload {
        Payload::foreign(HistoryPayload(self.config.session.history()))
    }

    async fn finish(mut self, ending: Ending) -> TurnResult {
        let usage = json!(self.counters.usage());
        let text = self.text.clone();
        // Whatever happened, hooks hear of the end; nothing they do changes it any more.
        drop(
            self.notify(Event::TurnEnd, |_| {
                vec![
                    (Field::AssistantOutput, text.as_str().into()),
                    (Field::Usage, usage.clone().into()),
                    (Field::Status, ending.status().into()),
                ]
            })
            .await,
        );
        let ending = match self.config.session.end_turn(&self.scope.turn_id, ending.status()) {
            Err(error) if matches!(ending, Ending::Success) => Ending::Session(Arc::new(error)),
            _ => ending,
        };
        self.result(ending)
    }

    fn result(self, ending: Ending) -> TurnResult {
        TurnResult {
            ending,
            turn_id: self.scope.turn_id.clone(),
            text: self.text,
            messages: self.messages,
            usage: self.counters.usage(),
            cost: self.counters.cost(),
            rounds: self.counters.rounds(),
            retries: self.retries,
            calls: self.calls,
            trace: self.trace,
            elapsed: (self.config.now)().saturating_duration_since(self.began),
        }
    }
}

/// What hooks changed about a request, for this request only.
pub(super) fn adjust(request: &mut Request, outcome: &Outcome) {
    if let Some(messages) = replaced_messages(outcome) {
        request.messages = messages;
    }
    if let Some(system) = outcome.replaced(Field::SystemPrompt).and_then(|value| value.text()) {
        request.system = (!system.is_empty()).then(|| system.into());
    }
    if let Some(Ok(names)) = outcome.replaced(Field::Tools).map(|value| value.json()) {
        let keep = |tool: &&ToolDescription| names.as_array().is_some_and(|list| list.contains(&json!(tool.name)));
        request.tools = request.tools.iter().filter(keep).cloned().collect();
    }
    request.inject_messages = outcome.inject_messages.iter().filter_map(read_message).map(Arc::new).collect();
    request.additional_context = outcome.additional_context.iter().map(|item| item.text.clone()).collect();
}

fn read_message(value: &Value) -> Option<Message> {
    serde_json::from_value(value.clone()).ok()
}

/// The calls of a message as hooks see them.
pub(super) fn calls_json(message: &Message) -> Value {
    let call = |call: &crate::message::ToolCall| match call.arguments() {
        Ok(arguments) => json!({"id": call.id, "name": call.name, "arguments": arguments}),
        Err(_) => json!({"id": call.id, "name": call.name, "arguments": call.arguments_json()}),
    };
    message.tool_calls.iter().map(call).collect()
}
