//! `posse runs tree`: a run and its subagents.

use super::super::Common;
use crate::args::TreeOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family;
use crate::format;
use crate::paint::Paint;
use crate::print;
use crate::screen::line::{Line, Look, label, mark, spent};
use crate::screen::tree::State;
use crate::spending;
use crate::terminal;
use posse::views::RunView;
use posse::views::SumView;
use posse::views::Tree;
use posse::{Budget, RunId, RunRow, Runtime};
use serde::Serialize;
use std::collections::HashSet;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: &TreeOptions,
) -> Result<Code, Failure> {
    let row = runtime.find(&options.run).await?;
    let family = Tree::of(runtime, &row).await?;
    let depth = options.depth.map_or(usize::MAX, |depth| depth as usize);
    let standing = standing(&family, &row, depth);
    let part = Part::of(&standing, options, runtime).await?;
    if common.global.json {
        let next = part.next.map(|run| run.to_string());
        let tree = branch(&family, &row, &part.with_those_above(&family));
        print::json_pretty(&Shown { tree, next })?;
        return Ok(Code::Done);
    }
    let columns = terminal::table_width();
    let paint = Paint { on: columns.is_some() && !common.environment.no_color };
    let look = Look { paint, columns: columns.unwrap_or(usize::MAX) };
    for place in &standing[part.from..part.to] {
        print::line(line(&family, place.row, &place.branch, look))?;
    }
    if !common.global.quiet {
        if let Some(next) = part.next {
            let more = standing.len() - part.to;
            print::note(format!("… {more} more; next ones: --after {}", next.short()));
        }
        let deeper = 1 + family.below(row.id).len() - standing.len();
        if deeper > 0 {
            print::note(format!("… {deeper} deeper; --depth says how deep it is shown"));
        }
        print::note(total(&family, &row));
    }
    Ok(Code::Done)
}

/// A run of a tree, and the drawing before it in its line.
struct TreeLine<'a> {
    row: &'a RunRow,
    branch: String,
}

/// The part of a tree that is shown.
struct Part<'a> {
    places: &'a [TreeLine<'a>],
    from: usize,
    to: usize,
    /// The last run of this part, if there are more.
    next: Option<RunId>,
}

impl<'a> Part<'a> {
    async fn of(
        places: &'a [TreeLine<'a>],
        options: &TreeOptions,
        runtime: &Runtime,
    ) -> Result<Self, Failure> {
        let from = match &options.after {
            None => 0,
            Some(text) => {
                let after = runtime.find(text).await?.id;
                let place = places.iter().position(|place| place.row.id == after);
                let missing = || {
                    let (run, top) = (after.short(), &options.run);
                    Failure::usage(format!("run {run} is not shown in the tree of `{top}`")).hint(
                        "--after takes the last run of the page before, with the same --depth",
                    )
                };
                1 + place.ok_or_else(missing)?
            }
        };
        let to = places.len().min(from.saturating_add(options.limit as usize));
        let last = to.checked_sub(1).and_then(|last| places.get(last));
        let next = last.filter(|_| to < places.len()).map(|place| place.row.id);
        Ok(Part { places, from, to, next })
    }

    /// The shown runs and all runs above them, so that each has its place in the tree.
    fn with_those_above(&self, family: &Tree) -> HashSet<RunId> {
        let mut shown = HashSet::new();
        for place in &self.places[self.from..self.to] {
            let mut run = Some(place.row.id);
            while let Some(id) = run.filter(|id| shown.insert(*id)) {
                run = family.find(id).and_then(|row| row.family.parent);
            }
        }
        shown
    }
}

