//! The environment that commands which only read are run in.
//!
//! That a command only reads is said of its text. What a program does besides depends on what surrounds it: on
//! variables, on PATH, and for git on the configuration of the repository, which can name programs for git to run. So
//! whoever lets a command through because it only reads has to run it in here.
//!
//! This is no sandbox. A backstop of the operating system would stand in [`command`], around the shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ProcessSpec, Status, run};

/// Variables that are handed on: where things are, and how to print.
const HANDED_ON: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "CI",
    "NO_COLOR",
    "COLUMNS",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "RUST_BACKTRACE",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
];
/// PATH, if there is none or nothing of it is left.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The configuration that git gets on top of the repository's: nothing in it runs a program.
const GIT_CONFIGURATION: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.attributesFile", "/dev/null"),
    ("core.sshCommand", "/bin/false"),
    ("core.askPass", "/bin/false"),
    ("gpg.program", "/bin/false"),
    ("gpg.ssh.program", "/bin/false"),
    ("gpg.x509.program", "/bin/false"),
    ("log.showSignature", "false"),
    ("diff.autoRefreshIndex", "false"),
    // A diff of what changed in a submodule is made by a git of its own, under the configuration of the submodule.
    ("diff.submodule", "short"),
    ("help.format", "man"),
    ("safe.bareRepository", "explicit"),
    ("protocol.allow", "never"),
    ("credential.helper", ""),
    ("submodule.recurse", "false"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
];
/// The tree without files, by the hash of the repository: attributes are read from it, not from the work tree.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
/// In how many folders a command is taken to start git.
const MAX_FOLDERS: usize = 16;
/// How long git may take to say how it is configured.
const GIT_PATIENCE: Duration = Duration::from_secs(10);

