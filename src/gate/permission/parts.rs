//! The parts of a call that rules are about: a simple command, a file, a place, or the call as a whole.

use std::path::PathBuf;

use super::super::call::{Inspection, quoted};
use super::super::denial::GateCode;
use super::super::path::ResolvedPath;
use super::super::place::Place;
use super::super::shell::{Effect, Reason, ReasonCode, Redirect, SimpleCommand, Span};
use super::super::tool_class::ToolClass;

/// A part of a call. Each is judged for itself, and the call as the worst of them.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// The call, where nothing finer is known of it.
    Call,
    /// A file that it names. `path`: `None` where nobody knows where that leads.
    File { written: &'a str, path: Option<&'a ResolvedPath> },
    /// Files that it may name and that are not found.
    UnclearFiles,
    /// A place that it names.
    Place(&'a Place),
    /// A simple command. `harmless`: it is proven read-only.
    Command { command: &'a SimpleCommand, harmless: bool },
    /// A redirection that writes. `path`: where it leads for certain.
    Redirect { target: Option<&'a str>, path: Option<ResolvedPath>, possible: Vec<ResolvedPath> },
    /// A reason that belongs to no command that a rule could be about.
    Loose(&'a Reason),
    /// Something beside the commands of a shell call.
    Problem { code: GateCode, parameter: &'a str },
}

/// Where a command of a text may run: relative paths are taken from there.
#[derive(Debug)]
pub(super) struct Folders {
    /// The one where it runs for certain.
    certain: Option<PathBuf>,
    /// All that are known.
    possible: Vec<PathBuf>,
}

impl Folders {
    fn of(found: &Inspection) -> Self {
        let mut possible: Vec<PathBuf> = found.directory.iter().cloned().collect();
        let mut moves = false;
        for command in found.commands.iter().flat_map(|judged| &judged.analysis.commands) {
            if !matches!(command.words.first().and_then(|word| word.text()), Some("cd" | "pushd" | "popd")) {
                continue;
            }
            moves = true;
            let targets = command.words[1..].iter().filter_map(|word| word.text());
            let from: Vec<PathBuf> = possible.clone();
            for target in targets {
                possible.extend(from.iter().map(|folder| folder.join(target)));
            }
            // A loop of them could go on for ever.
            possible.truncate(64);
        }
        Folders { certain: found.directory.clone().filter(|_| !moves), possible }
    }

    /// Where a path leads for certain.
    fn certain(&self, written: &str) -> Option<ResolvedPath> {
        if written.starts_with('/') {
            return ResolvedPath::new(written, "/".as_ref());
        }
        ResolvedPath::new(written, self.certain.as_deref()?)
    }

    /// Where it may lead.
    pub(super) fn possible(&self, written: &str) -> Vec<ResolvedPath> {
        self.possible.iter().filter_map(|folder| ResolvedPath::new(written, folder)).collect()
    }
}

/// The parts of a call, in the order in which they stand, and the folders in which its commands may run.
pub(super) fn parts(found: &Inspection) -> (Vec<Part<'_>>, Folders) {
    let folders = Folders::of(found);
    let mut parts = Vec::new();
    match found.class {
        ToolClass::Shell => {
            parts.extend(found.problems.iter().map(|(code, parameter)| Part::Problem { code: *code, parameter }));
            for judged in &found.commands {
                let analysis = &judged.analysis;
                command_parts(&analysis.commands, &analysis.reasons, &folders, &mut parts);
            }
        }
        ToolClass::Read | ToolClass::Write => {
            let files = &found.files;
            parts.extend(files.named.iter().map(|(written, path)| Part::File { written, path: path.as_ref() }));
            if files.unclear && found.class == ToolClass::Write {
                parts.push(Part::UnclearFiles);
            }
        }
        ToolClass::Network => parts.extend(found.places.iter().map(Part::Place)),
        _ => {}
    }
    if parts.is_empty() && found.class != ToolClass::Shell {
        parts.push(Part::Call);
    }
    (parts, folders)
}

fn command_parts<'a>(
    commands: &'a [SimpleCommand],
    reasons: &'a [Reason],
    folders: &Folders,
    parts: &mut Vec<Part<'a>>,
) {
    let owners: Vec<Vec<usize>> = reasons.iter().map(|reason| owners(reason, commands)).collect();
    for (index, command) in commands.iter().enumerate() {
        if !command.words.is_empty() {
            let harmless = !owners.iter().any(|owners| owners.contains(&index));
            parts.push(Part::Command { command, harmless });
        }
        for (redirect, target) in &command.redirects {
            if *redirect == Redirect::Write {
                let target = target.as_deref();
                parts.push(Part::Redirect {
                    target,
                    path: target.and_then(|target| folders.certain(target)),
                    possible: target.map(|target| folders.possible(target)).unwrap_or_default(),
                });
            }
        }
    }
    let is_loose = |(reason, owners): (&'a Reason, &Vec<usize>)| {
        (owners.is_empty() && reason.code != ReasonCode::RedirectWrites).then_some(Part::Loose(reason))
    };
    parts.extend(reasons.iter().zip(&owners).filter_map(is_loose));
}

/// The commands to which a reason belongs: the innermost in whose words it stands. None for what is not about a
/// command at all, so that no rule on a command lets it through.
fn owners(reason: &Reason, commands: &[SimpleCommand]) -> Vec<usize> {
    if !is_about_a_command(reason.code) {
        return Vec::new();
    }
    let inside = |outer: Span, inner: Span| outer.start <= inner.start && inner.end <= outer.end;
    let holds = |command: &SimpleCommand| {
        // Between the words stand redirections, in front of them assignments: they are not the command's.
        let begins = command.words.iter().any(|word| inside(word.span, Span { end: reason.span.start, ..reason.span }));
        let ends = command.words.iter().any(|word| inside(word.span, Span { start: reason.span.end, ..reason.span }));
        inside(command.span, reason.span) && begins && ends
    };
    let length = |command: &SimpleCommand| command.span.end - command.span.start;
    let holders = || commands.iter().enumerate().filter(|(_, command)| holds(command));
    let Some(innermost) = holders().map(|(_, command)| length(command)).min() else { return Vec::new() };
    holders().filter(|(_, command)| length(command) == innermost).map(|(index, _)| index).collect()
}

fn is_about_a_command(code: ReasonCode) -> bool {
    use ReasonCode::*;
    match code {
        TooLong | ControlCharacter | InvisibleCharacter | TooDeep | NotParsed | Background | RedirectWrites
        | SetsVariable | DynamicProgram | Shadowed | EvaluatesText => false,
        ProgramByPath | ChangesShell | UnknownProgram | UnknownSubcommand | UnknownOption | DynamicOption
        | ProgramWrites | ProgramNetwork | ProgramExecutes | Interactive | OptionWrites | OptionNetwork
        | OptionExecutes | OperandWrites | OperandNetwork | OperandExecutes | UnknownOperand | ScriptWrites
        | ScriptExecutes | ScriptNetwork | ScriptUnknown | RunsTests => true,
    }
}

/// Whether a reason says that there may be commands that were not seen.
pub(super) fn hides_commands(code: ReasonCode) -> bool {
    use ReasonCode::*;
    matches!(
        code,
        TooLong
            | ControlCharacter
            | InvisibleCharacter
            | TooDeep
            | NotParsed
            | DynamicProgram
            | Shadowed
            | EvaluatesText
    )
}

impl Part<'_> {
    /// Whether it is proven to do nothing but look.
    pub(super) fn is_harmless(&self, class: ToolClass) -> bool {
        match self {
            Part::Call | Part::File { .. } => class == ToolClass::Read,
            Part::Command { harmless, .. } => *harmless,
            _ => false,
        }
    }

    /// The part in words, for messages.
    pub(super) fn shown(&self, found: &Inspection) -> String {
        match self {
            Part::Call | Part::UnclearFiles => found.shown.clone(),
            Part::File { written, .. } => (*written).to_owned(),
            Part::Place(place) => place.written.clone(),
            Part::Command { command, .. } => {
                let word = |word: &super::super::shell::Word| match word.text() {
                    Some(text) => quoted(text),
                    None => word.raw.clone(),
                };
                command.words.iter().map(word).collect::<Vec<_>>().join(" ")
            }
            Part::Redirect { target, .. } => format!("> {}", target.unwrap_or("…")),
            Part::Loose(reason) if reason.subject.is_empty() => found.shown.clone(),
            Part::Loose(reason) => reason.subject.clone(),
            Part::Problem { parameter, .. } => (*parameter).to_owned(),
        }
    }

    /// The narrowest rule that lets this part through; `None` if every rule would let more through.
    pub(super) fn rule(&self, class: ToolClass) -> Option<String> {
        let file = |name: &str, path: Option<&ResolvedPath>| {
            let place = path?.only_place()?.to_str()?;
            let rule = format!("{name}(path:{})", super::super::path::escape(place));
            (!place.chars().any(char::is_control)).then_some(rule)
        };
        match self {
            Part::File { path, .. } => file(if class == ToolClass::Write { "Write" } else { "Read" }, *path),
            Part::Redirect { path, .. } => file("Write", path.as_ref()),
            Part::Place(place) => place.host.as_ref().map(|host| format!("Fetch(domain:{host})")),
            Part::Command { command, .. } => {
                let words: Option<Vec<_>> = command.words.iter().map(|word| word.text().map(quoted)).collect();
                let words = words?.join(" ");
                // A text that ends so would be read as a beginning.
                (!words.ends_with(":*") && !words.contains('\n')).then(|| format!("Shell({words})"))
            }
            Part::Call | Part::UnclearFiles | Part::Loose(_) | Part::Problem { .. } => None,
        }
    }

    /// The effect of a command that is not harmless.
    pub(super) fn effect(&self) -> Option<Effect> {
        match self {
            Part::Command { command, harmless: false } => Some(command.effect),
            _ => None,
        }
    }
}
