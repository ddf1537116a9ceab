//! Remembers the reasoning in replies, and checks that it comes back unchanged and in its place.
//!
//! A reply is recognised by its texts and calls. Two replies may look the same and differ in their
//! reasoning; either may come back. A forgotten reply is not checked.

use crate::hash;
use crate::memory::Memory;
use parking_lot::Mutex;

/// Replies that are remembered, in each of two generations.
const REMEMBERED: usize = 1 << 15;
/// The most variants of reasoning to remember for one reply.
const VARIANTS: usize = 16;

/// What was sent out.
#[derive(Debug)]
pub(crate) struct Issued {
    /// By what can be seen, each reply as a whole.
    replies: Mutex<Memory<Vec<u64>>>,
}

/// A reply, or a message that should be one, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Of texts and calls.
    visible: u64,
    /// Of everything up to the last thing that can be seen.
    whole: u64,
    /// Text that may continue: the pieces of a stream may come back as one.
    text: String,
    /// Reasoning after the last text or call. It counts only if something follows it, because no
    /// client can send back a reply that ends in reasoning.
    reasoning: Option<u64>,
}

impl Trace {
    /// Adds a text. Texts in a row are one, and blank ones are none.
    pub(crate) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a call of a tool.
    pub(crate) fn call(&mut self, names: &[&str]) {
        self.end_text();
        self.show(hash::of(names));
    }

    /// Adds reasoning, signature and all.
    pub(crate) fn reasoning(&mut self, pieces: &[&str]) {
        self.end_text();
        let state = self.reasoning.unwrap_or_default();
        self.reasoning = Some(hash::extend(state, &hash::of(pieces).to_le_bytes()));
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.show(hash::of(&[text.trim()]));
        }
    }

    fn show(&mut self, hash: u64) {
        let hash = hash.to_le_bytes();
        self.visible = hash::extend(self.visible, &hash);
        let before = self.reasoning.take().unwrap_or_default();
        self.whole = hash::extend(hash::extend(self.whole, &before.to_le_bytes()), &hash);
    }

    /// The key of the reply, and its hash; nothing without a text or call.
    fn finish(mut self, scope: u64) -> Option<(u64, u64)> {
        self.end_text();
        let shown = self.whole != 0;
        shown.then(|| (hash::extend(scope, &self.visible.to_le_bytes()), self.whole))
    }
}

impl Issued {
    pub(crate) fn new() -> Self {
        Issued { replies: Mutex::new(Memory::new(REMEMBERED)) }
    }

    /// Remembers a reply.
    pub(crate) fn remember(&self, scope: u64, reply: Trace) {
        let Some((visible, whole)) = reply.finish(scope) else {
            return;
        };
        let mut replies = self.replies.lock();
        match replies.get(visible) {
            Some(variants) if variants.contains(&whole) || variants.len() > VARIANTS => {}
            Some(variants) => variants.push(whole),
            None => replies.insert(visible, vec![whole]),
        }
    }

    /// Whether the reply was sent with other reasoning than it has now.
    pub(crate) fn was_otherwise(&self, scope: u64, message: Trace) -> bool {
        let Some((visible, whole)) = message.finish(scope) else {
            return false;
        };
        let mut replies = self.replies.lock();
        let variants = replies.get(visible);
        variants.is_some_and(|found| found.len() <= VARIANTS && !found.contains(&whole))
    }
}

#[cfg(test)]
mod tests {
    use super::{Issued, Trace, VARIANTS};

    enum Piece {
        Text(&'static str),
        Call(&'static str),
        Reasoning(&'static str),
    }
    use Piece::{Call, Reasoning, Text};

    fn trace(pieces: &[Piece]) -> Trace {
        let mut trace = Trace::default();
        for piece in pieces {
            match piece {
                Text(text) => trace.text(text),
                Call(id) => trace.call(&[id]),
                Reasoning(signature) => trace.reasoning(&[signature]),
            }
        }
        trace
    }

    /// Checks whether `back` is the same as `sent`.
    #[track_caller]
    fn check(sent: &[Piece], back: &[Piece], passes: bool) {
        let issued = Issued::new();
        issued.remember(1, trace(sent));
        assert_eq!(!issued.was_otherwise(1, trace(back)), passes);
        assert!(!issued.was_otherwise(2, trace(back)), "another scope knows nothing of it");
    }

    #[test]
    fn reasoning_must_come_back_as_it_was_and_where_it_was() {
        let sent = [Reasoning("r"), Text("t"), Reasoning("s"), Call("c")];
        check(&sent, &[Reasoning("r"), Text("t"), Reasoning("s"), Call("c")], true);
        check(&sent, &[Reasoning("x"), Text("t"), Reasoning("s"), Call("c")], false);
        check(&sent, &[Text("t"), Reasoning("r"), Reasoning("s"), Call("c")], false);
        check(&sent, &[Reasoning("r"), Text("t"), Call("c")], false);
        check(&sent, &[Text("t"), Call("c")], false);
    }

    #[test]
    fn what_cannot_be_sent_back_or_is_another_reply_passes() {
        check(&[Text("t"), Reasoning("r")], &[Text("t")], true);
        check(&[Reasoning("r")], &[], true);
        check(&[Reasoning("r"), Text("a"), Text("b")], &[Reasoning("r"), Text("ab")], true);
        check(&[Reasoning("r"), Text(" \n"), Call("c")], &[Reasoning("r"), Call("c")], true);
        check(&[Reasoning("r"), Call("c")], &[Call("d")], true);
        check(&[Text("t")], &[Reasoning("r"), Text("t")], false);
    }

    #[test]
    fn each_way_it_was_said_may_come_back() {
        let issued = Issued::new();
        issued.remember(1, trace(&[Reasoning("r"), Call("c")]));
        issued.remember(1, trace(&[Call("c")]));
        assert!(!issued.was_otherwise(1, trace(&[Call("c")])));
        assert!(!issued.was_otherwise(1, trace(&[Reasoning("r"), Call("c")])));
        assert!(issued.was_otherwise(1, trace(&[Reasoning("s"), Call("c")])));
        for variant in 0..VARIANTS {
            let mut other = Trace::default();
            other.reasoning(&[&variant.to_string()]);
            other.call(&["c"]);
            issued.remember(1, other);
        }
        assert!(!issued.was_otherwise(1, trace(&[Reasoning("s"), Call("c")])), "too many to tell");
    }
}
