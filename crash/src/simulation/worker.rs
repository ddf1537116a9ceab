//! A worker: claims runs, executes their steps, and renews its lease, as the runtime does.

use super::client::{Client, Done, Job};
use super::facts::{self, Ended, Manner};
use super::faults::{LEASE_MS, SECOND};
use super::ledger::{Acknowledged, Effect, Ledger, Taken};
use super::node::{Wanted, Who};
use super::plan::{Plan, Step};
use super::scene::{Answer, Happening, Request, Scene, Wish};
use super::story::{Ends, Next, Story};
use posse_protocol::{AgentSpec, Announce, Outcome, Record, RunId};
use posse_store::{Append, Appended, Guard, Ownership, StoreError};
use std::collections::{BTreeMap, VecDeque};

/// How long a worker waits before it repeats what the store could not do.
const LATER: u64 = SECOND / 4;

/// What a worker needs to know about the world.
pub(super) struct World<'a> {
    pub(super) scene: &'a mut Scene,
    pub(super) ledger: &'a mut Ledger,
    pub(super) plan: &'a Plan,
    pub(super) agent: &'a AgentSpec,
}

/// What an append was for.
enum Purpose {
    Step(RunId),
    Submit { key: String, run: RunId },
    Message(usize),
}

/// What a task does with the answer to its append.
#[derive(Clone)]
enum Intent {
    /// Take the next step.
    Step,
    /// Let the tool of this call work.
    Work(String),
    /// A child was created for this call.
    Create { call: String, announce: Option<Announce> },
    /// The run has no owner afterwards.
    Leave,
    /// The run ends: who else hears it, the next one first, and who is asked to stop.
    End { ends: Ends, to: VecDeque<(RunId, Manner)>, stops: Vec<RunId> },
}

enum Doing {
    Reading,
    Appending { intent: Intent, batch: Vec<Append>, lease: Option<u64> },
    Working(String),
    Later,
}

/// A run that the worker executes.
struct Task {
    epoch: u64,
    story: Story,
    doing: Doing,
    /// The tag of what the task waits for.
    tag: u64,
    /// The lease during which the last append succeeded.
    owned: Option<u64>,
}

pub(super) struct Worker {
    pub(super) who: Who,
    pub(super) slot: usize,
    pub(super) client: Client,
    pub(super) is_alive: bool,
    /// It stands still: what happens to it waits.
    pub(super) stands_still: bool,
    pub(super) deferred: Vec<Happening>,
    tasks: BTreeMap<RunId, Task>,
    /// The last claim may have succeeded although no answer came.
    unclear: bool,
    tickets: BTreeMap<u64, Purpose>,
    /// How many tasks it takes at most.
    room: usize,
    /// Parts per million that its clock is too fast, plus a million.
    rate: u64,
    ahead_ms: u64,
    /// How often in a row it found nothing to claim.
    idle: u32,
}

impl Worker {
    pub(super) fn new(who: Who, slot: usize, room: usize, scene: &mut Scene) -> Self {
        let drift = scene.faults.drift;
        let rate = 1_000_000 - drift + scene.random.below(2 * drift + 1);
        let (session, ahead_ms) = (scene.fresh(), scene.random.below(1 << 32));
        let number = who.number;
        let first = scene.random.below(SECOND / 4);
        scene.after(first, Happening::Poll { worker: number });
        scene.after(first + LEASE_MS * 1_000 / 3, Happening::Renew { worker: number });
        Worker {
            who,
            slot,
            client: Client::new(who, session),
            is_alive: true,
            stands_still: false,
            deferred: Vec::new(),
            tasks: BTreeMap::new(),
            unclear: false,
            tickets: BTreeMap::new(),
            room,
            rate,
            ahead_ms,
            idle: 0,
        }
    }

    /// Drops what a dead worker knew.
    pub(super) fn forget(&mut self) {
        self.tasks.clear();
        self.tickets.clear();
        self.deferred.clear();
    }

    /// The clock of this worker, which no other worker can read.
    fn clock(&self, scene: &Scene) -> u64 {
        (scene.now as u128 * u128::from(self.rate) / 1_000_000_000) as u64 + self.ahead_ms
    }

