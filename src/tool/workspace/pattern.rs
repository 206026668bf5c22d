//! Glob patterns over paths of the workspace.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use crate::tool::{ToolError, ToolErrorCode};

/// A glob: `*` and `?` stay within a name, `**` crosses folders, `{a,b}` and `[a-z]` choose. Without a slash it is held
/// against the file name at any depth, with one against the path.
#[derive(Debug)]
pub(super) struct PathPattern {
    matcher: GlobMatcher,
    name_only: bool,
}

impl PathPattern {
    pub(super) fn new(pattern: &str, field: &str) -> Result<Self, ToolError> {
        let refused = |detail: String| Err(ToolError::new(ToolErrorCode::Invalid, detail).field(field));
        if pattern.trim().is_empty() {
            return refused("The glob pattern is empty.".into());
        }
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return refused(format!(
                "The glob pattern {pattern} must be relative, without `..`; give `path` to search elsewhere."
            ));
        }
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        match GlobBuilder::new(pattern).literal_separator(true).build() {
            Ok(glob) => Ok(Self { matcher: glob.compile_matcher(), name_only: !pattern.contains('/') }),
            Err(error) => refused(format!("The glob pattern cannot be used: {error}.")),
        }
    }

    /// Whether a file matches; `path` is below `base`.
    pub(super) fn matches(&self, path: &Path, base: &Path) -> bool {
        if self.name_only {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path.strip_prefix(base).unwrap_or(path))
        }
    }
}

/// The files below `start` in the order of their paths, without what .gitignore and .ignore files leave out and without
/// `.git`. Links are listed and not followed. What cannot be read is passed over.
pub(super) fn files(start: &Path) -> impl Iterator<Item = DirEntry> {
    walk(start, true, None).filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
}

/// Everything below `start`, itself included, under the rules of [`files`]: with or without names that begin with a
/// dot, down to `depth` levels.
pub(super) fn walk(start: &Path, hidden: bool, depth: Option<usize>) -> impl Iterator<Item = DirEntry> {
    WalkBuilder::new(start)
        .hidden(!hidden)
        .max_depth(depth)
        // The result should not depend on the machine's own settings, nor on whether the folder is a repository.
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .sort_by_file_path(Ord::cmp)
        .build()
        .flatten()
}
