//! From the text of a table to programs, with every mistake in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use super::super::analysis::Effect;
use super::super::program::Handler;
use super::program::{Arity, Kind, Meaning, Operands, OptionRule, Options, Program, When};
use super::source::{GroupSource, OptionLists, OptionSource, PROGRAM_KEYS, ProgramSource};
use crate::suggest::did_you_mean;

/// What is wrong with a command table: every mistake in it, one a line, with file, program, key and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", problems.join("\n"))]
pub struct TableError {
    /// The mistakes, in the order of the file.
    pub problems: Vec<String>,
}

/// A compiled file.
pub(super) type Programs = HashMap<Box<str>, Arc<Program>>;

/// Compiles the text of a table; `origin` names it in messages.
pub(super) fn compile(text: &str, origin: &str) -> Result<Programs, TableError> {
    let mut compiler = Compiler { origin, problems: Vec::new(), groups: BTreeMap::new() };
    let programs = compiler.file(text);
    if compiler.problems.is_empty() { Ok(programs) } else { Err(TableError { problems: compiler.problems }) }
}

struct Compiler<'a> {
    origin: &'a str,
    problems: Vec<String>,
    groups: BTreeMap<String, GroupSource>,
}

impl Compiler<'_> {
    fn problem(&mut self, place: &str, message: impl std::fmt::Display) {
        let separator = if place.is_empty() { "" } else { ": " };
        self.problems.push(format!("{}{separator}{place}: {message}", self.origin));
    }

    fn file(&mut self, text: &str) -> Programs {
        let mut programs = Programs::new();
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                self.problem("", format!("this is not TOML: {}", error.to_string().trim_end()));
                return programs;
            }
        };
        let mut sources = Vec::new();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("program", toml::Value::Array(entries)) => sources = entries,
                ("program", _) => self.problem("program", "write each program as `[[program]]`"),
                ("group", toml::Value::Table(groups)) => self.read_groups(groups),
                (other, _) => {
                    let hint = suggestion(other, ["program", "group"]);
                    self.problem(other, format!("unknown key{hint}; a table holds `[[program]]` and `[group.NAME]`"));
                }
            }
        }
        for (index, mut entry) in sources.into_iter().enumerate() {
            let names: Vec<&str> = entry
                .get("names")
                .and_then(toml::Value::as_array)
                .map(|names| names.iter().filter_map(toml::Value::as_str).collect())
                .unwrap_or_default();
            let place =
                names.first().map_or_else(|| format!("program {}", index + 1), |name| format!("program `{name}`"));
            self.take_unknown_keys(&mut entry, &place);
            let source = match ProgramSource::deserialize(entry) {
                Ok(source) => source,
                Err(error) => {
                    self.problem(&place, error.to_string().trim_end().replace('\n', " "));
                    continue;
                }
            };
            if source.names.is_empty() {
                self.problem(&place, "`names` is missing; list the names that the program is called by");
            }
            for name in &source.names {
                if name.is_empty() || name.contains(['/', ' ']) {
                    self.problem(&place, format!("`{name}` is no name of a program; write it without path and blanks"));
                }
            }
            let program = Arc::new(self.program(source, &place, true));
            for name in &program.names {
                if programs.insert(name.as_str().into(), Arc::clone(&program)).is_some() {
                    self.problem(&place, format!("`{name}` is defined twice in this file; merge the two"));
                }
            }
        }
        programs
    }

    fn read_groups(&mut self, groups: toml::Table) {
        for (name, value) in groups {
            match GroupSource::deserialize(value) {
                Ok(group) => {
                    self.groups.insert(name, group);
                }
                Err(error) => self.problem(&format!("group `{name}`"), error.to_string().trim_end().replace('\n', " ")),
            }
        }
    }

    /// Names unknown keys and takes them out: reading the structure would stop at the first.
    fn take_unknown_keys(&mut self, entry: &mut toml::Value, place: &str) {
        let Some(table) = entry.as_table_mut() else { return };
        table.retain(|key, _| {
            let key: &str = key;
            let known = PROGRAM_KEYS.contains(&key);
            if !known {
                let hint = suggestion(key, PROGRAM_KEYS);
                self.problem(place, format!("unknown key `{key}`{hint}"));
            }
            known
        });
    }

    fn program(&mut self, mut source: ProgramSource, place: &str, top: bool) -> Program {
        let mut options = Options { harmless: true, ..Options::default() };
        let mut choices = source.choices.clone();
        let mut alone = source.alone.clone();
        for name in std::mem::take(&mut source.include) {
            let Some(group) = self.groups.get(&name).cloned() else {
                let hint = suggestion(&name, self.groups.keys().map(String::as_str));
                self.problem(place, format!("include: there is no group `{name}`{hint}"));
                continue;
            };
            self.options(&group.options, &mut options, place);
            choices = format!("{choices} {}", group.choices);
            alone = format!("{alone} {}", group.alone);
            for (name, subcommand) in group.subcommand {
                source.subcommand.entry(name).or_insert(subcommand);
            }
        }
        self.options(&source.options, &mut options, place);
        options.letters = letters(&options.rules);
        options.harmless = options.rules.values().all(|rule| match rule.meaning {
            Meaning::Safe => true,
            Meaning::Harmful(_) => false,
            Meaning::Checked(kind) => kind.is_harmless(),
        });
        if source.abbreviations && source.any_options {
            self.problem(
                place,
                "`abbreviations` says that the list of options is complete, `any_options` that there is none; take one",
            );
        }
        if source.any_options && !options.harmless {
            self.problem(place, "`any_options` says that no option is harmful, but one is listed; take one");
        }
        let operands = match &source.operands {
            Some(operands) => self.operands(operands, place),
            None => Operands { kinds: vec![Kind::Text], repeats: true },
        };
        let choices = words(&choices);
        if operands.kinds.contains(&Kind::Choice) && choices.is_empty() {
            self.problem(place, "operands of kind `choice` need `choices`");
        }
        let handler = source.handler.as_deref().and_then(|name| {
            let handler = Handler::from_name(name);
            if handler.is_none() {
                let hint = suggestion(name, Handler::NAMES.iter().map(|(name, _)| *name));
                self.problem(place, format!("handler: there is no `{name}`{hint}"));
            }
            handler
        });
        if top && source.same_as.is_some() {
            self.problem(place, "`same_as` is for sub-commands; add the name to `names` of the other program");
        }
        let when = source.when.iter().map(|when| self.when(when, &options, place)).collect();
        let after_dashes = source
            .after_dashes
            .take()
            .map(|rest| Box::new(self.program(*rest, &format!("{place}, after_dashes"), false)));
        let subcommands = self.subcommands(std::mem::take(&mut source.subcommand), place);
        if let Some(name) = &source.default_subcommand
            && subcommands.get(name.as_str()).is_none_or(|found| found.same_as.is_some())
        {
            let hint = suggestion(name, subcommands.keys().map(|name| &**name));
            self.problem(
                place,
                format!("default_subcommand: there is no sub-command `{name}` with rules of its own{hint}"),
            );
        }
        Program {
            names: source.names,
            style: source.style.unwrap_or_default(),
            effect: source.effect.unwrap_or(Effect::ReadOnly),
            requires: source.requires,
            interactive: source.interactive,
            any_options: source.any_options,
            abbreviations: source.abbreviations,
            alone: words(&alone),
            operands,
            operands_given: source.operands.is_some(),
            choices,
            handler,
            same_as: source.same_as.map(Into::into),
            options,
            when,
            subcommands,
            default_subcommand: source.default_subcommand.map(Into::into),
            after_dashes,
            examples: source.examples,
            refused: source.refused,
        }
    }

    fn subcommands(&mut self, sources: BTreeMap<String, ProgramSource>, place: &str) -> Programs {
        let mut subcommands = Programs::new();
        for (name, source) in sources {
            let place = format!("{place}, sub-command `{name}`");
            let program = Arc::new(self.program(source, &place, false));
            for alias in std::iter::once(&name).chain(&program.names) {
                if subcommands.insert(alias.as_str().into(), Arc::clone(&program)).is_some() {
                    self.problem(&place, format!("the name `{alias}` is taken by another sub-command"));
                }
            }
        }
        subcommands
    }

    fn when(&mut self, source: &super::source::WhenSource, options: &Options, place: &str) -> When {
        let (given, without) = (words(&source.options), words(&source.without));
        for option in given.iter().chain(&without) {
            if !options.rules.contains_key(option) {
                let hint = suggestion(option, options.rules.keys().map(|name| &**name));
                self.problem(place, format!("when: `{option}` is not in the list of options{hint}"));
            }
        }
        When {
            options: given,
            without,
            effect: source.effect,
            operands: source.operands.as_deref().map(|operands| self.operands(operands, place)),
        }
    }

    fn operands(&mut self, text: &str, place: &str) -> Operands {
        let mut operands = Operands { kinds: Vec::new(), repeats: false };
        let names: Vec<&str> = text.split_whitespace().collect();
        for (index, name) in names.iter().enumerate() {
            let (name, repeats) = name.strip_suffix('*').map_or((*name, false), |name| (name, true));
            if repeats && index + 1 < names.len() {
                self.problem(place, format!("operands: only the last may be repeated, not `{name}*`"));
            }
            operands.repeats = repeats;
            match Kind::from_name(name) {
                Some(kind) => operands.kinds.push(kind),
                None => {
                    let hint = suggestion(name, Kind::NAMES.iter().map(|(name, _)| *name));
                    self.problem(place, format!("operands: there is no kind `{name}`{hint}"));
                }
            }
        }
        operands
    }

    fn options(&mut self, source: &OptionSource, into: &mut Options, place: &str) {
        let safe = OptionLists {
            flags: source.flags.clone(),
            values: source.values.clone(),
            optional: source.optional.clone(),
            numbers: source.numbers.clone(),
            next: source.next.clone(),
        };
        self.lists(&safe, Meaning::Safe, into, place);
        self.lists(&source.writes, Meaning::Harmful(Effect::Writes), into, place);
        self.lists(&source.network, Meaning::Harmful(Effect::Network), into, place);
        self.lists(&source.executes, Meaning::Harmful(Effect::Executes), into, place);
        for (names, kind) in &source.checked {
            match Kind::from_name(kind) {
                Some(kind) => self.list(names, Arity::Required, Meaning::Checked(kind), into, place),
                None => {
                    let hint = suggestion(kind, Kind::NAMES.iter().map(|(name, _)| *name));
                    self.problem(place, format!("options.checked: there is no kind `{kind}`{hint}"));
                }
            }
        }
    }

    fn lists(&mut self, lists: &OptionLists, meaning: Meaning, into: &mut Options, place: &str) {
        self.list(&lists.flags, Arity::Flag, meaning, into, place);
        self.list(&lists.values, Arity::Required, meaning, into, place);
        self.list(&lists.optional, Arity::Optional, meaning, into, place);
        self.list(&lists.numbers, Arity::Number, meaning, into, place);
        self.list(&lists.next, Arity::Next, meaning, into, place);
    }

    fn list(&mut self, names: &str, arity: Arity, meaning: Meaning, into: &mut Options, place: &str) {
        for name in names.split_whitespace() {
            let (name, arity) = name.strip_suffix("[=]").map_or((name, arity), |name| (name, Arity::Optional));
            let rule = OptionRule { arity, meaning };
            if name == "-NUMBER" {
                into.number = true;
            } else if let Some(rest) = name.strip_prefix("--[no-]") {
                self.add(&format!("--{rest}"), rule, into, place);
                self.add(&format!("--no-{rest}"), rule, into, place);
            } else if name.starts_with(['-', '+']) {
                self.add(name, rule, into, place);
            } else {
                self.problem(place, format!("options: `{name}` is no option; write it with its dashes"));
            }
        }
    }

    fn add(&mut self, name: &str, rule: OptionRule, into: &mut Options, place: &str) {
        match into.rules.insert(name.into(), rule) {
            Some(before) if before.meaning != rule.meaning => {
                self.problem(place, format!("options: `{name}` is in two lists that contradict; keep it in one"));
            }
            _ => {}
        }
    }
}

