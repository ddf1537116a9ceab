//! An answer as a stream of responses, each with some more parts. A function call comes whole.

use super::document::{
    close, finish_reason, parts, push_part, push_text, push_thought, push_usage, trailing_signature,
};
use super::request::Framing;
use crate::http::{EventKind, Events};
use crate::json::push_string;
use crate::spoken::SpokenBlock;
use crate::wire::dialogue::Voice;
use crate::wire::pieces;

/// The whole stream.
pub(super) fn events(voice: &Voice<'_>, framing: Framing) -> Events {
    let mut stream = Stream { events: Events::default(), framing, voice };
    for (block, signature) in parts(&voice.spoken) {
        match block {
            SpokenBlock::Text(text) => {
                for piece in pieces::of_text(text) {
                    stream.chunk(|out| push_text(out, piece, None));
                }
                // A text's signature comes when the text is over.
                if signature.is_some() {
                    stream.chunk(|out| push_text(out, "", signature));
                }
            }
            SpokenBlock::Thinking { text, .. } => {
                for piece in pieces::of_text(text) {
                    stream.chunk(|out| push_thought(out, piece));
                }
            }
            SpokenBlock::ToolCall { .. } | SpokenBlock::Raw(_) => {
                stream.chunk(|out| push_part(out, block, signature));
            }
        }
    }
    stream.last();
    stream.events
}

struct Stream<'a> {
    events: Events,
    framing: Framing,
    voice: &'a Voice<'a>,
}

impl Stream<'_> {
    /// A response with the one part that `write` writes.
    fn chunk(&mut self, write: impl FnOnce(&mut String)) {
        self.begin();
        let voice = self.voice;
        let out = self.events.text();
        out.push_str(r#"{"candidates":[{"content":{"parts":["#);
        write(out);
        let prompt = voice.spoken.usage.prompt();
        out.push_str(&format!(
            r#"],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":{prompt},"totalTokenCount":{prompt}}}"#
        ));
        close(out, voice);
        self.end(EventKind::Delta);
    }

    /// The response that says why it is over, and what it cost.
    fn last(&mut self) {
        self.begin();
        let voice = self.voice;
        let out = self.events.text();
        out.push_str(r#"{"candidates":[{"content":{"parts":["#);
        push_text(out, "", trailing_signature(&voice.spoken));
        out.push_str(r#"],"role":"model"},"finishReason":"#);
        push_string(out, finish_reason(voice));
        out.push_str(r#","index":0}],"usageMetadata":"#);
        push_usage(out, &voice.spoken.usage);
        close(out, voice);
        if self.framing == Framing::Array {
            self.events.text().push(']');
        }
        self.end(EventKind::Other);
    }

    fn begin(&mut self) {
        let first = self.events.len() == 0;
        self.events.text().push_str(match (self.framing, first) {
            (Framing::ServerSentEvents, _) => "data: ",
            (Framing::Array, true) => "[",
            (Framing::Array, false) => ",\r\n",
        });
    }

    fn end(&mut self, kind: EventKind) {
        if self.framing == Framing::ServerSentEvents {
            self.events.text().push_str("\r\n\r\n");
        }
        self.events.end(kind);
    }
}
