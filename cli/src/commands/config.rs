//! `posse config`: the settings in force and where each came from, and the files that are read.

use super::{Common, folder};
use crate::args::{ConfigOptions, ConfigVerb};
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::print;
use crate::table::{Column, Table};
use posse::config::{AutoResume, Setting};
use posse::model::catalog::{Catalog, Source};
use posse::protocol::Limit;
use posse::store::Durability;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

pub async fn run(common: &Common, options: &ConfigOptions) -> Result<Code, Failure> {
    match options.verb {
        Some(ConfigVerb::Path) => paths(common),
        None => show(common).await,
    }
}

/// Lists the files and folders that are read for work in the current folder.
fn paths(common: &Common) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let sources = common.sources(&folder);
    let agents = common.agent_sources(&folder, &[]);
    let config = common.environment.config_folder.as_ref();
    let home = common.environment.home_folder.as_ref();
    let skills = [config.map(|it| it.join("skills")), home.map(|it| it.join(".claude/skills"))];
    let own = |what: &'static str, paths: Vec<PathBuf>| paths.into_iter().map(move |it| (what, it));
    let mut found: Vec<(&str, PathBuf)> = Vec::new();
    found.extend(own("your settings", sources.user.into_iter().collect()));
    found.extend(own("project settings", sources.project.into_iter().collect()));
    found.extend(own("your agents", agents.user_folders));
    let below = |path: &str| folder.join(path);
    found.extend(own("project agents", vec![below(".posse/agents"), below(".claude/agents")]));
    found.extend(own("your skills", skills.into_iter().flatten().collect()));
    found.extend(own("project skills", vec![below(".posse/skills"), below(".claude/skills")]));
    found.extend(own("plugins", agents.plugin_folders));
    found.extend(own("database", vec![common.database()?]));
    if common.global.json {
        let view = |(what, path): &(&str, PathBuf)| json!({"what": what, "path": path, "exists": path.exists()});
        print::json_pretty(&found.iter().map(view).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if common.global.quiet {
        let at_terminal = std::io::stdout().is_terminal();
        for (_, path) in &found {
            let path = path.display().to_string();
            print::line(if at_terminal { clean(&path) } else { path })?;
        }
        return Ok(Code::Done);
    }
    let row = |(what, path): (&str, PathBuf)| {
        let state = if path.exists() { "" } else { "does not exist" };
        [what.to_owned(), state.to_owned(), clean_line(&path.display().to_string(), 400)]
    };
    let columns = [Column::text("WHAT"), Column::text("STATE").leaves(1), Column::text("PATH")];
    Table { columns, rows: found.into_iter().map(row).collect() }.print(common)?;
    Ok(Code::Done)
}

/// The texts of a list, and of the lists within it.
fn words(list: &[Value]) -> Vec<&str> {
    let mut found = Vec::new();
    for item in list {
        match item {
            Value::Array(within) => found.extend(words(within)),
            item => found.extend(item.as_str()),
        }
    }
    found
}

async fn show(common: &Common) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let config = common.config(&folder)?;
    let sources = common.sources(&folder);
    let mut rows: Vec<(String, Value, String)> = Vec::new();
    let mut row = |key: &str, value: Value, origin: &dyn std::fmt::Display| {
        rows.push((key.to_owned(), value, origin.to_string()));
    };
    let database = common.database()?;
    let database_origin = if common.global.db.is_some() { "--db" } else { "default" };
    row("database", json!(database.display().to_string()), &database_origin);
    let models = common.models(&config)?;
    match &config.model.value[..] {
        [] => match models.choose().await {
            Ok(choice) => row("model", json!(choice.model), &choice.why),
            Err(none) => row("model", Value::Null, &none),
        },
        [model] => row("model", json!(model), &config.model.origin),
        several => row("model", json!(several), &config.model.origin),
    }
    row("small_model", json!(config.small_model.value), &config.small_model.origin);
    row("plan_model", json!(config.plan_model.value), &config.plan_model.origin);
    row("effort", json!(config.effort.value), &config.effort.origin);
    row("agent", json!(config.agent.value.as_str()), &config.agent.origin);
    row("max_concurrent", json!(config.max_concurrent.value), &config.max_concurrent.origin);
    let lanes = &config.lanes;
    row("lanes.per_parent", json!(lanes.per_parent.value), &lanes.per_parent.origin);
    for (key, caps) in [("per_agent", &lanes.per_agent), ("per_model", &lanes.per_model)] {
        for (name, most) in caps {
            row(&format!("lanes.{key}.{name}"), json!(most.value), &most.origin);
        }
    }
    row("max_depth", json!(config.max_depth.value), &config.max_depth.origin);
    row("strategy", json!(config.strategy.value), &config.strategy.origin);
    let plugins = &config.plugins;
    if !plugins.value.is_empty() {
        row("plugins", json!(plugins.value), &plugins.origin);
    }
    let skills = &config.skills;
    row("skills.inherit", json!(skills.inherit.value), &skills.inherit.origin);
    if !skills.extra_dirs.value.is_empty() {
        row("skills.extra_dirs", json!(skills.extra_dirs.value), &skills.extra_dirs.origin);
    }
    for (key, layers) in [("skills.allow", &skills.allow), ("skills.deny", &skills.deny)] {
        let names: Vec<_> = layers.iter().map(|layer| &layer.value).collect();
        let origins: Vec<String> = layers.iter().map(|layer| layer.origin.to_string()).collect();
        if !names.is_empty() {
            row(key, json!(names), &origins.join(", "));
        }
    }
    let subagents = &config.subagents;
    row("subagents.enabled", json!(subagents.enabled.value), &subagents.enabled.origin);
    let require = &subagents.require_agent;
    row("subagents.require_agent", json!(require.value), &require.origin);
    let model = &subagents.default_model;
    row("subagents.default_model", json!(model.value), &model.origin);
    let cleanup = &subagents.default_cleanup;
    row("subagents.default_cleanup", json!(cleanup.value), &cleanup.origin);
    let announce = &subagents.default_announce;
    row("subagents.default_announce", json!(announce.value), &announce.origin);
    let timeout = &subagents.run_timeout_seconds;
    row("subagents.run_timeout_seconds", json!(timeout.value), &timeout.origin);
    let quiet = &subagents.quiet_seconds;
    row("subagents.quiet_seconds", json!(quiet.value), &quiet.origin);
    for layer in &subagents.allowed_agents {
        row("subagents.allowed_agents", json!(layer.value), &layer.origin);
    }
    for (key, layers) in
        [("subagents.tools", &subagents.tools), ("subagents.skills", &subagents.skills)]
    {
        for layer in layers {
            row(key, json!(layer.value), &layer.origin);
        }
    }
    let permissions = &config.permissions;
    row("permissions.mode", json!(permissions.mode.value), &permissions.mode.origin);
    for (key, layers) in [
        ("permissions.allow", &permissions.allow),
        ("permissions.ask", &permissions.ask),
        ("permissions.deny", &permissions.deny),
    ] {
        for layer in layers {
            row(key, json!(layer.value), &layer.origin);
        }
    }
    let claude = common.rule_files().claude(&folder)?;
    for settings in &claude {
        let lists = [("permissions.deny", &settings.deny), ("permissions.ask", &settings.ask)];
        for (key, rules) in lists.into_iter().filter(|(_, rules)| !rules.is_empty()) {
            row(key, json!(rules), &settings.path.display());
        }
    }
    let recovery = match config.recovery.value {
        AutoResume::Continue => "continue",
        AutoResume::Wait => "wait",
    };
    row("recovery", json!(recovery), &config.recovery.origin);
    let stall_after = match config.stall_after.value.as_millis() as u64 {
        0 => "off".to_owned(),
        time => crate::format::duration(time),
    };
    row("stall_after", json!(stall_after), &config.stall_after.origin);
    let durability = match config.durability.value {
        Durability::Power => "power",
        Durability::Process => "process",
    };
    row("durability", json!(durability), &config.durability.origin);
    let lifecycle = &config.lifecycle;
    let minutes = &lifecycle.archive_after_minutes;
    row("archive_after_minutes", json!(minutes.value), &minutes.origin);
    let days = &lifecycle.retention_days;
    row("retention_days", json!(days.value), &days.origin);
    let limits = &config.limits;
    row("limits.turns", json!(limits.turns.value), &limits.turns.origin);
    row("limits.tool_calls", json!(limits.tool_calls.value), &limits.tool_calls.origin);
    row("limits.input_tokens", json!(limits.input_tokens.value), &limits.input_tokens.origin);
    row("limits.output_tokens", json!(limits.output_tokens.value), &limits.output_tokens.origin);
    let cost = limits.cost.value.map(|cost| cost.dollars());
    row("limits.cost", json!(cost), &limits.cost.origin);
    let time = limits.wall_ms.value.map(crate::format::duration);
    row("limits.time", json!(time), &limits.wall_ms.origin);
    let size = |bytes: Option<u64>| json!(bytes.map(|bytes| Limit::WrittenBytes.amount(bytes)));
    row("limits.written", size(limits.written_bytes.value), &limits.written_bytes.origin);
    let command = &config.command;
    row("command.memory", size(command.memory_bytes.value), &command.memory_bytes.origin);
    row("command.processes", json!(command.processes.value), &command.processes.origin);
    row("command.at_once", json!(command.at_once.value), &command.at_once.origin);
    row("command.variables", json!(command.variables.value), &command.variables.origin);
    row("command.readable", json!(command.readable.value), &command.readable.origin);
    row("command.written", size(command.written_bytes.value), &command.written_bytes.origin);
    let budget = &config.budget;
    row("budget.turns", json!(budget.turns.value), &budget.turns.origin);
    row("budget.tool_calls", json!(budget.tool_calls.value), &budget.tool_calls.origin);
    row("budget.input_tokens", json!(budget.input_tokens.value), &budget.input_tokens.origin);
    row("budget.output_tokens", json!(budget.output_tokens.value), &budget.output_tokens.origin);
    let cost = budget.cost.value.map(|cost| cost.dollars());
    row("budget.cost", json!(cost), &budget.cost.origin);
    row("budget.children", json!(budget.children.value), &budget.children.origin);
    let patience = &config.patience;
    row("patience.retries", json!(patience.retries.value), &patience.retries.origin);
    row(
        "patience.first_wait_ms",
        json!(patience.first_wait_ms.value),
        &patience.first_wait_ms.origin,
    );
    let longest = &patience.longest_wait_ms;
    row("patience.longest_wait_ms", json!(longest.value), &longest.origin);
    row("patience.total_wait_s", json!(patience.total_wait_s.value), &patience.total_wait_s.origin);
    row("patience.stall_ms", json!(patience.stall_ms.value), &patience.stall_ms.origin);
    let catalog = &config.catalog;
    for vendor in catalog.value.vendors().iter().filter(|vendor| vendor.source == Source::User) {
        row(&format!("vendors.{}", vendor.name), json!(vendor.base_url), &catalog.origin);
    }
    let built_in = Catalog::built_in();
    let usual: BTreeMap<&str, &str> = built_in.aliases().collect();
    for (alias, model) in catalog.value.aliases().filter(|(it, to)| usual.get(it) != Some(to)) {
        row(&format!("aliases.{alias}"), json!(model), &catalog.origin);
    }
    for model in catalog.value.models() {
        let found = catalog.value.find(&model);
        if found.is_ok_and(|found| found.source == Source::User) {
            row(&format!("models.{model}"), json!("set"), &catalog.origin);
        }
    }
    for webhook in &config.webhooks {
        let Setting { value, origin } = webhook;
        row(&format!("webhooks.{}", value.name()), json!(value.shown_address()), origin);
    }
    for agent in &config.agents {
        let Setting { value, origin } = agent;
        let about = match value.is_change() {
            true => json!("changes an agent that another file defines"),
            false => json!(value.definition.description),
        };
        row(&format!("agents.{}", value.name), about, origin);
    }
    for Setting { value, origin } in &config.held_back {
        let place = format!("{origin}, not trusted: no effect");
        row(&format!("({value})"), Value::Null, &place);
    }
    let warnings = &config.warnings;
    let warnings = warnings.iter().map(|it| format!("{}: {}", it.origin, it.value));
    let warnings: Vec<_> =
        warnings.chain(claude.iter().flat_map(|it| it.warnings.clone())).collect();
    let unused = common.unused(&folder)?;
    let keys = common.keys(&config);
    for vendor in catalog.value.vendors() {
        for variable in vendor.key_variables.iter().filter(|name| keys.has(name)) {
            row(variable, json!("set"), &"environment");
        }
        let addresses = vendor.base_url_variables.iter().chain(&vendor.host_variable);
        for variable in addresses.filter(|name| keys.has(name)) {
            let address = models.address(vendor).unwrap_or_else(|error| error.to_string());
            row(variable, json!(address), &"environment");
        }
    }

    if common.global.json {
        let settings: serde_json::Map<String, Value> = rows
            .into_iter()
            .map(|(key, value, origin)| (key, json!({"value": value, "origin": origin})))
            .collect();
        print::json_pretty(&json!({
            "settings": settings,
            "user_file": sources.user,
            "project_file": sources.project,
            "warnings": warnings,
            "unused": unused,
        }))?;
        return Ok(Code::Done);
    }
    let width = rows.iter().map(|(key, _, _)| key.len()).max().unwrap_or(0);
    for (key, value, origin) in rows {
        let value = match value {
            Value::Null => "–".to_owned(),
            Value::String(text) => clean_line(&text, 200),
            Value::Array(several) => {
                let several = words(&several);
                match several.is_empty() {
                    true => "[]".to_owned(),
                    false => clean_line(&several.join(", "), 200),
                }
            }
            other => other.to_string(),
        };
        let origin = clean_line(&origin, 400);
        print::line(format!("{key:width$}  {value:24}  ({origin})"))?;
    }
    for warning in warnings {
        print::note(format!("warning: {}", clean_line(&warning, 400)));
    }
    if let Some(unused) = unused.filter(|_| !common.global.quiet) {
        print::note(unused);
    }
    let files = [("your settings", sources.user), ("the project's settings", sources.project)];
    for (name, path) in files {
        if let Some(path) = path
            && !common.global.quiet
        {
            let state = if path.exists() { "read" } else { "does not exist" };
            let path = clean_line(&path.display().to_string(), 400);
            print::note(format!("{name}: {path} ({state})"));
        }
    }
    Ok(Code::Done)
}
