//! The one owner of what a team shares.
//!
//! Everything here is quick and calls nobody: whoever is to be woken is woken when the lock is free.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address::{LEAD, check_name};
use super::bus::{Bus, LocalBus, Mail};
use super::envelope::{Envelope, EnvelopeKind, Parcel};
use super::error::TeamError;
use super::journal::{Journal, JournalEntry, Memory};
use super::mailbox::Taken;
use super::member::{Member, NewMember, Totals};
use super::progress::Progress;
use super::questions::Questions;
use super::render;
use super::room::Room;
use super::status::{Ended, Outcome, Status};
use super::task::TaskList;
use crate::agent::{Clock, SystemClock};
use crate::suggest::did_you_mean;

/// The limits of a whole team. `None` means that there is no such limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TeamLimits {
    /// How many teammates there can be, those that have ended included.
    pub max_teammates: usize,
    /// How many starters may stand between a teammate and the lead.
    pub max_depth: usize,
    /// Requests to models, of all together.
    pub max_rounds: Option<u64>,
    /// Tool calls of all together.
    pub max_calls: Option<u64>,
    /// Tokens of all together, input and output.
    pub max_tokens: Option<u64>,
    /// Money of all together, in the unit of the price table.
    pub max_cost: Option<f64>,
}

impl Default for TeamLimits {
    /// 20,000 teammates, three deep; nothing else is limited.
    fn default() -> Self {
        TeamLimits {
            max_teammates: 20_000,
            max_depth: 3,
            max_rounds: None,
            max_calls: None,
            max_tokens: None,
            max_cost: None,
        }
    }
}

/// What an office is made with.
#[derive(Clone)]
pub struct OfficeOptions {
    /// The team's limits.
    pub limits: TeamLimits,
    /// Where mail goes.
    pub bus: Arc<dyn Bus>,
    /// Where what happens is written.
    pub journal: Arc<dyn Journal>,
    /// What the time is.
    pub clock: Arc<dyn Clock>,
}

impl Default for OfficeOptions {
    /// One process, nothing written, the system's clock.
    fn default() -> Self {
        OfficeOptions {
            limits: TeamLimits::default(),
            bus: Arc::new(LocalBus::default()),
            journal: Arc::new(Memory),
            clock: Arc::new(SystemClock),
        }
    }
}

/// Something that happened in a team.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamEvent {
    /// Counts up.
    pub sequence: u64,
    /// `joined`, `status`, `mail`, `held`, `task`, `idle`, `ended` or `back`.
    pub kind: &'static str,
    /// To whom.
    pub teammate: String,
    /// What.
    pub data: Value,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The letter.
    pub envelope: Arc<Envelope>,
    /// Whom it addresses, by name.
    pub addressed: Vec<String>,
    /// Whether it had been sent before; nothing happened this time.
    pub duplicate: bool,
}

/// The one owner of what a team shares.
pub struct Office {
    pub(super) state: Mutex<State>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: TeamLimits,
}

pub(super) struct State {
    pub(super) members: Vec<Member>,
    pub(super) index: HashMap<String, usize>,
    pub(super) lead: Arc<dyn Mail>,
    /// How many letters the lead has read.
    pub(super) lead_read: usize,
    pub(super) room: Room,
    /// How many members do something.
    pub(super) busy: usize,
    pub(super) tasks: TaskList,
    pub(super) questions: Questions,
    pub(super) progress: Progress,
    pub(super) letters: u64,
    /// Ids that senders gave themselves.
    pub(super) given_ids: HashMap<String, Receipt>,
    pub(super) totals: Totals,
    pub(super) notes: HashMap<(String, String), Value>,
    events: VecDeque<TeamEvent>,
    sequence: u64,
    watched: bool,
    /// Members that came back and have no driver yet.
    pub(super) revived: Vec<String>,
    listener: Option<Waker>,
    wants_listener: bool,
    pub(super) closed: bool,
    /// Everybody is put down to be taken up again: ends are not ends any more.
    suspended: bool,
}

