//! Exchanges with a server on record, and answers from such a record.
//!
//! A cassette is a file of JSON Lines. The first line is `{"cassette": 1, "model": NAME}`; each other line is one exchange
//! that went well: `api`, `request` (the body), `stream`, and `reply` (the body as it came, events included). Secrets are
//! left out of both.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dialect::Dialect;
use super::exchange::read_recorded;
use super::{Ask, FailureKind, Model, ModelFailure, Reply, Request, anthropic, openai};
use crate::hook::BoxFuture;
use crate::hook::redact::Redactor;

/// The version of the format.
const VERSION: u64 = 1;

/// One exchange with a server that went well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Which API: `openai` or `anthropic`.
    pub api: String,
    /// The body of the request.
    pub request: Value,
    /// Whether the reply came in events.
    pub stream: bool,
    /// The body of the reply, as it came.
    pub reply: String,
}

/// Takes down exchanges with a server.
pub trait Tape: Send + Sync {
    /// Takes one down.
    ///
    /// # Errors
    /// Why it could not.
    fn record(&self, exchange: Exchange) -> Result<(), String>;
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

struct FileTape {
    file: Mutex<File>,
    redactor: Redactor,
}

impl Tape for FileTape {
    fn record(&self, mut exchange: Exchange) -> Result<(), String> {
        self.redactor.redact_value(&mut exchange.request);
        exchange.reply = self.redactor.redact_text(&exchange.reply).into_owned();
        let mut line = serde_json::to_string(&exchange).map_err(|error| error.to_string())?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).and_then(|()| file.flush()).map_err(|error| error.to_string())
    }
}

/// Asks another model and writes down what it is asked and answers.
pub struct Recorder {
    model: Arc<dyn Model>,
}

impl Recorder {
    /// Records what `model` is asked and answers in the file at `path`, which is made anew; secrets that `redactor` knows
    /// are left out. The key is in neither.
    ///
    /// # Errors
    /// If the model asks no server, or the file cannot be written.
    pub fn new(model: Arc<dyn Model>, path: &Path, redactor: Redactor) -> Result<Self, CassetteError> {
        let failed = |reason: String| CassetteError { path: path.to_owned(), reason };
        let mut file = File::create(path).map_err(|error| failed(error.to_string()))?;
        let head = serde_json::json!({"cassette": VERSION, "model": model.name()});
        writeln!(file, "{head}").map_err(|error| failed(error.to_string()))?;
        let tape = Arc::new(FileTape { file: Mutex::new(file), redactor });
        let model = model.recorded(tape).ok_or_else(|| failed(format!("{} asks no server", model.name())))?;
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

/// Answers from a cassette, in its order.
pub struct Replay {
    name: String,
    path: PathBuf,
    exchanges: Vec<Exchange>,
    next: Mutex<usize>,
}

impl Replay {
    /// Answers from the cassette at `path`.
    ///
    /// # Errors
    /// If it cannot be read, naming the line.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let failed = |reason: String| CassetteError { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let head = lines.next().and_then(|(_, line)| serde_json::from_str::<Value>(line).ok()).unwrap_or_default();
        match head.get("cassette").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => return Err(failed(format!("version {other} is not known; this reads version {VERSION}"))),
            None => return Err(failed("its first line does not say that it is one".to_owned())),
        }
        let read = |(number, line): (usize, &str)| {
            let exchange: Exchange =
                serde_json::from_str(line).map_err(|error| failed(format!("line {}: {error}", number + 1)))?;
            if dialect(&exchange.api).is_none() {
                return Err(failed(format!("line {}: the API {:?} is not known", number + 1, exchange.api)));
            }
            Ok(exchange)
        };
        let exchanges = lines.map(read).collect::<Result<Vec<_>, _>>()?;
        let name = head.get("model").and_then(Value::as_str).unwrap_or("replay").to_owned();
        Ok(Replay { name, path: path.to_owned(), exchanges, next: Mutex::new(0) })
    }

    /// How many exchanges are left.
    pub fn remaining(&self) -> usize {
        self.exchanges.len() - *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request, ask: &Ask) -> Result<Reply, ModelFailure> {
        let failed = |message: String| ModelFailure::new(FailureKind::Script, message);
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(exchange) = self.exchanges.get(*next) else {
            return Err(failed(format!("the cassette {} is at its end", self.path.display())));
        };
        if let Some(difference) = difference(&exchange.request, request) {
            let number = *next + 1;
            return Err(failed(format!(
                "request {number} is not the one of the cassette {}: {difference}",
                self.path.display()
            )));
        }
        *next += 1;
        drop(next);
        let Some(dialect) = dialect(&exchange.api) else { return Err(failed("the API is not known".to_owned())) };
        let watch = ask.watch.as_ref().filter(|_| !ask.retries_only);
        let mut reply = read_recorded(dialect.as_ref(), exchange, watch)?;
        super::call_id::make_unique_in(&mut reply, request);
        Ok(reply)
    }
}

fn dialect(api: &str) -> Option<Arc<dyn Dialect>> {
    match api {
        "openai" => Some(Arc::new(openai::Chat)),
        "anthropic" => Some(Arc::new(anthropic::Messages)),
        _ => None,
    }
}

/// How what is asked differs from what was asked, as far as both say it: the texts in order. Ids, settings and what a
/// server wants besides may differ.
fn difference(recorded: &Value, request: &Request) -> Option<String> {
    let recorded = texts_of(recorded.get("messages"));
    let asked: Vec<String> = request
        .all_messages()
        .map(|message| message.text().trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    // Anything else than the texts of the conversation stands before them (instructions) or behind them (notes).
    for (index, text) in asked.iter().enumerate() {
        if !recorded.iter().any(|one| one.contains(text.as_str())) {
            let shown: String = text.chars().take(80).collect();
            return Some(format!("message {} says {shown:?}, which was not said", index + 1));
        }
    }
    None
}

fn texts_of(messages: Option<&Value>) -> Vec<String> {
    fn collect(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text.trim().to_owned()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, into)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    if let Some(messages) = messages {
        collect(messages, &mut texts);
    }
    texts
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete(&self, request: Arc<Request>) -> BoxFuture<Result<Reply, ModelFailure>> {
        self.ask(request, Ask::default())
    }

    fn ask(&self, request: Arc<Request>, ask: Ask) -> BoxFuture<Result<Reply, ModelFailure>> {
        Box::pin(std::future::ready(self.answer(&request, &ask)))
    }
}
