//! Answers as a stream of server-sent events, in the order and shape of the real API.

use super::document::{open_message, push_output, push_usage, stop_reason};
use crate::http::{EventKind, Events};
use crate::json::push_string;
use crate::spoken::{SpokenBlock, Tokens};
use crate::wire::dialogue::Voice;
use crate::wire::pieces;

/// A ping comes after the first block has begun, and then after this many deltas.
const PING_EVERY: usize = 64;

/// The whole stream.
pub(super) fn events(voice: &Voice<'_>) -> Events {
    let mut stream = Stream { events: Events::default(), block: 0, deltas: 0 };
    stream.message_start(voice);
    for block in &voice.spoken.blocks {
        stream.block(block);
    }
    stream.message_end(voice);
    stream.events
}

struct Stream {
    events: Events,
    /// The index of the present block.
    block: usize,
    deltas: usize,
}

impl Stream {
    fn message_start(&mut self, voice: &Voice<'_>) {
        let out = self.begin("message_start");
        out.push_str(r#","message":"#);
        open_message(out, voice);
        out.push_str(r#","content":[],"stop_reason":null,"stop_sequence":null,"usage":"#);
        let usage = voice.spoken.usage;
        // What is written is not known yet; the real API counts the first token here.
        push_usage(out, &Tokens { output: usage.output.min(1), reasoning: 0, ..usage });
        out.push('}');
        self.end();
    }

    fn message_end(&mut self, voice: &Voice<'_>) {
        let out = self.begin("message_delta");
        out.push_str(r#","delta":{"stop_reason":"#);
        push_string(out, stop_reason(voice));
        out.push_str(r#","stop_sequence":null},"usage":{"#);
        push_output(out, &voice.spoken.usage);
        out.push('}');
        self.end();
        self.begin("message_stop");
        self.end();
    }

    fn block(&mut self, block: &SpokenBlock<'_>) {
        match block {
            SpokenBlock::Text(text) => {
                self.block_start(r#"{"type":"text","text":""}"#);
                for piece in pieces::of_text(text) {
                    self.delta("text_delta", "text", piece);
                }
            }
            SpokenBlock::Thinking { text, signature } => {
                self.block_start(r#"{"type":"thinking","thinking":"","signature":""}"#);
                for piece in pieces::of_text(text) {
                    self.delta("thinking_delta", "thinking", piece);
                }
                self.delta("signature_delta", "signature", signature);
            }
            SpokenBlock::ToolCall { id, name, input } => {
                let mut start = String::from(r#"{"type":"tool_use","id":"#);
                push_string(&mut start, id.as_str());
                start.push_str(r#","name":"#);
                push_string(&mut start, name);
                start.push_str(r#","input":{}}"#);
                self.block_start(&start);
                // The real API begins with an empty piece, and leaves it at that when there is
                // no input.
                self.delta("input_json_delta", "partial_json", "");
                if input != "{}" {
                    for piece in pieces::of_input(input) {
                        self.delta("input_json_delta", "partial_json", piece);
                    }
                }
            }
            SpokenBlock::Raw(json) => self.block_start(json),
        }
        let index = self.block;
        let out = self.begin("content_block_stop");
        push_index(out, index);
        self.end();
        self.block += 1;
    }

    fn block_start(&mut self, block: &str) {
        let index = self.block;
        let out = self.begin("content_block_start");
        push_index(out, index);
        out.push_str(r#","content_block":"#);
        out.push_str(block);
        self.end();
        if index == 0 {
            self.ping();
        }
    }

    fn delta(&mut self, kind: &str, key: &str, piece: &str) {
        if self.deltas > 0 && self.deltas.is_multiple_of(PING_EVERY) {
            self.ping();
        }
        self.deltas += 1;
        let index = self.block;
        let out = self.begin("content_block_delta");
        push_index(out, index);
        for part in [r#","delta":{"type":""#, kind, r#"",""#, key, r#"":"#] {
            out.push_str(part);
        }
        push_string(out, piece);
        out.push_str("}}\n\n");
        self.events.end(EventKind::Delta);
    }

    fn ping(&mut self) {
        self.begin("ping");
        self.end();
    }

    fn begin(&mut self, name: &str) -> &mut String {
        let out = self.events.text();
        for part in ["event: ", name, "\ndata: {\"type\":\"", name, "\""] {
            out.push_str(part);
        }
        out
    }

    fn end(&mut self) {
        self.events.text().push_str("}\n\n");
        self.events.end(EventKind::Other);
    }
}

fn push_index(out: &mut String, index: usize) {
    out.push_str(r#","index":"#);
    out.push_str(&index.to_string());
}
