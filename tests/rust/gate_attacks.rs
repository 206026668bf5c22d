//! Texts that ran a program of the attacker's while the gate let them through: none of their kinds may come back.

use hookwright::gate::shell::{CommandTable, Effect, Requirement, analyze};

#[derive(serde::Deserialize)]
struct Attack {
    command: String,
    /// What keeps it harmless, if it is let through at all.
    requires: Option<Requirement>,
}

fn attacks() -> Vec<Attack> {
    let text = include_str!("../data/gate/attacks.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_known_attack_is_let_through() {
    let table = CommandTable::default();
    let attacks = attacks();
    assert!(attacks.len() >= 150);
    let through = |attack: &&Attack| {
        let analysis = analyze(&attack.command, &table);
        let harmless = matches!(analysis.effect, Effect::ReadOnly | Effect::RunsTests);
        harmless && !attack.requires.is_some_and(|needed| analysis.requires.contains(&needed))
    };
    let through: Vec<&str> = attacks.iter().filter(through).map(|attack| attack.command.as_str()).collect();
    assert!(through.is_empty(), "{} are let through:\n{through:#?}", through.len());
}
