//! The event that webhooks get when a run ends.

use super::hook::{End, EventKind, Webhook};
use crate::announcement::RunSummary;
use crate::redact::REDACTED;
use posse_protocol::{Event, Record, RunFinished, RunId};
use posse_store::{Delivery, DeliveryState, Notice};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest text that is sent in full, in bytes.
const LARGEST: usize = 16 * 1024;

/// The `data` of an event; docs/reference/webhooks.md documents it. Fields may only be added.
#[derive(Serialize)]
struct Data<'a> {
    run: RunId,
    root: RunId,
    parent: Option<RunId>,
    agent: &'a str,
    label: &'a str,
    outcome: &'a str,
    reason: Option<String>,
    text: &'a str,
    /// How many bytes of the text were left out.
    text_cut: usize,
    worked_ms: u64,
    tool_calls: u64,
    usage: Spent,
    /// Known cost.
    cost_usd: f64,
    /// The most that interrupted calls may have cost in addition.
    uncertain_cost_usd: f64,
}

#[derive(Serialize)]
struct Spent {
    input_tokens: u64,
    output_tokens: u64,
}

/// Returns the event about the end of `run` for each of `hooks` that wants it.
pub(super) fn of_the_end(
    hooks: &[Webhook],
    run: RunId,
    account: &RunSummary,
    finished: &RunFinished,
) -> Vec<Notice> {
    if account.is_unspoken() {
        return Vec::new();
    }
    let kind = EventKind::of(&finished.outcome);
    let ancestors = account.ancestors();
    let (agent, label) = (account.agent(), account.label());
    let end = End { is_root: ancestors.is_empty(), agent, label };
    let wanting: Vec<&Webhook> = hooks.iter().filter(|hook| hook.wants(kind, &end)).collect();
    if wanting.is_empty() {
        return Vec::new();
    }
    let whole = finished.outcome.text();
    let text = beginning(whole);
    let usage = account.usage();
    let data = Data {
        run,
        root: ancestors.first().copied().unwrap_or(run),
        parent: ancestors.last().copied(),
        agent,
        label,
        outcome: kind.name().trim_start_matches("run."),
        reason: (!finished.outcome.is_completed()).then(|| finished.outcome.to_string()),
        text,
        text_cut: whole.len() - text.len(),
        worked_ms: finished.worked_ms,
        tool_calls: account.tool_calls(),
        usage: Spent { input_tokens: usage.all_input_tokens(), output_tokens: usage.output_tokens },
        cost_usd: usage.cost.dollars(),
        uncertain_cost_usd: account.uncertain().cost.dollars(),
    };
    // Texts, numbers and ids always have a JSON form.
    let data: Arc<str> = serde_json::to_string(&data).unwrap_or_default().into();
    let notice = |hook: &Webhook| Notice {
        hook: hook.name().to_owned(),
        kind: kind.name().to_owned(),
        data: data.clone(),
    };
    wanting.into_iter().map(notice).collect()
}

/// The part of `Data` that is compared with the log.
#[derive(Deserialize)]
struct NoticeFacts {
    run: RunId,
    outcome: String,
    text: String,
    text_cut: usize,
}

/// Returns how `delivery` differs from its `event`, if it does. Posse must not sign and send a text
/// in which a bit has flipped.
pub(crate) fn mismatch(delivery: &Delivery, event: Option<&Record>) -> Option<&'static str> {
    let Some(Record { event: Event::RunFinished(finished), at, .. }) = event else {
        return Some("there is no end at the event that it names");
    };
    let kind = EventKind::of(&finished.outcome).name();
    if delivery.kind != kind {
        return Some("the run ended in another way");
    }
    if delivery.created_at != *at {
        return Some("the run ended at another time");
    }
    // Delivered data is not kept.
    if delivery.state == DeliveryState::Delivered {
        return None;
    }
    let Ok(told) = serde_json::from_str::<NoticeFacts>(&delivery.data) else {
        return Some("what it tells cannot be read");
    };
    if told.run != delivery.run || told.outcome != kind.trim_start_matches("run.") {
        return Some("it tells of another end");
    }
    let text = finished.outcome.text();
    // Secrets are removed from each text separately, and the results may differ.
    let is_whole = told.text_cut == 0 && ![text, &told.text].iter().any(|it| it.contains(REDACTED));
    (is_whole && told.text != text).then_some("it tells another text")
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(LARGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
