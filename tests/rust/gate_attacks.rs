//! Texts that ran a program of the attacker's while the gate let them through: none of their kinds may come back.

use hookwright::gate::shell::{CommandTable, Effect, analyze};

fn attacks() -> Vec<String> {
    let text = include_str!("../data/gate/attacks.jsonl");
    let command = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["command"].as_str().unwrap().to_owned()
    };
    text.lines().map(command).collect()
}

#[test]
fn no_known_attack_is_let_through() {
    let table = CommandTable::default();
    let attacks = attacks();
    assert!(attacks.len() >= 116);
    let through: Vec<&String> = attacks
        .iter()
        .filter(|text| matches!(analyze(text, &table).effect, Effect::ReadOnly | Effect::RunsTests))
        .collect();
    assert!(through.is_empty(), "{} are let through:\n{through:#?}", through.len());
}
