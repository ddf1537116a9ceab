//! Removes secrets from text that arrives in pieces: if the end of a piece may begin a secret, it
//! waits for the next piece.

use super::Redactor;
use async_trait::async_trait;
use parking_lot::Mutex;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request, ToolContext};
use posse_model::Unescaped;
use posse_protocol::Delta;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Deltas of one source, which arrive in order.
pub(super) struct Stream {
    redactor: Redactor,
    held: Mutex<Option<Delta>>,
}

impl Stream {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Stream { redactor: redactor.clone(), held: Mutex::new(None) }
    }

    /// Passes on the text that can be shown now.
    pub(super) fn take(&self, mut delta: Delta, show: DeltaSink<'_>) {
        let mut held = self.held.lock();
        let Some(new) = text_of(&mut delta).map(std::mem::take) else { return show(delta) };
        let mut text = match held.take() {
            Some(mut before) if goes_on(&before, &delta) => {
                text_of(&mut before).map(std::mem::take).unwrap_or_default()
            }
            before => {
                self.show(before, show);
                String::new()
            }
        };
        text.push_str(&new);
        let rest = text.split_off(self.redactor.safe_end(&text));
        *held = (!rest.is_empty()).then(|| with_text(&delta, rest));
        if !text.is_empty() {
            self.show(Some(with_text(&delta, text)), show);
        }
    }

    /// Passes on the text that was held back, when no more follows.
    pub(super) fn end(&self, show: DeltaSink<'_>) {
        let held = self.held.lock().take();
        self.show(held, show);
    }

    fn show(&self, delta: Option<Delta>, show: DeltaSink<'_>) {
        let Some(mut delta) = delta else { return };
        if let Some(text) = text_of(&mut delta)
            && let std::borrow::Cow::Owned(clean) = self.redactor.text(text)
        {
            *text = clean;
        }
        show(delta);
    }
}

fn text_of(delta: &mut Delta) -> Option<&mut String> {
    match delta {
        Delta::Text { text } | Delta::Thinking { text } | Delta::ToolProgress { text, .. } => {
            Some(text)
        }
        Delta::Waiting { .. }
        | Delta::Held { .. }
        | Delta::Called { .. }
        | Delta::Counted { .. } => None,
    }
}

/// Returns a delta of the same kind with another text.
fn with_text(delta: &Delta, text: String) -> Delta {
    match delta {
        Delta::Thinking { .. } => Delta::Thinking { text },
        Delta::ToolProgress { call, .. } => Delta::ToolProgress { call: call.clone(), text },
        Delta::Text { .. }
        | Delta::Waiting { .. }
        | Delta::Held { .. }
        | Delta::Called { .. }
        | Delta::Counted { .. } => Delta::Text { text },
    }
}

fn goes_on(before: &Delta, delta: &Delta) -> bool {
    match (before, delta) {
        (Delta::ToolProgress { call, .. }, Delta::ToolProgress { call: other, .. }) => {
            call == other
        }
        _ => std::mem::discriminant(before) == std::mem::discriminant(delta),
    }
}

/// Decodes the bytes of `end`, whose last escape may be incomplete.
fn unescaped(end: &[u8]) -> Vec<u8> {
    let open = end.iter().rev().take(2).position(|byte| *byte == b'%');
    let whole = &end[..end.len() - open.map_or(0, |at| at + 1)];
    Unescaped::of(whole).map_or_else(|| whole.to_vec(), |read| read.bytes)
}

