//! A team that comes back: the journal is read, and what stands in the teammates' conversations was delivered.

use std::collections::HashSet;

use serde_json::json;

use super::journal::JournalEntry;
use super::member::Totals;
use super::office::Office;
use super::render;
use super::status::{Outcome, Status};

/// What a teammate has to do or to wait for when it is about to wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Idle {
    /// Whose answers it waits for.
    pub(super) asked: Vec<String>,
    /// The tasks that it works on.
    pub(super) tasks: Vec<String>,
}

impl Office {
    /// Takes in what was written down, before anybody does anything.
    pub fn replay(&self, entries: Vec<JournalEntry>) {
        for entry in entries {
            let mut delivery = None;
            self.with(|state| match entry {
                JournalEntry::TeamMember { member } => self.take_in(state, member),
                JournalEntry::TeamMail { envelope, addressed, .. } => {
                    state.letters += 1;
                    delivery = Some(self.address(state, &envelope, &addressed));
                    state
                        .given_ids
                        .insert(envelope.id.clone(), super::office::Receipt { envelope, addressed, duplicate: false });
                }
                JournalEntry::TeamTask { task } => state.tasks.restore(task),
                JournalEntry::TeamEnded { name, ended, rounds } => {
                    self.let_go_again(state, &name, ended, rounds);
                }
                JournalEntry::TeamBack { name } => Self::come_back(state, &name),
                JournalEntry::TeamLeadRead { letters } => {
                    state.lead_read = letters;
                    state.lead.take();
                    state.lead.stored();
                }
                JournalEntry::TeamNote { name, about, note } => {
                    if about == "totals" {
                        let totals: Totals = serde_json::from_value(note).unwrap_or_default();
                        if let Some(member) = state.member_mut(&name) {
                            member.totals = totals;
                        }
                    } else {
                        state.notes.insert((name, about), note);
                    }
                }
            });
            if let Some(delivery) = delivery {
                delivery.deliver();
            }
        }
        self.with(|state| {
            state.totals = Totals::default();
            let all: Vec<Totals> = state.members.iter().map(|member| member.totals).collect();
            all.iter().for_each(|totals| state.totals.add(totals));
        });
    }

    /// These letters stand in a teammate's conversation. Returns whether it has to be given to a driver: it has not
    /// ended, or comes back because mail is there.
    pub fn delivered(&self, name: &str, ids: &HashSet<String>) -> bool {
        self.with(|state| {
            let behind = state.room.behind(|id| ids.contains(id));
            if let Some(member) = state.member_mut(name) {
                member.mail.forget(ids);
                // What it overheard before the last letter that it got, it had got or was left out.
                member.read = member.read.max(behind.unwrap_or_default());
            }
        });
        self.bring_back(&[name.to_owned()]);
        self.with(|state| {
            let Some(member) = state.member(name) else { return false };
            member.ended.is_none()
        })
    }

    /// Whether somebody wants a teammate to end.
    pub fn is_stopping(&self, name: &str) -> bool {
        self.with(|state| state.member(name).is_none_or(|member| member.stopping))
    }

    pub(super) fn role(&self, name: &str) -> String {
        self.with(|state| state.member(name).map(|member| member.new.role.clone()).unwrap_or_default())
    }

    /// Whose answers somebody waits for.
    pub(super) fn asked_by(&self, name: &str) -> Vec<String> {
        self.with(|state| state.questions.asked_by(name))
    }

    pub(super) fn begin_turn(&self, name: &str) {
        self.with(|state| {
            if let Some(member) = state.member_mut(name) {
                (member.is_done, member.ignores, member.holds, member.done_held) = (false, None, 0, false);
                member.held.clear();
            }
        });
        self.set_status(name, Status::Thinking);
    }

    pub(super) fn end_turn(&self, name: &str, text: &str) {
        self.with(|state| {
            if let Some(member) = state.member_mut(name)
                && member.ignores.is_none()
            {
                member.text = text.to_owned();
            }
        });
    }

    pub(super) fn say_done(&self, name: &str, summary: &str) {
        self.with(|state| {
            if let Some(member) = state.member_mut(name) {
                (member.is_done, member.summary) = (true, Some(summary.to_owned()));
            }
        });
    }

    pub(super) fn ignore(&self, name: &str, reason: &str) {
        self.with(|state| {
            if let Some(member) = state.member_mut(name) {
                member.ignores = Some(reason.to_owned());
            }
        });
    }

    /// Whether the last round's prose is not to be shown: the teammate chose not to answer.
    pub fn ignores(&self, name: &str) -> Option<String> {
        self.with(|state| state.member(name)?.ignores.clone())
    }

    pub(super) fn summary_if_done(&self, name: &str) -> Option<String> {
        self.with(|state| {
            let member = state.member(name).filter(|member| member.is_done)?;
            Some(member.summary.clone().unwrap_or_default())
        })
    }

    /// A teammate goes from busy to idle: told once, with what is still open.
    pub(super) fn about_to_wait(&self, name: &str) -> Idle {
        self.with(|state| {
            let idle = Idle {
                asked: state.questions.asked_by(name),
                tasks: state.tasks.owned_by(name).map(|task| task.id.clone()).collect(),
            };
            let owes: Vec<_> = state
                .questions
                .owed_by(name)
                .map(|question| json!({"id": question.id, "from": question.from}))
                .collect();
            let (asked, tasks) = (json!(idle.asked), json!(idle.tasks));
            let mut open: Vec<String> = state
                .questions
                .owed_by(name)
                .map(|question| format!("{} waits for its answer ({})", question.from, question.id))
                .collect();
            open.extend(idle.tasks.iter().map(|task| format!("{task} is in progress")));
            if !open.is_empty() {
                let text = format!("{name} waits, and {}", open.join(", "));
                let sequence = state.member(name).map_or(0, |member| member.sequence);
                let notice = state.notice_with(format!("{name} idle {sequence}"), name, text, &*self.clock);
                state.tell_lead(notice);
            }
            state.emit("idle", name, || json!({"waits_for": asked, "owes": owes, "tasks": tasks}));
            idle
        })
    }

    /// Who is there, for a model.
    pub(super) fn team_list(&self, me: &str) -> String {
        const SHOWN: usize = 50;
        self.with(|state| {
            let mut lines = vec!["lead".to_owned()];
            for member in state.members.iter().take(SHOWN) {
                let you = if member.name() == me { " (you)" } else { "" };
                let role = if member.new.role.is_empty() { String::new() } else { format!(": {}", member.new.role) };
                let ended =
                    member.ended.as_ref().map(|ended| format!(", ended: {}", ended.outcome)).unwrap_or_default();
                let line = format!("{}{you}{role} [{}{ended}]", member.name(), member.status);
                lines.push(render::one_line(&line));
            }
            if state.members.len() > SHOWN {
                lines.push(format!("and {} more", state.members.len() - SHOWN));
            }
            lines.join("\n")
        })
    }

    fn let_go_again(&self, state: &mut super::office::State, name: &str, ended: super::status::Ended, rounds: u64) {
        if let Some(member) = state.member_mut(name) {
            member.totals.rounds = member.totals.rounds.max(rounds);
            if ended.outcome == Outcome::Done {
                member.summary.clone_from(&ended.reason);
            }
        }
        // The tasks that it gave back are in entries of their own.
        self.let_go(state, name, ended, false);
    }
}
