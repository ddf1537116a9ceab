//! Chooses a session of this folder, the newest first.

use super::super::Common;
use super::super::again::{last_talked_to, open_to_talk};
use crate::clean::clean_line;
use crate::exit::Failure;
use crate::format;
use crate::paint::Paint;
use crate::screen::StatusLines;
use crate::signals::Signals;
use crate::terminal::keys::{Key, Keys};
use crate::terminal::{self, fitted};
use posse::{RunRow, Runtime};
use std::path::Path;

/// The rows of the terminal that the list leaves free.
const AROUND: usize = 4;

/// The sessions of `folder` with messages, the last active first.
pub async fn sessions(runtime: &Runtime, folder: &Path) -> Result<Vec<RunRow>, Failure> {
    let mut rows = open_to_talk(runtime, folder).await?;
    rows.retain(|row| row.about.session);
    Ok(rows)
}

/// The error for a folder without sessions. It names the run that the person may mean.
pub async fn none(runtime: &Runtime, folder: &Path) -> Result<Failure, Failure> {
    let runs = open_to_talk(runtime, folder).await?;
    let hint = match last_talked_to(runtime, runs).await? {
        Some(run) => format!(
            "the last run here is {} \"{}\"; `posse run -c \"…\"` sends it a message; `posse chat` \
             starts a chat",
            run.id.short(),
            clean_line(&run.about.title, 60)
        ),
        None => "`posse chat` starts one".to_owned(),
    };
    Ok(Failure::usage(format!("there is no chat in {} yet", folder.display())).hint(hint))
}

/// Lets the person choose one of `rows`. `None` if they choose none.
pub async fn pick(common: &Common, rows: &[RunRow], signals: &mut Signals) -> Option<usize> {
    let paint = Paint { on: !common.environment.no_color };
    let mut keys = Keys::listen().ok()?;
    let mut list = List { at: 0, count: rows.len() };
    let mut foot = StatusLines::default();
    let choice = loop {
        foot.draw(&list.lines(rows, paint));
        let key = tokio::select! {
            key = keys.next() => key,
            _ = signals.next() => None,
        };
        match key.map_or(Move::Leave, |key| list.take(&key)) {
            Move::Stay => {}
            Move::Leave => break None,
            Move::Take(row) => break Some(row),
        }
    };
    foot.clear();
    choice
}

struct List {
    /// The index of the selected row.
    at: usize,
    count: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Move {
    Stay,
    Leave,
    Take(usize),
}

impl List {
    fn take(&mut self, key: &Key) -> Move {
        match key {
            Key::Up => self.at = self.at.saturating_sub(1),
            Key::Down => self.at = (self.at + 1).min(self.count.saturating_sub(1)),
            Key::Enter => return Move::Take(self.at),
            Key::Escape => return Move::Leave,
            Key::Text(text) => return self.typed(text),
            _ => {}
        }
        Move::Stay
    }

    fn typed(&mut self, text: &str) -> Move {
        match text {
            "q" => Move::Leave,
            "k" => self.take(&Key::Up),
            "j" => self.take(&Key::Down),
            _ => match text.parse::<usize>() {
                Ok(number) if (1..=self.count).contains(&number) => Move::Take(number - 1),
                _ => Move::Stay,
            },
        }
    }

    fn lines(&self, rows: &[RunRow], paint: Paint) -> Vec<String> {
        let width = terminal::width() - 1;
        let room = terminal::height().saturating_sub(AROUND).max(1);
        let first = (self.at + 1).saturating_sub(room);
        let mut lines = vec![paint.dim(&fitted("Choose a chat to continue:", width))];
        for (index, row) in rows.iter().enumerate().skip(first).take(room) {
            let ago = format::ago(row.updated_at);
            let mark = if index == self.at { "›" } else { " " };
            let line =
                format!("{mark} {:>2}  {ago:>8}  {}", index + 1, clean_line(&row.about.title, 400));
            let line = fitted(&line, width);
            lines.push(if index == self.at { paint.chosen(&line) } else { line });
        }
        let keys = "arrow keys and Enter, or its number; Esc for none";
        lines.push(paint.dim(&fitted(keys, width)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_move_and_numbers_choose() {
        let mut list = List { at: 0, count: 3 };
        for key in [Key::Up, Key::Down, Key::Down, Key::Down] {
            assert_eq!(list.take(&key), Move::Stay);
        }
        assert_eq!(list.take(&Key::Enter), Move::Take(2));
        assert_eq!(list.take(&Key::Text("1".to_owned())), Move::Take(0));
        assert_eq!(list.take(&Key::Text("9".to_owned())), Move::Stay);
        assert_eq!(list.take(&Key::Text("q".to_owned())), Move::Leave);
        assert_eq!(list.take(&Key::Escape), Move::Leave);
    }
}
