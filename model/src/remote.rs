//! A model behind HTTP: one request, one stream of events, one reply.
//!
//! It makes one attempt and reports how it ended. The loop decides about retries.

use crate::catalog::{Locality, Vendor};
use crate::fault::{Fault, Kind, Subject};
use crate::governor::{Governor, Leave, RetryLater};
use crate::http::{self, Answer, Http, Limits, Response, Watchdog};
use crate::input_kinds::InputKinds;
use crate::sse::Events;
use crate::wire::{Dialect, MAX_CALLS, Progress, Target, Wire, Written};
use async_trait::async_trait;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
use posse_protocol::{CallId, Delta, Message, Part, Stop, Usage};
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

/// The most bytes the body of one reply may have.
const MAX_REPLY_BYTES: usize = 32 << 20;

/// How much of a body without events is shown.
const MAX_BEGINNING: usize = 500;

/// A model that is called over HTTP.
pub(crate) struct Remote {
    pub(crate) info: ModelInfo,
    /// What the provider calls it.
    pub(crate) name: String,
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
    pub(crate) written: Written,
    pub(crate) sight: InputKinds,
    pub(crate) url: Url,
    /// Sent with each request; the key among them is marked as sensitive.
    pub(crate) headers: HeaderMap,
    pub(crate) key: SecretString,
    /// Where the key came from, for people.
    pub(crate) key_source: String,
    pub(crate) http: Http,
    /// The governor of the provider.
    pub(crate) governor: Arc<Governor>,
    /// How long a stream may make no progress.
    pub(crate) stall: Duration,
    /// The user's own server, if the model runs there.
    pub(crate) server: Option<Server>,
}

/// A server that the user runs.
pub(crate) struct Server {
    /// The vendor's name.
    name: String,
    /// The command that starts it, if it is known.
    start: Option<String>,
}

impl Server {
    /// The server of `vendor`, if the user runs it.
    pub(crate) fn of(vendor: &Vendor) -> Option<Self> {
        let server = || Server { name: vendor.name.clone(), start: vendor.start.clone() };
        (vendor.reach == Locality::Local).then(server)
    }
}

#[async_trait]
impl Model for Remote {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn get_ready(&self) {
        self.http.get_ready(&self.url);
    }

    async fn call(
        &self,
        mut request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        request.max_tokens = request.max_tokens.clamp(1, self.info.max_output);
        self.sight.adapt(&mut request);
        let vendor = self.vendor();
        let queued = |ahead: usize| deltas(Delta::Waiting { on: vendor.to_owned(), ahead });
        let waited = cancel.run_until_cancelled(self.governor.leave(&request, queued)).await;
        let waited = waited.ok_or(ModelError::NotSent)?;
        let mut leave = waited.map_err(|not_soon| self.not_sent(&not_soon))?;
        let ended = {
            // Pinned: a value that is passed on takes space in every future on its way.
            let conversation = pin!(self.converse(&request, deltas, &mut leave));
            cancel.run_until_cancelled(conversation).await
        };
        let (reply, response) =
            ended.ok_or(ModelError::Cancelled)?.map_err(|fault| self.error_of(fault))?;
        leave.spent(&reply.usage);
        drop(leave);
        // The reply is complete and paid for. A cancel now costs only the connection.
        cancel.run_until_cancelled(http::drain(response)).await;
        Ok(reply)
    }
}

impl Remote {
    /// Makes the call, and reports the result to the governor.
    async fn converse(
        &self,
        request: &Request,
        deltas: DeltaSink<'_>,
        leave: &mut Leave<'_>,
    ) -> Result<(Reply, Response), Fault> {
        let mut limits = Limits::default();
        let ended = self.exchange(request, deltas, leave, &mut limits).await;
        ended.inspect_err(|fault| leave.failed(fault.kind, &limits))
    }

    async fn exchange(
        &self,
        request: &Request,
        deltas: DeltaSink<'_>,
        leave: &mut Leave<'_>,
        limits: &mut Limits,
    ) -> Result<(Reply, Response), Fault> {
        let mut watchdog = Watchdog::new(self.stall);
        let target = Target { model: &self.name, dialect: &self.dialect, written: &self.written };
        let body = self
            .wire
            .encode(request, target)
            .map_err(|error| Fault::new(Kind::Rejected, error.to_string()))?;
        let body = self.written.lend(body);
        let answer = {
            let posted = pin!(self.http.post(self.wire.name(), &self.url, &self.headers, body));
            watchdog.watch(posted).await??
        };
        *limits = http::limits(answer.headers());
        leave.told(limits);
        let answer = http::expect_reply(answer).await?;
        leave.taken();
        let (mut reply, response) = match answer {
            Answer::Events(response) => self.read_events(response, watchdog, deltas).await?,
            Answer::Document(response) => self.read_document(response, watchdog, deltas).await?,
        };
        reply.request_id = http::request_id(response.headers()).or(reply.request_id);
        reply.rate_limits = limits.to_stored();
        check_calls(&mut reply)?;
        tell_calls_apart(&mut reply.message, &request.messages)?;
        Ok((reply, response))
    }

