//! Reads the files of one source.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::definition::{CommandsDefinition, HookDefinition, RuleDefinition};
use super::discover::Source;
use super::parse::{Gathered, parse_file, parse_folder};
use super::problem::{ConfigError, Position, Problem, Report};
use super::reader::read_file;
use crate::hook::level::Level;

/// The names a configuration file may have.
pub(super) const FILE_NAMES: &[&str] = &["hooks.yaml", "hooks.yml", "hooks.json"];
/// The folder of the folder form.
pub(super) const HOOKS_FOLDER: &str = "hooks";
/// The file of a hook in a folder of its own.
const HOOK_FILE: &str = "HOOK.yaml";
/// Names that are meant to be [`HOOK_FILE`], and would be passed over.
const NEAR_HOOK_FILE: &[&str] = &["HOOK.yml", "HOOK.json", "hook.yaml", "hook.yml", "hook.json", "Hook.yaml"];

/// One name under `disabled_hooks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// The hook to pass over.
    pub name: String,
    /// The level of the file that says so.
    pub level: Level,
    /// That file.
    pub file: PathBuf,
    /// Where in it.
    pub position: Position,
}

/// What the configuration of one level, or of all of them, says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// The hooks with which nothing is wrong, those of the file before those of folders, which are sorted by name.
    pub definitions: Vec<HookDefinition>,
    /// What stands under `disabled_hooks`, which holds for hooks of every level.
    pub disabled: Vec<Disabled>,
    /// The permission rules.
    pub rules: Vec<RuleDefinition>,
    /// The files of programs that gates are to know, in the order in which they count.
    pub commands: Vec<CommandsDefinition>,
    /// Every name that a hook was given, also of hooks with which something is wrong.
    pub names: Vec<String>,
    /// How long a chain may take, if the files say.
    pub budget: Option<Duration>,
    /// Everything that is wrong, by file and line.
    pub problems: Vec<Problem>,
    /// The files that were read or tried.
    pub files: Vec<PathBuf>,
}

impl Loaded {
    /// Itself if nothing is wrong.
    ///
    /// # Errors
    /// All problems.
    pub fn checked(self) -> Result<Self, ConfigError> {
        if self.problems.is_empty() { Ok(self) } else { Err(ConfigError { problems: self.problems }) }
    }

    /// This and the configuration of a later level: hooks and problems add up, the later budget holds, and a name
    /// that either disables is disabled in both.
    pub fn combine(mut self, later: Loaded) -> Loaded {
        self.definitions.extend(later.definitions);
        self.disabled.extend(later.disabled);
        self.rules.extend(later.rules);
        self.commands.extend(later.commands);
        self.names.extend(later.names);
        self.budget = later.budget.or(self.budget);
        self.problems.extend(later.problems);
        self.files.extend(later.files);
        self.apply_disabled();
        self
    }

    fn apply_disabled(&mut self) {
        for definition in &mut self.definitions {
            definition.enabled &= !self.disabled.iter().any(|disabled| disabled.name == definition.name);
        }
    }
}

/// Reads the configuration file and the hook folders of `source`. A source without any is empty.
///
/// Nothing that is wrong ends the reading: see [`Loaded::problems`] and [`Loaded::checked`].
pub fn load_source(source: &Source) -> Loaded {
    let mut loader = Loader::new(source.level);
    let found: Vec<&str> = FILE_NAMES.iter().filter(|name| is_there(&source.folder.join(name))).copied().collect();
    for (index, name) in found.iter().enumerate() {
        let path = source.folder.join(name);
        if index == 0 {
            loader.file(&path);
        } else {
            let message = format!("there is a {} beside it, and only one can count", found[0]);
            loader.problem(&path, message, Some("keep one of them".to_owned()));
        }
    }
    loader.folders(&source.folder.join(HOOKS_FOLDER));
    loader.finish()
}

/// Reads a single configuration file, wherever it is.
pub fn load_file(path: &Path, level: Level) -> Loaded {
    let mut loader = Loader::new(level);
    loader.file(path);
    loader.finish()
}

/// Whether there is something at `path`, also a broken link or what may not be looked at: reading it then says what is
/// wrong, and no gate goes missing in silence.
fn is_there(path: &Path) -> bool {
    !matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

struct Loader {
    level: Level,
    gathered: Gathered,
    problems: Vec<Problem>,
    files: Vec<PathBuf>,
}

impl Loader {
    fn new(level: Level) -> Self {
        Loader { level, gathered: Gathered::default(), problems: Vec::new(), files: Vec::new() }
    }

    fn problem(&mut self, file: &Path, message: String, suggestion: Option<String>) {
        self.problems.push(Problem { file: file.to_owned(), position: Position::default(), message, suggestion });
    }

    fn file(&mut self, path: &Path) {
        let mut report = Report::new(path);
        if let Some(pairs) = read_file(path, &mut report) {
            parse_file(&pairs, self.level, &mut report, &mut self.gathered);
        }
        self.done(report);
    }

    fn folders(&mut self, hooks: &Path) {
        let mut folders = match fs::read_dir(hooks).and_then(|entries| entries.collect::<io::Result<Vec<_>>>()) {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect::<Vec<_>>(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.problem(hooks, format!("cannot be read: {error}"), None),
        };
        folders.sort();
        for folder in folders {
            match fs::metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => self.folder(&folder),
                Ok(_) => {}
                Err(error) => self.problem(&folder, format!("cannot be read: {error}"), None),
            }
        }
    }

    fn folder(&mut self, folder: &Path) {
        let path = folder.join(HOOK_FILE);
        if !is_there(&path) {
            // A folder without a hook, of helpers for instance, is nothing to complain about.
            if let Some(near) = NEAR_HOOK_FILE.iter().find(|name| is_there(&folder.join(name))) {
                self.problem(folder, format!("no {HOOK_FILE}"), Some(format!("rename {near} to {HOOK_FILE}")));
            }
            return;
        }
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            return self.problem(folder, "the name of the folder is not UTF-8".to_owned(), None);
        };
        let mut report = Report::new(&path);
        if let Some(pairs) = read_file(&path, &mut report) {
            parse_folder(&pairs, folder, name, self.level, &mut report, &mut self.gathered);
        }
        self.done(report);
    }

    fn done(&mut self, mut report: Report) {
        report.problems.sort_by_key(|problem| problem.position);
        self.problems.append(&mut report.problems);
        self.files.push(report.file);
    }

    fn finish(self) -> Loaded {
        let Gathered { definitions, disabled, rules, commands, budget, names } = self.gathered;
        let mut names: Vec<String> = names.into_keys().collect();
        names.sort_unstable();
        let mut loaded = Loaded {
            definitions,
            disabled,
            rules,
            commands,
            names,
            budget,
            problems: self.problems,
            files: self.files,
        };
        loaded.apply_disabled();
        loaded
    }
}
