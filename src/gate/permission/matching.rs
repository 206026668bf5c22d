//! Which rules match which parts of a call.
//!
//! What lets through has to match for certain; what asks or denies matches what a part may be. Both read the same
//! words, but not in the same way: `git -C x push` is a `git push` to a rule that denies, and not to one that allows.

use serde_json::Value;

use super::super::call::{Inspection, ToolCall};
use super::super::path::ResolvedPath;
use super::super::place::Place;
use super::super::shell::{Effect, Redirect, SimpleCommand};
use super::super::tool_class::ToolClass;
use super::parts::{Folders, Part, hides_commands};
use super::rule::{Name, Rule, RuleClass, Specifier};

/// Whether a rule that asks or denies is about a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// That is known only when the call runs.
    Perhaps,
    Yes,
}

impl From<bool> for Match {
    fn from(matches: bool) -> Self {
        if matches { Match::Yes } else { Match::No }
    }
}

/// The call that the parts belong to.
pub(super) struct Context<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) found: &'a Inspection,
    pub(super) folders: &'a Folders,
}

impl Context<'_> {
    /// Whether a rule of this name is about calls like this one. `wide`: also if the name differs in its case.
    fn is_named(&self, name: &Name, wide: bool) -> bool {
        match name {
            Name::Tool(tool) if wide => tool.eq_ignore_ascii_case(&self.call.tool),
            Name::Tool(tool) => *tool == self.call.tool,
            Name::Class(class) => matches!(
                (class, self.found.class),
                (RuleClass::Read, ToolClass::Read)
                    | (RuleClass::Write, ToolClass::Write)
                    | (RuleClass::Shell, ToolClass::Shell)
                    | (RuleClass::Execute, ToolClass::Shell | ToolClass::Execute)
                    | (RuleClass::Network, ToolClass::Network)
                    | (RuleClass::Dispatch, ToolClass::Dispatch)
                    | (RuleClass::AskUser, ToolClass::AskUser)
            ),
        }
    }

    /// The one text that the call is made with, and all texts.
    fn texts(&self) -> (Option<&str>, Vec<&str>) {
        let arguments = self.call.arguments.iter().flatten();
        let values: Vec<&Value> = arguments.map(|(_, value)| value).filter(|value| !value.is_null()).collect();
        let texts: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
        let only = match (values.as_slice(), texts.as_slice()) {
            ([_], [text]) => Some(*text),
            _ => None,
        };
        (only, texts)
    }
}

/// Whether a rule lets a part through.
pub(super) fn permits(rule: &Rule, part: &Part<'_>, context: &Context<'_>) -> bool {
    let cwd = &context.call.cwd;
    let named = context.is_named(&rule.name, false);
    let specifier = &rule.specifier;
    if let Part::Redirect { path, .. } = part {
        // It writes, whatever command it stands behind.
        return rule.name == Name::Class(RuleClass::Write)
            && match specifier {
                Specifier::Anything => true,
                Specifier::Path(pattern) => path.as_ref().is_some_and(|path| pattern.covers(path, cwd)),
                _ => false,
            };
    }
    match (part, specifier) {
        (Part::Command { command, .. }, Specifier::Anything) if rule.name == Name::Class(RuleClass::Tests) => {
            command.effect == Effect::RunsTests
        }
        (_, Specifier::Anything) => named,
        (_, _) if !named => false,
        (
            Part::Command { command, .. },
            Specifier::Command { words, prefix } | Specifier::Text { words, prefix, .. },
        ) => {
            let have: Vec<Option<&str>> = command.words.iter().map(|word| word.text()).collect();
            !words.is_empty() && begins_with(&have, words, *prefix) == Match::Yes
        }
        (Part::File { path, .. }, Specifier::Path(pattern)) => path.is_some_and(|path| pattern.covers(path, cwd)),
        (Part::Place(place), Specifier::Place(pattern)) => pattern.covers(place),
        (Part::Call, Specifier::Text { text, prefix, .. }) => {
            context.texts().0.is_some_and(|have| is_text(have, text, *prefix))
        }
        _ => false,
    }
}

