//! Parameter expansion and arithmetic: what in them the shell evaluates as code.

use super::analysis::{ReasonCode, Span};
use super::expand::{Builder, Reading};
use super::parse::{
    self, Parameter, ParameterExpr, ParameterTestType, ParameterTransformOp, SpecialParameter, WordPiece,
};
use super::variables::{Known, Number};
use super::walk::Walk;

impl Walk<'_> {
    /// What an expansion becomes. `quoted`: whether it stands in double quotes or a here-document.
    pub(super) fn parameter(&mut self, expression: &ParameterExpr, span: Span, quoted: bool) -> Known {
        use ParameterExpr as Expr;
        let anything = Known::anything;
        match expression {
            Expr::Parameter { parameter, indirect } => self.variable(parameter, *indirect, span),
            Expr::ParameterLength { parameter, indirect } => {
                self.variable(parameter, *indirect, span);
                Known::DIGITS
            }
            Expr::UseDefaultValues { parameter, indirect, default_value: word, test_type } => {
                let value = self.variable(parameter, *indirect, span);
                let default = self.inner_word(word.as_deref(), span, quoted);
                match &value {
                    Known::Text(text) if !text.is_empty() => value,
                    Known::Number(Number { empty: false, .. }) => value,
                    // Empty, and perhaps not set: without the colon that makes a difference.
                    Known::Text(_) if matches!(test_type, ParameterTestType::UnsetOrNull) => default,
                    Known::Number(number) if matches!(test_type, ParameterTestType::UnsetOrNull) => {
                        Known::Number(Number { empty: false, ..*number }).join(&default)
                    }
                    Known::Text(_) | Known::Number(_) => value.join(&default),
                    _ => anything(),
                }
            }
            Expr::AssignDefaultValues { parameter, indirect, default_value: word, .. } => {
                self.variable(parameter, *indirect, span);
                self.inner_word(word.as_deref(), span, quoted);
                if let Parameter::Named(name) = parameter {
                    self.sets(name, anything(), span);
                } else {
                    self.refuse(ReasonCode::EvaluatesText, span, &parameter.to_string());
                }
                anything()
            }
            Expr::IndicateErrorIfNullOrUnset { parameter, indirect, error_message: word, .. } => {
                let value = self.variable(parameter, *indirect, span);
                self.inner_word(word.as_deref(), span, quoted);
                value
            }
            Expr::UseAlternativeValue { parameter, indirect, alternative_value: word, .. }
            | Expr::RemoveSmallestSuffixPattern { parameter, indirect, pattern: word }
            | Expr::RemoveLargestSuffixPattern { parameter, indirect, pattern: word }
            | Expr::RemoveSmallestPrefixPattern { parameter, indirect, pattern: word }
            | Expr::RemoveLargestPrefixPattern { parameter, indirect, pattern: word }
            | Expr::UppercaseFirstChar { parameter, indirect, pattern: word }
            | Expr::UppercasePattern { parameter, indirect, pattern: word }
            | Expr::LowercaseFirstChar { parameter, indirect, pattern: word }
            | Expr::LowercasePattern { parameter, indirect, pattern: word } => {
                self.variable(parameter, *indirect, span);
                self.inner_word(word.as_deref(), span, quoted);
                anything()
            }
            Expr::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
                self.variable(parameter, *indirect, span);
                self.inner_word(Some(pattern), span, quoted);
                self.inner_word(replacement.as_deref(), span, quoted);
                anything()
            }
            Expr::Substring { parameter, indirect, offset, length } => {
                self.variable(parameter, *indirect, span);
                self.arithmetic(&offset.value, span);
                if let Some(length) = length {
                    self.arithmetic(&length.value, span);
                }
                anything()
            }
            Expr::Transform { parameter, indirect, op } => {
                self.variable(parameter, *indirect, span);
                if matches!(op, ParameterTransformOp::PromptExpand) {
                    self.refuse(ReasonCode::EvaluatesText, span, &format!("{parameter}@P"));
                }
                anything()
            }
            Expr::VariableNames { .. } | Expr::MemberKeys { .. } => anything(),
        }
    }

    fn variable(&mut self, parameter: &Parameter, indirect: bool, span: Span) -> Known {
        if indirect {
            // The value names the variable, perhaps with a subscript that is evaluated.
            self.refuse(ReasonCode::EvaluatesText, span, &format!("!{parameter}"));
        }
        match parameter {
            Parameter::Named(name) => self.value_of(name),
            Parameter::NamedWithIndex { name, index } => {
                self.subscript(name, index, span);
                Known::anything()
            }
            Parameter::Special(
                SpecialParameter::PositionalParameterCount
                | SpecialParameter::LastExitStatus
                | SpecialParameter::ProcessId,
            ) => Known::DIGITS,
            Parameter::Special(SpecialParameter::LastBackgroundProcessId) => Known::COUNT,
            Parameter::Special(_) | Parameter::Positional(_) | Parameter::NamedWithAllIndices { .. } => {
                Known::anything()
            }
        }
    }

    /// What stands in the brackets behind the name of an array.
    pub(super) fn subscript(&mut self, name: &str, index: &str, span: Span) {
        self.may_stop_here();
        if self.variables.is_associative(name) {
            let _ = self.build(index, span, Reading::Pattern);
        } else {
            self.arithmetic(index, span);
        }
    }

    fn value_of(&self, name: &str) -> Known {
        if matches!(name, "PWD" | "OLDPWD") {
            return Known::Perhaps("/".to_owned());
        }
        if let Some(known) = self.variables.get(name) {
            return known;
        }
        match name {
            "UID" | "EUID" | "PPID" => Known::DIGITS,
            // A shell other than bash takes them from the environment, or has none.
            "RANDOM" | "SECONDS" | "LINENO" | "EPOCHSECONDS" | "OPTIND" | "COLUMNS" | "LINES" | "SHLVL" => Known::COUNT,
            "HOME" | "TMPDIR" | "SHELL" => Known::Perhaps("/".to_owned()),
            _ => Known::anything(),
        }
    }

    /// A word inside `${…}`.
    fn inner_word(&mut self, word: Option<&str>, span: Span, quoted: bool) -> Known {
        let Some(word) = word else { return Known::Text(String::new()) };
        if quoted && word.contains('\'') {
            // Whether this quote quotes depends on the operator; the parser always takes it for one.
            self.refuse(ReasonCode::NotParsed, span, word);
        }
        if word.contains(['$', '`']) {
            return self.build(word, span, Reading::Pattern).known();
        }
        Known::of_word(word)
    }

    /// An arithmetic expression: variables in it are evaluated, and what they hold in turn.
    pub(super) fn arithmetic(&mut self, expression: &str, span: Span) {
        // It may fail, by a division for example, and then the rest of the line does not run.
        self.may_stop_here();
        let mut flat = String::with_capacity(expression.len());
        if expression.contains(['$', '`']) {
            let Some(pieces) = parse::quoted_pieces(expression) else {
                return self.refuse(ReasonCode::NotParsed, span, expression);
            };
            for piece in &pieces {
                let known = match &piece.piece {
                    WordPiece::Text(text) if !text.contains(['$', '`']) => {
                        flat.push_str(text);
                        continue;
                    }
                    WordPiece::ParameterExpansion(expansion) => self.parameter_in_arithmetic(expansion, span),
                    WordPiece::CommandSubstitution(text) => {
                        self.substitution(text, expression, piece.start_index + 2, span)
                    }
                    WordPiece::ArithmeticExpression(inner) => {
                        self.arithmetic(&inner.value, span);
                        Known::INTEGER
                    }
                    _ => Known::anything(),
                };
                // Behind a name it makes another name, whose value is not looked at.
                let name = flat.rsplit(|last: char| !last.is_ascii_alphanumeric() && last != '_').next();
                let makes_name = name.is_some_and(|name| name.starts_with(|first: char| !first.is_ascii_digit()));
                if !known.is_number() || makes_name {
                    self.refuse(ReasonCode::EvaluatesText, span, expression);
                }
                // It may be nothing: a name behind it is one.
                flat.push_str("0 ");
            }
        } else {
            flat.push_str(expression);
        }
        if flat.contains(['\'', '\\', '[', '{', ';', '#', '@']) && !is_base_number(&flat) {
            return self.refuse(ReasonCode::EvaluatesText, span, expression);
        }
        self.arithmetic_names(&flat, expression, span);
    }

    fn parameter_in_arithmetic(&mut self, expansion: &ParameterExpr, span: Span) -> Known {
        let known = self.parameter(expansion, span, true);
        match expansion {
            ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false }
                if self.variables.get(name).is_none() =>
            {
                // Not set by the text: what the environment holds is not the text's.
                Known::COUNT
            }
            _ => known,
        }
    }

    fn arithmetic_names(&mut self, flat: &str, expression: &str, span: Span) {
        let bytes = flat.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii_digit() {
                while bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                    at += 1;
                }
                continue;
            }
            if !(byte.is_ascii_alphabetic() || byte == b'_') {
                at += 1;
                continue;
            }
            let start = at;
            while bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                at += 1;
            }
            let name = &flat[start..at];
            if self.variables.get(name).is_some_and(|value| !value.is_number()) {
                self.refuse(ReasonCode::EvaluatesText, span, expression);
            }
            let before = flat[..start].trim_end();
            let after = flat[at..].trim_start();
            let sets = before.ends_with("++")
                || before.ends_with("--")
                || after.starts_with("++")
                || after.starts_with("--")
                || (after.starts_with('=') && !after.starts_with("=="))
                || after.find('=').is_some_and(|equals| {
                    equals > 0
                        && equals <= 3
                        && after[..equals].bytes().all(|byte| b"+-*/%&|^<>".contains(&byte))
                        && !matches!(&after[..equals], "<" | ">")
                });
            if sets {
                // Whether it gets there (`0 && (x = 1)`) is not told.
                let unset = Known::Number(Number { negative: true, empty: true });
                let value = self.variables.get(name).map_or(unset, |before| before.join(&Known::INTEGER));
                self.sets(name, value, span);
            }
        }
    }

    /// The value of a word that the shell evaluates as arithmetic (`[[ $a -gt 1 ]]`).
    pub(super) fn arithmetic_word(&mut self, raw: &str, span: Span) {
        let built: Builder = self.build(raw, span, Reading::Single);
        match built.known() {
            Known::Number(_) => {}
            Known::Text(text) => self.arithmetic(&text, span),
            Known::Hash | Known::File(_) | Known::Anything(_) | Known::Perhaps(_) => {
                let unset = raw.trim_matches('"').strip_prefix('$').is_some_and(|name| {
                    let name = name.trim_start_matches('{').trim_end_matches('}');
                    !name.is_empty()
                        && !name.starts_with(|first: char| first.is_ascii_digit())
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                        && self.variables.get(name).is_none()
                });
                if !unset {
                    self.refuse(ReasonCode::EvaluatesText, span, raw);
                }
            }
        }
    }
}

/// Whether the only odd character is the `#` of a number with its base, `16#ff`.
fn is_base_number(text: &str) -> bool {
    !text.contains(['\'', '\\', '[', '{', ';', '@'])
        && text.match_indices('#').all(|(at, _)| text[..at].ends_with(|before: char| before.is_ascii_digit()))
}
