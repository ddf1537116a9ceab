//! Checks a database file before the engine opens it, which may change the file: is it an SQLite
//! file, complete, a Posse database, and of a version that can be used? Never writes.

use crate::StoreError;
use crate::sql::SCHEMA;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The application id of Posse databases: `POSS`.
pub(super) const APPLICATION: u32 = 0x504f_5353;

const MAGIC: &[u8] = b"SQLite format 3\0";
/// The length of the file header and the header of the first page, which holds the schema.
const LENGTH: usize = 108;
/// In the header: the file has a write-ahead log.
const WITH_LOG: u8 = 2;
const WAL_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// Fails if the file must not be opened. A file that is empty is fine. Returns the version of its
/// schema, or 0 if it has none.
pub(super) fn inspect(file: &Path, path: &str) -> Result<i64, StoreError> {
    let unusable = |reason: String| StoreError::Unusable { path: path.to_owned(), reason };
    let corrupt = |reason: String| StoreError::Corrupt { path: path.to_owned(), reason };
    let database = File::open(file).map_err(|error| unusable(error.to_string()))?;
    let length = database.metadata().map_err(|error| unusable(error.to_string()))?.len();
    if length == 0 {
        return Ok(0);
    }
    let mut header = [0; LENGTH];
    let read = database.read_at(&mut header, 0).map_err(|error| unusable(error.to_string()))?;
    if !header.starts_with(&MAGIC[..read.min(MAGIC.len())]) {
        return Err(unusable("it is not a Posse database".to_owned()));
    }
    if read < LENGTH {
        return Err(corrupt(format!("it ends after {length} bytes")));
    }
    // With a write-ahead log, the engine makes a rollback journal only while it creates the file. It would
    // replace all pages by what the journal has.
    let has_log = header[18] == WITH_LOG && length > page_size(&header);
    let mut journal = file.as_os_str().to_owned();
    journal.push("-journal");
    if has_log && std::fs::symlink_metadata(&journal).is_ok_and(|found| found.len() > 0) {
        let journal = Path::new(&journal).display();
        return Err(unusable(format!(
            "{journal} lies beside it, which Posse did not make and which would replace its content; find out \
             who made it, and move it away"
        )));
    }
    let mut wal = file.as_os_str().to_owned();
    wal.push("-wal");
    // The last commits may be only in the write-ahead log.
    match File::open(wal).ok().and_then(|wal| first_page_in(&wal).ok().flatten()) {
        Some(later) => header = later,
        None => {
            let claimed = u64::from(number(&header, 28)) * page_size(&header);
            let is_valid = number(&header, 24) == number(&header, 92);
            if is_valid && length < claimed {
                return Err(corrupt(format!("it has {length} of its {claimed} bytes")));
            }
        }
    }
    let found = i64::from(number(&header, 60));
    let application = number(&header, 68);
    let has_tables = header[100] != 0x0d || header[103..105] != [0, 0];
    if application != APPLICATION && (has_tables || application != 0 || found != 0) {
        return Err(unusable(
            "it is not a Posse database: it belongs to another program".to_owned(),
        ));
    }
    SCHEMA.check(found, path)?;
    Ok(found)
}

/// Returns the start of the first page as of its last commit in the write-ahead log, if there is
/// one. Frames of the current log have its salt. The last frame of a commit marks it.
fn first_page_in(wal: &File) -> io::Result<Option<[u8; LENGTH]>> {
    let mut header = [0; WAL_HEADER as usize];
    if wal.metadata()?.len() < WAL_HEADER {
        return Ok(None);
    }
    wal.read_exact_at(&mut header, 0)?;
    let page = u64::from(number(&header, 8));
    let (mut pending, mut committed) = (None, None);
    let mut offset = WAL_HEADER;
    let mut frame = [0; FRAME_HEADER as usize];
    while wal.read_exact_at(&mut frame, offset).is_ok() && frame[8..16] == header[16..24] {
        if number(&frame, 0) == 1 {
            let mut content = [0; LENGTH];
            if wal.read_exact_at(&mut content, offset + FRAME_HEADER).is_err() {
                break;
            }
            pending = Some(content);
        }
        if number(&frame, 4) != 0 {
            committed = pending.or(committed);
        }
        offset += FRAME_HEADER + page;
    }
    Ok(committed.filter(|content| content.starts_with(MAGIC)))
}

/// Returns the page size. The value 1 means 65,536.
fn page_size(header: &[u8]) -> u64 {
    match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
