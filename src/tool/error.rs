//! What a call could not do, said so that a model can act on it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schema::Problem;

/// The kind of a [`ToolError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorCode {
    /// An argument is missing.
    Required,
    /// An argument has the wrong JSON type.
    Type,
    /// An argument has a value that cannot be used.
    Invalid,
    /// Credentials are missing or wrong.
    Unauthorized,
    /// It is not allowed.
    Denied,
    /// It took too long.
    Timeout,
    /// What it names does not exist.
    NotFound,
    /// The call was cancelled.
    Cancelled,
    /// The tool failed.
    Exception,
    /// The tool came to a place that its author thought impossible.
    Panic,
    /// The arguments were cut off on their way.
    TruncatedArguments,
}

impl ToolErrorCode {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::Required,
        Self::Type,
        Self::Invalid,
        Self::Unauthorized,
        Self::Denied,
        Self::Timeout,
        Self::NotFound,
        Self::Cancelled,
        Self::Exception,
        Self::Panic,
        Self::TruncatedArguments,
    ];

    /// The code that a JSON value names, if it names one.
    pub(super) fn deserialize_known(value: &serde_json::Value) -> Option<Self> {
        let name = value.as_str()?;
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The name as it stands in JSON, for example `not_found`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Type => "type",
            Self::Invalid => "invalid",
            Self::Unauthorized => "unauthorized",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::NotFound => "not_found",
            Self::Cancelled => "cancelled",
            Self::Exception => "exception",
            Self::Panic => "panic",
            Self::TruncatedArguments => "truncated_arguments",
        }
    }

    /// What is said when a failure comes without a text of its own.
    fn default_detail(self) -> &'static str {
        match self {
            Self::Required => "An argument is missing.",
            Self::Type => "An argument has the wrong type.",
            Self::Invalid => "An argument has a value that cannot be used.",
            Self::Unauthorized => "The tool has no valid credentials for this.",
            Self::Denied => "This is not allowed.",
            Self::Timeout => "The call took too long and was ended.",
            Self::NotFound => "It does not exist.",
            Self::Cancelled => "The call was cancelled.",
            Self::Exception => "The tool failed without saying why.",
            Self::Panic => "The tool broke off because of a mistake in its own code.",
            Self::TruncatedArguments => "The arguments were cut off before their end.",
        }
    }
}

impl fmt::Display for ToolErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A wait of so many seconds, if that is a wait at all.
pub(super) fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A wait as a number of seconds: what every reader of JSON understands.
mod in_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(wait: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        wait.map(|wait| wait.as_secs_f64()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.and_then(super::seconds))
    }
}

/// A failed call.
///
/// ```
/// use hookwright::tool::{ToolError, ToolErrorCode};
/// let error = ToolError::new(ToolErrorCode::NotFound, "src/mian.rs does not exist.")
///     .field("path")
///     .hint("Did you mean src/main.rs?");
/// assert_eq!(error.render(), "Error (not_found), argument `path`: src/mian.rs does not exist.\nDid you mean src/main.rs?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of failure.
    pub code: ToolErrorCode,
    /// The argument at fault, as a path such as `edits[0].path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What failed and why, in whole sentences.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// How long to wait before that; in JSON in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "in_seconds")]
    pub retry_after: Option<Duration>,
}

impl ToolError {
    /// A failure with neither field nor hint, not to be retried. An empty `detail` is replaced by a text for the code.
    pub fn new(code: ToolErrorCode, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if detail.trim().is_empty() {
            detail = code.default_detail().to_owned();
        }
        Self { code, field: None, detail, hint: None, retryable: false, retry_after: None }
    }

    /// Arguments that do not fit their schema: all problems in one failure.
    ///
    /// Code and field are those of the first problem.
    pub fn from_problems(problems: &[Problem]) -> Self {
        let Some(first) = problems.first() else {
            return Self::new(ToolErrorCode::Invalid, "The arguments do not fit the tool's schema.");
        };
        let error = if problems.len() == 1 {
            let error = Self::new(first.code, format!("{}.", first.message));
            if first.field.is_empty() { error } else { error.field(&first.field) }
        } else {
            let lines: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
            Self::new(first.code, format!("{} problems with the arguments:{lines}", problems.len()))
        };
        error.hint("Correct the arguments and call the tool again.")
    }

    /// Names the argument at fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says that the same call may succeed later, and after how long if that is known.
    #[must_use]
    pub fn retryable(mut self, retry_after: Option<Duration>) -> Self {
        self.retryable = true;
        self.retry_after = retry_after;
        self
    }

    /// The text for the model: what failed, which argument, why, and what to do.
    pub fn render(&self) -> String {
        let mut text = format!("Error ({})", self.code);
        if let Some(field) = &self.field {
            text.push_str(&format!(", argument `{field}`"));
        }
        text.push_str(&format!(": {}", self.detail));
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n{hint}"));
        }
        match (self.retryable, self.retry_after) {
            (true, Some(wait)) => {
                text.push_str(&format!("\nThe same call may succeed after {} s.", wait.as_secs_f64().ceil()));
            }
            (true, None) => text.push_str("\nThe same call may succeed if you try again."),
            (false, _) => {}
        }
        text
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render())
    }
}

impl std::error::Error for ToolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_detail_gets_a_default_text() {
        assert_eq!(
            ToolError::new(ToolErrorCode::Exception, " ").render(),
            "Error (exception): The tool failed without saying why."
        );
    }

    #[test]
    fn a_retry_is_said_with_its_wait() {
        let error = ToolError::new(ToolErrorCode::Exception, "The server is busy.");
        assert_eq!(
            error.clone().retryable(Some(Duration::from_millis(1500))).render(),
            "Error (exception): The server is busy.\nThe same call may succeed after 2 s."
        );
        assert_eq!(
            error.retryable(None).render(),
            "Error (exception): The server is busy.\nThe same call may succeed if you try again."
        );
    }

    #[test]
    fn it_survives_json() {
        let error = ToolError::new(ToolErrorCode::TruncatedArguments, "").field("a").hint("b");
        let error = error.retryable(Some(Duration::from_millis(1500)));
        let text = serde_json::to_string(&error).unwrap();
        assert!(text.contains(r#""code":"truncated_arguments""#), "{text}");
        assert!(text.contains(r#""retry_after":1.5"#), "{text}");
        assert_eq!(serde_json::from_str::<ToolError>(&text).unwrap(), error);
    }

    #[test]
    fn codes_have_one_name_everywhere() {
        for code in ToolErrorCode::ALL {
            let name = serde_json::to_value(code).unwrap();
            assert_eq!(name, serde_json::Value::from(code.as_str()));
            assert_eq!(ToolErrorCode::deserialize_known(&name), Some(code));
        }
    }
}
