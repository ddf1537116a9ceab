//! A cycle while it is played: the binary, the kills that are still to come, and what was seen so far.

use super::campaign::Kill;
use super::log::RunLog;
use super::process::{Blow, Death, Exit, Moment, Posse};
use super::random::Random;
use super::scenario::Scenario;
use super::violation::{Promise, Violation};
use futures_util::future::join_all;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acted {
    /// It was done.
    Done,
    /// It was stopped before.
    Cut,
}

/// What happens when the second of two processes dies before it has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It is started again at once, because the first process would not end without it.
    IfCut,
    /// Nothing.
    Never,
}

/// The cycle cannot continue. The reason is among the violations.
#[derive(Debug)]
pub(crate) struct Halt;

pub(crate) struct Stage {
    pub(crate) posse: Posse,
    pub(crate) random: Random,
    /// Every line of JSON that was printed.
    pub(crate) printed: Vec<Value>,
    pub(crate) violations: Vec<Violation>,
    /// Processes that were stopped as planned.
    pub(crate) hits: u32,
    /// A process died at the planned fail-point.
    pub(crate) reached: bool,
    kill: Kill,
    /// Random kills that are still to come.
    left: u64,
    /// How long a command of this scenario takes without kills.
    horizon: Duration,
    /// About how many events it prints.
    events: u64,
}

/// A run as `posse runs list` shows it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) run: String,
    status: String,
}

impl Row {
    /// It has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "finished" | "archived")
    }

    /// It has ended, or waits for its user.
    pub(crate) fn rests(&self) -> bool {
        self.has_ended() || self.status == "waiting"
    }
}

impl Stage {
    /// The stage for `scenario`.
    pub(crate) fn new(posse: Posse, kill: Kill, mut random: Random, scenario: Scenario) -> Self {
        let left = if kill == Kill::Random { 1 + random.below(3) } else { 0 };
        Stage {
            posse,
            random,
            printed: Vec::new(),
            violations: Vec::new(),
            hits: 0,
            reached: false,
            kill,
            left,
            horizon: scenario.horizon(),
            events: scenario.events(),
        }
    }

    /// Runs a command with the next planned kill.
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

    /// Runs a command with this kill.
    pub(crate) async fn act_under(
        &mut self,
        arguments: &[&str],
        death: Death,
    ) -> Result<Acted, Halt> {
        let exit = self.posse.run(arguments, "", death).await;
        self.note(exit, &[0])
    }

    /// Runs commands at the same time, each with a planned kill of its own.
    pub(crate) async fn act_together<const N: usize>(
        &mut self,
        commands: [&[&str]; N],
        codes: &[i32],
    ) -> Result<(), Halt> {
        let work = commands.map(|command| (command, self.next_death(command)));
        self.act_together_under(work, codes).await
    }

    /// Runs commands at the same time, each with the kill beside it.
    pub(crate) async fn act_together_under<const N: usize>(
        &mut self,
        work: [(&[&str], Death); N],
        codes: &[i32],
    ) -> Result<(), Halt> {
        let posse = &self.posse;
        let work = work.map(|(command, death)| posse.run(command, "", death));
        for exit in join_all(work).await {
            self.note(exit, codes)?;
        }
        Ok(())
    }

    /// Runs `command`. When a tool of its run works, runs `verb` on that run in another process. Each
    /// process has its own of `deaths`. `again` says what happens when the second process dies before it
    /// is done.
    pub(crate) async fn act_beside(
        &mut self,
        command: &[&str],
        verb: impl Fn(&str) -> Vec<String>,
        again: Again,
        (first, second): (Death, Death),
    ) -> Result<(), Halt> {
        let ended = AtomicBool::new(false);
        let posse = &self.posse;
        let ledger = posse.workspace().join("ledger");
        let work = async {
            let exit = posse.run(command, "", first).await;
            ended.store(true, Ordering::SeqCst);
            exit
        };
        let beside = async {
            while !ended.load(Ordering::SeqCst) && !ledger.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let listed = posse.run(&LIST, "", Death::default()).await;
            let rows = listed.ok().and_then(|listed| rows(&listed.stdout)).unwrap_or_default();
            // The root is the oldest.
            let Some(row) = rows.last().filter(|row| !row.has_ended()) else { return Vec::new() };
            let verb = verb(&row.run);
            let verb: Vec<&str> = verb.iter().map(String::as_str).collect();
            let mut exits = vec![posse.run(&verb, "", second).await];
            let cut = exits.iter().flatten().any(Exit::was_cut);
            if again == Again::IfCut && cut && !ended.load(Ordering::SeqCst) {
                exits.push(posse.run(&verb, "", Death::default()).await);
            }
            exits
        };
        let (work, exits) = tokio::join!(work, beside);
        self.note(work, &[0, 3])?;
        let mut codes: &[i32] = &[0];
        for exit in exits {
            self.note(exit, codes)?;
            // If the first command had its effect before its process died, the run may have ended.
            codes = &[0, 1];
        }
        Ok(())
    }

