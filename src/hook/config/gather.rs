//! The configuration that is in effect somewhere, checked across its levels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::discover::{ConfigEnv, Source, discover};
use super::load::{Loaded, load_source};
use super::problem::{Position, Problem};
use crate::hook::level::Level;
use crate::suggest::did_you_mean;

/// Which levels are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// The user's own configuration.
    pub user: bool,
    /// That of the nearest project.
    pub project: bool,
}

/// A hook that a program registered itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// Where it comes from; may be empty.
    pub source: String,
}

/// What is in effect somewhere.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    /// The hooks of all levels and everything that is wrong with them.
    pub loaded: Loaded,
    /// The project, if its level was asked for and there is one.
    pub project: Option<Source>,
    /// What may be as it is meant, and may not.
    pub notes: Vec<Problem>,
}

/// Reads the levels that are in effect at `cwd` and puts them together.
///
/// Besides what is wrong inside a file it finds names that two levels use, names of hooks that the program has
/// `registered`, and `disabled_hooks` of a project that name no hook. A user's may: they hold for all projects, and the
/// hook may be one of another project; such a name is a note.
pub fn gather(cwd: &Path, levels: Levels, env: &ConfigEnv, registered: &[Registered]) -> Configuration {
    let found = discover(cwd, env);
    let user = found.user.filter(|_| levels.user);
    let project = found.project.filter(|_| levels.project);
    let load = |source: &Option<Source>| source.as_ref().map(load_source).unwrap_or_default();
    let mut loaded = load(&user).combine(load(&project));
    let mut across = names_taken(&mut loaded, registered);
    let (unknown, notes) = unknown_disabled(&loaded, registered);
    across.extend(unknown);
    loaded.problems.extend(across);
    sort_by_file(&mut loaded);
    Configuration { loaded, project, notes }
}

/// Takes out hooks whose name an earlier level or the program uses, and says so.
fn names_taken(loaded: &mut Loaded, registered: &[Registered]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut owners: HashMap<String, String> = HashMap::new();
    for hook in registered {
        let by = if hook.source.is_empty() { String::new() } else { format!(": {}", hook.source) };
        owners.insert(hook.name.clone(), format!("the program registered it{by}"));
    }
    loaded.definitions.retain(|definition| {
        if let Some(owner) = owners.get(&definition.name) {
            problems.push(Problem {
                file: definition.source.path.clone(),
                position: definition.name_position,
                message: format!("hook name {:?} is taken ({owner})", definition.name),
                suggestion: Some("give each hook a name of its own".to_owned()),
            });
            return false;
        }
        let place = format!("first in {}:{}", definition.source.path.display(), definition.name_position.line);
        owners.insert(definition.name.clone(), place);
        true
    });
    problems
}

/// The names under `disabled_hooks` that no hook has: problems and notes.
fn unknown_disabled(loaded: &Loaded, registered: &[Registered]) -> (Vec<Problem>, Vec<Problem>) {
    let known: Vec<&str> =
        loaded.names.iter().map(String::as_str).chain(registered.iter().map(|hook| hook.name.as_str())).collect();
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for disabled in loaded.disabled.iter().filter(|disabled| !known.contains(&disabled.name.as_str())) {
        let suggestion = match did_you_mean(&disabled.name, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "take it out, or register the hook before loading".to_owned(),
        };
        let problem = Problem {
            file: disabled.file.clone(),
            position: disabled.position,
            message: format!("no hook is named {:?}", disabled.name),
            suggestion: Some(suggestion),
        };
        if disabled.level == Level::Project { problems.push(problem) } else { notes.push(problem) }
    }
    (problems, notes)
}

/// Puts the problems that were found across files in the order of the files and lines.
fn sort_by_file(loaded: &mut Loaded) {
    let place = |file: &PathBuf| loaded.files.iter().position(|known| known == file).unwrap_or(usize::MAX);
    let key = |problem: &Problem| -> (usize, Position) { (place(&problem.file), problem.position) };
    loaded.problems.sort_by_key(key);
}
