//! Checks tools of a host before anything is stored. Otherwise a provider would report the problem in the middle of a
//! run, by the index of the tool.

use crate::error::Error;
use crate::tool_facts::built_in_tools;
use posse_agent::{Tool, check_schema};
use std::collections::HashSet;
use std::sync::Arc;

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// Refuses tools that cannot be offered to a model, or that another tool would hide.
pub(crate) fn check(tools: &[Arc<dyn Tool>]) -> Result<(), Error> {
    let mut names: HashSet<String> = HashSet::new();
    let built_in: HashSet<String> = match tools.is_empty() {
        true => HashSet::new(),
        false => built_in_tools().into_iter().map(|tool| tool.name).collect(),
    };
    for tool in tools {
        let name = tool.spec().name.as_str();
        let wrong = |why: &str| Err(Error::InvalidInput(format!("the tool `{name}` {why}")));
        let plain = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) {
            return wrong("must have a name of 1 to 64 letters, digits, `_` and `-`");
        }
        if built_in.contains(name) {
            return wrong("has the name of one that comes with Posse; give it another");
        }
        if !names.insert(name.to_owned()) {
            return wrong("is there twice; give one of them another name");
        }
        let schema = &*tool.spec().schema;
        if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
            return wrong("has a schema that is not of type `object`");
        }
        if let Err(why) = check_schema(schema) {
            return wrong(&format!("has a schema that cannot be used: {why}"));
        }
    }
    Ok(())
}
