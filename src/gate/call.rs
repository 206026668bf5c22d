//! A tool call as gates see it, and what is found when it is looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::denial::GateCode;
use super::patch;
use super::path::ResolvedPath;
use super::place::Place;
use super::shell::{Analysis, CommandTable, Reason, analyze};
use super::tool_class::{Parameter, ToolClass, class_of, plays};
use crate::hook::{EventContext, Field};

/// A tool call that a gate is to judge.
///
/// ```
/// use hookwright::gate::ToolCall;
/// use serde_json::json;
/// let arguments = json!({"command": "git status"});
/// let call = ToolCall::new("shell", arguments.as_object().unwrap()).effect("execute").cwd("/work");
/// assert_eq!(call.tool, "shell");
/// ```
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments; `None` if they cannot be read.
    pub arguments: Option<Map<String, Value>>,
    /// The effect that the tool declares, by name; `unknown` if it cannot say, `None` if it declares nothing.
    pub declared: Option<String>,
    /// The working directory of the session: where relative paths of rules begin.
    pub cwd: PathBuf,
    /// Where relative paths of the tool begin.
    pub root: PathBuf,
    /// The mode of the session.
    pub mode: Option<String>,
    /// The session.
    pub session_id: String,
}

impl ToolCall {
    /// A call of a tool that declares nothing, in the working directory of this process.
    pub fn new(tool: impl Into<String>, arguments: &Map<String, Value>) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        ToolCall {
            tool: tool.into(),
            arguments: Some(arguments.clone()),
            declared: None,
            root: cwd.clone(),
            cwd,
            mode: None,
            session_id: String::new(),
        }
    }

    /// The same with a declared effect.
    pub fn effect(self, effect: impl Into<String>) -> Self {
        ToolCall { declared: Some(effect.into()), ..self }
    }

    /// The same in another working directory.
    pub fn cwd(self, cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        ToolCall { root: cwd.clone(), cwd, ..self }
    }

    /// The call that a `pre_tool_execution` event is about.
    pub(super) fn of_event(context: &EventContext) -> Self {
        let text = |field| context.get(field).and_then(|payload| payload.text()).map(str::to_owned);
        let tool = text(Field::ToolName).unwrap_or_default();
        let arguments = match context.get(Field::ToolArguments).map(|payload| payload.json()) {
            None => Some(Map::new()),
            Some(Ok(Value::Object(arguments))) => Some(arguments.clone()),
            Some(_) => None,
        };
        let declared = match context.get(Field::ToolEffect).map(|payload| payload.json()) {
            None | Some(Ok(Value::Null)) => None,
            Some(Ok(Value::String(effect))) => Some(effect.clone()),
            Some(_) => Some("unknown".to_owned()),
        };
        ToolCall {
            arguments,
            declared,
            cwd: absolute(context.cwd()),
            root: absolute(context.tool_root(&tool)),
            mode: context.mode(),
            session_id: context.scope.session_id.clone(),
            tool,
        }
    }
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Judges shell commands by a table.
#[derive(Clone)]
pub struct Analyzer(Arc<dyn Fn(&str) -> Analysis + Send + Sync>);

impl Analyzer {
    /// By what this table knows of programs.
    pub fn new(table: CommandTable) -> Self {
        Analyzer(Arc::new(move |command| analyze(command, &table)))
    }

    /// In another way, for tests.
    #[cfg(test)]
    pub(super) fn from_fn(function: impl Fn(&str) -> Analysis + Send + Sync + 'static) -> Self {
        Analyzer(Arc::new(function))
    }

    pub(super) fn analyze(&self, command: &str) -> Analysis {
        (self.0)(command)
    }
}

impl Default for Analyzer {
    fn default() -> Self {
        Analyzer::new(CommandTable::default())
    }
}

/// A shell command that a call holds.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) text: String,
    pub(super) analysis: Analysis,
}

impl Judged {
    /// The first of the most severe reasons, if it is not read-only.
    pub(super) fn worst(&self) -> Option<&Reason> {
        let effect = self.analysis.effect;
        self.analysis.reasons.iter().find(|reason| reason.effect == effect).or(self.analysis.reasons.first())
    }
}

