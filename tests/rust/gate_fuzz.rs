//! Whatever text the shell gate is given: it answers, soon, and what it cannot read is not read-only.
//!
//! `GATE_SEED=7` makes up other texts, `GATE_TEXTS=500000` more of them.

use std::time::{Duration, Instant};

use fastrand::Rng;
use hookwright::gate::shell::{CommandTable, Effect, analyze};
use serde_json::Value;

#[path = "fuzz/nests.rs"]
mod nests;
use nests::NESTS;

/// Only what does not end is found here, on whatever machine: how long a text takes is measured by `benches/core.rs`.
const BOUND: Duration = Duration::from_secs(60);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The labelled commands, but not those that are kept to judge by.
fn commands() -> Vec<String> {
    let files = [include_str!("../data/gate/shell_commands.jsonl"), include_str!("../data/gate/own_commands.jsonl")];
    let rows = files.iter().flat_map(|text| text.split('\n')).filter(|line| !line.is_empty());
    let rows = rows.map(|line| serde_json::from_str::<Value>(line).expect("a JSON object a line"));
    rows.filter(|row| row["part"] != "unseen").map(|row| row["command"].as_str().unwrap().to_owned()).collect()
}

/// The slowest text and how often texts are let through.
#[derive(Default)]
struct Timed {
    count: usize,
    read_only: usize,
    slowest: Duration,
    text: String,
}

impl Timed {
    fn analyze(&mut self, text: &str) -> Effect {
        if std::env::var_os("GATE_SHOW").is_some() {
            // What overflows the stack ends the process: the last line printed is it.
            println!("{:?} ... {}", text.chars().take(40).collect::<String>(), text.len());
        }
        let started = Instant::now();
        let analysis = analyze(text, CommandTable::builtin());
        let time = started.elapsed();
        if std::env::var_os("GATE_SHOW").is_some() {
            println!("{time:?}");
        }
        self.count += 1;
        self.read_only += usize::from(analysis.effect == Effect::ReadOnly);
        for reason in &analysis.reasons {
            let span = reason.span;
            assert!(span.start <= span.end && span.end <= text.len(), "{reason:?} is outside of {text:?}");
        }
        if time > self.slowest {
            self.slowest = time;
            self.text = text.to_owned();
        }
        analysis.effect
    }
}

impl Timed {
    fn check(&self, name: &str) {
        let shown: String = self.text.chars().take(300).collect();
        println!(
            "{name}: {} texts, {} read-only, slowest {:.2?} for {} bytes: {shown:?}",
            self.count,
            self.read_only,
            self.slowest,
            self.text.len()
        );
        assert!(self.slowest < BOUND, "{:?} for {shown:?}", self.slowest);
    }
}

/// Pieces that mean something to the shell.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "(",
    ")",
    "{",
    "}",
    "#",
    ";",
    "&",
    "|",
    "<",
    ">",
    "\n",
    " ",
    "!",
    "$(",
    "${",
    "<<",
    "[",
    "]",
    "*",
    "~",
    "=",
    "\\\n",
    "$'",
    "((",
    "))",
    "[[",
    "]]",
    "$((",
    "<<E\n",
    "\nE\n",
    "if ",
    "then ",
    "fi",
    "case x in ",
    "esac",
    "do ",
    "done",
    "for x in ",
    "while ",
    "f() ",
    "function ",
    ";;",
    "<(",
    ">(",
    "<<<",
    "&&",
    "||",
    "|&",
    ">|",
    "2>&1",
    "${x:-",
    "${x/",
    "${x[",
    "${!x",
    "@P}",
    "$[",
    "a",
    "ls",
    "cat",
    "x=",
    "x=(",
    "+=",
    "{a,b}",
    "{1..9}",
    "{1..99999999999}",
    "?",
    "^",
    "%",
    ",",
    "-",
    "--",
    "\u{0}",
    "\r",
    "\t",
    "\u{202e}",
    "\u{200b}",
    "\u{a0}",
    "\u{e9}",
    "\u{1f600}",
    "sed ",
    "awk ",
    "find ",
    "-exec ",
    "xargs ",
    "bash -c ",
    "eval ",
    "trap ",
    "coproc ",
    "time ",
    "select x in ",
    "0",
    "9999999999999999999",
    "/",
    ".",
    ":",
    "in ",
];

