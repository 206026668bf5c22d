//! Keys: where they come from, and how they are kept out of sight.

use std::fmt;
use std::sync::Arc;

use super::{FailureKind, ModelFailure};

/// Where the key of a server comes from. It is never part of a debug text, a log, an error or a cassette.
#[derive(Clone, Default)]
pub enum Key {
    /// From the environment variables that are usual for the server, such as `OPENAI_API_KEY`, read at each request.
    #[default]
    Usual,
    /// From this environment variable, read at each request.
    Env(String),
    /// This one.
    Static(Arc<str>),
    /// Whatever the function says, asked at each attempt on a thread that may wait.
    Function(Arc<dyn Fn() -> Result<String, String> + Send + Sync>),
    /// None: the server asks for none, or a header of one's own carries it.
    None,
}

impl Key {
    /// This key.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Key::Static(key.into())
    }

    /// Whatever `function` says; it may wait, and is asked again at each attempt.
    pub fn from_fn(function: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Key::Function(Arc::new(function))
    }

    /// The key; `None` if there is none. `usual` are the variables that are usual for the server.
    pub(super) async fn get(&self, usual: &[String]) -> Result<Option<String>, ModelFailure> {
        let missing = |message| ModelFailure::new(FailureKind::Authentication, message);
        match self {
            Key::None => Ok(None),
            Key::Static(key) => Ok(Some(key.trim().to_owned()).filter(|key| !key.is_empty())),
            Key::Usual => Ok(usual.iter().find_map(|name| variable(name))),
            Key::Env(name) => match variable(name) {
                Some(key) => Ok(Some(key)),
                None => Err(missing(format!("there is no key: the environment variable {name} is not set"))),
            },
            Key::Function(function) => {
                let function = Arc::clone(function);
                match tokio::task::spawn_blocking(move || function()).await {
                    Ok(Ok(key)) => Ok(Some(key.trim().to_owned()).filter(|key| !key.is_empty())),
                    Ok(Err(reason)) => Err(missing(format!("the function that gives the key failed: {reason}"))),
                    Err(_) => Err(missing("the function that gives the key crashed".to_owned())),
                }
            }
        }
    }
}

impl Key {
    /// Something that is the same for the same key, without asking for it.
    pub(super) fn fingerprint(&self, usual: &[String]) -> String {
        match self {
            Key::None => String::new(),
            Key::Static(key) => key.to_string(),
            Key::Usual => usual.iter().find_map(|name| variable(name)).unwrap_or_default(),
            Key::Env(name) => variable(name).unwrap_or_default(),
            // What it says may change, but whose it is does not.
            Key::Function(function) => format!("function {:p}", Arc::as_ptr(function).cast::<()>()),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Usual => f.write_str("Usual"),
            Key::Env(name) => f.debug_tuple("Env").field(name).finish(),
            Key::Static(_) => f.write_str("Static([redacted])"),
            Key::Function(_) => f.write_str("Function"),
            Key::None => f.write_str("None"),
        }
    }
}
