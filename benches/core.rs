//! The core alone: a dispatch over Rust hooks, a growing history, a transcript line, the analysis of shell commands.
//!
//! `cargo bench --no-default-features`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hookwright::agent::transcript::{self, Entry};
use hookwright::agent::turn::{Ending, TurnResult};
use hookwright::gate::shell::{CommandTable, analyze};
use hookwright::hook::{Event, Field, FnHook, HookChain, HookKind, HookMeta, HookReply, Payload, Role, Scope};
use hookwright::message::{History, Message};
use hookwright::model::sse::Parser;
use hookwright::team::{Draft, Life, LifeAnswer, LifeConfig, LifeEffect, LifeStep, NewMember, Office, OfficeOptions};

#[path = "../tests/rust/fuzz/nests.rs"]
mod nests;

fn dispatch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dispatch");
    let scope: Arc<Scope> = Arc::default();
    let arguments = Payload::from(serde_json::json!({"command": "ls -la"}));
    for count in [0, 1, 10, 100] {
        let chain = HookChain::default();
        for index in 0..count {
            let meta =
                HookMeta::new(format!("hook_{index}"), vec![Event::PreToolExecution], HookKind::Builtin, Role::Hook);
            chain.add(meta, Arc::new(FnHook::new(|_| Ok(HookReply::default()))), false).expect("the names differ");
        }
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let fields = || vec![(Field::ToolName, "shell".into()), (Field::ToolArguments, arguments.clone())];
                let dispatch = chain.begin(Event::PreToolExecution, &scope, fields);
                black_box(dispatch.map(|dispatch| chain.run(dispatch).expect("nothing interrupts it")))
            });
        });
    }
    group.finish();
}

fn history(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("history_push_and_share");
    let message = Arc::new(Message::user("hello"));
    for length in [10, 10_000] {
        let full: History = (0..length).map(|_| message.clone()).collect();
        group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
            bencher.iter_batched_ref(
                || full.clone(),
                |history| {
                    // What a round does: a clone goes out with the request, the answer is pushed.
                    black_box(history.clone());
                    history.push(message.clone());
                },
                BatchSize::NumIterations(1),
            );
        });
    }
    group.finish();
}

fn transcript(criterion: &mut Criterion) {
    let entry = Entry::Message {
        message: Arc::new(Message::user("a line of the usual length, with a \"quote\" or two in it")),
    };
    let mut line = Vec::new();
    criterion.bench_function("transcript_encode", |bencher| {
        bencher.iter(|| {
            line.clear();
            transcript::encode(black_box(&entry), &mut line).expect("it has a JSON form");
            black_box(line.len())
        });
    });
    criterion.bench_function("transcript_scan_1000_lines", |bencher| {
        let mut file = Vec::new();
        for _ in 0..1000 {
            transcript::encode(&entry, &mut file).expect("it has a JSON form");
        }
        bencher.iter(|| black_box(transcript::scan(&file)));
    });
}

fn gate(criterion: &mut Criterion) {
    let table = CommandTable::builtin();
    let rows = include_str!("../tests/data/gate/shell_commands.jsonl").split('\n').filter(|line| !line.is_empty());
    let command = |line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a JSON object a line");
        row["command"].as_str().expect("a command").to_owned()
    };
    let commands: Vec<String> = rows.map(command).collect();
    // The bar is on the median command, which a mean over the set does not tell.
    let mut medians: Vec<Duration> = commands
        .iter()
        .map(|command| {
            median((0..21).map(|_| {
                let started = Instant::now();
                black_box(analyze(black_box(command), table));
                started.elapsed()
            }))
        })
        .collect();
    medians.sort_unstable();
    println!("gate: median command {:?}, slowest {:?}", medians[medians.len() / 2], medians[medians.len() - 1]);
    let mut group = criterion.benchmark_group("gate");
    group.throughput(Throughput::Elements(commands.len() as u64));
    group.bench_function("data_set", |bencher| {
        bencher.iter(|| commands.iter().for_each(|command| drop(black_box(analyze(command, table)))));
    });
    group.finish();
    let mut slowest = (Duration::ZERO, String::new());
    for nest @ (open, _, close) in nests::NESTS {
        for count in [10, 1000, 16_000 / (open.len() + close.len()), 65_536 / (open.len() + close.len())] {
            for text in nests::texts(nest, count).into_iter().filter(|text| text.len() <= 70_000) {
                let time = median((0..5).map(|_| {
                    let started = Instant::now();
                    black_box(analyze(black_box(&text), table));
                    started.elapsed()
                }));
                if time > Duration::from_millis(2) {
                    println!(
                        "gate: {time:?} for {} bytes of {:?}",
                        text.len(),
                        text.chars().take(60).collect::<String>()
                    );
                }
                if time > slowest.0 {
                    slowest = (time, text.chars().take(60).collect());
                }
            }
        }
    }
    println!("gate: slowest hostile text {:?}: {:?}", slowest.0, slowest.1);
    let mut group = criterion.benchmark_group("gate_64_kb");
    let longest = 16 * 1024;
    for (name, text) in [
        ("too_long", "ls -la; ".repeat(8 * 1024)),
        ("longest_list", "ls -la; ".repeat(longest / 8)),
        ("longest_word", "x".repeat(longest)),
        ("deep", "$(".repeat(longest / 2)),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| black_box(analyze(black_box(&text), table))));
    }
    group.finish();
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// A streamed reply as servers send it, in chunks as the network hands them over.
fn server_sent_events(criterion: &mut Criterion) {
    let chunk = |index: usize| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{index}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    let body: String = (0..20_000).map(chunk).collect::<String>() + "data: [DONE]\n\n";
    let mut group = criterion.benchmark_group("sse");
    group.throughput(Throughput::Bytes(body.len() as u64));
    for size in [1400, 16 * 1024] {
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let mut parser = Parser::new();
                let mut bytes = 0;
                for chunk in body.as_bytes().chunks(size) {
                    let taken = parser.push(chunk, |event| {
                        bytes += event.data.len();
                        Ok::<_, ()>(())
                    });
                    taken.expect("nothing fails");
                }
                black_box(bytes)
            });
        });
    }
    group.finish();
}

