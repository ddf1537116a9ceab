//! An answer while its body is read: from the network, or played back from a cassette.
//!
//! The only place where a recording sees the answers of a provider.

use super::pool::ConnectionSlot;
use super::root_cause;
use crate::cassette::{ExchangeRecording, Playback};
use crate::fault::{Fault, Kind};
use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// An answer whose head has come.
pub(crate) struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
}

enum Body {
    Network {
        response: Box<reqwest::Response>,
        /// The recording, if there is one.
        take: Option<ExchangeRecording>,
        /// Kept until the body is done with.
        _seat: ConnectionSlot,
    },
    Cassette(Playback),
}

impl Response {
    /// An answer of a server; `take` records it.
    pub(super) fn live(
        mut response: reqwest::Response,
        seat: ConnectionSlot,
        take: Option<ExchangeRecording>,
    ) -> Self {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut take = take;
        if let Some(take) = &mut take {
            take.head(status.as_u16(), &headers);
        }
        let body = Body::Network { response: Box::new(response), take, _seat: seat };
        Response { status, headers, body }
    }

    /// An answer that was recorded.
    pub(super) fn played(status: StatusCode, headers: HeaderMap, playback: Playback) -> Self {
        Response { status, headers, body: Body::Cassette(playback) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    #[cfg(test)]
    pub(super) fn version(&self) -> reqwest::Version {
        match &self.body {
            Body::Network { response, .. } => response.version(),
            Body::Cassette(_) => reqwest::Version::HTTP_11,
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        match &mut self.body {
            Body::Cassette(playback) => playback.next(),
            Body::Network { response, take, .. } => {
                let chunk = response.chunk().await;
                let chunk = chunk.map_err(|error| Fault::new(Kind::Cut, root_cause(&error)));
                if let Some(take) = take {
                    match &chunk {
                        Ok(Some(bytes)) => take.chunk(bytes),
                        Ok(None) => take.complete(),
                        Err(fault) => take.failed(fault),
                    }
                }
                chunk
            }
        }
    }
}
