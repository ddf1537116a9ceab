//! What a model does in a cell, and what must have happened at the end.

use posse_testkit::Reply;
use serde_json::json;

/// A signature that no other text contains.
pub const SIGNATURE: &str = "Z3JpZC1zaWduYXR1cmU=";

/// The answer at the end of every run.
pub const ANSWER: &str = "All of it is done: ça va.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// An answer at once.
    Text,
    /// A tool call, then the answer.
    OneCall,
    /// Several tool calls, then the answer.
    SeveralCalls,
    /// Thinking and a tool call, then the answer.
    Thinking,
}

impl Behaviour {
    /// The replies, turn by turn. Each call appends a line of its own to the ledger.
    pub fn replies(self) -> Vec<Reply> {
        let append = |reply: Reply, line: &str| {
            reply.and_tool_call("Bash", json!({"command": format!("echo {line} >> ledger")}))
        };
        let first = match self {
            Behaviour::Text => return vec![Reply::text(ANSWER)],
            Behaviour::OneCall => append(Reply::text("I note it: é."), "one"),
            Behaviour::SeveralCalls => {
                let reply = append(Reply::text("I note both: é."), "one");
                append(reply, "two")
            }
            Behaviour::Thinking => {
                let thinking = Reply::empty().and_signed_thinking("What to note?", SIGNATURE);
                append(thinking.and_text("I note it: é."), "one")
            }
        };
        vec![first, Reply::text(ANSWER)]
    }

    /// What the ledger holds when each call has run once.
    pub fn ledger(self) -> &'static [&'static str] {
        match self {
            Behaviour::Text => &[],
            Behaviour::OneCall | Behaviour::Thinking => &["one"],
            Behaviour::SeveralCalls => &["one", "two"],
        }
    }
}
