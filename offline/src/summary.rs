//! The summary of a long conversation: the questions word for word, and the last answer.

use crate::conversation::{ASKED, Conversation};
use crate::words::shortened;
use posse_protocol::piped;
use std::fmt::Write as _;

/// Questions that are kept, the latest ones.
const QUESTIONS: usize = 30;

/// A summary from which this model can continue.
pub(crate) fn of(conversation: &Conversation<'_>) -> String {
    let mut out = format!("{ASKED}\n");
    let asked = &conversation.asked;
    for text in &asked[asked.len().saturating_sub(QUESTIONS)..] {
        let line: Vec<&str> = piped::parted(text).0.split_whitespace().collect();
        let _ = writeln!(out, "- {}", shortened(&line.join(" "), 600));
    }
    if !conversation.exchanges.is_empty() {
        out.push_str("\nCalled for the last of them:\n");
        for exchange in &conversation.exchanges {
            let input = shortened(&exchange.call.input.to_string(), 160);
            let failed = if exchange.failed { " (failed)" } else { "" };
            let _ = writeln!(out, "- {} {input}{failed}", exchange.call.name);
        }
    }
    if let Some(answer) = &conversation.last_answer {
        let _ = writeln!(out, "\nAnswered last:\n{}", shortened(answer, 3_000));
    }
    out
}
