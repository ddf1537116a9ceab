//! The terminal: its size, text that fits it, and the restoring of its mode.

pub mod keys;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns if the terminal does not report them.
const USUAL: usize = 80;
/// The least columns that are assumed.
const NARROWEST: usize = 20;

/// The rows if the terminal does not report them.
const USUAL_ROWS: usize = 24;

/// The columns of the terminal on standard error.
pub fn width() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(NARROWEST),
        _ => USUAL,
    }
}

/// The rows of the terminal on standard error.
pub fn height() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_row > 0 => usize::from(size.ws_row),
        _ => USUAL_ROWS,
    }
}

/// The columns of the terminal on standard output, for tables; `None` if it is not a terminal.
pub fn table_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(NARROWEST))
}

/// `text`, which is one line, cut to at most `columns`.
pub fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let width = character.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        used += width;
        out.push(character);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// The columns that `text`, which is one line, fills. Colours take none.
pub fn columns(text: &str) -> usize {
    let mut pieces = text.split("\x1b[");
    let plain = pieces.next().unwrap_or_default().width();
    let after_colours = pieces.map(|piece| piece.split_once('m').map_or(piece, |(_, rest)| rest));
    plain + after_colours.map(UnicodeWidthStr::width).sum::<usize>()
}

/// Restores the mode of the terminal when it is dropped, because a line editor on another thread
/// may not have the time.
pub struct Restore(Option<Termios>);

impl Restore {
    pub fn later() -> Self {
        Restore(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(found) = &self.0 {
            // If this fails, the terminal is gone.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_not_by_characters() {
        assert_eq!(fitted("short", 10), "short");
        assert_eq!(fitted("a longer line", 9), "a longer…");
        assert_eq!(fitted("日本語の文章", 7), "日本語…");
        assert_eq!(columns("\x1b[2m日本\x1b[0m a"), 6);
        assert_eq!(fitted("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
    }
}
