//! Gates on a chain.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::call::ToolCall;
use super::decision::{Answer, Decision};
use crate::hook::{
    Action, BoxFuture, Call, Event, EventContext, Field, Hook, HookFailure, HookReply, HookResult, Verdict,
};

/// Judges tool calls. Usable alone, as a function, and on a chain as a [`GateHook`].
pub trait Gate: Send + Sync {
    /// What is decided about a call.
    fn decide(&self, call: &ToolCall) -> Decision;

    /// Whether it wants to hear what persons allowed from now on.
    fn learns(&self) -> bool {
        false
    }

    /// Takes in the rule that a person chose to have from now on, in the session `session_id`.
    fn learn(&self, _rule: &str, _session_id: &str) {}
}

/// A gate as a hook: it judges on `pre_tool_execution`, and one that learns hears on `permission_decided` what a person
/// chose to allow from now on.
///
/// ```
/// use hookwright::{gate::{GateHook, ReviewGate}, hook::*};
/// use serde_json::json;
/// use std::sync::Arc;
/// let chain = HookChain::default();
/// let gate = GateHook::new(Arc::new(ReviewGate::default()));
/// let meta = HookMeta::new("review", gate.events(), HookKind::Builtin, Role::Gate);
/// chain.add(meta, Arc::new(gate), false).unwrap();
/// let fields = || vec![
///     (Field::ToolName, "Write".into()),
///     (Field::ToolArguments, json!({"path": "a", "content": ""}).into()),
/// ];
/// let dispatch = chain.begin(Event::PreToolExecution, &Arc::default(), fields).unwrap();
/// assert_eq!(chain.run(dispatch).unwrap().action, Some(Action::Skip));
/// ```
pub struct GateHook(Arc<dyn Gate>);

impl GateHook {
    /// A gate as a hook.
    pub fn new(gate: Arc<dyn Gate>) -> Self {
        GateHook(gate)
    }

    /// The events that the gate has to hear.
    pub fn events(&self) -> Vec<Event> {
        let learns = self.0.learns().then_some(Event::PermissionDecided);
        std::iter::once(Event::PreToolExecution).chain(learns).collect()
    }

    fn answer(&self, context: &EventContext) -> HookReply {
        match context.event {
            Event::PreToolExecution => reply(self.0.decide(&ToolCall::of_event(context))),
            Event::PermissionDecided => {
                let text = |field| context.get(field).and_then(|payload| payload.text());
                if let (Some("allow"), Some("approver"), Some(rule)) =
                    (text(Field::Decision), text(Field::By), text(Field::Rule))
                {
                    self.0.learn(rule, &context.scope.session_id);
                }
                HookReply::default()
            }
            _ => HookReply::default(),
        }
    }
}

fn reply(decision: Decision) -> HookReply {
    let Decision { answer, denial, rule, suggested_rule, requires } = decision;
    let action = match answer {
        Answer::Allow => Action::Allow,
        Answer::Ask => Action::Ask,
        Answer::Deny => Action::Skip,
    };
    let reason = match answer {
        // What a person is asked is why, and not that it was refused.
        Answer::Ask => denial.map(|denial| denial.reason),
        _ => denial.map(|denial| denial.render()),
    };
    let result = HookResult { action: Some(action), reason, rule, suggested_rule, ..HookResult::default() };
    let notes = requires.iter().map(|requirement| format!("requires {}", requirement.as_str())).collect();
    HookReply { verdict: Verdict::Result(Box::new(result)), notes, reading: !requires.is_empty() }
}

impl Hook for GateHook {
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure> {
        Ok(self.answer(call.context))
    }

    fn call_async(&self, context: Arc<EventContext>, _deadline: Instant) -> BoxFuture<Result<HookReply, HookFailure>> {
        Box::pin(std::future::ready(Ok(self.answer(&context))))
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
