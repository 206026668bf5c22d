//! What counts as a test of the project when a test runner is told what to run.

/// Whether a path lies in the project and is a folder, or has the name of a test. `text`: the path, if it is known; else
/// `prefix` is what it begins with.
///
/// For runners that search folders for tests by themselves, and load a file that they are given.
pub(crate) fn is_test_file(text: Option<&str>, prefix: &str) -> bool {
    let path = file_of(text.unwrap_or(prefix));
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_folder = text.is_some() && !name.trim_start_matches('.').contains('.');
    is_inside(path) && (is_folder || path.split('/').any(names_a_test))
}

/// Whether a path lies in the project and has the name of a test: `tests/login.py`, `login_test.go`, `src/a.spec.ts`.
///
/// For runners that take any name for that of a file, with or without its extension.
pub(crate) fn is_named_test(text: Option<&str>, prefix: &str) -> bool {
    let path = file_of(text.unwrap_or(prefix));
    is_inside(path) && path.split('/').any(names_a_test)
}

/// The file in `tests/test_a.py::TestCase::test_x[1-2]`.
fn file_of(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

/// Whether a path is relative and never leaves the project. `@file` is a list of more words to some.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '~', '-', '@'])
        && !path.contains(":\\")
        && !path.contains("//")
        && path.split('/').all(|part| part != "..")
}

/// Whether a dotted name is that of a module of tests: `tests.test_a`, `app.tests`.
pub(crate) fn is_test_module(text: &str) -> bool {
    if text.contains('/') || text.ends_with(".py") {
        return is_test_file(Some(text), text);
    }
    !text.starts_with(['-', '.']) && text.split('.').any(names_a_test)
}

/// Whether it is a package of the project by a relative path: `./...`, `./pkg/a`, `.`.
pub(crate) fn is_local_package(text: &str) -> bool {
    (text == "." || text == "..." || text.starts_with("./")) && text.split('/').all(|part| part != "..")
}

/// Whether a part of a path or a dotted name says `test` or `spec` as a word of its own: `tests`, `test_a.py`,
/// `a.test.ts`, `LoginTest.php`, `__tests__`; not `latest`, `inspect`.
fn names_a_test(part: &str) -> bool {
    let words = part.split(|character: char| !character.is_ascii_alphanumeric());
    let mut words = words.filter(|word| !word.is_empty());
    words.any(|word| {
        matches!(word, "test" | "tests" | "Test" | "Tests" | "spec" | "specs" | "Spec" | "Specs" | "testing")
            || ["Test", "Tests", "Spec", "TestCase"].iter().any(|suffix| {
                word.strip_suffix(suffix).is_some_and(|rest| rest.ends_with(|last: char| last.is_ascii_lowercase()))
            })
            || ["test", "Test"].iter().any(|start| {
                word.strip_prefix(start).is_some_and(|rest| {
                    rest.starts_with(|first: char| first.is_ascii_uppercase() || first.is_ascii_digit())
                })
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_the_project_are_known_by_their_names() {
        for path in [
            "tests",
            "tests/",
            "src",
            ".",
            "./tests/unit",
            "tests/test_a.py",
            "tests/login.py",
            "src/a.test.ts",
            "spec/models/user_spec.rb",
            "pkg/a_test.go",
            "tests/test_a.py::TestLogin::test_x[1-2]",
            "test/LoginTest.php",
        ] {
            assert!(is_test_file(Some(path), path), "{path}");
        }
        for path in [
            "/tmp/evil",
            "../other/tests",
            "tests/../../evil",
            "~/tests",
            "evil.py",
            "src/latest.py",
            "inspect.py",
            "",
            "-p",
        ] {
            assert!(!is_test_file(Some(path), path), "{path}");
        }
        assert!(!is_test_file(Some("@tests"), "@tests"));
        assert!(is_named_test(Some("tests/unit"), "tests/unit"));
        assert!(is_named_test(Some("test/a.js"), "test/a.js"));
        for path in ["evil", "src", "TEST=evil", "latest", "../tests"] {
            assert!(!is_named_test(Some(path), path), "{path}");
        }
        assert!(is_test_file(None, "tests/"));
        assert!(!is_test_file(None, "src/"));
        assert!(!is_test_file(None, ""));
    }

    #[test]
    fn modules_of_tests_are_known_by_their_names() {
        for name in ["tests", "tests.test_a", "test_a", "app.tests.TestLogin", "tests/test_a.py"] {
            assert!(is_test_module(name), "{name}");
        }
        for name in ["evil", "latest", "os.path", "-c", "evil.py", "/tmp/test_a.py"] {
            assert!(!is_test_module(name), "{name}");
        }
    }

    #[test]
    fn packages_are_local() {
        assert!(is_local_package("./..."));
        assert!(is_local_package("."));
        assert!(!is_local_package("../other"));
        assert!(!is_local_package("example.org/pkg"));
        assert!(!is_local_package("./../other"));
    }
}
