//! What holds of a text as a whole, wherever in it something stands.
//!
//! Functions and traps run later than they are read, and loops run what comes first once more. What one place relies on
//! and another one takes away is therefore found at the end, in whatever order the two stand.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::{Effect, Reason, ReasonCode, Span};
use super::table::environment_variable_is_safe;
use super::variables::Known;
use super::walk::Walk;

/// What was found so far, anywhere in the text.
#[derive(Default)]
pub(super) struct Whole {
    /// The functions that are defined.
    pub(super) functions: BTreeSet<String>,
    /// The names that were called where they were no functions, and where first.
    pub(super) calls: BTreeMap<String, Span>,
    /// Where it was first said of a function that it is that and nothing else.
    pub(super) relies_on_function: Option<Span>,
    /// Whether functions may be taken away.
    pub(super) unsets_functions: bool,
    /// Whether the body of a function may fail such that the line that calls it is left.
    pub(super) functions_stop: bool,
    /// The programs of which it was said what they print, and where.
    pub(super) relies_on_output: Vec<(&'static str, Span)>,
    /// Whether a file may be open for reading under a number beyond the standard ones.
    pub(super) opens_numbered: bool,
    /// Where output goes to such a number.
    pub(super) duplicates: Option<Span>,
    /// The names of arrays.
    pub(super) arrays: BTreeSet<String>,
    /// Names that were declared with values that are not known: of an array, the elements would be evaluated.
    pub(super) declared_anything: Vec<(String, Span)>,
    /// The variables that programs get to see, whatever is set afterwards.
    pub(super) exported: BTreeSet<String>,
    /// The variables that cannot be set any more.
    fixed: BTreeSet<String>,
    sets: BTreeMap<String, Sets>,
}

/// How a variable is set.
#[derive(Default)]
struct Sets {
    times: usize,
    /// Where it was set last.
    last: Span,
    /// Where it is set to what a program must not get.
    unsafe_at: Option<Span>,
}

impl Walk<'_> {
    /// A variable is set.
    pub(super) fn sets(&mut self, name: &str, value: Known, span: Span) {
        self.check_name(name, span);
        if self.whole.fixed.contains(name) {
            // It fails, and what comes behind it on the line does not run.
            self.refuse(ReasonCode::EvaluatesText, span, name);
        }
        let sets = self.whole.sets.entry(name.to_owned()).or_default();
        sets.times += 1;
        sets.last = span;
        let text = if let Known::Text(text) = &value { Some(text.as_str()) } else { None };
        if sets.unsafe_at.is_none() && !environment_variable_is_safe(name, text) {
            sets.unsafe_at = Some(span);
        }
        self.variables.set(name, value);
    }

    /// A variable cannot be set any more. Where that is not certain, or not the only time, it is refused: what is set
    /// afterwards is not set, or is.
    pub(super) fn fixes(&mut self, name: &str, span: Span) {
        let again = !self.whole.fixed.insert(name.to_owned());
        if again || self.is_conditional() || self.in_function {
            self.refuse(ReasonCode::EvaluatesText, span, name);
        }
    }

    /// At the end: what one place relies on and another one takes away.
    pub(super) fn settle(&mut self) {
        let whole = std::mem::take(&mut self.whole);
        for (name, sets) in &whole.sets {
            if let Some(span) = sets.unsafe_at.filter(|_| whole.exported.contains(name)) {
                self.refuse(ReasonCode::SetsVariable, span, name);
            }
            if whole.fixed.contains(name) && sets.times > 1 {
                self.refuse(ReasonCode::EvaluatesText, sets.last, name);
            }
        }
        for (name, span) in whole.declared_anything.iter().filter(|(name, _)| whole.arrays.contains(name)) {
            self.refuse(ReasonCode::EvaluatesText, *span, name);
        }
        for (name, span) in whole.relies_on_output.iter().filter(|(name, _)| whole.functions.contains(*name)) {
            self.refuse(ReasonCode::Shadowed, *span, name);
        }
        // In the body of a function or in a trap, it runs when the other one is there already.
        for (name, span) in whole.calls.iter().filter(|(name, _)| whole.functions.contains(*name)) {
            self.refuse(ReasonCode::Shadowed, *span, name);
        }
        if let Some(span) = whole.duplicates.filter(|_| whole.opens_numbered) {
            self.reasons.push(Reason::new(ReasonCode::RedirectWrites, Effect::Writes, span, ">&"));
        }
        if let Some(span) = whole.relies_on_function.filter(|_| whole.unsets_functions) {
            self.refuse(ReasonCode::Shadowed, span, "unset");
        }
    }
}
