//! One cycle on its way: posse, the deaths that are still to come, and what was seen so far.

use super::campaign::Kill;
use super::log::RunLog;
use super::process::{Blow, Death, Exit, Moment, Posse};
use super::random::Random;
use super::violation::{Promise, Violation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acted {
    /// It did what it was asked to.
    Done,
    /// It was stopped before.
    Cut,
}

/// There is no point in going on: the reason is among the violations.
#[derive(Debug)]
pub(crate) struct Halt;

pub(crate) struct Stage {
    pub(crate) posse: Posse,
    pub(crate) random: Random,
    pub(crate) acknowledged: BTreeSet<String>,
    pub(crate) violations: Vec<Violation>,
    /// Processes that were stopped as planned.
    pub(crate) hits: u32,
    /// How long the first command took.
    pub(crate) first: Option<Duration>,
    kill: Kill,
    /// Random kills that are still to come.
    left: u64,
    /// How long a command of this scenario takes when nobody disturbs it.
    horizon: Duration,
}

/// A run as `posse runs list` shows it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) run: String,
    status: String,
}

impl Row {
    /// Nobody needs to do anything about it.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.status.as_str(), "finished" | "waiting")
    }
}

/// A run is listened to for at most about this many lines.
const LINES: u64 = 40;

impl Stage {
    pub(crate) fn new(posse: Posse, kill: Kill, mut random: Random, horizon: Duration) -> Self {
        let left = if kill == Kill::Random { 1 + random.below(3) } else { 0 };
        Stage {
            posse,
            random,
            acknowledged: BTreeSet::new(),
            violations: Vec::new(),
            hits: 0,
            first: None,
            kill,
            left,
            horizon,
        }
    }

    /// Runs a command under the next death.
    pub(crate) async fn act(
        &mut self,
        arguments: &[&str],
        input: &str,
        codes: &[i32],
    ) -> Result<Acted, Halt> {
        let death = self.next_death(arguments);
        let exit = self.posse.run(arguments, input, death).await;
        self.note(exit, codes)
    }

    /// Runs a command under this death.
    pub(crate) async fn act_under(
        &mut self,
        arguments: &[&str],
        death: Death,
    ) -> Result<Acted, Halt> {
        let exit = self.posse.run(arguments, "", death).await;
        self.note(exit, &[0])
    }

    /// Runs three commands side by side, each under a death of its own.
    pub(crate) async fn act_together(&mut self, commands: [&[&str]; 3]) -> Result<(), Halt> {
        let [first, second, third] = commands.map(|command| self.next_death(command));
        let posse = &self.posse;
        let [a, b, c] = commands;
        let (a, b, c) = tokio::join!(
            posse.run(a, "", first),
            posse.run(b, "", second),
            posse.run(c, "", third)
        );
        for exit in [a, b, c] {
            self.note(exit, &[0])?;
        }
        Ok(())
    }

    /// Runs a command whose first tool call never ends, and cancels its run from outside.
    pub(crate) async fn run_and_cancel(&mut self, command: &[&str]) -> Result<(), Halt> {
        let (first, second) = match self.kill {
            Kill::Point { .. } => (Death::default(), self.next_death(&["runs", "cancel"])),
            _ => (self.next_death(command), self.next_death(&["runs", "cancel"])),
        };
        let ended = AtomicBool::new(false);
        let posse = &self.posse;
        let ledger = posse.workspace().join("ledger");
        let work = async {
            let exit = posse.run(command, "", first).await;
            ended.store(true, Ordering::SeqCst);
            exit
        };
        let cancel = async {
            while !ended.load(Ordering::SeqCst) && !ledger.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let listed = posse.run(&LIST, "", Death::default()).await.ok()?;
            let run = rows(&listed.stdout)?.pop().filter(|row| !row.rests())?;
            Some(posse.run(&["runs", "cancel", &run.run, "--json"], "", second).await)
        };
        let (work, cancel) = tokio::join!(work, cancel);
        self.note(work, &[0, 3])?;
        if let Some(cancel) = cancel {
            self.note(cancel, &[0])?;
        }
        Ok(())
    }

