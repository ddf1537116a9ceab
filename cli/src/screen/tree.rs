//! The subagents of the shown run, from events: their places, states and spending. Pure: the time
//! comes with the events and from the caller.

use super::todos::Todos;
use crate::clean::clean_line;
use posse::protocol::{Caller, ChildStarted, Event, Outcome, Record, Remedy, Sender};
use posse::views::{Left, Spending};
use posse::{RunId, RunRow, Status};
use std::collections::HashMap;

/// The state of a run, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a slot.
    Queued,
    Running,
    /// Has nothing to do until something happens elsewhere.
    Waiting,
    /// Its process died, or a person interrupted it.
    Interrupted,
    Done,
    /// Ended without an answer: failed, timed out, stopped at a limit, damaged.
    Failed,
    Cancelled,
}

impl State {
    pub fn is_open(self) -> bool {
        !matches!(self, State::Done | State::Failed | State::Cancelled)
    }

    fn after(outcome: &Outcome) -> State {
        match outcome {
            Outcome::Completed { .. } => State::Done,
            Outcome::Cancelled { .. } => State::Cancelled,
            _ => State::Failed,
        }
    }

    pub fn of(row: &RunRow) -> State {
        match (row.state.outcome.as_deref(), row.status) {
            (_, Status::Damaged) => State::Failed,
            (Some("completed"), _) => State::Done,
            (Some("cancelled"), _) => State::Cancelled,
            (Some(_), _) => State::Failed,
            (None, Status::Queued) => State::Queued,
            (None, Status::Crashed | Status::Interrupted) => State::Interrupted,
            (None, Status::Waiting | Status::Paused) => State::Waiting,
            (None, _) => State::Running,
        }
    }
}

/// A subagent.
#[derive(Debug)]
pub struct Node {
    pub parent: RunId,
    /// 1 for a child of the run at the top.
    pub depth: usize,
    pub agent: String,
    pub color: String,
    pub label: String,
    pub state: State,
    pub spending: Spending,
    pub todos: Todos,
    /// When its present work began: milliseconds since 1970.
    pub began: u64,
    pub ended: u64,
    /// Why it ended without an answer, what it left in its worktree, or what it does about a failed
    /// model call.
    pub remark: String,
    /// Set while events from before its present work are still to come. Names the caller of that work.
    earlier: Option<Caller>,
    children: Vec<RunId>,
}

impl Node {
    /// How long it has taken, in milliseconds.
    pub fn took(&self, now: u64) -> u64 {
        let until = if self.state.is_open() { now } else { self.ended };
        until.saturating_sub(self.began)
    }

    fn observe(&mut self, record: &Record) {
        self.spending.observe(&record.event);
        self.todos.observe(&record.event);
        match &record.event {
            Event::RunStarted(started) => self.color.clone_from(&started.agent.color),
            Event::MessageReceived(received) => {
                self.earlier.take_if(|caller| received.from == Sender::Run(caller.clone()));
            }
            _ if self.earlier.is_some() => {}
            Event::ModelCalled(_) => (self.state, self.remark) = (State::Running, String::new()),
            Event::ModelFailed(failed) => {
                let remedy = failed.remedy.as_ref().map(Remedy::to_string);
                self.remark = clean_line(&remedy.unwrap_or_default(), 80);
            }
            Event::RunFinished(finished) => {
                let outcome = &finished.outcome;
                self.end(State::after(outcome), record.at, &outcome.to_string());
                if let Some(changes) = &finished.changes {
                    let left = crate::worktree::told(&Left::of(changes));
                    let apart = if self.remark.is_empty() { "" } else { "; " };
                    self.remark = format!("{}{apart}{left}", self.remark);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, state: State, at: u64, why: &str) {
        (self.state, self.ended) = (state, at);
        // The mark shows that it failed.
        let why = why.strip_prefix("failed: ").unwrap_or(why);
        self.remark = if state == State::Done { String::new() } else { clean_line(why, 300) };
    }
}

/// A change of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Started(RunId),
    Ended(RunId),
}

/// The sums over several runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    pub runs: u64,
    pub running: u64,
    pub queued: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub spending: Spending,
}

impl Sum {
    pub fn add(&mut self, node: &Node) {
        self.runs += 1;
        let count = match node.state {
            State::Queued => &mut self.queued,
            State::Running | State::Waiting | State::Interrupted => &mut self.running,
            State::Done => &mut self.done,
            State::Failed => &mut self.failed,
            State::Cancelled => &mut self.cancelled,
        };
        *count += 1;
        self.spending.add(&node.spending);
    }
}

#[derive(Debug)]
pub struct Tree {
    top: RunId,
    nodes: HashMap<RunId, Node>,
    /// Children of the run at the top, the oldest first.
    children: Vec<RunId>,
}

impl Tree {
    pub fn new(top: RunId) -> Self {
        Tree { top, nodes: HashMap::new(), children: Vec::new() }
    }

