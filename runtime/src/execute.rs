//! Executing one run: from its first event to an agent at work, until it ends or waits.

use crate::active::{Active, Stopping};
use crate::authority;
use crate::delegation::child::{Reach, request, stopped_by};
use crate::delegation::spawn::Spawn;
use crate::delegation::stagger::{Beginnings, Staggered};
use crate::delegation::subagents::Subagents;
use crate::delegation::task::Task;
use crate::error::Error;
use crate::feed::Feed;
use crate::journal::{Birth, RunJournal};
use crate::policy::{FileRules, Policy, Today};
use crate::redact::Redactor;
use crate::runtime::{Inner, Runtime, RuntimeConfig};
use crate::selection;
use crate::skills::LiveSkills;
use crate::skills::tool::SkillTool;
use crate::stall::{self, Pulse, Stall};
use crate::tool_facts::LOOKING;
use crate::tool_facts::{DELEGATING, TASK, ToolFacts};
use crate::webhooks::Hooks;
use crate::worktree::Worktrees;
use futures_util::FutureExt;
use posse_agent::{Agent, Ended, Journal, JournalError, Patience, Tool, Toolbox, Transcript};
use posse_model::Models;
use posse_protocol::{
    DelegationStrategy, Delta, Event, Extra, Grant, Guise, Outcome, RunFinished, RunId, RunStarted,
    Seq, ToolFinished, ToolOutput, ToolSpec,
};
use posse_store::{Ownership, Store, StoreError};
use posse_tools::confine::Confinement;
use posse_tools::launch::Launcher;
use posse_tools::{PathRules, ReadOnly, Scratch, Workspace};
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What runs are executed with.
pub(crate) struct Workbench {
    pub(crate) models: Models,
    pub(crate) active: Active,
    pub(crate) feed: Arc<Feed>,
    patience: Patience,
    stall_after: Duration,
    launcher: Option<Launcher>,
    /// Around the folders that are the runs' own.
    scratch: PathBuf,
    redactor: Redactor,
    host_tools: Vec<Arc<dyn Tool>>,
    skills: LiveSkills,
    workspaces: Mutex<HashMap<String, Weak<Workspace>>>,
    /// What there is to know of the tools, once it was asked for.
    pub(crate) facts: OnceLock<Arc<[ToolFacts]>>,
    /// The runtime that this works for: for tools that start runs.
    runtime: OnceLock<Weak<Inner>>,
    beginnings: Beginnings,
    pub(crate) worktrees: Worktrees,
    /// Who outside is told of the ends of runs.
    pub(crate) hooks: Arc<Hooks>,
    /// What models were last offered.
    offers: Mutex<VecDeque<Arc<[ToolSpec]>>>,
    /// Tools of sessions that wait, which know what files the agent has read.
    parked: Mutex<VecDeque<Parked>>,
}

/// The tools of a session that waits.
struct Parked {
    run: RunId,
    tools: Toolbox,
    /// What they refuse: tools that were made for other rules are not used again.
    refusing: Vec<String>,
}

/// How much is remembered of what models were offered. Agents that take turns have a few between
/// them.
const OFFERS: usize = 8;

/// Sessions whose tools are kept while they wait.
const PARKED: usize = 32;

/// A run that this process owns.
pub(crate) struct Assignment {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    /// How many processes in a row died that executed it.
    pub(crate) deaths: u32,
    /// What the run is made of, if it is not stored yet.
    pub(crate) birth: Option<Birth>,
}

impl Workbench {
    pub(crate) fn new(config: &RuntimeConfig, models: Models) -> Self {
        Workbench {
            models,
            active: Active::default(),
            feed: Arc::default(),
            patience: config.patience,
            stall_after: config.stall_after,
            launcher: config.confining_launcher(),
            scratch: config.scratch(),
            redactor: config.redactor.clone(),
            host_tools: config.tools.clone(),
            skills: config.skills.clone(),
            workspaces: Mutex::default(),
            facts: OnceLock::new(),
            runtime: OnceLock::new(),
            beginnings: Beginnings::default(),
            worktrees: Worktrees::new(config.worktrees(), config.launcher.clone()),
            hooks: Arc::new(Hooks::new(config.webhooks.clone())),
            offers: Mutex::default(),
            parked: Mutex::default(),
        }
    }

