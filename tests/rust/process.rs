//! The runner for child processes, clause by clause, with children that misbehave.

use std::path::Path;
use std::time::{Duration, Instant};

use hookwright::process::{Capture, OutputStream, ProcessError, ProcessOutput, ProcessSpec, Status, StopReason, run};

/// Far above what any of these runs needs and far below what the misbehaving children would take.
const SOON: Duration = Duration::from_secs(15);

async fn shell(command: &str) -> ProcessOutput {
    run(ProcessSpec::shell(command)).await.unwrap()
}

fn pid_in(text: &str) -> i32 {
    text.trim().parse().unwrap_or_else(|_| panic!("no process id in {text:?}"))
}

/// Waits until the process has ended: a process that is not there or a zombie has.
#[cfg(target_os = "linux")]
fn wait_until_ended(pid: i32) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Ok(descriptor) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return };
    let limit = Timespec { tv_sec: SOON.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "process {pid} is still running");
}

/// Waits until every process of the group has ended.
#[cfg(target_os = "linux")]
fn wait_until_group_ended(group: i32) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // After the name, which may hold anything, in parentheses: state, parent, group.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        if fields[2] == group.to_string() {
            wait_until_ended(pid_in(&entry.file_name().to_string_lossy()));
        }
    }
}

/// Waits until nobody has to reap the process any more.
///
/// The reaper sends no event, so this is the one place that looks repeatedly.
#[cfg(target_os = "linux")]
fn wait_until_reaped(pid: i32) {
    wait_until_ended(pid);
    let started = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(started.elapsed() < SOON, "process {pid} is still a zombie");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    for (command, status, said) in [
        ("exit 0", Status::Exited(0), "exited with code 0"),
        ("exit 2", Status::Exited(2), "exited with code 2"),
        ("no-such-command-anywhere", Status::Exited(127), "exited with code 127"),
        ("/etc/passwd", Status::Exited(126), "exited with code 126"),
        ("kill -SEGV $$", Status::Signaled(11), "was killed by SIGSEGV (11)"),
        ("kill -TERM $$", Status::Signaled(15), "was killed by SIGTERM (15)"),
    ] {
        let output = shell(command).await;
        assert_eq!((output.status, output.status.to_string().as_str()), (status, said), "{command}");
        assert_eq!((output.stopped, output.leftover_killed), (None, false), "{command}");
    }
}

