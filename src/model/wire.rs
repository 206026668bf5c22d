//! One request to a server, with all its attempts.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::assemble::Assemble;
use super::bucket::{Bucket, Pass};
use super::cassette::Exchange;
use super::profile::Profile;
use super::retry::{Class, Retries, class_of};
use super::server::shown_url;
use super::{
    Ask, FailureKind, ModelFailure, Reply, Request, Server, ServerError, StreamEvent, Tape, Verify, Watch, call_id,
    http, read, trouble,
};

/// How one API is talked to.
pub(super) trait Api: Send + Sync {
    /// Its name in cassettes, and that of the profile where nothing else chooses one.
    fn name(&self) -> &'static str;
    /// The environment variable that says where it is.
    fn base_url_variable(&self) -> &'static str;
    /// The path behind a base URL whose own path is `base`.
    fn path(&self, base: &str) -> &'static str;
    /// Headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)];
    /// The body of a request.
    fn body(&self, request: &Request, profile: &Profile, stream: bool) -> Map<String, Value>;
    /// Reads a reply in one piece.
    fn reply(&self, body: &str) -> Result<Reply, ModelFailure>;
    /// Puts a reply together from pieces.
    fn assembler(&self, request: &Request) -> Box<dyn Assemble>;
}

/// What is shorter is no secret, in bytes.
const SHORTEST_SECRET: usize = 8;

/// A model on a server.
#[derive(Clone)]
pub(super) struct Wire {
    api: &'static dyn Api,
    server: Server,
    profile: Arc<Profile>,
    url: Url,
    headers: HeaderMap,
    /// What may not be shown to anybody: passwords in the URL, and headers that are keys.
    secrets: Vec<String>,
    tape: Option<Arc<dyn Tape>>,
}

/// An attempt that failed.
pub(super) struct Failed {
    pub(super) failure: ModelFailure,
    /// Whether another attempt could help.
    pub(super) again: bool,
    /// Whether it is a reply that ended too early.
    pub(super) early: bool,
}

impl Failed {
    pub(super) fn new(failure: ModelFailure) -> Self {
        Failed { failure, again: true, early: false }
    }
}

