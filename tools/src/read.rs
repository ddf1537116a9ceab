//! The tool Read: returns a file as numbered lines, or as an image or PDF.

use crate::arguments::{Arguments, spec};
use crate::built_in::BuiltIn;
use crate::failure::{Failure, answer};
use crate::path_rules::Usage;
use crate::run_path::{RunFiles, RunPath, read_up_to};
use crate::{blocking, kind, text};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{About, Effect, Part, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

/// The default number of lines in a result.
const LINES: usize = 2000;
/// The maximum number of characters shown of a line.
const LINE_CHARACTERS: usize = 2000;
/// The maximum number of bytes of a result.
const RESULT_BYTES: usize = 100_000;
/// Larger files are read in pieces, and cannot be edited.
pub(crate) const WHOLE_FILE_BYTES: usize = 10 << 20;
/// Larger images and PDFs are not sent.
const SENT_BYTES: usize = 5 << 20;
/// Files up to this size are read directly in the call, because a thread would cost more.
const SMALL_BYTES: u64 = 128 << 10;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Reads a file: text as numbered lines (cat -n), images and PDFs as they \
                       are. Long files come in pieces.";
    spec(
        "Read",
        description,
        Effect::Read,
        json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string"},
                "offset": {"type": "integer", "description": "first line, from 1"},
                "limit": {"type": "integer", "minimum": 1, "description": "lines, default 2000"},
            },
            "required": ["file_path"],
        }),
    )
    .about(About::File("file_path".into()))
    .shown("{file_path} from line {offset>1}")
    .aliases(&["read", "read_file", "ReadFile", "view", "view_file", "open_file", "cat"])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(Read { files: run.files(&SPEC.name) })) };

pub(crate) struct Read {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        answer(self.read(input, context).await)
    }
}

/// The lines that a call asks for.
#[derive(Clone, Copy)]
struct Window {
    first: usize,
    lines: usize,
}

impl Read {
    async fn read(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, Failure> {
        let arguments = Arguments::check(&SPEC, input)?;
        let place = self.files.place(arguments.text("file_path"))?;
        let window = Window {
            first: arguments.count("offset").unwrap_or(1).max(1),
            lines: arguments.count("limit").unwrap_or(LINES),
        };
        let (file, metadata) = place.open_file(Usage::Read)?;
        fail::fail_point!("tool.read.opened");
        let size = metadata.len();
        if size <= SMALL_BYTES {
            return whole(&place, file, size, window);
        }
        blocking::interruptible(context, move |cancel| {
            if size <= WHOLE_FILE_BYTES as u64 {
                whole(&place, file, size, window)
            } else {
                piece(&place, file, size, window, cancel)
            }
        })
        .await
    }
}

/// Reads the whole file, records that the run has seen it, and shows the lines in the window.
fn whole(
    place: &RunPath,
    mut file: File,
    size: u64,
    window: Window,
) -> Result<ToolOutput, Failure> {
    let bytes = read_up_to(&mut file, size, WHOLE_FILE_BYTES + 1)
        .map_err(|error| Failure::from(place.explain(error)))?;
    if bytes.len() > WHOLE_FILE_BYTES {
        return Err(Failure(format!("{} grew while it was read; read it again", place.show())));
    }
    Ok(ToolOutput { seen: place.seen(&bytes), ..shown(place, &bytes, window)? })
}

/// What the model sees of a file with the content `bytes`.
fn shown(place: &RunPath, bytes: &[u8], window: Window) -> Result<ToolOutput, Failure> {
    if bytes.is_empty() {
        return Ok(ToolOutput::text(format!("[{} is empty]", place.show())));
    }
    if let Some(media_type) = kind::image_type(bytes) {
        return Ok(image(place, bytes, media_type));
    }
    if kind::is_pdf(bytes) {
        return Ok(pdf(place, bytes));
    }
    let Some(decoded) = text::decode(bytes) else {
        return Ok(ToolOutput::text(not_text(place, bytes, bytes.len() as u64)));
    };
    let mut page = Page::new(window, bytes.len());
    let mut lines = 0;
    for line in decoded.text.lines() {
        lines += 1;
        if lines >= window.first {
            page.push(lines, line);
        }
    }
    if window.first > lines {
        let path = place.show();
        return Err(Failure(format!(
            "{path} has {lines} lines; offset {} is past its end",
            window.first
        )));
    }
    if page.next <= lines {
        page.note(&format!(
            "Lines {}-{} of {lines}. Read on with offset={}.",
            window.first,
            page.next - 1,
            page.next
        ));
    }
    if let Some(note) = decoded.note() {
        page.note(&format!("Encoding: {note}."));
    }
    Ok(ToolOutput::text(page.text))
}

/// Shows the lines in the window of a file that is too large to hold in memory.
fn piece(
    place: &RunPath,
    file: File,
    size: u64,
    window: Window,
    cancel: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let failed = |error| Failure::from(place.explain(error));
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let beginning = reader.fill_buf().map_err(failed)?;
    let sent_whole = kind::is_pdf(beginning) || kind::image_type(beginning).is_some();
    if text::is_binary(beginning) || sent_whole {
        return Ok(ToolOutput::text(not_text(place, beginning, size)));
    }
    let mut page = Page::new(window, RESULT_BYTES);
    let mut line = Vec::new();
    let mut number = 0;
    let more = loop {
        if cancel.is_cancelled() {
            return Err(blocking::cancelled());
        }
        if !next_line(&mut reader, &mut line).map_err(failed)? {
            break false;
        }
        number += 1;
        if number >= window.first && !page.push(number, &String::from_utf8_lossy(&line)) {
            break true;
        }
    };
    if window.first > number {
        let path = place.show();
        return Err(Failure(format!(
            "{path} has {number} lines; offset {} is past its end",
            window.first
        )));
    }
    let size = kind::size(size);
    if more {
        page.note(&format!(
            "Lines {}-{} of a file of {size}, which is too large to edit. Read on with offset={}.",
            window.first,
            page.next - 1,
            page.next
        ));
    } else {
        page.note(&format!("The end of a file of {size}, which is too large to edit."));
    }
    Ok(ToolOutput::text(page.text))
}

/// Reads the next line without its end. Keeps no more of it than can be shown.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    const KEPT: usize = LINE_CHARACTERS * 4 + 4;
    line.clear();
    let mut any = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&part[..part.len().min(KEPT - line.len().min(KEPT))]);
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
        }
    }
}

