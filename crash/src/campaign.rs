//! Many cycles, several at a time: which ones, in which order, and a report about all.

use super::cycle::{Cycle, Ended, Ground};
use super::points::{CROSSINGS, POINTS, Point};
use super::random::Random;
use super::scenario::{SCENARIOS, Scenario};
use super::violation::{PROMISES, Promise};
use posse_testkit::postgres::{Node, Stop};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How posse is killed in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Not at all: the scenario must work by itself.
    Nothing,
    /// It dies at this fail-point, the n-th time it is passed.
    Point {
        /// Which.
        name: &'static str,
        /// The n-th time.
        pass: u32,
    },
    /// The same at a fail-point that may be passed less often, or never.
    Perhaps {
        /// Which.
        name: &'static str,
        /// The n-th time.
        pass: u32,
    },
    /// Signals at random moments.
    Random,
}

impl fmt::Display for Kill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kill::Nothing => out.write_str("none"),
            Kill::Point { name, pass } | Kill::Perhaps { name, pass } => {
                write!(out, "{name}:{pass}")
            }
            Kill::Random => out.write_str("random"),
        }
    }
}

/// The cycles to play, and where.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The binary, built with fail-points.
    pub binary: PathBuf,
    /// An existing folder. Each cycle makes a folder in it.
    pub folder: PathBuf,
    /// The seed of all random choices.
    pub seed: u64,
    /// Cycles at the same time.
    pub jobs: usize,
    /// The cycles, in their order.
    pub cycles: Vec<Cycle>,
    /// Where runs are kept.
    pub engine: Engine,
}

/// Where runs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In a file for each cycle.
    Sqlite,
    /// On a private PostgreSQL server, in a database for each cycle.
    Postgres,
}

/// Cycles with random kills in the short form, one to three kills each.
const QUICK_RANDOM: usize = 60;

/// The short form: scenarios without kills, every fail-point at each of its passes, and some random
/// kills. Scenarios that are contained in others are left out.
pub fn quick() -> Vec<Cycle> {
    let scenarios = || SCENARIOS.into_iter().filter(|scenario| scenario.is_quick());
    let calm = scenarios().map(|scenario| (scenario, Kill::Nothing));
    let passes = |point: &'static Point| {
        (1..=point.passes).map(|pass| (point.scenario, Kill::Point { name: point.name, pass }))
    };
    let crossings = CROSSINGS.iter().filter(|(_, scenario)| scenario.is_quick());
    let crossings = crossings.map(|&(name, scenario)| (scenario, Kill::Point { name, pass: 1 }));
    let points = POINTS.iter().flat_map(passes).chain(crossings);
    let random = scenarios().cycle().take(QUICK_RANDOM).map(|s| (s, Kill::Random));
    number(calm.chain(points).chain(random))
}

/// The short form for a server: scenarios without kills, each of its fail-points once, and a few random
/// kills. A killed worker keeps its runs there until its lease is over, so each cycle takes longer.
pub fn quick_on_server() -> Vec<Cycle> {
    let scenarios = || SCENARIOS.into_iter().filter(|scenario| scenario.is_quick());
    let calm = scenarios().map(|scenario| (scenario, Kill::Nothing));
    let points = POINTS.iter().filter(|point| point.is_on_server());
    let points = points.map(|point| (point.scenario, Kill::Point { name: point.name, pass: 1 }));
    let random = scenarios().cycle().take(QUICK_RANDOM / 5).map(|s| (s, Kill::Random));
    number(calm.chain(points).chain(random))
}

/// `count` cycles of the scenarios `among`: each without kills first; then in turn a fail-point that the
/// scenario is sure to pass, any fail-point in any scenario, and random kills.
pub fn long(count: usize, seed: u64, among: &[Scenario]) -> Vec<Cycle> {
    let calm = among.iter().map(|&scenario| (scenario, Kill::Nothing));
    let crossings = CROSSINGS.iter().map(|&(name, scenario)| Point { name, scenario, passes: 1 });
    let points = POINTS.iter().copied().chain(crossings);
    let sure: Vec<Point> = points.filter(|point| among.contains(&point.scenario)).collect();
    let mut random = Random::of(seed, usize::MAX);
    let others = (0..count).filter_map(move |index| {
        let scenario = *among.get(random.below(among.len() as u64) as usize)?;
        let point = *sure.get(index / 3 % sure.len().max(1))?;
        let pass = 1 + random.below(u64::from(point.passes)) as u32;
        let some = &POINTS[random.below(POINTS.len() as u64) as usize];
        Some(match index % 3 {
            0 => (point.scenario, Kill::Point { name: point.name, pass }),
            1 => (scenario, Kill::Perhaps { name: some.name, pass: 1 + random.below(5) as u32 }),
            _ => (scenario, Kill::Random),
        })
    });
    number(calm.chain(others).take(count))
}

