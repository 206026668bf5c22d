//! The built-in workspace tools, called as the agent loop calls them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hookwright::tool::{Effect, Tool, ToolContext, ToolError, ToolErrorCode, WorkspaceOptions, workspace_tools};
use serde_json::{Value, json};

/// A root beside a secret that no tool may reach.
struct Playground {
    folder: tempfile::TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Playground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::create_dir(folder.path().join("root-twin")).unwrap();
        std::fs::write(folder.path().join("outside/secret.txt"), "secret").unwrap();
        std::fs::write(folder.path().join("root-twin/secret.txt"), "secret").unwrap();
        let tools = workspace_tools(folder.path().join("root"), WorkspaceOptions::default()).unwrap();
        Self { folder, tools }
    }

    fn path(&self, relative: &str) -> std::path::PathBuf {
        self.folder.path().join("root").join(relative)
    }

    fn put(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, relative: &str, to: impl AsRef<Path>) {
        std::os::unix::fs::symlink(to, self.path(relative)).unwrap();
    }

    async fn try_call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let tool = self.tools.iter().find(|one| one.spec().name == tool).unwrap();
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let result = tool.call(arguments, ToolContext::new(self.path(""))).await?;
        Ok(result.as_str().unwrap().to_owned())
    }

    async fn call(&self, tool: &str, arguments: Value) -> String {
        self.try_call(tool, arguments).await.unwrap()
    }

    async fn fail(&self, tool: &str, arguments: Value) -> ToolError {
        self.try_call(tool, arguments).await.unwrap_err()
    }
}

#[test]
fn the_options_say_which_tools_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let names = |write, shell| -> Vec<(String, Effect, bool)> {
        let tools = workspace_tools(folder.path(), WorkspaceOptions { write, shell }).unwrap();
        let about = |tool: &Arc<dyn Tool>| (tool.spec().name.clone(), tool.spec().effect, tool.spec().parallel_safe);
        tools.iter().map(about).collect()
    };
    let reading: Vec<_> =
        ["read_file", "list_dir", "grep", "glob"].map(|name| (name.to_owned(), Effect::Read, true)).into();
    assert_eq!(names(false, false), reading);
    let mut all = reading;
    all.push(("write_file".into(), Effect::Write, false));
    all.push(("edit_file".into(), Effect::Write, false));
    all.push(("shell".into(), Effect::Execute, false));
    assert_eq!(names(true, true), all);
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let error = workspace_tools("/no/such/root", WorkspaceOptions::default()).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (ToolErrorCode::NotFound, Some("root")));
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = workspace_tools(file.path(), WorkspaceOptions::default()).unwrap_err();
    assert!(error.detail.ends_with("is not a directory."), "{error}");
}

#[tokio::test]
async fn every_way_out_of_the_root_is_denied() {
    let place = Playground::new();
    let outside = place.folder.path().join("outside");
    place.put("sub/inner.txt", "inner");
    place.link("to_outside", &outside);
    place.link("to_secret", "../outside/secret.txt");
    place.link("sub/up", "../..");
    place.link("to_nothing_outside", outside.join("new.txt"));
    place.link("to_nothing", "nowhere");
    let absolute = outside.join("secret.txt").display().to_string();
    let twin = place.folder.path().join("root-twin/secret.txt").display().to_string();
    let ways = [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "./sub/./../../root-twin/secret.txt",
        &absolute,
        &twin,
        "to_outside/secret.txt",
        "to_secret",
        "sub/up/outside/secret.txt",
        "to_outside/no/such/file",
        "../no/such/file",
        "/no/such/file",
        "to_nothing_outside",
        "to_nothing",
        "to_nothing_outside/deeper",
        "..",
        "/",
    ];
    for way in ways {
        for (tool, arguments) in [
            ("read_file", json!({"path": way})),
            ("grep", json!({"path": way, "pattern": "secret"})),
            ("glob", json!({"path": way, "pattern": "**"})),
            ("write_file", json!({"path": way, "content": "changed"})),
        ] {
            let error = place.fail(tool, arguments).await;
            assert_eq!(
                (error.code, error.field.as_deref()),
                (ToolErrorCode::Denied, Some("path")),
                "{tool} {way}: {error}"
            );
        }
    }
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 3);

    // Searches do not follow links on their way either.
    assert_eq!(place.call("grep", json!({"pattern": "secret"})).await, "[no line matches in .; 1 files were searched]");
    assert!(!place.call("glob", json!({"pattern": "**/secret.txt"})).await.contains("\nto_outside/"));
    for pattern in ["../**", "/etc/*", "sub/../../outside/*"] {
        let error = place.fail("glob", json!({"pattern": pattern})).await;
        assert_eq!((error.code, error.field.as_deref()), (ToolErrorCode::Invalid, Some("pattern")), "{pattern}");
    }
}

