//! `list_dir`: what is in a folder.

use std::path::Path;
use std::sync::Arc;

use ignore::DirEntry;
use serde::Deserialize;
use serde_json::json;

use super::paths::Workspace;
use super::pattern::walk;
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

/// The most entries in one answer.
const MOST_ENTRIES: usize = 1000;
/// The deepest a call can ask for.
const DEEPEST: usize = 20;

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
    depth: Option<usize>,
    hidden: Option<bool>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "list_dir",
        "Lists what is in a directory, sorted, one entry a line: directories end with a slash, files have their size, \
         links what they lead to. Files ignored by git are left out, hidden ones too unless asked for.",
        Effect::Read,
        json!({
            "path": {"type": ["string", "null"], "description": "The directory. Default: the whole workspace."},
            "depth": {
                "type": ["integer", "null"], "minimum": 1, "maximum": DEEPEST,
                "description": "How many levels to list. Default: 1.",
            },
            "hidden": {"type": ["boolean", "null"], "description": "Whether names with a leading dot count. Default: false."},
        }),
        &[],
    );
    FileTool::shared(spec, workspace, list)
}

fn list(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let given = arguments.path.as_deref().unwrap_or(".");
    let start = workspace.existing(given)?;
    if !start.is_dir() {
        return Err(ToolError::new(ToolErrorCode::Invalid, format!("{given} is not a directory."))
            .field("path")
            .hint("Use read_file for a file."));
    }
    // A folder that cannot be read is no empty one.
    std::fs::read_dir(&start).map_err(|error| super::paths::file_error(given, "listed", &error))?;
    let depth = arguments.depth.unwrap_or(1).clamp(1, DEEPEST);
    let (mut lines, mut left_out) = (Vec::new(), 0);
    for entry in walk(&start, arguments.hidden.unwrap_or(false), Some(depth)) {
        cancelled.check()?;
        if entry.depth() == 0 {
            continue;
        }
        if lines.len() < MOST_ENTRIES {
            lines.push(line(&entry, &start));
        } else {
            left_out += 1;
        }
    }
    if lines.is_empty() {
        return Ok(format!("[nothing to list in {}]", workspace.shown(&start)));
    }
    if left_out > 0 {
        lines.push(format!("[{left_out} more entries; list a directory further down, or use glob]"));
    }
    Ok(lines.join("\n"))
}

fn line(entry: &DirEntry, start: &Path) -> String {
    // A name may hold a line break, which must not look like another entry.
    let name = entry.path().strip_prefix(start).unwrap_or(entry.path()).to_string_lossy().replace('\n', "\\n");
    match entry.file_type() {
        Some(kind) if kind.is_dir() => format!("{name}/"),
        Some(kind) if kind.is_symlink() => {
            let to = std::fs::read_link(entry.path()).unwrap_or_default();
            format!("{name} -> {}", to.to_string_lossy().replace('\n', "\\n"))
        }
        Some(kind) if kind.is_file() => match entry.metadata() {
            Ok(found) => format!("{name} ({} bytes)", found.len()),
            Err(_) => name,
        },
        _ => format!("{name} (neither file nor directory)"),
    }
}