    fn ask(&mut self, job: Job, world: &mut World<'_>) {
        let clock = self.clock(world.scene);
        self.client.ask(job, clock, world.scene);
    }

    pub(super) fn poll(&mut self, world: &mut World<'_>) {
        let free = self.room.saturating_sub(self.tasks.len());
        if free > 0 && self.client.may_claim() {
            let again = self.unclear.then(|| self.tasks.keys().copied().collect());
            self.ask(Job::Claim(Wanted { limit: free.min(16), again }), world);
        }
        let pause = (SECOND / 20) << self.idle.min(4);
        let pause = pause + world.scene.random.below(pause);
        world.scene.after(pause, Happening::Poll { worker: self.who.number });
    }

    pub(super) fn renew(&mut self, world: &mut World<'_>) {
        self.ask(Job::Renew, world);
        let again = LEASE_MS * 1_000 / 3;
        world.scene.after(again, Happening::Renew { worker: self.who.number });
    }

    /// Starts a run for a host. The key makes sure that there is one run, however often a host asks.
    pub(super) fn submit(&mut self, number: usize, world: &mut World<'_>) {
        let run = new_run(number, world.scene);
        let key = format!("root {number}");
        let started = facts::started(world.agent, number, key.clone(), None);
        let batch = vec![facts::append(run, vec![started], Guard::Create(Ownership::Queued))];
        self.append(Purpose::Submit { key, run }, batch, world);
    }

    /// Sends a message of a host. Nothing but the client keeps it from being stored twice.
    pub(super) fn say(&mut self, index: usize, world: &mut World<'_>) {
        let sent = &world.ledger.messages[index];
        let batch = vec![Append::by_anyone(sent.run, facts::message(sent.text.clone()))];
        self.append(Purpose::Message(index), batch, world);
    }

    fn append(&mut self, purpose: Purpose, batch: Vec<Append>, world: &mut World<'_>) {
        let ticket = world.scene.fresh();
        self.tickets.insert(ticket, purpose);
        self.ask(Job::Append { ticket, batch }, world);
    }

    pub(super) fn hear(&mut self, tag: u64, answer: Answer, world: &mut World<'_>) {
        if let Answer::Read { run, records } = answer {
            if let Some(task) = self.tasks.get_mut(&run).filter(|task| task.tag == tag) {
                match &*records {
                    Ok(records) if task.read(records) => self.go_on(run, world),
                    _ => self.later(run, world),
                }
            }
            return;
        }
        let clock = self.clock(world.scene);
        let done = self.client.hear(tag, answer, clock, world.scene);
        self.take(done, world);
    }

    pub(super) fn timed_out(&mut self, tag: u64, world: &mut World<'_>) {
        let clock = self.clock(world.scene);
        let done = self.client.timed_out(tag, clock, world.scene);
        self.take(done, world);
    }

    pub(super) fn ask_again(&mut self, tag: u64, world: &mut World<'_>) {
        self.client.ask_again(tag, world.scene);
    }

    fn take(&mut self, done: Vec<Done>, world: &mut World<'_>) {
        for done in done {
            match done {
                Done::Unclear => self.unclear = true,
                Done::Claimed(claimed) => {
                    self.unclear = false;
                    self.idle = if claimed.is_empty() { self.idle + 1 } else { 0 };
                    for taken in claimed {
                        let (story, doing) = (Story::default(), Doing::Reading);
                        let task = Task { epoch: taken.epoch, story, doing, tag: 0, owned: None };
                        self.tasks.insert(taken.run, task);
                        self.read(taken.run, world);
                    }
                }
                Done::Appended { ticket, answer } => match self.tickets.remove(&ticket) {
                    Some(Purpose::Step(run)) => self.appended(run, ticket, answer, world),
                    Some(Purpose::Submit { key, run }) => match answer {
                        Ok(_) => world.ledger.started.push((key, run)),
                        Err(StoreError::KeyTaken { run, .. }) => {
                            world.ledger.started.push((key, run));
                        }
                        // The host tries again.
                        Err(_) => {}
                    },
                    Some(Purpose::Message(index)) => {
                        world.ledger.messages[index].taken = match answer {
                            Ok(_) => Taken::Yes,
                            Err(StoreError::Unusable { .. }) => Taken::Unknown,
                            Err(_) => Taken::No,
                        };
                    }
                    None => {}
                },
            }
        }
    }

