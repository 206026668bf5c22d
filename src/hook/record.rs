//! Dispatches as JSON lines: what happened, for people to read and for a later chain to be tried on.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::outcome::{Change, Outcome, may_show, shown};

/// Appends dispatches to a file, secrets redacted by pattern.
pub struct Recorder {
    path: PathBuf,
    file: Mutex<File>,
    redact: Box<dyn Fn(&mut Value) + Send + Sync>,
}

impl Recorder {
    /// Opens `path` for appending; it is made if it is not there. `redact` takes secrets out of each line.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path, redact: impl Fn(&mut Value) + Send + Sync + 'static) -> std::io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Recorder { path: path.to_owned(), file: Mutex::new(file), redact: Box::new(redact) })
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one dispatch. A record that cannot be written is reported in the log and never fails a run.
    pub(super) fn write(&self, outcome: &Outcome) {
        let (original, withheld) = outcome.original_fields();
        let mut line = json!({
            "version": 1,
            "event": outcome.event().as_str(),
            "event_id": outcome.context.event_id(),
            "timestamp": outcome.context.timestamp(),
            "session_id": outcome.context.scope.session_id,
            "turn_id": outcome.context.scope.turn_id,
            "agent": outcome.context.scope.agent,
            "cwd": outcome.context.scope.cwd.to_string_lossy(),
            "continuation": outcome.context.scope.continuation,
            "fields": original,
            "withheld": withheld,
            "final": outcome.replaced_fields(),
            "outcome": outcome.summary(),
        });
        (self.redact)(&mut line);
        let mut text = line.to_string();
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes()) {
            tracing::error!(path = %self.path.display(), %error, "a dispatch could not be recorded");
        }
    }
}

impl Outcome {
    /// The fields as they were before any hook ran: what a replay begins with. Where a hook replaced a value that may
    /// not be shown (a result, a message), the final value stands in for it, and `withheld` names it.
    fn original_fields(&self) -> (Map<String, Value>, Map<String, Value>) {
        let (mut fields, mut withheld) = (Map::new(), Map::new());
        for (field, payload) in self.context.fields() {
            let first = self.changes.iter().find(|change| change.field == *field);
            let original = match first {
                Some(Change { before: Some(before), .. }) if may_show(*field, before) => Some(before),
                Some(Change { before: Some(before), .. }) => {
                    withheld.insert(field.as_str().into(), shown(*field, before).into());
                    Some(payload)
                }
                Some(Change { before: None, .. }) => None,
                None => Some(payload),
            };
            if let Some(Ok(value)) = original.map(|payload| payload.json()) {
                fields.insert(field.as_str().into(), value.clone());
            }
        }
        (fields, withheld)
    }

    /// The final values of the fields that were replaced.
    pub fn replaced_fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        for change in &self.changes {
            if super::result::accumulates(change.field) {
                continue;
            }
            if let Some(Ok(value)) = self.context.get(change.field).map(|payload| payload.json()) {
                fields.insert(change.field.as_str().into(), value.clone());
            }
        }
        fields
    }
}
