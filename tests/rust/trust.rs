//! What has to be trusted anew, and a store that several processes share.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hookwright::hook::config::trust::{ChangeKind, Trust, TrustError, TrustStore};
use hookwright::hook::config::{ConfigEnv, fingerprint};
use tempfile::TempDir;

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const HOOKS: &str = r#"version: 1
hooks:
- {name: one, events: stop, type: shell, command: "./scripts/check.sh --strict >> hooks.log"}
- {name: two, events: stop, type: shell, command: 'python3 "$HOOKWRIGHT_CWD/tools/style.py" && python3 -m tools.report'}
- {name: three, events: stop, type: python, callable: "gates.files:no_deletes"}
"#;

/// A project with hooks of every kind, and files that do not belong to them.
fn project() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in [
        (".hookwright/hooks.yaml", HOOKS),
        (".hookwright/hooks/four/HOOK.yaml", "events: stop\ntype: shell\ncommand: run.sh\n"),
        (".hookwright/hooks/four/run.sh", "exit 0\n"),
        (".hookwright/hooks/four/lib/.common", "a\n"),
        (".hookwright/session.json", "{}"),
        ("scripts/check.sh", "exit 0\n"),
        ("scripts/unrelated.sh", "exit 0\n"),
        ("tools/style.py", "print()\n"),
        ("tools/report.py", "print()\n"),
        ("src/gates/__init__.py", ""),
        ("src/gates/files.py", "def no_deletes(event): ...\n"),
        ("hooks.log", "started\n"),
    ] {
        write(&root.path().join(path), content);
    }
    root
}

fn store() -> (TempDir, TrustStore) {
    let folder = tempfile::tempdir().unwrap();
    let env = ConfigEnv { xdg_state_home: Some(folder.path().to_owned()), ..ConfigEnv::default() };
    let store = TrustStore::open(&env).unwrap();
    (folder, store)
}

fn ask(store: &TrustStore, root: &Path) -> Trust {
    store.is_trusted(root, &fingerprint(root).unwrap()).unwrap()
}

