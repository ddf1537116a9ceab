//! Thought signatures that come back: each must be one that was given, and the calls of the turn
//! under way must bear those they were given with.

use super::document::parts;
use super::request::{Content, Generate, Part};
use crate::issued::Trace;
use crate::spoken::{Spoken, SpokenBlock};
use crate::wire::dialogue::Witness;
use serde_json::Value;

/// The provider's own words for a call that was never signed, because another model made it.
const EXCUSES: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

pub(super) fn check(request: &Generate<'_>, witness: &Witness<'_>) -> Result<(), String> {
    let contents = request.contents();
    let signatures = contents
        .iter()
        .filter(|content| content.is_model())
        .flat_map(|content| content.parts().iter().filter_map(signature));
    for signature in signatures {
        if !witness.made(signature) && !witness.made(&standard(signature)) {
            return Err("Corrupted thought signature.".to_owned());
        }
    }
    // A turn begins where the user says something, not where a function responds.
    let speaks =
        |content: &Content<'_>| !content.is_model() && content.responses().next().is_none();
    let turn = contents.iter().rposition(|content| speaks(content)).map_or(0, |last| last + 1);
    for (position, content) in contents.iter().enumerate().skip(turn) {
        if content.is_model() && witness.was_otherwise(trace_of(content)) {
            let name = content.calls().find_map(|call| call.name.as_deref()).unwrap_or_default();
            return Err(format!(
                "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly, and missing thought_signature may lead to \
                 degraded model performance. Additional data, function call `default_api:{name}` \
                 , position {}. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                position + 1
            ));
        }
    }
    Ok(())
}

/// Only calls need their signatures: a text may come back without the one it had.
fn trace_of(content: &Content<'_>) -> Trace {
    let mut trace = Trace::default();
    for part in content.parts() {
        if let Some(call) = &part.function_call {
            if let Some(signature) = signature(part) {
                trace.reasoning(&[&standard(signature)]);
            }
            let args = call.args.map_or("{}", |args| args.get());
            trace.call(&[call.name.as_deref().unwrap_or_default(), &canonical(args)]);
        } else if let Some(text) = part.text.as_deref()
            && !part.is_thought()
        {
            trace.text(text);
        }
    }
    trace
}

/// A reply, as [`trace_of`] finds it again.
pub(super) fn trace(spoken: &Spoken<'_>) -> Trace {
    let mut trace = Trace::default();
    for (block, signature) in parts(spoken) {
        match block {
            SpokenBlock::Text(text) => trace.text(text),
            SpokenBlock::Thinking { .. } => {}
            SpokenBlock::ToolCall { name, input, .. } => {
                if let Some(signature) = signature {
                    trace.reasoning(&[&standard(signature)]);
                }
                trace.call(&[name, &canonical(input)]);
            }
            SpokenBlock::Raw(json) => {
                let part: Value = serde_json::from_str(json).unwrap_or_default();
                if let Some(call) = part.get("functionCall") {
                    if let Some(signature) = part["thoughtSignature"].as_str() {
                        trace.reasoning(&[&standard(signature)]);
                    }
                    let args = call.get("args").map_or("{}".to_owned(), Value::to_string);
                    let name = call["name"].as_str().unwrap_or_default();
                    trace.call(&[name, &canonical(&args)]);
                } else if let Some(text) = part["text"].as_str()
                    && part["thought"] != true
                {
                    trace.text(text);
                }
            }
        }
    }
    trace
}

/// The signature of a part, unless it is an excuse for having none.
fn signature<'p>(part: &'p Part<'_>) -> Option<&'p str> {
    part.thought_signature.as_deref().filter(|signature| !EXCUSES.contains(signature))
}

/// A signature in the usual alphabet of base64: clients may send it back in the other one.
fn standard(signature: &str) -> String {
    signature.replace('-', "+").replace('_', "/")
}

/// The same text for the same value, in whatever order its members stand.
fn canonical(json: &str) -> String {
    match serde_json::from_str::<Value>(json) {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        Err(_) => json.to_owned(),
    }
}
