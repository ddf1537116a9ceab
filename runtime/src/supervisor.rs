//! The supervisor: decides which runs this process executes. It owns slots, claims, recovery, the
//! renewal of the lease, and the shutdown.
//!
//! It starts the tasks that execute runs, tracks each of them, and awaits them at shutdown.

mod line;

use crate::active::{Active, Stopping};
use crate::journal::{FIRST_EPOCH, FirstEvents, create};
use crate::lanes;
use crate::quiet;
use crate::runtime_config::{Recovery, RuntimeConfig};
use crate::worktree::Repositories;
use async_trait::async_trait;
use line::{Lent, Line, Slot};
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{Event, RunId};
use posse_store::{
    Append, Bundle, Filter, Kin, Ownership, Queued, RunRow, Store, StoreError, Unfinished, Wanted,
    WorkerAbout,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long runs may take to record what has arrived of a model call that was cut short.
const RECORDING: Duration = Duration::from_millis(500);

/// The most subagents that one query to the store returns.
const MOST: usize = 1_000_000;

/// How long a new runtime waits before it looks for unfinished runs.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// How often a runtime looks for work that other processes left.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How long a process must survive a run that may have killed others before it executes the next
/// such run at the same time.
const SUSPICION: Duration = Duration::from_secs(60);

/// A run that this process owns.
pub(crate) struct Assignment {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    /// How many processes in a row died while they executed it.
    pub(crate) deaths: u32,
    /// The first events of the run, if they are not stored yet.
    pub(crate) birth: Option<FirstEvents>,
}

/// The state in which an execution left its run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has ended.
    Ended,
    /// It has not ended, and this process does not execute it now.
    AtRest,
    /// This process cannot execute it, and has given it back to the queue for others.
    ToOthers(Again),
}

/// Whether this process tries again to execute a run that it has left to others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It lacks something that does not come back.
    Never,
    /// It tries again some times, each after a longer wait.
    Later,
}

/// Executes the runs that the supervisor assigns.
#[async_trait]
pub(crate) trait Execute: Send + Sync + 'static {
    /// Executes a run until it ends, waits, or `stop` fires.
    async fn execute(
        &self,
        assignment: Assignment,
        stopping: Stopping,
        stop: &CancellationToken,
    ) -> Left;
}

/// A run that is about to be executed, and its slot.
pub(crate) struct Job {
    assignment: Assignment,
    stopping: Stopping,
    executed: Executed,
    slot: Slot,
}

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    store: Arc<dyn Store>,
    /// The runs that this process executes now.
    active: Arc<Active>,
    /// Hands runs to `execute_assignments`.
    assigned: UnboundedSender<Job>,
    /// The slots, and the queued runs that this process knows. The store has all of them.
    line: Mutex<Line>,
    recovery: Scope,
    /// What this process says about itself, and which runs it takes.
    about: WorkerAbout,
    /// This process also claims runs of other machines, if they were asked to stop: it ends them.
    ends_others: AtomicBool,
    repositories: Repositories,
    /// Runs that this process executes whatever the scope, with the number of requests to do so.
    adopted: Mutex<BTreeMap<RunId, u64>>,
    /// Runs whose subagents are still to be adopted, so that no run waits for them in vain.
    unexplored: Mutex<Vec<RunId>>,
    /// Roots whose trees this process queries again and again: another worker may execute a part of
    /// a tree, and die.
    trees: Mutex<BTreeSet<RunId>>,
    nudge: Notify,
    stop: CancellationToken,
    /// Fires when this process executes no more runs.
    drained: CancellationToken,
    /// Cuts all model calls short.
    cut: CancellationToken,
    running: Mutex<JoinSet<()>>,
}

/// The unfinished subagents of a run.
enum Below {
    /// All of them.
    Tree(Vec<RunId>),
    /// Only its children.
    Children(Vec<RunId>),
}

/// Which runs this process claims in addition to adopted ones.
enum Scope {
    All,
    Folder(String),
    None,
}

