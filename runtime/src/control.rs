//! Controls runs: sends messages to them, cancels and pauses them, and reports which runs it reached.
//!
//! Each request is an event in the log of its run, so it holds wherever the run is executed, and after a crash. A
//! request to a whole tree is repeated until no run is left to ask. The repetition ends, because a run that was asked
//! starts no more children.

use crate::announcement::request;
use crate::error::Error;
use crate::handle::RunHandle;
use crate::preparation::{asked_for, named_in, received};
use crate::runtime::Runtime;
use futures_util::future::try_join_all;
use posse_protocol::{
    CancelRequested, CancelScope, Event, Extra, MessageOptions, Paused, Resumed, RunId, Status,
};
use posse_store::{Append, Filter, Kin, Reserve, RunRow, StoreError};
use serde::Serialize;
use std::collections::HashSet;

/// How many requests are stored concurrently: one commit takes many.
const SIDE_BY_SIDE: usize = 64;

/// The runs that a request to cancel, pause or continue has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The run that the request names.
    pub run: RunId,
    /// All runs that were asked: the run itself, unless it had ended, and its subagents, parents before their children.
    pub told: Vec<ControlledRun>,
}

impl Receipt {
    /// The subagents of the run.
    pub fn below(&self) -> impl Iterator<Item = &ControlledRun> {
        self.told.iter().filter(|told| told.run != self.run)
    }
}

/// A run that was asked to do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControlledRun {
    /// Its id.
    pub run: RunId,
    /// Its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Its agent.
    pub agent: String,
    /// Its label, or else its title.
    pub label: String,
    /// Its status before the request.
    pub before: Status,
    /// Whether an earlier request is still in progress.
    pub asked: Asked,
}

/// When a run was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Now.
    Now,
    /// Before, by a request that is still in progress.
    Before,
}

impl ControlledRun {
    pub(crate) fn of(row: &RunRow, asked: Asked) -> Self {
        let label = if row.about.label.is_empty() { &row.about.title } else { &row.about.label };
        ControlledRun {
            run: row.id,
            parent: row.family.parent,
            agent: row.about.agent.clone(),
            label: label.clone(),
            before: row.status,
            asked,
        }
    }
}

/// Which runs a pause affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The run alone.
    Alone,
    /// The run and all its subagents.
    Subtree,
}

/// When a run reads a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// Before its next step.
    Next,
    /// When its current turn is over.
    Later,
}

/// What a run is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlRequest {
    Pause,
    /// A pause because a person interrupted the process.
    Interrupt,
    GoOn,
}

impl ControlRequest {
    fn is_granted(self, row: &RunRow) -> bool {
        row.state.paused == (self != ControlRequest::GoOn)
    }

    fn append(self, run: RunId, by: &str) -> Append {
        let (by, extra) = (by.to_owned(), Extra::default());
        match self {
            ControlRequest::Pause => {
                let paused = Paused { by, interrupted: false, extra };
                Append::by_anyone(run, Event::Paused(paused))
            }
            // An interruption is stored even if the disk is full.
            ControlRequest::Interrupt => {
                let paused = Event::Paused(Paused { by, interrupted: true, extra });
                Append { reserve: Reserve::Use, ..Append::by_anyone(run, paused) }
            }
            ControlRequest::GoOn => Append::by_anyone(run, Event::Resumed(Resumed { by, extra })),
        }
    }
}

impl Runtime {
    /// Sends `text` to a run, which reads it before its next step: this steers a run that works. A run that waits or
    /// has ended wakes up.
    ///
    /// # Errors
    /// When there is no such run, it is archived, or the text is empty.
    pub async fn send(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.send_with(run, text, MessageOptions::default()).await
    }

