//! The Messages API of Anthropic.

use std::sync::Arc;

use super::{Ask, FailureKind, Model, ModelFailure, Reply, Request, Server, ServerError, Tape};
use crate::hook::BoxFuture;

/// A model behind the Messages API.
#[derive(Debug, Clone)]
pub struct Anthropic {
    server: Arc<Server>,
}

impl Anthropic {
    /// The model that `server` describes.
    ///
    /// # Errors
    /// If the description cannot be used.
    pub fn new(server: Server) -> Result<Self, ServerError> {
        Ok(Anthropic { server: Arc::new(server) })
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.server.model
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        let _ = (request, ask);
        Box::pin(std::future::ready(Err(ModelFailure::new(FailureKind::InvalidRequest, "not there yet"))))
    }

    fn recorded(&self, tape: Arc<dyn Tape>) -> Option<Arc<dyn Model>> {
        let _ = tape;
        None
    }
}
