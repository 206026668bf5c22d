//! `glob`: which files there are.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::paths::Workspace;
use super::pattern::{PathPattern, files};
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

/// The most paths in one answer.
const MOST_PATHS: usize = 1000;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "glob",
        "Lists the files whose path matches a glob pattern, sorted, one a line. A pattern without a slash (`*.py`) \
         matches the file name at any depth; one with a slash (`src/**/*.py`) the path below `path`. Files ignored by \
         git are left out.",
        Effect::Read,
        json!({
            "pattern": {"type": "string", "minLength": 1, "description": "The glob: *, ?, **, {a,b}, [a-z]."},
            "path": {"type": ["string", "null"], "description": "The directory to look in. Default: the whole workspace."},
        }),
        &["pattern"],
    );
    FileTool::shared(spec, workspace, find)
}

fn find(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let pattern = PathPattern::new(&arguments.pattern, "pattern")?;
    let given = arguments.path.as_deref().unwrap_or(".");
    let start = workspace.existing(given)?;
    if !start.is_dir() {
        return Err(ToolError::new(ToolErrorCode::Invalid, format!("{given} is not a directory.")).field("path"));
    }
    let (mut lines, mut left_out) = (Vec::new(), 0);
    for entry in files(&start) {
        cancelled.check()?;
        if pattern.matches(entry.path(), &start) {
            if lines.len() < MOST_PATHS {
                lines.push(workspace.shown(entry.path()));
            } else {
                left_out += 1;
            }
        }
    }
    if lines.is_empty() {
        return Ok(format!("[no file matches {} in {}]", arguments.pattern, workspace.shown(&start)));
    }
    if left_out > 0 {
        lines.push(format!("[{left_out} more files match; narrow the pattern]"));
    }
    Ok(lines.join("\n"))
}
