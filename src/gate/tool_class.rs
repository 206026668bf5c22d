//! What a tool call does, as far as its tool's name and declaration and its parameters say.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// What kind of thing a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// It looks and changes nothing.
    Read,
    /// It changes files.
    Write,
    /// It runs shell commands, which can be judged.
    Shell,
    /// It runs something that cannot be judged.
    Execute,
    /// It talks to other machines.
    Network,
    /// It starts or steers other agents.
    Dispatch,
    /// It asks the user.
    AskUser,
    /// Nothing is known of it.
    Unknown,
}

impl ToolClass {
    /// All classes.
    pub const ALL: [ToolClass; 8] = [
        Self::Read,
        Self::Write,
        Self::Shell,
        Self::Execute,
        Self::Network,
        Self::Dispatch,
        Self::AskUser,
        Self::Unknown,
    ];

    /// The name as it stands in JSON, for example `ask_user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Shell => "shell",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Dispatch => "dispatch",
            Self::AskUser => "ask_user",
            Self::Unknown => "unknown",
        }
    }
}

/// The part that a parameter plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Parameter {
    Command,
    Several,
    Words,
    Harmless,
    Directory,
    Detaching,
    Escalating,
    Environment,
    Path,
    Patch,
    Content,
    Url,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    names: HashMap<ToolClass, Vec<String>>,
    reading_actions: Vec<ReadingActions>,
    parameters: Parameters,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadingActions {
    tools: Vec<String>,
    parameters: Vec<String>,
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    command: Vec<String>,
    several: Vec<String>,
    words: Vec<String>,
    harmless: Vec<String>,
    directory: Vec<String>,
    detaching: Vec<String>,
    escalating: Vec<String>,
    environment: Vec<String>,
    path: Vec<String>,
    patch: Vec<String>,
    content: Vec<String>,
    url: Vec<String>,
}

struct Table {
    classes: HashMap<String, ToolClass>,
    reading_actions: Vec<ReadingActions>,
    parameters: HashSet<(Parameter, String)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("tools.toml")).expect("tools.toml is checked by the tests");
    let classes = file.names.into_iter().flat_map(|(class, names)| names.into_iter().map(move |name| (name, class)));
    let Parameters { command, several, words, harmless, directory, detaching, .. } = file.parameters;
    let Parameters { escalating, environment, path, patch, content, url, .. } = file.parameters;
    let parameters = [
        (Parameter::Command, command),
        (Parameter::Several, several),
        (Parameter::Words, words),
        (Parameter::Harmless, harmless),
        (Parameter::Directory, directory),
        (Parameter::Detaching, detaching),
        (Parameter::Escalating, escalating),
        (Parameter::Environment, environment),
        (Parameter::Path, path),
        (Parameter::Patch, patch),
        (Parameter::Content, content),
        (Parameter::Url, url),
    ];
    let parameters = parameters.into_iter().flat_map(|(part, names)| names.into_iter().map(move |name| (part, name)));
    Table { classes: classes.collect(), reading_actions: file.reading_actions, parameters: parameters.collect() }
});

/// A name as the table has it.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether the name says whose tool it is, so that it cannot be known from a list of common names.
fn has_namespace(name: &str) -> bool {
    name.contains("__") || name.contains("--") || name.contains(['.', ':', '/', ' '])
}

/// The class of a tool of this name; `None` if the name is not known.
///
/// ```
/// use hookwright::gate::{ToolClass, class_of_name};
/// assert_eq!(class_of_name("WriteFile"), Some(ToolClass::Write));
/// assert_eq!(class_of_name("mcp__fs__write_file"), None);
/// ```
pub fn class_of_name(name: &str) -> Option<ToolClass> {
    if has_namespace(name) { None } else { TABLE.classes.get(&plain(name)).copied() }
}

/// Whether the parameter `name` plays the part.
pub(super) fn plays(name: &str, part: Parameter) -> bool {
    TABLE.parameters.contains(&(part, plain(name)))
}

/// Whether a call of a tool some of whose actions only look is such a call.
pub(super) fn is_reading_action(tool: &str, arguments: &Map<String, Value>) -> bool {
    if has_namespace(tool) {
        return false;
    }
    let tool = plain(tool);
    let Some(row) = TABLE.reading_actions.iter().find(|row| row.tools.contains(&tool)) else { return false };
    let mut actions = arguments.iter().filter(|(name, _)| row.parameters.contains(&plain(name))).peekable();
    actions.peek().is_some()
        && actions.all(|(_, value)| value.as_str().is_some_and(|value| row.values.iter().any(|known| known == value)))
}

