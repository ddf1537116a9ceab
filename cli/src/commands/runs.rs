//! `posse runs`: list, follow and control runs.

use super::follow::{Followed, Form, conclude, follow};
use super::{Common, Pickup, folder, run as run_command};
use crate::args::RunsVerb;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::signals::Signals;
use crate::view::{self, RunView};
use posse::protocol::{CancelScope, Event, Record, Seq};
use posse::store::{Filter, StoreError, Unfinished};
use posse::{RunRow, Runtime, Status};
use std::io::Write;
use std::path::PathBuf;

pub async fn run(common: Common, verb: RunsVerb) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let config = common.config(&folder)?;
    if !common.database()?.exists() {
        return nothing_yet(&common, &verb);
    }
    let pickup = match verb {
        RunsVerb::Resume { all: true, .. } => Pickup::All,
        _ => Pickup::Named,
    };
    let runtime = common.runtime(&config, pickup).await?;
    let result = act(&common, &runtime, verb).await;
    runtime.shutdown().await;
    result
}

fn nothing_yet(common: &Common, verb: &RunsVerb) -> Result<Code, Failure> {
    match verb {
        RunsVerb::List { .. } if common.global.json => print::json_pretty(&Vec::<RunView>::new()),
        RunsVerb::List { .. } => print::note("no runs yet; `posse run \"…\"` starts one"),
        RunsVerb::Verify { run: None } | RunsVerb::Resume { all: true, .. } => {
            print::note("no runs yet");
        }
        _ => {
            let path = common.database()?;
            return Err(Failure::usage(format!(
                "there are no runs yet: {} does not exist",
                path.display()
            ))
            .hint("`posse run \"…\"` starts one; --db names another database"));
        }
    }
    Ok(Code::Done)
}

async fn act(common: &Common, runtime: &Runtime, verb: RunsVerb) -> Result<Code, Failure> {
    match verb {
        RunsVerb::List { unfinished, cwd, limit, before } => {
            list(common, runtime, unfinished, cwd, limit as usize, before).await
        }
        RunsVerb::Show { run } => show(common, runtime, &run).await,
        RunsVerb::Log { run, after } => log(common, runtime, &run, Seq(after)).await,
        RunsVerb::Watch { run } => watch(common, runtime, &run).await,
        RunsVerb::Send { run, text } => send(common, runtime, &run, text).await,
        RunsVerb::Cancel { run } => cancel(common, runtime, &run).await,
        RunsVerb::Resume { all: true, .. } => resume_all(common, runtime).await,
        RunsVerb::Resume { run, text, .. } => {
            resume(common, runtime, &run.unwrap_or_default(), text).await
        }
        RunsVerb::Verify { run } => verify(common, runtime, run.as_deref()).await,
        RunsVerb::Export { run, output } => export(runtime, &run, output).await,
    }
}

async fn list(
    common: &Common,
    runtime: &Runtime,
    unfinished: bool,
    cwd: Option<PathBuf>,
    limit: usize,
    before: Option<String>,
) -> Result<Code, Failure> {
    let before = match before {
        Some(text) => Some(runtime.find(&text).await?.id),
        None => None,
    };
    let filter = Filter {
        workspace: match cwd {
            Some(cwd) => Some(folder(Some(&cwd))?.display().to_string()),
            None => None,
        },
        unfinished: if unfinished { Unfinished::Only } else { Unfinished::All },
        before,
        limit,
        id: None,
    };
    let rows = runtime.list(&filter).await?;
    if common.global.json {
        print::json_pretty(&rows.iter().map(RunView::of).collect::<Vec<_>>());
        return Ok(Code::Done);
    }
    if rows.is_empty() {
        print::note("no such runs");
    }
    for row in &rows {
        print::line(format!(
            "{}  {:11}  {:>8}  {:>7}  {:16}  {}",
            row.id.short(),
            state(row),
            view::ago(row.updated_at),
            row.cost(),
            clean_line(&row.agent, 16),
            clean_line(&row.title, 60),
        ));
    }
    if rows.len() == limit
        && let Some(last) = rows.last()
    {
        print::note(format!("older ones: --before {}", last.id.short()));
    }
    Ok(Code::Done)
}

/// Where a run stands, in one word.
fn state(row: &RunRow) -> String {
    match (&row.outcome, row.status) {
        (Some(outcome), Status::Finished) => outcome.clone(),
        (_, status) => status.to_string(),
    }
}

