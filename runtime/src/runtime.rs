//! The runtime: many runs on one store.

use crate::agents::AgentCatalog;
use crate::error::Error;
use crate::execute::Workbench;
use crate::handle::{Events, RunHandle};
use crate::selection;
use crate::supervisor::Supervisor;
use posse_agent::{Patience, Tool, Transcript, Waits};
use posse_model::{Cassette, Catalog, Choice, Keys, Models};
use posse_protocol::{
    AgentSpec, CallId, CancelRequested, CancelScope, Effort, Ending, Event, Extra, Grant, Limits,
    MessageReceived, Record, RunId, RunSpec, RunStarted, Seq, ToolFinished, ToolOutput,
};
use posse_store::{
    Append, Durability, Filter, Guard, Options, Reserve, RunRow, SqliteStore, Store, StoreError,
};
use posse_tools::launch::Launcher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

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
    /// How hard models are to think when neither the run nor its agent says.
    pub effort: Option<Effort>,
    /// How long runs put up with a provider in trouble.
    pub patience: Patience,
    /// How long a reply may make no progress before it is given up.
    pub stall: Duration,
    /// What is said to models is recorded here, or taken from here in place of the network.
    pub cassette: Option<Cassette>,
    /// How far runs may go when neither they nor their agent say.
    pub limits: Limits,
    /// The agents there are.
    pub agents: AgentCatalog,
    /// Tools of the host, beside the built-in ones.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Starts processes. Without it there is no shell.
    pub launcher: Option<Launcher>,
    /// Runs executed at the same time; more wait in order. That is the runtime's one lane.
    pub max_concurrent: usize,
    /// What becomes of unfinished runs that this runtime finds.
    pub recovery: Recovery,
    /// How long a shutdown waits for what is under way.
    pub shutdown_after: Duration,
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
            effort: None,
            patience: Patience::default(),
            stall: posse_model::Options::default().stall,
            cassette: None,
            limits: Limits::default(),
            agents: AgentCatalog::built_in(),
            tools: Vec::new(),
            launcher: None,
            max_concurrent: 16,
            recovery: Recovery::Continue,
            shutdown_after: Duration::from_secs(5),
        }
    }
}

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

/// Executes runs. Cheap to clone; the last clone does not stop it, [`Runtime::shutdown`] does.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workbench: Arc<Workbench>,
    supervisor: Supervisor,
    config: RuntimeConfig,
    /// The model that is taken when nobody names one, once that was looked for.
    choice: OnceCell<Choice>,
}

