//! Where configuration is looked for.

use std::env;
use std::path::{Path, PathBuf};

use crate::hook::level::Level;

/// The folder of a project that holds its hooks.
pub const PROJECT_FOLDER: &str = ".hookwright";

/// The parts of the environment that say where a user's files are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigEnv {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`; `~/.config` if it is not set.
    pub xdg_config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`; `~/.local/state` if it is not set.
    pub xdg_state_home: Option<PathBuf>,
}

impl ConfigEnv {
    /// Takes the values from the environment of this process.
    pub fn from_process() -> Self {
        let get = |name| env::var_os(name).map(PathBuf::from);
        ConfigEnv { home: get("HOME"), xdg_config_home: get("XDG_CONFIG_HOME"), xdg_state_home: get("XDG_STATE_HOME") }
    }

    /// The folder of the user's configuration; `None` if the environment does not say.
    pub fn config_folder(&self) -> Option<PathBuf> {
        self.folder(&self.xdg_config_home, ".config")
    }

    /// The folder for what hookwright remembers, such as trust; `None` if the environment does not say.
    pub fn state_folder(&self) -> Option<PathBuf> {
        self.folder(&self.xdg_state_home, ".local/state")
    }

    fn folder(&self, base: &Option<PathBuf>, in_home: &str) -> Option<PathBuf> {
        // The XDG specification asks to pass over relative paths; an empty value is one.
        let absolute = |path: &&PathBuf| path.is_absolute();
        let base = base.as_ref().filter(absolute).cloned();
        base.or_else(|| self.home.as_ref().filter(absolute).map(|home| home.join(in_home)))
            .map(|base| base.join("hookwright"))
    }
}

/// A folder with configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// User or project.
    pub level: Level,
    /// The folder that holds `hooks.yaml` and `hooks/`.
    pub folder: PathBuf,
}

impl Source {
    /// The configuration in `folder`, which is `.hookwright/` for a project.
    pub fn new(level: Level, folder: impl Into<PathBuf>) -> Self {
        Source { level, folder: folder.into() }
    }

    /// The configuration of the project at `root`.
    pub fn project(root: &Path) -> Self {
        Source::new(Level::Project, root.join(PROJECT_FOLDER))
    }

    /// The folder that the configuration is about: for a project the one that holds `.hookwright/`.
    pub fn root(&self) -> &Path {
        match self.level {
            Level::Project => self.folder.parent().unwrap_or(&self.folder),
            _ => &self.folder,
        }
    }
}

/// The configuration that is in effect somewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The user's.
    pub user: Option<Source>,
    /// That of the nearest project.
    pub project: Option<Source>,
}

/// Looks for the user's configuration, and upwards from `cwd` for that of a project. The first `.hookwright/` found
/// is taken, whatever is in it.
pub fn discover(cwd: &Path, env: &ConfigEnv) -> Discovered {
    let user = env.config_folder().filter(|folder| folder.is_dir()).map(|folder| Source::new(Level::User, folder));
    let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned());
    let project = cwd.ancestors().find(|folder| folder.join(PROJECT_FOLDER).is_dir()).map(Source::project);
    Discovered { user, project }
}
