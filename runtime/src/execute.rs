//! Executes one run: from its first event to an agent at work, until the run ends or waits.

mod place;

use crate::active::Stopping;
use crate::announcement::{request, stopped_by};
use crate::authority;
use crate::control::SubagentScope;
use crate::delegation::spawn::Spawn;
use crate::delegation::stagger::{Beginnings, Staggered};
use crate::delegation::subagents::Subagents;
use crate::delegation::task::Task;
use crate::error::Error;
use crate::guidance::nested::Nested;
use crate::journal::RunJournal;
use crate::policy::{FileRules, Policy};
use crate::prompt::system_prompt;
use crate::runtime::{Inner, Runtime};
use crate::runtime_config::RuntimeConfig;
use crate::selection;
use crate::skills::tool::SkillTool;
use crate::stall::{self, Pulse, Stall};
use crate::supervisor::{Again, Assignment, Execute, Left};
use crate::tool_facts::{DELEGATING, looks_here, tools_of};
use crate::toolset::RunFolders;
use crate::worktree::{STILL_IN, stuck};
use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use posse_agent::{Agent, Ended, Journal, JournalError, Tool, Toolbox, Transcript};
use posse_protocol::{
    BorrowedPrompt, Delta, Event, Extra, Grant, Outcome, RunFinished, RunId, RunStarted, Seq,
    ToolFinished, ToolOutput, ToolSpec,
};
use posse_store::{Ownership, StoreError};
use posse_tools::confine::Confinement;
use posse_tools::{ReadOnly, Scratch};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Executes runs, one call for each.
pub(crate) struct Executor {
    runtime: Runtime,
    beginnings: Beginnings,
    /// The lists of tools that models were last offered.
    offers: Mutex<VecDeque<Arc<[ToolSpec]>>>,
    /// Tools of waiting sessions. They remember which files the agent has read.
    parked: Mutex<VecDeque<Parked>>,
}

/// The tools of a waiting session.
struct Parked {
    run: RunId,
    tools: Toolbox,
    /// The rules by which they refuse. Tools that were made for other rules are not reused.
    refusing: Vec<String>,
}

/// How many lists of offered tools are kept. Agents that alternate share a few lists.
const OFFERS: usize = 8;

/// How many waiting sessions keep their tools.
const PARKED: usize = 32;

impl Executor {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Executor {
            runtime,
            beginnings: Beginnings::default(),
            offers: Mutex::default(),
            parked: Mutex::default(),
        }
    }

    fn config(&self) -> &RuntimeConfig {
        self.runtime.config()
    }

    /// Makes the tools of a run that began as `started`.
    fn toolbox(
        &self,
        run: RunId,
        started: &Arc<RunStarted>,
        policy: &Arc<Policy>,
    ) -> Result<Toolbox, Error> {
        let scratch = started.grant.scratch.as_ref();
        let scratch = scratch.and_then(|path| Scratch::at(path.as_ref()).ok());
        let Grant { workspace, skills, .. } = &started.grant;
        let origin = started.grant.worktree.iter().map(|worktree| worktree.origin.as_str());
        let read_only = skills.iter().map(|skill| skill.path.as_str()).chain(origin);
        let read_only: Vec<ReadOnly> = read_only.map(ReadOnly::at).collect();
        let confinement = Confinement::of(&started.grant);
        let scratch = scratch.as_ref();
        let rules = FileRules::of(policy);
        let nested =
            Nested::of(started, || self.config().around(workspace.as_ref()).guidance, &rules);
        let Inner { tools: made, sources, .. } = &*self.runtime.inner;
        let mut offered: Vec<Arc<dyn Tool>> = Vec::new();
        if started.grant.sources.iter().any(|offer| !offer.tools.is_empty()) {
            let folders = RunFolders { workspace, scratch, read_only: read_only.clone() };
            let who = (run, started.agent.name.clone());
            let context = made.source_context(who, folders, &confinement, rules.clone())?;
            offered.extend(sources.tools(&started.grant.sources, &context));
        }
        let mut tools = made.make(workspace, scratch, read_only, &confinement, rules, offered)?;
        let guise = guise_of(started);
        let shown = guise.map_or(&started.grant.delegation, |guise| &guise.delegation);
        let mut alone = None;
        match shown {
            Some(shown) => {
                tools.push(Arc::new(Task::new(self.runtime.clone(), started.clone(), shown)));
                tools.push(Arc::new(Spawn::new(self.runtime.clone(), started.clone())));
                tools.push(Arc::new(Subagents::new(self.runtime.clone())));
            }
            None => alone = Some(self.runtime.why_alone(started)),
        }
        if !skills.is_empty() {
            let live = self.config().around(workspace.as_ref()).skills;
            tools.push(Arc::new(SkillTool::new(skills, live)));
        }
        let redactor = &self.config().permissions.redactor;
        let guided = |tool: Arc<dyn Tool>| {
            nested.as_ref().map_or_else(|| Arc::clone(&tool), |it| it.around(&tool))
        };
        let tools = tools.into_iter().map(|tool| redactor.around(guided(tool)));
        let tools = Toolbox::new(tools.collect());
        Ok(match alone {
            Some(why) => tools.without(&DELEGATING, why),
            None => tools,
        })
    }

    /// The policy for the calls of a run that began as `started`.
    fn policy(&self, started: &RunStarted) -> Result<Arc<Policy>, Error> {
        let Grant { workspace, sources, .. } = &started.grant;
        let facts = self.runtime.inner.tools.facts_with(workspace, sources)?;
        authority::policy(&started.grant, self.config(), &facts).map(Arc::new)
    }
}

