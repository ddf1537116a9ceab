//! What the parts of its events are, and its words for troubles.

use super::OpenAiResponses;
use crate::script::fault::anatomy::{event, json, replace_json, restop_at};
use crate::script::fault::{Anatomy, Trouble};
use crate::wire::openai::trouble::{document, words};
use serde_json::{Value, json};

const OVERFLOW: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";

impl Anatomy for OpenAiResponses {
    fn names_events(&self) -> bool {
        true
    }

    fn is_call(&self, data: &Value) -> bool {
        data["type"] == "response.function_call_arguments.delta"
    }

    fn is_stop(&self, data: &Value) -> bool {
        let ends = ["response.completed", "response.incomplete", "response.failed"];
        data["type"].as_str().is_some_and(|kind| ends.contains(&kind))
    }

    fn text<'a>(&self, data: &'a mut Value) -> Option<&'a mut Value> {
        match data["type"].as_str() {
            Some("response.output_text.delta") => data.pointer_mut("/delta"),
            _ => None,
        }
    }

    fn numbers<'a>(&self, data: &'a mut Value) -> Vec<&'a mut Value> {
        data.get_mut("output_index").into_iter().collect()
    }

    fn goes_on(&self, data: &Value) -> bool {
        data["type"] == "response.function_call_arguments.delta"
    }

    fn stop_place(&self, data: &Value) -> &'static str {
        if data["type"] == "response.completed" { "/response/status" } else { "/status" }
    }

    fn length_word(&self) -> &'static str {
        "incomplete"
    }

    /// Says why, too, and a stream ends in an event of another name.
    fn stop_for_length(&self, piece: &mut Vec<u8>) {
        let Some(mut data) = json(piece) else { return };
        let word = self.length_word();
        restop_at(self.stop_place(&data), &mut data, &json!(word));
        let why = json!({"reason": "max_output_tokens"});
        if data["type"] == "response.completed" {
            data["type"] = json!("response.incomplete");
            data["response"]["incomplete_details"] = why;
            *piece = event(self, &data);
        } else if data["status"] == word {
            data["incomplete_details"] = why;
            replace_json(piece, &data);
        }
    }

    fn ping(&self) -> Value {
        json!({"type": "keepalive"})
    }

    fn unknown(&self) -> Value {
        json!({"type": "response.aura.delta", "aura": {"colour": "blue"}, "output_index": 0})
    }

    fn trouble(&self, trouble: Trouble) -> (u16, Value) {
        document(words(trouble, OVERFLOW))
    }

    fn trouble_event(&self, trouble: Trouble) -> Value {
        let (_, kind, code, message) = words(trouble, OVERFLOW);
        let code = code.unwrap_or(kind);
        json!({"type": "error", "code": code, "message": message, "param": null})
    }
}