/// Whether a rule that asks or denies is about a part.
pub(super) fn concerns(rule: &Rule, part: &Part<'_>, context: &Context<'_>) -> Match {
    let named = context.is_named(&rule.name, true);
    let class = if let Name::Class(class) = &rule.name { Some(*class) } else { None };
    let cwd = &context.call.cwd;
    match (part, &rule.specifier) {
        (Part::Command { command, .. }, Specifier::Anything) => {
            let by_effect = match class {
                Some(RuleClass::Write) => part.effect() == Some(Effect::Writes),
                Some(RuleClass::Network) => part.effect() == Some(Effect::Network),
                Some(RuleClass::Tests) => command.effect == Effect::RunsTests,
                _ => false,
            };
            (named || by_effect).into()
        }
        (Part::Redirect { .. }, Specifier::Anything) => (named || class == Some(RuleClass::Write)).into(),
        (_, Specifier::Anything) => named.into(),
        (
            Part::Command { command, .. },
            Specifier::Command { words, prefix } | Specifier::Text { words, prefix, .. },
        ) => {
            if named && !words.is_empty() {
                runs(command, words, *prefix)
            } else {
                Match::No
            }
        }
        (Part::Loose(reason), Specifier::Command { .. } | Specifier::Text { .. }) => {
            if named && hides_commands(reason.code) { Match::Perhaps } else { Match::No }
        }
        (Part::Command { command, harmless }, Specifier::Path(pattern)) => {
            let touches =
                |written: &str| context.folders.possible(written).iter().any(|path| pattern.touches(path, cwd));
            let reads = class == Some(RuleClass::Read)
                && (operands(command).any(touches) || read_redirects(command).any(touches));
            let writes = class == Some(RuleClass::Write) && !harmless && operands(command).any(touches);
            (reads || writes).into()
        }
        (Part::Redirect { target, possible, .. }, Specifier::Path(pattern)) if class == Some(RuleClass::Write) => {
            match target {
                None => Match::Perhaps,
                Some(_) => possible.iter().any(|path| pattern.touches(path, cwd)).into(),
            }
        }
        (Part::Command { command, .. }, Specifier::Place(pattern)) => {
            let may_be_a_place = |text: &&str| text.contains("://") || part.effect() == Some(Effect::Network);
            let touches = |text: &str| pattern.touches(&Place::new(text));
            (class == Some(RuleClass::Network) && operands(command).filter(may_be_a_place).any(touches)).into()
        }
        (_, _) if !named => Match::No,
        (Part::File { path, .. }, Specifier::Path(pattern)) => touched(*path, |path| pattern.touches(path, cwd)),
        (Part::UnclearFiles, Specifier::Path(_)) => Match::Perhaps,
        (Part::Call, Specifier::Path(_)) if context.found.class == ToolClass::Write => Match::Perhaps,
        (Part::Place(place), Specifier::Place(pattern)) => pattern.touches(place).into(),
        (Part::Call, Specifier::Place(_)) => Match::Perhaps,
        (_, Specifier::Text { text, prefix, .. }) => {
            context.texts().1.iter().any(|have| is_text(have.trim_start(), text, *prefix)).into()
        }
        (Part::Call, Specifier::Path(pattern)) => {
            // A tool of which nothing is known: any of its texts may be the file.
            let paths = context.texts().1.into_iter().filter_map(|text| ResolvedPath::new(text, &context.call.root));
            paths.into_iter().any(|path| pattern.touches(&path, cwd)).into()
        }
        _ => Match::No,
    }
}

fn touched(path: Option<&ResolvedPath>, touches: impl Fn(&ResolvedPath) -> bool) -> Match {
    match path {
        Some(path) => touches(path).into(),
        None => Match::Perhaps,
    }
}

