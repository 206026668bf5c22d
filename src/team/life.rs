//! The life of a teammate as a state machine without I/O: it works while there is mail, waits while there is none, and
//! ends in one of a few ways, each of which is told to the lead.
//!
//! As in a turn, the rules are one straight `async` function that never waits for anything but the answer to the effect
//! that it has just asked for.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};

use super::history::mark;
use super::office::Office;
use super::render;
use super::status::{Ended, Outcome, Status};
use crate::agent::turn::{Ending, TurnInput, TurnResult};
use crate::hook::{self, Action, Event, Field, HookChain, Payload, Scope};
use crate::model::with_context;

/// What a life needs and that stays the same.
#[derive(Clone)]
pub struct LifeConfig {
    /// The team.
    pub office: Arc<Office>,
    /// Whose life it is.
    pub name: String,
    /// The hooks that watch over it.
    pub chain: Option<Arc<HookChain>>,
    /// Where its events come from.
    pub scope: Arc<Scope>,
    /// How long it waits for mail before it ends as idle. `None`: for as long as it takes.
    pub idle_timeout: Option<Duration>,
    /// How often hooks on `teammate_idle` may send it back to work in a row.
    pub max_idle_loops: u32,
    /// A turn was under way when the process died.
    pub interrupted: bool,
}

/// What a life wants done.
pub enum LifeEffect {
    /// Run a turn. Answer: [`LifeAnswer::Turn`] or [`LifeAnswer::Crashed`].
    Turn(Box<TurnInput>),
    /// Run this dispatch. Answer: [`LifeAnswer::Outcome`].
    Dispatch(Box<hook::Dispatch>),
    /// Wait until there is mail, or for so long. Answer: [`LifeAnswer::Woken`] or [`LifeAnswer::TimedOut`].
    Wait(Option<Duration>),
}

/// What came of it.
pub enum LifeAnswer {
    /// A turn is over.
    Turn(Box<TurnResult>),
    /// The turn's driver broke.
    Crashed(String),
    /// The outcome of a dispatch.
    Outcome(Box<hook::Outcome>),
    /// There is mail, or somebody rang.
    Woken,
    /// The wait was long enough.
    TimedOut,
    /// What was asked for was cut short.
    Cancelled,
}

/// What a life does next.
pub enum LifeStep {
    /// It wants something done; [`Life::resume`] takes the answer.
    Effect(LifeEffect),
    /// It is over.
    Done(Ended),
}

#[derive(Default)]
struct Exchange {
    effect: Option<LifeEffect>,
    answer: Option<LifeAnswer>,
}

#[derive(Clone)]
struct Port(Arc<Mutex<Exchange>>);

impl Port {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn perform(&self, effect: LifeEffect) -> LifeAnswer {
        self.lock().effect = Some(effect);
        poll_fn(|_| match self.lock().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }
}

/// One life under way, from the beginning or from a return to the next end.
pub struct Life {
    future: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
    port: Port,
}

impl Life {
    /// A life that has not begun; [`Life::resume`] with no answer begins it.
    pub fn new(config: LifeConfig) -> Self {
        let port = Port(Arc::default());
        let future = Box::pin(live(port.clone(), config));
        Life { future: Some(future), port }
    }

    /// Goes on with the answer to the last effect. After the end, or with no answer where one is due: `None`.
    pub fn resume(&mut self, answer: Option<LifeAnswer>) -> Option<LifeStep> {
        self.port.lock().answer = answer;
        let future = self.future.as_mut()?;
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => {
                self.future = None;
                Some(LifeStep::Done(ended))
            }
            Poll::Pending => self.port.lock().effect.take().map(LifeStep::Effect),
        }
    }
}

/// What is between two turns.
struct Rules {
    port: Port,
    config: LifeConfig,
    /// How often hooks sent it back to work in a row.
    idle_loops: u32,
    /// The last words.
    text: String,
}

async fn live(port: Port, config: LifeConfig) -> Ended {
    let mut interrupted = config.interrupted;
    let mut rules = Rules { port, config, idle_loops: 0, text: String::new() };
    rules.notify(Event::TeammateStart, Vec::new()).await;
    // Somebody that has not worked yet has nothing to be idle after.
    let mut worked = false;
    loop {
        let ended = match rules.round(&mut interrupted, &mut worked).await {
            Ok(()) => continue,
            Err(ended) => ended,
        };
        let reason = Field::Reason;
        let told = vec![(reason, Payload::from(ended.outcome.as_str()))];
        // Mail that came in the meantime brings it back before it has gone, so the end is told when it is certain.
        if rules.config.office.end(&rules.config.name, ended.clone(), &rules.text) {
            rules.notify(Event::TeammateEnd, told).await;
            return ended;
        }
    }
}

