//! A response and how it is sent: its pace, its gate and its fault.

use crate::cache::Written;
use crate::gate::Gate;
use crate::http::Response;
use crate::script::Reply;
use crate::script::fault::Fault;
use crate::turnstile::Seat;
use std::time::Duration;

/// A response and its pace.
#[derive(Debug)]
pub(crate) struct Performance {
    pub(crate) response: Response,
    pub(crate) latency: Duration,
    pub(crate) token_delay: Duration,
    pub(crate) held_by: Option<Gate>,
    pub(crate) held_after: Option<(usize, Gate)>,
    pub(crate) fault: Option<&'static Fault>,
    /// The prefix that others can read from the cache once it has begun.
    pub(crate) written: Option<Written>,
    /// Counts as a request in flight until the response is sent.
    pub(crate) seat: Option<Seat>,
}

impl Performance {
    /// The response at the pace of the reply, with the reply's headers and its fault.
    pub(crate) fn new(reply: &Reply, mut response: Response, written: Option<Written>) -> Self {
        for (name, value) in &reply.headers {
            response.headers.retain(|(set, _)| set != name);
            response.headers.push((name.clone(), value.clone()));
        }
        Performance {
            response,
            latency: reply.latency,
            token_delay: reply.token_delay,
            held_by: reply.held_by.clone(),
            held_after: reply.held_after.clone(),
            fault: reply.faulty(),
            written,
            seat: None,
        }
    }
}

impl From<Response> for Performance {
    fn from(response: Response) -> Self {
        Performance {
            response,
            latency: Duration::ZERO,
            token_delay: Duration::ZERO,
            held_by: None,
            held_after: None,
            fault: None,
            written: None,
            seat: None,
        }
    }
}