/// The environment for commands that only read.
///
/// `inherited`: the environment to take from, usually that of the process. `work_tree`: the folder that the commands
/// look at; programs in it are not found. `repository`: what [`look`] found there. Variables are handed on by an
/// allow-list.
///
/// ```
/// use hookwright::process::read_only::environment;
/// let inherited = [("PATH", "/usr/bin:/work/bin:."), ("GIT_EXTERNAL_DIFF", "/tmp/evil")];
/// let inherited = inherited.map(|(name, value)| (name.into(), value.into()));
/// let environment = environment(inherited, "/work".as_ref(), None);
/// let value = |name: &str| environment.iter().find(|(one, _)| one == name).and_then(|(_, value)| value.to_str());
/// assert_eq!(value("PATH"), Some("/usr/bin"));
/// assert_eq!(value("GIT_EXTERNAL_DIFF"), None);
/// assert_eq!(value("GIT_OPTIONAL_LOCKS"), Some("0"));
/// ```
pub fn environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    work_tree: &Path,
    repository: Option<&Repository>,
) -> Vec<(OsString, OsString)> {
    let mut environment = Vec::new();
    let mut path = None;
    for (name, value) in inherited {
        let text = name.to_str().unwrap_or_default();
        if text == "PATH" {
            path = Some(value);
        } else if HANDED_ON.contains(&text) || text.starts_with("LC_") {
            environment.push((name, value));
        }
    }
    let path = path.as_deref().and_then(|path| outside(path, work_tree)).unwrap_or_else(|| DEFAULT_PATH.into());
    environment.push(("PATH".into(), path));
    let fixed = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("SYSTEMD_PAGER", "cat"),
        ("LESSSECURE", "1"),
        ("EDITOR", "/bin/false"),
        ("VISUAL", "/bin/false"),
        ("GIT_EDITOR", "/bin/false"),
        ("GIT_SEQUENCE_EDITOR", "/bin/false"),
        ("GIT_ASKPASS", "/bin/false"),
        ("SSH_ASKPASS", "/bin/false"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GOTOOLCHAIN", "local"),
        ("GOFLAGS", "-mod=readonly"),
        ("GOPROXY", "off"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_logs_max", "0"),
    ];
    // npm makes the folder of its cache, if there is none, before it looks at anything.
    let temporary =
        environment.iter().find(|(name, _)| name == "TMPDIR").map_or("/tmp".into(), |(_, value)| value.clone());
    environment.push(("npm_config_cache".into(), temporary));
    environment.extend(fixed.map(|(name, value)| (name.into(), value.into())));
    // Outside a repository git refuses to work with it.
    if let Some(repository) = repository {
        environment.push(("GIT_ATTR_SOURCE".into(), repository.empty_tree.into()));
    }
    let safe = repository.map_or(&[][..], |repository| &repository.safe);
    // The empty one takes back those of the user's configuration.
    let safe = std::iter::once("".as_ref()).chain(safe.iter().map(|path| path.as_os_str()));
    let configuration = GIT_CONFIGURATION.iter().map(|(key, value)| (*key, (*value).as_ref()));
    let mut count = 0;
    for (key, value) in configuration.chain(safe.map(|value| ("safe.directory", value))) {
        environment.push((format!("GIT_CONFIG_KEY_{count}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    environment.push((COUNT.into(), count.to_string().into()));
    // Has git work in the directories above only, as if all others were somebody else's.
    environment.push((OTHERS.into(), "1".into()));
    environment
}

/// How many settings git is given.
const COUNT: &str = "GIT_CONFIG_COUNT";
/// By which git takes every repository to be somebody else's.
const OTHERS: &str = "GIT_TEST_ASSUME_DIFFERENT_OWNER";

/// The entries of a PATH that are absolute and not in `work_tree`, also if a link leads there.
fn outside(path: &OsStr, work_tree: &Path) -> Option<OsString> {
    let real = work_tree.canonicalize().unwrap_or_else(|_| work_tree.to_owned());
    let kept: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|entry| entry.is_absolute())
        .filter(|entry| {
            let leads_to = entry.canonicalize().unwrap_or_else(|_| entry.clone());
            !entry.starts_with(work_tree) && !leads_to.starts_with(&real)
        })
        .collect();
    std::env::join_paths(kept).ok().filter(|joined| !joined.is_empty())
}

/// The argument vector that runs `command` as the analysis reads it: bash without start-up files.
pub fn arguments(command: &str) -> [OsString; 6] {
    ["bash", "--noprofile", "--norc", "-p", "-c", command].map(Into::into)
}

/// A process that runs a command which only reads, in `folder` of `work_tree`; it has no input.
pub fn command(text: &str, folder: &Path, work_tree: &Path, repository: Option<&Repository>) -> ProcessSpec {
    let [program, arguments @ ..] = arguments(text);
    let mut spec = ProcessSpec::new(program).working_directory(folder);
    spec.arguments = arguments.into();
    in_environment(spec, work_tree, repository)
}

/// The same for a command of git that runs no program of any repository, such as a list of files: it works also in one
/// that was not looked at.
pub fn listing(text: &str, folder: &Path, work_tree: &Path) -> ProcessSpec {
    anywhere(command(text, folder, work_tree, None))
}

/// Has git work in every repository that its owner lets it work in.
fn anywhere(mut spec: ProcessSpec) -> ProcessSpec {
    spec.environment.retain(|(name, _)| name != OTHERS && name != COUNT);
    spec.environment.push((COUNT.into(), GIT_CONFIGURATION.len().to_string().into()));
    spec
}

fn in_environment(mut spec: ProcessSpec, work_tree: &Path, repository: Option<&Repository>) -> ProcessSpec {
    spec.clear_environment = true;
    spec.environment = environment(std::env::vars_os(), work_tree, repository);
    // By its path: what has to be looked up on the child's own PATH is started slowly.
    if let Some(path) = find(&spec) {
        spec.program = path.into();
    }
    spec
}

fn find(spec: &ProcessSpec) -> Option<PathBuf> {
    let (_, path) = spec.environment.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(path).map(|folder| folder.join(&spec.program)).find(|program| program.is_file())
}

/// Why git may run programs in a repository although the environment is [`environment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitRisk {
    /// The repository's own configuration names a program that no override takes back.
    #[error("the configuration of this repository sets {key} ({origin}), which git would run")]
    Configured {
        /// The key, for example `diff.external`.
        key: String,
        /// The file that sets it.
        origin: String,
    },
    /// The repository's configuration includes a file from outside of it.
    #[error("the configuration of this repository includes {path}, which is outside of it")]
    Included {
        /// The file.
        path: String,
    },
    /// `info/attributes` names a driver or filter, which is a program.
    #[error("{path} names the driver or filter {name:?}, which git would run")]
    Attributes {
        /// The file of attributes.
        path: String,
        /// The attribute as it stands there.
        name: String,
    },
    /// How the repository is configured could not be found out.
    #[error("how git is configured here could not be found out: {reason}")]
    Unknown {
        /// What git said.
        reason: String,
    },
}

/// A repository that names no programs for git to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The tree without files. Attributes are read from it, so that those of the work tree name no drivers.
    empty_tree: &'static str,
    /// The directories in which git may work: those of this repository, and of others that were looked at as well.
    safe: Vec<PathBuf>,
}

/// Looks at the repository around `folder`: whether it names programs that git would run when it only reads.
///
/// Must be called on a tokio runtime. `None` if there is no repository, or no git.
///
/// # Errors
/// What stands against using git here.
pub async fn look(folder: &Path, work_tree: &Path) -> Result<Option<Repository>, GitRisk> {
    let places = [
        "rev-parse",
        "--show-object-format",
        "--absolute-git-dir",
        "--git-common-dir",
        "--git-path",
        "info/attributes",
    ];
    let Some(places) = git(&places, folder, work_tree).await? else { return Ok(None) };
    let lines: Vec<&[u8]> = places.split(|byte| *byte == b'\n').collect();
    let line = |index: usize| lines.get(index).copied().unwrap_or_default();
    let path = |index: usize| folder.join(OsStr::from_bytes(line(index)));
    let directories = [path(1), path(2)].map(|folder| folder.canonicalize().unwrap_or(folder));
    check(&[], &path(3), folder, work_tree, &directories).await?;
    for module in modules(&directories[1]) {
        // Under the configuration of the submodule, git looks for what changed in it.
        let directory = format!("--git-dir={}", module.display());
        let attributes = module.join("info/attributes");
        check(&[&directory], &attributes, folder, work_tree, std::slice::from_ref(&module)).await?;
    }
    let tree = around(folder).unwrap_or_else(|| directories[0].clone());
    let empty_tree = if line(0) == b"sha256" { EMPTY_TREE_SHA256 } else { EMPTY_TREE };
    Ok(Some(Repository { empty_tree, safe: vec![tree] }))
}

/// As [`look`], and at the repositories as well in whose folders `command` may start git (`git -C …`, `cd … && git`).
/// Git refuses to work in one that names programs, or that is not found here because its folder is not written out.
///
/// Must be called on a tokio runtime.
///
/// # Errors
/// What stands against using git in the repository around `folder`.
pub async fn look_for(command: &str, folder: &Path, work_tree: &Path) -> Result<Option<Repository>, GitRisk> {
    let mut repository = look(folder, work_tree).await?;
    if !command.contains("git") {
        return Ok(repository);
    }
    let words = command.split(|character: char| character.is_whitespace() || ";&|()'\"`<>={}".contains(character));
    let mut folders = vec![folder.to_owned()];
    for word in words.filter(|word| !word.is_empty() && !word.starts_with('-')) {
        let reached: Vec<PathBuf> = folders.iter().map(|from| from.join(word)).filter(|path| path.is_dir()).collect();
        folders.extend(reached);
        folders.dedup();
        folders.truncate(MAX_FOLDERS);
    }
    for other in folders.iter().skip(1).filter_map(|folder| around(folder)) {
        if repository.as_ref().is_some_and(|repository| repository.safe.contains(&other)) {
            continue;
        }
        if let Ok(Some(looked)) = look(&other, work_tree).await {
            let known = repository.get_or_insert_with(|| Repository { safe: Vec::new(), ..looked.clone() });
            known.safe.extend(looked.safe);
        }
    }
    Ok(repository)
}

/// The work tree or repository without one in which a folder lies, by its real path.
fn around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let is_repository =
        |path: &&Path| path.join(".git").exists() || path.join("HEAD").is_file() && path.join("objects").is_dir();
    folder.ancestors().find(is_repository).map(Path::to_owned)
}

/// The repositories of submodules, also of theirs.
fn modules(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![directory.join("modules")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.join("HEAD").is_file() {
                folders.push(path.join("modules"));
                found.push(path);
            } else {
                folders.push(path); // The name of a submodule may hold slashes.
            }
        }
    }
    found
}