/// The numbered lines of a result.
struct Page {
    text: String,
    window: Window,
    /// The first line that is not shown.
    next: usize,
    full: bool,
}

impl Page {
    fn new(window: Window, expected: usize) -> Self {
        let text = String::with_capacity(expected.min(RESULT_BYTES) * 9 / 8 + 64);
        Page { text, window, next: window.first, full: false }
    }

    /// Adds a line, unless the page is full.
    fn push(&mut self, number: usize, line: &str) -> bool {
        let (shown, left_out) = text::cut(line, LINE_CHARACTERS);
        let shows_enough = number - self.window.first >= self.window.lines
            || (self.text.len() + shown.len() > RESULT_BYTES && !self.text.is_empty());
        if self.full || shows_enough {
            self.full = true;
            return false;
        }
        let _ = write!(self.text, "{number:>6}\t{shown}");
        if left_out > 0 {
            let _ = write!(self.text, " [{left_out} more characters in this line]");
        }
        self.text.push('\n');
        self.next = number + 1;
        true
    }

    fn note(&mut self, note: &str) {
        let _ = writeln!(self.text, "[{note}]");
    }
}

fn image(place: &RunPath, bytes: &[u8], media_type: &str) -> ToolOutput {
    if bytes.len() > SENT_BYTES {
        let (path, size) = (place.show(), kind::size(bytes.len() as u64));
        return ToolOutput::text(format!(
            "[{path} is an image ({media_type}) of {size}, too large to be shown; \
             make a smaller copy and read that]"
        ));
    }
    let data = STANDARD.encode(bytes);
    sent(Part::Image { media_type: media_type.to_owned(), data })
}

fn pdf(place: &RunPath, bytes: &[u8]) -> ToolOutput {
    if bytes.len() > SENT_BYTES {
        let (path, size) = (place.show(), kind::size(bytes.len() as u64));
        return ToolOutput::text(format!(
            "[{path} is a PDF of {size}, too large to be sent; make a copy of the pages that \
             matter and read that]"
        ));
    }
    let name = place.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let media_type = "application/pdf".to_owned();
    sent(Part::Document { media_type, name, data: STANDARD.encode(bytes) })
}

fn sent(part: Part) -> ToolOutput {
    ToolOutput { parts: vec![part], ..ToolOutput::text("") }
}

fn not_text(place: &RunPath, beginning: &[u8], size: u64) -> String {
    let (path, size, kind) = (place.show(), kind::size(size), kind::describe(beginning));
    format!("[{path} is a binary file of {size}: {kind}. It cannot be shown as text.]")
}
