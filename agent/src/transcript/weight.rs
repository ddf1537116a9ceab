//! Estimates from their bytes how much of the context window parts take up.

use super::BYTES_PER_TOKEN;
use posse_protocol::Part;

/// The bytes of `parts`, roughly as they are sent.
pub(crate) fn weigh(parts: &[Part]) -> usize {
    const FRAME: usize = 16;
    parts
        .iter()
        .map(|part| {
            FRAME
                + match part {
                    Part::Text(text) => text.text.len(),
                    Part::Thinking(thinking) => {
                        thinking.text.len() + thinking.signature.as_ref().map_or(0, String::len)
                    }
                    Part::ToolCall(call) => 64 + call.name.len() + weigh_value(&call.input),
                    Part::ToolResult(result) => 64 + weigh(&result.parts),
                    // Vendors count images by their area: about 1,600 tokens at most.
                    Part::Image { .. } => 1_600 * BYTES_PER_TOKEN,
                    // Vendors count documents by the page. The number of pages is unknown, so estimate high.
                    Part::Document { data, .. } => data.len(),
                    Part::Opaque { value, .. } => weigh_value(value),
                }
        })
        .sum()
}

fn weigh_value(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weigh_value(item) + 1).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + 4 + weigh_value(field)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}
