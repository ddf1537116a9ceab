//! `posse mcp`: the MCP servers for a folder, what they offer, and which of that the user has accepted.

use super::asking::agrees;
use super::{Common, folder};
use crate::args::{McpAddOptions, McpVerb};
use crate::clean::{clean_line, exact};
use crate::exit::{Code, Failure};
use crate::print;
use crate::table::{Column, Table};
use posse::config::{add_server, remove_server};
use posse::mcp::{Accepted, FoundServer, FoundServers, Standing};
use posse::mcp_settings::{MCP_JSON, ServerSettings};
use posse::protocol::Network;
use posse::trust::Change;
use posse::{AgentSpec, RunSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

pub async fn run(common: &Common, verb: McpVerb) -> Result<Code, Failure> {
    match verb {
        McpVerb::Add(options) => add(common, options),
        McpVerb::List => list(common),
        McpVerb::Test { name, yes } => test(common, &name, yes).await,
        McpVerb::Remove { name, project } => remove(common, &name, project),
    }
}

/// The file that `--project` or its absence means.
fn file(common: &Common, is_project: bool) -> Result<PathBuf, Failure> {
    if is_project {
        return Ok(folder(None)?.join(MCP_JSON));
    }
    common.user_settings().ok_or_else(|| {
        Failure::usage("no folder for your settings: neither HOME nor XDG_CONFIG_HOME is set")
    })
}

fn add(common: &Common, options: McpAddOptions) -> Result<Code, Failure> {
    let McpAddOptions { name, project, env, network, command } = options;
    let mut variables = BTreeMap::new();
    for pair in env {
        // The pair is not shown: it may hold a secret.
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::usage("--env takes NAME=VALUE"));
        };
        variables.insert(name.to_owned(), value.to_owned());
    }
    let network = network.unwrap_or(Network::Off);
    let server = ServerSettings::new(&name, command, variables, network).map_err(Failure::usage)?;
    let file = file(common, project)?;
    // Reports a mistake in the settings before it changes them.
    common.user_config()?;
    add_server(&file, &server)?;
    if common.global.json {
        print::json_pretty(&json!({"server": name, "file": file}))?;
    }
    note(common, format!("added `{name}` to {}", file.display()));
    match project {
        true => note(common, "Posse starts it once you trust this folder: posse trust"),
        false => note(common, format!("start it and see its tools: posse mcp test {name}")),
    }
    Ok(Code::Done)
}

fn remove(common: &Common, name: &str, is_project: bool) -> Result<Code, Failure> {
    let file = file(common, is_project)?;
    if !remove_server(&file, name)? {
        let name = clean_line(name, 80);
        return Err(Failure::usage(format!("{} has no MCP server `{name}`", file.display()))
            .hint("`posse mcp list` shows the servers and their files"));
    }
    if common.global.json {
        print::json_pretty(&json!({"removed": name, "file": file}))?;
    }
    note(common, format!("removed `{}` from {}", clean_line(name, 80), file.display()));
    Ok(Code::Done)
}

fn found(common: &Common) -> Result<FoundServers, Failure> {
    let folder = folder(None)?;
    Ok(common.mcp_servers(&common.config(&folder)?).around(&folder))
}

fn state(server: &FoundServer) -> String {
    match &server.shadowed_by {
        Some(file) => format!("shadowed by {}", file.display()),
        None if server.is_usable() => "usable".to_owned(),
        None => server.trust.to_string(),
    }
}

fn list(common: &Common) -> Result<Code, Failure> {
    let FoundServers { servers, problems } = found(common)?;
    if common.global.json {
        let view = |server: &FoundServer| {
            let FoundServer { settings, file, .. } = server;
            json!({
                "name": settings.name, "usable": server.is_usable(), "state": state(server),
                "file": file, "command": settings.command, "args": settings.args,
                "variables": settings.env.keys().collect::<Vec<_>>(), "network": settings.network,
                "required": settings.required,
            })
        };
        let servers: Vec<Value> = servers.iter().map(view).collect();
        print::json_pretty(&json!({"servers": servers, "problems": problems}))?;
        return Ok(Code::Done);
    }
    let row = |server: &FoundServer| {
        let text = |text: String| clean_line(&text, 400);
        let FoundServer { settings, file, .. } = server;
        [
            settings.name.clone(),
            text(state(server)),
            text(settings.command_line()),
            text(file.display().to_string()),
        ]
    };
    let columns = [
        Column::text("SERVER"),
        Column::text("STATE").cut(20, 10),
        Column::text("COMMAND").cut(30, 10),
        Column::text("FILE").leaves(1),
    ];
    Table { columns, rows: servers.iter().map(row).collect() }.print(common)?;
    for problem in &problems {
        note(common, format!("cannot be used: {}", clean_line(problem, 400)));
    }
    if servers.is_empty() && problems.is_empty() {
        note(common, "no MCP servers: add one with `posse mcp add NAME -- COMMAND`");
    }
    Ok(Code::Done)
}

