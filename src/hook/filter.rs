//! Filters: on which occurrences of its events a hook runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::glob::Glob;
use crate::suggest::did_you_mean;

/// The conditions of a filter as they are written. All that are set must hold; names are compared with case.
///
/// A condition on something that the event does not carry does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilterSpec {
    /// The exact name of the tool. If it is set, `tool_matcher` is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Tool names separated by `|`, each exact or a glob: `shell|mcp__github__*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_matcher: Option<String>,
    /// A regular expression that must match the whole name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_regex: Option<String>,
    /// What the name of the model begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_prefix: Option<String>,
    /// A glob for the name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Globs for arguments of the tool, by name. A text is matched as it is, any other value as compact JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
}

impl FilterSpec {
    /// The keys, for configuration files.
    pub const KEYS: &'static [&'static str] =
        &["tool_name", "tool_matcher", "tool_regex", "model_prefix", "agent", "arguments"];
}

/// What a filter looks at: one occurrence of an event. `None` stands for what the event does not carry.
pub trait FilterSubject {
    /// The name of the tool that is called.
    fn tool_name(&self) -> Option<&str>;
    /// The name of the model.
    fn model(&self) -> Option<&str>;
    /// The name of the agent.
    fn agent(&self) -> Option<&str>;
    /// The argument `name` of the tool call as text; see [`argument_text`].
    fn argument(&self, name: &str) -> Option<Cow<'_, str>>;
}

/// An argument as filters see it: a text as it is, any other value as compact JSON.
///
/// ```
/// use hookwright::hook::filter::argument_text;
/// use serde_json::json;
/// assert_eq!(argument_text(&json!("a b")), "a b");
/// assert_eq!(argument_text(&json!({"n": [1, true]})), r#"{"n":[1,true]}"#);
/// ```
pub fn argument_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The condition: `tool_matcher`, `arguments.path`, ...
    pub key: String,
    /// What was written.
    pub pattern: String,
    /// The character of the pattern where the mistake is, counted from 1, where it has a place.
    pub position: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad pattern in {}: {:?}: {}", self.key, self.pattern, self.reason)?;
        match self.position {
            Some(position) => write!(f, " at character {position}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FilterError {}

/// Why a filter does not match, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} {pattern:?} {}", match .actual {
    Some(actual) => format!("does not match {} {:?}", .field, shorten(actual)),
    None => format!("needs {}, which the event does not carry", .field),
})]
pub struct Mismatch {
    /// The first condition that does not hold.
    pub key: String,
    /// Its pattern.
    pub pattern: String,
    /// What the condition looks at.
    pub field: String,
    /// What was there; `None` if the event carries no such thing.
    pub actual: Option<String>,
}

/// A text short enough for a message.
fn shorten(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A compiled filter.
///
/// ```
/// use hookwright::hook::filter::{Filter, FilterSpec};
/// let spec = FilterSpec { tool_matcher: Some("shell|write_*".to_owned()), ..FilterSpec::default() };
/// let filter = Filter::compile(&spec)?;
/// assert_eq!(filter.fits_any_tool(&["shell", "grep"]), None);
/// assert_eq!(
///     filter.fits_any_tool(&["shel", "grep"]).unwrap(),
///     r#"tool_matcher "shell|write_*" fits none of the 2 registered tools; did you mean "shel"?"#,
/// );
/// # Ok::<(), hookwright::hook::filter::FilterError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Filter {
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    key: &'static str,
    /// The argument, for a condition on one.
    argument: Option<String>,
    pattern: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    ToolName,
    ToolMatcher(Vec<Glob>),
    ToolRegex(Regex),
    ModelPrefix,
    Agent(Glob),
    Argument(Glob),
}