impl Supervisor {
    /// Creates a supervisor, and the receiver of the runs that it assigns once it is started.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        active: Arc<Active>,
        repositories: Repositories,
        config: &RuntimeConfig,
    ) -> (Self, UnboundedReceiver<Job>) {
        let recovery = match &config.scheduling.recovery {
            Recovery::Continue => Scope::All,
            Recovery::Wait => Scope::None,
            Recovery::ContinueIn(folder) => match folder.canonicalize() {
                Ok(folder) => Scope::Folder(folder.display().to_string()),
                Err(_) => Scope::None,
            },
        };
        let (assigned, assignments) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            store,
            active,
            assigned,
            line: Mutex::new(Line::new(
                config.scheduling.max_concurrent,
                config.scheduling.lanes.clone(),
            )),
            recovery,
            about: WorkerAbout {
                slots: config.scheduling.max_concurrent as u64,
                tools: config.tools_of_host(),
                ..config.scheduling.worker.clone()
            },
            ends_others: AtomicBool::new(false),
            repositories,
            adopted: Mutex::default(),
            unexplored: Mutex::default(),
            trees: Mutex::default(),
            nudge: Notify::new(),
            stop: CancellationToken::new(),
            drained: CancellationToken::new(),
            cut: CancellationToken::new(),
            running: Mutex::default(),
        });
        shared.introduce();
        (Supervisor { shared, tasks: TaskTracker::new() }, assignments)
    }

    /// Begins to claim runs, which `executor` executes. The supervisor drops the executor at the
    /// end of its shutdown, because the executor may hold a reference to the supervisor.
    pub(crate) fn start(
        &self,
        assignments: UnboundedReceiver<Job>,
        executor: impl Execute,
        quiet: Duration,
    ) {
        let shared = &self.shared;
        let work = shared.clone().execute_assignments(Arc::new(executor), assignments);
        spawn(&self.tasks, work);
        spawn(&self.tasks, shared.clone().claim_runs());
        spawn(&self.tasks, shared.clone().keep_lease(shared.store.lease_length() / 3));
        spawn(&self.tasks, quiet::watch(shared.store.clone(), quiet, shared.stop.clone()));
        self.tasks.close();
    }

    /// Returns what this process says about itself.
    pub(crate) fn about(&self) -> &WorkerAbout {
        &self.shared.about
    }

    /// Runs another task until the supervisor stops.
    pub(crate) fn keep<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        spawn(&self.tasks, task(self.shared.stop.clone()));
    }

    /// Stores a new run and executes it: at once if a slot is free and no queued run comes first.
    /// One commit stores the run and the events of `beside`, or nothing.
    pub(crate) async fn launch(
        &self,
        run: RunId,
        events: Vec<Event>,
        beside: Vec<Append>,
        bundle: Option<Arc<Bundle>>,
    ) -> Result<(), StoreError> {
        let shared = &self.shared;
        if shared.stop.is_cancelled() {
            return Err(StoreError::Closed);
        }
        // Without a message there is nothing to do yet.
        let entrant = entrant(run, &events).filter(|_| events.len() > 1);
        let takes = shared.takes(&events);
        let slot = entrant.as_ref().filter(|_| takes).and_then(|it| shared.slot_at_once(it));
        shared.remember(run);
        if let Some(slot) = slot {
            let (told, born) = oneshot::channel();
            let birth = Some(FirstEvents { events, beside, bundle, told });
            shared.execute(Assignment { run, epoch: FIRST_EPOCH, deaths: 0, birth }, slot);
            return born.await.map_err(|_| StoreError::Closed)?;
        }
        let then = if entrant.is_some() { Ownership::Queued } else { Ownership::Waiting };
        let ready_at = create(&*shared.store, run, events, beside, bundle, then).await?;
        if let Some(entrant) = entrant.filter(|_| takes) {
            shared.line().offer(Queued { ready_at, ..entrant });
            shared.nudge.notify_one();
        }
        Ok(())
    }

    /// Lends the slot of `row` to other runs, until the caller drops the returned value. This
    /// process executes `row`, which waits for those runs.
    pub(crate) fn lend_slot(&self, row: &RunRow) -> Lent {
        let run = Queued::from(row);
        Lent::new(run, self.shared.clone())
    }

    /// Makes this process execute `run`, and the subagents it waits for, whenever they have work.
    pub(crate) fn adopt(&self, run: RunId) {
        if !matches!(self.shared.recovery, Scope::All) {
            *self.shared.adopted().entry(run).or_default() += 1;
            self.shared.explore([run]);
        }
        self.shared.line().look_at_all();
        self.shared.nudge.notify_one();
    }

    /// Adopts a run that was asked to stop and that no worker takes. This process ends it, on whatever machine it
    /// worked.
    pub(crate) fn adopt_to_end(&self, run: RunId) {
        self.shared.ends_others.store(true, Ordering::Relaxed);
        self.shared.introduce();
        self.adopt(run);
    }

    /// Returns the runs that this process executes, or will execute when there is something to do.
    pub(crate) fn own(&self) -> BTreeSet<RunId> {
        let mut own: BTreeSet<RunId> = self.shared.adopted().keys().copied().collect();
        own.extend(self.shared.active.runs());
        own
    }

    /// Looks for work at once.
    pub(crate) fn look_again(&self) {
        self.shared.line().look_at_all();
        self.shared.nudge.notify_one();
    }

    /// Cuts all model calls short when it fires.
    pub(crate) fn cut(&self) -> CancellationToken {
        self.shared.cut.clone()
    }

    /// Stops the supervisor: it claims no more runs, and each run stops after its step. When the
    /// time is up, the supervisor cuts model calls short, so that runs record what has arrived. Then it aborts
    /// the runs that are left.
    pub(crate) async fn shutdown(&self, within: Duration) {
        fail::fail_point!("shutdown.begun");
        self.shared.stop.cancel();
        let mut running = std::mem::take(&mut *self.shared.running.lock());
        let ends = [(within, false), (RECORDING, true)];
        for (within, is_last) in ends {
            let all = async { while running.join_next().await.is_some() {} };
            if tokio::time::timeout(within, all).await.is_ok() {
                break;
            }
            self.shared.cut.cancel();
            if is_last {
                running.shutdown().await;
            }
        }
        self.shared.drained.cancel();
        self.tasks.wait().await;
        // Runs claimed during the wait stop at their first step.
        let mut late = std::mem::take(&mut *self.shared.running.lock());
        while late.join_next().await.is_some() {}
        fail::fail_point!("shutdown.drained");
    }
}

