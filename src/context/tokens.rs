//! How many tokens a message has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::message::{History, Message, Role};

/// What a provider adds around each message: its role and its separators.
const PER_MESSAGE: usize = 4;
/// What a tool call costs beside its name and arguments.
const PER_CALL: usize = 8;
/// What an image is taken for; servers scale images, so their bytes say little.
const PER_IMAGE: usize = 1000;
/// Below this many entries a cache is not worth tidying.
const TIDY_FROM: usize = 1024;

/// Counts tokens, or estimates them.
///
/// Counts are unscaled: a counter that learns keeps them as they were and changes its [`ratio`](Self::ratio), so
/// that counts can be cached.
pub trait TokenCounter: Send + Sync {
    /// The tokens of `text`, unscaled.
    fn count_text(&self, text: &str) -> usize;

    /// The tokens of `message` with everything a server is sent of it, unscaled.
    fn count_message(&self, message: &Message) -> usize {
        let mut count = PER_MESSAGE + self.count_text(&message.text()) + message.images().count() * PER_IMAGE;
        for call in &message.tool_calls {
            count += PER_CALL + self.count_text(&call.name) + self.count_text(&call.arguments_json());
        }
        if let Some(reasoning) = &message.reasoning {
            count += self.count_text(reasoning);
        }
        if let Some(hint) = &message.hint {
            count += self.count_text(hint);
        }
        // Opaque fields of an answer (signed thinking) go back to the server.
        if message.role == Role::Assistant && !message.extra.is_empty() {
            count += self.count_text(&serde_json::to_string(&message.extra).unwrap_or_default());
        }
        count
    }

    /// How many real tokens one counted token stands for; 1 for an exact counter.
    fn ratio(&self) -> f64 {
        1.0
    }

    /// Takes in what a server said: a request for which the unscaled counts sum up to `estimated` had `actual`
    /// tokens. An exact counter has nothing to learn.
    fn learn(&self, estimated: usize, actual: usize) {
        let _ = (estimated, actual);
    }
}

/// An exact counter: a tokenizer of the user's, as a function from a text to its number of tokens.
///
/// ```
/// use hookwright::context::{CountFunction, TokenCounter};
/// let counter = CountFunction(|text: &str| text.split_whitespace().count());
/// assert_eq!(counter.count_text("three short words"), 3);
/// ```
pub struct CountFunction<F>(pub F);

impl<F: Fn(&str) -> usize + Send + Sync> TokenCounter for CountFunction<F> {
    fn count_text(&self, text: &str) -> usize {
        self.0(text)
    }
}

/// A counter that counts each shared message once.
///
/// A count belongs to the shared message (its `Arc`), and is forgotten some time after the message is gone. So a
/// round over ten thousand messages counts only those that are new.
///
/// ```
/// use std::sync::Arc;
/// use hookwright::context::{CachedTokens, EstimatedTokens};
/// use hookwright::message::{History, Message};
/// let tokens = CachedTokens::new(Arc::new(EstimatedTokens::default()));
/// let history: History = [Message::user("hello there")].into_iter().collect();
/// assert_eq!(tokens.history(&history), tokens.history(&history));
/// ```
pub struct CachedTokens {
    counter: Arc<dyn TokenCounter>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// By the address of the message. The weak pointer keeps that address from being used again.
    known: HashMap<usize, (Weak<Message>, usize)>,
    tidy_at: usize,
}

impl CachedTokens {
    /// A cache over `counter`.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        CachedTokens { counter, counts: Mutex::new(Counts { known: HashMap::new(), tidy_at: TIDY_FROM }) }
    }

    /// The counter behind it.
    pub fn counter(&self) -> &dyn TokenCounter {
        self.counter.as_ref()
    }

    /// The tokens of `message`, unscaled.
    pub fn message(&self, message: &Arc<Message>) -> usize {
        let address = Arc::as_ptr(message).addr();
        let lock = || self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = lock().known.get(&address) {
            return *count;
        }
        // The counter may be a function of the user's: it runs without the lock.
        let count = self.counter.count_message(message);
        let mut counts = lock();
        if counts.known.len() >= counts.tidy_at {
            counts.known.retain(|_, (message, _)| message.strong_count() > 0);
            counts.tidy_at = (counts.known.len() * 2).max(TIDY_FROM);
        }
        counts.known.insert(address, (Arc::downgrade(message), count));
        count
    }

    /// The tokens of `messages`, unscaled.
    pub fn sum<'a>(&self, messages: impl IntoIterator<Item = &'a Arc<Message>>) -> usize {
        messages.into_iter().map(|message| self.message(message)).sum()
    }

    /// The estimate for a whole history, in real tokens.
    pub fn history(&self, history: &History) -> usize {
        self.scaled(self.sum(history.iter()))
    }

    /// An unscaled count in real tokens, rounded up.
    pub fn scaled(&self, count: usize) -> usize {
        (count as f64 * self.counter.ratio()).ceil() as usize
    }

    /// A budget of real tokens as an unscaled count, rounded down.
    pub fn unscaled(&self, budget: usize) -> usize {
        let mut count = (budget as f64 / self.counter.ratio()) as usize;
        while count > 0 && self.scaled(count) > budget {
            count -= 1;
        }
        count
    }

    /// How many messages have a count.
    pub fn cached(&self) -> usize {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).known.len()
    }
}
