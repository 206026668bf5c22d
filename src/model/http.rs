//! Connections: one client for each way to connect, shared by all models of a process.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client};

use super::{ServerError, Verify};

/// By process, since a forked child has none of its parent's threads and must not share its connections.
type Clients = HashMap<(u32, Verify, Duration), Client>;

static CLIENTS: LazyLock<Mutex<Clients>> = LazyLock::new(Mutex::default);
static PROVIDER: Once = Once::new();

/// The client for this way to connect. Proxies are those of the environment.
///
/// # Errors
/// If certificates cannot be used.
pub(super) fn client(verify: &Verify, connect_timeout: Duration) -> Result<Client, ServerError> {
    let key = (std::process::id(), verify.clone(), connect_timeout);
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&key) {
        return Ok(client.clone());
    }
    PROVIDER.call_once(|| {
        // Somebody else in this process may have installed one, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .user_agent(concat!("hookwright/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .tcp_keepalive(Duration::from_secs(60))
        .pool_idle_timeout(Duration::from_secs(90));
    match verify {
        Verify::System => {}
        Verify::Off => builder = builder.tls_danger_accept_invalid_certs(true),
        Verify::CaFile(path) => {
            let unusable = |reason: String| ServerError::CaFile { path: path.clone(), reason };
            let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
            if certificates.is_empty() {
                return Err(unusable("there is no certificate in it".to_owned()));
            }
            builder = builder.tls_certs_merge(certificates);
        }
    }
    let client = builder.build().map_err(|error| ServerError::Client(chain_of(&error)))?;
    clients.insert(key, client.clone());
    Ok(client)
}

/// What an error says with all that lies behind it, but without the URL, which may hold secrets.
pub(super) fn chain_of(error: &dyn std::error::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // The outermost ones of the client tell the URL, and little else.
        if !text.contains("://") && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}
