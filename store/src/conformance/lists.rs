//! Lists: runs at a glance.

use super::sample::*;
use super::{Subject, Verdict, ensure};
use crate::{Append, Filter, Ownership, RunRow, Spent, Unfinished};
use posse_protocol::{Purpose, RunId, Status};

fn ids(rows: &[RunRow]) -> Vec<RunId> {
    rows.iter().map(|row| row.id).collect()
}

pub(super) async fn lists_begin_with_the_newest_and_have_pages(subject: &dyn Subject) -> Verdict {
    let store = subject.open("pages of runs").await;
    let mut runs = create_many(&*store, "/w", 120).await?;
    runs.reverse();
    let first = ids(&store.list(&Filter::default()).await?);
    ensure!(first == runs[..100], "{} runs without a limit", first.len());
    let mut seen: Vec<RunId> = Vec::new();
    loop {
        let filter = Filter { before: seen.last().copied(), limit: 50, ..Filter::default() };
        let page = ids(&store.list(&filter).await?);
        if page.is_empty() {
            break;
        }
        ensure!(page.len() <= 50, "a page of {}", page.len());
        seen.extend(page);
    }
    ensure!(seen == runs, "the pages do not make up the list");
    let all = store.list(&Filter { limit: usize::MAX, ..Filter::default() }).await?;
    ensure!(all.len() == 120, "{} of 120 runs", all.len());
    Ok(())
}

pub(super) async fn lists_can_be_filtered(subject: &dyn Subject) -> Verdict {
    let store = subject.open("filters").await;
    let here = create_many(&*store, "/here", 3).await?;
    let there = create_many(&*store, "/there", 2).await?;
    for claimed in claim(&*store, 1).await? {
        let run = claimed.row.id;
        append(&*store, step(run, claimed.epoch, vec![finished()], Ownership::Mine)).await?;
    }
    let workspace = |name: &str| Some(name.to_owned());
    let only = Unfinished::Only;
    let table = [
        (Filter { id: Some(here[1]), ..Filter::default() }, vec![here[1]]),
        (Filter { id: Some(RunId::new()), ..Filter::default() }, vec![]),
        (Filter { workspace: workspace("/there"), ..Filter::default() }, vec![there[1], there[0]]),
        (Filter { workspace: workspace("/"), ..Filter::default() }, vec![]),
        (
            Filter { unfinished: only, ..Filter::default() },
            vec![there[1], there[0], here[2], here[1]],
        ),
        (
            Filter { unfinished: only, workspace: workspace("/here"), ..Filter::default() },
            vec![here[2], here[1]],
        ),
        (
            Filter {
                before: Some(here[2]),
                workspace: workspace("/here"),
                limit: 1,
                ..Filter::default()
            },
            vec![here[1]],
        ),
        (Filter { id: Some(here[0]), unfinished: only, ..Filter::default() }, vec![]),
    ];
    for (filter, expected) in table {
        let found = ids(&store.list(&filter).await?);
        ensure!(found == expected, "{filter:?} found {found:?} in place of {expected:?}");
    }
    Ok(())
}

pub(super) async fn a_list_tells_where_runs_stand(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("standing").await, subject.open("standing").await);
    let store = &*mine;
    let queued = create(store, "/w", Ownership::Queued).await?;
    let running = create(store, "/w", Ownership::Mine).await?;
    let waiting = create(store, "/w", Ownership::Waiting).await?;
    let ended = create(store, "/w", Ownership::Mine).await?;
    append(store, step(ended, 1, vec![finished()], Ownership::Mine)).await?;
    let away = create(store, "/w", Ownership::Mine).await?;
    append(store, step(away, 1, vec![finished()], Ownership::Mine)).await?;
    append(store, Append::by_anyone(away, archived())).await?;
    let table = [
        (queued, Status::Queued),
        (running, Status::Running),
        (waiting, Status::Waiting),
        (ended, Status::Finished),
        (away, Status::Archived),
    ];
    for store in [&mine, &other] {
        for (run, expected) in table {
            let status = row(&**store, run).await?.status;
            ensure!(status == expected, "a run is {status} in place of {expected}");
        }
    }
    Ok(())
}

