//! Writes a cassette.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::{CassetteError, Exchange, Tape, VERSION, canonical};
use crate::hook::BoxFuture;
use crate::hook::redact::{REDACTED, Redactor};
use crate::model::{Ask, Model, ModelFailure, Reply, Request};

/// Asks another model and writes down what is sent and what comes back.
pub struct Recorder {
    model: Arc<dyn Model>,
    /// Where the replies of a model without a server are written; one with a server writes its exchanges itself.
    tape: Option<Arc<Writer>>,
}

impl Recorder {
    /// Records what `model` is asked and answers in the file at `path`, which is made anew. What `redactor` finds and the
    /// model's own key are left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(model: Arc<dyn Model>, path: &Path, redactor: Redactor) -> Result<Self, CassetteError> {
        let bad = |error: std::io::Error| CassetteError { path: path.to_owned(), reason: error.to_string() };
        let mut file = File::create(path).map_err(bad)?;
        writeln!(file, "{}", json!({"hookwright_cassette": VERSION, "model": model.name()})).map_err(bad)?;
        let writer = Arc::new(Writer { file: Mutex::new(file), redactor });
        Ok(match model.recorded(Arc::clone(&writer) as Arc<dyn Tape>) {
            Some(model) => Recorder { model, tape: None },
            None => Recorder { model, tape: Some(writer) },
        })
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
        let answer = self.model.ask(Arc::clone(&request), ask);
        let Some(tape) = self.tape.clone() else {
            return answer;
        };
        let name = self.model.name().to_owned();
        Box::pin(async move {
            let result = answer.await;
            let body = result.as_ref().ok().and_then(|reply| serde_json::to_string(reply).ok());
            tape.note(&Exchange {
                api: "function",
                model: &name,
                profile: "",
                request: &canonical(&request),
                attempt: 1,
                status: None,
                body: body.as_deref(),
                events: &[],
                call_ids: &[],
                failure: result.as_ref().err(),
                secrets: &[],
            });
            result
        })
    }
}

/// The file.
struct Writer {
    file: Mutex<File>,
    redactor: Redactor,
}

impl Tape for Writer {
    fn note(&self, exchange: &Exchange<'_>) {
        let mut line = Map::new();
        line.insert("api".into(), exchange.api.into());
        line.insert("profile".into(), exchange.profile.into());
        line.insert("attempt".into(), exchange.attempt.into());
        line.insert("request".into(), Value::Object(exchange.request.clone()));
        if let Some(status) = exchange.status {
            line.insert("status".into(), status.into());
        }
        if let Some(body) = exchange.body {
            line.insert("body".into(), body.into());
        }
        if !exchange.events.is_empty() {
            line.insert("events".into(), json!(exchange.events));
        }
        if !exchange.call_ids.is_empty() {
            line.insert("call_ids".into(), json!(exchange.call_ids));
        }
        if let Some(failure) = exchange.failure {
            line.insert("failure".into(), json!(failure));
        }
        let mut line = Value::Object(line);
        take_out(&mut line, exchange.secrets);
        self.redactor.redact_value(&mut line);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            tracing::error!(target: "hookwright.model", %error, "an exchange could not be recorded");
        }
    }
}

/// Takes each of `secrets` out of every text in `value`.
fn take_out(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in
                secrets.iter().filter(|secret| !secret.is_empty() && text.contains(secret.as_str())).collect::<Vec<_>>()
            {
                *text = text.replace(secret.as_str(), REDACTED);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_out(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| take_out(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
