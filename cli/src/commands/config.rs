//! `posse config`: the settings in force, where each comes from, and the files that Posse reads.

use super::{Common, folder};
use crate::args::{ConfigOptions, ConfigVerb};
use crate::clean::{clean, clean_line};
use crate::database::Database;
use crate::exit::{Code, Failure};
use crate::print;
use crate::table::{Column, Table};
use posse::config::{Effective, Setting};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;

pub async fn run(common: &Common, options: &ConfigOptions) -> Result<Code, Failure> {
    match options.verb {
        Some(ConfigVerb::Path) => paths(common),
        None => show(common).await,
    }
}

/// Lists the files and folders that Posse reads for work in the current folder.
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
    if let Database::File(path) = common.database()? {
        found.extend(own("database", vec![path]));
    }
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
        let state = if path.exists() { "exists" } else { "does not exist" };
        [what.to_owned(), state.to_owned(), clean_line(&path.display().to_string(), 400)]
    };
    let columns = [Column::text("WHAT"), Column::text("STATE").leaves(1), Column::text("PATH")];
    Table { columns, rows: found.into_iter().map(row).collect() }.print(common)?;
    Ok(Code::Done)
}

/// The texts in a list, and in the lists within it.
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

/// Merges the rows of each key: lists from several files become one list.
fn merged(rows: Vec<(String, Value, String)>) -> Vec<(String, Value, String)> {
    let mut merged: Vec<(String, Value, String)> = Vec::new();
    for (key, value, origin) in rows {
        match (merged.iter_mut().find(|(known, ..)| *known == key), value) {
            (Some((_, Value::Array(all), origins)), Value::Array(more)) => {
                all.extend(more);
                *origins = format!("{origins}, {origin}");
            }
            (Some(known), value) => (known.1, known.2) = (value, origin),
            (None, value) => merged.push((key, value, origin)),
        }
    }
    merged
}

async fn show(common: &Common) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let config = common.config(&folder)?;
    let sources = common.sources(&folder);
    let mut rows: Vec<(String, Value, String)> = Vec::new();
    let mut row = |key: &str, value: Value, origin: &dyn std::fmt::Display| {
        rows.push((key.to_owned(), value, origin.to_string()));
    };
    let (database, named) = common.named_database()?;
    row("database", json!(database.to_string()), &named);
    let models = common.models(&config)?;
    let claude = common.rule_files().claude(&folder)?;
    let mut effective = config.effective().into_iter().peekable();
    while let Some(Effective { key, value, origin }) = effective.next() {
        // The mode in Claude Code's settings can only make Posse stricter.
        let modes = claude.iter().filter_map(|file| Some((file.mode?, &file.path)));
        let strictest = modes.min_by_key(|(mode, _)| *mode);
        let stricter = strictest.filter(|(mode, _)| *mode < config.permissions.mode.value);
        match key.as_str() {
            "permissions.mode" if let Some((mode, path)) = stricter => {
                row(&key, json!(mode), &path.display());
            }
            "model" if value.is_null() => match models.choose().await {
                Ok(choice) => row("model", json!(choice.model), &choice.why),
                Err(none) => row("model", Value::Null, &none),
            },
            // It is the first row.
            "database" => {}
            _ => row(&key, value, &origin),
        }
        // The rules in Claude Code's settings apply together with those of Posse.
        let is_rules = |key: &str| key.starts_with("permissions.");
        if is_rules(&key) && !effective.peek().is_some_and(|next| is_rules(&next.key)) {
            for settings in &claude {
                let (deny, ask) = (&settings.deny, &settings.ask);
                let lists = [("permissions.deny", deny), ("permissions.ask", ask)];
                for (key, rules) in lists.into_iter().filter(|(_, rules)| !rules.is_empty()) {
                    row(key, json!(rules), &settings.path.display());
                }
            }
        }
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
    for vendor in config.catalog().vendors() {
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
        let mut settings = serde_json::Map::new();
        for (key, value, origin) in merged(rows) {
            settings.insert(key, json!({"value": value, "origin": origin}));
        }
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
