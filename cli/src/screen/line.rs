//! One run of a tree in one line that fits the output. Pure.

use super::tree::{Node, State, Sum, Tree};
use crate::clean::clean_line;
use crate::format;
use crate::paint::Paint;
use crate::spending;
use crate::terminal::{columns, fitted};
use posse::views::Spending;
use posse::{RunId, RunRow};

/// The colours and the width of lines.
#[derive(Clone, Copy)]
pub struct Look {
    pub paint: Paint,
    pub columns: usize,
}

/// A run in one line.
pub struct Line<'a> {
    /// The indentation or branches before it.
    pub before: String,
    /// The symbol of its state.
    pub mark: &'static str,
    pub state: State,
    pub agent: &'a str,
    pub color: &'a str,
    pub label: &'a str,
    /// The text between the label and the parts.
    pub apart: &'static str,
    /// Further parts. If they do not fit, the last ones are left out first.
    pub parts: Vec<String>,
    /// Why it ended like this. It is cut rather than left out, if a few words fit.
    pub why: &'a str,
}

/// The least columns of a label while other parts can be left out.
const LABEL: usize = 16;

impl Line<'_> {
    pub fn render(&self, look: Look) -> String {
        if self.why.is_empty() {
            return self.without_why(self.label, look);
        }
        let label = fitted(self.label, (look.columns / 3).max(LABEL));
        let told = self.without_why(&label, look);
        let room = look.columns.saturating_sub(columns(&told) + 3);
        match fitted(self.why, room) {
            why if columns(&why) < LABEL.min(columns(self.why)) => told,
            why => format!("{told}{}", look.paint.dim(&format!(" · {why}"))),
        }
    }

    fn without_why(&self, label: &str, look: Look) -> String {
        let Look { paint, columns: room } = look;
        let agent = format!("[{}]", fitted(self.agent, (room / 3).max(4)));
        let fixed = columns(&self.before) + columns(self.mark) + columns(&agent) + 2;
        let wanted = columns(label).min(LABEL);
        let mut parts = &self.parts[..];
        let tail = |parts: &[String]| match parts {
            [] => String::new(),
            // Parentheses belong to the part before them.
            parts => format!("{}{}", self.apart, parts.join(" · ").replace(" · (", " (")),
        };
        while !parts.is_empty() && fixed + wanted + columns(&tail(parts)) > room {
            parts = &parts[..parts.len() - 1];
        }
        let mut tail = tail(parts);
        let label = fitted(label, room.saturating_sub(fixed + columns(&tail)));
        // A cut label already ends with an ellipsis.
        if label.ends_with('…')
            && let Some(rest) = tail.strip_prefix(" …")
        {
            tail = rest.to_owned();
        }
        if fixed + columns(&label) + columns(&tail) > room {
            let bare = format!("{}{} {agent} {label}", self.before, self.mark);
            return fitted(bare.trim_end(), room);
        }
        let mark = match self.state {
            State::Done => paint.green(self.mark),
            State::Failed => paint.red(self.mark),
            State::Cancelled | State::Interrupted => paint.yellow(self.mark),
            State::Running | State::Queued | State::Waiting => self.mark.to_owned(),
        };
        let (before, agent) = (paint.dim(&self.before), paint.agent(self.color, &agent));
        let line = format!("{before}{mark} {agent} {label}");
        format!("{}{}", line.trim_end(), paint.dim(&tail))
    }
}

/// The symbol of a state.
pub fn mark(state: State) -> &'static str {
    match state {
        State::Queued => "○",
        State::Running => "●",
        State::Waiting | State::Interrupted => "◌",
        State::Done => "✓",
        State::Failed => "✗",
        State::Cancelled => "⊘",
    }
}

/// The frames of the spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Milliseconds per frame.
const TURNS_EVERY: u64 = 100;

/// A run that has not ended, at the time `now`.
pub fn open(node: &Node, sum: &Sum, now: u64, look: Look) -> String {
    let took = format::duration(tenths(node.took(now)));
    let mut parts = match node.state {
        State::Queued => vec![format!("queued, {took}")],
        _ => vec![format!("{}, {took}", format::count(node.spending.tool_calls, "tool"))],
    };
    if !node.remark.is_empty() {
        parts.push(node.remark.clone());
    }
    parts.extend(node.todos.progress().map(|(done, all)| format!("todo {done}/{all}")));
    parts.extend(ended_below(sum));
    if node.spending.tokens() > 0 {
        parts.push(format!("{} tokens", format::tokens(node.spending.tokens())));
        parts.push(spending::money(&node.spending));
    }
    let spinner = SPINNER[(now / TURNS_EVERY) as usize % SPINNER.len()];
    let mark = if node.state == State::Running { spinner } else { mark(node.state) };
    let before = indentation(node, look);
    line(node, before, mark, " … ", parts).render(look)
}

/// A run that is starting.
pub fn begun(run: RunId, node: &Node, look: Look) -> String {
    let before = indentation(node, look);
    line(node, before, mark(State::Queued), " · ", vec![format!("run {}", run.short())])
        .render(look)
}

/// A run that has ended, with the `sum` over its subagents.
pub fn ended(node: &Node, sum: &Sum, look: Look) -> String {
    ending(node, sum, look).render(look)
}

