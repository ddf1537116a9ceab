//! The lines about subagents: permanent ones, and live ones while they work. Pure: events in, lines out.

use super::line::{self, Look};
use super::tree::{Change, Node, State, Sum, Tree};
use crate::format;
use crate::spending;
use posse::protocol::{CallId, Event, Record};
use posse::{RunId, RunRow};
use std::time::Duration;

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// A terminal with live lines at the bottom: one permanent line per child.
    Live,
    /// A file or a pipe: one line when a run starts, and one when it ends.
    Plain,
}

/// With this many siblings, successful ones have no line of their own.
const MANY: usize = 24;

pub struct Children {
    tree: Tree,
    kind: OutputKind,
    /// Calls of the run at the top that children will answer.
    calls: Vec<CallId>,
    batch: Batch,
}

/// The children since the last time that none was active.
#[derive(Default)]
struct Batch {
    runs: Vec<RunId>,
    began: u64,
    open: usize,
    /// The successful children without a line.
    untold: Vec<RunId>,
}

impl Children {
    pub fn of(top: RunId, kind: OutputKind) -> Self {
        let batch = Batch::default();
        Children { tree: Tree::new(top), kind, calls: Vec::new(), batch }
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Applies an event. Returns the permanent lines.
    pub fn observe(&mut self, record: &Record, look: Look) -> Vec<String> {
        if let Event::ChildStarted(child) = &record.event
            && record.run == self.tree.top()
        {
            self.calls.extend(child.call.clone());
        }
        match self.tree.observe(record) {
            Some(Change::Started(run)) => self.started(run, look),
            Some(Change::Ended(run)) => self.ended(run, record.at, look),
            None => Vec::new(),
        }
    }

    /// Completes the states from `rows`, where no event has arrived yet. Returns the permanent lines.
    pub fn settle(&mut self, rows: &[RunRow], now: u64, look: Look) -> Vec<String> {
        let ended = self.tree.settle(rows);
        ended.into_iter().flat_map(|run| self.ended(run, now, look)).collect()
    }

    /// Returns true once if a child has answered this call or will.
    pub fn answers(&mut self, call: &CallId) -> bool {
        let known = self.calls.iter().position(|known| known == call);
        known.map(|position| self.calls.remove(position)).is_some()
    }

    /// True when a child will answer this call.
    pub fn will_answer(&self, call: &CallId) -> bool {
        self.calls.contains(call)
    }

    fn is_open(&self, run: RunId) -> bool {
        self.tree.node(run).is_some_and(|node| node.state.is_open())
    }

    fn started(&mut self, run: RunId, look: Look) -> Vec<String> {
        let Some(node) = self.tree.node(run) else { return Vec::new() };
        if node.parent == self.tree.top() {
            if self.batch.open == 0 {
                self.batch = Batch { began: node.began, ..Batch::default() };
            }
            self.batch.open += 1;
            if !self.batch.runs.contains(&run) {
                self.batch.runs.push(run);
            }
        }
        match self.kind {
            OutputKind::Live => Vec::new(),
            OutputKind::Plain => vec![line::begun(run, node, look)],
        }
    }

    fn ended(&mut self, run: RunId, now: u64, look: Look) -> Vec<String> {
        let Some(node) = self.tree.node(run) else { return Vec::new() };
        let below = || self.tree.sum(run);
        if self.kind == OutputKind::Plain {
            let line = line::ended(node, &below(), look);
            let is_child = node.parent == self.tree.top();
            self.batch.open = self.batch.open.saturating_sub(usize::from(is_child));
            return vec![line];
        }
        if node.parent != self.tree.top() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if self.batch.runs.len() > MANY && node.state == State::Done {
            self.batch.untold.push(run);
        } else {
            lines.extend(line::ended_with_reason(node, &below(), look));
        }
        self.batch.open = self.batch.open.saturating_sub(1);
        if self.batch.open == 0 && !self.batch.untold.is_empty() {
            let untold = std::mem::take(&mut self.batch.untold);
            let mut sum = self.sum_of(&untold);
            sum.runs = sum.done;
            lines.push(line::collapsed(&sum, now.saturating_sub(self.batch.began), look));
        }
        lines
    }

    /// The sum over these runs and their subagents.
    fn sum_of(&self, runs: &[RunId]) -> Sum {
        let mut sum = Sum::default();
        for run in runs {
            let below = self.tree.below(*run);
            let nodes = std::iter::once(run).chain(&below).filter_map(|run| self.tree.node(*run));
            nodes.for_each(|node| sum.add(node));
        }
        sum
    }

    /// The states of the active children in one line, without the time; `None` if there are none.
    pub fn status(&self) -> Option<String> {
        if self.batch.open == 0 {
            return None;
        }
        let sum = self.sum_of(&self.batch.runs);
        let states = [
            (sum.running, "running"),
            (sum.queued, "queued"),
            (sum.done, "done"),
            (sum.failed, "failed"),
            (sum.cancelled, "cancelled"),
        ];
        let states = states.iter().filter(|(count, _)| *count > 0);
        let states: Vec<String> = states.map(|(count, what)| format!("{count} {what}")).collect();
        let tools = format::count(sum.spending.tool_calls, "tool");
        let (tokens, cost) =
            (format::tokens(sum.spending.tokens()), spending::money(&sum.spending));
        Some(format!("{} · {tools}, {tokens} tokens, {cost}", states.join(", ")))
    }

    /// How long children have been active.
    pub fn elapsed(&self, now: u64) -> Duration {
        Duration::from_millis(now.saturating_sub(self.batch.began))
    }

    /// The active subagents in at most `rows` lines: all if they fit, else the failed ones and the newest.
    pub fn lines(&self, now: u64, rows: usize, look: Look) -> Vec<String> {
        let mut shown: Vec<(usize, RunId, &Node)> = self
            .batch
            .runs
            .iter()
            .flat_map(|child| std::iter::once(*child).chain(self.tree.below(*child)))
            .enumerate()
            .filter_map(|(place, run)| Some((place, run, self.tree.node(run)?)))
            .filter(|(_, _, node)| self.is_shown(node))
            .collect();
        if shown.len() > rows {
            shown = chosen(shown, rows);
        }
        let line = |(_, run, node): &(usize, RunId, &Node)| match node.state.is_open() {
            true => line::open(node, &self.tree.sum(*run), now, look),
            false => line::ended(node, &self.tree.sum(*run), look),
        };
        shown.iter().map(line).collect()
    }

    /// True for active subagents, and for failed ones below an active one.
    fn is_shown(&self, node: &Node) -> bool {
        node.state.is_open() || node.state == State::Failed && self.is_open(node.parent)
    }
}

/// As many of `shown` as fit: a third for failed runs, the rest for the newest active ones, with
/// queued ones last. Returned in the order of the tree.
fn chosen(shown: Vec<(usize, RunId, &Node)>, rows: usize) -> Vec<(usize, RunId, &Node)> {
    let urgency = |node: &Node| match node.state {
        State::Failed => 0,
        State::Queued => 2,
        _ => 1,
    };
    let mut ranked = shown;
    ranked.sort_by_key(|(place, _, node)| {
        (urgency(node), std::cmp::Reverse(node.began), std::cmp::Reverse(*place))
    });
    let failed = ranked.iter().filter(|(_, _, node)| node.state == State::Failed).count();
    ranked.drain((rows / 3).min(failed)..failed);
    ranked.truncate(rows);
    ranked.sort_by_key(|(place, _, _)| *place);
    ranked
}

#[cfg(test)]
mod tests;
