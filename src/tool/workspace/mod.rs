//! The built-in tools: they read, search, write and run commands under one root directory.
//!
//! Paths are relative to the root (or absolute within it); whatever leads out of it, by `..` or through a symbolic
//! link, is denied. This guards against mistakes and against instructions hidden in what is read; a process that swaps
//! links at the same time, or the `shell` tool, is not held by it.

mod edit;
mod glob;
mod grep;
mod list;
mod lock;
mod paths;
mod pattern;
mod read;
mod saved;
mod seen;
mod shell;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{ArgumentValidator, BoxFuture, Effect, Tool, ToolContext, ToolError, ToolErrorCode, ToolSpec};
use paths::Workspace;
pub use saved::{Capped, capped};

/// Which tools beside the reading ones there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceOptions {
    /// Whether there are `write_file` and `edit_file`. Default: true.
    pub write: bool,
    /// Whether there is `shell`. Default: true.
    pub shell: bool,
}

impl Default for WorkspaceOptions {
    fn default() -> Self {
        Self { write: true, shell: true }
    }
}

/// The tools `read_file`, `list_dir`, `grep`, `glob`, and as `options` say `write_file`, `edit_file` and `shell`, for
/// the directory `root`.
///
/// One set of tools belongs to one agent: they share what that agent has seen of files, and refuse to overwrite what
/// others changed since. Writers of one file wait for each other, also across agents and processes.
///
/// # Errors
/// `root` is not a directory, or cannot be reached.
pub fn workspace_tools(root: impl AsRef<Path>, options: WorkspaceOptions) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    let workspace = Arc::new(Workspace::new(root.as_ref())?);
    let mut tools: Vec<Arc<dyn Tool>> =
        [read::tool, list::tool, grep::tool, glob::tool].map(|tool| tool(workspace.clone())).into();
    if options.write {
        tools.push(write::tool(workspace.clone()));
        tools.push(edit::tool(workspace.clone()));
    }
    if options.shell {
        tools.push(shell::tool(workspace));
    }
    Ok(tools)
}

/// Whether a call was cancelled; file work on its own thread looks at it between steps.
#[derive(Clone, Debug, Default)]
struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    fn check(&self) -> Result<(), ToolError> {
        if self.0.load(Ordering::Relaxed) { Err(ToolError::new(ToolErrorCode::Cancelled, "")) } else { Ok(()) }
    }
}

/// Cancels the work when the future that waits for it is dropped.
struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// What a file tool does, on a thread where it may block.
type FileWork<A> = fn(&Workspace, A, &Cancelled) -> Result<String, ToolError>;

/// A tool whose work is blocking file access.
struct FileTool<A> {
    spec: ToolSpec,
    validator: ArgumentValidator,
    workspace: Arc<Workspace>,
    work: FileWork<A>,
}

impl<A: DeserializeOwned + Send + 'static> FileTool<A> {
    fn shared(spec: ToolSpec, workspace: Arc<Workspace>, work: FileWork<A>) -> Arc<dyn Tool> {
        Arc::new(Self { validator: ArgumentValidator::new(&spec.schema), spec, workspace, work })
    }
}

impl<A: DeserializeOwned + Send + 'static> Tool for FileTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn root(&self) -> Option<&Path> {
        Some(self.workspace.root())
    }

    fn call(
        &self,
        arguments: Map<String, Value>,
        _context: ToolContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        let parsed = parse::<A>(&self.validator, arguments);
        let (workspace, work) = (self.workspace.clone(), self.work);
        Box::pin(async move {
            let arguments = parsed?;
            let cancel = CancelOnDrop(Cancelled::default());
            let cancelled = cancel.0.clone();
            let done = tokio::task::spawn_blocking(move || work(&workspace, arguments, &cancelled)).await;
            match done {
                Ok(result) => result.map(Value::String),
                Err(ended) if ended.is_panic() => Err(ToolError::new(ToolErrorCode::Panic, "")),
                Err(_) => Err(ToolError::new(ToolErrorCode::Exception, "The tool ended without a result.")),
            }
        })
    }
}

/// The arguments in their Rust form, checked against the schema first, because its messages are better.
fn parse<A: DeserializeOwned>(validator: &ArgumentValidator, arguments: Map<String, Value>) -> Result<A, ToolError> {
    let arguments = Value::Object(arguments);
    validator.validate(&arguments).map_err(|problems| ToolError::from_problems(&problems))?;
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(ToolErrorCode::Type, format!("The arguments cannot be used: {error}.")))
}

/// The spec of a workspace tool; `required` are names among the `properties`.
fn spec(name: &str, description: &str, effect: Effect, properties: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec {
        name: name.into(),
        description: description.into(),
        schema,
        effect,
        parallel_safe: effect == Effect::Read,
        timeout: None,
    }
}
