//! A server that models run on: where it is and how it is talked to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Key, RetryPolicy, UnknownProfile};

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Verify {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those in this PEM file, beside those that the system trusts.
    CaFile(PathBuf),
    /// Any. Whoever sits between can read everything, the key included.
    Off,
}

/// A server that models run on: where it is and how it is talked to.
///
/// ```
/// use hookwright::model::{Key, Model, OpenAi, Server};
/// let server = Server { base_url: Some("http://localhost:8080/v1".into()), api_key: Key::None, ..Server::new("qwen3") };
/// assert_eq!(OpenAi::new(server)?.name(), "qwen3");
/// # Ok::<(), hookwright::model::ServerError>(())
/// ```
#[derive(Clone)]
pub struct Server {
    /// The model's name, as the server knows it.
    pub model: String,
    /// Where the API begins, such as `http://localhost:8080/v1`; `None` is the environment variable that is usual for
    /// the API (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`), else the provider itself.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Key,
    /// Headers of one's own. They win over those that are made here.
    pub headers: Vec<(String, String)>,
    /// How long an attempt may take until the reply begins, or until it is there if it is not streamed; 10 minutes.
    pub timeout: Duration,
    /// How long connecting may take; 10 seconds.
    pub connect_timeout: Duration,
    /// How long nothing at all may come in once a reply has begun; 2 minutes.
    pub idle_timeout: Duration,
    /// Which certificates are trusted.
    pub verify: Verify,
    /// When a failed attempt is made again.
    pub retry: RetryPolicy,
    /// The name of the [`Profile`](super::Profile); `None` chooses it by the host.
    pub profile: Option<String>,
    /// Whether requests are streamed if the one who asks leaves it open.
    pub stream: bool,
    /// Settings for the body of each request, such as a temperature; those of a request win.
    pub settings: Map<String, Value>,
}

impl Server {
    /// `model` at the provider itself, with the usual key and everything else as by default.
    pub fn new(model: impl Into<String>) -> Self {
        Server {
            model: model.into(),
            base_url: None,
            api_key: Key::Usual,
            headers: Vec::new(),
            timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            verify: Verify::System,
            retry: RetryPolicy::default(),
            profile: None,
            stream: false,
            settings: Map::new(),
        }
    }
}

impl fmt::Debug for Server {
    /// Without anything that could be a secret: keys, the values of headers, credentials and queries in the URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Server")
            .field("model", &self.model)
            .field("base_url", &self.base_url.as_deref().map(shown_url))
            .field("api_key", &self.api_key)
            .field("headers", &headers)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// `url` without what may be secret: credentials and the values of its query.
pub(super) fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return "(not a URL)".to_owned();
    };
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.into()
}

/// Why a server cannot be used as it is described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The base URL is none.
    #[error("base_url {shown:?} cannot be used: {reason}; write one such as http://localhost:8080/v1")]
    BaseUrl {
        /// What was given, without what may be secret in it.
        shown: String,
        /// What is wrong.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} cannot be sent: {reason}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The file with certificates cannot be used.
    #[error("the certificates in {path} cannot be used: {reason}", path = .path.display())]
    CaFile {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no profile of that name.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The model has no name.
    #[error("a model needs a name, as the server knows it")]
    NoModel,
}
