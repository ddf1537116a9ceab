//! An answer as a stream of `chat.completion.chunk`s.

use super::document::{finish_reason, members, open, push_usage, speaks};
use crate::http::{EventKind, Events};
use crate::json::push_string;
use crate::spoken::SpokenBlock;
use crate::wire::dialogue::Voice;
use crate::wire::pieces;

/// Whether the stream ends with a chunk that tells the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsageChunk {
    Wanted,
    Unwanted,
}

/// The whole stream.
pub(super) fn events(voice: &Voice<'_>, usage: UsageChunk) -> Events {
    let mut head = String::from("data: ");
    open(&mut head, voice, "chat.completion.chunk");
    let mut stream = Stream { events: Events::default(), head, usage, calls: 0 };
    stream.start(voice);
    for block in &voice.spoken.blocks {
        stream.block(block);
    }
    stream.finish(voice);
    stream.events
}

struct Stream {
    events: Events,
    /// How every chunk begins.
    head: String,
    usage: UsageChunk,
    /// Tool calls so far.
    calls: usize,
}

impl Stream {
    fn start(&mut self, voice: &Voice<'_>) {
        let content = if speaks(voice) { r#""""# } else { "null" };
        let delta = format!(r#""role":"assistant","content":{content},"refusal":null"#);
        self.chunk(EventKind::Other, |out| out.push_str(&delta));
    }

    fn block(&mut self, block: &SpokenBlock<'_>) {
        match block {
            SpokenBlock::Text(text) => {
                for piece in pieces::of_text(text) {
                    self.text("content", piece);
                }
            }
            SpokenBlock::Thinking { text, .. } => {
                for piece in pieces::of_text(text) {
                    self.text("reasoning_content", piece);
                }
            }
            SpokenBlock::ToolCall { id, name, input } => {
                let index = self.calls;
                self.calls += 1;
                self.chunk(EventKind::Other, |out| {
                    out.push_str(&format!(r#""tool_calls":[{{"index":{index},"id":"#));
                    push_string(out, id.as_str());
                    out.push_str(r#","type":"function","function":{"name":"#);
                    push_string(out, name);
                    out.push_str(r#","arguments":""}}]"#);
                });
                for piece in pieces::of_input(input) {
                    self.chunk(EventKind::Delta, |out| {
                        out.push_str(&format!(r#""tool_calls":[{{"index":{index},"function":"#));
                        out.push_str(r#"{"arguments":"#);
                        push_string(out, piece);
                        out.push_str("}}]");
                    });
                }
            }
            SpokenBlock::Raw(json) => {
                self.chunk(EventKind::Delta, |out| out.push_str(members(json)));
            }
        }
    }

    fn text(&mut self, key: &str, piece: &str) {
        self.chunk(EventKind::Delta, |out| {
            for part in ["\"", key, "\":"] {
                out.push_str(part);
            }
            push_string(out, piece);
        });
    }

    /// A chunk whose delta has the members that `write` writes.
    fn chunk(&mut self, kind: EventKind, write: impl FnOnce(&mut String)) {
        let out = self.events.text();
        out.push_str(&self.head);
        out.push_str(r#","choices":[{"index":0,"delta":{"#);
        write(out);
        out.push_str(r#"},"logprobs":null,"finish_reason":null}]"#);
        self.end(kind);
    }

    fn finish(&mut self, voice: &Voice<'_>) {
        let out = self.events.text();
        out.push_str(&self.head);
        out.push_str(r#","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"#);
        push_string(out, finish_reason(voice));
        out.push_str("}]");
        self.end(EventKind::Other);
        if self.usage == UsageChunk::Wanted {
            let out = self.events.text();
            out.push_str(&self.head);
            out.push_str(r#","choices":[],"usage":"#);
            push_usage(out, &voice.spoken.usage);
            out.push_str("}\n\n");
            self.events.end(EventKind::Other);
        }
        self.events.text().push_str("data: [DONE]\n\n");
        self.events.end(EventKind::Other);
    }

    fn end(&mut self, kind: EventKind) {
        let usage = match self.usage {
            UsageChunk::Wanted => ",\"usage\":null}\n\n",
            UsageChunk::Unwanted => "}\n\n",
        };
        self.events.text().push_str(usage);
        self.events.end(kind);
    }
}
