//! What is printed: one line for each figure, as a row of a table.

use super::meter::{Cost, machine};
use std::io::Write;

/// Several measurements of one thing.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
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

    /// The 99th percentile.
    pub fn high(&self) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let place = (self.0.len() * 99 / 100).min(last);
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }

    /// The largest.
    pub fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The median and the 99th percentile of many times.
    pub fn spread(&self) -> String {
        format!("p50 {}, p99 {}", seconds(self.median()), seconds(self.high()))
    }
}

/// One figure.
pub struct Line {
    name: String,
    posse: String,
    raw: String,
    ratio: String,
    goal: String,
    met: &'static str,
    median_ratio: f64,
}

impl Line {
    /// A figure of Posse alone.
    pub fn new(name: impl Into<String>, posse: impl Into<String>) -> Self {
        let (name, posse, none) = (name.into(), posse.into(), || "–".to_owned());
        let (goal, median_ratio) = ("none set".to_owned(), f64::NAN);
        Line { name, posse, raw: none(), ratio: none(), goal, met: "–", median_ratio }
    }

    /// Rounds that each measured Posse and what it is compared with, in this order. The ratios are
    /// those of two measurements of the same round.
    pub fn compared(
        name: impl Into<String>,
        rounds: &[(f64, f64)],
        show: impl Fn(f64) -> String,
    ) -> Self {
        let ratios = Samples::new(rounds.iter().map(|(posse, raw)| posse / raw));
        let posse = Samples::new(rounds.iter().map(|round| round.0)).shown(&show);
        let raw = Samples::new(rounds.iter().map(|round| round.1)).shown(&show);
        let line = Line::new(name, posse).raw(raw).ratio(ratios.shown(times));
        Line { median_ratio: ratios.median(), ..line }
    }

    /// The wall time and the processor time of such rounds.
    pub fn costs(name: &str, rounds: &[(Cost, Cost)]) -> [Self; 2] {
        let line = |what: &str, of: fn(&Cost) -> f64| {
            let rounds: Vec<_> = rounds.iter().map(|(posse, raw)| (of(posse), of(raw))).collect();
            Line::compared(format!("{name}, {what}"), &rounds, seconds)
        };
        [line("wall", |cost| cost.wall), line("processor", |cost| cost.cpu)]
    }

    pub fn posse(self, posse: impl Into<String>) -> Self {
        Line { posse: posse.into(), ..self }
    }

    pub fn raw(self, raw: impl Into<String>) -> Self {
        Line { raw: raw.into(), ..self }
    }

    /// Adds what the raw column is, where it is no raw client.
    pub fn against(self, what: &str) -> Self {
        Line { raw: format!("{} {what}", self.raw), ..self }
    }

    pub fn ratio(self, ratio: impl Into<String>) -> Self {
        Line { ratio: ratio.into(), ..self }
    }

    /// One ratio in place of those of the rounds.
    pub fn ratio_of(self, posse: f64, raw: f64) -> Self {
        Line { median_ratio: posse / raw, ..self }.ratio(times(posse / raw))
    }

    /// The goal in words, and whether it is met.
    pub fn goal(self, words: impl Into<String>, is_met: bool) -> Self {
        Line { goal: words.into(), met: if is_met { "met" } else { "not met" }, ..self }
    }

    /// The goal that Posse takes at most so many times what `other` takes, if there is one.
    pub fn at_most(self, most: impl Into<Option<f64>>, other: &str) -> Self {
        let Some(most) = most.into() else { return self };
        let is_met = self.median_ratio <= most;
        self.goal(format!("≤ {most} × {other}"), is_met)
    }

    /// The goal that Posse reaches at least so many times what `other` does.
    pub fn at_least(self, least: f64, other: &str) -> Self {
        let is_met = self.median_ratio >= least;
        self.goal(format!("≥ {least} × {other}"), is_met)
    }

    pub fn print(self) {
        let Line { name, posse, raw, ratio, goal, met, .. } = self;
        row([&name, &posse, &raw, &ratio, &goal, met]);
    }
}

/// Prints the machine, and the head of the table.
pub fn head() {
    say(&format!("{}\n", machine()));
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
    // A part may end right after this line. A closed pipe is the reader's affair.
    let _ = std::io::stdout().flush();
}

/// Prints something beside the results.
#[expect(clippy::print_stderr, reason = "a program for the terminal")]
pub fn note(line: &str) {
    eprintln!("{line}");
}

/// A time, in the unit that suits it.
pub fn seconds(time: f64) -> String {
    match time {
        long if long >= 1.0 => format!("{long:.2} s"),
        short if short >= 1e-3 => format!("{:.1} ms", short * 1e3),
        tiny => format!("{:.0} µs", tiny * 1e6),
    }
}

/// How many times as much.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// How many in a second.
pub fn rate(per_second: f64) -> String {
    format!("{per_second:.0}/s")
}

/// A count as people write it.
pub fn written(count: usize) -> String {
    match (count / 1_000, count % 1_000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{},{rest:03}", written(thousands)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_range_are_shown() {
        assert_eq!(Samples::new([3.0, 1.0, 2.0]).shown(times), "2.00 (1.00–3.00)");
        assert_eq!(Samples::new([1.0, 2.0]).median(), 1.5);
        assert_eq!(Samples::new([1.0]).shown(times), "1.00");
        assert_eq!(Samples::new([0.5, 0.1, 0.1]).spread(), "p50 100.0 ms, p99 500.0 ms");
    }

    #[test]
    fn a_ratio_is_that_of_one_round() {
        let line = Line::compared("it", &[(2.0, 1.0), (9.0, 3.0)], seconds).at_most(2.5, "raw");
        assert_eq!(
            (&*line.ratio, &*line.goal, line.met),
            ("2.50 (2.00–3.00)", "≤ 2.5 × raw", "met")
        );
    }

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        let shown = [1.5, 0.015, 0.000_015].map(seconds);
        assert_eq!(shown, ["1.50 s", "15.0 ms", "15 µs"]);
        assert_eq!([7, 1_010, 1_010_000].map(written), ["7", "1,010", "1,010,000"]);
    }
}
