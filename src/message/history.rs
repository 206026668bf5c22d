//! The messages of a conversation, shared instead of copied.

use std::ops::Index;
use std::sync::{Arc, OnceLock};

use super::Message;

/// The messages of a conversation in order: cheap to clone, cheap to grow, never changed in place.
///
/// A clone costs the same for ten messages and for ten thousand, and a push costs amortised constant time **also
/// while clones are held** (by a request on its way, a hook, a result). A clone keeps the length that it had:
/// what is pushed later is not seen by it.
///
/// ```
/// use hookwright::message::{History, Message};
/// let mut history: History = [Message::user("hello")].into_iter().collect();
/// let before = history.clone();
/// history.push(Message::assistant("good morning"));
/// assert_eq!((before.len(), history.len()), (1, 2));
/// assert_eq!(history[1].text(), "good morning");
/// ```
///
/// How: the clones share one block of slots that are each written once, and every clone knows how many of them are
/// its own. Pushing fills the next slot. It is full only if another clone went on from the same point; then, and
/// when the block is used up, the (shared) messages move to a new block. A clone therefore keeps the messages of its
/// whole block in memory, also those behind its own length.
#[derive(Clone)]
pub struct History {
    slots: Arc<[OnceLock<Arc<Message>>]>,
    length: usize,
}

impl History {
    /// No messages.
    pub fn new() -> Self {
        History { slots: Arc::from([]), length: 0 }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> + ExactSizeIterator + Clone {
        self.slots[..self.length].iter().map(filled)
    }

    /// The message at `index`, counted from the oldest.
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        (index < self.length).then(|| filled(&self.slots[index]))
    }

    /// The newest message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.get(self.length.checked_sub(1)?)
    }

    /// Adds `message` as the newest. Clones made earlier do not see it.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let mut message = message.into();
        if let Some(slot) = self.slots.get(self.length) {
            match slot.set(message) {
                Ok(()) => {
                    self.length += 1;
                    return;
                }
                Err(refused) => message = refused,
            }
        }
        self.move_to_block(self.length + 1);
        let fresh = self.slots[self.length].set(message);
        debug_assert!(fresh.is_ok(), "a new block is empty behind the messages that moved");
        self.length += 1;
    }

    /// The first `length` messages, or all if there are fewer; shares everything.
    pub fn prefix(&self, length: usize) -> History {
        History { slots: Arc::clone(&self.slots), length: self.length.min(length) }
    }

    /// Moves to a block of one's own with room for at least `wanted` messages.
    fn move_to_block(&mut self, wanted: usize) {
        let capacity = wanted.next_power_of_two().max(8);
        let moved = self.slots[..self.length].iter().cloned();
        self.slots = moved.chain((self.length..capacity).map(|_| OnceLock::new())).collect();
    }
}

/// The message in a slot below a history's length.
fn filled(slot: &OnceLock<Arc<Message>>) -> &Arc<Message> {
    // `length` only ever grows past a slot after that slot was set, and a slot is never emptied.
    slot.get().expect("slots below the length are filled")
}

impl Default for History {
    fn default() -> Self {
        History::new()
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length
            && self.iter().zip(other.iter()).all(|(mine, theirs)| Arc::ptr_eq(mine, theirs) || mine == theirs)
    }
}

impl Index<usize> for History {
    type Output = Arc<Message>;

    /// # Panics
    /// If there is no message at `index`, as for a slice.
    fn index(&self, index: usize) -> &Arc<Message> {
        match self.get(index) {
            Some(message) => message,
            None => panic!("there is no message {index}: the history has {}", self.length),
        }
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for History {
    fn extend<I: IntoIterator<Item = M>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for History {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let mut history = History::new();
        history.extend(messages);
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(history: &History) -> Vec<String> {
        history.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn clones_keep_their_length_and_share_the_messages() {
        let mut history: History = ["a", "b"].map(Message::user).into_iter().collect();
        let snapshot = history.clone();
        history.push(Message::user("c"));
        assert_eq!(texts(&snapshot), ["a", "b"]);
        assert_eq!(texts(&history), ["a", "b", "c"]);
        assert!(Arc::ptr_eq(&snapshot[0], &history[0]));
        assert_eq!(snapshot.get(2), None);
        assert_eq!(snapshot, history.prefix(2));
    }

    #[test]
    fn two_clones_that_go_on_from_one_point_do_not_see_each_other() {
        let mut left: History = [Message::user("a")].into_iter().collect();
        let mut right = left.clone();
        left.push(Message::user("left"));
        right.push(Message::user("right"));
        right.push(Message::user("more"));
        left.push(Message::user("end"));
        assert_eq!(texts(&left), ["a", "left", "end"]);
        assert_eq!(texts(&right), ["a", "right", "more"]);
    }

    #[test]
    fn pushing_beside_held_clones_moves_the_messages_a_logarithmic_number_of_times() {
        let mut history = History::new();
        let mut held = Vec::new();
        let mut moves = 0;
        for number in 0..10_000 {
            held.push(history.clone());
            let before = Arc::as_ptr(&history.slots);
            history.push(Message::user(number.to_string()));
            moves += usize::from(!std::ptr::addr_eq(before, Arc::as_ptr(&history.slots)));
        }
        assert_eq!((history.len(), moves), (10_000, 12));
        assert!(held.iter().enumerate().all(|(length, clone)| clone.len() == length));
        assert_eq!(history.last().unwrap().text(), "9999");
        assert_eq!(Arc::strong_count(&history[0]), 12, "one for each block that a clone still holds");
    }
}