fn is_text(have: &str, text: &str, prefix: bool) -> bool {
    if prefix { have.starts_with(text) } else { have == text }
}

/// Whether words begin with those of a rule, or are those.
fn begins_with(have: &[Option<&str>], words: &[String], prefix: bool) -> Match {
    for (index, word) in words.iter().enumerate() {
        match have.get(index) {
            // A word that is known only when it runs can become no word, this one, or several.
            Some(None) => return Match::Perhaps,
            Some(Some(text)) if text == word => {}
            _ => return Match::No,
        }
    }
    match have.get(words.len()) {
        None => Match::Yes,
        Some(_) if prefix => Match::Yes,
        Some(None) => Match::Perhaps,
        Some(Some(_)) => Match::No,
    }
}

/// Whether a command runs what a rule names: by its words, by what it does without the options in front, by its program
/// under another path, or as a wrapper of which nothing is known.
fn runs(command: &SimpleCommand, words: &[String], prefix: bool) -> Match {
    let raw: Vec<Option<&str>> = command.words.iter().map(|word| word.text()).collect();
    let subject: Vec<Option<&str>> = command.subject.iter().map(Option::as_deref).collect();
    let bare = |have: &[Option<&'_ str>]| -> Vec<Option<String>> {
        let mut have: Vec<Option<String>> = have.iter().map(|word| word.map(str::to_owned)).collect();
        if let Some(Some(program)) = have.first_mut() {
            *program = program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        have
    };
    let mut best = Match::No;
    for have in [&raw, &subject] {
        let bare = bare(have);
        let bare: Vec<Option<&str>> = bare.iter().map(Option::as_deref).collect();
        best = best.max(begins_with(have, words, prefix)).max(begins_with(&bare, words, prefix));
    }
    if best == Match::No && command.effect != Effect::ReadOnly && behind_options(&bare(&raw), words, prefix) {
        best = Match::Yes;
    }
    if best == Match::No && matches!(command.effect, Effect::Unknown | Effect::Executes) {
        // What an unknown program runs stands in its words.
        let later = (1..raw.len()).map(|start| begins_with(&raw[start..], words, prefix));
        best = later.filter(|found| *found == Match::Yes).max().unwrap_or(Match::No);
    }
    best
}

/// Whether a program is told what a rule names behind options of its own, each of which may take a word: what options a
/// program has is not always known.
fn behind_options(have: &[Option<String>], words: &[String], prefix: bool) -> bool {
    let (Some((program, told)), Some((Some(runs), rest))) = (words.split_first(), have.split_first()) else {
        return false;
    };
    if program != runs || told.is_empty() {
        return false;
    }
    let rest: Vec<Option<&str>> = rest.iter().map(Option::as_deref).collect();
    let is_option =
        |position: usize| rest.get(position).is_some_and(|word| word.is_some_and(|word| word.starts_with('-')));
    let mut reached = vec![false; rest.len() + 2];
    reached[0] = true;
    for position in 0..rest.len() {
        if !reached[position] {
            continue;
        }
        if begins_with(&rest[position..], told, prefix) == Match::Yes {
            return true;
        }
        if is_option(position) {
            reached[position + 1] = true;
            reached[position + 2] |= !is_option(position + 1);
        }
    }
    false
}

/// The words of a command that may name something, values of options included.
fn operands(command: &SimpleCommand) -> impl Iterator<Item = &str> {
    let words = command.words.iter().skip(1).filter_map(|word| word.text());
    words.flat_map(|word| {
        let value = if word.starts_with('-') || word.contains('=') { word.split_once('=') } else { None };
        [Some(word), value.map(|(_, value)| value)].into_iter().flatten()
    })
}

fn read_redirects(command: &SimpleCommand) -> impl Iterator<Item = &str> {
    let reads = command.redirects.iter().filter(|(redirect, _)| *redirect == Redirect::Read);
    reads.filter_map(|(_, target)| target.as_deref())
}
