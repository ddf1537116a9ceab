//! Which runs this process executes: slots, claims, recovery, the lease, the end.
//!
//! It starts the tasks that execute runs. Each is tracked, and awaited at shutdown.

mod line;

use crate::active::{Active, Stopping};
use crate::journal::{FIRST_EPOCH, FirstEvents, create};
use crate::lanes;
use crate::quiet;
use crate::runtime_config::{Recovery, RuntimeConfig};
use async_trait::async_trait;
use line::{Lent, Line, Slot};
use posse_protocol::{Event, RunId};
use posse_store::{
    Append, Filter, Kin, Ownership, Queued, RunRow, Store, StoreError, Unfinished, Wanted,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Children that are looked for at once.
const MOST: usize = 1_000_000;

/// How long a new runtime waits before it looks for unfinished runs.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// How often a runtime looks whether others have left something to do.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How long a process must live on with a run that may take it along until the next such run is
/// executed beside it.
const SUSPICION: Duration = Duration::from_secs(60);

/// A run that this process owns.
pub(crate) struct Assignment {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    /// How many processes in a row died that executed it.
    pub(crate) deaths: u32,
    /// What the run is made of, if it is not stored yet.
    pub(crate) birth: Option<FirstEvents>,
}

/// How a run was left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has ended.
    Ended,
    /// It has not ended, and is not executed here now.
    AtRest,
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
    /// To whoever executes them.
    assigned: UnboundedSender<Job>,
    /// Slots, and who waits for one as far as is known. All who wait are in the store.
    line: Mutex<Line>,
    recovery: Scope,
    /// Runs that this process is to execute, whatever the scope, and how often it was asked to.
    adopted: Mutex<BTreeMap<RunId, u64>>,
    /// Those whose children are to be looked for: what waits for them waits in vain otherwise.
    unexplored: Mutex<Vec<RunId>>,
    /// Those of them whose trees are looked at again and again: others may work there, and die.
    trees: Mutex<BTreeSet<RunId>>,
    nudge: Notify,
    stop: CancellationToken,
    /// No run is executed here any more.
    drained: CancellationToken,
    running: Mutex<JoinSet<()>>,
}

/// What stands below a run and has not ended.
enum Below {
    /// All of it.
    Tree(Vec<RunId>),
    /// Those right below it.
    Children(Vec<RunId>),
}

/// Which runs are claimed besides adopted ones.
enum Scope {
    All,
    Folder(String),
    None,
}

