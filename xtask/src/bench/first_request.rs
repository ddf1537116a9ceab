//! The least program that makes one streamed request: what a cold start is compared with.

mod client;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).ok_or("give the base URL")?;
    let body = r#"{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut response =
            client::post(&client::build()?, &url, bytes::Bytes::from_static(body.as_bytes()))
                .await?;
        while response.chunk().await?.is_some() {}
        Ok(())
    })
}
