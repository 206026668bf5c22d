//! stub replaced at merge
use serde::{Deserialize, Serialize};
/// Where a hook was configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Level {
    Builtin,
    User,
    Project,
    #[default]
    Session,
}