#[async_trait]
impl Execute for Executor {
    async fn execute(
        &self,
        assignment: Assignment,
        stopping: Stopping,
        stop: &CancellationToken,
    ) -> Left {
        let run = assignment.run;
        let left = self.execute_open(assignment, stopping, stop).await;
        match left {
            Left::Ended => self.runtime.inner.sources.close(run),
            Left::AtRest | Left::ToOthers(_) => self.runtime.inner.sources.rest(run),
        }
        left
    }
}

impl Executor {
    /// Like `execute`, but leaves the tool sources of the run open.
    async fn execute_open(
        &self,
        assignment: Assignment,
        stopping: Stopping,
        stop: &CancellationToken,
    ) -> Left {
        let run = assignment.run;
        let Inner { store, hooks, feed, .. } = &*self.runtime.inner;
        let (hooks, feed) = (hooks.clone(), feed.clone());
        let mut stall = Stall::new(store.clone(), run, self.config().scheduling.stall_after);
        let pulse = stall.pulse().clone();
        let mut journal =
            RunJournal::new(store.clone(), run, assignment.epoch, stopping, hooks, pulse, feed);
        let mut first = None;
        if assignment.birth.is_none() {
            fail::fail_point!("run.taken_up");
        }
        if assignment.deaths >= QUARANTINE {
            return self.end(run, &journal, EndReason::Deaths(assignment.deaths)).await;
        }
        if let Some(birth) = assignment.birth {
            first = birth.events.first().cloned();
            journal = journal.with_first_events(birth);
        }
        loop {
            let pulse = stall.pulse().clone();
            let next = {
                // Pinned in place: a future that is passed by value takes space in every future around it.
                let work = self.work(run, &journal, first.take(), stop, pulse, assignment.epoch);
                let work = pin!(work);
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
                // The store cannot be used now. The run pauses until it can, or until shutdown.
                Ok(Next::Later(why)) => {
                    why.iter().for_each(|why| journal.tell_held(why));
                    tokio::select! {
                        () = tokio::time::sleep(STORE_RETRY) => {}
                        () = stop.cancelled() => return Left::AtRest,
                    }
                }
                // A panic ends only the run that panicked.
                Err(_) => {
                    return self.fail(run, &journal, "internal error: the run panicked").await;
                }
            }
        }
    }
}

impl Executor {
    /// Works on a run until it ends, waits, or must be looked at again.
    async fn work(
        &self,
        run: RunId,
        journal: &RunJournal,
        first: Option<Event>,
        stop: &CancellationToken,
        pulse: Arc<Pulse>,
        epoch: u64,
    ) -> Next {
        let Inner { store, worktrees, active, .. } = &*self.runtime.inner;
        let first = match first {
            Some(event) => Ok(Some(event)),
            None => {
                let records = store.read(run, Seq::ZERO, 1).await;
                records.map(|mut records| records.pop().map(|record| record.event))
            }
        };
        let started: Arc<RunStarted> = match first {
            Ok(Some(Event::RunStarted(started))) => {
                self.runtime.localised(run, self.as_trusted_now(started))
            }
            Err(error @ (StoreError::Unusable { .. } | StoreError::Full)) => {
                return Next::Later(Some(error.to_string()));
            }
            // A log that cannot be read is not executed; the store has marked it as damaged.
            _ => return Next::Leave(Left::AtRest),
        };
        let is_elsewhere = self.runtime.is_elsewhere(&started.grant);
        if is_elsewhere && is_stopped(journal).await {
            return Next::Leave(self.end_elsewhere(run, journal, &started).await);
        }
        let lacks = is_elsewhere || self.runtime.lacking_tool(&started.grant).is_some();
        if lacks && !is_stopped(journal).await {
            return match journal.hand_over(Vec::new(), None, Ownership::Queued).await {
                Err(error @ StoreError::Unusable { .. }) => Next::Later(Some(error.to_string())),
                _ => Next::Leave(Left::ToOthers(Again::Never)),
            };
        }
        if started.grant.site.is_portable() {
            // Boxed: most runs work in a folder.
            match Box::pin(self.take_place(run, &started, journal, epoch, &pulse, stop)).await {
                Ok(()) => {}
                Err(next) => return next,
            }
        } else if let Some(worktree) = &started.grant.worktree {
            journal.works_in(worktrees.clone(), worktree.clone());
            if let Err(error) = worktrees.make(worktree).await {
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
                // The model may be gone, and a message may have asked for another one.
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
                active.ended(run, &outcome);
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
                // If the claim cannot be released now, closing the store or the end of the process releases it.
                let _ = journal.hand_over(Vec::new(), None, Ownership::Queued).await;
                fail::fail_point!("run.stopped");
                Next::Leave(Left::AtRest)
            }
            Err(JournalError::NotOwner | JournalError::Damaged(_)) => Next::Leave(Left::AtRest),
            Err(JournalError::Unstorable(why)) => Next::Leave(self.fail(run, journal, &why).await),
            Err(JournalError::Failed(why)) => Next::Later(Some(why)),
            Err(JournalError::Moved | JournalError::OverBudget(_)) => Next::Later(None),
        }
    }

