//! `write_file`: a whole file at once.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::paths::{Workspace, file_error};
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "write_file",
        "Writes a text file of the workspace, whole: an existing file is replaced, missing directories are created.",
        Effect::Write,
        json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace."},
            "content": {"type": "string", "description": "All that the file shall hold."},
        }),
        &["path", "content"],
    );
    FileTool::shared(spec, workspace, write)
}

fn write(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let path = workspace.target(&arguments.path)?;
    let refused = |code, why: &str| {
        Err(ToolError::new(code, format!("{} {why}, so it was not written.", arguments.path)).field("path"))
    };
    let before = path.metadata().ok();
    if let Some(before) = &before {
        if before.is_dir() {
            return refused(ToolErrorCode::Invalid, "is a directory");
        }
        if !before.is_file() {
            return refused(ToolErrorCode::Invalid, "is not a regular file");
        }
        // Replacing a file needs no right to write to it, but the one who took that right away meant it.
        if before.permissions().readonly() {
            return refused(ToolErrorCode::Denied, "is write-protected");
        }
    }
    cancelled.check()?;
    let permissions = before.as_ref().map(std::fs::Metadata::permissions);
    replace(&path, arguments.content.as_bytes(), permissions)
        .map_err(|error| file_error(&arguments.path, "written", &error))?;
    let (path, length) = (workspace.shown(&path), arguments.content.len());
    Ok(match before {
        Some(before) => format!("Wrote {length} bytes to {path}, replacing {} bytes.", before.len()),
        None => format!("Wrote {length} bytes to {path}, a new file."),
    })
}

/// Puts `content` in place in one step: a reader sees the old file or the new one, never a part.
fn replace(path: &Path, content: &[u8], permissions: Option<std::fs::Permissions>) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent)?;
    let mut file = tempfile::Builder::new()
        .prefix(".hookwright-")
        // What the user's umask leaves of it, as with any new file.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(parent)?;
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