impl Filter {
    /// Compiles the conditions.
    ///
    /// # Errors
    /// The first pattern that is empty or malformed. A `tool_matcher` is checked also where `tool_name` overrides it.
    pub fn compile(spec: &FilterSpec) -> Result<Self, FilterError> {
        let mut conditions = Vec::new();
        let mut add = |key: &'static str, argument: Option<&str>, pattern: &str, test: Test| {
            let argument = argument.map(str::to_owned);
            conditions.push(Condition { key, argument, pattern: pattern.to_owned(), test });
        };
        if let Some(name) = &spec.tool_name {
            not_empty("tool_name", name)?;
            add("tool_name", None, name, Test::ToolName);
        }
        if let Some(list) = &spec.tool_matcher {
            let globs = compile_matcher(list)?;
            if spec.tool_name.is_none() {
                add("tool_matcher", None, list, Test::ToolMatcher(globs));
            }
        }
        if let Some(pattern) = &spec.tool_regex {
            add("tool_regex", None, pattern, Test::ToolRegex(compile_regex("tool_regex", pattern)?));
        }
        if let Some(prefix) = &spec.model_prefix {
            not_empty("model_prefix", prefix)?;
            add("model_prefix", None, prefix, Test::ModelPrefix);
        }
        if let Some(pattern) = &spec.agent {
            add("agent", None, pattern, Test::Agent(compile_glob("agent", pattern)?));
        }
        for (name, pattern) in &spec.arguments {
            let glob = compile_glob(&format!("arguments.{name}"), pattern)?;
            add("arguments", Some(name), pattern, Test::Argument(glob));
        }
        Ok(Filter { conditions })
    }

    /// Whether there is no condition, so that everything matches.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether all conditions hold. Nothing is allocated unless `subject` does so for an argument.
    pub fn matches(&self, subject: &dyn FilterSubject) -> bool {
        self.conditions.iter().all(|condition| condition.holds(subject))
    }

    /// The same as [`matches`](Self::matches), with the reason.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn explain(&self, subject: &dyn FilterSubject) -> Result<(), Mismatch> {
        match self.conditions.iter().find(|condition| !condition.holds(subject)) {
            Some(condition) => Err(condition.mismatch(subject)),
            None => Ok(()),
        }
    }

    /// A warning if the conditions on the tool's name fit none of `names`, the registered tools.
    ///
    /// `None` as well where there is no such condition, or where `names` is empty and nothing can be said.
    pub fn fits_any_tool(&self, names: &[&str]) -> Option<String> {
        let conditions: Vec<&Condition> = self.conditions.iter().filter(|condition| condition.is_on_tool()).collect();
        let fits = |name: &&str| conditions.iter().all(|condition| condition.test_tool(name));
        if conditions.is_empty() || names.is_empty() || names.iter().any(fits) {
            return None;
        }
        let written: Vec<String> = conditions.iter().map(|c| format!("{} {:?}", c.key, c.pattern)).collect();
        let (fit, tools) = match (conditions.len(), names.len()) {
            (1, 1) => ("does not fit", "the only registered tool".to_owned()),
            (1, count) => ("fits", format!("none of the {count} registered tools")),
            (_, count) => ("together fit", format!("none of the {count} registered tools")),
        };
        let suggestion = conditions.iter().find_map(|condition| condition.nearest(names));
        let suggestion = suggestion.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        Some(format!("{} {fit} {tools}{suggestion}", written.join(" and ")))
    }
}

impl Condition {
    fn holds(&self, subject: &dyn FilterSubject) -> bool {
        match &self.test {
            Test::ToolName | Test::ToolMatcher(_) | Test::ToolRegex(_) => {
                subject.tool_name().is_some_and(|name| self.test_tool(name))
            }
            Test::ModelPrefix => subject.model().is_some_and(|model| model.starts_with(&self.pattern)),
            Test::Agent(glob) => subject.agent().is_some_and(|agent| glob.is_match(agent)),
            Test::Argument(glob) => self
                .argument
                .as_deref()
                .and_then(|name| subject.argument(name))
                .is_some_and(|text| glob.is_match(&text)),
        }
    }

    fn is_on_tool(&self) -> bool {
        matches!(self.test, Test::ToolName | Test::ToolMatcher(_) | Test::ToolRegex(_))
    }

