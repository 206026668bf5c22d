//! Commands as hooks: the event as JSON on standard input, the answer on standard output and in the exit code.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::context::EventContext;
use super::entry::{BoxFuture, Call, Hook, HookFailure, HookReply, Verdict};
use super::moment::Moment;
use super::result::HookResult;
use crate::process::{self, Capture, OutputStream, ProcessOutput, ProcessSpec, Status, StopReason};
use crate::runtime;

/// The most that a hook may write to its standard output, in bytes.
const STDOUT_CAP: usize = 8 * 1024 * 1024;
/// How much of its standard error is kept, in bytes.
const STDERR_CAP: usize = 64 * 1024;

/// A command that is run through `sh -c`, never a login shell.
///
/// The contract: exit 0 with nothing or one JSON result on standard output; exit 2 blocks with standard error as the
/// reason; anything else is a failure.
#[derive(Debug, Clone)]
pub struct ShellHook {
    command: String,
    folder: Option<PathBuf>,
    root: Option<PathBuf>,
}

impl ShellHook {
    /// A hook that runs `command`. Its `folder`, if it has one, comes first on `PATH` and is told to it as
    /// `HOOKWRIGHT_HOOK_DIR`.
    pub fn new(command: impl Into<String>, folder: Option<PathBuf>) -> Self {
        ShellHook { command: command.into(), folder, root: None }
    }

    /// The same hook, run in `root` where an event names no working directory. Without one it is that of this process.
    pub fn at_root(self, root: Option<PathBuf>) -> Self {
        ShellHook { root, ..self }
    }

    fn specification(&self, context: &EventContext, deadline: Moment) -> Result<ProcessSpec, HookFailure> {
        let document = context.document_json().map_err(HookFailure::failed)?;
        let cwd = match (&context.scope.cwd, &self.root) {
            (cwd, _) if !cwd.as_os_str().is_empty() => cwd.clone(),
            (_, Some(root)) => root.clone(),
            (_, None) => std::env::current_dir()
                .map_err(|error| HookFailure::failed(format!("no working directory: {error}")))?,
        };
        let left = deadline.left().max(Duration::from_millis(1));
        let folder = self.folder.clone().unwrap_or_else(|| cwd.clone());
        let mut spec = ProcessSpec::shell(&self.command)
            .environment("HOOKWRIGHT_EVENT", context.event.as_str())
            .environment("HOOKWRIGHT_CWD", &cwd)
            .environment("HOOKWRIGHT_SESSION_ID", &context.scope.session_id)
            .environment("HOOKWRIGHT_HOOK_DIR", &folder)
            .stdin(Bytes::from(document))
            .timeout(left);
        if self.folder.is_some() {
            let mut path = folder.into_os_string();
            if let Some(rest) = std::env::var_os("PATH") {
                path.push(":");
                path.push(rest);
            }
            spec = spec.environment("PATH", path);
        }
        spec.working_directory = Some(cwd);
        spec.stdout = Capture::Fail { cap: STDOUT_CAP };
        spec.stderr = Capture::Cut { cap: STDERR_CAP };
        Ok(spec)
    }
}

async fn answer(spec: Result<ProcessSpec, HookFailure>) -> Result<HookReply, HookFailure> {
    let output = process::run(spec?).await.map_err(|error| HookFailure::failed(error.to_string()))?;
    read(&output)
}

/// Reads what a command said.
fn read(output: &ProcessOutput) -> Result<HookReply, HookFailure> {
    let stderr = output.stderr.text();
    let stderr = stderr.trim();
    let fail = |message: String| HookFailure::Failed { message, detail: stderr.to_owned() };
    match &output.stopped {
        Some(StopReason::TimedOut) => {
            return Err(HookFailure::Timeout(
                "it was still running at its deadline; its process group was ended".into(),
            ));
        }
        Some(StopReason::Overflowed(OutputStream::Stdout)) => {
            return Err(fail(format!("it wrote more than {} MiB to standard output", STDOUT_CAP / 1024 / 1024)));
        }
        Some(StopReason::Overflowed(stream)) => return Err(fail(format!("it wrote too much to {stream:?}"))),
        None => {}
    }
    match output.status {
        Status::Exited(0) => {
            let stdout = output.stdout.bytes();
            let mut reply = HookReply::default();
            if !stdout.iter().all(u8::is_ascii_whitespace) {
                let (object, notes) = last_object(stdout).map_err(fail)?;
                let result = HookResult::from_json(object).map_err(fail)?;
                reply = HookReply { verdict: Verdict::Result(Box::new(result)), notes, reading: false };
            }
            if output.leftover_killed {
                reply.notes.push("left processes running, which were ended with it".into());
            }
            Ok(reply)
        }
        Status::Exited(2) => {
            let reason = (!stderr.is_empty()).then(|| stderr.to_owned());
            Ok(Verdict::Blocked(reason).into())
        }
        Status::Exited(code) => {
            let hint = match code {
                126 => " (found but not executable)",
                127 => " (command not found)",
                _ => "",
            };
            let said = stderr.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            Err(fail(format!("exited with {code}{hint}{said}")))
        }
        Status::Signaled(signal) => Err(fail(format!("was ended by signal {signal}"))),
    }
}

