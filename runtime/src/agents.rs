//! The agents there are.

use crate::error::Error;
use posse_protocol::{AgentName, AgentSpec};

/// Agents by name. Names match whatever the case.
#[derive(Clone, Debug)]
pub struct AgentCatalog {
    agents: Vec<AgentSpec>,
}

impl AgentCatalog {
    /// The agents that come with Posse.
    pub fn built_in() -> Self {
        let mut catalog = AgentCatalog { agents: Vec::new() };
        let read_only = ["Read", "Glob", "Grep", "List"].map(str::to_owned).to_vec();
        catalog.add_built_in(
            "general-purpose",
            "Works on a task with every tool it may use",
            include_str!("agents/general-purpose.md"),
            None,
        );
        catalog.add_built_in(
            "explore",
            "Looks around and answers, changing nothing",
            include_str!("agents/explore.md"),
            Some(read_only),
        );
        catalog
    }

    fn add_built_in(
        &mut self,
        name: &str,
        description: &str,
        instructions: &str,
        tools: Option<Vec<String>>,
    ) {
        let Ok(name) = name.parse::<AgentName>() else { return };
        self.set(AgentSpec {
            description: description.to_owned(),
            instructions: instructions.trim().to_owned(),
            tools,
            ..AgentSpec::new(name)
        });
    }

    /// Adds an agent, in place of one with the same name.
    pub fn set(&mut self, agent: AgentSpec) {
        self.agents.retain(|known| !same(&known.name, &agent.name));
        self.agents.push(agent);
    }

    /// The agent called `name`.
    ///
    /// # Errors
    /// When there is none; the error lists who there is.
    pub fn find(&self, name: &AgentName) -> Result<&AgentSpec, Error> {
        self.agents.iter().find(|agent| same(&agent.name, name)).ok_or_else(|| {
            Error::UnknownAgent {
                name: name.clone(),
                known: self.agents.iter().map(|agent| agent.name.to_string()).collect(),
            }
        })
    }

    /// All agents, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &AgentSpec> {
        self.agents.iter()
    }
}

fn same(one: &AgentName, other: &AgentName) -> bool {
    one.as_str().eq_ignore_ascii_case(other.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_agents_are_there_whatever_the_case() {
        let catalog = AgentCatalog::built_in();
        assert_eq!(catalog.iter().count(), 2);
        let explore = catalog.find(&"Explore".parse().unwrap()).unwrap();
        assert_eq!(explore.tools.as_ref().map(Vec::len), Some(4));
        let error = catalog.find(&"nobody".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("general-purpose, explore"), "{error}");
    }
}
