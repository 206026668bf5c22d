//! `env`: a command with variables of its own.

use super::super::analysis::{Effect, ReasonCode};
use super::super::table::{Judge, Program, Scan, environment_variable_is_safe};
use super::super::word::{Value, Word};

/// Judges `env`: options by the table, then assignments, then the command.
pub(super) fn judge(judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
    let scan = Scan::new(program, words, start);
    judge.troubles(&scan, words);
    judge.options(program, &scan);
    let operands = &scan.operands;
    let is_assignment = |position: &&usize| match &words[**position].value {
        Value::Static { text } => text.contains('='),
        Value::Dynamic { prefix, .. } => prefix.contains('='),
    };
    let assignments = operands.iter().take_while(is_assignment).count();
    for &position in &operands[..assignments] {
        let word = &words[position];
        let (text, known) = match &word.value {
            Value::Static { text } => (text, true),
            // What splits can bring more assignments, or the command.
            Value::Dynamic { splits: true, .. } => {
                judge.report(ReasonCode::DynamicProgram, Effect::Unknown, word, &*word.raw);
                continue;
            }
            Value::Dynamic { prefix, .. } => (prefix, false),
        };
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if !environment_variable_is_safe(name, known.then_some(value)) {
            judge.report(ReasonCode::SetsVariable, Effect::Unknown, word, name);
        }
    }
    let Some(&first) = operands.get(assignments) else { return };
    // Without the hardened environment git runs what the repository says, whoever starts it.
    let takes_away = scan
        .options
        .iter()
        .find(|option| matches!(option.name, "-i" | "-" | "--ignore-environment" | "-u" | "--unset"));
    if let Some(option) = takes_away
        && !words[first].text().is_some_and(|name| judge.table.runs_nothing_else(name))
    {
        judge.report(ReasonCode::OptionExecutes, Effect::Executes, option.word, option.name);
    }
    judge.site.command(&words[first..]);
}
