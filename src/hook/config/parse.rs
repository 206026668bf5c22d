//! From a tree that was read to hook definitions, with every mistake on the way.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::definition::{CommandsDefinition, HookAction, HookDefinition, Origin, RuleDefinition};
use super::load::Disabled;
use super::problem::{Position, Report};
use super::reader::{Node, Pair, Value};
use crate::hook::entry::{HookKind, Isolation, OnError, Role};
use crate::hook::event::Event;
use crate::hook::filter::{Filter, FilterSpec};
use crate::hook::level::Level;
use crate::hook::llm::LlmPrompt;
use crate::suggest::did_you_mean;

/// The version of the format that is read.
const VERSION: i64 = 1;
const TOP_KEYS: &[&str] = &["version", "hooks", "permissions", "gates", "disabled_hooks", "budget"];
const LISTS: &[&str] = &["allow", "ask", "deny"];
const TYPES: &[&str] = &["shell", "llm", "python"];
const ISOLATIONS: &[&str] = &["none", "thread", "process"];

/// The keys of a hook, and the only kind of hook that has the key.
const HOOK_KEYS: &[(&str, Option<HookKind>)] = &[
    ("name", None),
    ("events", None),
    ("type", None),
    ("command", Some(HookKind::Shell)),
    ("worker", Some(HookKind::Shell)),
    ("prompt", Some(HookKind::Llm)),
    ("model", Some(HookKind::Llm)),
    ("base_url", Some(HookKind::Llm)),
    ("api_key_env", Some(HookKind::Llm)),
    ("callable", Some(HookKind::Python)),
    ("isolate", Some(HookKind::Python)),
    ("role", None),
    ("order", None),
    ("filter", None),
    ("timeout", None),
    ("retry", None),
    ("on_error", None),
    ("enabled", None),
    ("shadow", None),
];

/// What the files of one level have come to so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) definitions: Vec<HookDefinition>,
    pub(super) disabled: Vec<Disabled>,
    pub(super) rules: Vec<RuleDefinition>,
    pub(super) commands: Vec<CommandsDefinition>,
    pub(super) budget: Option<Duration>,
    /// Where each name was first given.
    pub(super) names: HashMap<String, (PathBuf, Position)>,
}

/// Takes the contents of a `hooks.yaml`.
pub(super) fn parse_file(pairs: &[Pair], level: Level, report: &mut Report, gathered: &mut Gathered) {
    check_version(pairs, true, report);
    for pair in pairs {
        match pair.key.as_str() {
            "version" => {}
            "budget" => gathered.budget = report.seconds(pair),
            "disabled_hooks" => {
                let names = if is_empty(&pair.value) { None } else { report.texts(pair) };
                let file = &report.file;
                let disabled = |(name, position)| Disabled { name, level, file: file.clone(), position };
                gathered.disabled.extend(names.unwrap_or_default().into_iter().map(disabled));
            }
            "permissions" => parse_permissions(report.mapping(pair).unwrap_or_default(), level, report, gathered),
            "gates" => parse_gates(report.mapping(pair).unwrap_or_default(), level, report, gathered),
            "hooks" => {
                for item in report.list(pair).unwrap_or_default() {
                    match &item.value {
                        Value::Mapping(hook) => parse_hook(hook, item.position, None, level, report, gathered),
                        _ => report.advise(item.position, "a hook must be keys and values", "write \"- name: ...\""),
                    }
                }
            }
            key => report.unknown(pair.position, "key", key, TOP_KEYS),
        }
    }
}

/// Takes the lists of permission rules.
fn parse_permissions(pairs: &[Pair], level: Level, report: &mut Report, gathered: &mut Gathered) {
    for pair in pairs {
        let Some(list) = LISTS.iter().find(|list| **list == pair.key) else {
            report.unknown(pair.position, "key", &pair.key, LISTS);
            continue;
        };
        let rules = if is_empty(&pair.value) { None } else { report.texts(pair) };
        let file = report.file.clone();
        let definition = |(rule, position)| RuleDefinition { list, rule, level, file: file.clone(), position };
        gathered.rules.extend(rules.unwrap_or_default().into_iter().map(definition));
    }
}

/// Takes what gates are to know.
fn parse_gates(pairs: &[Pair], level: Level, report: &mut Report, gathered: &mut Gathered) {
    for pair in pairs {
        if pair.key != "commands" {
            report.unknown(pair.position, "key", &pair.key, &["commands"]);
            continue;
        }
        let paths = if is_empty(&pair.value) { None } else { report.texts(pair) };
        let file = report.file.clone();
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        let definition = |(path, position): (String, Position)| CommandsDefinition {
            path: folder.join(path),
            level,
            file: file.clone(),
            position,
        };
        gathered.commands.extend(paths.unwrap_or_default().into_iter().map(definition));
    }
}

