//! The runtime: many runs on one store.

use crate::agents::{AgentCatalog, LiveCatalog, Sources};
use crate::archive::Lifecycle;
use crate::authority;
use crate::config::DEFAULT_CHILDREN;
use crate::delegation::child::Above;
use crate::delegation::rules::check_tools;
use crate::error::Error;
use crate::execute::Workbench;
use crate::handle::{Events, RunHandle};
use crate::host_tools;
use crate::journal::create;
use crate::lanes::LaneCaps;
use crate::redact::Redactor;
use crate::rule_files::RuleFiles;
use crate::skills::{LiveSkills, SkillCatalog};
use crate::supervisor::Supervisor;
use crate::surroundings::ByFolder;
use crate::webhooks::{self, Sender, Webhook};
use posse_agent::{Patience, Tool, Transcript, Waits, capped};
use posse_model::{Cassette, Catalog, Choice, HostModel, Keys, Models, Pacing, Provider};
use posse_protocol::{
    Budget, CallId, DelegationStrategy, Effort, Ending, Event, Extra, Limits, Mode, Network,
    Permissions, Record, RunId, RunSpec, Seq, SubagentRules, ToolFinished, ToolOutput,
};
use posse_store::{
    Append, Durability, Filter, Guard, Options, Ownership, RunRow, Scrub, SqliteStore, Store,
    StoreError,
};
use posse_tools::launch::Launcher;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};

/// How a runtime is set up.
#[derive(Clone)]
pub struct RuntimeConfig {
    /// The database file.
    pub database: PathBuf,
    /// What an acknowledged event survives.
    pub durability: Durability,
    /// What is needed to reach models.
    pub keys: Keys,
    /// The vendors and models there are.
    pub catalog: Catalog,
    /// The model of runs and agents that name none, as `vendor/name`. Without it, what can be had
    /// here is taken; see [`Runtime::choice`].
    pub model: Option<String>,
    /// The models to go on with when that one cannot be had.
    pub fallbacks: Vec<String>,
    /// The model of agents that ask for a small one; without it, their caller's.
    pub small_model: Option<String>,
    /// The model of agents that ask for one that plans; without it, their caller's.
    pub plan_model: Option<String>,
    /// How agents come to hand work to others.
    pub strategy: DelegationStrategy,
    /// Levels of runs below a root whose agent does not say; 0 allows no delegation.
    pub max_depth: u32,
    /// What runs may start, and how; each of these holds, the first that fills something in counts.
    pub subagents: Vec<SubagentRules>,
    /// How long no result must have come before those there are, are told together.
    pub quiet: Duration,
    /// How hard models are to think when neither the run nor its agent says.
    pub effort: Option<Effort>,
    /// How long runs put up with a provider in trouble.
    pub patience: Patience,
    /// How long a reply may make no progress before it is given up.
    pub stall: Duration,
    /// Whether calls wait until their provider takes them.
    pub pacing: Pacing,
    /// Models that the host brings along, beside those of the catalog. From the beginning they are
    /// those of [`built_in_models`](crate::built_in_models): push to add one, and assign to have no
    /// others. `Runtime::open` refuses names that the catalog has.
    pub models: Vec<HostModel>,
    /// What is said to models is recorded here, or taken from here in place of the network.
    pub cassette: Option<Cassette>,
    /// How far runs may go when neither they nor their agent say.
    pub limits: Limits,
    /// How much a root and everything below it may spend together when neither it nor its agent
    /// says.
    pub budget: Budget,
    /// How calls are decided that no rule decides, unless a run says otherwise.
    pub mode: Mode,
    /// Rules about calls of all runs. What they deny or ask about holds for runs that began before.
    pub permissions: Permissions,
    /// Where further rules are looked for, by the folder that a run works in. They deny or ask, and
    /// never allow. Without it no file is looked at.
    pub rule_files: Option<RuleFiles>,
    /// Whom the processes of runs may talk to, unless a run says otherwise.
    pub network: Network,
    /// The user's home folder, for rules with `~/`.
    pub home: Option<PathBuf>,
    /// The agents there are.
    pub agents: LiveCatalog,
    /// The skills there are.
    pub skills: LiveSkills,
    /// Agents and skills of the folder that a run works in, in place of the two above: for a
    /// runtime that executes what others have stored, wherever that is.
    pub by_folder: Option<ByFolder>,
    /// Tools of the host, beside the built-in ones. Those with the effect `Write`, `Execute` or
    /// `Network` need somebody who lets them run: a rule (`permissions.allow = ["mine"]`), or a run
    /// that is `attended` and [`Runtime::decide`]. Without either their calls are refused.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Starts processes. Without it there is no shell.
    pub launcher: Option<Launcher>,
    /// Runs executed at the same time; more wait for their turn. 0 counts as 1.
    pub max_concurrent: usize,
    /// How many of these may be of one kind.
    pub lanes: LaneCaps,
    /// What becomes of unfinished runs that this runtime finds.
    pub recovery: Recovery,
    /// How long a run's tools may show no sign of life before it is taken up anew from its log;
    /// zero is for ever.
    pub stall_after: Duration,
    /// How long a shutdown waits for what is under way.
    pub shutdown_after: Duration,
    /// Who outside is told of the ends of runs. Their names differ.
    pub webhooks: Vec<Webhook>,
    /// What becomes of runs that have ended.
    pub lifecycle: Lifecycle,
    /// What is to be stored nowhere and told to no agent, beside the keys themselves.
    pub redactor: Redactor,
}

