//! The HTTP clients: one for each way of connecting, with its open connections.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use arc_swap::ArcSwap;
use reqwest::{Certificate, Client, redirect};

use super::{FailureKind, ModelFailure, ServerError, Verify};

/// A way of connecting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Way {
    /// Connections belong to a process and a runtime; a forked child has others.
    process: u32,
    runtime: tokio::runtime::Id,
    verify: Verify,
    connect_timeout: Duration,
}

/// Without a lock, which a fork could leave locked forever.
static CLIENTS: LazyLock<ArcSwap<HashMap<Way, Client>>> = LazyLock::new(ArcSwap::default);

/// The client for this way of connecting, in this process and this runtime.
pub(super) fn client(verify: &Verify, connect_timeout: Duration) -> Result<Client, ModelFailure> {
    let Ok(handle) = tokio::runtime::Handle::try_current() else {
        return Err(ModelFailure::new(FailureKind::Connection, "there is no runtime to connect in"));
    };
    let way = Way { process: std::process::id(), runtime: handle.id(), verify: verify.clone(), connect_timeout };
    if let Some(client) = CLIENTS.load().get(&way) {
        return Ok(client.clone());
    }
    let fresh = build(verify, connect_timeout).map_err(|reason| {
        ModelFailure::new(FailureKind::InvalidRequest, format!("no connection can be made: {reason}"))
    })?;
    CLIENTS.rcu(|known| {
        let mut clients: HashMap<Way, Client> = HashMap::clone(known);
        // What belongs to a runtime that has ended is of no use to anybody.
        clients.retain(|other, _| (other.process, other.runtime) == (way.process, way.runtime));
        clients.insert(way.clone(), fresh.clone());
        clients
    });
    Ok(fresh)
}

fn build(verify: &Verify, connect_timeout: Duration) -> Result<Client, String> {
    // Whoever was first has chosen; the choice is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("hookwright/", env!("CARGO_PKG_VERSION")));
    match verify {
        Verify::System => {}
        Verify::CaFile(path) => {
            let certificates = certificates(path).map_err(|error| error.to_string())?;
            builder = builder.tls_certs_merge(certificates);
        }
        Verify::Off => builder = builder.tls_danger_accept_invalid_certs(true),
    }
    builder.build().map_err(|error| reason(&error))
}

/// The certificates in a PEM file.
pub(super) fn certificates(path: &PathBuf) -> Result<Vec<Certificate>, ServerError> {
    let bad = |reason: String| ServerError::CaFile { path: path.clone(), reason };
    let bytes = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    let certificates = Certificate::from_pem_bundle(&bytes).map_err(|error| bad(reason(&error)))?;
    if certificates.is_empty() {
        return Err(bad("it holds no PEM certificates".to_owned()));
    }
    Ok(certificates)
}

/// The failure that an error of the client stands for, and whether another attempt can help.
pub(super) fn failure(error: reqwest::Error) -> (ModelFailure, bool) {
    // The address may hold a password or a key.
    let error = error.without_url();
    let said = reason(&error);
    let certificate = said.to_lowercase().contains("certificate");
    let kind = match () {
        () if certificate => FailureKind::Connection,
        () if error.is_builder() || error.is_request() && said.contains("invalid") => FailureKind::InvalidRequest,
        () if error.is_timeout() => FailureKind::Timeout,
        () => FailureKind::Connection,
    };
    let message = match (kind, certificate) {
        (_, true) => format!("the server's certificate is not trusted: {said}; see verify="),
        (FailureKind::InvalidRequest, _) => format!("the request could not be made: {said}"),
        (FailureKind::Timeout, _) => format!("the model's server took too long: {said}"),
        _ if error.is_connect() => format!("the model's server could not be reached: {said}"),
        _ => format!("the connection to the model's server broke off: {said}"),
    };
    (ModelFailure::new(kind, message), kind != FailureKind::InvalidRequest && !certificate)
}

/// The innermost reason of an error: what is around it says the same in general.
fn reason(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
