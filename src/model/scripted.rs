//! A model that answers from a script.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{FailureKind, Model, ModelFailure, Reply, Request};
use crate::hook::BoxFuture;
use crate::message::{Message, Role, ToolCall};

/// How many characters of what was asked an error shows.
const SHOWN: usize = 200;

/// One step of a script: what is answered, and optionally what must have been asked.
#[derive(Debug, Clone)]
pub struct Step {
    /// A text that the newest user or tool message, or a note of a hook, must contain.
    pub expect: Option<String>,
    /// The answer, or the failure that stands in for it.
    pub answer: Result<Reply, ModelFailure>,
}

impl Step {
    /// The same step, for a request whose newest user or tool message, or a note of a hook, contains `text`.
    pub fn expecting(mut self, text: impl Into<String>) -> Self {
        self.expect = Some(text.into());
        self
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Step { expect: None, answer: Ok(reply) }
    }
}

impl From<ModelFailure> for Step {
    fn from(failure: ModelFailure) -> Self {
        Step { expect: None, answer: Err(failure) }
    }
}

impl From<&str> for Step {
    fn from(text: &str) -> Self {
        Reply::text(text).into()
    }
}

impl From<String> for Step {
    fn from(text: String) -> Self {
        Reply::text(text).into()
    }
}

impl From<ToolCall> for Step {
    fn from(call: ToolCall) -> Self {
        Reply::tool_calls(vec![call]).into()
    }
}

impl From<Vec<ToolCall>> for Step {
    fn from(calls: Vec<ToolCall>) -> Self {
        Reply::tool_calls(calls).into()
    }
}

/// A model that answers from a fixed list, for examples and tests.
///
/// It is strict: when the list is used up, or a step expects something else, the failure says what was asked and how
/// many answers were given; the step is not used up by that. Calls without an id get one: `call_1`, `call_2`, …
///
/// Each value has its own place in the script; [`rewound`](Scripted::rewound) starts again with the same steps.
/// Requests from several threads get one step each.
///
/// ```
/// use hookwright::message::{Message, ToolCall};
/// use hookwright::model::{Model, Request, Scripted, Step};
/// use serde_json::Map;
///
/// let model = Scripted::new([
///     Step::from(ToolCall::new("", "ls", Map::new())).expecting("files"),
///     Step::from("three files"),
/// ]);
/// let request = Request { messages: [Message::user("which files are there?")].into_iter().collect(), ..Request::default() };
/// assert_eq!(model.answer(&request)?.tool_calls[0].id, "call_1");
/// assert_eq!(model.answer(&request)?.content.text(), "three files");
/// assert_eq!(
///     model.answer(&request).unwrap_err().to_string(),
///     "the script is used up: all 2 replies were given, and then this was asked: user: \"which files are there?\""
/// );
/// # Ok::<(), hookwright::model::ModelFailure>(())
/// ```
pub struct Scripted {
    steps: Arc<[Step]>,
    position: Mutex<Position>,
}

#[derive(Debug, Default)]
struct Position {
    used: usize,
    ids: u64,
}

impl Scripted {
    /// A model that answers `steps` in order.
    pub fn new<S: Into<Step>>(steps: impl IntoIterator<Item = S>) -> Self {
        Scripted { steps: steps.into_iter().map(Into::into).collect(), position: Mutex::default() }
    }

    /// A model with the same steps, at the first of them.
    pub fn rewound(&self) -> Self {
        Scripted { steps: Arc::clone(&self.steps), position: Mutex::default() }
    }

    /// How many steps were used.
    pub fn used(&self) -> usize {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).used
    }

    /// How many steps are left. A test that ends with steps left has not done what its script says.
    pub fn remaining(&self) -> usize {
        self.steps.len() - self.used()
    }

    /// Answers `request` with the next step.
    ///
    /// # Errors
    /// The failure that the step holds, or one of kind `script` if no step is left or it expects something else.
    pub fn answer(&self, request: &Request) -> Result<Reply, ModelFailure> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let total = self.steps.len();
        let Some(step) = self.steps.get(position.used) else {
            let given = match total {
                0 => "it has no replies".to_owned(),
                1 => "its only reply was given".to_owned(),
                _ => format!("all {total} replies were given"),
            };
            return Err(misfit(format!("the script is used up: {given}, and then this was asked: {}", asked(request))));
        };
        if let Some(expected) = step.expect.as_deref().filter(|expected| !fits(request, expected)) {
            return Err(misfit(format!(
                "reply {} of {total} in the script expects to be asked for {expected:?}, but this was asked: {}",
                position.used + 1,
                asked(request)
            )));
        }
        position.used += 1;
        let mut answer = step.answer.clone();
        for call in answer.iter_mut().flat_map(|reply| &mut reply.tool_calls).filter(|call| call.id.is_empty()) {
            position.ids += 1;
            call.id = format!("call_{}", position.ids);
        }
        answer
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        Box::pin(std::future::ready(self.answer(&request)))
    }

    fn try_complete(&self, request: &Request) -> Option<Result<Reply, ModelFailure>> {
        Some(self.answer(request))
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("used", &self.used()).field("steps", &self.steps.len()).finish()
    }
}