pub(super) async fn a_row_counts_what_was_spent(subject: &dyn Subject) -> Verdict {
    let store = subject.open("spent").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let spent = |tokens: u64| Spent::from(&usage(tokens));
    // What happens, what it sums up to, and what an unanswered call may have cost besides.
    let table = [
        (called(1_000, Purpose::Turn), spent(0), spent(1_000)),
        (replied(500), spent(500), spent(0)),
        (tool_started(), spent(500), spent(0)),
        (called(1_000, Purpose::Turn), spent(500), spent(1_000)),
        (failed(100), spent(600), spent(0)),
        (called(2_000, Purpose::Compaction), spent(600), spent(2_000)),
        (compacted(400), spent(1_000), spent(0)),
        // Two calls without an answer: each is charged as it was reserved.
        (called(1_000, Purpose::Turn), spent(1_000), spent(1_000)),
        (called(3_000, Purpose::Turn), spent(2_000), spent(3_000)),
        (finished(), spent(5_000), spent(0)),
        (message("once more"), spent(5_000), spent(0)),
    ];
    for (event, spent, reserved) in table {
        let kind = event.kind();
        let append_it = match kind {
            "message_received" => Append::by_anyone(run, event),
            _ => step(run, 1, vec![event], Ownership::Mine),
        };
        append(store, append_it).await?;
        let row = row(store, run).await?;
        ensure!(row.spent == spent, "after {kind}: spent {:?}, not {spent:?}", row.spent);
        ensure!(row.reserved == reserved, "after {kind}: reserved {:?}", row.reserved);
        ensure!(row.cost() == spent.cost + reserved.cost, "after {kind}: cost {}", row.cost());
    }
    let row = row(store, run).await?;
    ensure!(row.turns == 4, "{} turns in place of 4", row.turns);
    ensure!(row.tool_calls == 1, "{} tool calls in place of 1", row.tool_calls);
    Ok(())
}

pub(super) async fn a_row_shows_its_run_at_a_glance(subject: &dyn Subject) -> Verdict {
    let store = subject.open("glance").await;
    let mut append_it = creation("/w", Ownership::Mine)?;
    append_it.events = [
        started("/w", Some("glance"))?,
        message(&format!("  Tell me\n all about {}", "it ".repeat(500))),
        message("and more"),
    ]
    .into();
    let run = append_it.run;
    append(&*store, append_it).await?;
    append(&*store, step(run, 1, vec![finished()], Ownership::Mine)).await?;
    let row = row(&*store, run).await?;
    ensure!(row.title.starts_with("Tell me all about it it"), "the title is `{}`", row.title);
    ensure!(row.title.chars().count() <= 201, "a title of {} bytes", row.title.len());
    let names = (row.agent.as_str(), row.model.as_str(), row.workspace.as_str());
    ensure!(names == ("tester", "test/model", "/w"), "{names:?}");
    ensure!(row.key.as_deref() == Some("glance"), "the key is {:?}", row.key);
    ensure!(row.last_seq.0 == 4, "the log ends at {}", row.last_seq);
    ensure!(row.outcome.as_deref() == Some("completed"), "the outcome is {:?}", row.outcome);
    ensure!(row.created_at > 0 && row.updated_at >= row.created_at, "times do not fit");
    Ok(())
}

pub(super) async fn a_run_is_found_by_a_part_of_its_id(subject: &dyn Subject) -> Verdict {
    let store = subject.open("parts of ids").await;
    let runs = create_many(&*store, "/w", 30).await?;
    for run in &runs {
        let id = run.to_string();
        for part in [&id[..], &id[..25], &id[14..], &id[20..], &id[22..]] {
            let expected: Vec<RunId> = runs
                .iter()
                .rev()
                .map(RunId::to_string)
                .filter(|id| id.starts_with(part) || id.ends_with(part))
                .filter_map(|id| id.parse().ok())
                .collect();
            let found = ids(&store.find(part).await?);
            ensure!(found == expected, "`{part}` finds {found:?} in place of {expected:?}");
        }
    }
    let first = runs.first().map_or(String::new(), RunId::to_string);
    let all = store.find(&first[..4]).await?;
    ensure!(all.len() == 30, "{} of 30 runs begin with `{}`", all.len(), &first[..4]);
    ensure!(all.windows(2).all(|two| two[0].id > two[1].id), "not the newest first");
    for nothing in ["", "abc", "ülü", "zzzz", &"0".repeat(40)] {
        ensure!(store.find(nothing).await?.is_empty(), "`{nothing}` finds something");
    }
    Ok(())
}
