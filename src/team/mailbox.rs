//! A mailbox: the letter and the wake are one atomic thing.
//!
//! Whoever waits looks and leaves its waker under the same lock under which a letter is put in and the waker taken, so
//! there is no moment in between at which a letter wakes nobody. Wakers are called when the lock is free.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::bus::Mail;
use super::envelope::{Envelope, Parcel};

/// What somebody has to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many letters that it would have overheard are gone.
    pub left_out: u64,
    /// The letters, oldest first: its mail, and what it overheard.
    pub parcels: Vec<Parcel>,
}

impl Taken {
    /// The ids that a conversation remembers: of its mail all, of what was overheard the last.
    pub(super) fn marks(&self) -> impl Iterator<Item = String> {
        let last = self.parcels.iter().rposition(|parcel| !parcel.addressed);
        let marked =
            self.parcels.iter().enumerate().filter(move |(index, parcel)| parcel.addressed || Some(*index) == last);
        marked.map(|(_, parcel)| parcel.envelope.id.clone())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.left_out == 0
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
/// assert!(mailbox.put(envelope.clone()));
/// assert!(!mailbox.put(envelope)); // Seen before.
/// assert_eq!(mailbox.take().len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Mailbox(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Arc<Envelope>>,
    /// What was taken and is not stored yet.
    in_hand: Vec<Arc<Envelope>>,
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
    fn put(&self, envelope: Arc<Envelope>) -> bool {
        let mut inner = self.lock();
        if !inner.seen.insert(envelope.id.as_str().into()) {
            return false;
        }
        inner.queue.push_back(envelope);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    fn take(&self) -> Vec<Arc<Envelope>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.rung = false;
        inner.in_hand.extend(inner.queue.drain(..));
        inner.in_hand.clone()
    }

    fn stored(&self) {
        self.lock().in_hand = Vec::new();
    }

    fn forget(&self, ids: &HashSet<String>) {
        let mut inner = self.lock();
        inner.seen.extend(ids.iter().map(|id| Arc::from(id.as_str())));
        inner.queue.retain(|envelope| !ids.contains(&envelope.id));
    }

    fn wake_with(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.queue.is_empty() || !inner.in_hand.is_empty() || inner.rung {
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
        inner.queue.len() + inner.in_hand.len()
    }

    fn new_len(&self) -> usize {
        self.lock().queue.len()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::message::Timestamp;
    use crate::team::EnvelopeKind;

    pub(crate) fn letter(id: &str, sender: &str) -> Arc<Envelope> {
        Arc::new(Envelope {
            id: id.into(),
            number: 0,
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
    fn a_letter_wakes_once_and_a_ring_wakes_without_one() {
        let mailbox = Mailbox::default();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        assert!(!mailbox.wake_with(&waker));
        mailbox.put(letter("e1", "bob"));
        mailbox.put(letter("e2", "bob"));
        assert_eq!((counting.0.load(Ordering::SeqCst), mailbox.len(), mailbox.new_len()), (1, 2, 2));
        assert!(mailbox.wake_with(&waker));
        let ids: Vec<_> = mailbox.take().iter().map(|envelope| envelope.id.clone()).collect();
        assert_eq!((ids.as_slice(), mailbox.new_len()), (["e1".to_owned(), "e2".to_owned()].as_slice(), 0));
        mailbox.stored();
        assert!(!mailbox.wake_with(&waker));
        mailbox.ring();
        assert_eq!((counting.0.load(Ordering::SeqCst), mailbox.is_empty()), (2, true));
        assert!(mailbox.wake_with(&waker) && !mailbox.wake_with(&waker));
    }

    #[test]
    fn an_id_four_times_is_delivered_once() {
        let mailbox = Mailbox::default();
        let put: Vec<_> = (0..4).map(|_| mailbox.put(letter("e1", "bob"))).collect();
        assert_eq!((put, mailbox.take().len()), (vec![true, false, false, false], 1));
        mailbox.stored();
        assert!(!mailbox.put(letter("e1", "bob")));
    }

    #[test]
    fn what_was_taken_and_not_stored_is_taken_again_first() {
        let mailbox = Mailbox::default();
        mailbox.put(letter("e1", "bob"));
        assert_eq!(mailbox.take().len(), 1);
        mailbox.put(letter("e2", "bob"));
        let ids: Vec<_> = mailbox.take().iter().map(|envelope| envelope.id.clone()).collect();
        assert_eq!(ids, ["e1", "e2"]);
        mailbox.stored();
        assert!(mailbox.take().is_empty());
    }

    /// A letter within microseconds of going to wait: with a look and a wait in two steps nobody wakes any more, and the
    /// minute at the end says so. It decides nothing else: this takes a fraction of a second.
    #[test]
    fn no_letter_falls_between_looking_and_waiting() {
        const LETTERS: usize = 20_000;
        let mailbox = Arc::new(Mailbox::default());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let senders: Vec<_> = ["bob", "carol"]
            .into_iter()
            .map(|sender| {
                let mailbox = mailbox.clone();
                std::thread::spawn(move || {
                    for number in 0..LETTERS {
                        mailbox.put(letter(&format!("{sender}{number}"), sender));
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
                let mail = std::future::poll_fn(|context| mailbox.poll_mail(context));
                let minute = std::time::Duration::from_secs(60);
                tokio::time::timeout(minute, mail).await.expect("a letter woke nobody");
                received.extend(mailbox.take());
                mailbox.stored();
            }
            received
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        for sender in ["bob", "carol"] {
            let of: Vec<_> = received.iter().filter(|envelope| envelope.sender == sender).collect();
            let in_order: Vec<_> = (0..LETTERS).map(|number| format!("{sender}{number}")).collect();
            assert!(of.iter().map(|envelope| &envelope.id).eq(&in_order), "the order of {sender}'s letters");
        }
    }
}
