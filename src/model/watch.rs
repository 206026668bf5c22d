//! What somebody who watches a request is told while it is under way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::ModelFailure;

/// One piece of a reply, or of the trouble in getting it.
///
/// Pieces are provisional: the [`Reply`](super::Reply) at the end is what counts. They are told in the order in which
/// they came in.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// A piece of what the model says.
    Text {
        /// The piece.
        delta: String,
    },
    /// A piece of the thinking that it shows.
    Reasoning {
        /// The piece.
        delta: String,
    },
    /// A piece of a tool call.
    ToolCall {
        /// Which call of the reply, from 0.
        index: usize,
        /// Its id as far as it is known; empty if the server has not given one. The reply may have another.
        id: String,
        /// The tool's name as far as it is known.
        name: String,
        /// The piece of the arguments' text.
        arguments_delta: String,
    },
    /// An attempt failed, and after `wait` there is another. This is told of requests that are not streamed too.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How many there are at most, if that is known.
        of: Option<u32>,
        /// Why.
        failure: ModelFailure,
        /// How long until the next attempt.
        wait: Duration,
    },
}

/// Is told what happens, at once and on the thread that reads the reply: it must not wait.
pub type Watch = Arc<dyn Fn(StreamEvent) + Send + Sync>;

/// How a request is to be made.
#[derive(Clone, Default)]
pub struct Ask {
    /// Whether the reply is to come in pieces; `None` leaves it to the model.
    pub stream: Option<bool>,
    /// Who is told what comes in.
    pub watch: Option<Watch>,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("stream", &self.stream).field("watched", &self.watch.is_some()).finish()
    }
}