/// Takes the contents of the `HOOK.yaml` in `folder`.
pub(super) fn parse_folder(
    pairs: &[Pair],
    folder: &Path,
    name: &str,
    level: Level,
    report: &mut Report,
    gathered: &mut Gathered,
) {
    check_version(pairs, false, report);
    let hook: Vec<Pair> = pairs.iter().filter(|pair| pair.key != "version").cloned().collect();
    let position = hook.first().map_or(Position { line: 1, column: 1 }, |pair| pair.position);
    parse_hook(&hook, position, Some((folder, name)), level, report, gathered);
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar { text, quoted: false } if super::reader::is_null(text))
}

fn check_version(pairs: &[Pair], required: bool, report: &mut Report) {
    match pairs.iter().find(|pair| pair.key == "version") {
        Some(pair) => match report.whole(pair) {
            Some(VERSION) | None => {}
            Some(other) => {
                let message = format!("version {other} of the format is not known");
                report.advise(pair.value_position(), message, format!("this hookwright reads version {VERSION}"));
            }
        },
        None if required => {
            let position = Position { line: 1, column: 1 };
            report.advise(position, "missing key \"version\"", format!("add \"version: {VERSION}\""));
        }
        None => {}
    }
}

/// A hook on the way from keys to definition.
#[derive(Default)]
struct Draft {
    name: Option<(String, Position)>,
    events: Vec<(Event, Position)>,
    kind: Option<HookKind>,
    action_position: Option<Position>,
    command: Option<String>,
    prompt: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    callable: Option<(String, String)>,
    isolation: Option<Isolation>,
    role: Option<Role>,
    order: Option<i64>,
    filter: Option<FilterSpec>,
    timeout: Option<Duration>,
    retry: Option<u32>,
    on_error: Option<OnError>,
    enabled: Option<bool>,
    shadow: Option<bool>,
}

/// Takes one hook. It joins the definitions only if nothing is wrong with it.
fn parse_hook(
    pairs: &[Pair],
    position: Position,
    folder: Option<(&Path, &str)>,
    level: Level,
    report: &mut Report,
    gathered: &mut Gathered,
) {
    let mistakes_before = report.problems.len();
    let mut draft = Draft::default();
    if let Some((_, name)) = folder {
        draft.name = Some((name.to_owned(), position));
    }
    draft.kind = pairs.iter().find(|pair| pair.key == "type").and_then(|pair| parse_type(pair, report));
    for pair in pairs {
        draft.take(pair, folder.map(|(_, name)| name), report);
    }
    draft.check_kind(pairs, position, report);
    draft.check_gate(report);
    for (key, advice) in [("name", "every hook needs one of its own"), ("events", "add \"events: pre_tool_execution\"")]
    {
        let from_folder = key == "name" && folder.is_some();
        if !has(pairs, key) && !from_folder {
            report.advise(position, format!("missing key {key:?}"), advice);
        }
    }
    if let Some((name, at)) = &draft.name {
        match gathered.names.get(name) {
            Some((file, first)) => {
                let message = format!("hook name {name:?} is taken (first in {}:{})", file_name(file), first.line);
                report.advise(*at, message, "give each hook a name of its own");
            }
            None => {
                gathered.names.insert(name.clone(), (report.file.clone(), *at));
            }
        }
    }
    if report.problems.len() == mistakes_before {
        let folder = folder.map(|(folder, _)| folder.to_owned());
        let source = Origin { path: report.file.clone(), line: position.line, folder };
        gathered.definitions.extend(draft.finish(level, source));
    }
}

