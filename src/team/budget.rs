//! What teammates use, and the limits of each and of all.

use std::sync::Arc;

use super::journal::JournalEntry;
use super::member::Totals;
use super::office::Office;
use crate::agent::{LimitKind, LimitReached};
use crate::message::Usage;
use crate::model::Request;

impl Office {
    /// Counts a request and remembers it as it is sent.
    pub fn round(&self, name: &str, request: &Arc<Request>) {
        self.with(|state| {
            state.totals.rounds += 1;
            if let Some(member) = state.member_mut(name) {
                member.totals.rounds += 1;
                member.snapshot = Some(request.clone());
            }
        });
    }

    /// Counts what a reply used.
    pub fn spent(&self, name: &str, usage: Usage, cost: f64, calls: u64) {
        self.with(|state| {
            let spent = Totals { rounds: 0, calls, usage, cost };
            state.totals.add(&spent);
            if let Some(member) = state.member_mut(name) {
                member.totals.add(&spent);
                let (name, totals) = (member.new.name.clone(), member.totals);
                let note = serde_json::to_value(totals).unwrap_or_default();
                // What was used is told as far as it can be; a journal that fails shows with the next letter.
                drop(self.journal.write(&JournalEntry::TeamNote { name, about: "totals".into(), note }));
            }
        });
    }

    /// The limit that a teammate has reached, its own or the team's.
    pub fn limit_reached(&self, name: &str) -> Option<LimitReached> {
        self.with(|state| {
            let member = state.member(name)?;
            let (own, limits) = (&member.totals, &member.new.limits);
            let (all, team) = (&state.totals, &self.limits);
            let count = |kind, used: u64, allowed: Option<u64>, what: String| {
                let allowed = allowed.filter(|allowed| used >= *allowed)?;
                Some(LimitReached::new(kind, used, allowed, format!("{what}: {used} of {allowed}")))
            };
            let money = |used: f64, allowed: Option<f64>, what: String| {
                let allowed = allowed.filter(|allowed| used >= *allowed)?;
                LimitReached::of_cost(used, allowed, format!("{what}: {used} of {allowed}"))
            };
            count(LimitKind::Rounds, own.rounds, Some(limits.max_rounds), format!("the rounds of {name} are used"))
                .or_else(|| {
                    count(LimitKind::Calls, own.calls, limits.max_calls, format!("the calls of {name} are used"))
                })
                .or_else(|| count(LimitKind::Calls, all.calls, team.max_calls, "the team's calls are used".into()))
                .or_else(|| {
                    let used = own.usage.total_tokens();
                    count(LimitKind::Tokens, used, limits.max_tokens, format!("the tokens of {name} are used"))
                })
                .or_else(|| money(own.cost, limits.max_cost, format!("the money of {name} is used")))
                .or_else(|| count(LimitKind::Rounds, all.rounds, team.max_rounds, "the team's rounds are used".into()))
                .or_else(|| {
                    let used = all.usage.total_tokens();
                    count(LimitKind::Tokens, used, team.max_tokens, "the team's tokens are used".into())
                })
                .or_else(|| money(all.cost, team.max_cost, "the team's money is used".into()))
        })
    }
}
