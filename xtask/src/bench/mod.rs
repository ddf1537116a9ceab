//! Benchmarks.
use std::process::ExitCode;
/// What to measure
#[derive(clap::Subcommand)]
pub enum Bench {
    /// The spine: runs, memory, start, appends, recovery, long transcripts
    Spine,
}
impl Bench {
    pub fn run(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}
