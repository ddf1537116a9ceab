//! Reduces a JSON Schema to the keywords that the provider accepts for answers.
//!
//! The provider refuses a request whose schema has other keywords. Without them, the schema only
//! allows more; Posse checks the answer against the original schema.

use serde_json::{Map, Value};
use std::collections::HashSet;

/// Keywords that the provider does not know and that can be left out: they restrict or describe a
/// value.
const NARROWING: &[&str] = &[
    "$schema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "examples",
    "example",
];

/// Words whose value is a map from names to schemas.
const NAMED: &[&str] = &["properties", "$defs", "definitions"];

/// Words whose value is a schema or a list of schemas.
const NESTED: &[&str] = &["items", "anyOf", "allOf"];

/// Formats of strings that the provider knows.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schema for the provider. `None` for an object with unknown names, and for a recursive
/// schema.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    let root = strict_object(schema.as_object()?)?;
    // The root must be an object, or say where one is.
    let is_object = root.get("type").is_some_and(|kind| kind == "object");
    let is_elsewhere = ["$ref", "anyOf", "allOf"].iter().any(|word| root.contains_key(*word));
    let root = Value::Object(root);
    let is_taken = (is_object || is_elsewhere) && !contains_itself(&root);
    is_taken.then_some(root)
}

/// True when a schema under `$defs` or `definitions` leads back to itself.
fn contains_itself(root: &Value) -> bool {
    fn references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    /// Follows a reference. `open` are the references on the way here, `closed` those without a
    /// circle.
    fn leads_back<'a>(
        root: &'a Value,
        reference: &'a str,
        open: &mut Vec<&'a str>,
        closed: &mut HashSet<&'a str>,
    ) -> bool {
        if open.contains(&reference) {
            return true;
        }
        let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
        let Some(target) = target.filter(|_| !closed.contains(reference)) else { return false };
        let mut further = Vec::new();
        references(target, &mut further);
        open.push(reference);
        let back = further.into_iter().any(|next| leads_back(root, next, open, closed));
        open.pop();
        closed.insert(reference);
        back
    }
    let mut all = Vec::new();
    references(root, &mut all);
    let mut closed = HashSet::new();
    all.into_iter().any(|reference| leads_back(root, reference, &mut Vec::new(), &mut closed))
}

fn strict_object(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut out = Map::with_capacity(schema.len() + 1);
    for (word, value) in schema {
        match word.as_str() {
            word if NARROWING.contains(&word) => {}
            "additionalProperties" | "unevaluatedProperties" => {
                // A schema or `true` means a map, which the provider does not support.
                if value.as_bool() != Some(false) {
                    return None;
                }
            }
            "patternProperties" | "prefixItems" => return None,
            // Objects in `allOf` cannot each be closed.
            "allOf" if value.as_array().is_none_or(|all| all.len() != 1) => return None,
            "minItems" if value.as_u64().is_none_or(|count| count > 1) => {}
            "format" if value.as_str().is_none_or(|format| !FORMATS.contains(&format)) => {}
            "oneOf" => {
                out.insert("anyOf".to_owned(), nested(value)?);
            }
            word if NAMED.contains(&word) => {
                let named = value.as_object()?.iter();
                let named = named.map(|(name, schema)| Some((name.clone(), nested(schema)?)));
                out.insert(word.to_owned(), Value::Object(named.collect::<Option<_>>()?));
            }
            word if NESTED.contains(&word) => {
                out.insert(word.to_owned(), nested(value)?);
            }
            word => {
                out.insert(word.to_owned(), value.clone());
            }
        }
    }
    if is_object_type(&out) {
        // An object without properties is a map, too.
        out.get("properties")?;
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(out)
}

/// A schema, or a list of them.
fn nested(value: &Value) -> Option<Value> {
    match value {
        Value::Object(schema) => strict_object(schema).map(Value::Object),
        Value::Array(schemas) => {
            schemas.iter().map(nested).collect::<Option<_>>().map(Value::Array)
        }
        _ => None,
    }
}

fn is_object_type(schema: &Map<String, Value>) -> bool {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    named || schema.contains_key("properties")
}