fn letters(rules: &HashMap<Box<str>, OptionRule>) -> HashMap<char, OptionRule> {
    rules
        .iter()
        .filter_map(|(name, rule)| {
            let mut letters = name.strip_prefix('-')?.chars();
            let letter = letters.next()?;
            (letters.next().is_none() && letter != '-').then_some((letter, *rule))
        })
        .collect()
}

fn words(text: &str) -> Vec<Box<str>> {
    text.split_whitespace().map(Into::into).collect()
}

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    did_you_mean(name, known).map(|known| format!("; did you mean `{known}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        compile(text, "my.toml").err().map(|error| error.problems).unwrap_or_default()
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let text = "
            [[program]]
            names = ['one']
            efect = 'writes'
            [[program]]
            names = ['two']
            operands = 'fil*'
            options.flags = 'x --[no-]y'
            [[program]]
            names = ['three']
            effect = 'reads'
            [[program]]
            names = ['four', '/bin/five']
            default_subcommand = 'lst'
            subcommand.list.any_options = true
        ";
        let expected = [
            "my.toml: program `one`: unknown key `efect`; did you mean `effect`?",
            "my.toml: program `two`: options: `x` is no option; write it with its dashes",
            "my.toml: program `two`: operands: there is no kind `fil`; did you mean `file`?",
            "my.toml: program `four`: `/bin/five` is no name of a program; write it without path and blanks",
            "my.toml: program `four`: default_subcommand: there is no sub-command `lst` with rules of its own; did you mean `list`?",
        ];
        let problems = problems(text);
        for expected in expected {
            assert!(problems.iter().any(|problem| problem == expected), "{expected}\n{}", problems.join("\n"));
        }
        assert!(problems.iter().any(|problem| problem.contains("program `three`") && problem.contains("reads")));
        assert_eq!(problems.len(), 6, "{}", problems.join("\n"));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let both = "[[program]]\nnames = ['a']\noptions.flags = '-x'\noptions.writes.flags = '-x'\n";
        assert_eq!(
            problems(both),
            ["my.toml: program `a`: options: `-x` is in two lists that contradict; keep it in one"]
        );
        let any = "[[program]]\nnames = ['a']\nany_options = true\noptions.writes.flags = '-x'\n";
        assert_eq!(problems(any).len(), 1);
        let twice = "[[program]]\nnames = ['a']\n[[program]]\nnames = ['a']\n";
        assert_eq!(problems(twice), ["my.toml: program `a`: `a` is defined twice in this file; merge the two"]);
        let when = "[[program]]\nnames = ['a']\noptions.flags = '--list'\nwhen = [{ options = '--lst' }]\n";
        assert_eq!(
            problems(when),
            ["my.toml: program `a`: when: `--lst` is not in the list of options; did you mean `--list`?"]
        );
        let group = "[group.common]\n[[program]]\nnames = ['a']\ninclude = ['comon']\n";
        assert_eq!(
            problems(group),
            ["my.toml: program `a`: include: there is no group `comon`; did you mean `common`?"]
        );
    }

    #[test]
    fn text_that_is_no_toml_is_refused_with_its_place() {
        let problems = problems("[[program\n");
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("my.toml: this is not TOML: ") && problems[0].contains("line 1"),
            "{problems:?}"
        );
    }

    #[test]
    fn keys_of_parts_are_checked_too() {
        let text = "[[program]]\nnames = ['a']\noptions.flag = '-x'\n";
        assert!(problems(text)[0].contains("unknown field `flag`"), "{:?}", problems(text));
    }
}
