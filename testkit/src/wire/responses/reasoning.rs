//! Reasoning that comes back: it must be what was given, and stand before what it led to.

use super::request::{Item, Origin, Responses};
use crate::issued::Trace;
use crate::spoken::{Spoken, SpokenBlock};
use crate::wire::dialogue::Witness;
use crate::wire::refusal::Refusal;
use serde_json::Value;

/// Characters of encrypted content that an error shows.
const SHOWN: usize = 12;

pub(super) fn check(request: &Responses<'_>, witness: &Witness<'_>) -> Result<(), Refusal> {
    let items = request.items();
    for (index, item) in items.iter().enumerate() {
        if item.kind() == "reasoning" {
            check_item(request, item, witness)?;
            let next = items.get(index + 1);
            if next.is_none_or(|next| next.origin() != Origin::Model) {
                let id = item.id.as_deref().unwrap_or_default();
                return Err(Refusal::invalid(format!(
                    "Item '{id}' of type 'reasoning' was provided without its required following \
                     item."
                ))
                .param("input"));
            }
        }
    }
    if !request.wants_encrypted_reasoning() {
        return Ok(());
    }
    let last = items.iter().rposition(|item| item.origin() == Origin::Model);
    let reply = items[..last.map_or(0, |last| last + 1)]
        .rsplit(|item| item.origin() != Origin::Model)
        .next()
        .unwrap_or_default();
    let mut trace = Trace::default();
    reply.iter().for_each(|item| add(&mut trace, item));
    if !witness.was_otherwise(trace) {
        return Ok(());
    }
    let first = reply.iter().find(|item| item.kind() != "reasoning");
    let (id, kind) = first.map_or(("", ""), |item| {
        (item.id.as_deref().or(item.call_id.as_deref()).unwrap_or_default(), item.kind())
    });
    Err(Refusal::invalid(format!(
        "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item, as it \
         was given."
    ))
    .param("input"))
}

fn check_item(
    request: &Responses<'_>,
    item: &Item<'_>,
    witness: &Witness<'_>,
) -> Result<(), Refusal> {
    let id = item.id.as_deref().unwrap_or_default();
    let Some(content) = item.encrypted_content.as_deref() else {
        // What is stored is known by its id.
        if request.store != Some(false) && !id.is_empty() {
            return Ok(());
        }
        return Err(Refusal::new(
            404,
            format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to \
                 false. Try again with `store` set to true, or remove this item from your input."
            ),
        )
        .param("input"));
    };
    let summary = item.summary();
    let stands = match summary.is_empty() {
        true => witness.made(content),
        false => witness.signed(&summary, content),
    };
    if stands {
        return Ok(());
    }
    let shown: String = content.chars().take(SHOWN).collect();
    Err(Refusal::invalid(format!(
        "The encrypted content {shown}... could not be verified. Reason: Encrypted content could \
         not be decrypted or parsed, or its summary was changed."
    ))
    .code("invalid_encrypted_content"))
}

fn add(trace: &mut Trace, item: &Item<'_>) {
    let call_id = item.call_id.as_deref().unwrap_or_default();
    match item.kind() {
        "message" => item.texts().into_iter().for_each(|text| trace.text(text)),
        "function_call" => trace.call(&[call_id, item.name.as_deref().unwrap_or_default()]),
        "reasoning" => trace.reasoning(&[item.encrypted_content.as_deref().unwrap_or_default()]),
        _ => {}
    }
}

/// A reply, as [`add`] finds it again.
pub(super) fn trace(spoken: &Spoken<'_>) -> Trace {
    let mut trace = Trace::default();
    for block in &spoken.blocks {
        match block {
            SpokenBlock::Text(text) => trace.text(text),
            SpokenBlock::ToolCall { id, name, .. } => trace.call(&[id.as_str(), name]),
            SpokenBlock::Thinking { signature, .. } => trace.reasoning(&[signature]),
            SpokenBlock::Raw(json) => {
                let item: Value = serde_json::from_str(json).unwrap_or_default();
                let text = |key: &str| item[key].as_str().unwrap_or_default();
                match text("type") {
                    "message" => {
                        let parts = item["content"].as_array().into_iter().flatten();
                        parts.filter_map(|part| part["text"].as_str()).for_each(|text| {
                            trace.text(text);
                        });
                    }
                    "function_call" => trace.call(&[text("call_id"), text("name")]),
                    "reasoning" => trace.reasoning(&[text("encrypted_content")]),
                    _ => {}
                }
            }
        }
    }
    trace
}
