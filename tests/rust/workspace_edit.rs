//! Workspace tools: edits, listings, results too long to show, and several agents at one file.

use std::path::PathBuf;
use std::sync::Arc;

use hookwright::tool::workspace::capped;
use hookwright::tool::{Tool, ToolContext, ToolError, ToolErrorCode, WorkspaceOptions, workspace_tools};
use serde_json::{Value, json};

/// A root with the tools of one agent.
struct Place {
    folder: tempfile::TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let tools = workspace_tools(folder.path().join("root"), WorkspaceOptions::default()).unwrap();
        Place { folder, tools }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        call(&self.tools, tool, arguments, ToolContext::new(self.path(""))).await
    }

    async fn edit(&self, old: &str, new: &str) -> Result<String, ToolError> {
        self.call("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new})).await
    }
}

async fn call(
    tools: &[Arc<dyn Tool>],
    tool: &str,
    arguments: Value,
    context: ToolContext,
) -> Result<String, ToolError> {
    let tool = tools.iter().find(|one| one.spec().name == tool).unwrap();
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Ok(tool.call(arguments, context).await?.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_edit_replaces_one_place_and_keeps_the_rest_byte_for_byte() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.put("a.txt", b"one\r\ntwo \xff\r\n\xe6\xbc\xa2\xf0\x9f\x98\x80 three");
    std::fs::set_permissions(place.path("a.txt"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.edit("漢😀 th", "四\n").await.unwrap(), "Replaced 1 place in a.txt, in line 3.");
    assert_eq!(std::fs::read(place.path("a.txt")).unwrap(), b"one\r\ntwo \xff\r\n\xe5\x9b\x9b\nree");
    assert_eq!(place.path("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    place.put("a.txt", "x y x y x");
    let all = json!({"path": "a.txt", "old_text": "x", "new_text": "z", "replace_all": true});
    assert_eq!(
        place.call("edit_file", all).await.unwrap_err().detail.split(',').next().unwrap(),
        "a.txt was changed since you read it"
    );
    place.call("read_file", json!({"path": "a.txt"})).await.unwrap();
    let all = json!({"path": "a.txt", "old_text": "x", "new_text": "z", "replace_all": true});
    assert_eq!(place.call("edit_file", all).await.unwrap(), "Replaced 3 places in a.txt, the first in line 1.");
    assert_eq!(place.text("a.txt"), "z y z y z");
}

#[tokio::test]
async fn an_edit_that_does_not_fit_teaches() {
    let place = Place::new();
    place.put("a.txt", "def first(value):\n    return value\n\ndef second(value):\n    return value\n");
    let error = place.edit("    return value", "    return 1").await.unwrap_err();
    assert_eq!(error.detail, "old_text stands 2 times in a.txt, in lines 2, 5; nothing was changed.");
    let error = place.edit("def frist(value):\n", "").await.unwrap_err();
    assert_eq!(error.detail, "old_text does not stand in a.txt; nothing was changed.");
    assert!(error.hint.as_ref().unwrap().contains("\n1: def first(value):\n"), "{error}");
    let error = place.edit("漢字", "").await.unwrap_err();
    assert!(error.hint.unwrap().starts_with("No line is like"));
    let error = place.edit("same", "same").await.unwrap_err();
    assert_eq!(error.field.as_deref(), Some("new_text"));
    place.put("a.txt", "one\r\ntwo\r\n");
    assert!(place.edit("one\ntwo", "x").await.unwrap_err().hint.unwrap().contains("\\r\\n"));
    for (path, code) in
        [("b.txt", ToolErrorCode::NotFound), (".", ToolErrorCode::Invalid), ("../root2", ToolErrorCode::Denied)]
    {
        let arguments = json!({"path": path, "old_text": "a", "new_text": "b"});
        assert_eq!(place.call("edit_file", arguments).await.unwrap_err().code, code, "{path}");
    }
}

#[tokio::test]
async fn what_another_changed_since_it_was_read_is_not_overwritten() {
    let place = Place::new();
    place.put("a.txt", "mine and yours");
    std::os::unix::fs::symlink("a.txt", place.path("link.txt")).unwrap();
    place.call("read_file", json!({"path": "link.txt"})).await.unwrap();
    place.put("a.txt", "mine and theirs");
    let error = place.edit("mine", "ours").await.unwrap_err();
    assert_eq!(error.detail, "a.txt was changed since you read it, so it was not changed.");
    let write = json!({"path": "a.txt", "content": "all mine"});
    assert_eq!(place.call("write_file", write.clone()).await.unwrap_err().detail, error.detail);
    assert_eq!(place.text("a.txt"), "mine and theirs");
    place.call("read_file", json!({"path": "a.txt"})).await.unwrap();
    place.edit("mine", "ours").await.unwrap();
    place.edit("ours", "ours again").await.unwrap();
    assert_eq!(place.text("a.txt"), "ours again and theirs");
    place.call("write_file", write).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_many_agents_at_one_file_are_all_there() {
    let place = Place::new();
    let lines: Vec<String> = (0..16).map(|number| format!("line {number};\n")).collect();
    place.put("a.txt", lines.concat());
    let edits = (0..16).map(|number| {
        let root = place.path("");
        tokio::spawn(async move {
            let tools = workspace_tools(&root, WorkspaceOptions::default()).unwrap();
            let arguments =
                json!({"path": "a.txt", "old_text": format!("line {number};"), "new_text": format!("done {number};")});
            call(&tools, "edit_file", arguments, ToolContext::new(root)).await
        })
    });
    for edit in edits.collect::<Vec<_>>() {
        edit.await.unwrap().unwrap();
    }
    assert_eq!(place.text("a.txt"), lines.concat().replace("line", "done"));
    let names: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names, ["a.txt"], "no lock or temporary file is left in the work tree");
}

#[tokio::test]
async fn list_dir_shows_kinds_and_sizes_as_deep_as_it_is_asked() {
    let place = Place::new();
    for (name, content) in
        [("b.txt", "12345"), (".env", "x"), ("src/deep/c.rs", ""), ("target/out", ""), (".git/config", "")]
    {
        place.put(name, content);
    }
    place.put(".gitignore", "target/\n");
    std::os::unix::fs::symlink("../elsewhere", place.path("link")).unwrap();
    let list = |arguments: Value| place.call("list_dir", arguments);
    assert_eq!(list(json!({})).await.unwrap(), "b.txt (5 bytes)\nlink -> ../elsewhere\nsrc/");
    assert_eq!(
        list(json!({"hidden": true, "depth": 3})).await.unwrap(),
        ".env (1 bytes)\n.gitignore (8 bytes)\nb.txt (5 bytes)\nlink -> ../elsewhere\nsrc/\nsrc/deep/\nsrc/deep/c.rs (0 bytes)"
    );
    assert_eq!(list(json!({"path": "src/deep"})).await.unwrap(), "c.rs (0 bytes)");
    assert_eq!(list(json!({"path": "b.txt"})).await.unwrap_err().detail, "b.txt is not a directory.");
    assert_eq!(list(json!({"path": ".."})).await.unwrap_err().code, ToolErrorCode::Denied);
    for number in 0..1005 {
        place.put(&format!("many/{number:04}"), "");
    }
    let text = list(json!({"path": "many"})).await.unwrap();
    assert_eq!(text.lines().count(), 1001);
    assert!(text.ends_with("[5 more entries; list a directory further down, or use glob]"));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert_eq!(list(json!({"path": "empty"})).await.unwrap(), "[nothing to list in empty]");
}

#[tokio::test]
async fn long_output_of_a_command_is_cut_unless_the_caller_keeps_it() {
    let place = Place::new();
    let whole = format!("first\n{}\nlast", "漢😀".repeat(750_000));
    place.put("big.txt", &whole);
    let context = ToolContext::new(place.path(""));
    let text = call(&place.tools, "shell", json!({"command": "cat big.txt"}), context.clone()).await.unwrap();
    assert!(text.starts_with("exit code 0\nstdout:\nfirst\n漢😀") && text.ends_with("😀\nlast") && text.len() < 50_000);
    let text = call(&place.tools, "shell", json!({"command": "cat big.txt"}), context.whole(true)).await.unwrap();
    assert_eq!(text, format!("exit code 0\nstdout:\n{whole}"));
}

#[test]
fn a_cap_never_cuts_a_character_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let surrogate: String = hookwright::message::json::from_str(r#""a lone \ud800 half""#).unwrap();
    let texts = ["x".repeat(5_000_000), "😀".repeat(1000), "y".repeat(200_000), surrogate.repeat(500)];
    for text in &texts {
        for cap in [0, 1, 2, 3, 5, 1000, 1001, 1002, 1003] {
            let shown = capped(text, cap, Some(folder.path()));
            assert!(shown.text.len() <= cap + 300, "{}", shown.text.len());
            let (head, rest) = shown.text.split_once("[... ").unwrap();
            let (_, tail) = rest.split_once(" ...]\n").unwrap();
            assert!(text.starts_with(head.trim_end_matches('\n')) && text.ends_with(tail));
            assert_eq!(&std::fs::read_to_string(shown.saved.unwrap()).unwrap(), text);
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), texts.len(), "each is stored once");
}

#[test]
fn a_result_that_cannot_be_saved_is_shown_all_the_same() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let shown = capped(&"x".repeat(2000), 100, Some(file.path()));
    assert!(shown.saved.is_none() && shown.text.contains("the whole could not be saved: "), "{}", shown.text);
}
