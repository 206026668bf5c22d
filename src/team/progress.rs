//! Whether anything new happens between agents, or the same over and over: two who thank each other without end, one who
//! adds what the other removes.

use std::collections::{HashMap, VecDeque};

/// How many times the same things in the same order are too often.
const TIMES: usize = 3;
/// The longest round of things that is looked for.
const ROUND: usize = 4;

/// What happened around each subject, as far back as a repetition reaches.
#[derive(Debug, Default)]
pub(super) struct Progress(HashMap<String, VecDeque<u64>>);

impl Progress {
    /// Notes that `what` is about to happen around `subject` (two who talk, a task, a file). False if the same round of
    /// at most four things would then have happened three times in a row: it is not noted, and not to be done.
    pub(super) fn note(&mut self, subject: String, what: u64) -> bool {
        let past = self.0.entry(subject).or_default();
        past.push_back(what);
        while past.len() > TIMES * ROUND {
            past.pop_front();
        }
        let goes_round = |length: usize| {
            let needed = TIMES * length;
            past.len() >= needed && {
                let tail = past.len() - needed;
                (0..needed - length).all(|index| past[tail + index] == past[tail + index + length])
            }
        };
        let stuck = (1..=ROUND).any(goes_round);
        if stuck {
            past.pop_back();
        }
        !stuck
    }
}

/// Words as they count for a repetition: letters and digits, whatever their case and spacing.
pub(super) fn fingerprint(parts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        for word in part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            hasher.update(word.to_lowercase().as_bytes());
            hasher.update(b" ");
        }
        hasher.update(b"\0");
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_refused(things: &[&str]) -> Option<usize> {
        let mut progress = Progress::default();
        things.iter().position(|thing| !progress.note("ada bob".into(), fingerprint(&[thing])))
    }

    #[test]
    fn the_same_to_and_fro_is_stopped_the_third_time() {
        let thanks = [
            "a: Thank you!",
            "b: you're welcome",
            "a: thank you",
            "b: You're welcome.",
            "a: thank you!",
            "b: you're welcome",
        ];
        assert_eq!(first_refused(&thanks), Some(5));
        assert_eq!(first_refused(&["x", "x", "x"]), Some(2));
        assert_eq!(
            first_refused(&["add", "remove", "look", "add", "remove", "look", "add", "remove", "look"]),
            Some(8)
        );
    }

    #[test]
    fn what_changes_goes_on() {
        let numbers: Vec<_> = (0..100).map(|number| format!("step {number}")).collect();
        assert_eq!(first_refused(&numbers.iter().map(String::as_str).collect::<Vec<_>>()), None);
        assert_eq!(first_refused(&["ok", "go on", "ok", "go on", "ok", "something else", "ok", "go on"]), None);
    }

    #[test]
    fn each_subject_is_its_own() {
        let mut progress = Progress::default();
        for number in 0..50 {
            assert!(progress.note(format!("file {number}"), 7));
        }
    }
}