    /// Makes the runtime known that this works for.
    pub(crate) fn serve(&self, runtime: Weak<Inner>) {
        // Set once, when the runtime opens.
        let _ = self.runtime.set(runtime);
    }

    fn runtime(&self) -> Weak<Inner> {
        self.runtime.get().cloned().unwrap_or_default()
    }

    /// The folder that is `run`'s own, if its path has a name.
    pub(crate) fn scratch_of(&self, run: RunId) -> Option<String> {
        let path = self.scratch.join(run.to_string()).into_os_string();
        path.into_string().ok()
    }

    /// New tools in the folder `path`, but for those that start runs or load skills.
    pub(crate) fn plain_tools(
        &self,
        path: &str,
        scratch: Option<&Scratch>,
        read_only: Vec<ReadOnly>,
        confinement: &Confinement,
        rules: Option<Arc<dyn PathRules>>,
    ) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let workspace = self.workspace(path)?;
        let launcher = self.launcher.as_ref();
        let mut tools = posse_tools::toolset_obeying(
            &workspace,
            scratch,
            read_only,
            launcher,
            confinement,
            rules,
        );
        tools.extend(self.host_tools.iter().cloned());
        Ok(tools)
    }

    /// New tools for a run that began as `started`.
    fn toolbox(&self, started: &Arc<RunStarted>, policy: &Arc<Policy>) -> Result<Toolbox, Error> {
        let scratch = started.grant.scratch.as_ref();
        let scratch = scratch.and_then(|path| Scratch::at(path.as_ref()).ok());
        let Grant { workspace, skills, .. } = &started.grant;
        let origin = started.grant.worktree.iter().map(|worktree| worktree.origin.as_str());
        let read_only = skills.iter().map(|skill| skill.path.as_str()).chain(origin);
        let read_only = read_only.map(ReadOnly::at).collect();
        let confinement = Confinement::of(&started.grant);
        let scratch = scratch.as_ref();
        let rules = FileRules::of(policy);
        let mut tools = self.plain_tools(workspace, scratch, read_only, &confinement, rules)?;
        let guise = guise_of(started);
        let shown = guise.map_or(&started.grant.delegation, |guise| &guise.delegation);
        let mut alone = None;
        match shown {
            Some(shown) => {
                tools.push(Arc::new(Task::new(self.runtime(), started.clone(), shown)));
                tools.push(Arc::new(Spawn::new(self.runtime(), started.clone())));
                tools.push(Arc::new(Subagents::new(self.runtime())));
            }
            None => {
                let runtime = self.runtime().upgrade().map(|inner| Runtime { inner });
                alone = runtime.map(|runtime| runtime.why_alone(started));
            }
        }
        if !skills.is_empty() {
            let live = match self.runtime().upgrade() {
                Some(inner) => (Runtime { inner }).config().around(workspace.as_ref()).skills,
                None => self.skills.clone(),
            };
            tools.push(Arc::new(SkillTool::new(skills, live)));
        }
        let tools =
            Toolbox::new(tools.into_iter().map(|tool| self.redactor.around(tool)).collect());
        Ok(match alone {
            Some(why) => tools.without(&DELEGATING, why),
            None => tools,
        })
    }

    /// What judges the calls of a run that began as `started`.
    fn policy(&self, started: &RunStarted) -> Result<Arc<Policy>, Error> {
        let facts = self.facts(&started.grant.workspace)?;
        match self.runtime().upgrade() {
            Some(inner) => authority::policy(&started.grant, (Runtime { inner }).config(), &facts),
            None => Policy::new(&started.grant, &Today::default(), &facts)
                .map_err(|error| Error::InvalidInput(error.to_string())),
        }
        .map(Arc::new)
    }

    /// The folder `path`, opened once for all runs in it.
    fn workspace(&self, path: &str) -> Result<Arc<Workspace>, Error> {
        let mut known = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspace) = known.get(path).and_then(Weak::upgrade) {
            return Ok(workspace);
        }
        let workspace = Workspace::open(path.as_ref()).map_err(|error| Error::Workspace {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        known.retain(|_, workspace| workspace.strong_count() > 0);
        known.insert(path.to_owned(), Arc::downgrade(&workspace));
        Ok(workspace)
    }

    /// Executes a run until it ends, waits, or `stop` fires.
    pub(crate) async fn execute(
        &self,
        store: &Arc<dyn Store>,
        assignment: Assignment,
        stopping: Stopping,
        stop: &CancellationToken,
    ) -> Left {
        let run = assignment.run;
        let (hooks, feed) = (self.hooks.clone(), self.feed.clone());
        let mut stall = Stall::new(store.clone(), run, self.stall_after);
        let pulse = stall.pulse().clone();
        let mut journal =
            RunJournal::new(store.clone(), run, assignment.epoch, stopping, hooks, pulse, feed);
        let mut first = None;
        if assignment.birth.is_none() {
            fail::fail_point!("run.taken_up");
        }
        if assignment.deaths >= QUARANTINE {
            return self.end(run, &journal, Why::Deaths(assignment.deaths)).await;
        }
        if let Some(birth) = assignment.birth {
            first = birth.events.first().cloned();
            journal = journal.with_birth(birth);
        }
        loop {
            let pulse = stall.pulse().clone();
            let next = {
                // Pinned: what is handed on by value has a place in every future on its way.
                let work = pin!(self.work(store, run, &journal, first.take(), stop, pulse));
                AssertUnwindSafe(stall.watch(work)).catch_unwind().await
            };
            let next = match next {
                Ok(stall::Ended::Itself(next)) => Ok(next),
                Ok(stall::Ended::Stalled) => Ok(Next::Again),
                Ok(stall::Ended::Hopeless(why)) => return self.fail(run, &journal, &why).await,
                Err(panic) => Err(panic),
            };
            match next {
                Ok(Next::Leave(left)) => return left,
                Ok(Next::Again) => {}
                // The store cannot be used now; the run is paused until it can, or until shutdown.
                Ok(Next::Later(why)) => {
                    why.iter().for_each(|why| journal.tell_held(why));
                    tokio::select! {
                        () = tokio::time::sleep(STORE_RETRY) => {}
                        () = stop.cancelled() => return Left::AtRest,
                    }
                }
                // A panic in one run is that run's end, not the end of the others.
                Err(_) => {
                    return self.fail(run, &journal, "posse failed inside itself").await;
                }
            }
        }
    }

    /// One stretch of work on a run.
    async fn work(
        &self,
        store: &Arc<dyn Store>,
        run: RunId,
        journal: &RunJournal,
        first: Option<Event>,
        stop: &CancellationToken,
        pulse: Arc<Pulse>,
    ) -> Next {
        let first = match first {
            Some(event) => Ok(Some(event)),
            None => {
                let records = store.read(run, Seq::ZERO, 1).await;
                records.map(|mut records| records.pop().map(|record| record.event))
            }
        };
        let started: Arc<RunStarted> = match first {
            Ok(Some(Event::RunStarted(started))) => self.as_trusted_now(started),
            Err(error @ (StoreError::Unusable { .. } | StoreError::Full)) => {
                return Next::Later(Some(error.to_string()));
            }
            // A log that cannot be read is not executed; the store has marked it as damaged.
            _ => return Next::Leave(Left::AtRest),
        };
        if let Some(worktree) = &started.grant.worktree {
            journal.works_in(self.worktrees.clone(), worktree.clone());
            if let Err(error) = self.worktrees.make(worktree).await {
                return Next::Leave(self.fail(run, journal, &error.to_string()).await);
            }
        }
        if let Err(later) = self.stop_if_forsaken(run, &started, journal).await {
            return later;
        }
        let mut started = started;
        let (agent, refusing, ended) = loop {
            let (tail, pulse) = (store.watch(run), pulse.clone());
            let (agent, refusing) = match self.agent(run, &started, tail, pulse) {
                Ok(agent) => agent,
                // Its model may be gone, and another one asked for.
                Err(_) if let Some(model) = selection::asked(store, run, &started.model).await => {
                    Arc::make_mut(&mut started).model = model;
                    continue;
                }
                Err(error) => {
                    return Next::Leave(self.fail(run, journal, &error.to_string()).await);
                }
            };
            match posse_agent::run(&agent, journal, stop).await {
                Ok(Ended::OtherModel(model)) => Arc::make_mut(&mut started).model = model,
                ended => break (agent, refusing, ended),
            }
        };
        match ended {
            Ok(Ended::OtherModel(_)) => Next::Again,
            Ok(Ended::Finished(outcome)) => {
                self.stop_below(run, &started, &outcome).await;
                fail::fail_point!("run.finished");
                self.active.ended(run, &outcome);
                Next::Leave(Left::Ended)
            }
            Ok(Ended::Waiting { seen, calls }) => {
                let then = match calls {
                    0 => Ownership::Waiting,
                    calls => Ownership::Awaiting(calls),
                };
                fail::fail_point!("run.parking");
                let released = journal.hand_over(Vec::new(), Some(seen), then).await;
                fail::fail_point!("run.parked");
                if started.session {
                    self.park(Parked { run, tools: agent.tools, refusing });
                }
                match released {
                    Err(StoreError::Moved { .. }) => Next::Again,
                    Err(error @ StoreError::Unusable { .. }) => {
                        Next::Later(Some(error.to_string()))
                    }
                    _ => Next::Leave(Left::AtRest),
                }
            }
            Ok(Ended::Stopped) => {
                // If it cannot be released now, closing the store or the end of the process does.
                let _ = journal.hand_over(Vec::new(), None, Ownership::Queued).await;
                fail::fail_point!("run.stopped");
                Next::Leave(Left::AtRest)
            }
            Err(JournalError::NotOwner | JournalError::Damaged(_)) => Next::Leave(Left::AtRest),
            Err(JournalError::Failed(why)) => Next::Later(Some(why)),
            Err(JournalError::Moved | JournalError::OverBudget(_)) => Next::Later(None),
        }
    }

    /// `started` with no more than what today's trust allows: whoever brought its agent along may
    /// have lost it.
    fn as_trusted_now(&self, mut started: Arc<RunStarted>) -> Arc<RunStarted> {
        if started.project.is_none() {
            return started;
        }
        let inner = self.runtime().upgrade();
        if inner.is_none_or(|inner| Runtime { inner }.distrust(&started).is_some()) {
            let grant = &mut Arc::make_mut(&mut started).grant;
            grant.tools.retain(|tool| LOOKING.contains(&tool.as_str()));
            grant.hand_on.retain(|tool| LOOKING.contains(&tool.as_str()));
            grant.delegation = None;
        }
        started
    }

    /// The agent that executes a run, and the rules by which its tools refuse.
    fn agent(
        &self,
        run: RunId,
        started: &Arc<RunStarted>,
        tail: watch::Receiver<Seq>,
        pulse: Arc<Pulse>,
    ) -> Result<(Agent, Vec<String>), Error> {
        let mut model = self.models.resolve(&started.model)?;
        if let Some(beginning) = common_beginning(started) {
            model = Arc::new(Staggered::new(model, &self.beginnings, &beginning));
        }
        // One that cannot be had any more is no reason to stop: it may never be needed.
        let fallbacks = started.fallbacks.iter().filter_map(|name| self.models.resolve(name).ok());
        let fallbacks = fallbacks.map(|model| self.redactor.before(model));
        let guard = self.policy(started)?;
        let refusing = guard.refusing();
        let tools = match self.unpark(run, &refusing) {
            Some(tools) => tools,
            None => self.toolbox(started, &guard)?,
        };
        let guise = guise_of(started);
        let system = guise.map_or_else(|| system_prompt(started), |guise| guise.system.clone());
        let shown = guise.map_or(&started.grant.tools, |guise| &guise.tools);
        let offered = self.offered(&tools, shown);
        let feed = self.feed.clone();
        let agent = Agent {
            run,
            system: system.into(),
            model: self.redactor.before(model),
            fallbacks: fallbacks.collect(),
            patience: self.patience,
            effort: started.agent.effort,
            output_schema: started.agent.output_schema.clone().map(Arc::new),
            tools,
            offered,
            grant: started.grant.clone(),
            guard,
            limits: started.limits.clone(),
            deltas: Arc::new(move |delta: Delta| {
                pulse.beat();
                feed.send(run, *tail.borrow(), delta);
            }),
        };
        Ok((agent, refusing))
    }

    /// What `tools` offers of those called `shown`: the same for all runs that are offered the same.
    fn offered(&self, tools: &Toolbox, shown: &[String]) -> Arc<[ToolSpec]> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = offers.iter().find(|offer| tools.offered(shown).eq(offer.iter())) {
            return same.clone();
        }
        let new: Arc<[ToolSpec]> = tools.offered(shown).cloned().collect();
        offers.truncate(OFFERS - 1);
        offers.push_front(new.clone());
        new
    }

    /// Tells a run to stop for whose end somebody waited who has ended meanwhile: nobody told it,
    /// because the process died that was about to.
    async fn stop_if_forsaken(
        &self,
        run: RunId,
        started: &RunStarted,
        journal: &RunJournal,
    ) -> Result<(), Next> {
        let Some(parent) = &started.parent else { return Ok(()) };
        if journal.is_unborn() {
            return Ok(());
        }
        // What has gone by says who waits.
        if journal.read_after(Seq::ZERO).await.is_err() {
            return Err(Next::Later(None));
        }
        let Some(inner) = self.runtime().upgrade() else { return Ok(()) };
        let runtime = Runtime { inner };
        if !journal.is_waited_for() {
            return Ok(());
        }
        match runtime.forsaken(parent).await {
            Ok(None) => Ok(()),
            Ok(Some(by)) => {
                fail::fail_point!("run.forsaken.before");
                let told = runtime.inner.store.append(vec![request(run, &by)]).await;
                fail::fail_point!("run.forsaken.after");
                match told {
                    Ok(_) | Err(StoreError::Finished(_)) => Ok(()),
                    Err(_) => Err(Next::Later(None)),
                }
            }
            Err(_) => Err(Next::Later(None)),
        }
    }

    /// A run that did not come to its end by itself takes along what it has started. Its children
    /// were told when it ended; those below them need not wait until they have ended too.
    async fn stop_below(&self, run: RunId, started: &RunStarted, outcome: &Outcome) {
        let Some(by) = stopped_by(outcome).filter(|_| started.grant.delegation.is_some()) else {
            return;
        };
        let Some(inner) = self.runtime().upgrade() else { return };
        // Whoever is not told now hears of it from its caller, or when it is next taken up.
        let _ = (Runtime { inner }).cancel_below(run, &by, Reach::All).await;
    }

    /// Ends a run that cannot be executed here, keeping what there is of its result.
    async fn fail(&self, run: RunId, journal: &RunJournal, reason: &str) -> Left {
        self.end(run, journal, Why::Cannot(reason)).await
    }

    async fn end(&self, run: RunId, journal: &RunJournal, why: Why<'_>) -> Left {
        loop {
            let Ok(records) = journal.read_after(Seq::ZERO).await else {
                return Left::AtRest;
            };
            let transcript = Transcript::of(&records);
            let (events, outcome) = closing(run, &transcript, why);
            let last = Some(transcript.seq());
            match journal.hand_over(events, last, Ownership::Waiting).await {
                // What was appended meanwhile may be the result of a call.
                Err(StoreError::Moved { .. }) => {}
                // Nobody else can end it while it is this process's.
                Err(error @ (StoreError::Full | StoreError::Unusable { .. })) => {
                    journal.tell_held(&error.to_string());
                    tokio::time::sleep(STORE_RETRY).await;
                }
                Err(_) => return Left::Ended,
                Ok(_) => {
                    if let Some(started) = transcript.started() {
                        self.stop_below(run, started, &outcome).await;
                    }
                    self.active.ended(run, &outcome);
                    return Left::Ended;
                }
            }
        }
    }

    fn park(&self, session: Parked) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() >= PARKED {
            parked.pop_front();
        }
        parked.push_back(session);
    }

    fn unpark(&self, run: RunId, refusing: &[String]) -> Option<Toolbox> {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let position = parked.iter().position(|session| session.run == run)?;
        let session = parked.remove(position)?;
        (session.refusing == refusing).then_some(session.tools)
    }
}

