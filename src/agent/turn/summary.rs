//! Older messages become a summary that the model writes. The session keeps them all, and the summary beside them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::desk::Doing;
use super::flow::{Run, adjust};
use super::history::HistoryPayload;
use super::window::{Shortened, Window, replaced_messages};
use super::{Answer, Effect, Ending, RunEvent};
use crate::context::{AutoOptions, SUMMARY_INSTRUCTIONS, plan};
use crate::hook::{Action, Event, Field, Payload};
use crate::message::{History, Message};
use crate::model::{Request, StreamEvent};

/// How much of the room is kept for the newest messages, as they are.
const KEPT: f64 = 0.25;
/// The most that one request for a summary holds, in tokens.
const PART: usize = 20_000;
/// Who tells that a summary could not be had.
const TELLER: &str = "context window";

impl Run {
    /// `messages` with what is old in a summary, if they are more than the window's share of `budget`. A summary that
    /// cannot be had does not end the turn: whoever watches is told, and the turn goes on without.
    pub(super) async fn summarise(
        &mut self,
        messages: History,
        budget: usize,
        window: &Window,
        length: usize,
    ) -> Result<History, Ending> {
        let Some(share) = window.auto.filter(|_| !self.summary_failed) else { return Ok(messages) };
        let part_of = |share: f64| (budget as f64 * share) as usize;
        let options = AutoOptions {
            threshold: part_of(share),
            keep: part_of(KEPT.min(share / 2.0)),
            part: PART.min(budget / 2),
            task: window.select.task.clone(),
            ..AutoOptions::default()
        };
        let Some(mut plan) = plan(&messages, &window.counter, &options) else { return Ok(messages) };
        let payload = |messages: &History| Payload::foreign(HistoryPayload(messages.clone()));
        let system = self.prompt.clone();
        let (before, target) = (plan.tokens_before, options.threshold);
        let outcome = self.notify(Event::PreAutoCompact, |run| {
            vec![
                (Field::Messages, payload(&messages)),
                (Field::SystemPrompt, system.as_deref().unwrap_or_default().into()),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::TokensBefore, json!(before).into()),
                (Field::TargetTokens, json!(target).into()),
            ]
        });
        if let Some(outcome) = outcome.await? {
            if outcome.action == Some(Action::Skip) {
                return Ok(messages);
            }
            plan.protect(outcome.additional_context.iter().map(|item| item.text.clone()));
        }
        self.doing(|| Doing::Compacting);
        let mut summaries = Vec::with_capacity(plan.prompts.len());
        for prompt in &plan.prompts {
            let summary = self.ask_for_summary(prompt).await?;
            let failed = summary.is_err();
            summaries.push(summary);
            if failed {
                break;
            }
        }
        let applied = plan.apply(&summaries);
        if let Some(text) = applied.note {
            self.summary_failed = true;
            self.port.emit(|| RunEvent::Notice { hook: TELLER.into(), text });
        }
        if applied.summarised == 0 {
            return Ok(messages);
        }
        let mut compacted = applied.messages;
        let after = window.counter.history(&compacted);
        let said = summaries.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n\n");
        let outcome = self.notify(Event::PostAutoCompact, |_| {
            vec![
                (Field::Messages, payload(&compacted)),
                (Field::Summary, said.as_str().into()),
                (Field::IdsBefore, ids(&messages).into()),
                (Field::IdsAfter, ids(&compacted).into()),
                (Field::TokensBefore, json!(before).into()),
                (Field::TokensAfter, json!(after).into()),
            ]
        });
        if let Some(replaced) = outcome.await?.as_deref().and_then(replaced_messages) {
            compacted = replaced;
        }
        let session = self.config.session.compact(length, compacted.clone());
        session.map_err(|error| Ending::Session(Arc::new(error)))?;
        let summarised = applied.summarised;
        self.port.emit(|| RunEvent::Fitted { left_out: 0, shortened: 0, summarised });
        self.shortened = Some(Shortened { length, messages: compacted.clone() });
        Ok(compacted)
    }

    /// One summary; hooks see the request as any other. The inner error says why there is none.
    async fn ask_for_summary(&mut self, prompt: &str) -> Result<Result<String, String>, Ending> {
        let mut request = Request {
            model: Some(self.config.model.clone()),
            system: Some(SUMMARY_INSTRUCTIONS.into()),
            messages: [Message::user(prompt)].into_iter().collect(),
            ..Request::default()
        };
        let sent = request.messages.clone();
        let outcome = self.notify(Event::PreLlmRequest, |run| {
            vec![
                (Field::Messages, Payload::foreign(HistoryPayload(sent.clone()))),
                (Field::SystemPrompt, SUMMARY_INSTRUCTIONS.into()),
                (Field::Model, run.config.model.as_ref().into()),
                (Field::Tools, json!([]).into()),
            ]
        });
        if let Some(outcome) = outcome.await? {
            if outcome.action == Some(Action::Stop) {
                return Ok(Err(outcome.reason.clone().unwrap_or_else(|| "a hook stopped the request".into())));
            }
            adjust(&mut request, &outcome);
        }
        let request = Arc::new(request);
        let mut effect = Effect::Model { request: request.clone(), streamed: false };
        let answer = loop {
            match self.port.perform(effect).await {
                // The words of a summary are nobody's answer; that a request is made again is told.
                Answer::Pieces(mut pieces) => {
                    pieces.retain(|piece| matches!(piece, StreamEvent::Retry { .. }));
                    self.pieces(pieces).await?;
                }
                Answer::Reply(answer) => break *answer,
                Answer::OutOfTime => return Err(self.out_of_time().await),
                _ => return Err(self.cancel()),
            }
            effect = Effect::MoreOfModel;
        };
        Ok(match answer {
            Ok(reply) => {
                self.learn(&request, reply.usage);
                self.counters.add_usage(reply.usage, self.config.prices.cost(reply.usage));
                Ok(reply.content.text().into_owned())
            }
            Err(failure) => Err(failure.to_string()),
        })
    }
}

fn ids(messages: &History) -> Value {
    messages.iter().map(|message| message.id.as_deref().map_or(Value::Null, Value::from)).collect()
}
