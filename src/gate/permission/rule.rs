//! Permission rules: how they are written and read.
//!
//! `Name` or `Name(specifier)`. A name is a class of calls or the exact name of a tool; the specifier narrows it:
//! `Shell(git diff:*)`, `Write(path:src/**)`, `Fetch(domain:example.org)`.

use std::fmt;

use super::super::path::PathPattern;
use super::super::place::PlacePattern;
use super::super::shell::{CommandTable, analyze};
use super::super::tool_class::{ToolClass, class_of_name};
use crate::hook::level::Level;
use crate::suggest::did_you_mean;

/// What a rule does with the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Allow,
    Ask,
    Deny,
}

impl List {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A class of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleClass {
    Read,
    Write,
    Shell,
    Execute,
    Tests,
    Network,
    Dispatch,
    AskUser,
}

const CLASSES: &[(&str, RuleClass)] = &[
    ("Read", RuleClass::Read),
    ("Write", RuleClass::Write),
    ("Shell", RuleClass::Shell),
    ("Execute", RuleClass::Execute),
    ("Tests", RuleClass::Tests),
    ("Fetch", RuleClass::Network),
    ("Network", RuleClass::Network),
    ("Dispatch", RuleClass::Dispatch),
    ("AskUser", RuleClass::AskUser),
];

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Class(RuleClass),
    Tool(String),
}

