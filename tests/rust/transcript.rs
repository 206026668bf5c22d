//! Sessions in directories: what survives, what is repaired, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hookwright::agent::transcript::{Entry, encode, scan};
use hookwright::agent::{FixedClock, LoadReport, Session, SessionError, SessionOptions};
use hookwright::message::{History, Message, Timestamp, ToolCall};
use serde_json::{Map, Value, json};

/// Options under which two sessions write the same bytes.
fn fixed() -> SessionOptions {
    SessionOptions {
        id: Some("s1".into()),
        agent: Some("helper".into()),
        cwd: Some("/project".into()),
        clock: Some(Arc::new(FixedClock(Timestamp::from_millis(0)))),
        recover: false,
    }
}

/// One turn with two calls, of which both have results.
fn run_a_turn(session: &Session) {
    let turn = session.begin_turn().unwrap();
    session.append(Message::user("look at 文件 and the emoji 🎉")).unwrap();
    let calls = vec![ToolCall::from_text("c1", "ls", "{\"path\": \".\"}"), ToolCall::from_text("c2", "cat", "{oops")];
    session.append(Message::assistant("I will").with_tool_calls(calls)).unwrap();
    session.call_started("c1").unwrap();
    session.append(Message::tool_result("c1", "a.txt\nb.txt")).unwrap();
    session.append(Message::tool_result("c2", "not JSON").failed()).unwrap();
    session.append(Message::assistant("there are two")).unwrap();
    session.end_turn(&turn, "success").unwrap();
}

fn transcript(directory: &Path) -> std::path::PathBuf {
    directory.join("transcript.jsonl")
}

/// Every file of a directory with its bytes, but for the lock.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    named.filter(|(name, _)| name != "session.lock").collect()
}

fn texts(history: &History) -> Vec<String> {
    history.iter().map(|message| message.text().into_owned()).collect()
}

/// What a provider demands: right behind each assistant message exactly one result for each of its calls.
fn assert_each_call_has_one_result(history: &History) {
    let mut open: Vec<String> = Vec::new();
    for message in history.iter() {
        match &message.tool_call_id {
            Some(id) => {
                let at = open.iter().position(|open| open == id).unwrap_or_else(|| panic!("{id} has no call"));
                open.remove(at);
            }
            None => assert!(open.is_empty(), "no result for {open:?}"),
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
    }
    assert!(open.is_empty(), "no result for {open:?}");
}

#[test]
fn a_session_reads_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/session");
    let session = Session::create(&path, fixed()).unwrap();
    run_a_turn(&session);
    let history = session.history();
    drop(session);

    let session = Session::open(&path, SessionOptions::default()).unwrap();
    assert_eq!(session.history(), history);
    assert_eq!((session.id(), session.agent(), session.cwd()), ("s1", Some("helper"), Path::new("/project")));
    assert_eq!((session.turn_count(), session.open_turn(), session.path()), (1, None, Some(path.as_path())));
    assert_eq!(session.created(), Timestamp::from_millis(0));
    assert_eq!(session.load_report(), &LoadReport::default());
    assert_eq!(session.append(Message::user("next")).unwrap().id.as_deref(), Some("m6"));
    assert_eq!(session.begin_turn().unwrap(), "t2");
}

