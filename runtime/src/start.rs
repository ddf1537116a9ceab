//! Starting runs: prepared, stored, and executed here or left to others.

use crate::child::Above;
use crate::error::Error;
use crate::handle::Events;
use crate::handle::RunHandle;
use crate::journal::create;
use crate::runtime::Runtime;
use posse_protocol::{RunId, RunSpec, Seq};
use posse_store::{Ownership, StoreError};

/// How a start went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The run is new.
    New(RunId),
    /// Its key found a run that was there before.
    Found(RunId),
}

impl Begun {
    /// Which run it is.
    pub fn run(self) -> RunId {
        match self {
            Begun::New(run) | Begun::Found(run) => run,
        }
    }

    fn of(run: RunId, stored: Result<(), StoreError>) -> Result<Self, Error> {
        match stored {
            Ok(()) => Ok(Begun::New(run)),
            Err(StoreError::KeyTaken { run, .. }) => Ok(Begun::Found(run)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Runtime {
    /// Starts a run and returns at once. Nothing is stored unless everything about it is sound.
    ///
    /// # Errors
    /// When the agent, model, folder or prompt cannot be used, or the store refuses.
    pub async fn start(&self, spec: RunSpec) -> Result<RunHandle, Error> {
        Ok(self.handle(self.begin(RunId::new(), spec).await?.run()))
    }

    /// Starts a run like [`Runtime::start`] and listens to it from its first moment on, so that
    /// whoever shows it misses no delta. Says whether it is new.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn start_and_watch(&self, spec: RunSpec) -> Result<(Begun, Events), Error> {
        let run = RunId::new();
        let events = self.handle(run).events(Seq::ZERO);
        let begun = self.begin(run, spec).await?;
        let events = match begun {
            Begun::New(_) => events,
            Begun::Found(run) => self.handle(run).events(Seq::ZERO),
        };
        Ok((begun, events))
    }

    async fn begin(&self, run: RunId, spec: RunSpec) -> Result<Begun, Error> {
        let above = match &spec.parent {
            // In boxes of their own, here and where a run is prepared: most starts need none of it.
            Some(caller) => Some(Box::pin(self.above(caller)).await?),
            None => None,
        };
        let begun = self.begin_below(run, spec, above.as_ref()).await?;
        if let Begun::Found(run) = begun {
            // Asked for again, it goes on, even where unfinished runs wait to be resumed.
            self.resume(run);
        }
        Ok(begun)
    }

    /// Starts a run on behalf of `above`, if there is someone.
    pub(crate) async fn begin_below(
        &self,
        run: RunId,
        spec: RunSpec,
        above: Option<&Above>,
    ) -> Result<Begun, Error> {
        // Nobody closes it.
        let _turn = self.inner.starting.acquire().await;
        // In a box of its own, from when it is its turn: whoever waits for it, and then for the run's
        // end, needs no room for it.
        Box::pin(self.begin_now(run, spec, above)).await
    }

    async fn begin_now(
        &self,
        run: RunId,
        spec: RunSpec,
        above: Option<&Above>,
    ) -> Result<Begun, Error> {
        let mut prepared = self.prepare(run, &spec, above).await?;
        prepared.started.grant.scratch = self.config().scratch_of(run);
        let (agent, label) = (&prepared.started.agent.name, &prepared.started.label);
        let beside = above.map(|above| above.beside(run, agent, label, false));
        let launched =
            self.inner.supervisor.launch(run, prepared.events(), beside.unwrap_or_default()).await;
        Begun::of(run, launched)
    }

    /// Stores a run without a caller and leaves it to others to execute it: to a runtime that goes
    /// on with unfinished runs, or to whoever resumes it. Nothing is stored unless everything about
    /// it is sound.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn enqueue(&self, spec: RunSpec) -> Result<Begun, Error> {
        if spec.parent.is_some() {
            let why = "a run with a caller is started, not left to others".to_owned();
            return Err(Error::InvalidInput(why));
        }
        let run = RunId::new();
        let mut prepared = self.prepare(run, &spec, None).await?;
        prepared.started.grant.scratch = self.config().scratch_of(run);
        let then = match prepared.message {
            Some(_) => Ownership::Queued,
            None => Ownership::Waiting,
        };
        let stored = create(&*self.inner.store, run, prepared.events(), Vec::new(), then).await;
        Begun::of(run, stored.map(|_| ()))
    }
}
