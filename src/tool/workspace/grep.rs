//! `grep`: where a regular expression matches.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde::Deserialize;
use serde_json::json;

use super::paths::Workspace;
use super::pattern::{PathPattern, files};
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

/// How many matching lines are shown if the call does not say.
const DEFAULT_RESULTS: usize = 100;
/// The most matching lines a call can ask for.
const MOST_RESULTS: usize = 2000;
/// The most bytes of one matching line, and of them all.
const MOST_OF_A_LINE: usize = 400;
const MOST_BYTES: usize = 128 * 1024;
/// The longest line that is searched; a file with a longer one is passed over and named.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    max_results: Option<usize>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "grep",
        "Searches text files for a regular expression (Rust syntax: no look-around) and returns the matching lines as \
         path:line:text, sorted by path. Files ignored by git and binary files are left out.",
        Effect::Read,
        json!({
            "pattern": {"type": "string", "minLength": 1, "description": "The regular expression, matched within lines."},
            "path": {"type": ["string", "null"], "description": "The file or directory to search. Default: the whole workspace."},
            "glob": {"type": ["string", "null"], "description": "Search only files that match, such as *.py or src/**/*.rs."},
            "ignore_case": {"type": ["boolean", "null"], "description": "Whether case does not matter. Default: false."},
            "max_results": {
                "type": ["integer", "null"], "minimum": 1, "maximum": MOST_RESULTS,
                "description": "The most matching lines to return. Default: 100.",
            },
        }),
        &["pattern"],
    );
    FileTool::shared(spec, workspace, search)
}

fn search(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .build(&arguments.pattern)
        .map_err(|error| {
            ToolError::new(ToolErrorCode::Invalid, format!("The pattern cannot be used: {error}."))
                .field("pattern")
                .hint("Escape characters that are meant literally, for example \\( or \\[.")
        })?;
    let glob = arguments.glob.as_deref().map(|glob| PathPattern::new(glob, "glob")).transpose()?;
    let start = workspace.existing(arguments.path.as_deref().unwrap_or("."))?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .memory_map(MmapChoice::never())
        .line_number(true)
        .build();
    let limit = arguments.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MOST_RESULTS);
    let mut found = Found { lines: Vec::new(), bytes: 0, limit, full: false };
    let (mut searched, mut passed_over) = (0, Vec::new());
    for entry in files(&start) {
        cancelled.check()?;
        // Links lead elsewhere, and a pipe could be waited on for ever.
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if glob.as_ref().is_some_and(|glob| !glob.matches(entry.path(), &start)) {
            continue;
        }
        let path = workspace.shown(entry.path());
        match search_file(&mut searcher, &matcher, entry.path(), &path, cancelled, &mut found) {
            Ok(()) => searched += 1,
            Err(error) => passed_over.push(format!("[{path} was not searched: {error}]")),
        }
        if found.full {
            break;
        }
    }
    cancelled.check()?;
    let mut lines = found.lines;
    if lines.is_empty() {
        let place = workspace.shown(&start);
        lines.push(format!("[no line matches in {place}; {searched} files were searched]"));
    }
    lines.append(&mut passed_over);
    if found.full {
        lines.push("[there may be more matches; narrow the search or raise max_results]".into());
    }
    Ok(lines.join("\n"))
}

fn search_file(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    file: &Path,
    path: &str,
    cancelled: &Cancelled,
    found: &mut Found,
) -> io::Result<()> {
    searcher.search_path(matcher, file, Lines { matcher, path, cancelled, found })
}

/// The matching lines so far.
struct Found {
    lines: Vec<String>,
    bytes: usize,
    limit: usize,
    full: bool,
}

/// Collects the matching lines of one file.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    path: &'a str,
    cancelled: &'a Cancelled,
    found: &'a mut Found,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let line = matched.bytes();
        let at = self.matcher.find(line).ok().flatten().map_or(0, |range| range.start());
        let text = excerpt(line, at);
        let number = matched.line_number().unwrap_or_default();
        let shown = format!("{}:{number}:{text}", self.path);
        self.found.bytes += shown.len();
        self.found.lines.push(shown);
        self.found.full = self.found.lines.len() >= self.found.limit || self.found.bytes >= MOST_BYTES;
        Ok(!self.found.full && self.cancelled.check().is_ok())
    }
}

/// A line, or of a long one the part around the match that starts at `at`, cut on character boundaries.
fn excerpt(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MOST_OF_A_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let is_boundary = |index: usize| line.get(index).is_none_or(|byte| !matches!(byte, 0x80..=0xBF));
    let mut start = at.min(line.len()).saturating_sub(MOST_OF_A_LINE / 4);
    let mut end = (start + MOST_OF_A_LINE).min(line.len());
    // A character has at most four bytes; what has more is no UTF-8 and has no boundaries to look for.
    start = (start..=start + 3).find(|index| is_boundary(*index)).unwrap_or(start);
    end = (end.saturating_sub(3)..=end).rev().find(|index| is_boundary(*index)).unwrap_or(end);
    let mark = |cut: bool| if cut { "..." } else { "" };
    let text = String::from_utf8_lossy(&line[start..end.max(start)]);
    format!("{}{text}{} [line of {} bytes]", mark(start > 0), mark(end < line.len()), line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_match_on_character_boundaries() {
        for shift in 0..4 {
            let line = format!("{}{}needle{}\r\n", "x".repeat(shift), "漢".repeat(1000), "😀".repeat(1000));
            let at = line.find("needle").unwrap();
            let shown = excerpt(line.as_bytes(), at);
            assert!(shown.contains("漢needle😀"), "{shown}");
            assert!(shown.len() < MOST_OF_A_LINE + 40 && !shown.contains('\u{fffd}'), "{shown}");
            assert!(shown.ends_with(&format!("... [line of {} bytes]", line.len() - 2)), "{shown}");
        }
    }

    #[test]
    fn a_short_line_is_shown_whole_without_its_line_ending() {
        assert_eq!(excerpt("中文 ok\r\n".as_bytes(), 0), "中文 ok");
        assert_eq!(excerpt(b"\xff", 0), "\u{fffd}");
    }
}
