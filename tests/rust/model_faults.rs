//! Models against a server that misbehaves on the socket: what is tried again, what is not, and what is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookwright::hook::redact::Redactor;
use hookwright::message::Message;
use hookwright::model::{
    Anthropic, Ask, FailureKind, Key, Model, ModelFailure, OpenAi, Recorder, Replay, Reply, Request, RetryPolicy,
    RetryRule, Server, StreamEvent, Watch,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const KEY: &str = "k3y-that-nobody-may-see";

/// What the server does with one request.
#[derive(Clone)]
enum Act {
    /// Sends these pieces, one after the other, and closes the connection.
    Send(Vec<Vec<u8>>),
    /// Sends these pieces and resets the connection.
    Reset(Vec<Vec<u8>>),
    /// Sends these pieces and then nothing.
    Hang(Vec<Vec<u8>>),
}

/// A server that does one act a connection, and the last for all others.
struct Misbehaving {
    url: String,
    asked: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Misbehaving {
    async fn new(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, kept) = (Arc::clone(&asked), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let act = acts[number.min(acts.len() - 1)].clone();
                tokio::spawn(serve(socket, act, Arc::clone(&kept)));
            }
        });
        Misbehaving { url, asked, requests }
    }

    fn server(&self) -> Server {
        let quick = RetryRule { retries: 2, first_wait: Duration::from_millis(1) };
        let retry = RetryPolicy {
            connection: quick,
            rate_limited: quick,
            server: quick,
            overloaded: quick,
            ..RetryPolicy::default()
        };
        Server { base_url: Some(self.url.clone()), api_key: Key::new(KEY), retry, ..Server::new("m") }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn serve(mut socket: TcpStream, act: Act, kept: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if read == 0 {
                return;
            }
            continue;
        };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) || read == 0 {
            kept.lock().unwrap().push(text);
            break;
        }
    }
    let (pieces, end) = match act {
        Act::Send(pieces) => (pieces, 0),
        Act::Reset(pieces) => (pieces, 1),
        Act::Hang(pieces) => (pieces, 2),
    };
    for piece in pieces {
        let _ = socket.write_all(&piece).await;
        let _ = socket.flush().await;
        tokio::task::yield_now().await;
    }
    match end {
        0 => drop(socket.shutdown().await),
        // Whoever closes with no time to linger resets.
        1 => drop(socket.set_zero_linger()),
        _ => std::future::pending().await,
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

fn whole(text: &str) -> Act {
    let body = format!(r#"{{"choices":[{{"message":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#);
    Act::Send(vec![answer("200 OK", "Content-Type: application/json\r\n", &body)])
}

fn refusal(status: &str, headers: &str) -> Act {
    Act::Send(vec![answer(status, headers, r#"{"error": {"message": "boom"}}"#)])
}

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

fn chunk(text: &str) -> Vec<u8> {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes()
}

fn last() -> Vec<u8> {
    b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_vec()
}

fn request() -> Arc<Request> {
    Arc::new(Request { messages: [Message::user("hello")].into_iter().collect(), ..Request::default() })
}

fn watched() -> (Watch, Arc<Mutex<Vec<StreamEvent>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    (Arc::new(move |event| kept.lock().unwrap().push(event)), seen)
}

async fn streamed(model: &OpenAi) -> (Result<Reply, ModelFailure>, Vec<StreamEvent>) {
    let (watch, seen) = watched();
    let result = model.stream(request(), watch).await;
    let seen = seen.lock().unwrap().clone();
    (result, seen)
}

fn texts(events: &[StreamEvent]) -> Vec<&str> {
    fn text(event: &StreamEvent) -> Option<&str> {
        match event {
            StreamEvent::Text { delta } => Some(delta.as_str()),
            _ => None,
        }
    }
    events.iter().filter_map(text).collect()
}

#[tokio::test]
async fn what_can_pass_is_tried_again_and_told() {
    let head = answer("200 OK", "", "{\"choices\"");
    let mut short = head.clone();
    short.truncate(head.len() - 5);
    for (name, act, kind) in [
        ("500", refusal("500 X", ""), FailureKind::Server),
        (
            "502 page",
            Act::Send(vec![answer("502 X", "Content-Type: text/html\r\n", "<html><title>Bad Gateway</title>")]),
            FailureKind::Server,
        ),
        ("503", refusal("503 X", "Retry-After: 0\r\n"), FailureKind::Overloaded),
        ("529", refusal("529 X", ""), FailureKind::Overloaded),
        ("429", refusal("429 X", "retry-after-ms: 2\r\n"), FailureKind::RateLimited),
        ("reset before the answer", Act::Reset(vec![]), FailureKind::Connection),
        ("reset inside the answer", Act::Reset(vec![short.clone()]), FailureKind::Connection),
        ("closed inside the answer", Act::Send(vec![short]), FailureKind::Connection),
        (
            "JSON that ends early",
            Act::Send(vec![b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"choices\": [".to_vec()]),
            FailureKind::InvalidReply,
        ),
        ("nothing", Act::Send(vec![answer("200 OK", "", "")]), FailureKind::InvalidReply),
        (
            "error in a 200",
            Act::Send(vec![answer("200 OK", "", r#"{"error":{"message":"x","code":503}}"#)]),
            FailureKind::Overloaded,
        ),
    ] {
        let server = Misbehaving::new(vec![act.clone(), whole("hi")]).await;
        let (watch, seen) = watched();
        let model = OpenAi::new(server.server()).unwrap();
        let reply = model.ask(request(), Ask { stream: Some(false), watch: Some(watch) }).await;
        assert_eq!(reply.map(|reply| reply.content.text().into_owned()), Ok("hi".to_owned()), "{name}");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert!(
            matches!(&seen[..], [StreamEvent::Retry { attempt: 1, failure, .. }] if failure.kind == kind),
            "{name}: {seen:?}"
        );

        let server = Misbehaving::new(vec![act]).await;
        let failure = OpenAi::new(server.server()).unwrap().complete(request()).await.unwrap_err();
        assert_eq!((failure.kind, failure.attempts, server.asked()), (kind, 3, 3), "{name}: {failure}");
        assert!(!format!("{failure} {failure:?}").contains(KEY), "{name}");
    }
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for (name, act, kind) in [
        ("400", refusal("400 X", ""), FailureKind::InvalidRequest),
        ("401", refusal("401 X", ""), FailureKind::Authentication),
        ("404", refusal("404 X", ""), FailureKind::InvalidRequest),
        ("408", refusal("408 X", ""), FailureKind::InvalidRequest),
        (
            "307",
            refusal("307 X", "Location: http://elsewhere.example/v1?key=k3y-that-nobody-may-see\r\n"),
            FailureKind::InvalidRequest,
        ),
        (
            "page",
            Act::Send(vec![answer("200 OK", "Content-Type: text/html\r\n", "<html><title>Log in</title>")]),
            FailureKind::InvalidReply,
        ),
        (
            "key in the answer",
            Act::Send(vec![answer("403 X", "", &format!("no such key: {KEY}"))]),
            FailureKind::Authentication,
        ),
    ] {
        for stream in [false, true] {
            let server = Misbehaving::new(vec![act.clone()]).await;
            let ask = Ask { stream: Some(stream), watch: None };
            let failure = OpenAi::new(server.server()).unwrap().ask(request(), ask).await.unwrap_err();
            assert_eq!((failure.kind, failure.attempts, server.asked()), (kind, 1, 1), "{name}: {failure}");
            assert!(!format!("{failure} {failure:?}").contains(KEY), "{name}: {failure}");
        }
    }
}

#[tokio::test]
async fn what_the_server_asks_for_is_waited_for() {
    let date = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(900);
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&date).expect("a date of today");
    for (header, least) in
        [("Retry-After: 1000", 1000), ("retry-after-ms: 1000000", 1000), (&*format!("Retry-After: {date}"), 800)]
    {
        let server = Misbehaving::new(vec![refusal("429 X", &format!("{header}\r\n")), whole("hi")]).await;
        let model = OpenAi::new(Server {
            retry: RetryPolicy { deadline: Some(Duration::from_secs(60)), ..server.server().retry },
            ..server.server()
        })
        .unwrap();
        let failure = model.complete(request()).await.unwrap_err();
        assert!(failure.retry_after.unwrap() >= Duration::from_secs(least), "{header}: {failure:?}");
        assert!(failure.message.contains("no time left"), "{failure}");
        assert_eq!(server.asked(), 1, "{header}");
    }
    let server = Misbehaving::new(vec![refusal("429 X", "Retry-After: 0.05\r\n"), whole("hi")]).await;
    let began = std::time::Instant::now();
    OpenAi::new(server.server()).unwrap().complete(request()).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_tried_again_only_while_nothing_was_shown() {
    let broken = vec![STREAM.to_vec(), chunk("one "), chunk("two")];
    let good = Act::Send(vec![STREAM.to_vec(), chunk("fine"), last()]);
    for act in [Act::Send(broken.clone()), Act::Reset(broken.clone())] {
        let server = Misbehaving::new(vec![act.clone(), good.clone()]).await;
        let (result, seen) = streamed(&OpenAi::new(server.server()).unwrap()).await;
        let failure = result.unwrap_err();
        assert_eq!((failure.kind, server.asked()), (FailureKind::InvalidReply, 1), "{failure}");
        let partial = failure.partial.as_ref().unwrap();
        assert_eq!(partial.content.text(), texts(&seen).concat());
        assert_eq!(partial.stop_reason.as_str(), "incomplete");
        assert!(failure.message.contains("ended early"), "{failure}");

        // Nobody watches: nothing was shown.
        let server = Misbehaving::new(vec![act, good.clone()]).await;
        let ask = Ask { stream: Some(true), watch: None };
        let reply = OpenAi::new(server.server()).unwrap().ask(request(), ask).await.unwrap();
        assert_eq!((reply.content.text().as_ref(), server.asked()), ("fine", 2));
    }
    for first in
        [vec![STREAM.to_vec()], vec![STREAM.to_vec(), b": keep-alive\n\n".to_vec()], vec![STREAM.to_vec(), chunk("")]]
    {
        let server = Misbehaving::new(vec![Act::Send(first), good.clone()]).await;
        let (result, seen) = streamed(&OpenAi::new(server.server()).unwrap()).await;
        assert_eq!((result.unwrap().content.text().as_ref(), texts(&seen), server.asked()), ("fine", vec!["fine"], 2));
    }
}

#[tokio::test]
async fn a_stream_is_read_however_it_is_cut_and_whatever_the_server_calls_it() {
    let events = [STREAM.to_vec(), chunk("文😀"), last()].concat();
    for size in [1, 2, 3, 7] {
        let server = Misbehaving::new(vec![Act::Send(events.chunks(size).map(<[u8]>::to_vec).collect())]).await;
        let (result, seen) = streamed(&OpenAi::new(server.server()).unwrap()).await;
        assert_eq!((result.unwrap().content.text().as_ref(), texts(&seen)), ("文😀", vec!["文😀"]));
    }
    // A reply in one piece to one who asked for pieces, and the other way round.
    let server = Misbehaving::new(vec![whole("hi")]).await;
    let (result, seen) = streamed(&OpenAi::new(server.server()).unwrap()).await;
    assert_eq!((result.unwrap().content.text().as_ref(), texts(&seen)), ("hi", vec!["hi"]));
    let server = Misbehaving::new(vec![Act::Send(vec![events])]).await;
    let reply = OpenAi::new(server.server()).unwrap().complete(request()).await.unwrap();
    assert_eq!(reply.content.text(), "文😀");
}

#[tokio::test]
async fn silence_ends_a_request_and_what_is_whole_is_not_waited_for() {
    let limits = |server: &Misbehaving| Server {
        idle_timeout: Duration::from_millis(50),
        timeout: Duration::from_millis(50),
        retry: RetryPolicy::never(),
        ..server.server()
    };
    for act in [
        Act::Hang(vec![]),
        Act::Hang(vec![STREAM.to_vec(), chunk("a")]),
        Act::Hang(vec![b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()]),
    ] {
        let server = Misbehaving::new(vec![act]).await;
        let failure = streamed(&OpenAi::new(limits(&server)).unwrap()).await.0.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    }
    let server = Misbehaving::new(vec![Act::Hang(vec![STREAM.to_vec(), chunk("a"), last()])]).await;
    let reply =
        OpenAi::new(limits(&server)).unwrap().ask(request(), Ask { stream: Some(true), watch: None }).await.unwrap();
    assert_eq!(reply.content.text(), "a");
    let done = Act::Hang(vec![STREAM.to_vec(), chunk("a"), b"data: [DONE]\n\n".to_vec()]);
    let server = Misbehaving::new(vec![done]).await;
    assert_eq!(streamed(&OpenAi::new(server.server()).unwrap()).await.0.unwrap().content.text(), "a");
}

#[tokio::test]
async fn keys_go_where_they_belong_and_are_seen_nowhere() {
    let server = Misbehaving::new(vec![whole("hi")]).await;
    let model = OpenAi::new(Server { headers: vec![("x-team".into(), "red".into())], ..server.server() }).unwrap();
    model.complete(request()).await.unwrap();
    let sent = server.requests.lock().unwrap()[0].clone();
    assert!(sent.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {KEY}\r\n")) && sent.contains("x-team: red"), "{sent}");
    assert!(!format!("{model:?} {:?}", server.server()).contains(KEY));

    let body = r#"{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
    let server = Misbehaving::new(vec![Act::Send(vec![answer("200 OK", "", body)])]).await;
    let key = Key::from_fn(|| Ok(KEY.to_owned()));
    let model = Anthropic::new(Server { api_key: key, ..server.server() }).unwrap();
    assert_eq!(model.complete(request()).await.unwrap().content.text(), "hi");
    let sent = server.requests.lock().unwrap()[0].clone();
    assert!(sent.starts_with("POST /v1/messages HTTP/1.1\r\n") && sent.contains("anthropic-version: "), "{sent}");
    assert!(sent.contains(&format!("x-api-key: {KEY}\r\n")), "{sent}");
}

#[tokio::test]
async fn a_recorded_exchange_is_replayed_with_its_failures_and_without_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let stream = Act::Send(vec![STREAM.to_vec(), chunk("good "), chunk("morning"), last()]);
    let echo = Act::Send(vec![answer("500 X", "", &format!("bad {KEY}"))]);
    let server = Misbehaving::new(vec![echo, stream]).await;
    let recorder = Recorder::new(Arc::new(OpenAi::new(server.server()).unwrap()), &path, Redactor::default()).unwrap();
    let (watch, live) = watched();
    let answered = recorder.stream(request(), watch).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((text.lines().count(), text.contains(KEY)), (3, false), "{text}");

    let replay = Replay::open(&path).unwrap();
    let (watch, seen) = watched();
    assert_eq!(replay.stream(request(), watch).await.unwrap(), answered);
    assert_eq!((texts(&seen.lock().unwrap()), replay.remaining()), (texts(&live.lock().unwrap()), 0));
    assert!(matches!(seen.lock().unwrap()[0], StreamEvent::Retry { attempt: 1, .. }));
}

#[tokio::test]
async fn nobody_there_is_a_failure_of_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:{KEY}@{}/v1?api-key={KEY}", listener.local_addr().unwrap());
    drop(listener);
    let server = Server { base_url: Some(url), api_key: Key::None, retry: RetryPolicy::never(), ..Server::new("m") };
    let model = OpenAi::new(server).unwrap();
    let failure = model.complete(request()).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Connection);
    assert!(!format!("{failure} {failure:?} {model:?}").contains(KEY), "{failure}");
}
