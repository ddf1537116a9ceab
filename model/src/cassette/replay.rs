//! Replays a cassette: each request gets the answer that was recorded for the same request.

use super::difference::{Against, Difference, compare};
use super::line::{Answered, Asked, Content, End, Exchange, Line, RecordedModel, VERSION};
use super::recording::asked;
use super::{CassetteError, Habits, Places, kind_of, passing};
use crate::fault::{Fault, Kind};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use url::Url;

/// Fields that are not compared, because they depend on the length or the bytes of the prompt, and
/// so on the name of the folder: caps on the output when money is limited, and the name of the
/// prompt in the provider's cache.
const DERIVED: [&str; 4] =
    ["max_tokens", "max_completion_tokens", "max_output_tokens", "prompt_cache_key"];

/// A cassette that is being replayed.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    pub(super) places: Places,
    pub(super) habits: OnceLock<Habits>,
    cast: Vec<RecordedModel>,
    /// True when the last line was cut off.
    cut: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In the order in which the requests were made.
    exchanges: Vec<Recorded>,
    requests: u64,
    difference: Option<Difference>,
}

#[derive(Debug)]
struct Recorded {
    exchange: Exchange,
    /// The texts in the request that differ in every run.
    passing: Vec<String>,
    used: bool,
}

impl Replay {
    /// Reads the cassette at `path`, for a run in `places`.
    ///
    /// # Errors
    /// When it cannot be read, or is not a cassette of this version. A truncated last line is
    /// ignored.
    pub fn open(path: impl Into<PathBuf>, places: Places) -> Result<Self, CassetteError> {
        let path = path.into();
        let bytes = std::fs::read(&path).map_err(|source| CassetteError::Unusable {
            path: path.clone(),
            deed: "read",
            source,
        })?;
        let mut replay = Replay {
            path,
            places,
            habits: OnceLock::new(),
            cast: Vec::new(),
            cut: false,
            state: Mutex::new(State { exchanges: Vec::new(), requests: 0, difference: None }),
        };
        replay.load(&bytes)?;
        Ok(replay)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), CassetteError> {
        let complete = bytes.ends_with(b"\n");
        let lines: Vec<&[u8]> = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .collect();
        let Some((head, rest)) = lines.split_first() else {
            return Err(self.not_one("it is empty"));
        };
        self.check_head(head)?;
        let mut exchanges = Vec::new();
        for (index, line) in rest.iter().enumerate() {
            match serde_json::from_slice(line) {
                Ok(Line::Exchange(exchange)) => {
                    let passing = Vec::new();
                    exchanges.push(Recorded { exchange: *exchange, passing, used: false });
                }
                Ok(Line::Model(model)) => self.cast.push(*model),
                Ok(Line::Cassette(_)) => {
                    return Err(self.damaged(index + 2, "a second head".to_owned()));
                }
                Err(_) if !complete && index + 1 == rest.len() => self.cut = true,
                Err(error) => return Err(self.damaged(index + 2, error.to_string())),
            }
        }
        for recorded in &mut exchanges {
            strip_derived(&mut recorded.exchange.request.body);
            recorded.passing = passing::level(&mut recorded.exchange.request.body);
        }
        exchanges.sort_by_key(|recorded| recorded.exchange.number);
        self.state().exchanges = exchanges;
        Ok(())
    }

    fn check_head(&self, line: &[u8]) -> Result<(), CassetteError> {
        let head: Value = serde_json::from_slice(line)
            .map_err(|error| self.not_one(&format!("its first line is not JSON: {error}")))?;
        match head["cassette"]["version"].as_u64() {
            Some(VERSION) => Ok(()),
            Some(version) => Err(CassetteError::Version { path: self.path.clone(), version }),
            None => Err(self.not_one("its first line names no version")),
        }
    }

    fn not_one(&self, reason: &str) -> CassetteError {
        CassetteError::NotOne { path: self.path.clone(), reason: reason.to_owned() }
    }

