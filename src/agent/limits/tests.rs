use proptest::prelude::*;

use super::*;

fn counters(change: impl FnOnce(&mut Limits)) -> TurnCounters {
    let mut limits = Limits::default();
    change(&mut limits);
    TurnCounters::new(limits)
}

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall::from_text("c", name, arguments)
}

fn reached<T: std::fmt::Debug>(result: Result<T, LimitReached>) -> (LimitKind, String, String) {
    let reached = result.unwrap_err();
    (reached.limit, reached.used.to_string(), reached.allowed.to_string())
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let limits: Limits = serde_json::from_str("{}").unwrap();
    assert_eq!(limits, Limits::default());
    assert_eq!((limits.max_rounds, limits.repeated_call, limits.max_hook_loops), (50, Some(3), 8));
    assert_eq!((limits.max_calls_per_turn, limits.max_seconds), (None, None));
    assert!(serde_json::from_str::<Limits>(r#"{"max_round": 3}"#).unwrap_err().to_string().contains("max_round"));
}

#[test]
fn rounds_and_calls_are_refused_once_all_are_used() {
    let mut counters = counters(|limits| (limits.max_rounds, limits.max_calls_per_turn) = (2, Some(1)));
    assert_eq!((counters.begin_round(), counters.begin_round()), (Ok(1), Ok(2)));
    for _ in 0..2 {
        assert_eq!(reached(counters.begin_round()), (LimitKind::Rounds, "2".into(), "2".into()));
    }
    assert_eq!(counters.begin_call(&call("ls", "")), Ok(()));
    assert_eq!(reached(counters.begin_call(&call("cat", ""))), (LimitKind::Calls, "1".into(), "1".into()));
    assert_eq!((counters.rounds(), counters.calls()), (2, 1));
}

#[test]
fn the_third_same_call_in_a_row_is_refused_whatever_its_spelling() {
    let mut counters = counters(|_| {});
    counters.begin_call(&call("grep", r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)).unwrap();
    counters.begin_call(&call("grep", r#"{"b":{"d":3,"c":2},"a":1}"#)).unwrap();
    let error = counters.begin_call(&call("grep", r#"{"b":{"c":2,"d":3}, "a":1}"#)).unwrap_err();
    assert_eq!(error.to_string(), "the tool grep was called 3 times in a row with the same arguments");
    assert_eq!(
        serde_json::to_string(&error).unwrap(),
        format!(r#"{{"limit":"repeated_call","used":3,"allowed":3,"detail":"{error}"}}"#)
    );
    assert_eq!(counters.calls(), 2, "what was refused is not counted");
}

#[test]
fn another_call_between_starts_the_row_again() {
    let mut counters = counters(|_| {});
    let same = call("grep", r#"{"a":1}"#);
    for other in [call("grep", r#"{"a":2}"#), call("glob", r#"{"a":1}"#), call("grep", "{oops")] {
        counters.begin_call(&same).unwrap();
        counters.begin_call(&same).unwrap();
        counters.begin_call(&other).unwrap();
    }
    counters.begin_call(&call("grep", "{oops")).unwrap();
    assert_eq!(reached(counters.begin_call(&call("grep", "{oops"))).0, LimitKind::RepeatedCall);
}

#[test]
fn without_a_limit_on_repetition_a_tool_can_be_polled() {
    let mut counters = counters(|limits| limits.repeated_call = None);
    for _ in 0..100 {
        counters.begin_call(&call("status", "")).unwrap();
    }
    assert_eq!(counters.calls(), 100);
}

#[test]
fn time_tokens_and_cost_are_reached_at_their_bound() {
    let mut counters = counters(|limits| {
        (limits.max_seconds, limits.max_tokens, limits.max_cost) = (Some(1.5), Some(100), Some(0.5));
    });
    assert_eq!(counters.check_time(Duration::from_millis(1499)), Ok(()));
    assert_eq!(counters.time_left(Duration::from_millis(500)), Some(Duration::from_secs(1)));
    assert_eq!(
        reached(counters.check_time(Duration::from_millis(1500))),
        (LimitKind::Seconds, "1.5".into(), "1.5".into())
    );
    assert_eq!(counters.time_left(Duration::from_secs(9)), Some(Duration::ZERO));

    counters.add_usage(Usage { input_tokens: 90, output_tokens: 9, ..Usage::default() }, 0.25);
    assert_eq!(counters.check_spending(), Ok(()));
    counters.add_usage(Usage::default(), 0.25);
    assert_eq!(reached(counters.check_spending()), (LimitKind::Cost, "0.5".into(), "0.5".into()));
    counters.add_usage(Usage { output_tokens: 2, ..Usage::default() }, 0.0);
    assert_eq!(reached(counters.check_spending()), (LimitKind::Tokens, "101".into(), "100".into()));
}

#[test]
fn a_limit_that_is_no_finite_number_is_no_panic() {
    for seconds in [f64::INFINITY, f64::NAN, -1.0, 1e300] {
        let counters = counters(|limits| limits.max_seconds = Some(seconds));
        let _ = (counters.time_left(Duration::from_secs(1)), counters.check_time(Duration::from_secs(1)));
    }
}

#[test]
fn hooks_send_a_turn_back_eight_times_at_most() {
    let mut counters = counters(|_| {});
    for number in 1..=8 {
        assert_eq!(counters.send_back(&format!("again {number}")), Ok(number));
    }
    assert_eq!(reached(counters.send_back("once more")), (LimitKind::HookLoop, "8".into(), "8".into()));
    assert_eq!(counters.continuation(), 8);
}

#[test]
fn the_same_feedback_twice_ends_the_loop_unless_a_tool_was_called_between() {
    let mut counters = counters(|_| {});
    counters.send_back("run the tests").unwrap();
    counters.begin_call(&call("shell", "")).unwrap();
    counters.send_back("run the tests").unwrap();
    counters.send_back("and the linter").unwrap();
    let error = counters.send_back("run the tests").unwrap_err();
    assert_eq!(error.to_string(), "hooks sent the turn back twice with the same feedback and no tool call between");
    assert_eq!((error.limit, error.used, error.allowed), (LimitKind::HookLoop, 3.into(), 8.into()));
}

proptest! {
    #[test]
    fn no_sequence_of_feedback_and_calls_passes_the_caps(steps in prop::collection::vec((any::<bool>(), 0..3_u8), 0..60)) {
        let mut counters = counters(|_| {});
        let (mut row, mut last, mut said) = (0, None, Vec::new());
        for (is_call, which) in steps {
            if is_call {
                row = if last == Some(which) { row + 1 } else { 1 };
                last = Some(which);
                said.clear();
                prop_assert_eq!(counters.begin_call(&call("t", &format!("{{\"n\":{which}}}"))).is_err(), row >= 3);
            } else {
                let refused = said.contains(&which) || counters.continuation() == 8;
                prop_assert_eq!(counters.send_back(&which.to_string()).is_err(), refused);
                said.push(which);
            }
        }
        prop_assert!(counters.continuation() <= 8);
    }
}
