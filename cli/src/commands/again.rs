//! `posse run --continue` and `--resume`: sends the task to an earlier run.

use super::follow::Form;
use super::prompt::prompt;
use super::runs::resume::{self, More};
use super::{Common, folder};
use crate::args::{self, AgentOptions, Earlier, RunOptions};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::spending;
use posse::protocol::{Event, Record, Sender, Seq};
use posse::store::{Filter, Kin};
use posse::views::Spending;
use posse::{Extent, RunRow, Runtime};
use std::path::Path;

/// The most runs of a folder to search.
const RECENT: usize = 10_000;

pub async fn run(
    common: &mut Common,
    options: &RunOptions,
    earlier: &Earlier,
) -> Result<Code, Failure> {
    let text = prompt(options)?;
    let asks = args::asks(&options.agent)?;
    let form = Form::of(common, options.stream_json);
    let folder = folder(options.agent.cwd.as_ref())?;
    let changed = match options.agent.trust {
        true => common.trust_for_now(&folder).map(|()| None)?,
        false => common.review_changes(&folder, !options.stream_json)?,
    };
    if let Some(changed) = changed.filter(|_| !common.global.quiet && form == Form::Screen) {
        print::note(changed);
    }
    let config = common.config(&folder)?;
    let agents = common.agents(&folder, &options.agent.agents)?;
    let runtime = common.runtime(&config, agents).await?;
    let result = async {
        let row = match earlier {
            Earlier::Named(run) => runtime.find(run).await?,
            Earlier::Newest => newest(&runtime, &folder).await?,
        };
        if let Some(option) = about_money(options) {
            return Err(keeps_its_money(&row, option));
        }
        if !common.global.quiet && form == Form::Screen {
            let model = asks.model.as_deref().unwrap_or(&row.about.model);
            let (model, title) = (clean_line(model, 100), clean_line(&row.about.title, 100));
            print::note(format!("continuing {} with {model}: {title}", row.id.short()));
        }
        let more = More { text: Some(text), asks };
        resume::one(common, &runtime, &row, more, Extent::Subtree, form).await
    }
    .await;
    runtime.shutdown().await;
    result
}

/// The option about money, if there is one. It would apply to the whole tree, and some of its runs may
/// be at work already.
fn about_money(options: &RunOptions) -> Option<&'static str> {
    let AgentOptions { max_cost, budget, .. } = &options.agent;
    max_cost.map(|_| "--max-cost").or(budget.as_ref().map(|_| "--budget"))
}

/// The error that names the budget and the cost of `row`, and the alternatives to `option`.
fn keeps_its_money(row: &RunRow, option: &str) -> Failure {
    let spent = Spending::of(row);
    let keeps = match row.funds.budget.as_ref().and_then(|budget| budget.cost) {
        Some(most) => format!("keeps its budget of {most}, which its subagents share"),
        None => "was started without a limit of money".to_owned(),
    };
    let (short, spent) = (row.id.short(), spending::money_in_words(&spent));
    Failure::usage(format!(
        "`{option}` holds from the start of a run: run {short} {keeps}, and has spent {spent} itself"
    ))
    .hint(format!(
        "`--max-turns N` or `--timeout TIME` limits what this message may take; leave out \
         `--continue` or `--resume` to start a new run with `{option}`"
    ))
}

/// The run or chat of `folder` to which the user sent the last message.
async fn newest(runtime: &Runtime, folder: &Path) -> Result<RunRow, Failure> {
    let rows = open_to_talk(runtime, folder).await?;
    last_talked_to(runtime, rows).await?.ok_or_else(|| {
        Failure::usage(format!("there is no run in {} to continue", folder.display()))
            .hint("leave out --continue to start one; `posse runs list` shows those elsewhere")
    })
}

/// The runs and chats of `folder` that can be continued, the last active first.
pub async fn open_to_talk(runtime: &Runtime, folder: &Path) -> Result<Vec<RunRow>, Failure> {
    let workspace = Some(folder.display().to_string());
    let filter = Filter { workspace, kin: Kin::Roots, limit: RECENT, ..Filter::default() };
    let is_open_to_talk = |row: &RunRow| {
        !row.about.title.is_empty()
            && row.log.damaged.is_none()
            && !row.log.erased
            && !row.state.archived
    };
    let mut rows = runtime.list(&filter).await?;
    rows.retain(is_open_to_talk);
    rows.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
    Ok(rows)
}

/// The one of `rows`, the last active first, to which the user sent the last message.
pub async fn last_talked_to(
    runtime: &Runtime,
    rows: Vec<RunRow>,
) -> Result<Option<RunRow>, Failure> {
    let mut newest: Option<(u64, RunRow)> = None;
    for row in rows {
        // No message is later than the last event.
        if newest.as_ref().is_some_and(|(said_at, _)| row.updated_at < *said_at) {
            break;
        }
        let said_at = last_said_at(runtime, &row).await?;
        let found = newest.as_ref().map(|(best, row)| (*best, row.id));
        if found.is_none_or(|found| found < (said_at, row.id)) {
            newest = Some((said_at, row));
        }
    }
    Ok(newest.map(|(_, row)| row))
}

/// When the user last sent a message to the run of `row`. What it has done since does not count: another
/// command may have continued it after a crash.
async fn last_said_at(runtime: &Runtime, row: &RunRow) -> Result<u64, Failure> {
    let records = runtime.read(row.id, Seq::ZERO, usize::MAX).await?;
    let said = |record: &&Record| match &record.event {
        Event::MessageReceived(received) => received.from == Sender::User,
        _ => false,
    };
    Ok(records.iter().rev().find(said).map_or(row.created_at, |record| record.at))
}