    fn damaged(&self, line: usize, reason: String) -> CassetteError {
        CassetteError::Damaged { path: self.path.clone(), line, reason }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when its last line is truncated, for example because the recording was killed.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns where the replay differs from the recording, if it does. Then all later requests
    /// fail.
    pub fn difference(&self) -> Option<Difference> {
        self.state().difference.clone()
    }

    /// Returns how many recorded requests were not made.
    pub fn unused(&self) -> usize {
        self.state().exchanges.iter().filter(|recorded| !recorded.used).count()
    }

    /// The models that were recorded, the first one first.
    pub(crate) fn cast(&self) -> &[RecordedModel] {
        &self.cast
    }

    /// The answer to a request, or the fault that it ended in.
    ///
    /// # Errors
    /// Also when the request was not recorded; then all later requests fail too.
    pub(crate) fn answer(
        &self,
        url: &Url,
        wire: &str,
        body: &[u8],
    ) -> Result<(StatusCode, HeaderMap, Playback), Fault> {
        let habits = self.habits.get_or_init(|| Habits::of(&self.places));
        let mut sent = asked(habits, url, wire, body);
        strip_derived(&mut sent.body);
        let now = passing::level(&mut sent.body);
        let mut state = self.state();
        state.requests += 1;
        if state.difference.is_none() {
            let fits =
                |recorded: &&mut Recorded| !recorded.used && recorded.exchange.request == sent;
            if let Some(recorded) = state.exchanges.iter_mut().find(fits) {
                recorded.used = true;
                return play(recorded, &now, habits);
            }
            let difference = self.differs(&state, &sent);
            state.difference = Some(difference);
        }
        let brief = state.difference.as_ref().map(Difference::brief).unwrap_or_default();
        let reason = format!("{}: {brief}", self.path.display());
        Err(Fault { kind: Kind::Rejected, reason, hint: "; record it again if that is meant" })
    }

    /// How `sent` differs from the recorded request that is most like it.
    fn differs(&self, state: &State, sent: &Asked) -> Difference {
        let request = state.requests;
        let unused = state.exchanges.iter().filter(|recorded| !recorded.used);
        let compared = unused.map(|recorded| {
            let exchange = &recorded.exchange;
            let (alike, against) = compare(&exchange.request, sent);
            (alike, exchange.number, against)
        });
        // Of several that are equally similar, the first.
        let nearest =
            compared.max_by_key(|(alike, number, _)| (*alike, std::cmp::Reverse(*number)));
        let against = match nearest {
            Some((_, number, Some(Against::Recorded { at, recorded, sent, .. }))) => {
                Against::Recorded { number, at, recorded, sent }
            }
            _ => Against::Nothing { recorded: state.exchanges.len(), why: self.why(state, sent) },
        };
        Difference { request, against }
    }

    /// Why no more was recorded.
    fn why(&self, state: &State, sent: &Asked) -> &'static str {
        let same = state.exchanges.iter().rfind(|recorded| recorded.exchange.request == *sent);
        match same {
            Some(recorded) if recorded.exchange.end == End::Left => {
                "; the same request was given up when it was recorded: cancelled, or stalled"
            }
            _ if self.cut => "; the recording was cut off",
            _ => "",
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

fn strip_derived(body: &mut Value) {
    if let Value::Object(fields) = body {
        for name in DERIVED {
            fields.shift_remove(name);
        }
        if let Some(Value::Object(config)) = fields.get_mut("generationConfig") {
            config.shift_remove("maxOutputTokens");
        }
    }
}

/// The result of a recorded exchange, with the texts of `now`.
fn play(
    recorded: &Recorded,
    now: &[String],
    habits: &Habits,
) -> Result<(StatusCode, HeaderMap, Playback), Fault> {
    let exchange = &recorded.exchange;
    let end = match &exchange.end {
        End::Complete => Ok(()),
        End::Left => Err(Fault::new(Kind::Stalled(habits.stall), "")),
        End::Failed { kind, reason } => Err(Fault::new(kind_of(kind), reason.clone())),
    };
    let Some(Answered { status, headers, body }) = &exchange.response else {
        // An exchange without an answer has a fault, unless someone changed the cassette.
        return Err(end.err().unwrap_or_else(|| Fault::new(Kind::Cut, "there was no answer")));
    };
    let status = StatusCode::from_u16(*status).map_err(|_| unreadable("a status that is none"))?;
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(unreadable("a header that is none"));
        };
        map.insert(name, value);
    }
    let body = match body {
        Content::Text(text) => passing::today(text, &recorded.passing, now),
        Content::Base64(_) => body.clone(),
    };
    let body = match &body {
        Content::Text(text) => habits.scrub.fill(text).into_owned().into_bytes(),
        Content::Base64(text) => Content::decode(text).ok_or_else(|| unreadable("no base64"))?,
    };
    Ok((status, map, Playback { body: Some(body.into()), end: Some(end) }))
}

fn unreadable(what: &str) -> Fault {
    Fault::new(Kind::Rejected, format!("the cassette holds {what}"))
}

/// The body of a recorded answer, to be read as if it came from the network.
pub(crate) struct Playback {
    body: Option<Bytes>,
    end: Option<Result<(), Fault>>,
}

impl Playback {
    /// The next bytes; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        if let Some(body) = self.body.take().filter(|body| !body.is_empty()) {
            return Ok(Some(body));
        }
        match self.end.take() {
            Some(Err(fault)) => Err(fault),
            _ => Ok(None),
        }
    }
}
