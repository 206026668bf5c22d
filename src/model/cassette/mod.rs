//! Exchanges with a server on record, and answers from such a record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Ask, FailureKind, Model, ModelFailure, Reply, Request};
use crate::hook::BoxFuture;
use crate::hook::redact::Redactor;

/// Takes down exchanges with a server.
pub trait Tape: Send + Sync {
    /// Takes down one attempt.
    fn note(&self, exchange: &Exchange<'_>);
}

/// One attempt of a request.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The API: `openai` or `anthropic`.
    pub api: &'static str,
    /// The model's name.
    pub model: &'a str,
    /// The profile's name.
    pub profile: &'a str,
    /// The body that was sent.
    pub request: &'a serde_json::Map<String, serde_json::Value>,
    /// Which attempt of its request it is, from 1.
    pub attempt: u32,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The body of the answer, if it came in one piece.
    pub body: Option<&'a str>,
    /// Names and data of the events, if it was streamed.
    pub events: &'a [(String, String)],
    /// Why the attempt failed, if it did.
    pub failure: Option<&'a ModelFailure>,
    /// What may not be written down.
    pub secrets: &'a [String],
}

/// Why a cassette cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cassette {path} cannot be used: {reason}", path = .path.display())]
pub struct CassetteError {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong, and in which line.
    pub reason: String,
}

/// Asks another model and writes down what it is asked and answers.
pub struct Recorder {
    model: Arc<dyn Model>,
}

impl Recorder {
    /// Records what `model` is asked and answers in the file at `path`, which is made anew; secrets that `redactor` or
    /// the model knows are left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(model: Arc<dyn Model>, path: &Path, redactor: Redactor) -> Result<Self, CassetteError> {
        let _ = (path, redactor);
        Ok(Recorder { model })
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.model.ask(request, ask)
    }
}

/// Answers from a cassette.
pub struct Replay {
    name: String,
}

impl Replay {
    /// Answers from the cassette at `path`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let _ = path;
        Ok(Replay { name: String::new() })
    }

    /// How many exchanges are left.
    pub fn remaining(&self) -> usize {
        0
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        let _ = (request, ask);
        Box::pin(std::future::ready(Err(ModelFailure::new(FailureKind::Script, "not there yet"))))
    }
}