impl Supervisor {
    /// A supervisor, and the runs it assigns once it is started.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        active: Arc<Active>,
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
            adopted: Mutex::default(),
            unexplored: Mutex::default(),
            trees: Mutex::default(),
            nudge: Notify::new(),
            stop: CancellationToken::new(),
            drained: CancellationToken::new(),
            running: Mutex::default(),
        });
        (Supervisor { shared, tasks: TaskTracker::new() }, assignments)
    }

    /// Begins to claim runs, and has `executor` execute them. It is dropped when the supervisor has
    /// shut down: it may hold what holds the supervisor.
    pub(crate) fn start(
        &self,
        assignments: UnboundedReceiver<Job>,
        executor: impl Execute,
        lease: Duration,
        quiet: Duration,
    ) {
        let shared = &self.shared;
        let work = shared.clone().execute_assignments(Arc::new(executor), assignments);
        spawn(&self.tasks, work);
        spawn(&self.tasks, shared.clone().claim_runs());
        spawn(&self.tasks, shared.clone().keep_lease(lease / 3));
        spawn(&self.tasks, quiet::watch(shared.store.clone(), quiet, shared.stop.clone()));
        self.tasks.close();
    }

    /// Does something besides, until the supervisor stops.
    pub(crate) fn keep<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        spawn(&self.tasks, task(self.shared.stop.clone()));
    }

    /// Stores a new run and executes it: at once if there is a slot for it and nobody waits whose
    /// turn comes before. What stands `beside` it is stored in the same commit, or nothing is.
    pub(crate) async fn launch(
        &self,
        run: RunId,
        events: Vec<Event>,
        beside: Vec<Append>,
    ) -> Result<(), StoreError> {
        let shared = &self.shared;
        if shared.stop.is_cancelled() {
            return Err(StoreError::Closed);
        }
        // Without a message there is nothing to do yet.
        let entrant = entrant(run, &events).filter(|_| events.len() > 1);
        let slot = entrant.as_ref().and_then(|entrant| shared.slot_at_once(entrant));
        shared.remember(run);
        if let Some(slot) = slot {
            let (told, born) = oneshot::channel();
            let birth = Some(FirstEvents { events, beside, told });
            shared.execute(Assignment { run, epoch: FIRST_EPOCH, deaths: 0, birth }, slot);
            return born.await.map_err(|_| StoreError::Closed)?;
        }
        let then = if entrant.is_some() { Ownership::Queued } else { Ownership::Waiting };
        let ready_at = create(&*shared.store, run, events, beside, then).await?;
        if let Some(entrant) = entrant {
            shared.line().offer(Queued { ready_at, ..entrant });
            shared.nudge.notify_one();
        }
        Ok(())
    }

    /// Lets others have the slot of `row`, which is executed here and waits for them, until what is
    /// returned is dropped.
    pub(crate) fn lend_slot(&self, row: &RunRow) -> Lent {
        let run = Queued {
            id: row.id,
            root: row.family.root,
            parent: row.family.parent,
            abreast: row.work.abreast,
            agent: row.about.agent.clone(),
            model: row.about.model.clone(),
            workspace: row.about.workspace.clone(),
            priority: row.work.priority,
            ready_at: row.work.ready_at,
            deaths: row.deaths_in_a_row(),
        };
        Lent::new(run, self.shared.clone())
    }

    /// Makes this process execute `run`, and what it waits for, whenever there is something to do.
    pub(crate) fn adopt(&self, run: RunId) {
        if !matches!(self.shared.recovery, Scope::All) {
            *self.shared.adopted().entry(run).or_default() += 1;
            self.shared.explore([run]);
        }
        self.shared.line().look_at_all();
        self.shared.nudge.notify_one();
    }

    /// The runs that this process executes, or is to execute when there is something to do.
    pub(crate) fn own(&self) -> BTreeSet<RunId> {
        let mut own: BTreeSet<RunId> = self.shared.adopted().keys().copied().collect();
        own.extend(self.shared.active.runs());
        own
    }

    /// Looks at once for what there is to do.
    pub(crate) fn look_again(&self) {
        self.shared.line().look_at_all();
        self.shared.nudge.notify_one();
    }

    /// Stops: no new claims, each run after its step, all of them when the time is up.
    pub(crate) async fn shutdown(&self, within: Duration) {
        fail::fail_point!("shutdown.begun");
        self.shared.stop.cancel();
        let mut running = std::mem::take(
            &mut *self.shared.running.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let all = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(within, all).await.is_err() {
            running.shutdown().await;
        }
        self.shared.drained.cancel();
        self.tasks.wait().await;
        // What was claimed while the others were awaited stops at its first step.
        let mut late = std::mem::take(
            &mut *self.shared.running.lock().unwrap_or_else(PoisonError::into_inner),
        );
        while late.join_next().await.is_some() {}
        fail::fail_point!("shutdown.drained");
    }
}

#[expect(clippy::disallowed_methods, reason = "the supervisor's own tasks, awaited at shutdown")]
fn spawn(tasks: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(tasks.track_future(task));
}

impl Shared {
    /// From now on `run` is this process's to execute, until it ends.
    fn remember(&self, run: RunId) {
        if !matches!(self.recovery, Scope::All) {
            self.adopted().entry(run).or_default();
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn adopted(&self) -> MutexGuard<'_, BTreeMap<RunId, u64>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `run`, which was asked for so often when its execution began, has ended. It is nobody's any
    /// more, unless something was said to it since, which reopens it.
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

    /// Claims what is to be done while there are slots for it.
    async fn claim_runs(self: Arc<Self>) {
        let mut ready = self.store.ready();
        // Whoever opens a runtime to start a run is served first.
        tokio::select! {
            () = self.stop.cancelled() => return,
            () = self.nudge.notified() => {}
            () = tokio::time::sleep(FIRST_LOOK) => {}
        }
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.fill_slots().await;
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = ready.changed() => match changed {
                    Ok(()) => self.line().hear_of_news(),
                    Err(_) => return,
                },
                () = self.nudge.notified() => {}
                // A worker elsewhere may have died: nothing else tells.
                _ = looks.tick() => {
                    let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    self.explore(trees);
                    self.line().look_at_all();
                }
            }
        }
    }

