//! The workers of a cycle: starts them, replaces the dead, and ends them.

use super::place::Place;
use super::site::Site;
use crate::process::{Posse, signal};
use crate::violation::{Promise, Violation};
use rustix::process::Signal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{Instant, timeout};

/// How long a worker may take to leave, on a busy machine and in a debug build.
const TO_LEAVE: Duration = Duration::from_secs(180);
/// How soon a worker that could not start is started again.
const AGAIN: Duration = Duration::from_millis(300);
/// The exit code of a worker that cannot reach its database.
const NO_DATABASE: i32 = 6;
/// The exit code of a process that a signal interrupted.
const INTERRUPTED: i32 = 130;

/// All workers.
pub(super) struct Fleet {
    workers: Vec<Worker>,
    slots: usize,
    place: Place,
    /// Files with what workers have printed.
    printed: Vec<PathBuf>,
    pub(super) violations: Vec<Violation>,
    /// A worker has died at its fail-point.
    pub(super) fell: bool,
}

struct Worker {
    process: Option<Child>,
    /// It has a fail-point to die at.
    doomed: bool,
    killed: bool,
    leaving: bool,
    paused: bool,
    printed: PathBuf,
    ended_at: Instant,
}

impl Fleet {
    pub(super) fn new(slots: usize, place: Place) -> Self {
        let (workers, printed, violations) = (Vec::new(), Vec::new(), Vec::new());
        Fleet { workers, slots, place, printed, violations, fell: false }
    }

    /// Adds a worker, which dies at the fail-point `death` if there is one.
    pub(super) fn add(
        &mut self,
        posse: &Posse,
        site: &Site,
        death: Option<String>,
    ) -> io::Result<()> {
        let index = self.workers.len();
        let worker = self.begin(posse, site, index, death)?;
        self.workers.push(worker);
        Ok(())
    }

    fn begin(
        &mut self,
        posse: &Posse,
        site: &Site,
        index: usize,
        death: Option<String>,
    ) -> io::Result<Worker> {
        let printed = posse.folder().join(format!("worker-{index}-{}", self.printed.len()));
        self.printed.push(printed.clone());
        let doomed = death.is_some();
        let slots = self.slots.to_string();
        let home = self.place.home(posse.folder(), index);
        let arguments = ["worker", "--slots", &slots];
        let process = posse.start(&site.url(index), &home, &arguments, death, &printed)?;
        Ok(Worker {
            process: Some(process),
            doomed,
            killed: false,
            leaving: false,
            paused: false,
            printed,
            ended_at: Instant::now(),
        })
    }

    fn send(&mut self, index: usize, what: Signal) -> bool {
        self.workers[index].process.as_ref().is_some_and(|process| signal(process, what))
    }

    pub(super) fn kill(&mut self, index: usize) -> bool {
        self.workers[index].killed |= self.send(index, Signal::KILL);
        self.workers[index].killed
    }

    pub(super) fn pause(&mut self, index: usize) -> bool {
        self.workers[index].paused = self.send(index, Signal::STOP);
        self.workers[index].paused
    }

    pub(super) fn go_on(&mut self, index: usize) {
        self.send(index, Signal::CONT);
        self.workers[index].paused = false;
    }

    pub(super) fn drain(&mut self, index: usize) -> bool {
        self.workers[index].leaving |= self.send(index, Signal::TERM);
        self.workers[index].leaving
    }

    /// Notes who has ended, and starts others in their place.
    pub(super) fn tend(&mut self, posse: &Posse, site: &Site) -> io::Result<()> {
        for index in 0..self.workers.len() {
            if let Some(process) = &mut self.workers[index].process
                && let Some(status) = process.try_wait()?
            {
                self.note(index, status);
            }
            let worker = &self.workers[index];
            if worker.process.is_none() && worker.ended_at.elapsed() >= AGAIN {
                self.workers[index] = self.begin(posse, site, index, None)?;
            }
        }
        Ok(())
    }

    /// Notes how a worker ended.
    fn note(&mut self, index: usize, status: ExitStatus) {
        let worker = &mut self.workers[index];
        worker.process = None;
        worker.ended_at = Instant::now();
        let said = std::fs::read_to_string(&worker.printed).unwrap_or_default();
        let was_killed = status.signal() == Some(9) && (worker.killed || worker.doomed);
        // A worker that cannot reach the server at its start says so and ends.
        let could_not_start =
            status.code() == Some(NO_DATABASE) && !said.contains("executes runs of");
        // A signal before the handler is there ends the process at once.
        let early = worker.leaving && !said.contains("executes runs of");
        self.fell |= was_killed && worker.doomed && !worker.killed;
        // A worker that is told to leave while the server is away does not wait for it.
        let left = status.success()
            || status.code() == Some(INTERRUPTED) && said.contains("without the database server");
        if was_killed || could_not_start || early || worker.leaving && left {
            return;
        }
        let last = said.lines().last().unwrap_or_default();
        let detail = format!("worker {index} ended with {status}: {last}");
        self.violations.push(Violation::of(Promise::RightExit, detail));
    }

    /// Lets all workers leave in order. Returns when none is left.
    pub(super) async fn leave(&mut self) -> io::Result<()> {
        for index in 0..self.workers.len() {
            if self.workers[index].paused {
                self.go_on(index);
            }
            self.drain(index);
        }
        let deadline = Instant::now() + TO_LEAVE;
        for index in 0..self.workers.len() {
            let Some(process) = &mut self.workers[index].process else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout(left, process.wait()).await {
                Ok(status) => {
                    let status = status?;
                    self.note(index, status);
                }
                Err(_) => {
                    process.start_kill()?;
                    process.wait().await?;
                    self.workers[index].process = None;
                    let detail = format!("worker {index} does not leave");
                    self.violations.push(Violation::of(Promise::InTime, detail));
                }
            }
        }
        for file in &self.printed {
            let said = std::fs::read_to_string(file).unwrap_or_default();
            if let Some(line) = said.lines().find(|line| line.contains("panicked at")) {
                let detail = format!("{}: {line}", file.display());
                self.violations.push(Violation::of(Promise::NoPanic, detail));
            }
        }
        Ok(())
    }
}
