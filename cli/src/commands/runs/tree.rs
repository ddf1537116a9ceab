//! `posse runs tree`: a run and all that stand below it.

use super::super::Common;
use crate::args::TreeOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family::{self, Family};
use crate::paint::Paint;
use crate::print;
use crate::screen::line::{Line, Look, label, mark, spent};
use crate::screen::tree::State;
use crate::spending::{self, Spending, SumView};
use crate::terminal;
use crate::view::{self, RunView};
use posse::{Budget, RunRow, Runtime};
use serde::Serialize;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: &TreeOptions,
) -> Result<Code, Failure> {
    let row = runtime.find(&options.run).await?;
    let family = Family::of(runtime, &row).await?;
    let depth = options.depth.map_or(usize::MAX, |depth| depth as usize);
    let mut room = Room { depth, runs: options.limit as usize };
    if common.global.json {
        room.runs -= 1;
        print::json_pretty(&branch(&family, &row, 0, &mut room))?;
        return Ok(Code::Done);
    }
    let columns = terminal::table_width();
    let paint = Paint { on: columns.is_some() && !common.environment.no_color };
    let look = Look { paint, columns: columns.unwrap_or(usize::MAX) };
    let lines = lines(&family, &row, look, room);
    let left_out = 1 + family.below(row.id).len() - lines.len();
    for line in lines {
        print::line(line)?;
    }
    if !common.global.quiet {
        if left_out > 0 {
            print::note(format!("… {left_out} more; --depth and --limit say how much is shown"));
        }
        print::note(total(&family, &row));
    }
    Ok(Code::Done)
}

/// How much of a tree is shown.
#[derive(Clone, Copy)]
pub struct Room {
    /// Levels below the top.
    pub depth: usize,
    /// Runs.
    pub runs: usize,
}

impl Room {
    /// All of it.
    pub const ALL: Room = Room { depth: usize::MAX, runs: usize::MAX };
}

/// The tree below `top`, a line each, as far as there is room.
pub fn lines(family: &Family, top: &RunRow, look: Look, room: Room) -> Vec<String> {
    let mut lines = Vec::new();
    // What stands before a run's line, and before those of its children; and how deep it stands.
    let mut ahead = vec![(top, String::new(), String::new(), 0)];
    while let Some((row, own, below, depth)) = ahead.pop() {
        if lines.len() >= room.runs {
            break;
        }
        lines.push(line(family, row, &own, look));
        if depth >= room.depth {
            continue;
        }
        let last = family.children(row.id).next_back().map(|last| last.id);
        for child in family.children(row.id).rev() {
            let (branch, stem) =
                if Some(child.id) == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            ahead.push((child, format!("{below}{branch}"), format!("{below}{stem}"), depth + 1));
        }
    }
    lines
}

/// One run in one line.
pub fn line(family: &Family, row: &RunRow, branch: &str, look: Look) -> String {
    let standing = RunRow { status: family.standing(row), ..row.clone() };
    let state = State::of(&standing);
    let mut parts = vec![spent(family::took(&standing), &Spending::of(row))];
    if matches!(state, State::Queued | State::Waiting | State::Interrupted) {
        parts.insert(0, family.word(row));
    }
    let below = family.below(row.id).len();
    if below > 0 {
        let sum = family.sum(row);
        let (tokens, cost) = (view::tokens(sum.tokens()), sum.cost());
        let tools = view::count(sum.tool_calls, "tool");
        parts.push(format!("with {below} below: {tools}, {tokens} tokens, {cost}"));
    }
    // How many runs there are below is seen.
    let budget = spending::of_budget(row, &Budget::DIMENSIONS[..5]);
    if !budget.is_empty() {
        parts.push(format!("budget: {budget}"));
    }
    let why = match (&row.damaged, state) {
        (Some(damage), _) => clean_line(damage, 400),
        // That it failed is seen.
        (None, State::Failed | State::Cancelled) => {
            clean_line(row.note.strip_prefix("failed: ").unwrap_or(&row.note), 400)
        }
        _ => String::new(),
    };
    let (agent, label) = (clean_line(&row.agent, 64), label(&row.title));
    let (before, mark) = (format!("{}  {branch}", row.id.short()), mark(state));
    let (agent, label, why) = (agent.as_str(), label.as_str(), why.as_str());
    Line { before, mark, state, agent, color: "", label, apart: " · ", parts, why }.render(look)
}

/// What the tree took, in one line.
pub fn total(family: &Family, top: &RunRow) -> String {
    let sum = family.sum(top);
    format!(
        "{}: {}, {} in / {} out, {}",
        view::count(1 + family.below(top.id).len() as u64, "run"),
        view::count(sum.tool_calls, "tool call"),
        view::tokens(sum.input_tokens()),
        view::tokens(sum.output_tokens()),
        sum.cost()
    )
}

/// A run with those below it, as `--json` prints it.
#[derive(Serialize)]
struct Branch {
    #[serde(flatten)]
    run: RunView,
    duration_ms: u64,
    /// This run and all below it.
    subtree: SumView,
    children: Vec<Branch>,
    /// How many right below it are not shown.
    #[serde(skip_serializing_if = "is_none")]
    left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A tree is no deeper than delegation may go.
fn branch(family: &Family, row: &RunRow, depth: usize, room: &mut Room) -> Branch {
    let runs = 1 + family.below(row.id).len() as u64;
    let mut children = Vec::new();
    if depth < room.depth {
        for child in family.children(row.id) {
            if room.runs == 0 {
                break;
            }
            room.runs -= 1;
            children.push(branch(family, child, depth + 1, room));
        }
    }
    Branch {
        run: RunView {
            position: family.position(row),
            ..RunView::of(row).waiting_on(family.waited_for(row))
        },
        duration_ms: family::took(row),
        subtree: SumView::of(runs, &family.sum(row)),
        left_out: family.children(row.id).count() - children.len(),
        children,
    }
}
