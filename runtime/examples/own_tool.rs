//! A tool of the host, beside the built-in ones, and an agent that may call only that.
//!
//! `ANTHROPIC_API_KEY=… cargo run --example own_tool`

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::protocol::{AgentRights, AgentSpec, Effect, ModelChoice, ToolOutput, ToolSpec};
use posse::{
    AgentCatalog, Answer, Catalog, Keys, Limits, RunSpec, Runtime, RuntimeConfig, Tool, ToolContext,
};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;

/// Tells the temperature of a city, as far as the host knows it.
struct Thermometer {
    spec: ToolSpec,
}

impl Thermometer {
    fn new() -> Self {
        Thermometer {
            spec: ToolSpec::new(
                "temperature",
                "Tells the temperature of a city, in degrees Celsius.",
                Effect::Read,
                json!({
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"]
                }),
            ),
        }
    }
}

#[async_trait::async_trait]
impl Tool for Thermometer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, _: &ToolContext) -> Answer {
        // What went wrong is told to the model, which can then do something about it.
        let Some(city) = input["city"].as_str() else {
            return ToolOutput::error("`city` is missing; give the name of a city").into();
        };
        ToolOutput::text(format!("{city}: 21")).into()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    let mut agents = AgentCatalog::built_in();
    agents.set(AgentSpec {
        description: "Answers questions about the weather".to_owned(),
        instructions: "You answer questions about the weather, briefly.".to_owned(),
        rights: AgentRights::to_call(["temperature"]),
        models: ModelChoice::of("haiku".to_owned()),
        limits: Limits { turns: Some(5), ..Limits::default() },
        ..AgentSpec::new("weather".parse()?)
    });
    // Where runs are kept; an example keeps them no longer than it runs.
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::open({
        let mut config: RuntimeConfig = RuntimeConfig::new(folder.path().join("runs.db"), keys);
        config.definitions.agents = agents.into();
        config.tools = vec![Arc::new(Thermometer::new())];
        config
    })
    .await?;
    let spec = RunSpec::new("weather".parse()?, "How warm is it in Lisbon?", folder.path());
    let outcome = runtime.start(spec).await?.outcome().await?;
    println!("{outcome}: {}", outcome.text());
    runtime.shutdown().await;
    Ok(())
}
