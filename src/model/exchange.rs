//! One request to a server, with all its attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use url::Url;

use super::cassette::Exchange;
use super::dialect::{Assemble, Dialect};
use super::http::{chain_of, client};
use super::{
    Ask, FailureKind, ModelFailure, Profile, Reply, Request, RetryPolicy, RetryRule, Server, ServerError, StreamEvent,
    Tape, Watch, call_id, server::shown_url, sse, trouble,
};
use crate::message::json;

/// How much of what a server says to an error is read, in bytes.
const MOST_OF_ERROR: usize = 64 * 1024;

/// A server and the way to talk to it, checked.
pub(super) struct Line {
    pub(super) server: Server,
    pub(super) dialect: Arc<dyn Dialect>,
    pub(super) profile: Arc<Profile>,
    url: Url,
    headers: HeaderMap,
    client: Client,
    tape: Option<Arc<dyn Tape>>,
}

impl Clone for Line {
    fn clone(&self) -> Self {
        Line {
            server: self.server.clone(),
            dialect: self.dialect.clone(),
            profile: self.profile.clone(),
            url: self.url.clone(),
            headers: self.headers.clone(),
            client: self.client.clone(),
            tape: self.tape.clone(),
        }
    }
}

/// Which rule an attempt that failed is made again by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Connection,
    RateLimited,
    Server,
    Overloaded,
}

/// An attempt that failed.
struct Failed {
    failure: ModelFailure,
    /// `None` if another attempt is of no use.
    class: Option<Class>,
}

impl Failed {
    fn final_one(failure: ModelFailure) -> Self {
        Failed { failure, class: None }
    }

    fn by_kind(failure: ModelFailure) -> Self {
        let class = match failure.kind {
            FailureKind::Connection | FailureKind::Timeout => Some(Class::Connection),
            FailureKind::RateLimited => Some(Class::RateLimited),
            FailureKind::Server => Some(Class::Server),
            FailureKind::Overloaded => Some(Class::Overloaded),
            _ => None,
        };
        Failed { failure, class }
    }

    fn broken(message: impl Into<String>) -> Self {
        Failed { failure: ModelFailure::new(FailureKind::Connection, message), class: Some(Class::Connection) }
    }
}

