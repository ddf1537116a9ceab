//! A run while it happens: live on a terminal, plain lines when piped.

use crate::clean::{clean, clean_line};
use crate::print;
use crate::view;
use posse::Update;
use posse::protocol::{
    Delta, Ending, Event, Limit, Message, Outcome, Part, Record, RunStarted, Sender, ToolCall,
    Usage,
};
use std::io::IsTerminal;
use std::time::Instant;

/// Where what the agent says goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speech {
    /// To standard output, as it comes: a person reads it there.
    Live,
    /// Nowhere but in the final answer.
    AtTheEnd,
}

pub struct Screen {
    quiet: bool,
    speech: Speech,
    paint: Paint,
    /// A status line stands on the terminal and must be taken away before anything else.
    status: Option<String>,
    live: bool,
    began: Instant,
    calls: Vec<(ToolCall, Instant)>,
    /// The cursor stands behind text.
    mid_line: bool,
    /// The text of the present reply has been shown as it came.
    spoken: bool,
    last_shown: String,
    pub usage: Usage,
    pub turns: u64,
    pub tool_calls: u64,
}

impl Screen {
    pub fn new(quiet: bool, no_color: bool) -> Self {
        let out = std::io::stdout().is_terminal();
        let err = std::io::stderr().is_terminal();
        Screen {
            quiet,
            speech: if out && !quiet { Speech::Live } else { Speech::AtTheEnd },
            paint: Paint { on: err && !no_color },
            status: None,
            live: err && !quiet,
            began: Instant::now(),
            calls: Vec::new(),
            mid_line: false,
            spoken: false,
            last_shown: String::new(),
            usage: Usage::default(),
            turns: 0,
            tool_calls: 0,
        }
    }

    pub fn show(&mut self, update: &Update) {
        match update {
            Update::Event(record) => self.event(record),
            Update::Delta(delta) => self.delta(delta),
        }
    }

    fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } if self.speech == Speech::Live => self.speak(text),
            Delta::Text { .. } => self.set_status("writing"),
            Delta::Thinking { .. } => self.set_status("thinking"),
            Delta::ToolProgress { text, .. } => {
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    self.set_status(&clean_line(line, 60));
                }
            }
        }
    }

    fn event(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted(started) => self.started(record, started),
            Event::ModelCalled(_) => {
                self.turns += 1;
                self.set_status("waiting for the model");
            }
            Event::ModelReplied(replied) => {
                self.usage += replied.usage;
                self.replied(&replied.message);
            }
            Event::ModelFailed(failed) => {
                self.usage += failed.usage;
                self.note(&self.paint.red(&format!("! {}", clean_line(&failed.reason, 300))));
            }
            Event::ToolStarted(started) => {
                self.tool_calls += 1;
                let name = started.tool.clone();
                self.set_status(&format!("running {name}"));
            }
            Event::ToolFinished(finished) => {
                let position = self.calls.iter().position(|(call, _)| call.id == finished.call);
                let call = position.map(|position| self.calls.remove(position).0);
                let described = call.as_ref().map_or(String::new(), describe);
                let mark = match (finished.ending, finished.output.is_error) {
                    (Ending::Returned, false) => self.paint.green("●"),
                    _ => self.paint.red("●"),
                };
                let took = match finished.took_ms {
                    0..100 => String::new(),
                    ms => self.paint.dim(&format!(" {}", view::duration(ms))),
                };
                let failed = match (finished.ending, finished.output.is_error) {
                    (Ending::Returned, false) => String::new(),
                    _ => {
                        let text = clean_line(&finished.output.joined_text(), 160);
                        format!("\n  {}", self.paint.dim(&text))
                    }
                };
                self.note(&format!("{mark} {described}{took}{failed}"));
            }
            Event::ToolPending(pending) => {
                let text = format!("… waits for {}", clean_line(&pending.waits_for, 120));
                self.note(&self.paint.dim(&text));
            }
            Event::Compacted(compacted) => {
                self.usage += compacted.usage;
                self.note(&self.paint.dim("◇ the beginning of the conversation was summarised"));
            }
            Event::MessageReceived(received) => {
                if let Sender::LimitNear(limit) = &received.from {
                    self.note(
                        &self.paint.dim(&format!("◇ told that it nears its {}", name_of(*limit))),
                    );
                }
            }
            Event::CancelRequested(request) => {
                let text = format!("◇ {} asked it to stop", clean_line(&request.by, 60));
                self.note(&self.paint.dim(&text));
            }
            Event::RunFinished(_) | Event::Archived(_) | Event::TimePassed(_) => {}
        }
    }

    fn started(&mut self, record: &Record, started: &RunStarted) {
        let line = format!(
            "{} · {} · run {}",
            clean_line(started.agent.name.as_str(), 64),
            clean_line(&started.model, 80),
            record.run.short()
        );
        self.note(&self.paint.dim(&line));
    }

    fn replied(&mut self, message: &Message) {
        for call in message.tool_calls() {
            self.calls.push((call.clone(), Instant::now()));
        }
        let text = message.text();
        if self.speech == Speech::Live && !self.spoken && !text.trim().is_empty() {
            self.speak(&text);
        }
        self.last_shown = text;
        self.spoken = false;
        self.end_line();
        if self.speech == Speech::AtTheEnd && message.tool_calls().next().is_some() {
            let texts = message.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.text.trim()),
                _ => None,
            });
            for text in texts.filter(|text| !text.is_empty()) {
                self.note(&self.paint.dim(&clean_line(text, 200)));
            }
        }
    }

    fn speak(&mut self, text: &str) {
        self.clear_status();
        print::piece(&clean(text));
        self.mid_line = !text.ends_with('\n');
        self.spoken = true;
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            print::piece("\n");
        }
    }

    /// Prints a line about what happens.
    pub fn note(&mut self, line: &str) {
        if self.quiet {
            return;
        }
        self.clear_status();
        self.end_line();
        print::note(line);
    }

    /// Puts a line at the end of the terminal that the next output takes away.
    fn set_status(&mut self, text: &str) {
        if !self.live || self.mid_line {
            return;
        }
        self.clear_status();
        let seconds = view::duration(self.began.elapsed().as_millis() as u64);
        let line = self.paint.dim(&format!("  {text} · {seconds}"));
        print::note_piece(&line);
        self.status = Some(text.to_owned());
    }

    /// Shows how time goes by.
    pub fn tick(&mut self) {
        if let Some(text) = self.status.clone() {
            self.set_status(&text);
        }
    }

    fn clear_status(&mut self) {
        if self.status.take().is_some() {
            print::note_piece("\r\x1b[K");
        }
    }

    /// Ends a turn of a session.
    pub fn end_turn(&mut self) {
        self.clear_status();
        self.end_line();
    }

    /// Shows how the run ended, and the answer if it has not been shown.
    pub fn finish(&mut self, outcome: &Outcome) {
        self.clear_status();
        self.end_line();
        let shown = self.speech == Speech::Live && self.last_shown == outcome.text();
        if !shown && !outcome.text().is_empty() {
            print::line(clean(outcome.text()));
        }
        let spent = format!(
            "{} turns · {} tool calls · {} in / {} out · {} · {}",
            self.turns,
            self.tool_calls,
            view::tokens(self.usage.all_input_tokens()),
            view::tokens(self.usage.output_tokens),
            self.usage.cost,
            view::duration(self.began.elapsed().as_millis() as u64),
        );
        let line = match outcome {
            Outcome::Completed { .. } => self.paint.dim(&format!("✓ {spent}")),
            other => {
                let how = self.paint.red(&format!("✗ {}", clean_line(&other.to_string(), 600)));
                format!("{how}\n{}", self.paint.dim(&format!("  {spent}")))
            }
        };
        self.note(&line);
        if self.quiet && !outcome.is_completed() {
            print::note(clean_line(&outcome.to_string(), 600));
        }
    }
}

fn name_of(limit: Limit) -> String {
    format!("limit of {limit}")
}

/// A call in one line: the tool and what it is about.
pub fn describe(call: &ToolCall) -> String {
    let input = call.input.as_object();
    let text =
        |name: &str| input.and_then(|input| input.get(name)).and_then(|value| value.as_str());
    let about = ["command", "file_path", "pattern", "path", "prompt", "url"]
        .into_iter()
        .find_map(text)
        .map(str::to_owned)
        .unwrap_or_else(|| match input {
            Some(input) if !input.is_empty() => call.input.to_string(),
            _ => String::new(),
        });
    format!("{} {}", clean_line(&call.name, 64), clean_line(&about, 100)).trim_end().to_owned()
}

/// Colours, when wanted.
#[derive(Clone, Copy)]
struct Paint {
    on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self.on {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    fn green(self, text: &str) -> String {
        self.with("32", text)
    }
}
