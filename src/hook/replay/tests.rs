use std::fs;
use std::io::BufReader;
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::hook::record::Recorder;
use crate::hook::{
    BoxFuture, Call, FnHook, Hook, HookFailure, HookKind, HookMeta, HookReply, HookResult, Role, Verdict,
};

fn meta(name: &str, event: Event, role: Role) -> HookMeta {
    HookMeta::new(name, vec![event], HookKind::Builtin, role)
}

/// A gate that refuses commands that contain `word`.
fn refusing(word: &'static str) -> Arc<dyn Hook> {
    Arc::new(FnHook::new(move |event: &EventContext| {
        let arguments = event.get(Field::ToolArguments).map(|value| value.json().unwrap().to_string());
        let refused = arguments.is_some_and(|text| text.contains(word));
        Ok(match refused {
            true => Verdict::Result(Box::new(HookResult::decide(Action::Skip, format!("no {word}")))).into(),
            false => HookReply::default(),
        })
    }))
}

/// A hook that sets the command.
fn rewriting(command: &'static str) -> Arc<dyn Hook> {
    Arc::new(FnHook::new(move |_: &EventContext| {
        let fields = vec![(Field::ToolArguments, json!({"command": command}))];
        Ok(Verdict::Result(Box::new(HookResult { fields, ..HookResult::default() })).into())
    }))
}

/// The same code as a hook with side effects.
struct Effects(Arc<dyn Hook>);

impl Hook for Effects {
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure> {
        self.0.call(call)
    }

