//! Chores of the repository, as programs: benchmarks, crash cycles, simulations, pictures, tidy.

mod bench;
mod crash;
mod picture;
mod simulate;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Chores of the repository
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure, and print ratios against a raw client or a bare store in the same run
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Kill the real binary at every fail-point and at random times, and check what is left
    Crash(crash::Crash),
    /// Turn a terminal's screen, from standard input, into an SVG picture
    Picture(picture::Picture),
    /// Simulate many workers and one store, where a seed decides what goes wrong, and check the logs
    Simulate(simulate::Simulate),
    /// Check what the compiler does not: the code map, sizes, licences, links
    Tidy(tidy::Tidy),
}

/// Thousands of runs allocate from many threads at once. This allocator saves a quarter of the processor
/// time (`cargo xtask bench spine --only runs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Posse starts commands of agents through this program, which is then their supervisor.
    let _launcher = posse::launch::init();
    match Arguments::parse().chore {
        Chore::Bench(bench) => bench.run(),
        Chore::Crash(crash) => crash.run(),
        Chore::Picture(picture) => picture.run(),
        Chore::Simulate(simulate) => simulate.run(),
        Chore::Tidy(tidy) => tidy.run(),
    }
}
