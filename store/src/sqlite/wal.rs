//! Detects lost commits in the write-ahead log. The engine reads the log up to the first changed
//! frame, and silently drops all commits after it. So the log is checked before the engine opens
//! it, and compared with the shared index. Writes only the note about the loss.

use crate::StoreError;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME: usize = 24;
/// The magic number of the log. Its last bit tells the byte order of the checksums.
const MARK: u32 = 0x377f_0682;
/// The length of two copies of the index header, and the number of frames that are in the file.
const INDEX: usize = 100;
const COPY: usize = 48;
/// A log with more commits than this after a changed frame was not cut by a loss of power, because
/// each commit is on the disk before the next one begins.
const CUT_SHORT: u64 = 1;

/// Stored commits that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The first frame that cannot be read; 0 for the header of the log.
    frame: u64,
    /// The number of commits in this frame and after it, as far as known.
    commits: u64,
    /// True if the log is missing.
    gone: bool,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.gone {
            return write!(f, "its write-ahead log (`-wal`) is gone, and what was stored in it");
        }
        let commits = match self.commits {
            0 | 1 => "what was stored last is lost".to_owned(),
            commits => format!("the last {commits} commits are lost"),
        };
        match self.frame {
            0 => write!(f, "the head of its write-ahead log was changed: {commits}"),
            frame => write!(f, "frame {frame} of its write-ahead log was changed: {commits}"),
        }
    }
}

/// What the shared index says about the log.
struct Index {
    salt: [u8; 8],
    /// The last committed frame.
    last: u64,
    /// The last frame that is in the file too.
    filed: u64,
}

/// The content of the log.
#[derive(Default)]
struct Log {
    salt: Option<[u8; 8]>,
    /// The last valid frame that ends a commit.
    end: u64,
    /// The number of commits after the first invalid frame.
    behind: u64,
}

/// Returns what the log of `database` has lost. Call it before the engine opens the database,
/// because the engine then rebuilds the index from the valid frames.
pub(super) fn lost(database: &Path) -> io::Result<Option<Lost>> {
    let index = read_index(&beside(database, "-shm"));
    let file = match File::open(beside(database, "-wal")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // At a clean close the engine removes the index first.
            let missing = index.is_some_and(|index| index.last > index.filed);
            return Ok(missing.then_some(Lost { frame: 0, commits: 0, gone: true }));
        }
        Err(error) => return Err(error),
    };
    let log = read_log(&file, page_size(database)?)?;
    let told = index.filter(|index| log.salt.is_none_or(|salt| salt == index.salt));
    let is_lost = match told {
        Some(index) => log.end < index.last,
        None => log.behind > CUT_SHORT,
    };
    let frame = if log.salt.is_some() { log.end + 1 } else { 0 };
    Ok(is_lost.then_some(Lost { frame, commits: log.behind, gone: false }))
}

/// Like [`lost`], while other processes may write: returns only what several checks find.
pub(super) fn lost_meanwhile(database: &Path) -> io::Result<Option<Lost>> {
    let mut found = lost(database)?;
    for _ in 0..2 {
        if found.is_some() && lost(database)? != found {
            found = None;
        }
    }
    Ok(found)
}

fn read_index(path: &Path) -> Option<Index> {
    let mut bytes = [0; INDEX];
    File::open(path).ok()?.read_exact_at(&mut bytes, 0).ok()?;
    // The engine writes the second copy first. If a process died in between, it had not
    // acknowledged the newer state.
    let copy = [&bytes[..COPY], &bytes[COPY..2 * COPY]].into_iter().find(|copy| {
        let sum = checksum(&copy[..40], (0, 0), u32::from_ne_bytes);
        copy[12] == 1 && (native(copy, 40), native(copy, 44)) == sum
    })?;
    let salt = copy[32..40].try_into().ok()?;
    let (last, filed) = (u64::from(native(copy, 16)), u64::from(native(&bytes, 96)));
    Some(Index { salt, last, filed })
}

fn read_log(file: &File, page: usize) -> io::Result<Log> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    let mut log = Log::default();
    if !fill(&mut reader, &mut header)? {
        return Ok(log);
    }
    let order = if big(&header, 0) & 1 == 0 { u32::from_le_bytes } else { u32::from_be_bytes };
    let mut sum = checksum(&header[..24], (0, 0), order);
    let is_sound = big(&header, 0) & !1 == MARK
        && big(&header, 8) as usize == page
        && sum == (big(&header, 24), big(&header, 28));
    let mut frame = vec![0; FRAME + page];
    let (mut number, mut believed) = (0, is_sound);
    let mut salt: [u8; 8] = header[16..24].try_into().unwrap_or_default();
    log.salt = is_sound.then_some(salt);
    while fill(&mut reader, &mut frame)? {
        number += 1;
        if !is_sound && number == 1 {
            salt = frame[8..16].try_into().unwrap_or_default();
        }
        let is_commit = big(&frame, 4) != 0;
        let is_ours = frame[8..16] == salt;
        if believed {
            sum = checksum(&frame[FRAME..], checksum(&frame[..8], sum, order), order);
            believed = is_ours && big(&frame, 0) != 0 && sum == (big(&frame, 16), big(&frame, 20));
        }
        if believed && is_commit {
            log.end = number;
        }
        if !believed && is_ours && is_commit {
            log.behind += 1;
        }
    }
    Ok(log)
}

/// Fills `buffer`, or returns false at the end of the file.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// Continues the checksum that the engine uses in the log.
fn checksum(bytes: &[u8], from: (u32, u32), order: fn([u8; 4]) -> u32) -> (u32, u32) {
    let (mut first, mut second) = from;
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| order([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        first = first.wrapping_add(word(0)).wrapping_add(second);
        second = second.wrapping_add(word(4)).wrapping_add(first);
    }
    (first, second)
}

/// Returns the page size of the database. The value 1 means 65,536.
fn page_size(database: &Path) -> io::Result<usize> {
    let mut bytes = [0; 2];
    File::open(database)?.read_exact_at(&mut bytes, 16)?;
    Ok(match u16::from_be_bytes(bytes) {
        1 => 65_536,
        size => usize::from(size),
    })
}

fn big(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn native(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The file next to the database that records the loss until a person rebuilds or restores it. The
/// engine itself forgets the loss as soon as it opens the database.
pub(super) fn note_of(database: &Path) -> PathBuf {
    beside(database, "-damage")
}

/// Returns the recorded loss.
pub(super) fn noted(database: &Path) -> Option<String> {
    let text = std::fs::read(note_of(database)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line: String = text.lines().next().unwrap_or_default().chars().take(500).collect();
    Some(if line.is_empty() { "it is noted as damaged".to_owned() } else { line })
}

/// Records the loss for the next process that opens the database.
pub(super) fn note(database: &Path, lost: &Lost) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(note_of(database))?;
    writeln!(file, "{lost}")?;
    file.sync_all()
}

/// Returns the error for requests to write.
pub(super) fn refusal(path: &str, reason: &str) -> StoreError {
    StoreError::CommitsLost { path: path.to_owned(), reason: reason.to_owned() }
}

/// Returns the path of the file next to `database` with this ending.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
