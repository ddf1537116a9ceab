//! Property tests: caps, order, fairness, and that no slot stays free without need.

use super::{LaneCaps, Lanes, Shares};
use posse_protocol::RunId;
use posse_store::Queued;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, VecDeque};

const AGENTS: [&str; 3] = ["explore", "coder", "judge"];
const MODELS: [&str; 2] = ["a/large", "a/small"];

fn id(bits: u64) -> RunId {
    RunId::from_u128(u128::from(bits))
}

/// The run with the number `number`, of the root `root`.
fn run(root: u64, number: u64, agent: usize, model: usize, priority: i32) -> Queued {
    Queued {
        id: id(1_000 + number),
        root: id(root),
        // Each root has two parents.
        parent: Some(id(root * 10 + number % 2)),
        // The agent of the second one sets a cap.
        abreast: (number % 2 == 1).then_some(2),
        agent: AGENTS[agent].to_owned(),
        model: MODELS[model].to_owned(),
        workspace: String::new(),
        priority,
        ready_at: number,
        deaths: 0,
        stopping: false,
    }
}

fn plain(root: u64, number: u64) -> Queued {
    run(root, number, 0, 0, 0)
}

#[derive(Clone, Debug)]
enum Move {
    /// A run starts to wait.
    Queue { root: u64, agent: usize, model: usize, priority: i32 },
    /// A new run asks for a slot.
    Launch { root: u64, agent: usize, model: usize, priority: i32 },
    /// The next run gets a slot.
    Take,
    /// A running run ends.
    End(prop::sample::Index),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let of = || (0..4u64, 0..3usize, 0..2usize, -1..2i32);
    let one = prop_oneof![
        4 => of().prop_map(|(root, agent, model, priority)| Move::Queue { root, agent, model, priority }),
        1 => of().prop_map(|(root, agent, model, priority)| Move::Launch { root, agent, model, priority }),
        4 => Just(Move::Take),
        3 => any::<prop::sample::Index>().prop_map(Move::End),
    ];
    vec(one, 0..200)
}

fn shares() -> impl Strategy<Value = Shares> {
    let few = || prop::option::of(1..4usize);
    (few(), few()).prop_map(|(first, others)| {
        let names = [AGENTS[0], MODELS[0]].map(str::to_owned);
        let named = names.into_iter().filter_map(|name| Some((name, first?))).collect();
        Shares { named, others }
    })
}

fn caps() -> impl Strategy<Value = LaneCaps> {
    (prop::option::of(1..4usize), shares(), shares()).prop_map(
        |(per_parent, per_agent, per_model)| LaneCaps { per_parent, per_agent, per_model },
    )
}

/// The same rules in their simplest form, as a reference.
struct Plain {
    slots: usize,
    caps: LaneCaps,
    running: Vec<Queued>,
    waiting: Vec<Queued>,
    served: HashMap<RunId, u64>,
    begun: u64,
}

impl Plain {
    fn fits(&self, run: &Queued) -> bool {
        let count = |alike: &dyn Fn(&Queued) -> bool| {
            self.running.iter().filter(|other| alike(other)).count()
        };
        let below = |cap: Option<usize>, count: usize| cap.is_none_or(|cap| count < cap);
        self.running.len() < self.slots
            && below(self.caps.per_parent, count(&|it| it.parent == run.parent))
            && below(run.abreast.map(|most| most as usize), count(&|it| it.parent == run.parent))
            && below(self.caps.per_agent.of(&run.agent), count(&|it| it.agent == run.agent))
            && below(self.caps.per_model.of(&run.model), count(&|it| it.model == run.model))
    }

    fn next(&self) -> Option<&Queued> {
        let first_of = |root: RunId, priority: i32| {
            let alike = self.waiting.iter().filter(|it| it.root == root && it.priority == priority);
            alike.map(|it| (it.ready_at, it.id)).min()
        };
        self.waiting.iter().filter(|run| self.fits(run)).min_by_key(|run| {
            let running = self.running.iter().filter(|it| it.root == run.root).count();
            let served = self.served.get(&run.root).copied().unwrap_or(0);
            let first = first_of(run.root, run.priority);
            (std::cmp::Reverse(run.priority), running, served, first, run.ready_at, run.id)
        })
    }

