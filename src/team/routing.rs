//! How a letter finds whom it addresses.

use std::sync::Arc;

use serde_json::json;

use super::address::{ALL, LEAD, leading_mentions};
use super::envelope::{Draft, Envelope, EnvelopeKind};
use super::error::TeamError;
use super::journal::JournalEntry;
use super::office::{Delivery, Office, Receipt, State};
use super::progress::fingerprint;

/// Whom a draft addresses.
struct Route {
    /// As it stands on the envelope: names, or `all`.
    recipients: Vec<String>,
    /// Whom it wakes.
    addressed: Vec<String>,
    mention: bool,
}

impl Office {
    /// Whom a draft addresses, as it would stand on the envelope.
    ///
    /// # Errors
    /// As [`send`](Office::send).
    pub fn recipients(&self, sender: &str, draft: &Draft) -> Result<Vec<String>, TeamError> {
        self.with(|state| match state.closed {
            true => Err(TeamError::Closed),
            false => route(state, sender, draft).map(|route| route.recipients),
        })
    }

    /// Sends a letter: written down, then put into mailboxes.
    ///
    /// Whom it addresses wakes; all others overhear it, unless it is private. `all` from a teammate wakes nobody, from
    /// the lead it wakes all, as does a letter of the lead that names nobody.
    ///
    /// # Errors
    /// [`UnknownRecipient`](TeamError::UnknownRecipient) with the names there are, [`Gone`](TeamError::Gone) for
    /// somebody who does not come back, [`NoProgress`](TeamError::NoProgress) where two tell each other the same over
    /// and over, and others. Then nothing was sent to anybody.
    pub fn send(&self, sender: &str, draft: Draft) -> Result<Receipt, TeamError> {
        let (receipt, delivery) = self.with(|state| self.post(state, sender, draft))?;
        if let Some(delivery) = delivery {
            delivery.deliver();
            self.bring_back(&receipt.addressed);
        }
        Ok(receipt)
    }

    fn post(&self, state: &mut State, sender: &str, draft: Draft) -> Result<(Receipt, Option<Delivery>), TeamError> {
        if state.closed {
            return Err(TeamError::Closed);
        }
        if let Some(receipt) = draft.id.as_ref().and_then(|id| state.given_ids.get(id)) {
            return Ok((Receipt { duplicate: true, ..receipt.clone() }, None));
        }
        let route = route(state, sender, &draft)?;
        if sender != LEAD
            && let [to] = route.addressed.as_slice()
        {
            let pair = if sender < to.as_str() { [sender, to] } else { [to, sender] };
            if !state.progress.note(format!("letters {}\n{}", pair[0], pair[1]), fingerprint(&[sender, &draft.text])) {
                let what = format!("{} and {} tell each other the same", pair[0], pair[1]);
                state.emit("held", sender, || json!({"why": "no progress", "text": draft.text}));
                return Err(TeamError::NoProgress { what });
            }
        }
        state.letters += 1;
        let envelope = Arc::new(Envelope {
            id: draft.id.clone().unwrap_or_else(|| format!("e{}", state.letters)),
            number: state.letters,
            sender: sender.to_owned(),
            recipients: route.recipients,
            text: draft.text,
            mention: route.mention,
            reply_to: draft.reply_to,
            sent_at: self.clock.now(),
            private: draft.private,
            expects_reply: draft.expects_reply,
            kind: EnvelopeKind::Message,
        });
        let entry = JournalEntry::TeamMail {
            envelope: envelope.clone(),
            addressed: route.addressed.clone(),
            overheard: !envelope.private,
        };
        self.journal.write(&entry)?;
        let delivery = self.address(state, &envelope, &route.addressed);
        let receipt = Receipt { envelope, addressed: route.addressed, duplicate: false };
        if draft.id.is_some() {
            state.given_ids.insert(receipt.envelope.id.clone(), receipt.clone());
        }
        Ok((receipt, Some(delivery)))
    }

    /// Who gets a letter, and what it changes about who waits for whom.
    pub(super) fn address(&self, state: &mut State, envelope: &Arc<Envelope>, addressed: &[String]) -> Delivery {
        state.questions.note(envelope, addressed);
        state.emit("mail", &envelope.sender, || json!(envelope));
        if !envelope.private {
            state.room.push(envelope.clone(), addressed);
        }
        if addressed.iter().any(|name| name == LEAD) {
            state.tell_lead(envelope.clone());
        }
        let mail = addressed.iter().filter_map(|name| state.member(name)).map(|member| member.mail.clone());
        Delivery { envelope: envelope.clone(), addressed: mail.collect() }
    }

    /// [`lead_mail`](Office::lead_mail) in words for a model that leads the team.
    ///
    /// # Errors
    /// As that.
    pub fn lead_context(&self) -> Result<String, TeamError> {
        self.lead_mail().map(|mail| super::render::letters(&mail))
    }

    /// What the lead has not read yet, oldest first. Read once, it does not come again, also after a restart.
    ///
    /// # Errors
    /// [`Journal`](TeamError::Journal): then it comes again.
    pub fn lead_mail(&self) -> Result<Vec<Arc<Envelope>>, TeamError> {
        self.with(|state| {
            let taken = state.lead.take();
            if taken.is_empty() {
                return Ok(taken);
            }
            let letters = state.lead_read + taken.len();
            self.journal.write(&JournalEntry::TeamLeadRead { letters })?;
            state.lead_read = letters;
            state.lead.stored();
            Ok(taken)
        })
    }
}

fn route(state: &State, sender: &str, draft: &Draft) -> Result<Route, TeamError> {
    if draft.text.trim().is_empty() {
        return Err(TeamError::Empty);
    }
    let mut mention = false;
    let mut recipients: Vec<String> = Vec::new();
    for name in draft.to.iter().flat_map(|names| names.split(',')) {
        let name = name.trim().trim_start_matches(['@', '＠']);
        if !name.is_empty() && !recipients.iter().any(|known| known == name) {
            recipients.push(name.to_owned());
        }
    }
    if draft.to.is_empty() {
        let found = leading_mentions(&draft.text, state.names().chain([LEAD, ALL]));
        if let Some(unknown) = found.unknown {
            return Err(state.unknown(&unknown));
        }
        mention = !found.names.is_empty();
        recipients = found.names;
        if recipients.is_empty() && sender == LEAD {
            recipients.push(ALL.to_owned());
        }
    }
    if recipients.is_empty() {
        return Err(TeamError::NoRecipient { known: state.names().chain([LEAD]).map(str::to_owned).collect() });
    }
    let mut addressed = Vec::new();
    for name in &recipients {
        if name == ALL {
            if sender == LEAD {
                let there = state
                    .members
                    .iter()
                    .filter(|member| member.ended.as_ref().is_none_or(|ended| ended.outcome.comes_back()));
                addressed.extend(there.map(|member| member.name().to_owned()));
            }
            continue;
        }
        if name == sender {
            return Err(TeamError::ToSelf);
        }
        if name != LEAD {
            let member = state.member(name).ok_or_else(|| state.unknown(name))?;
            if let Some(ended) = member.ended.as_ref().filter(|ended| !ended.outcome.comes_back()) {
                let (name, outcome, reason) = (name.clone(), ended.outcome, ended.reason.clone());
                return Err(TeamError::Gone { name, outcome, reason });
            }
        }
        addressed.push(name.clone());
    }
    let mut once = std::collections::HashSet::new();
    addressed.retain(|name| once.insert(name.clone()));
    Ok(Route { recipients, addressed, mention })
}
