//! What stands between a turn and the others of a team: mail comes in between two rounds, calls of the team's own tools
//! are carried out here and not by the driver, and what the agent uses and does is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{Batch, State, failure};
use super::flow::Run;
use super::{CallAnswer, Ending};
use crate::agent::limits::LimitReached;
use crate::hook::{Action, Event, Field};
use crate::message::{Message, ToolCall, Usage};
use crate::model::Request;
use crate::tool::{ToolError, ToolErrorCode};

/// A letter that an agent sends, before hooks have seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Whom it addresses.
    pub recipients: Vec<String>,
    /// The words.
    pub text: String,
    /// What else the call said.
    pub call: ToolCall,
}

/// What a call of one of the team's tools comes to.
pub enum DeskAnswer {
    /// A letter: hooks see it before it goes out.
    Letter(Letter),
    /// It is done.
    Done(Result<Value, ToolError>),
}

/// What the agent does at this moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Doing {
    /// The model is asked.
    Thinking,
    /// These tools run.
    Working(Vec<String>),
    /// Older messages are summarised.
    Compacting,
    /// The model failed and is asked again.
    Retrying {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How many there are at most, if that is known.
        of: Option<u32>,
        /// How long until the next.
        delay: Duration,
        /// Why.
        error: String,
    },
}

/// What a turn needs of the team that its agent is in. Nothing here waits.
pub trait Desk: Send + Sync {
    /// What came in for the agent, as one message; it counts as delivered with [`stored`](Desk::stored).
    fn incoming(&self) -> Option<Message>;

    /// What [`incoming`](Desk::incoming) or the beginning of the turn handed over is in the history.
    fn stored(&self);

    /// The limit that is reached, before a round.
    fn limit(&self) -> Option<LimitReached>;

    /// A request goes out.
    fn round(&self, request: &Arc<Request>);

    /// What a reply used, and how many calls it makes.
    fn spent(&self, usage: Usage, cost: f64, calls: usize);

    /// What the agent does.
    fn doing(&self, doing: Doing);

    /// Which of a reply's calls are not to be carried out because something came in meanwhile, by their position, and
    /// what the model is told in their place.
    fn held(&self, calls: &[ToolCall]) -> BTreeMap<usize, String>;

    /// Why a call is not to be carried out: the team goes round in circles.
    fn refuse(&self, call: &ToolCall) -> Option<ToolError>;

    /// Whether the desk carries out calls of this tool.
    fn handles(&self, tool: &str) -> bool;

    /// Carries out a call, or says what letter it sends.
    fn call(&self, call: &ToolCall) -> DeskAnswer;

    /// Sends a letter as hooks left it.
    fn send(&self, letter: Letter) -> Result<Value, ToolError>;

    /// The name of the agent, as the sender of its letters.
    fn sender(&self) -> &str;

    /// Whether the turn is over after these calls: the agent said so by one of them.
    fn is_over(&self) -> bool;
}

impl Run {
    /// What came in since the last round is put into the history.
    pub(super) fn take_mail(&mut self) -> Result<(), Ending> {
        let Some(desk) = self.config.desk.clone() else { return Ok(()) };
        let Some(message) = desk.incoming() else { return Ok(()) };
        self.append(message)?;
        desk.stored();
        Ok(())
    }

    pub(super) fn doing(&self, doing: impl FnOnce() -> Doing) {
        if let Some(desk) = &self.config.desk {
            desk.doing(doing());
        }
    }

    /// Marks the calls that are held. They are not judged and do not count.
    pub(super) fn hold(&self, batch: &mut Batch) {
        let Some(desk) = &self.config.desk else { return };
        for (index, text) in desk.held(batch.calls()) {
            batch.states[index] = failure(ToolError::new(ToolErrorCode::Cancelled, text), "held");
        }
    }

    /// Carries out the calls of the team's tools, in order.
    pub(super) async fn run_at_desk(&mut self, batch: &mut Batch) -> Result<(), Ending> {
        let Some(desk) = self.config.desk.clone() else { return Ok(()) };
        for index in 0..batch.states.len() {
            if !matches!(batch.states[index], State::Ready { .. }) {
                continue;
            }
            let call = batch.call(index).clone();
            if let Some(error) = desk.refuse(&call) {
                batch.states[index] = failure(error, "denied");
                continue;
            }
            if !desk.handles(&call.name) {
                continue;
            }
            let started = self.config.session.call_started(&call.id);
            started.map_err(|error| Ending::Session(Arc::new(error)))?;
            let result = match desk.call(&call) {
                DeskAnswer::Done(result) => result,
                DeskAnswer::Letter(letter) => self.route(&*desk, letter).await?,
            };
            batch.states[index] = super::calls::settled(CallAnswer { result, elapsed: Duration::ZERO, ran: true });
        }
        Ok(())
    }

    /// A letter goes out, as hooks leave it.
    async fn route(&mut self, desk: &dyn Desk, mut letter: Letter) -> Result<Result<Value, ToolError>, Ending> {
        let (sender, recipients, text) = (desk.sender().to_owned(), json!(letter.recipients), letter.text.clone());
        let outcome = self.notify(Event::MessageRouted, |_| {
            vec![
                (Field::Sender, sender.as_str().into()),
                (Field::Recipients, recipients.clone().into()),
                (Field::Text, text.as_str().into()),
            ]
        });
        if let Some(outcome) = outcome.await? {
            self.end_if_stopped(&outcome)?;
            if outcome.action == Some(Action::Skip) {
                let reason = outcome.reason.as_deref().unwrap_or("a hook dropped the message");
                return Ok(Err(super::calls::denial(reason)));
            }
            if let Some(text) = outcome.replaced(Field::Text).and_then(|value| value.text()) {
                letter.text = text.to_owned();
            }
            if let Some(Ok(Value::Array(names))) = outcome.replaced(Field::Recipients).map(|value| value.json()) {
                letter.recipients = names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
            }
        }
        Ok(desk.send(letter))
    }

    /// Whether the agent said by a call that its turn is over.
    pub(super) fn is_over(&self) -> bool {
        self.config.desk.as_ref().is_some_and(|desk| desk.is_over())
    }
}