/// Checks what a repository names for git to run. `choose`: the options by which git finds it.
async fn check(
    choose: &[&str],
    attributes: &Path,
    folder: &Path,
    work_tree: &Path,
    inside: &[PathBuf],
) -> Result<(), GitRisk> {
    check_attributes(attributes)?;
    let list = ["config", "--list", "-z", "--show-scope", "--show-origin", "--includes"];
    let Some(listed) = git(&[choose, &list].concat(), folder, work_tree).await? else {
        return Err(GitRisk::Unknown { reason: "git config --list failed".to_owned() });
    };
    check_configuration(&listed, folder, inside)
}

/// The output of git; `None` if there is no git, or no repository.
async fn git(arguments: &[&str], folder: &Path, work_tree: &Path) -> Result<Option<Vec<u8>>, GitRisk> {
    let mut spec = ProcessSpec::new("git").working_directory(folder).timeout(GIT_PATIENCE);
    spec.arguments = arguments.iter().map(OsString::from).collect();
    let spec = anywhere(in_environment(spec, work_tree, None));
    if spec.program == "git" {
        return Ok(None);
    }
    let unknown = |reason: String| GitRisk::Unknown { reason };
    let output = run(spec).await.map_err(|error| unknown(error.to_string()))?;
    match output.status {
        Status::Exited(0) if output.stopped.is_none() => Ok(Some(output.stdout.bytes().to_vec())),
        Status::Exited(128) if output.stderr.text().contains("not a git repository") => Ok(None),
        _ => Err(unknown(output.stderr.text().trim().chars().take(200).collect())),
    }
}

