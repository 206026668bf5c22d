//! `read_file`: a text file, or some of its lines.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::paths::{Workspace, file_error};
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

/// The most bytes of a file in one answer.
const MOST_BYTES: usize = 256 * 1024;
/// How far into a file a null byte makes it a binary one.
const PROBE: usize = 8 * 1024;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "read_file",
        "Reads a text file of the workspace, as it is, without line numbers. At most 256 KiB at once: use start_line and \
         end_line for parts of a long file. A last line in square brackets says when something is left out.",
        Effect::Read,
        json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace."},
            "start_line": {"type": ["integer", "null"], "minimum": 1, "description": "The first line, counted from 1."},
            "end_line": {"type": ["integer", "null"], "minimum": 1, "description": "The last line, itself included."},
        }),
        &["path"],
    );
    FileTool::shared(spec, workspace, read)
}

fn read(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let path = workspace.existing(&arguments.path)?;
    let first = arguments.start_line.unwrap_or(1).max(1);
    let last = arguments.end_line.unwrap_or(u64::MAX);
    if last < first {
        let detail = format!("The last line, {last}, comes before the first, {first}.");
        return Err(ToolError::new(ToolErrorCode::Invalid, detail).field("end_line"));
    }
    let failed = |error: std::io::Error| file_error(&arguments.path, "read", &error);
    let file = open_regular(&path, &arguments.path)?;
    workspace.seen.reading(&path);
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let start = reader.fill_buf().map_err(failed)?;
    if start.iter().take(PROBE).any(|byte| *byte == 0) {
        let detail = format!("{} is a binary file of {size} bytes.", arguments.path);
        return Err(ToolError::new(ToolErrorCode::Invalid, detail).field("path").hint("Only text files can be read."));
    }

    let taken = take_lines(&mut reader, first, last, cancelled, failed)?;
    if taken.lines_seen == 0 && first == 1 {
        return Ok("[the file is empty]".into());
    }
    if taken.lines_seen < first {
        let detail = format!("{} has only {} lines.", arguments.path, taken.lines_seen);
        return Err(ToolError::new(ToolErrorCode::Invalid, detail).field("start_line"));
    }
    Ok(taken.told(size))
}

/// Opens a file that is one: reading a pipe or a device could take for ever.
fn open_regular(path: &Path, given: &str) -> Result<File, ToolError> {
    let metadata = path.metadata().map_err(|error| file_error(given, "read", &error))?;
    if metadata.is_dir() {
        return Err(ToolError::new(ToolErrorCode::Invalid, format!("{given} is a directory."))
            .field("path")
            .hint("Use list_dir to see what is in it."));
    }
    if !metadata.is_file() {
        return Err(ToolError::new(ToolErrorCode::Invalid, format!("{given} is not a regular file.")).field("path"));
    }
    File::open(path).map_err(|error| file_error(given, "read", &error))
}

/// Some lines of a file.
struct Taken {
    bytes: Vec<u8>,
    /// The number of the last line that was at least begun.
    lines_seen: u64,
    /// Whether the cap ended it, and whether in the middle of a line.
    capped: bool,
    cut_in_line: bool,
    /// Whether the file goes on after the last line asked for.
    more: bool,
}

/// Takes the lines `first..=last`, up to the cap. Memory stays bounded however long a line is.
fn take_lines(
    reader: &mut impl BufRead,
    first: u64,
    last: u64,
    cancelled: &Cancelled,
    failed: impl Fn(std::io::Error) -> ToolError,
) -> Result<Taken, ToolError> {
    let mut taken = Taken { bytes: Vec::new(), lines_seen: 0, capped: false, cut_in_line: false, more: false };
    let mut at_line_start = true;
    loop {
        cancelled.check()?;
        let chunk = reader.fill_buf().map_err(&failed)?;
        if chunk.is_empty() {
            return Ok(taken);
        }
        if at_line_start {
            if taken.lines_seen == last {
                taken.more = true;
                return Ok(taken);
            }
            if taken.bytes.len() >= MOST_BYTES {
                taken.capped = true;
                return Ok(taken);
            }
            taken.lines_seen += 1;
        }
        let line_end = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..line_end.map_or(chunk.len(), |end| end + 1)];
        if taken.lines_seen >= first {
            let room = MOST_BYTES - taken.bytes.len();
            if piece.len() > room {
                taken.end_at_cap(&piece[..room]);
                return Ok(taken);
            }
            taken.bytes.extend_from_slice(piece);
        }
        at_line_start = line_end.is_some();
        let used = piece.len();
        reader.consume(used);
    }
}

impl Taken {
    /// Ends at the cap: before the line that does not fit, or, if it is the first one, inside it.
    fn end_at_cap(&mut self, room: &[u8]) {
        self.capped = true;
        self.bytes.extend_from_slice(room);
        match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                self.bytes.truncate(end + 1);
                self.lines_seen -= 1;
            }
            None => {
                self.cut_in_line = true;
                while !self.bytes.is_empty() && !ends_on_boundary(&self.bytes) {
                    self.bytes.pop();
                }
            }
        }
    }

    /// The text, with a last line that says what is left out.
    fn told(self, size: u64) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let mut notes = Vec::new();
        if matches!(text, std::borrow::Cow::Owned(_)) {
            notes.push("some bytes are not UTF-8 and are shown as \u{fffd}".to_owned());
        }
        let line = self.lines_seen;
        if self.cut_in_line {
            notes.push(format!("line {line} is cut here after {MOST_BYTES} bytes; the file has {size} bytes"));
        } else if self.capped {
            notes.push(format!("cut after line {line}; the file has {size} bytes; go on with start_line {}", line + 1));
        } else if self.more {
            notes.push(format!("the file goes on after line {line}"));
        }
        let mut text = text.into_owned();
        if !notes.is_empty() {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{}]", notes.join("; ")));
        }
        text
    }
}

/// Whether no UTF-8 sequence is cut off at the end. Bytes that are no UTF-8 at all count as whole.
fn ends_on_boundary(bytes: &[u8]) -> bool {
    let tail = &bytes[bytes.len().saturating_sub(4)..];
    let start = tail.iter().rposition(|byte| !matches!(byte, 0x80..=0xBF)).unwrap_or(0);
    std::str::from_utf8(&tail[start..]).map_or_else(|error| error.error_len().is_some(), |_| true)
}