async fn show(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let records = read_all(runtime, &row).await?;
    let outcome = view::outcome_in(&records).filter(|_| row.outcome.is_some());
    if common.global.json {
        let view = RunView::of(&row);
        match outcome {
            Some(outcome) => print::json_pretty(&view.with_text(outcome)),
            None => print::json_pretty(&view),
        }
        return Ok(Code::Done);
    }
    let usage = format!(
        "{} turns, {} tool calls, {} tokens in, {} out, {}",
        row.turns,
        row.tool_calls,
        view::tokens(row.spent.input_tokens),
        view::tokens(row.spent.output_tokens),
        row.cost()
    );
    let mut rows = vec![
        ("run", row.id.to_string()),
        (
            "status",
            match &row.outcome {
                Some(_) => clean_line(&row.outcome_line, 400),
                None => row.status.to_string(),
            },
        ),
        ("agent", clean_line(&row.agent, 80)),
        ("model", clean_line(&row.model, 80)),
        ("folder", clean_line(&row.workspace, 400)),
        ("started", view::timestamp(row.created_at)),
        ("last event", format!("{} (event {})", view::timestamp(row.updated_at), row.last_seq)),
        ("spent", usage),
        ("task", clean_line(&row.title, 200)),
    ];
    if let Some(damage) = &row.damaged {
        rows.push(("damaged", clean_line(damage, 400)));
    }
    for (name, value) in rows {
        print::line(format!("{name:11} {value}"));
    }
    if let Some(outcome) = outcome
        && !outcome.text().is_empty()
    {
        print::line("");
        print::line(crate::clean::clean(outcome.text()));
    }
    Ok(Code::Done)
}

/// Events of a page.
const PAGE: usize = 500;

async fn read_all(runtime: &Runtime, row: &RunRow) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    let mut after = Seq::ZERO;
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(records) };
        after = last.seq;
        records.extend(page);
    }
}

async fn log(common: &Common, runtime: &Runtime, run: &str, after: Seq) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let mut after = after;
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(Code::Done) };
        after = last.seq;
        for record in &page {
            match common.global.json {
                true => print::json(record),
                false => print::line(log_line(record)),
            }
        }
    }
}

/// An event in one line.
fn log_line(record: &Record) -> String {
    let detail = match &record.event {
        Event::RunStarted(started) => format!("{} on {}", started.agent.name, started.model),
        Event::MessageReceived(received) => received.message.text(),
        Event::ModelCalled(called) => {
            format!(
                "up to {} tokens in, {} out",
                called.reserved.input_tokens, called.reserved.output_tokens
            )
        }
        Event::ModelReplied(replied) => {
            let calls: Vec<String> =
                replied.message.tool_calls().map(crate::screen::describe).collect();
            let text = replied.message.text();
            format!("{text} {}", calls.join("; ")).trim().to_owned()
        }
        Event::ModelFailed(failed) => failed.reason.clone(),
        Event::ToolStarted(started) => started.tool.clone(),
        Event::ToolPending(pending) => format!("waits for {}", pending.waits_for),
        Event::ToolFinished(finished) => finished.output.joined_text(),
        Event::TimePassed(passed) => view::duration(passed.worked_ms),
        Event::Compacted(compacted) => compacted.summary.clone(),
        Event::CancelRequested(request) => format!("by {}", request.by),
        Event::RunFinished(finished) => finished.outcome.to_string(),
        Event::Archived(_) => String::new(),
    };
    let time = view::timestamp(record.at);
    let time = time.get(11..19).unwrap_or_default();
    format!("{:>4}  {time}  {:16}  {}", record.seq, record.event.kind(), clean_line(&detail, 140))
}

async fn watch(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let form = if common.global.json { Form::StreamJson } else { Form::Screen };
    let mut screen = run_command::screen(common, form);
    let mut signals = Signals::listen()?;
    let handle = runtime.handle(row.id);
    match follow(&handle, Seq::ZERO, form, &mut screen, &mut signals).await? {
        Followed::Ended(outcome) => conclude(runtime, &handle, &outcome, form, &mut screen).await,
        Followed::Signal(_) => Ok(Code::Interrupted),
    }
}

async fn send(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    text: String,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    runtime.post(row.id, text).await?;
    if common.global.json {
        print::json(&serde_json::json!({"run": row.id, "sent": true}));
    } else if row.status == Status::Running {
        print::note(format!("run {} reads it before its next step", row.id.short()));
    } else {
        print::note(format!(
            "kept for run {}; nobody executes it now: `posse runs resume {}` does",
            row.id.short(),
            row.id.short()
        ));
    }
    Ok(Code::Done)
}

async fn cancel(common: &Common, runtime: &Runtime, run: &str) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    runtime.cancel(row.id, "the user", CancelScope::Run).await?;
    let outcome = runtime.handle(row.id).outcome().await?;
    if common.global.json {
        print::json(&serde_json::json!({"run": row.id, "outcome": outcome}));
    } else {
        print::note(format!("run {}: {}", row.id.short(), clean_line(&outcome.to_string(), 200)));
    }
    Ok(Code::Done)
}

