//! What of the conversation goes to the model, where the model may not hold all of it. The session keeps everything: what
//! is made shorter here is only what is sent.

use std::sync::Arc;

use serde_json::json;

use super::flow::Run;
use super::history::HistoryPayload;
use super::{Ending, RunEvent};
use crate::context::{CachedTokens, MINIMUM_BUDGET, MicroOptions, SelectOptions, micro_compact, select};
use crate::hook::{Action, Event, Field, Outcome, Payload};
use crate::message::{History, Message, Usage};
use crate::model::Request;

/// How much of the window may be full before old results of tools are shortened.
const FULL: f64 = 0.5;

/// What a model holds, and how the conversation is made to fit.
#[derive(Clone)]
pub struct Window {
    /// The tokens that the model holds: what it is sent and its answer.
    pub tokens: usize,
    /// The tokens that are left free for the answer.
    pub reserved: usize,
    /// How old results of tools are shortened.
    pub micro: MicroOptions,
    /// Above which share of the room older messages are summarised; `None` for never.
    pub auto: Option<f64>,
    /// How messages are chosen if that is not enough.
    pub select: SelectOptions,
    /// How tokens are counted.
    pub counter: Arc<CachedTokens>,
}

/// A conversation with shortened results, and how long it was when they were shortened. It is kept through a turn, so that
/// what a server has in its cache is not changed with each request.
pub(super) struct Shortened {
    pub(super) length: usize,
    pub(super) messages: History,
}

impl Run {
    /// The conversation as it is sent: shortened, and if need be in parts.
    pub(super) async fn fitting(&mut self, request: &mut Request) -> Result<(), Ending> {
        let Some(window) = self.config.window.clone() else { return Ok(()) };
        let counter = &window.counter;
        let beside = counter.scaled(beside(request, counter));
        let budget = window.tokens.saturating_sub(window.reserved).saturating_sub(beside).max(MINIMUM_BUDGET);
        let all = request.messages.clone();
        if self.shortened.is_none() {
            let known = self.config.session.compacted();
            self.shortened = known.map(|(length, messages)| Shortened { length, messages });
        }
        let mut messages = match &self.shortened {
            Some(known) => known.messages.iter().cloned().chain(all.iter().skip(known.length).cloned()).collect(),
            None => all.clone(),
        };
        let before = counter.history(&messages);
        if before as f64 > budget as f64 * FULL {
            messages = self.shorten(messages, before, budget, &window, all.len()).await?;
        }
        messages = self.summarise(messages, budget, &window, all.len()).await?;
        if counter.history(&messages) > budget {
            let selection = select(&messages, budget, counter, &window.select);
            let left_out = selection.dropped;
            self.port.emit(|| RunEvent::Fitted { left_out, shortened: selection.cut, summarised: 0 });
            messages = selection.messages;
        }
        request.messages = messages;
        Ok(())
    }

    async fn shorten(
        &mut self,
        messages: History,
        before: usize,
        budget: usize,
        window: &Window,
        length: usize,
    ) -> Result<History, Ending> {
        let Some(done) = micro_compact(&messages, &window.counter, &window.micro) else { return Ok(messages) };
        let payload = |messages: &History| Payload::foreign(HistoryPayload(messages.clone()));
        let outcome = self.notify(Event::PreMicroCompact, |run| {
            vec![
                (Field::Messages, payload(&messages)),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::TokensBefore, json!(before).into()),
                (Field::TargetTokens, json!(budget).into()),
            ]
        });
        if outcome.await?.is_some_and(|outcome| outcome.action == Some(Action::Skip)) {
            return Ok(messages);
        }
        let mut shortened = done.messages;
        let after = window.counter.history(&shortened);
        let outcome = self.notify(Event::PostMicroCompact, |run| {
            vec![
                (Field::Messages, payload(&shortened)),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::TokensBefore, json!(before).into()),
                (Field::TokensAfter, json!(after).into()),
            ]
        });
        if let Some(replaced) = outcome.await?.as_deref().and_then(replaced_messages) {
            shortened = replaced;
        }
        self.port.emit(|| RunEvent::Fitted { left_out: 0, shortened: done.shortened, summarised: 0 });
        self.shortened = Some(Shortened { length, messages: shortened.clone() });
        Ok(shortened)
    }

    /// Learns from what the server says of a request.
    pub(super) fn learn(&self, sent: &Request, usage: Usage) {
        if let Some(window) = &self.config.window {
            let counted = window.counter.sum(sent.all_messages()) + beside(sent, &window.counter);
            let actual = usize::try_from(usage.input_tokens).unwrap_or(usize::MAX);
            window.counter.counter().learn(counted, actual);
        }
    }
}

/// The unscaled tokens of what is sent beside the conversation.
fn beside(request: &Request, counter: &CachedTokens) -> usize {
    let count = |text: &str| counter.counter().count_text(text);
    let system = request.system.as_deref().map_or(0, count);
    let tool = |tool: &crate::model::ToolDescription| {
        count(&tool.name) + count(&tool.description) + count(&tool.schema.to_string())
    };
    system + request.tools.iter().map(tool).sum::<usize>()
}

/// The messages that hooks put in the place of others.
pub(super) fn replaced_messages(outcome: &Outcome) -> Option<History> {
    let Some(Ok(list)) = outcome.replaced(Field::Messages).map(|value| value.json()) else { return None };
    // Each was checked to be a message when the hook returned it.
    let read = |value: &serde_json::Value| serde_json::from_value::<Message>(value.clone()).ok().map(Arc::new);
    Some(list.as_array().into_iter().flatten().filter_map(read).collect())
}