/// The class of a call: what its tool declares goes first, but a tool whose name says that it runs commands has them
/// judged whatever it declares, and one that declares to run something is judged by its commands where it has any.
///
/// `declared`: the name of an effect, `unknown` where the tool cannot say, `None` where it declares nothing.
pub(super) fn class_of(tool: &str, declared: Option<&str>, arguments: &Map<String, Value>) -> ToolClass {
    let by_name = class_of_name(tool);
    match (declared, by_name) {
        (None | Some("read" | "execute" | "unknown"), Some(ToolClass::Shell)) => ToolClass::Shell,
        (None | Some("dispatch" | "write"), Some(ToolClass::Dispatch | ToolClass::Write))
            if is_reading_action(tool, arguments) =>
        {
            ToolClass::Read
        }
        (None, class) => class.unwrap_or(ToolClass::Unknown),
        (Some("read"), Some(ToolClass::Execute)) => ToolClass::Execute,
        (Some("read"), _) => ToolClass::Read,
        (Some("write"), _) => ToolClass::Write,
        (Some("network"), _) => ToolClass::Network,
        (Some("dispatch"), _) => ToolClass::Dispatch,
        (Some("ask_user"), _) => ToolClass::AskUser,
        (Some("execute"), None) if arguments.keys().any(|name| plays(name, Parameter::Command)) => ToolClass::Shell,
        (Some("execute"), _) => ToolClass::Execute,
        (Some(_), _) => ToolClass::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(tool: &str, declared: Option<&str>, arguments: Value) -> ToolClass {
        class_of(tool, declared, arguments.as_object().unwrap())
    }

    #[test]
    fn the_file_is_consistent() {
        let text = include_str!("tools.toml");
        let file: File = toml::from_str(text).unwrap();
        let mut seen = HashSet::new();
        for name in file.names.values().flatten() {
            assert_eq!(plain(name), *name, "not in its plain form");
            assert!(seen.insert(name.clone()), "{name} stands twice");
        }
        assert!(seen.len() > 150, "{}", seen.len());
        for class in ToolClass::ALL {
            assert_eq!(file.names.contains_key(&class), class != ToolClass::Unknown, "{class:?}");
        }
        for name in file.reading_actions.iter().flat_map(|row| &row.tools) {
            assert!(seen.contains(name), "{name}");
        }
        assert!(TABLE.parameters.iter().all(|(_, name)| plain(name) == *name));
        for (part, name) in &TABLE.parameters {
            if matches!(part, Parameter::Several | Parameter::Words) {
                assert!(plays(name, Parameter::Command), "{name}");
            }
        }
    }

    #[test]
    fn names_are_compared_whatever_their_case_and_spelling() {
        for name in ["Write", "WRITE", "write", "write_file", "WriteFile", "write-file"] {
            assert_eq!(class_of_name(name), Some(ToolClass::Write), "{name}");
        }
        for name in ["mcp__fs__write_file", "fs.read", "fs/read", "read file", "ｒｅａｄ", "terminal_key", ""] {
            assert_eq!(class_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn what_a_tool_declares_goes_before_its_name_but_never_hides_commands() {
        let command = json!({"command": "ls"});
        assert_eq!(class("Edit", Some("read"), json!({})), ToolClass::Read);
        assert_eq!(class("lookup", Some("write"), json!({})), ToolClass::Write);
        assert_eq!(class("lookup", Some("unknown"), json!({})), ToolClass::Unknown);
        assert_eq!(class("Bash", Some("read"), command.clone()), ToolClass::Shell);
        assert_eq!(class("bash", Some("network"), command.clone()), ToolClass::Network);
        assert_eq!(class("python", Some("read"), json!({"code": "1"})), ToolClass::Execute);
        assert_eq!(class("in_container", Some("execute"), command), ToolClass::Shell);
        assert_eq!(class("deploy", Some("execute"), json!({"tag": "x"})), ToolClass::Execute);
        assert_eq!(class("deploy", None, json!({})), ToolClass::Unknown);
    }

    #[test]
    fn agents_may_be_looked_at() {
        for (arguments, expected) in [
            (json!({"action": "list"}), ToolClass::Read),
            (json!({"action": "get_result", "id": "a1"}), ToolClass::Read),
            (json!({"action": "spawn"}), ToolClass::Dispatch),
            (json!({"action": "list", "op": "spawn"}), ToolClass::Dispatch),
            (json!({"action": ["list"]}), ToolClass::Dispatch),
            (json!({"prompt": "list"}), ToolClass::Dispatch),
        ] {
            assert_eq!(class("sub_agent", None, arguments.clone()), expected, "{arguments}");
            assert_eq!(class("sub_agent", Some("dispatch"), arguments.clone()), expected, "{arguments}");
        }
        assert_eq!(class("str_replace_editor", None, json!({"command": "view", "path": "a"})), ToolClass::Read);
        assert_eq!(class("str_replace_editor", None, json!({"command": "create", "path": "a"})), ToolClass::Write);
    }
}
