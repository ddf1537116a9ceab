//! Time at work in a tree: whatever works below a run, one after the other or side by side, is over
//! when the time of that run is.

use posse_agent::protocol::*;
use posse_agent::{Step, Transcript, next_step};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a run does with its time.
#[derive(Clone, Debug)]
enum Deed {
    /// It works so long.
    Work(u64),
    /// It starts others, and waits for the last of them.
    Delegate(Vec<Helper>),
}

#[derive(Clone, Debug)]
struct Helper {
    /// It is in the background: its end comes as a message, not as the result of a call.
    background: bool,
    /// How long it may work, as its own definition has it.
    wall_ms: Option<u64>,
    deeds: Vec<Deed>,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let work = || (1..400u64).prop_map(Deed::Work);
    vec(work(), 0..3).prop_recursive(3, 40, 4, move |inner| {
        let helper = (any::<bool>(), proptest::option::of(50..800u64), inner)
            .prop_map(|(background, wall_ms, deeds)| Helper { background, wall_ms, deeds });
        let delegate = vec(helper, 1..4).prop_map(Deed::Delegate);
        vec(prop_oneof![work(), delegate], 0..4)
    })
}

/// A run in a world where nothing takes time but work.
struct Worker {
    transcript: Transcript,
    limits: Limits,
    seq: u64,
    runs: u128,
    /// The moment it is now.
    now: u64,
}

impl Worker {
    fn begin(wall_ms: Option<u64>, time: Option<TimeAtWork>, now: u64) -> Self {
        let limits = Limits { wall_ms, ..Limits::default() };
        let agent = AgentSpec::new("a".parse().unwrap());
        let above = RunId::from_u128(1);
        let parent = time.map(|time| Parent {
            run: above,
            call: None,
            announce: None,
            account: None,
            limited: Vec::new(),
            abreast: None,
            time,
            ancestors: vec![above],
            extra: Extra::default(),
        });
        let started = RunStarted {
            limits: limits.clone(),
            parent,
            ..RunStarted::new(agent, "test/model", Grant::default())
        };
        let transcript = Transcript::default();
        let mut worker = Worker { transcript, limits, seq: 0, runs: 100, now };
        worker.push(Event::from(started));
        worker.push(Event::MessageReceived(MessageReceived::user("begin")));
        worker.reply(Vec::new());
        worker
    }

    fn push(&mut self, event: Event) {
        self.seq += 1;
        self.transcript.apply(Seq(self.seq), &event);
    }

    fn reply(&mut self, parts: Vec<Part>) {
        self.push(Event::ModelReplied(Box::new(ModelReplied {
            seen: Seq(self.seq),
            message: Message::new(Role::Assistant, parts),
            stop: Stop::ToolUse,
            usage: Usage::default(),
            uncertain: None,
            request_id: None,
            service_tier: None,
            rate_limits: None,
            worked_ms: self.transcript.worked_ms(),
            extra: Extra::default(),
        })));
    }

    fn left(&self) -> u64 {
        self.transcript.time(&self.limits).left_ms.unwrap_or(u64::MAX)
    }

    fn work(&mut self, ms: u64) {
        let ms = ms.min(self.left());
        self.now += ms;
        let worked_ms = self.transcript.worked_ms() + ms;
        let extra = Extra::default();
        self.push(Event::TimePassed(TimePassed { worked_ms, quiet: false, extra }));
    }

    fn delegate(&mut self, helpers: &[Helper]) -> Result<(), TestCaseError> {
        let time = self.transcript.time(&self.limits);
        let calls: Vec<CallId> =
            (0..helpers.len()).map(|it| format!("c{it}").as_str().into()).collect();
        let call = |id: &CallId| {
            let (name, input) = ("Task".to_owned(), serde_json::json!({}));
            Part::ToolCall(ToolCall { id: id.clone(), name, input, extra: Extra::default() })
        };
        let waited_for = helpers.iter().zip(&calls).filter(|(helper, _)| !helper.background);
        self.reply(waited_for.map(|(_, id)| call(id)).collect());
        let mut ends = Vec::new();
        for (helper, call) in helpers.iter().zip(calls) {
            self.runs += 1;
            let run = RunId::from_u128(self.runs);
            let announce = helper.background.then_some(Announce::Followup);
            self.push(Event::ChildStarted(Box::new(ChildStarted {
                run,
                call: (!helper.background).then(|| call.clone()),
                announce,
                agent: "a".parse().unwrap(),
                label: String::new(),
                resumed: false,
                extra: Extra::default(),
            })));
            let child = Worker::begin(helper.wall_ms, Some(time.clone()), self.now);
            let (ended, worked) = child.live(&helper.deeds)?;
            ends.push((ended, worked, run, call, helper.background));
        }
        ends.sort_by_key(|(ended, ..)| *ended);
        for (ended, worked, run, call, background) in ends {
            self.now = self.now.max(ended);
            let worked_ms = time.worked_ms + worked;
            let extra = Extra::default();
            self.push(match background {
                true => Event::MessageReceived(MessageReceived {
                    from: Sender::Child(Announced {
                        run,
                        announce: Announce::Followup,
                        inherited: false,
                        kept: false,
                        worked_ms,
                        extra: extra.clone(),
                    }),
                    asks: None,
                    message: Message::user("it has ended"),
                    later: false,
                    extra,
                }),
                false => Event::ToolFinished(ToolFinished {
                    call,
                    output: ToolOutput::text("x"),
                    ending: Ending::Returned,
                    by: String::new(),
                    took_ms: worked,
                    worked_ms,
                    extra,
                }),
            });
        }
        Ok(())
    }

