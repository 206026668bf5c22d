//! Configuration files as users write them, and what they are told about their mistakes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use hookwright::hook::config::{
    ConfigEnv, HookAction, HookDefinition, Loaded, Source, discover, load_file, load_source,
};
use hookwright::hook::{Event, HookKind, Isolation, Level, OnError, Role};
use tempfile::TempDir;

/// A project folder with files at paths under `.hookwright/`.
fn project(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".hookwright")).unwrap();
    for (path, content) in files {
        write(&root.path().join(".hookwright").join(path), content);
    }
    root
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn load(root: &TempDir) -> Loaded {
    load_source(&Source::project(root.path()))
}

/// The problems, with file names that do not depend on where the test runs.
fn problems_of(root: &TempDir) -> Vec<String> {
    let folder = format!("{}/.hookwright/", root.path().display());
    load(root).problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
}

fn problems(yaml: &str) -> Vec<String> {
    problems_of(&project(&[("hooks.yaml", yaml)]))
}

/// The problems of one hook, given as lines of YAML without indentation; the hook begins on line 3.
fn hook_problems(lines: &str) -> Vec<String> {
    problems(&format!("version: 1\nhooks:\n{}", as_item(lines)))
}

fn as_item(lines: &str) -> String {
    lines.lines().enumerate().map(|(n, line)| format!("{}{line}\n", if n == 0 { "- " } else { "  " })).collect()
}

fn only(loaded: &Loaded) -> &HookDefinition {
    assert_eq!(loaded.problems, []);
    let [definition] = loaded.definitions.as_slice() else { panic!("{loaded:?}") };
    definition
}

#[test]
fn five_kinds_of_mistake_in_one_file_are_all_reported_with_line_and_suggestion() {
    let root = project(&[(
        "hooks.yaml",
        r#"version: 1
hooks:
  - name: no-deletes
    events: pre_tool_exection
    type: shell
    command: ./no_deletes.sh
  - name: redact
    events: [post_tool_execution]
    type: shell
    filter:
      tool_matchr: shell
  - name: style
    events: pre_tool_execution
    type: python
    callable: hooks.style:check
    filter:
      tool_regex: "write_(file"
  - name: no-deletes
    events: turn_end
    type: shell
    command: ./count.sh
    timeout: 0
"#,
    )]);
    assert_eq!(
        problems_of(&root),
        [
            r#"hooks.yaml:4:13: unknown event "pre_tool_exection"; did you mean "pre_tool_execution"?"#,
            r#"hooks.yaml:7:5: missing key "command"; a hook of type shell needs it"#,
            r#"hooks.yaml:11:7: unknown key "tool_matchr"; did you mean "tool_matcher"?"#,
            r#"hooks.yaml:17:19: bad pattern in tool_regex: "write_(file": unclosed group at character 7"#,
            r#"hooks.yaml:18:11: hook name "no-deletes" is taken (first in hooks.yaml:3); give each hook a name of its own"#,
            r#"hooks.yaml:22:14: "timeout" must be a number of seconds above 0, not the number 0"#,
        ]
    );
    assert_eq!(load(&root).definitions, [], "a hook with a mistake does not run");
    let error = load(&root).checked().unwrap_err().to_string();
    assert!(error.starts_with("6 problems in the hook configuration:\n  /"), "{error}");
    assert_eq!(error.lines().count(), 7);
}