    /// Reads what is new in the log of a run.
    fn read(&mut self, run: RunId, world: &mut World<'_>) {
        let Some(task) = self.tasks.get_mut(&run) else { return };
        let tag = world.scene.fresh();
        (task.doing, task.tag) = (Doing::Reading, tag);
        let (worker, session) = (self.who.number, self.client.session);
        let wish = Wish::Read { run, after: task.story.last };
        world.scene.after(SECOND, Happening::GoOn { worker, run, tag });
        let request = Request { worker, session, tag, wish };
        world.scene.send(worker, true, Happening::AtStore(request));
    }

    fn later(&mut self, run: RunId, world: &mut World<'_>) {
        let Some(task) = self.tasks.get_mut(&run) else { return };
        (task.doing, task.tag) = (Doing::Later, world.scene.fresh());
        let happening = Happening::GoOn { worker: self.who.number, run, tag: task.tag };
        world.scene.after(LATER, happening);
    }

    /// A tool is done, an answer did not come, or it is time to try again.
    pub(super) fn wake(&mut self, run: RunId, tag: u64, world: &mut World<'_>) {
        let Some(task) = self.tasks.get(&run).filter(|task| task.tag == tag) else { return };
        match &task.doing {
            Doing::Reading | Doing::Later => self.read(run, world),
            Doing::Working(call) => {
                let call = call.clone();
                self.act(run, call, world);
            }
            Doing::Appending { .. } => {}
        }
    }

    /// The tool has its effect, if the lease has held since the start of the call was stored.
    fn act(&mut self, run: RunId, call: String, world: &mut World<'_>) {
        let lease = self.client.lease.number(self.clock(world.scene));
        let Some(task) = self.tasks.get(&run) else { return };
        let holds = task.owned.is_some() && task.owned == lease;
        if holds {
            world.scene.tally.effects += 1;
            world.ledger.effects.push(Effect { run, call: call.clone() });
        }
        let ended = if holds { Ended::Done } else { Ended::StoodStill };
        let epoch = task.epoch;
        let event = facts::tool_finished(&call, ended, self.mark(epoch, world));
        let guard = Guard::Owner { epoch, last: None, then: Ownership::Mine };
        self.step(run, Intent::Step, vec![facts::append(run, vec![event], guard)], world);
    }

    fn mark(&self, epoch: u64, world: &mut World<'_>) -> String {
        facts::mark(self.who.number, epoch, world.scene.fresh())
    }

    /// Appends a step of a run.
    fn step(&mut self, run: RunId, intent: Intent, batch: Vec<Append>, world: &mut World<'_>) {
        let lease = self.client.lease.number(self.clock(world.scene));
        if lease.is_none() {
            self.ask(Job::Renew, world);
        }
        let ticket = world.scene.fresh();
        let Some(task) = self.tasks.get_mut(&run) else { return };
        task.doing = Doing::Appending { intent, batch: batch.clone(), lease };
        task.tag = ticket;
        self.tickets.insert(ticket, Purpose::Step(run));
        self.ask(Job::Append { ticket, batch }, world);
    }

