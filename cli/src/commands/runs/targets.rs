//! The runs for a verb: by name, or all that filters select.

use super::super::asking::agrees;
use super::super::{Common, folder};
use crate::args::{Choice, Filters, Targets};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family;
use crate::format;
use crate::print::{self, FailureFormat};
use crate::screen::line::label;
use posse::store::{Background, Filter, Kin, Label, Unfinished};
use posse::{RunRow, Runtime};
use serde_json::{Value, json};
use std::io::{IsTerminal, stdin};

/// The number of rows on a page.
const PAGE: usize = 1_000;
/// The most runs in a confirmation.
const SHOWN: usize = 10;

/// The result of a verb over several runs. A failure of one run is reported and does not stop the others.
pub struct BatchResult<'c> {
    common: &'c Common,
    /// The exit code of the first failure.
    pub code: Code,
}

impl<'c> BatchResult<'c> {
    pub fn new(common: &'c Common) -> Self {
        BatchResult { common, code: Code::Done }
    }

    /// Reports a failure for a run. `report` is its JSON form.
    pub fn fail(&mut self, failure: &Failure, mut report: Value) -> Result<(), Failure> {
        if self.code == Code::Done {
            self.code = failure.code;
        }
        if self.common.global.json {
            report["error"] = json!(failure.message);
            print::json(&report)?;
        }
        print::failure(failure, FailureFormat::as_json(self.common.global.json));
        Ok(())
    }
}

/// The runs that `targets` selects, the oldest first, each once. `deed` says what will happen to
/// them, such as `cancelled`. Asks for confirmation if filters select them.
pub async fn of(
    common: &Common,
    runtime: &Runtime,
    targets: &Targets,
    deed: &str,
) -> Result<Vec<RunRow>, Failure> {
    chosen(common, runtime, &targets.runs, &targets.choice, deed).await
}

pub async fn chosen(
    common: &Common,
    runtime: &Runtime,
    names: &[String],
    choice: &Choice,
    deed: &str,
) -> Result<Vec<RunRow>, Failure> {
    if !choice.all {
        if !choice.filters.is_empty() {
            return Err(Failure::usage("options that select runs need --all")
                .hint(format!("with --all, every run that they select is {deed}")));
        }
        return named(runtime, names).await;
    }
    let mut filter = filter(runtime, &choice.filters, Kin::Roots).await?;
    filter.unfinished = Unfinished::Only;
    let rows = all(runtime, filter).await?;
    if rows.is_empty() {
        // With JSON, the output is one line per run.
        if !common.global.json && !common.global.quiet {
            print::note("no run matches");
        }
        return Ok(rows);
    }
    if !choice.yes {
        confirm(common, &rows, deed, ", with their subagents")?;
    }
    Ok(rows)
}

/// The runs with these names, each once, in this order.
async fn named(runtime: &Runtime, names: &[String]) -> Result<Vec<RunRow>, Failure> {
    let mut rows: Vec<RunRow> = Vec::new();
    for name in names {
        let row = runtime.find(name).await?;
        if rows.iter().all(|known| known.id != row.id) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Every run that `filter` selects, the oldest first.
pub async fn all(runtime: &Runtime, mut filter: Filter) -> Result<Vec<RunRow>, Failure> {
    let mut rows: Vec<RunRow> = Vec::new();
    filter.limit = PAGE;
    loop {
        let page = runtime.list(&filter).await?;
        filter.before = page.last().map(|last| last.id);
        let is_last = page.len() < PAGE;
        rows.extend(page.into_iter().filter(|row| !posse::views::is_empty_chat(row)));
        if is_last {
            rows.reverse();
            return Ok(rows);
        }
    }
}

/// The filter for `filters`. It covers runs in the position `kin` of their tree, unless the filters
/// are about single runs.
pub async fn filter(runtime: &Runtime, filters: &Filters, kin: Kin) -> Result<Filter, Failure> {
    let kin = match (&filters.children_of, &filters.tree) {
        (Some(run), _) => Kin::ChildrenOf(runtime.find(run).await?.id),
        (_, Some(run)) => Kin::TreeOf(runtime.find(run).await?.family.root),
        _ if filters.is_about_each() => Kin::All,
        _ => kin,
    };
    let workspace = match &filters.cwd {
        Some(_) => Some(folder(filters.cwd.as_ref())?.display().to_string()),
        None => None,
    };
    let label = filters.label.as_ref().map(|label| match label.strip_suffix('*') {
        Some(beginning) => Label::Begins(beginning.to_owned()),
        None => Label::Is(label.clone()),
    });
    let catalog = runtime.models().catalog();
    let model = |name: &String| catalog.find(name).map_or_else(|_| name.clone(), |it| it.id());
    Ok(Filter {
        workspace,
        kin,
        label,
        agent: filters.agent.clone(),
        model: filters.model.as_ref().map(model),
        status: filters.status.clone(),
        outcome: filters.outcome.as_ref().map(|word| word.replace('-', " ")),
        background: if filters.background { Background::Only } else { Background::All },
        unfinished: if filters.unfinished { Unfinished::Only } else { Unfinished::All },
        since: filters.since,
        until: filters.until,
        ..Filter::default()
    })
}

/// Asks for confirmation. `deed` says what will happen to `rows`, and `with` names what else is affected.
pub fn confirm(common: &Common, rows: &[RunRow], deed: &str, with: &str) -> Result<(), Failure> {
    let count = format::count(rows.len() as u64, "run");
    for row in rows.iter().take(SHOWN) {
        print::note(named_line(row, &family::word(row, row.status)));
    }
    if rows.len() > SHOWN {
        print::note(format!("… and {} more", rows.len() - SHOWN));
    }
    if common.global.json || !stdin().is_terminal() {
        return Err(Failure::usage(format!("{count} would be {deed}"))
            .hint("check the list above, then run it again with --yes"));
    }
    match agrees(&format!("{count} would be {deed}{with}. Continue?")) {
        Ok(true) => Ok(()),
        _ => Err(Failure {
            code: Code::Cancelled,
            message: "nothing was done".to_owned(),
            hint: None,
        }),
    }
}

/// A run in one line: id, a word, agent and title.
pub fn named_line(row: &RunRow, word: &str) -> String {
    let agent = clean_line(&row.about.agent, 64);
    format!("{}  {word:11}  [{agent}] {}", row.id.short(), label(&row.about.title))
}
