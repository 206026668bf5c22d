//! What a word can become when the shell expands it.

use serde::Serialize;

use super::analysis::Span;

/// What a word is when the program gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Value {
    /// Exactly this text, one word.
    Static {
        /// The text, without quotes.
        text: String,
    },
    /// Known only when it runs.
    Dynamic {
        /// What it surely begins with: a glob `src/*.rs` begins with `src/`.
        prefix: String,
        /// Whether it, or a later word of several, can begin with a dash.
        dash: bool,
        /// Whether it can become no word or several, later ones beginning with anything (an unquoted variable).
        /// A glob does not split: each of its words begins with the prefix.
        splits: bool,
    },
}

/// One word of a simple command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// As it stands in the text.
    pub raw: String,
    /// Where in the text.
    pub span: Span,
    /// What it becomes.
    pub value: Value,
}

impl Word {
    /// A word that is exactly `text`.
    pub fn fixed(text: impl Into<String>, span: Span) -> Self {
        let text = text.into();
        Self { raw: text.clone(), span, value: Value::Static { text } }
    }

    /// Its text, if that is known.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Static { text } => Some(text),
            Value::Dynamic { .. } => None,
        }
    }

    /// Whether it is one word or none, and begins with no dash: a number that may not have been printed.
    pub(super) fn may_only_vanish(&self) -> bool {
        matches!(&self.value, Value::Dynamic { dash: false, splits: true, .. })
    }

    /// Whether it, or a word that comes of it, can begin with a dash.
    pub fn can_be_option(&self) -> bool {
        match &self.value {
            Value::Static { text } => text.starts_with('-') && text.len() > 1,
            Value::Dynamic { dash, splits, .. } => *splits || *dash,
        }
    }
}
