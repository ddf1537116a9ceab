//! The details of reasoning, which come in fragments and go back whole.
//!
//! A signature is for the whole text of its block, so providers refuse single fragments. Everything
//! else in a block stays the same.

use super::chunk::{Field, Fields};
use serde_json::{Map, Value};

/// How many blocks back to look for the block of a fragment.
const LOOK_BACK: usize = 8;

/// The fields that grow; the others come whole.
const GROWING: [&str; 2] = ["text", "summary"];

/// The blocks of a reply so far.
#[derive(Default)]
pub(super) struct Details(Vec<Map<String, Value>>);

impl Details {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.0.into_iter().map(Value::Object).collect())
    }

    /// Adds a fragment to its block, or begins a block with it.
    pub(super) fn push(&mut self, fragment: Fields<'_>) {
        let recent = self.0.iter_mut().rev().take(LOOK_BACK);
        match recent.into_iter().find(|block| continues(block, &fragment)) {
            Some(block) => extend(block, fragment),
            None => self.0.push(fragment.into_map()),
        }
    }
}

/// True when `fragment` is more of `block`: the same kind of text at the same index, and not of
/// another id. Blocks without a text to grow are always whole.
fn continues(block: &Map<String, Value>, fragment: &Fields<'_>) -> bool {
    let same = |key: &str| match (block.get(key), fragment.get(key)) {
        (Some(Value::String(left)), Some(Field::Text(right))) => left == right,
        (Some(left), Some(Field::Other(right))) => left == right,
        (None, None) => true,
        _ => false,
    };
    let is_text = matches!(fragment.text("type"), "reasoning.text" | "reasoning.summary");
    let other_id = match (block.get("id"), fragment.text("id")) {
        (Some(Value::String(left)), right) => !right.is_empty() && left != right,
        _ => false,
    };
    is_text && same("type") && same("index") && !other_id
}

fn extend(block: &mut Map<String, Value>, fragment: Fields<'_>) {
    for (key, field) in fragment.0 {
        match (block.get_mut(&*key), field) {
            (_, Field::Other(Value::Null)) => {}
            (Some(Value::String(text)), Field::Text(more)) if GROWING.contains(&&*key) => {
                text.push_str(&more);
            }
            (Some(Value::String(text)), Field::Text(same)) if *text == *same => {}
            (Some(value), field) => *value = field.into(),
            (None, field) => {
                block.insert(key.into_owned(), field.into());
            }
        }
    }
}

/// The text that a fragment shows.
pub(super) fn shown<'a>(fragment: &'a Fields<'_>) -> &'a str {
    let texts = GROWING.iter().map(|key| fragment.text(key));
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}