/// What ends a run that cannot go on: its open calls are answered, and what there is of its result
/// is kept.
fn closing(run: RunId, transcript: &Transcript, why: Why<'_>) -> (Vec<Event>, Outcome) {
    let partial = transcript.last_text().to_owned();
    let outcome = match (transcript.cancelled_by(), why) {
        (Some(by), _) => Outcome::cancelled(by, partial),
        (None, Why::Cannot(reason)) => Outcome::failed(
            format!("{reason}; mend that, then `posse runs resume {run} \"go on\"`"),
            partial,
        ),
        (None, Why::Deaths(deaths)) => Outcome::quarantined(
            deaths,
            format!(
                "the process that executed it died {deaths} times in a row; `posse runs log {run}` shows \
                 its last calls, `posse runs resume {run}` tries it again"
            ),
            partial,
        ),
    };
    let worked_ms = transcript.worked_ms();
    let answers = posse_agent::closing_answers(transcript, "stopped: the run could not go on");
    let unanswered = answers.map(|(call, ending, why)| {
        Event::ToolFinished(ToolFinished {
            call,
            output: ToolOutput::error(why),
            ending,
            by: String::new(),
            took_ms: 0,
            worked_ms,
            extra: Extra::default(),
        })
    });
    let finished =
        RunFinished { outcome: outcome.clone(), worked_ms, changes: None, extra: Extra::default() };
    let events = unanswered.chain([Event::RunFinished(finished)]).collect();
    (events, outcome)
}

