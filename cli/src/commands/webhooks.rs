//! `posse webhooks`: lists and tests webhooks, and their deliveries.

use super::{Common, folder};
use crate::args::{DeliveryOptions, WebhooksVerb};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::table::{Column, Table};
use posse::Runtime;
use posse::webhooks::{
    AddressPolicy, Answered, Delivery, DeliveryFilter, DeliveryState, Revival, Runs, Webhook,
};
use serde_json::{Value, json};

pub async fn run(common: &Common, verb: WebhooksVerb) -> Result<Code, Failure> {
    let folder = folder(None)?;
    let config = common.config(&folder)?;
    if let WebhooksVerb::List = verb {
        return list(common, &common.webhooks(&config, None)?);
    }
    if !matches!(verb, WebhooksVerb::Test { .. }) && !common.has_database()? {
        return nothing_yet(common, &verb);
    }
    let runtime = common.runtime(&config, common.agents(&folder, &[])?).await?;
    let result = act(common, &runtime, verb).await;
    runtime.shutdown().await;
    result
}

async fn act(common: &Common, runtime: &Runtime, verb: WebhooksVerb) -> Result<Code, Failure> {
    match verb {
        WebhooksVerb::List => list(common, runtime.webhooks()),
        WebhooksVerb::Deliveries(options) => deliveries(common, runtime, &options).await,
        WebhooksVerb::Retry { ids, .. } => retry(common, runtime, &ids).await,
        WebhooksVerb::Test { name } => test(common, runtime, &name).await,
    }
}

fn nothing_yet(common: &Common, verb: &WebhooksVerb) -> Result<Code, Failure> {
    match verb {
        WebhooksVerb::Retry { ids, .. } if !ids.is_empty() => {
            Err(Failure::usage("there are no deliveries yet"))
        }
        _ if common.global.json => print::json_pretty(&json!([])).map(|()| Code::Done),
        _ => {
            print::note("nothing was told yet");
            Ok(Code::Done)
        }
    }
}

