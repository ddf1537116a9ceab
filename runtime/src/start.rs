//! Starting runs: a run is prepared and stored, and then executed here or by another worker.

use crate::child::Above;
use crate::error::Error;
use crate::handle::Events;
use crate::handle::RunHandle;
use crate::journal::create;
use crate::runtime::Runtime;
use posse_protocol::{RunId, RunSpec, Seq};
use posse_store::{Ownership, StoreError};

/// The result of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartResult {
    /// The run is new.
    New(RunId),
    /// The key of the start belongs to an earlier run.
    Found(RunId),
}

impl StartResult {
    /// Returns the run.
    pub fn run(self) -> RunId {
        match self {
            StartResult::New(run) | StartResult::Found(run) => run,
        }
    }

    fn of(run: RunId, stored: Result<(), StoreError>) -> Result<Self, Error> {
        match stored {
            Ok(()) => Ok(StartResult::New(run)),
            Err(StoreError::KeyTaken { run, .. }) => Ok(StartResult::Found(run)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Runtime {
    /// Starts a run and returns at once. If anything about the run is invalid, nothing is stored.
    ///
    /// # Errors
    /// When the agent, model, folder or prompt cannot be used, or the store refuses.
    pub async fn start(&self, spec: RunSpec) -> Result<RunHandle, Error> {
        Ok(self.handle(self.begin(RunId::new(), spec).await?.run()))
    }

    /// Starts a run like [`Runtime::start`] and subscribes to it before it begins, so that the caller misses no delta.
    /// The result says whether the run is new.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn start_and_watch(&self, spec: RunSpec) -> Result<(StartResult, Events), Error> {
        let run = RunId::new();
        let events = self.handle(run).events(Seq::ZERO);
        let begun = self.begin(run, spec).await?;
        let events = match begun {
            StartResult::New(_) => events,
            StartResult::Found(run) => self.handle(run).events(Seq::ZERO),
        };
        Ok((begun, events))
    }

    async fn begin(&self, run: RunId, spec: RunSpec) -> Result<StartResult, Error> {
        let above = match &spec.parent {
            // Boxed, here and in the preparation of a run: most starts do not need this future.
            Some(caller) => Some(Box::pin(self.above(caller)).await?),
            None => None,
        };
        let begun = self.begin_below(run, spec, above.as_ref()).await?;
        if let StartResult::Found(run) = begun {
            // The second start resumes the run, even if unfinished runs wait to be resumed.
            self.resume(run);
        }
        Ok(begun)
    }

    /// Starts a run, as a child of `above` if there is one.
    pub(crate) async fn begin_below(
        &self,
        run: RunId,
        spec: RunSpec,
        above: Option<&Above>,
    ) -> Result<StartResult, Error> {
        // The semaphore is never closed.
        let _turn = self.inner.starting.acquire().await;
        // Boxed once the permit is there: the futures of callers, which wait for this and then for the end of the run,
        // stay small.
        Box::pin(self.begin_now(run, spec, above)).await
    }

    async fn begin_now(
        &self,
        run: RunId,
        spec: RunSpec,
        above: Option<&Above>,
    ) -> Result<StartResult, Error> {
        let mut prepared = self.prepare(run, &spec, above).await?;
        prepared.started.grant.scratch = self.config().scratch_of(run);
        self.config().hold_places_in(&prepared.started.grant.workspace);
        let (agent, label) = (&prepared.started.agent.name, &prepared.started.label);
        let beside = above.map(|above| above.beside(run, agent, label, false));
        let (bundle, beside) = (prepared.bundle.take(), beside.unwrap_or_default());
        let launched = self.inner.supervisor.launch(run, prepared.events(), beside, bundle).await;
        StartResult::of(run, launched)
    }

    /// Stores a run without a parent and leaves its execution to another worker: to a runtime that continues unfinished
    /// runs, or to the process that resumes it. If anything about the run is invalid, nothing is stored.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn enqueue(&self, spec: RunSpec) -> Result<StartResult, Error> {
        if spec.parent.is_some() {
            let why = "a run with a caller is started, not left to others".to_owned();
            return Err(Error::InvalidInput(why));
        }
        let run = RunId::new();
        let mut prepared = self.prepare(run, &spec, None).await?;
        prepared.started.grant.scratch = self.config().scratch_of(run);
        self.config().hold_places_in(&prepared.started.grant.workspace);
        let then = match prepared.message {
            Some(_) => Ownership::Queued,
            None => Ownership::Waiting,
        };
        let stored =
            create(&*self.inner.store, run, prepared.events(), Vec::new(), None, then).await;
        StartResult::of(run, stored.map(|_| ()))
    }
}
