//! What a goal wants done next, and what follows from what came of it.

use std::collections::VecDeque;

use serde::Serialize;

use super::commands::{Command, Commands};
use super::state::{After, Delivery, Ended, Execution, GoalSpec, GoalState, GoalStatus, Passing, Phase, Round, Sample};
use super::verdict::{Judgement, read_verdict};
use super::{breakers, prompt};
use crate::message::Usage;

/// How many replies of the reviewer one review may take.
const ATTEMPTS: u32 = 2;

/// What a goal wants done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Have the executor work. Answer: [`Answer::Executed`].
    Dispatch {
        /// The round, from 1.
        round: u32,
        /// What it is told.
        text: String,
        /// How long it may take, in seconds.
        timeout: Option<f64>,
    },
    /// Tell the executor what the user said. Answer: [`Answer::Delivered`].
    Deliver {
        /// The user's words.
        text: String,
        /// How long it may take, in seconds.
        timeout: Option<f64>,
    },
    /// Look at the workspace. Answer: [`Answer::Sampled`].
    Sample,
    /// Have the reviewer judge. Answer: [`Answer::Reviewed`].
    Review {
        /// The round.
        round: u32,
        /// Which reply of this review it will be; from 1.
        attempt: u32,
        /// What a reviewer is told that knows nothing yet.
        text: String,
        /// What one is told that has just given a reply without a verdict.
        reminder: Option<String>,
        /// How long it may take, in seconds.
        timeout: Option<f64>,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The executor's run is over.
    Executed(Execution),
    /// The executor has heard the user's words.
    Delivered(Execution),
    /// The workspace.
    Sampled(Sample),
    /// The reviewer's run is over.
    Reviewed(Execution),
}

/// What a goal does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It wants something done; [`Goal::answer`] takes what came of it, with this generation.
    Effect {
        /// By which a late answer is told.
        generation: u64,
        /// What.
        effect: Effect,
    },
    /// It is over.
    Done(GoalStatus),
}

/// A goal that cannot be pursued.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// There is nothing to reach.
    #[error("a goal needs a text that says what is to be reached")]
    Blank,
    /// It could not even begin.
    #[error("max_rounds must be at least 1")]
    NoRounds,
    /// A wait that is none.
    #[error("{0} must be a number of seconds above 0")]
    Timeout(&'static str),
}

/// What became of something that the user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It waits; so many things wait before it.
    Queued(usize),
    /// It passes at once; [`Goal::passed`] takes what came of it.
    Passed(u64),
    /// It is a command.
    Command(Command),
}

/// Why something that the user said is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// A queue keeps text and nothing else.
    #[error(
        "a message with attachments cannot be sent while a goal is under way, because only text can wait for the \
         verdict; save the attachment in the workspace and name its path, or send it when the goal is over"
    )]
    Attachments,
    /// There is nothing in it.
    #[error("there is nothing in this message")]
    Blank,
    /// Nobody delivers it any more.
    #[error("this goal is over; talk to the executor itself: executor.run(...)")]
    Over,
}

/// A goal under way.
#[derive(Debug, Clone)]
pub struct Goal {
    state: GoalState,
    commands: Commands,
}