impl State {
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.index.get(name).map(|index| &self.members[*index])
    }

    pub(super) fn member_mut(&mut self, name: &str) -> Option<&mut Member> {
        self.index.get(name).map(|index| &mut self.members[*index])
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.members.iter().map(Member::name)
    }

    pub(super) fn unknown(&self, name: &str) -> TeamError {
        let known: Vec<String> = self.names().chain([LEAD]).map(str::to_owned).collect();
        let suggestion = did_you_mean(name, known.iter().map(String::as_str)).map(str::to_owned);
        TeamError::UnknownRecipient { name: name.to_owned(), known, suggestion }
    }

    pub(super) fn emit(&mut self, kind: &'static str, teammate: &str, data: impl FnOnce() -> Value) {
        self.sequence += 1;
        if self.watched {
            let event = TeamEvent { sequence: self.sequence, kind, teammate: teammate.to_owned(), data: data() };
            self.events.push_back(event);
            self.wants_listener = true;
        }
    }

    /// A new status. Returns its number.
    pub(super) fn change_status(&mut self, name: &str, status: Status) -> u64 {
        let Some(member) = self.index.get(name).map(|index| &mut self.members[*index]) else { return 0 };
        let (was, is) = (!member.status.is_quiet(), !status.is_quiet());
        self.busy = self.busy + usize::from(is) - usize::from(was);
        member.status = status;
        member.sequence += 1;
        member.sequence
    }

    /// A letter for the lead. Its mailbox wakes nobody: whoever listens to the team is told.
    pub(super) fn tell_lead(&mut self, envelope: Arc<Envelope>) {
        self.lead.put(envelope);
        self.wants_listener = true;
    }

    fn revive(&mut self, name: &str) {
        self.revived.push(name.to_owned());
        self.wants_listener = true;
    }

    /// A letter of the team itself.
    pub(super) fn notice(&mut self, about: &str, text: String, clock: &dyn Clock) -> Arc<Envelope> {
        self.letters += 1;
        self.notice_with(format!("e{}", self.letters), about, text, clock)
    }

    /// The same with an id of its own, which takes no number from the letters that are written down.
    pub(super) fn notice_with(&self, id: String, about: &str, text: String, clock: &dyn Clock) -> Arc<Envelope> {
        Arc::new(Envelope {
            id,
            number: self.letters,
            sender: about.to_owned(),
            recipients: vec![LEAD.to_owned()],
            text,
            mention: false,
            reply_to: None,
            sent_at: clock.now(),
            private: false,
            expects_reply: false,
            kind: EnvelopeKind::Notice,
        })
    }
}

impl Office {
    /// An office with nobody in it.
    pub fn new(options: OfficeOptions) -> Self {
        let OfficeOptions { limits, bus, journal, clock } = options;
        let state = State {
            members: Vec::new(),
            index: HashMap::new(),
            lead: bus.mailbox(LEAD),
            lead_read: 0,
            room: Room::default(),
            busy: 0,
            tasks: TaskList::default(),
            questions: Questions::default(),
            progress: Progress::default(),
            letters: 0,
            given_ids: HashMap::new(),
            totals: Totals::default(),
            notes: HashMap::new(),
            events: VecDeque::new(),
            sequence: 0,
            watched: false,
            revived: Vec::new(),
            listener: None,
            wants_listener: false,
            closed: false,
            suspended: false,
        };
        Office { state: Mutex::new(state), bus, journal, clock, limits }
    }

