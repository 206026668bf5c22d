//! What puts a reply together from the events of a stream.

use super::sse::Event;
use super::{ModelFailure, Reply, StreamEvent};

/// Whether more of a stream is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There is more to come.
    More,
    /// The reply is there, but its usage or the end mark may follow.
    Nearly,
    /// The server has said that this was all.
    End,
}

/// Is told the pieces of a reply.
pub type Tell<'a> = &'a mut dyn FnMut(StreamEvent);

/// Puts a reply together from the events of a stream.
pub trait Assemble: Send {
    /// Takes in one event.
    ///
    /// # Errors
    /// A failure that the server tells of, or an event that cannot be read.
    fn read(&mut self, event: Event<'_>, tell: Tell<'_>) -> Result<Progress, ModelFailure>;

    /// Whether what came in is a whole reply.
    fn is_complete(&self) -> bool;

    /// The reply as far as it came in.
    fn take(&mut self) -> Reply;
}

/// An event that is no JSON: the end of the stream if it was cut off, nonsense otherwise.
pub(super) fn unreadable(event: Event<'_>) -> ModelFailure {
    let shown = super::trouble::one_line(event.data);
    ModelFailure::new(super::FailureKind::InvalidReply, format!("a piece of the model's answer is not JSON: {shown:?}"))
}
