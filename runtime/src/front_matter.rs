//! Markdown files with front matter: splits them, reads the YAML as nodes with places, and collects
//! problems for their authors. The modules that define agents and skills know what the keys mean.

pub(crate) mod node;
pub(crate) mod problem;
pub(crate) mod yaml;

use std::borrow::Cow;

/// The maximum size of a file, and of its front matter.
pub(crate) const FILE_BYTES: u64 = 256 << 10;
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// The parts of a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Parts<'t> {
    pub(crate) head: &'t str,
    /// The line of the file at which the head begins.
    pub(crate) first_line: u32,
    pub(crate) body: &'t str,
}

/// `text` without a byte order mark, with line feeds as line ends.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}

/// Splits a text. The error is the line of the opening fence, if there is no closing one.
pub(crate) fn split(text: &str) -> Result<Option<Parts<'_>>, u32> {
    let mut offset = 0;
    let mut opened: Option<(usize, u32)> = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += line.len();
        match opened {
            None if line.trim().is_empty() => {}
            None if is_fence(line) => opened = Some((offset, index as u32 + 2)),
            None => return Ok(None),
            Some((head, first_line)) if is_fence(line) => {
                let (head, body) = (&text[head..start], &text[offset..]);
                return Ok(Some(Parts { head, first_line, body }));
            }
            Some(_) => {}
        }
    }
    match opened {
        Some((_, first_line)) => Err(first_line - 1),
        None => Ok(None),
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}