fn misfit(message: String) -> ModelFailure {
    ModelFailure::new(FailureKind::Script, message)
}

/// The newest message that asks for something.
fn newest_ask(request: &Request) -> Option<&Arc<Message>> {
    request.all_messages().rev().find(|message| matches!(message.role, Role::User | Role::Tool))
}

fn fits(request: &Request, expected: &str) -> bool {
    newest_ask(request).is_some_and(|message| message.text().contains(expected))
        || request.additional_context.iter().any(|note| note.contains(expected))
}

/// What was asked, for an error message.
fn asked(request: &Request) -> String {
    let Some(message) = newest_ask(request) else {
        return "nothing (no user or tool message)".to_owned();
    };
    let text = message.text();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => {
            format!("{}: {:?}… ({} characters)", message.role, &text[..end], text.chars().count())
        }
        None => format!("{}: {text:?}", message.role),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn asking(messages: impl IntoIterator<Item = Message>) -> Request {
        Request { messages: messages.into_iter().collect(), ..Request::default() }
    }

    #[test]
    fn texts_calls_and_failures_come_in_order() {
        let overloaded =
            ModelFailure { status: Some(529), attempts: 4, ..ModelFailure::new(FailureKind::Overloaded, "busy") };
        let call = || ToolCall::new("", "ls", Map::new());
        let model =
            Scripted::new([Step::from(vec![call(), call()]), overloaded.clone().into(), call().into(), "done".into()]);
        let request = Arc::new(asking([Message::user("go")]));
        let ids = |reply: Reply| reply.tool_calls.into_iter().map(|call| call.id).collect::<Vec<_>>();

        assert_eq!(ids(model.try_complete(&request).unwrap().unwrap()), ["call_1", "call_2"]);
        assert_eq!(model.answer(&request), Err(overloaded));
        assert_eq!(ids(model.answer(&request).unwrap()), ["call_3"]);
        assert_eq!((model.used(), model.remaining()), (3, 1));
        assert_eq!(model.answer(&request), Ok(Reply::text("done")));
        assert_eq!(ids(model.rewound().answer(&request).unwrap()), ["call_1", "call_2"]);
    }

    #[test]
    fn a_misfit_says_what_was_asked_and_does_not_use_the_step_up() {
        let model = Scripted::new([Step::from("ok").expecting("passed")]);
        let long = "文".repeat(300);
        let request = asking([Message::user("passed"), Message::assistant(""), Message::tool_result("c", long)]);
        let error = model.answer(&request).unwrap_err();
        assert_eq!(error.kind, FailureKind::Script);
        assert_eq!(
            error.message,
            format!(
                "reply 1 of 1 in the script expects to be asked for \"passed\", but this was asked: tool: \"{}\"… (300 characters)",
                "文".repeat(200)
            )
        );
        let noted = Request { additional_context: vec!["3 passed".into()], ..asking([Message::user("go on")]) };
        assert_eq!(model.answer(&noted), Ok(Reply::text("ok")));
        assert_eq!(
            model.answer(&Request::default()).unwrap_err().message,
            "the script is used up: its only reply was given, and then this was asked: nothing (no user or tool message)"
        );
    }

    #[test]
    fn threads_get_one_step_each() {
        let model = Scripted::new((0..100).map(|number| number.to_string()));
        let request = asking([Message::user("go")]);
        let mut answers: Vec<u32> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    let mine = || (0..25).map(|_| model.answer(&request).unwrap().content.text().parse().unwrap());
                    scope.spawn(move || mine().collect::<Vec<u32>>())
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        answers.sort_unstable();
        assert_eq!(answers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_the_error_field_of_the_event() {
        let failure = ModelFailure { status: Some(500), ..ModelFailure::new(FailureKind::Server, "boom") };
        let wire = json!({"kind": "server", "status": 500, "message": "boom", "attempts": 1});
        assert_eq!(serde_json::to_value(&failure).unwrap(), wire);
        assert_eq!(serde_json::from_value::<ModelFailure>(wire).unwrap(), failure);
        assert_eq!(ModelFailure::new(FailureKind::Timeout, " ").message, "the model's server took too long");
    }

    #[test]
    fn a_reply_round_trips_through_json() {
        let reply = Reply { stop_reason: "eos_token".into(), ..Reply::text("hi") };
        let wire = serde_json::to_value(&reply).unwrap();
        assert_eq!(wire["stop_reason"], "eos_token");
        assert_eq!(serde_json::from_value::<Reply>(wire).unwrap(), reply);
    }
}