/// The files that a call names.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// What it names, each as it can be read. `None` for what leads nobody knows where.
    pub(super) named: Vec<(String, Option<ResolvedPath>)>,
    /// Whether there may be more: a text parameter of unknown meaning, a patch that cannot be read.
    pub(super) unclear: bool,
}

/// What is found when a call is looked at.
#[derive(Debug)]
pub(super) struct Inspection {
    pub(super) class: ToolClass,
    /// The commands of a shell call.
    pub(super) commands: Vec<Judged>,
    /// What else stands in the way of a shell call: the kind, and the parameter.
    pub(super) problems: Vec<(GateCode, String)>,
    /// Where a shell call begins; `None` if that cannot be told.
    pub(super) directory: Option<PathBuf>,
    /// The files that a call reads or writes, where that is what it does.
    pub(super) files: Files,
    /// The places that a network call names.
    pub(super) places: Vec<Place>,
    /// The call in one line, for messages.
    pub(super) shown: String,
}

impl Inspection {
    /// Looks at a call. `None` if its arguments cannot be read.
    pub(super) fn of(call: &ToolCall, analyzer: &Analyzer) -> Option<Self> {
        let arguments = call.arguments.as_ref()?;
        let class = class_of(&call.tool, call.declared.as_deref(), arguments);
        let mut found = Inspection {
            class,
            commands: Vec::new(),
            problems: Vec::new(),
            directory: Some(call.root.clone()),
            files: Files::default(),
            places: Vec::new(),
            shown: call.tool.clone(),
        };
        match class {
            ToolClass::Shell => found.shell(call, arguments, analyzer),
            ToolClass::Read | ToolClass::Write => found.files(arguments, &call.root),
            ToolClass::Network => found.network(arguments),
            _ => {}
        }
        let shown = match class {
            ToolClass::Shell => found.commands.first().map(|command| command.text.as_str()),
            ToolClass::Network => found.places.first().map(|place| place.written.as_str()),
            _ => found.files.named.first().map(|(written, _)| written.as_str()),
        };
        if let Some(shown) = shown {
            found.shown = shown.to_owned();
        }
        Some(found)
    }

    fn shell(&mut self, call: &ToolCall, arguments: &Map<String, Value>, analyzer: &Analyzer) {
        let mut has_command = false;
        for text in self.texts(call, arguments, &mut has_command) {
            if !text.trim().is_empty() {
                let analysis = analyzer.analyze(&text);
                self.commands.push(Judged { text, analysis });
            }
        }
        if !has_command {
            self.problems.push((GateCode::NoCommand, String::new()));
        }
    }

