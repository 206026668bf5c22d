//! A request that failed for good.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Reply;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The server could not be reached, or the connection broke.
    Connection,
    /// The server took too long.
    Timeout,
    /// Too many requests.
    RateLimited,
    /// The server has no room at present.
    Overloaded,
    /// The server failed.
    Server,
    /// The server refused the request as wrong.
    InvalidRequest,
    /// The key is missing, wrong, or not allowed to do this.
    Authentication,
    /// The answer could not be understood, or ended too early.
    InvalidReply,
    /// A function that stands in for a model raised.
    Function,
    /// A script did not fit what it was asked.
    Script,
    /// The request was cancelled.
    Cancelled,
}

impl FailureKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureKind::Connection => "connection",
            FailureKind::Timeout => "timeout",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Overloaded => "overloaded",
            FailureKind::Server => "server",
            FailureKind::InvalidRequest => "invalid_request",
            FailureKind::Authentication => "authentication",
            FailureKind::InvalidReply => "invalid_reply",
            FailureKind::Function => "function",
            FailureKind::Script => "script",
            FailureKind::Cancelled => "cancelled",
        }
    }

    /// What is said if the failure has no message of its own.
    const fn default_message(self) -> &'static str {
        match self {
            FailureKind::Connection => "the model's server could not be reached",
            FailureKind::Timeout => "the model's server took too long",
            FailureKind::RateLimited => "the model's server refused because of too many requests",
            FailureKind::Overloaded => "the model's server is overloaded",
            FailureKind::Server => "the model's server failed",
            FailureKind::InvalidRequest => "the model's server refused the request",
            FailureKind::Authentication => "the model's server refused the key",
            FailureKind::InvalidReply => "the model's answer could not be understood",
            FailureKind::Function => "the function that stands in for the model raised",
            FailureKind::Script => "the script does not fit what the model was asked",
            FailureKind::Cancelled => "the request was cancelled",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that failed for good, after whatever retries the model makes. Its JSON is the `error` field of the
/// event `llm_error`.
///
/// ```
/// use hookwright::model::{FailureKind, ModelFailure};
/// let failure = ModelFailure { status: Some(503), attempts: 4, ..ModelFailure::new(FailureKind::Overloaded, "") };
/// assert_eq!(failure.to_string(), "the model's server is overloaded (status 503, 4 attempts)");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// What kind of failure it was.
    pub kind: FailureKind,
    /// The HTTP status, if there was an answer.
    #[serde(default)]
    pub status: Option<u16>,
    /// What went wrong; never empty if made by [`new`](ModelFailure::new).
    pub message: String,
    /// How often it was tried.
    pub attempts: u32,
    /// How long the server asked to be left alone, if it did; in JSON a number of seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds")]
    pub retry_after: Option<Duration>,
    /// What had come in of a reply that ended early. Never to be taken for the answer. It is not part of the JSON.
    #[serde(skip)]
    pub partial: Option<Box<Reply>>,
}

impl ModelFailure {
    /// A failure at the first attempt and without a status. An empty `message` becomes a default one for `kind`.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.trim().is_empty() {
            message = kind.default_message().to_owned();
        }
        ModelFailure { kind, status: None, message, attempts: 1, retry_after: None, partial: None }
    }
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.status, self.attempts) {
            (Some(status), 0 | 1) => write!(f, " (status {status})"),
            (Some(status), attempts) => write!(f, " (status {status}, {attempts} attempts)"),
            (None, 0 | 1) => Ok(()),
            (None, attempts) => write!(f, " ({attempts} attempts)"),
        }
    }
}

impl std::error::Error for ModelFailure {}

/// Durations as numbers of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
    }
}
