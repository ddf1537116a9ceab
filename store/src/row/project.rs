//! How each event changes the row of its run.

use super::{OpenCall, RunRow, Spent};
use posse_protocol::{
    Amount, Announce, Announced, CancelScope, Charge, Event, Grant, MessageReceived, Purpose,
    Remedy, Sender,
};

/// The most characters of a title or a note in a row.
const LINE: usize = 200;

impl RunRow {
    /// Returns the folder that a run with `grant` belongs to. For a worktree, that is the folder
    /// that it was made for. For a checkout of a repository, it is the folder where it was started.
    pub fn folder_of(grant: &Grant) -> &str {
        if let Some(repository) = grant.site.repository() {
            return &repository.origin;
        }
        grant.worktree.as_ref().map_or(&grant.workspace, |worktree| &worktree.origin)
    }

    /// Applies an event to the row. This is a pure function of the log, and [`crate::Projection`]
    /// uses it to compute the row again. If you change it, migrate the stored rows.
    pub(crate) fn project(&mut self, event: &Event, at: u64) {
        let waited_for = match event {
            Event::MessageReceived(received) if received.is_only_recorded() => String::new(),
            Event::TimePassed(_)
            | Event::CancelRequested(_)
            | Event::Paused(_)
            | Event::Resumed(_)
            | Event::ChildStarted(_)
            | Event::Archived(_) => String::new(),
            _ => std::mem::take(&mut self.state.note),
        };
        let is_cut =
            self.spending.calling.as_ref().is_some_and(|call| call.purpose == Purpose::Turn);
        if let Some(charge) = Charge::of(event, self.open_call().as_ref()) {
            self.settle(&charge);
        }
        match event {
            Event::RunStarted(started) => {
                self.about.agent = started.agent.name.to_string();
                self.about.model.clone_from(&started.model);
                self.about.workspace = RunRow::folder_of(&started.grant).to_owned();
                self.about.session = started.session;
                self.about.key.clone_from(&started.key);
                self.about.title = one_line(&started.label);
                self.about.label.clone_from(&self.about.title);
                (self.work.priority, self.state.cleanup) = (started.priority, started.cleanup);
                self.work.abreast = started.parent.as_ref().and_then(|parent| parent.abreast);
                self.state.archive_after_ms = started.archive_after_ms;
                started.grant.site.host().clone_into(&mut self.work.host);
                self.work.needs.clone_from(&started.grant.needs);
                let budget = &started.grant.budget;
                self.funds.budget = (!budget.is_empty()).then(|| budget.clone());
                self.funds.drawn = self.funds.budget.as_ref().map(|_| Amount::default());
                if let Some(parent) = &started.parent {
                    (self.family.parent, self.family.root) = (Some(parent.run), parent.root());
                    self.family.depth = parent.ancestors.len() as u32;
                    self.family.background = parent.announce.is_some();
                    self.funds.account = parent.account;
                }
            }
            Event::MessageReceived(received) => self.receive(received, at),
            Event::ModelCalled(called) => {
                // No tool call is open any more.
                self.state.asks = 0;
                self.spending.reserved = (&called.reserved).into();
                self.spending.calling = Some(OpenCall::new(called, &self.about.model));
                // A call that failed or was interrupted is repeated within the same turn.
                let again = is_cut || Remedy::begins(&waited_for);
                if called.purpose == Purpose::Turn && !again {
                    self.spending.turns += 1;
                }
            }
            Event::ModelReplied(_) | Event::Compacted(_) => {}
            Event::ModelFailed(failed) => {
                let remedy = failed.remedy.as_ref().map(Remedy::to_string);
                self.state.note = remedy.map_or(String::new(), |remedy| {
                    one_line(&format!("{remedy}: {}", failed.reason))
                });
            }
            Event::ApprovalAsked(asked) => {
                self.state.asks += 1;
                self.state.note =
                    one_line(&format!("asks to call {}: {}", asked.tool, asked.shown));
            }
            Event::ApprovalGiven(_) => {
                self.state.asks = self.state.asks.saturating_sub(1);
                self.wake(at);
            }
            Event::ToolStarted(_) => self.spending.tool_calls += 1,
            Event::ToolFinished(_) => {
                self.family.awaits = self.family.awaits.saturating_sub(1);
                if self.family.awaits == 0 {
                    self.wake(at);
                }
            }
            Event::CancelRequested(request) => {
                self.state.stopping |= request.scope == CancelScope::Run || !self.about.session;
                self.pause(self.state.paused && !self.state.stopping, self.state.interrupted);
                // The run will not make the calls that it asks about.
                self.state.asks = 0;
                self.wake(at);
            }
            Event::RunFinished(finished) => {
                self.work.deaths = 0;
                self.state.stopping = false;
                self.pause(false, false);
                (self.family.expects, self.family.gathers, self.family.gathered_at) = (0, 0, 0);
                self.state.asks = 0;
                self.state.finished_at = at;
                self.state.outcome = Some(finished.outcome.kind().to_owned());
                self.state.note = one_line(&finished.outcome.to_string());
            }
            Event::Archived(_) => self.state.archived = true,
            Event::ToolPending(pending) => self.state.note = one_line(&pending.waits_for),
            Event::ChildStarted(child) => match child.announce {
                None | Some(Announce::Silent) => {}
                Some(announce) => {
                    self.family.expects += 1;
                    self.family.gathers += u32::from(announce == Announce::Collect);
                }
            },
            Event::TimePassed(passed) if passed.quiet => {
                self.family.gathered_at = 0;
                self.wake(at);
            }
            Event::TimePassed(_) => {}
            // A run that is stopping cannot be paused.
            Event::Paused(paused) => self.pause(!self.state.stopping, paused.interrupted),
            Event::Resumed(_) => {
                // A person wants to try again.
                self.work.deaths = 0;
                self.pause(false, false);
                self.wake(at);
            }
        }
    }

