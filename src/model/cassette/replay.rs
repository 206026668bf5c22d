//! Answers from a cassette.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::compare::difference;
use super::{CassetteError, VERSION, canonical};
use crate::hook::BoxFuture;
use crate::model::anthropic::Messages;
use crate::model::openai::ChatCompletions;
use crate::model::sse::Event;
use crate::model::wire::Api;
use crate::model::{Ask, FailureKind, Model, ModelFailure, Profile, Reply, Request, StreamEvent};

/// One attempt on record.
#[derive(Debug, Clone, Deserialize)]
struct Entry {
    api: String,
    #[serde(default)]
    profile: String,
    attempt: u32,
    request: Value,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    events: Vec<(String, String)>,
    #[serde(default)]
    call_ids: Vec<String>,
    #[serde(default)]
    failure: Option<ModelFailure>,
}

/// Answers from a cassette: in order, and only what was asked then. Attempts that failed fail again, without the waits.
pub struct Replay {
    name: String,
    entries: Arc<[Entry]>,
    position: Mutex<usize>,
}

impl Replay {
    /// Answers from the cassette at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is none, or is of a later version.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let bad = |reason: String| CassetteError { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let head: Value = lines.next().and_then(|(_, line)| serde_json::from_str(line).ok()).unwrap_or_default();
        match head["hookwright_cassette"].as_u64() {
            Some(VERSION) => {}
            Some(version) => {
                return Err(bad(format!("it is of version {version}, and this program reads version {VERSION}")));
            }
            None => return Err(bad("its first line does not say that it is a cassette".to_owned())),
        }
        let entry = |(number, line): (usize, &str)| -> Result<Entry, CassetteError> {
            let entry: Entry =
                serde_json::from_str(line).map_err(|error| bad(format!("line {}: {error}", number + 1)))?;
            if !matches!(entry.api.as_str(), "openai" | "anthropic" | "function") {
                return Err(bad(format!("line {}: there is no API {:?}", number + 1, entry.api)));
            }
            Ok(entry)
        };
        let entries = lines.map(entry).collect::<Result<_, _>>()?;
        let name = head["model"].as_str().unwrap_or("replay").to_owned();
        Ok(Replay { name, entries, position: Mutex::new(0) })
    }

    /// How many attempts are left.
    pub fn remaining(&self) -> usize {
        self.entries.len() - *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request, ask: &Ask) -> Result<Reply, ModelFailure> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(entry) = self.entries.get(*position) else {
                let message =
                    format!("the cassette is used up: all {} attempts on it were replayed", self.entries.len());
                return Err(ModelFailure::new(FailureKind::Script, message));
            };
            if let Some(difference) = entry.difference(request, &self.name) {
                let number = *position + 1;
                let message = format!("request {number} of the cassette is another one: {difference}");
                return Err(ModelFailure::new(FailureKind::Script, message));
            }
            *position += 1;
            let again = self.entries.get(*position).is_some_and(|next| next.attempt == entry.attempt + 1);
            match (entry.answer(request, ask), again) {
                (Err(failure), true) => {
                    if let Some(watch) = &ask.watch {
                        let (attempt, wait) = (entry.attempt, Duration::ZERO);
                        watch(StreamEvent::Retry { attempt, of: None, failure, wait });
                    }
                }
                (result, _) => return result,
            }
        }
    }
}

impl Entry {
    fn api(&self) -> Option<&'static dyn Api> {
        match self.api.as_str() {
            "openai" => Some(&ChatCompletions),
            "anthropic" => Some(&Messages),
            _ => None,
        }
    }

    /// What differs first between the request on record and this one. Whether it is streamed is for the record to say,
    /// and so are the settings of the server that it was made for.
    fn difference(&self, request: &Request, name: &str) -> Option<String> {
        let Some(api) = self.api() else {
            return difference(&self.request, &Value::Object(canonical(request)), "request");
        };
        let profile = match Profile::named(&self.profile) {
            Ok(profile) => profile,
            Err(error) => return Some(error.to_string()),
        };
        let mut full = request.clone();
        full.model.get_or_insert_with(|| name.into());
        let stream = self.request["stream"] == true;
        let mut asked = api.body(&full, &profile, stream);
        for (name, value) in self.request.as_object().into_iter().flatten() {
            let is_setting = !matches!(name.as_str(), "model" | "messages" | "system" | "tools");
            if is_setting && !request.settings.contains_key(name) {
                asked.insert(name.clone(), value.clone());
            }
        }
        difference(&self.request, &Value::Object(asked), "request")
    }

    fn answer(&self, request: &Request, ask: &Ask) -> Result<Reply, ModelFailure> {
        let mut result = match (self.api(), &self.body) {
            (Some(_), None) if self.events.is_empty() => Err(ModelFailure::new(FailureKind::Connection, "")),
            (Some(api), None) => self.streamed(api, request, ask),
            (Some(api), Some(body)) => api.reply(body),
            (None, body) => serde_json::from_str(body.as_deref().unwrap_or_default())
                .map_err(|error| ModelFailure::new(FailureKind::InvalidReply, error.to_string())),
        };
        if let Some(failure) = &self.failure {
            let partial = result.err().and_then(|failure| failure.partial);
            return Err(ModelFailure { partial, ..failure.clone() });
        }
        if let Ok(reply) = &mut result {
            for (call, id) in reply.tool_calls.iter_mut().zip(&self.call_ids) {
                call.id.clone_from(id);
            }
        }
        result
    }

    fn streamed(&self, api: &'static dyn Api, request: &Request, ask: &Ask) -> Result<Reply, ModelFailure> {
        let mut assembler = api.assembler(request);
        let watch = ask.watch.as_ref().filter(|_| ask.stream != Some(false));
        for (name, data) in &self.events {
            assembler.read(Event { name, data, whole: true }, &mut |piece| {
                if let Some(watch) = watch {
                    watch(piece);
                }
            })?;
        }
        let complete = assembler.is_complete();
        let reply = assembler.take();
        if complete {
            return Ok(reply);
        }
        Err(ModelFailure {
            partial: Some(Box::new(reply)),
            ..ModelFailure::new(FailureKind::InvalidReply, "the recorded answer ended early")
        })
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
        Box::pin(std::future::ready(self.answer(&request, &ask)))
    }
}
