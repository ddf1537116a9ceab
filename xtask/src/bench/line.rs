//! What is printed: one line for each figure, as a row of a table.

use std::io::Write;

/// Several measurements of one thing.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Samples(values)
    }

    pub fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => self.0[odd / 2],
            even => f64::midpoint(self.0[even / 2 - 1], self.0[even / 2]),
        }
    }

    /// Each of these against the one of the same round. Only samples in the order of their
    /// rounds can be compared so, which is why it takes the rounds and not two `Samples`.
    pub fn ratios(rounds: &[(f64, f64)]) -> Self {
        Samples::new(rounds.iter().map(|(ours, theirs)| ours / theirs).collect())
    }

    /// The median and the range, each as `show` writes it.
    pub fn shown(&self, show: impl Fn(f64) -> String) -> String {
        match (self.0.first(), self.0.last()) {
            (Some(least), Some(most)) if self.0.len() > 1 => {
                format!("{} ({}–{})", show(self.median()), show(*least), show(*most))
            }
            (Some(only), _) => show(*only),
            _ => "nothing".to_owned(),
        }
    }
}

/// One figure.
pub struct Line {
    pub name: String,
    pub posse: String,
    pub raw: String,
    pub ratio: String,
    pub goal: Goal,
}

/// What is wanted, and whether it is so.
pub enum Goal {
    /// Nobody said what is good enough.
    None,
    /// In these words, and met or not.
    Stated(String, Verdict),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Verdict {
    Met,
    NotMet,
}

impl Goal {
    /// `value` is wanted to be at most `most`, which `words` say.
    pub fn at_most(words: &str, value: f64, most: f64) -> Self {
        let verdict = if value <= most { Verdict::Met } else { Verdict::NotMet };
        Goal::Stated(words.to_owned(), verdict)
    }
}

impl Line {
    pub fn print(&self) {
        let (goal, met) = match &self.goal {
            Goal::None => ("none set", "–"),
            Goal::Stated(words, Verdict::Met) => (words.as_str(), "met"),
            Goal::Stated(words, Verdict::NotMet) => (words.as_str(), "not met"),
        };
        row([&self.name, &self.posse, &self.raw, &self.ratio, goal, met]);
    }
}

/// The head of the table.
pub fn head() {
    row(["figure", "posse", "raw", "ratio", "goal", "met"]);
    row(["---"; 6]);
}

fn row(cells: [&str; 6]) {
    let [name, posse, raw, ratio, goal, met] = cells;
    say(&format!("| {name:<34} | {posse:<32} | {raw:<32} | {ratio:<20} | {goal:<24} | {met} |"));
}

/// Prints a line of results.
#[expect(clippy::print_stdout, reason = "a program for the terminal")]
pub fn say(line: &str) {
    println!("{line}");
    // A process that dies on purpose must have said it by then; a closed pipe is the reader's affair.
    let _ = std::io::stdout().flush();
}

/// Prints something beside the results.
#[expect(clippy::print_stderr, reason = "a program for the terminal")]
pub fn note(line: &str) {
    eprintln!("{line}");
}

/// The value below which `share` percent of `sorted` lie.
pub fn percentile(sorted: &[f64], share: usize) -> f64 {
    let place = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// A time, in the unit that suits it.
pub fn seconds(time: f64) -> String {
    match time {
        long if long >= 1.0 => format!("{long:.2} s"),
        short if short >= 1e-3 => format!("{:.1} ms", short * 1e3),
        tiny => format!("{:.0} µs", tiny * 1e6),
    }
}

/// Memory, in KiB.
pub fn kib(amount: f64) -> String {
    format!("{amount:.1} KiB")
}

/// How many times as much.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// How many in a second.
pub fn rate(per_second: f64) -> String {
    format!("{per_second:.0}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_range_are_shown() {
        let samples = Samples::new(vec![3.0, 1.0, 2.0]);
        assert_eq!(samples.shown(times), "2.00 (1.00–3.00)");
        assert_eq!(Samples::new(vec![1.0, 2.0]).median(), 1.5);
        assert_eq!(Samples::new(vec![1.0]).shown(times), "1.00");
        assert_eq!(Samples::ratios(&[(2.0, 1.0), (9.0, 3.0)]).median(), 2.5);
    }

    #[test]
    fn times_are_shown_in_the_unit_that_suits_them() {
        let shown = [1.5, 0.015, 0.000_015].map(seconds);
        assert_eq!(shown, ["1.50 s", "15.0 ms", "15 µs"]);
    }
}