fn has(pairs: &[Pair], key: &str) -> bool {
    pairs.iter().any(|pair| pair.key == key)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn parse_type(pair: &Pair, report: &mut Report) -> Option<HookKind> {
    report.choice(pair, TYPES, |name| match name {
        "shell" | "bash" => Some(HookKind::Shell),
        "llm" => Some(HookKind::Llm),
        "python" => Some(HookKind::Python),
        _ => None,
    })
}

impl Draft {
    fn take(&mut self, pair: &Pair, folder_name: Option<&str>, report: &mut Report) {
        match pair.key.as_str() {
            "type" => {}
            "name" => self.take_name(pair, folder_name, report),
            "events" => self.take_events(pair, report),
            "command" => {
                self.action_position = Some(pair.value_position());
                self.command = report.text(pair);
            }
            "prompt" => self.take_prompt(pair, report),
            "model" => {
                self.action_position = Some(pair.value_position());
                self.model = report.text(pair);
            }
            "base_url" => self.base_url = report.text(pair),
            "api_key_env" => self.api_key_env = report.text(pair),
            "callable" => self.take_callable(pair, report),
            "worker" => {
                if report.flag(pair) == Some(true) {
                    not_yet(pair, "worker: true", "leave it out: the command is then started for each event", report);
                }
            }
            "isolate" => self.take_isolation(pair, report),
            "role" => self.role = report.choice(pair, Role::NAMES, Role::parse),
            "order" => self.order = report.whole(pair),
            "filter" => self.filter = report.mapping(pair).map(|pairs| parse_filter(pairs, report)),
            "timeout" => self.timeout = report.seconds(pair),
            "retry" => self.retry = report.count(pair),
            "on_error" => self.on_error = report.choice(pair, OnError::NAMES, OnError::parse),
            "enabled" => self.enabled = report.flag(pair),
            "shadow" => self.shadow = report.flag(pair),
            key => {
                let mut known: Vec<&str> = HOOK_KEYS.iter().map(|(key, _)| *key).collect();
                // A condition that is written beside the filter instead of in it.
                if did_you_mean(key, known.iter().copied()).is_none() && FilterSpec::KEYS.contains(&key) {
                    report.advise(pair.position, format!("unknown key {key:?}"), "it belongs under \"filter:\"");
                } else {
                    known.sort_unstable();
                    report.unknown(pair.position, "key", key, &known);
                }
            }
        }
    }

    fn take_name(&mut self, pair: &Pair, folder_name: Option<&str>, report: &mut Report) {
        let Some(name) = report.text(pair) else { return };
        match folder_name {
            Some(folder) if folder != name => {
                let message = format!("the hook is named {name:?} but its folder {folder:?}");
                report.advise(pair.value_position(), message, "give both one name, or leave out the key");
            }
            _ => self.name = Some((name, pair.value_position())),
        }
    }

    fn take_events(&mut self, pair: &Pair, report: &mut Report) {
        let before = report.problems.len();
        let Some(names) = report.texts(pair) else { return };
        for (name, position) in &names {
            match Event::parse(name) {
                Some(event) if self.events.iter().any(|(known, _)| *known == event) => {
                    report.advise(*position, format!("event {name:?} is repeated"), "keep one of them");
                }
                Some(event) => self.events.push((event, *position)),
                None => {
                    let all: Vec<&str> = Event::ALL.iter().map(|event| event.as_str()).collect();
                    report.unknown(*position, "event", name, &all);
                }
            }
        }
        if names.is_empty() && report.problems.len() == before {
            report.advise(
                pair.value_position(),
                "\"events\" is empty",
                "to switch a hook off, write \"enabled: false\"",
            );
        }
    }

    fn take_prompt(&mut self, pair: &Pair, report: &mut Report) {
        self.prompt = report.text(pair);
        if let Some(Err(error)) = self.prompt.as_deref().map(LlmPrompt::parse) {
            report.add(pair.value_position(), error.to_string());
        }
    }

    fn take_callable(&mut self, pair: &Pair, report: &mut Report) {
        self.action_position = Some(pair.value_position());
        let Some(text) = report.text(pair) else { return };
        match text.split_once(':') {
            Some((module, function)) if is_dotted_name(module) && is_dotted_name(function) => {
                self.callable = Some((module.to_owned(), function.to_owned()));
            }
            _ => {
                let message = format!("{text:?} is not a Python function");
                report.advise(pair.value_position(), message, "write \"module:function\"");
            }
        }
    }

    fn take_isolation(&mut self, pair: &Pair, report: &mut Report) {
        let isolation = report.choice(pair, ISOLATIONS, |name| match name {
            "none" => Some(Some(Isolation::None)),
            "thread" => Some(Some(Isolation::Thread)),
            "process" => Some(None),
            _ => None,
        });
        match isolation {
            Some(None) => not_yet(pair, "isolate: process", "write \"isolate: thread\"", report),
            Some(isolation) => self.isolation = isolation,
            None => {}
        }
    }

    /// The keys that the kind of hook needs, and those that it cannot have.
    fn check_kind(&self, pairs: &[Pair], position: Position, report: &mut Report) {
        let Some(kind) = self.kind else {
            if !has(pairs, "type") {
                let implied = HOOK_KEYS.iter().find_map(|(key, kind)| kind.filter(|_| has(pairs, key)));
                let implied = implied.unwrap_or(HookKind::Shell);
                report.advise(position, "missing key \"type\"", format!("add \"type: {implied}\""));
            }
            return;
        };
        let needed: &[&str] = match kind {
            HookKind::Llm => &["prompt", "model"],
            HookKind::Python => &["callable"],
            HookKind::Shell | HookKind::Builtin => &["command"],
        };
        for key in needed.iter().filter(|key| !has(pairs, key)) {
            report.advise(position, format!("missing key {key:?}"), format!("a hook of type {kind} needs it"));
        }
        for pair in pairs {
            let owner = HOOK_KEYS.iter().find(|(key, _)| *key == pair.key).and_then(|(_, owner)| *owner);
            if let Some(owner) = owner.filter(|owner| *owner != kind) {
                let message =
                    format!("key {:?} belongs to hooks of type {owner}, and this one is of type {kind}", pair.key);
                report.advise(pair.position, message, "leave it out, or change the type");
            }
        }
        let prompt = self.prompt.as_deref().filter(|_| kind == HookKind::Llm).map(LlmPrompt::parse);
        let events: Vec<Event> = self.events.iter().map(|(event, _)| *event).collect();
        if let Some(Err(error)) = prompt.and_then(Result::ok).map(|prompt| prompt.check(&events))
            && let Some(pair) = pairs.iter().find(|pair| pair.key == "prompt")
        {
            report.add(pair.value_position(), error.to_string());
        }
    }

    fn check_gate(&self, report: &mut Report) {
        if self.role != Some(Role::Gate) {
            return;
        }
        for (event, position) in self.events.iter().filter(|(event, _)| event.spec().denial().is_none()) {
            let message = format!("a gate on {:?}, where nothing can be refused", event.as_str());
            report.advise(*position, message, "use role \"hook\" or \"observer\", or another event");
        }
    }

    /// The definition, if everything that it needs is there.
    fn finish(self, level: Level, source: Origin) -> Option<HookDefinition> {
        let action = match self.kind? {
            HookKind::Shell => HookAction::Shell { command: self.command? },
            HookKind::Python => {
                let (module, function) = self.callable?;
                HookAction::Python { module, function, isolation: self.isolation.unwrap_or_default() }
            }
            HookKind::Llm => HookAction::Llm {
                prompt: self.prompt?,
                model: self.model?,
                base_url: self.base_url,
                api_key_env: self.api_key_env,
            },
            HookKind::Builtin => return None,
        };
        let (name, name_position) = self.name?;
        Some(HookDefinition {
            name,
            events: self.events.into_iter().map(|(event, _)| event).collect(),
            action,
            role: self.role.unwrap_or(Role::Hook),
            order: self.order.unwrap_or(0),
            filter: self.filter.unwrap_or_default(),
            timeout: self.timeout,
            retry: self.retry,
            on_error: self.on_error,
            enabled: self.enabled.unwrap_or(true),
            shadow: self.shadow.unwrap_or(false),
            level,
            source,
            name_position,
            action_position: self.action_position.unwrap_or(name_position),
        })
    }
}

fn not_yet(pair: &Pair, what: &str, instead: &str, report: &mut Report) {
    report.advise(pair.value_position(), format!("{what:?} is not available yet in this version"), instead);
}

fn is_dotted_name(text: &str) -> bool {
    text.split('.').all(|part| {
        let mut characters = part.chars();
        characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && characters.all(|character| character.is_alphanumeric() || character == '_')
    })
}

fn parse_filter(pairs: &[Pair], report: &mut Report) -> FilterSpec {
    let mut filter = FilterSpec::default();
    for pair in pairs {
        // Each condition is compiled alone, so that every bad pattern is found and stands at its place.
        let mut alone = FilterSpec::default();
        let (target, own) = match pair.key.as_str() {
            "tool_name" => (&mut filter.tool_name, &mut alone.tool_name),
            "tool_matcher" => (&mut filter.tool_matcher, &mut alone.tool_matcher),
            "tool_regex" => (&mut filter.tool_regex, &mut alone.tool_regex),
            "model_prefix" => (&mut filter.model_prefix, &mut alone.model_prefix),
            "agent" => (&mut filter.agent, &mut alone.agent),
            "arguments" => {
                for argument in report.mapping(pair).unwrap_or_default() {
                    let Some(pattern) = report.pattern(argument) else { continue };
                    let alone = FilterSpec {
                        arguments: [(argument.key.clone(), pattern.clone())].into(),
                        ..FilterSpec::default()
                    };
                    check_pattern(&alone, argument, report);
                    filter.arguments.insert(argument.key.clone(), pattern);
                }
                continue;
            }
            key => {
                report.unknown(pair.position, "key", key, FilterSpec::KEYS);
                continue;
            }
        };
        *target = report.text(pair);
        own.clone_from(target);
        check_pattern(&alone, pair, report);
    }
    filter
}

fn check_pattern(alone: &FilterSpec, pair: &Pair, report: &mut Report) {
    if let Err(error) = Filter::compile(alone) {
        report.add(pair.value_position(), error.to_string());
    }
}