    /// Takes the next step of a run whose log is known.
    fn go_on(&mut self, run: RunId, world: &mut World<'_>) {
        let Some(task) = self.tasks.get(&run) else { return };
        let (epoch, last) = (task.epoch, task.story.last);
        let Some(part) = world.plan.runs.get(task.story.number) else { return };
        let next = task.story.next(part);
        let above = task.story.ancestors.clone();
        let by_owner = |events, then| vec![facts::by_owner(run, epoch, last, events, then)];
        match next {
            Next::Start { step, calls } => {
                let kind = &part.steps[step];
                let mut events = Vec::new();
                for call in &calls {
                    events.push(facts::tool_started(call, kind, self.mark(epoch, world)));
                }
                let intent = match (kind, calls.into_iter().next()) {
                    (Step::Effect { .. }, Some(call)) => Intent::Work(call),
                    _ => Intent::Step,
                };
                self.step(run, intent, by_owner(events, Ownership::Mine), world);
            }
            Next::Create { call, child, announce } => {
                let id = new_run(child, world.scene);
                let parent = facts::parent(run, &above, &call, announce);
                let key = format!("{run} {call}");
                let started = facts::started(world.agent, child, key, Some(parent));
                let mark = self.mark(epoch, world);
                let told = facts::child_started(id, world.agent, &call, announce, mark);
                let create = Guard::Create(Ownership::Queued);
                let mut batch = vec![facts::append(id, vec![started], create)];
                batch.push(Append::by_anyone(run, told));
                batch.extend(above.iter().map(|above| Append::while_open(*above)));
                self.step(run, Intent::Create { call, announce }, batch, world);
            }
            Next::Interrupt(call) => self.answer(run, &call, Ended::Interrupted, world),
            Next::Await(calls) => {
                let batch = by_owner(Vec::new(), Ownership::Awaiting(calls));
                self.step(run, Intent::Leave, batch, world);
            }
            Next::Rest => {
                let batch = by_owner(Vec::new(), Ownership::Waiting);
                self.step(run, Intent::Leave, batch, world);
            }
            Next::End(ends) => {
                let to = addressees(&task.story, ends);
                let stops = match ends {
                    Ends::Completed => Vec::new(),
                    Ends::Failed | Ends::Cancelled => task.story.children.iter().copied().collect(),
                };
                self.end(run, ends, to, stops, world);
            }
            Next::Nothing => _ = self.tasks.remove(&run),
        }
    }

    /// Records the result of a call.
    fn answer(&mut self, run: RunId, call: &str, ended: Ended, world: &mut World<'_>) {
        let Some(task) = self.tasks.get(&run) else { return };
        let (epoch, last) = (task.epoch, task.story.last);
        let event = facts::tool_finished(call, ended, self.mark(epoch, world));
        let batch = vec![facts::by_owner(run, epoch, last, vec![event], Ownership::Mine)];
        self.step(run, Intent::Step, batch, world);
    }

    /// Ends a run. The same transaction tells the caller, and asks children to stop.
    fn end(
        &mut self,
        run: RunId,
        ends: Ends,
        to: VecDeque<(RunId, Manner)>,
        stops: Vec<RunId>,
        world: &mut World<'_>,
    ) {
        let Some(task) = self.tasks.get(&run) else { return };
        let (epoch, last, open) = (task.epoch, task.story.last, task.story.open_calls());
        let mut events = Vec::new();
        for call in open {
            events.push(facts::tool_finished(&call, Ended::Stopped, self.mark(epoch, world)));
        }
        let text = self.mark(epoch, world);
        events.push(facts::finished(match ends {
            Ends::Completed => Outcome::completed(text),
            Ends::Failed => Outcome::failed("it was planned", text),
            Ends::Cancelled => Outcome::cancelled("its caller".to_owned(), text),
        }));
        let mut batch = vec![facts::by_owner(run, epoch, last, events, Ownership::Waiting)];
        if let Some((addressee, manner)) = to.front() {
            let mark = self.mark(epoch, world);
            batch.push(facts::announcement(run, *addressee, manner, mark));
        }
        for child in &stops {
            batch.push(facts::cancel(*child, self.mark(epoch, world)));
        }
        self.step(run, Intent::End { ends, to, stops }, batch, world);
    }

    /// Takes the answer to an append of a task.
    fn appended(
        &mut self,
        run: RunId,
        ticket: u64,
        answer: Result<Vec<Appended>, StoreError>,
        world: &mut World<'_>,
    ) {
        let Some(task) = self.tasks.get_mut(&run).filter(|task| task.tag == ticket) else { return };
        let doing = std::mem::replace(&mut task.doing, Doing::Later);
        let Doing::Appending { intent, batch, lease } = doing else { return };
        match answer {
            Ok(answers) => {
                task.owned = lease;
                acknowledge(&batch, &answers, world.ledger);
                let is_known = task.fold(run, &batch, &answers);
                self.succeeded(run, intent, is_known, world);
            }
            Err(StoreError::NotOwner(_)) => _ = self.tasks.remove(&run),
            Err(error) => self.refused(run, intent, error, world),
        }
    }