#[test]
fn under_a_fixed_clock_two_sessions_write_the_same_bytes() {
    let [first, second] = [(); 2].map(|()| {
        let directory = tempfile::tempdir().unwrap();
        run_a_turn(&Session::create(directory.path(), fixed()).unwrap());
        files(directory.path())
    });
    assert_eq!(first, second);
    assert_eq!(first.keys().collect::<Vec<_>>(), ["session.json", "transcript.jsonl"]);
    let metadata: Value = serde_json::from_slice(&first["session.json"]).unwrap();
    let wanted =
        json!({"version": 1, "id": "s1", "created": "1970-01-01T00:00:00.000Z", "agent": "helper", "cwd": "/project"});
    assert_eq!(metadata, wanted);
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_a_session() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    let _session = Session::create(&path, fixed()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for file in ["session.json", "transcript.jsonl", "session.lock"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_transcript_cut_at_any_byte_opens_as_a_valid_prefix_and_can_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::create(directory.path().join("whole"), fixed()).unwrap();
    run_a_turn(&session);
    let whole = session.history();
    let bytes = fs::read(transcript(session.path().unwrap())).unwrap();
    drop(session);
    let metadata = fs::read(directory.path().join("whole/session.json")).unwrap();

    // Side by side, since a cut waits for the disk on some file systems.
    let cuts: Vec<usize> = (0..=bytes.len()).collect();
    std::thread::scope(|scope| {
        for (number, cuts) in cuts.chunks(cuts.len().div_ceil(16)).enumerate() {
            let path = directory.path().join(number.to_string());
            let (bytes, metadata, whole) = (&bytes, &metadata, &whole);
            scope.spawn(move || {
                for &length in cuts {
                    open_cut(&path, &bytes[..length], metadata, whole);
                    fs::remove_dir_all(&path).unwrap();
                }
            });
        }
    });
}

/// Opens at `path` a session whose transcript was cut to `bytes`, checks what is left of `whole`, and goes on.
fn open_cut(path: &Path, bytes: &[u8], metadata: &[u8], whole: &History) {
    let length = bytes.len();
    fs::create_dir(path).unwrap();
    fs::write(path.join("session.json"), metadata).unwrap();
    fs::write(transcript(path), bytes).unwrap();
    let kept = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);

    let session = Session::open(path, fixed()).unwrap();
    let repair = session.load_report().repair.as_ref();
    assert_eq!(repair.map(|repair| repair.bytes_removed as usize), (kept < length).then_some(length - kept));
    if let Some(repair) = repair {
        assert_eq!(fs::read(&repair.kept_as).unwrap(), &bytes[kept..], "nothing is lost");
    }
    let history = session.history();
    let stored = scan(bytes).entries.iter().filter(|entry| matches!(entry, Entry::Message { .. })).count();
    assert_eq!(history.prefix(stored), whole.prefix(stored), "cut at {length}");
    assert_eq!(history.len() - stored, session.load_report().interrupted_calls.len(), "cut at {length}");
    assert_each_call_has_one_result(&history);

    run_a_turn(&session);
    let grown = session.history();
    drop(session);
    let session = Session::open(path, fixed()).unwrap();
    assert_eq!((session.history(), session.load_report()), (grown, &LoadReport::default()), "cut at {length}");
}

#[test]
fn calls_without_a_result_get_one_that_says_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::create(directory.path(), fixed()).unwrap();
    session.begin_turn().unwrap();
    let calls = ["c1", "c2", "c3"].map(|id| ToolCall::new(id, "shell", Map::new()));
    session.append(Message::assistant("").with_tool_calls(calls.into())).unwrap();
    session.call_started("c1").unwrap();
    session.call_started("c2").unwrap();
    session.append(Message::tool_result("c2", "done")).unwrap();
    drop(session);

    let session = Session::open(directory.path(), fixed()).unwrap();
    let report = session.load_report();
    assert_eq!(report.interrupted_calls, ["c1", "c3"]);
    assert_eq!(report.interrupted_turn.as_deref(), Some("t1"));
    let history = session.history();
    assert_each_call_has_one_result(&history);
    let [running, waiting] = [&history[2], &history[3]];
    assert_eq!(
        running.text(),
        "interrupted: the process ended while this call was running, so it may have taken effect in part"
    );
    assert_eq!(waiting.text(), "interrupted: the process ended before this call had a result");
    assert!(running.is_error && waiting.is_error && running.hint.is_some());
    assert_eq!(running.extra["cause"], "interrupted");

    assert_eq!(session.begin_turn().unwrap(), "t2");
    drop(session);
    let entries = scan(&fs::read(transcript(directory.path())).unwrap()).entries;
    let ended = entries.iter().find_map(|entry| match entry {
        Entry::TurnEnd { turn_id, status, .. } => Some((turn_id.as_str(), status.as_str())),
        _ => None,
    });
    assert_eq!(ended, Some(("t1", "interrupted")));
}

#[test]
fn damage_in_the_middle_is_refused_until_recovery_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run_a_turn(&Session::create(path, fixed()).unwrap());
    let whole = fs::read(transcript(path)).unwrap();
    let damaged = String::from_utf8(whole).unwrap().replace("a.txt", "A.txt");
    fs::write(transcript(path), &damaged).unwrap();
    let before = files(path);

    let error = Session::open(path, fixed()).unwrap_err();
    assert!(matches!(error, SessionError::Damaged { line: 6, .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with("line 6 of ") && message.contains("checksum") && message.contains("recover"),
        "{message}"
    );
    assert_eq!(files(path), before, "a refusal changes nothing");

    let session = Session::open(path, SessionOptions { recover: true, ..fixed() }).unwrap();
    let repair = session.load_report().repair.clone().unwrap();
    assert_eq!((repair.line, repair.kept_as.as_path()), (6, path.join("transcript.damaged-1").as_path()));
    assert_eq!(fs::read_to_string(repair.kept_as).unwrap(), damaged);
    assert_eq!(texts(&session.history())[..2], ["look at 文件 and the emoji 🎉", "I will"]);
    assert_each_call_has_one_result(&session.history());
}

#[test]
fn a_newer_version_is_refused_and_nothing_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let newer = br#"{"version": 2, "shape": "unknown"}"#;
    fs::write(path.join("session.json"), newer).unwrap();
    fs::write(transcript(path), b"torn {").unwrap();
    let before: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let bytes = files(path);
    for recover in [false, true] {
        let error = Session::open_or_create(path, SessionOptions { recover, ..SessionOptions::default() }).unwrap_err();
        assert!(matches!(error, SessionError::NewerVersion { found: 2, supported: 1, .. }), "{error}");
        assert!(
            error.to_string().ends_with("has format version 2, and this hookwright reads up to 1; upgrade hookwright")
        );
    }
    assert_eq!(files(path), bytes);
    assert_eq!(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), before);
}

