//! Many changes to a chain in one step, as loading a configuration again makes them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{HookChain, RegistrationError, Snapshot, check, lock, switched};
use crate::hook::entry::{Hook, HookMeta};

/// Changes that take effect together: no dispatch sees a chain in which the old gates are gone and the new ones are not
/// there yet.
#[derive(Default)]
pub struct Exchange {
    /// The names of hooks to take out, if they are there.
    pub remove: Vec<String>,
    /// The hooks to add after that.
    pub add: Vec<(HookMeta, Arc<dyn Hook>)>,
    /// The names of hooks to switch on, if they are there.
    pub enable: Vec<String>,
    /// The names of hooks to switch off, if they are there.
    pub disable: Vec<String>,
    /// A new time for a whole dispatch.
    pub budget: Option<Duration>,
}

impl HookChain {
    /// Makes all changes, or with `whole` none of them if a hook cannot be added.
    ///
    /// Returns the hooks that cannot, by their place in [`Exchange::add`].
    pub fn exchange(&self, exchange: Exchange, whole: bool) -> Vec<(usize, RegistrationError)> {
        let mut registry = lock(&self.registry);
        let snapshot = self.snapshot.load_full();
        let mut entries = snapshot.entries.clone();
        entries.retain(|entry| !exchange.remove.iter().any(|name| *name == *entry.meta.name));
        let mut taken: HashSet<Arc<str>> = entries.iter().map(|entry| entry.meta.name.clone()).collect();
        let mut refused = Vec::new();
        for (index, (meta, hook)) in exchange.add.into_iter().enumerate() {
            let name = meta.name.clone();
            let made = match check(&meta) {
                Ok(()) if taken.contains(&name) => Err(RegistrationError::Duplicate(name.to_string())),
                Ok(()) => self.make_entry(&mut registry, meta, hook, None),
                Err(error) => Err(error),
            };
            match made {
                Ok(entry) => {
                    taken.insert(name);
                    entries.push(Arc::new(entry));
                }
                Err(error) => refused.push((index, error)),
            }
        }
        if whole && !refused.is_empty() {
            return refused;
        }
        for (names, enabled) in [(&exchange.enable, true), (&exchange.disable, false)] {
            for entry in entries.iter_mut().filter(|entry| names.iter().any(|name| *name == *entry.meta.name)) {
                // A filter that compiled before compiles again, so nothing is lost here.
                if let Ok(other) = switched(entry, enabled) {
                    *entry = other;
                }
            }
        }
        let budget = exchange.budget.unwrap_or(snapshot.budget);
        self.snapshot.store(Arc::new(Snapshot::new(entries, budget, snapshot.shadow)));
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::{Event, FnHook, HookKind, HookReply, OnError, Role};

    fn hook(name: &str, role: Role) -> (HookMeta, Arc<dyn Hook>) {
        let meta = HookMeta::new(name, vec![Event::PreToolExecution], HookKind::Builtin, role);
        (meta, Arc::new(FnHook::new(|_| Ok(HookReply::default()))))
    }

    fn names(chain: &HookChain) -> Vec<(String, bool)> {
        let snapshot = chain.snapshot();
        snapshot.entries().iter().map(|entry| (entry.meta.name.to_string(), entry.meta.enabled)).collect()
    }

    #[test]
    fn hooks_are_taken_out_added_and_switched_in_one_step() {
        let chain = HookChain::default();
        for name in ["old", "kept"] {
            let (meta, code) = hook(name, Role::Hook);
            chain.add(meta, code, false).unwrap();
        }
        let exchange = Exchange {
            remove: vec!["old".into(), "never there".into()],
            add: vec![hook("new", Role::Hook), hook("old", Role::Hook)],
            disable: vec!["kept".into()],
            budget: Some(Duration::from_secs(5)),
            ..Exchange::default()
        };
        assert_eq!(chain.exchange(exchange, true), []);
        assert_eq!(names(&chain), [("kept".into(), false), ("new".into(), true), ("old".into(), true)]);
        assert_eq!(chain.snapshot().budget, Duration::from_secs(5));
    }

    #[test]
    fn one_hook_that_cannot_be_added_leaves_the_chain_as_it_was_unless_told_otherwise() {
        let chain = HookChain::default();
        let (meta, code) = hook("taken", Role::Hook);
        chain.add(meta, code, false).unwrap();
        let exchange = || {
            let (mut wrong, code) = hook("wrong", Role::Observer);
            wrong.on_error = OnError::Deny;
            let add = vec![hook("good", Role::Hook), hook("taken", Role::Hook), (wrong, code)];
            Exchange { add, ..Exchange::default() }
        };
        let refused: Vec<usize> = chain.exchange(exchange(), true).into_iter().map(|(index, _)| index).collect();
        assert_eq!(refused, [1, 2]);
        assert_eq!(names(&chain), [("taken".into(), true)]);
        assert_eq!(chain.exchange(exchange(), false).len(), 2);
        assert_eq!(names(&chain), [("taken".into(), true), ("good".into(), true)]);
    }
}