    fn pause(&mut self, paused: bool, interrupted: bool) {
        (self.state.paused, self.state.interrupted) = (paused, paused && interrupted);
    }

    fn receive(&mut self, received: &MessageReceived, at: u64) {
        match &received.from {
            Sender::Child(told) if received.is_only_recorded() => return self.keep(told),
            Sender::Child(told) => return self.hear(told, at),
            Sender::Run(caller) if caller.call.is_some() => self.family.background = false,
            Sender::Run(caller) => self.family.background |= caller.announce.is_some(),
            _ => {}
        }
        if self.about.title.is_empty() {
            self.about.title = one_line(&received.message.text());
        }
        if let Some(model) = received.asks.as_ref().and_then(|asks| asks.model.as_ref()) {
            self.about.model.clone_from(model);
        }
        (self.state.outcome, self.state.finished_at) = (None, 0);
        self.wake(at);
    }

    /// Handles an announcement that is only recorded.
    fn keep(&mut self, told: &Announced) {
        // No run expects a `silent` child, and a run that has ended expects nobody.
        if told.announce != Announce::Silent {
            self.family.expects = self.family.expects.saturating_sub(1);
        }
        if told.announce == Announce::Collect {
            self.family.gathers = self.family.gathers.saturating_sub(1);
        }
    }

    /// Handles the announcement that a run below this one has ended.
    fn hear(&mut self, told: &Announced, at: u64) {
        self.family.expects = self.family.expects.saturating_sub(u32::from(!told.inherited));
        if told.announce == Announce::Collect && !told.inherited {
            self.family.gathers = self.family.gathers.saturating_sub(1);
            self.family.gathered_at = if self.family.gathers == 0 { 0 } else { at };
            if self.family.gathers > 0 {
                return;
            }
        }
        // While calls wait for their results, the run has nothing to do.
        if self.family.awaits == 0 {
            self.wake(at);
        }
    }

    fn settle(&mut self, charge: &Charge) {
        (self.spending.reserved, self.spending.calling) = (Spent::default(), None);
        self.spending.spent.add((&charge.total()).into());
        self.spending.uncertain.add((&charge.uncertain).into());
        self.spending.cut_calls += u64::from(charge.is_uncertain());
    }

    fn wake(&mut self, at: u64) {
        self.family.awaits = 0;
        if !self.work.runnable {
            (self.work.runnable, self.work.ready_at) = (true, at);
        }
    }
}

fn one_line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if out.chars().count() + word.chars().count() >= LINE {
            out.extend(word.chars().take(LINE.saturating_sub(out.chars().count())));
            out.push('…');
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