impl Runtime {
    /// Opens the store and begins to execute what is to be done.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn open(mut config: RuntimeConfig) -> Result<Self, Error> {
        let options =
            Options { durability: config.durability, ..Options::new(config.database.clone()) };
        let lease = options.lease;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(options).await?);
        let (catalog, keys) = (config.catalog.clone(), config.keys.clone());
        let mut models = Models::new(catalog, keys, posse_model::Options { stall: config.stall });
        if let Some(cassette) = &config.cassette {
            models = models.with_cassette(cassette.clone());
            if cassette.replay().is_some() {
                config.patience.waits = Waits::Skipped;
            }
        }
        let workbench = Arc::new(Workbench::new(&config, models));
        let supervisor = Supervisor::start(store.clone(), workbench.clone(), &config, lease);
        let choice = OnceCell::new();
        Ok(Runtime { inner: Arc::new(Inner { store, workbench, supervisor, config, choice }) })
    }

    /// Starts a run and returns at once. Nothing is stored unless everything about it is sound.
    ///
    /// # Errors
    /// When the agent, model, folder or prompt cannot be used, or the store refuses.
    pub async fn start(&self, spec: RunSpec) -> Result<RunHandle, Error> {
        self.begin(RunId::new(), spec).await
    }

    /// Starts a run like [`Runtime::start`] and listens to it from its first moment on, so that
    /// whoever shows it misses no delta.
    ///
    /// # Errors
    /// As [`Runtime::start`].
    pub async fn start_and_watch(&self, spec: RunSpec) -> Result<(RunHandle, Events), Error> {
        let run = RunId::new();
        let events = self.handle(run).events(Seq::ZERO);
        let started = self.begin(run, spec).await?;
        // Its key may have found a run that was there before.
        let events = if started.id() == run { events } else { started.events(Seq::ZERO) };
        Ok((started, events))
    }

    async fn begin(&self, run: RunId, spec: RunSpec) -> Result<RunHandle, Error> {
        let started = self.prepare(&spec).await?;
        let mut events = vec![Event::RunStarted(Box::new(started))];
        match spec.prompt {
            Some(prompt) if prompt.trim().is_empty() => {
                return Err(Error::InvalidInput("the prompt is empty; say what to do".to_owned()));
            }
            Some(prompt) => events.push(Event::MessageReceived(MessageReceived::user(prompt))),
            None if spec.session => {}
            None => {
                return Err(Error::InvalidInput(
                    "a run needs a prompt; only a session may start without".to_owned(),
                ));
            }
        }
        match self.inner.supervisor.launch(run, events).await {
            Ok(()) => Ok(self.handle(run)),
            // Asked for again, it goes on, even where unfinished runs wait to be resumed.
            Err(StoreError::KeyTaken { run, .. }) => Ok(self.resume(run)),
            Err(error) => Err(error.into()),
        }
    }

    /// Says `text` to a run: it reads it before its next step; one that waits or has ended is
    /// woken.
    ///
    /// # Errors
    /// When there is no such run, or it is archived, or the text is empty.
    pub async fn send(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        self.inner.supervisor.adopt(run);
        self.post(run, text).await
    }

    /// Says `text` to a run, and leaves it to others to execute it.
    ///
    /// # Errors
    /// When there is no such run, or it is archived, or the text is empty.
    pub async fn post(&self, run: RunId, text: impl Into<String>) -> Result<(), Error> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::InvalidInput("the message is empty; say something".to_owned()));
        }
        let message = Event::MessageReceived(MessageReceived::user(text));
        fail::fail_point!("message.append.before");
        self.inner.store.append(vec![Append::by_anyone(run, message)]).await?;
        fail::fail_point!("message.append.after");
        Ok(())
    }

    /// Stops a run, or what it does now. `by` says who asks, in words for people.
    ///
    /// # Errors
    /// When there is no such run, or it has ended.
    pub async fn cancel(&self, run: RunId, by: &str, scope: CancelScope) -> Result<(), Error> {
        if scope == CancelScope::Run {
            self.inner.workbench.active.stop(run);
        }
        let by = by.to_owned();
        let request =
            Event::CancelRequested(CancelRequested { by, scope, extra: Extra::default() });
        let append = Append { reserve: Reserve::Use, ..Append::by_anyone(run, request) };
        fail::fail_point!("cancel.append.before");
        self.inner.store.append(vec![append]).await?;
        fail::fail_point!("cancel.append.after");
        // Only now: whoever takes the run up must find the request in its log.
        self.inner.supervisor.adopt(run);
        Ok(())
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
            output,
            ending: Ending::Returned,
            took_ms: 0,
            worked_ms: 0,
            extra: Extra::default(),
        });
        let mut transcript = Transcript::default();
        let mut answered = false;
        loop {
            for record in self.read(run, transcript.seq(), usize::MAX).await? {
                transcript.apply(record.seq, &record.event);
                answered |= matches!(&record.event, Event::ToolFinished(it) if it.call == call);
            }
            if !transcript.open_calls().any(|open| *open == call) {
                let why = if answered { ANSWERED } else { NOT_ASKED };
                let call: String = call.0.chars().take(80).collect();
                return Err(Error::InvalidInput(format!(
                    "call `{call}` of run {run} cannot be answered: {why}"
                )));
            }
            // What is appended meanwhile may be another answer: then look again.
            let guard = Guard::Anyone { last: Some(transcript.seq()) };
            let append = Append { guard, ..Append::by_anyone(run, finished.clone()) };
            match self.inner.store.append(vec![append]).await {
                Err(StoreError::Moved { .. }) => {}
                stored => {
                    stored?;
                    break;
                }
            }
        }
        self.inner.supervisor.adopt(run);
        Ok(())
    }

    /// Goes on with a run that is unfinished and that nobody executes.
    pub fn resume(&self, run: RunId) -> RunHandle {
        self.inner.supervisor.adopt(run);
        self.handle(run)
    }

    /// The run that `text` names: its id, or a beginning or an end of it that only one has.
    ///
    /// # Errors
    /// When none or several fit.
    pub async fn find(&self, text: &str) -> Result<RunRow, Error> {
        if let Ok(id) = text.parse::<RunId>() {
            let filter = Filter { id: Some(id), limit: 1, ..Filter::default() };
            let found = self.inner.store.list(&filter).await?.pop();
            return found.ok_or(Error::Store(StoreError::NotFound(id)));
        }
        let typed = text.to_ascii_lowercase();
        let recent = Filter { limit: RECENT, ..Filter::default() };
        let rows = self.inner.store.list(&recent).await?;
        let fits = |row: &RunRow| {
            let id = row.id.to_string();
            typed.len() >= 4 && (id.starts_with(&typed) || id.ends_with(&typed))
        };
        let mut fitting: Vec<RunRow> = rows.into_iter().filter(fits).collect();
        match (fitting.len(), fitting.pop()) {
            (1, Some(row)) => Ok(row),
            (0, _) => Err(Error::Ambiguous(format!(
                "no run fits `{}`: give its id, or at least four of its first or last characters (`posse runs list` shows them)",
                text.chars().take(64).collect::<String>()
            ))),
            (count, _) => Err(Error::Ambiguous(format!(
                "{count} runs fit `{typed}`: give more characters of the id"
            ))),
        }
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

    /// A handle to a run.
    pub fn handle(&self, run: RunId) -> RunHandle {
        RunHandle { run, inner: self.inner.clone() }
    }

    /// How many runs this process executes now.
    pub fn executing(&self) -> usize {
        self.inner.workbench.active.count()
    }

    /// The agents there are.
    pub fn agents(&self) -> &AgentCatalog {
        &self.inner.config.agents
    }

    /// Stops executing, within the configured time: each run after the step it is at, or in the
    /// middle of it when the time is up. Nothing is lost; the next runtime goes on.
    pub async fn shutdown(&self) {
        self.inner.supervisor.shutdown(self.inner.config.shutdown_after).await;
        self.inner.store.close().await;
    }

    /// The model that is taken when nobody names one: of the first vendor there is a key for,
    /// else of the first local server that answers, else the one that works offline. Looked for
    /// once.
    pub async fn choice(&self) -> &Choice {
        self.inner.choice.get_or_init(|| self.models().choose()).await
    }

    /// The models there are.
    pub fn models(&self) -> &Models {
        &self.inner.workbench.models
    }

    pub(crate) fn config(&self) -> &RuntimeConfig {
        &self.inner.config
    }

    /// Decides everything about a run before anything is stored.
    async fn prepare(&self, spec: &RunSpec) -> Result<RunStarted, Error> {
        let config = &self.inner.config;
        let mut agent = config.agents.find(&spec.agent)?.clone();
        let workspace = canonical_folder(&spec.workspace)?;
        agent.effort = spec.effort.or(agent.effort).or(config.effort);
        agent.output_schema = spec.output_schema.clone().or(agent.output_schema.take());
        let limits = merged(&spec.limits, &merged(&agent.limits, &config.limits));
        let selection = self.selected(spec, &agent).await?;
        selection::check(&selection, self.models(), &agent, &limits)?;
        let (model, fallbacks) = (selection.model, selection.fallbacks);
        let grant = self.inner.workbench.grant(&agent, workspace)?;
        let (session, key) = (spec.session, spec.key.clone());
        let extra = Extra::default();
        Ok(RunStarted { agent, model, fallbacks, grant, limits, session, key, extra })
    }
}

