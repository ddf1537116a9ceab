//! Tables for people: a heading, aligned columns, and an order in which columns are left out on a
//! narrow terminal. Pure except `print`.

use crate::common::Common;
use crate::exit::Failure;
use crate::print;
use crate::terminal::{self, columns, fitted};

/// A column of a table.
pub struct Column {
    heading: &'static str,
    side: Side,
    /// The width to which its cells are cut before other columns are left out, and the least width.
    keeps: Option<(usize, usize)>,
    /// The order in which columns are left out on a narrow terminal; the lowest number goes first.
    leaves: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Column {
    /// A column of texts.
    pub const fn text(heading: &'static str) -> Column {
        Column { heading, side: Side::Left, keeps: None, leaves: None }
    }

    /// A column of numbers.
    pub const fn figures(heading: &'static str) -> Column {
        Column { heading, side: Side::Right, keeps: None, leaves: None }
    }

    /// The same column, cut to `wanted` columns of the terminal before others are left out, and to
    /// `least` after that.
    pub const fn cut(self, wanted: usize, least: usize) -> Column {
        Column { keeps: Some((wanted, least)), ..self }
    }

    /// The same column, left out on a narrow terminal.
    pub const fn leaves(self, turn: u8) -> Column {
        Column { leaves: Some(turn), ..self }
    }
}

pub struct Table<const N: usize> {
    pub columns: [Column; N],
    pub rows: Vec<[String; N]>,
}

/// Spaces between two columns.
const GAP: usize = 2;

impl<const N: usize> Table<N> {
    /// Prints the table, without its heading if `--quiet` is set.
    pub fn print(&self, common: &Common) -> Result<(), Failure> {
        let (heading, lines) = self.lines(terminal::table_width());
        if !common.global.quiet && !lines.is_empty() {
            print::line(heading)?;
        }
        lines.into_iter().try_for_each(print::line)
    }

    /// The heading and the rows, at most `room` columns wide.
    pub fn lines(&self, room: Option<usize>) -> (String, Vec<String>) {
        let widths = self.widths(room.unwrap_or(usize::MAX));
        let line = |cells: [&str; N]| {
            let mut line = String::new();
            for ((cell, width), column) in cells.iter().zip(&widths).zip(&self.columns) {
                let Some(width) = width else { continue };
                let cell = fitted(cell, *width);
                let space = " ".repeat(width.saturating_sub(columns(&cell)));
                if !line.is_empty() {
                    line.push_str(&" ".repeat(GAP));
                }
                match column.side {
                    Side::Left => line.extend([cell, space]),
                    Side::Right => line.extend([space, cell]),
                }
            }
            fitted(line.trim_end(), room.unwrap_or(usize::MAX))
        };
        let heading = line(self.columns.each_ref().map(|column| column.heading));
        let rows = self.rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
        (heading, rows.collect())
    }

    /// The width of each column; `None` if it is empty or left out.
    fn widths(&self, room: usize) -> [Option<usize>; N] {
        let widest = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let heading = self.columns.get(index).map_or("", |column| column.heading);
            let widest = cells.map(|cell| columns(cell)).max().filter(|width| *width > 0)?;
            Some(widest.max(columns(heading)))
        };
        let mut widths: [Option<usize>; N] = std::array::from_fn(widest);
        let wanted = |widths: &[Option<usize>; N]| {
            let keeps = |(width, column): (&Option<usize>, &Column)| {
                let width = (*width)?;
                Some(column.keeps.map_or(width, |(wanted, _)| width.min(wanted)))
            };
            sum(widths.iter().zip(&self.columns).map(keeps))
        };
        let mut turns: Vec<(u8, usize)> =
            (0..N).filter_map(|index| Some((self.columns.get(index)?.leaves?, index))).collect();
        turns.sort_unstable();
        for (_, index) in turns {
            if wanted(&widths) <= room {
                break;
            }
            widths[index] = None;
        }
        for least in [|(wanted, _): (usize, usize)| wanted, |(_, least): (usize, usize)| least] {
            let mut over = sum(widths.iter().copied()).saturating_sub(room);
            for (width, column) in widths.iter_mut().zip(&self.columns).rev() {
                if let (Some(width), Some(keeps)) = (width, column.keeps) {
                    let less = over.min(width.saturating_sub(least(keeps)));
                    *width -= less;
                    over -= less;
                }
            }
        }
        widths
    }
}

/// The columns of the terminal that a line fills.
fn sum(widths: impl Iterator<Item = Option<usize>>) -> usize {
    let all = widths.flatten().fold(0_usize, |all, width| all.saturating_add(width + GAP));
    all.saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<4> {
        let row = |run: &str, cost: &str, agent: &str, task: &str| {
            [run, cost, agent, task].map(str::to_owned)
        };
        Table {
            columns: [
                Column::text("RUN"),
                Column::figures("COST"),
                Column::text("AGENT").leaves(1),
                Column::text("TASK").cut(12, 6),
            ],
            rows: vec![
                row("abcdefgh", "$0.0061", "general-purpose", "count the lines of all files"),
                row("bcdefghj", "$12.00", "explore", "日本語"),
            ],
        }
    }

    fn shown(room: Option<usize>) -> Vec<String> {
        let (heading, rows) = table().lines(room);
        std::iter::once(heading).chain(rows).collect()
    }

    #[test]
    fn columns_line_up_and_the_last_is_not_padded() {
        let lines = [
            "RUN          COST  AGENT            TASK",
            "abcdefgh  $0.0061  general-purpose  count the lines of all files",
            "bcdefghj   $12.00  explore          日本語",
        ];
        assert_eq!(shown(None), lines);
    }

    #[test]
    fn what_matters_most_stays_longest() {
        assert_eq!(shown(Some(50))[1], "abcdefgh  $0.0061  general-purpose  count the lin…");
        assert_eq!(shown(Some(40))[1], "abcdefgh  $0.0061  count the lines of a…");
        assert_eq!(shown(Some(26))[1], "abcdefgh  $0.0061  count…");
        assert!(shown(Some(20)).iter().all(|line| columns(line) <= 20));
    }
}
