//! The rules of a turn under a driver that does everything at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::agent::SessionOptions;
use crate::hook::{
    Action, Event, Field, FnHook, HookFailure, HookKind, HookMeta, HookReply, HookResult, Role, Verdict,
};
use crate::message::{Role as MessageRole, ToolCall};
use crate::model::{FailureKind, Reply, Scripted, Step as Line};
use crate::tool::{ToolError, ToolErrorCode};

fn echo() -> TurnTool {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": false,
    });
    let description =
        ToolDescription { name: "echo".into(), description: "Says it again".into(), schema: Arc::new(schema) };
    TurnTool::new(description, true)
}

fn config(chain: HookChain) -> TurnConfig {
    TurnConfig {
        agent: AgentIdentity::default(),
        model: "scripted".into(),
        system: "Be brief.".into(),
        tools: Arc::from([echo()]),
        chain: Some(Arc::new(chain)),
        session: Arc::new(Session::in_memory(SessionOptions::default())),
        cwd: PathBuf::from("/"),
        limits: Limits::default(),
        prices: Prices::default(),
        result_cap: 100_000,
        window: None,
        checks_output: false,
        now: Instant::now,
        desk: None,
    }
}

fn call(id: &str, text: &str) -> ToolCall {
    ToolCall::new(id, "echo", json!({"text": text}).as_object().cloned().unwrap_or_default())
}

fn add(
    chain: &HookChain,
    event: Event,
    role: Role,
    hook: impl Fn(&crate::hook::EventContext) -> Result<HookReply, HookFailure> + Send + Sync + 'static,
) {
    let name = format!("hook{}", chain.snapshot().entries().len());
    let meta = HookMeta::new(name, vec![event], HookKind::Builtin, role);
    chain.add(meta, Arc::new(FnHook::new(hook)), false).unwrap();
}

fn answer(result: HookResult) -> Result<HookReply, HookFailure> {
    Ok(Verdict::Result(Box::new(result)).into())
}

/// What the driver does with effects other than hooks and the model.
struct World {
    model: Scripted,
    approval: Approval,
    entered: Vec<String>,
    cancel_at: Option<usize>,
    effects: usize,
}

impl World {
    fn new<S: Into<Line>>(steps: impl IntoIterator<Item = S>) -> Self {
        World {
            model: Scripted::new(steps),
            approval: Approval::NoApprover,
            entered: Vec::new(),
            cancel_at: None,
            effects: 0,
        }
    }

    fn run(&mut self, config: &Arc<TurnConfig>, text: &str) -> TurnResult {
        let mut turn = Turn::new(config.clone(), TurnInput { text: text.into(), ..TurnInput::default() });
        let mut next = None;
        loop {
            match turn.resume(next.take()).expect("a turn that is asked goes on") {
                Step::Done(result) => return *result,
                Step::Effect(effect) => next = Some(self.perform(config, effect)),
            }
        }
    }

    fn perform(&mut self, config: &TurnConfig, effect: Effect) -> Answer {
        self.effects += 1;
        if self.cancel_at == Some(self.effects) {
            return Answer::Cancelled;
        }
        match effect {
            Effect::Dispatch(dispatch) => {
                let chain = config.chain.as_ref().expect("hooks run only on a chain");
                Answer::Outcome(Box::new(chain.run(*dispatch).expect("nothing interrupts")))
            }
            Effect::Model { request, .. } => Answer::Reply(Box::new(self.model.answer(&request))),
            Effect::Check(_) => unreachable!("answers have no type here"),
            Effect::MoreOfModel => unreachable!("nothing is told in pieces here"),
            Effect::Approve(_) => Answer::Approval(self.approval.clone()),
            Effect::Calls(calls) => {
                let run = |call: CallToRun| {
                    self.entered.push(call.call.id.clone());
                    let text = call.call.arguments().unwrap()["text"].clone();
                    let result = match text.as_str() {
                        Some("fail") => Err(ToolError::new(ToolErrorCode::Exception, "it broke")),
                        _ => Ok(text),
                    };
                    Some(CallAnswer { result, elapsed: Duration::from_millis(1), ran: true })
                };
                Answer::Calls { answers: calls.into_iter().map(run).collect(), cancelled: false }
            }
        }
    }
}

fn results(result: &TurnResult) -> Vec<(String, bool)> {
    let tool = result.messages.iter().filter(|message| message.role == MessageRole::Tool);
    tool.map(|message| (message.text().into_owned(), message.is_error)).collect()
}

