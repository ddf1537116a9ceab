//! A model of the host's own, on a store in memory: no key, no network, no file.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::model::{DeltaSink, ModelInfo, Reply, Request};
use posse::protocol::{Message, Part, Price, Stop, Usage};
use posse::store::Memory;
use posse::{Model, ModelError, RunSpec, Runtime};
use tokio_util::sync::CancellationToken;

/// Says back what it was asked.
struct Echo {
    info: ModelInfo,
}

#[async_trait::async_trait]
impl Model for Echo {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        request: Request,
        _deltas: DeltaSink<'_>,
        _cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let asked = request.messages.last().map(|message| message.text()).unwrap_or_default();
        let message = Message::from_model("echo", vec![Part::text(format!("You said: {asked}"))]);
        let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
        let (request_id, service_tier, rate_limits) = (None, None, None);
        Ok(Reply { message, stop: Stop::End, usage, request_id, service_tier, rate_limits })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let id = "acme/echo".to_owned();
    let price = Price::default();
    let info = ModelInfo { id, context_window: 100_000, max_output: 4_000, price };
    let builder = Runtime::builder(folder.path().join("runs")).store(Memory::new());
    let runtime = builder.model(Echo { info }).default_model("acme/echo").open().await?;
    let run = runtime.start(RunSpec::new("explore".parse()?, "Hello", folder.path())).await?;
    println!("{}", run.outcome().await?.text());
    runtime.shutdown().await;
    Ok(())
}