    fn begin(&mut self, run: Queued) {
        self.begun += 1;
        self.served.insert(run.root, self.begun);
        self.waiting.retain(|it| it.id != run.id);
        self.running.push(run);
    }

    fn forget_the_gone(&mut self) {
        let (running, waiting) = (&self.running, &self.waiting);
        self.served.retain(|root, _| running.iter().chain(waiting).any(|run| run.root == *root));
    }
}

proptest! {
    #[test]
    fn it_decides_as_the_plain_rules_do_and_goes_over_no_cap(
        slots in 1..6usize, caps in caps(), moves in moves(),
    ) {
        let mut lanes = Lanes::new(slots, caps.clone());
        let mut plain = Plain {
            slots, caps, running: vec![], waiting: vec![], served: HashMap::new(), begun: 0,
        };
        for (number, made) in (0..).zip(moves) {
            match made {
                Move::Queue { root, agent, model, priority } => {
                    let run = run(root, number, agent, model, priority);
                    plain.waiting.push(run.clone());
                    lanes.offer(run);
                }
                Move::Launch { root, agent, model, priority } => {
                    let run = run(root, number, agent, model, priority);
                    plain.waiting.push(Queued { ready_at: u64::MAX, ..run.clone() });
                    let is_next = plain.next().is_some_and(|next| next.id == run.id);
                    plain.waiting.pop();
                    prop_assert_eq!(lanes.take_at_once(&run), is_next);
                    if is_next {
                        plain.begin(run);
                    }
                }
                Move::Take => {
                    let expected = plain.next().cloned();
                    prop_assert_eq!(lanes.has_next() && lanes.free() > 0, expected.is_some());
                    let taken = lanes.take();
                    prop_assert_eq!(&taken, &expected);
                    if let Some(run) = taken {
                        prop_assert!(plain.fits(&run), "over a cap");
                        plain.begin(run);
                    }
                }
                Move::End(which) => {
                    if !plain.running.is_empty() {
                        let run = plain.running.remove(which.index(plain.running.len()));
                        lanes.leave(run.id);
                    }
                }
            }
            plain.forget_the_gone();
            prop_assert_eq!(lanes.free(), slots - plain.running.len());
            prop_assert_eq!(lanes.waiting(), plain.waiting.len());
        }
    }

    /// However many runs one tree has, another tree waits for at most one slot to become free.
    #[test]
    fn a_session_with_thousands_delays_nobody_by_more_than_a_slot(
        slots in 1..8usize, crowd in 1..2_000u64, guests in 1..5u64,
    ) {
        let mut lanes = Lanes::new(slots, LaneCaps::default());
        (0..crowd).for_each(|number| lanes.offer(plain(1, number)));
        let mut at_work: VecDeque<RunId> =
            std::iter::from_fn(|| lanes.take()).map(|run| run.id).collect();
        (0..guests).for_each(|guest| lanes.offer(plain(2 + guest, crowd + guest)));
        let mut served = 0;
        for _ in 0..guests {
            if let Some(run) = at_work.pop_front() {
                lanes.leave(run);
            }
            if let Some(next) = lanes.take() {
                served += u64::from(next.root != id(1));
                at_work.push_back(next.id);
            }
        }
        prop_assert_eq!(served, guests);
    }

    /// Among runs of one tree with the same caps, the first to come goes first.
    #[test]
    fn siblings_keep_their_order(slots in 1..5usize, caps in caps(), agents in vec(0..3usize, 1..60)) {
        let mut lanes = Lanes::new(slots, caps);
        for (number, agent) in (0..).zip(&agents) {
            lanes.offer(Queued { parent: None, abreast: None, ..run(1, number, *agent, 0, 0) });
        }
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut at_work = VecDeque::new();
        let mut count = 0;
        while count < agents.len() {
            match lanes.take() {
                Some(run) => {
                    count += 1;
                    let before = last.insert(run.agent.clone(), run.ready_at);
                    prop_assert!(before.is_none_or(|before| before < run.ready_at));
                    at_work.push_back(run.id);
                }
                None => {
                    let Some(run) = at_work.pop_front() else {
                        return Err(TestCaseError::fail("nobody works and nobody may begin"));
                    };
                    lanes.leave(run);
                }
            }
        }
    }
}