    /// `started`, restricted to what the user trusts now: the folder of its agent may have lost the user's trust.
    fn as_trusted_now(&self, mut started: Arc<RunStarted>) -> Arc<RunStarted> {
        if started.project.is_none() {
            return started;
        }
        if self.runtime.distrust(&started).is_some() {
            let grant = &mut Arc::make_mut(&mut started).grant;
            let known = tools_of(grant);
            let looks = |name: &String| known.iter().any(|it| it.name == *name && looks_here(it));
            grant.tools.retain(looks);
            grant.hand_on.retain(looks);
            grant.delegation = None;
        }
        started
    }

    /// The agent that executes a run, and the rules by which its tools refuse calls.
    fn agent(
        &self,
        run: RunId,
        started: &Arc<RunStarted>,
        tail: watch::Receiver<Seq>,
        pulse: Arc<Pulse>,
    ) -> Result<(Agent, Vec<String>), Error> {
        let Inner { models, feed, config, .. } = &*self.runtime.inner;
        let redactor = &config.permissions.redactor;
        let mut model = models.resolve(&started.model)?;
        if let Some(beginning) = common_beginning(started) {
            model = Arc::new(Staggered::new(model, &self.beginnings, &beginning));
        }
        // A fallback that is gone is no reason to stop: it may never be needed.
        let fallbacks = started.fallbacks.iter().filter_map(|name| models.resolve(name).ok());
        let fallbacks = fallbacks.map(|model| redactor.before(model));
        let guard = self.policy(started)?;
        let refusing = guard.refusing();
        let tools = match self.unpark(run, &refusing) {
            Some(tools) => tools,
            None => self.toolbox(run, started, &guard)?,
        };
        let guise = guise_of(started);
        let system = guise.map_or_else(|| system_prompt(started), |guise| guise.system.clone());
        let shown = guise.map_or(&started.grant.tools, |guise| &guise.tools);
        let offered = self.offered(&tools, shown);
        let feed = feed.clone();
        let agent = Agent {
            run,
            system: system.into(),
            model: redactor.before(model),
            fallbacks: fallbacks.collect(),
            patience: config.models.patience,
            effort: started.agent.models.effort,
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
            cut: self.runtime.inner.supervisor.cut(),
        };
        Ok((agent, refusing))
    }

    /// The tools of `tools` that `shown` names. Runs with the same list share one allocation.
    fn offered(&self, tools: &Toolbox, shown: &[String]) -> Arc<[ToolSpec]> {
        let mut offers = self.offers.lock();
        if let Some(same) = offers.iter().find(|offer| tools.offered(shown).eq(offer.iter())) {
            return same.clone();
        }
        let new: Arc<[ToolSpec]> = tools.offered(shown).cloned().collect();
        offers.truncate(OFFERS - 1);
        offers.push_front(new.clone());
        new
    }

    /// Stops an orphan: the run that waited for it has ended, and the process that should have cancelled it died first.
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
        // The log says which run waits.
        if journal.read_after(Seq::ZERO).await.is_err() {
            return Err(Next::Later(None));
        }
        let runtime = &self.runtime;
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

    /// If a run ended without completing, cancels its subagents. Its children were asked when it ended; the runs below
    /// them need not wait until the children have ended.
    async fn stop_below(&self, run: RunId, started: &RunStarted, outcome: &Outcome) {
        let Some(by) = stopped_by(outcome).filter(|_| started.grant.delegation.is_some()) else {
            return;
        };
        // A run that is not reached now is cancelled by its caller, or when it is next claimed.
        let _ = self.runtime.cancel_below(run, &by, SubagentScope::All).await;
    }

