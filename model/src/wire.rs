//! Wire formats: pure codecs between a transcript and the bytes of a provider.
//!
//! A wire writes a request and reads the events of a reply. It does no I/O, knows no vendor's
//! address, and loses nothing: what a provider sent goes back as it was and in its order.

pub mod anthropic;

/// What an event did to the reply that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: a ping, or an event nobody knows. Such events do not keep a stream alive.
    None,
    /// The reply has moved on.
    Moved,
    /// The reply is complete.
    Complete,
}
