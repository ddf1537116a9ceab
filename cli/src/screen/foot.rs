//! The foot: lines at the bottom of the terminal about the present work. They are redrawn in place,
//! and cleared by the next output. The foot knows how many rows they fill, even after the terminal
//! became narrower.

use crate::print;
use crate::terminal::{self, columns};
use std::time::{Duration, Instant};

/// The least time between two redraws: thousands of events per second are not shown one by one.
const STANDS: Duration = Duration::from_millis(80);

/// The most rows of the foot.
const MOST: usize = 12;

#[derive(Default)]
pub struct StatusLines {
    /// The columns of each drawn line. The cursor is after the last one.
    drawn: Vec<usize>,
    at: Option<Instant>,
}

impl StatusLines {
    /// The rows that the foot may fill: a third of the screen.
    pub fn rows() -> usize {
        (terminal::height() / 3).clamp(1, MOST)
    }

    /// The rows that an open text may fill: half of the screen.
    pub fn open_rows() -> usize {
        (terminal::height() / 2).max(1)
    }

    /// True when the last redraw was long enough ago.
    pub fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= STANDS)
    }

    /// True when lines are drawn.
    pub fn stands(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// Draws `lines` in place of the old ones.
    pub fn draw(&mut self, lines: &[String]) {
        self.at = Some(Instant::now());
        if lines.is_empty() && self.drawn.is_empty() {
            return;
        }
        print::note_piece(&over(&self.drawn, terminal::width(), "", lines));
        self.drawn = lines.iter().map(|line| columns(line)).collect();
    }

    /// Prints `text`, which are permanent lines, above `lines`.
    pub fn print(&mut self, text: &str, lines: &[String]) {
        let text = format!("{text}\n");
        print::note_piece(&over(&self.drawn, terminal::width(), &text, lines));
        self.drawn = lines.iter().map(|line| columns(line)).collect();
        self.at = Some(Instant::now());
    }

    /// Clears the foot.
    pub fn clear(&mut self) {
        self.draw(&[]);
        self.at = None;
    }
}

/// The output that makes a terminal of `width` columns with old lines of `drawn` columns show
/// `text` and then `lines`. It is one write that overwrites the old lines, so that nothing flickers.
fn over(drawn: &[usize], width: usize, text: &str, lines: &[String]) -> String {
    let shown = format!("{text}{}", lines.join("\n"));
    let rows: usize = drawn.iter().map(|columns| columns.div_ceil(width).max(1)).sum();
    match rows {
        0 => shown,
        rows => {
            let up = if rows > 1 { format!("\x1b[{}A", rows - 1) } else { String::new() };
            format!("\r{up}{}\x1b[J", shown.replace('\n', "\x1b[K\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_there_is_taken_away_whole_and_nothing_else() {
        let line = |text: &str| text.to_owned();
        assert_eq!(over(&[], 80, "", &[line("a")]), "a");
        assert_eq!(over(&[1], 80, "", &[line("b"), line("c")]), "\rb\x1b[K\nc\x1b[J");
        assert_eq!(over(&[1, 1, 0], 80, "told\n", &[line("d")]), "\r\x1b[2Atold\x1b[K\nd\x1b[J");
        assert_eq!(over(&[60, 60], 40, "", &[]), "\r\x1b[3A\x1b[J", "it has become narrower");
    }
}
