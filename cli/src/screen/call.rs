//! A tool call in one line.

use crate::clean::clean_line;
use posse::protocol::ToolCall;

/// What a call may be about, the most telling first.
const SUBJECTS: [&str; 7] =
    ["command", "file_path", "pattern", "path", "description", "prompt", "url"];

/// A call in one line: the tool and what it is about.
pub fn describe(call: &ToolCall) -> String {
    let input = call.input.as_object();
    let text =
        |name: &str| input.and_then(|input| input.get(name)).and_then(|value| value.as_str());
    let about =
        SUBJECTS.into_iter().find_map(text).map(str::to_owned).unwrap_or_else(|| match input {
            Some(input) if !input.is_empty() => call.input.to_string(),
            _ => String::new(),
        });
    format!("{} {}", clean_line(&call.name, 64), clean_line(&about, 100)).trim_end().to_owned()
}
