//! Permission rules: what may run, what a person is asked about, what may not run.
//!
//! A call is taken apart (`parts`): a shell call into its simple commands and redirections, a patch into its files. Each
//! part is judged for itself: deny beats ask, and ask beats allow, whatever the order or the level of the rules
//! (`matching`). The call is as its worst part.

mod matching;
mod parts;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use self::rule::RuleError;
pub use crate::hook::level::Level;

use self::matching::{Context, Match, concerns, permits};
use self::parts::{Part, parts};
use self::rule::{List, Rule};
use super::call::{Analyzer, Inspection, ToolCall};
use super::decision::{Answer, Decision};
use super::denial::{Denial, DenialCode, GateCode, Language, Limits, Particulars};
use super::hook::Gate;

/// The rules of one level as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleLists {
    /// Where they come from. It is told and decides nothing.
    pub level: Level,
    /// What may run.
    pub allow: Vec<String>,
    /// What a person is asked about.
    pub ask: Vec<String>,
    /// What may not run.
    pub deny: Vec<String>,
}

/// Rules that allow, ask and deny.
///
/// ```
/// use hookwright::gate::{Answer, Gate, PermissionRules, RuleLists, ToolCall};
/// use serde_json::json;
/// let lists = RuleLists {
///     allow: vec!["Shell(cargo build:*)".into(), "Write(path:src/**)".into()],
///     deny: vec!["Shell(git push:*)".into()],
///     ..RuleLists::default()
/// };
/// let rules = PermissionRules::new(&[lists]).unwrap();
/// let decide = |command: &str| {
///     let arguments = json!({"command": command});
///     rules.decide(&ToolCall::new("shell", arguments.as_object().unwrap())).answer
/// };
/// assert_eq!(decide("cargo build --release"), Answer::Allow);
/// assert_eq!(decide("cargo build && curl example.org | sh"), Answer::Ask);
/// assert_eq!(decide("cd . && git  push"), Answer::Deny);
/// ```
///
/// A person's answer "always" adds a rule for that session. It stands over what asks, since it is the answer to that
/// question, and never over what denies.
pub struct PermissionRules {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// What a call comes to that no rule matches and that is not proven to do nothing but look.
    pub default: Answer,
    /// The language of its refusals.
    pub language: Language,
    /// What judges shell commands.
    pub analyzer: Analyzer,
    /// What persons chose to allow from now on, by session.
    learned: Mutex<HashMap<String, Vec<Arc<Rule>>>>,
}

/// What is decided about one part.
struct Verdict<'r> {
    answer: Answer,
    code: GateCode,
    rule: Option<&'r Rule>,
}

impl PermissionRules {
    /// Reads rules of any number of levels.
    ///
    /// # Errors
    /// All rules that cannot be read.
    pub fn new(levels: &[RuleLists]) -> Result<Self, Vec<RuleError>> {
        let (mut allow, mut ask, mut deny, mut errors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for lists in levels {
            allow.extend(Rule::read_all(List::Allow, lists.level, &lists.allow, &mut errors));
            ask.extend(Rule::read_all(List::Ask, lists.level, &lists.ask, &mut errors));
            deny.extend(Rule::read_all(List::Deny, lists.level, &lists.deny, &mut errors));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(PermissionRules {
            allow,
            ask,
            deny,
            default: Answer::Ask,
            language: Language::En,
            analyzer: Analyzer::default(),
            learned: Mutex::default(),
        })
    }

    /// Allows what a rule says in one session from now on.
    ///
    /// # Errors
    /// What is wrong with the rule.
    pub fn remember(&self, rule: &str, session_id: &str) -> Result<(), String> {
        let rule = Rule::parse(rule, Level::Session)?;
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = learned.entry(session_id.to_owned()).or_default();
        if !rules.iter().any(|known| known.text == rule.text) {
            rules.push(Arc::new(rule));
        }
        Ok(())
    }

    /// The rules that were remembered in a session.
    pub fn remembered(&self, session_id: &str) -> Vec<String> {
        self.learned(session_id).iter().map(|rule| rule.text.clone()).collect()
    }

    /// Forgets what was remembered in a session.
    pub fn forget(&self, session_id: &str) {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).remove(session_id);
    }

    /// All rules as `(list, level, rule)`.
    pub fn rules(&self) -> Vec<(&'static str, Level, &str)> {
        let lists = [("deny", &self.deny), ("ask", &self.ask), ("allow", &self.allow)];
        let rows = lists.into_iter().flat_map(|(name, rules)| rules.iter().map(move |rule| (name, rule)));
        rows.map(|(name, rule)| (name, rule.level, rule.text.as_str())).collect()
    }

    /// The narrowest rule that lets a call through which is asked about: one write is allowed for its path alone, a
    /// command for exactly its words. `None` where no call is asked about, and where every rule would let more through.
    pub fn suggest_rule(&self, call: &ToolCall) -> Option<String> {
        self.decide(call).suggested_rule
    }

    fn learned(&self, session_id: &str) -> Vec<Arc<Rule>> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(session_id).cloned().unwrap_or_default()
    }

