//! Cassettes: calls to providers, recorded into a file and replayed without the provider.
//!
//! A cassette works at the level of HTTP, so it covers retries, errors and every wire. It never
//! contains headers of requests, keys, or paths of this machine. It never guesses an answer: a
//! request that was not recorded fails the replay.

mod difference;
mod line;
mod passing;
mod recording;
mod replay;
mod scrub;
mod secret;
mod stream;

pub use difference::{Against, Difference};
pub(crate) use line::RecordedModel;
pub(crate) use recording::ExchangeRecording;
pub use recording::Recording;
pub(crate) use replay::Playback;
pub use replay::Replay;
pub use scrub::Places;

use crate::fault::Kind;
use line::VERSION;
use scrub::Scrub;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Records the calls of models, or answers them in place of the network.
#[derive(Clone, Debug)]
pub enum Cassette {
    /// Makes and records every call.
    Recording(Arc<Recording>),
    /// Makes no call, and answers from the recording.
    Replay(Arc<Replay>),
}

/// The settings that a cassette gets from its models.
#[derive(Debug)]
struct Habits {
    scrub: Scrub,
    /// How long a reply may make no progress. A replay of an abandoned reply makes none for this
    /// time.
    stall: Duration,
}

impl Habits {
    /// Without models there are no keys to hide.
    fn of(places: &Places) -> Self {
        let keys: [&str; 0] = [];
        Habits { scrub: Scrub::new(places, keys), stall: Duration::ZERO }
    }
}

impl Cassette {
    /// Sets the secrets and the stall time, before the first call. `others` are further texts that
    /// must not be written.
    pub(crate) fn attach<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a str>,
        others: &[Vec<u8>],
        stall: Duration,
    ) {
        let (places, habits) = match self {
            Cassette::Recording(recording) => (&recording.places, &recording.habits),
            Cassette::Replay(replay) => (&replay.places, &replay.habits),
        };
        // Two sets of models may share a cassette; they have the same keys.
        let scrub = Scrub::new(places, keys).and(others.iter().map(Vec::as_slice));
        let _ = habits.set(Habits { scrub, stall });
    }

    /// Returns the replay, if this is one.
    pub fn replay(&self) -> Option<&Arc<Replay>> {
        match self {
            Cassette::Replay(replay) => Some(replay),
            Cassette::Recording(_) => None,
        }
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// It cannot be read or written.
    #[error("cannot {deed} the cassette {}: {source}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What failed.
        deed: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another file is in its place.
    #[error("{} exists and is not a cassette; it is left as it is", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// It is not a cassette.
    #[error("{} is not a cassette: {reason}", path.display())]
    NotOne {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It has another version.
    #[error(
        "{} is a cassette of version {version}, and this posse reads version {VERSION}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// One of its lines cannot be read.
    #[error("line {line} of the cassette {} cannot be read: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Returns the name of a network fault in a cassette.
fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Unreachable => "unreachable",
        Kind::Refused => "refused",
        Kind::Unanswered => "unanswered",
        Kind::Malformed => "malformed",
        _ => "cut",
    }
}

/// Returns the network fault with this name.
fn kind_of(name: &str) -> Kind {
    match name {
        "unreachable" => Kind::Unreachable,
        "refused" => Kind::Refused,
        "unanswered" => Kind::Unanswered,
        "malformed" => Kind::Malformed,
        _ => Kind::Cut,
    }
}
