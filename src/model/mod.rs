//! Models: what an agent asks, what it gets back, and who answers.

mod failure;
mod request;
mod scripted;

use std::sync::Arc;

pub use failure::{FailureKind, ModelFailure};
pub use request::{Reply, Request, StopReason, ToolDescription};
pub use scripted::{Scripted, Step};

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

    /// Answers at once if that takes no waiting; `None` means that [`complete`](Model::complete) has to be asked.
    ///
    /// Drivers ask here first, so that a model in the same process costs neither a runtime nor an allocation. If
    /// the answer is `Some`, the request has been dealt with and must not be made again.
    fn try_complete(&self, request: &Request) -> Option<Result<Reply, ModelFailure>> {
        let _ = request;
        None
    }
}
