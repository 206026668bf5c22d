//! A history as a field of an event: shared, and rendered only for who reads it.

use std::any::Any;

use serde_json::Value;

use crate::hook::{Foreign, PayloadError};
use crate::message::History;

/// The messages of a session as a field. Sharing it costs a reference count, however long the history is.
pub struct HistoryPayload(pub History);

impl Foreign for HistoryPayload {
    fn to_json(&self) -> Result<Value, PayloadError> {
        let render = |message| serde_json::to_value(message).map_err(|error| PayloadError(error.to_string()));
        self.0.iter().map(|message| render(message.as_ref())).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
