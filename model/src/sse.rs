//! Server-sent events: bytes in, events out.
//!
//! It handles line endings (LF, CRLF, CR), comments, events split anywhere, and the cap on the size
//! of one event. It does no I/O and does not parse the data.

use std::borrow::Cow;

/// The most bytes of one event, including line ends.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event, borrowed from the buffer it came in.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The text of the `event:` line; empty without one.
    pub name: &'a [u8],
    /// The `data:` lines, joined with line feeds. The bytes are not checked.
    pub data: Cow<'a, [u8]>,
}

/// An event is larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {} MiB", MAX_EVENT_BYTES >> 20)]
pub struct TooLong;

/// Assembles events from the chunks of a body, however it was split.
///
/// Every byte is copied once and searched once, so a large event that comes in small chunks costs
/// no more than one that comes at once.
#[derive(Debug, Default)]
pub struct Events {
    buffer: Vec<u8>,
    /// Where the event that is being read begins.
    start: usize,
    /// Where the line that is being read begins.
    line: usize,
    /// Everything before has been searched for a line end.
    searched: usize,
    /// The last line ended with CR: an LF that follows belongs to that line end.
    after_cr: bool,
    /// The event that is being read has a `data:` line.
    has_data: bool,
    /// The first line has been seen: only that one may begin with a byte order mark.
    begun: bool,
}

impl Events {
    /// Adds the next bytes of the body. Call [`Events::next`] until it has no more.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.line -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// Takes the next complete event. Events without data are skipped.
    ///
    /// # Errors
    /// When the event is too large, whether or not its end has been seen.
    #[expect(clippy::should_implement_trait, reason = "an event borrows from the buffer")]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, TooLong> {
        while let Some((from, to)) = self.next_block()? {
            if std::mem::take(&mut self.has_data) {
                return Ok(Some(parse(&self.buffer[from..to])));
            }
        }
        Ok(None)
    }

    /// The range of the next run of lines that a blank line ends.
    fn next_block(&mut self) -> Result<Option<(usize, usize)>, TooLong> {
        loop {
            if self.after_cr && self.line < self.buffer.len() {
                self.after_cr = false;
                if self.buffer[self.line] == b'\n' {
                    self.line += 1;
                    self.searched = self.searched.max(self.line);
                    if self.start + 1 == self.line {
                        self.start = self.line;
                    }
                }
            }
            let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
            let Some(end) = found.map(|offset| self.searched + offset) else {
                self.searched = self.buffer.len();
                if self.buffer.len() - self.start > MAX_EVENT_BYTES {
                    return Err(TooLong);
                }
                return Ok(None);
            };
            if !std::mem::replace(&mut self.begun, true)
                && self.buffer[..end].starts_with(BYTE_ORDER_MARK)
            {
                self.start = BYTE_ORDER_MARK.len();
                self.line = self.start;
            }
            self.after_cr = self.buffer[end] == b'\r';
            let blank = end == self.line;
            self.has_data |= field(&self.buffer[self.line..end]).0 == b"data";
            self.line = end + 1;
            self.searched = end + 1;
            if self.line - self.start > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
            if blank {
                let from = std::mem::replace(&mut self.start, self.line);
                return Ok(Some((from, end)));
            }
        }
    }
}

/// Splits a line into its field and value. A comment has an empty field.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let (field, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (field, value.strip_prefix(b" ").unwrap_or(value))
}

fn parse(mut block: &[u8]) -> Event<'_> {
    let mut event = Event { name: b"", data: Cow::Borrowed(b"") };
    let mut seen_data = false;
    while !block.is_empty() {
        // A CRLF gives an empty line here, which has no field, so the two need no distinction.
        let end = memchr::memchr2(b'\n', b'\r', block).unwrap_or(block.len());
        let (name, value) = field(&block[..end]);
        match name {
            b"event" => event.name = value,
            b"data" if seen_data => {
                let data = event.data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            b"data" => {
                event.data = Cow::Borrowed(value);
                seen_data = true;
            }
            _ => {}
        }
        block = block.get(end + 1..).unwrap_or_default();
    }
    event
}
