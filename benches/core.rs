//! The core alone: a dispatch over Rust hooks, a growing history, a transcript line.
//!
//! `cargo bench --no-default-features`

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use hookwright::agent::transcript::{self, Entry};
use hookwright::hook::{Event, Field, FnHook, HookChain, HookKind, HookMeta, HookReply, Payload, Role, Scope};
use hookwright::message::{History, Message};

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

criterion_group!(benches, dispatch, history, transcript);
criterion_main!(benches);
