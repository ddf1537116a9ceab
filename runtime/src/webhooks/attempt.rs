//! One attempt to notify a webhook, and the meaning of its answer.

use super::backoff::{chance, retry_after, wait};
use super::hook::Webhook;
use super::secret::signatures;
use posse_store::{Delivery, Settlement};
use posse_tools::egress::{Egress, EgressError, Reply};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The result of testing a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The id of the test event.
    pub id: String,
    /// The answer.
    pub answered: Answered,
    /// How long it took.
    pub took: Duration,
}

/// The answer of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It accepted the event, with this status.
    Accepted(u16),
    /// It declined the event, with this status.
    Declined(u16),
    /// Nothing was sent, or no answer came, for this reason.
    Nothing(String),
}

impl Answered {
    fn of(result: &Result<Reply, EgressError>) -> Self {
        match result {
            Ok(reply) if (200..300).contains(&reply.status) => Answered::Accepted(reply.status),
            Ok(reply) => Answered::Declined(reply.status),
            Err(error) => Answered::Nothing(error.to_string()),
        }
    }
}

/// The status of a URL that is gone for good.
const GONE: u16 = 410;

/// Sends `delivery` and returns its new state, with a note for people.
pub(super) async fn attempt(
    egress: &Egress,
    hook: &Webhook,
    delivery: &Delivery,
) -> (Settlement, String) {
    let body = body(&delivery.kind, delivery.created_at, &delivery.data);
    let result = post(egress, hook, &delivery.id, body).await;
    let reply = result.as_ref().ok();
    let asked = reply.and_then(|reply| reply.retry_after.as_deref());
    let asked = asked.and_then(|value| retry_after(value, now().as_secs()));
    let next = wait(&hook.schedule, delivery.attempts, asked, chance());
    match (Answered::of(&result), next) {
        (Answered::Accepted(status), _) => (Settlement::Delivered, status.to_string()),
        (Answered::Declined(GONE), _) => {
            (Settlement::Dead, format!("{GONE}: the receiver is gone for good"))
        }
        (Answered::Declined(status), Some(next)) => (Settlement::Again(next), status.to_string()),
        (Answered::Declined(status), None) => (Settlement::Dead, last(&status.to_string())),
        (Answered::Nothing(why), Some(next)) => (Settlement::Again(next), why),
        (Answered::Nothing(why), None) => (Settlement::Dead, last(&why)),
    }
}

fn last(note: &str) -> String {
    format!("{note}; that was the last attempt")
}

/// Sends a test event.
pub(super) async fn trial(egress: &Egress, hook: &Webhook, id: String) -> Trial {
    let began = std::time::Instant::now();
    let at = u64::try_from(now().as_millis()).unwrap_or_default();
    let data = "{\"message\":\"A test from posse. Nothing has happened.\"}";
    let result = post(egress, hook, &id, body("posse.test", at, data)).await;
    Trial { id, answered: Answered::of(&result), took: began.elapsed() }
}

async fn post(
    egress: &Egress,
    hook: &Webhook,
    id: &str,
    body: String,
) -> Result<Reply, EgressError> {
    let timestamp = now().as_secs();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signatures(&hook.keys, id, timestamp, &body)),
    ];
    egress.post(&hook.url, hook.reach, &headers, body.into_bytes(), hook.timeout).await
}

/// Returns the body of the request: the same bytes at every attempt.
fn body(kind: &str, at: u64, data: &str) -> String {
    let at = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let at = at.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    // Neither contains a character that JSON must escape.
    format!("{{\"type\":\"{kind}\",\"timestamp\":\"{at}\",\"data\":{data}}}")
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
