//! The commands, one file each.

mod again;
pub mod agents;
mod asking;
pub mod audit;
mod background;
mod cassette;
pub mod chat;
pub mod completions;
pub mod config;
pub mod cost;
pub mod daemon;
pub mod db;
pub mod demo;
pub mod doctor;
pub mod fake_model;
mod follow;
pub mod man;
pub mod mcp;
pub mod models;
pub mod prompt;
mod rest;
pub mod run;
pub mod runs;
pub mod skills;
pub mod trust;
mod typing;
mod unused;
pub mod webhooks;
pub mod worker;

use crate::args::AgentOptions;
use crate::common::Common;
use crate::environment::real_home;
use crate::exit::Failure;
use posse::ModelChoice;
use posse::RunRights;
use posse::config::Config;
use posse::protocol::{Permissions, Usd};
use posse::{Limits, NamedBy, RunSpec, Selection};
use std::path::{Path, PathBuf};

/// The folder to work in.
pub fn folder(cwd: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let folder = match cwd {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| {
            Failure::usage(format!("cannot work in the current folder: {error}"))
                .hint("it may have been removed; go to another, or name one with --cwd")
        })?,
    };
    let shown = folder.display();
    let real = folder
        .canonicalize()
        .map_err(|error| Failure::usage(format!("cannot work in {shown}: {error}")))?;
    match real.is_dir() {
        // The home folder at another mount has its usual path.
        true => Ok(real_home()
            .and_then(|home| posse::confine::known_place(&real, &home))
            .unwrap_or(real)),
        false => Err(Failure::usage(format!("cannot work in {shown}: it is not a folder"))),
    }
}

/// The run that `options` and the settings describe.
pub fn spec(
    options: &AgentOptions,
    config: &Config,
    folder: &Path,
    prompt: Option<String>,
) -> Result<RunSpec, Failure> {
    let agent = match &options.agent {
        Some(name) => name.parse().map_err(|error| Failure::usage(format!("{error}")))?,
        None => config.agent.value.clone(),
    };
    let limits = Limits {
        turns: options.max_turns,
        cost: options.max_cost.map(Usd::from_dollars),
        wall_ms: options.timeout,
        ..Limits::default()
    };
    let mut models = options.model.iter().cloned();
    let model = models.next();
    let fallbacks = models.chain(options.fallback.iter().cloned()).collect();
    let effort = options.effort;
    let mut budget = options.budget.clone().unwrap_or_default();
    // A cost limit applies to the run and all its subagents together.
    budget.cost = budget.cost.into_iter().chain(limits.cost).min();
    let permissions = Permissions {
        allow: options.allow.clone(),
        deny: options.deny.clone(),
        ..Permissions::default()
    };
    Ok(RunSpec {
        prompt,
        models: ModelChoice { model, fallbacks, effort },
        limits,
        budget,
        rights: RunRights {
            mode: options.mode,
            reach: options.sandbox,
            network: options.network.clone(),
            permissions,
            attended: asking::is_attended(),
            ..RunRights::default()
        },
        instructions: options.instructions.clone(),
        ..RunSpec::new(agent, "", folder)
    })
}

/// Why a run has its model, for people.
pub fn reason(selection: &Selection, spec: &RunSpec, config: &Config) -> String {
    match &selection.named_by {
        NamedBy::Spec => "--model".to_owned(),
        NamedBy::Agent => format!("agent {}", spec.agent),
        NamedBy::Rules => "set for children".to_owned(),
        NamedBy::Parent => "its caller's".to_owned(),
        NamedBy::Config => config.model.origin.to_string(),
        NamedBy::Choice(why) => why.to_string(),
    }
}
