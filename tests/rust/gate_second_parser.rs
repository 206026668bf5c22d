//! The analyser against a second parser, which is written otherwise: each program that tree-sitter sees by name in a text
//! that is let through, the analyser has seen as well.
//!
//! The other way round does not hold: tree-sitter misses substitutions in some places.

#[path = "differential/texts.rs"]
mod texts;

use std::collections::BTreeSet;

use hookwright::gate::shell::{CommandTable, Effect, analyze};
use serde_json::Value;
use texts::Texts;
use tree_sitter::{Node, Parser};

/// The names of programs in a text, those that are plain words; `None` if it is not parsed without a mistake.
fn programs(parser: &mut Parser, text: &str) -> Option<BTreeSet<String>> {
    let tree = parser.parse(text, None).expect("a parser without a deadline ends");
    if tree.root_node().has_error() {
        return None;
    }
    let mut found = BTreeSet::new();
    let mut open = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        if node.kind() == "command_name" && is_plain(node) {
            found.insert(text[node.byte_range()].to_owned());
        }
        open.extend((0..node.child_count()).filter_map(|index| node.child(index)));
    }
    Some(found)
}

fn is_plain(node: Node<'_>) -> bool {
    node.named_child_count() == 1 && node.named_child(0).is_some_and(|child| child.kind() == "word")
}

/// Words of the grammar, which the second parser takes for programs in some places.
const RESERVED: &[&str] = &["!", "time", "for", "do", "done", "if", "then", "fi", "while", "case", "esac", "{", "}"];
/// What the second parser reads otherwise than bash: numbers in brackets as commands, joined lines as two words, the end
/// of some here-documents.
const DISPUTED: &[&str] = &["((", "\\\n", "<<"];

/// What is wrong with a text that is let through; whether it was compared.
fn compare(parser: &mut Parser, text: &str) -> Result<bool, String> {
    let analysis = analyze(text, CommandTable::builtin());
    if !matches!(analysis.effect, Effect::ReadOnly | Effect::RunsTests) {
        return Ok(false);
    }
    if DISPUTED.iter().any(|part| text.contains(part)) {
        return Ok(false);
    }
    let Some(programs) = programs(parser, text) else { return Ok(false) };
    let seen: BTreeSet<&str> = analysis.commands.iter().filter_map(|command| command.words.first()?.text()).collect();
    let known = |name: &str| seen.contains(name) || RESERVED.contains(&name) || name.contains('\\');
    let missed: Vec<&String> = programs.iter().filter(|name| !known(name)).collect();
    if missed.is_empty() { Ok(true) } else { Err(format!("{missed:?} in {text:?}, where {seen:?} were seen")) }
}

fn compare_all(texts: impl Iterator<Item = String>, least: usize) {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
    let (mut compared, mut missed) = (0, Vec::new());
    for text in texts {
        match compare(&mut parser, &text) {
            Ok(done) => compared += usize::from(done),
            Err(problem) => missed.push(problem),
        }
    }
    println!("{compared} texts that are let through compared");
    assert!(missed.is_empty(), "{}\n{}", missed.len(), missed.join("\n"));
    assert!(compared >= least, "{compared}");
}

#[test]
fn both_parsers_see_the_programs_of_the_labelled_commands() {
    let files = [include_str!("../data/gate/shell_commands.jsonl"), include_str!("../data/gate/own_commands.jsonl")];
    let command = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a JSON object a line");
        row["command"].as_str().expect("a command").to_owned()
    };
    compare_all(files.iter().flat_map(|file| file.lines()).map(command), 700);
}

#[test]
fn both_parsers_see_the_programs_of_made_up_texts() {
    let mut source = Texts::new(30);
    compare_all(std::iter::from_fn(|| Some(source.text())).take(10_000), 1000);
}
