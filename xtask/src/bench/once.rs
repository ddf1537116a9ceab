//! The one request of the little programs.

use super::client;
use bytes::Bytes;
use std::error::Error;

const BODY: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"hello"}]}"#;

/// Makes it, and reads the reply to its end.
pub async fn ask(base_url: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let body = Bytes::from_static(BODY.as_bytes());
    let mut response = client::post(&client::build()?, base_url, body).await?;
    while response.chunk().await?.is_some() {}
    Ok(())
}
