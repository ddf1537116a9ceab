//! What happens in a cycle, decided by its number and the seed alone.

use super::place::Place;
use crate::random::Random;
use posse_testkit::postgres::Stop;
use std::fmt;
use std::time::Duration;

/// What happens in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of the cycle.
    pub number: usize,
    /// How many workers there are: 3 to 5.
    pub workers: usize,
    /// How many runs each executes at the same time.
    pub slots: usize,
    /// How many trees of runs there are.
    pub trees: usize,
    /// Where they work.
    pub place: Place,
    /// The faults in their order.
    pub faults: Vec<(Moment, Fault)>,
    /// The first tree gets a message while it works.
    pub sends: bool,
    /// The last tree is cancelled while it works.
    pub cancels: bool,
}

/// When a fault begins, after the one before it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After this time.
    After(Duration),
    /// When so many requests have come to the model.
    Requests(usize),
    /// When there are so many effects.
    Effects(usize),
}

/// Whose connections a fault concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of this worker.
    One(usize),
    /// Those of all workers, and of commands.
    All,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9` to a worker.
    Kill(usize),
    /// The worker dies at this fail-point, the n-th time it passes it.
    KillAt(usize, &'static str, u64),
    /// The worker is stopped for a time.
    Pause(usize, Duration),
    /// The worker ends in order.
    Drain(usize),
    /// Connections are cut.
    Cut(Whose),
    /// Connections are slow for a time: each message needs that much longer.
    Slow(Whose, Duration, Duration),
    /// Nothing passes for a time.
    Hold(Whose, Duration),
    /// Every answer is lost for a time.
    Unanswered(Whose, Duration),
    /// There are no new connections for a time, and the old ones are cut.
    Refuse(Whose, Duration),
    /// The server is stopped, and started after a time.
    Restart(Stop, Duration),
    /// All connections of the server are taken for a time, and those of workers are cut.
    Exhaust(Duration),
    /// The disk of the server is full for a time.
    FillDisk(Duration),
    /// The server is killed, and its replica takes over after a time.
    FailOver(Duration),
}

/// The name of restarts in reports.
pub(super) const RESTARTS: &str = "a restart of the server";
/// The name of deaths at fail-points in reports.
pub(super) const KILLED_AT: &str = "a worker killed at a fail-point";
/// The name of failovers in reports.
pub(super) const FAILOVERS: &str = "a failover to the replica";

/// Fail-points that workers pass.
const POINTS: [&str; 25] = [
    "store.begin.after",
    "store.commit.before",
    "store.commit.after",
    "run.claimed",
    "run.taken_up",
    "journal.record.before",
    "journal.record.after",
    "run.parking",
    "run.parked",
    "loop.model.called",
    "loop.model.replied",
    "loop.tool.started",
    "loop.tool.returned",
    "loop.finish.before",
    "run.finished",
    "run.left",
    "task.start.before",
    "task.start.after",
    "spawn.start.before",
    "spawn.start.after",
    "announcement.append.before",
    "announcement.append.after",
    "tool.launch.spawned",
    "tool.launch.ordered",
    "tool.launch.exited",
];

impl Plan {
    /// The plan of cycle `number`.
    pub fn of(seed: u64, number: usize) -> Self {
        let mut dice = Dice(Random::of(seed, number));
        let workers = 3 + dice.below(3);
        let mut plan = Plan {
            number,
            workers,
            slots: 2 + dice.below(3),
            trees: 2,
            place: Place::of(number),
            faults: Vec::new(),
            sends: dice.one_in(4),
            cancels: dice.one_in(8),
        };
        let main = dice.main(number, workers);
        plan.faults.push((dice.moment(), main));
        for _ in 0..dice.below(3) {
            let more = dice.other(workers);
            plan.faults.push((dice.moment(), more));
        }
        // Which of them is first is a matter of chance.
        if dice.one_in(2) {
            plan.faults.reverse();
        }
        plan
    }

    /// The server needs a small disk of its own.
    pub(super) fn fills_disk(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::FillDisk(_)))
    }

    /// The server needs a replica.
    pub(super) fn fails_over(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::FailOver(_)))
    }

    /// The fail-point at which this worker dies.
    pub(super) fn death_of(&self, worker: usize) -> Option<String> {
        self.faults.iter().find_map(|(_, fault)| match fault {
            Fault::KillAt(it, point, pass) if *it == worker => Some(format!("{point}:{pass}")),
            _ => None,
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} workers with {} slots, {:?}", self.workers, self.slots, self.place)?;
        for (moment, fault) in &self.faults {
            write!(out, ", {fault:?} {moment:?}")?;
        }
        Ok(())
    }
}

struct Dice(Random);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.0.one_in(times)
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.0.below(to - from))
    }

    fn moment(&mut self) -> Moment {
        match self.below(4) {
            0 => Moment::Requests(1 + self.below(25)),
            1 => Moment::Effects(1 + self.below(5)),
            _ => Moment::After(self.ms(0, 2_500)),
        }
    }

    fn whose(&mut self, workers: usize) -> Whose {
        match self.one_in(3) {
            true => Whose::All,
            false => Whose::One(self.below(workers)),
        }
    }

    fn stop(&mut self) -> Stop {
        [Stop::Fast, Stop::Immediate, Stop::Kill][self.below(3)]
    }

    /// The fault that the number of the cycle asks for: of 40 cycles, 12 restart the server and 2
    /// fail over.
    fn main(&mut self, number: usize, workers: usize) -> Fault {
        let one = self.below(workers);
        match number % 20 {
            // Longer than anybody waits for the server.
            0 if number % 200 == 100 => Fault::Restart(self.stop(), self.ms(33_000, 40_000)),
            turn @ (0 | 3 | 6 | 9 | 12 | 15) => {
                let how = [Stop::Fast, Stop::Immediate, Stop::Kill][turn / 3 % 3];
                Fault::Restart(how, self.ms(0, 3_000))
            }
            1 => Fault::FailOver(self.ms(0, 2_000)),
            2 | 11 => Fault::Pause(one, self.ms(11_000, 15_000)),
            4 | 13 => Fault::Kill(one),
            5 | 14 => self.kill_at(one),
            7 => Fault::Cut(Whose::All),
            8 => Fault::Slow(Whose::All, self.ms(20, 300), self.ms(1_000, 5_000)),
            10 => Fault::Hold(Whose::One(one), self.ms(11_000, 15_000)),
            16 => Fault::Exhaust(self.ms(500, 6_000)),
            17 => Fault::FillDisk(self.ms(500, 5_000)),
            18 => Fault::Unanswered(Whose::All, self.ms(300, 2_000)),
            _ if number % 40 == 19 => Fault::Hold(Whose::All, self.ms(1_000, 6_000)),
            _ => Fault::Drain(one),
        }
    }

    fn kill_at(&mut self, worker: usize) -> Fault {
        let point = POINTS[self.below(POINTS.len())];
        Fault::KillAt(worker, point, 1 + self.0.below(4))
    }

    /// A fault that may happen beside any other.
    fn other(&mut self, workers: usize) -> Fault {
        let one = self.below(workers);
        match self.below(10) {
            0 | 1 => Fault::Kill(one),
            2 => self.kill_at(one),
            3 => Fault::Drain(one),
            4 => Fault::Cut(self.whose(workers)),
            5 => Fault::Slow(self.whose(workers), self.ms(10, 200), self.ms(500, 3_000)),
            6 => Fault::Hold(self.whose(workers), self.ms(500, 4_000)),
            7 => Fault::Unanswered(self.whose(workers), self.ms(200, 1_500)),
            8 => Fault::Refuse(self.whose(workers), self.ms(200, 3_000)),
            _ => Fault::Pause(one, self.ms(500, 4_000)),
        }
    }
}

impl Fault {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Kill(_) => "a killed worker",
            Fault::KillAt(..) => KILLED_AT,
            Fault::Pause(_, time) | Fault::Hold(Whose::One(_), time) if *time < LEASE => {
                "a worker that is silent for a while"
            }
            Fault::Pause(..) => "a worker stopped beyond its lease",
            Fault::Hold(Whose::One(_), _) => "a worker cut off beyond its lease",
            Fault::Hold(Whose::All, _) => "all connections held",
            Fault::Drain(_) => "a worker that leaves in order",
            Fault::Cut(_) => "cut connections",
            Fault::Slow(..) => "slow connections",
            Fault::Unanswered(..) => "lost answers",
            Fault::Refuse(..) => "refused connections",
            Fault::Restart(..) => RESTARTS,
            Fault::Exhaust(_) => "no free connection",
            Fault::FillDisk(_) => "a full disk",
            Fault::FailOver(_) => FAILOVERS,
        }
    }
}

/// How long a silent worker keeps its runs.
const LEASE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_seed_decide_all() {
        for number in 0..400 {
            let plan = Plan::of(7, number);
            assert_eq!(plan, Plan::of(7, number));
            assert!((3..=5).contains(&plan.workers), "{plan}");
        }
        assert_ne!(Plan::of(7, 3), Plan::of(8, 3));
    }

    #[test]
    fn a_thousand_cycles_have_enough_of_each_fault() {
        let mut names = std::collections::BTreeMap::new();
        for number in 0..1_000 {
            for (_, fault) in Plan::of(1, number).faults {
                *names.entry(fault.name()).or_insert(0) += 1;
            }
        }
        assert!(names[RESTARTS] >= 250 && names[FAILOVERS] >= 40, "{names:?}");
        assert_eq!(names.len(), 15, "{names:?}");
        assert!(names.values().all(|count| *count >= 40), "{names:?}");
    }

    #[test]
    fn each_fault_meets_runs_in_each_place() {
        let mut met = std::collections::BTreeSet::new();
        for number in 0..2_000 {
            let plan = Plan::of(1, number);
            met.extend(
                plan.faults.iter().map(|(_, fault)| (fault.name(), format!("{:?}", plan.place))),
            );
        }
        assert_eq!(met.len(), 15 * 3, "{met:?}");
    }
}
