//! The Messages API of Anthropic, and those that copy it.

mod assembler;
mod body;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::dialect::{Assemble, Dialect, endpoint};
use super::exchange::Line;
use super::{Ask, Model, ModelFailure, Profile, Reply, Request, Server, ServerError, Tape};
use crate::hook::BoxFuture;

pub use assembler::Assembler;
pub use body::body;

/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";

/// A model behind the Messages API.
#[derive(Clone)]
pub struct Anthropic {
    line: Arc<Line>,
}

impl Anthropic {
    /// The model that `server` describes.
    ///
    /// # Errors
    /// If the description cannot be used.
    pub fn new(server: Server) -> Result<Self, ServerError> {
        Ok(Anthropic { line: Arc::new(Line::new(server, Arc::new(Messages))?) })
    }
}

impl std::fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anthropic").field("server", &self.line.server).finish()
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.line.server.model
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        let line = Arc::clone(&self.line);
        Box::pin(async move { line.ask(request, ask).await })
    }

    fn recorded(&self, tape: Arc<dyn Tape>) -> Option<Arc<dyn Model>> {
        Some(Arc::new(Anthropic { line: Arc::new(self.line.recorded(tape)) }))
    }
}

pub(super) struct Messages;

impl Dialect for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn usual_profile(&self) -> &'static str {
        "anthropic"
    }

    fn url_variable(&self) -> &'static str {
        "ANTHROPIC_BASE_URL"
    }

    fn endpoint(&self, base: &Url) -> Url {
        endpoint(base, &["v1", "messages"])
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([(
            reqwest::header::HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(VERSION),
        )])
    }

    fn body(
        &self,
        request: &Request,
        model: &str,
        settings: Map<String, Value>,
        profile: &Profile,
        stream: bool,
    ) -> Value {
        body(request, model, settings, profile, stream)
    }

    fn read(&self, reply: &Map<String, Value>) -> Result<Reply, ModelFailure> {
        assembler::read(reply)
    }

    fn assembler(&self) -> Box<dyn Assemble> {
        Box::new(Assembler::default())
    }
}
