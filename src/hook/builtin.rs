//! Hooks written in Rust.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::context::EventContext;
use super::entry::{BoxFuture, Call, Hook, HookFailure, HookReply};

/// A Rust closure as a hook.
///
/// ```
/// use hookwright::hook::*;
/// use std::{sync::Arc, time::{Duration, Instant}};
/// let chain = HookChain::default();
/// let gate = FnHook::new(|_| Ok(Verdict::Result(Box::new(HookResult::decide(Action::Skip, "not today"))).into()));
/// let meta = HookMeta::new("closed", vec![Event::PreToolExecution], HookKind::Builtin, Role::Gate);
/// chain.add(meta, Arc::new(gate), false).unwrap();
/// let dispatch = chain.begin(Event::PreToolExecution, &Arc::default(), Vec::new).unwrap();
/// let outcome = chain.run(dispatch).unwrap();
/// assert_eq!(outcome.action, Some(Action::Skip));
/// assert_eq!(outcome.reason.as_deref(), Some("not today"));
/// ```
pub struct FnHook<F>(F);

impl<F> FnHook<F>
where
    F: Fn(&EventContext) -> Result<HookReply, HookFailure> + Send + Sync + 'static,
{
    /// Wraps a closure, which must return soon: it is not interrupted at its deadline, and
    /// an answer that comes late counts as none.
    pub fn new(function: F) -> Self {
        FnHook(function)
    }
}

impl<F> Hook for FnHook<F>
where
    F: Fn(&EventContext) -> Result<HookReply, HookFailure> + Send + Sync + 'static,
{
    fn call(&self, call: Call<'_>) -> Result<HookReply, HookFailure> {
        (self.0)(call.context)
    }

    fn call_async(&self, context: Arc<EventContext>, _deadline: Instant) -> BoxFuture<Result<HookReply, HookFailure>> {
        let reply = (self.0)(&context);
        Box::pin(std::future::ready(reply))
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