impl Wire {
    pub(super) fn new(api: &'static dyn Api, server: Server) -> Result<Self, ServerError> {
        if server.model.trim().is_empty() {
            return Err(ServerError::NoModel);
        }
        let named = server.profile.as_deref().map(Profile::named).transpose()?;
        let variable = || std::env::var(api.base_url_variable()).ok().filter(|url| !url.trim().is_empty());
        let default = Profile::named(api.name())?;
        let base = server
            .base_url
            .clone()
            .or_else(|| named.as_ref().and_then(|profile| profile.base_url.clone()))
            .or_else(variable)
            .or_else(|| default.base_url.clone())
            .unwrap_or_default();
        let profile = named.unwrap_or_else(|| match Profile::for_url(&base) {
            unknown if unknown.name == "compatible" && api.name() == "anthropic" => default,
            profile => profile,
        });
        let url = endpoint(api, base.trim())?;
        let headers = headers(api, &server.headers)?;
        if let Verify::CaFile(path) = &server.verify {
            http::certificates(path)?;
        }
        let mut secrets: Vec<String> = url.password().into_iter().map(str::to_owned).collect();
        secrets.extend(url.query_pairs().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.into_owned()));
        secrets.extend(server.headers.iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.clone()));
        Ok(Wire { api, server, profile, url, headers, secrets, tape: None })
    }

    pub(super) fn recorded(&self, tape: Arc<dyn Tape>) -> Self {
        Wire { tape: Some(tape), ..self.clone() }
    }

    pub(super) fn name(&self) -> &str {
        &self.server.model
    }

    /// What it shares with other requests to the same model with the same key.
    fn bucket(&self) -> Arc<Bucket> {
        let own: Vec<_> = self.headers.iter().filter(|(_, value)| value.is_sensitive()).collect();
        let headers = own.iter().flat_map(|(_, value)| value.as_bytes()).copied().collect::<Vec<u8>>();
        let key = self.server.api_key.fingerprint(&self.profile.key_variables);
        let key = format!("{key}{}", String::from_utf8_lossy(&headers));
        Bucket::of(self.url.as_str(), &self.server.model, &key)
    }

    /// What is shown of it.
    pub(super) fn described(&self) -> (String, &str) {
        (shown_url(self.url.as_str()), &self.profile.name)
    }

    /// Answers `request`, with as many attempts as the policy allows.
    pub(super) async fn ask(self, request: Arc<Request>, ask: Ask) -> Result<Reply, ModelFailure> {
        let stream = ask.stream.unwrap_or(self.server.stream);
        let mut full = Request::clone(&request);
        full.model.get_or_insert_with(|| self.server.model.as_str().into());
        for (name, value) in &self.server.settings {
            full.settings.entry(name).or_insert_with(|| value.clone());
        }
        let body = self.api.body(&full, &self.profile, stream);
        let bytes = serde_json::to_vec(&body).map(Bytes::from);
        let bytes = bytes.map_err(|error| ModelFailure::new(FailureKind::InvalidRequest, error.to_string()))?;
        let policy = self.server.retry;
        let deadline = policy.deadline.map(|limit| Instant::now() + limit);
        let mut retries = Retries::new(policy);
        let bucket = self.bucket();
        let arrived = bucket.arrive();
        for attempt in 1.. {
            // Whoever makes each request once does not wait for others either.
            let pass = match policy.rate_limited.retries + policy.overloaded.retries {
                0 => None,
                _ => Some(bucket.enter(arrived, deadline).await?),
            };
            let mut attempted = Attempt {
                wire: &self,
                request: &full,
                bytes: bytes.clone(),
                stream,
                deadline,
                watch: ask.watch.as_ref(),
                shown: false,
                secrets: self.secrets.clone(),
                record: self.tape.is_some().then(Record::default),
            };
            let mut result = attempted.run().await;
            let Attempt { shown, secrets, record, .. } = attempted;
            match &mut result {
                Ok(reply) => call_id::make_unique_in(reply, &full),
                Err(failed) => {
                    failed.failure.attempts = attempt;
                    failed.failure.message = scrub(&failed.failure.message, &secrets);
                }
            }
            if let (Some(tape), Some(record)) = (&self.tape, record) {
                let calls = result.as_ref().map(|reply| reply.tool_calls.as_slice()).unwrap_or_default();
                tape.note(&Exchange {
                    api: self.api.name(),
                    model: &self.server.model,
                    profile: &self.profile.name,
                    request: &body,
                    attempt,
                    status: record.status,
                    body: record.body.as_deref(),
                    events: &record.events,
                    call_ids: &calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>(),
                    failure: result.as_ref().err().map(|failed| &failed.failure),
                    secrets: &secrets,
                });
            }
            let mut failed = match result {
                Ok(reply) => {
                    pass.into_iter().for_each(Pass::answered);
                    return Ok(reply);
                }
                Err(failed) => failed,
            };
            let failure = &mut failed.failure;
            let class = class_of(failure, failed.early).filter(|_| failed.again && !shown);
            let asked_too_much = matches!(class, Some(Class::RateLimited | Class::Overloaded));
            let refused = pass.as_ref().filter(|_| asked_too_much);
            if let (Some(pass), Some(class)) = (refused, class) {
                retries.count(class, pass.refused(failure));
            }
            let Some(wait) = class.and_then(|class| retries.wait(class, failure.retry_after)) else {
                refused.into_iter().for_each(|pass| pass.give_up(failure));
                return Err(failed.failure);
            };
            match pass {
                Some(pass) if asked_too_much => pass.pause(wait),
                Some(pass) if failure.status.is_some() => pass.answered(),
                _ => {}
            }
            if deadline.is_some_and(|deadline| Instant::now() + wait >= deadline) {
                failure.message.push_str("; there is no time left for another attempt");
                return Err(failed.failure);
            }
            tracing::warn!(target: "hookwright.model", model = %self.server.model, attempt, ?wait, %failure, "an attempt failed");
            if let Some(watch) = &ask.watch {
                let of = class.map(|class| retries.most(class));
                watch(StreamEvent::Retry { attempt, of, failure: failure.clone(), wait });
            }
            // Who was refused waits with all others.
            if !asked_too_much {
                tokio::time::sleep(wait).await;
            }
        }
        Err(ModelFailure::new(FailureKind::Connection, ""))
    }
}