    async fn read_events(
        &self,
        mut response: Response,
        mut watchdog: Watchdog,
        deltas: DeltaSink<'_>,
    ) -> Result<(Reply, Response), Fault> {
        let mut events = Events::default();
        let mut decoder = self.wire.decoder();
        let mut received = 0;
        let mut counted = Usage::default();
        // The beginning of a body without events, which may explain what it is.
        let mut beginning = Vec::new();
        let mut begun = false;
        while let Some(chunk) = watchdog.watch(response.chunk()).await?? {
            received += chunk.len();
            check_size(received)?;
            if !begun {
                let room = MAX_BEGINNING.saturating_sub(beginning.len());
                beginning.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            events.push(&chunk);
            while let Some(event) = events.next()? {
                begun = true;
                let progress = decoder.event(&event, deltas)?;
                let usage = decoder.usage();
                if usage != counted {
                    counted.clone_from(&usage);
                    deltas(Delta::Counted { usage });
                }
                match progress {
                    Progress::None => {}
                    Progress::Moved => watchdog.moved(),
                    Progress::Complete => {
                        return Ok((decoder.finish(&self.info.price)?, response));
                    }
                }
            }
            watchdog.check()?;
        }
        if !begun && is_foreign(&beginning) {
            let reason = format!("it holds no event: {}", String::from_utf8_lossy(&beginning));
            return Err(Fault { kind: Kind::Malformed, reason, hint: "; check the base URL" });
        }
        decoder.finish(&self.info.price).map(|reply| (reply, response))
    }

    /// Reads a whole reply. Its bytes do not count as progress, as those of a stream.
    async fn read_document(
        &self,
        mut response: Response,
        mut watchdog: Watchdog,
        deltas: DeltaSink<'_>,
    ) -> Result<(Reply, Response), Fault> {
        let mut body = Vec::new();
        while let Some(chunk) = watchdog.watch(response.chunk()).await?? {
            check_size(body.len() + chunk.len())?;
            body.extend_from_slice(&chunk);
            watchdog.check()?;
        }
        let mut decoder = self.wire.decoder();
        decoder.document(&body, deltas)?;
        decoder.finish(&self.info.price).map(|reply| (reply, response))
    }

    /// The part of its name before the `/`.
    fn vendor(&self) -> &str {
        self.info.id.split_once('/').map_or(&*self.info.id, |(vendor, _)| vendor)
    }

    /// The failure of a call that was not sent.
    fn not_sent(&self, RetryLater(wait): &RetryLater) -> ModelError {
        let wait = wait.as_secs_f64().ceil();
        let reason = format!(
            "not sent: {} has asked for no more requests for {wait} s, in answer to another one",
            self.vendor()
        );
        let after = Some(Duration::from_secs_f64(wait));
        ModelError::RetryAfter { model: self.info.id.clone(), after, reason }
    }

    /// The error for the loop. A local server that was not started will not start by itself.
    fn error_of(&self, fault: Fault) -> ModelError {
        match &self.server {
            Some(server) if fault.kind == Kind::Refused && is_loopback(&self.url) => {
                let (address, name) = (http::address(&self.url), &server.name);
                let start = server.start.as_ref().map_or_else(
                    || "start its server".to_owned(),
                    |start| format!("start it with `{start}`"),
                );
                ModelError::NotRunning {
                    model: self.info.id.clone(),
                    reason: format!("nothing listens at {address}; is {name} running? {start}"),
                }
            }
            _ => fault.into_error(self.subject()),
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            model: &self.info.id,
            key: self.key.expose_secret(),
            key_source: &self.key_source,
        }
    }
}

/// Removes the calls of a refusal, none of which may run. A reply that ends to call a tool and
/// calls none was cut off.
fn check_calls(reply: &mut Reply) -> Result<(), Fault> {
    let is_call = |part: &Part| matches!(part, Part::ToolCall(_));
    let count = reply.message.parts.iter().filter(|part| is_call(part)).count();
    match reply.stop {
        Stop::Refusal => reply.message.parts.retain(|part| !is_call(part)),
        Stop::ToolUse if count == 0 => {
            let reason = "it ends in order to call a tool, and calls none";
            return Err(Fault::new(Kind::Cut, reason));
        }
        _ if count > MAX_CALLS => {
            let reason = format!("it has {count} tool calls, more than {MAX_CALLS}");
            return Err(Fault::new(Kind::Malformed, reason));
        }
        _ => {}
    }
    Ok(())
}

/// Gives each tool call an id that no other call of the transcript has, since providers refuse a
/// transcript with the same id twice. A call without a name fails the reply, which can be retried.
fn tell_calls_apart(message: &mut Message, said: &[Arc<Message>]) -> Result<(), Fault> {
    let new = message.parts.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    let mut new = new.peekable();
    if new.peek().is_none() {
        return Ok(());
    }
    let old = said.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    let mut taken: HashSet<CallId> = old.collect();
    for call in new {
        if call.name.trim().is_empty() {
            return Err(Fault::new(Kind::Malformed, "a tool call has no name"));
        }
        if !taken.insert(call.id.clone()) {
            let others = (2..).map(|number: u64| CallId(format!("{}_{number}", call.id.0)));
            if let Some(free) = others.into_iter().find(|id| taken.insert(id.clone())) {
                call.id = free;
            }
        }
    }
    Ok(())
}

/// True for an address of this machine that no network reaches.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// True for the beginning of a body that is something other than a stream of events.
fn is_foreign(beginning: &[u8]) -> bool {
    const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    let beginning = beginning.trim_ascii_start();
    !beginning.is_empty() && !FIELDS.iter().any(|field| beginning.starts_with(field))
}

fn check_size(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_REPLY_BYTES {
        return Ok(());
    }
    let reason = format!("it is larger than {} MiB", MAX_REPLY_BYTES >> 20);
    Err(Fault::new(Kind::Malformed, reason))
}
