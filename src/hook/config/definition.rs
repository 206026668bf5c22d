//! A hook as a configuration file describes it.

use std::path::PathBuf;
use std::time::Duration;

use super::super::entry::{HookKind, HookMeta, Isolation, OnError, Role};
use super::super::event::Event;
use super::super::filter::FilterSpec;
use super::super::level::Level;
use super::problem::Position;

/// A hook as a configuration file describes it, checked: names and patterns are good, times are above zero.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDefinition {
    /// Unique among the hooks of its level.
    pub name: String,
    /// At least one, each once, in the order of the file.
    pub events: Vec<Event>,
    /// What runs.
    pub action: HookAction,
    /// What the hook may do; default `hook`.
    pub role: Role,
    /// Position among hooks of the same role and level; default 0.
    pub order: i64,
    /// On which occurrences it runs.
    pub filter: FilterSpec,
    /// How long one attempt may take, exactly as written; `None` for the default of its kind.
    pub timeout: Option<Duration>,
    /// How often a failed attempt is repeated, exactly as written; `None` for the default of its kind.
    pub retry: Option<u32>,
    /// What a failure means; `None` for the default of its role.
    pub on_error: Option<OnError>,
    /// Whether it runs; default true.
    pub enabled: bool,
    /// Whether what it decides is recorded and not applied; default false.
    pub shadow: bool,
    /// Where the file belongs.
    pub level: Level,
    /// Where it is written.
    pub source: Origin,
    /// Where to point when something is wrong with its name.
    pub name_position: Position,
    /// Where to point when something is wrong with its command or callable.
    pub action_position: Position,
}

/// What a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// `type: shell`.
    Shell {
        /// For `sh -c`.
        command: String,
    },
    /// `type: llm`.
    Llm {
        /// What the model is asked, with variables.
        prompt: String,
        /// Which model: a name that the program gives one, or `openai:NAME` and `anthropic:NAME`.
        model: String,
        /// Where its API begins, if not where it usually does.
        base_url: Option<String>,
        /// The environment variable that holds its key; without it, none is sent to a `base_url`.
        api_key_env: Option<String>,
    },
    /// `type: python`.
    Python {
        /// A dotted module name.
        module: String,
        /// A name in that module, dotted for something inside a class.
        function: String,
        /// How it is kept apart from the caller; default none.
        isolation: Isolation,
    },
}

/// A permission rule as a configuration file has it. What it means is for gates to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDefinition {
    /// `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// The rule.
    pub rule: String,
    /// Where the file belongs.
    pub level: Level,
    /// The configuration file.
    pub file: PathBuf,
    /// Where in it.
    pub position: Position,
}

/// A file of programs that gates are to know, as a configuration file names it. What it says is for gates to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandsDefinition {
    /// The file; a relative path is taken from the folder of the configuration file.
    pub path: PathBuf,
    /// Where the configuration file belongs.
    pub level: Level,
    /// The configuration file.
    pub file: PathBuf,
    /// Where in it.
    pub position: Position,
}

/// Where a hook is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The configuration file.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// The hook's own folder (`hooks/<name>/`), which a shell hook finds first on its PATH.
    pub folder: Option<PathBuf>,
}

impl HookDefinition {
    /// The description by which a chain registers the hook: this definition with the defaults filled in.
    pub fn meta(&self) -> HookMeta {
        let kind = match self.action {
            HookAction::Shell { .. } => HookKind::Shell,
            HookAction::Python { .. } => HookKind::Python,
            HookAction::Llm { .. } => HookKind::Llm,
        };
        let mut meta = HookMeta::new(self.name.as_str(), self.events.clone(), kind, self.role);
        meta.level = self.level;
        meta.order = self.order;
        meta.timeout = self.timeout.unwrap_or(meta.timeout);
        meta.retry = self.retry.unwrap_or(meta.retry);
        meta.on_error = self.on_error.unwrap_or(meta.on_error);
        meta.shadow = self.shadow;
        meta.enabled = self.enabled;
        meta.filter = self.filter.clone();
        meta.source = format!("{}:{}", self.source.path.display(), self.source.line);
        meta
    }
}
