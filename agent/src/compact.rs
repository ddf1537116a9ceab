//! Summaries that replace the beginning of a long transcript.

use posse_protocol::{Message, Part, Role};
use std::fmt::Write;
use std::sync::Arc;

/// The prompt that asks the model for a summary of its transcript.
pub const REQUEST: &str = "The conversation is about to outgrow your context. Write a \
summary that will replace everything above, for yourself to go on from. Keep: what was asked, in \
the asker's words where they matter; decisions and their reasons; files read or changed, with \
paths and the facts that matter in them; commands run and what came of them; what failed; what is \
left to do, and the very next step. Leave out greetings and detail that no longer matters. Answer \
with the summary only, and call no tool.";

/// The heading of a summary in the transcript.
pub const HEADING: &str =
    "[Summary of the conversation so far; the full text is no longer in view]\n";

/// A summary with its heading.
pub(crate) fn framed(summary: &str) -> String {
    format!("{HEADING}{summary}")
}

/// Characters of one extract.
const EXTRACT: usize = 600;
/// The number of latest exchanges that an extractive summary quotes.
const LATEST: usize = 12;

/// A summary without a model: the task verbatim, the tools called, and the last texts.
pub(crate) fn extract(messages: &[Arc<Message>]) -> String {
    let mut out = String::new();
    let said = |role: Role| {
        messages.iter().filter(move |message| message.role == role).map(|message| message.text())
    };
    if let Some(task) = said(Role::User).find(|text| !text.trim().is_empty()) {
        let _ = writeln!(out, "The task:\n{}\n", shortened(&task, 4 * EXTRACT));
    }
    let requests: Vec<String> =
        said(Role::User).skip(1).filter(|text| !text.trim().is_empty()).collect();
    if !requests.is_empty() {
        out.push_str("Said since by the user:\n");
        for text in requests.iter().rev().take(LATEST).rev() {
            let _ = writeln!(out, "- {}", shortened(text, EXTRACT));
        }
        out.push('\n');
    }
    let calls: Vec<String> = messages
        .iter()
        .flat_map(|message| message.tool_calls())
        .map(|call| format!("{} {}", call.name, shortened(&call.input.to_string(), 160)))
        .collect();
    if !calls.is_empty() {
        let _ = writeln!(out, "Tools called ({} in all), the latest last:", calls.len());
        for call in calls.iter().rev().take(4 * LATEST).rev() {
            let _ = writeln!(out, "- {call}");
        }
        out.push('\n');
    }
    let texts: Vec<String> = said(Role::Assistant).filter(|text| !text.trim().is_empty()).collect();
    if !texts.is_empty() {
        out.push_str("Your latest words:\n");
        for text in texts.iter().rev().take(LATEST).rev() {
            let _ = writeln!(out, "- {}", shortened(text, EXTRACT));
        }
    }
    let failed = messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter(|part| matches!(part, Part::ToolResult(result) if result.is_error))
        .count();
    if failed > 0 {
        let _ = writeln!(out, "\n{failed} tool calls failed.");
    }
    out
}

/// The first `limit` characters of `text`, with an ellipsis if there was more.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    let mut out: String = text.chars().take(limit).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extract_keeps_the_task_the_calls_and_the_last_words() {
        let call = posse_protocol::ToolCall {
            id: "c".into(),
            name: "Read".into(),
            input: serde_json::json!({"file_path": "src/lib.rs"}),
            extra: Default::default(),
        };
        let messages = [
            Message::user("find the bug"),
            Message::new(Role::Assistant, vec![Part::text("looking"), Part::ToolCall(call)]),
            Message::user("hurry"),
        ]
        .map(Arc::new);
        let summary = extract(&messages);
        for expected in ["find the bug", "src/lib.rs", "looking", "- hurry"] {
            assert!(summary.contains(expected), "{summary}");
        }
    }
}