/// `count` cycles at one fail-point.
pub fn at_point(point: &'static Point, count: usize) -> Vec<Cycle> {
    let pass = |index: usize| 1 + (index as u32) % point.passes;
    let kill = |index| (point.scenario, Kill::Point { name: point.name, pass: pass(index) });
    number((0..count).map(kill))
}

fn number(cycles: impl Iterator<Item = (Scenario, Kill)>) -> Vec<Cycle> {
    let numbered = cycles.enumerate();
    numbered.map(|(number, (scenario, kill))| Cycle { number, scenario, kill }).collect()
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cycles that were played.
    pub cycles: usize,
    /// Cycles with violations.
    pub failed: usize,
    /// Cycles with a kill at a fail-point.
    pub at_points: usize,
    /// Processes that were stopped as planned.
    pub hits: u32,
    /// How often each promise was broken.
    pub violations: HashMap<Promise, usize>,
    /// How long it took.
    pub took: Duration,
}

impl Campaign {
    /// Plays all cycles, and calls `progress` with each as it ends.
    ///
    /// Must be called on a runtime of one thread that lives as long as this process: children
    /// die with the thread that started them.
    ///
    /// # Errors
    /// When there is no server.
    pub async fn play(self, mut progress: impl FnMut(&Ended)) -> io::Result<Report> {
        let began = Instant::now();
        let mut server = match self.engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(serve(&self.folder).await?),
        };
        let ground = Ground {
            binary: self.binary.clone(),
            folder: self.folder.clone(),
            seed: self.seed,
            server: server.as_ref().map(|server| server.folder().to_owned()),
        };
        let mut waiting: VecDeque<Cycle> = self.cycles.into();
        let mut playing = JoinSet::new();
        let mut report = Report::default();
        loop {
            while playing.len() < self.jobs.max(1)
                && let Some(cycle) = waiting.pop_front()
            {
                playing.spawn(cycle.play(ground.clone()));
            }
            let Some(ended) = playing.join_next().await else { break };
            let Ok(ended) = ended else {
                // The cycle panicked.
                report.cycles += 1;
                report.failed += 1;
                continue;
            };
            report.count(&ended);
            progress(&ended);
        }
        report.took = began.elapsed();
        if let Some(server) = &mut server {
            server.stop(Stop::Immediate).await?;
        }
        Ok(report)
    }
}

/// Starts a server for many cycles at the same time.
async fn serve(folder: &Path) -> io::Result<Node> {
    // The server may run as another user, who must find its way there.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711))?;
    let mut node = Node::create(&folder.join("server")).await?;
    node.start().await?;
    node.sql("postgres", "ALTER SYSTEM SET max_connections = 400").await?;
    node.stop(Stop::Fast).await?;
    node.start().await?;
    Ok(node)
}

impl Report {
    fn count(&mut self, ended: &Ended) {
        self.cycles += 1;
        self.failed += usize::from(!ended.violations.is_empty());
        let at_point = matches!(ended.cycle.kill, Kill::Point { .. } | Kill::Perhaps { .. });
        self.at_points += usize::from(at_point);
        self.hits += ended.hits;
        for violation in &ended.violations {
            *self.violations.entry(violation.promise).or_default() += 1;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:32} {:>7}", "cycles", self.cycles)?;
        writeln!(out, "{:32} {:>7}", "  of them at a fail-point", self.at_points)?;
        writeln!(out, "{:32} {:>7}", "processes stopped as planned", self.hits)?;
        writeln!(out, "{:32} {:>7.1}", "seconds", self.took.as_secs_f64())?;
        writeln!(out, "violations of")?;
        for promise in PROMISES {
            let count = self.violations.get(&promise).copied().unwrap_or_default();
            writeln!(out, "  {:30} {count:>7}", promise.to_string())?;
        }
        Ok(())
    }
}
