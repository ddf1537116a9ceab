//! Diffs of files: the lines of a unified diff with their line numbers. Pure.

use crate::clean::clean_line;
use crate::paint::Paint;
use crate::screen::line::Look;
use crate::terminal::fitted;

/// The most lines of a diff.
const MOST: usize = 20;
/// The most characters of a line that are read.
const LONGEST: usize = 400;

/// A line of a diff.
#[derive(Debug, PartialEq, Eq)]
pub enum Row<'a> {
    /// A line of the old file (`-`), of the new file (`+`), or of both (` `).
    Line { number: usize, mark: char, text: &'a str },
    /// Unchanged lines are left out here.
    Gap,
    /// A remark about the diff.
    Remark(&'a str),
}

/// The lines of a unified diff, numbered.
pub fn rows(difference: &str) -> Vec<Row<'_>> {
    let (mut before, mut after) = (0, 0);
    let mut rows = Vec::new();
    for line in difference.split_terminator('\n') {
        if let Some((old, new)) = hunk(line) {
            if !rows.is_empty() {
                rows.push(Row::Gap);
            }
            (before, after) = (old, new);
            continue;
        }
        let mut characters = line.chars();
        let mark = characters.next();
        let text = characters.as_str();
        rows.push(match mark {
            Some('-') => {
                before += 1;
                Row::Line { number: before - 1, mark: '-', text }
            }
            Some('+') => {
                after += 1;
                Row::Line { number: after - 1, mark: '+', text }
            }
            Some(' ') | None => {
                (before, after) = (before + 1, after + 1);
                Row::Line { number: after - 1, mark: ' ', text }
            }
            Some(_) => Row::Remark(line),
        });
    }
    rows
}

/// The first old and new line number in a hunk header such as `@@ -1,3 +2,4 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, new) = line.strip_prefix("@@ -")?.strip_suffix(" @@")?.split_once(" +")?;
    let first = |range: &str| range.split(',').next().and_then(|number| number.parse().ok());
    Some((first(old)?, first(new)?))
}

/// The part of `text` from the start of the diff.
pub fn difference_in(text: &str) -> Option<&str> {
    match text.starts_with("@@ -") {
        true => Some(text),
        false => text.find("\n@@ -").map(|place| &text[place + 1..]),
    }
}

/// The number of columns of the largest line number.
pub fn number_width(rows: &[Row<'_>]) -> usize {
    let number = |row: &Row<'_>| match row {
        Row::Line { number, .. } => *number,
        _ => 0,
    };
    rows.iter().map(number).max().unwrap_or(0).to_string().len()
}

/// A row in colour. `text` is the escaped text of the row.
pub fn painted(row: &Row<'_>, text: &str, width: usize, paint: Paint) -> String {
    match row {
        Row::Line { number, mark, .. } => {
            let line = format!("{number:>width$} {mark}{text}");
            match mark {
                '+' => paint.green(&line),
                '-' => paint.red(&line),
                _ => paint.dim(&line),
            }
        }
        Row::Gap => paint.dim(&format!("{:>width$}", "…")),
        Row::Remark(_) => paint.dim(&format!("{:>width$} {text}", "")),
    }
}

/// The text of a row.
pub fn text_of<'a>(row: &Row<'a>) -> &'a str {
    match row {
        Row::Line { text, .. } | Row::Remark(text) => text,
        Row::Gap => "",
    }
}

/// A diff in a few lines that fit the screen.
pub fn told(difference: &str, look: Look) -> Vec<String> {
    let mut rows = rows(difference);
    let mut more = rows.len().saturating_sub(MOST);
    // The tool itself has left out lines.
    if let Some(Row::Remark(remark)) = rows.last()
        && let Some(left_out) = left_out(remark)
    {
        more = more.saturating_sub(1) + left_out;
        rows.pop();
    }
    rows.truncate(MOST);
    let width = number_width(&rows);
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let text = text_of(row).replace('\t', "    ");
            let indent: String = text.chars().take_while(|c| *c == ' ').collect();
            let text = format!("{indent}{}", clean_line(&text, LONGEST));
            let room = look.columns.saturating_sub(width + 4);
            format!("  {}", painted(row, &fitted(&text, room), width, look.paint))
        })
        .collect();
    if more > 0 {
        lines.push(look.paint.dim(&format!("  … {more} more")));
    }
    lines
}

/// The number of lines that `[7 more lines of difference]` leaves out.
fn left_out(remark: &str) -> Option<usize> {
    remark.strip_prefix('[')?.strip_suffix(" more lines of difference]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { paint: Paint { on: false }, columns: 40 };

    #[test]
    fn lines_have_the_numbers_of_the_file() {
        let difference = "@@ -9,3 +9,3 @@\n a\n-b\n+c\n d\n@@ -30 +30 @@\n-x\n\\ No newline at end of file\n+y\n";
        let lines = told(difference, LOOK);
        let expected = [
            "   9  a",
            "  10 -b",
            "  10 +c",
            "  11  d",
            "   …",
            "  30 -x",
            "     \\ No newline at end of file",
            "  30 +y",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_long_change_is_cut_and_says_how_much_is_missing() {
        let mut difference = "@@ -0,0 +1,40 @@\n".to_owned();
        (0..30).for_each(|_| difference.push_str("+x\n"));
        assert_eq!(told(&difference, LOOK).last().map(String::as_str), Some("  … 10 more"));
        difference.push_str("[10 more lines of difference]\n");
        assert_eq!(told(&difference, LOOK).last().map(String::as_str), Some("  … 20 more"));
        assert_eq!(told(&difference, LOOK).len(), MOST + 1);
    }

    #[test]
    fn a78_a_change_does_nothing_to_the_terminal() {
        let lines = told("@@ -1 +1 @@\n+\x1b[2J\tx\n", LOOK);
        assert_eq!(lines, ["  1 +␛[2J x"]);
    }
}
