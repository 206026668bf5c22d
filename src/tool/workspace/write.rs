//! `write_file`: a whole file at once.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::lock::FileLock;
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
        "Writes a text file of the workspace, whole: an existing file is replaced, missing directories are \
         created. Fails if the file was changed since you read it. For a part of a file use edit_file.",
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
    writable(&path, &arguments.path)?;
    let _lock = FileLock::acquire(&path, &arguments.path, cancelled)?;
    workspace.seen.check(&path, &arguments.path)?;
    cancelled.check()?;
    let before = path.metadata().ok();
    let permissions = before.as_ref().map(std::fs::Metadata::permissions);
    let content = arguments.content.as_bytes();
    replace(&path, content, permissions).map_err(|error| file_error(&arguments.path, "written", &error))?;
    workspace.seen.wrote(&path, content);
    let (path, length) = (workspace.shown(&path), content.len());
    Ok(match before {
        Some(before) => format!("Wrote {length} bytes to {path}, replacing {} bytes.", before.len()),
        None => format!("Wrote {length} bytes to {path}, a new file."),
    })
}

/// Whether `path` is a file that may be replaced, or nothing yet.
pub(super) fn writable(path: &Path, given: &str) -> Result<(), ToolError> {
    let refused =
        |code, why: &str| Err(ToolError::new(code, format!("{given} {why}, so it was not written.")).field("path"));
    match path.metadata() {
        Ok(found) if found.is_dir() => refused(ToolErrorCode::Invalid, "is a directory"),
        Ok(found) if !found.is_file() => refused(ToolErrorCode::Invalid, "is not a regular file"),
        // Replacing a file needs no right to write to it, but the one who took that right away meant it.
        Ok(found) if found.permissions().readonly() => refused(ToolErrorCode::Denied, "is write-protected"),
        _ => Ok(()),
    }
}

/// Puts `content` in place in one step: a reader sees the old file or the new one, never a part.
pub(super) fn replace(path: &Path, content: &[u8], permissions: Option<std::fs::Permissions>) -> std::io::Result<()> {
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
