//! A picture of a terminal: reads text with ANSI colours, and writes SVG.
//!
//! It knows only sequences for colours and weights, and drops all others. So the input must be a screen
//! (`tmux capture-pane -e -p`), not the bytes that a program sent to the terminal.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::ExitCode;

/// Options of the picture
#[derive(clap::Args)]
pub struct Picture {
    /// The title of the window
    #[arg(long, default_value = "posse")]
    title: String,
}

impl Picture {
    pub fn run(self) -> ExitCode {
        let mut screen = String::new();
        let drawn = io::stdin()
            .read_to_string(&mut screen)
            .and_then(|_| io::stdout().write_all(draw(&screen, &self.title).as_bytes()));
        if drawn.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The size of a character cell, and the space around the text.
const CELL: (f64, f64) = (8.4, 19.0);
const MARGIN: f64 = 20.0;
const BAR: f64 = 38.0;

const INK: &str = "#d5d9e0";
const PAPER: &str = "#14171c";
/// The sixteen colours of a terminal: the dark ones, then the bright ones.
#[rustfmt::skip]
const COLOURS: [&str; 16] = [
    "#4a5160", "#f07178", "#9ece6a", "#e6b450", "#6fa8f7", "#c792ea", "#5fd0d8", "#c8ccd4",
    "#717a8c", "#ff8f95", "#b6e584", "#ffd173", "#8fc0ff", "#dcb0f5", "#86e4ea", "#ffffff",
];

/// How characters look.
#[derive(Clone, Debug, Default, PartialEq)]
struct Style {
    colour: Option<String>,
    bold: bool,
    dim: bool,
}

/// Characters of one style, and the column where they begin.
#[derive(Debug, PartialEq)]
struct Run {
    column: usize,
    text: String,
    style: Style,
}

fn draw(screen: &str, title: &str) -> String {
    let mut style = Style::default();
    let mut lines: Vec<Vec<Run>> =
        screen.trim_end().lines().map(|line| parse(line, &mut style)).collect();
    lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
    let end = |run: &Run| run.column + run.text.trim_end().chars().count();
    let columns = lines.iter().flatten().map(end).max().unwrap_or(0).max(80);
    let width = columns as f64 * CELL.0 + 2.0 * MARGIN;
    let height = lines.len() as f64 * CELL.1 + BAR + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{PAPER}\"/>\n"
    );
    for (index, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let x = MARGIN + 20.0 * index as f64;
        let _ = writeln!(out, "<circle cx=\"{x}\" cy=\"19\" r=\"6\" fill=\"{colour}\"/>");
    }
    let _ = writeln!(
        out,
        "<g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\" fill=\"{INK}\" xml:space=\"preserve\">\n\
         <text x=\"50%\" y=\"24\" text-anchor=\"middle\" fill=\"{}\">{}</text>",
        COLOURS[8],
        escaped(title)
    );
    for (row, line) in lines.iter().enumerate() {
        let y = BAR + (row as f64 + 0.8) * CELL.1;
        for run in line.iter().filter(|run| !run.text.trim().is_empty()) {
            let blanks = run.text.chars().take_while(|c| *c == ' ').count();
            let text = run.text.trim();
            let x = MARGIN + (run.column + blanks) as f64 * CELL.0;
            // `textLength` keeps columns aligned in every font.
            let length = text.chars().count() as f64 * CELL.0;
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{}>{}</text>",
                attributes(&run.style),
                escaped(text)
            );
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Splits a line into runs. The style continues in the next line, as on a terminal.
fn parse(line: &str, style: &mut Style) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut column = 0;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\x1b' {
            match runs.last_mut() {
                Some(run) if run.style == *style => run.text.push(character),
                _ => runs.push(Run { column, text: character.into(), style: style.clone() }),
            }
            column += 1;
            continue;
        }
        let sequence: String = characters.by_ref().skip(1).take_while(|c| !is_last(*c)).collect();
        // `take_while` has taken the last character too. tmux prints only sequences of colours.
        style.change(&sequence);
    }
    runs
}

fn is_last(character: char) -> bool {
    ('@'..='~').contains(&character)
}

impl Style {
    /// Applies the numbers of a colour sequence.
    fn change(&mut self, sequence: &str) {
        let mut numbers = sequence.split([';', ':']).map(|text| text.parse::<usize>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Style::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                22 => (self.bold, self.dim) = (false, false),
                30..=37 => self.colour = Some(COLOURS[number - 30].to_owned()),
                90..=97 => self.colour = Some(COLOURS[number - 82].to_owned()),
                38 => self.colour = extended(&mut numbers),
                48 => drop(extended(&mut numbers)),
                39 => self.colour = None,
                _ => {}
            }
        }
    }
}

/// One of 256 colours, or a colour by its red, green and blue.
fn extended(numbers: &mut impl Iterator<Item = usize>) -> Option<String> {
    let (red, green, blue) = match numbers.next()? {
        2 => (numbers.next()?, numbers.next()?, numbers.next()?),
        5 => match numbers.next()? {
            basic @ 0..16 => return Some(COLOURS[basic].to_owned()),
            cube @ 16..232 => {
                let level = |step: usize| if step == 0 { 0 } else { 55 + 40 * step };
                let step = cube - 16;
                (level(step / 36), level(step / 6 % 6), level(step % 6))
            }
            grey => {
                let level = 8 + 10 * grey.saturating_sub(232).min(23);
                (level, level, level)
            }
        },
        _ => return None,
    };
    Some(format!("#{:02x}{:02x}{:02x}", red.min(255), green.min(255), blue.min(255)))
}

fn attributes(style: &Style) -> String {
    let mut out =
        style.colour.as_ref().map_or_else(String::new, |colour| format!(" fill=\"{colour}\""));
    out.push_str(if style.bold { " font-weight=\"bold\"" } else { "" });
    out.push_str(if style.dim { " opacity=\"0.6\"" } else { "" });
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_attributes_and_columns_are_kept() {
        let picture = draw("plain \x1b[1;32m  <ok>\x1b[0m\n\n\n", "t");
        assert!(picture.contains(">plain</text>"), "{picture}");
        assert!(
            picture.contains(
                "<text x=\"87.2\" y=\"53.2\" textLength=\"33.6\" fill=\"#9ece6a\" \
             font-weight=\"bold\">&lt;ok&gt;</text>"
            ),
            "{picture}"
        );
    }
}
