//! A tool call in one line, what came of it, and on a terminal the part of it that people look for:
//! the change in a file, the end of a command's output.

use super::change;
use super::line::Look;
use crate::clean::{clean, clean_line};
use crate::format;
use crate::terminal::fitted;
use posse::protocol::{Ending, ToolCall, ToolFinished};

/// What a call may be about, the most telling first.
const SUBJECTS: [&str; 7] =
    ["command", "file_path", "pattern", "path", "description", "prompt", "url"];

/// Lines of a command's output, from its end.
const OUTPUT: usize = 5;
/// The same of one that failed.
const FAILED_OUTPUT: usize = 15;

/// How Posse begins to tell what a command left for git to run, and does not lie there any more.
const SET_ASIDE: &str = "[set aside: ";

/// How much is told of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A line; two if it went wrong.
    Line,
    /// What it changed and what it printed besides.
    Result,
}

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

/// A call that has its result.
pub fn finished(
    call: Option<&ToolCall>,
    finished: &ToolFinished,
    look: Look,
    detail: Detail,
) -> String {
    let described = call.map_or_else(|| "a call".to_owned(), describe);
    let took = match finished.took_ms {
        0..100 => String::new(),
        ms => format!(" {}", format::duration(ms)),
    };
    let described = fitted(&described, look.columns.saturating_sub(2 + took.len()));
    let took = look.paint.dim(&took);
    let worked = finished.ending == Ending::Returned && !finished.output.is_error;
    let mark = if worked { look.paint.green("●") } else { look.paint.red("●") };
    let mut lines = vec![format!("{mark} {described}{took}")];
    let text = finished.output.joined_text();
    let is_command = call.is_some_and(|call| call.input.get("command").is_some());
    match (detail, worked) {
        (Detail::Result, _) if is_command && finished.ending == Ending::Returned => {
            lines.extend(output(&text, if worked { OUTPUT } else { FAILED_OUTPUT }, look));
        }
        (_, false) => {
            let why = fitted(&clean_line(&text, 400), look.columns.saturating_sub(2));
            lines.push(format!("  {}", look.paint.dim(&why)));
        }
        (Detail::Result, true) => {
            let is_change = call.is_some_and(|call| call.input.get("file_path").is_some());
            let made = finished.output.change.as_deref();
            let made = made.or_else(|| change::difference_in(&text).filter(|_| is_change));
            lines.extend(made.map(|made| change::told(made, look)).unwrap_or_default());
        }
        (Detail::Line, true) => {}
    }
    // What was changed behind the command's back is told to people too, whatever else is shown.
    if let Some(aside) = text.lines().rfind(|line| line.starts_with(SET_ASIDE)) {
        let told = clean_line(aside.trim_start_matches('['), 400);
        let told = told.split(". Git would").next().unwrap_or(&told).to_owned();
        lines.push(format!("  {}", look.paint.red(&told)));
    }
    lines.join("\n")
}

/// The last lines of what a command printed.
fn output(text: &str, most: usize, look: Look) -> Vec<String> {
    let is_told_apart = |line: &str| line == "[no output]" || line.starts_with(SET_ASIDE);
    let printed: Vec<&str> = text.lines().filter(|line| !is_told_apart(line)).collect();
    let earlier = printed.len().saturating_sub(most);
    let mut lines = Vec::new();
    if earlier > 0 {
        lines.push(format!("… {}", format::count(earlier as u64, "earlier line")));
    }
    // Of a line that was written over, what stood there in the end.
    let last = |line: &&str| line.trim_end().rsplit('\r').next().map(clean).unwrap_or_default();
    lines.extend(printed[earlier..].iter().map(|line| last(line).replace('\t', "    ")));
    let room = look.columns.saturating_sub(2);
    let line = |line: &String| format!("  {}", look.paint.dim(&fitted(line.trim_end(), room)));
    lines.iter().map(|it| line(it).trim_end().to_owned()).collect()
}
