//! The files that are compiled in.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CommandTable, compile};

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../commands/", $name, ".toml")))),+]
    };
}

const FILES: &[(&str, &str)] = files![
    "archive",
    "files",
    "git",
    "interpreters",
    "network",
    "packages",
    "search",
    "system",
    "tests",
    "text",
    "wrappers"
];

/// Reads all of them. A mistake in one leaves its programs out, which makes them unknown: a test finds it, and no user
/// is let through.
pub(super) fn load() -> CommandTable {
    let mut programs = HashMap::new();
    for (name, text) in FILES {
        match compile::compile(text, name) {
            Ok(more) => programs.extend(more),
            Err(error) => tracing::error!(%error, "a built-in command table cannot be read"),
        }
    }
    CommandTable { programs: Arc::new(programs) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_file_is_valid_and_no_program_is_in_two() {
        let mut seen: HashMap<Box<str>, &str> = HashMap::new();
        let mut problems = Vec::new();
        for (file, text) in FILES {
            match compile::compile(text, file) {
                Ok(programs) => {
                    for name in programs.into_keys() {
                        if let Some(other) = seen.insert(name.clone(), file) {
                            problems.push(format!("{name} is in {other} and {file}"));
                        }
                    }
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
