//! What happens when a hook or gate wants a person to decide.

use serde_json::{Map, Value};

use super::Ending;
use super::calls::denial;
use super::flow::Run;
use super::machine::{Answer, Approval, ApprovalRequest, Effect};
use crate::hook::{Action, Event, Field, Outcome, Payload};
use crate::message::ToolCall;
use crate::tool::ToolError;

/// What was decided.
pub(super) enum Permission {
    /// The call may run.
    Allowed,
    /// It may not.
    Denied(ToolError),
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
                let (permission, always) = self.ask_approver(call.clone(), reason, suggested_rule.clone()).await?;
                new_rule = suggested_rule.filter(|_| always);
                (permission, "approver".to_owned())
            }
        };
        let decision = if matches!(permission, Permission::Denied(_)) { "deny" } else { "allow" };
        self.notify(Event::PermissionDecided, |_| {
            vec![
                (Field::ToolName, call.name.as_str().into()),
                (Field::Decision, decision.into()),
                (Field::By, by.as_str().into()),
                (Field::Rule, text_or_null(new_rule.as_deref())),
            ]
        })
        .await?;
        Ok(match (permission, rewritten) {
            (Permission::Allowed, Some(arguments)) => Permission::Rewritten(arguments),
            (permission, _) => permission,
        })
    }

    /// What the approver says, and whether that goes for such calls from now on.
    async fn ask_approver(
        &mut self,
        call: ToolCall,
        reason: String,
        suggested_rule: Option<String>,
    ) -> Result<(Permission, bool), Ending> {
        let can_be_kept = suggested_rule.is_some();
        let request = Box::new(ApprovalRequest { call, reason: reason.clone(), suggested_rule });
        let approval = match self.port.perform(Effect::Approve(request)).await {
            Answer::Approval(approval) => approval,
            Answer::OutOfTime => Approval::NoAnswer,
            _ => return Err(self.cancel()),
        };
        let because = if reason.is_empty() { String::new() } else { format!(" (asked because: {reason})") };
        let always = can_be_kept && approval == Approval::AllowAlways;
        let permission = match approval {
            Approval::Allow | Approval::AllowAlways => Permission::Allowed,
            Approval::Deny(Some(why)) => Permission::Denied(denial(&format!("a person refused: {why}"))),
            Approval::Deny(None) => Permission::Denied(denial(&format!("a person refused the call{because}"))),
            Approval::NoApprover => Permission::Denied(denial(&format!(
                "the call needs a person's permission and nobody is there to give it{because}"
            ))),
            Approval::NoAnswer => {
                Permission::Denied(denial(&format!("nobody answered the request for permission in time{because}")))
            }
        };
        Ok((permission, always))
    }
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
