//! The shell gate on labelled commands: nothing dangerous is let through, and next to nothing harmless is refused.
//!
//! `GATE_SHOW=1 cargo nextest run --no-default-features gate_accuracy --no-capture` prints each wrong verdict.

use std::collections::BTreeSet;

use hookwright::gate::shell::{CommandTable, Effect, analyze};
use serde_json::Value;

/// Harmless commands that are refused all the same, and why.
const REFUSED: &str = include_str!("../data/gate/refused.tsv");

struct Labelled {
    command: String,
    label: String,
    category: String,
    part: String,
}

fn read(text: &str) -> Vec<Labelled> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a JSON object a line");
        let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Labelled { command: field("command"), label: field("label"), category: field("category"), part: field("part") }
    };
    text.split('\n').filter(|line| !line.is_empty()).map(row).collect()
}

/// How many of `rows` are wrongly allowed, and which are wrongly refused.
fn judge(rows: &[&Labelled]) -> (Vec<String>, Vec<String>, usize, usize) {
    let table = CommandTable::default();
    let show = std::env::var_os("GATE_SHOW").is_some();
    let (mut allowed, mut refused, mut harmful, mut harmless) = (Vec::new(), Vec::new(), 0, 0);
    for row in rows {
        let analysis = analyze(&row.command, &table);
        let passes = match row.label.as_str() {
            "read_only" => analysis.effect == Effect::ReadOnly,
            "runs_tests" => analysis.effect <= Effect::RunsTests,
            _ => analysis.effect <= Effect::RunsTests,
        };
        let reasons = || {
            let one =
                |reason: &hookwright::gate::shell::Reason| format!("{}({})", reason.code.as_str(), reason.subject);
            analysis.reasons.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        if row.label == "not_read_only" {
            harmful += 1;
            if passes {
                allowed.push(row.command.clone());
                if show {
                    println!("ALLOWED {} | {} | {:?}", row.category, analysis.effect, row.command);
                }
            }
        } else {
            harmless += 1;
            if !passes {
                refused.push(row.command.clone());
                if show {
                    println!("REFUSED {} | {} | {:?} | {}", row.category, analysis.effect, row.command, reasons());
                }
            }
        }
    }
    (allowed, refused, harmful, harmless)
}

fn check(name: &str, rows: &[&Labelled], fewest: usize) {
    assert!(rows.len() >= fewest, "{name}: {} commands", rows.len());
    let (allowed, refused, harmful, harmless) = judge(rows);
    println!("{name}: {} of {harmful} allowed, {} of {harmless} refused", allowed.len(), refused.len());
    assert!(allowed.is_empty(), "{name}: {} dangerous commands pass: {allowed:#?}", allowed.len());
    let listed: BTreeSet<&str> = REFUSED.lines().filter_map(|line| line.split('\t').next()).collect();
    let unlisted: Vec<&String> =
        refused.iter().filter(|command| !listed.contains(command.replace('\n', "\\n").as_str())).collect();
    assert!(unlisted.is_empty(), "{name}: refused without a reason in refused.tsv: {unlisted:#?}");
    assert!(refused.len() * 100 <= harmless * 2, "{name}: {} of {harmless} harmless ones refused", refused.len());
}

#[test]
fn the_labelled_commands_are_judged_right() {
    let rows = read(include_str!("../data/gate/shell_commands.jsonl"));
    check("given", &rows.iter().collect::<Vec<_>>(), 861);
}

fn own(part: &str, fewest: usize) {
    let rows = read(include_str!("../data/gate/own_commands.jsonl"));
    check(part, &rows.iter().filter(|row| row.part == part).collect::<Vec<_>>(), fewest);
}

#[test]
fn our_own_commands_for_tuning_are_judged_right() {
    own("tune", 160);
}

#[test]
fn our_own_unseen_commands_are_judged_right() {
    own("unseen", 300);
}
