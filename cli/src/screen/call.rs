//! A tool call in one line with its result and, on a terminal, its most interesting part: the
//! changed lines of a file, or the end of a command's output.

use super::change;
use super::line::Look;
use crate::clean::{clean, clean_line};
use crate::format;
use crate::terminal::fitted;
use posse::agents::{ToolFacts, built_in_tools, tools_of};
use posse::policy::NO_PERSON;
use posse::protocol::{Ending, Event, ToolCall, ToolFinished};
use serde_json::Value;

/// The most lines of a command's output, from its end.
const OUTPUT: usize = 5;
/// The same for a failed command.
const FAILED_OUTPUT: usize = 15;

/// The beginning of the note about files that git would have executed and that Posse moved away.
const SET_ASIDE: &str = "[set aside: ";

/// How much is shown of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// One line, or two for a failure.
    Line,
    /// Also what it changed and printed.
    Result,
}

/// The facts about the tools of a run.
pub struct Tools(Vec<ToolFacts>);

impl Default for Tools {
    fn default() -> Self {
        Tools(built_in_tools())
    }
}

impl Tools {
    /// Learns the tools of the run's host.
    pub fn observe(&mut self, event: &Event) {
        if let Event::RunStarted(started) = event {
            self.0 = tools_of(&started.grant);
        }
    }

    fn of(&self, call: &ToolCall) -> Option<&ToolFacts> {
        self.0.iter().find(|tool| tool.answers_to(&call.name))
    }

    /// A call in one line: the tool and the subject of the call.
    pub fn describe(&self, call: &ToolCall) -> String {
        let about = self.of(call).and_then(|tool| tool.line(&call.input));
        let about = about.unwrap_or_else(|| arguments(&call.input));
        let line = format!("{} {}", clean_line(&call.name, 64), clean_line(&about, 200));
        line.trim_end().to_owned()
    }
}

/// The arguments of a call of an unknown tool: the only argument if it is a text, or all as JSON.
fn arguments(input: &Value) -> String {
    let Some(all) = input.as_object().filter(|all| !all.is_empty()) else { return String::new() };
    let only = all.values().next().filter(|_| all.len() == 1).and_then(Value::as_str);
    only.map_or_else(|| input.to_string(), str::to_owned)
}

/// The lines for a finished call.
pub fn finished(
    tools: &Tools,
    call: Option<&ToolCall>,
    finished: &ToolFinished,
    look: Look,
    detail: Detail,
) -> String {
    let described = call.map_or_else(|| "a call".to_owned(), |call| tools.describe(call));
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
    let tool = call.and_then(|call| tools.of(call));
    let is_command = tool.is_some_and(ToolFacts::runs_commands);
    match (detail, worked) {
        (Detail::Result, _) if is_command && finished.ending == Ending::Returned => {
            lines.extend(output(&text, if worked { OUTPUT } else { FAILED_OUTPUT }, look));
        }
        (_, false) => {
            let why = fitted(&clean_line(&text, 400), look.columns.saturating_sub(2));
            lines.push(format!("  {}", look.paint.dim(&why)));
        }
        (Detail::Result, true) => {
            let is_change = tool.is_some_and(ToolFacts::changes_files);
            let made = finished.output.change.as_deref();
            let made = made.or_else(|| change::difference_in(&text).filter(|_| is_change));
            lines.extend(made.map(|made| change::told(made, look)).unwrap_or_default());
        }
        (Detail::Line, true) => {}
    }
    // Files that Posse moved away are always reported to people.
    if let Some(aside) = text.lines().rfind(|line| line.starts_with(SET_ASIDE)) {
        let told = clean_line(aside.trim_start_matches('['), 400);
        let told = told.split(". Git would").next().unwrap_or(&told).to_owned();
        lines.push(format!("  {}", look.paint.red(&told)));
    }
    lines.join("\n")
}

/// True for the refusal of a call that a person could have approved, if there had been one.
pub fn is_unapproved(event: &Event) -> bool {
    let Event::ToolFinished(finished) = event else { return false };
    finished.ending == Ending::Refused && finished.output.joined_text().contains(NO_PERSON)
}

/// The last lines of a command's output.
fn output(text: &str, most: usize, look: Look) -> Vec<String> {
    let is_told_apart = |line: &str| line == "[no output]" || line.starts_with(SET_ASIDE);
    let printed: Vec<&str> = text.lines().filter(|line| !is_told_apart(line)).collect();
    let earlier = printed.len().saturating_sub(most);
    let mut lines = Vec::new();
    if earlier > 0 {
        lines.push(format!("… {}", format::count(earlier as u64, "earlier line")));
    }
    // For a line with carriage returns, only the last version.
    let last = |line: &&str| line.trim_end().rsplit('\r').next().map(clean).unwrap_or_default();
    lines.extend(printed[earlier..].iter().map(|line| last(line).replace('\t', "    ")));
    let room = look.columns.saturating_sub(2);
    let line = |line: &String| format!("  {}", look.paint.dim(&fitted(line.trim_end(), room)));
    lines.iter().map(|it| line(it).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse::protocol::{About, CallId, Effect, Extra, Grant};
    use serde_json::json;

    fn check(name: &str, input: Value, expected: &str) {
        let about = Some(About::File("where".to_owned()));
        let note = ToolFacts { about, ..ToolFacts::new("save_note", Effect::Write) };
        let tools = Tools(tools_of(&Grant { known: vec![note], ..Grant::default() }));
        let (id, extra) = (CallId::from("c"), Extra::default());
        let call = ToolCall { id, name: name.to_owned(), input, extra };
        assert_eq!(tools.describe(&call), expected);
    }

    #[test]
    fn a_line_says_what_the_tool_says_that_its_calls_are_about() {
        check("Read", json!({"file_path": "a", "offset": 1}), "Read a");
        check("read_file", json!({"file_path": "a", "offset": 9}), "read_file a from line 9");
        check("Grep", json!({"pattern": "x", "path": "src", "-n": true}), "Grep x in src");
        check("Bash", json!({"command": "ls", "timeout": 5}), "Bash ls");
        check("save_note", json!({"text": "x", "where": "notes/a"}), "save_note notes/a");
        check("other", json!({"id": "7"}), "other 7");
        check("other", json!({"id": "7", "to": 8}), r#"other {"id":"7","to":8}"#);
        check("other", json!({}), "other");
    }
}
