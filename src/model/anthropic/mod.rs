//! The Messages API of Anthropic.

mod body;
mod reply;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use body::body;
pub use reply::reply;
pub use stream::Assembler;

use super::assemble::Assemble;
use super::wire::{Api, Wire};
use super::{Ask, Model, ModelFailure, Profile, Reply, Request, Server, ServerError, Tape};
use crate::hook::BoxFuture;

/// A model behind the Messages API of Anthropic, or of anything that copies it.
///
/// ```
/// use hookwright::model::{Anthropic, Model, Server};
/// assert_eq!(Anthropic::new(Server::new("claude-sonnet-4-5"))?.name(), "claude-sonnet-4-5");
/// # Ok::<(), hookwright::model::ServerError>(())
/// ```
#[derive(Clone)]
pub struct Anthropic(Wire);

impl Anthropic {
    /// The model that `server` describes.
    ///
    /// # Errors
    /// If the description cannot be used.
    pub fn new(server: Server) -> Result<Self, ServerError> {
        Wire::new(&Messages, server).map(Anthropic)
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        Box::pin(self.0.clone().ask(request, ask))
    }

    fn recorded(&self, tape: Arc<dyn Tape>) -> Option<Arc<dyn Model>> {
        Some(Arc::new(Anthropic(self.0.recorded(tape))))
    }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, profile) = self.0.described();
        f.debug_struct("Anthropic")
            .field("model", &self.0.name())
            .field("url", &url)
            .field("profile", &profile)
            .finish()
    }
}

/// The field of a message in which blocks of thinking are kept, to be sent back as they came.
const THINKING: &str = "thinking_blocks";

/// The API.
pub(super) struct Messages;

impl Api for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn base_url_variable(&self) -> &'static str {
        "ANTHROPIC_BASE_URL"
    }

    fn path(&self, base: &str) -> &'static str {
        match base {
            base if base.ends_with("/messages") => "",
            base if base.ends_with("/v1") => "/messages",
            _ => "/v1/messages",
        }
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, request: &Request, profile: &Profile, stream: bool) -> Map<String, Value> {
        body(request, profile, stream)
    }

    fn reply(&self, body: &str) -> Result<Reply, ModelFailure> {
        reply(body)
    }

    fn assembler(&self, _: &Request) -> Box<dyn Assemble> {
        Box::new(Assembler::default())
    }
}
