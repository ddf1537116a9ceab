//! Tool calls while they arrive, and the parts they become.
//!
//! Vendors mark the pieces of one call in many ways: by index, by id, by a name that comes only
//! once, or by sending calls whole. Arguments grow in place and are parsed once, at the end.

use super::chunk::{CallPiece, Field};
use super::{EXTRA_CONTENT, ids};
use crate::fault::{Fault, Kind};
use crate::wire::MAX_CALLS;
use posse_protocol::{CallId, Extra, Part, ToolCall};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Whether the calls of a reply can be trusted to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The model stopped of its own accord.
    Whole,
    /// The model was stopped: a call counts only if its arguments are an object to the end.
    Doubtful,
}

/// The calls of a reply so far, in their order.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// As JSON.
    arguments: String,
    /// From vendors that do not write them as text.
    value: Value,
    extra_content: Option<Value>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes more of a call; false when there was nothing in it.
    pub(super) fn push(&mut self, piece: CallPiece<'_>) -> Result<bool, Fault> {
        let function = piece.function.unwrap_or_default();
        let (id, name) = (piece.id.0, function.name.0);
        let position = match self.position(piece.index.0, &id, &name) {
            Some(position) => position,
            None if self.0.len() == MAX_CALLS => {
                let reason = format!("it has more than {MAX_CALLS} tool calls");
                return Err(Fault::new(Kind::Malformed, reason));
            }
            None => {
                self.0.push(Call::new(piece.index.0));
                self.0.len() - 1
            }
        };
        let call = &mut self.0[position];
        let mut moved = false;
        if call.id.is_empty() && !id.is_empty() {
            call.id = id.into_owned();
            moved = true;
        }
        if call.name.is_empty() && !name.is_empty() {
            call.name = name.into_owned();
            moved = true;
        }
        match function.arguments {
            Field::Text(more) => {
                call.arguments.push_str(&more);
                moved |= !more.is_empty();
            }
            Field::Other(Value::Null) => {}
            Field::Other(value) => {
                moved |= call.value != value;
                call.value = value;
            }
        }
        if piece.extra_content.is_some() {
            call.extra_content = piece.extra_content;
        }
        Ok(moved)
    }

    /// The call that a piece with this index, id and name belongs to; `None` for a new one.
    fn position(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let find = |wanted: &dyn Fn(&Call) -> bool| self.0.iter().rposition(wanted);
        if !id.is_empty() {
            let same = find(&|call| call.id == id && (index.is_none() || call.index == index));
            if same.is_some() {
                return same;
            }
        }
        let differs = |new: &str, old: &str| !new.is_empty() && !old.is_empty() && new != old;
        match index {
            // Some vendors give every call the first index: with a name, another id begins another
            // call. Others make up an id for each piece: without a name, an id says nothing.
            Some(_) => find(&|call| {
                let other = match id.is_empty() {
                    true => differs(name, &call.name),
                    false => !name.is_empty() && differs(id, &call.id),
                };
                call.index == index && !other
            }),
            None if name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        }
    }

    /// The parts they became. `seed` distinguishes this reply from others, for calls without an id.
    ///
    /// A call without content is ignored: some vendors end with one.
    pub(super) fn into_parts(self, ending: Ending, seed: &str) -> Result<Vec<Part>, Fault> {
        let mut taken = HashSet::new();
        let mut parts = Vec::with_capacity(self.0.len());
        for (position, mut call) in self.0.into_iter().enumerate() {
            if call.name.is_empty() && call.arguments.is_empty() && call.value.is_null() {
                continue;
            }
            if call.id.is_empty() || taken.contains(&call.id) {
                let position = position.to_string();
                call.id = ids::made_id([seed, &position, &call.id, &call.name, &call.arguments]);
            }
            taken.insert(call.id.clone());
            let Some(input) = call.input(ending) else { continue };
            if call.name.is_empty() {
                return Err(Fault::new(Kind::Malformed, "a tool call without a name"));
            }
            let extra = call.extra_content.map(|value| (EXTRA_CONTENT.to_owned(), value));
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(call.id),
                name: call.name,
                input,
                extra: Extra::from(extra.into_iter().collect::<Map<String, Value>>()),
            }));
        }
        Ok(parts)
    }
}

impl Call {
    fn new(index: Option<u64>) -> Self {
        Call {
            index,
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
            value: Value::Null,
            extra_content: None,
        }
    }

    /// The arguments; `None` when they may have been cut off. Half a call must never be executed.
    fn input(&mut self, ending: Ending) -> Option<Value> {
        let written = match self.arguments.trim_ascii() {
            "" => Ok(std::mem::take(&mut self.value)),
            text => serde_json::from_str(text),
        };
        match written {
            Ok(input @ Value::Object(_)) => Some(input),
            _ if ending == Ending::Doubtful => None,
            // Arguments that were left out are none.
            Ok(Value::Null) => Some(Value::Object(Map::new())),
            Ok(other) => Some(other),
            Err(_) => Some(Value::String(std::mem::take(&mut self.arguments))),
        }
    }
}