#[expect(clippy::disallowed_methods, reason = "the supervisor's own tasks, awaited at shutdown")]
fn spawn(tasks: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(tasks.track_future(task));
}

impl Shared {
    /// Makes `run` a run for this process to execute, until it ends.
    fn remember(&self, run: RunId) {
        if !matches!(self.recovery, Scope::All) {
            self.adopted().entry(run).or_default();
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock()
    }

    fn adopted(&self) -> MutexGuard<'_, BTreeMap<RunId, u64>> {
        self.adopted.lock()
    }

    /// Forgets `run`, which has ended. `asked` is the number of requests when its execution began.
    /// If there were more since, a message may have reopened the run, and this process keeps it.
    async fn forget(&self, run: RunId, mut asked: u64) {
        loop {
            match self.adopted().entry(run) {
                Entry::Occupied(entry) if *entry.get() != asked => asked = *entry.get(),
                Entry::Occupied(entry) => {
                    entry.remove();
                    return;
                }
                Entry::Vacant(_) => return,
            }
            let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
            let is_over = |rows: Vec<RunRow>| rows.iter().all(|row| row.state.outcome.is_some());
            if !self.store.list(&own).await.is_ok_and(is_over) {
                return;
            }
        }
    }

    /// Claims runs while slots are free.
    async fn claim_runs(self: Arc<Self>) {
        let mut ready = self.store.ready();
        // A caller that opens a runtime in order to start a run comes first.
        tokio::select! {
            () = self.stop.cancelled() => return,
            () = self.nudge.notified() => {}
            () = tokio::time::sleep(FIRST_LOOK) => {}
        }
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unclear = BTreeMap::new();
        loop {
            self.fill_slots(&mut unclear).await;
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = ready.changed() => match changed {
                    Ok(()) => self.line().hear_of_news(),
                    Err(_) => return,
                },
                () = self.nudge.notified() => {}
                // A worker of another process may have died. Nothing else would report that.
                _ = looks.tick() => {
                    let trees = self.trees.lock().clone();
                    self.explore(trees);
                    self.line().look_at_all();
                }
            }
        }
    }

    /// Notes that the subagents of `runs` must be found.
    fn explore(&self, runs: impl IntoIterator<Item = RunId>) {
        self.unexplored.lock().extend(runs);
    }

    /// Adopts the subagents of adopted runs.
    async fn adopt_below(&self) {
        let unexplored = || std::mem::take(&mut *self.unexplored.lock());
        let mut above = unexplored();
        while let Some(run) = above.pop() {
            let below = self.open_below(run).await;
            let mut trees = self.trees.lock();
            match below {
                Ok(Below::Tree(runs)) => {
                    trees.insert(run);
                    runs.into_iter().for_each(|run| self.remember(run));
                }
                Ok(Below::Children(runs)) => {
                    trees.remove(&run);
                    runs.iter().for_each(|run| self.remember(*run));
                    above.extend(runs);
                }
                Err(_) => {
                    // The store failed. The next round tries again.
                    above.push(run);
                    return self.explore(above);
                }
            }
        }
    }

    /// Returns the unfinished subagents of `run`.
    async fn open_below(&self, run: RunId) -> Result<Below, StoreError> {
        let open =
            |kin| Filter { kin, unfinished: Unfinished::Only, limit: MOST, ..Filter::default() };
        let ids = |rows: Vec<RunRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
        // Only a root has a tree of its own.
        let tree = ids(self.store.list(&open(Kin::TreeOf(run))).await?);
        if !tree.is_empty() {
            return Ok(Below::Tree(tree));
        }
        Ok(Below::Children(ids(self.store.list(&open(Kin::ChildrenOf(run))).await?)))
    }

    /// Claims runs until no slot is free or no run waits. `unclear` are runs of a claim that failed:
    /// this process may own them, because the answer of the store was lost.
    async fn fill_slots(self: &Arc<Self>, unclear: &mut BTreeMap<RunId, Slot>) {
        self.adopt_below().await;
        while !self.stop.is_cancelled() && (!unclear.is_empty() || self.line().has_slot()) {
            let again = !unclear.is_empty();
            let mut taken = std::mem::take(unclear);
            if !again {
                self.look().await;
                taken = self.take();
            }
            if taken.is_empty() {
                return;
            }
            let runs: Vec<RunId> = taken.keys().copied().collect();
            let wanted = Wanted { limit: runs.len(), runs, again, ..Wanted::default() };
            let claimed = self.store.claim(&wanted).await;
            fail::fail_point!("run.claimed");
            let Ok(claimed) = claimed else {
                // The store failed. The next round tries again; the next append reports the reason.
                self.line().rest();
                *unclear = taken;
                return;
            };
            for claim in claimed {
                let run = claim.row.id;
                if let Some(slot) = taken.remove(&run) {
                    let (epoch, deaths) = (claim.epoch, claim.row.deaths_in_a_row());
                    self.execute(Assignment { run, epoch, deaths, birth: None }, slot);
                }
            }
            // Other workers claimed the rest first. Dropping `taken` frees the slots.
        }
    }

    /// Hands a run to `execute_assignments`. From now on it counts as executed here.
    fn execute(&self, assignment: Assignment, slot: Slot) {
        let (run, epoch) = (assignment.run, assignment.epoch);
        let stopping = self.active.enter(run, epoch);
        let executed = Executed { active: self.active.clone(), run, epoch };
        // After a shutdown the channel is closed. The store releases the run when it closes.
        let _ = self.assigned.send(Job { assignment, stopping, executed, slot });
    }

    /// Executes assigned runs until the supervisor stops.
    async fn execute_assignments(
        self: Arc<Self>,
        executor: Arc<dyn Execute>,
        mut assignments: UnboundedReceiver<Job>,
    ) {
        loop {
            tokio::select! {
                biased;
                job = assignments.recv() => match job {
                    Some(job) => self.begin(&executor, job),
                    None => return,
                },
                () = self.stop.cancelled() => break,
            }
        }
        // Runs claimed before the stop end at their first step.
        assignments.close();
        while let Ok(job) = assignments.try_recv() {
            self.begin(&executor, job);
        }
    }

    fn begin(self: &Arc<Self>, executor: &Arc<dyn Execute>, job: Job) {
        let (shared, executor) = (self.clone(), executor.clone());
        let Job { assignment, stopping, executed, slot } = job;
        let run = assignment.run;
        let is_suspect = lanes::is_suspect(assignment.deaths);
        let asked = self.adopted().get(&run).copied().unwrap_or_default();
        let task = async move {
            let work = executor.execute(assignment, stopping, &shared.stop);
            let left = match is_suspect {
                true => Box::pin(shared.watch_suspect(run, work)).await,
                false => work.await,
            };
            match left {
                Left::Ended => {
                    shared.line().executed(run);
                    shared.forget(run, asked).await;
                }
                Left::AtRest => shared.line().executed(run),
                Left::ToOthers(again) => shared.leave_to_others(run, again).await,
            }
            drop(executor);
            drop(executed);
            fail::fail_point!("run.left");
            drop(slot);
        };
        let mut running = self.running.lock();
        while running.try_join_next().is_some() {}
        running.spawn(task);
    }

    /// Executes a run that may have killed other processes. More runs of that kind wait until this
    /// one makes progress, or until this process has survived it for a while.
    async fn watch_suspect(&self, run: RunId, work: impl Future<Output = Left>) -> Left {
        let mut work = pin!(work);
        let cleared = async {
            let mut tail = self.store.watch(run);
            loop {
                let own = Filter { id: Some(run), limit: 1, ..Filter::default() };
                let rows = self.store.list(&own).await.unwrap_or_default();
                if rows.iter().any(|row| !lanes::is_suspect(row.deaths_in_a_row())) {
                    return;
                }
                if tail.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::select! {
            biased;
            left = &mut work => return left,
            () = cleared => {}
            () = tokio::time::sleep(SUSPICION) => {}
        }
        self.line().clear(run);
        self.nudge.notify_one();
        work.await
    }

    /// Tells other processes about this one.
    fn introduce(&self) {
        let busy = self.active.count() as u64;
        let unreachable = self.repositories.unreachable();
        let mut about = WorkerAbout { busy, unreachable, ..self.about.clone() };
        if self.ends_others.load(Ordering::Relaxed) {
            (about.host, about.agents) = Default::default();
        }
        self.store.introduce(about);
    }

    /// Leaves a run to others, and tells them at once if this process lacks its repository.
    async fn leave_to_others(&self, run: RunId, again: Again) {
        self.line().leave_to_others(run, again);
        if again == Again::Later {
            self.introduce();
            let _ = self.store.renew().await;
        }
    }

    /// Returns true if this process takes the new run that begins with `events`.
    fn takes(&self, events: &[Event]) -> bool {
        let Some(Event::RunStarted(started)) = events.first() else { return true };
        let grant = &started.grant;
        self.about.takes_from(grant.site.host(), &grant.needs, started.agent.name.as_str())
    }

    async fn keep_lease(self: Arc<Self>, every: Duration) {
        // Others should know at once about a worker that stays.
        let mut wait = if self.about.stays { Duration::ZERO } else { every };
        loop {
            tokio::select! {
                () = self.drained.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            self.introduce();
            // A worker that cannot renew its lease loses it. Then the store refuses every append.
            let _ = self.store.renew().await;
            wait = every;
        }
    }
}

/// Marks a run as executed here until it is dropped. If a shutdown aborts the task of the run, the
/// drop still releases the run.
struct Executed {
    active: Arc<Active>,
    run: RunId,
    epoch: u64,
}

impl Drop for Executed {
    fn drop(&mut self) {
        self.active.leave(self.run, self.epoch);
    }
}

/// Returns a new run as a candidate for a slot.
fn entrant(id: RunId, events: &[Event]) -> Option<Queued> {
    let Some(Event::RunStarted(started)) = events.first() else { return None };
    let parent = started.parent.as_ref();
    Some(Queued {
        id,
        root: parent.map_or(id, |parent| parent.root()),
        parent: parent.map(|parent| parent.run),
        abreast: parent.and_then(|parent| parent.abreast),
        agent: started.agent.name.to_string(),
        model: started.model.clone(),
        workspace: RunRow::folder_of(&started.grant).to_owned(),
        priority: started.priority,
        ready_at: u64::MAX,
        deaths: 0,
        stopping: false,
    })
}
