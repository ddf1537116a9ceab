//! JSON Schemas as this wire takes them: of arguments, and of the answer.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A schema of arguments. One without `properties` gets them: OpenAI refuses it otherwise.
pub(super) struct Parameters<'a>(pub(super) &'a Value);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(schema) if !schema.contains_key("properties") => {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in schema {
                    map.serialize_entry(key, value)?;
                }
                map.serialize_entry("properties", &Map::new())?;
                map.end()
            }
            schema => schema.serialize(serializer),
        }
    }
}

/// How deep a strict schema may be nested.
const MAX_DEPTH: usize = 10;

/// What may stand in a strict schema. Less than some providers take: what is not here only makes
/// the schema a request instead of a rule.
const KEYWORDS: [&str; 12] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$defs",
    "$ref",
];

/// True when every object in `schema` names all its properties, requires them and takes no other,
/// and nothing is said that strict providers refuse.
pub(super) fn is_strict(schema: &Value) -> bool {
    // The answer itself must be an object, said without a choice or a reference.
    schema["type"] == "object" && schema.get("anyOf").is_none() && is_strict_to(schema, MAX_DEPTH)
}

fn is_strict_to(schema: &Value, depth: usize) -> bool {
    let (Some(fields), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return false;
    };
    let inner_is_strict = fields.iter().all(|(key, value)| match (key.as_str(), value) {
        ("items", schema) => is_strict_to(schema, depth),
        ("anyOf", Value::Array(schemas)) => schemas.iter().all(|each| is_strict_to(each, depth)),
        ("properties" | "$defs", Value::Object(schemas)) => {
            schemas.values().all(|each| is_strict_to(each, depth))
        }
        ("anyOf" | "properties" | "$defs", _) => false,
        ("$ref", reference) => reference.as_str().is_some_and(|path| path.starts_with('#')),
        (key, _) => KEYWORDS.contains(&key),
    });
    inner_is_strict && (!describes_object(schema) || closes_object(schema))
}

fn describes_object(schema: &Value) -> bool {
    let is_object = match &schema["type"] {
        Value::Array(types) => types.iter().any(|name| name == "object"),
        name => name == "object",
    };
    is_object || schema.get("properties").is_some()
}

fn closes_object(schema: &Value) -> bool {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|given| given == name);
    schema["additionalProperties"] == false
        && schema["properties"].as_object().is_some_and(|all| all.keys().all(is_required))
}
