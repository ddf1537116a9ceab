//! The schema language of Gemini's `parameters`, which knows a part of JSON Schema and refuses
//! every other name. (`parametersJsonSchema` takes all of it.)

use serde_json::Value;

/// Members of a schema, in both spellings.
const KNOWN: [&str; 30] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "maxItems",
    "max_items",
    "minItems",
    "min_items",
    "properties",
    "required",
    "minProperties",
    "min_properties",
    "maxProperties",
    "max_properties",
    "minLength",
    "min_length",
    "maxLength",
    "max_length",
    "pattern",
    "example",
    "anyOf",
    "any_of",
    "propertyOrdering",
    "property_ordering",
    "default",
    "minimum",
    "maximum",
];

/// Says what is wrong with the schema at `at`.
pub(super) fn check(at: &str, schema: &Value) -> Result<(), String> {
    let Value::Object(members) = schema else {
        return Err(format!("Invalid value at '{at}' (Schema)"));
    };
    if let Some(name) = members.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field."
        ));
    }
    if members.get("type").is_some_and(|kind| !kind.is_string()) {
        return Err(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{at}': Proto field is not \
             repeating, cannot start list."
        ));
    }
    let properties = members.get("properties").and_then(Value::as_object);
    for (index, (_, property)) in properties.into_iter().flatten().enumerate() {
        check(&format!("{at}.properties[{index}].value"), property)?;
    }
    for (index, name) in list(schema, "required").enumerate() {
        let defined = name
            .as_str()
            .is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)));
        if !defined {
            return Err(format!(
                "* GenerateContentRequest.{at}.required[{index}]: property is not defined\n"
            ));
        }
    }
    if let Some(items) = members.get("items") {
        check(&format!("{at}.items"), items)?;
    } else if members.get("type").is_some_and(|kind| kind == "array" || kind == "ARRAY") {
        return Err(format!("* GenerateContentRequest.{at}.items: missing field.\n"));
    }
    for key in ["anyOf", "any_of"] {
        for (index, option) in list(schema, key).enumerate() {
            check(&format!("{at}.any_of[{index}]"), option)?;
        }
    }
    Ok(())
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}
