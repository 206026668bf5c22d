//! Modes as gates: a review only looks and runs tests, a plan only looks and is written down.

use std::path::{Path, PathBuf};

use super::call::{Analyzer, Inspection, Judged, ToolCall};
use super::decision::Decision;
use super::denial::{Denial, DenialCode, GateCode, Language, Limits, Particulars};
use super::hook::Gate;
use super::path::{ResolvedPath, physical};
use super::shell::{Effect, ReasonCode};
use super::tool_class::ToolClass;

/// Lets a reviewer look and run the project's tests, and nothing else.
///
/// ```
/// use hookwright::gate::{Answer, Gate, ReviewGate, ToolCall};
/// use serde_json::json;
/// let gate = ReviewGate::default();
/// let decide = |tool: &str, arguments: serde_json::Value| {
///     gate.decide(&ToolCall::new(tool, arguments.as_object().unwrap())).answer
/// };
/// assert_eq!(decide("read_file", json!({"path": "a"})), Answer::Allow);
/// assert_eq!(decide("WRITE", json!({"path": "a"})), Answer::Deny);
/// assert_eq!(decide("mcp__fs__write_file", json!({})), Answer::Deny);
/// ```
#[derive(Clone)]
pub struct ReviewGate {
    /// The mode of the session in which it judges; `None` for always.
    pub when: Option<String>,
    /// Whether tests may be run.
    pub tests: bool,
    /// The language of its refusals.
    pub language: Language,
    /// What judges shell commands.
    pub analyzer: Analyzer,
}

impl Default for ReviewGate {
    fn default() -> Self {
        ReviewGate { when: None, tests: true, language: Language::En, analyzer: Analyzer::default() }
    }
}

impl Gate for ReviewGate {
    fn decide(&self, call: &ToolCall) -> Decision {
        if !applies(self.when.as_deref(), call) {
            return Decision::allow();
        }
        let limits = if self.tests { Limits::Review } else { Limits::ReviewWithoutTests };
        look_only(call, &self.analyzer, self.tests, &Refusal { call, language: self.language, limits })
    }
}

/// Lets a planner look, and write the plan down in one file.
///
/// ```
/// use hookwright::gate::{Answer, Gate, PlanGate, ToolCall};
/// use serde_json::json;
/// let gate = PlanGate { plan_file: Some("PLAN.md".into()), ..PlanGate::default() };
/// let decide = |tool: &str, arguments: serde_json::Value| {
///     gate.decide(&ToolCall::new(tool, arguments.as_object().unwrap())).answer
/// };
/// assert_eq!(decide("write_file", json!({"path": "PLAN.md", "content": "1. look"})), Answer::Allow);
/// assert_eq!(decide("write_file", json!({"path": "src/main.rs", "content": ""})), Answer::Deny);
/// ```
#[derive(Clone, Default)]
pub struct PlanGate {
    /// The file that the plan is written to; relative to the working directory of the session. `None`: none.
    pub plan_file: Option<PathBuf>,
    /// The mode of the session in which it judges; `None` for always.
    pub when: Option<String>,
    /// The language of its refusals.
    pub language: Language,
    /// What judges shell commands.
    pub analyzer: Analyzer,
}

impl Gate for PlanGate {
    fn decide(&self, call: &ToolCall) -> Decision {
        if !applies(self.when.as_deref(), call) {
            return Decision::allow();
        }
        let limits = if self.plan_file.is_some() { Limits::PlanFile } else { Limits::Plan };
        let refusal = Refusal { call, language: self.language, limits };
        let Some(plan_file) = &self.plan_file else { return look_only(call, &self.analyzer, false, &refusal) };
        match Inspection::of(call, &self.analyzer) {
            Some(found) if found.class == ToolClass::Write => write_plan(call, &found, plan_file, &refusal),
            _ => look_only(call, &self.analyzer, false, &refusal),
        }
    }
}

