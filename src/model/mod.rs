//! Models: what an agent asks, what it gets back, and who answers.
//!
//! [`OpenAi`] and [`Anthropic`] ask a server; what differs from server to server stands as data in a [`Profile`]. Both
//! turn a [`Request`] into a body, read what comes back whole or in pieces, and try again by one [`RetryPolicy`].
//! [`Scripted`] and [`Replay`] answer without a server.

pub mod anthropic;
mod arguments;
mod assemble;
mod bucket;
mod call_id;
mod cassette;
mod failure;
mod fence;
mod http;
mod key;
pub mod openai;
mod pattern;
mod profile;
mod read;
mod request;
mod retry;
mod scripted;
mod server;
pub mod sse;
mod tidy;
mod trouble;
mod watch;
mod wire;

use std::sync::Arc;

pub use anthropic::Anthropic;
pub use assemble::{Assemble, Progress, Tell};
pub use call_id::{CallIds, Characters};
pub use cassette::{CassetteError, Exchange, Recorder, Replay, Tape};
pub use failure::{FailureKind, ModelFailure};
pub use fence::{context_message, with_context};
pub use key::Key;
pub use openai::OpenAi;
pub use profile::{DefaultMaxTokens, NoContent, Profile, ReasoningScope, Refused, UnknownProfile};
pub use request::{Reply, Request, StopReason, ToolDescription};
pub use retry::{RetryPolicy, RetryRule};
pub use scripted::{Scripted, Step};
pub use server::{Server, ServerError, Verify};
pub use watch::{Ask, StreamEvent, Watch};

use crate::hook::BoxFuture;

/// Something that answers requests.
///
/// An implementation takes care of its own connections and retries; a [`ModelFailure`] is final. Dropping the
/// future cancels the request.
pub trait Model: Send + Sync {
    /// The name under which hooks see and filter the model.
    fn name(&self) -> &str;

    /// Answers `request`.
    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>>;

    /// Answers `request` as `ask` says: in pieces or not, telling somebody or not. A model that has nothing to tell
    /// answers as [`complete`](Model::complete) does.
    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        let _ = ask;
        self.complete(request)
    }

    /// Answers `request`, telling `watch` what comes in.
    fn stream(&self, request: Arc<Request>, watch: Watch) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask { stream: Some(true), watch: Some(watch) })
    }

    /// Answers at once if that takes no waiting; `None` means that [`complete`](Model::complete) has to be asked.
    ///
    /// Drivers ask here first, so that a model in the same process costs neither a runtime nor an allocation. If
    /// the answer is `Some`, the request has been dealt with and must not be made again.
    fn try_complete(&self, request: &Request) -> Option<Result<Reply, ModelFailure>> {
        let _ = request;
        None
    }

    /// The same model with every exchange told to `tape`; `None` if it has no exchanges with a server.
    fn recorded(&self, tape: Arc<dyn Tape>) -> Option<Arc<dyn Model>> {
        let _ = tape;
        None
    }
}