fn office(names: impl Iterator<Item = String>) -> Arc<Office> {
    let office = Arc::new(Office::new(OfficeOptions::default()));
    for name in names {
        let new = NewMember { name, parent: "lead".into(), ..NewMember::default() };
        office.join(new).expect("the names differ");
    }
    office
}

/// Letters between teammates: one to one, and to all.
fn team(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("team");
    let two = office(["ada", "bob"].into_iter().map(str::to_owned));
    let mut number = 0_u64;
    group.throughput(Throughput::Elements(1));
    group.bench_function("one letter, sent, taken and stored", |bencher| {
        bencher.iter(|| {
            number += 1;
            two.send("ada", Draft::new(["bob"], format!("letter {number}"))).expect("bob is there");
            let taken = two.take("bob");
            two.stored("bob");
            black_box(taken)
        });
    });
    const MANY: usize = 1000;
    let many = office((0..MANY).map(|number| format!("m{number}")));
    let names: Vec<_> = (0..MANY).map(|number| format!("m{number}")).collect();
    group.throughput(Throughput::Elements(MANY as u64 - 1));
    group.sample_size(20);
    group.bench_function("a letter to 1,000 that overhear it", |bencher| {
        bencher.iter(|| {
            number += 1;
            many.send("m0", Draft::new(["all"], format!("letter {number}"))).expect("they are there");
            // Each of them reads them all, some at a time.
            if number.is_multiple_of(16) {
                for name in &names {
                    black_box(many.take(name));
                    many.stored(name);
                }
            }
        });
    });
    group.finish();
    idle_teammates();
}

/// 10,000 teammates that wait, each a parked task: how long until they are there, what each takes, how soon one wakes.
fn idle_teammates() {
    const TEAMMATES: usize = 10_000;
    const WAKES: usize = 2_000;
    let resident = || -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    let (before, began) = (resident(), Instant::now());
    let office = office((0..TEAMMATES).map(|number| format!("m{number}")));
    let (tell, told) = std::sync::mpsc::channel();
    for number in 0..TEAMMATES {
        let (office, tell, name) = (office.clone(), tell.clone(), format!("m{number}"));
        runtime.spawn(async move {
            let config = LifeConfig {
                office: office.clone(),
                name: name.clone(),
                chain: None,
                scope: Arc::default(),
                idle_timeout: None,
                max_idle_loops: 8,
                interrupted: false,
            };
            let mut life = Life::new(config);
            let mail = office.mailbox(&name).expect("it is there");
            let mut step = life.resume(None);
            while let Some(LifeStep::Effect(effect)) = step {
                step = match effect {
                    LifeEffect::Wait(_) => {
                        std::future::poll_fn(|context| match mail.wake_with(context.waker()) {
                            true => std::task::Poll::Ready(()),
                            false => std::task::Poll::Pending,
                        })
                        .await;
                        life.resume(Some(LifeAnswer::Woken))
                    }
                    // The model of this benchmark: it has read its mail, and waits again.
                    LifeEffect::Turn(_) => {
                        let _ = tell.send(Instant::now());
                        office.stored(&name);
                        life.resume(Some(LifeAnswer::Turn(Box::new(nothing_said()))))
                    }
                    LifeEffect::Dispatch(_) => None,
                };
            }
        });
    }
    while !office.is_quiet() {
        std::thread::yield_now();
    }
    let seconds = began.elapsed();
    let each = (resident() - before) / TEAMMATES as u64;
    let mut waits: Vec<Duration> = (0..WAKES)
        .map(|number| {
            let began = Instant::now();
            let draft = Draft { private: true, ..Draft::new([format!("m{}", number * 4).as_str()], "wake up") };
            office.send("lead", draft).expect("it is there");
            told.recv().expect("it wakes").duration_since(began)
        })
        .collect();
    waits.sort();
    println!(
        "team/10,000 that wait: there after {seconds:?}, {each} bytes each; woken after {:?} (median), {:?} (p99)",
        waits[WAKES / 2],
        waits[WAKES * 99 / 100],
    );
}

fn nothing_said() -> TurnResult {
    TurnResult {
        ending: Ending::Success,
        turn_id: String::new(),
        text: String::new(),
        messages: Vec::new(),
        usage: hookwright::message::Usage::default(),
        cost: 0.0,
        rounds: 0,
        retries: 0,
        calls: Vec::new(),
        trace: Vec::new(),
        elapsed: Duration::ZERO,
    }
}

criterion_group!(benches, dispatch, history, transcript, gate, server_sent_events, team);
criterion_main!(benches);
