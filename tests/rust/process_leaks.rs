//! What two hundred timeouts in a row leave behind: nothing. In a process of its own, whose descriptors and children
//! can be counted.
#![cfg(target_os = "linux")]

use std::time::Duration;

use hookwright::process::{ProcessSpec, run};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The numbers of the children of this process, zombies among them, and of the processes of the given groups.
fn children_and_members(groups: &[i32]) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let is_dead_elsewhere = fields[0] == "Z" && fields[1] != own;
        if fields[1] == own || (groups.iter().any(|group| fields[2] == group.to_string()) && !is_dead_elsewhere) {
            found.push(stat);
        }
    }
    found
}

#[test]
fn two_hundred_timeouts_leave_no_zombie_no_orphan_and_no_descriptor() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let payload = bytes::Bytes::from(vec![b'x'; 300_000]);
    let spec = |index: usize| {
        let command = if index.is_multiple_of(2) { "echo $$; sleep 60 & sleep 60" } else { "echo $$; exec sleep 60" };
        ProcessSpec::shell(command).stdin(payload.clone()).timeout(Duration::from_millis(15))
    };
    runtime.block_on(run(spec(0))).unwrap();
    let before = open_descriptors();
    let mut groups = Vec::new();
    for index in 0..200 {
        let output = runtime.block_on(run(spec(index))).unwrap();
        assert!(output.timed_out());
        // On a busy machine the shell may be ended before it has said its number.
        groups.extend(output.stdout.text().trim().parse::<i32>());
    }
    assert_eq!(open_descriptors(), before);
    assert!(groups.len() > 20, "only {} shells told their number", groups.len());
    assert_eq!(children_and_members(&groups), Vec::<String>::new());

    for _ in 0..50 {
        let cancelled = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(5), run(spec(0))).await });
        drop(cancelled);
    }
    assert_eq!(open_descriptors(), before);
    // The reapers send no event; they are done when the children are gone.
    let started = std::time::Instant::now();
    while !children_and_members(&[]).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(15), "zombies: {:?}", children_and_members(&[]));
        std::thread::yield_now();
    }
}