/// What an attempt looked like, for a cassette.
#[derive(Default)]
pub(super) struct Record {
    pub(super) status: Option<u16>,
    pub(super) body: Option<String>,
    pub(super) events: Vec<(String, String)>,
}

/// One attempt.
pub(super) struct Attempt<'a> {
    wire: &'a Wire,
    pub(super) request: &'a Request,
    bytes: Bytes,
    stream: bool,
    deadline: Option<Instant>,
    pub(super) watch: Option<&'a Watch>,
    /// Whether somebody has seen a piece of the reply.
    pub(super) shown: bool,
    secrets: Vec<String>,
    pub(super) record: Option<Record>,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Result<Reply, Failed> {
        let server = &self.wire.server;
        let began = Instant::now();
        let mut headers = self.wire.headers.clone();
        if let Some(key) = self.key(&headers).await.map_err(Failed::new)? {
            let (name, value) = match self.wire.profile.key_header.as_deref() {
                Some(name) => (HeaderName::from_bytes(name.as_bytes()).ok(), HeaderValue::from_str(&key)),
                None => (Some(AUTHORIZATION), HeaderValue::from_str(&format!("Bearer {key}"))),
            };
            let (Some(name), Ok(mut value)) = (name, value) else {
                let message = "the key has a character that no header can carry, such as a line break";
                return Err(Failed::new(ModelFailure::new(FailureKind::Authentication, message)));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
            // Servers of one's own take any word for a key, and a short one stands in every text.
            if key.len() >= SHORTEST_SECRET {
                self.secrets.push(key);
            }
        }
        let client = http::client(&server.verify, server.connect_timeout).map_err(Failed::new)?;
        let sent = client.post(self.wire.url.clone()).headers(headers).body(self.bytes.clone()).send();
        let response = self.within(sent, began + server.timeout, "no answer came").await??;
        let status = response.status().as_u16();
        if let Some(record) = &mut self.record {
            record.status = Some(status);
        }
        if !response.status().is_success() {
            return Err(self.refused(response, status, began).await);
        }
        self.read(response, began).await
    }

    /// The key, unless a header of the user's own carries it.
    async fn key(&self, headers: &HeaderMap) -> Result<Option<String>, ModelFailure> {
        let profile = &self.wire.profile;
        let own = profile.key_header.as_deref().is_some_and(|name| headers.contains_key(name));
        if own || headers.contains_key(AUTHORIZATION) {
            return Ok(None);
        }
        let key = self.wire.server.api_key.get(&profile.key_variables).await?;
        if key.is_none() && profile.key_required && matches!(self.wire.server.api_key, super::Key::Usual) {
            let names = profile.key_variables.join(" or ");
            let message = format!("there is no key: give api_key, or set the environment variable {names}");
            return Err(ModelFailure::new(FailureKind::Authentication, message));
        }
        Ok(key)
    }

    /// The failure that a status other than 2xx stands for.
    async fn refused(&mut self, mut response: Response, status: u16, began: Instant) -> Failed {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = trouble::retry_after(header("retry-after-ms"), header("retry-after"), jiff::Timestamp::now());
        let location = header("location").map(shown_url);
        let mut body = Vec::new();
        // What the server says helps, but that it failed is known without it.
        while body.len() < read::LONGEST_ERROR {
            let next = self.within(response.chunk(), began + self.wire.server.timeout, "").await;
            let Ok(Ok(Some(chunk))) = next else { break };
            body.extend_from_slice(&chunk);
        }
        let body = String::from_utf8_lossy(&body);
        let mut failure = trouble::of_status(status, &body);
        if let (300..400, Some(location)) = (status, location) {
            failure.message = format!("the server says that the API is elsewhere, at {location}; set base_url");
        } else if status == 404 {
            failure.message.push_str("; check the model's name and base_url");
        }
        failure.retry_after = retry_after;
        let again = retry_after.is_some() || !trouble::is_used_up(&body);
        if let Some(record) = &mut self.record {
            record.body = Some(body.into_owned());
        }
        Failed { failure, again, early: false }
    }

    async fn read(&mut self, response: Response, began: Instant) -> Result<Reply, Failed> {
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let streamed = content_type.contains("event-stream") || (self.stream && !content_type.contains("json"));
        read::Reading { attempt: self, response, began, streamed }.run().await
    }

    /// Whether whoever watches wants the reply in pieces, not only to hear of failed attempts.
    pub(super) fn wants_pieces(&self) -> bool {
        self.stream
    }

    pub(super) fn api(&self) -> &'static dyn Api {
        self.wire.api
    }

    pub(super) fn server(&self) -> &Server {
        &self.wire.server
    }

    /// Waits for `future` until `limit`, or the deadline of the whole request.
    pub(super) async fn within<T, E: Into<Broken>>(
        &self,
        future: impl Future<Output = Result<T, E>>,
        limit: Instant,
        what: &str,
    ) -> Result<Result<T, Failed>, Failed> {
        let until = self.deadline.map_or(limit, |deadline| deadline.min(limit));
        let began = Instant::now();
        match timeout_at(until, future).await {
            Ok(Ok(value)) => Ok(Ok(value)),
            Ok(Err(error)) => Ok(Err(error.into().0)),
            Err(_) => {
                let waited = shown_duration(began.elapsed());
                let message = format!("the model's server took too long: {what} within {waited}");
                Err(Failed::new(ModelFailure::new(FailureKind::Timeout, message)))
            }
        }
    }
}

