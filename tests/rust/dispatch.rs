//! The laws of a dispatch, on random hooks: nothing here knows Python, processes or clocks that matter.

use std::sync::Arc;
use std::time::Duration;

use hookwright::hook::{
    Action, Event, Field, FnHook, HookChain, HookFailure, HookKind, HookMeta, HookResult, Level, OnError, Outcome,
    Role, RunStatus, Verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a random hook answers.
#[derive(Debug, Clone)]
enum Answer {
    Nothing,
    Result(Value),
    Refused,
    Blocked,
    Fails,
}

#[derive(Debug, Clone)]
struct Spec {
    role: Role,
    level: Level,
    order: i64,
    answer: Answer,
}

fn answers() -> impl Strategy<Value = Answer> {
    let action = prop::option::of(prop::sample::select(vec!["stop", "skip", "ask", "allow", "warn"]));
    let result = (action, prop::option::of(0..3u8), any::<bool>()).prop_map(|(action, value, message)| {
        let mut object = serde_json::Map::new();
        if let Some(action) = action {
            object.insert("action".into(), action.into());
        }
        if let Some(value) = value {
            object.insert("tool_arguments".into(), json!({ "value": value }));
        }
        if message {
            object.insert("system_message".into(), "told".into());
        }
        Answer::Result(object.into())
    });
    prop_oneof![
        1 => Just(Answer::Nothing),
        4 => result,
        1 => Just(Answer::Refused),
        1 => Just(Answer::Blocked),
        1 => Just(Answer::Fails),
    ]
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let roles = prop::sample::select(vec![Role::Hook, Role::Gate, Role::Observer]);
    let levels = prop::sample::select(vec![Level::Builtin, Level::User, Level::Project, Level::Session]);
    let spec = (roles, levels, -1..2i64, answers()).prop_map(|(role, level, order, answer)| Spec {
        role,
        level,
        order,
        answer,
    });
    prop::collection::vec(spec, 0..8)
}

fn hook(answer: Answer) -> Arc<dyn hookwright::hook::Hook> {
    Arc::new(FnHook::new(move |_| match &answer {
        Answer::Nothing => Ok(Verdict::NoChange.into()),
        Answer::Refused => Ok(Verdict::Refused.into()),
        Answer::Blocked => Ok(Verdict::Blocked(None).into()),
        Answer::Fails => Err(HookFailure::failed("broken")),
        Answer::Result(value) => {
            let object = value.as_object().cloned().unwrap_or_default();
            HookResult::from_json(object)
                .map(|result| Verdict::Result(Box::new(result)).into())
                .map_err(HookFailure::failed)
        }
    }))
}

fn chain_of(specs: &[Spec], shadow: bool) -> HookChain {
    let chain = HookChain::new(Duration::from_secs(30), shadow);
    for (number, spec) in specs.iter().enumerate() {
        let mut meta = HookMeta::new(format!("{number}"), vec![Event::PreToolExecution], HookKind::Builtin, spec.role);
        meta.level = spec.level;
        meta.order = spec.order;
        chain.add(meta, hook(spec.answer.clone()), false).unwrap();
    }
    chain
}

fn start() -> Vec<(Field, hookwright::hook::Payload)> {
    vec![(Field::ToolName, "shell".into()), (Field::ToolArguments, json!({"value": 9}).into())]
}

/// Everything that must not differ between two runs.
fn seen(outcome: &Outcome) -> Value {
    let mut summary = outcome.summary();
    summary.as_object_mut().unwrap().remove("ms");
    for run in summary["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("ms");
    }
    json!({"summary": summary, "arguments": outcome.field(Field::ToolArguments).unwrap().json().unwrap()})
}

fn run(chain: &HookChain) -> Option<Outcome> {
    chain.begin(Event::PreToolExecution, &Arc::default(), start).map(|dispatch| chain.run(dispatch).unwrap())
}

proptest! {
    #[test]
    fn both_drivers_and_every_repetition_come_to_the_same(specs in specs()) {
        let chain = chain_of(&specs, false);
        let Some(first) = run(&chain) else {
            prop_assert!(specs.is_empty());
            return Ok(());
        };
        prop_assert_eq!(seen(&first), seen(&run(&chain).unwrap()));
        let dispatch = chain.begin(Event::PreToolExecution, &Arc::default(), start).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(seen(&first), seen(&runtime.block_on(chain.run_async(dispatch)).unwrap()));
    }

    #[test]
    fn there_is_one_record_for_each_hook_in_the_order_of_the_chain(specs in specs()) {
        let chain = chain_of(&specs, false);
        let Some(outcome) = run(&chain) else { return Ok(()) };
        prop_assert_eq!(outcome.runs.len(), specs.len());
        let keys: Vec<_> = outcome.hooks.iter().map(|hook| (hook.role, hook.level, hook.order)).collect();
        prop_assert!(keys.is_sorted());
        // What was not reached stands behind what halted, and is never an observer.
        let halted = outcome.hooks.iter().position(|hook| Some(&hook.name) == outcome.halted_by.as_ref());
        for (position, (hook, run)) in outcome.hooks.iter().zip(&outcome.runs).enumerate() {
            if run.status == RunStatus::NotReached {
                prop_assert!(hook.role != Role::Observer);
                prop_assert!(halted.is_some_and(|halted| halted < position));
            }
        }
    }

    #[test]
    fn the_final_value_is_that_of_the_last_change_and_each_change_begins_where_the_one_before_ended(specs in specs()) {
        let chain = chain_of(&specs, false);
        let Some(outcome) = run(&chain) else { return Ok(()) };
        let mut value = json!({"value": 9});
        for change in &outcome.changes {
            prop_assert_eq!(change.before.as_ref().unwrap().json().unwrap(), &value);
            prop_assert!(change.after.json().unwrap() != &value, "a change that changes nothing");
            value = change.after.json().unwrap().clone();
        }
        prop_assert_eq!(outcome.field(Field::ToolArguments).unwrap().json().unwrap(), &value);
    }

    #[test]
    fn the_most_severe_decision_stands_and_comes_with_a_reason(specs in specs()) {
        let chain = chain_of(&specs, false);
        let Some(outcome) = run(&chain) else { return Ok(()) };
        prop_assert_eq!(outcome.action.is_some(), outcome.reason.is_some());
        prop_assert_eq!(outcome.action.is_some(), outcome.halted_by.is_some());
        prop_assert!(!matches!(outcome.action, Some(Action::Allow | Action::Warn)));
        let not_reached = outcome.runs.iter().any(|run| run.status == RunStatus::NotReached);
        prop_assert!(!not_reached || matches!(outcome.action, Some(Action::Skip | Action::Stop)));
    }

    #[test]
    fn a_gate_that_fails_refuses_and_an_observer_that_fails_or_speaks_changes_nothing(specs in specs()) {
        let chain = chain_of(&specs, false);
        let Some(outcome) = run(&chain) else { return Ok(()) };
        for (hook, run) in outcome.hooks.iter().zip(&outcome.runs) {
            if hook.role == Role::Gate && run.status == RunStatus::Failed {
                prop_assert!(matches!(outcome.action, Some(Action::Skip | Action::Stop)));
            }
            if hook.role == Role::Observer {
                prop_assert!(matches!(run.status, RunStatus::Ok | RunStatus::Failed));
            }
        }
        let without: Vec<_> = specs.iter().filter(|spec| spec.role != Role::Observer).cloned().collect();
        match run(&chain_of(&without, false)) {
            Some(other) => {
                prop_assert_eq!(outcome.action, other.action);
                prop_assert_eq!(&outcome.reason.is_some(), &other.reason.is_some());
                prop_assert_eq!(&seen(&outcome)["arguments"], &seen(&other)["arguments"]);
                prop_assert_eq!(outcome.system_messages.len(), other.system_messages.len());
            }
            None => prop_assert!(outcome.action.is_none() && outcome.changes.is_empty()),
        }
    }

    #[test]
    fn shadow_applies_nothing_and_reaches_every_hook(specs in specs()) {
        let chain = chain_of(&specs, true);
        let Some(outcome) = run(&chain) else { return Ok(()) };
        prop_assert!(outcome.action.is_none() && outcome.changes.is_empty() && outcome.system_messages.is_empty());
        prop_assert_eq!(outcome.field(Field::ToolArguments).unwrap().json().unwrap(), &json!({"value": 9}));
        prop_assert!(outcome.runs.iter().all(|run| matches!(run.status, RunStatus::Ok | RunStatus::Failed)));
    }
}

#[test]
fn a_gate_that_the_budget_kept_from_running_refuses() {
    let chain = HookChain::new(Duration::from_nanos(1), false);
    for role in [Role::Hook, Role::Gate, Role::Observer] {
        let meta = HookMeta::new(role.as_str(), vec![Event::PreToolExecution], HookKind::Builtin, role);
        chain.add(meta, hook(Answer::Nothing), false).unwrap();
    }
    let outcome = run(&chain).unwrap();
    assert_eq!(outcome.action, Some(Action::Skip));
    assert_eq!(outcome.halted_by.as_deref(), Some("gate"));
    let statuses: Vec<_> = outcome.runs.iter().map(|run| run.status).collect();
    // The first began in time and answered late, or found the budget used up; the others come after it in any case.
    assert!(matches!(statuses[0], RunStatus::Timeout | RunStatus::BudgetExhausted));
    assert_eq!(statuses[1..], [RunStatus::BudgetExhausted; 2]);
}

#[test]
fn what_a_failure_means_follows_on_error_and_the_event() {
    for (event, on_error, action) in [
        (Event::PreToolExecution, OnError::Skip, None),
        (Event::PreToolExecution, OnError::Deny, Some(Action::Skip)),
        (Event::PreToolExecution, OnError::Stop, Some(Action::Stop)),
        (Event::PreLlmRequest, OnError::Deny, Some(Action::Stop)),
        (Event::MessageRouted, OnError::Stop, Some(Action::Skip)),
        (Event::TurnEnd, OnError::Deny, None),
    ] {
        let chain = HookChain::default();
        let mut meta = HookMeta::new("broken", vec![event], HookKind::Builtin, Role::Hook);
        meta.on_error = on_error;
        chain.add(meta, hook(Answer::Fails), false).unwrap();
        let dispatch = chain.begin(event, &Arc::default(), Vec::new).unwrap();
        let outcome = chain.run(dispatch).unwrap();
        assert_eq!(outcome.action, action, "{event} {on_error}");
        assert_eq!(outcome.runs[0].status, RunStatus::Failed);
    }
}