#[test]
fn a_turn_with_two_calls_runs_both_and_ends_with_the_last_word() {
    let config = Arc::new(config(HookChain::default()));
    let mut world = World::new([Reply::tool_calls(vec![call("a", "one"), call("b", "fail")]), Reply::text("done")]);
    let result = world.run(&config, "go");
    assert_eq!(result.ending.status(), "success");
    assert_eq!(result.text, "done");
    assert_eq!(world.entered, ["a", "b"]);
    assert_eq!(results(&result), [("one".to_owned(), false), ("Error (exception): it broke".to_owned(), true)]);
    let roles: Vec<_> = config.session.history().iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
}

#[test]
fn a_gate_sees_rewritten_arguments_and_a_refused_call_is_never_entered() {
    let chain = HookChain::default();
    add(&chain, Event::PreToolExecution, Role::Gate, |context| {
        let bad = context.get(Field::ToolArguments).unwrap().json().unwrap()["text"] == "rewritten";
        if bad { answer(HookResult::decide(Action::Skip, "no")) } else { Ok(HookReply::default()) }
    });
    add(&chain, Event::PreToolExecution, Role::Hook, |_| {
        let fields = vec![(Field::ToolArguments, json!({"text": "rewritten"}))];
        answer(HookResult { fields, ..HookResult::default() })
    });
    let config = Arc::new(config(chain));
    let mut world = World::new([Reply::tool_calls(vec![call("a", "secret")]), Reply::text("done")]);
    let result = world.run(&config, "go");
    assert!(world.entered.is_empty());
    assert_eq!(results(&result), [("Error (denied): no".to_owned(), true)]);
    let stored = serde_json::to_string(&config.session.history().iter().collect::<Vec<_>>()).unwrap();
    assert!(!stored.contains("secret") && stored.contains("rewritten"), "{stored}");
}

#[test]
fn bad_calls_are_told_and_do_not_hinder_their_siblings() {
    let config = Arc::new(config(HookChain::default()));
    let calls = vec![
        ToolCall::new("a", "ecko", Default::default()),
        ToolCall::from_text("b", "echo", "{\"text\": "),
        ToolCall::new("c", "echo", json!({"text": 3}).as_object().cloned().unwrap()),
        call("d", "fine"),
        call("d", "same id"),
    ];
    let mut world = World::new([Reply::tool_calls(calls), Reply::text("done")]);
    let result = world.run(&config, "go");
    let told = results(&result);
    assert!(told[0].0.contains("Did you mean echo?"), "{told:?}");
    assert!(told[1].0.starts_with("Error (truncated_arguments)"), "{told:?}");
    assert!(told[2].0.contains("`text`"), "{told:?}");
    assert_eq!(told[3], ("fine".to_owned(), false));
    assert_eq!(told[4], ("same id".to_owned(), false));
    let causes: Vec<_> = result.calls.iter().map(|call| call.cause).collect();
    assert_eq!(causes, [Some("unknown_tool"), Some("invalid_arguments"), Some("invalid_arguments"), None, None]);
    assert_ne!(result.calls[3].id, result.calls[4].id);
}

#[test]
fn an_ask_goes_to_hooks_then_to_the_approver() {
    for (approval, entered) in [
        (Approval::Allow, true),
        (Approval::Deny(None), false),
        (Approval::NoApprover, false),
        (Approval::NoAnswer, false),
    ] {
        let chain = HookChain::default();
        add(&chain, Event::PreToolExecution, Role::Gate, |_| answer(HookResult::decide(Action::Ask, "sure?")));
        let config = Arc::new(config(chain));
        let mut world = World::new([Reply::tool_calls(vec![call("a", "x")]), Reply::text("done")]);
        world.approval = approval;
        let result = world.run(&config, "go");
        assert_eq!(!world.entered.is_empty(), entered);
        assert_eq!(results(&result)[0].1, !entered);
    }
}

#[test]
fn feedback_loops_end_at_the_cap_and_earlier_when_they_repeat() {
    for (same, loops) in [(false, 8), (true, 1)] {
        let chain = HookChain::default();
        add(&chain, Event::Stop, Role::Hook, move |context| {
            let text = if same { "again".into() } else { format!("again {}", context.scope.continuation) };
            answer(HookResult { retry_feedback: Some(text), ..HookResult::default() })
        });
        let config = Arc::new(config(chain));
        let mut world = World::new((0..20).map(|_| Reply::text("well")));
        let result = world.run(&config, "go");
        assert!(matches!(&result.ending, Ending::Limit(reached) if reached.limit.as_str() == "hook_loop"));
        assert_eq!(world.model.used(), loops + 1);
    }
}

