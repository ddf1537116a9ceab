//! What the tests of the command line count and print.

use crate::bench::Result;
use crate::bench::line::{Line, note};
use crate::bench::part::command;
use serde::Deserialize;
use std::process::Stdio;

/// The share of answers that must be right, in percent.
const GOAL: f64 = 100.0;

/// The line of a wire.
#[derive(Deserialize)]
struct Grid {
    grid: String,
    passed: usize,
    total: usize,
    seconds: f64,
}

/// Cells of the grid of behaviours and faults that pass, for each wire.
pub fn grid() -> Result<()> {
    let said = tests("grid::")?;
    let lines: Vec<Grid> =
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() {
        return Err("the grid printed no counts; `cargo test -p posse-cli grid::` shows why".into());
    }
    for Grid { grid, passed, total, seconds } in lines {
        Line::new(format!("grid: {grid}"), format!("{passed} of {total} cells"))
            .raw(format!("in {seconds:.0} s"))
            .goal("all", passed == total)
            .print();
    }
    Ok(())
}

/// Questions about small repositories that the offline model answers rightly.
pub fn questions() -> Result<()> {
    let said = tests("questions::the_offline_model_answers")?;
    let (right, total) = score(&said).ok_or(
        "the question set printed no score; `cargo test -p posse-cli questions::` shows why",
    )?;
    let share = right as f64 * 100.0 / total as f64;
    Line::new("offline model: questions", format!("{right} of {total} ({share:.0} %)"))
        .goal(format!("≥ {GOAL} %"), share >= GOAL)
        .print();
    Ok(())
}

/// The two numbers of the line that begins with `offline questions:`.
fn score(said: &str) -> Option<(usize, usize)> {
    let line = said.lines().find_map(|line| line.strip_prefix("offline questions: "))?;
    let mut words = line.split_whitespace();
    let right = words.next()?.parse().ok()?;
    words.next().filter(|of| *of == "of")?;
    Some((right, words.next()?.parse().ok()?))
}

/// What the tests of the command line that begin with `filter` print. They need no optimised
/// build: they count and do not measure. A test that fails has still counted.
fn tests(filter: &str) -> Result<String> {
    let mut cargo = command(env!("CARGO"));
    cargo.args(["test", "--quiet", "-p", "posse-cli", "--test", "it", "--", filter]);
    cargo.args(["--nocapture", "--test-threads=1"]).stderr(Stdio::inherit());
    let output = cargo.output()?;
    if !output.status.success() {
        note(&format!("some tests of {filter} failed; see above"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_read_from_its_line() {
        let said =
            "running 1 test\n  x: 1 of 2\noffline questions: 70 of 77 are answered rightly\nok";
        assert_eq!(score(said), Some((70, 77)));
        assert_eq!(score("offline questions: many"), None);
    }
}