impl Goal {
    /// A goal that has not begun.
    ///
    /// # Errors
    /// What is wrong with its specification.
    pub fn new(spec: GoalSpec, commands: Commands) -> Result<Self, GoalError> {
        if spec.text.trim().is_empty() {
            return Err(GoalError::Blank);
        }
        if spec.max_rounds == 0 {
            return Err(GoalError::NoRounds);
        }
        for (name, seconds) in [("round_timeout", spec.round_timeout), ("review_timeout", spec.review_timeout)] {
            if seconds.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
                return Err(GoalError::Timeout(name));
            }
        }
        let state = GoalState {
            id: new_id(),
            generation: 0,
            spec,
            phase: Phase::Dispatch,
            begun: false,
            interrupted: false,
            rounds: Vec::new(),
            queue: VecDeque::new(),
            passing: Vec::new(),
            deliveries: Vec::new(),
            usage: Usage::default(),
            reason: None,
            restarts: 0,
        };
        Ok(Goal { state, commands })
    }

    /// A goal that goes on from a state that was kept. What was under way begins again, and its answer, should it
    /// come after all, is late.
    pub fn restore(mut state: GoalState, commands: Commands) -> Self {
        state.generation += 1;
        state.restarts += 1;
        state.interrupted |= state.begun;
        // What passed and was not answered was perhaps never heard. It was said before what waits.
        for passing in state.passing.drain(..).rev() {
            state.queue.push_front(passing.text);
        }
        if let Phase::Ended { .. } = state.phase {
            state.queue.clear();
        }
        Goal { state, commands }
    }

    /// All that it remembers.
    pub fn state(&self) -> &GoalState {
        &self.state
    }

    /// Whether a verdict is awaited, or the steps that lead to it are under way and the executor is free.
    fn executor_is_free(&self) -> bool {
        matches!(self.state.phase, Phase::Sample | Phase::Review { .. })
    }

    /// What it wants done next. Asking again wants the same again.
    pub fn step(&mut self) -> Step {
        let spec = &self.state.spec;
        let effect = match &self.state.phase {
            Phase::Ended { status } => return Step::Done(*status),
            Phase::Dispatch => Effect::Dispatch {
                round: self.next_round(),
                text: prompt::dispatch(spec, &self.state.rounds, self.state.interrupted),
                timeout: spec.round_timeout,
            },
            Phase::Deliver { .. } => Effect::Deliver {
                text: self.state.queue.front().cloned().unwrap_or_default(),
                timeout: spec.round_timeout,
            },
            Phase::Sample => Effect::Sample,
            Phase::Review { attempt, complaint } => {
                let round = self.state.rounds.last().cloned().unwrap_or_default();
                Effect::Review {
                    round: round.number,
                    attempt: *attempt,
                    text: prompt::review(spec, &round, complaint.as_deref()),
                    reminder: complaint.as_deref().map(prompt::reminder),
                    timeout: spec.review_timeout,
                }
            }
        };
        self.state.begun = true;
        Step::Effect { generation: self.state.generation, effect }
    }

    /// Takes what came of the effect of this generation. Returns whether it counts: not if it is late, or no answer
    /// to what is wanted.
    pub fn answer(&mut self, generation: u64, answer: Answer) -> bool {
        if generation != self.state.generation {
            return false;
        }
        match (self.state.phase.clone(), answer) {
            (Phase::Dispatch, Answer::Executed(execution)) => self.executed(execution),
            (Phase::Deliver { then }, Answer::Delivered(execution)) => self.delivered(execution, then),
            (Phase::Sample, Answer::Sampled(sample)) => self.sampled(sample),
            (Phase::Review { attempt, .. }, Answer::Reviewed(execution)) => self.reviewed(execution, attempt),
            _ => return false,
        }
        true
    }

    /// Ends it, whatever it is at. Returns whether it was not over yet.
    pub fn cancel(&mut self) -> bool {
        let over = self.state.status().is_some();
        if !over {
            self.end(GoalStatus::Cancelled, Some("it was cancelled".to_owned()));
        }
        !over
    }

    /// Something that the user says. While the executor works or a verdict is awaited it waits, and is delivered in
    /// order when the executor is free: before the review if it came before, after the verdict if it came later.
    /// An explicit follow-up passes by the queue while the executor is free, and a command always passes.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn send(&mut self, text: &str, follow_up: bool, has_attachments: bool) -> Result<Sent, NotSent> {
        if has_attachments {
            return Err(NotSent::Attachments);
        }
        if text.trim().is_empty() {
            return Err(NotSent::Blank);
        }
        if self.state.status().is_some() {
            return Err(NotSent::Over);
        }
        if let Some(command) = self.commands.find(text) {
            return Ok(Sent::Command(command.clone()));
        }
        if follow_up && self.executor_is_free() {
            let id = self.state.passing.iter().map(|passing| passing.id).max().unwrap_or(self.state.generation) + 1;
            self.state.passing.push(Passing { id, text: text.to_owned() });
            return Ok(Sent::Passed(id));
        }
        self.state.queue.push_back(text.to_owned());
        Ok(Sent::Queued(self.state.queue.len() - 1))
    }

    /// What came of something that passed by the queue.
    pub fn passed(&mut self, id: u64, execution: Execution) {
        let Some(position) = self.state.passing.iter().position(|passing| passing.id == id) else { return };
        let Passing { text, .. } = self.state.passing.remove(position);
        self.state.usage += execution.usage;
        self.note_delivery(text, &execution);
    }

    fn next_round(&self) -> u32 {
        u32::try_from(self.state.rounds.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn enter(&mut self, phase: Phase) {
        self.state.phase = phase;
        (self.state.begun, self.state.interrupted) = (false, false);
        self.state.generation += 1;
    }

    fn end(&mut self, status: GoalStatus, reason: Option<String>) {
        self.state.reason = self.state.reason.take().or(reason);
        self.enter(Phase::Ended { status });
    }

    /// The end is decided; what the user said is delivered before.
    fn decide(&mut self, status: GoalStatus, reason: Option<String>) {
        self.state.reason = reason;
        if self.state.queue.is_empty() {
            self.end(status, None);
        } else {
            self.enter(Phase::Deliver { then: After::End { status } });
        }
    }

    fn executed(&mut self, execution: Execution) {
        self.state.usage += execution.usage;
        let failed_call = execution.calls.last().filter(|call| call.is_error).map(|call| call.result.clone());
        let reason = execution.error.clone();
        let ended = execution.ended;
        self.state.rounds.push(Round {
            number: self.next_round(),
            ended,
            text: execution.text,
            error: execution.error.or(failed_call),
            calls: execution.calls,
            usage: execution.usage,
            ms: execution.ms,
            ..Round::default()
        });
        match ended {
            Ended::Cancelled => self.end(GoalStatus::Cancelled, reason.or(Some("the executor was cancelled".into()))),
            Ended::Gone => self.end(GoalStatus::Gone, reason.or(Some("the executor is no longer there".into()))),
            Ended::Done | Ended::Error | Ended::Timeout => self.go_on(After::Sample),
        }
    }

    fn delivered(&mut self, execution: Execution, then: After) {
        self.state.usage += execution.usage;
        let text = self.state.queue.pop_front().unwrap_or_default();
        self.note_delivery(text, &execution);
        let unfinished = match (execution.ended, then) {
            (Ended::Cancelled, After::Dispatch | After::Sample) => Some(GoalStatus::Cancelled),
            (Ended::Gone, After::Dispatch | After::Sample) => Some(GoalStatus::Gone),
            // The end is decided already; nothing more can be delivered.
            (Ended::Cancelled | Ended::Gone, After::End { status }) => Some(status),
            _ => None,
        };
        if let Some(status) = unfinished {
            return self.end(status, execution.error);
        }
        if then == After::Sample
            && let Some(round) = self.state.rounds.last_mut()
        {
            round.usage += execution.usage;
            round.ms += execution.ms;
            round.calls.extend(execution.calls);
            if !execution.text.trim().is_empty() {
                round.text = [round.text.as_str(), execution.text.as_str()].join("\n\n").trim().to_owned();
            }
        }
        self.go_on(then);
    }

    fn note_delivery(&mut self, text: String, execution: &Execution) {
        let round = self.state.rounds.last().map_or(0, |round| round.number);
        self.state.deliveries.push(Delivery { text, round, ended: execution.ended, reply: execution.text.clone() });
    }

    /// Goes on to what comes next, when the executor has heard what waits.
    fn go_on(&mut self, then: After) {
        if !self.state.queue.is_empty() {
            return self.enter(Phase::Deliver { then });
        }
        match then {
            After::Dispatch => self.enter(Phase::Dispatch),
            After::Sample => self.enter(Phase::Sample),
            After::End { status } => self.end(status, None),
        }
    }

    fn sampled(&mut self, sample: Sample) {
        let before = self.state.rounds.iter().rev().nth(1).and_then(|round| round.fingerprint.clone());
        if let Some(round) = self.state.rounds.last_mut() {
            round.unchanged = sample.fingerprint.is_some() && sample.fingerprint == before;
            round.fingerprint = sample.fingerprint;
        }
        if let Some(reason) = breakers::tripped(&self.state.rounds) {
            return self.decide(GoalStatus::Blocked, Some(reason));
        }
        match self.state.rounds.last().map(|round| round.ended) {
            // A run that did not come to its end is not worth a review: the next round goes on from it.
            Some(Ended::Error | Ended::Timeout) => self.another_round(),
            _ => self.enter(Phase::Review { attempt: 1, complaint: None }),
        }
    }

    fn reviewed(&mut self, execution: Execution, attempt: u32) {
        self.state.usage += execution.usage;
        if let Some(round) = self.state.rounds.last_mut() {
            round.usage += execution.usage;
            round.ms += execution.ms;
        }
        let verdict = match execution.ended {
            Ended::Cancelled => {
                let reason = execution.error.or(Some("the reviewer was cancelled".into()));
                return self.end(GoalStatus::Cancelled, reason);
            }
            Ended::Gone => {
                let reason = execution.error.or(Some("the reviewer is no longer there".into()));
                return self.end(GoalStatus::Gone, reason);
            }
            Ended::Done => read_verdict(&execution.text).map_err(|error| error.to_string()),
            Ended::Timeout => Err("the reviewer ran out of time".to_owned()),
            Ended::Error => Err(execution.error.unwrap_or_else(|| "the reviewer failed".to_owned())),
        };
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(complaint) => return self.no_verdict(complaint, attempt),
        };
        let passed = verdict.verdict == Judgement::Pass;
        if let Some(round) = self.state.rounds.last_mut() {
            round.verdict = Some(verdict);
        }
        if passed { self.decide(GoalStatus::Passed, None) } else { self.another_round() }
    }

    fn no_verdict(&mut self, complaint: String, attempt: u32) {
        if let Some(round) = self.state.rounds.last_mut() {
            round.invalid.push(complaint.clone());
        }
        if attempt < ATTEMPTS {
            self.enter(Phase::Review { attempt: attempt + 1, complaint: Some(complaint) });
        } else {
            let reason = format!("the reviewer gave no verdict in {ATTEMPTS} replies: {complaint}");
            self.decide(GoalStatus::Blocked, Some(reason));
        }
    }

    fn another_round(&mut self) {
        if self.next_round() > self.state.spec.max_rounds {
            let reason = format!("the goal was not reached in {} rounds", self.state.spec.max_rounds);
            self.decide(GoalStatus::Failed, Some(reason));
        } else {
            self.go_on(After::Dispatch);
        }
    }
}

/// A random id, so that the answers of one goal are never taken for those of another.
fn new_id() -> String {
    let mut random = [0_u8; 8];
    if getrandom::fill(&mut random).is_err() {
        fastrand::fill(&mut random);
    }
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}
