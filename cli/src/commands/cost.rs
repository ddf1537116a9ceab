//! `posse cost`: the costs of model calls, summed up.

use super::{Common, folder};
use crate::args::{CostBy, CostOptions};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::screen::line::label;
use crate::spending;
use crate::table::{Column, Table};
use posse::protocol::{Usage, Usd};
use posse::store::{By, Filter, Spending, SpendingQuery};
use posse::{RunId, Runtime};
use serde::Serialize;
use serde_json::json;

pub async fn run(common: Common, options: CostOptions) -> Result<Code, Failure> {
    let folder = folder(None)?;
    // Costs can be shown in any folder, so read only the user's settings.
    let config = common.user_config()?;
    let by = options.by.unwrap_or(match options.run {
        Some(_) => CostBy::Run,
        None => CostBy::Model,
    });
    if !common.has_database()? {
        let nothing = Costs::default();
        nothing.tell(&common, by, &[])?;
        return Ok(Code::Done);
    }
    let agents = common.agents(&folder, &[])?;
    let runtime = common.runtime(&config, agents).await?;
    let result = show(&common, &runtime, options, by).await;
    runtime.shutdown().await;
    result
}

async fn show(
    common: &Common,
    runtime: &Runtime,
    options: CostOptions,
    by: CostBy,
) -> Result<Code, Failure> {
    let tree = match &options.run {
        Some(run) => Some(runtime.find(run).await?.id),
        None => None,
    };
    let workspace = match &options.cwd {
        Some(_) => Some(folder(options.cwd.as_ref())?.display().to_string()),
        None => None,
    };
    let limit = match options.limit {
        Some(limit) => limit as usize,
        None if common.global.json => 0,
        None => ROWS,
    };
    let (since, until) = (options.since, options.until);
    let query = SpendingQuery { by: by.into(), tree, workspace, since, until, limit };
    let sums = runtime.costs(&query).await?;
    let by_model = SpendingQuery { by: By::Model, limit: 0, ..query };
    let mut unpriced = runtime.costs(&by_model).await?;
    let is_known = |model: &str| runtime.models().abilities(model).is_ok();
    unpriced.retain(|sum| {
        let is_stored = sum.usage.cost != Usd::ZERO && !is_known(&sum.key);
        spending::is_unpriced(runtime, &sum.key) && !is_stored
    });
    let all = SpendingQuery { by: By::Nothing, limit: 0, ..by_model };
    let total = runtime.costs(&all).await?.pop().unwrap_or_default();
    let names = match by {
        CostBy::Run | CostBy::Tree if !common.global.json => names(runtime, &sums).await?,
        _ => Vec::new(),
    };
    Costs { sums, total, limit, unpriced }.tell(common, by, &names)?;
    Ok(Code::Done)
}

/// The names of the runs in `sums`.
async fn names(runtime: &Runtime, sums: &[Spending]) -> Result<Vec<String>, Failure> {
    let mut names = Vec::with_capacity(sums.len());
    for sum in sums {
        let Ok(run) = sum.key.parse::<RunId>() else { continue };
        let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
        let row = runtime.list(&own).await?.pop();
        let name = row.map(|row| {
            format!("[{}] {}", clean_line(&row.about.agent, 64), label(&row.about.title))
        });
        names.push(name.unwrap_or_default());
    }
    Ok(names)
}

#[derive(Default)]
struct Costs {
    sums: Vec<Spending>,
    total: Spending,
    limit: usize,
    /// The costs of models without a known price.
    unpriced: Vec<Spending>,
}

