//! The course of one run, from start to the end of the group.

use std::future::pending;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::time::{sleep, sleep_until, timeout};

use super::capture::Capture;
use super::leader::{KILLED_LEADER_WAIT, Leader};
use super::pipes::{Pipes, Progress};
use super::spec::{ProcessError, ProcessOutput, ProcessSpec, Status, Stdin, StopReason};

/// How often a group that was asked to end is looked at after its leader is gone; there is no event for that.
const GROUP_LOOK: Duration = Duration::from_millis(20);

/// Runs a child process to its end, which comes in bounded time once the leader exits or the timeout is over.
///
/// A non-zero exit, a death by signal, a timeout and an overflow are results, see [`ProcessOutput`].
/// Must be called on a tokio runtime with I/O and time enabled. Dropping the future kills the group.
///
/// # Errors
/// The program cannot be started, or the system does not let us watch it.
pub async fn run(spec: ProcessSpec) -> Result<ProcessOutput, ProcessError> {
    let started = Instant::now();
    let mut child = command(&spec).spawn().map_err(|source| not_startable(&spec, source))?;
    let lost_track = |source| ProcessError::LostTrack { program: program(&spec), source };
    let pipes = Pipes::new(&mut child, &spec);
    let mut leader = Leader::new(child).map_err(lost_track)?;
    // Only now that the leader is in charge may an error end the run: it kills the group.
    let mut pipes = pipes.map_err(lost_track)?;

    let deadline = spec.timeout.and_then(|timeout| started.checked_add(timeout));
    let mut stopped = supervise(&mut leader, &mut pipes, deadline).await.map_err(lost_track)?;
    pipes.stop_feeding();
    let status = if stopped.is_none() {
        drain(&mut pipes, spec.drain).await;
        leader.reap()
    } else {
        end_group(&mut leader, &mut pipes, spec.grace).await
    }
    .map_err(lost_track)?;
    let leftover_killed = leader.group_lives();
    leader.kill_group();
    pipes.sweep();
    stopped = stopped.or_else(|| pipes.overflowed().map(StopReason::Overflowed));
    let (stdout, stderr) = pipes.finish();
    Ok(ProcessOutput {
        status: status_of(status),
        stdout,
        stderr,
        elapsed: started.elapsed(),
        stopped,
        leftover_killed,
    })
}

/// Moves bytes until the leader exits (`None`) or has to be stopped.
async fn supervise(
    leader: &mut Leader,
    pipes: &mut Pipes,
    deadline: Option<Instant>,
) -> io::Result<Option<StopReason>> {
    let expired = async {
        match deadline {
            Some(deadline) => sleep_until(deadline.into()).await,
            None => pending().await,
        }
    };
    tokio::pin!(expired);
    loop {
        tokio::select! {
            // In this order: a process that made it counts as having made it, and a flood does not hide the deadline.
            biased;
            exited = leader.exited() => return exited.map(|()| None),
            () = &mut expired => return Ok(Some(StopReason::TimedOut)),
            progress = pipes.progress(), if !pipes.is_closed() => {
                if let Progress::Overflowed(stream) = progress {
                    return Ok(Some(StopReason::Overflowed(stream)));
                }
            }
        }
    }
}

/// Lets the output of a leader that exited arrive.
async fn drain(pipes: &mut Pipes, patience: Duration) {
    // Usually everything is in the pipes, and their ends too: then there is nothing to wait for.
    pipes.sweep();
    if !pipes.is_closed() {
        let _ = timeout(patience, pipes.until_closed()).await;
    }
}

/// Ends the leader, and the group as far as it listens: TERM, then KILL when the grace is over, which is early if
/// nothing is left. Last words are still read. Returns the status of the leader.
async fn end_group(leader: &mut Leader, pipes: &mut Pipes, grace: Duration) -> io::Result<ExitStatus> {
    leader.terminate_group();
    let mut status = None;
    let group_ended = async {
        loop {
            tokio::select! {
                biased;
                exited = leader.exited() => break exited?,
                _ = pipes.progress(), if !pipes.is_closed() => {}
            }
        }
        status = Some(leader.reap()?);
        while leader.group_lives() {
            tokio::select! {
                () = sleep(GROUP_LOOK) => {}
                _ = pipes.progress(), if !pipes.is_closed() => {}
            }
        }
        io::Result::Ok(())
    };
    if let Ok(failed @ Err(_)) = timeout(grace, group_ended).await {
        failed?;
    }
    if let Some(status) = status {
        return Ok(status);
    }
    leader.kill_group();
    match timeout(KILLED_LEADER_WAIT, leader.exited()).await {
        Ok(exited) => exited.and_then(|()| leader.reap()),
        // It cannot die now; the reaper waits for it. It has been killed, and that is what it will say.
        Err(_) => Ok(ExitStatus::from_raw(Signal::KILL.as_raw())),
    }
}

fn command(spec: &ProcessSpec) -> Command {
    let mut command = Command::new(&spec.program);
    command.args(&spec.arguments);
    if spec.clear_environment {
        command.env_clear();
    }
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &spec.working_directory {
        command.current_dir(directory);
    }
    command
        .stdin(if matches!(spec.stdin, Stdin::Null) { Stdio::null() } else { Stdio::piped() })
        .stdout(output(spec.stdout))
        .stderr(output(spec.stderr))
        // Nothing that needs code between fork and exec: the system's fast way to start a process stays open.
        .process_group(0);
    command
}

fn output(policy: Capture) -> Stdio {
    if policy == Capture::Discard { Stdio::null() } else { Stdio::piped() }
}

fn program(spec: &ProcessSpec) -> String {
    spec.program.to_string_lossy().into_owned()
}

/// The system says "no such file" for a missing program and for a missing directory; the user should not have to guess.
fn not_startable(spec: &ProcessSpec, source: io::Error) -> ProcessError {
    match &spec.working_directory {
        Some(directory) if !directory.is_dir() => {
            ProcessError::NoSuchDirectory { program: program(spec), directory: directory.clone() }
        }
        _ => ProcessError::NotStartable { program: program(spec), source },
    }
}

fn status_of(status: ExitStatus) -> Status {
    match status.code() {
        Some(code) => Status::Exited(code),
        // A process that was waited for has exited or was killed.
        None => Status::Signaled(status.signal().unwrap_or_default()),
    }
}
