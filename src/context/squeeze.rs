//! What is sent when the pinned units alone are over the budget.

use super::UnitKind;
use super::cut::cut_message;
use super::select::{Candidate, Choice};
use crate::message::Role;

/// What texts of the newest unit are cut down to, in unscaled tokens.
const SHORTEST_TEXT: usize = 60;
/// What a system message and the task are cut down to in the end.
const LAST_TEXT: usize = 32;

/// Cuts and releases in the order that [`select`](super::select) documents, until it fits.
pub(super) fn squeeze(choice: &mut Choice<'_>, room: usize, shortest_result: usize) {
    let fits = |choice: &Choice<'_>| choice.total() <= room;
    let chosen_tail: Vec<usize> = (0..choice.units.len()).filter(|index| is_tail(&choice.units[*index])).collect();
    for &index in &chosen_tail {
        if cut_unit(choice, index, shortest_result, |role| role == Role::Tool) && fits(choice) {
            return;
        }
    }
    let Some((&newest, older)) = chosen_tail.split_last() else { return shrink_head(choice, room, None) };
    for &index in older {
        choice.units[index].chosen = false;
        if fits(choice) {
            return;
        }
    }
    cut_unit(choice, newest, SHORTEST_TEXT, |_| true);
    if fits(choice) {
        return;
    }
    let is_question = choice.units[newest].kind == UnitKind::User;
    choice.units[newest].chosen = is_question;
    if !fits(choice) {
        shrink_head(choice, room, is_question.then_some(newest));
    }
}

/// Pinned because it is new, and for nothing else.
fn is_tail(unit: &Candidate) -> bool {
    unit.chosen && !unit.is_task && unit.kind != UnitKind::System
}

/// Cuts system messages, the task and the question, then leaves out system messages but the first, then the question.
fn shrink_head(choice: &mut Choice<'_>, room: usize, question: Option<usize>) {
    let mut most = room / 4;
    while most > LAST_TEXT {
        for index in 0..choice.units.len() {
            if choice.units[index].chosen {
                cut_unit(choice, index, most, |_| true);
            }
        }
        if choice.total() <= room {
            return;
        }
        most /= 2;
    }
    for index in 0..choice.units.len() {
        if choice.units[index].chosen {
            cut_unit(choice, index, LAST_TEXT, |_| true);
        }
    }
    let systems: Vec<usize> =
        (0..choice.units.len()).filter(|index| choice.units[*index].kind == UnitKind::System).collect();
    for index in systems.into_iter().skip(1).rev().chain(question) {
        if choice.total() <= room {
            return;
        }
        choice.units[index].chosen = false;
    }
}

/// Cuts those messages of a unit whose role is `wanted`; returns whether that made it any shorter.
fn cut_unit(choice: &mut Choice<'_>, index: usize, most: usize, wanted: impl Fn(Role) -> bool) -> bool {
    let tokens = choice.tokens;
    let unit = &mut choice.units[index];
    let before = unit.tokens;
    for message in &mut unit.unit.messages {
        if wanted(message.role) {
            let short = cut_message(message, most, tokens.counter());
            if !std::sync::Arc::ptr_eq(&short, message) {
                choice.cut += 1;
                *message = short;
            }
        }
    }
    unit.tokens = tokens.sum(&unit.unit.messages);
    unit.tokens < before
}
