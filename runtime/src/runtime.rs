//! The runtime: many runs on one store.

use crate::active::Active;
use crate::agents::AgentCatalog;
use crate::error::Error;
use crate::feed::Feed;
use crate::runtime_config::RuntimeConfig;
use crate::skills::SkillCatalog;
use crate::supervisor::Supervisor;
use crate::tool_facts::tools_of_hosts;
use crate::tool_sources::Sources;
use crate::toolset::Toolset;
use crate::webhooks::{Hooks, Sender};
use crate::worktree::{Checkout, Repositories, Worktrees};
use parking_lot::Mutex;
use posse_agent::{Transcript, capped};
use posse_model::{Choice, Models, Provider};
use posse_protocol::{
    CallId, Ending, Event, Extra, Grant, Record, RunId, Seq, Status, ToolFinished, ToolOutput,
};
use posse_store::{Append, Filter, Guard, RunRow, RunWork, Store, StoreError, Worker, WorkerAbout};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};

/// Executes runs. It is cheap to clone. [`Runtime::shutdown`] stops it; dropping the last clone does
/// not.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("database", &self.inner.config.storage.database)
            .field("executing", &self.executing())
            .finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Models,
    pub(crate) tools: Toolset,
    /// The sources of tools that are open for runs.
    pub(crate) sources: Arc<Sources>,
    pub(crate) worktrees: Worktrees,
    pub(crate) repositories: Repositories,
    /// The checkouts of the runs that this process executes.
    pub(crate) checkouts: Mutex<HashMap<RunId, Weak<Checkout>>>,
    /// The runs that this process executes now.
    pub(crate) active: Arc<Active>,
    /// Deltas of models, as they arrive.
    pub(crate) feed: Arc<Feed>,
    pub(crate) supervisor: Supervisor,
    /// The webhooks that are notified when runs end.
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) sender: Sender,
    pub(crate) config: RuntimeConfig,
    /// Limits how many runs start at the same time.
    pub(crate) starting: Semaphore,
    /// The default model, once it was looked for.
    pub(crate) choice: OnceCell<Choice>,
}

impl Runtime {
    /// Waits until the store delivers no more changes, and returns the reason: it was closed, or its database was
    /// removed.
    pub async fn store_lost(&self) -> Error {
        // The store ends all watches when it closes. No run has this id, so nothing else ends the wait.
        let mut nobody = self.inner.store.watch(RunId::from_u128(0));
        while nobody.changed().await.is_ok() {}
        self.inner.store.renew().await.err().map_or(Error::ShuttingDown, Error::Store)
    }

    /// Checks that the store accepts writes.
    ///
    /// # Errors
    /// When the store has lost commits and can only be read; the error says what is lost.
    pub fn check_store(&self) -> Result<(), Error> {
        self.inner.store.refusal().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Looks now for runs to execute. Without this call, the runtime finds runs of other processes a
    /// moment later.
    pub fn look_again(&self) {
        self.inner.supervisor.look_again();
    }

    /// Stores the result of a call whose tool returned [`Answer::Pending`](crate::Answer::Pending). The result may come
    /// before that answer is stored.
    ///
    /// # Errors
    /// When there is no such run, or the call is not open: it is not part of the last reply, or it
    /// has a result. If two answers come at once, the runtime stores one and refuses the other.
    pub async fn answer(&self, run: RunId, call: CallId, output: ToolOutput) -> Result<(), Error> {
        let finished = Event::ToolFinished(ToolFinished {
            call: call.clone(),
            // Redact before the cut: a secret at the cut would leave a part of itself.
            output: capped(self.config().permissions.redactor.output(output)),
            ending: Ending::Returned,
            took_ms: 0,
            worked_ms: 0,
            by: String::new(),
            extra: Extra::default(),
        });
        let mut answered = false;
        let against = |transcript: &Transcript, news: &[Record]| {
            let answers =
                |it: &Record| matches!(&it.event, Event::ToolFinished(it) if it.call == call);
            answered |= news.iter().any(answers);
            let why = if answered { ANSWERED } else { NOT_ASKED };
            let shown: String = call.0.chars().take(80).collect();
            let refused = format!("call `{shown}` of run {run} cannot be answered: {why}");
            (!transcript.open_calls().any(|open| *open == call)).then_some(refused)
        };
        self.append_unless(run, &finished, against).await?;
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Appends `event` to a run that this process need not own, unless `against` says why not. It gets
    /// the transcript and the events that are new in it. If another process appends meanwhile, it is
    /// called again, so of two events that exclude each other one is stored.
    pub(crate) async fn append_unless(
        &self,
        run: RunId,
        event: &Event,
        mut against: impl FnMut(&Transcript, &[Record]) -> Option<String>,
    ) -> Result<(), Error> {
        let mut transcript = Transcript::default();
        loop {
            let news = self.read(run, transcript.seq(), usize::MAX).await?;
            for record in &news {
                transcript.apply(record.seq, &record.event);
            }
            if let Some(why) = against(&transcript, &news) {
                return Err(Error::InvalidInput(why));
            }
            let guard = Guard::Anyone { last: Some(transcript.seq()) };
            let append = Append { guard, ..Append::by_anyone(run, event.clone()) };
            match self.inner.store.append(vec![append]).await {
                Err(StoreError::Moved { .. }) => {}
                stored => {
                    stored?;
                    return Ok(());
                }
            }
        }
    }

    /// Returns the runs that `filter` selects, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, Error> {
        Ok(self.inner.store.list(filter).await?)
    }

    /// Returns the events of a run after `after`, at most `limit`, and checks them against their
    /// hashes.
    ///
    /// # Errors
    /// When there is no such run, or its log is damaged.
    pub async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, Error> {
        Ok(self.inner.store.read(run, after, limit).await?)
    }

    /// Returns the place of a run in the queue, by priority and then by time; 1 is next. `None` if it
    /// is not queued. The runtime takes runs from each session in rotation, so a run may start
    /// earlier or later than its place says.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn position(&self, run: RunId) -> Result<Option<u64>, Error> {
        Ok(self.positions(&[run]).await?.remove(&run))
    }