/// Why a run is ended that did not come to its end by itself.
#[derive(Clone, Copy)]
enum Why<'a> {
    /// It cannot be executed here.
    Cannot(&'a str),
    /// So many processes in a row died that executed it.
    Deaths(u32),
}

/// How many processes may die in a row that execute a run.
const QUARANTINE: u32 = 5;

/// How a run was left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has ended.
    Ended,
    /// It has not ended, and is not executed here now.
    AtRest,
}

enum Next {
    /// Something was appended: look again.
    Again,
    /// The store cannot be used now, for this reason if it is known.
    Later(Option<String>),
    /// Nothing more to do here.
    Leave(Left),
}

/// How long a run waits before it tries a store again that could not be used.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// What the agent is told before anything else. Depends on the first event alone, so that every
/// request of the run begins with the same bytes.
pub(crate) fn system_prompt(started: &RunStarted) -> String {
    let mut text = started.agent.instructions.clone();
    let grant = &started.grant;
    text.push_str(&format!("\n\nWorking folder: {}\n", grant.workspace));
    let writes = ["Write", "Edit", "Bash"].iter().any(|tool| grant.allows(tool));
    if let Some(scratch) = grant.scratch.as_ref().filter(|_| writes) {
        text.push_str(&format!("Scratch folder: {scratch}\n"));
    }
    if started.parent.is_some() {
        text.push_str("Your last message is all that your caller gets to see: make it complete.\n");
    }
    if let Some(delegation) = &grant.delegation
        && delegation.strategy == DelegationStrategy::Auto
        && grant.allows(TASK)
    {
        text.push_str(URGE);
    }
    text
}

/// What urges an agent to hand work to others.
const URGE: &str = "\nHand work to a specialist with Task when it fits the agent's description, needs a \
    search in many places, or has parts to do side by side. Judge what it reports.\n";

/// What the model is shown in place of the run's own.
fn guise_of(started: &RunStarted) -> Option<&Guise> {
    started.forked.as_ref()?.guise.as_deref()
}

/// What the requests of a run have in common with those of its siblings, if they have to write the
/// provider's cache themselves.
fn common_beginning(started: &RunStarted) -> Option<String> {
    let forked = started.forked.as_ref().filter(|forked| forked.guise.is_none())?;
    let tools = started.grant.tools.join(",");
    let (agent, model) = (&started.agent.name, &started.model);
    Some(format!("{}/{}/{agent}/{model}/{tools}", forked.from, forked.at))
}
