//! A run while it happens: live on a terminal, plain lines when piped.

use crate::clean::{clean, clean_line};
use crate::exit::Failure;
use crate::paint::Paint;
use crate::print;
use crate::terminal::{self, fitted};
use crate::view;
use posse::Update;
use posse::protocol::{
    Delta, Ending, Event, Message, ModelFailed, Outcome, Part, Purpose, Record, Remedy, RunStarted,
    Sender, ToolCall, ToolFinished, Usage,
};
use std::io::IsTerminal;
use std::time::Instant;

/// What is printed besides results and errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// What happens, as it happens.
    Usual,
    /// Nothing.
    Quiet,
}

/// Where what the agent says goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speech {
    /// To standard output, as it comes: a person reads it there.
    Live,
    /// To standard output, when the turn is over.
    AtTheEnd,
}

pub struct Screen {
    volume: Volume,
    speech: Speech,
    paint: Paint,
    /// Standard error is a terminal, and a status line is wanted.
    live: bool,
    /// Which model, and why, when the one who starts the run knows.
    why: Option<(String, String)>,
    /// The model in use.
    model: String,
    /// Why the last call of the present turn failed.
    trouble: String,
    /// A status line stands on the terminal and must be taken away before anything else.
    status: Option<String>,
    began: Instant,
    /// Calls that have no result yet.
    calls: Vec<ToolCall>,
    /// The cursor stands behind text.
    mid_line: bool,
    /// What was shown of the present reply as it came.
    said: String,
    /// Bytes of text that was shown with its reply and whose pieces are still to come: stored
    /// events may overtake them.
    owed: usize,
    /// The last text of the agent.
    last_text: String,
    /// The last text has been shown on standard output.
    shown: bool,
    usage: Usage,
    /// What a model call may spend that has not come back.
    reserved: Usage,
    turns: u64,
    tool_calls: u64,
}

impl Screen {
    pub fn new(volume: Volume, no_color: bool) -> Self {
        let out = std::io::stdout().is_terminal();
        let err = std::io::stderr().is_terminal();
        let usual = volume == Volume::Usual;
        Screen {
            volume,
            speech: if out && usual { Speech::Live } else { Speech::AtTheEnd },
            paint: Paint { on: err && !no_color },
            live: err && usual,
            why: None,
            model: String::new(),
            trouble: String::new(),
            status: None,
            began: Instant::now(),
            calls: Vec::new(),
            mid_line: false,
            said: String::new(),
            owed: 0,
            last_text: String::new(),
            shown: true,
            usage: Usage::default(),
            reserved: Usage::default(),
            turns: 0,
            tool_calls: 0,
        }
    }

