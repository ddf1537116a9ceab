//! A model behind HTTP: one request, one stream of events, one reply.
//!
//! Makes one attempt and says how it ended; trying again is somebody else's business.

use crate::fault::{Fault, Kind, Subject};
use crate::http::{self, Http, Watchdog};
use crate::sse::Events;
use crate::wire::{Dialect, Progress, Target, Wire};
use async_trait::async_trait;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
use reqwest::Response;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

/// The most bytes the body of one reply may have.
const MAX_REPLY_BYTES: usize = 32 << 20;

/// A model that is called over HTTP.
pub(crate) struct Remote {
    pub(crate) info: ModelInfo,
    /// What the provider calls it.
    pub(crate) name: String,
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
    pub(crate) url: Url,
    /// Sent with each request; the key among them is marked as sensitive.
    pub(crate) headers: HeaderMap,
    pub(crate) key: SecretString,
    /// Where the key came from, for people.
    pub(crate) key_source: &'static str,
    pub(crate) http: Http,
    /// How long a stream may make no progress.
    pub(crate) stall: Duration,
}

#[async_trait]
impl Model for Remote {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        mut request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        request.max_tokens = request.max_tokens.clamp(1, self.info.max_output);
        let ended = cancel.run_until_cancelled(self.converse(request, deltas)).await;
        let (reply, response) = ended
            .ok_or(ModelError::Cancelled)?
            .map_err(|fault| fault.into_error(self.subject()))?;
        // The reply is complete and paid for: to be cancelled now costs only the connection.
        cancel.run_until_cancelled(http::drain(response)).await;
        Ok(reply)
    }
}

impl Remote {
    async fn converse(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
    ) -> Result<(Reply, Response), Fault> {
        let mut watchdog = Watchdog::new(self.stall);
        let target = Target { model: &self.name, dialect: &self.dialect };
        let body = self
            .wire
            .encode(&request, target)
            .map_err(|error| Fault::new(Kind::Rejected, error.to_string()))?;
        drop(request);
        let answer = watchdog.watch(self.http.post(&self.url, &self.headers, body)).await??;
        let mut response = http::expect_events(answer).await?;
        let mut events = Events::default();
        let mut decoder = self.wire.decoder();
        let mut received = 0;
        while let Some(chunk) = watchdog.watch(http::chunk(&mut response)).await?? {
            received += chunk.len();
            if received > MAX_REPLY_BYTES {
                let reason = format!("it is larger than {} MiB", MAX_REPLY_BYTES >> 20);
                return Err(Fault::new(Kind::Malformed, reason));
            }
            events.push(&chunk);
            while let Some(event) = events.next()? {
                match decoder.event(&event, deltas)? {
                    Progress::None => {}
                    Progress::Moved => watchdog.moved(),
                    Progress::Complete => {
                        let mut reply = decoder.finish(&self.info.price)?;
                        reply.request_id = request_id(&response).or(reply.request_id);
                        return Ok((reply, response));
                    }
                }
            }
            watchdog.check()?;
        }
        decoder.finish(&self.info.price).map(|reply| (reply, response))
    }

    fn subject(&self) -> Subject<'_> {
        Subject { model: &self.info.id, key: self.key.expose_secret(), key_source: self.key_source }
    }
}

fn request_id(response: &Response) -> Option<String> {
    response.headers().get("request-id")?.to_str().ok().map(str::to_owned)
}