    /// Ends a run of another machine, which was asked to stop.
    async fn end_elsewhere(&self, run: RunId, journal: &RunJournal, started: &RunStarted) -> Left {
        let host = started.grant.site.host();
        if let Some(worktree) = &started.grant.worktree {
            let problem = format!("it was ended elsewhere{STILL_IN}{host}:{}", worktree.folder);
            journal.works_nowhere(Some(stuck(worktree, problem)));
        }
        self.fail(run, journal, "its machine is gone").await
    }

    /// Ends a run that cannot be executed here, and keeps its partial result.
    async fn fail(&self, run: RunId, journal: &RunJournal, reason: &str) -> Left {
        self.end(run, journal, EndReason::Cannot(reason)).await
    }

    async fn end(&self, run: RunId, journal: &RunJournal, why: EndReason<'_>) -> Left {
        loop {
            let Ok(records) = journal.read_after(Seq::ZERO).await else {
                return Left::AtRest;
            };
            let transcript = Transcript::of(&records);
            let (events, outcome) = closing(&transcript, why);
            let last = Some(transcript.seq());
            match journal.hand_over(events, last, Ownership::Waiting).await {
                // An event that was appended meanwhile may be the result of a call.
                Err(StoreError::Moved { .. }) => {}
                // While this process has the claim, no other process can end the run.
                Err(
                    error @ (StoreError::Full
                    | StoreError::Unusable { .. }
                    | StoreError::Unstaged(_)),
                ) => {
                    journal.tell_held(&error.to_string());
                    tokio::time::sleep(STORE_RETRY).await;
                }
                Err(_) => return Left::Ended,
                Ok(_) => {
                    if let Some(started) = transcript.started() {
                        self.stop_below(run, started, &outcome).await;
                    }
                    self.runtime.inner.active.ended(run, &outcome);
                    return Left::Ended;
                }
            }
        }
    }

    fn park(&self, session: Parked) {
        let mut parked = self.parked.lock();
        if parked.len() >= PARKED {
            parked.pop_front();
        }
        parked.push_back(session);
    }

    fn unpark(&self, run: RunId, refusing: &[String]) -> Option<Toolbox> {
        let mut parked = self.parked.lock();
        let position = parked.iter().position(|session| session.run == run)?;
        let session = parked.remove(position)?;
        (session.refusing == refusing).then_some(session.tools)
    }
}

/// True when someone asked the run to stop. Then it needs no tool.
async fn is_stopped(journal: &RunJournal) -> bool {
    let records = journal.read_after(Seq::ZERO).await;
    records.is_ok_and(|records| Transcript::of(&records).cancelled_by().is_some())
}

/// The events that end a run that cannot continue: they answer its open calls and keep its partial result.
fn closing(transcript: &Transcript, why: EndReason<'_>) -> (Vec<Event>, Outcome) {
    let partial = transcript.last_text().to_owned();
    let outcome = match (transcript.cancelled_by(), why) {
        (Some(by), _) => Outcome::cancelled(by, partial),
        (None, EndReason::Cannot(reason)) => Outcome::failed(reason, partial),
        (None, EndReason::Deaths(deaths)) => Outcome::quarantined(
            deaths,
            format!("the process that executed it died {deaths} times in a row"),
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

/// Why the executor ends a run.
#[derive(Clone, Copy)]
enum EndReason<'a> {
    /// It cannot be executed here.
    Cannot(&'a str),
    /// This many processes in a row died while they executed it.
    Deaths(u32),
}

/// After how many deaths in a row of its processes a run is quarantined.
const QUARANTINE: u32 = 5;

enum Next {
    /// Something was appended: read the log again.
    Again,
    /// The store cannot be used now. The reason is given if known.
    Later(Option<String>),
    /// Nothing more to do here.
    Leave(Left),
}

/// How long a run waits before it tries an unusable store again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// The prompt that the model sees in place of the run's own, if any.
fn guise_of(started: &RunStarted) -> Option<&BorrowedPrompt> {
    started.forked.as_ref()?.guise.as_deref()
}

/// The shared beginning of the requests of a run and its siblings, if they must write the provider's cache themselves.
fn common_beginning(started: &RunStarted) -> Option<String> {
    let forked = started.forked.as_ref().filter(|forked| forked.guise.is_none())?;
    let tools = started.grant.tools.join(",");
    let (agent, model) = (&started.agent.name, &started.model);
    Some(format!("{}/{}/{agent}/{model}/{tools}", forked.from, forked.at))
}
