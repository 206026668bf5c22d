//! What differs from server to server, as data.

use std::sync::Arc;

/// What differs from server to server.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
}

/// A profile that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {name:?}; there are {}", .known.join(", "))]
pub struct UnknownProfile {
    /// What was asked for.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

impl Profile {
    /// The profile of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Arc<Profile>, UnknownProfile> {
        Ok(Arc::new(Profile { name: name.to_owned() }))
    }
}
