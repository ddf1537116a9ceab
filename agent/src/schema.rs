//! Answers that have to follow a JSON Schema: whether one does, and what becomes of it.
//!
//! Pure. Fetches nothing: a schema refers to its own parts only. Of the answer nothing is guessed
//! but that a code fence around it does not belong to it.

use crate::compact::shortened;
use jsonschema::Validator;
use posse_protocol::Outcome;
use serde_json::Value;
use std::collections::HashMap;

/// How often an agent may answer again after an answer that does not fit.
const CORRECTIONS: u32 = 2;
/// Problems of an answer that are told.
const TOLD_PROBLEMS: usize = 5;
/// Characters of one of them.
const PROBLEM: usize = 160;
/// Places of a schema, each reference counted with all that it leads to: a few lines of references
/// can lead to so many that checking an answer would take for ever.
const MOST_PLACES: u64 = 10_000;

/// Says why `schema` cannot be what an answer has to follow, if it cannot.
///
/// # Errors
/// When it is not a JSON Schema, refers to anything but its own parts, or is too large.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Schema::compile(schema).map(drop)
}

/// A schema, ready to check answers.
pub(crate) struct Schema(Validator);

/// What becomes of a run that would end with an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It ends like this.
    Finish(Outcome),
    /// The agent is told this, and answers again.
    Again(String),
}

impl Schema {
    /// Makes a schema ready, or says what is wrong with it.
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

    /// The JSON in `answer` if it follows the schema, else what is wrong with it.
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

/// Decides on `answer`, before which `misfits` did not fit.
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

/// Where something is wrong, and what.
fn problem(error: &jsonschema::ValidationError<'_>) -> String {
    let place = match error.instance_path().as_str() {
        "" => "at the top",
        path => path,
    };
    let mut what = error.to_string();
    if what.len() > PROBLEM {
        // Without the value itself, which may be the whole answer.
        what = error.masked().to_string();
    }
    format!("{}: {}", shortened(place, PROBLEM), shortened(&what, PROBLEM))
}

/// Places of `schema`, a part of `root`.
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
                    // They name places that no pointer leads to.
                    ("$dynamicRef" | "$recursiveRef", Value::String(to)) => return Err(stray(to)),
                    ("$id", Value::String(to)) if !is_root => return Err(stray(to)),
                    // What is defined counts where it is referred to.
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

/// Places that a reference leads to; one where it leads back to itself.
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

/// A part of the schema itself that is not there. Anchors are no places that a pointer leads to.
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
