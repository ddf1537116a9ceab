//! The arguments of a call, checked against the tool's own schema.
//!
//! The schema that the model sees is the only description of the arguments: names, types, which are required,
//! ranges and choices. If an argument does not fit, the model gets a message that it can act on.

use crate::failure::Failure;
use posse_protocol::{Effect, ToolSpec};
use serde_json::{Map, Value};

/// Arguments that fit their schema.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks `input` against the schema of `spec`.
    pub(crate) fn check(spec: &ToolSpec, input: Value) -> Result<Self, Failure> {
        let tool = &spec.name;
        let Some(known) = spec.schema["properties"].as_object() else {
            return Ok(Arguments(Map::new()));
        };
        let names = || known.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let mut values = match input {
            Value::Object(values) => values,
            Value::Null => Map::new(),
            other => {
                let found = describe(&other);
                return Err(Failure(format!(
                    "{tool} takes an object with {}, not {found}",
                    names()
                )));
            }
        };
        values.retain(|_, value| !value.is_null());
        for (name, value) in &values {
            let Some(schema) = known.get(name) else {
                return Err(Failure(format!(
                    "{tool} has no argument `{name}`; it takes {}",
                    names()
                )));
            };
            if !fits(schema, value) {
                let (wanted, found) = (expected(schema), describe(value));
                return Err(Failure(format!("{tool}: `{name}` must be {wanted}, not {found}")));
            }
        }
        for name in spec.schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if !values.contains_key(name) {
                let wanted = known.get(name).map(expected).unwrap_or_default();
                return Err(Failure(format!("{tool} needs the argument `{name}`: {wanted}")));
            }
        }
        Ok(Arguments(values))
    }

    /// A required text. `check` has ensured that it exists.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_default()
    }

    /// A text, if given.
    pub(crate) fn optional_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A whole number, if given.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(whole)
    }

    /// A whole number that counts values in memory, if given.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        self.number(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// A required list. `check` has ensured that it exists.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.0.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// A boolean, if given.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }
}

fn whole(value: &Value) -> Option<u64> {
    let whole_float = |number: &f64| number.fract() == 0.0 && (0.0..1e15).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(whole_float).map(|number| number as u64))
}

fn fits(schema: &Value, value: &Value) -> bool {
    match schema["type"].as_str() {
        Some("integer") => whole(value).is_some_and(|number| {
            schema["minimum"].as_u64().is_none_or(|least| number >= least)
                && schema["maximum"].as_u64().is_none_or(|most| number <= most)
        }),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => {
            let choices = schema["enum"].as_array();
            value.is_string() && choices.is_none_or(|choices| choices.contains(value))
        }
    }
}

fn expected(schema: &Value) -> String {
    match schema["type"].as_str() {
        Some("integer") => {
            let least = schema["minimum"].as_u64().unwrap_or(0);
            match schema["maximum"].as_u64() {
                Some(most) => format!("a whole number from {least} to {most}"),
                None => format!("a whole number of at least {least}"),
            }
        }
        Some("boolean") => "true or false".to_owned(),
        Some("array") => "a list".to_owned(),
        _ => match schema["enum"].as_array() {
            Some(choices) => {
                let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
                format!("one of {}", choices.join(", "))
            }
            None => "a text".to_owned(),
        },
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let short: String = text.chars().take(40).collect();
            format!("the text {short:?}")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The specification of a built-in tool. Only tools that read may run again after a crash: a second
/// edit fails, and a second write or command may undo what happened in between.
pub(crate) fn spec(name: &str, description: &str, effect: Effect, schema: Value) -> ToolSpec {
    let mut spec = ToolSpec::new(name, description, effect, schema);
    spec.facts.confined = true;
    spec
}
