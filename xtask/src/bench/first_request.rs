//! The least program that makes one streamed request: what a cold start is compared with.

mod client;
mod once;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).ok_or("give the base URL")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(once::ask(&url))
}
