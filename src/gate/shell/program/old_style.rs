//! `tar tf a.tar`: options without a dash in the first word.

use super::super::analysis::{Effect, ReasonCode};
use super::super::table::{Judge, Program};
use super::super::word::Word;

/// Judges the program as if the first word had its dash.
pub(super) fn judge(judge: &mut Judge<'_>, program: &Program, words: &[Word], start: usize) {
    let Some(first) = words.get(start) else { return judge.leaf(program, words, start) };
    let Some(letters) = first.text().filter(|text| !text.starts_with('-') && !text.is_empty()) else {
        return judge.leaf(program, words, start);
    };
    // Values stand in the words that follow, in order: the same as with a dash only if the last letter alone has one.
    let takes_value = |letter: char| program.options.letters.get(&letter).is_some_and(|rule| rule.takes_next_word());
    let last = letters.char_indices().next_back().map_or(0, |(index, _)| index);
    if letters[..last].chars().any(takes_value) {
        let subject = letters.to_owned();
        judge.report(ReasonCode::UnknownOption, Effect::Unknown, first, subject);
    }
    let mut dashed = words.to_vec();
    dashed[start] = Word { raw: first.raw.clone(), ..Word::fixed(format!("-{letters}"), first.span) };
    judge.leaf(program, &dashed, start);
}