#[tokio::test]
async fn a_missing_program_and_a_missing_directory_are_different_errors() {
    let error = run(ProcessSpec::new("/no/such/program")).await.unwrap_err();
    assert!(matches!(error, ProcessError::NotStartable { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot start `/no/such/program`: "), "{error}");

    let error = run(ProcessSpec::shell("true").working_directory("/no/such/directory")).await.unwrap_err();
    assert!(matches!(error, ProcessError::NoSuchDirectory { .. }), "{error}");
    assert!(error.to_string().contains("working directory /no/such/directory is not a directory"), "{error}");

    let error = run(ProcessSpec::shell("x".repeat(3 << 20))).await.unwrap_err();
    assert!(matches!(error, ProcessError::NotStartable { .. }), "{error}");
}

#[tokio::test]
async fn directory_environment_and_arguments_reach_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let spec = ProcessSpec::shell("pwd -P; echo \"$GREETING\"").working_directory(folder.path());
    let output = run(spec.environment("GREETING", "good day 世界")).await.unwrap();
    let expected = format!("{}\ngood day 世界\n", folder.path().canonicalize().unwrap().display());
    assert_eq!(output.stdout.text(), expected);

    let mut spec = ProcessSpec::new("/usr/bin/env").environment("ONLY", "this");
    spec.clear_environment = true;
    assert_eq!(run(spec).await.unwrap().stdout.text(), "ONLY=this\n");

    let output = run(ProcessSpec::new("printf").argument("%s|").argument("a b").argument("$x")).await.unwrap();
    assert_eq!(output.stdout.text(), "a b|$x|");
}

#[tokio::test]
async fn without_a_payload_the_child_finds_the_end_of_its_input() {
    assert_eq!(shell("cat; echo done").await.stdout.text(), "done\n");
}

#[tokio::test]
async fn a_payload_that_nobody_reads_is_fine() {
    let payload = vec![b'x'; 8 << 20];
    for command in ["echo ok", "exec 0<&-; echo ok", "head -c 1 >/dev/null; echo ok"] {
        let output = run(ProcessSpec::shell(command).stdin(payload.clone())).await.unwrap();
        assert_eq!((output.status, output.stdout.text().as_str()), (Status::Exited(0), "ok\n"), "{command}");
        assert!(output.elapsed < SOON);
    }
}

#[tokio::test]
async fn output_written_before_the_input_is_read_does_not_deadlock() {
    let payload = vec![b'x'; 8 << 20];
    let spec = ProcessSpec::shell("head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2; wc -c").stdin(payload);
    let output = run(spec).await.unwrap();
    assert_eq!(output.stdout.total(), (1 << 20) + 8);
    assert_eq!(output.stdout.bytes()[1 << 20..].trim_ascii(), b"8388608");
    assert_eq!(output.stderr.total(), 1 << 20);
}

#[tokio::test]
async fn a_payload_arrives_byte_for_byte_wherever_it_is_cut() {
    let text = "漢字 and emoji 😀👩‍👩‍👧 é\r\n\0".repeat(9_000);
    assert!(text.len() > 300_000);
    let random = &mut fastrand::Rng::with_seed(7);
    for _ in 0..40 {
        let cut = random.usize(..=text.len());
        let payload = text.as_bytes()[..cut].to_vec();
        let output = run(ProcessSpec::new("cat").stdin(payload.clone())).await.unwrap();
        assert!(output.stdout.bytes() == payload, "cut at {cut}");
        let spec = ProcessSpec::shell("cksum").stdin(payload.clone());
        let counted: usize = run(spec).await.unwrap().stdout.text().split(' ').nth(1).unwrap().trim().parse().unwrap();
        assert_eq!(counted, cut);
    }
}

#[tokio::test]
async fn ten_children_share_one_payload() {
    let payload = bytes::Bytes::from(vec![b'y'; 500_000]);
    let runs: Vec<_> = (0..10).map(|_| tokio::spawn(run(ProcessSpec::new("cat").stdin(payload.clone())))).collect();
    for one in runs {
        assert!(one.await.unwrap().unwrap().stdout.bytes() == payload);
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_and_shown_replaced() {
    let output = shell(r"printf '\377a\000b'").await;
    assert_eq!(output.stdout.bytes(), b"\xffa\0b");
    assert_eq!(output.stdout.text(), "\u{fffd}a\0b");
}

#[tokio::test]
async fn a_background_child_that_holds_the_pipes_does_not_delay_the_result() {
    let output = shell("sleep 60 & echo $!").await;
    assert!(output.elapsed < SOON, "{:?}", output.elapsed);
    assert_eq!((output.status, output.leftover_killed, output.stopped), (Status::Exited(0), true, None));
    #[cfg(target_os = "linux")]
    wait_until_ended(pid_in(&output.stdout.text()));
}

#[tokio::test]
async fn a_background_child_that_holds_no_pipe_is_killed_as_well() {
    let output = shell("sleep 60 >/dev/null 2>&1 </dev/null & echo $!").await;
    assert!(output.elapsed < SOON && output.leftover_killed);
    #[cfg(target_os = "linux")]
    wait_until_ended(pid_in(&output.stdout.text()));
}

#[tokio::test]
async fn a_background_child_gets_the_drain_time_to_finish_its_output() {
    let mut spec = ProcessSpec::shell("(read line; echo late) & echo early");
    spec.drain = SOON;
    let output = run(spec).await.unwrap();
    assert_eq!(output.stdout.text().lines().count(), 2);
    assert!(output.elapsed < SOON, "the end of the output is the end of the drain");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_group_does_not_delay_the_result() {
    let folder = tempfile::tempdir().unwrap();
    // The leader exits when the other one, which holds its outputs, has left.
    let command = "mkfifo left; (setsid sh -c 'echo $$; echo yes >left; exec sleep 60' &); read word <left";
    let output = run(ProcessSpec::shell(command).working_directory(folder.path())).await.unwrap();
    assert!(output.elapsed < SOON, "{:?}", output.elapsed);
    assert_eq!((output.status, output.leftover_killed), (Status::Exited(0), false));
    // It is nobody's to kill but this test's.
    let pid = rustix::process::Pid::from_raw(pid_in(&output.stdout.text())).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn closed_outputs_do_not_end_the_wait() {
    let output = shell("exec >&- 2>&-; sleep 0.2; exit 4").await;
    assert_eq!((output.status, output.stopped), (Status::Exited(4), None));
    assert!(output.elapsed >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_hanging_process_is_ended_at_its_timeout_with_all_it_started() {
    let mut spec = ProcessSpec::shell("echo $$; for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; sleep 60");
    spec.timeout = Some(Duration::from_secs(1));
    let output = run(spec).await.unwrap();
    assert!(output.timed_out());
    assert_eq!(output.status, Status::Signaled(15));
    assert!(output.elapsed >= Duration::from_secs(1) && output.elapsed < SOON, "{:?}", output.elapsed);
    #[cfg(target_os = "linux")]
    wait_until_group_ended(pid_in(&output.stdout.text()));
}

#[tokio::test]
async fn a_group_that_ends_on_request_does_not_use_up_its_grace() {
    let mut spec = ProcessSpec::shell("sleep 60 & sleep 60").timeout(Duration::from_millis(50));
    spec.grace = Duration::from_secs(50);
    let output = run(spec).await.unwrap();
    assert!(output.timed_out() && output.elapsed < SOON, "{:?}", output.elapsed);
}

#[tokio::test]
async fn last_words_and_exit_code_of_a_process_that_was_asked_to_end_are_kept() {
    let command = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut spec = ProcessSpec::shell(command).timeout(Duration::from_secs(1));
    spec.grace = SOON;
    let output = run(spec).await.unwrap();
    assert!(output.timed_out());
    assert_eq!((output.status, output.stdout.text().as_str()), (Status::Exited(5), "ready\nbye\n"));
}

#[tokio::test]
async fn a_member_of_the_group_may_clean_up_after_its_leader_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let command = "sh -c 'trap \"sleep 0.2; echo clean > cleaned; exit\" TERM; echo ready; \
                   while :; do sleep 0.01; done' & wait";
    let mut spec = ProcessSpec::shell(command).working_directory(folder.path()).timeout(Duration::from_secs(1));
    spec.grace = SOON;
    let output = run(spec).await.unwrap();
    assert_eq!((output.status, output.timed_out()), (Status::Signaled(15), true));
    assert_eq!(std::fs::read_to_string(folder.path().join("cleaned")).unwrap(), "clean\n");
}

#[tokio::test]
async fn a_process_that_ignores_the_request_is_killed_after_the_grace() {
    let spec = ProcessSpec::shell("trap '' TERM; echo $$; sleep 60").timeout(Duration::from_secs(1));
    let output = run(spec).await.unwrap();
    assert_eq!((output.status, output.timed_out()), (Status::Signaled(9), true));
    assert!(output.elapsed >= Duration::from_millis(1500) && output.elapsed < SOON, "{:?}", output.elapsed);
    #[cfg(target_os = "linux")]
    wait_until_group_ended(pid_in(&output.stdout.text()));
}

#[tokio::test]
async fn a_stopped_process_is_killed() {
    let spec = ProcessSpec::shell("kill -STOP $$; sleep 60").timeout(Duration::from_secs(1));
    let output = run(spec).await.unwrap();
    assert_eq!((output.status, output.timed_out()), (Status::Signaled(9), true));
}

#[tokio::test]
async fn a_flood_on_stdout_ends_the_process_early() {
    let mut spec = ProcessSpec::shell("yes");
    spec.stdout = Capture::Fail { cap: 100_000 };
    let output = run(spec).await.unwrap();
    assert_eq!(output.stopped, Some(StopReason::Overflowed(OutputStream::Stdout)));
    assert_eq!(output.overflowed(), Some(OutputStream::Stdout));
    assert_eq!((output.stdout.bytes().len(), output.stdout.is_truncated()), (100_000, true));
    assert!(output.elapsed < SOON);
}

#[tokio::test]
async fn the_default_cap_lets_eight_mebibytes_pass_and_not_one_byte_more() {
    let output = shell("head -c 8388608 /dev/zero").await;
    assert_eq!((output.stopped, output.stdout.bytes().len()), (None, 8 << 20));
    let output = shell("head -c 8388609 /dev/zero").await;
    assert_eq!(output.overflowed(), Some(OutputStream::Stdout));
}

#[tokio::test]
async fn an_overflow_that_is_seen_after_the_exit_is_reported() {
    let mut spec = ProcessSpec::shell("printf 12345678901");
    spec.stdout = Capture::Fail { cap: 10 };
    assert_eq!(run(spec).await.unwrap().overflowed(), Some(OutputStream::Stdout));
}

#[tokio::test]
async fn a_flood_on_stderr_is_cut_and_the_process_goes_on() {
    let output = shell("head -c 3000000 /dev/zero >&2; echo done").await;
    assert_eq!((output.status, output.stdout.text().as_str()), (Status::Exited(0), "done\n"));
    assert_eq!((output.stderr.bytes().len(), output.stderr.total()), (65_536, 3_000_000));
    assert_eq!((output.stderr.missing(), output.stopped), (2_934_464, None));
}

#[tokio::test]
async fn head_and_tail_of_a_long_output_are_kept() {
    let mut spec = ProcessSpec::shell("seq 1 100000");
    spec.stdout = Capture::HeadTail { cap: 20 };
    let output = run(spec).await.unwrap();
    assert_eq!(output.stdout.text(), "1\n2\n3\n4\n5\n[... 588875 of 588895 bytes left out ...]\n99\n100000\n");
}

#[tokio::test]
async fn discarded_output_costs_nothing() {
    let mut spec = ProcessSpec::shell("seq 1 100000; echo told >&2");
    spec.stdout = Capture::Discard;
    let output = run(spec).await.unwrap();
    assert_eq!((output.stdout.total(), output.stderr.text().as_str()), (0, "told\n"));
}

#[tokio::test]
async fn a_timeout_beyond_reckoning_is_no_timeout() {
    let output = run(ProcessSpec::shell("echo ok").timeout(Duration::MAX)).await.unwrap();
    assert_eq!(output.stdout.text(), "ok\n");
}

/// Starts a process that opens a pipe file when it runs, and returns its number when it does.
#[cfg(target_os = "linux")]
fn started_process(folder: &Path) -> (ProcessSpec, impl Future<Output = i32> + 'static) {
    let pipe = folder.join("ready");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let spec = ProcessSpec::shell("trap '' TERM; echo $$ > ready; sleep 60").working_directory(folder);
    let ready =
        async move { pid_in(&tokio::task::spawn_blocking(|| std::fs::read_to_string(pipe)).await.unwrap().unwrap()) };
    (spec, ready)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_the_future_kills_the_group_at_once_and_leaves_no_zombie() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, ready) = started_process(folder.path());
    let pid = tokio::select! {
        output = run(spec) => panic!("it should not end: {output:?}"),
        pid = ready => pid,
    };
    wait_until_group_ended(pid);
    wait_until_reaped(pid);
}

#[cfg(target_os = "linux")]
#[test]
fn shutting_the_runtime_down_kills_the_group_and_leaves_no_zombie() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, ready) = started_process(folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let task = runtime.spawn(run(spec));
    let pid = runtime.block_on(ready);
    runtime.shutdown_timeout(SOON);
    wait_until_group_ended(pid);
    wait_until_reaped(pid);
    assert!(task.is_finished());
}
