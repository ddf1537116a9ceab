//! A tool call in one line, and what came of it.

use super::line::Look;
use crate::clean::clean_line;
use crate::terminal::fitted;
use crate::view;
use posse::protocol::{Ending, ToolCall, ToolFinished};

/// What a call may be about, the most telling first.
const SUBJECTS: [&str; 7] =
    ["command", "file_path", "pattern", "path", "description", "prompt", "url"];

/// A call in one line: the tool, what it is about, and where it looks.
pub fn describe(call: &ToolCall) -> String {
    let input = call.input.as_object();
    let text =
        |name: &str| input.and_then(|input| input.get(name)).and_then(|value| value.as_str());
    let about =
        SUBJECTS.into_iter().find_map(text).map(str::to_owned).unwrap_or_else(|| match input {
            Some(input) if !input.is_empty() => call.input.to_string(),
            _ => String::new(),
        });
    let first = input.and_then(|input| input.get("offset")).and_then(|line| line.as_u64());
    let place = match (text("pattern"), text("path"), first) {
        (Some(_), Some(path), _) => format!(" in {}", clean_line(path, 100)),
        (None, _, Some(line)) if line > 1 => format!(" from line {line}"),
        _ => String::new(),
    };
    let about = format!("{} {}{place}", clean_line(&call.name, 64), clean_line(&about, 100));
    about.trim_end().to_owned()
}

/// A call that has its result, in one line; in two if it went wrong.
pub fn finished(call: Option<&ToolCall>, finished: &ToolFinished, look: Look) -> String {
    let described = call.map_or_else(|| "a call".to_owned(), describe);
    let took = match finished.took_ms {
        0..100 => String::new(),
        ms => format!(" {}", view::duration(ms)),
    };
    let described = fitted(&described, look.columns.saturating_sub(2 + took.len()));
    let took = look.paint.dim(&took);
    if finished.ending == Ending::Returned && !finished.output.is_error {
        return format!("{} {described}{took}", look.paint.green("●"));
    }
    let why = clean_line(&finished.output.joined_text(), 400);
    let why = fitted(&why, look.columns.saturating_sub(2));
    let (mark, why) = (look.paint.red("●"), look.paint.dim(&why));
    format!("{mark} {described}{took}\n  {why}")
}