#[test]
fn every_key_of_a_hook_is_honoured_as_written() {
    let root = project(&[(
        "hooks.yaml",
        r#"
version: 1
budget: 12.5
hooks:
  - name: "no deletes"
    events: [pre_tool_execution, post_tool_execution]
    type: shell
    command: ./no_deletes.sh --strict
    role: gate
    order: -3
    filter:
      tool_matcher: shell|mcp__*
      agent: main
      arguments: {command: "rm *", recursive: true, depth: 3}
    timeout: 10
    retry: 0
    on_error: stop
    worker: false
    enabled: false
    shadow: true
  - name: plain
    events: turn_end
    type: python
    callable: "package.module:Class.method"
    isolate: thread
    timeout: 0.25
    retry: 2
"#,
    )]);
    let loaded = load(&root).checked().unwrap();
    assert_eq!(loaded.budget, Some(Duration::from_millis(12_500)));
    let [first, second] = loaded.definitions.as_slice() else { panic!("{loaded:?}") };
    assert_eq!(first.name, "no deletes");
    assert_eq!(first.events, [Event::PreToolExecution, Event::PostToolExecution]);
    assert_eq!(first.action, HookAction::Shell { command: "./no_deletes.sh --strict".to_owned() });
    assert_eq!((first.role, first.order, first.level), (Role::Gate, -3, Level::Project));
    assert_eq!((first.timeout, first.retry), (Some(Duration::from_secs(10)), Some(0)));
    assert_eq!((first.on_error, first.enabled, first.shadow), (Some(OnError::Stop), false, true));
    assert_eq!(first.filter.tool_matcher.as_deref(), Some("shell|mcp__*"));
    assert_eq!(first.filter.agent.as_deref(), Some("main"));
    let arguments: Vec<_> = first.filter.arguments.iter().map(|(name, glob)| (name.as_str(), glob.as_str())).collect();
    assert_eq!(arguments, [("command", "rm *"), ("depth", "3"), ("recursive", "true")]);
    assert_eq!((first.source.line, &first.source.folder), (5, &None));

    let (module, function) = ("package.module".to_owned(), "Class.method".to_owned());
    assert_eq!(second.action, HookAction::Python { module, function, isolation: Isolation::Thread });
    assert_eq!((second.timeout, second.retry), (Some(Duration::from_millis(250)), Some(2)));
    assert_eq!((second.role, second.on_error, second.enabled, second.shadow), (Role::Hook, None, true, false));

    let meta = first.meta();
    assert_eq!((&*meta.name, meta.kind, meta.role), ("no deletes", HookKind::Shell, Role::Gate));
    assert_eq!((meta.timeout, meta.retry, meta.on_error), (Duration::from_secs(10), 0, OnError::Stop));
    assert_eq!((meta.enabled, meta.shadow, meta.order, meta.level), (false, true, -3, Level::Project));
    assert!(meta.source.ends_with("/.hookwright/hooks.yaml:5"));
    assert_eq!(second.meta().on_error, OnError::Skip);
}

#[test]
fn json_says_the_same_as_yaml() {
    let yaml = project(&[(
        "hooks.yaml",
        "version: 1\nhooks:\n- {name: 删除, events: [stop], type: bash, command: 'echo \"🦀\"', timeout: 1e1}\n",
    )]);
    let json = project(&[(
        "hooks.json",
        "{\n\t\"version\": 1,\n\t\"hooks\": [{\"name\": \"\\u5220\\u9664\", \"events\": [\"stop\"], \"type\": \"bash\",\
         \n\t\t\"command\": \"echo \\\"\\ud83e\\udd80\\\"\", \"timeout\": 1e1}]\n}",
    )]);
    let (yaml, json) = (load(&yaml), load(&json));
    let (mut from_yaml, from_json) = (only(&yaml).clone(), only(&json));
    assert_eq!(from_yaml.name, "删除");
    assert_eq!(from_yaml.action, HookAction::Shell { command: "echo \"🦀\"".to_owned() });
    assert_eq!(from_yaml.timeout, Some(Duration::from_secs(10)));
    from_yaml.source = from_json.source.clone();
    from_yaml.name_position = from_json.name_position;
    from_yaml.action_position = from_json.action_position;
    assert_eq!(&from_yaml, from_json);
}

#[test]
fn hooks_in_folders_are_read_in_the_order_of_their_names() {
    let hook = "events: stop\ntype: shell\ncommand: run.sh\n";
    let root = project(&[
        ("hooks.yaml", "version: 1\nhooks:\n- {name: z, events: stop, type: shell, command: x}\n"),
        ("hooks/b/HOOK.yaml", hook),
        ("hooks/a/HOOK.yaml", &format!("version: 1\nname: a\n{hook}")),
        ("hooks/B/HOOK.yaml", hook),
        ("hooks/helpers/common.sh", "not a hook\n"),
        ("hooks/README.md", "neither\n"),
    ]);
    let loaded = load(&root).checked().unwrap();
    let names: Vec<&str> = loaded.definitions.iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["z", "B", "a", "b"]);
    let folder = root.path().join(".hookwright/hooks/a");
    assert_eq!(loaded.definitions[2].source.path, folder.join("HOOK.yaml"));
    assert_eq!(loaded.definitions[2].source.folder, Some(folder));
    assert_eq!(loaded.definitions[2].source.line, 2);
    assert_eq!(loaded.files.len(), 4);
}