/// The same in two lines, if the reason needs its own line.
pub fn ended_with_reason(node: &Node, sum: &Sum, look: Look) -> Vec<String> {
    let whole = ending(node, sum, look);
    let told = Line { why: "", ..whole }.render(look);
    if node.remark.is_empty() || columns(&told) + 3 + columns(&node.remark) <= look.columns {
        return vec![ended(node, sum, look)];
    }
    let why = fitted(&node.remark, look.columns.saturating_sub(2));
    vec![told, look.paint.dim(&format!("  {why}"))]
}

fn ending<'a>(node: &'a Node, sum: &Sum, look: Look) -> Line<'a> {
    let mut parts = vec![spent(node.took(0), &node.spending)];
    if sum.runs > 0 {
        parts.push(format!("({})", below(sum)));
    }
    let before = indentation(node, look);
    Line { why: &node.remark, ..line(node, before, mark(node.state), " · ", parts) }
}

/// Several successful runs without lines of their own.
pub fn collapsed(sum: &Sum, took_ms: u64, look: Look) -> String {
    let line = format!("✓ {} more done · {}", sum.runs, spent(took_ms, &sum.spending));
    look.paint.dim(&fitted(&line, look.columns))
}

/// The tools, time, tokens and money of a run, in a few words.
pub fn spent(took_ms: u64, spending: &Spending) -> String {
    let tools = format::count(spending.tool_calls, "tool");
    let (took, tokens) = (format::duration(took_ms), format::tokens(spending.tokens()));
    format!("{tools}, {took}, {tokens} tokens, {}", spending::money(spending))
}

/// The subagents of a run and their spending.
pub struct Below {
    children: u64,
    runs: u64,
    spending: Spending,
}

impl Below {
    /// From `tree`; `None` without subagents.
    pub fn in_tree(tree: &Tree) -> Option<Self> {
        let sum = tree.sum(tree.top());
        let children = tree.children(tree.top()).len() as u64;
        (!tree.is_empty()).then_some(Below { children, runs: sum.runs, spending: sum.spending })
    }

    /// From the store: `rows` are the run `top` and its subagents.
    pub fn stored(rows: &[RunRow], top: RunId) -> Option<Self> {
        let mut below = Below { children: 0, runs: 0, spending: Spending::default() };
        for row in rows.iter().filter(|row| row.id != top) {
            below.children += u64::from(row.family.parent == Some(top));
            below.runs += 1;
            below.spending.add(&Spending::of(row));
        }
        (below.runs > 0).then_some(below)
    }
}

/// The totals of a run, and of the run with its subagents. The time is left out if it is unknown.
pub fn totals(own: &Spending, took_ms: Option<u64>, below: Option<&Below>) -> String {
    let mut totals = format!(
        "{} · {} · {} in / {} out · {}",
        format::count(own.turns, "turn"),
        format::count(own.tool_calls, "tool call"),
        format::tokens(own.input_tokens()),
        format::tokens(own.output_tokens()),
        spending::money_in_words(own),
    );
    if let Some(took_ms) = took_ms {
        totals.push_str(&format!(" · {}", format::duration(took_ms)));
    }
    if let Some(below) = below {
        let who = match (below.children, below.runs) {
            (1, 1) => "1 child".to_owned(),
            (children, runs) if children == runs => format!("{runs} children"),
            (_, runs) => format!("{runs} runs below"),
        };
        let mut all = own.clone();
        all.add(&below.spending);
        totals.push_str(&format!(
            " · with {who}: {}, {} in / {} out, {}",
            format::count(all.tool_calls, "tool call"),
            format::tokens(all.input_tokens()),
            format::tokens(all.output_tokens()),
            spending::money_in_words(&all),
        ));
    }
    totals
}

/// The number of subagents, and of the failed and cancelled ones.
fn below(sum: &Sum) -> String {
    let mut words = format!("{} below", sum.runs);
    for (count, what) in [(sum.failed, "failed"), (sum.cancelled, "cancelled")] {
        if count > 0 {
            words.push_str(&format!(", {count} {what}"));
        }
    }
    words
}

fn ended_below(sum: &Sum) -> Option<String> {
    let ended = sum.done + sum.failed + sum.cancelled;
    (ended > 0).then(|| format!("{ended} of {} below ended", sum.runs))
}

/// A time in tenths of a second, so that a running clock does not flicker.
fn tenths(ms: u64) -> u64 {
    ms / 100 * 100
}

/// Two columns per level, at most a quarter of the line.
fn indentation(node: &Node, look: Look) -> String {
    " ".repeat(((node.depth - 1) * 2).min(look.columns / 4))
}

fn line<'a>(
    node: &'a Node,
    before: String,
    mark: &'static str,
    apart: &'static str,
    parts: Vec<String>,
) -> Line<'a> {
    let (agent, color, label) = (&node.agent, &node.color, &node.label);
    Line { before, mark, state: node.state, agent, color, label, apart, parts, why: "" }
}

/// The title, or a placeholder for a run without one.
pub fn label(title: &str) -> String {
    match clean_line(title, 120) {
        title if title.is_empty() => "(nothing said yet)".to_owned(),
        title => title,
    }
}