impl Costs {
    fn tell(&self, common: &Common, by: CostBy, names: &[String]) -> Result<(), Failure> {
        let Costs { sums, total, limit, unpriced } = self;
        let unpriced_calls: u64 = unpriced.iter().map(|sum| sum.calls).sum();
        let is_unpriced = |sum: &Spending| {
            by == CostBy::Model && unpriced.iter().any(|unpriced| unpriced.key == sum.key)
        };
        if common.global.json {
            let view = |sum| SumView {
                unpriced_calls: (by == CostBy::Model)
                    .then(|| if is_unpriced(sum) { sum.calls } else { 0 }),
                ..SumView::of(sum)
            };
            let sums: Vec<_> = sums.iter().map(view).collect();
            let unpriced_calls = Some(unpriced_calls);
            let total = SumView { key: None, unpriced_calls, ..SumView::of(total) };
            return print::json_pretty(&json!({"by": by.word(), "sums": sums, "total": total}));
        }
        if sums.is_empty() {
            print::note("nothing was spent");
            return Ok(());
        }
        let named = |(index, sum): (usize, &Spending)| {
            let name = names.get(index).cloned().unwrap_or_default();
            let mut figures = figures(key(sum, by), sum, name);
            if is_unpriced(sum) && sum.usage.cost == Usd::ZERO {
                figures[COST] = spending::UNKNOWN.to_owned();
            }
            figures
        };
        let mut rows: Vec<[String; 8]> = sums.iter().enumerate().map(named).collect();
        rows.push(figures(TOTAL.to_owned(), total, String::new()));
        let columns = [
            Column::text(by.heading()).cut(24, 10),
            Column::figures("RUNS").leaves(2),
            Column::figures("CALLS").leaves(3),
            Column::figures("IN").leaves(4),
            Column::figures("CACHED").leaves(1),
            Column::figures("OUT").leaves(5),
            Column::figures("COST"),
            Column::text("TASK").cut(20, 8),
        ];
        Table { columns, rows }.print(common)?;
        if common.global.quiet {
            return Ok(());
        }
        if total.unanswered > 0 {
            let calls = format::count(total.unanswered, "call");
            let (known, more) = (total.usage.cost, total.uncertain.cost);
            if more != Usd::ZERO {
                print::note(format!(
                    "{known}, up to {more} more for {calls} cut short or still under way"
                ));
            }
        }
        if unpriced_calls > 0 {
            let models: Vec<String> = unpriced.iter().map(|sum| clean_line(&sum.key, 60)).collect();
            print::note(format!(
                "{} of {} not counted: the price is not known, and your settings can give it",
                format::count(unpriced_calls, "call"),
                models.join(", ")
            ));
        }
        if sums.len() == *limit {
            print::note(format!("the first {limit}; --limit shows more"));
        }
        Ok(())
    }
}

const TOTAL: &str = "total";
/// The index of the column with the cost.
const COST: usize = 6;
/// The default number of rows for people.
const ROWS: usize = 50;

/// The key of a sum, for the table.
fn key(sum: &Spending, by: CostBy) -> String {
    match by {
        CostBy::Run | CostBy::Tree => match sum.key.parse::<RunId>() {
            Ok(run) => run.short(),
            Err(_) => sum.key.clone(),
        },
        CostBy::Label if sum.key.is_empty() => "(none)".to_owned(),
        _ => clean_line(&sum.key, 60),
    }
}

fn figures(key: String, sum: &Spending, name: String) -> [String; 8] {
    let usage = &sum.usage;
    [
        key,
        sum.runs.to_string(),
        sum.calls.to_string(),
        format::tokens(usage.all_input_tokens()),
        format::tokens(usage.cache_read_tokens),
        format::tokens(usage.output_tokens),
        spending::sum(sum.usage.cost, sum.uncertain.cost),
        name,
    ]
}

impl CostBy {
    fn heading(self) -> &'static str {
        match self {
            CostBy::Run => "RUN",
            CostBy::Tree => "TREE",
            CostBy::Agent => "AGENT",
            CostBy::Model => "MODEL",
            CostBy::Label => "LABEL",
            CostBy::Day => "DAY",
        }
    }

    fn word(self) -> &'static str {
        match self {
            CostBy::Run => "run",
            CostBy::Tree => "tree",
            CostBy::Agent => "agent",
            CostBy::Model => "model",
            CostBy::Label => "label",
            CostBy::Day => "day",
        }
    }
}

impl From<CostBy> for By {
    fn from(by: CostBy) -> By {
        match by {
            CostBy::Run => By::Run,
            CostBy::Tree => By::Tree,
            CostBy::Agent => By::Agent,
            CostBy::Model => By::Model,
            CostBy::Label => By::Label,
            CostBy::Day => By::Day,
        }
    }
}

/// A sum in the output of `--json`.
#[derive(Serialize)]
struct SumView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    runs: u64,
    calls: u64,
    /// The number of calls that were cut short or are still open.
    unanswered: u64,
    /// The number of calls of models without a known price. Their cost counts as zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    unpriced_calls: Option<u64>,
    /// All tokens sent, cached or not.
    input_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
    /// The known cost.
    cost_usd: f64,
    /// What the unanswered calls may have cost in addition.
    uncertain_cost_usd: f64,
}

impl<'a> SumView<'a> {
    fn of(sum: &'a Spending) -> Self {
        let Spending { key, runs, calls, unanswered, usage, uncertain } = sum;
        let Usage { cache_read_tokens, cache_write_tokens, .. } = *usage;
        SumView {
            key: Some(key),
            runs: *runs,
            calls: *calls,
            unanswered: *unanswered,
            unpriced_calls: None,
            input_tokens: usage.all_input_tokens(),
            cache_read_tokens,
            cache_write_tokens,
            output_tokens: usage.output_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_usd: usage.cost.dollars(),
            uncertain_cost_usd: uncertain.cost.dollars(),
        }
    }
}