    /// Every text that may be run. What is not known to be harmless may be.
    fn texts(&mut self, call: &ToolCall, arguments: &Map<String, Value>, has_command: &mut bool) -> Vec<String> {
        let mut texts = Vec::new();
        let mut words = Vec::new();
        for (name, value) in arguments.iter().filter(|(name, _)| plays(name, Parameter::Words)) {
            *has_command |= !is_blank(value);
            match value {
                Value::Array(list) if list.iter().all(Value::is_string) => {
                    words.extend(list.iter().filter_map(Value::as_str).map(quoted));
                }
                Value::String(text) => words.push(text.clone()),
                other => strings(other, &mut |text| texts.push(text.to_owned())),
            }
            let _ = name;
        }
        let words = words.join(" ");
        let mut joined = false;
        for (name, value) in arguments {
            if plays(name, Parameter::Words) || is_nothing(value) {
                continue;
            }
            if plays(name, Parameter::Detaching) {
                self.problems.push((GateCode::Detached, name.clone()));
            } else if plays(name, Parameter::Escalating) {
                self.problems.push((GateCode::Escalates, name.clone()));
            } else if plays(name, Parameter::Environment) {
                self.problems.push((GateCode::Environment, name.clone()));
            } else if plays(name, Parameter::Harmless) {
                if plays(name, Parameter::Directory) {
                    let path = value.as_str().and_then(|text| ResolvedPath::new(text, &call.root));
                    self.directory = path.and_then(|path| path.only_place().map(Path::to_owned));
                }
            } else {
                let is_command = plays(name, Parameter::Command);
                *has_command |= is_command && !is_blank(value);
                match value {
                    Value::String(text) if is_command && !words.is_empty() => {
                        joined = true;
                        texts.push(format!("{text} {words}"));
                    }
                    Value::Array(list)
                        if is_command && !plays(name, Parameter::Several) && list.iter().all(Value::is_string) =>
                    {
                        let list: Vec<String> = list.iter().filter_map(Value::as_str).map(quoted).collect();
                        joined |= !words.is_empty();
                        texts.push(format!("{} {words}", list.join(" ")).trim_end().to_owned());
                    }
                    Value::Array(list) if is_command => {
                        for item in list {
                            match item {
                                Value::Array(words) if words.iter().all(Value::is_string) => {
                                    let words: Vec<String> =
                                        words.iter().filter_map(Value::as_str).map(quoted).collect();
                                    texts.push(words.join(" "));
                                }
                                other => strings(other, &mut |text| texts.push(text.to_owned())),
                            }
                        }
                    }
                    other => strings(other, &mut |text| texts.push(text.to_owned())),
                }
            }
        }
        if !joined && !words.is_empty() {
            texts.push(words);
        }
        texts
    }

    fn files(&mut self, arguments: &Map<String, Value>, root: &Path) {
        let files = &mut self.files;
        walk(arguments, &mut |name, text| {
            let mut add = |written: &str| {
                files.named.push((written.to_owned(), ResolvedPath::new(written, root)));
            };
            if plays(name, Parameter::Path) {
                add(text);
            } else if plays(name, Parameter::Patch) {
                match patch::files(text, root) {
                    Some(paths) => paths.iter().for_each(|path| add(path)),
                    None => files.unclear = true,
                }
            } else if !plays(name, Parameter::Content) && !text.is_empty() {
                files.unclear = true;
            }
        });
    }

    fn network(&mut self, arguments: &Map<String, Value>) {
        let places = &mut self.places;
        walk(arguments, &mut |name, text| {
            if plays(name, Parameter::Url) || text.trim_start().starts_with("//") || is_url(text) {
                places.push(Place::new(text));
            }
        });
    }
}

/// Whether a text as a whole is a URL: what only speaks of one (a prompt, a body) is not.
fn is_url(text: &str) -> bool {
    text.contains("://") && !text.trim().contains(char::is_whitespace)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Number(_) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.iter().all(is_blank),
        other => is_nothing(other) || matches!(other, Value::Bool(_)),
    }
}

/// A word as the shell takes it, whatever is in it.
pub(super) fn quoted(word: &str) -> String {
    match shlex::try_quote(word) {
        Ok(quoted) => quoted.into_owned(),
        // A null character: no analysis lets it through.
        Err(_) => word.to_owned(),
    }
}

/// Calls `found` with every text in a value.
fn strings(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(list) => list.iter().for_each(|item| strings(item, found)),
        Value::Object(map) => map.values().for_each(|item| strings(item, found)),
        _ => {}
    }
}

