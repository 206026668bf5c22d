//! Chat completions, as OpenAI and all that copy it understand them.

mod body;
mod calls;
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

/// A model behind the chat completions API of OpenAI, or of anything that copies it.
///
/// ```
/// use hookwright::model::{Key, Model, OpenAi, Server};
/// let server = Server { base_url: Some("http://localhost:8080/v1".into()), api_key: Key::new("k3y"), ..Server::new("qwen3") };
/// let model = OpenAi::new(server)?;
/// assert_eq!(format!("{model:?}"), r#"OpenAi { model: "qwen3", url: "http://localhost:8080/v1/chat/completions", profile: "compatible" }"#);
/// # Ok::<(), hookwright::model::ServerError>(())
/// ```
#[derive(Clone)]
pub struct OpenAi(Wire);

impl OpenAi {
    /// The model that `server` describes.
    ///
    /// # Errors
    /// If the description cannot be used.
    pub fn new(server: Server) -> Result<Self, ServerError> {
        Wire::new(&ChatCompletions, server).map(OpenAi)
    }
}

impl Model for OpenAi {
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
        Some(Arc::new(OpenAi(self.0.recorded(tape))))
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, profile) = self.0.described();
        f.debug_struct("OpenAi").field("model", &self.0.name()).field("url", &url).field("profile", &profile).finish()
    }
}

/// The API.
pub(super) struct ChatCompletions;

impl Api for ChatCompletions {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base_url_variable(&self) -> &'static str {
        "OPENAI_BASE_URL"
    }

    fn path(&self, base: &str) -> &'static str {
        if base.ends_with("/chat/completions") { "" } else { "/chat/completions" }
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn body(&self, request: &Request, profile: &Profile, stream: bool) -> Map<String, Value> {
        body(request, profile, stream)
    }

    fn reply(&self, body: &str) -> Result<Reply, ModelFailure> {
        reply(body)
    }

    fn assembler(&self, request: &Request) -> Box<dyn Assemble> {
        Box::new(Assembler::with_tools(request.tools.iter().map(|tool| tool.name.clone())))
    }
}
