//! An answer as the stream of events that tells how a response comes about.

use super::document::{
    Encrypted, Ending, begun, item_id, open_call, push_item, push_summary_part, push_text_part,
    response,
};
use crate::http::{EventKind, Events};
use crate::json::push_string;
use crate::spoken::SpokenBlock;
use crate::wire::dialogue::Voice;
use crate::wire::pieces;

/// The whole stream.
pub(super) fn events(voice: &Voice<'_>, encrypted: Encrypted) -> Events {
    let mut stream = Stream { events: Events::default(), sequence: 0 };
    let begun = begun(voice);
    stream.response("response.created", &begun);
    stream.response("response.in_progress", &begun);
    for (index, block) in voice.spoken.blocks.iter().enumerate() {
        let id = item_id(voice, index, block);
        let mut item = Item { stream: &mut stream, index, id: &id };
        match block {
            SpokenBlock::Text(text) => item.text(text),
            SpokenBlock::Thinking { text, .. } => item.reasoning(text),
            SpokenBlock::ToolCall { id: call_id, name, input } => {
                item.call(call_id.as_str(), name, input);
            }
            SpokenBlock::Raw(json) => item.added(|out| out.push_str(json)),
        }
        item.done(block, encrypted);
    }
    let last = match Ending::of(voice) {
        Ending::Completed => "response.completed",
        Ending::Failed => "response.failed",
        Ending::Incomplete(_) => "response.incomplete",
    };
    stream.response(last, &response(voice, encrypted));
    stream.events
}

struct Stream {
    events: Events,
    /// Events so far.
    sequence: usize,
}

impl Stream {
    fn response(&mut self, name: &str, response: &str) {
        self.event(name, EventKind::Other, |out| {
            out.push_str(r#","response":"#);
            out.push_str(response);
        });
    }

    /// An event with the members that `write` writes, each after a comma.
    fn event(&mut self, name: &str, kind: EventKind, write: impl FnOnce(&mut String)) {
        let out = self.events.text();
        for part in ["event: ", name, "\ndata: {\"type\":\"", name, "\",\"sequence_number\":"] {
            out.push_str(part);
        }
        out.push_str(&self.sequence.to_string());
        self.sequence += 1;
        write(out);
        out.push_str("}\n\n");
        self.events.end(kind);
    }
}

/// An item while it comes about.
struct Item<'a> {
    stream: &'a mut Stream,
    index: usize,
    id: &'a str,
}

impl Item<'_> {
    fn text(&mut self, text: &str) {
        let id = self.id;
        self.added(|out| {
            out.push_str(&format!(
                r#"{{"id":"{id}","type":"message","status":"in_progress","role":"assistant","content":[]}}"#
            ));
        });
        let place = r#","content_index":0"#;
        self.part("response.content_part.added", place, |out| push_text_part(out, ""));
        for piece in pieces::of_text(text) {
            self.string("response.output_text.delta", place, "delta", piece, EventKind::Delta);
        }
        self.string("response.output_text.done", place, "text", text, EventKind::Other);
        self.part("response.content_part.done", place, |out| push_text_part(out, text));
    }

    fn reasoning(&mut self, text: &str) {
        let id = self.id;
        self.added(|out| {
            out.push_str(&format!(r#"{{"id":"{id}","type":"reasoning","summary":[]}}"#));
        });
        if text.is_empty() {
            return;
        }
        let place = r#","summary_index":0"#;
        let part = "response.reasoning_summary_part";
        self.part(&format!("{part}.added"), place, |out| push_summary_part(out, ""));
        let delta = "response.reasoning_summary_text.delta";
        for piece in pieces::of_text(text) {
            self.string(delta, place, "delta", piece, EventKind::Delta);
        }
        let done = "response.reasoning_summary_text.done";
        self.string(done, place, "text", text, EventKind::Other);
        self.part(&format!("{part}.done"), place, |out| push_summary_part(out, text));
    }

    fn call(&mut self, call_id: &str, name: &str, input: &str) {
        let id = self.id;
        self.added(|out| {
            open_call(out, id, "in_progress", call_id, name);
            out.push_str(r#"""}"#);
        });
        let delta = "response.function_call_arguments.delta";
        for piece in pieces::of_input(input) {
            self.string(delta, "", "delta", piece, EventKind::Delta);
        }
        let done = "response.function_call_arguments.done";
        self.string(done, "", "arguments", input, EventKind::Other);
    }

    fn added(&mut self, write: impl FnOnce(&mut String)) {
        self.item("response.output_item.added", write);
    }

    fn done(&mut self, block: &SpokenBlock<'_>, encrypted: Encrypted) {
        let id = self.id;
        self.item("response.output_item.done", |out| push_item(out, block, id, encrypted));
    }

    fn item(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        let index = self.index;
        self.stream.event(name, EventKind::Other, |out| {
            out.push_str(&format!(r#","output_index":{index},"item":"#));
            write(out);
        });
    }

    /// An event about a part of the item; `place` says which one.
    fn part(&mut self, name: &str, place: &str, write: impl FnOnce(&mut String)) {
        self.about(name, EventKind::Other, |out| {
            out.push_str(place);
            out.push_str(r#","part":"#);
            write(out);
        });
    }

    /// An event that brings a string.
    fn string(&mut self, name: &str, place: &str, key: &str, text: &str, kind: EventKind) {
        self.about(name, kind, |out| {
            out.push_str(place);
            if name.starts_with("response.output_text") {
                out.push_str(r#","logprobs":[]"#);
            }
            for part in [",\"", key, "\":"] {
                out.push_str(part);
            }
            push_string(out, text);
        });
    }

    fn about(&mut self, name: &str, kind: EventKind, write: impl FnOnce(&mut String)) {
        let (id, index) = (self.id, self.index);
        self.stream.event(name, kind, |out| {
            out.push_str(&format!(r#","item_id":"{id}","output_index":{index}"#));
            write(out);
        });
    }
}