    pub fn top(&self) -> RunId {
        self.top
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, run: RunId) -> Option<&Node> {
        self.nodes.get(&run)
    }

    /// The children of `run`, the oldest first.
    pub fn children(&self, run: RunId) -> &[RunId] {
        match self.nodes.get(&run) {
            Some(node) => &node.children,
            None if run == self.top => &self.children,
            None => &[],
        }
    }

    /// Applies an event of the run at the top or of a subagent.
    pub fn observe(&mut self, record: &Record) -> Option<Change> {
        if let Some(node) = self.nodes.get_mut(&record.run) {
            let was_open = node.state.is_open();
            node.observe(record);
            if was_open && !node.state.is_open() {
                return Some(Change::Ended(record.run));
            }
        }
        match &record.event {
            Event::ChildStarted(child) => self.start(record.run, record.at, child),
            _ => None,
        }
    }

    fn start(&mut self, parent: RunId, at: u64, child: &ChildStarted) -> Option<Change> {
        let (run, label) = (child.run, clean_line(&child.label, 200));
        let known = self.nodes.contains_key(&run);
        if !known {
            self.add(run, parent, clean_line(child.agent.as_str(), 64), String::new(), at);
        }
        let node = self.nodes.get_mut(&run)?;
        // The events of the child itself may have arrived first.
        let is_news = !known || !node.state.is_open();
        if !known && child.resumed {
            node.earlier = Some(Caller { call: child.call.clone(), ..Caller::of_run(parent) });
        }
        (node.began, node.label) = (at, label);
        if is_news {
            node.state = State::Queued;
        }
        is_news.then_some(Change::Started(run))
    }

    fn add(&mut self, run: RunId, parent: RunId, agent: String, label: String, began: u64) {
        let depth = self.nodes.get(&parent).map_or(1, |node| node.depth + 1);
        let node = Node {
            parent,
            depth,
            agent,
            color: String::new(),
            label,
            state: State::Queued,
            spending: Spending::default(),
            todos: Todos::default(),
            began,
            ended: 0,
            remark: String::new(),
            earlier: None,
            children: Vec::new(),
        };
        self.nodes.insert(run, node);
        match self.nodes.get_mut(&parent) {
            Some(node) => node.children.push(run),
            None => self.children.push(run),
        }
    }

    /// Completes the states from `rows`, the stored runs, where no event has arrived yet. Returns
    /// the runs that have ended.
    pub fn settle(&mut self, rows: &[RunRow]) -> Vec<RunId> {
        let mut ended = Vec::new();
        let top = self.top;
        for row in rows.iter().filter(|row| row.id != top) {
            let Some(parent) = row.family.parent else { continue };
            let known = self.nodes.contains_key(&row.id);
            if !known && self.nodes.contains_key(&parent) {
                let (agent, label) =
                    (clean_line(&row.about.agent, 64), clean_line(&row.about.title, 200));
                self.add(row.id, parent, agent, label, row.created_at);
            }
            let Some(node) = self.nodes.get_mut(&row.id) else { continue };
            // A run that was asked to cancel will stop, so show it as cancelled.
            let state = if row.state.stopping { State::Cancelled } else { State::of(row) };
            if node.state.is_open() && !state.is_open() {
                node.spending = Spending::of(row);
                node.end(state, row.updated_at, &row.state.note);
                ended.push(row.id);
            }
        }
        ended
    }

    /// All subagents of `run`, each before its own subagents.
    pub fn below(&self, run: RunId) -> Vec<RunId> {
        let mut found = Vec::new();
        let mut ahead: Vec<RunId> = self.children(run).iter().rev().copied().collect();
        while let Some(run) = ahead.pop() {
            found.push(run);
            ahead.extend(self.children(run).iter().rev());
        }
        found
    }

    /// The sums over all subagents of `run`.
    pub fn sum(&self, run: RunId) -> Sum {
        let mut sum = Sum::default();
        self.below(run).iter().filter_map(|run| self.node(*run)).for_each(|node| sum.add(node));
        sum
    }
}