    /// Reads or changes the state; whoever listens is woken afterwards.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state: MutexGuard<'_, State> = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let listener = if state.wants_listener { state.listener.take() } else { None };
        if listener.is_some() {
            state.wants_listener = false;
        }
        drop(state);
        if let Some(listener) = listener {
            listener.wake();
        }
        result
    }

    /// Somebody comes. Others hear of it with their next mail.
    ///
    /// # Errors
    /// A name that cannot be or is taken, a full team, a starter that may not, a journal that cannot be written.
    pub fn join(&self, new: NewMember) -> Result<(), TeamError> {
        check_name(&new.name)?;
        self.with(|state| {
            if state.closed {
                return Err(TeamError::Closed);
            }
            if state.index.contains_key(&new.name) {
                return Err(TeamError::NameTaken { name: new.name.clone() });
            }
            if state.members.len() >= self.limits.max_teammates {
                return Err(TeamError::Full { allowed: self.limits.max_teammates });
            }
            let refuse = |why: String| Err(TeamError::MayNotSpawn { name: new.parent.clone(), why });
            match state.member(&new.parent) {
                Some(parent) if !parent.new.may_spawn => return refuse("it was not allowed to".into()),
                Some(parent) if parent.depth + 1 > self.limits.max_depth => {
                    return refuse(format!("the team is {} deep, as deep as it may be (max_depth)", parent.depth));
                }
                None if new.parent != LEAD => return Err(state.unknown(&new.parent)),
                _ => {}
            }
            self.journal.write(&JournalEntry::TeamMember { member: new.clone() })?;
            self.take_in(state, new);
            Ok(())
        })
    }

    pub(super) fn take_in(&self, state: &mut State, new: NewMember) {
        let depth = state.member(&new.parent).map_or(0, |parent| parent.depth) + 1;
        let role = if new.role.is_empty() { String::new() } else { format!(": {}", new.role) };
        let notice = state.notice(&new.name, format!("{} has joined the team{role}", new.name), &*self.clock);
        state.room.push(notice, &[]);
        state.emit("joined", &new.name, || json!({"role": new.role, "parent": new.parent}));
        let mail = self.bus.mailbox(&new.name);
        state.index.insert(new.name.clone(), state.members.len());
        let read = state.room.end();
        state.members.push(Member::new(new, depth, mail, read));
        state.busy += 1;
    }

    /// A teammate's prompt: who it is, who was there when it came. It stays the same.
    pub fn introduction(&self, name: &str) -> String {
        self.with(|state| {
            let count = state.index.get(name).map_or(0, |index| index + 1);
            let members = state.members[..count].iter().map(|member| (member.name(), member.new.role.as_str()));
            render::roster(name, LEAD, members)
        })
    }

    /// What a teammate does from now on. Each change gets the next number.
    pub fn set_status(&self, name: &str, status: Status) {
        self.with(|state| {
            if state.member(name).is_none_or(|member| member.status == status) {
                return;
            }
            let sequence = state.change_status(name, status.clone());
            state.emit("status", name, || {
                let mut data = status.to_json();
                data["number"] = json!(sequence);
                data
            });
        });
    }

    /// The mailbox of a teammate, or of the lead.
    pub fn mailbox(&self, name: &str) -> Option<Arc<dyn Mail>> {
        self.with(|state| {
            if name == LEAD { Some(state.lead.clone()) } else { state.member(name).map(|member| member.mail.clone()) }
        })
    }

    /// Everything that a teammate has to read. It is in its hand until [`stored`](Office::stored).
    pub fn take(&self, name: &str) -> Taken {
        self.with(|state| {
            let end = state.room.end();
            let Some(member) = state.member_mut(name) else { return Taken::default() };
            member.reading = end;
            let (read, mail) = (member.read, member.mail.take());
            let (mut parcels, left_out) = state.room.unread(read, name);
            parcels.extend(mail.into_iter().map(|envelope| Parcel { envelope, addressed: true }));
            parcels.sort_by_key(|parcel| parcel.envelope.number);
            Taken { left_out, parcels }
        })
    }

    /// What a teammate took is in its conversation now.
    pub fn stored(&self, name: &str) {
        self.with(|state| {
            if let Some(member) = state.member_mut(name) {
                member.mail.stored();
                member.read = member.reading;
            }
        });
    }

    /// A teammate ends. False if it does not, because mail for it came in the meantime and it would come back anyway.
    pub fn end(&self, name: &str, ended: Ended, text: &str) -> bool {
        self.with(|state| {
            let Some(member) = state.member_mut(name) else { return true };
            if ended.outcome.comes_back() && !member.stopping && !member.mail.is_empty() {
                (member.is_done, member.ignores) = (false, None);
                return false;
            }
            if state.suspended {
                state.change_status(name, ended.status());
                state.member_mut(name).into_iter().for_each(|member| member.ended = Some(ended.clone()));
                return true;
            }
            let Some(member) = state.member_mut(name) else { return true };
            let entry =
                JournalEntry::TeamEnded { name: name.to_owned(), ended: ended.clone(), rounds: member.totals.rounds };
            // Nothing keeps somebody from ending: without this line a later process takes it for interrupted.
            drop(self.journal.write(&entry));
            member.text = text.to_owned();
            self.let_go(state, name, ended, true);
            true
        })
    }

    /// `live`: it happens now, and was not read from the journal.
    pub(super) fn let_go(&self, state: &mut State, name: &str, ended: Ended, live: bool) {
        state.change_status(name, ended.status());
        let Some(member) = state.member_mut(name) else { return };
        if ended.outcome == Outcome::Done {
            member.summary.clone_from(&ended.reason);
        }
        member.ended = Some(ended.clone());
        let why = ended.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let notice = state.notice(name, format!("{name} has ended ({}){why}", ended.outcome), &*self.clock);
        state.tell_lead(notice.clone());
        state.room.push(notice, &[]);
        state.questions.drop_of(name);
        let released = if live { state.tasks.release(name) } else { Vec::new() };
        for task in &released {
            drop(self.journal.write(&JournalEntry::TeamTask { task: task.clone() }));
            state.emit("task", name, || json!(task));
        }
        let released: Vec<_> = released.into_iter().map(|task| task.id).collect();
        state.emit("ended", name, || json!({"outcome": ended.outcome, "reason": ended.reason, "released": released}));
    }

    /// After letters were put into mailboxes: whoever had ended and comes back is given to the driver.
    pub(super) fn bring_back(&self, names: &[String]) {
        self.with(|state| {
            for name in names {
                let Some(member) = state.member_mut(name) else { continue };
                let back = member.ended.as_ref().is_some_and(|ended| ended.outcome.comes_back());
                if !back || member.mail.is_empty() || state.closed {
                    continue;
                }
                if self.journal.write(&JournalEntry::TeamBack { name: name.clone() }).is_ok() {
                    Self::come_back(state, name);
                    state.revive(name);
                }
            }
        });
    }

    pub(super) fn come_back(state: &mut State, name: &str) {
        let Some(member) = state.member_mut(name) else { return };
        (member.ended, member.is_done, member.ignores, member.stopping) = (None, false, None, false);
        state.change_status(name, Status::Initializing);
        state.emit("back", name, || json!({}));
    }

    /// Asks a teammate to end. Returns whether it was there to be asked.
    pub fn stop(&self, name: &str) -> bool {
        let mail = self.with(|state| {
            let member = state.member_mut(name).filter(|member| member.ended.is_none())?;
            member.stopping = true;
            Some(member.mail.clone())
        });
        if let Some(mail) = &mail {
            mail.ring();
        }
        mail.is_some()
    }

    /// From now on nobody ends: whoever is stopped is taken up again where it was, by a later process.
    pub fn suspend(&self) {
        self.with(|state| state.suspended = true);
    }

    /// No more letters and no more members, and nobody is told of anything any more.
    pub fn close(&self) {
        let listener = self.with(|state| {
            state.closed = true;
            (state.watched, state.wants_listener) = (false, false);
            state.listener.take()
        });
        drop(listener); // It may be the last that holds something of its owner: that goes when the lock is free.
    }

    /// Notes something about a member, such as where it works, so that it is there after a restart.
    ///
    /// # Errors
    /// [`Journal`](TeamError::Journal).
    pub fn note(&self, name: &str, about: &str, note: Value) -> Result<(), TeamError> {
        self.with(|state| {
            let entry = JournalEntry::TeamNote { name: name.to_owned(), about: about.to_owned(), note: note.clone() };
            self.journal.write(&entry)?;
            state.notes.insert((name.to_owned(), about.to_owned()), note);
            Ok(())
        })
    }

    /// What was noted.
    pub fn noted(&self, name: &str, about: &str) -> Option<Value> {
        self.with(|state| state.notes.get(&(name.to_owned(), about.to_owned())).cloned())
    }

    /// What has happened since the last time this was asked, and who came back and needs a driver. The waker is called
    /// once there is more. Events are kept only while somebody watches.
    pub fn news(&self, waker: &Waker) -> (Vec<TeamEvent>, Vec<String>) {
        self.with(|state| {
            let news: (Vec<_>, _) = (state.events.drain(..).collect(), std::mem::take(&mut state.revived));
            state.wants_listener = false;
            state.listener = Some(waker.clone());
            news
        })
    }

    /// Whether events are kept for [`news`](Office::news).
    pub fn watch(&self, watched: bool) {
        self.with(|state| state.watched = watched);
    }
}

/// Everything that a letter needs to be delivered, once the lock is free.
pub(super) struct Delivery {
    pub(super) envelope: Arc<Envelope>,
    pub(super) addressed: Vec<Arc<dyn Mail>>,
}

impl Delivery {
    pub(super) fn deliver(self) {
        for mail in &self.addressed {
            mail.put(self.envelope.clone());
        }
    }
}
