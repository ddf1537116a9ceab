//! Which runs this process executes: slots, claims, recovery, the lease, the end.
//!
//! The only place of this crate that starts tasks. Each is tracked, and awaited at shutdown.

use crate::archive::Sweeper;
use crate::execute::{Assignment, Left, Workbench};
use crate::journal::{Birth, FIRST_EPOCH, create};
use crate::quiet;
use crate::runtime::{Recovery, RuntimeConfig};
use posse_protocol::{Event, RunId};
use posse_store::{Append, Filter, Kin, Ownership, RunRow, Store, StoreError, Unfinished, Wanted};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
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

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    store: Arc<dyn Store>,
    workbench: Arc<Workbench>,
    /// The runtime's one lane: who finds no slot waits in the store, in order.
    slots: Arc<Semaphore>,
    recovery: Scope,
    /// Runs that this process is to execute, whatever the scope, and how often it was asked to.
    adopted: Mutex<BTreeMap<RunId, u64>>,
    /// Those whose children are to be looked for: what waits for them waits in vain otherwise.
    unexplored: Mutex<Vec<RunId>>,
    /// Those of them whose trees are looked at again and again: others may work there, and die.
    trees: Mutex<BTreeSet<RunId>>,
    /// Runs wait in the store: a new one must not overtake them.
    backlog: AtomicBool,
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
    pub(crate) fn start(
        store: Arc<dyn Store>,
        workbench: Arc<Workbench>,
        config: &RuntimeConfig,
        lease: Duration,
    ) -> Self {
        let recovery = match &config.recovery {
            Recovery::Continue => Scope::All,
            Recovery::Wait => Scope::None,
            Recovery::ContinueIn(folder) => match folder.canonicalize() {
                Ok(folder) => Scope::Folder(folder.display().to_string()),
                Err(_) => Scope::None,
            },
        };
        let shared = Arc::new(Shared {
            store,
            workbench,
            slots: Arc::new(Semaphore::new(config.max_concurrent.max(1))),
            recovery,
            adopted: Mutex::default(),
            unexplored: Mutex::default(),
            trees: Mutex::default(),
            backlog: AtomicBool::new(false),
            nudge: Notify::new(),
            stop: CancellationToken::new(),
            drained: CancellationToken::new(),
            running: Mutex::default(),
        });
        let tasks = TaskTracker::new();
        spawn(&tasks, shared.clone().claim_runs());
        spawn(&tasks, shared.clone().keep_lease(lease / 3));
        spawn(&tasks, Sweeper::new(shared.store.clone(), config).run(shared.stop.clone()));
        spawn(&tasks, quiet::watch(shared.store.clone(), config.quiet, shared.stop.clone()));
        tasks.close();
        Supervisor { shared, tasks }
    }

    /// Stores a new run and executes it: at once if there is a slot and nothing waits before it.
    /// What stands `beside` it is stored in the same commit, or nothing is.
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
        let free = !shared.backlog.load(Ordering::Acquire);
        let has_work = events.len() > 1;
        let permit = match free && has_work {
            true => shared.slots.clone().try_acquire_owned().ok(),
            false => None,
        };
        shared.remember(run);
        if let Some(permit) = permit {
            let (told, born) = oneshot::channel();
            let birth = Some(Birth { events, beside, told });
            shared.execute(Assignment { run, epoch: FIRST_EPOCH, birth }, permit);
            return born.await.map_err(|_| StoreError::Closed)?;
        }
        let then = if has_work { Ownership::Queued } else { Ownership::Waiting };
        create(&*shared.store, run, events, beside, then).await?;
        if has_work {
            shared.backlog.store(true, Ordering::Release);
            shared.nudge.notify_one();
        }
        Ok(())
    }

    /// Makes this process execute `run`, and what it waits for, whenever there is something to do.
    pub(crate) fn adopt(&self, run: RunId) {
        if !matches!(self.shared.recovery, Scope::All) {
            *self.shared.adopted().entry(run).or_default() += 1;
            self.shared.explore([run]);
        }
        self.shared.nudge.notify_one();
    }

    /// Looks at once for what there is to do.
    pub(crate) fn look_again(&self) {
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
            let is_over = |rows: Vec<RunRow>| rows.iter().all(|row| row.outcome.is_some());
            if !self.store.list(&own).await.is_ok_and(is_over) {
                return;
            }
        }
    }

    /// Claims what is to be done while there are slots.
    async fn claim_runs(self: Arc<Self>) {
        let mut ready = self.store.ready();
        // Whoever opens a runtime to start a run is served first, in the same commit in which this
        // worker makes itself known.
        tokio::select! {
            () = self.stop.cancelled() => return,
            () = self.nudge.notified() => {}
            () = tokio::time::sleep(FIRST_LOOK) => {}
        }
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ready.mark_unchanged();
            self.fill_slots().await;
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = ready.changed() => if changed.is_err() { return },
                () = self.nudge.notified() => {}
                // A worker elsewhere may have died: nothing else tells.
                _ = looks.tick() => {
                    let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    self.explore(trees);
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
        while !self.stop.is_cancelled() {
            let free = self.slots.available_permits().min(256);
            if free == 0 {
                return;
            }
            let mut claimed = Vec::new();
            for wanted in self.wanted(free) {
                // A store that fails now is asked again soon; whoever appends learns why.
                claimed.extend(self.store.claim(&wanted).await.unwrap_or_default());
                if claimed.len() >= free {
                    break;
                }
            }
            fail::fail_point!("run.claimed");
            self.backlog.store(claimed.len() >= free, Ordering::Release);
            let last = claimed.len() < free;
            for claim in claimed {
                let Ok(permit) = self.slots.clone().acquire_owned().await else { return };
                let assignment = Assignment { run: claim.row.id, epoch: claim.epoch, birth: None };
                self.execute(assignment, permit);
            }
            if last {
                return;
            }
        }
    }

    /// What to ask the store for.
    fn wanted(&self, limit: usize) -> Vec<Wanted> {
        let all = Wanted { limit, runs: Vec::new(), workspace: None };
        let mut wanted = match &self.recovery {
            Scope::All => return vec![all],
            Scope::Folder(folder) => vec![Wanted { workspace: Some(folder.clone()), ..all }],
            Scope::None => Vec::new(),
        };
        let adopted: Vec<RunId> = self.adopted().keys().copied().collect();
        wanted.extend(adopted.chunks(256).map(|runs| Wanted {
            limit,
            runs: runs.to_vec(),
            workspace: None,
        }));
        wanted
    }

    fn execute(self: &Arc<Self>, assignment: Assignment, permit: OwnedSemaphorePermit) {
        let shared = self.clone();
        let (run, epoch) = (assignment.run, assignment.epoch);
        let stopping = self.workbench.active.enter(run, epoch);
        let asked = self.adopted().get(&run).copied().unwrap_or_default();
        let task = async move {
            let bench = &shared.workbench;
            let left = bench.execute(&shared.store, assignment, stopping, &shared.stop).await;
            if left == Left::Ended {
                shared.forget(run, asked).await;
            }
            shared.workbench.active.leave(run, epoch);
            fail::fail_point!("run.left");
            drop(permit);
            if shared.backlog.load(Ordering::Acquire) {
                shared.nudge.notify_one();
            }
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(task);
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