#[test]
fn what_an_entry_of_an_unknown_kind_says_survives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run_a_turn(&Session::create(path, fixed()).unwrap());
    let mut bytes = fs::read(transcript(path)).unwrap();
    let strange = serde_json::from_value(json!({"kind": "weather", "sun": true})).unwrap();
    encode(&Entry::Other(strange), &mut bytes).unwrap();
    fs::write(transcript(path), &bytes).unwrap();

    let session = Session::open(path, fixed()).unwrap();
    session.append(Message::user("go on")).unwrap();
    assert_eq!(session.history().len(), 6);
    assert!(fs::read(transcript(path)).unwrap().starts_with(&bytes));
}

#[test]
fn a_lost_session_file_is_made_again_from_the_transcript() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    run_a_turn(&Session::create(path, fixed()).unwrap());
    fs::remove_file(path.join("session.json")).unwrap();
    let session = Session::open(path, SessionOptions::default()).unwrap();
    assert_eq!((session.id(), session.history().len()), ("s1", 5));
    assert!(path.join("session.json").exists());
}

#[test]
fn opening_says_what_is_wrong_with_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    assert!(matches!(Session::open(&path, fixed()), Err(SessionError::NotFound { .. })));
    assert!(!path.exists(), "looking leaves no trace");
    drop(Session::open_or_create(&path, fixed()).unwrap());
    assert!(matches!(Session::create(&path, fixed()), Err(SessionError::Exists { .. })));
    let other = SessionOptions { id: Some("s2".into()), ..fixed() };
    assert!(matches!(Session::open(&path, other), Err(SessionError::OtherId { .. })));
    let file = path.join("session.json");
    let error = Session::open_or_create(&file, fixed()).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
    fs::write(&file, "{}").unwrap();
    let error = Session::open(&path, fixed()).unwrap_err();
    assert!(error.to_string().contains("session.json cannot be used: missing field `version`"), "{error}");
}

#[test]
fn the_line_that_the_documentation_shows_is_one() {
    let documentation = include_str!("../../docs/transcript-format.md");
    let line = documentation.lines().map(str::trim).find(|line| line.starts_with("{\"len\"")).unwrap();
    let scan = scan(format!("{line}\n").as_bytes());
    assert_eq!((scan.entries, scan.fault), (vec![Entry::Reset { at: Timestamp::from_millis(0) }], None));
}

#[test]
fn one_turn_at_a_time() {
    let session = Session::in_memory(fixed());
    let turn = session.begin_turn().unwrap();
    let error = session.begin_turn().unwrap_err();
    assert!(error.is_busy());
    assert_eq!(
        error.to_string(),
        "the session s1 is in the middle of turn t1; wait for its end, or run on another session"
    );
    assert!(session.reset().unwrap_err().is_busy());
    assert!(matches!(session.end_turn("t7", "success"), Err(SessionError::NotInTurn { .. })));
    session.end_turn(&turn, "success").unwrap();
    assert!(matches!(session.end_turn(&turn, "success"), Err(SessionError::NotInTurn { .. })));
    assert_eq!(session.begin_turn().unwrap(), "t2");
}

#[test]
fn a_reset_empties_the_history_and_keeps_the_file_and_the_numbering() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::create(directory.path(), fixed()).unwrap();
    run_a_turn(&session);
    let before = fs::read(transcript(directory.path())).unwrap();
    session.reset().unwrap();
    assert!(session.history().is_empty());
    assert_eq!(session.append(Message::user("again")).unwrap().id.as_deref(), Some("m6"));
    drop(session);
    assert!(fs::read(transcript(directory.path())).unwrap().starts_with(&before));
    let session = Session::open(directory.path(), fixed()).unwrap();
    assert_eq!((texts(&session.history()), session.turn_count()), (vec!["again".to_owned()], 1));
}