    /// Returns the places of several runs; leaves out runs that are not queued.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn positions(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, Error> {
        match runs.is_empty() {
            true => Ok(HashMap::new()),
            false => Ok(self.inner.store.places(runs).await?),
        }
    }

    /// Returns how many runs this process executes now.
    pub fn executing(&self) -> usize {
        self.inner.active.count()
    }

    /// Returns the living workers of the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn workers(&self) -> Result<Vec<Worker>, Error> {
        Ok(self.inner.store.workers().await?)
    }

    /// Returns true if this process may take `row` from the queue.
    pub fn may_take(&self, row: &RunRow) -> bool {
        self.inner.supervisor.about().takes(row)
    }

    /// Returns the machine that `row` is bound to, if it is another one: then commands here cannot reach
    /// its folders, nor execute it.
    pub fn other_machine<'r>(&self, row: &'r RunRow) -> Option<&'r str> {
        let (own, host) = (&self.config().scheduling.worker.host, row.work.host.as_str());
        (!own.is_empty() && !host.is_empty() && host != own).then_some(host)
    }

    /// Returns the name of the machine whose worker executes `row`; `None` if none does, or it is the only machine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn machine_of(&self, row: &RunRow) -> Result<Option<String>, Error> {
        let Some(owner) = row.work.owner else { return Ok(None) };
        let mut workers = self.workers().await?.into_iter();
        let host = workers.find(|worker| worker.id == owner).map(|worker| worker.about.host);
        Ok(host.filter(|host| !host.is_empty()))
    }

    /// Returns why no living worker takes `row`, which waits in the queue, if none does.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn why_nobody_takes(&self, row: &RunRow) -> Result<Option<String>, Error> {
        // A database of one machine binds runs to none, but a run may need a label.
        let is_bound =
            !self.config().scheduling.worker.host.is_empty() || !row.work.needs.is_empty();
        if row.status != Status::Queued || !is_bound {
            return Ok(None);
        }
        let first = self.read(row.id, Seq::ZERO, 1).await?.pop().map(|record| record.event);
        let tools = match &first {
            Some(Event::RunStarted(started)) => tools_of_hosts(&started.grant),
            _ => Vec::new(),
        };
        let workers = self.workers().await?;
        let has_tools = |about: &WorkerAbout| tools.iter().all(|tool| about.has_tool(tool));
        let takes = |about: &WorkerAbout| about.stays && about.takes(row) && has_tools(about);
        let mut takers = workers.iter().map(|worker| &worker.about).filter(|about| takes(about));
        let repository = match &first {
            Some(Event::RunStarted(started)) => started.grant.site.repository(),
            _ => None,
        };
        let Some(repository) = repository else {
            return Ok(takers.next().is_none().then(|| waits_for(row, &tools)));
        };
        let mut failures = Vec::new();
        for about in takers {
            match about.unreachable.get(&repository.url) {
                Some(why) => failures.push(format!("{}: {why}", about.host)),
                None => return Ok(None),
            }
        }
        Ok(Some(match failures.is_empty() {
            true => waits_for(row, &tools),
            false => format!(
                "waits for a worker that can fetch its repository, and none can: {}",
                failures.join("; ")
            ),
        }))
    }
}