impl Line {
    pub(super) fn new(server: Server, dialect: Arc<dyn Dialect>) -> Result<Self, ServerError> {
        if server.model.trim().is_empty() {
            return Err(ServerError::NoModel);
        }
        let base = server.base_url.clone().or_else(|| {
            std::env::var(dialect.url_variable()).ok().filter(|url| server.profile.is_none() && !url.trim().is_empty())
        });
        let profile = match (&server.profile, &base) {
            (Some(name), _) => Profile::named(name)?,
            (None, Some(base)) if dialect.name() == "openai" => Profile::for_url(base),
            (None, _) => Profile::named(dialect.usual_profile())?,
        };
        let base = base.or_else(|| profile.base_url.clone()).unwrap_or_default();
        let refused = |reason: &str| ServerError::BaseUrl { shown: shown_url(&base), reason: reason.to_owned() };
        let parsed = Url::parse(base.trim()).map_err(|error| refused(&error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refused("it begins neither with http:// nor with https://"));
        }
        let mut headers = dialect.headers();
        for (name, value) in &server.headers {
            let unusable = |reason| ServerError::Header { name: name.clone(), reason };
            let name = HeaderName::try_from(name.as_str()).map_err(|_| unusable("it is no name of a header"))?;
            let mut value = HeaderValue::try_from(value.as_str())
                .map_err(|_| unusable("its value holds a character that headers cannot have"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = client(&server.verify, server.connect_timeout)?;
        Ok(Line { url: dialect.endpoint(&parsed), headers, client, dialect, profile, server, tape: None })
    }

    pub(super) fn recorded(&self, tape: Arc<dyn Tape>) -> Self {
        Line { tape: Some(tape), ..self.clone() }
    }

    /// The body of a request.
    pub(super) fn body(&self, request: &Request, stream: bool) -> Value {
        let mut settings = self.server.settings.clone();
        settings.extend(request.settings.clone());
        let model = request.model.as_deref().unwrap_or(&self.server.model);
        self.profile.adapt(&mut settings, model);
        self.dialect.body(request, model, settings, &self.profile, stream)
    }

    /// Asks, as often as the policy says.
    pub(super) async fn ask(&self, request: Arc<Request>, ask: Ask) -> Result<Reply, ModelFailure> {
        let stream = ask.stream.unwrap_or(self.server.stream);
        let body = self.body(&request, stream);
        let bytes = serde_json::to_vec(&body).map_err(|error| {
            ModelFailure::new(FailureKind::InvalidRequest, format!("the request has no JSON form: {error}"))
        })?;
        let bytes = bytes::Bytes::from(bytes);
        let policy = &self.server.retry;
        let until = policy.deadline.map(|deadline| Instant::now() + deadline);
        let mut made = Attempts::default();
        loop {
            let shown = AtomicBool::new(false);
            let attempt = self.attempt(&body, bytes.clone(), stream, &ask, &shown);
            let result = match until {
                Some(until) => tokio::time::timeout_at(until, attempt).await.unwrap_or_else(|_| {
                    let message = "the time for the request and its retries is used up";
                    Err(Failed::final_one(ModelFailure::new(FailureKind::Timeout, message)))
                }),
                None => attempt.await,
            };
            let mut failed = match result {
                Ok(mut reply) => {
                    call_id::make_unique_in(&mut reply, &request);
                    return Ok(reply);
                }
                Err(failed) => failed,
            };
            failed.failure.attempts = made.count() + 1;
            let Some(class) = failed.class.filter(|_| !shown.load(Ordering::Relaxed)) else {
                return Err(failed.failure);
            };
            let Some(wait) = made.wait(policy, class, failed.failure.retry_after) else { return Err(failed.failure) };
            if until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(failed.failure);
            }
            tracing::info!(attempt = made.count(), kind = %failed.failure.kind, wait_ms = wait.as_millis() as u64, "asking the model once more");
            if let Some(watch) = &ask.watch {
                watch(StreamEvent::Retry { attempt: made.count(), failure: failed.failure, wait });
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        body: &Value,
        bytes: bytes::Bytes,
        stream: bool,
        ask: &Ask,
        shown: &AtomicBool,
    ) -> Result<Reply, Failed> {
        let began = Instant::now();
        let mut headers = self.headers.clone();
        self.add_key(&mut headers).await.map_err(Failed::final_one)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let request = self.client.post(self.url.clone()).headers(headers).body(bytes).send();
        let response = match timeout(self.server.timeout, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(unsent(&error)),
            Err(_) => return Err(self.too_slow("the server did not begin to answer")),
        };
        let status = response.status();
        let is_stream = content_type(&response).is_some_and(|kind| kind.contains("event-stream"));
        let is_json = content_type(&response).is_some_and(|kind| kind.contains("json"));
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        let mut tape = self.tape.as_ref().map(|_| Vec::new());
        let result = if is_stream || stream && !is_json {
            let watch = ask.watch.as_ref().filter(|_| !ask.retries_only);
            self.read_stream(response, watch, shown, tape.as_mut()).await
        } else {
            let left = self.server.timeout.saturating_sub(began.elapsed());
            let text = match timeout(left, response.bytes()).await {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(error)) => return Err(Failed::broken(format!("the reply broke off: {}", chain_of(&error)))),
                Err(_) => return Err(self.too_slow("the reply was not there")),
            };
            if let Some(tape) = &mut tape {
                tape.extend_from_slice(&text);
            }
            read_whole(self.dialect.as_ref(), &text)
        };
        if let (Some(tape), Some(bytes)) = (&self.tape, tape)
            && result.is_ok()
        {
            let reply = String::from_utf8_lossy(&bytes).into_owned();
            let exchange =
                Exchange { api: self.dialect.name().to_owned(), request: body.clone(), stream: is_stream, reply };
            tape.record(exchange).map_err(|reason| {
                let message = format!("the cassette cannot be written: {reason}");
                Failed::final_one(ModelFailure::new(FailureKind::Script, message))
            })?;
        }
        result
    }

    async fn add_key(&self, headers: &mut HeaderMap) -> Result<(), ModelFailure> {
        let missing = |message: String| ModelFailure::new(FailureKind::Authentication, message);
        let Some(key) = self.server.api_key.get(&self.profile.key_variables).await? else {
            let has_own = ["authorization", "api-key", "x-api-key"].iter().any(|name| headers.contains_key(*name));
            if self.profile.key_required && !has_own && !matches!(self.server.api_key, super::Key::None) {
                let names = self.profile.key_variables.join(" or ");
                return Err(missing(format!("there is no key: set {names}, or give api_key")));
            }
            return Ok(());
        };
        let (name, value) = match &self.profile.key_header {
            Some(name) => (name.as_str(), key),
            None => ("authorization", format!("Bearer {key}")),
        };
        let unusable = |_| missing("the key holds a character that headers cannot have".to_owned());
        let mut value = HeaderValue::try_from(value).map_err(unusable)?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name).map_err(|_| missing(format!("{name:?} is no name of a header")))?;
        // A header of the user's own wins.
        headers.entry(name).or_insert(value);
        Ok(())
    }

    fn too_slow(&self, what: &str) -> Failed {
        let message = format!("{what} within {} s", self.server.timeout.as_secs_f64());
        Failed::by_kind(ModelFailure::new(FailureKind::Timeout, message))
    }

    /// A status other than 2xx.
    async fn refused(&self, mut response: Response) -> Failed {
        let status = response.status().as_u16();
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (millis, after) = (text("retry-after-ms"), text(RETRY_AFTER.as_str()));
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() >= MOST_OF_ERROR {
                    break;
                }
            }
        };
        // What came in is enough to say what is wrong.
        let _ = timeout(self.server.idle_timeout.min(self.server.timeout), read).await;
        let body = String::from_utf8_lossy(&body);
        let mut failure = trouble::of_status(status, &body);
        failure.retry_after = trouble::retry_after(millis.as_deref(), after.as_deref(), jiff::Timestamp::now());
        if trouble::is_used_up(&body) {
            return Failed::final_one(failure);
        }
        Failed::by_kind(failure)
    }

