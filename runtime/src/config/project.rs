//! What a project may not set: nobody has said that it is trusted.

use super::file::File;
use super::{Config, ConfigError, Sources};
use crate::agents::AgentCatalog;
use posse_protocol::AgentName;
use std::path::Path;

/// What an agent may use that a project brings along.
const READ_ONLY: [&str; 4] = ["Read", "Glob", "Grep", "List"];

/// Refuses what a project's file may not set, beside what `known` holds of the user.
pub(super) fn check(
    file: &File,
    path: &Path,
    sources: &Sources,
    known: &Config,
) -> Result<(), ConfigError> {
    let invalid = |reason: String| ConfigError::Invalid { path: path.to_owned(), reason };
    let built_in = AgentCatalog::built_in();
    for (name, agent) in &file.agents {
        let same = |other: &AgentName| other.as_str().eq_ignore_ascii_case(name.as_str());
        if built_in.iter().any(|agent| same(&agent.name))
            || known.agents.iter().any(|agent| same(&agent.value.name))
        {
            return Err(invalid(format!(
                "a project may not take the place of the agent `{name}`; give its agent another name"
            )));
        }
        let wanted = agent.tools.as_deref().unwrap_or_default();
        let beyond = wanted.iter().find(|tool| !READ_ONLY.contains(&tool.as_str()));
        if agent.tools.is_none() || beyond.is_some() {
            return Err(invalid(format!(
                "[agents.{name}]: an agent of a project may only look: name its tools, of {}; \
                 an agent that may do more belongs into your own settings",
                READ_ONLY.join(", ")
            )));
        }
    }
    match file.reserved() {
        Some(key) => Err(ConfigError::NotForProjects {
            path: path.to_owned(),
            key,
            user: sources.user.as_ref().map_or_else(String::new, |user| user.display().to_string()),
        }),
        None => Ok(()),
    }
}
