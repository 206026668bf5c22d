//! A turn as a state machine without I/O.
//!
//! The rules are written as one straight `async` function, and this is what runs it: a future that never waits for
//! anything but the answer to the effect it has just asked for. There is no runtime and no waker; [`Turn::resume`]
//! polls once, and out comes the next effect or the result. So the same rules serve every driver (an asyncio loop, a
//! blocking thread, a simulation under a virtual clock), and what a turn does depends on its answers alone.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::Value;

use super::flow;
use super::{RunEvent, TurnConfig, TurnInput, TurnResult};
use crate::hook::{Dispatch, Outcome};
use crate::message::{ToolCall, Usage};
use crate::model::{ModelFailure, Reply, Request, StreamEvent};
use crate::tool::ToolError;

/// One call that is to be run, its arguments checked and judged.
#[derive(Debug, Clone)]
pub struct CallToRun {
    /// The call with its final arguments.
    pub call: ToolCall,
    /// Which of the turn's tools it is.
    pub tool: usize,
    /// Whether others may run beside it.
    pub parallel_safe: bool,
    /// Whether gates let it through on the condition that it runs in the environment for reading.
    pub reading: bool,
}

/// What one call came to.
#[derive(Debug, Clone)]
pub struct CallAnswer {
    /// The tool's value, or its failure.
    pub result: Result<Value, ToolError>,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether the tool was entered at all: not if the turn's time was used up before.
    pub ran: bool,
}

/// A person's decision is wanted.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The call in question.
    pub call: ToolCall,
    /// Why somebody asked.
    pub reason: String,
    /// The rule that would let such calls through from now on, if there is one that lets nothing else through.
    pub suggested_rule: Option<String>,
}

/// What the approver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// Go ahead.
    Allow,
    /// Go ahead, and by the suggested rule from now on.
    AllowAlways,
    /// No, with a reason or without.
    Deny(Option<String>),
    /// Somebody will say so later, perhaps to another process.
    Later,
    /// Nobody is there to ask.
    NoApprover,
    /// Nobody answered in time.
    NoAnswer,
}

/// What a turn wants done.
pub enum Effect {
    /// Run this dispatch to its end. Answer: [`Answer::Outcome`].
    Dispatch(Box<Dispatch>),
    /// Ask the model. Answer: [`Answer::Reply`], or before it as often as wanted [`Answer::Pieces`].
    Model {
        /// What it is asked.
        request: Arc<Request>,
        /// Whether somebody wants to see the reply come in.
        streamed: bool,
    },
    /// Go on waiting for the model. Answers as to [`Effect::Model`].
    MoreOfModel,
    /// Run these calls, side by side where they allow it. Answer: [`Answer::Calls`], in the same order.
    Calls(Vec<CallToRun>),
    /// Say what is wrong with the answer of an agent whose answers have a type. Answer: [`Answer::Checked`].
    Check(String),
    /// Ask the approver. Answer: [`Answer::Approval`].
    Approve(Box<ApprovalRequest>),
}

/// What came of an effect.
pub enum Answer {
    /// The outcome of a dispatch.
    Outcome(Box<Outcome>),
    /// What came in of the model's reply, or that it is asked once more.
    Pieces(Vec<StreamEvent>),
    /// The model's reply, or why there is none.
    Reply(Box<Result<Reply, ModelFailure>>),
    /// What each call came to; `None` for one that was cancelled. `cancelled`: the run is to end.
    Calls {
        /// In the order of the calls.
        answers: Vec<Option<CallAnswer>>,
        /// Whether the run is to end.
        cancelled: bool,
    },
    /// What is wrong with the answer, in words for the model; `None` if nothing is.
    Checked(Option<String>),
    /// What the approver said.
    Approval(Approval),
    /// The turn's time was used up while this effect was under way.
    OutOfTime,
    /// The run was cancelled while this effect was under way.
    Cancelled,
}

/// What a turn does next.
pub enum Step {
    /// It wants something done; [`Turn::resume`] takes the answer.
    Effect(Effect),
    /// It is over.
    Done(Box<TurnResult>),
}

#[derive(Default)]
struct Exchange {
    effect: Option<Effect>,
    answer: Option<Answer>,
    events: Vec<RunEvent>,
    watched: bool,
    /// What agents used that this one called as tools, since the last time this was asked.
    spent: Spent,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// The tokens.
    pub usage: Usage,
    /// The money, in the unit of the price table.
    pub cost: f64,
}

/// The turn's end of the exchange.
#[derive(Clone)]
pub(super) struct Port(Arc<Mutex<Exchange>>);

impl Port {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for an effect and waits for its answer.
    pub(super) async fn perform(&self, effect: Effect) -> Answer {
        self.lock().effect = Some(effect);
        poll_fn(|_| match self.lock().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    /// What agents used that this one called as tools.
    pub(super) fn take_spent(&self) -> Spent {
        std::mem::take(&mut self.lock().spent)
    }

    /// Tells whoever watches the run, if anybody does.
    pub(super) fn emit(&self, event: impl FnOnce() -> RunEvent) {
        let mut exchange = self.lock();
        if exchange.watched {
            exchange.events.push(event());
        }
    }
}

/// One turn under way.
pub struct Turn {
    future: Option<Pin<Box<dyn Future<Output = TurnResult> + Send>>>,
    exchange: Port,
}

impl Turn {
    /// A turn that has not begun; [`Turn::resume`] with no answer begins it.
    pub fn new(config: Arc<TurnConfig>, input: TurnInput) -> Self {
        let exchange = Port(Arc::new(Mutex::new(Exchange { watched: input.streamed, ..Exchange::default() })));
        let future = Box::pin(flow::run(exchange.clone(), config, input));
        Turn { future: Some(future), exchange }
    }

    /// Goes on with the answer to the last effect. After the end, or with no answer where one is due, there is
    /// nothing to do: `None`.
    pub fn resume(&mut self, answer: Option<Answer>) -> Option<Step> {
        self.exchange.lock().answer = answer;
        let future = self.future.as_mut()?;
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => {
                self.future = None;
                Some(Step::Done(Box::new(result)))
            }
            Poll::Pending => self.exchange.lock().effect.take().map(Step::Effect),
        }
    }

    /// Adds what an agent used that this one called as a tool: it counts for the limits and the sum of this turn.
    pub fn add_spent(&self, spent: Spent) {
        let total = &mut self.exchange.lock().spent;
        total.usage += spent.usage;
        total.cost += spent.cost;
    }

    /// What has happened since the last time this was asked.
    pub fn take_events(&self) -> Vec<RunEvent> {
        std::mem::take(&mut self.exchange.lock().events)
    }
}