    /// What stands below `runs` is to be looked for.
    fn explore(&self, runs: impl IntoIterator<Item = RunId>) {
        self.unexplored.lock().unwrap_or_else(PoisonError::into_inner).extend(runs);
    }

    /// Takes along what stands below adopted runs.
    async fn adopt_below(&self) {
        let unexplored =
            || std::mem::take(&mut *self.unexplored.lock().unwrap_or_else(PoisonError::into_inner));
        let mut above = unexplored();
        while let Some(run) = above.pop() {
            let below = self.open_below(run).await;
            let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
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
                    // A store that fails now is asked again soon.
                    above.push(run);
                    return self.explore(above);
                }
            }
        }
    }

    /// What stands below `run` and has not ended.
    async fn open_below(&self, run: RunId) -> Result<Below, StoreError> {
        let open =
            |kin| Filter { kin, unfinished: Unfinished::Only, limit: MOST, ..Filter::default() };
        let ids = |rows: Vec<RunRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
        // None but a root has a tree of its own.
        let tree = ids(self.store.list(&open(Kin::TreeOf(run))).await?);
        if !tree.is_empty() {
            return Ok(Below::Tree(tree));
        }
        Ok(Below::Children(ids(self.store.list(&open(Kin::ChildrenOf(run))).await?)))
    }

    async fn fill_slots(self: &Arc<Self>) {
        self.adopt_below().await;
        while !self.stop.is_cancelled() && self.line().has_slot() {
            self.look().await;
            let mut taken = self.take();
            if taken.is_empty() {
                return;
            }
            let runs: Vec<RunId> = taken.keys().copied().collect();
            let wanted = Wanted { limit: runs.len(), runs, workspace: None };
            let claimed = self.store.claim(&wanted).await;
            fail::fail_point!("run.claimed");
            if claimed.is_err() {
                // A store that fails now is asked again soon; whoever appends learns why.
                self.line().rest();
                return;
            }
            for claim in claimed.unwrap_or_default() {
                let run = claim.row.id;
                if let Some(slot) = taken.remove(&run) {
                    let (epoch, deaths) = (claim.epoch, claim.row.deaths_in_a_row());
                    self.execute(Assignment { run, epoch, deaths, birth: None }, slot);
                }
            }
            // Others were faster with the rest: their slots are free again.
        }
    }

    /// Hands a run to whoever executes it. From now on it counts as executed here.
    fn execute(&self, assignment: Assignment, slot: Slot) {
        let (run, epoch) = (assignment.run, assignment.epoch);
        let stopping = self.active.enter(run, epoch);
        let executed = Executed { active: self.active.clone(), run, epoch };
        // After a shutdown nobody takes it: the store lets go of it when it is closed.
        let _ = self.assigned.send(Job { assignment, stopping, executed, slot });
    }

    /// Executes what is assigned, until the supervisor stops.
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
        // What was claimed before that stops at its first step.
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
            if left == Left::Ended {
                shared.forget(run, asked).await;
            }
            drop(executor);
            drop(executed);
            fail::fail_point!("run.left");
            drop(slot);
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(task);
    }

    /// Executes a run that may take its process along. Others of whom that is thought wait until it
    /// has made progress, or this process has lived on with it for a while.
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

    async fn keep_lease(self: Arc<Self>, every: Duration) {
        loop {
            tokio::select! {
                () = self.drained.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            // A lease that cannot be renewed is lost in time: then every append is refused.
            let _ = self.store.renew().await;
        }
    }
}

/// A run that is executed here until this is dropped: a task that is broken off at the end of a
/// shutdown does nothing any more, and lets go of its run all the same.
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

/// A new run as one that asks for a slot.
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
    })
}
