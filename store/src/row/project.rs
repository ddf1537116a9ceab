//! What each event makes of the row of its run.

use super::{OpenCall, RunRow, Spent};
use posse_protocol::{
    Amount, Announce, Announced, CancelScope, Charge, Event, Grant, MessageReceived, Purpose,
    Remedy, Sender,
};

/// Characters of a title or an outcome in a row.
const LINE: usize = 200;

impl RunRow {
    /// The folder that a run with `grant` belongs to: a worktree stands for the one it was made for.
    pub fn folder_of(grant: &Grant) -> &str {
        grant.worktree.as_ref().map_or(&grant.workspace, |worktree| &worktree.origin)
    }

    /// What an event changes in the row. A pure function of the log: [`crate::Projection`] makes the
    /// row again from it, so whoever changes what is stored here migrates the rows there are.
    pub(crate) fn project(&mut self, event: &Event, at: u64) {
        let waited_for = match event {
            Event::MessageReceived(received) if received.is_only_recorded() => String::new(),
            Event::TimePassed(_)
            | Event::CancelRequested(_)
            | Event::Paused(_)
            | Event::Resumed(_)
            | Event::ChildStarted(_)
            | Event::Archived(_) => String::new(),
            _ => std::mem::take(&mut self.note),
        };
        let is_cut = self.calling.as_ref().is_some_and(|call| call.purpose == Purpose::Turn);
        if let Some(charge) = Charge::of(event, self.open_call().as_ref()) {
            self.settle(&charge);
        }
        match event {
            Event::RunStarted(started) => {
                self.agent = started.agent.name.to_string();
                self.model.clone_from(&started.model);
                self.workspace = RunRow::folder_of(&started.grant).to_owned();
                self.session = started.session;
                self.key.clone_from(&started.key);
                self.title = one_line(&started.label);
                self.label.clone_from(&self.title);
                (self.priority, self.cleanup) = (started.priority, started.cleanup);
                self.abreast = started.parent.as_ref().and_then(|parent| parent.abreast);
                self.archive_after_ms = started.archive_after_ms;
                let budget = &started.grant.budget;
                self.budget = (!budget.is_empty()).then(|| budget.clone());
                self.drawn = self.budget.as_ref().map(|_| Amount::default());
                if let Some(parent) = &started.parent {
                    (self.parent, self.root) = (Some(parent.run), parent.root());
                    self.depth = parent.ancestors.len() as u32;
                    self.background = parent.announce.is_some();
                    self.account = parent.account;
                }
            }
            Event::MessageReceived(received) => self.receive(received, at),
            Event::ModelCalled(called) => {
                // No call is open any more.
                self.asks = 0;
                self.reserved = (&called.reserved).into();
                self.calling = Some(OpenCall::new(called, &self.model));
                // A call that failed, or that a crash cut short, and is made again is the same turn.
                let again = is_cut || Remedy::begins(&waited_for);
                if called.purpose == Purpose::Turn && !again {
                    self.turns += 1;
                }
            }
            Event::ModelReplied(_) | Event::Compacted(_) => {}
            Event::ModelFailed(failed) => {
                let remedy = failed.remedy.as_ref().map(Remedy::to_string);
                self.note = remedy.map_or(String::new(), |remedy| {
                    one_line(&format!("{remedy}: {}", failed.reason))
                });
            }
            Event::ApprovalAsked(asked) => {
                self.asks += 1;
                self.note = one_line(&format!("asks to call {}: {}", asked.tool, asked.shown));
            }
            Event::ApprovalGiven(_) => {
                self.asks = self.asks.saturating_sub(1);
                self.wake(at);
            }
            Event::ToolStarted(_) => self.tool_calls += 1,
            Event::ToolFinished(_) => {
                self.awaits = self.awaits.saturating_sub(1);
                if self.awaits == 0 {
                    self.wake(at);
                }
            }
            Event::CancelRequested(request) => {
                self.stopping |= request.scope == CancelScope::Run || !self.session;
                self.pause(self.paused && !self.stopping, self.interrupted);
                // What it asks about will not be called any more.
                self.asks = 0;
                self.wake(at);
            }
            Event::RunFinished(finished) => {
                self.deaths = 0;
                self.stopping = false;
                self.pause(false, false);
                (self.expects, self.gathers, self.gathered_at) = (0, 0, 0);
                self.asks = 0;
                self.finished_at = at;
                self.outcome = Some(finished.outcome.kind().to_owned());
                self.note = one_line(&finished.outcome.to_string());
            }
            Event::Archived(_) => self.archived = true,
            Event::ToolPending(pending) => self.note = one_line(&pending.waits_for),
            Event::ChildStarted(child) => match child.announce {
                None | Some(Announce::Silent) => {}
                Some(announce) => {
                    self.expects += 1;
                    self.gathers += u32::from(announce == Announce::Collect);
                }
            },
            Event::TimePassed(passed) if passed.quiet => {
                self.gathered_at = 0;
                self.wake(at);
            }
            Event::TimePassed(_) => {}
            // What is told to stop is to come to its end: nothing holds it up.
            Event::Paused(paused) => self.pause(!self.stopping, paused.interrupted),
            Event::Resumed(_) => {
                // A person wants it to be tried again.
                self.deaths = 0;
                self.pause(false, false);
                self.wake(at);
            }
        }
    }

    fn pause(&mut self, paused: bool, interrupted: bool) {
        (self.paused, self.interrupted) = (paused, paused && interrupted);
    }

    fn receive(&mut self, received: &MessageReceived, at: u64) {
        match &received.from {
            Sender::Child(_) if received.is_only_recorded() => return,
            Sender::Child(told) => return self.hear(told, at),
            Sender::Run(caller) if caller.call.is_some() => self.background = false,
            Sender::Run(caller) => self.background |= caller.announce.is_some(),
            _ => {}
        }
        if self.title.is_empty() {
            self.title = one_line(&received.message.text());
        }
        if let Some(model) = received.asks.as_ref().and_then(|asks| asks.model.as_ref()) {
            self.model.clone_from(model);
        }
        (self.outcome, self.finished_at) = (None, 0);
        self.wake(at);
    }

    /// A run below this one has ended.
    fn hear(&mut self, told: &Announced, at: u64) {
        self.expects = self.expects.saturating_sub(u32::from(!told.inherited));
        if told.announce == Announce::Collect && !told.inherited {
            self.gathers = self.gathers.saturating_sub(1);
            self.gathered_at = if self.gathers == 0 { 0 } else { at };
            if self.gathers > 0 {
                return;
            }
        }
        // While calls wait for their results there is nothing to do with it.
        if self.awaits == 0 {
            self.wake(at);
        }
    }

    fn settle(&mut self, charge: &Charge) {
        (self.reserved, self.calling) = (Spent::default(), None);
        self.spent.add((&charge.total()).into());
        self.uncertain.add((&charge.uncertain).into());
        self.cut_calls += u64::from(charge.is_uncertain());
    }

    fn wake(&mut self, at: u64) {
        self.awaits = 0;
        if !self.runnable {
            (self.runnable, self.ready_at) = (true, at);
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
