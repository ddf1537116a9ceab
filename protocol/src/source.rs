//! The tools of tool sources, as a run recorded them.

use crate::{Extra, ToolSpec};
use serde::{Deserialize, Serialize};

/// The tools that one source offered when a run was prepared. The run and its subagents keep to this
/// list, whatever the source offers later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceOffer {
    /// The name of the source.
    pub source: String,
    /// Its tools, with the names that models see: `mcp__SOURCE__TOOL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// The file that describes it, if it is an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Why it offered no tools, if it could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_offer_is_read_as_it_was_written_and_keeps_what_it_does_not_know() {
        let stored = json!({
            "source": "files",
            "tools": [{
                "name": "mcp__files__count",
                "description": "Counts files.",
                "schema": {"type": "object", "properties": {}},
                "effect": "read",
                "idempotent": true,
                "colour": "green",
            }],
            "since": 7,
        });
        let offer: SourceOffer = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(offer.tools[0].name, "mcp__files__count");
        assert_eq!(serde_json::to_value(&offer).unwrap(), stored);
        let text = serde_json::to_string(&offer).unwrap();
        assert_eq!(serde_json::from_str::<SourceOffer>(&text).unwrap(), offer);
    }
}