#[tokio::test]
async fn going_up_from_a_folder_that_does_not_exist_is_refused() {
    let place = Playground::new();
    for way in ["new/../../outside/x", "new/../x"] {
        let error = place.fail("write_file", json!({"path": way, "content": ""})).await;
        assert_eq!(error.code, ToolErrorCode::Invalid, "{way}: {error}");
    }
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
}

#[tokio::test]
async fn ways_that_stay_inside_are_open() {
    let place = Playground::new();
    place.put("sub/inner.txt", "inner");
    place.link("link.txt", "sub/inner.txt");
    place.link("folder", "sub");
    let absolute = place.path("sub/inner.txt").display().to_string();
    for way in ["sub/inner.txt", "./sub//inner.txt", "sub/../sub/inner.txt", "link.txt", "folder/inner.txt", &absolute]
    {
        assert_eq!(place.call("read_file", json!({"path": way})).await, "inner", "{way}");
    }
    assert_eq!(
        place.call("write_file", json!({"path": "link.txt", "content": "changed"})).await,
        "Wrote 7 bytes to sub/inner.txt, replacing 5 bytes."
    );
    assert!(place.path("link.txt").is_symlink(), "the link is kept");
    assert_eq!(std::fs::read_to_string(place.path("sub/inner.txt")).unwrap(), "changed");
}

#[tokio::test]
async fn arguments_are_checked_all_at_once() {
    let place = Playground::new();
    let error = place.fail("read_file", json!({"paht": "x", "start_line": "1", "end_line": 0})).await;
    assert_eq!(error.code, ToolErrorCode::Invalid);
    let lines: Vec<&str> = error.detail.lines().collect();
    assert_eq!(lines[0], "4 problems with the arguments:");
    assert!(lines.contains(&"- `paht`: is not a known argument; did you mean `path`?"), "{error}");
    assert!(lines.contains(&"- `path`: is required"), "{error}");
    assert!(lines.contains(&"- `start_line`: must be null or an integer, not a string"), "{error}");
    let error = place.fail("shell", json!({})).await;
    assert_eq!(
        error.render(),
        "Error (required), argument `command`: is required.\nCorrect the arguments and call the tool again."
    );
}

#[tokio::test]
async fn a_missing_file_comes_with_the_near_name() {
    let place = Playground::new();
    place.put("src/main.rs", "");
    place.put("source/lib.rs", "");
    let error = place.fail("read_file", json!({"path": "src/mian.rs"})).await;
    assert_eq!(
        error.render(),
        "Error (not_found), argument `path`: src/mian.rs does not exist.\nDid you mean src/main.rs?"
    );
    let error = place.fail("read_file", json!({"path": "sources/main.rs"})).await;
    assert_eq!(error.hint.as_deref(), Some("Did you mean source?"));
}

#[tokio::test]
async fn lines_are_read_by_range() {
    let place = Playground::new();
    place.put("lines.txt", "one\ntwo\r\n三\nfour");
    for (range, expected) in [
        (json!({}), "one\ntwo\r\n三\nfour"),
        (json!({"start_line": 2, "end_line": 3}), "two\r\n三\n[the file goes on after line 3]"),
        (json!({"start_line": 4}), "four"),
        (json!({"start_line": null, "end_line": 1}), "one\n[the file goes on after line 1]"),
        (json!({"start_line": 3, "end_line": 99}), "三\nfour"),
    ] {
        let mut arguments = json!({"path": "lines.txt"});
        arguments.as_object_mut().unwrap().extend(range.as_object().unwrap().clone());
        assert_eq!(place.call("read_file", arguments).await, expected, "{range}");
    }
    let error = place.fail("read_file", json!({"path": "lines.txt", "start_line": 5})).await;
    assert_eq!((error.detail.as_str(), error.field.as_deref()), ("lines.txt has only 4 lines.", Some("start_line")));
    let error = place.fail("read_file", json!({"path": "lines.txt", "start_line": 3, "end_line": 2})).await;
    assert_eq!(error.field.as_deref(), Some("end_line"));
}