/// Calls `found` with every text in the arguments and the name of the parameter, or of the key, that it stands under.
fn walk(arguments: &Map<String, Value>, found: &mut dyn FnMut(&str, &str)) {
    fn value_of(name: &str, value: &Value, found: &mut dyn FnMut(&str, &str)) {
        match value {
            Value::String(text) => found(name, text),
            Value::Array(list) => list.iter().for_each(|item| value_of(name, item, found)),
            Value::Object(map) => map.iter().for_each(|(name, item)| value_of(name, item, found)),
            _ => {}
        }
    }
    arguments.iter().for_each(|(name, value)| value_of(name, value, found));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inspect(tool: &str, declared: Option<&str>, arguments: Value) -> Inspection {
        let call = ToolCall::new(tool, arguments.as_object().unwrap()).cwd("/work");
        let call = ToolCall { declared: declared.map(str::to_owned), ..call };
        Inspection::of(&call, &Analyzer::default()).unwrap()
    }

    fn texts(arguments: Value) -> Vec<String> {
        inspect("shell", None, arguments).commands.into_iter().map(|command| command.text).collect()
    }

    #[test]
    fn every_text_of_a_shell_call_is_judged() {
        for (arguments, expected) in [
            (json!({"command": "ls"}), vec!["ls"]),
            (json!({"command": "ls", "script": "rm -r x"}), vec!["ls", "rm -r x"]),
            (json!({"command": "ls", "and_then": "rm -r x"}), vec!["ls", "rm -r x"]),
            (json!({"command": "ls", "options": {"before": ["rm x"]}}), vec!["ls", "rm x"]),
            (json!({"command": "git", "args": ["log", "a b"]}), vec!["git log 'a b'"]),
            (json!({"command": "git", "args": "log"}), vec!["git log"]),
            (json!({"command": ["bash", "-lc", "ls | wc"]}), vec!["bash -lc 'ls | wc'"]),
            (json!({"argv": ["rm", "x"]}), vec!["rm x"]),
            (json!({"commands": ["ls", "rm x"]}), vec!["ls", "rm x"]),
            (json!({"commands": [["ls", "-l"], ["rm", "x"]]}), vec!["ls -l", "rm x"]),
            (json!({"cmd": "ls", "description": "rm -r x", "cwd": "/tmp", "timeout": 3}), vec!["ls"]),
        ] {
            assert_eq!(texts(arguments.clone()), expected, "{arguments}");
        }
    }

    #[test]
    fn what_surrounds_a_command_counts() {
        for (arguments, problem) in [
            (json!({}), Some(GateCode::NoCommand)),
            (json!({"command": ""}), Some(GateCode::NoCommand)),
            (json!({"command": "  \n"}), Some(GateCode::NoCommand)),
            (json!({"command": []}), Some(GateCode::NoCommand)),
            (json!({"command": 3}), Some(GateCode::NoCommand)),
            (json!({"description": "ls"}), Some(GateCode::NoCommand)),
            (json!({"command": "ls", "run_in_background": true}), Some(GateCode::Detached)),
            (json!({"command": "ls", "run_in_background": false}), None),
            (json!({"command": "ls", "env": {"LD_PRELOAD": "x"}}), Some(GateCode::Environment)),
            (json!({"command": "ls", "env": {}}), None),
            (json!({"command": "ls", "sudo": true}), Some(GateCode::Escalates)),
            (json!({"command": "ls"}), None),
        ] {
            let problems = inspect("Bash", Some("read"), arguments.clone()).problems;
            assert_eq!(problems.first().map(|(code, _)| *code), problem, "{arguments}");
        }
    }

    #[test]
    fn the_files_of_a_call_are_found_also_in_patches_and_lists() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n*** Add File: c.py\n+z\n*** End Patch";
        for (tool, arguments, expected, unclear) in [
            ("write_file", json!({"path": "a", "content": "x"}), vec!["a"], false),
            ("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "/etc"}), vec!["a"], false),
            ("multi_edit", json!({"edits": [{"path": "a", "new": "x"}, {"path": "b"}]}), vec!["a", "b"], true),
            ("move_file", json!({"source": "a", "destination": "b"}), vec!["a", "b"], false),
            ("delete_file", json!({"paths": ["a", "b"]}), vec!["a", "b"], false),
            ("apply_patch", json!({"input": patch}), vec!["a.py", "b.py", "c.py"], false),
            ("apply_patch", json!({"input": "change a.py"}), vec![], true),
            ("write_file", json!({"path": "a", "where": "b"}), vec!["a"], true),
        ] {
            let files = inspect(tool, None, arguments.clone()).files;
            assert_eq!(files.named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expected, "{arguments}");
            assert_eq!(files.unclear, unclear, "{arguments}");
        }
    }
}
