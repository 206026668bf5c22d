//! Where mail goes. In one process that is a map of mailboxes; several processes bring a bus of their own.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use super::envelope::Envelope;
use super::mailbox::Mailbox;

/// One mailbox. What its owner only overhears is not in it.
pub trait Mail: Send + Sync {
    /// Puts an envelope in and wakes the owner; both or neither. False if it was seen before.
    fn put(&self, envelope: Arc<Envelope>) -> bool;
    /// Takes out everything. It is in the owner's hand until [`stored`](Mail::stored): taken again, it comes first.
    fn take(&self) -> Vec<Arc<Envelope>>;
    /// What was taken is in the owner's conversation now.
    fn stored(&self);
    /// These were delivered before: they are not put in again, and taken out if they are there.
    fn forget(&self, ids: &HashSet<String>);
    /// Whether there is something for the owner to do; if not, the waker is called once there is.
    fn wake_with(&self, waker: &Waker) -> bool;
    /// Wakes the owner without a letter.
    fn ring(&self);
    /// How many letters lie there, in hand or not.
    fn len(&self) -> usize;
    /// Whether none does.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// How many of these came after the last look.
    fn new_len(&self) -> usize;
}

/// All mailboxes.
pub trait Bus: Send + Sync {
    /// The mailbox of somebody; made on first use.
    fn mailbox(&self, name: &str) -> Arc<dyn Mail>;
}

/// The mailboxes of one process.
#[derive(Default)]
pub struct LocalBus(Mutex<HashMap<String, Arc<Mailbox>>>);

impl Bus for LocalBus {
    fn mailbox(&self, name: &str) -> Arc<dyn Mail> {
        let mut mailboxes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mailboxes.entry(name.to_owned()).or_default().clone()
    }
}