#[test]
fn random_texts_are_answered() {
    let mut rng = Rng::with_seed(setting("GATE_SEED", 40) as u64);
    let mut timed = Timed::default();
    for _ in 0..setting("GATE_TEXTS", 20_000) {
        let text = if rng.bool() {
            let bytes: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            (0..rng.usize(..40)).map(|_| PIECES[rng.usize(..PIECES.len())]).collect()
        };
        timed.analyze(&text);
    }
    timed.check("random");
}

#[test]
fn damaged_commands_are_answered() {
    let mut rng = Rng::with_seed(setting("GATE_SEED", 41) as u64);
    let commands = commands();
    assert!(commands.len() > 1000);
    let mut timed = Timed::default();
    for _ in 0..setting("GATE_TEXTS", 20_000) {
        let mut text: Vec<char> = commands[rng.usize(..commands.len())].chars().collect();
        for _ in 0..rng.usize(1..5) {
            let at = rng.usize(..=text.len());
            match rng.u8(..5) {
                0 if at < text.len() => {
                    text.remove(at);
                }
                1 => {
                    let end = (at + rng.usize(..10)).min(text.len());
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = rng.usize(..=text.len());
                    text.splice(to..to, piece);
                }
                2 => {
                    let other: Vec<char> = commands[rng.usize(..commands.len())].chars().collect();
                    text.truncate(at);
                    text.extend(&other[rng.usize(..=other.len())..]);
                }
                _ => {
                    text.splice(at..at, PIECES[rng.usize(..PIECES.len())].chars());
                }
            }
        }
        timed.analyze(&text.into_iter().collect::<String>());
    }
    timed.check("damaged");
}
#[test]
fn deep_and_long_texts_are_answered() {
    let mut timed = Timed::default();
    for nest @ (open, inside, close) in NESTS {
        let unit = open.len() + close.len();
        let counts = [2, 5, 9, 10, 11, 20, 50, 200, 1000, 5000, 16_000 / unit, 16_384 / unit, 65_536 / unit];
        for count in counts.into_iter().filter(|count| count * unit <= 70_000) {
            for text in nests::texts(nest, count) {
                timed.analyze(&text);
            }
        }
        // Truly nested ones end in `unknown`, and not in a guess.
        if ["(", "$(", "{ ", "if ls; then ", "echo \"$(", "case x in x) "].contains(open) {
            let deep = format!("{}{inside}{}", open.repeat(200), close.repeat(200));
            assert_eq!(timed.analyze(&deep), Effect::Unknown, "{open}");
        }
    }
    timed.check("nested");
}

#[test]
fn pairs_of_constructs_are_answered() {
    let mut timed = Timed::default();
    let nests: Vec<_> = NESTS.iter().filter(|(open, ..)| open.len() > 1).collect();
    for (index, (open, inside, close)) in nests.iter().enumerate() {
        for (other, _, end) in nests.iter().skip(index % 3).step_by(3) {
            for count in [5, 12, 300] {
                let text = format!(
                    "{}{inside}{}",
                    format!("{open}{other}").repeat(count),
                    format!("{end}{close}").repeat(count)
                );
                timed.analyze(&text);
                timed.analyze(&format!("{other}{}", format!("{open}{inside}{close}").repeat(count)));
            }
        }
    }
    timed.check("pairs");
}

/// Marks that open something or announce something: short texts of them end where the parser expects more.
const MARKS: &[&str] = &[
    "<<", "<<-", "<<<", "$[", "${", "$((", "$(", "((", "(", "))", ")", "}", "]", "[", "{", "<(", ">(", "\n", " ", "\t",
    "E", "'", "\"", "`", "\\", "&", ";", "|", "$'", "x=", ":-", "case ", " in ", "if ", "for ", "[[ ", "!", "#", "1",
];

#[test]
fn texts_that_end_too_soon_take_no_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // A parser that waits for a line that never comes ends the process here, not the machine.
    let limit = 3 << 30;
    setrlimit(Resource::As, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    let mut random = Rng::with_seed(setting("GATE_SEED", 1) as u64);
    let mut timed = Timed::default();
    for text in ["${<<$[  ", "$(<<  ", "echo $(cat <<  ", "<(<<-\"\"& ", "$[<<-))<<  "] {
        assert_ne!(timed.analyze(text), Effect::ReadOnly, "{text:?}");
    }
    for _ in 0..setting("GATE_TEXTS", 40_000) {
        let text: String = (0..random.usize(1..12)).map(|_| MARKS[random.usize(0..MARKS.len())]).collect();
        timed.analyze(&text);
    }
    timed.check("ends too soon");
}
