//! Exchanges with a server on record, and answers from such a record.
//!
//! A cassette is a file of JSON lines. The first is `{"hookwright_cassette": 1, "model": …}`, where 1 is the version of
//! the format. Each other line is one attempt of one request, in the order in which they ended:
//!
//! | field | what |
//! |---|---|
//! | `api` | `openai`, `anthropic`, or `function` for a model without a server |
//! | `profile` | the name of the profile that the body was written for |
//! | `attempt` | 1, or more for a request that was made again |
//! | `request` | the body that was sent |
//! | `status` | the status of the answer, if there was one |
//! | `body` | the text of an answer that came in one piece |
//! | `events` | of one that was streamed: the events as `[name, data]` |
//! | `call_ids` | the ids of the reply's tool calls, where some were made here |
//! | `failure` | why the attempt failed, if it did |
//!
//! Headers are not written, and secrets stand as `[redacted]`, which fits anything when requests are compared.

mod compare;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

pub use recorder::Recorder;
pub use replay::Replay;

use super::{ModelFailure, Request};

/// The version of the format that is written.
const VERSION: u64 = 1;

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
    pub request: &'a Map<String, Value>,
    /// Which attempt of its request it is, from 1.
    pub attempt: u32,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// The body of the answer, if it came in one piece.
    pub body: Option<&'a str>,
    /// Names and data of the events, if it was streamed.
    pub events: &'a [(String, String)],
    /// The ids of the calls in the reply.
    pub call_ids: &'a [String],
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

/// A request to a model without a server as a value: what the model sees, without what changes from run to run.
fn canonical(request: &Request) -> Map<String, Value> {
    let message = |message| {
        let mut value = serde_json::to_value(message).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.retain(|name, _| name != "id" && name != "timestamp");
        }
        value
    };
    let value = json!({
        "model": request.model.as_deref(),
        "system": request.system.as_deref(),
        "messages": request.all_messages().map(|shared| message(&**shared)).collect::<Vec<_>>(),
        "additional_context": request.additional_context,
        "tools": request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        "settings": request.settings,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
