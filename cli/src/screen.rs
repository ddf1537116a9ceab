//! Shows a run and its subagents while they work: live on a terminal, as plain lines when piped.

mod call;
pub mod change;
mod children;
mod ending;
mod foot;
pub mod line;
mod markdown;
mod markdown_stream;
mod provider;
mod reply_text;
mod run_totals;
pub mod todos;
pub mod tree;
pub mod wrap;

pub use call::Tools;
pub use foot::StatusLines;

use crate::clean::{clean, clean_line};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::format;
use crate::paint::Paint;
use crate::print;
use crate::terminal::{self, fitted};
use call::Detail;
use children::{Children, OutputKind};
use line::Look;
use markdown_stream::MarkdownStream;
use posse::protocol::{
    CallId, Delta, Event, Message, Purpose, Record, Sender, ToolCall, ToolFinished, ToolPending,
};
use posse::views::Spending;
use posse::views::WorktreeView;
use posse::{RunId, RunRow, Update};
use provider::Provider;
use reply_text::{PendingText, ReplyText, TextTarget};
use run_totals::RunTotals;
use std::io::IsTerminal;
use std::time::Instant;
use todos::{Changed, Todos};

/// How much is printed besides results and errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// Events, as they happen.
    Usual,
    /// Nothing.
    Quiet,
    /// Not even results.
    Silent,
}

pub struct Screen {
    volume: Volume,
    paint: Paint,
    kind: OutputKind,
    reply: ReplyText,
    /// Answers are checked against a schema. If one does not match, the agent has to answer again.
    is_judged: bool,
    /// The text of the agent with its layout for a terminal; `None` if it is printed as it comes.
    markdown: Option<MarkdownStream>,
    /// The colours of the agent's text.
    ink: Paint,
    /// The cursor is after text, not at the beginning of a line.
    mid_line: bool,
    /// What the run does until the next output, and since when.
    status: Option<(String, Instant)>,
    /// The lines that the person types meanwhile.
    typed: Vec<String>,
    /// The prompt of a question. While it is set, nothing else is drawn there.
    prompt: Option<String>,
    /// How often permanent lines were printed.
    printed: u64,
    foot: StatusLines,
    began: Instant,
    /// How long the run took, if that is not the time since `began`.
    took: Option<u64>,
    /// When the present model call began, or the last tool call ended.
    since: Instant,
    provider: Provider,
    /// The open calls, and when they began.
    calls: Vec<(ToolCall, Instant)>,
    tools: Tools,
    todos: Todos,
    worktree: WorktreeView,
    spending: Spending,
    /// The totals of the run and its subagents, if not all of their events were seen here.
    totals: RunTotals,
    children: Option<Children>,
    /// The run waits because its log cannot be written.
    held: bool,
    /// How many calls were refused because no person could approve them.
    unapproved: u64,
}

/// The longest line if the output is not a terminal.
const PIPED: usize = 160;

impl Screen {
    pub fn new(volume: Volume, environment: &Environment) -> Self {
        let out = std::io::stdout().is_terminal();
        let err = std::io::stderr().is_terminal();
        let usual = volume == Volume::Usual;
        let live = err && usual && !environment.dumb_terminal;
        let markdown = (out && !environment.dumb_terminal).then(MarkdownStream::default);
        Screen {
            volume,
            paint: Paint { on: err && !environment.no_color },
            markdown,
            ink: Paint { on: out && !environment.no_color },
            kind: if live { OutputKind::Live } else { OutputKind::Plain },
            reply: ReplyText::new(match volume {
                Volume::Usual if out => TextTarget::Live,
                Volume::Usual | Volume::Quiet => TextTarget::AtTheEnd,
                Volume::Silent => TextTarget::Silent,
            }),
            is_judged: false,
            mid_line: false,
            status: None,
            typed: Vec::new(),
            prompt: None,
            printed: 0,
            foot: StatusLines::default(),
            began: Instant::now(),
            took: None,
            since: Instant::now(),
            provider: Provider::default(),
            calls: Vec::new(),
            tools: Tools::default(),
            todos: Todos::default(),
            worktree: WorktreeView::default(),
            spending: Spending::default(),
            totals: RunTotals::default(),
            children: None,
            held: false,
            unapproved: 0,
        }
    }

    pub fn paint(&self) -> Paint {
        self.paint
    }

    pub fn volume(&self) -> Volume {
        self.volume
    }