#[test]
fn f5_a_run_that_is_taken_up_again_before_it_was_let_go_counts_once() {
    let mut lanes = Lanes::new(2, LaneCaps { per_parent: Some(2), ..LaneCaps::default() });
    let child = plain(1, 0);
    for _ in 0..2 {
        lanes.offer(child.clone());
        assert_eq!(lanes.take().map(|run| run.id), Some(child.id));
    }
    assert_eq!(lanes.free(), 1);
    lanes.leave(child.id);
    assert_eq!(lanes.free(), 1, "its second execution goes on");
    lanes.leave(child.id);
    assert_eq!(lanes.free(), 2);
}

#[test]
fn a_higher_priority_goes_first_whoever_has_how_much_at_work() {
    let mut lanes = Lanes::new(3, LaneCaps::default());
    lanes.offer(run(1, 0, 0, 0, 5));
    lanes.offer(run(1, 1, 0, 0, 5));
    lanes.offer(run(2, 2, 0, 0, 0));
    let order: Vec<RunId> = std::iter::from_fn(|| lanes.take()).map(|run| run.id).collect();
    assert_eq!(order, [id(1_000), id(1_001), id(1_002)]);
}

#[test]
fn a_new_session_starts_beside_a_backlog_and_a_sibling_does_not_overtake_it() {
    let mut lanes = Lanes::new(3, LaneCaps::default());
    (0..10).for_each(|number| lanes.offer(plain(1, number)));
    lanes.take();
    assert!(!lanes.take_at_once(&plain(1, 20)), "its siblings wait");
    assert!(lanes.take_at_once(&plain(2, 21)), "nothing of its session is at work");
    assert_eq!(lanes.take().map(|run| run.ready_at), Some(1));
    assert!(!lanes.take_at_once(&plain(3, 22)), "there is no slot");
}

#[test]
fn whoever_waits_behind_those_that_are_capped_is_found_by_what_is_full() {
    let named = [("explore".to_owned(), 1)].into();
    let caps = LaneCaps { per_agent: Shares { named, others: None }, ..LaneCaps::default() };
    let mut lanes = Lanes::new(4, caps);
    (0..3).for_each(|number| lanes.offer(plain(1, number)));
    assert!(lanes.take().is_some());
    assert!(!lanes.has_next() && lanes.free() == 3 && lanes.waiting() == 2);
    let full = lanes.full();
    assert_eq!(
        (full.agents, full.models.len(), full.parents.len()),
        (vec!["explore".to_owned()], 0, 0)
    );
    lanes.offer(run(1, 9, 1, 0, 0));
    assert_eq!(lanes.take().map(|run| run.agent), Some("coder".to_owned()));
}

#[test]
fn of_those_whose_processes_died_again_and_again_one_is_executed_at_a_time() {
    let mut lanes = Lanes::new(4, LaneCaps::default());
    let dying = |number, deaths| Queued { deaths, ..plain(number, number) };
    for run in [dying(1, 3), dying(2, 4), dying(3, 2), dying(4, 3)] {
        lanes.offer(run);
    }
    let mut take = || lanes.take().map(|run| run.root);
    assert_eq!([take(), take(), take()], [Some(id(1)), Some(id(3)), None]);
    // It has shown that it does not kill its process, or has ended.
    lanes.clear(id(1_001));
    assert_eq!(lanes.take().map(|run| run.root), Some(id(2)));
    lanes.leave(id(1_002));
    assert_eq!(lanes.take().map(|run| run.root), Some(id(4)));
}