#[test]
fn mistakes_of_the_folder_form() {
    let hook = "events: stop\ntype: shell\ncommand: run.sh\n";
    let root = project(&[
        ("hooks.yaml", "version: 1\nhooks:\n- {name: a, events: stop, type: shell, command: x}\n"),
        ("hooks/a/HOOK.yaml", hook),
        ("hooks/b/HOOK.yaml", &format!("{hook}name: c\n")),
        ("hooks/d/hook.yml", hook),
        ("hooks/e/HOOK.yaml", ""),
    ]);
    symlink("nowhere", root.path().join(".hookwright/hooks/f")).unwrap();
    assert_eq!(
        problems_of(&root),
        [
            r#"hooks/a/HOOK.yaml:1:1: hook name "a" is taken (first in hooks.yaml:3); give each hook a name of its own"#,
            r#"hooks/b/HOOK.yaml:4:7: the hook is named "c" but its folder "b"; give both one name, or leave out the key"#,
            "hooks/d: no HOOK.yaml; rename hook.yml to HOOK.yaml",
            r#"hooks/e/HOOK.yaml:1:1: missing key "type"; add "type: shell""#,
            r#"hooks/e/HOOK.yaml:1:1: missing key "events"; add "events: pre_tool_execution""#,
            "hooks/f: cannot be read: No such file or directory (os error 2)",
        ]
    );
}