    fn test_tool(&self, name: &str) -> bool {
        match &self.test {
            Test::ToolName => self.pattern == name,
            Test::ToolMatcher(globs) => globs.iter().any(|glob| glob.is_match(name)),
            Test::ToolRegex(regex) => regex.is_match(name),
            Test::ModelPrefix | Test::Agent(_) | Test::Argument(_) => true,
        }
    }

    fn mismatch(&self, subject: &dyn FilterSubject) -> Mismatch {
        let (field, actual) = match (&self.test, &self.argument) {
            (Test::Argument(_), Some(name)) => {
                (format!("argument {name:?}"), subject.argument(name).map(Cow::into_owned))
            }
            (Test::ModelPrefix, _) => ("model".to_owned(), subject.model().map(str::to_owned)),
            (Test::Agent(_), _) => ("agent".to_owned(), subject.agent().map(str::to_owned)),
            _ => ("tool_name".to_owned(), subject.tool_name().map(str::to_owned)),
        };
        let key = self.argument.as_ref().map_or(self.key.to_owned(), |name| format!("{}.{name}", self.key));
        Mismatch { key, pattern: self.pattern.clone(), field, actual }
    }

    /// The tool whose name is nearest to one that the condition asks for. A regular expression asks for none.
    fn nearest<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        match &self.test {
            Test::ToolName => did_you_mean(&self.pattern, names.iter().copied()),
            Test::ToolMatcher(_) => {
                let plain = |part: &str| part.trim().replace(['*', '?', '[', ']', '{', '}', '\\'], "");
                self.pattern.split('|').find_map(|part| did_you_mean(&plain(part), names.iter().copied()))
            }
            _ => None,
        }
    }
}

fn bad(key: &str, pattern: &str, position: Option<usize>, reason: impl Into<String>) -> FilterError {
    FilterError { key: key.to_owned(), pattern: pattern.to_owned(), position, reason: reason.into() }
}

fn not_empty(key: &str, pattern: &str) -> Result<(), FilterError> {
    if pattern.is_empty() { Err(bad(key, pattern, None, "it is empty")) } else { Ok(()) }
}

fn compile_glob(key: &str, pattern: &str) -> Result<Glob, FilterError> {
    not_empty(key, pattern)?;
    Glob::compile(pattern).map_err(|error| bad(key, pattern, Some(error.position), error.reason))
}

fn compile_matcher(list: &str) -> Result<Vec<Glob>, FilterError> {
    const KEY: &str = "tool_matcher";
    not_empty(KEY, list)?;
    let mut globs = Vec::new();
    let mut start = 1;
    for part in list.split('|') {
        if part.trim().is_empty() {
            return Err(bad(KEY, list, Some(start), "an empty alternative"));
        }
        let leading = part.chars().take_while(|character| character.is_whitespace()).count();
        let glob = Glob::compile(part.trim())
            .map_err(|error| bad(KEY, list, Some(start + leading + error.position - 1), error.reason))?;
        globs.push(glob);
        start += part.chars().count() + 1;
    }
    Ok(globs)
}

/// A regular expression that must match all of the text.
fn compile_regex(key: &str, pattern: &str) -> Result<Regex, FilterError> {
    not_empty(key, pattern)?;
    // Parsed alone first: the place of a mistake is then one in the pattern as it was written, and `a)|(b` cannot
    // pass because it is put into parentheses.
    if let Err(error) = regex_syntax::Parser::new().parse(pattern) {
        let (offset, reason) = match &error {
            regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
            regex_syntax::Error::Translate(error) => (error.span().start.offset, error.kind().to_string()),
            other => return Err(bad(key, pattern, None, other.to_string())),
        };
        let before = pattern.get(..offset).unwrap_or(pattern).chars().count();
        return Err(bad(key, pattern, Some(before + 1), reason));
    }
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => bad(key, pattern, None, "the pattern is too large"),
        _ => bad(key, pattern, None, "a comment at the end of the pattern hides what follows it"),
    })
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
