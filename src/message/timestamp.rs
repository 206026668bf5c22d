//! A moment, to the millisecond.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, to the millisecond. In JSON it is written in RFC 3339, in UTC; a number is read as milliseconds.
///
/// ```
/// use hookwright::message::Timestamp;
/// let moment = Timestamp::from_millis(1_735_787_045_006);
/// assert_eq!(moment.to_string(), "2025-01-02T03:04:05.006Z");
/// assert_eq!("2025-01-02T04:04:05.006+01:00".parse::<Timestamp>()?, moment);
/// # Ok::<(), hookwright::message::InvalidTimestamp>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after the Unix epoch; beyond the years -9999 and 9999 it is cut to them.
    pub fn from_millis(millis: i64) -> Self {
        let [first, last] = [jiff::Timestamp::MIN, jiff::Timestamp::MAX].map(|limit| limit.as_second() * 1000);
        Timestamp(millis.clamp(first, last))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// What the system's clock shows.
    pub fn now() -> Self {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cannot fail: `from_millis` cuts to what can be shown.
        let moment = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{moment:.3}")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time; write RFC 3339, such as 2025-01-02T03:04:05Z")]
pub struct InvalidTimestamp {
    /// What was read.
    pub text: String,
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        match text.parse::<jiff::Timestamp>() {
            Ok(moment) => Ok(Timestamp::from_millis(moment.as_millisecond())),
            Err(_) => Err(InvalidTimestamp { text: text.to_owned() }),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Millis(i64),
            Text(String),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Millis(millis) => Ok(Timestamp::from_millis(millis)),
            Wire::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}
