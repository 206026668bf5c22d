//! The only file that names the parser, `brush-parser`: text to syntax tree, word to pieces.
//!
//! It is given only text that passed the [`guard`](super::guard): on hostile nesting it overflows the stack or takes
//! exponential time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

pub(super) use brush_parser::SourceSpan;
pub(super) use brush_parser::ast::{self, SourceLocation};
pub(super) use brush_parser::word::{
    BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, ParameterTestType, ParameterTransformOp,
    SpecialParameter, WordPiece, WordPieceWithSource,
};
use brush_parser::{Parser, ParserOptions};

/// As `bash -c` reads a text: extended globs are off until `shopt -s extglob`, which is not let through.
static OPTIONS: LazyLock<ParserOptions> =
    LazyLock::new(|| ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() });

/// The parser is known to panic on numbers that are too large for it; whatever else it panics on is not proven either.
fn caught<T>(parse: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(parse)).ok().flatten()
}

/// A whole text. `None` if it is not valid.
pub(super) fn program(text: &str) -> Option<ast::Program> {
    caught(|| Parser::new(text.as_bytes(), &OPTIONS).parse_program().ok())
}

/// The pieces of a word.
pub(super) fn pieces(word: &str) -> Option<Vec<WordPieceWithSource>> {
    caught(|| brush_parser::word::parse(word, &OPTIONS).ok())
}

/// The pieces of text in which quotes are ordinary characters: here-documents, arithmetic.
pub(super) fn quoted_pieces(text: &str) -> Option<Vec<WordPieceWithSource>> {
    caught(|| brush_parser::word::parse_heredoc(text, &OPTIONS).ok())
}

/// The brace expressions of a word and the text between them.
pub(super) fn braces(word: &str) -> Option<Vec<BraceExpressionOrText>> {
    caught(|| brush_parser::word::parse_brace_expansions(word, &OPTIONS).ok().flatten())
}