    /// Switches to `run` as the run at the top.
    pub fn attend(&mut self, run: RunId) {
        if self.children.as_ref().is_none_or(|children| children.tree().top() != run) {
            self.children = Some(Children::of(run, self.kind));
        }
    }

    /// Learns from a past event what later events may refer to.
    pub fn recall(&mut self, record: &Record) {
        self.tools.observe(&record.event);
        self.todos.observe(&record.event);
        self.worktree.observe(&record.event);
        self.provider.recall(&record.event);
        match &record.event {
            Event::RunStarted(started) => self.is_judged = started.agent.output_schema.is_some(),
            Event::ModelReplied(replied) => self.expect(&replied.message),
            Event::ToolFinished(finished) => {
                self.calls.retain(|(call, _)| call.id != finished.call);
            }
            _ => {}
        }
    }

    /// The same for an event of an active subagent, or of its start.
    pub fn recall_below(&mut self, record: &Record) {
        let look = self.look();
        if let Some(children) = &mut self.children {
            // These lines were shown when the event happened.
            let _told = children.observe(record, look);
        }
    }

    /// Shows an update of `run`, which is the run at the top or one of its subagents.
    pub fn show(&mut self, run: RunId, update: &Update) {
        let look = self.look();
        let mut lines = Vec::new();
        let mut is_top = true;
        if let Some(children) = &mut self.children {
            is_top = children.tree().top() == run;
            if let Update::Event(record) = update {
                lines = children.observe(record, look);
            }
        }
        for line in lines {
            self.print(&line);
        }
        if let Update::Event(record) = update {
            self.unapproved += u64::from(call::is_unapproved(&record.event));
        }
        match update {
            Update::Event(record) if is_top => self.event(record),
            Update::Delta(delta) if is_top => self.delta(delta),
            _ => self.refresh(),
        }
    }

    /// Completes the states of subagents from `rows`, where no event has arrived yet.
    pub fn settle(&mut self, rows: &[RunRow]) {
        let (look, now) = (self.look(), format::now());
        let Some(children) = &mut self.children else { return };
        for line in children.settle(rows, now, look) {
            self.print(&line);
        }
    }

    /// True when the run has started children.
    pub fn has_children(&self) -> bool {
        self.children.as_ref().is_some_and(|children| !children.tree().is_empty())
    }

    fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } if self.reply.target == TextTarget::Live => {
                if let Some(text) = self.reply.hear(text) {
                    self.speak(text);
                }
            }
            Delta::Text { .. } => self.set_status("writing"),
            Delta::Thinking { .. } => self.set_status("thinking"),
            Delta::Called { .. } | Delta::Counted { .. } => {}
            Delta::Waiting { on, ahead } => {
                let on = clean_line(on, 64);
                self.set_status(&format!("waiting for {on}: {ahead} before it"));
            }
            Delta::Held { reason } => {
                self.held = true;
                self.note(&self.paint.yellow(&format!("◇ {}", clean_line(reason, 400))));
                self.set_status("waits until it can be stored");
            }
            Delta::ToolProgress { call, text } => {
                if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
                    let (call, since) = self.call(call);
                    let name = clean_line(call.map_or("tool", |call| &call.name), 32);
                    let text = format!("{name}: {}", clean_line(line, 200));
                    self.set_status_since(&text, since);
                }
            }
        }
    }

    fn event(&mut self, record: &Record) {
        if std::mem::take(&mut self.held) {
            self.remark("◇ there is space again; continuing");
        }
        self.spending.observe(&record.event);
        self.worktree.observe(&record.event);
        self.tools.observe(&record.event);
        let todos = self.todos.observe(&record.event);
        match &record.event {
            Event::RunStarted(started) => {
                self.is_judged = started.agent.output_schema.is_some();
                for line in self.provider.started(record.run, started).lines() {
                    self.remark(line);
                }
                for line in provider::missing(started) {
                    self.note(&self.paint.yellow(&line));
                }
            }
            Event::ModelCalled(called) => {
                // The previous turn ended with a valid answer, and the run continues.
                if called.purpose == Purpose::Turn {
                    self.say_answer();
                }
                self.reply.expect_reply();
                self.since = Instant::now();
                self.set_status("waiting for the model");
            }
            Event::ModelReplied(replied) => {
                self.provider.answered();
                self.replied(&replied.message);
            }
            // A failure that ends the run is shown at its end.
            Event::ModelFailed(failed) => {
                if let Some(line) = self.provider.failed(failed) {
                    self.note(&self.paint.yellow(&line));
                    self.set_status(&format!("waits for {}", self.provider.model()));
                }
            }
            Event::ToolStarted(started) => {
                if let Some((_, since)) =
                    self.calls.iter_mut().find(|(it, _)| it.id == started.call)
                {
                    *since = Instant::now();
                }
                let (call, since) = self.call(&started.call);
                let described = call.map_or_else(
                    || clean_line(&started.tool, 64),
                    |call| self.tools.describe(call),
                );
                self.set_status_since(&described, since);
            }
            // The viewer handles questions and answers.
            Event::ApprovalAsked(_) | Event::ApprovalGiven(_) => {}
            Event::ToolPending(pending) => self.pending(pending),
            Event::ToolFinished(finished) => self.tool_finished(finished, todos),
            Event::Compacted(_) => {
                self.remark("◇ the beginning of the conversation was summarised");
            }
            Event::MessageReceived(received) => match &received.from {
                Sender::LimitNear(limit) => {
                    self.remark(&format!("◇ warned the agent that it nears its limit of {limit}"));
                }
                Sender::Misfit => {
                    self.reply.take_back();
                    self.remark("◇ asked the agent again: its answer does not match the schema");
                }
                Sender::Workspace => {
                    self.remark(&format!("◇ {}", clean_line(&received.message.text(), 400)));
                }
                // The tree shows them.
                Sender::User | Sender::Run(_) | Sender::Child(_) => {}
            },
            Event::CancelRequested(request) => {
                self.remark(&format!("◇ {} asked it to stop", clean_line(&request.by, 60)));
            }
            Event::Paused(paused) => {
                let by = clean_line(&paused.by, 60);
                self.remark(&match paused.interrupted {
                    true => format!("◇ {by} interrupted it"),
                    false => format!("◇ {by} asked it to pause"),
                });
            }
            Event::Resumed(resumed) => {
                self.remark(&format!("◇ {} resumed it", clean_line(&resumed.by, 60)));
            }
            Event::ChildStarted(_)
            | Event::RunFinished(_)
            | Event::Archived(_)
            | Event::TimePassed(_) => {}
        }
    }

    /// Stores why the run that is about to start has this model.
    pub fn because(&mut self, model: &str, why: String) {
        self.provider.because(model, why);
    }

    /// Shows that the run waits for a slot, and how many runs are before it.
    pub fn wait_in_line(&mut self, before: u64) {
        match before {
            0 => self.set_status("queued, next in line"),
            _ => self.set_status(&format!("queued, {before} before it")),
        }
    }

    /// Stores the calls of a reply until they have results.
    fn expect(&mut self, message: &Message) {
        let now = Instant::now();
        self.calls.extend(message.tool_calls().map(|call| (call.clone(), now)));
    }

    /// An open call, and when it began.
    fn call(&self, id: &CallId) -> (Option<&ToolCall>, Instant) {
        match self.calls.iter().find(|(call, _)| call.id == *id) {
            Some((call, since)) => (Some(call), *since),
            None => (None, self.since),
        }
    }

    fn replied(&mut self, message: &Message) {
        self.expect(message);
        self.since = Instant::now();
        match self.reply.replied(message) {
            PendingText::Nothing => {}
            PendingText::Goes(rest) => self.speak(&rest),
            PendingText::Whole(whole) => {
                self.end_line();
                self.speak(&whole);
            }
            PendingText::Aside(texts) => {
                for text in texts {
                    self.remark(&clean_line(&text, 200));
                }
            }
        }
        self.pause();
        // The answer is complete. The reader of a pipe need not wait until the run continues.
        if !self.is_judged {
            self.say_answer();
        }
    }

    fn pending(&mut self, pending: &ToolPending) {
        // The result may have arrived first.
        let is_open = self.call(&pending.call).0.is_some();
        let child = self.children.as_ref().is_some_and(|it| it.will_answer(&pending.call));
        if child || !is_open {
            self.status = None;
            return self.refresh();
        }
        self.remark(&format!("… waits for {}", clean_line(&pending.waits_for, 120)));
    }

    fn tool_finished(&mut self, finished: &ToolFinished, todos: Changed) {
        let position = self.calls.iter().position(|(call, _)| call.id == finished.call);
        let call = position.map(|position| self.calls.remove(position).0);
        self.since = Instant::now();
        // The result of a child is shown with its end.
        if self.children.as_mut().is_some_and(|children| children.answers(&finished.call)) {
            return self.refresh();
        }
        if todos == Changed::Yes {
            let lines = self.todos.told(self.look());
            return self.note(&lines);
        }
        let detail = if self.kind == OutputKind::Live { Detail::Result } else { Detail::Line };
        let line = call::finished(&self.tools, call.as_ref(), finished, self.look(), detail);
        self.note(&line);
    }

    /// The look of permanent lines.
    fn look(&self) -> Look {
        let columns = if self.kind == OutputKind::Live { terminal::width() } else { PIPED };
        Look { paint: self.paint, columns }
    }

    /// The look of the agent's text.
    fn page(&self) -> Look {
        Look { paint: self.ink, columns: terminal::table_width().unwrap_or_else(terminal::width) }
    }

    fn speak(&mut self, text: &str) {
        let page = self.page();
        if let Some(markdown) = &mut self.markdown {
            let lines = markdown.hear(text, page);
            self.status = None;
            self.say(&lines);
            return self.refresh();
        }
        self.clear_foot();
        self.printed += 1;
        // If printing fails, the text is still in the log.
        let _ = print::piece(&clean(text));
        self.mid_line = !text.ends_with('\n');
    }

    /// Shows the last answer, if it is not shown yet.
    fn say_answer(&mut self) {
        if let Some(text) = self.reply.unshown_answer().map(str::to_owned) {
            self.pause();
            if self.say_whole(&text).is_err() {
                // It is tried again when the run ends, and an error is reported then.
                self.reply.keep_unshown();
            }
        }
    }

    /// Prints permanent lines of the agent's text.
    fn say(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.foot.clear();
            self.printed += 1;
            let _ = print::piece(&format!("{}\n", lines.join("\n")));
        }
    }

    /// Prints a text that was not shown as it arrived.
    fn say_whole(&mut self, text: &str) -> Result<(), Failure> {
        self.printed += 1;
        match self.markdown {
            Some(_) => print::line(self.laid_out(text).join("\n")),
            None => print::line(clean(text)),
        }
    }

    /// `text` in lines, with the layout of the agent's text.
    pub fn laid_out(&self, text: &str) -> Vec<String> {
        let page = self.page();
        match self.markdown {
            Some(_) => {
                let mut markdown = MarkdownStream::default();
                let mut lines = markdown.hear(text, page);
                lines.extend(markdown.end(page));
                lines
            }
            None => clean(text.trim_end()).lines().map(str::to_owned).collect(),
        }
    }

    /// Ends the present text of the agent.
    fn end_line(&mut self) {
        let page = self.page();
        let rest = self.markdown.as_mut().map(|markdown| markdown.end(page)).unwrap_or_default();
        self.say(&rest);
        if std::mem::take(&mut self.mid_line) {
            let _ = print::piece("\n");
        }
    }

    /// Begins a new line after the `^C` that a terminal shows, unless that line is cleared or ended anyway.
    pub fn leave_line(&mut self) {
        if std::io::stderr().is_terminal() && !self.mid_line && !self.foot.stands() {
            print::note_piece("\n");
        }
    }

    /// Makes room for a line that is printed without the screen.
    pub fn pause(&mut self) {
        self.end_line();
        self.clear_foot();
    }

    fn clear_foot(&mut self) {
        self.status = None;
        self.foot.clear();
    }

    /// Prints lines about events.
    pub fn note(&mut self, lines: &str) {
        self.status = None;
        if self.volume == Volume::Usual {
            self.end_line();
        }
        self.print(lines);
    }

    fn print(&mut self, lines: &str) {
        if self.volume != Volume::Usual {
            return;
        }
        self.printed += 1;
        match self.kind {
            OutputKind::Plain => {
                self.end_line();
                print::note(lines);
            }
            // The open text of the agent stays below.
            OutputKind::Live => {
                let foot = self.foot_lines();
                let lines = wrap::folded(lines, terminal::width());
                self.foot.print(&lines, &foot);
            }
        }
    }

    /// Prints a dimmed line about events.
    pub fn remark(&mut self, line: &str) {
        self.note(&self.paint.dim(line));
    }

    /// Shows at the bottom of the terminal what the run does, until the next output.
    fn set_status(&mut self, text: &str) {
        self.set_status_since(text, self.since);
    }

    fn set_status_since(&mut self, text: &str, since: Instant) {
        self.status = Some((text.to_owned(), since));
        self.refresh();
    }

    /// True when the lines at the bottom of the terminal can be redrawn.
    pub fn is_live(&self) -> bool {
        self.kind == OutputKind::Live
    }

    /// Shows below everything else what the person types.
    pub fn show_typed(&mut self, lines: Vec<String>) {
        self.typed = lines;
        if self.is_live() && !self.mid_line {
            let lines = self.foot_lines();
            self.foot.draw(&lines);
        }
    }

    /// Shows only the prompt of a question at the bottom of the terminal.
    pub fn prompt(&mut self, line: String) {
        if self.prompt.as_ref() != Some(&line) || !self.foot.stands() {
            self.foot.draw(std::slice::from_ref(&line));
            self.prompt = Some(line);
        }
    }

    /// How often permanent lines were printed. They push up what was printed before.
    pub fn printed(&self) -> u64 {
        self.printed
    }

    /// Ends the prompt. Its line stays.
    pub fn end_prompt(&mut self) {
        if let Some(line) = self.prompt.take() {
            self.clear_foot();
            print::note(line.trim_end());
        }
    }

    /// Clears the typed text, and leaves the terminal to other code.
    pub fn yield_terminal(&mut self) {
        self.typed.clear();
        self.pause();
        if self.is_live()
            && let Some(below) = self.children.as_ref().and_then(Children::status)
        {
            let running = below.split(" · ").next().unwrap_or_default();
            self.remark(&format!("◇ {running} in the background"));
            self.pause();
        }
    }

    /// Updates the clock.
    pub fn tick(&mut self) {
        self.refresh();
    }

    /// Redraws the foot, unless it was drawn a moment ago: then the next tick does.
    fn refresh(&mut self) {
        if self.kind == OutputKind::Live && !self.mid_line && self.foot.is_due() {
            let lines = self.foot_lines();
            self.foot.draw(&lines);
        }
    }

    /// The lines of the foot: the active subagents, and what the run itself does.
    fn foot_lines(&self) -> Vec<String> {
        // A line that fills the last column would wrap, and could not be cleared completely.
        let look = Look { columns: terminal::width() - 1, ..self.look() };
        if let Some(line) = &self.prompt {
            return vec![line.clone()];
        }
        let mut lines = Vec::new();
        if let Some(markdown) = &self.markdown {
            let page = Look { columns: look.columns, ..self.page() };
            lines = markdown.open(page, StatusLines::open_rows());
        }
        let below = self.children.as_ref().and_then(Children::status);
        if let (Some(children), Some(_)) = (&self.children, &below) {
            lines.extend(children.lines(
                format::now(),
                StatusLines::rows().saturating_sub(1).max(1),
                look,
            ));
        }
        let status = self.status.clone().map(|(text, since)| (text, since.elapsed()));
        let active = self.children.as_ref().map(|it| it.elapsed(format::now())).unwrap_or_default();
        if let Some((text, elapsed)) = status.or(below.map(|it| (it, active))) {
            let seconds = format::seconds(elapsed);
            // Leave room for the `^C` that a terminal shows, for the same reason.
            let room = look.columns.saturating_sub(seconds.len() + 7);
            let line = format!("  {} · {seconds}", fitted(&text, room));
            lines.push(self.paint.dim(&line));
        }
        lines.extend(self.typed.iter().cloned());
        // If the foot were higher than the screen, its beginning could not be cleared.
        lines.drain(..lines.len().saturating_sub(terminal::height().saturating_sub(1).max(1)));
        lines
    }

    /// The last text of the agent.
    pub fn last_text(&self) -> &str {
        self.reply.last()
    }

    /// The state of the run's worktree.
    pub fn worktree(&self) -> &WorktreeView {
        &self.worktree
    }

    /// Ends a turn of a session, and shows the answer if it is not shown yet.
    pub fn end_turn(&mut self) -> Result<(), Failure> {
        self.pause();
        match self.reply.unshown().map(str::to_owned) {
            Some(text) => self.say_whole(&text),
            None => Ok(()),
        }
    }

    /// The price of the model is unknown.
    pub fn know_no_price(&mut self) {
        self.spending.unpriced = true;
    }

    /// The spending of the run at the top, as far as it was seen.
    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    /// The totals of the run and its subagents since its start, not all of which was seen here.
    pub fn totals(&mut self) -> &mut RunTotals {
        &mut self.totals
    }
}
