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
        let Some(last) = page.last() else { break };
        after = last.seq;
        for record in &page {
            tools.observe(&record.event);
            match common.global.json {
                true => print::json(record)?,
                false => print::line(terminal::fitted(&line(record, &tools), columns))?,
            }
        }
    }
    if !common.global.json
        && !common.global.quiet
        && let Some(machine) = runtime.machine_of(&row).await?
    {
        print::note(format!("the machine `{}` executes it now", clean_line(&machine, 64)));
    }
    Ok(Code::Done)
}

/// An event in one line.
fn line(record: &Record, tools: &Tools) -> String {
    let time = format::timestamp(record.at);
    let time = time.get(11..19).unwrap_or_default();
    let detail = clean_line(&detail(&record.event, tools), 140);
    // The Z says that it is UTC.
    let line = format!("{:>4}  {time}Z  {:16}  {detail}", record.seq, record.event.kind());
    line.trim_end().to_owned()
}

fn detail(event: &Event, tools: &Tools) -> String {
    match event {
        Event::RunStarted(started) => {
            let guidance = match started.guidance.len() {
                0 => String::new(),
                files => format!(", {}", format::count(files as u64, "guidance file")),
            };
            format!("{} on {}{guidance}", started.agent.name, started.model)
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use posse::Transcript;
    use posse::protocol::{Extra, RunId, SCHEMA_VERSION};
    use posse::store::Projection;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// The page that describes every event, with examples.
    const PAGE: &str = include_str!("../../../../docs/reference/events.md");

    /// The examples of the page, each with the text of the section it stands in.
    fn examples() -> Vec<(&'static str, Value)> {
        let examples = |section: &'static str| {
            let blocks = section.split("\n```json event\n").skip(1);
            let blocks = blocks.map(|block| block.split("\n```").next().unwrap());
            blocks.map(move |block| (section, serde_json::from_str(block).unwrap()))
        };
        PAGE.split("\n## ").skip(1).flat_map(examples).collect()
    }

    /// What it takes to add an event: the table of `Event` and the compiler name the rest, but for
    /// the page. Its examples are read, written, folded, projected and shown here.
    #[test]
    fn every_event_is_on_the_page_and_goes_all_the_way_to_a_line() {
        let newest = format!("the newest is {SCHEMA_VERSION}");
        assert!(PAGE.contains(&newest), "the page does not say that {newest}");
        let mut shown = BTreeSet::new();
        for (section, example) in examples() {
            let kind = example["type"].as_str().unwrap();
            let heading = section.lines().next().unwrap();
            assert!(heading.contains(&format!("`{kind}`")), "{kind} stands below {heading}");

            // Fields of a later version survive, so the struct has an `Extra`.
            let mut later = example.clone();
            later["unheard_of"] = json!([1]);
            let event: Event = serde_json::from_value(later.clone())
                .unwrap_or_else(|error| panic!("{kind}: {error}: {example}"));
            assert_eq!(serde_json::to_value(&event).unwrap(), later);
            assert_eq!(event.kind(), kind);

            let run = RunId::from_u128(7);
            let record = |seq, event| {
                let version = SCHEMA_VERSION;
                Record { run, seq: Seq(seq), at: 1, version, event, extra: Extra::default() }
            };
            let first = examples().into_iter().find(|(_, it)| it["type"] == "run_started");
            let first = record(1, serde_json::from_value(first.unwrap().1).unwrap());
            let second = record(2, event);
            assert_eq!(Transcript::of([&first, &second]).seq(), Seq(2));
            let mut projection = Projection::new(run);
            [&first, &second].into_iter().for_each(|record| projection.apply(record));

            let line = line(&second, &Tools::default());
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words[0], words[2]), ("2", kind));
            // Nothing more can be said of an archived run.
            assert!(
                words.len() > 3 || kind == "archived",
                "{kind} has no words for people: {line}"
            );
            shown.insert(kind.to_owned());
        }
        let kinds: BTreeSet<String> = Event::KINDS.iter().map(|kind| (*kind).to_owned()).collect();
        assert_eq!(shown, kinds, "each event has an example on docs/reference/events.md");
    }
}
