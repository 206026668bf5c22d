//! Chat completions, as OpenAI and all that copy it understand them.

mod assembler;
mod body;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use url::Url;

use super::dialect::{Assemble, Dialect, endpoint};
use super::exchange::Line;
use super::{Ask, Model, ModelFailure, Profile, Reply, Request, Server, ServerError, Tape};
use crate::hook::BoxFuture;

pub use assembler::Assembler;
pub use body::body;

/// A model behind the chat completions API.
#[derive(Clone)]
pub struct OpenAi {
    line: Arc<Line>,
}

impl OpenAi {
    /// The model that `server` describes.
    ///
    /// # Errors
    /// If the description cannot be used.
    pub fn new(server: Server) -> Result<Self, ServerError> {
        Ok(OpenAi { line: Arc::new(Line::new(server, Arc::new(Chat))?) })
    }
}

impl std::fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAi").field("server", &self.line.server).finish()
    }
}

impl Model for OpenAi {
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
        Some(Arc::new(OpenAi { line: Arc::new(self.line.recorded(tape)) }))
    }
}

pub(super) struct Chat;

impl Dialect for Chat {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn usual_profile(&self) -> &'static str {
        "openai"
    }

    fn url_variable(&self) -> &'static str {
        "OPENAI_BASE_URL"
    }

    fn endpoint(&self, base: &Url) -> Url {
        endpoint(base, &["chat", "completions"])
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
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
