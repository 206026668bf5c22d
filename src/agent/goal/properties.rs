//! What holds of a goal whatever happens to it.

use proptest::prelude::*;

use super::tests::{FAIL, PASS, goal, restarted};
use super::*;

/// What may happen to a goal, wanted or not.
#[derive(Debug, Clone)]
enum Happening {
    Fitting(Ended, &'static str, &'static str),
    Any(u8, i8, Ended, &'static str),
    Send(bool, bool),
    Passed(u64),
    Cancel,
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let ended = prop_oneof![
        8 => Just(Ended::Done),
        2 => Just(Ended::Error),
        1 => Just(Ended::Timeout),
        1 => Just(Ended::Cancelled),
        1 => Just(Ended::Gone),
    ];
    let text = prop_oneof![Just(PASS), Just(FAIL), Just("hm"), Just("{\"verdict\": \"fail\"}"), Just("")];
    let print = prop_oneof![Just("a"), Just("b"), Just("c"), Just("")];
    prop_oneof![
        30 => (ended.clone(), text.clone(), print).prop_map(|(ended, text, print)| Happening::Fitting(ended, text, print)),
        3 => (0_u8..4, -3_i8..3, ended, text).prop_map(|(kind, off, ended, text)| Happening::Any(kind, off, ended, text)),
        5 => (any::<bool>(), any::<bool>()).prop_map(|(follow_up, attached)| Happening::Send(follow_up, attached)),
        1 => (0_u64..40).prop_map(Happening::Passed),
        1 => Just(Happening::Cancel),
        3 => Just(Happening::Restart),
    ]
}

fn answer_of(kind: u8, execution: Execution, print: &str) -> Answer {
    match kind {
        0 => Answer::Executed(execution),
        1 => Answer::Delivered(execution),
        2 => Answer::Sampled(Sample { fingerprint: (!print.is_empty()).then(|| print.to_owned()) }),
        _ => Answer::Reviewed(execution),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever happens, in whatever order: no panic, never more rounds than allowed, one end that stays.
    #[test]
    fn any_sequence_of_events_keeps_the_rules(
        max_rounds in 1_u32..5,
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let mut goal = goal(max_rounds);
        let mut end = None;
        for happening in happenings {
            let step = goal.step();
            prop_assert_eq!(&step, &goal.step(), "asking again wants the same");
            match happening {
                Happening::Fitting(ended, text, print) => {
                    if let Step::Effect { generation, effect } = step {
                        let execution = Execution { ended, text: text.into(), error: (ended != Ended::Done).then(|| text.into()), ..Execution::default() };
                        let kind = match effect {
                            Effect::Dispatch { round, .. } => {
                                prop_assert!(round <= max_rounds);
                                0
                            }
                            Effect::Deliver { text, .. } => {
                                prop_assert!(!text.is_empty());
                                1
                            }
                            Effect::Sample => 2,
                            Effect::Review { attempt, .. } => {
                                prop_assert!(attempt <= 2);
                                3
                            }
                        };
                        prop_assert!(goal.answer(generation, answer_of(kind, execution, print)));
                    }
                }
                Happening::Any(kind, off, ended, text) => {
                    let generation = goal.state().generation.saturating_add_signed(off.into());
                    let execution = Execution { ended, text: text.into(), ..Execution::default() };
                    let before = goal.state().clone();
                    if !goal.answer(generation, answer_of(kind, execution, "z")) {
                        prop_assert_eq!(goal.state(), &before);
                    }
                }
                Happening::Send(follow_up, attached) => {
                    let before = goal.state().status();
                    let sent = goal.send("words", follow_up, attached);
                    prop_assert_eq!(sent.is_err(), attached || before.is_some());
                }
                Happening::Passed(id) => goal.passed(id, Execution::default()),
                Happening::Cancel => {
                    goal.cancel();
                }
                Happening::Restart => goal = restarted(&goal),
            }
            prop_assert!(goal.state().rounds.len() <= max_rounds as usize);
            let status = goal.state().status();
            if end.is_some() {
                prop_assert_eq!(status, end);
            }
            end = status;
        }
        // Left to agents that only fail, it comes to its end by itself.
        for _ in 0..400 {
            let Step::Effect { generation, effect } = goal.step() else { break };
            let done = |text: &str| Execution { ended: Ended::Done, text: text.into(), ..Execution::default() };
            let answer = match effect {
                Effect::Dispatch { .. } => Answer::Executed(done("x")),
                Effect::Deliver { .. } => Answer::Delivered(done("x")),
                Effect::Sample => Answer::Sampled(Sample::default()),
                Effect::Review { .. } => Answer::Reviewed(done(FAIL)),
            };
            prop_assert!(goal.answer(generation, answer));
        }
        prop_assert!(goal.state().status().is_some());
        prop_assert!(goal.state().queue.is_empty() || matches!(goal.state().status(), Some(GoalStatus::Cancelled | GoalStatus::Gone)) || end.is_some());
    }
}
