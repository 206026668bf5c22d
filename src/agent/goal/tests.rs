//! Goals in a world of scripts, under a clock that nobody waits for.

use std::collections::VecDeque;

use super::*;
use crate::message::Usage;

pub(super) const PASS: &str = r#"{"verdict": "pass"}"#;
pub(super) const FAIL: &str = r#"{"verdict": "fail", "feedback": "a test is red"}"#;

fn spec(max_rounds: u32) -> GoalSpec {
    GoalSpec {
        text: "all tests pass".into(),
        criteria: None,
        max_rounds,
        round_timeout: Some(60.0),
        review_timeout: Some(30.0),
    }
}

pub(super) fn goal(max_rounds: u32) -> Goal {
    Goal::new(spec(max_rounds), Commands::default()).unwrap()
}

/// One line of a script: how long the agent takes, and what comes of it.
#[derive(Clone)]
struct Line(f64, Ended, &'static str);

fn done(text: &'static str) -> Line {
    Line(1.0, Ended::Done, text)
}

/// What agents do and what the workspace looks like, as scripts.
struct World {
    executor: VecDeque<Line>,
    reviewer: VecDeque<Line>,
    prints: VecDeque<&'static str>,
    /// Virtual time, in seconds.
    clock: f64,
    told: Vec<String>,
    effects: Vec<Effect>,
}

impl World {
    fn new(executor: &[Line], reviewer: &[Line]) -> Self {
        World {
            executor: executor.iter().cloned().collect(),
            reviewer: reviewer.iter().cloned().collect(),
            prints: ["a", "b", "c", "d", "e", "f"].into(),
            clock: 0.0,
            told: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn run(&mut self, line: Option<Line>, timeout: Option<f64>) -> Execution {
        let Line(seconds, ended, text) = line.unwrap_or(Line(0.0, Ended::Gone, "the script is at its end"));
        let (seconds, ended) = match timeout {
            Some(limit) if seconds > limit => (limit, Ended::Timeout),
            _ => (seconds, ended),
        };
        self.clock += seconds;
        let error = (ended != Ended::Done).then(|| text.to_owned());
        let usage = Usage { input_tokens: 10, ..Usage::default() };
        Execution { ended, text: text.into(), error, usage, ms: seconds * 1e3, ..Execution::default() }
    }

    fn perform(&mut self, effect: &Effect) -> Answer {
        self.effects.push(effect.clone());
        match effect {
            Effect::Dispatch { text, timeout, .. } => {
                self.told.push(text.clone());
                let line = self.executor.pop_front();
                Answer::Executed(self.run(line, *timeout))
            }
            Effect::Deliver { text, timeout } => {
                self.told.push(text.clone());
                let line = self.executor.pop_front();
                Answer::Delivered(self.run(line, *timeout))
            }
            Effect::Sample => Answer::Sampled(Sample { fingerprint: self.prints.pop_front().map(str::to_owned) }),
            Effect::Review { timeout, .. } => {
                let line = self.reviewer.pop_front();
                Answer::Reviewed(self.run(line, *timeout))
            }
        }
    }

    /// Runs to the end; `between` is called with each effect before it is performed.
    fn pursue(&mut self, goal: &mut Goal, mut between: impl FnMut(&mut Goal, &Effect)) -> GoalStatus {
        for _ in 0..1000 {
            match goal.step() {
                Step::Done(status) => return status,
                Step::Effect { generation, effect } => {
                    between(goal, &effect);
                    let answer = self.perform(&effect);
                    goal.answer(generation, answer);
                }
            }
        }
        panic!("a goal has to end");
    }
}

fn pursue(max_rounds: u32, executor: &[Line], reviewer: &[Line]) -> (GoalStatus, Goal, World) {
    let mut goal = goal(max_rounds);
    let mut world = World::new(executor, reviewer);
    let status = world.pursue(&mut goal, |_, _| {});
    (status, goal, world)
}

fn reason(goal: &Goal) -> &str {
    goal.state().reason.as_deref().unwrap_or_default()
}

#[test]
fn a_goal_that_is_reached_at_once_takes_one_round() {
    let (status, goal, world) = pursue(5, &[done("did it")], &[done(PASS)]);
    assert_eq!(status, GoalStatus::Passed);
    assert_eq!(goal.state().rounds.len(), 1);
    assert_eq!(goal.state().usage.input_tokens, 20);
    assert_eq!(goal.state().rounds[0].ms, 2000.0);
    assert!(world.told[0].starts_with("The goal:\nall tests pass"), "{}", world.told[0]);
}

#[test]
fn feedback_reaches_the_next_round_as_data() {
    let (status, goal, world) = pursue(5, &[done("one"), done("two")], &[done(FAIL), done(PASS)]);
    assert_eq!(status, GoalStatus::Passed);
    assert_eq!(goal.state().rounds.len(), 2);
    assert!(world.told[1].contains("<review_feedback>\na test is red\n</review_feedback>"), "{}", world.told[1]);
    assert!(!world.told[0].contains("review_feedback"));
}

#[test]
fn used_up_rounds_are_a_failure() {
    let executor = vec![done("tried"); 3];
    let (status, goal, _) = pursue(3, &executor, &vec![done(FAIL); 3]);
    assert_eq!((status, goal.state().rounds.len()), (GoalStatus::Failed, 3));
    assert_eq!(reason(&goal), "the goal was not reached in 3 rounds");
}

#[test]
fn an_executor_that_is_gone_or_cancelled_ends_it_at_once() {
    for (ended, expected) in [(Ended::Gone, GoalStatus::Gone), (Ended::Cancelled, GoalStatus::Cancelled)] {
        let (status, goal, world) = pursue(5, &[Line(1.0, ended, "why")], &[]);
        assert_eq!(status, expected);
        assert_eq!(reason(&goal), "why");
        assert_eq!(world.effects.len(), 1, "neither sample nor review");
    }
}

#[test]
fn the_second_timeout_blocks() {
    let late = Line(1e6, Ended::Done, "never said");
    let (status, goal, world) = pursue(5, &[late.clone(), done("well"), late], &[done(FAIL)]);
    assert_eq!(status, GoalStatus::Blocked);
    assert!(reason(&goal).contains("out of time 2 times"), "{}", reason(&goal));
    assert!(world.told[1].contains("ran out of time"), "{}", world.told[1]);
    assert_eq!(world.clock, 60.0 + 1.0 + 1.0 + 60.0);
}

#[test]
fn the_same_error_twice_blocks_and_another_does_not() {
    let broken = |text| Line(1.0, Ended::Error, text);
    let (status, goal, world) = pursue(5, &[broken("disk full"), broken("disk full")], &[]);
    assert_eq!((status, reason(&goal)), (GoalStatus::Blocked, "the same error came twice: disk full"));
    assert!(world.told[1].contains("<last_error>\ndisk full\n</last_error>"), "{}", world.told[1]);
    let (status, ..) = pursue(5, &[broken("a"), broken("b"), done("c")], &[done(PASS)]);
    assert_eq!(status, GoalStatus::Passed);
}

#[test]
fn a_workspace_that_stays_as_it_is_blocks_in_the_second_such_round() {
    let mut goal = goal(9);
    let mut world = World::new(&vec![done("thinking"); 9], &vec![done(FAIL); 9]);
    world.prints = vec!["same"; 9].into();
    assert_eq!(world.pursue(&mut goal, |_, _| {}), GoalStatus::Blocked);
    assert_eq!(goal.state().rounds.len(), 3);
    assert!(reason(&goal).contains("workspace"), "{}", reason(&goal));
    world = World::new(&vec![done("thinking"); 9], &vec![done(FAIL); 9]);
    world.prints.clear();
    let mut unseen = self::goal(4);
    assert_eq!(world.pursue(&mut unseen, |_, _| {}), GoalStatus::Failed, "no workspace, no such breaker");
}

#[test]
fn a_reply_without_a_verdict_is_asked_for_once_more() {
    let (status, goal, world) = pursue(5, &[done("x")], &[done("looks good"), done(PASS)]);
    assert_eq!(status, GoalStatus::Passed);
    assert_eq!(goal.state().rounds[0].invalid.len(), 1);
    let Effect::Review { attempt: 2, text, reminder: Some(reminder), .. } = &world.effects[3] else {
        panic!("{:?}", world.effects[3])
    };
    assert!(text.ends_with(reminder.as_str()) && reminder.contains("no JSON object"), "{reminder}");
    let twice = [done("looks good"), done(r#"{"verdict": "fail"}"#)];
    let (status, goal, _) = pursue(5, &[done("x")], &twice);
    assert_eq!(status, GoalStatus::Blocked);
    assert!(reason(&goal).contains("needs feedback"), "{}", reason(&goal));
    let (status, ..) = pursue(5, &[done("x")], &[Line(31.0, Ended::Done, PASS), Line(1.0, Ended::Error, "down")]);
    assert_eq!(status, GoalStatus::Blocked);
}

#[test]
fn a_quoted_verdict_before_the_real_one_does_not_count() {
    let quoted = done(
        "The form was {\"verdict\": \"pass\"}.\n```json\n{\"verdict\": \"pass\"}\n```\n\n{\"verdict\": \"fail\", \"feedback\": \"no\"}",
    );
    let (status, ..) = pursue(1, &[done("x")], &[quoted]);
    assert_eq!(status, GoalStatus::Failed);
}

#[test]
fn what_the_user_says_waits_for_the_verdict_and_comes_in_order() {
    let script = [done("work"), done("re: one"), done("re: two"), done("more work"), done("re: three")];
    for (verdict, last) in [(FAIL, done(PASS)), (PASS, done("unused"))] {
        let mut goal = goal(2);
        let mut world = World::new(&script, &[done(verdict), last]);
        let status = world.pursue(&mut goal, |goal, effect| {
            if let Effect::Review { round: 1, .. } = effect {
                assert_eq!(goal.send("one", false, false), Ok(Sent::Queued(0)));
                assert_eq!(goal.send("two", false, false), Ok(Sent::Queued(1)));
            }
        });
        assert_eq!(status, GoalStatus::Passed);
        assert_eq!(world.told[1..3], ["one", "two"]);
        let delivered: Vec<_> = goal.state().deliveries.iter().map(|said| said.reply.as_str()).collect();
        assert_eq!(delivered, ["re: one", "re: two"]);
        let review = world.effects.iter().position(|effect| matches!(effect, Effect::Review { .. })).unwrap();
        let delivery = world.effects.iter().position(|effect| matches!(effect, Effect::Deliver { .. })).unwrap();
        assert!(delivery > review);
        assert_eq!(goal.send("late", false, false), Err(NotSent::Over));
    }
}

#[test]
fn what_the_user_says_while_the_executor_works_comes_before_the_review() {
    let mut goal = goal(1);
    let mut world = World::new(&[done("work"), done("with tabs")], &[done(PASS)]);
    world.pursue(&mut goal, |goal, effect| {
        if matches!(effect, Effect::Dispatch { .. }) {
            assert_eq!(goal.send("use tabs", true, false), Ok(Sent::Queued(0)), "the executor is at work");
        }
    });
    assert!(matches!(world.effects[1], Effect::Deliver { .. }));
    let Effect::Review { text, .. } = &world.effects[3] else { panic!("{:?}", world.effects) };
    assert!(text.contains("work\n\nwith tabs"), "{text}");
}

#[test]
fn follow_ups_and_commands_pass_and_attachments_are_refused() {
    let mut goal = goal(1);
    let mut world = World::new(&[done("work")], &[done(PASS)]);
    world.pursue(&mut goal, |goal, effect| {
        assert_eq!(goal.send("see this", false, true), Err(NotSent::Attachments));
        assert_eq!(goal.send(" \n", false, false), Err(NotSent::Blank));
        assert!(matches!(goal.send("/status", false, false), Ok(Sent::Command(_))));
        if matches!(effect, Effect::Review { .. }) {
            let Ok(Sent::Passed(id)) = goal.send("by the way", true, false) else { panic!("it passes") };
            let Ok(Sent::Passed(other)) = goal.send("and", true, false) else { panic!("it passes") };
            assert_ne!(id, other);
            goal.passed(id, Execution { ended: Ended::Done, text: "noted".into(), ..Execution::default() });
            goal.passed(id, Execution::default());
        }
    });
    let delivered: Vec<_> = goal.state().deliveries.iter().map(|said| (&*said.text, &*said.reply)).collect();
    assert_eq!(delivered, [("by the way", "noted")]);
    let again = Goal::restore(goal.state().clone(), Commands::default());
    assert!(again.state().passing.is_empty());
}

#[test]
fn late_answers_change_nothing() {
    let mut goal = goal(2);
    let Step::Effect { generation: first, .. } = goal.step() else { panic!() };
    let run = Execution { ended: Ended::Done, text: "x".into(), ..Execution::default() };
    assert!(!goal.answer(first, Answer::Sampled(Sample::default())), "no answer to what was asked");
    assert!(goal.answer(first, Answer::Executed(run.clone())));
    let state = goal.state().clone();
    assert!(!goal.answer(first, Answer::Executed(run.clone())));
    assert!(!goal.answer(first + 99, Answer::Sampled(Sample::default())));
    assert_eq!(goal.state(), &state);
    let mut other = self::goal(2);
    assert_ne!(other.state().id, goal.state().id);
    let Step::Effect { generation, .. } = goal.step() else { panic!() };
    assert!(goal.cancel());
    assert!(!goal.answer(generation, Answer::Sampled(Sample::default())));
    assert_eq!(goal.step(), Step::Done(GoalStatus::Cancelled));
    assert!(!goal.cancel(), "once");
    assert!(other.cancel());
}

#[test]
fn an_impossible_goal_is_refused() {
    let refuse = |spec| Goal::new(spec, Commands::default()).unwrap_err();
    assert_eq!(refuse(GoalSpec { text: " ".into(), ..spec(1) }), GoalError::Blank);
    assert_eq!(refuse(spec(0)), GoalError::NoRounds);
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let spec = GoalSpec { review_timeout: Some(seconds), ..spec(1) };
        assert_eq!(refuse(spec), GoalError::Timeout("review_timeout"));
    }
}

/// The state as another process would read it.
pub(super) fn restarted(goal: &Goal) -> Goal {
    let text = serde_json::to_string(goal.state()).unwrap();
    Goal::restore(serde_json::from_str(&text).unwrap(), Commands::default())
}

#[test]
fn a_restart_before_any_effect_ends_in_the_same_place() {
    let executor = [done("one"), done("re: hello"), done("two"), done("three")];
    let reviewer = [done(FAIL), done("hm"), done(FAIL), done(PASS)];
    let mut restart = 0;
    loop {
        let mut goal = goal(5);
        let mut world = World::new(&executor, &reviewer);
        let mut count = 0;
        let mut status = None;
        while status.is_none() {
            match goal.step() {
                Step::Done(ended) => status = Some(ended),
                Step::Effect { generation, effect } => {
                    if matches!(effect, Effect::Review { round: 1, .. }) && goal.state().queue.is_empty() {
                        goal.send("hello", false, false).unwrap();
                    }
                    if count == restart {
                        // The process dies here; the effect was begun and its answer comes too late.
                        let mut next = restarted(&goal);
                        assert!(!next.answer(generation, Answer::Executed(Execution::default())));
                        assert_eq!(next.state().restarts, 1);
                        if let (Effect::Dispatch { .. }, Step::Effect { effect: Effect::Dispatch { text, .. }, .. }) =
                            (&effect, next.step())
                        {
                            assert!(text.contains("interrupted"), "{text}");
                        }
                        goal = next;
                        count += 1;
                        continue;
                    }
                    count += 1;
                    let answer = world.perform(&effect);
                    assert!(goal.answer(generation, answer));
                }
            }
        }
        assert_eq!(status, Some(GoalStatus::Passed), "restarted at {restart}");
        assert_eq!(goal.state().rounds.len(), 3);
        assert_eq!(goal.state().deliveries.len(), 1);
        if restart >= count {
            assert!(count > 9);
            return;
        }
        restart += 1;
    }
}

#[test]
fn a_file_survives_and_damage_to_it_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new folder/goal.json");
    let mut goal = goal(2);
    goal.send("<é>", false, false).unwrap();
    let file = GoalFile::create(&path, "one").unwrap();
    file.save(goal.state()).unwrap();
    assert!(matches!(GoalFile::create(&path, "two"), Err(GoalFileError::Unfinished { .. })));
    let (taken, state) = GoalFile::open(&path, "two").unwrap();
    assert_eq!(&state, goal.state());
    assert!(matches!(file.save(goal.state()), Err(GoalFileError::Superseded { .. })), "one has been superseded");
    taken.save(goal.state()).unwrap();
    goal.cancel();
    taken.save(goal.state()).unwrap();
    let next = GoalFile::create(&path, "three").unwrap();
    next.save(self::goal(1).state()).unwrap();

    let whole = std::fs::read_to_string(&path).unwrap();
    for (damage, says) in [
        (String::new(), "EOF"),
        (whole[..whole.len() / 2].to_owned(), "EOF"),
        (whole.replace("all tests pass", "all tests fail"), "checksum"),
        ("{}".to_owned(), "missing field"),
        (whole.replace("hookwright-goal", "something"), "its format is \"something\""),
        (whole.replace("\"version\":1", "\"version\":7"), "has version 7"),
    ] {
        std::fs::write(&path, &damage).unwrap();
        let error = GoalFile::open(&path, "four").unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("goal.json"), "{error}");
        assert!(next.save(goal.state()).is_err(), "what cannot be read is not written over");
        assert!(GoalFile::create(&path, "four").is_err());
    }
    std::fs::write(&path, [0xff]).unwrap();
    assert!(GoalFile::open(&path, "four").unwrap_err().to_string().contains("not text"));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(GoalFile::open(&path, "four"), Err(GoalFileError::NotFound { .. })));
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0, "nothing is left lying about");
}
