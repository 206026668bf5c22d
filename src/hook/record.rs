//! Dispatches as JSON lines: what happened, for people to read and for a later chain to be tried on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::outcome::{Change, Outcome, may_show, shown};
use super::redact::Redactor;

/// The version of the format of a line.
pub(super) const VERSION: u64 = 1;

/// Appends dispatches to a file, secrets redacted by pattern.
pub struct Recorder {
    path: PathBuf,
    output: Mutex<Output>,
    redactor: Redactor,
}

struct Output {
    file: File,
    /// Whether the last line of the file has no end: then the next one begins by ending it.
    torn: bool,
    lines: u64,
}

impl Recorder {
    /// Opens `path` for appending; it is made, for the user alone, if it is not there. `redactor` takes secrets out of
    /// each line.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path, redactor: Redactor) -> io::Result<Self> {
        let file = File::options().create(true).append(true).read(true).mode(0o600).open(path)?;
        let torn = is_torn(&file);
        let path = path.canonicalize()?;
        Ok(Recorder { path, output: Mutex::new(Output { file, torn, lines: 0 }), redactor })
    }

    /// Where the record is, as a canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many dispatches this recorder has written.
    pub fn lines(&self) -> u64 {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).lines
    }

    /// Appends one dispatch. A record that cannot be written is reported in the log and never fails a run.
    pub(super) fn write(&self, outcome: &Outcome) {
        let (original, withheld) = outcome.original_fields();
        let mut line = json!({
            "version": VERSION,
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
        if let (Some(mode), Some(object)) = (outcome.context.mode(), line.as_object_mut()) {
            object.insert("mode".into(), mode.into());
        }
        self.redactor.redact_value(&mut line);
        let mut text = line.to_string();
        text.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.torn {
            text.insert(0, '\n');
        }
        // One write for a line, so that two processes that append to one file do not mix theirs.
        let written = output.file.write_all(text.as_bytes());
        output.torn = written.is_err();
        match written {
            Ok(()) => output.lines += 1,
            Err(error) => tracing::error!(path = %self.path.display(), %error, "a dispatch could not be recorded"),
        }
    }
}

/// Whether a file ends in the middle of a line, as after a full disk. One that cannot be read or sought, such as a pipe,
/// has no lines to end.
fn is_torn(mut file: &File) -> bool {
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).is_ok() && file.read_exact(&mut last).is_ok() && last != *b"\n"
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