/// A failure that came from the client.
pub(super) struct Broken(Failed);

impl From<reqwest::Error> for Broken {
    fn from(error: reqwest::Error) -> Self {
        let (failure, again) = http::failure(error);
        Broken(Failed { failure, again, early: false })
    }
}

fn shown_duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds => format!("{seconds} s"),
    }
}

fn endpoint(api: &dyn Api, base: &str) -> Result<Url, ServerError> {
    let bad = |reason: &str| ServerError::BaseUrl { shown: shown_url(base), reason: reason.to_owned() };
    let mut url = Url::parse(base).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it does not begin with http:// or https://"));
    }
    let own = url.path().trim_end_matches('/').to_owned();
    let path = api.path(&own);
    url.set_path(&format!("{own}{path}"));
    Ok(url)
}

fn headers(api: &dyn Api, own: &[(String, String)]) -> Result<HeaderMap, ServerError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in api.headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    for (name, value) in own {
        let bad = |reason| ServerError::Header { name: name.clone(), reason };
        let key = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| bad("its name is none that a header can have"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| bad("its value has a character that no header can carry"))?;
        value.set_sensitive(is_secret_name(name));
        headers.insert(key, value);
    }
    Ok(headers)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "auth", "password", "cookie", "sig", "credential"].iter().any(|word| name.contains(word))
}

/// `text` without any of `secrets`, nor what looks like one.
pub(super) fn scrub(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
        text = text.replace(bare, crate::hook::redact::REDACTED);
    }
    crate::hook::redact::redact(&text).into_owned()
}
