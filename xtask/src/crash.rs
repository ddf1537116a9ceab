//! Crash cycles: builds the binary with fail-points, lets the crash harness kill it, and prints the
//! result.

#![expect(clippy::print_stdout, reason = "a chore tells people what it does")]

mod cluster;

use clap::Args;
use posse_crash::{
    Campaign, Cycle, Ended, Engine, Flips, Point, at_point, long, point, quick, quick_on_server,
    scenarios,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of crash cycles
#[derive(Args)]
pub struct Crash {
    /// Every fail-point, and some random kills: the default
    #[arg(long, conflicts_with_all = ["cycles", "point"])]
    quick: bool,
    /// This many cycles, at fail-points and at random moments
    #[arg(long, value_name = "N")]
    cycles: Option<usize>,
    /// In place of kills: flip this many bits in a database and its write-ahead log, each in a copy
    #[arg(long, value_name = "N", conflicts_with_all = ["quick", "cycles", "point", "only"])]
    flips: Option<usize>,
    /// On many machines: workers on a PostgreSQL server, whose connections are cut, and which is
    /// restarted, filled and replaced. `--cycles` says how many cycles
    #[arg(long, conflicts_with_all = ["quick", "point", "scenario", "flips"])]
    cluster: bool,
    /// Keep runs on a private PostgreSQL server, in place of a file for each cycle
    #[arg(long, conflicts_with_all = ["flips", "cluster"])]
    postgres: bool,
    /// Only at this fail-point
    #[arg(long, value_name = "NAME", value_parser = known_point)]
    point: Option<&'static Point>,
    /// Only scenarios whose names begin with this, such as `tree`
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, conflicts_with = "point", value_parser = known_scenario)]
    scenario: String,
    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only the cycle with this number, as a failure names it
    #[arg(long, value_name = "N")]
    only: Option<usize>,
    /// With `--cluster`: the number of the first cycle, to continue what was interrupted
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    from: usize,
    /// Cycles at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: usize,
    /// Test this binary, built with `--features failpoints`, in place of a new one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

fn known_point(name: &str) -> Result<&'static Point, String> {
    point(name).ok_or_else(|| "there is no fail-point of that name".to_owned())
}

fn known_scenario(name: &str) -> Result<String, String> {
    match scenarios(name).is_empty() {
        true => Err("there is no scenario of that name".to_owned()),
        false => Ok(name.to_owned()),
    }
}

/// Cycles at one fail-point without `--cycles`.
const AT_POINT: usize = 10;

impl Crash {
    pub fn run(self) -> ExitCode {
        match self.play() {
            Ok(code) => code,
            Err(reason) => {
                println!("cannot run crash cycles: {reason}");
                ExitCode::FAILURE
            }
        }
    }

    fn play(self) -> Result<ExitCode, String> {
        let folder = tempfile::Builder::new().prefix("posse-crash-").tempdir();
        let folder = folder.map_err(|error| format!("no folder to work in: {error}"))?;
        let binary = folder.path().join("posse");
        match &self.binary {
            Some(given) => copy(given, &binary)?,
            None => build(&binary)?,
        }
        if self.cluster {
            return cluster::play(&self, binary, folder);
        }
        if let Some(count) = self.flips {
            return self.flip(count, binary, folder.path());
        }
        let cycles = self.cycles();
        let total = cycles.len();
        println!("{total} cycles, seed {}, {} at a time", self.seed, self.jobs);
        let campaign = Campaign {
            binary,
            folder: folder.path().to_owned(),
            seed: self.seed,
            jobs: self.jobs,
            cycles,
            engine: if self.postgres { Engine::Postgres } else { Engine::Sqlite },
        };
        // One thread: the processes that it starts die with it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut done = 0;
        let report = runtime.block_on(campaign.play(|ended| {
            done += 1;
            self.tell(ended);
            if done % 100 == 0 {
                println!("{done} of {total}");
            }
        }));
        let report = report.map_err(|error| error.to_string())?;
        print!("{report}");
        if report.failed > 0 {
            println!("kept: {}", folder.keep().display());
        }
        println!("{} passed, {} failed", report.cycles - report.failed, report.failed);
        Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Flips bits, and prints how many were detected, how many were harmless, and which were neither.
    fn flip(&self, count: usize, binary: PathBuf, folder: &Path) -> Result<ExitCode, String> {
        println!("{count} flips, seed {}, {} at a time", self.seed, self.jobs);
        let (folder, seed, jobs) = (folder.to_owned(), self.seed, self.jobs);
        let flips = Flips { binary, folder, seed, count, jobs };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let flipped = runtime.block_on(flips.play()).map_err(|error| error.to_string())?;
        for missed in &flipped.missed {
            println!("FAILED {missed}");
        }
        for (file, counts) in [("database", flipped.database), ("write-ahead log", flipped.log)] {
            println!("{file:<16} {} told, {} harmless", counts.told, counts.harmless);
        }
        println!("{} neither", flipped.missed.len());
        let is_well = flipped.missed.is_empty();
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn cycles(&self) -> Vec<Cycle> {
        let mut cycles = match (self.point, self.cycles) {
            (Some(point), count) => at_point(point, count.unwrap_or(AT_POINT)),
            (None, Some(count)) => long(count, self.seed, &scenarios(&self.scenario)),
            (None, None) if self.postgres => quick_on_server(),
            (None, None) => quick(),
        };
        if self.point.is_none() {
            let among = scenarios(&self.scenario);
            cycles.retain(|cycle| among.contains(&cycle.scenario));
        }
        cycles.retain(|cycle| self.only.is_none_or(|only| only == cycle.number));
        cycles
    }

    /// Prints one line for a failed cycle.
    fn tell(&self, ended: &Ended) {
        let Some(first) = ended.violations.first() else { return };
        let more = match ended.violations.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let cycle = &ended.cycle;
        println!(
            "FAILED cycle {} (seed {}, scenario {}, kill {}): {first}{more}; see {}",
            cycle.number,
            self.seed,
            cycle.scenario,
            cycle.kill,
            ended.folder.display()
        );
    }
}

/// Builds the binary with fail-points and copies it, because the next build replaces it.
fn build(to: &Path) -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "a chore runs cargo")]
    let mut cargo = std::process::Command::new("cargo");
    let arguments = [
        "build",
        "--quiet",
        "--package",
        "posse-cli",
        "--features",
        "failpoints",
        "--message-format",
        "json",
    ];
    cargo.args(arguments).stderr(std::process::Stdio::inherit());
    let built = cargo.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.status.success() {
        return Err("the binary cannot be built".to_owned());
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut artifacts = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    let binary = artifacts.next_back().ok_or("cargo does not say where the binary is")?;
    copy(&binary, to)
}

/// Copies a binary that has fail-points.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", from.display());
    let bytes = std::fs::read(from).map_err(cannot)?;
    let mark = b"POSSE_FAILPOINT";
    if !bytes.windows(mark.len()).any(|window| window == mark) {
        return Err(format!(
            "{} has no fail-points: build it with `--features failpoints`",
            from.display()
        ));
    }
    // `copy` keeps the permissions and closes the file, so that it can be executed at once.
    std::fs::copy(from, to).map(|_| ()).map_err(cannot)
}
