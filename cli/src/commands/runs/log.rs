//! `posse runs log`.

use super::super::Common;
use super::PAGE;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::screen::Tools;
use crate::terminal;
use posse::Runtime;
use posse::protocol::{Approval, ApprovalGiven, Event, Record, Seq};

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    run: &str,
    after: u64,
) -> Result<Code, Failure> {
    let row = runtime.find(run).await?;
    let mut after = Seq(after);
    let mut tools = Tools::default();
    let columns = terminal::table_width().unwrap_or(usize::MAX);
    loop {
        let page = runtime.read(row.id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(Code::Done) };
        after = last.seq;
        for record in &page {
            tools.observe(&record.event);
            match common.global.json {
                true => print::json(record)?,
                false => print::line(terminal::fitted(&line(record, &tools), columns))?,
            }
        }
    }
}

/// An event in one line.
fn line(record: &Record, tools: &Tools) -> String {
    let time = format::timestamp(record.at);
    let time = time.get(11..19).unwrap_or_default();
    let detail = clean_line(&detail(&record.event, tools), 140);
    let line = format!("{:>4}  {time}  {:16}  {detail}", record.seq, record.event.kind());
    line.trim_end().to_owned()
}

fn detail(event: &Event, tools: &Tools) -> String {
    match event {
        Event::RunStarted(started) => format!("{} on {}", started.agent.name, started.model),
        Event::MessageReceived(received) => received.message.text(),
        Event::ModelCalled(called) => {
            let (input, output) = (called.reserved.input_tokens, called.reserved.output_tokens);
            format!("up to {} tokens in, {} out", format::tokens(input), format::tokens(output))
        }
        Event::ModelReplied(replied) => {
            let calls = replied.message.tool_calls().map(|call| tools.describe(call));
            let calls: Vec<String> = calls.collect();
            let text = replied.message.text();
            let apart = if text.is_empty() || calls.is_empty() { "" } else { " → " };
            format!("{text}{apart}{}", calls.join("; "))
        }
        Event::ModelFailed(failed) => failed.reason.clone(),
        Event::ApprovalAsked(asked) => format!("asks to call {}: {}", asked.tool, asked.shown),
        Event::ApprovalGiven(given) => approval(given),
        Event::ToolStarted(started) => started.tool.clone(),
        Event::ToolPending(pending) => format!("waits for {}", pending.waits_for),
        Event::ToolFinished(finished) => finished.output.joined_text(),
        Event::ChildStarted(child) => {
            let again = if child.resumed { " again" } else { "" };
            format!("run {}{again}: [{}] {}", child.run.short(), child.agent, child.label)
        }
        Event::TimePassed(passed) => format::duration(passed.worked_ms),
        Event::Compacted(compacted) => compacted.summary.clone(),
        Event::CancelRequested(request) => format!("by {}", request.by),
        Event::Paused(paused) if paused.interrupted => {
            format!("by {}, who interrupted it", paused.by)
        }
        Event::Paused(paused) => format!("by {}", paused.by),
        Event::Resumed(resumed) => format!("by {}", resumed.by),
        Event::RunFinished(finished) => finished.outcome.to_string(),
        Event::Archived(_) => String::new(),
    }
}

fn approval(given: &ApprovalGiven) -> String {
    let said = match &given.answer {
        Approval::Once => "allowed once".to_owned(),
        Approval::Run { rule } => format!("allowed, and {rule} for this run"),
        Approval::Always { rule } => format!("allowed, and {rule} always"),
        Approval::Denied { reason } if reason.is_empty() => "denied".to_owned(),
        Approval::Denied { reason } => format!("denied: {reason}"),
    };
    format!("{said} (by {})", given.by)
}
