//! What each run is to do. The plan is made from the seed before the simulation begins.

use crate::random::Random;
use posse_protocol::Announce;

/// The runs of a world, by number. Parents come before their children.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) runs: Vec<Part>,
}

/// What one run does.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) steps: Vec<Step>,
    /// It ends as failed after its last step, and does not wait for its background children.
    pub(super) fails: bool,
    /// True if a run of the plan starts it. A host starts the others.
    pub(super) is_child: bool,
}

/// A step of a run.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A tool call with an effect outside of the store.
    Effect { repeatable: bool },
    /// Calls that wait for the results of these runs.
    Calls(Vec<usize>),
    /// A background child.
    Spawn(usize, Announce),
}

/// No tree is deeper.
const DEEPEST: u32 = 3;

impl Plan {
    /// Plans `count` runs.
    pub(super) fn of(random: &mut Random, count: usize) -> Self {
        let mut plan = Plan { runs: Vec::with_capacity(count) };
        while plan.runs.len() < count {
            plan.grow(random, count, 0);
        }
        plan
    }

    /// The runs that a host starts.
    pub(super) fn roots(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().enumerate().filter(|(_, part)| !part.is_child).map(|(number, _)| number)
    }

    /// Adds a run and the runs below it, and returns its number.
    fn grow(&mut self, random: &mut Random, count: usize, depth: u32) -> usize {
        let number = self.runs.len();
        self.runs.push(Part { is_child: depth > 0, ..Part::default() });
        let mut steps = Vec::new();
        for _ in 0..=random.below(3) {
            let may_lead = depth < DEEPEST && self.runs.len() < count;
            let step = match random.below(6) {
                0 if may_lead => Step::Calls(self.grow_some(random, count, depth)),
                1 if may_lead => {
                    let announce = Announce::ALL[random.below(4) as usize];
                    Step::Spawn(self.grow(random, count, depth + 1), announce)
                }
                kind => Step::Effect { repeatable: kind == 2 },
            };
            steps.push(step);
        }
        let part = &mut self.runs[number];
        (part.steps, part.fails) = (steps, random.one_in(12));
        number
    }

    fn grow_some(&mut self, random: &mut Random, count: usize, depth: u32) -> Vec<usize> {
        let wanted = 1 + random.below(3) as usize;
        let mut grown = Vec::new();
        while grown.len() < wanted && (grown.is_empty() || self.runs.len() < count) {
            grown.push(self.grow(random, count, depth + 1));
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planned_run_is_started_once() {
        for seed in 0..50 {
            let plan = Plan::of(&mut Random::of(seed, 0), 100);
            assert_eq!(plan.runs.len(), 100);
            let steps = plan.runs.iter().flat_map(|part| &part.steps);
            let mut started: Vec<usize> = steps
                .flat_map(|step| match step {
                    Step::Effect { .. } => Vec::new(),
                    Step::Calls(children) => children.clone(),
                    Step::Spawn(child, _) => vec![*child],
                })
                .chain(plan.roots())
                .collect();
            started.sort_unstable();
            assert_eq!(started, (0..100).collect::<Vec<_>>());
        }
    }
}