    fn call_async(&self, context: Arc<EventContext>, deadline: Instant) -> BoxFuture<Result<HookReply, HookFailure>> {
        self.0.call_async(context, deadline)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn has_side_effects(&self) -> bool {
        true
    }
}

fn chain(hooks: Vec<(&str, Role, Arc<dyn Hook>)>) -> HookChain {
    let chain = HookChain::default();
    for (name, role, hook) in hooks {
        chain.add(meta(name, Event::PreToolExecution, role), hook, false).unwrap();
    }
    chain
}

fn shell(command: &str) -> Vec<(Field, Payload)> {
    vec![(Field::ToolName, "shell".into()), (Field::ToolArguments, json!({"command": command}).into())]
}

/// Runs the commands through `chain` and returns the record.
fn record(chain: &HookChain, commands: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    let recorder = Arc::new(Recorder::open(&path, Redactor::default()).unwrap());
    chain.add_recorder(recorder.clone());
    let scope = Arc::new(Scope { session_id: "s".into(), turn_id: "t".into(), continuation: 2, ..Scope::default() });
    for command in commands {
        chain.run(chain.begin(Event::PreToolExecution, &scope, || shell(command)).unwrap()).unwrap();
    }
    assert_eq!(recorder.lines(), commands.len() as u64);
    assert!(chain.remove_recorder(&recorder));
    assert!(!chain.remove_recorder(&recorder));
    fs::read_to_string(path).unwrap()
}

fn replay(chain: &HookChain, record: &str, side_effects: bool) -> (Vec<(usize, Difference)>, Replay) {
    let mut reader = BufReader::new(record.as_bytes());
    let (mut number, mut differences) = (0, Vec::new());
    let mut replay = Replay::new(chain, side_effects);
    while let Some(recorded) = read_next(&mut reader, &mut number).unwrap() {
        let recorded = recorded.unwrap();
        let mut dispatch = replay.begin(&recorded);
        while dispatch.advance().is_some() {
            let answer = dispatch.entry().hook.call(dispatch.call());
            dispatch.complete(answer).unwrap();
        }
        differences.extend(replay.end(&recorded, dispatch).map(|difference| (number, difference)));
    }
    (differences, replay)
}

fn actions(differences: &[(usize, Difference)]) -> Vec<(usize, Option<Action>, Option<Action>)> {
    differences.iter().map(|(line, difference)| (*line, difference.before.action, difference.after.action)).collect()
}

#[test]
fn a_record_is_made_without_hooks_and_a_new_gate_is_tried_on_it() {
    let text = record(&chain(vec![]), &["ls", "rm x"]);
    let (same, _) = replay(&chain(vec![]), &text, false);
    assert_eq!(same, []);
    let (differences, _) = replay(&chain(vec![("gate", Role::Gate, refusing("rm"))]), &text, false);
    assert_eq!(actions(&differences), [(2, None, Some(Action::Skip))]);
    assert!(differences[0].1.after.refuses() && !differences[0].1.before.refuses());
    assert_eq!(differences[0].1.after.reason.as_deref(), Some("no rm"));
}

#[test]
fn what_is_restored_is_the_scope_of_the_event() {
    let text = record(&chain(vec![]), &["ls"]);
    let recorded = Recorded::parse(1, text.as_bytes()).unwrap();
    let dispatch = Replay::new(&chain(vec![]), false).begin(&recorded);
    let scope = &dispatch.context().scope;
    assert_eq!((scope.session_id.as_str(), scope.turn_id.as_str(), scope.continuation), ("s", "t", 2));
    assert_eq!(recorded.field(Field::ToolName), Some(&json!("shell")));
}

#[test]
fn a_rewrite_that_is_gone_or_new_is_a_difference_in_its_field() {
    let text = record(&chain(vec![("rewriter", Role::Hook, rewriting("pwd"))]), &["ls"]);
    let (differences, _) = replay(&chain(vec![]), &text, false);
    let arguments = |command: &str| Some(json!({"command": command}));
    assert_eq!(differences[0].1.fields, [(Field::ToolArguments, arguments("pwd"), arguments("ls"))]);
    let (same, _) = replay(&chain(vec![("other name", Role::Hook, rewriting("pwd"))]), &text, false);
    assert_eq!(same, []);
}

#[test]
fn what_a_hook_with_side_effects_did_stands_unless_it_is_asked_to_run() {
    let effects = |word| -> Arc<dyn Hook> { Arc::new(Effects(word)) };
    let recorded = chain(vec![
        ("rewriter", Role::Hook, effects(rewriting("rm y"))),
        ("closed", Role::Gate, effects(refusing("rm"))),
    ]);
    let text = record(&recorded, &["ls"]);
    let (differences, replayed) = replay(&recorded, &text, false);
    assert_eq!(differences, []);
    let left_out: Vec<_> = replayed.left_out().iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(left_out, [("closed", 1), ("rewriter", 1)]);

    // A gate that is added sees what the rewriter left then.
    let text = record(&chain(vec![("rewriter", Role::Hook, effects(rewriting("rm y")))]), &["ls"]);
    let with_gate =
        chain(vec![("rewriter", Role::Hook, effects(rewriting("rm y"))), ("gate", Role::Gate, refusing("rm y"))]);
    let (differences, _) = replay(&with_gate, &text, false);
    assert_eq!(actions(&differences), [(1, None, Some(Action::Skip))]);

    let (differences, replayed) = replay(&recorded, &record(&recorded, &["ls"]), true);
    assert_eq!((differences.len(), replayed.left_out().len()), (0, 0));
}

#[test]
fn a_replay_neither_counts_nor_records() {
    let text = record(&chain(vec![]), &["ls"]);
    let gate = chain(vec![("gate", Role::Gate, refusing("rm"))]);
    replay(&gate, &text, false);
    assert_eq!(gate.stats()[0].runs, 0);
}

#[test]
fn torn_and_foreign_lines_say_what_is_wrong_with_them() {
    let text = record(&chain(vec![]), &["ls"]);
    let later = text.replace("\"version\":1", "\"version\":2");
    let unknown = text.replace("pre_tool_execution", "pre_tool_exection");
    for (line, reason) in [
        (&text[..text.len() / 2], "it is cut off"),
        ("hello\n", "it is no recorded event: expected value at line 1 column 1"),
        ("{\"a\": 1}\n", "it is no recorded event: missing field `version` at line 1 column 8"),
        (later.as_str(), "version 2 of the format is not known to this hookwright"),
        (unknown.as_str(), "unknown event \"pre_tool_exection\"; did you mean \"pre_tool_execution\"?"),
    ] {
        assert_eq!(Recorded::parse(7, line.as_bytes()).unwrap_err(), BadLine { line: 7, reason: reason.into() });
    }
}

#[test]
fn a_recorder_ends_a_torn_line_before_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    fs::write(&path, "{\"version\":1,\"ev").unwrap();
    let chain = chain(vec![]);
    chain.add_recorder(Arc::new(Recorder::open(&path, Redactor::default()).unwrap()));
    chain.run(chain.begin(Event::PreToolExecution, &Arc::default(), || shell("ls")).unwrap()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().enumerate().map(|(i, line)| Recorded::parse(i, line.as_bytes()).is_ok()).collect();
    assert_eq!(lines, [false, true]);
}

#[test]
fn opening_one_file_again_replaces_its_recorder_and_other_files_record_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Arc::new(Recorder::open(&folder.path().join(name), Redactor::default()).unwrap());
    let chain = chain(vec![]);
    let (first, again, other) = (open("a"), open("a"), open("b"));
    for recorder in [&first, &again, &other] {
        chain.add_recorder(recorder.clone());
    }
    chain.run(chain.begin(Event::PreToolExecution, &Arc::default(), || shell("ls")).unwrap()).unwrap();
    assert_eq!((first.lines(), again.lines(), other.lines()), (0, 1, 1));
    assert!(!chain.listens(Event::TextDelta) && chain.listens(Event::TurnStart));
    assert!(chain.remove_recorder(&again) && chain.remove_recorder(&other));
    assert!(!chain.listens(Event::TurnStart));
}
