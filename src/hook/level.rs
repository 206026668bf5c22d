//! Where a hook was configured: the first key of the order inside a role.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a hook was configured. The order of the values is the order in which hooks of one role run.
///
/// ```
/// use hookwright::hook::Level;
/// assert!(Level::Builtin < Level::User && Level::User < Level::Project && Level::Project < Level::Session);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Part of hookwright.
    Builtin,
    /// The user's own configuration, which holds for all of their projects.
    User,
    /// The configuration that comes with a project.
    Project,
    /// Registered while the program runs.
    #[default]
    Session,
}

impl Level {
    /// The name in records and in Python.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Builtin => "builtin",
            Level::User => "user",
            Level::Project => "project",
            Level::Session => "session",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