    async fn read_stream(
        &self,
        mut response: Response,
        watch: Option<&Watch>,
        shown: &AtomicBool,
        mut tape: Option<&mut Vec<u8>>,
    ) -> Result<Reply, Failed> {
        let mut parser = sse::Parser::new();
        let mut assembler = self.dialect.assembler();
        let mut told = |event: StreamEvent| {
            if let Some(watch) = watch {
                shown.store(true, Ordering::Relaxed);
                watch(event);
            }
        };
        // A server that answers without a stream after all, or with a page, has no event in what it sends.
        let mut first = Vec::new();
        let mut events = 0_usize;
        loop {
            let chunk = match timeout(self.server.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    if assembler.is_complete() {
                        break; // Nothing is missing.
                    }
                    return Err(early(assembler, &format!("the reply broke off: {}", chain_of(&error))));
                }
                Err(_) => {
                    if assembler.is_complete() {
                        break;
                    }
                    let message = format!("nothing came in for {} s", self.server.idle_timeout.as_secs_f64());
                    let mut failed = early(assembler, &message);
                    failed.failure.kind = FailureKind::Timeout;
                    return Err(failed);
                }
            };
            if let Some(tape) = &mut tape {
                tape.extend_from_slice(&chunk);
            }
            if events == 0 && first.len() < MOST_OF_ERROR {
                first.extend_from_slice(&chunk);
            }
            let pushed = parser.push(&chunk, |event| {
                events += 1;
                assembler.push(event, &mut told)
            });
            if let Err(failure) = pushed {
                return Err(with_partial(failure, assembler));
            }
        }
        let pushed = parser.finish(|event| {
            events += 1;
            assembler.push(event, &mut told)
        });
        if let Err(failure) = pushed {
            return Err(with_partial(failure, assembler));
        }
        if events == 0 {
            return read_whole(self.dialect.as_ref(), &first);
        }
        if !assembler.is_complete() {
            return Err(early(assembler, "the stream ended before the reply was complete"));
        }
        Ok(assembler.finish())
    }
}

/// A request that did not get through.
fn unsent(error: &reqwest::Error) -> Failed {
    let text = chain_of(error);
    let text = if text.is_empty() { "the connection failed".to_owned() } else { text };
    let (kind, message) = if error.is_timeout() {
        (FailureKind::Timeout, format!("the server could not be reached in time: {text}"))
    } else if error.is_connect() {
        (FailureKind::Connection, format!("the server could not be reached: {text}"))
    } else {
        (FailureKind::Connection, format!("the connection broke: {text}"))
    };
    let failure = ModelFailure::new(kind, message);
    if error.is_builder() { Failed::final_one(failure) } else { Failed::by_kind(failure) }
}

/// A reply that ended early is an error and never the answer, however much of it there is.
fn early(mut assembler: Box<dyn Assemble>, message: &str) -> Failed {
    let partial = Some(Box::new(assembler.finish()));
    let failure = ModelFailure { partial, ..ModelFailure::new(FailureKind::InvalidReply, message) };
    Failed { failure, class: Some(Class::Connection) }
}

