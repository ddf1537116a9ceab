//! The known waiting runs, in order: priority, then tree by tree, then waiting time.

use super::caps::Kind;
use posse_protocol::RunId;
use posse_store::Queued;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Default)]
pub(super) struct Waiting {
    runs: HashMap<RunId, Queued>,
    classes: BTreeMap<Reverse<i32>, Class>,
}

/// The waiting runs of one priority.
#[derive(Default)]
struct Class {
    lines: HashMap<RunId, Line>,
    order: BTreeSet<Turn>,
}

/// The waiting runs of one root.
struct Line {
    turn: Turn,
    by_time: BTreeSet<(u64, RunId)>,
    /// By kind, because a cap holds back all runs of a kind.
    by_kind: HashMap<Kind, BTreeSet<(u64, RunId)>>,
}

/// The order of roots: the one with the fewest running runs first, then the one that was served
/// longest ago, then the one whose first run waits longest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    standing: RootShare,
    first: (u64, RunId),
    root: RunId,
}

/// What a root has received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RootShare {
    /// The number of its running runs.
    pub(super) running: usize,
    /// When it was last served, counted in started runs; 0 if never.
    pub(super) served: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// True when no run of `root` is known to wait.
    pub(super) fn has_none_of(&self, root: RunId) -> bool {
        !self.classes.values().any(|class| class.lines.contains_key(&root))
    }

    /// Adds a run, or moves it to its new place.
    pub(super) fn insert(&mut self, run: Queued, standing: RootShare) {
        if self.runs.get(&run.id) == Some(&run) {
            return;
        }
        self.remove(run.id);
        let class = self.classes.entry(Reverse(run.priority)).or_default();
        let place = (run.ready_at, run.id);
        let line = class.lines.entry(run.root).or_insert_with(|| Line {
            turn: Turn { standing, first: place, root: run.root },
            by_time: BTreeSet::new(),
            by_kind: HashMap::new(),
        });
        line.by_time.insert(place);
        line.by_kind.entry(Kind::of(&run)).or_default().insert(place);
        class.settle(run.root, Some(standing));
        self.runs.insert(run.id, run);
    }

    pub(super) fn remove(&mut self, run: RunId) -> Option<Queued> {
        let run = self.runs.remove(&run)?;
        let key = Reverse(run.priority);
        let class = self.classes.get_mut(&key)?;
        let line = class.lines.get_mut(&run.root)?;
        let (place, kind) = ((run.ready_at, run.id), Kind::of(&run));
        line.by_time.remove(&place);
        if let Some(alike) = line.by_kind.get_mut(&kind) {
            alike.remove(&place);
            if alike.is_empty() {
                line.by_kind.remove(&kind);
            }
        }
        class.settle(run.root, None);
        if class.lines.is_empty() {
            self.classes.remove(&key);
        }
        Some(run)
    }

    /// Updates the standing of `root`.
    pub(super) fn restand(&mut self, root: RunId, standing: RootShare) {
        for class in self.classes.values_mut() {
            class.settle(root, Some(standing));
        }
    }

    /// The next run among the kinds that have room.
    pub(super) fn next(&self, has_room: impl Fn(&Kind) -> bool) -> Option<RunId> {
        let mut lines = self.classes.values().flat_map(Class::in_turn);
        lines.find_map(|line| line.next(&self.runs, &has_room))
    }
}

impl Class {
    /// The lines, in the order of their turns.
    fn in_turn(&self) -> impl Iterator<Item = &Line> {
        self.order.iter().filter_map(|turn| self.lines.get(&turn.root))
    }

    /// Moves the line of `root` to its place, or removes the line if it is empty.
    fn settle(&mut self, root: RunId, standing: Option<RootShare>) {
        let Some(line) = self.lines.get_mut(&root) else { return };
        self.order.remove(&line.turn);
        match line.by_time.first() {
            Some(first) => {
                let standing = standing.unwrap_or(line.turn.standing);
                line.turn = Turn { standing, first: *first, root };
                self.order.insert(line.turn);
            }
            None => {
                self.lines.remove(&root);
            }
        }
    }
}

impl Line {
    fn next(
        &self,
        runs: &HashMap<RunId, Queued>,
        has_room: &impl Fn(&Kind) -> bool,
    ) -> Option<RunId> {
        let (_, first) = self.by_time.first()?;
        // In most cases no cap holds a run back.
        if runs.get(first).is_some_and(|run| has_room(&Kind::of(run))) {
            return Some(*first);
        }
        let open = self.by_kind.iter().filter(|(kind, _)| has_room(kind));
        open.filter_map(|(_, alike)| alike.first()).min().map(|(_, run)| *run)
    }
}