impl Rules {
    /// Works or waits once.
    async fn round(&mut self, interrupted: &mut bool, worked: &mut bool) -> Result<(), Ended> {
        let office = self.config.office.clone();
        if office.is_stopping(&self.config.name) {
            return Err(Ended::new(Outcome::Cancelled, None));
        }
        let input = match std::mem::take(interrupted) {
            true => Some(TurnInput { resumed: true, streamed: true, ..TurnInput::default() }),
            false => self.mail(),
        };
        if let Some(input) = input {
            *worked = true;
            self.idle_loops = 0;
            return self.work(input).await;
        }
        if std::mem::take(worked)
            && let Some(feedback) = self.about_to_wait().await?
        {
            *worked = true;
            return self
                .work(TurnInput { text: feedback, sender: Some("hook".into()), streamed: true, ..TurnInput::default() })
                .await;
        }
        let for_ = office.asked_by(&self.config.name);
        office.set_status(&self.config.name, Status::Waiting { for_ });
        match self.port.perform(LifeEffect::Wait(self.config.idle_timeout)).await {
            LifeAnswer::TimedOut => Err(Ended::new(Outcome::Idle, None)),
            LifeAnswer::Cancelled => Err(Ended::new(Outcome::Cancelled, None)),
            LifeAnswer::Crashed(error) => Err(Ended::new(Outcome::Crashed, error)),
            _ => Ok(()),
        }
    }

    /// What is said to it at the beginning of a turn.
    fn mail(&self) -> Option<TurnInput> {
        self.config.office.mailbox(&self.config.name).filter(|mail| !mail.is_empty())?;
        let taken = self.config.office.take(&self.config.name);
        let mut message = crate::message::Message::user("");
        mark(&mut message, taken.marks());
        Some(TurnInput {
            text: render::mail(&taken, &[]),
            sender: Some(render::sender(&taken)),
            extra: message.extra,
            streamed: true,
            ..TurnInput::default()
        })
    }

    async fn work(&mut self, input: TurnInput) -> Result<(), Ended> {
        let office = self.config.office.clone();
        office.begin_turn(&self.config.name);
        let result = match self.port.perform(LifeEffect::Turn(Box::new(input))).await {
            LifeAnswer::Turn(result) => result,
            LifeAnswer::Crashed(error) => return Err(Ended::new(Outcome::Crashed, error)),
            _ => return Err(Ended::new(Outcome::Cancelled, None)),
        };
        self.text.clone_from(&result.text);
        office.end_turn(&self.config.name, &result.text);
        match result.ending {
            Ending::Success => match office.summary_if_done(&self.config.name) {
                Some(summary) => Err(Ended::new(Outcome::Done, summary)),
                None => Ok(()),
            },
            Ending::Stopped { reason, .. } => Err(Ended::new(Outcome::HookStop, reason)),
            Ending::Limit(reached) => Err(Ended::new(Outcome::Limit, reached.to_string())),
            Ending::Failed(failure) => Err(Ended::new(Outcome::Error, failure.to_string())),
            Ending::Session(error) => Err(Ended::new(Outcome::Error, error.to_string())),
            Ending::Cancelled => Err(Ended::new(Outcome::Cancelled, None)),
            // It waits for a person, and for mail meanwhile.
            Ending::Awaiting { .. } => Ok(()),
        }
    }

    /// It has nothing more to do: hooks may send it back to work, once the lead has been told what is still open.
    /// While it waits for an answer that it asked for, they are not asked.
    async fn about_to_wait(&mut self) -> Result<Option<String>, Ended> {
        let office = self.config.office.clone();
        let idle = office.about_to_wait(&self.config.name);
        if !idle.asked.is_empty() {
            return Ok(None);
        }
        let fields = vec![(Field::WaitingFor, json!("mail").into()), (Field::OpenTasks, json!(idle.tasks).into())];
        let Some(outcome) = self.notify(Event::TeammateIdle, fields).await else { return Ok(None) };
        if outcome.action == Some(Action::Stop) {
            let reason = outcome.reason.clone().unwrap_or_else(|| "a hook ended it when it was idle".into());
            return Err(Ended::new(Outcome::HookStop, reason));
        }
        let Some(feedback) = outcome.feedback() else { return Ok(None) };
        self.idle_loops += 1;
        if self.idle_loops > self.config.max_idle_loops {
            return Ok(None);
        }
        Ok(Some(match outcome.context_text() {
            Some(context) => with_context(&feedback, &context),
            None => feedback,
        }))
    }

    async fn notify(&self, event: Event, more: Vec<(Field, Payload)>) -> Option<Box<hook::Outcome>> {
        let chain = self.config.chain.as_ref()?;
        let role = self.config.office.role(&self.config.name);
        let fields = || {
            let mut fields: Vec<(Field, Payload)> = vec![(Field::Teammate, self.config.name.as_str().into())];
            if event != Event::TeammateIdle {
                fields.push((Field::Role, Value::from(role.as_str()).into()));
            }
            fields.extend(more.iter().cloned());
            fields
        };
        let dispatch = chain.begin_within(event, &self.config.scope, fields, None)?;
        match self.port.perform(LifeEffect::Dispatch(Box::new(dispatch))).await {
            LifeAnswer::Outcome(outcome) => Some(outcome),
            _ => None,
        }
    }
}