impl Redactor {
    /// Returns the end of the text that can be shown, whatever follows.
    fn safe_end(&self, text: &str) -> usize {
        if self.is_empty() {
            return text.len();
        }
        let longest = self.all.iter().map(Vec::len).max().unwrap_or(0);
        // An escaped byte has three characters.
        let width = if text.contains('%') { 3 } else { 1 };
        let first = text.len().saturating_sub((width * longest).saturating_sub(1));
        let begins_a_form = |start: &usize| {
            let end = &text.as_bytes()[*start..];
            let read = (width > 1).then(|| unescaped(end));
            self.has_beginning(end) || read.is_some_and(|read| self.has_beginning(&read))
        };
        let boundary = |start: &usize| text.is_char_boundary(*start);
        let Some(end) = (first..text.len()).filter(boundary).find(begins_a_form) else {
            return text.len();
        };
        // Do not cut a complete secret in two.
        let around = self.find(text).into_iter().find(|it| it.start < end && end < it.end);
        around.map_or(end, |found| found.start)
    }

    /// True when a form begins with `end` and is longer.
    fn has_beginning(&self, end: &[u8]) -> bool {
        // The forms are sorted, so only the first greater one can match.
        let next = self.all.partition_point(|form| form.as_slice() <= end);
        self.all.get(next).is_some_and(|form| form.starts_with(end))
    }

    /// Returns `context` with secrets removed from its deltas, and the stream to end after the
    /// call.
    pub(super) fn watching(&self, context: &ToolContext) -> (ToolContext, Arc<Stream>) {
        let stream = Arc::new(Stream::new(self));
        let (through, show) = (stream.clone(), context.deltas.clone());
        let deltas = Arc::new(move |delta: Delta| through.take(delta, &*show));
        (ToolContext { deltas, ..context.clone() }, stream)
    }

    /// Returns `model` wrapped so that its deltas have no secrets.
    pub(crate) fn before(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match self.is_empty() {
            true => model,
            false => Arc::new(Discreet { model, redactor: self.clone() }),
        }
    }
}

/// A model whose deltas have no secrets. The log redacts the complete reply.
struct Discreet {
    model: Arc<dyn Model>,
    redactor: Redactor,
}

#[async_trait]
impl Model for Discreet {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn get_ready(&self) {
        self.model.get_ready();
    }

    async fn call(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let stream = Stream::new(&self.redactor);
        let show = |delta: Delta| stream.take(delta, deltas);
        let reply = self.model.call(request, &show, cancel).await;
        stream.end(deltas);
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-canary-8f3b1c";
    const LONGER: &str = "sk-canary-8f3b1c-and-more";

    /// Returns what is shown of these pieces.
    fn shown(pieces: &[&str]) -> Vec<String> {
        let shown = Mutex::new(Vec::new());
        let show = |mut delta: Delta| {
            let text = text_of(&mut delta).map(std::mem::take).unwrap_or_default();
            shown.lock().push(text);
        };
        let stream = Stream::new(&Redactor::new([SECRET, LONGER]));
        for piece in pieces {
            stream.take(Delta::Text { text: (*piece).to_owned() }, &show);
        }
        stream.end(&show);
        shown.into_inner()
    }

    #[test]
    fn a_secret_in_pieces_is_found_wherever_it_is_cut() {
        for secret in [SECRET, LONGER] {
            let text = format!("it is {secret}, ask");
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(shown(&pieces).concat(), "it is [redacted], ask", "{pieces:?}");
                }
            }
            let single: Vec<String> = text.chars().map(String::from).collect();
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(shown(&single).concat(), "it is [redacted], ask");
        }
    }

    #[test]
    fn one_that_is_written_with_percent_signs_is_found_wherever_it_is_cut() {
        let escaped: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let text = format!("it is {escaped}, ask");
        for cut in 0..=text.len() {
            let pieces = [&text[..cut], &text[cut..]];
            assert_eq!(shown(&pieces).concat(), "it is [redacted], ask", "{pieces:?}");
        }
        assert_eq!(shown(&["50", "% of 100%"]).concat(), "50% of 100%");
    }

    #[test]
    fn what_only_begins_like_one_is_shown_in_the_end() {
        assert_eq!(shown(&["task", " ok"]), ["ta", "sk ok"]);
        assert_eq!(shown(&["the end: sk-can"]), ["the end: ", "sk-can"]);
        assert_eq!(shown(&["plain", " text."]), ["plain", " text."]);
    }
}