    fn succeeded(&mut self, run: RunId, intent: Intent, is_known: bool, world: &mut World<'_>) {
        match intent {
            Intent::Leave | Intent::End { .. } => _ = self.tasks.remove(&run),
            Intent::Work(call) => {
                let long = match world.scene.random.below(40) {
                    0 => world.scene.random.below(2 * LEASE_MS * 1_000),
                    _ => world.scene.random.below(SECOND / 10),
                };
                let Some(task) = self.tasks.get_mut(&run) else { return };
                (task.doing, task.tag) = (Doing::Working(call), world.scene.fresh());
                let happening = Happening::GoOn { worker: self.who.number, run, tag: task.tag };
                world.scene.after(long, happening);
            }
            _ if !is_known => self.read(run, world),
            Intent::Create { call, announce: Some(_) } => {
                self.answer(run, &call, Ended::Done, world)
            }
            Intent::Step | Intent::Create { .. } => self.go_on(run, world),
        }
    }

    fn refused(&mut self, run: RunId, intent: Intent, error: StoreError, world: &mut World<'_>) {
        let of_another = |error: &StoreError| match error {
            StoreError::Finished(other) | StoreError::Stopping(other) if *other != run => {
                Some(*other)
            }
            _ => None,
        };
        match (intent, of_another(&error)) {
            (Intent::End { ends, mut to, mut stops }, Some(other)) => {
                let before = stops.len();
                stops.retain(|child| *child != other);
                if stops.len() == before {
                    to.pop_front();
                }
                self.end(run, ends, to, stops, world);
            }
            // The child exists already. If a call waits for it, the log says which it is.
            (Intent::Create { call, announce: Some(_) }, None)
                if matches!(error, StoreError::KeyTaken { .. }) =>
            {
                self.answer(run, &call, Ended::Done, world);
            }
            // A run above is being cancelled, or has ended without completing.
            (Intent::Create { call, .. }, Some(_)) => {
                self.answer(run, &call, Ended::Stopped, world);
            }
            _ if matches!(error, StoreError::Moved { .. } | StoreError::KeyTaken { .. }) => {
                self.read(run, world);
            }
            _ => self.later(run, world),
        }
    }
}

impl Task {
    /// Applies what was read. Returns false if it does not follow.
    fn read(&mut self, records: &[Record]) -> bool {
        records.iter().all(|record| self.story.observe(record.seq, &record.event))
    }

    /// Applies what was appended to the own log. Returns false if other events came before.
    fn fold(&mut self, run: RunId, batch: &[Append], answers: &[Appended]) -> bool {
        let own = batch.iter().zip(answers).filter(|(append, _)| append.run == run);
        let mut is_known = true;
        for (append, answer) in own {
            let mut seq = answer.first;
            for event in append.events.iter() {
                is_known &= self.story.observe(seq, event);
                seq = seq.next();
            }
        }
        is_known
    }
}

/// Notes what the store says it has.
fn acknowledge(batch: &[Append], answers: &[Appended], ledger: &mut Ledger) {
    for (append, answer) in batch.iter().zip(answers) {
        let mut seq = answer.first;
        for event in append.events.iter() {
            let (run, mark) = (append.run, facts::mark_of(event));
            ledger.acknowledged.push(Acknowledged { run, seq, mark });
            seq = seq.next();
        }
    }
}

/// Returns the runs to which a run may announce its end. It tries them in this order.
fn addressees(story: &Story, ends: Ends) -> VecDeque<(RunId, Manner)> {
    let Some((parent, call, announce)) = &story.caller else { return VecDeque::new() };
    let announce = match (call, announce) {
        (Some(call), _) => return VecDeque::from([(*parent, Manner::Result(call.clone()))]),
        (None, Some(announce)) => *announce,
        (None, None) => return VecDeque::new(),
    };
    let told = |inherited, announce, kept| Manner::Told { announce, inherited, kept };
    let mut to = VecDeque::from([(*parent, told(false, announce, false))]);
    if announce == Announce::Silent {
        return to;
    }
    if ends != Ends::Cancelled {
        let above = story.ancestors.iter().rev().filter(|run| *run != parent);
        to.extend(above.map(|run| (*run, told(true, Announce::Followup, false))));
    }
    to.push_back((*parent, told(false, announce, true)));
    to
}

/// Returns a new id for a run of the plan.
fn new_run(number: usize, scene: &mut Scene) -> RunId {
    RunId::from_u128(u128::from(scene.fresh()) << 64 | number as u128)
}