/// What a rule is narrowed to.
#[derive(Clone, Debug)]
pub(super) enum Specifier {
    Anything,
    /// A simple command of these words, or one that begins with them.
    Command {
        words: Vec<String>,
        prefix: bool,
    },
    Path(Box<PathPattern>),
    Place(PlacePattern),
    /// The text of a tool that takes one, or its beginning; a command if the tool turns out to run some.
    Text {
        text: String,
        words: Vec<String>,
        prefix: bool,
    },
}

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// As it was written.
    pub(super) text: String,
    pub(super) level: Level,
    pub(super) name: Name,
    pub(super) specifier: Specifier,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Which list it stands in: `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// Its level.
    pub level: Level,
    /// Its place in the list, counted from 0.
    pub index: usize,
    /// The rule.
    pub rule: String,
    /// What is wrong, and what to write.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError { list, index, rule, message, .. } = self;
        write!(formatter, "{list}[{index}] {rule:?}: {message}")
    }
}

impl Rule {
    /// Reads the rules of one list; what is wrong goes to `errors`.
    pub(super) fn read_all(list: List, level: Level, texts: &[String], errors: &mut Vec<RuleError>) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match Rule::parse(text, level) {
                Ok(rule) => rules.push(rule),
                Err(message) => {
                    errors.push(RuleError { list: list.as_str(), level, index, rule: text.clone(), message });
                }
            }
        }
        rules
    }

    /// Reads a rule; the error says what is wrong with it.
    pub(super) fn parse(text: &str, level: Level) -> Result<Rule, String> {
        let text = text.trim();
        let (name, inside) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(inside) => (name, Some(inside)),
                None => return Err("the closing bracket at the end is missing".into()),
            },
        };
        if name.is_empty() {
            return Err("it begins with no name; write a class such as Shell, or the name of a tool".into());
        }
        if let Some(wrong) = name.chars().find(|c| !(c.is_alphanumeric() || "_-.:/@".contains(*c))) {
            return Err(match wrong {
                '*' | '?' => "names hold no wildcards; write a class such as Shell, or the exact name of a tool".into(),
                _ => format!("{wrong:?} is in no name; write Name or Name(specifier)"),
            });
        }
        let class = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
        let specifier = match inside {
            None => Specifier::Anything,
            Some("") => return Err(format!("nothing stands between the brackets; write {name} for every such call")),
            Some(inside) => {
                let kind = match class {
                    Some(class) => Kind::of_class(class),
                    None => Kind::of_tool(class_of_name(name)),
                };
                kind.specifier(name, inside)?
            }
        };
        let name = match class {
            Some(class) => Name::Class(class),
            None => {
                check_name(name)?;
                Name::Tool(name.to_owned())
            }
        };
        Ok(Rule { text: text.to_owned(), level, name, specifier })
    }
}

/// A name that is nearly that of a class is no tool of that name.
fn check_name(name: &str) -> Result<(), String> {
    if !name.starts_with(char::is_uppercase) || class_of_name(name).is_some() {
        return Ok(());
    }
    match did_you_mean(name, CLASSES.iter().map(|(class, _)| *class)) {
        Some(near) => Err(format!("{name} is neither a class nor a tool that is known; did you mean {near}?")),
        None => Ok(()),
    }
}

/// What may stand between the brackets.
enum Kind {
    Nothing,
    Command,
    Path,
    Domain,
    Any,
}

impl Kind {
    fn of_class(class: RuleClass) -> Self {
        match class {
            RuleClass::Read | RuleClass::Write => Kind::Path,
            RuleClass::Shell => Kind::Command,
            RuleClass::Network => Kind::Domain,
            RuleClass::Execute | RuleClass::Tests | RuleClass::Dispatch | RuleClass::AskUser => Kind::Nothing,
        }
    }

    fn of_tool(class: Option<ToolClass>) -> Self {
        match class {
            Some(ToolClass::Read | ToolClass::Write) => Kind::Path,
            Some(ToolClass::Shell) => Kind::Command,
            Some(ToolClass::Network) => Kind::Domain,
            _ => Kind::Any,
        }
    }

    fn specifier(&self, name: &str, inside: &str) -> Result<Specifier, String> {
        let path = inside.strip_prefix("path:");
        let domain = inside.strip_prefix("domain:");
        match self {
            Kind::Nothing => Err(format!("{name} takes nothing in brackets; write {name}")),
            Kind::Command => {
                if path.is_some() || domain.is_some() {
                    return Err(format!(
                        "{name} takes a command, such as {name}(git diff:*); a path goes with Write or Read, a domain with Fetch"
                    ));
                }
                let (words, prefix) = command(name, inside)?;
                Ok(Specifier::Command { words, prefix })
            }
            Kind::Path | Kind::Any if path.is_some() => {
                PathPattern::parse(path.unwrap_or_default()).map(Box::new).map(Specifier::Path)
            }
            Kind::Domain | Kind::Any if domain.is_some() => {
                PlacePattern::parse(domain.unwrap_or_default()).map(Specifier::Place)
            }
            Kind::Path => Err(format!("{name} takes a path; write {name}(path:{})", domain.unwrap_or(inside))),
            Kind::Domain => Err(format!("{name} takes a domain; write {name}(domain:{})", path.unwrap_or(inside))),
            Kind::Any => {
                let (text, prefix) = without_star(inside);
                if text.is_empty() {
                    return Err(format!("nothing stands before :*; write {name} for every such call"));
                }
                let words = command(name, inside).map(|(words, _)| words).unwrap_or_default();
                Ok(Specifier::Text { text: text.to_owned(), words, prefix })
            }
        }
    }
}

fn without_star(text: &str) -> (&str, bool) {
    match text.strip_suffix(":*") {
        Some(text) => (text, true),
        None => (text, false),
    }
}

/// The words of a simple command, and whether more may follow.
fn command(name: &str, text: &str) -> Result<(Vec<String>, bool), String> {
    let (command, prefix) = without_star(text);
    let command = command.trim();
    if command.is_empty() {
        return Err(format!("no command stands before :*; write {name} for every command"));
    }
    let words = shlex::split(command).unwrap_or_default();
    // Only what the shell itself takes for one simple command of fixed words is one.
    let analysis = analyze(command, &CommandTable::default());
    let is_whole = |words: &[String]| {
        analysis.commands.iter().any(|found| {
            found.redirects.is_empty()
                && found.words.len() == words.len()
                && found.words.iter().zip(words).all(|(word, text)| word.text() == Some(text))
        })
    };
    if words.is_empty() || !is_whole(&words) {
        let star = command.strip_suffix('*').map(str::trim_end).filter(|rest| !rest.is_empty());
        return Err(match star {
            Some(rest) => format!("{command:?} is not one simple command of plain words; write {name}({rest}:*)"),
            None => format!(
                "{command:?} is not one simple command of plain words; write one rule for each command, such as \
                 {name}(git diff:*)"
            ),
        });
    }
    Ok((words, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rule, String> {
        Rule::parse(text, Level::Session)
    }

    fn words(text: &str) -> (Vec<String>, bool) {
        match parse(text).unwrap().specifier {
            Specifier::Command { words, prefix } | Specifier::Text { words, prefix, .. } => (words, prefix),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_classes_or_tools() {
        assert_eq!(parse("Write").unwrap().name, Name::Class(RuleClass::Write));
        assert_eq!(parse(" Fetch ").unwrap().name, Name::Class(RuleClass::Network));
        for tool in ["write", "Edit", "Bash", "mcp__fs__write_file", "deploy", "Deploy"] {
            assert_eq!(parse(tool).unwrap().name, Name::Tool(tool.into()));
        }
    }

    #[test]
    fn commands_are_words() {
        assert_eq!(words("Shell(git diff:*)"), (vec!["git".into(), "diff".into()], true));
        assert_eq!(words("Shell(git  diff)"), (vec!["git".into(), "diff".into()], false));
        assert_eq!(words("Shell(git commit -m 'a b; c')").0.len(), 4);
        assert_eq!(words("Bash(npm run test:unit)"), (vec!["npm".into(), "run".into(), "test:unit".into()], false));
        assert_eq!(words("Shell(f \"(x)\")").0, ["f", "(x)"]);
        assert_eq!(words("deploy(to prod:*)"), (vec!["to".into(), "prod".into()], true));
    }

    #[test]
    fn what_is_malformed_says_so() {
        for (rule, part) in [
            ("", "no name"),
            ("(x)", "no name"),
            ("Shell(git push", "closing bracket"),
            ("Shell(git push) ; x", "closing bracket"),
            ("Shell()", "write Shell for every such call"),
            ("Shell(:*)", "write Shell for every command"),
            ("Shell(*)", "not one simple command"),
            ("Shell(git *)", "write Shell(git:*)"),
            ("Shell(a && b)", "one rule for each command"),
            ("Shell(a; b)", "one rule for each command"),
            ("Shell(a > b)", "one rule for each command"),
            ("Shell(X=1 a)", "one rule for each command"),
            ("Shell(a $X)", "one rule for each command"),
            ("Shell(a 'b)", "one rule for each command"),
            ("Shell(a $(b))", "one rule for each command"),
            ("Shell(path:src)", "a path goes with Write"),
            ("Write(src/**)", "write Write(path:src/**)"),
            ("Write(path:)", "the path is empty"),
            ("Write(path:../x)", "`..`"),
            ("Write(domain:x.org)", "takes a path"),
            ("Edit(src/**)", "write Edit(path:src/**)"),
            ("Fetch(example.org)", "write Fetch(domain:example.org)"),
            ("Fetch(domain:https://example.org)", "a domain is no URL"),
            ("Dispatch(x)", "takes nothing in brackets"),
            ("Tests(pytest)", "takes nothing in brackets"),
            ("mcp__fs__*", "no wildcards"),
            ("Shell git push", "is in no name"),
            ("Shel(git push)", "did you mean Shell?"),
            ("Wirte", "did you mean Write?"),
        ] {
            let message = parse(rule).expect_err(rule);
            assert!(message.contains(part), "{rule}: {message}");
        }
    }
}