#[tokio::test]
async fn what_is_no_text_file_is_not_read() {
    let place = Playground::new();
    place.put("image.bin", b"\x89PNG\0\0data");
    place.put("empty.txt", "");
    place.put("latin.txt", b"caf\xe9\n");
    nix::unistd::mkfifo(&place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = place.fail("read_file", json!({"path": "image.bin"})).await;
    assert_eq!(error.detail, "image.bin is a binary file of 10 bytes.");
    assert_eq!(place.fail("read_file", json!({"path": "pipe"})).await.detail, "pipe is not a regular file.");
    assert_eq!(place.fail("read_file", json!({"path": "."})).await.detail, ". is a directory.");
    assert_eq!(place.call("read_file", json!({"path": "empty.txt"})).await, "[the file is empty]");
    assert_eq!(
        place.call("read_file", json!({"path": "latin.txt"})).await,
        "caf\u{fffd}\n[some bytes are not UTF-8 and are shown as \u{fffd}]"
    );
}

#[tokio::test]
async fn a_long_file_is_cut_between_lines_and_says_where_to_go_on() {
    let place = Playground::new();
    let line = |number: usize| format!("{number:09}\n");
    place.put("long.txt", (1..=40_000).map(line).collect::<String>());
    let text = place.call("read_file", json!({"path": "long.txt"})).await;
    let note = "[cut after line 26214; the file has 400000 bytes; go on with start_line 26215]";
    assert_eq!(text.lines().last(), Some(note));
    assert_eq!(text.lines().count(), 26_215);
    let rest = place.call("read_file", json!({"path": "long.txt", "start_line": 26_215})).await;
    assert_eq!(rest, (26_215..=40_000).map(line).collect::<String>());
}

#[tokio::test]
async fn a_huge_line_is_cut_on_a_character_boundary() {
    let place = Playground::new();
    for shift in 0..4 {
        let content = format!("{}{}", "x".repeat(shift), "漢😀".repeat(100_000));
        place.put("huge.txt", &content);
        let text = place.call("read_file", json!({"path": "huge.txt"})).await;
        let (shown, note) = text.rsplit_once('\n').unwrap();
        assert!(content.starts_with(shown) && shown.len() > 256 * 1024 - 4, "{}", shown.len());
        let expected = format!("[line 1 is cut here after 262144 bytes; the file has {} bytes]", content.len());
        assert_eq!(note, expected);
    }
}

#[tokio::test]
async fn grep_finds_lines_and_leaves_out_what_git_ignores() {
    let place = Playground::new();
    place.put(".gitignore", "build/\n*.log\n");
    place.put("src/a.rs", "fn needle() {}\n// Needle\n");
    place.put("src/b.py", "needle = '漢字😀'\n");
    place.put(".github/ci.yml", "run: needle\n");
    place.put("build/out.rs", "needle\n");
    place.put("debug.log", "needle\n");
    place.put(".git/config", "needle\n");
    place.put("data.bin", b"needle\0needle\n");
    let all = ".github/ci.yml:1:run: needle\nsrc/a.rs:1:fn needle() {}\nsrc/b.py:1:needle = '漢字😀'";
    assert_eq!(place.call("grep", json!({"pattern": "needle"})).await, all);
    for (arguments, expected) in [
        (
            json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src/a.rs"}),
            "src/a.rs:1:fn needle() {}\nsrc/a.rs:2:// Needle",
        ),
        (json!({"pattern": "needle", "glob": "*.py"}), "src/b.py:1:needle = '漢字😀'"),
        (json!({"pattern": "needle", "glob": "*.{rs,yml}", "path": "src"}), "src/a.rs:1:fn needle() {}"),
        (json!({"pattern": "needle", "glob": "src/*.rs"}), "src/a.rs:1:fn needle() {}"),
        (json!({"pattern": "^needle", "path": "src"}), "src/b.py:1:needle = '漢字😀'"),
        (json!({"pattern": "absent"}), "[no line matches in .; 5 files were searched]"),
        // A folder that is named is searched, ignored or not.
        (json!({"pattern": "needle", "path": "build"}), "build/out.rs:1:needle"),
        (json!({"pattern": "needle", "path": "debug.log"}), "debug.log:1:needle"),
    ] {
        assert_eq!(place.call("grep", arguments.clone()).await, expected, "{arguments}");
    }
    let error = place.fail("grep", json!({"pattern": "needle("})).await;
    assert_eq!((error.code, error.field.as_deref()), (ToolErrorCode::Invalid, Some("pattern")));
    let error = place.fail("grep", json!({"pattern": "needle", "glob": "[z"})).await;
    assert_eq!((error.code, error.field.as_deref()), (ToolErrorCode::Invalid, Some("glob")));
}

#[tokio::test]
async fn grep_stops_at_its_limit_and_says_so() {
    let place = Playground::new();
    place.put("many.txt", "hit\n".repeat(500));
    let text = place.call("grep", json!({"pattern": "hit", "max_results": 3})).await;
    assert_eq!(
        text,
        "many.txt:1:hit\nmany.txt:2:hit\nmany.txt:3:hit\n\
         [there may be more matches; narrow the search or raise max_results]"
    );
    assert_eq!(place.call("grep", json!({"pattern": "hit"})).await.lines().count(), 101);
}

#[tokio::test]
async fn grep_shows_the_part_of_a_huge_line_that_matches() {
    let place = Playground::new();
    place.put("huge.txt", format!("{}needle{}", "漢".repeat(1_000_000), "😀".repeat(100)));
    let text = place.call("grep", json!({"pattern": "needle"})).await;
    assert!(text.starts_with("huge.txt:1:...漢") && text.contains("漢needle😀") && text.len() < 600, "{text}");
    assert!(text.ends_with("[line of 3000406 bytes]") && !text.contains('\u{fffd}'), "{text}");
}

#[tokio::test]
async fn glob_lists_files_in_order() {
    let place = Playground::new();
    for path in ["a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt", "漢字/e.py", "skip/f.py", ".git/g.py"] {
        place.put(path, "");
    }
    place.put(".gitignore", "skip/\n");
    for (arguments, expected) in [
        (json!({"pattern": "*.py"}), "a.py\nsrc/b.py\nsrc/deep/c.py\n漢字/e.py"),
        (json!({"pattern": "src/*.py"}), "src/b.py"),
        (json!({"pattern": "./src/**/*.py"}), "src/b.py\nsrc/deep/c.py"),
        (json!({"pattern": "deep/*.{py,txt}", "path": "src"}), "src/deep/c.py\nsrc/deep/d.txt"),
        (json!({"pattern": "[ab].py"}), "a.py\nsrc/b.py"),
        (json!({"pattern": "*.rs"}), "[no file matches *.rs in .]"),
    ] {
        assert_eq!(place.call("glob", arguments.clone()).await, expected, "{arguments}");
    }
    let error = place.fail("glob", json!({"pattern": "*", "path": "a.py"})).await;
    assert_eq!(error.detail, "a.py is not a directory.");
}

#[tokio::test]
async fn glob_says_how_many_files_it_left_out() {
    let place = Playground::new();
    for number in 0..1003 {
        place.put(&format!("{number:04}.txt"), "");
    }
    let text = place.call("glob", json!({"pattern": "*.txt"})).await;
    assert_eq!(text.lines().count(), 1001);
    assert_eq!(text.lines().last(), Some("[3 more files match; narrow the pattern]"));
}

#[tokio::test]
async fn write_file_creates_folders_and_keeps_the_mode_of_what_it_replaces() {
    use std::os::unix::fs::PermissionsExt;
    let place = Playground::new();
    assert_eq!(
        place.call("write_file", json!({"path": "new/deep/文件.txt", "content": "漢字😀"})).await,
        "Wrote 10 bytes to new/deep/文件.txt, a new file."
    );
    assert_eq!(std::fs::read_to_string(place.path("new/deep/文件.txt")).unwrap(), "漢字😀");
    // A new file has the mode that any new file of this process has.
    place.put("plain.txt", "");
    let mode = |path: &str| place.path(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("new/deep/文件.txt"), mode("plain.txt"));

    place.put("run.sh", "old");
    std::fs::set_permissions(place.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    place.call("write_file", json!({"path": "run.sh", "content": ""})).await;
    assert_eq!((mode("run.sh"), std::fs::read(place.path("run.sh")).unwrap().len()), (0o755, 0));
    let left: Vec<_> = std::fs::read_dir(place.path("new/deep")).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[tokio::test]
async fn write_file_refuses_what_is_no_plain_writable_file() {
    use std::os::unix::fs::PermissionsExt;
    let place = Playground::new();
    place.put("fixed.txt", "fixed");
    std::fs::set_permissions(place.path("fixed.txt"), std::fs::Permissions::from_mode(0o444)).unwrap();
    std::fs::create_dir(place.path("folder")).unwrap();
    for (path, code, detail) in [
        ("fixed.txt", ToolErrorCode::Denied, "fixed.txt is write-protected, so it was not written."),
        ("folder", ToolErrorCode::Invalid, "folder is a directory, so it was not written."),
        ("newfolder/", ToolErrorCode::Invalid, "newfolder/ names a directory, not a file."),
        ("fixed.txt/below", ToolErrorCode::Invalid, "fixed.txt/below cannot be created: fixed.txt is not a directory."),
    ] {
        let error = place.fail("write_file", json!({"path": path, "content": "x"})).await;
        assert_eq!((error.code, error.detail.as_str()), (code, detail));
    }
    assert_eq!(std::fs::read_to_string(place.path("fixed.txt")).unwrap(), "fixed");
}

#[tokio::test]
async fn shell_runs_in_the_root_and_a_failing_command_is_a_result() {
    let place = Playground::new();
    place.put("here.txt", "");
    for (command, expected) in [
        ("ls", "exit code 0\nstdout:\nhere.txt"),
        ("echo out; echo err >&2; exit 3", "exit code 3\nstdout:\nout\nstderr:\nerr"),
        ("true", "exit code 0\nno output"),
        ("cat", "exit code 0\nno output"),
        ("cd /; pwd", "exit code 0\nstdout:\n/"),
        ("kill -9 $$", "the command was killed by SIGKILL (9)\nno output"),
        (
            "sleep 60 & echo started",
            "exit code 0\nstdout:\nstarted\n[processes that the command left in the background were ended]",
        ),
    ] {
        assert_eq!(place.call("shell", json!({"command": command})).await, expected, "{command}");
    }
    let root = place.path("").canonicalize().unwrap();
    assert_eq!(
        place.call("shell", json!({"command": "pwd -P"})).await,
        format!("exit code 0\nstdout:\n{}", root.display())
    );
    for command in ["  ", "a\0b"] {
        let error = place.fail("shell", json!({"command": command})).await;
        assert_eq!((error.code, error.field.as_deref()), (ToolErrorCode::Invalid, Some("command")));
    }
}

#[tokio::test]
async fn shell_ends_a_command_at_its_timeout_and_tells_what_it_wrote() {
    let place = Playground::new();
    let error = place.fail("shell", json!({"command": "echo working; sleep 60", "timeout": 0.5})).await;
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert_eq!(
        error.detail,
        "The command ran longer than 0.5 s and was ended with all its processes. So far:\nstdout:\nworking"
    );
    for timeout in [json!(0), json!(-1), json!("5"), json!(1e9)] {
        let error = place.fail("shell", json!({"command": "true", "timeout": timeout})).await;
        assert_eq!(error.field.as_deref(), Some("timeout"), "{error}");
    }
}

#[tokio::test]
async fn shell_keeps_head_and_tail_of_long_output_on_character_boundaries() {
    let place = Playground::new();
    place.put("long.txt", format!("first\n{}\nlast\n", "漢😀".repeat(50_000)));
    let text = place.call("shell", json!({"command": "cat long.txt"})).await;
    assert!(text.starts_with("exit code 0\nstdout:\nfirst\n漢😀") && text.ends_with("😀\nlast"), "{}", text.len());
    assert!(text.contains("of 350012 bytes left out ...]") && !text.contains('\u{fffd}'));
    assert!(text.len() < 48 * 1024 + 200, "{}", text.len());
}

#[tokio::test]
async fn shell_is_killed_when_its_call_is_dropped() {
    let place = Playground::new();
    nix::unistd::mkfifo(&place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let command = "exec 3>pipe; echo started >&3; sleep 60";
    let pipe = place.path("pipe");
    // The reader sees the end of the pipe only when every process of the command is gone.
    let reader = tokio::task::spawn_blocking(move || {
        use std::io::{BufRead, BufReader};
        let mut lines = BufReader::new(std::fs::File::open(pipe).unwrap()).lines();
        (lines.next().unwrap().unwrap(), lines)
    });
    let mut lines = tokio::select! {
        result = place.try_call("shell", json!({"command": command})) => panic!("it should not end: {result:?}"),
        started = reader => { let (line, lines) = started.unwrap(); assert_eq!(line, "started"); lines }
    };
    let end = tokio::task::spawn_blocking(move || lines.next().is_none());
    assert!(tokio::time::timeout(Duration::from_secs(15), end).await.unwrap().unwrap());
}