/// Why a call cannot be answered.
const ANSWERED: &str = "it has its result already";
const NOT_ASKED: &str = "the last reply of the agent does not make it; `posse runs log` shows them";

/// How many of the newest runs a short id is looked for among.
const RECENT: usize = 10_000;

/// `first` where it says something, else `second`.
fn merged(first: &Limits, second: &Limits) -> Limits {
    Limits {
        turns: first.turns.or(second.turns),
        tool_calls: first.tool_calls.or(second.tool_calls),
        input_tokens: first.input_tokens.or(second.input_tokens),
        output_tokens: first.output_tokens.or(second.output_tokens),
        cost: first.cost.or(second.cost),
        wall_ms: first.wall_ms.or(second.wall_ms),
        extra: Extra::default(),
    }
}

fn canonical_folder(path: &Path) -> Result<String, Error> {
    let unusable = |reason: String| Error::Workspace { path: path.display().to_string(), reason };
    let real = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
    if !real.is_dir() {
        return Err(unusable("it is not a folder".to_owned()));
    }
    let text = real.into_os_string().into_string();
    text.map_err(|_| unusable("its path is not valid UTF-8".to_owned()))
}

impl Workbench {
    /// What a run of `agent` may do in `workspace`.
    fn grant(&self, agent: &AgentSpec, workspace: String) -> Result<Grant, Error> {
        let toolbox = self.toolbox(&workspace)?;
        let tools: Vec<String> = match &agent.tools {
            None => toolbox.names().map(str::to_owned).collect(),
            Some(wanted) => {
                let mut tools = Vec::new();
                for name in wanted {
                    let tool = toolbox.find(name).ok_or_else(|| {
                        let known: Vec<&str> = toolbox.names().collect();
                        Error::InvalidInput(format!(
                            "agent `{}` names a tool `{name}` that does not exist here; there are: {}",
                            agent.name,
                            known.join(", ")
                        ))
                    })?;
                    let name = &tool.spec().name;
                    if !tools.contains(name) {
                        tools.push(name.clone());
                    }
                }
                tools
            }
        };
        if tools.is_empty() {
            return Err(Error::InvalidInput(format!(
                "agent `{}` has no tools, so it can do nothing; give it some, or leave `tools` out for all",
                agent.name
            )));
        }
        Ok(Grant { tools, workspace, extra: Extra::default() })
    }
}
