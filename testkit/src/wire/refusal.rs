//! Why a request is refused, before it has a wire's form.

use crate::script::Reply;

/// An error to be told to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// The type of the error; it follows from the status if not given.
    pub(super) kind: Option<String>,
    /// Which parameter is wrong, for wires that say so apart.
    pub(super) param: Option<String>,
    /// A word for what is wrong with it, for wires that have one.
    pub(super) code: Option<String>,
    /// Seconds to wait, for wires that say so in the document.
    pub(super) retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Refusal { status, message: message.into(), ..Refusal::default() }
    }

    /// An invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(400, message)
    }

    pub(super) fn param(self, param: impl Into<String>) -> Self {
        Refusal { param: Some(param.into()), ..self }
    }

    pub(super) fn code(self, code: &str) -> Self {
        Refusal { code: Some(code.to_owned()), ..self }
    }

    /// An error that a script gives.
    pub(super) fn scripted(reply: &Reply, status: u16, kind: Option<&str>, message: &str) -> Self {
        let waits = reply.headers.iter().find(|(name, _)| name == "retry-after");
        Refusal {
            kind: kind.map(str::to_owned),
            code: kind.map(str::to_owned),
            retry_after: waits.and_then(|(_, value)| value.parse().ok()),
            ..Refusal::new(status, message)
        }
    }
}
