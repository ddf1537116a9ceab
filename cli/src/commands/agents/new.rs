//! `posse agents new`: creates the file of a new agent.

use super::super::{Common, folder};
use crate::exit::{Code, Failure};
use crate::print;
use posse::agents::{Source, template};
use posse::{AgentName, LiveCatalog};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The folder for the file.
pub enum AgentFolder {
    /// The folder of the project.
    Project(Option<PathBuf>),
    /// The user's own folder.
    User,
}

pub fn run(common: &Common, name: &str, place: &AgentFolder) -> Result<Code, Failure> {
    let name: AgentName = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    if name.as_str().contains(':') {
        return Err(Failure::usage(format!("`{name}` is the name of a plugin's agent"))
            .hint("leave out the part before the colon; for a plugin, put the file into its agents folder"));
    }
    let (working, parent) = match place {
        AgentFolder::Project(cwd) => {
            let folder = folder(cwd.as_ref())?;
            (folder.clone(), folder.join(".posse/agents"))
        }
        AgentFolder::User => {
            let config = common.environment.config_folder.as_ref().ok_or_else(|| {
                Failure::usage("no folder for settings: neither HOME nor XDG_CONFIG_HOME is set")
            })?;
            (folder(None)?, config.join("agents"))
        }
    };
    let path = parent.join(format!("{name}.md"));
    write(&path, &template(&name))?;
    let catalog = LiveCatalog::load(common.agent_sources(&working, &[])).current();
    let in_force = catalog.entry(&name).is_some_and(|entry| entry.path.as_ref() == Some(&path));
    let others = catalog.entries().iter().filter(|entry| {
        entry.name.as_str().eq_ignore_ascii_case(name.as_str())
            && entry.path.as_ref() != Some(&path)
    });
    let others: Vec<&Source> = others.map(|entry| &entry.source).collect();
    if common.global.json {
        let view = json!({"name": name, "path": path, "in_force": in_force, "same_name": others});
        print::json_pretty(&view)?;
        return Ok(Code::Done);
    }
    print::line(path.display())?;
    if common.global.quiet {
        return Ok(Code::Done);
    }
    if let Some(other) = others.first() {
        print::note(match in_force {
            true => format!("Posse now uses it instead of the agent `{name}` that is {other}"),
            false if matches!(place, AgentFolder::Project(_)) => {
                format!("Posse uses the agent `{name}` that is {other} until you trust this folder")
            }
            false => {
                format!("Posse does not use it: the agent `{name}` that is {other} comes first")
            }
        });
    }
    print::note("next: write its description (when to use it) and its prompt");
    if matches!(place, AgentFolder::Project(_)) {
        print::note(
            "      until you run `posse trust`, this agent is read-only; --user creates an agent for all \
             your folders",
        );
    }
    print::note(format!("      posse agents check {}", path.display()));
    print::note(format!("      posse agents run {name} \"…\""));
    Ok(Code::Done)
}

/// Writes a new file, and creates its folders. Fails if the file exists.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(cannot)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!("{} exists already", path.display()))
                .hint("edit it, remove it, or choose another name"));
        }
        Err(error) => return Err(cannot(error)),
    };
    file.write_all(text.as_bytes()).map_err(cannot)
}
