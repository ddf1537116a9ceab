//! JSON Schemas of arguments and of the answer, for OpenAI and compatible vendors.

use posse_protocol::Schema;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A schema of arguments. The schema of an object gets `properties`, which providers require.
pub(super) struct Parameters<'a>(pub(super) &'a Schema);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &**self.0 {
            Value::Object(schema) if is_object(schema) && !schema.contains_key("properties") => {
                let mut map = serializer.serialize_map(Some(schema.len() + 1))?;
                for (key, value) in schema {
                    map.serialize_entry(key, value)?;
                }
                map.serialize_entry("properties", &Map::new())?;
                map.end()
            }
            _ => self.0.serialize(serializer),
        }
    }
}

/// How deep a schema may be nested for a promise.
const MAX_DEPTH: usize = 10;

/// True when a provider can promise to follow the schema of an answer to the letter.
///
/// It promises nothing for a schema that leaves something open. Only keywords that every model
/// accepts pass: a refused schema fails the call, while without the promise the model follows the
/// schema as well as it can.
pub(super) fn can_be_promised(schema: &Value) -> bool {
    let is_choice = schema.get("anyOf").is_some();
    schema.as_object().is_some_and(is_object) && !is_choice && is_closed(schema, MAX_DEPTH)
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        name => name.is_some_and(|name| name == "object"),
    }
}

fn is_closed(schema: &Value, depth: usize) -> bool {
    let (Value::Object(schema), Some(depth)) = (schema, depth.checked_sub(1)) else {
        return false;
    };
    let all_closed = |schemas: &Map<String, Value>| {
        let mut schemas = schemas.values();
        schemas.all(|schema| is_closed(schema, depth))
    };
    let keywords_fit = schema.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("type" | "description" | "title" | "enum" | "const" | "required", _) => true,
        ("additionalProperties", Value::Bool(false)) => true,
        ("properties" | "$defs", Value::Object(schemas)) => all_closed(schemas),
        ("anyOf", Value::Array(schemas)) => schemas.iter().all(|each| is_closed(each, depth)),
        ("items", schema) => is_closed(schema, depth),
        ("$ref", Value::String(path)) => path.starts_with('#'),
        _ => false,
    });
    let describes_object = is_object(schema) || schema.contains_key("properties");
    keywords_fit && (!describes_object || requires_all(schema))
}

fn requires_all(schema: &Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.contains_key("additionalProperties")
        && properties.is_some_and(|properties| properties.keys().all(is_required))
}
