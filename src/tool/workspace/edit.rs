//! `edit_file`: an exact piece of a file becomes another.

use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use super::lock::FileLock;
use super::paths::{Workspace, file_error};
use super::write::{replace, writable};
use super::{Cancelled, FileTool, spec};
use crate::tool::{Effect, Tool, ToolError, ToolErrorCode};

/// The largest file that is edited.
const LARGEST: u64 = 32 * 1024 * 1024;
/// How many places and near lines an error names, and of how long a line it shows how much.
const MOST_PLACES: usize = 10;
const MOST_NEAR: usize = 3;
const MOST_OF_A_LINE: usize = 160;
/// How many lines are looked at for near ones.
const MOST_LINES: usize = 20_000;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_text: String,
    new_text: String,
    replace_all: Option<bool>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "edit_file",
        "Replaces a piece of a text file: old_text must stand in the file exactly, blanks and line breaks included, and \
         just once unless replace_all is true. Fails if the file was changed since you read it.",
        Effect::Write,
        json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace."},
            "old_text": {"type": "string", "minLength": 1, "description": "The text to replace, with enough around it to be unique."},
            "new_text": {"type": "string", "description": "What shall stand there instead."},
            "replace_all": {"type": ["boolean", "null"], "description": "Whether every occurrence is replaced. Default: false."},
        }),
        &["path", "old_text", "new_text"],
    );
    FileTool::shared(spec, workspace, edit)
}

fn edit(workspace: &Workspace, arguments: Arguments, cancelled: &Cancelled) -> Result<String, ToolError> {
    let Arguments { path: given, old_text, new_text, replace_all } = arguments;
    let invalid = |detail: String, field: &str| ToolError::new(ToolErrorCode::Invalid, detail).field(field);
    if old_text == new_text {
        return Err(invalid("old_text and new_text are the same, so there is nothing to change.".into(), "new_text"));
    }
    let path = workspace.existing(&given)?;
    writable(&path, &given)?;
    let _lock = FileLock::acquire(&path, &given, cancelled)?;
    workspace.seen.check(&path, &given)?;
    let found = path.metadata().map_err(|error| file_error(&given, "read", &error))?;
    if found.len() > LARGEST {
        let detail = format!("{given} has {} bytes; files up to {LARGEST} bytes can be edited.", found.len());
        return Err(invalid(detail, "path"));
    }
    let content = std::fs::read(&path).map_err(|error| file_error(&given, "read", &error))?;
    let places = places(&content, old_text.as_bytes());
    let every = replace_all.unwrap_or(false);
    match places.len() {
        0 => return Err(no_match(&content, &old_text, &given)),
        count if count > 1 && !every => {
            let lines: Vec<String> =
                places.iter().take(MOST_PLACES).map(|at| line_of(&content, *at).to_string()).collect();
            let more = if count > MOST_PLACES { ", ..." } else { "" };
            let detail = format!(
                "old_text stands {count} times in {given}, in lines {}{more}; nothing was changed.",
                lines.join(", ")
            );
            let hint = "Give more of the text around the place that you mean, or set replace_all to true.";
            return Err(invalid(detail, "old_text").hint(hint));
        }
        _ => {}
    }
    cancelled.check()?;
    let (changed, count) = with_replacement(&content, old_text.as_bytes(), new_text.as_bytes());
    replace(&path, &changed, Some(found.permissions())).map_err(|error| file_error(&given, "written", &error))?;
    workspace.seen.wrote(&path, &changed);
    let (shown, line) = (workspace.shown(&path), line_of(&content, places[0]));
    Ok(match count {
        1 => format!("Replaced 1 place in {shown}, in line {line}."),
        _ => format!("Replaced {count} places in {shown}, the first in line {line}."),
    })
}

/// Where `old` stands; overlapping places count, since they are no less ambiguous.
fn places(content: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = content.get(from..).and_then(|rest| finder.find(rest)) {
        found.push(from + at);
        from += at + 1;
    }
    found
}

fn with_replacement(content: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
    let (mut changed, mut copied, mut count) = (Vec::with_capacity(content.len()), 0, 0);
    for at in memmem::find_iter(content, old) {
        changed.extend_from_slice(&content[copied..at]);
        changed.extend_from_slice(new);
        copied = at + old.len();
        count += 1;
    }
    changed.extend_from_slice(&content[copied..]);
    (changed, count)
}

/// The number of the line that a byte stands in, from 1.
fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &content[..at]).count() + 1
}

/// Says what is nearest to the text that was not found.
fn no_match(content: &[u8], old: &str, given: &str) -> ToolError {
    let text = String::from_utf8_lossy(content);
    let error = |hint: String| {
        let detail = format!("old_text does not stand in {given}; nothing was changed.");
        ToolError::new(ToolErrorCode::Invalid, detail).field("old_text").hint(hint)
    };
    let ends_differ = text.contains("\r\n") && old.contains('\n') && !old.contains("\r\n");
    if ends_differ && memmem::find(content, old.replace('\n', "\r\n").as_bytes()).is_some() {
        return error("The lines of this file end with \\r\\n: write old_text and new_text so.".into());
    }
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let wanted = &wanted[..wanted.floor_char_boundary(MOST_OF_A_LINE)];
    let mut near: Vec<(f64, usize, &str)> = text
        .lines()
        .take(MOST_LINES)
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            let line = line.trim_end();
            let start = line.trim_start();
            let start = &start[..start.floor_char_boundary(MOST_OF_A_LINE)];
            (strsim::jaro_winkler(wanted, start), index + 1, line)
        })
        .filter(|(score, _, _)| *score >= 0.75)
        .collect();
    near.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    if near.is_empty() {
        return error("No line is like its first one. Read the file, and copy the text from it exactly.".into());
    }
    let lines: Vec<String> = near
        .iter()
        .take(MOST_NEAR)
        .map(|(_, number, line)| format!("{number}: {}", &line[..line.floor_char_boundary(MOST_OF_A_LINE)]))
        .collect();
    error(format!(
        "Nearest to its first line, by line number:\n{}\nCopy the text exactly, blanks included.",
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_place_is_replaced_and_nothing_else(before in "[ab\n漢]{0,20}", after in "[ab\n漢]{0,20}", new in "[cd😀]{0,5}") {
            let content = format!("{before}XYZ{after}");
            prop_assert_eq!(places(content.as_bytes(), b"XYZ"), vec![before.len()]);
            let (changed, count) = with_replacement(content.as_bytes(), b"XYZ", new.as_bytes());
            prop_assert_eq!((String::from_utf8(changed).unwrap(), count), (format!("{before}{new}{after}"), 1));
        }
    }

    #[test]
    fn overlapping_places_are_ambiguous() {
        assert_eq!(places(b"aaa", b"aa"), [0, 1]);
        assert_eq!(with_replacement(b"aaaa", b"aa", b"b"), (b"bb".to_vec(), 2));
    }
}
