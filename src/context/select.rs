//! The part of a history that fits a budget.

use std::sync::Arc;

use super::note::left_out;
use super::squeeze::squeeze;
use super::units::NewestFirst;
use super::{CachedTokens, Unit, UnitKind};
use crate::message::{History, Message, Role};

/// The smallest budget, in unscaled tokens, that [`select`] promises to stay within.
pub const MINIMUM_BUDGET: usize = 160;

/// How many budgets' worth of older messages are looked at for something to keep.
const LOOK_BACK: usize = 4;

/// The shares of what is left after the pinned units, by kind. What one kind does not use goes to the newest of any.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quotas {
    /// For users' messages. Default: 0.3.
    pub user: f64,
    /// For answers without calls. Default: 0.2.
    pub assistant: f64,
    /// For tool groups. Default: 0.5.
    pub tools: f64,
}

impl Default for Quotas {
    fn default() -> Self {
        Quotas { user: 0.3, assistant: 0.2, tools: 0.5 }
    }
}

/// How [`select`] chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectOptions {
    /// The [`id`](Message::id) of the task message, which must be a user's. Default: the first user message.
    pub task: Option<String>,
    /// How many of the newest units are pinned, at least 1. Default: 4.
    pub newest: usize,
    /// The shares of the rest.
    pub quotas: Quotas,
    /// What a result of a pinned unit is cut down to, in unscaled tokens, if the pinned units alone are too much.
    /// Default: 400.
    pub shortest_result: usize,
}

impl Default for SelectOptions {
    fn default() -> Self {
        SelectOptions { task: None, newest: 4, quotas: Quotas::default(), shortest_result: 400 }
    }
}

/// What [`select`] chose.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// What to send. The messages are those of the history, shared, but for notes and what had to be cut.
    pub messages: History,
    /// How many messages were left out.
    pub dropped: usize,
    /// How many messages were cut down.
    pub cut: usize,
    /// The estimate for what is sent, in real tokens.
    pub tokens: usize,
}

/// Chooses what of `history` is sent within `budget` real tokens (system prompt and tools not included).
///
/// A history that fits is returned as it is, without a copy. Else system messages, the task message and the newest
/// units are pinned; older units fill the rest by [`Quotas`], newest first; each stretch that is left out leaves one
/// line. Units are never split, and their order never changes. Calls without a result get one that says so, results
/// without a call go.
///
/// If the pinned units alone are too much, in this order and only as far as needed: results in them are cut down, the
/// oldest first; all but the newest unit are released, the oldest first; texts of the newest unit are cut; the newest
/// unit is left out unless it is a user's message; system messages and the task are cut; system messages but the first
/// are left out. What is sent is never over a budget of [`MINIMUM_BUDGET`] or more.
///
/// The cost grows with the budget, not with the history, but for one look at each message's role when it does not fit.
///
/// ```
/// use std::sync::Arc;
/// use hookwright::context::{CachedTokens, EstimatedTokens, SelectOptions, select};
/// use hookwright::message::{History, Message};
/// let tokens = CachedTokens::new(Arc::new(EstimatedTokens::default()));
/// let mut history: History = [Message::user("the task")].into_iter().collect();
/// history.extend((0..100).map(|number| Message::assistant(format!("step {number} of the work"))));
/// let selection = select(&history, 300, &tokens, &SelectOptions::default());
/// assert_eq!(selection.messages[0].text(), "the task");
/// assert_eq!(selection.messages[1].text(), format!("[{} earlier messages left out here]", selection.dropped));
/// assert_eq!(selection.messages.last(), history.last());
/// assert!(selection.tokens <= 300);
/// ```
pub fn select(history: &History, budget: usize, tokens: &CachedTokens, options: &SelectOptions) -> Selection {
    let room = tokens.unscaled(budget);
    let (mut units, complete) = newest_units(history, room, tokens);
    let is_fine = complete && units.iter().all(|unit| !unit.repaired);
    let total: usize = units.iter().map(|unit| tokens.sum(&unit.messages)).sum();
    if is_fine && total <= room {
        return Selection { messages: history.clone(), dropped: 0, cut: 0, tokens: tokens.scaled(total) };
    }
    let seen: usize = units.iter().map(|unit| unit.span).sum();
    let mut all = head(history, history.len() - seen, options);
    all.append(&mut units);
    let mut choice = Choice::new(all, tokens, options);
    if choice.total() > room {
        squeeze(&mut choice, room, options.shortest_result.max(1));
    } else {
        choice.fill(room, options.quotas);
    }
    choice.selection()
}

/// A unit with how many messages of the history it covers.
pub(super) struct Candidate {
    pub(super) unit: Unit,
    span: usize,
    pub(super) tokens: usize,
    pub(super) is_task: bool,
    pub(super) chosen: bool,
}

impl std::ops::Deref for Candidate {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.unit
    }
}

fn candidate(unit: Unit, span: usize) -> Candidate {
    Candidate { unit, span, tokens: 0, is_task: false, chosen: false }
}

/// The newest units, oldest first, and whether these are all there are.
fn newest_units(history: &History, room: usize, tokens: &CachedTokens) -> (Vec<Candidate>, bool) {
    let mut walk = NewestFirst::new(history);
    let (mut found, mut sum) = (Vec::new(), 0usize);
    while sum <= room.saturating_mul(LOOK_BACK) {
        let end = walk.end;
        let Some(part) = walk.next() else { break };
        let span = end - walk.end;
        // What the units of a part cover together is what counts.
        for (index, unit) in part.into_iter().enumerate().rev() {
            sum += tokens.sum(&unit.messages);
            found.push(candidate(unit, if index == 0 { span } else { 0 }));
        }
    }
    found.reverse();
    (found, walk.end == 0)
}