fn with_partial(failure: ModelFailure, mut assembler: Box<dyn Assemble>) -> Failed {
    let partial = assembler.finish();
    let partial = (!partial.content.is_empty() || !partial.tool_calls.is_empty()).then(|| Box::new(partial));
    Failed::by_kind(ModelFailure { partial, ..failure })
}

/// Reads a reply that is there as a whole.
fn read_whole(dialect: &dyn Dialect, bytes: &[u8]) -> Result<Reply, Failed> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    match json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => match trouble::in_reply(&object) {
            Some(failure) => Err(Failed::by_kind(failure)),
            None => dialect.read(&object).map_err(Failed::by_kind),
        },
        Err(error) if error.is_eof() && !text.is_empty() => Err(Failed::broken("the reply ended early")),
        _ => Err(Failed::by_kind(trouble::not_json(text))),
    }
}

/// Reads a reply that was recorded.
pub(super) fn read_recorded(
    dialect: &dyn Dialect,
    exchange: &Exchange,
    watch: Option<&Watch>,
) -> Result<Reply, ModelFailure> {
    if !exchange.stream {
        return read_whole(dialect, exchange.reply.as_bytes()).map_err(|failed| failed.failure);
    }
    let mut assembler = dialect.assembler();
    let mut told = |event: StreamEvent| {
        if let Some(watch) = watch {
            watch(event);
        }
    };
    let mut parser = sse::Parser::new();
    parser.push(exchange.reply.as_bytes(), |event| assembler.push(event, &mut told))?;
    parser.finish(|event| assembler.push(event, &mut told))?;
    Ok(assembler.finish())
}

fn content_type(response: &Response) -> Option<&str> {
    response.headers().get(CONTENT_TYPE)?.to_str().ok()
}

/// How often attempts were made again, by class.
#[derive(Default)]
struct Attempts {
    made: Vec<Class>,
}

impl Attempts {
    fn count(&self) -> u32 {
        u32::try_from(self.made.len()).unwrap_or(u32::MAX)
    }

    /// Counts one more and says how long to wait before it; `None` if the policy allows no more.
    fn wait(&mut self, policy: &RetryPolicy, class: Class, asked: Option<Duration>) -> Option<Duration> {
        let RetryRule { retries, first_wait } = match class {
            Class::Connection => policy.connection,
            Class::RateLimited => policy.rate_limited,
            Class::Server => policy.server,
            Class::Overloaded => policy.overloaded,
        };
        let before = self.made.iter().filter(|one| **one == class).count();
        if before >= retries as usize {
            return None;
        }
        self.made.push(class);
        let doubled = first_wait.saturating_mul(2_u32.saturating_pow(u32::try_from(before).unwrap_or(u32::MAX)));
        let longest = doubled.min(policy.longest_wait);
        let wait = if policy.jitter { longest.mul_f64(fastrand::f64()) } else { longest };
        Some(wait.max(asked.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_never_fall_below_what_the_server_asks() {
        let policy = RetryPolicy { jitter: false, ..RetryPolicy::default() };
        let mut made = Attempts::default();
        let seconds = Duration::from_secs;
        assert_eq!(made.wait(&policy, Class::RateLimited, None), Some(seconds(5)));
        assert_eq!(made.wait(&policy, Class::Connection, None), Some(seconds(1)));
        assert_eq!(made.wait(&policy, Class::RateLimited, Some(seconds(90))), Some(seconds(90)));
        assert_eq!(made.wait(&policy, Class::RateLimited, Some(seconds(1))), Some(seconds(20)));
        assert_eq!(made.wait(&policy, Class::RateLimited, None), None);
        let waits: Vec<_> = std::iter::from_fn(|| made.wait(&policy, Class::Connection, None)).collect();
        assert_eq!(waits, [2, 4, 8, 16].map(seconds));
        let policy = RetryPolicy {
            longest_wait: seconds(3),
            connection: RetryRule { retries: 9, first_wait: seconds(2) },
            ..policy
        };
        let mut made = Attempts::default();
        let waits: Vec<_> = std::iter::from_fn(|| made.wait(&policy, Class::Connection, None)).take(3).collect();
        assert_eq!(waits, [2, 3, 3].map(seconds));
        let policy = RetryPolicy { jitter: true, ..policy };
        for _ in 0..50 {
            assert!(Attempts::default().wait(&policy, Class::Connection, None).unwrap() < seconds(2));
        }
    }
}
