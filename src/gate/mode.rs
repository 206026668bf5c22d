//! Modes as gates: a review only looks and runs tests, a plan only looks and is written down.

use std::path::{Path, PathBuf};

use super::call::{Analyzer, Inspection, Judged, ToolCall};
use super::decision::Decision;
use super::denial::{Denial, DenialCode, GateCode, Language, Limits, Particulars};
use super::hook::Gate;
use super::path::{ResolvedPath, physical};
use super::shell::{Effect, ReasonCode, Requirement};
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
    let mut decision = Decision { requires: vec![Requirement::ReadingEnvironment], ..Decision::allow() };
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use super::*;
    use crate::gate::shell::{Analysis, CommandTable, analyze};

    /// An analysis that knows two programs, as the table of programs does.
    fn analysis(command: &str) -> Analysis {
        let mut analysis = analyze(command, &CommandTable::default());
        match command {
            "git status" => {
                analysis.reasons.clear();
                analysis.effect = Effect::ReadOnly;
                analysis.requires = vec![Requirement::HardenedGit];
            }
            "pytest -q" => {
                analysis.reasons[0].code = ReasonCode::RunsTests;
                analysis.reasons[0].effect = Effect::RunsTests;
                analysis.effect = Effect::RunsTests;
            }
            _ => {}
        }
        analysis
    }

    fn call(tool: &str, arguments: Value) -> ToolCall {
        ToolCall::new(tool, arguments.as_object().unwrap()).cwd("/work")
    }

    fn code(gate: &dyn Gate, call: &ToolCall) -> &'static str {
        let decision = gate.decide(call);
        assert_eq!(decision.is_allowed(), decision.denial.is_none());
        decision.denial.map_or("allowed", |denial| {
            assert!(!denial.hint.is_empty());
            denial.code.as_str()
        })
    }

    fn review() -> ReviewGate {
        ReviewGate { analyzer: Analyzer::from_fn(analysis), ..ReviewGate::default() }
    }

    #[test]
    fn a_review_looks_runs_tests_and_does_nothing_else() {
        for (tool, arguments, expected) in [
            ("read_file", json!({"path": "a"}), "allowed"),
            ("Grep", json!({"pattern": "a"}), "allowed"),
            ("shell", json!({"command": "git status"}), "allowed"),
            ("shell", json!({"command": "pytest -q"}), "allowed"),
            ("shell", json!({"command": "frobnicate"}), "unknown_program"),
            ("shell", json!({"command": "git status", "script": "rm -r x"}), "program_writes"),
            ("shell", json!({"command": "git status > x"}), "redirect_writes"),
            ("shell", json!({"command": "> x"}), "redirect_writes"),
            ("shell", json!({}), "no_command"),
            ("shell", json!({"command": "git status", "run_in_background": true}), "detached"),
            ("Write", json!({"path": "a"}), "write"),
            ("WRITE", json!({"path": "a"}), "write"),
            ("apply_patch", json!({"patch": "x"}), "write"),
            ("NotebookEdit", json!({"notebook_path": "a"}), "write"),
            ("Task", json!({"prompt": "x"}), "dispatch"),
            ("SendMessage", json!({"to": "x"}), "dispatch"),
            ("schedule", json!({"at": "x"}), "dispatch"),
            ("sub_agent", json!({"action": "templates"}), "allowed"),
            ("sub_agent", json!({"action": "spawn"}), "dispatch"),
            ("AskUserQuestion", json!({"question": "x"}), "ask_user"),
            ("WebFetch", json!({"url": "https://x.org"}), "network"),
            ("eval", json!({"code": "1"}), "execute"),
            ("terminal_key", json!({"key": "x"}), "unknown_tool"),
            ("mcp__fs__write_file", json!({"path": "a"}), "unknown_tool"),
            ("mcp__fs__read_file", json!({"path": "a"}), "unknown_tool"),
        ] {
            assert_eq!(code(&review(), &call(tool, arguments.clone())), expected, "{tool} {arguments}");
        }
        assert_eq!(code(&review(), &call("mcp__fs__read_file", json!({})).effect("read")), "allowed");
        assert_eq!(code(&review(), &ToolCall { arguments: None, ..call("read_file", json!({})) }), "arguments");
        let git = review().decide(&call("shell", json!({"command": "git status"})));
        assert_eq!(git.requires, [Requirement::ReadingEnvironment, Requirement::HardenedGit]);
        let without_tests = ReviewGate { tests: false, ..review() };
        assert_eq!(code(&without_tests, &call("shell", json!({"command": "pytest -q"}))), "runs_tests");
    }

    #[test]
    fn a_gate_that_is_tied_to_a_mode_judges_in_that_mode_alone() {
        let gate = ReviewGate { when: Some("review".into()), ..review() };
        let write = call("write_file", json!({"path": "a"}));
        for (mode, expected) in [(None, "allowed"), (Some("plan"), "allowed"), (Some("review"), "write")] {
            assert_eq!(code(&gate, &ToolCall { mode: mode.map(str::to_owned), ..write.clone() }), expected);
        }
    }

    #[test]
    fn a_plan_is_written_to_its_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::create_dir(cwd.join("plans")).unwrap();
        std::fs::write(cwd.join("code.py"), "").unwrap();
        symlink("plans", cwd.join("link")).unwrap();
        symlink("../code.py", cwd.join("plans/trap.md")).unwrap();
        let gate = |plan_file: &str| PlanGate {
            plan_file: Some(plan_file.into()),
            analyzer: Analyzer::from_fn(analysis),
            ..PlanGate::default()
        };
        let patch = |files: &[&str]| {
            let parts: Vec<_> = files.iter().map(|file| format!("*** Add File: {file}\n+x\n")).collect();
            json!({"input": format!("*** Begin Patch\n{}*** End Patch", parts.concat())})
        };
        let absolute = cwd.join("plans/plan.md");
        for (plan, tool, arguments, expected) in [
            ("plans/plan.md", "write_file", json!({"path": "plans/plan.md", "content": "x"}), "allowed"),
            ("plans/plan.md", "write_file", json!({"path": absolute, "content": "x"}), "allowed"),
            ("plans/plan.md", "Edit", json!({"file_path": "./plans//plan.md", "old_string": "x"}), "allowed"),
            ("link/plan.md", "write_file", json!({"path": "plans/plan.md", "content": "x"}), "allowed"),
            ("plans/plan.md", "write_file", json!({"path": "plans/../code.py", "content": "x"}), "not_the_plan_file"),
            ("plans/plan.md", "write_file", json!({"path": "plans/other.md", "content": "x"}), "not_the_plan_file"),
            ("plans/plan.md", "write_file", json!({"path": "plans/plan.md/../../code.py"}), "not_the_plan_file"),
            ("plans/trap.md", "write_file", json!({"path": "plans/trap.md", "content": "x"}), "unclear_path"),
            ("plans/plan.md", "write_file", json!({"content": "x"}), "unclear_path"),
            ("plans/plan.md", "apply_patch", patch(&["plans/plan.md"]), "allowed"),
            ("plans/plan.md", "apply_patch", patch(&["plans/plan.md", "code.py"]), "not_the_plan_file"),
            (
                "plans/plan.md",
                "move_file",
                json!({"source": "code.py", "destination": "plans/plan.md"}),
                "not_the_plan_file",
            ),
            ("plans/plan.md", "read_file", json!({"path": "code.py"}), "allowed"),
            ("plans/plan.md", "shell", json!({"command": "git status"}), "allowed"),
            ("plans/plan.md", "shell", json!({"command": "pytest -q"}), "runs_tests"),
            ("plans/plan.md", "shell", json!({"command": "> plans/plan.md"}), "redirect_writes"),
            ("plans/plan.md", "Task", json!({"prompt": "x"}), "dispatch"),
        ] {
            let call = call(tool, arguments.clone()).cwd(cwd);
            assert_eq!(code(&gate(plan), &call), expected, "{tool} {arguments}");
        }
        let none = PlanGate { analyzer: Analyzer::from_fn(analysis), ..PlanGate::default() };
        assert_eq!(code(&none, &call("write_file", json!({"path": "PLAN.md"}))), "write");
    }
}