    /// Does what there is to do until its time is up. Returns when it ended, and its time at work.
    fn live(mut self, deeds: &[Deed]) -> Result<(u64, u64), TestCaseError> {
        let (began, most) = (self.now, self.left());
        for deed in deeds {
            match deed {
                _ if self.left() == 0 => break,
                Deed::Work(ms) => self.work(*ms),
                Deed::Delegate(helpers) => self.delegate(helpers)?,
            }
        }
        let worked = self.transcript.worked_ms();
        prop_assert_eq!(self.now - began, worked, "its time goes on while others work for it");
        prop_assert!(worked <= most, "{worked} of {most}");
        Ok((self.now, worked))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_below_a_run_outlasts_it_however_deep_and_side_by_side(
        wall_ms in 1..2_000u64, deeds in deeds(),
    ) {
        let root = Worker::begin(Some(wall_ms), None, 0);
        let (ended, worked) = root.live(&deeds)?;
        prop_assert!(ended <= wall_ms && worked <= wall_ms, "{ended} of {wall_ms}");
    }
}

fn said_by(caller: Caller) -> Event {
    Event::MessageReceived(MessageReceived {
        from: Sender::Run(caller),
        message: Message::user("go on"),
        later: false,
        asks: None,
        extra: Extra::default(),
    })
}

#[test]
fn whoever_is_set_to_work_again_has_the_time_that_is_left_to_its_caller_then() {
    let mut worker = Worker::begin(Some(1_000), Some(TimeAtWork::new(70, Some(300))), 0);
    assert_eq!(worker.left(), 300);
    worker.work(1_000);
    assert_eq!((worker.left(), worker.transcript.worked_ms()), (0, 300));
    let bounds = crate::world::bounds(worker.limits.clone());
    let timed_out = Step::Finish(Outcome::timed_out(300, ""));
    assert_eq!(next_step(&worker.transcript, &bounds), timed_out);
    let outcome = Outcome::timed_out(300, "");
    worker.push(Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 300,
        changes: None,
        extra: Extra::default(),
    }));
    let time = TimeAtWork::new(500, Some(40));
    worker.push(said_by(Caller { time, ..Caller::of_run(RunId::from_u128(1)) }));
    assert_eq!(worker.left(), 40);
    // A person who goes on with it gives it its own time.
    let outcome = Outcome::completed("x");
    worker.push(Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 310,
        changes: None,
        extra: Extra::default(),
    }));
    worker.push(Event::MessageReceived(MessageReceived::user("and now?")));
    assert_eq!(worker.left(), 1_000);
}

#[test]
fn what_was_begun_for_an_earlier_message_takes_no_time_from_a_later_one() {
    let mut worker = Worker::begin(Some(1_000), None, 0);
    worker.work(100);
    let run = RunId::from_u128(7);
    worker.push(Event::ChildStarted(Box::new(ChildStarted {
        run,
        call: None,
        announce: Some(Announce::Followup),
        agent: "a".parse().unwrap(),
        label: String::new(),
        resumed: false,
        extra: Extra::default(),
    })));
    worker.push(Event::MessageReceived(MessageReceived::user("something else")));
    assert_eq!(worker.left(), 1_000, "it was idle");
    let told = Announced {
        run,
        announce: Announce::Followup,
        inherited: false,
        kept: false,
        worked_ms: 900,
        extra: Extra::default(),
    };
    let message = Message::user("it has ended");
    let (from, extra) = (Sender::Child(told), Extra::default());
    worker.push(Event::MessageReceived(MessageReceived {
        from,
        message,
        later: false,
        asks: None,
        extra,
    }));
    assert_eq!(worker.left(), 1_000);
}