    /// All runs.
    pub(crate) async fn rows(&mut self) -> Result<Vec<Row>, Halt> {
        // A missing database is an error of the command.
        if !self.posse.has_database() {
            return Ok(Vec::new());
        }
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

    /// Runs a command without a kill, and returns what it printed.
    pub(crate) async fn ask(&mut self, arguments: &[&str]) -> Result<String, Halt> {
        let exit = self.posse.run(arguments, "", Death::default()).await;
        let text = exit.as_ref().map(|exit| exit.stdout.clone()).unwrap_or_default();
        self.note(exit, &[0]).map(|_| text)
    }

    /// A command has printed a line of JSON with this field.
    pub(crate) fn has_printed(&self, field: &str) -> bool {
        self.printed.iter().any(|line| !line[field].is_null())
    }

    /// Records a violation after which the cycle cannot continue.
    pub(crate) fn give_up(&mut self, promise: Promise, detail: impl Into<String>) -> Halt {
        self.violations.push(Violation::of(promise, detail));
        Halt
    }

    /// Records how a command ended.
    fn note(&mut self, exit: io::Result<Exit>, codes: &[i32]) -> Result<Acted, Halt> {
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => {
                return Err(self.give_up(Promise::RightExit, format!("cannot run posse: {error}")));
            }
        };
        let complete = exit.stdout.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        self.printed.extend(complete.filter_map(|line| serde_json::from_str(line).ok()));
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
            self.reached |= exit.was_killed() && exit.death.point == self.planned();
            return Ok(Acted::Cut);
        }
        if exit.code().is_some_and(|code| codes.contains(&code)) {
            return Ok(Acted::Done);
        }
        let said = exit.stderr.lines().last().unwrap_or_default();
        let detail = format!("{} ended with {:?}: {said}", command(), exit.status);
        Err(self.give_up(Promise::RightExit, detail))
    }

    /// The kill for the next process, which runs this command.
    pub(crate) fn next_death(&mut self, arguments: &[&str]) -> Death {
        if self.left == 0 {
            return self.next_death_at_a_point();
        }
        self.left -= 1;
        let blow = if self.random.one_in(8) { Blow::Terminate } else { Blow::Kill };
        let by_event = arguments.contains(&"--stream-json") && self.random.one_in(2);
        let moment = if by_event {
            Moment::Event(1 + self.random.below(self.events) as usize)
        } else {
            let micros = u64::try_from(self.horizon.as_micros()).unwrap_or(u64::MAX);
            Moment::After(Duration::from_micros(self.random.below(micros)))
        };
        Death { point: None, blow: Some((moment, blow)) }
    }

    /// The planned fail-point, unless a process has died at it already.
    pub(crate) fn next_death_at_a_point(&self) -> Death {
        Death { point: self.planned().filter(|_| !self.reached), blow: None }
    }

    /// A process is to die at a fail-point.
    pub(crate) fn kill_is_planned(&self) -> bool {
        self.planned().is_some()
    }

    fn planned(&self) -> Option<String> {
        match &self.kill {
            Kill::Point { name, pass } | Kill::Perhaps { name, pass } => {
                Some(format!("{name}:{pass}"))
            }
            Kill::Nothing | Kill::Random => None,
        }
    }

    /// The number of an event in the middle of a run.
    pub(crate) fn event_for_a_signal(&mut self) -> usize {
        match self.kill {
            Kill::Random => 1 + self.random.below(self.events) as usize,
            _ => 6,
        }
    }
}

const LIST: [&str; 6] = ["runs", "list", "--all", "--json", "--limit", "100"];

fn rows(text: &str) -> Option<Vec<Row>> {
    let mut rows: Vec<Value> = serde_json::from_str(text).ok()?;
    // Runs whose log was removed do not count.
    rows.retain(|row| row["erased"] != true);
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().map(str::to_owned);
        Some(Row { run: text("run")?, status: text("status")? })
    };
    rows.iter().map(row).collect()
}
