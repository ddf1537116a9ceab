//! Agents in settings files: whole definitions, and changes of agents that are defined elsewhere.

use super::Setting;
use super::table::{Effective, Layer, Layered, Row};
use crate::definition::{AgentDefinition, partial};
use crate::front_matter::problem::Findings;
use posse_protocol::AgentName;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::collections::BTreeMap;
use toml::Spanned;

/// A table `[agents.NAME]` of a settings file.
#[derive(Clone, Debug)]
pub struct AgentTable {
    /// The agent.
    pub name: AgentName,
    /// The content of the table.
    pub definition: AgentDefinition,
    /// The line the table begins at.
    pub line: u32,
    /// Problems in the table.
    pub(crate) findings: Findings,
}

impl AgentTable {
    /// True when it does not define an agent, but changes one that is defined elsewhere.
    pub fn is_change(&self) -> bool {
        self.definition.description.is_empty() && self.definition.prompt.is_empty()
    }

    /// The table of `name` in the file `text`.
    fn new(name: AgentName, agent: Spanned<FileAgent>, text: &str) -> Self {
        let before = text.get(..agent.span().start).unwrap_or_default();
        let line = before.matches('\n').count() as u32 + 1;
        let FileAgent { definition, findings } = agent.into_inner();
        AgentTable { name, definition, line, findings }
    }
}

impl Layered for Vec<Setting<AgentTable>> {
    type Written = BTreeMap<AgentName, Spanned<FileAgent>>;

    const FORM: &'static str = "[{}.NAME]";

    fn overlay(&mut self, written: Self::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        let first = self.len();
        for (name, agent) in written {
            let same = |known: &Setting<AgentTable>| {
                known.value.name.as_str().eq_ignore_ascii_case(name.as_str())
            };
            if self[first..].iter().any(same) {
                return Err(format!(
                    "[agents.{name}] stands there twice, in different cases; keep one of them"
                ));
            }
            let value = AgentTable::new(name, agent, layer.text);
            self.push(layer.set(value));
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        shown.extend(self.iter().map(|Setting { value, origin }| {
            let about = match value.is_change() {
                true => "changes one that is defined elsewhere",
                false => &value.definition.description,
            };
            origin.effective(format!("{}.{}", row.key, value.name), json!(about))
        }));
    }
}

/// A table `[agents.NAME]` as it is read.
pub(crate) struct FileAgent {
    definition: AgentDefinition,
    findings: Findings,
}

impl<'de> Deserialize<'de> for FileAgent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (definition, findings) = partial(from)?;
        let missing = match (definition.description.is_empty(), definition.prompt.is_empty()) {
            (true, false) => "description",
            (false, true) => "instructions",
            _ => return Ok(FileAgent { definition, findings }),
        };
        Err(serde::de::Error::custom(format!(
            "`{missing}` is missing: an agent has both `description` and `instructions`, a change \
             of one that is defined elsewhere has neither"
        )))
    }
}
