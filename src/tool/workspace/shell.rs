//! `shell`: a command in the root of the workspace.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::paths::Workspace;
use super::{parse, spec};
use crate::process::{Capture, Captured, ProcessOutput, ProcessSpec, read_only, run};
use crate::tool::{ArgumentValidator, BoxFuture, Effect, Tool, ToolContext, ToolError, ToolErrorCode, ToolSpec};

/// How long a command may run if the call does not say.
const DEFAULT_TIMEOUT: f64 = 120.0;
/// The longest timeout a call can ask for.
const LONGEST_TIMEOUT: f64 = 3600.0;
/// The most that is shown of what a command writes, in bytes.
const STDOUT_CAP: usize = 48 * 1024;
const STDERR_CAP: usize = 16 * 1024;
/// The same for a caller that keeps what is too long to be shown.
const WHOLE_CAP: usize = 32 * 1024 * 1024;

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

struct ShellTool {
    spec: ToolSpec,
    validator: ArgumentValidator,
    workspace: Arc<Workspace>,
}

pub(super) fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let spec = spec(
        "shell",
        "Runs a command with `sh -c` in the root of the workspace, without input, and returns its exit code, stdout and \
         stderr. Each call is a new shell. Of long output the start and the end are kept. Processes left in the \
         background are ended when the command returns.",
        Effect::Execute,
        json!({
            "command": {"type": "string", "minLength": 1, "description": "The command."},
            "timeout": {
                "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": LONGEST_TIMEOUT,
                "description": "Seconds after which the command is ended. Default: 120.",
            },
        }),
        &["command"],
    );
    Arc::new(ShellTool { validator: ArgumentValidator::new(&spec.schema), spec, workspace })
}

impl Tool for ShellTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn root(&self) -> Option<&Path> {
        Some(self.workspace.root())
    }

    fn call(
        &self,
        arguments: Map<String, Value>,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        let parsed = parse::<Arguments>(&self.validator, arguments);
        let root = self.workspace.root().to_owned();
        Box::pin(async move {
            let Arguments { command, timeout } = parsed?;
            if command.trim().is_empty() || command.contains('\0') {
                let detail = "The command must be neither blank nor contain a null character.";
                return Err(ToolError::new(ToolErrorCode::Invalid, detail).field("command"));
            }
            let seconds = timeout.unwrap_or(DEFAULT_TIMEOUT);
            let (mut spec, note) = if context.reading {
                for_reading(&command, &root).await
            } else {
                (ProcessSpec::shell(command).working_directory(root), String::new())
            };
            // The schema keeps the seconds within what a duration can hold.
            spec.timeout = Duration::try_from_secs_f64(seconds).ok();
            let cap = |shown| if context.whole { WHOLE_CAP } else { shown };
            spec.stdout = Capture::HeadTail { cap: cap(STDOUT_CAP) };
            spec.stderr = Capture::HeadTail { cap: cap(STDERR_CAP) };
            match run(spec).await {
                Ok(output) => {
                    if output.timed_out() {
                        return Err(timed_out(seconds, &output));
                    }
                    Ok(Value::String(told(&output) + &note))
                }
                Err(error) => {
                    Err(ToolError::new(ToolErrorCode::Exception, format!("The command was not run: {error}.")))
                }
            }
        })
    }
}

/// A command that was let through because it only reads, in the environment that this was said of. Where the repository
/// itself names programs for git to run, git is kept from it, and the note says so.
async fn for_reading(command: &str, root: &Path) -> (ProcessSpec, String) {
    match read_only::look_for(command, root, root).await {
        Ok(repository) => (read_only::command(command, root, root, repository.as_ref()), String::new()),
        Err(risk) => {
            let spec = read_only::command(command, root, root, None).environment("GIT_DIR", "/dev/null/none");
            (spec, format!("\n[git was kept from this repository: {risk}]"))
        }
    }
}

/// A command that ended by itself, whatever its exit code.
fn told(output: &ProcessOutput) -> String {
    let mut text = match output.status {
        crate::process::Status::Exited(code) => format!("exit code {code}"),
        signaled => format!("the command {signaled}"),
    };
    let outputs = outputs(output);
    text.push_str(if outputs.is_empty() { "\nno output" } else { &outputs });
    if output.leftover_killed {
        text.push_str("\n[processes that the command left in the background were ended]");
    }
    text
}

fn timed_out(seconds: f64, output: &ProcessOutput) -> ToolError {
    let outputs = outputs(output);
    let so_far = if outputs.is_empty() { " It had written nothing.".to_owned() } else { format!(" So far:{outputs}") };
    let detail = format!("The command ran longer than {seconds} s and was ended with all its processes.{so_far}");
    ToolError::new(ToolErrorCode::Timeout, detail).hint("Give a longer timeout, or run less at once.")
}

/// What a command wrote, each stream under its name; nothing for an empty one.
fn outputs(output: &ProcessOutput) -> String {
    let section = |name: &str, captured: &Captured| {
        let text = captured.text();
        if text.is_empty() { String::new() } else { format!("\n{name}:\n{}", text.strip_suffix('\n').unwrap_or(&text)) }
    };
    section("stdout", &output.stdout) + &section("stderr", &output.stderr)
}