async fn test(common: &Common, name: &str, yes: bool) -> Result<Code, Failure> {
    let shown = clean_line(name, 80);
    let all = found(common)?;
    let named =
        |server: &&FoundServer| server.settings.name == name && server.shadowed_by.is_none();
    let server = all.servers.iter().find(named).ok_or_else(|| {
        Failure::usage(format!("there is no MCP server `{shown}` for this folder"))
            .hint("`posse mcp list` shows the servers, and what is wrong with their files")
    })?;
    if !server.is_usable() {
        let why = format!("the MCP server `{shown}` belongs to a folder that is {}", server.trust);
        return Err(Failure::usage(why).hint("`posse trust` shows what the folder contains"));
    }
    let folder = folder(None)?;
    let config = common.config(&folder)?;
    let runtime = common.runtime(&config, common.agents(&folder, &[])?).await?;
    let agent = AgentSpec::new(config.agent.value.clone());
    let spec = RunSpec::new(agent.name.clone(), "", &folder);
    let looked = runtime.look_at_server(&agent, &spec, server.clone()).await;
    runtime.shutdown().await;
    let (listing, accepted) = looked?;
    let standing = accepted.standing()?;
    if common.global.json {
        let tools: Vec<Value> = listing
            .tools
            .iter()
            .map(|tool| {
                json!({"name": format!("mcp__{name}__{}", tool.name), "description": tool.description,
                    "schema": tool.schema, "idempotent": tool.idempotent})
            })
            .collect();
        let left_out: Vec<Value> = listing
            .left_out
            .iter()
            .map(|it| json!({"name": it.name, "reason": it.reason}))
            .collect();
        let changed = match &standing {
            Standing::Changed(changed) => changed.clone(),
            _ => Vec::new(),
        };
        print::json_pretty(
            &json!({"server": name, "tools": tools, "left_out": left_out, "changed": changed}),
        )?;
    } else {
        for tool in &listing.tools {
            print::line(format!("mcp__{name}__{}", tool.name))?;
            for line in tool.description.lines() {
                print::line(format!("    {}", exact(line)))?;
            }
        }
        for left_out in &listing.left_out {
            let (name, reason) =
                (clean_line(&left_out.name, 80), clean_line(&left_out.reason, 300));
            note(common, format!("left out: {name}: {reason}"));
        }
    }
    decide(common, &shown, &accepted, &standing, yes)
}

/// Accepts what is new, and asks about what has changed.
fn decide(
    common: &Common,
    name: &str,
    accepted: &Accepted,
    standing: &Standing,
    yes: bool,
) -> Result<Code, Failure> {
    let changed = match standing {
        Standing::Accepted => return Ok(Code::Done),
        Standing::New => {
            accepted.accept()?;
            note(common, format!("accepted the tools of `{name}`; Posse asks when one changes"));
            return Ok(Code::Done);
        }
        Standing::Changed(changed) => changed,
    };
    if !common.global.json {
        print::line("changed since you accepted them (+ new, ~ changed):")?;
        for change in changed.iter().map(Change::to_string) {
            print::line(format!("  {}", clean_line(&change, 200)))?;
        }
    }
    let can_ask = std::io::stdin().is_terminal() && !common.global.json;
    let is_agreed = yes
        || can_ask
            && agrees("Accept these tools as they are now?")
                .map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))?;
    if is_agreed {
        accepted.accept()?;
        note(common, "accepted");
        return Ok(Code::Done);
    }
    if can_ask {
        note(common, "not accepted: runs do without this server");
        return Ok(Code::Failed);
    }
    Err(Failure::usage(format!("the tools of `{name}` have changed and are not accepted"))
        .hint("read the list above, then run again with --yes"))
}

fn note(common: &Common, text: impl std::fmt::Display) {
    if !common.global.quiet && !common.global.json {
        print::note(text);
    }
}