/// Says for which worker `row` waits, which needs `tools`.
fn waits_for(row: &RunRow, tools: &[&str]) -> String {
    let RunWork { host, needs, .. } = &row.work;
    let of_host = (!host.is_empty()).then(|| format!(" of the machine `{host}`"));
    let with_label = (!needs.is_empty()).then(|| format!(" with the label `{needs}`"));
    let which = of_host.unwrap_or_default() + &with_label.unwrap_or_default();
    let model = &row.about.model;
    let has = match tools.is_empty() {
        true => String::new(),
        false => format!(" and has the tools {}", tools.join(", ")),
    };
    format!("waits for a worker{which} that can call {model}{has}, and none is running")
}

impl Runtime {
    /// Returns a tool that a run with this grant needs and this process lacks. Where runs are bound to no machine, this
    /// process has them all: the tool is gone, and calls of it fail.
    pub(crate) fn lacking_tool<'g>(&self, grant: &'g Grant) -> Option<&'g str> {
        let about = self.inner.supervisor.about();
        let is_lacking = |tool: &&str| !about.has_tool(tool);
        tools_of_hosts(grant).into_iter().find(is_lacking).filter(|_| !about.host.is_empty())
    }

    /// True for a run that is bound to another machine.
    pub(crate) fn is_elsewhere(&self, grant: &Grant) -> bool {
        let (own, host) = (&self.config().scheduling.worker.host, grant.site.host());
        !own.is_empty() && !host.is_empty() && host != own
    }

    /// Returns all agents.
    pub fn agents(&self) -> Arc<AgentCatalog> {
        self.inner.config.definitions.agents.current()
    }

    /// Returns all skills.
    pub fn skills(&self) -> Arc<SkillCatalog> {
        self.inner.config.definitions.skills.current()
    }

    /// Returns the agents for runs in `folder`.
    pub fn agents_in(&self, folder: &Path) -> Arc<AgentCatalog> {
        self.config().around(folder).agents.current()
    }

    /// Returns the skills for runs in `folder`.
    pub fn skills_in(&self, folder: &Path) -> Arc<SkillCatalog> {
        self.config().around(folder).skills.current()
    }

    /// Stops the runtime: each run after its current step, or in the middle of the step when the
    /// configured time is up. Nothing is lost; the next runtime continues the runs.
    pub async fn shutdown(&self) {
        self.shutdown_within(self.inner.config.scheduling.shutdown_after).await;
    }

    /// Gives up every run that this process executes: each after its current step, or in the middle
    /// of the step when the time is up. Then they are unfinished and without an owner, as after a
    /// shutdown. Call [`Runtime::shutdown`] afterwards.
    pub async fn let_go(&self, within: Duration) {
        self.inner.supervisor.shutdown(within).await;
        self.inner.sources.close_all();
    }

    /// Ends the commands of all runs at once, and waits until what they left has been inspected: until then, git may
    /// run it. For a process that is about to exit without a shutdown.
    pub async fn end_commands(&self) {
        if let Some(launcher) = &self.inner.config.launcher {
            launcher.end_commands().await;
        }
    }

    /// Stops like [`Runtime::shutdown`], within this time. If you drop the future early, runs stop in
    /// the middle of their steps; call it again to end the rest.
    pub async fn shutdown_within(&self, within: Duration) {
        self.inner.supervisor.shutdown(within).await;
        self.inner.sources.close_all();
        self.inner.sender.shutdown(within).await;
        self.inner.store.close().await;
    }

    /// Returns the model of runs that name none: of the first vendor whose API key is set, else of
    /// the first local server that answers, else the host's last resort. The runtime looks until it
    /// has found one, and then keeps it.
    ///
    /// # Errors
    /// When there is none; the error says what to do about it.
    pub async fn choice(&self) -> Result<&Choice, Error> {
        let choose = || async { Ok(self.models().choose().await?) };
        self.inner.choice.get_or_try_init(choose).await
    }

    /// Returns the vendors that runs of this process call: how many calls each accepts at once, how
    /// many wait, and how many requests it has answered.
    pub fn providers(&self) -> Vec<Provider> {
        self.models().providers()
    }

    /// Returns all models.
    pub fn models(&self) -> &Models {
        &self.inner.models
    }

    pub(crate) fn config(&self) -> &RuntimeConfig {
        &self.inner.config
    }
}

/// Why a call cannot be answered.
const ANSWERED: &str = "it has its result already";
const NOT_ASKED: &str = "the last reply of the agent does not make it";