/// What is different, as `path (how)`.
fn changes(store: &TrustStore, root: &Path) -> Vec<String> {
    match ask(store, root) {
        Trust::Changed(changes) => changes.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_configuration_hook_folders_and_named_scripts_are_covered() {
    let root = project();
    let files: Vec<String> =
        fingerprint(root.path()).unwrap().files.iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(
        files,
        [
            ".hookwright/hooks/four/HOOK.yaml",
            ".hookwright/hooks/four/lib/.common",
            ".hookwright/hooks/four/run.sh",
            ".hookwright/hooks.yaml",
            "scripts/check.sh",
            "src/gates/__init__.py",
            "src/gates/files.py",
            "tools/report.py",
            "tools/style.py",
        ]
    );
}

#[test]
fn one_changed_byte_of_any_covered_file_asks_again() {
    let (_folder, store) = store();
    let root = project();
    assert_eq!(ask(&store, root.path()), Trust::Unknown);
    let trusted = fingerprint(root.path()).unwrap();
    store.trust(root.path(), &trusted).unwrap();
    assert!(ask(&store, root.path()).is_trusted());
    for (path, _) in &trusted.files {
        let full = root.path().join(path);
        let original = fs::read(&full).unwrap();
        let mut edited = original.clone();
        match edited.last_mut() {
            // A comment in YAML keeps the commands the same.
            Some(_) if path.extension().is_some_and(|extension| extension == "yaml") => edited.extend(b"#"),
            Some(last) => *last ^= 1,
            None => edited.push(b'#'),
        }
        fs::write(&full, &edited).unwrap();
        assert_eq!(changes(&store, root.path()), [format!("{} (changed)", path.display())]);
        fs::write(&full, &original).unwrap();
        assert!(ask(&store, root.path()).is_trusted(), "{}", path.display());
    }
}

#[test]
fn what_does_not_belong_to_the_hooks_may_change() {
    let (_folder, store) = store();
    let root = project();
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    for path in [".hookwright/session.json", "scripts/unrelated.sh", "hooks.log", "new.sh"] {
        write(&root.path().join(path), "different\n");
    }
    assert_eq!(ask(&store, root.path()), Trust::Trusted);
}

#[test]
fn files_that_come_go_or_become_executable_ask_again() {
    let (_folder, store) = store();
    let root = project();
    let hook = root.path().join(".hookwright/hooks/four");
    set_mode(&hook.join("run.sh"), 0o644);
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    set_mode(&hook.join("run.sh"), 0o600);
    assert_eq!(ask(&store, root.path()), Trust::Trusted, "who may read it does not matter");
    set_mode(&hook.join("run.sh"), 0o755);
    write(&hook.join("python3"), "a program that comes first on the PATH\n");
    fs::remove_file(root.path().join("tools/style.py")).unwrap();
    assert_eq!(
        changes(&store, root.path()),
        [".hookwright/hooks/four/python3 (new)", ".hookwright/hooks/four/run.sh (changed)", "tools/style.py (gone)",]
    );
}

#[test]
fn a_script_that_the_command_names_only_now_is_new() {
    let (_folder, store) = store();
    let root = project();
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    let yaml = HOOKS.replace("check.sh", "unrelated.sh");
    write(&root.path().join(".hookwright/hooks.yaml"), &yaml);
    let Trust::Changed(found) = ask(&store, root.path()) else { panic!() };
    let kinds: Vec<_> = found.iter().map(|change| (change.path.to_str().unwrap(), change.kind)).collect();
    assert_eq!(
        kinds,
        [
            (".hookwright/hooks.yaml", ChangeKind::Changed),
            ("scripts/check.sh", ChangeKind::Removed),
            ("scripts/unrelated.sh", ChangeKind::Added),
        ]
    );
}

#[test]
fn links_are_covered_by_where_they_point_and_by_what_is_there() {
    let (_folder, store) = store();
    let root = project();
    let outside = tempfile::tempdir().unwrap();
    let script = root.path().join("scripts/check.sh");
    fs::remove_file(&script).unwrap();
    write(&outside.path().join("one.sh"), "exit 0\n");
    write(&outside.path().join("two.sh"), "exit 0\n");
    symlink(outside.path().join("one.sh"), &script).unwrap();
    // A circle, and a folder behind a link.
    symlink("..", root.path().join(".hookwright/hooks/four/up")).unwrap();
    symlink(outside.path(), root.path().join(".hookwright/hooks/four/shared")).unwrap();
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    assert_eq!(ask(&store, root.path()), Trust::Trusted);

    write(&outside.path().join("one.sh"), "exit 1\n");
    assert_eq!(
        changes(&store, root.path()),
        [".hookwright/hooks/four/shared/one.sh (changed)", "scripts/check.sh (changed)"]
    );
    write(&outside.path().join("one.sh"), "exit 0\n");
    fs::remove_file(&script).unwrap();
    symlink(outside.path().join("two.sh"), &script).unwrap();
    assert_eq!(changes(&store, root.path()), ["scripts/check.sh (changed)"], "the same content from elsewhere");
    fs::remove_file(&script).unwrap();
    write(&script, "exit 0\n");
    assert_eq!(changes(&store, root.path()), ["scripts/check.sh (changed)"], "no link any more");
}

#[test]
fn the_same_content_in_another_place_is_not_trusted_and_a_link_to_the_project_is() {
    let (folder, store) = store();
    let (root, copy) = (project(), project());
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    assert_eq!(fingerprint(root.path()).unwrap(), fingerprint(copy.path()).unwrap());
    assert_eq!(ask(&store, copy.path()), Trust::Unknown);
    let link = folder.path().join("link");
    symlink(root.path(), &link).unwrap();
    assert_eq!(ask(&store, &link), Trust::Trusted);
}

#[test]
fn trusted_projects_are_listed_and_forgotten() {
    let (_folder, store) = store();
    assert_eq!(store.list().unwrap(), []);
    let root = project();
    let path = root.path().canonicalize().unwrap();
    let fingerprint = fingerprint(&path).unwrap();
    store.trust(&path, &fingerprint).unwrap();
    let [listed] = &store.list().unwrap()[..] else { panic!() };
    assert_eq!((&listed.project, &listed.hash, listed.files), (&path, &fingerprint.hash, 9));
    assert!(listed.trusted_at.ends_with('Z') && listed.trusted_at.len() == 20, "{}", listed.trusted_at);
    drop(root);
    assert!(store.forget(&path).unwrap(), "also when the folder is gone");
    assert!(!store.forget(&path).unwrap());
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn a_damaged_store_is_an_error_and_never_trust() {
    let (_folder, store) = store();
    let root = project();
    let fingerprint = fingerprint(root.path()).unwrap();
    store.trust(root.path(), &fingerprint).unwrap();
    let good = fs::read_to_string(store.path()).unwrap();
    for bad in ["", "{}", "[]", &good[..good.len() / 2], &good.replace("\"version\": 1", "\"version\": 2")] {
        fs::write(store.path(), bad).unwrap();
        let error = store.is_trusted(root.path(), &fingerprint).unwrap_err();
        assert!(matches!(error, TrustError::Corrupt { .. }), "{error}");
        assert!(error.to_string().ends_with("delete it, then trust your projects again"), "{error}");
        assert!(matches!(store.trust(root.path(), &fingerprint), Err(TrustError::Corrupt { .. })));
        assert_eq!(fs::read_to_string(store.path()).unwrap(), bad, "it is left for its owner to look at");
    }
}

#[test]
fn the_store_is_for_its_user_alone() {
    let (folder, store) = store();
    let root = project();
    store.trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(&folder.path().join("hookwright")), 0o700);
}

#[test]
fn without_a_place_there_is_no_store() {
    let error = TrustStore::open(&ConfigEnv::default()).unwrap_err();
    assert!(matches!(error, TrustError::NoPlace), "{error}");
    let env = ConfigEnv { home: Some("/home/someone".into()), ..ConfigEnv::default() };
    let path = "/home/someone/.local/state/hookwright/trust.json";
    assert_eq!(TrustStore::open(&env).unwrap().path(), Path::new(path));
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let (_folder, store) = store();
    let projects: Vec<TempDir> = (0..16).map(|_| project()).collect();
    // Each has a store of its own over the same file, and thereby a lock of its own, as processes have.
    std::thread::scope(|scope| {
        for root in &projects {
            let path = store.path();
            scope.spawn(move || {
                TrustStore::at(path).trust(root.path(), &fingerprint(root.path()).unwrap()).unwrap();
            });
        }
    });
    assert_eq!(store.list().unwrap().len(), projects.len());
    assert!(projects.iter().all(|root| ask(&store, root.path()).is_trusted()));
}

#[test]
fn scripts_are_found_after_cd_and_under_another_name_of_the_project() {
    let root = project();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    symlink(root.path(), &link).unwrap();
    let yaml = |command: &str| {
        format!("version: 1\nhooks:\n- {{name: one, events: stop, type: shell, command: '{command}'}}\n")
    };
    for (command, covered) in [
        ("cd tools && ./style.py", true),
        ("cd ./tools; exec python3 style.py", true),
        (&format!("{}/tools/style.py", link.display()), true),
        (&format!("{}/tools/style.py", root.path().display()), true),
        ("tools/../tools/./style.py", true),
        ("cat > tools/style.py", false),
        ("style.py", false),
    ] {
        write(&root.path().join(".hookwright/hooks.yaml"), &yaml(command));
        let files = fingerprint(root.path()).unwrap().files;
        assert_eq!(files.iter().any(|(path, _)| path.ends_with("tools/style.py")), covered, "{command}");
    }
}
