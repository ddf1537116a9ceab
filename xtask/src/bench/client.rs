//! The raw client: the HTTP client that runs use, and nothing above it. It is also a module of the
//! small programs that make one request.

use bytes::Bytes;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// A client with the settings of the client in posse-model.
pub fn build() -> Result<reqwest::Client, Box<dyn Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .gzip(false)
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(15))
        .user_agent("raw");
    Ok(client.build()?)
}

/// Sends a body. Returns when the head of the answer has come.
pub async fn post(
    client: &reqwest::Client,
    base_url: &str,
    body: Bytes,
) -> Result<reqwest::Response, Box<dyn Error + Send + Sync>> {
    let request = client
        .post(format!("{base_url}/v1/messages"))
        .header("x-api-key", "any")
        .header("anthropic-version", "2023-06-01")
        .header("content-type", "application/json")
        .header("accept", "text/event-stream");
    Ok(request.body(body).send().await?.error_for_status()?)
}

/// Sends a body and reads the answer to its end.
pub async fn ask(
    client: &reqwest::Client,
    base_url: &str,
    body: Bytes,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut response = post(client, base_url, body).await?;
    while response.chunk().await?.is_some() {}
    Ok(())
}