    /// The runs there are.
    pub(crate) async fn rows(&mut self) -> Result<Vec<Row>, Halt> {
        let text = self.ask(&LIST).await?;
        rows(&text).ok_or_else(|| self.give_up(Promise::RightExit, "the list is no list"))
    }

    /// The log of a run.
    pub(crate) async fn log(&mut self, run: &str) -> Result<RunLog, Halt> {
        let text = self.ask(&["runs", "export", run]).await?;
        RunLog::parse(run, &text).map_err(|reason| {
            self.give_up(Promise::OrderedLog, format!("the log of {run} is unreadable: {reason}"))
        })
    }

    /// Runs a command that nobody disturbs, and returns what it printed.
    pub(crate) async fn ask(&mut self, arguments: &[&str]) -> Result<String, Halt> {
        let exit = self.posse.run(arguments, "", Death::default()).await;
        let text = exit.as_ref().map(|exit| exit.stdout.clone()).unwrap_or_default();
        self.note(exit, &[0]).map(|_| text)
    }

    /// Records a violation after which there is no point in going on.
    pub(crate) fn give_up(&mut self, promise: Promise, detail: impl Into<String>) -> Halt {
        self.violations.push(Violation::of(promise, detail));
        Halt
    }

    /// Draws conclusions from how a command ended.
    fn note(&mut self, exit: io::Result<Exit>, codes: &[i32]) -> Result<Acted, Halt> {
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => {
                return Err(self.give_up(Promise::RightExit, format!("cannot run posse: {error}")));
            }
        };
        self.first = self.first.or(Some(exit.took));
        self.acknowledge(&exit.stdout);
        let command = || format!("posse {}", exit.arguments.join(" "));
        if let Some(line) = exit.stderr.lines().find(|line| line.contains("panicked at")) {
            let detail = format!("{}: {line}", command());
            self.violations.push(Violation::of(Promise::NoPanic, detail));
        }
        if exit.was_late() {
            return Err(self.give_up(Promise::InTime, format!("{} did not end", command())));
        }
        if exit.was_cut() {
            self.hits += 1;
            return Ok(Acted::Cut);
        }
        if exit.code().is_some_and(|code| codes.contains(&code)) {
            return Ok(Acted::Done);
        }
        let said = exit.stderr.lines().last().unwrap_or_default();
        let detail = format!("{} ended with {:?}: {said}", command(), exit.status);
        Err(self.give_up(Promise::RightExit, detail))
    }

    /// A run is acknowledged once its id was printed.
    fn acknowledge(&mut self, stdout: &str) {
        let complete = stdout.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for line in complete {
            let value: Value = serde_json::from_str(line).unwrap_or_default();
            if let Some(run) = value["run"].as_str() {
                self.acknowledged.insert(run.to_owned());
            }
        }
    }

    fn next_death(&mut self, arguments: &[&str]) -> Death {
        if self.left == 0 {
            return self.next_death_at_a_point();
        }
        self.left -= 1;
        let blow = if self.random.one_in(8) { Blow::Terminate } else { Blow::Kill };
        let by_line = arguments.contains(&"--stream-json") && self.random.one_in(2);
        let moment = if by_line {
            Moment::Line(1 + self.random.below(LINES) as usize)
        } else {
            let micros = u64::try_from(self.horizon.as_micros()).unwrap_or(u64::MAX);
            Moment::After(Duration::from_micros(self.random.below(micros)))
        };
        Death { point: None, blow: Some((moment, blow)) }
    }

    /// The planned fail-point, unless someone has died of it already.
    pub(crate) fn next_death_at_a_point(&self) -> Death {
        let point = match &self.kill {
            Kill::Point { name, pass } if self.hits == self.planned() => {
                Some(format!("{name}:{pass}"))
            }
            _ => None,
        };
        Death { point, blow: None }
    }
}
