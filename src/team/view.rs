//! A team as others see it.

use std::sync::Arc;

use super::member::{Member, NewMember, Totals};
use super::office::{Office, State};
use super::status::{Ended, Status};
use crate::model::Request;

/// A teammate as others see it.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberView {
    /// Who, what for, by whom, with what limits.
    pub new: NewMember,
    /// What it does.
    pub status: Status,
    /// Counts up with each change of the status: an older number never replaces a newer one.
    pub sequence: u64,
    /// How it ended.
    pub ended: Option<Ended>,
    /// What it used.
    pub totals: Totals,
    /// How many letters lie in its mailbox, and how many of them are addressed to it.
    pub mail: (usize, usize),
    /// Its last words.
    pub text: String,
    /// The summary that it gave.
    pub summary: Option<String>,
    /// Whose answers it waits for.
    pub asked: Vec<String>,
    /// Who waits for its answers.
    pub owes: Vec<String>,
    /// The tasks that it works on.
    pub tasks: Vec<String>,
}

impl Office {
    /// Everybody, in the order in which they came.
    pub fn members(&self) -> Vec<MemberView> {
        self.with(|state| state.members.iter().map(|member| view(state, member)).collect())
    }

    /// One of them.
    pub fn member(&self, name: &str) -> Option<MemberView> {
        self.with(|state| state.member(name).map(|member| view(state, member)))
    }

    /// The last request of a teammate as it was really sent; shared, not copied.
    pub fn snapshot(&self, name: &str) -> Option<Arc<Request>> {
        self.with(|state| state.member(name)?.snapshot.clone())
    }

    /// What all together used.
    pub fn totals(&self) -> Totals {
        self.with(|state| state.totals)
    }

    /// Whether nobody does anything, and nobody has mail that would wake it.
    pub fn is_quiet(&self) -> bool {
        self.with(|state| {
            let has_mail = |member: &Member| member.ended.is_none() && !member.mail.is_empty();
            state.busy == 0 && state.revived.is_empty() && !state.members.iter().any(has_mail)
        })
    }

    /// Whether everybody has ended.
    pub fn has_ended(&self) -> bool {
        self.with(|state| state.revived.is_empty() && state.members.iter().all(|member| member.ended.is_some()))
    }
}

fn view(state: &State, member: &Member) -> MemberView {
    MemberView {
        new: member.new.clone(),
        status: member.status.clone(),
        sequence: member.sequence,
        ended: member.ended.clone(),
        totals: member.totals,
        mail: (state.room.count(member.read, member.name()) + member.mail.len(), member.mail.len()),
        text: member.text.clone(),
        summary: member.summary.clone(),
        asked: state.questions.asked_by(member.name()),
        owes: state.questions.owed_by(member.name()).map(|question| question.from.clone()).collect(),
        tasks: state.tasks.owned_by(member.name()).map(|task| task.id.clone()).collect(),
    }
}