#[test]
fn a_failed_model_ends_the_turn_and_the_next_one_runs() {
    let config = Arc::new(config(HookChain::default()));
    let mut world = World::new([Line::from(ModelFailure::new(FailureKind::Server, "boom")), Line::from("fine now")]);
    assert_eq!(world.run(&config, "go").ending.status(), "error");
    let result = world.run(&config, "again");
    assert_eq!((result.ending.status(), result.text.as_str()), ("success", "fine now"));
}

#[test]
fn cancelled_at_any_effect_every_call_has_one_result_and_the_next_turn_runs() {
    let listening = || {
        let chain = HookChain::default();
        for event in Event::ALL {
            add(&chain, *event, Role::Observer, |_| Ok(HookReply::default()));
        }
        chain
    };
    let script = || {
        [
            Line::from(Reply::tool_calls(vec![call("a", "1"), call("b", "fail")])),
            Line::from(Reply::tool_calls(vec![call("c", "3")])),
            Line::from("done"),
            Line::from("spare"),
            Line::from("spare"),
        ]
    };
    let mut whole = World::new(script());
    whole.run(&Arc::new(config(listening())), "go");
    assert!(whole.effects > 20, "{}", whole.effects);
    for effect in 1..=whole.effects {
        let config = Arc::new(config(listening()));
        let mut world = World::new(script());
        world.cancel_at = Some(effect);
        let result = world.run(&config, "go");
        // The last effect is the turn's end itself, which cannot be cancelled any more.
        let expected = if effect == whole.effects { "success" } else { "cancelled" };
        assert_eq!(result.ending.status(), expected, "effect {effect}");
        let history = config.session.history();
        let asked: Vec<_> =
            history.iter().flat_map(|message| message.tool_calls.iter().map(|call| call.id.clone())).collect();
        let told: Vec<_> = history.iter().filter_map(|message| message.tool_call_id.clone()).collect();
        assert_eq!(asked, told, "effect {effect}");
        assert_eq!(config.session.open_turn(), None);
        world.cancel_at = None;
        world.model = Scripted::new(["next"]);
        assert_eq!(world.run(&config, "next").ending.status(), "success", "after {effect}");
    }
}

#[test]
fn a_stop_at_each_place_leaves_a_history_that_goes_on() {
    for event in Event::ALL.iter().filter(|event| event.spec().halting.contains(&Action::Stop)) {
        let chain = HookChain::default();
        add(&chain, *event, Role::Hook, |_| answer(HookResult::decide(Action::Stop, "enough")));
        let config = Arc::new(config(chain));
        let mut world = World::new([Reply::tool_calls(vec![call("a", "1"), call("b", "2")]), Reply::text("done")]);
        let result = world.run(&config, "go");
        let history = config.session.history();
        let asked = history.iter().map(|message| message.tool_calls.len()).sum::<usize>();
        let told = history.iter().filter(|message| message.role == MessageRole::Tool).count();
        assert_eq!(asked, told, "{event}");
        if matches!(
            event,
            Event::PreLlmRequest | Event::PreToolBatch | Event::PreToolExecution | Event::PostToolExecution
        ) {
            assert_eq!(result.ending.status(), "stopped", "{event}");
        }
        if *event == Event::PreSendMessage {
            assert!(history.is_empty());
        }
        let ran = !matches!(
            event,
            Event::PreSendMessage
                | Event::PreLlmRequest
                | Event::PostLlmResponse
                | Event::PreToolBatch
                | Event::PreToolExecution
        );
        assert_eq!(!world.entered.is_empty(), ran, "{event}");
    }
}

#[test]
fn a_result_that_a_hook_refuses_is_withheld() {
    let chain = HookChain::default();
    add(&chain, Event::PostToolExecution, Role::Gate, |_| Err(HookFailure::failed("the redactor broke")));
    let config = Arc::new(config(chain));
    let mut world = World::new([Reply::tool_calls(vec![call("a", "secret")]), Reply::text("done")]);
    let result = world.run(&config, "go");
    assert_eq!(result.ending.status(), "stopped");
    let told: Value = results(&result)[0].0.clone().into();
    assert!(!told.as_str().unwrap().contains("secret"), "{told}");
    assert!(result.calls[0].ran);
}