/// The runs of the tree below `top`, each before its subagents, with at most `depth` levels.
fn standing<'a>(family: &'a Tree, top: &'a RunRow, depth: usize) -> Vec<TreeLine<'a>> {
    let mut places = Vec::new();
    // Each with the drawing before its own line and before its children's lines, and its depth.
    let mut ahead = vec![(top, String::new(), String::new(), 0)];
    while let Some((row, branch, below, level)) = ahead.pop() {
        places.push(TreeLine { row, branch });
        if level >= depth {
            continue;
        }
        let last = family.children(row.id).next_back().map(|last| last.id);
        for child in family.children(row.id).rev() {
            let (branch, stem) =
                if Some(child.id) == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            ahead.push((child, format!("{below}{branch}"), format!("{below}{stem}"), level + 1));
        }
    }
    places
}

/// The tree below `top`, one line per run.
pub fn lines(family: &Tree, top: &RunRow, look: Look) -> Vec<String> {
    let places = standing(family, top, usize::MAX);
    places.iter().map(|place| line(family, place.row, &place.branch, look)).collect()
}

/// One run in one line.
pub fn line(family: &Tree, row: &RunRow, branch: &str, look: Look) -> String {
    let standing = RunRow { status: family.standing(row), ..row.clone() };
    let state = State::of(&standing);
    let mut parts = vec![spent(posse::views::took(&standing), &family.spending(row))];
    if matches!(state, State::Queued | State::Waiting | State::Interrupted) {
        parts.insert(0, family::word_in(family, row));
    }
    let below = family.below(row.id).len();
    if below > 0 {
        let sum = family.sum(row);
        let (tokens, cost) = (format::tokens(sum.tokens()), spending::money(&sum));
        let tools = format::count(sum.tool_calls, "tool");
        parts.push(format!("with {below} below: {tools}, {tokens} tokens, {cost}"));
    }
    // The number of subagents is visible in the tree.
    let budget = spending::of_budget(row, &Budget::DIMENSIONS[..5]);
    if !budget.is_empty() {
        parts.push(format!("budget: {budget}"));
    }
    let why = match (&row.log.damaged, state) {
        (Some(damage), _) => clean_line(damage, 400),
        // The mark shows that it failed.
        (None, State::Failed | State::Cancelled) => {
            clean_line(row.state.note.strip_prefix("failed: ").unwrap_or(&row.state.note), 400)
        }
        _ => String::new(),
    };
    let (agent, label) = (clean_line(&row.about.agent, 64), label(&row.about.title));
    let (before, mark) = (format!("{}  {branch}", row.id.short()), mark(state));
    let (agent, label, why) = (agent.as_str(), label.as_str(), why.as_str());
    Line { before, mark, state, agent, color: "", label, apart: " · ", parts, why }.render(look)
}

/// The totals of the tree, in one line.
pub fn total(family: &Tree, top: &RunRow) -> String {
    let sum = family.sum(top);
    format!(
        "{}: {}, {} in / {} out, {}",
        format::count(1 + family.below(top.id).len() as u64, "run"),
        format::count(sum.tool_calls, "tool call"),
        format::tokens(sum.input_tokens()),
        format::tokens(sum.output_tokens()),
        spending::money_in_words(&sum)
    )
}

/// A tree in the output of `--json`.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    tree: Branch,
    /// The value of `--after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A run with its subagents.
#[derive(Serialize)]
struct Branch {
    #[serde(flatten)]
    run: RunView,
    duration_ms: u64,
    /// The sums over this run and its subagents.
    subtree: SumView,
    children: Vec<Branch>,
    /// The number of children that are not shown.
    #[serde(skip_serializing_if = "is_none")]
    left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// `row` and its subagents in `shown`. The depth of delegation limits the recursion.
fn branch(family: &Tree, row: &RunRow, shown: &HashSet<RunId>) -> Branch {
    let children = family.children(row.id).filter(|child| shown.contains(&child.id));
    let children: Vec<Branch> = children.map(|child| branch(family, child, shown)).collect();
    Branch {
        run: RunView {
            position: family.position(row),
            cost_known: family.knows_cost(row),
            ..RunView::of(row).waiting_on(family.waited_for(row))
        },
        duration_ms: posse::views::took(row),
        subtree: family.sum_view(row),
        left_out: family.children(row.id).count() - children.len(),
        children,
    }
}
