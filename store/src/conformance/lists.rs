//! Lists of runs.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{
    Append, Background, By, Filter, Label, Ownership, RunRow, SpendingQuery, Spent, Store,
    StoreError, Unfinished,
};
use posse_protocol::{
    Announce, Event, Extra, Outcome, Parent, Paused, Purpose, Resumed, RunFinished, RunId,
    RunStarted, Status, TimeAtWork,
};

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

pub(super) async fn lists_can_begin_with_the_oldest_after_one(subject: &dyn Subject) -> Verdict {
    let store = subject.open("pages from the oldest on").await;
    let runs = create_many(&*store, "/w", 7).await?;
    let mut seen = vec![runs[0]];
    while let Some(after) = seen.last().copied() {
        let filter = Filter { after: Some(after), limit: 2, ..Filter::default() };
        let page = ids(&store.list(&filter).await?);
        ensure!(page.len() <= 2, "a page of {}", page.len());
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    ensure!(seen == runs, "the pages do not make up the list");
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

/// Creates a run with this agent, model and label, in the background below `above` if given.
async fn create_as(
    store: &dyn Store,
    (agent, model, label): (&str, &str, &str),
    above: Option<RunId>,
) -> Result<RunId, Fault> {
    let mut first = start()?;
    first.agent.name = agent.parse().map_err(|_| Fault(format!("`{agent}` names no agent")))?;
    let parent = above.map(|run| Parent {
        run,
        call: None,
        announce: Some(Announce::Followup),
        account: None,
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors: vec![run],
        extra: Extra::default(),
    });
    let (model, label) = (model.to_owned(), label.to_owned());
    let first = RunStarted { model, label, parent, ..first };
    let events = [first.into(), message("do it")].into();
    let creation = Append { events, ..creation("/w", Ownership::Mine)? };
    let run = creation.run;
    append(store, creation).await?;
    Ok(run)
}

fn paused() -> Event {
    Event::Paused(Paused { by: "tester".to_owned(), interrupted: false, extra: Extra::default() })
}

fn interrupted() -> Event {
    Event::Paused(Paused { by: "tester".to_owned(), interrupted: true, extra: Extra::default() })
}

fn resumed() -> Event {
    Event::Resumed(Resumed { by: "tester".to_owned(), extra: Extra::default() })
}

pub(super) async fn lists_can_be_filtered_by_what_runs_are(subject: &dyn Subject) -> Verdict {
    let store = subject.open("what runs are").await;
    let store = &*store;
    let top = create_as(store, ("lead", "test/large", ""), None).await?;
    let alpha = create_as(store, ("scout", "test/small", "alpha"), Some(top)).await?;
    let alpine = create_as(store, ("scout", "test/large", "alpine"), Some(top)).await?;
    let beta = create_as(store, ("judge", "test/small", "beta"), Some(top)).await?;
    let ended = Outcome::failed("no", "");
    let ended =
        RunFinished { outcome: ended, worked_ms: 1, changes: None, extra: Extra::default() };
    append(store, step(alpha, 1, vec![Event::RunFinished(ended)], Ownership::Mine)).await?;
    append(store, step(beta, 1, vec![finished()], Ownership::Mine)).await?;
    let text = |text: &str| Some(text.to_owned());
    let is = |label: &str| Some(Label::Is(label.to_owned()));
    let begins = |label: &str| Some(Label::Begins(label.to_owned()));
    let base = Filter::default;
    let table = [
        (Filter { agent: text("scout"), ..base() }, vec![alpine, alpha]),
        (Filter { agent: text("scou"), ..base() }, vec![]),
        (Filter { model: text("test/small"), ..base() }, vec![beta, alpha]),
        (Filter { label: is("alpha"), ..base() }, vec![alpha]),
        (Filter { label: is("alp"), ..base() }, vec![]),
        (Filter { label: is(""), ..base() }, vec![]),
        (Filter { label: begins("alp"), ..base() }, vec![alpine, alpha]),
        (Filter { outcome: text("failed"), ..base() }, vec![alpha]),
        (Filter { background: Background::Only, ..base() }, vec![beta, alpine, alpha]),
        (Filter { background: Background::Not, ..base() }, vec![top]),
        (Filter { agent: text("scout"), label: begins("alp"), limit: 1, ..base() }, vec![alpine]),
        (Filter { agent: text("scout"), before: Some(alpine), ..base() }, vec![alpha]),
        (Filter { agent: text("scout"), outcome: text("completed"), ..base() }, vec![]),
        (Filter { label: begins("alp"), unfinished: Unfinished::Only, ..base() }, vec![alpine]),
    ];
    for (filter, expected) in table {
        let found = ids(&store.list(&filter).await?);
        ensure!(found == expected, "{filter:?} found {found:?} in place of {expected:?}");
    }
    Ok(())
}

pub(super) async fn text_is_compared_and_ordered_by_its_bytes(subject: &dyn Subject) -> Verdict {
    let store = subject.open("bytes").await;
    let store = &*store;
    // Most languages sort `b` next to `B`, and ignore a punctuation mark in between.
    let labels =
        ["B", "b", "Ba", "ba", "B-1", "b-1", "B\u{e4}", "A", "C", "BB", "B z", "B\u{1f600}"];
    let mut runs = Vec::new();
    for label in labels {
        runs.push((label, create_as(store, ("scout", "test/small", label), None).await?));
    }
    for beginning in ["B", "b", "B-", "Ba", "c"] {
        let label = Some(Label::Begins(beginning.to_owned()));
        let found = ids(&store.list(&Filter { label, ..Filter::default() }).await?);
        let begin = runs.iter().rev().filter(|(label, _)| label.starts_with(beginning));
        let expected: Vec<RunId> = begin.map(|(_, run)| *run).collect();
        ensure!(found == expected, "{beginning}: {found:?} in place of {expected:?}");
    }
    // Equal sums are ordered by their keys, in reverse.
    for (_, run) in &runs {
        let called = vec![called(10, Purpose::Turn), replied(10)];
        append(store, step(*run, 1, called, Ownership::Mine)).await?;
    }
    let query = SpendingQuery { by: By::Label, ..SpendingQuery::default() };
    let keys: Vec<String> = store.spending(&query).await?.into_iter().map(|sum| sum.key).collect();
    let mut expected = labels.map(str::to_owned);
    expected.sort_unstable_by(|one, other| other.cmp(one));
    ensure!(keys == expected, "sums of {keys:?} in place of {expected:?}");
    Ok(())
}

pub(super) async fn lists_can_be_filtered_by_when_runs_were_made(subject: &dyn Subject) -> Verdict {
    let store = subject.open("when").await;
    let at = |milliseconds: u64, more: u128| {
        RunId::from_u128(RunId::first_at(milliseconds).as_u128() + more)
    };
    let runs = [at(1_000, 7), at(2_000, 0), at(2_000, 9), at(3_000, 5)];
    for run in runs {
        append(&*store, Append { run, ..creation("/w", Ownership::Waiting)? }).await?;
    }
    let table = [
        (Some(2_000), None, vec![runs[3], runs[2], runs[1]]),
        (None, Some(2_000), vec![runs[0]]),
        (Some(2_000), Some(3_000), vec![runs[2], runs[1]]),
        (Some(3_001), None, vec![]),
    ];
    for (since, until, expected) in table {
        let found = ids(&store.list(&Filter { since, until, ..Filter::default() }).await?);
        ensure!(found == expected, "{since:?} to {until:?} found {found:?}");
    }
    Ok(())
}

pub(super) async fn lists_can_be_filtered_by_where_runs_stand(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("by status").await, subject.open("by status").await);
    let store = &*mine;
    let queued = create(store, "/w", Ownership::Queued).await?;
    let running = create(store, "/w", Ownership::Mine).await?;
    let waiting = create(store, "/w", Ownership::Waiting).await?;
    let pausing = create(store, "/w", Ownership::Mine).await?;
    append(store, Append::by_anyone(pausing, paused())).await?;
    let at_pause = create(store, "/w", Ownership::Queued).await?;
    append(store, Append::by_anyone(at_pause, paused())).await?;
    let at_interruption = create(store, "/w", Ownership::Queued).await?;
    append(store, Append::by_anyone(at_interruption, interrupted())).await?;
    let ended = create(store, "/w", Ownership::Mine).await?;
    append(store, step(ended, 1, vec![finished()], Ownership::Mine)).await?;
    let away = create(store, "/w", Ownership::Mine).await?;
    append(store, step(away, 1, vec![finished()], Ownership::Mine)).await?;
    append(store, Append::by_anyone(away, archived())).await?;
    let table = [
        (vec![Status::Queued], vec![queued]),
        (vec![Status::Running], vec![pausing, running]),
        (vec![Status::Waiting], vec![waiting]),
        (vec![Status::Paused], vec![at_pause]),
        (vec![Status::Interrupted], vec![at_interruption]),
        (vec![Status::Crashed, Status::Damaged], vec![]),
        (vec![Status::Finished], vec![ended]),
        (vec![Status::Archived, Status::Paused], vec![away, at_pause]),
        (
            vec![Status::Running, Status::Queued, Status::Paused],
            vec![at_pause, pausing, running, queued],
        ),
    ];
    for store in [&mine, &other] {
        for (status, expected) in table.clone() {
            let rows = store.list(&Filter { status: status.clone(), ..Filter::default() }).await?;
            ensure!(rows.iter().all(|row| status.contains(&row.status)), "{status:?}: {rows:?}");
            ensure!(ids(&rows) == expected, "{status:?} found {rows:?}");
        }
    }
    Ok(())
}

pub(super) async fn a_paused_run_is_nobody_s_until_it_goes_on(subject: &dyn Subject) -> Verdict {
    let store = subject.open("pauses").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Queued).await?;
    append(store, Append::by_anyone(run, paused())).await?;
    ensure!(claim_one(store, run).await?.is_none(), "a paused run was claimed");
    append(store, Append::by_anyone(run, message("are you there?"))).await?;
    ensure!(claim_one(store, run).await?.is_none(), "a message set a paused run going");
    append(store, Append::by_anyone(run, resumed())).await?;
    let claimed = claim_one(store, run).await?;
    ensure!(claimed.is_some(), "a run that goes on is claimed by nobody");
    append(store, Append::by_anyone(run, cancel())).await?;
    append(store, Append::by_anyone(run, paused())).await?;
    ensure!(!row(store, run).await?.state.paused, "a run that is to stop was paused");
    append(store, Append::by_anyone(run, interrupted())).await?;
    ensure!(!row(store, run).await?.state.interrupted, "a run that is to stop was interrupted");
    append(store, step(run, 1, vec![finished()], Ownership::Mine)).await?;
    ensure_refused!(
        append(store, Append::by_anyone(run, paused())).await,
        StoreError::Finished(ended) if ended == run
    );
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
    // An event, the sum afterwards, and what an open call may cost in addition.
    let table = [
        (called(1_000, Purpose::Turn), spent(0), spent(1_000)),
        (replied(500), spent(500), spent(0)),
        (tool_started(), spent(500), spent(0)),
        (called(1_000, Purpose::Turn), spent(500), spent(1_000)),
        (failed(100), spent(600), spent(0)),
        (called(2_000, Purpose::Compaction), spent(600), spent(2_000)),
        (compacted(400), spent(1_000), spent(0)),
        // Two calls without an answer: each costs what it reserved, and both are one turn.
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
        ensure!(
            row.spending.spent == spent,
            "after {kind}: spent {:?}, not {spent:?}",
            row.spending.spent
        );
        ensure!(
            row.spending.reserved == reserved,
            "after {kind}: reserved {:?}",
            row.spending.reserved
        );
        let most = row.most_cost();
        ensure!(most == spent.cost + reserved.cost, "after {kind}: at most {most}");
    }
    let row = row(store, run).await?;
    let known = (row.known(), row.unsure());
    ensure!(known == (spent(1_000), (spent(4_000), 2)), "known and not: {known:?}");
    ensure!(row.spending.turns == 3, "{} turns in place of 3", row.spending.turns);
    ensure!(row.spending.tool_calls == 1, "{} tool calls in place of 1", row.spending.tool_calls);
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
    ensure!(
        row.about.title.starts_with("Tell me all about it it"),
        "the title is `{}`",
        row.about.title
    );
    ensure!(row.about.title.chars().count() <= 201, "a title of {} bytes", row.about.title.len());
    let names = (row.about.agent.as_str(), row.about.model.as_str(), row.about.workspace.as_str());
    ensure!(names == ("tester", "test/model", "/w"), "{names:?}");
    ensure!(row.about.key.as_deref() == Some("glance"), "the key is {:?}", row.about.key);
    ensure!(row.log.last_seq.0 == 4, "the log ends at {}", row.log.last_seq);
    ensure!(
        row.state.outcome.as_deref() == Some("completed"),
        "the outcome is {:?}",
        row.state.outcome
    );
    ensure!(row.created_at > 0 && row.updated_at >= row.created_at, "times do not fit");
    Ok(())
}

pub(super) async fn a_run_is_found_by_a_part_of_its_id(subject: &dyn Subject) -> Verdict {
    let store = subject.open("parts of ids").await;
    let runs = create_many(&*store, "/w", 30).await?;
    for run in &runs {
        let id = run.to_string();
        let whole = [&id[..], &id[..25], &id[14..], &id[20..], &id[22..]];
        let pieces = [&id[18..22], &id[19..24], &id[20..25]];
        for part in whole.into_iter().chain(pieces) {
            let at_an_end = |id: &String| id.starts_with(part) || id.ends_with(part);
            let texts: Vec<String> = runs.iter().rev().map(RunId::to_string).collect();
            let some_do = texts.iter().any(at_an_end);
            let fits = |id: &&String| at_an_end(id) || (!some_do && id[18..].contains(part));
            let expected: Vec<RunId> =
                texts.iter().filter(fits).filter_map(|id| id.parse().ok()).collect();
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
