//! `posse models test`: calls a model once.

use super::Common;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::offline::is_offline;
use crate::print;
use posse::ModelError;
use posse::model::{Models, Offer, Trial, try_out};
use posse::protocol::Stop;
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub async fn run(common: &Common, models: &Models, name: &str) -> Result<Code, Failure> {
    let model = models.resolve(name)?;
    let id = model.info().id.clone();
    // The offline model calls only the tools it knows.
    let calls_any = models.abilities(&id)?.tools && !is_offline(&id);
    let offer = if calls_any { Offer::Tool } else { Offer::Nothing };
    if !common.global.json && !common.global.quiet {
        print::note(format!("calling {}", clean_line(&id, 100)));
    }
    let trial = try_out(&*model, offer, &CancellationToken::new()).await;
    let trial = trial.map_err(|error| failure(&error))?;
    let works = works(&trial);
    if common.global.json {
        print::json_pretty(&json!({
            "model": id,
            "works": works,
            "text": trial.text,
            "called_tool": trial.called_tool,
            "stop": trial.stop,
            "first_ms": trial.first.map(|first| first.as_millis() as u64),
            "took_ms": trial.took.as_millis() as u64,
            "usage": trial.usage,
            "cost_usd": trial.usage.cost.dollars(),
            "request_id": trial.request_id,
        }))?;
    } else {
        for (name, value) in facts(&id, &trial) {
            print::line(format!("{name:10} {value}"))?;
        }
    }
    Ok(if works { Code::Done } else { Code::Failed })
}

/// True when an agent could work with this model.
fn works(trial: &Trial) -> bool {
    trial.called_tool.unwrap_or_else(|| !trial.text.trim().is_empty())
}

fn facts(id: &str, trial: &Trial) -> Vec<(&'static str, String)> {
    let took = format::duration(trial.took.as_millis() as u64);
    let latency = match trial.first {
        Some(first) => {
            format!("{took}, the first piece after {}", format::duration(first.as_millis() as u64))
        }
        None => took,
    };
    let tools = match trial.called_tool {
        Some(true) => "calls them",
        Some(false) => {
            "did not call the tool it was asked to call: agents cannot work with this model"
        }
        None => "not tested: Posse offered none",
    };
    let said = match (clean_line(&trial.text, 200), &trial.stop) {
        (text, _) if !text.is_empty() => text,
        (_, Stop::ToolUse) => "nothing but the call".to_owned(),
        (_, Stop::MaxTokens) => "nothing before its output was cut off".to_owned(),
        (_, Stop::Refusal) => "nothing: it refused".to_owned(),
        _ => "nothing".to_owned(),
    };
    let usage = &trial.usage;
    let cached = match usage.cache_read_tokens {
        0 => String::new(),
        cached => format!(", {} of them cached", format::tokens(cached)),
    };
    let (sent, received) =
        (format::tokens(usage.all_input_tokens()), format::tokens(usage.output_tokens));
    let mut facts = vec![
        ("model", clean_line(id, 100)),
        ("latency", latency),
        ("tools", tools.to_owned()),
        ("said", said),
        ("tokens", format!("{sent} in{cached}, {received} out")),
        ("cost", usage.cost.to_string()),
    ];
    if let Some(request) = &trial.request_id {
        facts.push(("request", clean_line(request, 100)));
    }
    facts
}

/// The error, with advice.
fn failure(error: &ModelError) -> Failure {
    let hint = match error {
        ModelError::RetryAfter { .. } => "wait a while, or use another model for now",
        ModelError::Overloaded { .. } => "the vendor has problems: try again later",
        ModelError::Rejected { .. } => "the vendor refused the request; its reason is above",
        ModelError::Unauthorised { .. } => "check that the API key is complete and still valid",
        ModelError::Unreachable { .. } => "check the network, and whether the server runs",
        ModelError::NotRunning { .. } => "`posse models` lists the models that can be used now",
        ModelError::Stalled { .. } | ModelError::Cut { .. } => "try again",
        ModelError::Malformed { .. } => "check the base URL and the wire format of this vendor",
        _ => "`posse models` lists the models",
    };
    Failure::internal(error.to_string()).hint(hint)
}
