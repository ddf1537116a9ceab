//! Crash cycles on many machines: plays them and prints the result, also while they are played.

use super::Crash;
use posse_crash::{ClusterCampaign, ClusterEnded, ClusterReport};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::TempDir;

/// Cycles without `--cycles`: each main fault at least once.
const QUICK: usize = 20;
/// After so many cycles, a line tells what has passed so far.
const OFTEN: usize = 10;

pub(super) fn play(asked: &Crash, binary: PathBuf, folder: TempDir) -> Result<ExitCode, String> {
    let mut cycles: Vec<usize> = (asked.from..asked.from + asked.cycles.unwrap_or(QUICK)).collect();
    if let Some(only) = asked.only {
        cycles = vec![only];
    }
    let total = cycles.len();
    println!("{total} cycles on clusters, seed {}, {} at a time", asked.seed, asked.jobs);
    let (seed, jobs) = (asked.seed, asked.jobs);
    let place = folder.path().to_owned();
    let mistakes = BTreeMap::new();
    let campaign = ClusterCampaign { binary, folder: place, seed, jobs, cycles, mistakes };
    // One thread: the processes that it starts die with it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let played = runtime.block_on(campaign.play(|ended, report| tell(seed, total, ended, report)));
    let report = played.map_err(|error| error.to_string())?;
    print!("{report}");
    for (name, count) in &report.untested {
        println!("NOT TESTED on this machine: {name} ({count} cycles)");
    }
    note_untested(&report)?;
    if report.failed > 0 {
        println!("kept: {}", folder.keep().display());
    }
    println!("{} passed, {} failed", report.cycles - report.failed, report.failed);
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints each failed cycle, and from time to time what has passed.
fn tell(seed: u64, total: usize, ended: &ClusterEnded, report: &ClusterReport) {
    if let Some(first) = ended.violations.first() {
        let more = match ended.violations.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let (plan, folder) = (&ended.plan, ended.folder.display());
        println!("FAILED cycle {} (seed {seed}; {plan}): {first}{more}; see {folder}", plan.number);
    }
    if report.cycles.is_multiple_of(OFTEN) {
        println!(
            "{} of {total}: {} failed, {} with a restart, {} with a failover",
            report.cycles,
            report.failed,
            report.restarts(),
            report.failovers()
        );
    }
}

/// Adds faults that this machine does not allow to the list of what was not tested.
#[expect(clippy::disallowed_methods, reason = "`./test` names the list in the environment")]
fn note_untested(report: &ClusterReport) -> Result<(), String> {
    let Some(list) = std::env::var_os("POSSE_TEST_SKIPPED") else { return Ok(()) };
    let cannot = |error: std::io::Error| format!("the list of untested cases: {error}");
    let mut list = std::fs::File::options().create(true).append(true).open(list).map_err(cannot)?;
    for name in report.untested.keys() {
        writeln!(list, "crash cycles on clusters with {name}: needs root, for a disk of its own")
            .map_err(cannot)?;
    }
    Ok(())
}
