//! What happens when a hook or gate wants a person to decide.

use serde_json::{Map, Value};

use super::Ending;
use super::calls::denial;
use super::flow::Run;
use super::machine::{Answer, Approval, ApprovalRequest, Effect};
use crate::agent::transcript::Awaited;
use crate::hook::{Action, Event, Field, Outcome, Payload};
use crate::message::ToolCall;
use crate::tool::ToolError;

/// Who decided, where it was no hook.
const APPROVER: &str = "approver";

/// What was decided.
pub(super) enum Permission {
    /// The call may run.
    Allowed,
    /// It may not.
    Denied(ToolError),
    /// Somebody will decide later.
    Later(Question),
    /// It may run with these arguments, once gates have judged them.
    Rewritten(Map<String, Value>),
}

/// What is asked.
pub(super) struct Question {
    /// Why somebody asks.
    pub(super) reason: String,
    /// The rule that would let such calls through from now on.
    pub(super) suggested_rule: Option<String>,
}

impl Run {
    /// Settles a question: hooks on `permission_request` first, then the approver.
    pub(super) async fn permission(&mut self, call: ToolCall, question: Question) -> Result<Permission, Ending> {
        let Question { reason, suggested_rule } = question;
        // The rule that holds from now on, because somebody said so.
        let mut new_rule = None;
        let outcome = self.notify(Event::PermissionRequest, |_| {
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::ToolArguments, call.arguments().cloned().unwrap_or_default().into()),
                (Field::Reason, reason.as_str().into()),
                (Field::SuggestedRule, text_or_null(suggested_rule.as_deref())),
            ]
        });
        let mut rewritten = None;
        let mut decided = None;
        if let Some(outcome) = outcome.await? {
            self.end_if_stopped(&outcome)?;
            if let Some(Ok(Value::Object(arguments))) = outcome.replaced(Field::ToolArguments).map(|value| value.json())
            {
                rewritten = Some(arguments.clone());
            }
            decided = by_hooks(&outcome, &reason);
        }
        let (permission, by) = match decided {
            Some(decided) => decided,
            None => {
                // The rule was made for the call that hooks have since rewritten, so it is not offered.
                let suggested_rule = suggested_rule.filter(|_| rewritten.is_none());
                let approval = self.ask_approver(call.clone(), &reason, suggested_rule.clone()).await?;
                if approval == Approval::Later {
                    return Ok(match rewritten {
                        // What a person is asked about has to be what is stored.
                        Some(_) => {
                            Permission::Denied(denial("a hook rewrote a call that a person decides about later"))
                        }
                        None => Permission::Later(Question { reason, suggested_rule }),
                    });
                }
                new_rule = suggested_rule.filter(|_| approval == Approval::AllowAlways);
                (settled(approval, &reason), APPROVER.to_owned())
            }
        };
        self.tell_decision(&call, &permission, &by, new_rule.as_deref()).await?;
        Ok(match (permission, rewritten) {
            (Permission::Allowed, Some(arguments)) => Permission::Rewritten(arguments),
            (permission, _) => permission,
        })
    }

    /// What a person decided about a call that waited for it.
    pub(super) async fn decided(
        &mut self,
        call: &ToolCall,
        question: &Awaited,
        approval: Approval,
    ) -> Result<Permission, Ending> {
        let rule = question.suggested_rule.clone().filter(|_| approval == Approval::AllowAlways);
        let permission = settled(approval, &question.reason);
        self.tell_decision(call, &permission, APPROVER, rule.as_deref()).await?;
        Ok(permission)
    }

    async fn tell_decision(
        &mut self,
        call: &ToolCall,
        permission: &Permission,
        by: &str,
        rule: Option<&str>,
    ) -> Result<(), Ending> {
        let decision = if matches!(permission, Permission::Denied(_)) { "deny" } else { "allow" };
        self.notify(Event::PermissionDecided, |_| {
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::Decision, decision.into()),
                (Field::By, by.into()),
                (Field::Rule, text_or_null(rule)),
            ]
        })
        .await
        .map(drop)
    }

    async fn ask_approver(
        &mut self,
        call: ToolCall,
        reason: &str,
        suggested_rule: Option<String>,
    ) -> Result<Approval, Ending> {
        let request = Box::new(ApprovalRequest { call, reason: reason.to_owned(), suggested_rule });
        match self.port.perform(Effect::Approve(request)).await {
            Answer::Approval(approval) => Ok(approval),
            Answer::OutOfTime => Ok(Approval::NoAnswer),
            _ => Err(self.cancel()),
        }
    }
}

/// What an answer means for a call about which somebody asked for `reason`.
fn settled(approval: Approval, reason: &str) -> Permission {
    let because = if reason.is_empty() { String::new() } else { format!(" (asked because: {reason})") };
    let why = match approval {
        Approval::Allow | Approval::AllowAlways => return Permission::Allowed,
        Approval::Deny(Some(why)) => format!("a person refused: {why}"),
        Approval::Deny(None) => format!("a person refused the call{because}"),
        Approval::NoApprover => {
            format!("the call needs a person's permission and nobody is there to give it{because}")
        }
        Approval::NoAnswer => format!("nobody answered the request for permission in time{because}"),
        Approval::Later => format!("nobody has decided about the call yet{because}"),
    };
    Permission::Denied(denial(&why))
}

fn text_or_null(text: Option<&str>) -> Payload {
    text.map_or(Value::Null, Value::from).into()
}

/// What hooks decided about a request, and who: a refusal beats an approval.
fn by_hooks(outcome: &Outcome, asked: &str) -> Option<(Permission, String)> {
    let by = |name: Option<&str>| name.unwrap_or("hook").to_owned();
    if outcome.action == Some(Action::Skip) {
        let reason = outcome.reason.as_deref().unwrap_or(asked);
        return Some((Permission::Denied(denial(reason)), by(outcome.halted_by.as_deref())));
    }
    let decisions = || outcome.changes.iter().filter(|change| change.field == Field::Decision);
    let last = decisions().next_back()?;
    let name = by(Some(&last.hook));
    match last.after.text() {
        Some("allow") => Some((Permission::Allowed, name)),
        _ => Some((Permission::Denied(denial(&format!("{name} refused the call: {asked}"))), name)),
    }
}