impl RuntimeConfig {
    /// The database at `database`, models reached with `keys`, everything else as it should be.
    pub fn new(database: impl Into<PathBuf>, keys: Keys) -> Self {
        RuntimeConfig {
            database: database.into(),
            durability: Durability::Power,
            keys,
            catalog: Catalog::built_in(),
            model: None,
            fallbacks: Vec::new(),
            small_model: None,
            plan_model: None,
            strategy: DelegationStrategy::Auto,
            max_depth: 1,
            subagents: Vec::new(),
            quiet: crate::config::subagents::QUIET,
            effort: None,
            patience: Patience::default(),
            stall: posse_model::Options::default().stall,
            pacing: Pacing::default(),
            models: crate::built_in_models(),
            cassette: None,
            limits: Limits::default(),
            budget: Budget { children: Some(DEFAULT_CHILDREN), ..Budget::default() },
            mode: Mode::default(),
            permissions: Permissions::default(),
            rule_files: None,
            network: Network::Off,
            home: None,
            // Those that are built in; read when they are needed, if no others are put here.
            agents: LiveCatalog::unread(Sources::default()),
            skills: LiveSkills::default(),
            by_folder: None,
            tools: Vec::new(),
            launcher: None,
            max_concurrent: crate::config::MOST_RUNS,
            lanes: LaneCaps::default(),
            recovery: Recovery::Continue,
            stall_after: crate::stall::USUAL,
            shutdown_after: Duration::from_secs(5),
            webhooks: Vec::new(),
            lifecycle: Lifecycle::default(),
            redactor: Redactor::default(),
        }
    }
}

/// Says no more than what tells it from others: much of it is secret, or long.
impl fmt::Debug for RuntimeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeConfig")
            .field("database", &self.database)
            .field("model", &self.model)
            .field("max_concurrent", &self.max_concurrent)
            .field("recovery", &self.recovery)
            .finish_non_exhaustive()
    }
}

impl RuntimeConfig {
    /// The launcher, which hides from commands what is the runtime's own.
    pub(crate) fn confining_launcher(&self) -> Option<Launcher> {
        let database = std::path::absolute(&self.database).unwrap_or(self.database.clone());
        let beside = |ending: &str| {
            let mut path = database.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let own = ["", "-wal", "-shm", "-journal"].map(beside).into_iter().chain([self.scratch()]);
        self.launcher.clone().map(|launcher| launcher.hiding(own))
    }

    /// Where the folders stand that are the runs' own.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.beside_the_database("-scratch")
    }

    /// Where the worktrees of runs stand.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.beside_the_database("-worktrees")
    }

    fn beside_the_database(&self, ending: &str) -> PathBuf {
        let database = std::path::absolute(&self.database);
        let mut path = database.unwrap_or_else(|_| self.database.clone()).into_os_string();
        path.push(ending);
        path.into()
    }
}

/// Runs that are prepared and stored at the same time, at most. Were a thousand that are started
/// together all prepared first, the first of them would wait for the last before it asks its model;
/// were they fewer than a commit takes, commits would be small.
const STARTING: usize = 128;

/// What becomes of unfinished runs that a runtime finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// They go on by themselves.
    Continue,
    /// Those that work in this folder go on by themselves.
    ContinueIn(PathBuf),
    /// They wait for [`Runtime::resume`].
    Wait,
}

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