/// An object in which no key stands twice: of two answers in one, neither may win in silence.
struct Distinct(Map<String, Value>);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Distinct;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Distinct, A::Error> {
                let mut object = Map::new();
                while let Some((key, value)) = access.next_entry::<String, Value>()? {
                    if object.contains_key(&key) {
                        return Err(A::Error::custom(format!("the key {key:?} stands twice in its JSON")));
                    }
                    object.insert(key, value);
                }
                Ok(Distinct(object))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

/// The one JSON object of an output: it stands at the end with only white space after it; lines before it that hold no
/// JSON are noise, which is noted; another complete object before it makes two documents, which is a failure.
fn last_object(stdout: &[u8]) -> Result<(Map<String, Value>, Vec<String>), String> {
    let text = std::str::from_utf8(stdout).map_err(|error| {
        format!("its standard output is not UTF-8 (byte {} of {})", error.valid_up_to(), stdout.len())
    })?;
    let mut found: Option<Map<String, Value>> = None;
    let mut noise = 0;
    let mut first_noise = "";
    let mut rest = text;
    while !rest.trim_start().is_empty() {
        let start = rest.trim_start();
        if start.starts_with('{') {
            let mut stream = serde_json::Deserializer::from_str(start).into_iter::<Distinct>();
            match stream.next() {
                Some(Ok(Distinct(object))) => {
                    if found.is_some() {
                        return Err("it printed two JSON documents; print one".into());
                    }
                    found = Some(object);
                    rest = &start[stream.byte_offset()..];
                    continue;
                }
                Some(Err(error)) if error.is_eof() => {
                    return Err(format!("its JSON ends too early ({error})"));
                }
                Some(Err(error)) if error.is_data() => return Err(error.to_string()),
                // A line that only looks like JSON, such as `{noise}`; whether that is all there is shows at the end.
                _ => {}
            }
        }
        if found.is_some() {
            return Err("something other than white space stands after its JSON object".into());
        }
        let (line, after) = start.split_once('\n').unwrap_or((start, ""));
        if noise == 0 {
            first_noise = line;
        }
        noise += 1;
        rest = after;
    }
    let notes = match noise {
        0 => Vec::new(),
        count => {
            let shown: String = first_noise.chars().take(80).collect();
            vec![format!("passed over {count} line(s) before the JSON, beginning with {shown:?}")]
        }
    };
    found.map(|object| (object, notes)).ok_or_else(|| {
        let shown: String = first_noise.chars().take(80).collect();
        format!("it printed no JSON object: {shown:?}")
    })
}

impl Hook for ShellHook {
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure> {
        let work = answer(self.specification(call.context, call.deadline));
        match runtime::runtime() {
            Ok(runtime) => runtime.block_on(work),
            Err(error) => Err(HookFailure::failed(error.to_string())),
        }
    }

    fn call_async(&self, context: Arc<EventContext>, deadline: Instant) -> BoxFuture<Result<HookReply, HookFailure>> {
        Box::pin(answer(self.specification(&context, deadline.into())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn has_side_effects(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<(Value, Vec<String>), String> {
        last_object(text.as_bytes()).map(|(object, notes)| (Value::Object(object), notes))
    }

    #[test]
    fn the_last_object_counts_and_noise_before_it_is_noted() {
        let (object, notes) = read_text("Welcome!\nnvm loaded\n{\"action\": \"skip\"}\n\n").unwrap();
        assert_eq!(object["action"], "skip");
        assert_eq!(notes, ["passed over 2 line(s) before the JSON, beginning with \"Welcome!\""]);
        let (object, notes) = read_text("{\n  \"reason\": \"a\",\n  \"action\": \"stop\"\n}").unwrap();
        assert_eq!(object["reason"], "a");
        assert!(notes.is_empty());
        assert!(read_text("{noise}\n{}").is_ok());
    }

    #[test]
    fn anything_but_one_object_at_the_end_is_a_failure() {
        for (text, message) in [
            ("only noise", "it printed no JSON object: \"only noise\""),
            ("{}\n{}", "it printed two JSON documents; print one"),
            ("{} {}", "it printed two JSON documents; print one"),
            ("{} bye", "something other than white space stands after its JSON object"),
            ("[1]", "it printed no JSON object: \"[1]\""),
        ] {
            assert_eq!(read_text(text).unwrap_err(), message);
        }
        assert!(
            read_text("{\"action\": \"skip\", \"action\": \"allow\"}")
                .unwrap_err()
                .starts_with("the key \"action\" stands twice in its JSON")
        );
        assert!(read_text("{\"action\": \"sk").unwrap_err().starts_with("its JSON ends too early"));
        assert!(last_object(b"{}\xff").unwrap_err().starts_with("its standard output is not UTF-8 (byte 2 of 3)"));
    }
}
