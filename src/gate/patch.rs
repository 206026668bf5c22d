//! The files that a patch names, in the formats that tools take: unified diffs, and the one with `*** Update File:`.

use std::path::Path;

/// The files of a patch, those that are moved under both names. `None` if the text is no patch that is understood.
///
/// The prefixes `a/` and `b/` of a diff are cut off; where there are folders of these names below `root`, the whole
/// name is given as well, because a tool may mean those.
pub(super) fn files(patch: &str, root: &Path) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut add = |name: &str| {
        let name = name.trim();
        if name != "/dev/null" && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    let lines: Vec<&str> = patch.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some(header) = line.trim_start().strip_prefix("*** ") {
            let named = ["Add File:", "Update File:", "Delete File:", "Move to:", "Rename to:", "Copy to:"];
            match named.iter().find_map(|start| header.strip_prefix(start)) {
                Some(name) => add(name),
                None if header.starts_with("Begin Patch") || header.starts_with("End ") => {}
                // The `***` of a context diff, or a header that is not known.
                None => return None,
            }
            continue;
        }
        let renames = ["rename from ", "rename to ", "copy from ", "copy to "];
        if let Some(name) = renames.iter().find_map(|start| line.strip_prefix(start)) {
            add(&unquoted(name)?);
            continue;
        }
        let is_header = |line: &str, next: Option<&&str>| match line.get(..4) {
            Some("--- ") => next.is_some_and(|next| next.starts_with("+++ ")),
            Some("+++ ") => true,
            _ => false,
        };
        // A removed or added line can look like a header; to take it for one only adds a name.
        if is_header(line, lines.get(index + 1)) {
            let name = line[4..].split('\t').next().unwrap_or_default();
            let name = unquoted(name)?;
            match name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")) {
                Some(rest) => {
                    add(rest);
                    if root.join(&name[..1]).is_dir() {
                        add(&name);
                    }
                }
                None => add(&name),
            }
        } else if line.starts_with("diff --git ") && !has_names_below(&lines[index + 1..]) {
            // A change of mode, or an empty or binary file: named nowhere else.
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

fn has_names_below(lines: &[&str]) -> bool {
    let section = lines.iter().take_while(|line| !line.starts_with("diff --git "));
    section
        .clone()
        .any(|line| line.starts_with("+++ ") || line.starts_with("rename to ") || line.starts_with("copy to "))
}

/// A file name as git writes it; one in quotes has escapes in it, which are not read.
fn unquoted(name: &str) -> Option<String> {
    if name.starts_with('"') { None } else { Some(name.trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_found_in_every_format() {
        let root = tempfile::tempdir().unwrap();
        let git = "diff --git a/src/x b/src/x\nindex 1..2 100644\n--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n";
        for (patch, expected) in [
            (git, Some(vec!["src/x"])),
            ("--- old.txt\t2024\n+++ new.txt\t2024\n@@ -1 +1 @@\n-a\n+b\n", Some(vec!["old.txt", "new.txt"])),
            ("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+b\n", Some(vec!["new.txt"])),
            ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", Some(vec!["x", "y"])),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", None),
            ("--- \"a/\\303\\244\"\n+++ \"b/\\303\\244\"\n", None),
            ("*** Begin Patch\n*** Delete File: x\n*** End Patch", Some(vec!["x"])),
            ("*** x\n--- y\n***************\n", None),
            ("hello", None),
            ("", None),
        ] {
            let found = files(patch, root.path());
            assert_eq!(found.as_ref().map(|names| names.iter().map(String::as_str).collect()), expected, "{patch}");
        }
    }

    #[test]
    fn a_prefix_that_is_a_folder_may_be_meant() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("b")).unwrap();
        assert_eq!(files("--- a/x\n+++ b/x\n", root.path()), Some(vec!["x".to_owned(), "b/x".to_owned()]));
    }
}
