//! Control: saying something to runs, stopping them and pausing them, and whom that reached.
//!
//! Each request is an event in the log of whom it is made to, so it holds wherever the run is
//! executed, and after a crash. What is asked of a whole tree goes on until a look at it finds
//! nobody left: whoever was told starts nobody any more.

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

/// Requests that are stored beside each other: one commit takes many.
const SIDE_BY_SIDE: usize = 64;

/// Whom a request to stop, to pause or to go on has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The run it was made to.
    pub run: RunId,
    /// All whom it concerns: the run itself, unless it had ended, and those below it, a parent
    /// before its children.
    pub told: Vec<Told>,
}

impl Receipt {
    /// Those below the run.
    pub fn below(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(|told| told.run != self.run)
    }
}

/// A run that was asked for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Which.
    pub run: RunId,
    /// Who started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Its agent.
    pub agent: String,
    /// What it is about.
    pub label: String,
    /// Where it stood.
    pub before: Status,
    /// Whether it had been asked before, and was not done.
    pub asked: Asked,
}

/// When a run was asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Now.
    Now,
    /// Before, by a request that is still being carried out.
    Before,
}

impl Told {
    pub(crate) fn of(row: &RunRow, asked: Asked) -> Self {
        let label = if row.about.label.is_empty() { &row.about.title } else { &row.about.label };
        Told {
            run: row.id,
            parent: row.family.parent,
            agent: row.about.agent.clone(),
            label: label.clone(),
            before: row.status,
            asked,
        }
    }
}

/// How far a pause goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The run alone.
    Alone,
    /// The run and everything below it.
    Subtree,
}

/// When a run reads what is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// Before its next step.
    Next,
    /// When its present turn is over.
    Later,
}

/// What a run is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Pause,
    /// A pause because a person interrupted the process at work.
    Interrupt,
    GoOn,
}

impl Wish {
    fn is_granted(self, row: &RunRow) -> bool {
        row.state.paused == (self != Wish::GoOn)
    }

    fn append(self, run: RunId, by: &str) -> Append {
        let (by, extra) = (by.to_owned(), Extra::default());
        match self {
            Wish::Pause => {
                let paused = Paused { by, interrupted: false, extra };
                Append::by_anyone(run, Event::Paused(paused))
            }
            // What stops a run is stored even when the disk is full.
            Wish::Interrupt => {
                let paused = Event::Paused(Paused { by, interrupted: true, extra });
                Append { reserve: Reserve::Use, ..Append::by_anyone(run, paused) }
            }
            Wish::GoOn => Append::by_anyone(run, Event::Resumed(Resumed { by, extra })),
        }
    }
}

impl Runtime {
    /// Says `text` to a run: it reads it before its next step; one that waits or has ended is
    /// woken. So a run at work is steered.
    ///
    /// # Errors
    /// When there is no such run, or it is archived, or the text is empty.
    pub async fn send(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.send_with(run, text, MessageOptions::default()).await
    }

    /// The same, with what is to change before it is answered.
    ///
    /// # Errors
    /// As [`Runtime::send`]; or when a model is asked for that cannot be used here.
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
        // Only now: a run that has just ended is forgotten unless there is something to do for it.
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Says `text` to a run, which reads it when its present turn is over; one that waits or has
    /// ended is woken at once.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn send_later(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.say(run, text.into(), Reads::Later).await?;
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Says `text` to a run, and leaves it to others to execute it.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    pub async fn post(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.say(run, text.into(), Reads::Next).await
    }