#[test]
fn a_fork_goes_its_own_way_from_a_complete_history() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::in_memory(fixed());
    run_a_turn(&session);
    session.append(Message::assistant("").with_tool_calls(vec![ToolCall::new("c9", "ls", Map::new())])).unwrap();

    let target = directory.path().join("fork");
    let fork = session.fork(Some(&target), SessionOptions::default()).unwrap();
    assert_eq!((fork.forked_from(), fork.agent(), fork.cwd()), (Some("s1"), Some("helper"), Path::new("/project")));
    assert_ne!(fork.id(), "s1");
    assert_each_call_has_one_result(&fork.history());
    assert!(Arc::ptr_eq(&fork.history()[0], &session.history()[0]), "messages are shared");
    assert_eq!(fork.append(Message::user("here")).unwrap().id.as_deref(), Some("m8"));
    session.append(Message::tool_result("c9", "there")).unwrap();
    assert_eq!((session.history().len(), fork.history().len()), (7, 8));
    let history = fork.history();
    assert_eq!(fork.fork(None, SessionOptions::default()).unwrap().history(), history);
    drop(fork);
    let fork = Session::open(&target, SessionOptions::default()).unwrap();
    assert_eq!((fork.history(), fork.forked_from()), (history, Some("s1")));
}

#[test]
fn a_closed_session_can_be_read_and_opened_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::create(directory.path(), fixed()).unwrap();
    run_a_turn(&session);
    session.close();
    session.close();
    assert!(matches!(session.append(Message::user("x")), Err(SessionError::Closed { .. })));
    assert_eq!(session.history().len(), 5);
    assert_eq!(Session::open(directory.path(), fixed()).unwrap().history(), session.history());
}

#[test]
fn a_long_history_is_shared_and_not_copied() {
    let session = Session::in_memory(fixed());
    let mut held = Vec::new();
    for number in 0..10_000 {
        session.append(Message::user(number.to_string())).unwrap();
        held.push(session.history());
    }
    let [first, second] = [session.history(), session.history()];
    assert_eq!(first.len(), 10_000);
    assert!(Arc::ptr_eq(&first[5_000], &second[5_000]) && Arc::ptr_eq(&first[0], &held[0][0]));
    // One reference for each block in which the history was laid out while it grew, not one for each snapshot.
    assert!(Arc::strong_count(&first[0]) < 16, "{}", Arc::strong_count(&first[0]));
}

#[test]
fn a_directory_that_is_open_already_names_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::create(directory.path(), fixed()).unwrap();
    let error = Session::open(directory.path(), fixed()).unwrap_err();
    assert!(error.is_busy());
    assert!(error.to_string().contains(&format!("in use by this process ({})", std::process::id())), "{error}");
    drop(session);
    Session::open(directory.path(), fixed()).unwrap();
}

/// Not a test by itself: the other process of the tests below, which start this binary with `CHILD_SESSION` set.
#[test]
fn child_process() {
    let Ok(path) = std::env::var("CHILD_SESSION") else { return };
    let session = Session::open_or_create(path, SessionOptions::default()).unwrap();
    let mut out = std::io::stdout().lock();
    for number in 0.. {
        session.append(Message::user(format!("{number} {}", "x".repeat(number % 5000)))).unwrap();
        // Blocks once the pipe is full and nobody reads.
        writeln!(out, "appended {number}").and_then(|()| out.flush()).unwrap();
    }
}

/// Starts a process that appends to the session at `path` until it is killed, and gives its output.
fn start_child(path: &Path) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_process", "--exact", "--nocapture"])
        .env("CHILD_SESSION", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines.filter(|line| line.starts_with("appended ")))
}

#[test]
fn a_second_process_is_refused_until_the_first_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, mut lines) = start_child(directory.path());
    assert!(lines.next().is_some(), "the child holds the session");
    let error = Session::open(directory.path(), SessionOptions::default()).unwrap_err();
    assert!(matches!(error, SessionError::Locked { pid: Some(pid), .. } if pid == child.id()), "{error}");
    assert!(error.to_string().contains(&format!("in use by process {}", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    Session::open(directory.path(), SessionOptions::default()).unwrap();
}

#[test]
fn a_killed_process_loses_no_message_that_it_had_appended() {
    let directory = tempfile::tempdir().unwrap();
    let mut appended = 0;
    for round in 1..=8 {
        let (mut child, mut lines) = start_child(directory.path());
        for _ in 0..round * 20 {
            lines.next().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        appended += round * 20 + lines.count();

        let session = Session::open(directory.path(), SessionOptions::default()).unwrap();
        let stored = session.history().len();
        // The child may have died between appending and saying so.
        assert!((appended..=appended + 1).contains(&stored), "{stored} stored, {appended} acknowledged");
        appended = stored;
    }
}
