//! What a good client does about a fault. Data for grids of behaviours × faults.

use std::fmt;

/// What a good client does about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The reply arrives as if nothing had happened.
    Unharmed,
    /// The call fails with one of these, nothing of the reply is used, and it is made again.
    Retried(&'static [Failure]),
    /// The call fails with one of these, and making it again would not help.
    Refused(&'static [Failure]),
    /// The reply is complete in all that matters: it may be taken as it is, or the call fails
    /// with one of these and is made again.
    Tolerated(&'static [Failure]),
    /// The spoilt tool call is not run. Either the model is told so and goes on, or the call
    /// fails with one of these and is made again.
    NeverRun(&'static [Failure]),
}

impl Expectation {
    /// The failures that a client may report.
    pub fn failures(self) -> &'static [Failure] {
        match self {
            Expectation::Unharmed => &[],
            Expectation::Retried(failures)
            | Expectation::Refused(failures)
            | Expectation::Tolerated(failures)
            | Expectation::NeverRun(failures) => failures,
        }
    }
}

/// In words that go on from “a good client …”.
impl fmt::Display for Expectation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures: Vec<String> = self.failures().iter().map(Failure::to_string).collect();
        let failures = failures.join(" or ");
        match self {
            Expectation::Unharmed => write!(out, "takes the reply"),
            Expectation::Retried(_) => write!(out, "tries again: {failures}"),
            Expectation::Refused(_) => write!(out, "gives up: {failures}"),
            Expectation::Tolerated(_) => write!(out, "takes the reply, or tries again: {failures}"),
            Expectation::NeverRun(_) => {
                write!(out, "does not run the call, or tries again: {failures}")
            }
        }
    }
}

/// How a call fails, as a client should tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider wants fewer requests.
    RateLimited,
    /// The provider is in trouble.
    Overloaded,
    /// This request will always be refused.
    Rejected,
    /// The key is not accepted.
    Unauthorised,
    /// The transcript does not fit.
    ContextOverflow,
    /// There was no answer at all.
    Unreachable,
    /// Nothing came for too long.
    Stalled,
    /// The reply ended too early.
    Cut,
    /// The reply is not what the wire format says.
    Malformed,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Failure::RateLimited => "rate limited",
            Failure::Overloaded => "overloaded",
            Failure::Rejected => "rejected",
            Failure::Unauthorised => "unauthorised",
            Failure::ContextOverflow => "context overflow",
            Failure::Unreachable => "unreachable",
            Failure::Stalled => "stalled",
            Failure::Cut => "cut off",
            Failure::Malformed => "malformed",
        })
    }
}

/// What a reply must hold for a fault to have something to spoil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it spoils any reply.
    Nothing,
    /// A text.
    Text,
    /// A tool call.
    Call,
    /// Two tool calls.
    TwoCalls,
}