    /// Learns from an event of the past what those to come refer to.
    pub fn recall(&mut self, record: &Record) {
        match &record.event {
            Event::ModelReplied(replied) => {
                self.calls.extend(replied.message.tool_calls().cloned());
            }
            Event::ToolFinished(finished) => self.calls.retain(|call| call.id != finished.call),
            Event::RunStarted(started) => self.model = started.model.clone(),
            Event::ModelFailed(ModelFailed {
                remedy: Some(Remedy::Fallback { model, .. }),
                ..
            }) => {
                self.model = model.clone();
            }
            _ => {}
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
            Delta::Text { text } if self.speech == Speech::Live => self.hear(text),
            Delta::Text { .. } => self.set_status("writing"),
            Delta::Thinking { .. } => self.set_status("thinking"),
            Delta::ToolProgress { call, text } => {
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    let call = self.calls.iter().find(|known| known.id == *call);
                    let name = call.map_or("tool", |call| &call.name);
                    self.set_status(&format!(
                        "{}: {}",
                        clean_line(name, 32),
                        clean_line(line, 200)
                    ));
                }
            }
        }
    }

    /// Shows a piece of the present reply.
    fn hear(&mut self, text: &str) {
        let late = self.owed.min(text.len());
        self.owed -= late;
        // Pieces are cut as they were sent: one is late as a whole, or not at all.
        let Some(text) = text.get(late..).filter(|text| !text.is_empty()) else { return };
        self.said.push_str(text);
        self.speak(text);
    }

    /// A model call came to its end, or never will: what it spent counts.
    fn settle(&mut self, spent: &Usage) {
        self.reserved = Usage::default();
        self.usage += spent;
    }

    fn event(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted(started) => self.started(record, started),
            Event::ModelCalled(called) => {
                let unanswered = std::mem::take(&mut self.reserved);
                self.settle(&unanswered);
                self.reserved = called.reserved.clone();
                self.turns += u64::from(called.purpose == Purpose::Turn);
                self.set_status("waiting for the model");
            }
            Event::ModelReplied(replied) => {
                self.settle(&replied.usage);
                self.trouble.clear();
                self.replied(&replied.message);
            }
            Event::ModelFailed(failed) => {
                self.settle(&failed.usage);
                self.model_failed(failed);
            }
            Event::ToolStarted(started) => {
                self.tool_calls += 1;
                let call = self.calls.iter().find(|call| call.id == started.call);
                let described = call.map_or_else(|| clean_line(&started.tool, 64), describe);
                self.set_status(&described);
            }
            Event::ToolFinished(finished) => self.tool_finished(finished),
            Event::ToolPending(pending) => {
                self.remark(&format!("… waits for {}", clean_line(&pending.waits_for, 120)));
            }
            Event::Compacted(compacted) => {
                self.settle(&compacted.usage);
                self.remark("◇ the beginning of the conversation was summarised");
            }
            Event::MessageReceived(received) => {
                if let Sender::LimitNear(limit) = &received.from {
                    self.remark(&format!("◇ told that it nears its limit of {limit}"));
                }
            }
            Event::CancelRequested(request) => {
                self.remark(&format!("◇ {} asked it to stop", clean_line(&request.by, 60)));
            }
            Event::ChildStarted(_)
            | Event::RunFinished(_)
            | Event::Archived(_)
            | Event::TimePassed(_) => {}
        }
    }

    /// Remembers why the run that is about to start has the model it has.
    pub fn because(&mut self, model: &str, why: String) {
        self.why = Some((model.to_owned(), why));
    }

    fn started(&mut self, record: &Record, started: &RunStarted) {
        let agent = clean_line(started.agent.name.as_str(), 64);
        let model = clean_line(&started.model, 80);
        // A run that was found by its key may have another model than one would have now.
        let why = self.why.take().filter(|(model, _)| *model == started.model);
        let why = why.map_or_else(String::new, |(_, why)| format!(" ({})", clean_line(&why, 120)));
        self.remark(&format!("{agent} · {model}{why} · run {}", record.run.short()));
        self.model = started.model.clone();
    }

    /// Says what becomes of a model call that failed. One that ends the run is told at its end.
    fn model_failed(&mut self, failed: &ModelFailed) {
        let Some(remedy) = &failed.remedy else { return };
        // Made again, it is still the same turn.
        self.turns = self.turns.saturating_sub(1);
        let why = match self.trouble == failed.reason {
            true => "the same again".to_owned(),
            false => clean_line(&failed.reason, 300),
        };
        self.trouble.clone_from(&failed.reason);
        let line = format!("◇ {why}; {}", clean_line(&remedy.to_string(), 120));
        self.note(&self.paint.yellow(&line));
        if let Remedy::Fallback { model, .. } = remedy {
            self.model = model.clone();
        }
        let model = clean_line(&self.model, 80);
        self.set_status(&format!("waits for {model}"));
    }

    fn replied(&mut self, message: &Message) {
        self.calls.extend(message.tool_calls().cloned());
        let texts: Vec<&str> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        let said = std::mem::take(&mut self.said);
        let whole = texts.concat();
        match self.speech {
            // A slow terminal may have missed pieces, and a watcher in another process gets none.
            Speech::Live => {
                self.owed = whole.len().saturating_sub(said.len());
                match whole.strip_prefix(said.as_str()) {
                    Some("") => {}
                    Some(rest) if !said.is_empty() => self.speak(rest),
                    _ if whole.trim().is_empty() => {}
                    _ => {
                        self.end_line();
                        self.speak(&texts.join("\n"));
                    }
                }
            }
            Speech::AtTheEnd if message.tool_calls().next().is_some() => {
                for text in texts.iter().filter(|text| !text.trim().is_empty()) {
                    self.remark(&clean_line(text, 200));
                }
            }
            Speech::AtTheEnd => {}
        }
        if !message.text().trim().is_empty() {
            self.last_text = message.text();
            self.shown = self.speech == Speech::Live;
        }
        self.pause();
    }

    fn tool_finished(&mut self, finished: &ToolFinished) {
        let position = self.calls.iter().position(|call| call.id == finished.call);
        let call = position.map(|position| self.calls.remove(position));
        let described = call.as_ref().map_or_else(|| "a call".to_owned(), describe);
        let took = match finished.took_ms {
            0..100 => String::new(),
            ms => format!(" {}", view::duration(ms)),
        };
        let columns = self.columns().saturating_sub(2 + took.len());
        let described = fitted(&described, columns);
        let took = self.paint.dim(&took);
        if finished.ending == Ending::Returned && !finished.output.is_error {
            self.note(&format!("{} {described}{took}", self.paint.green("●")));
            return;
        }
        let why = clean_line(&finished.output.joined_text(), 400);
        let why = fitted(&why, self.columns().saturating_sub(2));
        let (mark, why) = (self.paint.red("●"), self.paint.dim(&why));
        self.note(&format!("{mark} {described}{took}\n  {why}"));
    }

    /// How long a line may be.
    fn columns(&self) -> usize {
        if self.live { terminal::width() } else { 160 }
    }

    fn speak(&mut self, text: &str) {
        self.clear_status();
        // What cannot be shown now is in the log.
        let _ = print::piece(&clean(text));
        self.mid_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            let _ = print::piece("\n");
        }
    }

    /// Makes room for a line that is printed past the screen.
    pub fn pause(&mut self) {
        self.clear_status();
        self.end_line();
    }

    /// Prints a line about what happens.
    pub fn note(&mut self, line: &str) {
        if self.volume == Volume::Quiet {
            return;
        }
        self.pause();
        print::note(line);
    }

    /// The same, in the background.
    pub fn remark(&mut self, line: &str) {
        self.note(&self.paint.dim(line));
    }

    /// Puts a line at the end of the terminal that the next output takes away.
    fn set_status(&mut self, text: &str) {
        if !self.live || self.mid_line {
            return;
        }
        let seconds = view::seconds(self.began.elapsed());
        // A line that fills the last column would wrap, and could not be taken away whole; nor
        // could one that leaves no room for the `^C` that a terminal shows.
        let room = terminal::width().saturating_sub(seconds.len() + 8);
        let line = format!("  {} · {seconds}", fitted(text, room));
        print::note_piece(&format!("\r{}\x1b[K", self.paint.dim(&line)));
        self.status = Some(text.to_owned());
    }

    /// Shows how time goes by.
    pub fn tick(&mut self) {
        if let Some(text) = self.status.take() {
            self.set_status(&text);
        }
    }

    fn clear_status(&mut self) {
        if self.status.take().is_some() {
            print::note_piece("\r\x1b[K");
        }
    }

    /// The last text of the agent.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    /// Ends a turn of a session, showing the answer if it has not been shown.
    pub fn end_turn(&mut self) -> Result<(), Failure> {
        self.pause();
        if !std::mem::replace(&mut self.shown, true) {
            print::line(clean(&self.last_text))?;
        }
        Ok(())
    }

    /// Shows how the run ended, and the answer if it has not been shown.
    pub fn finish(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        self.pause();
        let shown = self.shown && self.last_text == outcome.text();
        if !shown && !outcome.text().is_empty() {
            print::line(clean(outcome.text()))?;
        }
        self.shown = true;
        if self.volume == Volume::Quiet {
            if !outcome.is_completed() {
                print::note(clean_line(&outcome.to_string(), 600));
            }
            return Ok(());
        }
        let spent = format!(
            "{} · {} · {} in / {} out · {} · {}",
            view::count(self.turns, "turn"),
            view::count(self.tool_calls, "tool call"),
            view::tokens(self.usage.all_input_tokens()),
            view::tokens(self.usage.output_tokens),
            self.usage.cost,
            view::duration(self.began.elapsed().as_millis() as u64),
        );
        if outcome.is_completed() {
            self.remark(&format!("✓ {spent}"));
        } else {
            self.note(&self.paint.red(&format!("✗ {}", clean_line(&outcome.to_string(), 600))));
            self.remark(&format!("  {spent}"));
        }
        Ok(())
    }
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
