//! Answers that must follow a JSON Schema: the check, and its result.
//!
//! Pure. Fetches nothing: a schema may refer only to its own parts. The check ignores a code fence
//! around the answer, and otherwise takes the answer as it is.

use crate::compact::shortened;
use jsonschema::Validator;
use posse_protocol::Outcome;
use serde_json::Value;
use std::collections::HashMap;

/// How often an agent may correct an answer that does not follow the schema.
const CORRECTIONS: u32 = 2;
/// The most problems of an answer that the agent is shown.
const TOLD_PROBLEMS: usize = 5;
/// The most characters of one problem.
const PROBLEM: usize = 160;
/// The most places of a schema. A reference counts as all the places it leads to, because a few
/// lines of references can lead to so many places that a check would never end.
const MOST_PLACES: u64 = 10_000;

/// Checks that `schema` can be used for answers.
///
/// # Errors
/// When it is not a JSON Schema, refers to anything but its own parts, or is too large.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Schema::compile(schema).map(drop)
}

/// A schema, ready to check answers.
pub(crate) struct Schema(Validator);

/// What happens to a run that would end with an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The run ends with this outcome.
    Finish(Outcome),
    /// The agent gets this message and answers again.
    Again(String),
}

impl Schema {
    /// Compiles `schema`, or returns what is wrong with it.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("a JSON Schema is an object, such as {\"type\": \"object\"}".to_owned());
        }
        if places(schema, schema, &mut HashMap::new())? > MOST_PLACES {
            return Err(format!(
                "it has more than {MOST_PLACES} places, each reference counted with all that it \
                 leads to: make it simpler"
            ));
        }
        let built = jsonschema::options().offline().build(schema);
        built.map(Schema).map_err(|error| problem(&error))
    }

    /// The JSON in `answer` if it follows the schema, or the problems.
    fn fit<'a>(&self, answer: &'a str) -> Result<&'a str, Vec<String>> {
        let json = unfenced(answer);
        if json.is_empty() {
            return Err(vec!["the answer is empty".to_owned()]);
        }
        let value: Value = serde_json::from_str(json)
            .map_err(|error| vec![format!("the answer is not JSON alone: {error}")])?;
        let mut errors = self.0.iter_errors(&value);
        let mut problems: Vec<String> =
            errors.by_ref().take(TOLD_PROBLEMS).map(|error| problem(&error)).collect();
        match errors.count() {
            0 => {}
            more => problems.push(format!("and {more} more")),
        }
        if problems.is_empty() { Ok(json) } else { Err(problems) }
    }
}

/// Decides about `answer`. `misfits` is the number of earlier answers that did not follow the schema.
pub(crate) fn judge(schema: &Result<Schema, String>, answer: &str, misfits: u32) -> Verdict {
    let fit = match schema {
        Ok(schema) => schema.fit(answer),
        Err(why) => {
            let reason = format!("the schema of the answer cannot be used: {why}");
            return Verdict::Finish(Outcome::failed(reason, answer));
        }
    };
    match fit {
        Ok(json) => Verdict::Finish(Outcome::completed(json)),
        Err(problems) if misfits < CORRECTIONS => Verdict::Again(format!(
            "Your answer does not follow the JSON Schema that was asked for:\n- {}\nAnswer again \
             with the corrected JSON alone: no other words before or after it.",
            problems.join("\n- ")
        )),
        Err(problems) => {
            let reason = format!(
                "the answer does not follow its JSON Schema, also after {CORRECTIONS} \
                 corrections: {}. Make the schema simpler or use another model",
                problems.join("; ")
            );
            Verdict::Finish(Outcome::failed(reason, answer))
        }
    }
}

/// `answer` without the space and the code fence around it.
fn unfenced(answer: &str) -> &str {
    const FENCE: &str = "```";
    let answer = answer.trim();
    let inside = answer.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    let fenced = inside.and_then(|inside| inside.split_once('\n'));
    match fenced {
        Some((language, body)) if ["", "json"].contains(&language.trim()) => body.trim(),
        _ => answer,
    }
}

/// The place and the description of a problem.
fn problem(error: &jsonschema::ValidationError<'_>) -> String {
    let place = match error.instance_path().as_str() {
        "" => "at the top",
        path => path,
    };
    let mut what = error.to_string();
    if what.len() > PROBLEM {
        // The masked message leaves out the value, which may be the whole answer.
        what = error.masked().to_string();
    }
    format!("{}: {}", shortened(place, PROBLEM), shortened(&what, PROBLEM))
}

/// The number of places in `schema`, which is a part of `root`.
fn places<'a>(
    schema: &'a Value,
    root: &'a Value,
    known: &mut HashMap<&'a str, u64>,
) -> Result<u64, String> {
    let is_root = std::ptr::eq(schema, root);
    let mut count = u64::from(schema.is_object());
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                let more = match (name.as_str(), value) {
                    ("$ref", Value::String(to)) => places_behind(to, root, known)?,
                    // These name places that no JSON pointer leads to.
                    ("$dynamicRef" | "$recursiveRef", Value::String(to)) => return Err(stray(to)),
                    ("$id", Value::String(to)) if !is_root => return Err(stray(to)),
                    // A definition counts where it is referred to.
                    ("$defs" | "definitions", _) if is_root => 0,
                    _ => places(value, root, known)?,
                };
                count = count.saturating_add(more);
            }
        }
        Value::Array(items) => {
            for item in items {
                count = count.saturating_add(places(item, root, known)?);
            }
        }
        _ => {}
    }
    Ok(count)
}

/// The number of places that a reference leads to; one if it leads back to itself.
fn places_behind<'a>(
    to: &'a str,
    root: &'a Value,
    known: &mut HashMap<&'a str, u64>,
) -> Result<u64, String> {
    if let Some(count) = known.get(to) {
        return Ok(*count);
    }
    known.insert(to, 1);
    let target = to.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
    let missing = || if to.starts_with('#') { absent(to) } else { stray(to) };
    let count = places(target.ok_or_else(missing)?, root, known)?;
    known.insert(to, count);
    Ok(count)
}

/// The error for a reference to a part that does not exist. An anchor is not a JSON pointer.
fn absent(to: &str) -> String {
    let shown = shortened(to, PROBLEM);
    match to.is_empty() || to == "#" || to.starts_with("#/") {
        true => format!("it refers to `{shown}`, and there is no such part in it"),
        false => format!("it refers to `{shown}`; write the way to the part, as `#/$defs/name`"),
    }
}

fn stray(to: &str) -> String {
    let to = shortened(to, PROBLEM);
    format!("it refers to `{to}`; a schema may refer to its own parts only, as `#/$defs/name`")
}
