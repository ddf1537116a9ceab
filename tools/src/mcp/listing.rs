//! The tools that a server lists, as Posse can offer them. Their texts are data of a stranger.

use posse_protocol::{Effect, ToolSpec};
use rmcp::model::Tool;
use serde_json::Value;

/// The most characters of a description that a model sees.
const LONGEST_DESCRIPTION: usize = 4_000;
/// The most bytes of a schema.
const LONGEST_SCHEMA: usize = 64 << 10;

/// The tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The tools that Posse can offer, by their own names.
    pub tools: Vec<ToolSpec>,
    /// The others.
    pub left_out: Vec<LeftOut>,
}

/// A tool that Posse cannot offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, shortened.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Listing {
    /// Adds the entry `listed` of a list of tools.
    pub(super) fn add(&mut self, listed: Value) {
        let name = listed["name"].as_str().unwrap_or("without a name");
        let name: String = plain(name).chars().take(80).collect();
        match read(listed) {
            Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                self.left_out.push(LeftOut { name, reason: "it is there twice".to_owned() });
            }
            Ok(tool) => self.tools.push(tool),
            Err(reason) => self.left_out.push(LeftOut { name, reason }),
        }
    }
}

/// Returns the tool that `listed` describes. Nobody has checked what a server says of its effects, so each call counts
/// as one that may have any.
fn read(listed: Value) -> Result<ToolSpec, String> {
    let tool: Tool = serde_json::from_value(listed).map_err(|_| "it is malformed".to_owned())?;
    let letter = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
    if tool.name.is_empty() || !tool.name.chars().all(letter) {
        return Err("its name must consist of letters, digits, `_` and `-`".to_owned());
    }
    let mut schema = Value::Object((*tool.input_schema).clone());
    clean(&mut schema);
    if let Some(fields) = schema.as_object_mut()
        && !fields.contains_key("type")
    {
        fields.insert("type".to_owned(), "object".into());
    }
    if schema.to_string().len() > LONGEST_SCHEMA {
        return Err(format!("its schema has more than {LONGEST_SCHEMA} bytes"));
    }
    if schema["type"] != "object" {
        return Err("its schema is not of type `object`".to_owned());
    }
    posse_agent::check_schema(&schema)
        .map_err(|why| format!("its schema cannot be used: {why}"))?;
    let description = plain(tool.description.as_deref().unwrap_or_default());
    let mut shown: String = description.chars().take(LONGEST_DESCRIPTION).collect();
    if shown.len() < description.len() {
        shown.push('…');
    }
    let hints = tool.annotations.as_ref();
    let mut spec = ToolSpec::new(tool.name.into_owned(), shown, Effect::Network, schema);
    spec.idempotent =
        hints.is_some_and(|it| it.read_only_hint == Some(true) || it.idempotent_hint == Some(true));
    Ok(spec)
}

/// Returns `text` without characters that people cannot see and models can read.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|char| !is_unseen(*char)).collect()
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_unseen(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        // Joiners, marks of direction, operators that nobody sees, tags and selectors of variants.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{e0000}'..='\u{e0fff}' | '\u{fe00}'..='\u{fe0f}' => true,
        char => char.is_control(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(tools: Vec<Value>) -> Listing {
        let mut listing = Listing::default();
        tools.into_iter().for_each(|tool| listing.add(tool));
        listing
    }

    #[test]
    fn one_unusable_tool_does_not_take_the_others_along() {
        let object = json!({"type": "object"});
        let listing = list(vec![
            json!({"name": "one", "inputSchema": object}),
            json!({"name": "one", "inputSchema": object}),
            json!({"name": "a b", "inputSchema": object}),
            json!({"name": "none"}),
            json!({"name": "text", "inputSchema": {"type": "string"}}),
            json!({"name": "wrong", "inputSchema": {"type": "object", "properties": 1}}),
            json!({"name": "two", "inputSchema": {}}),
            json!(7),
        ]);
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(listing.tools[1].schema["type"], "object");
        let reasons: Vec<&str> = listing.left_out.iter().map(|it| it.reason.as_str()).collect();
        let begin = [
            "it is there",
            "its name",
            "it is mal",
            "its schema is",
            "its schema cannot",
            "it is mal",
        ];
        assert_eq!(reasons.len(), begin.len());
        for (reason, begin) in reasons.iter().zip(begin) {
            assert!(reason.starts_with(begin), "{reason}");
        }
    }

    #[test]
    fn unseen_characters_go_and_long_descriptions_are_cut() {
        let description = format!("Do\u{200b} it\u{e0041}.{}", "x".repeat(LONGEST_DESCRIPTION));
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "description": "b\u{202e}c\u{1b}[2J"}}});
        let tool = json!({"name": "one", "description": description, "inputSchema": schema});
        let tool = list(vec![tool]).tools.remove(0);
        assert!(tool.description.starts_with("Do it.xx") && tool.description.ends_with("x…"));
        assert_eq!(tool.schema["properties"]["a"]["description"], "bc[2J");
    }

    #[test]
    fn a_server_says_which_calls_may_run_again_and_nothing_else_of_their_effects() {
        let tool = |hints: Value| {
            let tool = json!({"name": "one", "inputSchema": {}, "annotations": hints});
            list(vec![tool]).tools.remove(0)
        };
        assert!(!tool(json!({"destructiveHint": false})).idempotent);
        let reads = tool(json!({"readOnlyHint": true}));
        assert!(reads.idempotent && reads.effect == Effect::Network);
    }
}
