//! What the APIs differ in: how a request is written and how a reply is read. All else (connections, retries, cassettes)
//! is the same for them.

use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use url::Url;

use super::{ModelFailure, Profile, Reply, Request, StreamEvent, sse};

/// One API.
pub(super) trait Dialect: Send + Sync {
    /// Its name in cassettes.
    fn name(&self) -> &'static str;

    /// The profile where neither a name nor a URL is given.
    fn usual_profile(&self) -> &'static str;

    /// The environment variable that usually says where the API begins.
    fn url_variable(&self) -> &'static str;

    /// Where requests go, by where the API begins.
    fn endpoint(&self, base: &Url) -> Url;

    /// Headers that every request has, besides the key's.
    fn headers(&self) -> HeaderMap;

    /// The body of a request.
    fn body(
        &self,
        request: &Request,
        model: &str,
        settings: Map<String, Value>,
        profile: &Profile,
        stream: bool,
    ) -> Value;

    /// Reads a reply that is there as a whole.
    fn read(&self, reply: &Map<String, Value>) -> Result<Reply, ModelFailure>;

    /// Puts a streamed reply together.
    fn assembler(&self) -> Box<dyn Assemble>;
}

/// Puts a streamed reply together.
pub(super) trait Assemble: Send {
    /// Takes the next event in, telling what came in.
    ///
    /// # Errors
    /// What the server says went wrong.
    fn push(&mut self, event: sse::Event<'_>, told: &mut dyn FnMut(StreamEvent)) -> Result<(), ModelFailure>;

    /// Whether the server has said that this is all.
    fn is_complete(&self) -> bool;

    /// The reply as far as it came in.
    fn finish(&mut self) -> Reply;
}

/// `base` with `path` behind its own path; its query stays. A base that ends in the path already is the endpoint itself.
pub(super) fn endpoint(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    let present: Vec<String> =
        base.path_segments().into_iter().flatten().filter(|part| !part.is_empty()).map(str::to_owned).collect();
    // What the base ends with and the path begins with is the same part: `…/v1` and `v1/messages`.
    let shared = (0..=path.len().min(present.len()))
        .rev()
        .find(|count| present[present.len() - count..].iter().eq(path[..*count].iter()))
        .unwrap_or(0);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(&path[shared..]);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_behind_whatever_base_is_given() {
        let find = |base: &str, path: &[&str]| endpoint(&Url::parse(base).unwrap(), path).to_string();
        let chat = ["chat", "completions"];
        for (base, wanted) in [
            ("http://h:1/v1", "http://h:1/v1/chat/completions"),
            ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
            ("http://h:1", "http://h:1/chat/completions"),
            ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
            ("http://h:1/d/chat/completions?api-version=2", "http://h:1/d/chat/completions?api-version=2"),
            ("http://h:1/d?api-version=2", "http://h:1/d/chat/completions?api-version=2"),
        ] {
            assert_eq!(find(base, &chat), wanted);
        }
        let messages = ["v1", "messages"];
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/messages"] {
            assert_eq!(find(base, &messages), "http://h:1/v1/messages", "{base}");
        }
    }
}
