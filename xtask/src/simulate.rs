//! Simulated worlds: many workers and one store in one thread. A seed decides what happens.

#![expect(clippy::print_stdout, reason = "a chore tells people what it does")]

use clap::Args;
use posse_crash::{Simulation, Tally};
use std::process::ExitCode;
use std::time::Instant;

/// Options of simulated worlds
#[derive(Args)]
pub struct Simulate {
    /// This many worlds, each with a seed of its own: 100, or 1 with `--seed`
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first seed, as a failure names it
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Workers of a world
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    workers: u32,
    /// Runs of a world
    #[arg(long, value_name = "N", default_value_t = 200)]
    runs: u32,
}

/// Worlds without `--seeds`.
const WORLDS: u64 = 100;
/// How many broken laws of a world are printed.
const SHOWN: usize = 5;

impl Simulate {
    pub fn run(self) -> ExitCode {
        match self.play() {
            Ok(0) => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(reason) => {
                println!("cannot simulate: {reason}");
                ExitCode::FAILURE
            }
        }
    }

    /// Lets all worlds happen, prints what was counted, and returns how many broke a law.
    fn play(&self) -> Result<u64, String> {
        let (workers, runs) = (self.workers as usize, self.runs as usize);
        let first = self.seed.unwrap_or(1);
        let seeds = self.seeds.unwrap_or(if self.seed.is_some() { 1 } else { WORLDS });
        let begun = Instant::now();
        let (mut sum, mut failures) = (Tally::default(), 0);
        for seed in first..first.saturating_add(seeds) {
            let simulated = Simulation { seed, workers, runs }.play()?;
            sum += &simulated.tally;
            if simulated.breaches.is_empty() {
                continue;
            }
            failures += 1;
            println!(
                "FAILED seed {seed}, {} times; again: cargo xtask simulate --seed {seed} --workers \
                 {workers} --runs {runs}",
                simulated.breaches.len()
            );
            for breach in simulated.breaches.iter().take(SHOWN) {
                println!("  {breach}");
            }
        }
        println!("{:<24}{seeds:>14}", "seeds");
        println!("{:<24}{workers:>14}", "workers of a world");
        println!("{:<24}{runs:>14}", "runs of a world");
        print!("{sum}");
        println!("{:<24}{failures:>14}", "failures");
        println!("{:<24}{:>12.1} s", "took", begun.elapsed().as_secs_f64());
        Ok(failures)
    }
}