/// Whether a gate that is tied to a mode judges the call.
fn applies(when: Option<&str>, call: &ToolCall) -> bool {
    when.is_none_or(|mode| call.mode.as_deref() == Some(mode))
}

/// What refusals of one gate about one call have in common.
struct Refusal<'a> {
    call: &'a ToolCall,
    language: Language,
    limits: Limits,
}

impl Refusal<'_> {
    fn of(&self, code: impl Into<DenialCode>, particulars: &Particulars<'_>) -> Decision {
        Decision::deny(Denial::new(code, &self.call.tool, self.language, self.limits, particulars))
    }
}

fn look_only(call: &ToolCall, analyzer: &Analyzer, tests: bool, refusal: &Refusal<'_>) -> Decision {
    let Some(found) = Inspection::of(call, analyzer) else {
        return refusal.of(GateCode::Arguments, &Particulars::default());
    };
    let code = match found.class {
        ToolClass::Read => return Decision::allow(),
        ToolClass::Shell => return shell(&found, tests, refusal),
        ToolClass::Write => GateCode::Write,
        ToolClass::Execute => GateCode::Execute,
        ToolClass::Network => GateCode::Network,
        ToolClass::Dispatch => GateCode::Dispatch,
        ToolClass::AskUser => GateCode::AskUser,
        ToolClass::Unknown => GateCode::UnknownTool,
    };
    let shown = (found.shown != call.tool).then_some(found.shown.as_str());
    refusal.of(code, &Particulars { subject: &call.tool, command: shown, ..Particulars::default() })
}

fn shell(found: &Inspection, tests: bool, refusal: &Refusal<'_>) -> Decision {
    if let Some((code, parameter)) = found.problems.first() {
        let command = found.commands.first().map(|command| command.text.as_str());
        return refusal.of(*code, &Particulars { subject: parameter, command, ..Particulars::default() });
    }
    let allowed = if tests { Effect::RunsTests } else { Effect::ReadOnly };
    if let Some(command) = found.commands.iter().find(|command| command.analysis.effect > allowed) {
        return command_refused(command, refusal);
    }
    let mut decision = Decision::allow();
    for requirement in found.commands.iter().flat_map(|command| &command.analysis.requires) {
        if !decision.requires.contains(requirement) {
            decision.requires.push(*requirement);
        }
    }
    decision
}

fn command_refused(command: &Judged, refusal: &Refusal<'_>) -> Decision {
    match command.worst() {
        Some(reason) => refusal.of(
            reason.code,
            &Particulars {
                subject: &reason.subject,
                command: Some(&command.text),
                span: Some(reason.span),
                ..Particulars::default()
            },
        ),
        None => {
            refusal.of(ReasonCode::NotParsed, &Particulars { command: Some(&command.text), ..Particulars::default() })
        }
    }
}

/// Whether a writing call writes the plan file and nothing else.
fn write_plan(call: &ToolCall, found: &Inspection, plan_file: &Path, refusal: &Refusal<'_>) -> Decision {
    let shown = plan_file.to_string_lossy();
    let particulars = |subject| Particulars { subject, allowed: &shown, ..Particulars::default() };
    let unclear = || refusal.of(GateCode::UnclearPath, &particulars(""));
    if found.files.unclear || found.files.named.is_empty() {
        return unclear();
    }
    // The folder may be reached through links. The file itself may be none: then it would be another file.
    let wanted = call.cwd.join(plan_file);
    let place = wanted.parent().zip(wanted.file_name()).and_then(|(folder, name)| Some(physical(folder)?.join(name)));
    let Some(place) = place.filter(|place| !place.is_symlink()) else { return unclear() };
    for (written, path) in &found.files.named {
        if path.as_ref().and_then(ResolvedPath::only_place) != Some(place.as_path()) {
            return refusal.of(GateCode::NotThePlanFile, &particulars(written));
        }
    }
    Decision::allow()
}
