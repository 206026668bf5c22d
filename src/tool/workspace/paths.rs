//! Paths confined to the root.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::seen::Seen;
use crate::suggest::did_you_mean;
use crate::tool::{ToolError, ToolErrorCode};

/// The directory that the tools work in.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Absolute, without symbolic links.
    root: PathBuf,
    /// What the agent knows of files; one set of tools is one agent's.
    pub(super) seen: Seen,
}

impl Workspace {
    pub(super) fn new(root: &Path) -> Result<Self, ToolError> {
        let refused = |detail: String| {
            let hint = "Name an existing directory as the root of the workspace.";
            Err(ToolError::new(ToolErrorCode::NotFound, detail).field("root").hint(hint))
        };
        match root.canonicalize() {
            Ok(root) if root.is_dir() => Ok(Self { root, seen: Seen::default() }),
            Ok(_) => refused(format!("{} is not a directory.", root.display())),
            Err(error) => refused(format!("{} cannot be reached: {error}.", root.display())),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// How a path below the root is shown: relative to it, `.` for the root itself.
    pub(super) fn shown(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        if relative.as_os_str().is_empty() { ".".into() } else { relative.to_string_lossy().into_owned() }
    }

    /// The real path of something that exists.
    pub(super) fn existing(&self, path: &str) -> Result<PathBuf, ToolError> {
        let resolved = self.resolve(path)?;
        if resolved.missing.as_os_str().is_empty() {
            Ok(resolved.existing)
        } else {
            Err(self.not_found(path, &resolved))
        }
    }

    /// The real path of a file to be written, which need not exist, nor its folders.
    pub(super) fn target(&self, path: &str) -> Result<PathBuf, ToolError> {
        let resolved = self.resolve(path)?;
        if resolved.missing.as_os_str().is_empty() {
            return Ok(resolved.existing);
        }
        if path.ends_with('/') {
            return Err(invalid(format!("{path} names a directory, not a file.")));
        }
        if !resolved.existing.is_dir() {
            let blocker = self.shown(&resolved.existing);
            return Err(invalid(format!("{path} cannot be created: {blocker} is not a directory.")));
        }
        Ok(resolved.existing.join(resolved.missing))
    }

    fn resolve(&self, path: &str) -> Result<Resolved, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(invalid("A path must be neither empty nor contain a null character.".into()));
        }
        // An absolute path replaces the root here; it is then held against it like any other.
        let full = self.root.join(path);
        let resolved = split_at_missing(&full).map_err(|error| unreachable_path(path, &error))?;
        if !resolved.existing.starts_with(&self.root) {
            let detail = format!("{path} leads out of the workspace.");
            let hint = format!("Use a path inside {}, relative to it.", self.root.display());
            return Err(ToolError::new(ToolErrorCode::Denied, detail).field("path").hint(hint));
        }
        // Only what exists can be resolved: `..` after a missing folder, or a link to nothing, could lead anywhere.
        if resolved.missing.components().any(|component| !matches!(component, Component::Normal(_))) {
            return Err(invalid(format!("{path} goes up from a directory that does not exist.")));
        }
        if let Some(first) = resolved.missing.components().next()
            && resolved.existing.join(first).is_symlink()
        {
            return Err(ToolError::new(
                ToolErrorCode::Denied,
                format!("{path} leads through a symbolic link to something that does not exist."),
            )
            .field("path"));
        }
        Ok(resolved)
    }

    fn not_found(&self, path: &str, resolved: &Resolved) -> ToolError {
        let error = ToolError::new(ToolErrorCode::NotFound, format!("{path} does not exist.")).field("path");
        let near = || {
            let wanted = resolved.missing.components().next()?.as_os_str().to_str()?.to_owned();
            let entries = std::fs::read_dir(&resolved.existing).ok()?.flatten();
            let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            let near = did_you_mean(&wanted, names.iter().map(String::as_str))?;
            Some(self.shown(&resolved.existing.join(near)))
        };
        match near() {
            Some(near) => error.hint(format!("Did you mean {near}?")),
            None => error.hint("Use glob or grep to find the right path."),
        }
    }
}

/// A path in two parts: what exists, resolved, and the rest as it was written.
struct Resolved {
    existing: PathBuf,
    missing: PathBuf,
}

fn split_at_missing(full: &Path) -> io::Result<Resolved> {
    let mut existing = full.to_path_buf();
    let mut missing: Vec<OsString> = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(resolved) => {
                return Ok(Resolved { existing: resolved, missing: missing.iter().rev().collect() });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                // `Path::file_name` is silent about `..`, so take the last component as it is.
                let Some(last) = existing.components().next_back().map(|last| last.as_os_str().to_owned()) else {
                    return Err(error);
                };
                missing.push(last);
                if !existing.pop() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn invalid(detail: String) -> ToolError {
    ToolError::new(ToolErrorCode::Invalid, detail).field("path")
}

fn unreachable_path(path: &str, error: &io::Error) -> ToolError {
    file_error(path, "reached", error)
}

/// What the system said about a file, as a failure of the tool.
pub(super) fn file_error(path: &str, verb: &str, error: &io::Error) -> ToolError {
    let code = match error.kind() {
        io::ErrorKind::NotFound => ToolErrorCode::NotFound,
        io::ErrorKind::PermissionDenied => ToolErrorCode::Denied,
        _ => ToolErrorCode::Exception,
    };
    ToolError::new(code, format!("{path} cannot be {verb}: {error}.")).field("path")
}