fn list(common: &Common, webhooks: &[Webhook]) -> Result<Code, Failure> {
    if common.global.json {
        print::json_pretty(&webhooks.iter().map(webhook_view).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let rows = webhooks.iter().map(|webhook| {
        let runs = if webhook.runs == Runs::All { "all runs" } else { "roots" };
        let secrets = match (webhook.secrets(), webhook.unset()) {
            (0, _) => "no secret".to_owned(),
            (some, []) => format::count(some as u64, "secret"),
            (some, unset) => {
                format!("{}, {} not set", format::count(some as u64, "secret"), unset.join(", "))
            }
        };
        let events = match events(webhook) {
            all if all.is_empty() => "run.finished".to_owned(),
            some => some.join(" "),
        };
        [webhook.name().to_owned(), webhook.shown_address(), secrets, runs.to_owned(), events]
    });
    let columns = [
        Column::text("WEBHOOK"),
        Column::text("ADDRESS").cut(24, 10),
        Column::text("SECRETS").leaves(2),
        Column::text("RUNS").leaves(1),
        Column::text("EVENTS").cut(12, 8).leaves(3),
    ];
    Table { columns, rows: rows.collect() }.print(common)?;
    if webhooks.is_empty() && !common.global.quiet {
        print::note(
            "no webhooks: add [[webhooks]] to your own settings (`posse config` names them)",
        );
    }
    Ok(Code::Done)
}

fn events(webhook: &Webhook) -> Vec<&'static str> {
    webhook.events.iter().map(|kind| kind.name()).collect()
}

/// A webhook in the output of `--json`.
fn webhook_view(webhook: &Webhook) -> Value {
    json!({
        "name": webhook.name(),
        "address": webhook.shown_address(),
        "secrets": webhook.secrets(),
        "unset": webhook.unset(),
        "events": events(webhook),
        "runs": if webhook.runs == Runs::All { "all" } else { "roots" },
        "agents": webhook.agents,
        "labels": webhook.labels,
        "allow_private": webhook.reach == AddressPolicy::Private,
        "timeout_ms": webhook.timeout.as_millis() as u64,
        "schedule_ms":
            webhook.schedule.iter().map(|wait| wait.as_millis() as u64).collect::<Vec<_>>(),
    })
}

async fn deliveries(
    common: &Common,
    runtime: &Runtime,
    options: &DeliveryOptions,
) -> Result<Code, Failure> {
    let limit = options.limit as usize;
    let states = match (options.dead, options.due, options.all) {
        (true, _, _) => vec![Some(DeliveryState::Dead)],
        (_, true, _) => vec![Some(DeliveryState::Due)],
        (_, _, true) => vec![None],
        _ => vec![Some(DeliveryState::Due), Some(DeliveryState::Dead)],
    };
    let mut found = Vec::new();
    for state in states {
        found.extend(
            runtime
                .deliveries(&DeliveryFilter { state, limit, ..DeliveryFilter::default() })
                .await?,
        );
    }
    found.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
    found.truncate(limit);
    if found.is_empty() && !common.global.json {
        print::note("no such deliveries");
    }
    print_deliveries(common, runtime, &found)?;
    Ok(Code::Done)
}

async fn retry(common: &Common, runtime: &Runtime, ids: &[String]) -> Result<Code, Failure> {
    let mut back = Vec::new();
    if ids.is_empty() {
        back = runtime.retry_deliveries(&Revival::All).await?;
    }
    for id in ids {
        // Check all deliveries before the first is retried.
        let filter = DeliveryFilter { id: Some(id.clone()), ..DeliveryFilter::default() };
        let found = runtime.deliveries(&filter).await?.pop();
        let id = clean_line(id, 80);
        if let Some(why) = found.as_ref().and_then(|delivery| delivery.damaged.as_ref()) {
            let why = format!("delivery {id} is damaged: {why}");
            return Err(Failure { code: Code::Store, message: why, hint: None });
        }
        let why = match found.map(|delivery| delivery.state) {
            Some(DeliveryState::Dead) => continue,
            Some(DeliveryState::Due) => format!("Posse will send delivery {id} anyway"),
            Some(DeliveryState::Delivered) => format!("delivery {id} has arrived"),
            None => format!("there is no delivery {id}"),
        };
        return Err(Failure::usage(why).hint(
            "`posse webhooks deliveries --dead` lists the deliveries that you can send again",
        ));
    }
    for id in ids {
        back.extend(runtime.retry_deliveries(&Revival::One(id.clone())).await?);
    }
    if back.is_empty() && !common.global.json {
        print::note("no delivery was given up");
    }
    runtime.flush_webhooks().await;
    let mut now = Vec::with_capacity(back.len());
    for delivery in back {
        let filter = DeliveryFilter { id: Some(delivery.id), ..DeliveryFilter::default() };
        now.extend(runtime.deliveries(&filter).await?);
    }
    print_deliveries(common, runtime, &now)?;
    Ok(Code::Done)
}

async fn test(common: &Common, runtime: &Runtime, name: &str) -> Result<Code, Failure> {
    let trial = runtime.test_webhook(name).await?;
    let took = trial.took.as_millis() as u64;
    let (status, reason) = match &trial.answered {
        Answered::Accepted(status) | Answered::Declined(status) => (Some(*status), None),
        Answered::Nothing(reason) => (None, Some(reason.clone())),
    };
    let accepted = matches!(trial.answered, Answered::Accepted(_));
    let code = if accepted { Code::Done } else { Code::Failed };
    if common.global.json {
        print::json_pretty(&json!({
            "webhook": name, "id": trial.id, "accepted": accepted,
            "status": status, "reason": reason, "took_ms": took,
        }))?;
        return Ok(code);
    }
    let took = format::duration(took);
    let name = clean_line(name, 80);
    let said = match trial.answered {
        Answered::Accepted(status) => format!("{name} took it: {status}, after {took}"),
        Answered::Declined(status) => format!("{name} did not take it: {status}, after {took}"),
        Answered::Nothing(reason) => format!("{name}: {}", clean_line(&reason, 300)),
    };
    print::line(said)?;
    Ok(code)
}

/// A delivery in the output of `--json`.
fn delivery_view(delivery: &Delivery) -> Value {
    let due = delivery.state == DeliveryState::Due;
    json!({
        "id": delivery.id,
        "webhook": delivery.hook,
        "state": delivery.state.name(),
        "type": delivery.kind,
        "run": delivery.run,
        "seq": delivery.seq,
        "attempts": delivery.attempts,
        "created": format::timestamp(delivery.created_at),
        "due": due.then(|| format::timestamp(delivery.due_at)),
        "note": delivery.note,
        "damaged": delivery.damaged,
    })
}

fn print_deliveries(
    common: &Common,
    runtime: &Runtime,
    deliveries: &[Delivery],
) -> Result<(), Failure> {
    if common.global.json {
        return print::json_pretty(&deliveries.iter().map(delivery_view).collect::<Vec<_>>());
    }
    let is_known = |name: &str| runtime.webhooks().iter().any(|hook| hook.name() == name);
    let rows = deliveries.iter().map(|delivery| {
        let state = match delivery.state {
            DeliveryState::Due if !is_known(&delivery.hook) => "due (not in your settings)".into(),
            DeliveryState::Due => match delivery.due_at.saturating_sub(format::now()) {
                0 => "due".to_owned(),
                wait => format!("due in {}", format::duration(wait)),
            },
            other => other.name().to_owned(),
        };
        let state = if delivery.damaged.is_some() { "damaged".to_owned() } else { state };
        let attempts = delivery.attempts.to_string();
        let about = format!("{} of {}", delivery.kind, delivery.run.short());
        let note = clean_line(&delivery.note, 200);
        [delivery.id.clone(), delivery.hook.clone(), about, state, attempts, note]
    });
    let columns = [
        Column::text("DELIVERY"),
        Column::text("WEBHOOK").leaves(2),
        Column::text("EVENT").leaves(3),
        Column::text("STATE"),
        Column::figures("ATTEMPTS").leaves(1),
        Column::text("RESULT").cut(20, 8),
    ];
    Table { columns, rows: rows.collect() }.print(common)
}