async fn resume(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    text: Option<String>,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    match (row.status, &text) {
        (Status::Damaged, _) => {
            let reason = row.damaged.unwrap_or_default();
            return Err(Failure {
                code: Code::Store,
                message: format!("run {} is damaged: {reason}", row.id),
                hint: None,
            });
        }
        (Status::Running, None) => {
            return Err(Failure::internal(format!("run {} is being executed now", row.id.short()))
                .hint(format!("`posse runs watch {}` follows it", row.id.short())));
        }
        (Status::Finished | Status::Waiting, None) if !row.runnable => {
            return Err(Failure::usage(format!("run {} has nothing to do", row.id.short()))
                .hint(format!("say what: posse runs resume {} \"…\"", row.id.short())));
        }
        _ => {}
    }
    let handle = match text {
        Some(text) => {
            runtime.send(row.id, text).await?;
            runtime.handle(row.id)
        }
        None => runtime.resume(row.id),
    };
    let form = if common.global.json { Form::Json } else { Form::Screen };
    let mut screen = run_command::screen(common, form);
    let mut signals = Signals::listen()?;
    match follow(&handle, row.last_seq, form, &mut screen, &mut signals).await? {
        Followed::Ended(outcome) => conclude(runtime, &handle, &outcome, form, &mut screen).await,
        Followed::Signal(_) => {
            print::note(format!("run {} is kept", row.id.short()));
            Ok(Code::Interrupted)
        }
    }
}

async fn resume_all(common: &Common, runtime: &Runtime) -> Result<Code, Failure> {
    let filter = Filter { unfinished: Unfinished::Only, limit: 100_000, ..Filter::default() };
    let rows = runtime.list(&filter).await?;
    let mut signals = Signals::listen()?;
    let mut code = Code::Done;
    for row in rows.iter().filter(|row| row.runnable && row.damaged.is_none()) {
        let handle = runtime.handle(row.id);
        let outcome = tokio::select! {
            outcome = handle.outcome() => outcome?,
            _ = signals.next() => return Ok(Code::Interrupted),
        };
        if !outcome.is_completed() {
            code = Code::Failed;
        }
        match common.global.json {
            true => print::json(&serde_json::json!({"run": row.id, "outcome": outcome})),
            false => print::line(format!(
                "{}  {}",
                row.id.short(),
                clean_line(&outcome.to_string(), 200)
            )),
        }
    }
    Ok(code)
}

async fn verify(common: &Common, runtime: &Runtime, run: Option<&str>) -> Result<Code, Failure> {
    let mut bad = Vec::new();
    let mut checked = 0u64;
    let mut events = 0u64;
    let mut before = None;
    loop {
        let rows = match run {
            Some(run) => vec![runtime.find(run).await?],
            None => {
                let filter = Filter { before, limit: 1_000, ..Filter::default() };
                runtime.list(&filter).await?
            }
        };
        let Some(last) = rows.last() else { break };
        before = Some(last.id);
        for row in &rows {
            checked += 1;
            match verify_one(runtime, row).await {
                Ok(count) => events += count,
                Err(posse::Error::Store(StoreError::Damaged { run, seq, reason })) => {
                    bad.push((run, seq, reason));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if run.is_some() {
            break;
        }
    }
    if common.global.json {
        let bad: Vec<_> = bad
            .iter()
            .map(|(run, seq, reason)| serde_json::json!({"run": run, "event": seq, "reason": reason}))
            .collect();
        print::json_pretty(&serde_json::json!({"runs": checked, "events": events, "damaged": bad}));
    } else {
        for (run, _, reason) in &bad {
            print::line(format!("{run}  damaged: {}", clean_line(reason, 400)));
        }
        print::note(format!("{checked} runs, {events} events checked, {} damaged", bad.len()));
    }
    Ok(if bad.is_empty() { Code::Done } else { Code::Store })
}

async fn verify_one(runtime: &Runtime, row: &RunRow) -> Result<u64, posse::Error> {
    let mut after = Seq::ZERO;
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(after.0) };
        after = last.seq;
    }
}

async fn export(runtime: &Runtime, run: &str, output: Option<PathBuf>) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let records = read_all(runtime, &row).await?;
    let mut text = String::new();
    for record in &records {
        let line = serde_json::to_string(record).map_err(|error| {
            Failure::internal(format!("cannot write event {}: {error}", record.seq))
        })?;
        text.push_str(&line);
        text.push('\n');
    }
    match output {
        None => print::piece(&text),
        Some(path) => {
            use std::os::unix::fs::OpenOptionsExt;
            let cannot =
                |error| Failure::internal(format!("cannot write {}: {error}", path.display()));
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)
                .map_err(cannot)?;
            file.write_all(text.as_bytes()).map_err(cannot)?;
            print::note(format!("{} events written to {}", records.len(), path.display()));
        }
    }
    Ok(Code::Done)
}