/// What is pinned in the first `length` messages, and what stands for the others there.
fn head(history: &History, length: usize, options: &SelectOptions) -> Vec<Candidate> {
    let mut found = Vec::new();
    let (mut unseen, mut has_task) = (0, false);
    for message in history.iter().take(length) {
        let is_task = !has_task && is_task(message, options);
        has_task |= is_task;
        if message.role != Role::System && !is_task {
            unseen += 1;
            continue;
        }
        if unseen > 0 {
            found.push(candidate(Unit::unseen(std::mem::take(&mut unseen)), 0));
        }
        found.push(candidate(Unit::single(message), 1));
    }
    if unseen > 0 {
        found.push(candidate(Unit::unseen(unseen), 0));
    }
    found
}

/// Whether this is the task message, if no earlier one is.
fn is_task(message: &Message, options: &SelectOptions) -> bool {
    let is_marked = options.task.as_ref().is_none_or(|id| message.id.as_ref() == Some(id));
    message.role == Role::User && super::note::left_out_in(message).is_none() && is_marked
}

/// Which units are sent.
pub(super) struct Choice<'a> {
    pub(super) units: Vec<Candidate>,
    pub(super) tokens: &'a CachedTokens,
    /// What one line for something left out costs at most.
    note: usize,
    pub(super) cut: usize,
}

impl<'a> Choice<'a> {
    fn new(mut units: Vec<Candidate>, tokens: &'a CachedTokens, options: &SelectOptions) -> Self {
        let task = units.iter().position(|unit| unit.kind == UnitKind::User && is_task(&unit.messages[0], options));
        // A mark that no message has: the first user message is the task then.
        let task = task.or_else(|| units.iter().position(|unit| unit.kind == UnitKind::User));
        if let Some(task) = task {
            units[task].is_task = true;
        }
        let mut newest = options.newest.max(1);
        for unit in units.iter_mut().rev() {
            unit.tokens = tokens.sum(&unit.unit.messages);
            unit.chosen = unit.kind == UnitKind::System || unit.is_task;
            if newest > 0 && unit.can_be_sent() {
                unit.chosen = true;
                newest -= 1;
            }
        }
        let widest: usize = units.iter().map(|unit| unit.weight).fold(0, usize::saturating_add);
        // The number with the most digits, and a digit more for counters that see something in digits.
        let note = tokens.counter().count_message(&left_out(widest.saturating_mul(10).max(99)));
        Choice { units, tokens, note, cut: 0 }
    }

    /// The tokens of what is chosen, with a line for each gap.
    pub(super) fn total(&self) -> usize {
        let (mut total, mut in_gap) = (0, false);
        for unit in &self.units {
            match unit.chosen {
                true => total += unit.tokens,
                false if !in_gap => total += self.note,
                false => {}
            }
            in_gap = !unit.chosen;
        }
        total
    }

    /// Fills the rest, newest first: each kind within its quota, then whatever fits.
    fn fill(&mut self, room: usize, quotas: Quotas) {
        let mut left = room - self.total();
        let share = |quota: f64| (left as f64 * quota.clamp(0.0, 1.0)) as usize;
        let mut shares = [share(quotas.user), share(quotas.assistant), share(quotas.tools)];
        for any in [false, true] {
            for index in (0..self.units.len()).rev() {
                let unit = &self.units[index];
                let share = match unit.kind {
                    _ if unit.chosen => continue,
                    UnitKind::User => 0,
                    UnitKind::Assistant => 1,
                    UnitKind::Tools => 2,
                    _ => continue,
                };
                let is_gap = |other: Option<&Candidate>| other.is_some_and(|unit| !unit.chosen);
                let before = index.checked_sub(1).and_then(|index| self.units.get(index));
                let gaps = usize::from(is_gap(before)) + usize::from(is_gap(self.units.get(index + 1)));
                // The gap that it stands in becomes none, one or two.
                let needed = (unit.tokens + gaps * self.note).saturating_sub(self.note);
                if needed <= left && (any || unit.tokens <= shares[share]) {
                    shares[share] = shares[share].saturating_sub(unit.tokens);
                    self.units[index].chosen = true;
                    left = (left + self.note) - (self.units[index].tokens + gaps * self.note);
                }
            }
        }
    }

    fn selection(self) -> Selection {
        let (mut messages, mut gap, mut dropped) = (History::new(), 0usize, 0usize);
        let mut total = 0;
        let mut close = |gap: &mut usize, messages: &mut History| {
            if *gap > 0 {
                let note = Arc::new(left_out(*gap));
                total += self.tokens.counter().count_message(&note);
                messages.push(note);
            }
            *gap = 0;
        };
        for unit in &self.units {
            if unit.chosen {
                close(&mut gap, &mut messages);
                messages.extend(unit.messages.iter().cloned());
            } else {
                gap = gap.saturating_add(unit.weight);
                dropped = dropped.saturating_add(unit.weight);
            }
        }
        close(&mut gap, &mut messages);
        total += self.units.iter().filter(|unit| unit.chosen).map(|unit| unit.tokens).sum::<usize>();
        Selection { messages, dropped, cut: self.cut, tokens: self.tokens.scaled(total) }
    }
}

impl Candidate {
    /// Whether it is something that can be chosen.
    pub(super) fn can_be_sent(&self) -> bool {
        !matches!(self.kind, UnitKind::Orphan | UnitKind::Note | UnitKind::Unseen)
    }
}
