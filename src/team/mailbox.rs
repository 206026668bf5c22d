//! A mailbox: the letter and the wake are one atomic thing.
//!
//! Whoever waits looks and leaves its waker under the same lock under which a letter is put in and the waker taken, so
//! there is no moment in between at which a letter wakes nobody. Wakers are called when the lock is free.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::bus::Mail;
use super::envelope::{Envelope, Parcel};

/// How many letters lie in a mailbox before those that are overheard are folded.
pub(super) const BOUND: usize = 1000;
/// How many lines of each sender are kept when letters are folded.
pub(super) const LINES: usize = 5;

/// Overheard letters that were folded: how many of whom, and the last ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folded {
    /// By sender: how many were left out.
    pub left_out: BTreeMap<String, usize>,
}

/// What was taken out of a mailbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// What was folded before these.
    pub folded: Folded,
    /// The letters, oldest first.
    pub parcels: Vec<Parcel>,
}

impl Taken {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.folded.left_out.is_empty()
    }

    /// Whether something in it is addressed to the owner.
    pub fn is_addressed(&self) -> bool {
        self.parcels.iter().any(|parcel| parcel.addressed)
    }
}

/// A mailbox in the memory of this process.
///
/// ```
/// use std::sync::Arc;
/// use std::task::Waker;
/// use hookwright::message::Timestamp;
/// use hookwright::team::{Envelope, Mail, Mailbox};
///
/// let mailbox = Mailbox::default();
/// assert!(!mailbox.wake_with(Waker::noop())); // Nothing is there: the waker waits for it.
/// let envelope: Envelope = serde_json::from_value(serde_json::json!({
///     "id": "e1", "sender": "lead", "recipients": ["ada"], "text": "hello", "sent_at": "2026-01-01T00:00:00Z",
/// }))?;
/// let envelope = Arc::new(envelope);
/// assert!(mailbox.put(envelope.clone(), true));
/// assert!(!mailbox.put(envelope, true)); // Seen before.
/// assert_eq!(mailbox.take().parcels.len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Mailbox(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Parcel>,
    folded: Folded,
    /// How many in the queue are addressed to the owner.
    addressed: usize,
    /// What was taken and is not stored yet.
    in_hand: Taken,
    seen: HashSet<Arc<str>>,
    waker: Option<Waker>,
    /// Somebody wants the owner to look up, mail or not.
    rung: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is a letter for the owner, or somebody rings.
    pub fn poll_mail(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.wake_with(context.waker()) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Mail for Mailbox {
    fn put(&self, envelope: Arc<Envelope>, addressed: bool) -> bool {
        let mut inner = self.lock();
        if !inner.seen.insert(envelope.id.as_str().into()) {
            return false;
        }
        inner.queue.push_back(Parcel { envelope, addressed });
        inner.addressed += usize::from(addressed);
        if inner.queue.len() > BOUND && inner.queue.len() > inner.addressed {
            inner.fold();
        }
        let waker = if addressed { inner.waker.take() } else { None };
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    fn take(&self) -> Taken {
        let mut inner = self.lock();
        inner.rung = false;
        let inner = &mut *inner;
        let folded = std::mem::take(&mut inner.folded);
        for (sender, count) in folded.left_out {
            *inner.in_hand.folded.left_out.entry(sender).or_default() += count;
        }
        inner.in_hand.parcels.extend(inner.queue.drain(..));
        inner.addressed = 0;
        inner.in_hand.clone()
    }

    fn stored(&self) {
        self.lock().in_hand = Taken::default();
    }

    fn forget(&self, ids: &HashSet<String>) {
        let mut inner = self.lock();
        inner.seen.extend(ids.iter().map(|id| Arc::from(id.as_str())));
        inner.queue.retain(|parcel| !ids.contains(&parcel.envelope.id));
        inner.addressed = inner.queue.iter().filter(|parcel| parcel.addressed).count();
    }

    fn wake_with(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if inner.addressed > 0 || inner.rung || inner.in_hand.is_addressed() {
            inner.rung = false;
            return true;
        }
        match &inner.waker {
            Some(known) if known.will_wake(waker) => {}
            _ => inner.waker = Some(waker.clone()),
        }
        false
    }

    fn ring(&self) {
        let mut inner = self.lock();
        inner.rung = true;
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn len(&self) -> usize {
        let inner = self.lock();
        inner.queue.len() + inner.in_hand.parcels.len()
    }

    fn addressed(&self) -> usize {
        let inner = self.lock();
        inner.addressed + inner.in_hand.parcels.iter().filter(|parcel| parcel.addressed).count()
    }

    fn new_addressed(&self) -> usize {
        self.lock().addressed
    }
}

impl Inner {
    /// Leaves out overheard letters but for the last of each sender. Those that are addressed stay.
    fn fold(&mut self) {
        let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
        let mut keep = vec![true; self.queue.len()];
        for (index, parcel) in self.queue.iter().enumerate().rev().filter(|(_, parcel)| !parcel.addressed) {
            let count = kept.entry(parcel.envelope.sender.as_str()).or_default();
            *count += 1;
            keep[index] = *count <= LINES;
        }
        let mut keep = keep.into_iter();
        let folded = &mut self.folded.left_out;
        self.queue.retain(|parcel| {
            let keeps = keep.next().unwrap_or(true);
            if !keeps {
                *folded.entry(parcel.envelope.sender.clone()).or_default() += 1;
            }
            keeps
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;
    use crate::message::Timestamp;
    use crate::team::EnvelopeKind;

    pub(crate) fn letter(id: &str, sender: &str) -> Arc<Envelope> {
        Arc::new(Envelope {
            id: id.into(),
            sender: sender.into(),
            recipients: vec!["ada".into()],
            text: format!("words of {id}"),
            mention: false,
            reply_to: None,
            sent_at: Timestamp::from_millis(0),
            private: false,
            expects_reply: false,
            kind: EnvelopeKind::Message,
        })
    }

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_is_overheard_wakes_nobody() {
        let mailbox = Mailbox::default();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        assert!(!mailbox.wake_with(&waker));
        mailbox.put(letter("e1", "bob"), false);
        assert_eq!(counting.0.load(Ordering::SeqCst), 0);
        mailbox.put(letter("e2", "bob"), true);
        assert_eq!(counting.0.load(Ordering::SeqCst), 1);
        assert!(mailbox.wake_with(&waker));
        let ids: Vec<_> = mailbox.take().parcels.iter().map(|parcel| parcel.envelope.id.clone()).collect();
        assert_eq!(ids, ["e1", "e2"]);
    }

    #[test]
    fn an_id_four_times_is_delivered_once() {
        let mailbox = Mailbox::default();
        let put: Vec<_> = (0..4).map(|_| mailbox.put(letter("e1", "bob"), true)).collect();
        assert_eq!((put, mailbox.take().parcels.len()), (vec![true, false, false, false], 1));
        mailbox.stored();
        assert!(!mailbox.put(letter("e1", "bob"), true));
    }

    #[test]
    fn what_was_taken_and_not_stored_is_taken_again_first() {
        let mailbox = Mailbox::default();
        mailbox.put(letter("e1", "bob"), true);
        assert_eq!(mailbox.take().parcels.len(), 1);
        mailbox.put(letter("e2", "bob"), true);
        let ids: Vec<_> = mailbox.take().parcels.iter().map(|parcel| parcel.envelope.id.clone()).collect();
        assert_eq!(ids, ["e1", "e2"]);
        mailbox.stored();
        assert!(mailbox.take().is_empty());
    }

    /// A letter within microseconds of going to wait: with a look and a wait in two steps this hangs.
    #[test]
    fn no_letter_falls_between_looking_and_waiting() {
        const LETTERS: usize = 20_000;
        let mailbox = Arc::new(Mailbox::default());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let senders: Vec<_> = ["bob", "carol"]
            .into_iter()
            .map(|sender| {
                let mailbox = mailbox.clone();
                std::thread::spawn(move || {
                    for number in 0..LETTERS {
                        mailbox.put(letter(&format!("{sender}{number}"), sender), true);
                        if number % 7 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let received = runtime.block_on(async {
            let mut received = Vec::new();
            while received.len() < 2 * LETTERS {
                std::future::poll_fn(|context| mailbox.poll_mail(context)).await;
                received.extend(mailbox.take().parcels);
                mailbox.stored();
            }
            received
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        for sender in ["bob", "carol"] {
            let of: Vec<_> = received.iter().filter(|parcel| parcel.envelope.sender == sender).collect();
            let in_order: Vec<_> = (0..LETTERS).map(|number| format!("{sender}{number}")).collect();
            assert!(of.iter().map(|parcel| &parcel.envelope.id).eq(&in_order), "the order of {sender}'s letters");
        }
    }

    proptest! {
        #[test]
        fn folding_keeps_what_is_addressed_and_counts_the_rest(
            letters in prop::collection::vec((any::<bool>(), 0..4_usize), 900..1400),
        ) {
            let mailbox = Mailbox::default();
            for (number, (addressed, sender)) in letters.iter().enumerate() {
                mailbox.put(letter(&format!("e{number}"), &format!("s{sender}")), *addressed);
            }
            let taken = mailbox.take();
            let addressed = letters.iter().enumerate().filter(|(_, (addressed, _))| *addressed);
            let expected: Vec<_> = addressed.map(|(number, _)| format!("e{number}")).collect();
            let kept: Vec<_> =
                taken.parcels.iter().filter(|parcel| parcel.addressed).map(|parcel| parcel.envelope.id.clone()).collect();
            prop_assert_eq!(kept, expected);
            let left_out: usize = taken.folded.left_out.values().sum();
            prop_assert_eq!(taken.parcels.len() + left_out, letters.len());
            let bound = BOUND.max(letters.iter().filter(|(addressed, _)| *addressed).count() + 4 * LINES + 1);
            prop_assert!(taken.parcels.len() <= bound);
        }
    }
}
