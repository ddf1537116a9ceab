//! The runs that this process executes, counted for the caps.

use super::caps::{Kind, LaneCaps};
use posse_protocol::RunId;
use posse_store::{Passed, Queued};
use std::collections::HashMap;
use std::hash::Hash;

pub(super) struct Running {
    slots: usize,
    caps: LaneCaps,
    runs: HashMap<RunId, Execution>,
    roots: HashMap<RunId, usize>,
    parents: HashMap<RunId, Children>,
    agents: HashMap<String, usize>,
    models: HashMap<String, usize>,
    /// The run that may kill this process.
    suspect: Option<RunId>,
}

/// The executed children of one run.
#[derive(Default)]
struct Children {
    count: usize,
    /// The cap that the agent of their parent sets.
    abreast: Option<u32>,
}

struct Execution {
    root: RunId,
    kind: Kind,
    /// How many executions it has: a new one may start before the last has left. It counts once.
    times: usize,
}

impl Running {
    pub(super) fn new(slots: usize, caps: LaneCaps) -> Self {
        Running {
            slots: slots.max(1),
            caps,
            runs: HashMap::new(),
            roots: HashMap::new(),
            parents: HashMap::new(),
            agents: HashMap::new(),
            models: HashMap::new(),
            suspect: None,
        }
    }

    pub(super) fn free(&self) -> usize {
        self.slots.saturating_sub(self.runs.len())
    }

    /// How many runs of the tree of `root` are executed.
    pub(super) fn of_root(&self, root: RunId) -> usize {
        self.roots.get(&root).copied().unwrap_or(0)
    }

    /// True when no cap holds back one more run of this kind.
    pub(super) fn has_room_for(&self, kind: &Kind) -> bool {
        let parent = kind.parent.is_none_or(|parent| {
            let count = self.parents.get(&parent).map(|children| &children.count);
            is_below(self.caps.of_parent(kind.abreast), count)
        });
        parent
            && !(kind.suspect && self.suspect.is_some())
            && is_below(self.caps.per_agent.of(&kind.agent), self.agents.get(&kind.agent))
            && is_below(self.caps.per_model.of(&kind.model), self.models.get(&kind.model))
    }

    /// The parents, agents and models whose caps are reached.
    pub(super) fn full(&self) -> Passed {
        let caps = &self.caps;
        let full = |cap: Option<usize>, count: &usize| !is_below(cap, Some(count));
        Passed {
            agents: names(&self.agents, |name, count| full(caps.per_agent.of(name), count)),
            models: names(&self.models, |name, count| full(caps.per_model.of(name), count)),
            parents: names(&self.parents, |_, children| {
                full(caps.of_parent(children.abreast), &children.count)
            }),
        }
    }

    pub(super) fn enter(&mut self, run: &Queued) {
        if let Some(known) = self.runs.get_mut(&run.id) {
            known.times += 1;
            return;
        }
        let kind = Kind::of(run);
        if kind.suspect {
            self.suspect.get_or_insert(run.id);
        }
        *self.roots.entry(run.root).or_default() += 1;
        *self.agents.entry(kind.agent.clone()).or_default() += 1;
        *self.models.entry(kind.model.clone()).or_default() += 1;
        if let Some(parent) = kind.parent {
            let children = self.parents.entry(parent).or_default();
            (children.count, children.abreast) = (children.count + 1, kind.abreast);
        }
        self.runs.insert(run.id, Execution { root: run.root, kind, times: 1 });
    }

    /// Marks `run` as no longer suspect.
    pub(super) fn clear(&mut self, run: RunId) {
        self.suspect.take_if(|suspect| *suspect == run);
    }

    /// Removes an execution of `run`. Returns its root if that was the last one.
    pub(super) fn leave(&mut self, run: RunId) -> Option<RunId> {
        let known = self.runs.get_mut(&run)?;
        known.times -= 1;
        if known.times > 0 {
            return None;
        }
        let Execution { root, kind, .. } = self.runs.remove(&run)?;
        self.clear(run);
        take_one(&mut self.roots, &root);
        take_one(&mut self.agents, &kind.agent);
        take_one(&mut self.models, &kind.model);
        if let Some(parent) = kind.parent
            && let Some(children) = self.parents.get_mut(&parent)
        {
            children.count -= 1;
            if children.count == 0 {
                self.parents.remove(&parent);
            }
        }
        Some(root)
    }
}

fn is_below(cap: Option<usize>, count: Option<&usize>) -> bool {
    // With a cap of 0, a run would wait for ever.
    cap.is_none_or(|cap| count.copied().unwrap_or(0) < cap.max(1))
}

fn names<K: Clone, V>(counts: &HashMap<K, V>, is_full: impl Fn(&K, &V) -> bool) -> Vec<K> {
    counts
        .iter()
        .filter(|(name, count)| is_full(name, count))
        .map(|(name, _)| name.clone())
        .collect()
}

fn take_one<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