    /// The same as [`Runtime::send_later`], and leaves it to others to execute the run.
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
        if text.contains("agent") || text.contains('@') {
            let grant = &self.start_of(run).await?.grant;
            remarks.extend(asked_for(&text, grant));
            remarks.extend(named_in(&text, grant));
        }
        let mut message = received(text, remarks);
        message.later = reads == Reads::Later;
        message.asks = (asks != MessageOptions::default()).then(|| Box::new(asks));
        let message = Event::MessageReceived(message);
        fail::fail_point!("message.append.before");
        self.inner.store.append(vec![Append::by_anyone(run, message)]).await?;
        fail::fail_point!("message.append.after");
        Ok(())
    }

    /// Stops a run and everything below it, or what it does now and those it waits for. `by` says
    /// who asks, in words for people.
    ///
    /// A run that has ended has its descendants stopped, if some are left. Asked again, the
    /// receipt lists those that are still stopping, and whoever a crash kept from being told is.
    ///
    /// # Errors
    /// When there is no such run, or it has ended and so has everything below it.
    pub async fn cancel(&self, run: RunId, by: &str, scope: CancelScope) -> Result<Receipt, Error> {
        let row = self.row(run).await?.ok_or(Error::Store(StoreError::NotFound(run)))?;
        // What is no session has one turn.
        let scope = if row.about.session { scope } else { CancelScope::Run };
        let mut told = Vec::new();
        if row.state.outcome.is_none() {
            if scope == CancelScope::Run {
                self.inner.active.stop(run);
            }
            let asked = if row.state.stopping { Asked::Before } else { Asked::Now };
            if row.state.stopping || self.ask_for_the_end(run, by, scope).await? {
                told.push(Told::of(&row, asked));
            }
            // Only now: whoever takes the run up must find the request in its log.
            self.inner.supervisor.adopt(run);
        }
        let reach = match scope {
            CancelScope::Run => Reach::All,
            CancelScope::Turn => Reach::Awaited,
        };
        told.extend(self.cancel_below(run, by, reach).await?);
        match told.is_empty() {
            true => Err(not_now(&row, "has ended")),
            false => Ok(Receipt { run, told }),
        }
    }

    /// Asks `run` to stop. Returns whether it had not ended.
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

    /// Pauses a run, or it and everything below it: what is under way ends and is recorded, then
    /// it rests and holds no slot, until [`Runtime::unpause`]. What is said to it meanwhile is
    /// kept. `by` says who asks, in words for people.
    ///
    /// # Errors
    /// When there is no such run, or nobody is left to be paused.
    pub async fn pause(&self, run: RunId, by: &str, extent: Extent) -> Result<Receipt, Error> {
        self.ask(run, by, extent, Wish::Pause).await
    }

    /// Interrupts every run that this process works on or was asked to work on, and everything
    /// below each: a pause of [`Status::Interrupted`]. A run that another live process works on is
    /// left alone. Stored before this returns, so it holds for a process that then ends at once.
    /// Returns the runs at the top of what was interrupted.
    ///
    /// # Errors
    /// When the store fails; runs that are not stored as interrupted then go on like after a crash.
    pub async fn interrupt(&self, by: &str) -> Result<Vec<RunId>, Error> {
        let mut interrupted: Vec<RunId> = Vec::new();
        let mut reached: HashSet<RunId> = HashSet::new();
        // By id: a parent before its children.
        for run in self.inner.supervisor.own() {
            if reached.contains(&run) {
                continue;
            }
            let Some(row) = self.row(run).await? else { continue };
            if row.status == Status::Running && row.work.owner != Some(self.inner.store.worker()) {
                continue;
            }
            match self.ask(run, by, Extent::Subtree, Wish::Interrupt).await {
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

    /// Lets a paused or interrupted run go on, or it and everything below it.
    ///
    /// # Errors
    /// When there is no such run, or nobody of them is paused.
    pub async fn unpause(&self, run: RunId, by: &str, extent: Extent) -> Result<Receipt, Error> {
        let receipt = self.ask(run, by, extent, Wish::GoOn).await?;
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
        wish: Wish,
    ) -> Result<Receipt, Error> {
        let mut told: Vec<Told> = Vec::new();
        loop {
            let row = self.row(run).await?.ok_or(Error::Store(StoreError::NotFound(run)))?;
            let mut rows = vec![row.clone()];
            if extent == Extent::Subtree {
                rows.extend(self.rows_below(&row, Reach::All).await?);
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
    async fn ask_one(&self, row: &RunRow, by: &str, wish: Wish) -> Result<Option<Told>, Error> {
        match self.inner.store.append(vec![wish.append(row.id, by)]).await {
            Ok(_) => Ok(Some(Told::of(row, Asked::Now))),
            Err(StoreError::Finished(_) | StoreError::Archived(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells everyone below `run` to stop whom `reach` means and who has not been told, and sees to
    /// it that all of them do. Returns whom, those too that have been told before.
    pub(crate) async fn cancel_below(
        &self,
        run: RunId,
        by: &str,
        reach: Reach,
    ) -> Result<Vec<Told>, Error> {
        fail::fail_point!("cascade.begun");
        let mut told: Vec<Told> = Vec::new();
        let mut seen = HashSet::new();
        let Some(row) = self.row(run).await? else { return Ok(told) };
        // Those who have been told start nobody: what is left after a look has been there before it.
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

    /// Asks a run to stop, unless it has been asked or come to its end.
    async fn ask_to_stop(&self, row: &RunRow, by: &str) -> Result<Told, Error> {
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
        Ok(Told::of(row, asked))
    }

    /// Those below `row`, as far as `reach` goes, a parent before its children.
    pub(crate) async fn rows_below(
        &self,
        row: &RunRow,
        reach: Reach,
    ) -> Result<Vec<RunRow>, Error> {
        let (kin, limit) = (Kin::TreeOf(row.family.root), usize::MAX >> 1);
        let rows = self.list(&Filter { kin, limit, ..Filter::default() }).await?;
        Ok(below(row.id, rows, reach))
    }
}

impl RunHandle {
    /// Says something to the run, which it reads before its next step; see [`Runtime::send`].
    ///
    /// # Errors
    /// When the run has ended, or the store fails.
    pub async fn send(&self, text: impl Into<String>) -> Result<(), Error> {
        self.runtime().send(self.id(), text).await
    }

    /// Asks the run to stop, and everything below it as `scope` says; see [`Runtime::cancel`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn cancel(&self, by: &str, scope: CancelScope) -> Result<Receipt, Error> {
        self.runtime().cancel(self.id(), by, scope).await
    }

    /// Where the run stands.
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

/// Who of those below a run is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All.
    All,
    /// Those it waits for, with all that stand below them; not its children in the background.
    Awaited,
}

/// Those of `rows` that stand below `run` and are meant, a parent before its children, for it is
/// older.
pub(crate) fn below(run: RunId, mut rows: Vec<RunRow>, reach: Reach) -> Vec<RunRow> {
    let mut family = HashSet::from([run]);
    rows.sort_by_key(|row| row.id);
    rows.retain(|row| {
        let spared =
            reach == Reach::Awaited && row.family.parent == Some(run) && row.family.background;
        let inside = row.family.parent.is_some_and(|parent| family.contains(&parent));
        inside && !spared && family.insert(row.id)
    });
    rows
}

/// Neither ended nor damaged: something can still become of it.
fn is_open(row: &RunRow) -> bool {
    row.state.outcome.is_none() && row.log.damaged.is_none()
}

fn not_now(row: &RunRow, reason: &str) -> Error {
    let reason = if row.state.archived { "is archived" } else { reason };
    Error::NotNow { run: row.id, reason: reason.to_owned() }
}

/// Why nobody was asked.
fn refusal(row: &RunRow, wish: Wish) -> &'static str {
    match wish {
        _ if row.state.outcome.is_some() => "has ended",
        _ if row.state.stopping => "has been told to stop",
        _ if row.log.damaged.is_some() => "is damaged",
        Wish::Pause | Wish::Interrupt => "is paused already",
        Wish::GoOn => "is not paused",
    }
}