/// Executes runs. Cheap to clone; the last clone does not stop it, [`Runtime::shutdown`] does.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("database", &self.inner.config.database)
            .field("executing", &self.executing())
            .finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workbench: Arc<Workbench>,
    pub(crate) supervisor: Supervisor,
    pub(crate) sender: Sender,
    config: RuntimeConfig,
    /// Lets runs begin, some at a time.
    starting: Semaphore,
    /// The model that is taken when nobody names one, once that was looked for.
    choice: OnceCell<Choice>,
}

impl Runtime {
    /// Opens the store and begins to execute what is to be done.
    ///
    /// # Errors
    /// When the database cannot be used, two webhooks have one name, a rule cannot be kept, or a
    /// model of the host has a name that it cannot have.
    pub async fn open(mut config: RuntimeConfig) -> Result<Self, Error> {
        webhooks::check(&config.webhooks)?;
        host_tools::check(&config.tools)?;
        authority::check(&config.permissions, &config.tool_facts())?;
        for rules in &config.subagents {
            check_tools(&rules.tools, &config.tool_facts()).map_err(Error::InvalidInput)?;
        }
        config.redactor = config.redactor.and(config.keys.secrets(&config.catalog));
        let signing = config.webhooks.iter().flat_map(Webhook::signing_keys);
        config.redactor = config.redactor.and(signing.map(|key| key.text()));
        let scrub: Arc<dyn Scrub> = Arc::new(config.redactor.clone());
        let options = Options {
            durability: config.durability,
            scrub: Some(scrub).filter(|_| !config.redactor.is_empty()),
            ..Options::new(config.database.clone())
        };
        let lease = options.lease;
        let (catalog, keys) = (config.catalog.clone(), config.keys.clone());
        let calls = posse_model::Options { stall: config.stall, pacing: config.pacing };
        let models = Models::new(catalog, keys, calls);
        let mut models = config.models.iter().cloned().try_fold(models, Models::with)?;
        // Agents are read meanwhile.
        let opening = SqliteStore::start_opening(options);
        if let Some(cassette) = &config.cassette {
            models = models.with_cassette_hiding(cassette.clone(), config.redactor.forms());
            if cassette.replay().is_some() {
                config.patience.waits = Waits::Skipped;
            }
        }
        config.agents.settle_in(config.tool_facts(), &config.limits, &config.budget);
        config.agents.current();
        let workbench = Arc::new(Workbench::new(&config, models));
        let store: Arc<dyn Store> = Arc::new(opening.opened().await?);
        let supervisor = Supervisor::start(store.clone(), workbench.clone(), &config, lease);
        let sender = Sender::start(store.clone(), workbench.hooks.clone());
        let choice = OnceCell::new();
        let starting = Semaphore::new(STARTING);
        let inner =
            Arc::new(Inner { store, workbench, supervisor, sender, config, starting, choice });
        inner.workbench.serve(Arc::downgrade(&inner));
        Ok(Runtime { inner })
    }

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
        prepared.started.grant.scratch = self.inner.workbench.scratch_of(run);
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
        prepared.started.grant.scratch = self.inner.workbench.scratch_of(run);
        let then = match prepared.message {
            Some(_) => Ownership::Queued,
            None => Ownership::Waiting,
        };
        let stored = create(&*self.inner.store, run, prepared.events(), Vec::new(), then).await;
        Begun::of(run, stored.map(|_| ()))
    }

    /// Resolves when the store has nothing to tell any more, with the reason: it was closed, or its
    /// database taken away.
    pub async fn store_lost(&self) -> Error {
        // That nothing moves any more, every watcher is told; of this run nothing else is.
        let mut nobody = self.inner.store.watch(RunId::from_u128(0));
        while nobody.changed().await.is_ok() {}
        self.inner.store.renew().await.err().map_or(Error::ShuttingDown, Error::Store)
    }

    /// Refuses a store that can only be read, because commits of it are lost.
    ///
    /// # Errors
    /// What is lost.
    pub fn check_store(&self) -> Result<(), Error> {
        self.inner.store.refusal().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Looks at once for what there is to do. What other processes leave is found without it, a
    /// moment later.
    pub fn look_again(&self) {
        self.inner.supervisor.look_again();
    }

    /// Gives the result of a call whose tool answered that it would come later. It may come
    /// before that answer is stored.
    ///
    /// # Errors
    /// When there is no such run, or the call is not open: its last reply did not make it, or it
    /// has its result already. Of two answers one is stored, and the other is refused.
    pub async fn answer(&self, run: RunId, call: CallId, output: ToolOutput) -> Result<(), Error> {
        let finished = Event::ToolFinished(ToolFinished {
            call: call.clone(),
            // Before it is cut: of a secret at the cut, a part would be left.
            output: capped(self.config().redactor.output(output)),
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

    /// Appends `event`, which anybody may, unless `against` says why not: of the run as it is, and
    /// what is new in its log. What is appended meanwhile is looked at first,
    /// so of two that exclude each other one is stored.
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

    /// Goes on with a run that is unfinished and that nobody executes.
    pub fn resume(&self, run: RunId) -> RunHandle {
        self.inner.supervisor.adopt(run);
        self.handle(run)
    }

    /// The runs that `filter` selects, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<RunRow>, Error> {
        Ok(self.inner.store.list(filter).await?)
    }

    /// The events of a run after `after`, at most `limit`, checked against their hashes.
    ///
    /// # Errors
    /// When there is no such run, or its log is damaged.
    pub async fn read(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Record>, Error> {
        Ok(self.inner.store.read(run, after, limit).await?)
    }

    /// Where a run stands among all that wait for a slot, by priority and then by time: 1 is the
    /// next. `None` if it does not wait for one. Runs of other sessions may be served before it, and
    /// it before theirs: sessions take turns.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn position(&self, run: RunId) -> Result<Option<u64>, Error> {
        Ok(self.positions(&[run]).await?.remove(&run))
    }

    /// The same for several runs; those that do not wait for a slot are left out.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn positions(&self, runs: &[RunId]) -> Result<HashMap<RunId, u64>, Error> {
        match runs.is_empty() {
            true => Ok(HashMap::new()),
            false => Ok(self.inner.store.places(runs).await?),
        }
    }

    /// A handle to a run.
    pub fn handle(&self, run: RunId) -> RunHandle {
        RunHandle { run, inner: self.inner.clone() }
    }

    /// How many runs this process executes now.
    pub fn executing(&self) -> usize {
        self.inner.workbench.active.count()
    }

    /// The agents there are.
    pub fn agents(&self) -> Arc<AgentCatalog> {
        self.inner.config.agents.current()
    }

    /// The skills there are.
    pub fn skills(&self) -> Arc<SkillCatalog> {
        self.inner.config.skills.current()
    }

    /// Stops executing, within the configured time: each run after the step it is at, or in the
    /// middle of it when the time is up. Nothing is lost; the next runtime goes on.
    pub async fn shutdown(&self) {
        self.shutdown_within(self.inner.config.shutdown_after).await;
    }

    /// Lets go of every run that this process executes: each after its present step, or in the
    /// middle of it when the time is up. They are unfinished and nobody's then, as after a shutdown.
    /// [`Runtime::shutdown`] is still to be called.
    pub async fn let_go(&self, within: Duration) {
        self.inner.supervisor.shutdown(within).await;
    }

    /// Stops like [`Runtime::shutdown`], within this time. Dropped before it is done, it stops in
    /// the middle of steps; called again, it ends what is left.
    pub async fn shutdown_within(&self, within: Duration) {
        self.inner.supervisor.shutdown(within).await;
        self.inner.sender.shutdown(within).await;
        self.inner.store.close().await;
    }

    /// The model that is taken when nobody names one: of the first vendor there is a key for,
    /// else of the first local server that answers, else the one that the host brings along as a last
    /// resort. Looked for until one is found.
    ///
    /// # Errors
    /// When there is none, with what to do about it.
    pub async fn choice(&self) -> Result<&Choice, Error> {
        let choose = || async { Ok(self.models().choose().await?) };
        self.inner.choice.get_or_try_init(choose).await
    }

    /// The providers that runs of this process call: how much each takes, how many calls wait for
    /// it, and how many requests it took.
    pub fn providers(&self) -> Vec<Provider> {
        self.models().providers()
    }

    /// The models there are.
    pub fn models(&self) -> &Models {
        &self.inner.workbench.models
    }

    pub(crate) fn config(&self) -> &RuntimeConfig {
        &self.inner.config
    }
}

/// Why a call cannot be answered.
const ANSWERED: &str = "it has its result already";
const NOT_ASKED: &str = "the last reply of the agent does not make it; `posse runs log` shows them";
