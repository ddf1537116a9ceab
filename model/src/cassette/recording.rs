//! Writing a cassette: a line for each exchange, as soon as it has ended.

use super::line::{Answered, Asked, Content, End, Exchange, Head, Line, RecordedModel, VERSION};
use super::{CassetteError, Habits, Places, name_of, stream};
use crate::fault::{Fault, Kind};
use parking_lot::{Mutex, MutexGuard};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use url::Url;

/// The headers of an answer that are kept.
const HEADERS: [&str; 9] = [
    "content-type",
    "content-encoding",
    "date",
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-request-id",
    "apim-request-id",
    "x-amzn-requestid",
];
const LIMITS: [&str; 3] = ["anthropic-ratelimit-", "x-ratelimit-", "x-tokenlimit-"];

/// A cassette that is being written. Only its owner can read the file.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    pub(super) places: Places,
    pub(super) habits: OnceLock<Habits>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    requests: u64,
    exchanges: u64,
    /// The models that can be called; written with the first request.
    cast: Vec<RecordedModel>,
    /// Why writing failed.
    broken: Option<io::Error>,
}

impl Recording {
    /// Begins a cassette at `path`. The first request replaces an older cassette there; any other
    /// file is left alone.
    ///
    /// # Errors
    /// When there is another file, or it cannot be written.
    pub fn create(path: impl Into<PathBuf>, places: Places) -> Result<Self, CassetteError> {
        let path = path.into();
        let unusable =
            |source| CassetteError::Unusable { path: path.clone(), deed: "write", source };
        if !is_free(&path).map_err(unusable)? {
            return Err(CassetteError::Taken { path });
        }
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path).map_err(unusable)?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(unusable)?;
        let state = State { file, requests: 0, exchanges: 0, cast: Vec::new(), broken: None };
        Ok(Recording { path, places, habits: OnceLock::new(), state: Mutex::new(state) })
    }

    /// Returns how many exchanges were written so far.
    ///
    /// # Errors
    /// When one could not be written.
    pub fn finish(&self) -> Result<u64, CassetteError> {
        let state = self.state();
        match &state.broken {
            None => Ok(state.exchanges),
            Some(error) => Err(CassetteError::Unusable {
                path: self.path.clone(),
                deed: "write",
                source: io::Error::new(error.kind(), error.to_string()),
            }),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a model that can be called from now on.
    pub(crate) fn cast(&self, model: RecordedModel) {
        let mut state = self.state();
        if !state.cast.iter().any(|known| known.id == model.id) {
            state.cast.push(model.clone());
            if state.requests > 0 {
                state.write(&Line::Model(Box::new(model)));
            }
        }
    }

    /// Notes a request that is about to be made.
    ///
    /// # Errors
    /// When the cassette cannot be written: then the request must not be made either.
    pub(crate) fn begin(
        self: &Arc<Self>,
        url: &Url,
        wire: &'static str,
        body: &[u8],
    ) -> Result<ExchangeRecording, Fault> {
        let request = asked(self.habits(), url, wire, body);
        let number = self.state().next();
        self.finish().map_err(|error| Fault::new(Kind::Rejected, error.to_string()))?;
        let recording = self.clone();
        let exchange = Exchange { number, request, response: None, end: End::Left };
        Ok(ExchangeRecording { recording, exchange: Some(Box::new(exchange)), body: Vec::new() })
    }

    fn habits(&self) -> &Habits {
        self.habits.get_or_init(|| Habits::of(&self.places))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// The number of a request that is about to be made. With the first one the cassette begins.
    fn next(&mut self) -> u64 {
        self.requests += 1;
        if self.requests == 1 {
            if let Err(error) = self.file.set_len(0) {
                self.broken = Some(error);
            }
            let posse = env!("CARGO_PKG_VERSION").to_owned();
            self.write(&Line::Cassette(Head { version: VERSION, posse }));
            for model in self.cast.clone() {
                self.write(&Line::Model(Box::new(model)));
            }
        }
        self.requests
    }

    /// Appends a line, if possible whole or not at all. After a failure nothing more is written,
    /// because a cassette with a gap is useless.
    fn write(&mut self, line: &Line) {
        if self.broken.is_some() {
            return;
        }
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            self.file.write_all(&bytes)
        });
        match written {
            Ok(()) => self.exchanges += u64::from(matches!(line, Line::Exchange(_))),
            Err(error) => self.broken = Some(error),
        }
    }
}

/// Whether a cassette may be written at `path`: there is nothing, an empty file, or a cassette.
fn is_free(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A broken link is in the way: its author chose where the file would be.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(path.symlink_metadata().is_err());
        }
        Err(error) => return Err(error),
    };
    let mut first = Vec::new();
    let is_file = file.metadata()?.is_file();
    io::Read::take(BufReader::new(file), 4_096).read_until(b'\n', &mut first)?;
    Ok(is_file && (first.is_empty() || first.starts_with(b"{\"cassette\":")))
}

/// A request as it is written and compared.
pub(super) fn asked(habits: &Habits, url: &Url, wire: &str, body: &[u8]) -> Asked {
    let mut value = serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
    habits.scrub.value(&mut value);
    Asked {
        method: "POST".to_owned(),
        path: habits.scrub.path(url.path(), url.query()),
        wire: wire.to_owned(),
        body: value,
    }
}

/// One exchange while it happens. It is written when it has ended or is dropped.
pub(crate) struct ExchangeRecording {
    recording: Arc<Recording>,
    /// Until it is written.
    exchange: Option<Box<Exchange>>,
    body: Vec<u8>,
}

impl ExchangeRecording {
    /// The head of the answer has come.
    pub(crate) fn head(&mut self, status: u16, headers: &HeaderMap) {
        let Some(exchange) = &mut self.exchange else { return };
        let scrub = &self.recording.habits().scrub;
        let kept = headers.iter().filter(|(name, _)| {
            let name = name.as_str();
            HEADERS.contains(&name) || LIMITS.iter().any(|limit| name.starts_with(limit))
        });
        let headers: BTreeMap<String, String> = kept
            .filter_map(|(name, value)| {
                Some((name.to_string(), scrub.text(value.to_str().ok()?).into_owned()))
            })
            .collect();
        let body = Content::Text(String::new());
        exchange.response = Some(Answered { status, headers, body });
    }

    /// A piece of the body has come.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    /// The body has come to its end.
    pub(crate) fn complete(&mut self) {
        self.write(End::Complete);
    }

    /// The network or the server failed.
    pub(crate) fn failed(&mut self, fault: &Fault) {
        let scrub = &self.recording.habits().scrub;
        let reason = scrub.text(&format!("{}{}", fault.reason, fault.hint)).into_owned();
        self.write(End::Failed { kind: name_of(fault.kind).to_owned(), reason });
    }

    fn write(&mut self, end: End) {
        let Some(mut exchange) = self.exchange.take() else { return };
        exchange.end = end;
        if let Some(response) = &mut exchange.response {
            response.body = stream::content(&self.recording.habits().scrub, &self.body);
        }
        self.recording.state().write(&Line::Exchange(exchange));
    }
}

impl Drop for ExchangeRecording {
    fn drop(&mut self) {
        self.write(End::Left);
    }
}
