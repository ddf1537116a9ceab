//! The smallest program that makes one streamed request, to compare a cold start with.

mod client;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the base URL")?;
    let body = arguments.next().ok_or("give the body")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { client::ask(&client::build()?, &url, body.into()).await })
}
