//! The process that was started, and the group it leads.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The leader of a process group, with the duty to leave neither a running group nor a zombie behind.
///
/// The leader stays unreaped for as long as its output drains: its number, which is the group's, then cannot be given
/// to another process. Between reaping and the last signal lies a moment, or the ticks of a grace period; numbers are
/// issued in cyclic order, so the whole number space would have to be used up within it.
#[derive(Debug)]
pub(super) struct Leader {
    /// `None` once it is reaped.
    child: Option<Child>,
    group: Pid,
    watch: ExitWatch,
    /// Whether there may be something of the group to kill.
    group_may_live: bool,
}

impl Leader {
    /// Takes charge of a child that was started as the leader of a new group.
    pub(super) fn new(mut child: Child) -> io::Result<Self> {
        // A process id is positive and fits, so this cannot fail; if it could, the child would be killed alone.
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            let _ = child.kill();
            return Err(io::Error::other("the process has no usable id"));
        };
        match ExitWatch::new(group) {
            Ok(watch) => Ok(Self { child: Some(child), group, watch, group_may_live: true }),
            Err(error) => {
                let _ = kill_process_group(group, Signal::KILL);
                reap_behind(child);
                Err(error)
            }
        }
    }

    /// Waits until the leader has exited, without reaping it. Can be dropped and called again.
    pub(super) async fn exited(&mut self) -> io::Result<()> {
        self.watch.exited().await
    }

    /// Reaps the leader, which must have exited.
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(io::Error::other("the process was reaped before")),
        }
    }

    /// Asks the group to end.
    pub(super) fn terminate_group(&self) {
        let _ = kill_process_group(self.group, Signal::TERM);
    }

    /// Kills the group. A group that is known to have ended is left alone.
    pub(super) fn kill_group(&mut self) {
        if std::mem::take(&mut self.group_may_live) {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }

    /// Whether a process of the group runs; for a leader that is reaped.
    pub(super) fn group_lives(&mut self) -> bool {
        self.group_may_live = group_runs(self.group);
        self.group_may_live
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.kill_group();
        if let Some(child) = self.child.take() {
            reap_behind(child);
        }
    }
}

/// Whether a process of the group runs. Dead ones that wait for their parent do not count: an orphan's parent is the
/// init process, which in a container may be slow to reap, or never do it.
fn group_runs(group: Pid) -> bool {
    // The usual case, and it is cheap: there is nobody.
    test_kill_process_group(group).is_ok() && !only_dead_members(group)
}

/// Whether the process table shows that no member of the group runs.
#[cfg(target_os = "linux")]
fn only_dead_members(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let group = group.to_string();
    let mut seen_a_process = false;
    for process in processes.flatten() {
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        // After the name, which may hold anything, in parentheses: state, parent, group.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        let (state, member_of) = (fields.next(), fields.nth(1));
        seen_a_process |= member_of.is_some();
        if member_of == Some(group.as_str()) && !matches!(state, Some("Z" | "X")) {
            return false;
        }
    }
    seen_a_process
}

/// Whether the process table shows that no member of the group runs; it is not looked at here.
#[cfg(not(target_os = "linux"))]
fn only_dead_members(_group: Pid) -> bool {
    false
}

/// Reaps a child that was just killed: at once if it is dead by now, else on a thread, which lives as long as the
/// system takes to end the process. A thread and not a task, because the runtime may be going away.
fn reap_behind(mut child: Child) {
    if matches!(child.try_wait(), Ok(None)) {
        let _ = std::thread::Builder::new().name("hookwright-reaper".into()).stack_size(64 * 1024).spawn(move || {
            let _ = child.wait();
        });
    }
}

/// How long a killed leader is waited for before it is left to the reaper (a process in uninterruptible sleep).
pub(super) const KILLED_LEADER_WAIT: Duration = Duration::from_secs(1);

/// Tells when a child has exited, without reaping it.
#[derive(Debug)]
enum ExitWatch {
    /// A process file descriptor, readable once the process has exited.
    #[cfg(target_os = "linux")]
    Descriptor(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    /// Where there are none: look at each SIGCHLD.
    ChildSignal { leader: Pid, signals: tokio::signal::unix::Signal },
}

impl ExitWatch {
    fn new(leader: Pid) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(descriptor) = rustix::process::pidfd_open(leader, rustix::process::PidfdFlags::empty()) {
            return watched(descriptor).map(Self::Descriptor);
        }
        Self::child_signal(leader)
    }

    fn child_signal(leader: Pid) -> io::Result<Self> {
        let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
        Ok(Self::ChildSignal { leader, signals })
    }

    async fn exited(&mut self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Descriptor(descriptor) => descriptor.readable().await.map(drop),
            Self::ChildSignal { leader, signals } => {
                use rustix::process::{WaitId, WaitIdOptions, waitid};
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                // The stream was opened before this first look, so an exit between the two is not missed.
                while waitid(WaitId::Pid(*leader), options)?.is_none() {
                    if signals.recv().await.is_none() {
                        return Err(io::Error::other("the signal stream ended"));
                    }
                }
                Ok(())
            }
        }
    }
}

/// Has the runtime watch a process file descriptor.
#[cfg(target_os = "linux")]
#[allow(
    deprecated,
    reason = "the new form is unsafe, against types that change their descriptor while they are watched; OwnedFd never does"
)]
fn watched(descriptor: std::os::fd::OwnedFd) -> io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    tokio::io::unix::AsyncFd::with_interest(descriptor, tokio::io::Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_child_signal_watch_sees_an_exit_before_and_after_it_waits() {
        for command in ["exit 3", "read line; exit 3"] {
            let mut child = std::process::Command::new("/bin/sh")
                .args(["-c", command])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let leader = Pid::from_raw(child.id() as i32).unwrap();
            let mut watch = ExitWatch::child_signal(leader).unwrap();
            let stdin = child.stdin.take();
            let (exited, ()) = tokio::join!(watch.exited(), async { drop(stdin) });
            exited.unwrap();
            assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        }
    }
}