    /// Like [`Runtime::send`], and applies `asks` before the run answers.
    ///
    /// # Errors
    /// As [`Runtime::send`]; or if `asks` names a model that cannot be used here.
    pub async fn send_with(
        &self,
        run: RunId,
        text: impl Into<String>,
        mut asks: MessageOptions,
    ) -> Result<(), Error> {
        if let Some(model) = &mut asks.model {
            *model = self.check_model_for(run, model).await?;
        }
        self.say_with(run, text.into(), Reads::Next, asks).await?;
        // After the append: a run that has just ended is dropped unless it has something to do.
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Sends `text` to a run, which reads it when its current turn is over. A waiting or ended run wakes up at once.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn send_later(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.say(run, text.into(), Reads::Later).await?;
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Like [`Runtime::send`], but leaves it to other workers to execute the run.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn post(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.say(run, text.into(), Reads::Next).await
    }

    /// Like [`Runtime::send_later`], but leaves it to other workers to execute the run.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn post_later(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.say(run, text.into(), Reads::Later).await
    }

    async fn say(&self, run: RunId, text: String, reads: Reads) -> Result<(), Error> {
        self.say_with(run, text, reads, MessageOptions::default()).await
    }

    async fn say_with(
        &self,
        run: RunId,
        text: String,
        reads: Reads,
        asks: MessageOptions,
    ) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Err(Error::InvalidInput("the message is empty; say something".to_owned()));
        }
        let mut remarks = Vec::new();
        let mut invoked = None;
        if text.contains("agent") || text.contains('@') || text.trim_start().starts_with('/') {
            let started = self.start_of(run).await?;
            let grant = &started.grant;
            if started.parent.is_none() {
                invoked = self.invocation(&text, grant)?;
            }
            remarks.extend(asked_for(&text, grant));
            remarks.extend(named_in(&text, grant));
        }
        let mut message = received(text, remarks, invoked);
        message.later = reads == Reads::Later;
        let narrows = message.asks.take().and_then(|asks| asks.narrows);
        let asks = MessageOptions { narrows: narrows.or(asks.narrows), ..asks };
        message.asks = (asks != MessageOptions::default()).then(|| Box::new(asks));
        let message = Event::MessageReceived(message);
        fail::fail_point!("message.append.before");
        self.inner.store.append(vec![Append::by_anyone(run, message)]).await?;
        fail::fail_point!("message.append.after");
        Ok(())
    }

    /// Cancels a run and all its subagents, or only its current turn and the children that it waits for. `by` says who
    /// asks, in words for people.
    ///
    /// If the run has ended, its remaining subagents are cancelled. A repeated call lists the runs that are still
    /// stopping, and asks runs that a crash kept from being asked.
    ///
    /// # Errors
    /// When there is no such run, or it and all its subagents have ended.
    pub async fn cancel(&self, run: RunId, by: &str, scope: CancelScope) -> Result<Receipt, Error> {
        let row = self.row(run).await?.ok_or(Error::Store(StoreError::NotFound(run)))?;
        // A run that is not a session has one turn.
        let scope = if row.about.session { scope } else { CancelScope::Run };
        let mut told = Vec::new();
        if row.state.outcome.is_none() {
            if scope == CancelScope::Run {
                self.inner.active.stop(run);
            }
            let asked = if row.state.stopping { Asked::Before } else { Asked::Now };
            if row.state.stopping || self.ask_for_the_end(run, by, scope).await? {
                told.push(ControlledRun::of(&row, asked));
            }
            // After the append: the worker that claims the run must find the request in its log.
            self.inner.supervisor.adopt(run);
        }
        let reach = match scope {
            CancelScope::Run => SubagentScope::All,
            CancelScope::Turn => SubagentScope::Awaited,
        };
        told.extend(self.cancel_below(run, by, reach).await?);
        match told.is_empty() {
            true => Err(not_now(&row, "has ended")),
            false => Ok(Receipt { run, told }),
        }
    }

    /// Ends those of `runs` that were asked to stop, wait in the queue, and that no living worker takes. Passes over
    /// runs that cannot be read.
    pub async fn end_stranded(&self, runs: &[RunId]) {
        for run in runs {
            let Ok(Some(row)) = self.row(*run).await else { continue };
            if row.state.stopping && matches!(self.why_nobody_takes(&row).await, Ok(Some(_))) {
                self.inner.supervisor.adopt_to_end(row.id);
            }
        }
    }

    /// Asks `run` to stop. Returns false if it has already ended.
    async fn ask_for_the_end(
        &self,
        run: RunId,
        by: &str,
        scope: CancelScope,
    ) -> Result<bool, Error> {
        let asked = CancelRequested { by: by.to_owned(), scope, extra: Extra::default() };
        let request = Event::CancelRequested(asked);
        let append = Append { reserve: Reserve::Use, ..Append::by_anyone(run, request) };
        fail::fail_point!("cancel.append.before");
        let stored = self.inner.store.append(vec![append]).await;
        fail::fail_point!("cancel.append.after");
        match stored {
            Ok(_) => Ok(true),
            Err(StoreError::Finished(_) | StoreError::Archived(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Pauses a run, or the run and all its subagents: calls in progress end and are recorded, then the run rests
    /// without a slot until [`Runtime::unpause`]. Messages are kept meanwhile. `by` says who asks, in words for people.
    ///
    /// # Errors
    /// When there is no such run, or no run is left to pause.
    pub async fn pause(&self, run: RunId, by: &str, extent: Extent) -> Result<Receipt, Error> {
        self.ask(run, by, extent, ControlRequest::Pause).await
    }

    /// Interrupts every run that this process executes or was asked to execute, with all its subagents: a pause with
    /// [`Status::Interrupted`]. A run that another live process executes is left alone. The requests are stored before
    /// this returns, so the process may end at once. Returns the topmost interrupted runs.
    ///
    /// # Errors
    /// When the store fails. Runs that are not stored as interrupted then continue as after a crash.
    pub async fn interrupt(&self, by: &str) -> Result<Vec<RunId>, Error> {
        let mut interrupted: Vec<RunId> = Vec::new();
        let mut reached: HashSet<RunId> = HashSet::new();
        // Sorted by id, so parents come before their children.
        for run in self.inner.supervisor.own() {
            if reached.contains(&run) {
                continue;
            }
            let Some(row) = self.row(run).await? else { continue };
            if row.status == Status::Running && row.work.owner != Some(self.inner.store.worker()) {
                continue;
            }
            match self.ask(run, by, Extent::Subtree, ControlRequest::Interrupt).await {
                Ok(receipt) => {
                    interrupted.push(run);
                    reached.extend(receipt.told.iter().map(|told| told.run));
                }
                Err(Error::NotNow { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(interrupted)
    }

    /// Lets a paused or interrupted run continue, or the run and all its subagents.
    ///
    /// # Errors
    /// When there is no such run, or none of these runs is paused.
    pub async fn unpause(&self, run: RunId, by: &str, extent: Extent) -> Result<Receipt, Error> {
        let receipt = self.ask(run, by, extent, ControlRequest::GoOn).await?;
        for told in &receipt.told {
            self.inner.supervisor.adopt(told.run);
        }
        Ok(receipt)
    }

    async fn ask(
        &self,
        run: RunId,
        by: &str,
        extent: Extent,
        wish: ControlRequest,
    ) -> Result<Receipt, Error> {
        let mut told: Vec<ControlledRun> = Vec::new();
        loop {
            let row = self.row(run).await?.ok_or(Error::Store(StoreError::NotFound(run)))?;
            let mut rows = vec![row.clone()];
            if extent == Extent::Subtree {
                rows.extend(self.rows_below(&row, SubagentScope::All).await?);
            }
            rows.retain(|row| is_open(row) && !row.state.stopping && !wish.is_granted(row));
            rows.retain(|row| told.iter().all(|told| told.run != row.id));
            if rows.is_empty() {
                return match told.is_empty() {
                    true => Err(not_now(&row, refusal(&row, wish))),
                    false => Ok(Receipt { run, told }),
                };
            }
            for some in rows.chunks(SIDE_BY_SIDE) {
                let asked = some.iter().map(|row| self.ask_one(row, by, wish));
                told.extend(try_join_all(asked).await?.into_iter().flatten());
            }
        }
    }

    /// Asks one run, unless it has ended meanwhile.
    async fn ask_one(
        &self,
        row: &RunRow,
        by: &str,
        wish: ControlRequest,
    ) -> Result<Option<ControlledRun>, Error> {
        match self.inner.store.append(vec![wish.append(row.id, by)]).await {
            Ok(_) => Ok(Some(ControlledRun::of(row, Asked::Now))),
            Err(StoreError::Finished(_) | StoreError::Archived(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the subagents of `run` that `reach` selects to stop, and makes sure that they do. Returns all of them, even
    /// if they were asked before.
    pub(crate) async fn cancel_below(
        &self,
        run: RunId,
        by: &str,
        reach: SubagentScope,
    ) -> Result<Vec<ControlledRun>, Error> {
        fail::fail_point!("cascade.begun");
        let mut told: Vec<ControlledRun> = Vec::new();
        let mut seen = HashSet::new();
        let Some(row) = self.row(run).await? else { return Ok(told) };
        // A run that was asked to stop starts no children, so this loop ends.
        loop {
            let mut open = self.rows_below(&row, reach).await?;
            open.retain(|row| is_open(row) && seen.insert(row.id));
            if open.is_empty() {
                return Ok(told);
            }
            for some in open.chunks(SIDE_BY_SIDE) {
                let asked = some.iter().map(|child| self.ask_to_stop(child, by));
                told.extend(try_join_all(asked).await?);
            }
        }
    }

    /// Asks a run to stop, unless it was asked before or has ended.
    async fn ask_to_stop(&self, row: &RunRow, by: &str) -> Result<ControlledRun, Error> {
        self.inner.active.stop(row.id);
        let asked = if row.state.stopping { Asked::Before } else { Asked::Now };
        if asked == Asked::Now {
            fail::fail_point!("cascade.append.before");
            let stored = self.inner.store.append(vec![request(row.id, by)]).await;
            fail::fail_point!("cascade.append.after");
            match stored {
                Ok(_) | Err(StoreError::Finished(_) | StoreError::Archived(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.inner.supervisor.adopt(row.id);
        Ok(ControlledRun::of(row, asked))
    }

    /// The subagents of `row` that `reach` selects, parents before their children.
    pub(crate) async fn rows_below(
        &self,
        row: &RunRow,
        reach: SubagentScope,
    ) -> Result<Vec<RunRow>, Error> {
        let (kin, limit) = (Kin::TreeOf(row.family.root), usize::MAX >> 1);
        let rows = self.list(&Filter { kin, limit, ..Filter::default() }).await?;
        Ok(below(row.id, rows, reach))
    }
}

impl RunHandle {
    /// Sends a message to the run, which reads it before its next step; see [`Runtime::send`].
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn send(&self, text: impl Into<String>) -> Result<(), Error> {
        self.runtime().send(self.id(), text).await
    }

    /// Cancels the run, with its subagents as `scope` says; see [`Runtime::cancel`].
    ///
    /// # Errors
    /// As [`Runtime::cancel`].
    pub async fn cancel(&self, by: &str, scope: CancelScope) -> Result<Receipt, Error> {
        self.runtime().cancel(self.id(), by, scope).await
    }

    /// The status of the run.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn status(&self) -> Result<Status, Error> {
        Ok(self.row().await?.status)
    }

    fn runtime(&self) -> Runtime {
        Runtime { inner: self.inner.clone() }
    }
}

/// Which subagents of a run are selected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubagentScope {
    /// All subagents.
    All,
    /// The children that it waits for, with all their subagents; not its background children.
    Awaited,
}

/// The rows below `run` that `reach` selects. A parent comes before its children, because its id is older.
pub(crate) fn below(run: RunId, mut rows: Vec<RunRow>, reach: SubagentScope) -> Vec<RunRow> {
    let mut family = HashSet::from([run]);
    rows.sort_by_key(|row| row.id);
    rows.retain(|row| {
        let spared = reach == SubagentScope::Awaited
            && row.family.parent == Some(run)
            && row.family.background;
        let inside = row.family.parent.is_some_and(|parent| family.contains(&parent));
        inside && !spared && family.insert(row.id)
    });
    rows
}

/// True when the run has neither ended nor been damaged.
fn is_open(row: &RunRow) -> bool {
    row.state.outcome.is_none() && row.log.damaged.is_none()
}

fn not_now(row: &RunRow, reason: &str) -> Error {
    let reason = if row.state.archived { "is archived" } else { reason };
    Error::NotNow { run: row.id, reason: reason.to_owned() }
}

/// Why no run was asked.
fn refusal(row: &RunRow, wish: ControlRequest) -> &'static str {
    match wish {
        _ if row.state.outcome.is_some() => "has ended",
        _ if row.state.stopping => "has been told to stop",
        _ if row.log.damaged.is_some() => "is damaged",
        ControlRequest::Pause | ControlRequest::Interrupt => "is paused already",
        ControlRequest::GoOn => "is not paused",
    }
}