#[test]
fn mistakes_at_the_top_of_a_file() {
    for (yaml, expected) in [
        ("", r#"hooks.yaml:1:1: missing key "version"; add "version: 1""#),
        ("hooks: []\n", r#"hooks.yaml:1:1: missing key "version"; add "version: 1""#),
        ("version: 2\n", "hooks.yaml:1:10: version 2 of the format is not known; this hookwright reads version 1"),
        ("version: '1'\n", r#"hooks.yaml:1:10: "version" must be a whole number, not the text "1""#),
        ("version: 1\nhook: []\n", r#"hooks.yaml:2:1: unknown key "hook"; did you mean "hooks"?"#),
        (
            "version: 1\nxyz: []\n",
            r#"hooks.yaml:2:1: unknown key "xyz"; one of version, hooks, permissions, gates, disabled_hooks, budget"#,
        ),
        (
            "version: 1\nhooks:\n  name: x\n",
            r#"hooks.yaml:2:1: "hooks" must be a list, not keys and values; begin each entry with "- ""#,
        ),
        ("version: 1\nhooks: x\n", r#"hooks.yaml:2:8: "hooks" must be a list, not the text "x""#),
        ("version: 1\nhooks: [x]\n", r#"hooks.yaml:2:9: a hook must be keys and values; write "- name: ...""#),
        (
            "version: 1\nbudget: -1\n",
            r#"hooks.yaml:2:9: "budget" must be a number of seconds above 0, not the number -1"#,
        ),
        (
            "version: 1\ndisabled_hooks: [a, 2]\n",
            r#"hooks.yaml:2:21: "disabled_hooks" must be a text, not the number 2; put it in quotes"#,
        ),
        (
            "version: 1\nversion: 1\n",
            r#"hooks.yaml:2:1: key "version" is repeated (first on line 1); keep one of them"#,
        ),
    ] {
        assert_eq!(problems(yaml), [expected], "{yaml}");
    }
    assert_eq!(problems("version: 1\n"), Vec::<String>::new());
    assert_eq!(problems("version: 1\nhooks:\ndisabled_hooks:\n"), Vec::<String>::new());
}

#[test]
fn mistakes_in_a_hook() {
    let base = "name: x\nevents: stop\ntype: shell\ncommand: y\n";
    for (line, expected) in [
        ("timout: 3", r#"hooks.yaml:7:3: unknown key "timout"; did you mean "timeout"?"#),
        ("tool_regex: x", r#"hooks.yaml:7:3: unknown key "tool_regex"; it belongs under "filter:""#),
        ("timeout: -0.5", r#"hooks.yaml:7:12: "timeout" must be a number of seconds above 0, not the number -0.5"#),
        ("timeout: 10s", r#"hooks.yaml:7:12: "timeout" must be a number of seconds above 0, not the text "10s""#),
        ("timeout: .inf", r#"hooks.yaml:7:12: "timeout" must be a number of seconds above 0, not the text ".inf""#),
        ("timeout: 1e300", r#"hooks.yaml:7:12: "timeout" must be a number of seconds above 0, not the number 1e300"#),
        ("timeout:", r#"hooks.yaml:7:3: "timeout" must be a number of seconds above 0, not nothing"#),
        ("retry: -1", r#"hooks.yaml:7:10: "retry" must be a whole number, 0 or more, not the number -1"#),
        ("retry: 1.5", r#"hooks.yaml:7:10: "retry" must be a whole number, 0 or more, not the number 1.5"#),
        ("order: first", r#"hooks.yaml:7:10: "order" must be a whole number, not the text "first""#),
        ("enabled: yes", r#"hooks.yaml:7:12: "enabled" must be true or false, not the text "yes""#),
        ("shadow: [true]", r#"hooks.yaml:7:11: "shadow" must be true or false, not a list"#),
        ("role: gates", r#"hooks.yaml:7:9: unknown role "gates"; did you mean "gate"?"#),
        ("role: watcher", r#"hooks.yaml:7:9: unknown role "watcher"; one of hook, gate, observer"#),
        ("on_error: denied", r#"hooks.yaml:7:13: unknown on_error "denied"; did you mean "deny"?"#),
        ("filter: shell", r#"hooks.yaml:7:11: "filter" must be keys and values, not the text "shell""#),
        (
            "filter: {tool_name: 3}",
            r#"hooks.yaml:7:23: "tool_name" must be a text, not the number 3; put it in quotes"#,
        ),
        ("filter: {agent: 'a['}", r#"hooks.yaml:7:19: bad pattern in agent: "a[": "[" is never closed at character 2"#),
        (
            "filter: {arguments: {path: '[z-a]'}}",
            r#"hooks.yaml:7:30: bad pattern in arguments.path: "[z-a]": the range z-a is reversed at character 2"#,
        ),
        ("filter: {arguments: {path: [a]}}", r#"hooks.yaml:7:30: "path" must be a pattern, not a list"#),
        (
            "prompt: z",
            r#"hooks.yaml:7:3: key "prompt" belongs to hooks of type llm, and this one is of type shell; leave it out, or change the type"#,
        ),
        (
            "isolate: none",
            r#"hooks.yaml:7:3: key "isolate" belongs to hooks of type python, and this one is of type shell; leave it out, or change the type"#,
        ),
        (
            "worker: true",
            r#"hooks.yaml:7:11: "worker: true" is not available yet in this version; leave it out: the command is then started for each event"#,
        ),
    ] {
        assert_eq!(hook_problems(&format!("{base}{line}\n")), [expected], "{line}");
    }
}

#[test]
fn mistakes_in_what_a_hook_needs() {
    for (hook, expected) in [
        ("events: stop\ntype: shell\ncommand: y", vec![r#"3:3: missing key "name"; every hook needs one of its own"#]),
        ("name: x\ntype: shell\ncommand: y", vec![r#"3:3: missing key "events"; add "events: pre_tool_execution""#]),
        ("name: x\nevents: stop\ncallable: 'a:b'", vec![r#"3:3: missing key "type"; add "type: python""#]),
        ("name: x\nevents: stop\ntype: python", vec![r#"3:3: missing key "callable"; a hook of type python needs it"#]),
        (
            "name: x\nevents: stop\ntype: pyton\ncallable: 'a:b'",
            vec![r#"5:9: unknown type "pyton"; did you mean "python"?"#],
        ),
        (
            "name: x\nevents: stop\ntype: python\ncallable: a.b",
            vec![r#"6:13: "a.b" is not a Python function; write "module:function""#],
        ),
        (
            "name: x\nevents: stop\ntype: python\ncallable: 'a:b-c'",
            vec![r#"6:13: "a:b-c" is not a Python function; write "module:function""#],
        ),
        (
            "name: x\nevents: stop\ntype: python\ncallable: 'a:b'\nisolate: process",
            vec![r#"7:12: "isolate: process" is not available yet in this version; write "isolate: thread""#],
        ),
        ("name: x\nevents: stop\ntype: shell\ncommand: ''", vec![r#"6:12: "command" is empty"#]),
        (
            "name: 12\nevents: stop\ntype: shell\ncommand: true",
            vec![
                r#"3:9: "name" must be a text, not the number 12; put it in quotes"#,
                r#"6:12: "command" must be a text, not true; put it in quotes"#,
            ],
        ),
        (
            "name: x\nevents: []\ntype: shell\ncommand: y",
            vec![r#"4:11: "events" is empty; to switch a hook off, write "enabled: false""#],
        ),
        (
            "name: x\nevents: [stop, stop]\ntype: shell\ncommand: y",
            vec![r#"4:18: event "stop" is repeated; keep one of them"#],
        ),
        (
            "name: x\nevents: {stop: 1}\ntype: shell\ncommand: y",
            vec![r#"4:11: "events" must be a text or a list of texts, not keys and values"#],
        ),
        (
            "name: x\nevents: stop\ntype: llm\nprompt: y",
            vec![r#"3:3: missing key "model"; a hook of type llm needs it"#],
        ),
        (
            "name: x\nevents: stop\ntype: llm\nmodel: m\nprompt: is {{tool_nam}} good?",
            vec![r#"7:11: unknown variable {{tool_nam}} in the prompt; did you mean "tool_name"?"#],
        ),
        (
            "name: x\nevents: turn_start\ntype: llm\nmodel: m\nprompt: is {{tool_name}} good?",
            vec![r#"7:11: turn_start has no {{tool_name}}; it has event, cwd, user_input, session_id"#],
        ),
        (
            "name: x\nevents: [pre_tool_execution, turn_end]\ntype: shell\nrole: gate\ncommand: y",
            vec![
                r#"4:32: a gate on "turn_end", where nothing can be refused; use role "hook" or "observer", or another event"#,
            ],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|problem| format!("hooks.yaml:{problem}")).collect();
        assert_eq!(hook_problems(hook), expected, "{hook}");
    }
}

#[test]
fn a_good_hook_beside_a_bad_one_is_still_there_for_those_who_go_on() {
    let root = project(&[(
        "hooks.yaml",
        "version: 1\nhooks:\n- {name: bad, events: x, type: shell, command: y}\n- {name: good, events: stop, type: shell, command: y}\n",
    )]);
    let loaded = load(&root);
    assert_eq!(loaded.problems.len(), 1);
    assert_eq!(loaded.definitions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn two_configuration_files_in_one_folder_are_a_problem() {
    let root = project(&[("hooks.yaml", "version: 1\n"), ("hooks.json", "{\"version\": 1}")]);
    assert_eq!(
        problems_of(&root),
        ["hooks.json: there is a hooks.yaml beside it, and only one can count; keep one of them"]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_and_not_an_empty_one() {
    let root = project(&[]);
    let path = root.path().join(".hookwright/hooks.yaml");
    symlink("gone.yaml", &path).unwrap();
    assert_eq!(problems_of(&root), ["hooks.yaml: cannot be read: No such file or directory (os error 2)"]);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(problems_of(&root), ["hooks.yaml: cannot be read: it is not a regular file"]);
    fs::remove_dir(&path).unwrap();
    fs::write(&path, b"version: 1\n# caf\xe9\n").unwrap();
    assert_eq!(problems_of(&root), ["hooks.yaml:2:6: not UTF-8: byte 0xe9; save the file as UTF-8"]);
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(problems_of(&root), ["hooks.yaml: cannot be read: it is not a regular file"]);
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_a_problem() {
    let root = project(&[]);
    let folder = root.path().join(".hookwright/hooks").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    // Some file systems refuse such names, and then there is nothing to test.
    if fs::create_dir_all(&folder).is_ok() {
        write(&folder.join("HOOK.yaml"), "events: stop\ntype: shell\ncommand: y\n");
        assert_eq!(problems_of(&root), ["hooks/caf\u{fffd}: the name of the folder is not UTF-8"]);
    }
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let text = "version: 1\nhooks:\n- name: x\n  events: stop\n  type: shell\n  command: |\n    a\n    b\n";
    let plain = project(&[("hooks.yaml", text)]);
    let windows = project(&[("hooks.yaml", &format!("\u{feff}{}", text.replace('\n', "\r\n")))]);
    let (plain, windows) = (load(&plain), load(&windows));
    assert_eq!(only(&plain).action, HookAction::Shell { command: "a\nb\n".to_owned() });
    assert_eq!(only(&windows).action, only(&plain).action);
    assert_eq!(only(&windows).source.line, 3);
}

#[test]
fn the_nearest_project_and_the_user_are_found() {
    let home = tempfile::tempdir().unwrap();
    let env = ConfigEnv { home: Some(home.path().to_owned()), ..ConfigEnv::default() };
    let root = project(&[]);
    let deep = root.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let found = discover(&deep, &env);
    assert_eq!(found.user, None);
    assert_eq!(found.project, Some(Source::project(root.path())));
    assert_eq!(found.project.unwrap().root(), root.path());

    fs::create_dir(root.path().join("a/.hookwright")).unwrap();
    assert_eq!(discover(&deep, &env).project, Some(Source::project(&root.path().join("a"))));
    fs::create_dir_all(home.path().join(".config/hookwright")).unwrap();
    assert_eq!(discover(&deep, &env).user, Some(Source::new(Level::User, home.path().join(".config/hookwright"))));

    let elsewhere = tempfile::tempdir().unwrap();
    let xdg = ConfigEnv { xdg_config_home: Some(elsewhere.path().to_owned()), ..env.clone() };
    assert_eq!(discover(&deep, &xdg).user, None, "XDG_CONFIG_HOME stands over the home folder");
    fs::create_dir(elsewhere.path().join("hookwright")).unwrap();
    assert_eq!(discover(&deep, &xdg).user.unwrap().folder, elsewhere.path().join("hookwright"));
    let relative = ConfigEnv { xdg_config_home: Some("etc".into()), ..env };
    assert_eq!(discover(&deep, &relative).user.unwrap().folder, home.path().join(".config/hookwright"));
    assert_eq!(discover(&deep, &ConfigEnv::default()).user, None);
}

#[test]
fn levels_add_up_and_a_disabled_name_is_disabled_at_every_level() {
    let hook = |name: &str| format!("- {{name: {name}, events: stop, type: shell, command: x}}\n");
    let folder = tempfile::tempdir().unwrap();
    let user_file = folder.path().join("user.yaml");
    write(
        &user_file,
        &format!("version: 1\nbudget: 5\ndisabled_hooks: [theirs, mine]\nhooks:\n{}{}", hook("mine"), hook("also")),
    );
    let project_file = folder.path().join("project.yaml");
    write(&project_file, &format!("version: 1\ndisabled_hooks: also\nhooks:\n{}{}", hook("theirs"), hook("other")));
    let all = load_file(&user_file, Level::User).combine(load_file(&project_file, Level::Project)).checked().unwrap();
    let enabled: Vec<_> = all.definitions.iter().map(|d| (d.name.as_str(), d.level, d.enabled)).collect();
    assert_eq!(
        enabled,
        [
            ("mine", Level::User, false),
            ("also", Level::User, false),
            ("theirs", Level::Project, false),
            ("other", Level::Project, true),
        ]
    );
    assert_eq!(all.budget, Some(Duration::from_secs(5)));
    let later = Loaded { budget: Some(Duration::from_secs(7)), ..Loaded::default() };
    assert_eq!(all.combine(later).budget, Some(Duration::from_secs(7)));
}