/// Checks what `git config --list -z --show-scope --show-origin` printed.
fn check_configuration(listed: &[u8], folder: &Path, inside: &[PathBuf]) -> Result<(), GitRisk> {
    let text = String::from_utf8_lossy(listed);
    let mut parts = text.split('\0');
    while let (Some(scope), Some(origin), Some(entry)) = (parts.next(), parts.next(), parts.next()) {
        if !matches!(scope, "local" | "worktree") {
            continue;
        }
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        if runs_programs(key) {
            return Err(GitRisk::Configured {
                key: key.to_owned(),
                origin: origin.trim_start_matches("file:").to_owned(),
            });
        }
        if key.starts_with("include.") || key.starts_with("includeif.") {
            let base = folder.join(origin.trim_start_matches("file:"));
            let target = base.parent().unwrap_or(folder).join(value);
            let climbs = target.components().any(|part| part == std::path::Component::ParentDir);
            // A file that is not there now may be there when git looks.
            let real = target.canonicalize().ok().or_else(|| (!climbs).then_some(target));
            let is_inside = real.is_some_and(|real| inside.iter().any(|folder| real.starts_with(folder)));
            if value.starts_with('~') || !is_inside {
                return Err(GitRisk::Included { path: value.to_owned() });
            }
        }
    }
    Ok(())
}

/// Whether the value of a key (in lower case but for its middle part, as git prints it) is a program that git runs
/// although [`GIT_CONFIGURATION`] stands over it.
fn runs_programs(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    let last = key.rsplit('.').next().unwrap_or_default();
    match section {
        "alias" | "pager" | "filter" => true,
        "diff" => matches!(last, "external" | "command" | "textconv"),
        "merge" => last == "driver",
        "core" => matches!(last, "editor" | "sshcommand" | "gitproxy" | "alternaterefscommand"),
        "trailer" => matches!(last, "command" | "cmd"),
        "hook" => last == "command",
        "man" | "browser" => matches!(last, "cmd" | "path"),
        _ => false,
    }
}

fn check_attributes(path: &Path) -> Result<(), GitRisk> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(GitRisk::Unknown { reason: format!("{}: {error}", path.display()) }),
    };
    for line in String::from_utf8_lossy(&text).lines().filter(|line| !line.trim_start().starts_with('#')) {
        for name in line.split_ascii_whitespace().skip(1) {
            if ["diff=", "filter=", "merge="].iter().any(|driver| name.starts_with(driver)) {
                return Err(GitRisk::Attributes { path: path.display().to_string(), name: name.to_owned() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_outside_the_work_tree_only() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        let link = folder.path().join("link");
        std::fs::create_dir_all(tree.join("bin")).unwrap();
        std::os::unix::fs::symlink(tree.join("bin"), &link).unwrap();
        let path = format!("/usr/bin:{0}/bin:{1}:.::/bin", tree.display(), link.display());
        assert_eq!(outside(path.as_ref(), &tree), Some("/usr/bin:/bin".into()));
        assert_eq!(outside(":.".as_ref(), &tree), None);
    }

    #[test]
    fn keys_that_name_programs_are_known() {
        for key in [
            "diff.external",
            "diff.x.command",
            "diff.x.textconv",
            "filter.x.clean",
            "alias.st",
            "pager.log",
            "core.sshcommand",
            "core.alternaterefscommand",
            "merge.x.driver",
            "core.editor",
            "core.gitproxy",
            "man.x.cmd",
        ] {
            assert!(runs_programs(key), "{key}");
        }
        for key in
            ["core.bare", "user.name", "diff.algorithm", "merge.conflictstyle", "remote.origin.url", "core.worktree"]
        {
            assert!(!runs_programs(key), "{key}");
        }
    }

    #[test]
    fn only_the_repositorys_own_configuration_counts() {
        let check = |text: &str| check_configuration(text.as_bytes(), "/r".as_ref(), &["/r/.git".into()]);
        assert_eq!(check("global\0file:/home/u/.gitconfig\0alias.st\nstatus\0"), Ok(()));
        assert!(matches!(check("local\0file:.git/config\0alias.st\nstatus\0"), Err(GitRisk::Configured { .. })));
        assert!(matches!(check("worktree\0file:x\0diff.external\nevil\0"), Err(GitRisk::Configured { .. })));
        assert!(matches!(check("local\0file:.git/config\0include.path\n../../x\0"), Err(GitRisk::Included { .. })));
        assert_eq!(check("local\0file:.git/config\0include.path\nmore\0"), Ok(()));
    }
}
