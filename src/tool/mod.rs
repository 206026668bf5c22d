//! Tools: what a model can call.
//!
//! A [`Tool`] has a [`ToolSpec`] (name, description, JSON Schema of its arguments, effect) and is called with a JSON
//! object. What it cannot do comes back as a [`ToolError`], which is written for the model to act on.
//!
//! - [`failure`]: what tools of other systems return when they fail
//! - [`schema`]: checks arguments against the schema, all problems at once
//! - [`workspace`]: the built-in tools that read, search, write and run commands under one root

mod error;
pub mod failure;
pub mod schema;
pub mod workspace;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::{ToolError, ToolErrorCode};
pub use failure::{failure_of, is_failure};
pub use schema::{ArgumentValidator, Problem};
pub use workspace::{WorkspaceOptions, workspace_tools};

/// What a call can do to the world; what gates and permission rules go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It looks and changes nothing.
    Read,
    /// It changes files.
    Write,
    /// It runs commands or code.
    Execute,
    /// It talks to other machines.
    Network,
    /// It hands work to another agent.
    Dispatch,
    /// It asks the user.
    AskUser,
}

impl Effect {
    /// The name as it stands in JSON, for example `ask_user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Dispatch => "dispatch",
            Self::AskUser => "ask_user",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a tool declares about the effect of its calls.
#[derive(Clone, Default)]
pub enum DeclaredEffect {
    /// Nothing.
    #[default]
    Undeclared,
    /// The same for every call.
    Fixed(Effect),
    /// It depends on the arguments.
    ByArguments(Arc<dyn EffectOfArguments>),
}

/// Says the effect of a call from its arguments. Whoever implements it is a tool's author, never a model.
pub trait EffectOfArguments: Send + Sync {
    /// The effect; `None` if it cannot be told, which gates take for the worst.
    fn effect(&self, arguments: &Map<String, Value>) -> Option<Effect>;

    /// For hosts to recognise their own.
    fn as_any(&self) -> &dyn Any;
}

impl DeclaredEffect {
    /// The effect of a call with these arguments by name: `unknown` if the tool cannot say, `None` if it declares nothing.
    pub fn of(&self, arguments: &Map<String, Value>) -> Option<&'static str> {
        match self {
            Self::Undeclared => None,
            Self::Fixed(effect) => Some(effect.as_str()),
            Self::ByArguments(function) => Some(function.effect(arguments).map_or("unknown", Effect::as_str)),
        }
    }
}

impl fmt::Debug for DeclaredEffect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared => formatter.write_str("undeclared"),
            Self::Fixed(effect) => write!(formatter, "{effect}"),
            Self::ByArguments(_) => formatter.write_str("by its arguments"),
        }
    }
}

/// What a tool says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object schema.
    pub schema: Value,
    /// What a call can do.
    pub effect: Effect,
    /// Whether calls may run beside other calls.
    pub parallel_safe: bool,
    /// How long the caller lets a call run. `None`: the tool bounds itself, or needs no bound.
    pub timeout: Option<Duration>,
}

/// What surrounds a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolContext {
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// Whether the call was let through because it only reads: commands run in the environment for reading.
    pub reading: bool,
    /// Whether the caller keeps what is too long to be shown: then long output is handed over whole.
    pub whole: bool,
}

impl ToolContext {
    /// The same for a caller that keeps what is too long to be shown, or not.
    #[must_use]
    pub fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// The same for a call that was let through because it only reads, or not.
    #[must_use]
    pub fn reading(mut self, reading: bool) -> Self {
        self.reading = reading;
        self
    }

    /// A context for a session that works in `cwd`.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into(), reading: false, whole: false }
    }
}

/// A future that can be kept and sent.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that a model can call.
pub trait Tool: Send + Sync {
    /// What the tool says about itself; the same for as long as it lives.
    fn spec(&self) -> &ToolSpec;

    /// The directory that it takes relative paths from, if that is not the session's.
    fn root(&self) -> Option<&Path> {
        None
    }

    /// Runs one call. Dropping the future cancels it.
    ///
    /// # Errors
    /// What the call could not do, as the model should read it.
    fn call(&self, arguments: Map<String, Value>, context: ToolContext)
    -> BoxFuture<'static, Result<Value, ToolError>>;
}

/// Runs one call of a tool. A panic in it ends this call and nothing else.
///
/// What the panic said is not told: it is written for the tool's author, in Rust's own forms, and stands on stderr.
pub fn call(
    tool: &dyn Tool,
    arguments: Map<String, Value>,
    context: ToolContext,
) -> BoxFuture<'static, Result<Value, ToolError>> {
    let panicked = ToolError::new(
        ToolErrorCode::Panic,
        format!("The tool {} broke off because of a mistake in its own code.", tool.spec().name),
    )
    .hint("Do it another way; the same call will most likely end the same.");
    match catch_unwind(AssertUnwindSafe(|| tool.call(arguments, context))) {
        Ok(work) => Box::pin(Caught { work, panicked: Some(panicked) }),
        Err(_) => Box::pin(std::future::ready(Err(panicked))),
    }
}

/// A call whose panics are failures.
struct Caught {
    work: BoxFuture<'static, Result<Value, ToolError>>,
    panicked: Option<ToolError>,
}

impl Future for Caught {
    type Output = Result<Value, ToolError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.work.as_mut().poll(context)));
        // After a panic the call is over: this is not polled again.
        polled.unwrap_or_else(|_| {
            let error = self.panicked.take();
            Poll::Ready(Err(error.unwrap_or_else(|| ToolError::new(ToolErrorCode::Panic, ""))))
        })
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tool({})", self.spec().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Breaks(ToolSpec, bool);

    impl Tool for Breaks {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call(&self, _: Map<String, Value>, _: ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> {
            assert!(!self.1, "at once");
            Box::pin(async { panic!("{:?}", std::io::Error::other("x")) })
        }
    }

    #[test]
    fn a_panic_ends_only_its_call_and_its_words_are_not_told() {
        let spec = ToolSpec {
            name: "breaks".into(),
            description: String::new(),
            schema: Value::Null,
            effect: Effect::Read,
            parallel_safe: true,
            timeout: None,
        };
        for at_once in [true, false] {
            let mut work = call(&Breaks(spec.clone(), at_once), Map::new(), ToolContext::default());
            let polled = work.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()));
            let Poll::Ready(Err(error)) = polled else { panic!("a failure is expected") };
            assert_eq!(error.code, ToolErrorCode::Panic);
            assert!(error.render().starts_with("Error (panic): The tool breaks broke off"), "{}", error.render());
            assert!(!error.render().contains("Custom"), "{}", error.render());
        }
    }

    #[test]
    fn effects_have_one_name_everywhere() {
        use Effect::*;
        for effect in [Read, Write, Execute, Network, Dispatch, AskUser] {
            assert_eq!(serde_json::to_value(effect).unwrap(), Value::from(effect.as_str()));
            assert_eq!(serde_json::from_value::<Effect>(effect.to_string().into()).unwrap(), effect);
        }
    }
}