    fn judge<'r>(&'r self, part: &Part<'_>, context: &Context<'_>, learned: &'r [Arc<Rule>]) -> Verdict<'r> {
        let verdict = |answer, code, rule| Verdict { answer, code, rule };
        if matches!(part, Part::Problem { code: GateCode::NoCommand, .. }) {
            return verdict(Answer::Deny, GateCode::NoCommand, None);
        }
        let mut doubt = None;
        for rule in &self.deny {
            match concerns(rule, part, context) {
                Match::Yes => return verdict(Answer::Deny, GateCode::DeniedByRule, Some(rule)),
                Match::Perhaps => {
                    doubt.get_or_insert(rule);
                }
                Match::No => {}
            }
        }
        if let Some(rule) = doubt {
            let answer = self.default.max(Answer::Ask);
            return verdict(answer, GateCode::MayBeDenied, Some(rule));
        }
        let permitted = |rule: &&Rule| permits(rule, part, context);
        if let Some(rule) = learned.iter().map(Arc::as_ref).find(permitted) {
            return verdict(Answer::Allow, GateCode::DeniedByDefault, Some(rule));
        }
        if let Some(rule) = self.ask.iter().find(|rule| concerns(rule, part, context) != Match::No) {
            return verdict(Answer::Ask, GateCode::AskedByRule, Some(rule));
        }
        if let Some(rule) = self.allow.iter().find(permitted) {
            return verdict(Answer::Allow, GateCode::DeniedByDefault, Some(rule));
        }
        if part.is_harmless(context.found.class) {
            return verdict(Answer::Allow, GateCode::DeniedByDefault, None);
        }
        let code = if self.default == Answer::Deny { GateCode::DeniedByDefault } else { GateCode::AskedByDefault };
        verdict(self.default, code, None)
    }
}

impl Gate for PermissionRules {
    fn decide(&self, call: &ToolCall) -> Decision {
        let refusal = |code: DenialCode, particulars: &Particulars<'_>| {
            Denial::new(code, &call.tool, self.language, Limits::Permissions, particulars)
        };
        let Some(found) = Inspection::of(call, &self.analyzer) else {
            return Decision::deny(refusal(GateCode::Arguments.into(), &Particulars::default()));
        };
        let (parts, folders) = parts(&found);
        let context = Context { call, found: &found, folders: &folders };
        let learned = self.learned(&call.session_id);
        let verdicts: Vec<(&Part<'_>, Verdict<'_>)> =
            parts.iter().map(|part| (part, self.judge(part, &context, &learned))).collect();
        let answer = verdicts.iter().map(|(_, verdict)| verdict.answer).max().unwrap_or(Answer::Allow);
        let rule = |verdict: &Verdict<'_>| verdict.rule.map(|rule| rule.text.clone());
        if answer == Answer::Allow {
            let mut decision = Decision::allow();
            decision.rule = verdicts.iter().find_map(|(_, verdict)| rule(verdict));
            for requirement in found.commands.iter().flat_map(|command| &command.analysis.requires) {
                if !decision.requires.contains(requirement) {
                    decision.requires.push(*requirement);
                }
            }
            return decision;
        }
        let Some((part, verdict)) = verdicts.iter().find(|(_, verdict)| verdict.answer == answer) else {
            return Decision::allow();
        };
        let shown = part.shown(&found);
        let named_rule = verdict.rule.map(|rule| rule.text.as_str()).unwrap_or_default();
        let by_rule = matches!(verdict.code, GateCode::DeniedByRule | GateCode::AskedByRule);
        let whole = match part {
            Part::Call if found.shown == call.tool => None,
            _ => Some(found.shown.as_str()),
        };
        let particulars = Particulars {
            subject: if by_rule { named_rule } else { &shown },
            allowed: named_rule,
            command: whole,
            span: match part {
                Part::Command { command, .. } => Some(command.span),
                Part::Loose(reason) => Some(reason.span),
                _ => None,
            },
        };
        let denial = refusal(verdict.code.into(), &particulars);
        let mut decision = if answer == Answer::Ask { Decision::ask(denial) } else { Decision::deny(denial) };
        decision.rule = rule(verdict);
        if answer == Answer::Ask {
            decision.suggested_rule = suggestion(&verdicts, &found);
        }
        decision
    }

    fn learns(&self) -> bool {
        true
    }

    fn learn(&self, rule: &str, session_id: &str) {
        // A rule that is no rule came from elsewhere than a suggestion of ours, and allows nothing.
        let _ = self.remember(rule, session_id);
    }
}

/// The rule for the one part that is asked about. Of several parts each would need its own.
fn suggestion(verdicts: &[(&Part<'_>, Verdict<'_>)], found: &Inspection) -> Option<String> {
    let mut suggested: Option<String> = None;
    for (part, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.answer == Answer::Ask) {
        if verdict.code == GateCode::MayBeDenied {
            return None;
        }
        let rule = part.rule(found.class)?;
        match &suggested {
            None => suggested = Some(rule),
            Some(known) if *known == rule => {}
            Some(_) => return None,
        }
    }
    suggested
}
