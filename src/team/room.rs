//! What everybody overhears: one log for all, and for each a mark of how far it has read. A letter to a thousand that
//! overhear it is written once.

use std::collections::VecDeque;
use std::sync::Arc;

use super::envelope::{Envelope, Parcel};

/// How many letters are kept. Whoever has not read for longer is told how many it has missed.
pub(super) const BOUND: usize = 1000;

/// What everybody overhears.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The number of the first letter in the log.
    first: u64,
    log: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    envelope: Arc<Envelope>,
    /// Those who get it as their mail.
    addressed: Vec<String>,
}

impl Entry {
    fn is_for(&self, name: &str) -> bool {
        self.envelope.sender != name && !self.addressed.iter().any(|known| known == name)
    }
}

impl Room {
    /// The number of the letter that comes next.
    pub(super) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Writes a letter down.
    pub(super) fn push(&mut self, envelope: Arc<Envelope>, addressed: &[String]) {
        self.log.push_back(Entry { envelope, addressed: addressed.to_vec() });
        if self.log.len() > BOUND {
            self.log.pop_front();
            self.first += 1;
        }
    }

    fn since(&self, mark: u64) -> impl Iterator<Item = &Entry> {
        let skip = usize::try_from(mark.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.log.iter().skip(skip)
    }

    /// What somebody who has read up to `mark` has not: the letters, and how many before these are gone.
    pub(super) fn unread(&self, mark: u64, name: &str) -> (Vec<Parcel>, u64) {
        let unread = self.since(mark).filter(|entry| entry.is_for(name));
        let parcels = unread.map(|entry| Parcel { envelope: entry.envelope.clone(), addressed: false }).collect();
        (parcels, self.first.saturating_sub(mark))
    }

    /// How many letters that is.
    pub(super) fn count(&self, mark: u64, name: &str) -> usize {
        self.since(mark).filter(|entry| entry.is_for(name)).count()
    }

    /// The number behind the last of these letters, if one is still there.
    pub(super) fn behind(&self, is_known: impl Fn(&str) -> bool) -> Option<u64> {
        let last = self.log.iter().rposition(|entry| is_known(&entry.envelope.id))?;
        Some(self.first + last as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::mailbox::tests::letter;

    #[test]
    fn a_letter_is_there_for_all_but_its_sender_and_whom_it_addresses() {
        let mut room = Room::default();
        room.push(letter("e1", "bob"), &["ada".to_owned()]);
        room.push(letter("e2", "ada"), &[]);
        let ids = |name: &str, mark| {
            let (parcels, gone) = room.unread(mark, name);
            assert_eq!((gone, parcels.len()), (0, room.count(mark, name)));
            parcels.iter().map(|parcel| parcel.envelope.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids("carol", 0), ["e1", "e2"]);
        assert_eq!((ids("ada", 0), ids("bob", 0)), (vec![], vec!["e2".to_owned()]));
        assert_eq!(ids("carol", 1), ["e2"]);
        assert_eq!((room.behind(|id| id == "e1"), room.behind(|id| id == "e9")), (Some(1), None));
    }

    #[test]
    fn what_is_too_old_is_counted() {
        let mut room = Room::default();
        for number in 0..BOUND + 20 {
            room.push(letter(&format!("e{number}"), "bob"), &[]);
        }
        let (parcels, gone) = room.unread(5, "ada");
        assert_eq!((parcels.len(), gone, room.end()), (BOUND, 15, BOUND as u64 + 20));
    }
}
