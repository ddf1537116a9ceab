//! Makes logs as runs make them: a dice-driven model, tools that return, pend or die, and people
//! who write and cancel at any moment.

use posse_agent::protocol::*;
use posse_agent::{Allowance, Bounds, ModelInfo, Step, Transcript, digest, next_step};
use serde_json::json;

/// A source of decisions that a property test can shrink.
pub struct Dice<'a> {
    rolls: std::slice::Iter<'a, u8>,
}

impl<'a> Dice<'a> {
    pub fn new(rolls: &'a [u8]) -> Self {
        Dice { rolls: rolls.iter() }
    }

    /// A number below `sides`, or `None` when there are no more.
    pub fn roll(&mut self, sides: u8) -> Option<u8> {
        self.rolls.next().map(|roll| roll % sides)
    }
}

pub fn bounds(limits: Limits) -> Bounds {
    let model = ModelInfo {
        id: "test/model".into(),
        context_window: 2_000,
        max_output: 500,
        price: Price { input: 3, cache_read: 1, cache_write: 4, output: 15 },
    };
    Bounds {
        limits,
        model,
        overhead_tokens: 100,
        allowance: Allowance::default(),
        shares_money: false,
    }
}

#[derive(Debug)]
pub struct World {
    pub records: Vec<Record>,
    pub transcript: Transcript,
    pub bounds: Bounds,
    calls: u32,
    /// Runs at work for this one, and how their ends are told.
    children: Vec<(RunId, Announce)>,
}

impl World {
    pub fn new(session: bool, limits: Limits) -> Self {
        let agent = AgentSpec::new("a".parse().unwrap());
        let started = RunStarted {
            fallbacks: vec!["test/other".into()],
            limits: limits.clone(),
            session,
            ..RunStarted::new(agent, "test/model", Grant::default())
        };
        let mut world = World {
            records: Vec::new(),
            transcript: Transcript::default(),
            bounds: bounds(limits),
            calls: 0,
            children: Vec::new(),
        };
        world.push(Event::from(started));
        world.say("begin");
        world
    }

    pub fn push(&mut self, event: Event) -> Seq {
        let seq = Seq(self.records.len() as u64 + 1);
        self.transcript.apply(seq, &event);
        let run = RunId::from_u128(1);
        self.records.push(Record { run, seq, at: 0, version: 1, event, extra: Extra::default() });
        seq
    }

    pub fn say(&mut self, text: &str) {
        self.push(Event::MessageReceived(MessageReceived::user(text)));
    }

    pub fn next(&self) -> Step {
        next_step(&self.transcript, &self.bounds)
    }

    fn worked(&self) -> u64 {
        self.records.len() as u64 * 10
    }

    /// Lets the dice decide what happens next. Returns whether something did: nothing follows an
    /// archiving.
    pub fn play(&mut self, dice: &mut Dice<'_>) -> bool {
        if matches!(self.records.last(), Some(Record { event: Event::Archived(_), .. })) {
            return false;
        }
        let Some(roll) = dice.roll(16) else { return false };
        let ended = matches!(self.next(), Step::Done(_));
        match roll {
            0 => self.say("and another thing"),
            1 if !ended => self.cancel(CancelScope::Turn),
            2 if !ended && dice.roll(4) == Some(0) => self.cancel(CancelScope::Run),
            3 if ended => _ = self.push(Event::Archived(Archived::default())),
            4 | 5 if !ended => self.child_starts(dice),
            6 | 7 if !ended => self.child_ends(dice),
            8 if !ended && dice.roll(3) == Some(0) => self.pause(),
            _ => return self.step(dice),
        }
        true
    }

    fn child_starts(&mut self, dice: &mut Dice<'_>) {
        let announce = Announce::ALL[usize::from(dice.roll(4).unwrap_or(0))];
        self.start_child(announce);
    }

    /// Another run begins to work for this one.
    pub fn start_child(&mut self, announce: Announce) -> RunId {
        let run = RunId::from_u128(1_000 + self.records.len() as u128);
        self.push(Event::ChildStarted(Box::new(ChildStarted {
            run,
            call: None,
            announce: Some(announce),
            agent: "explore".parse().unwrap(),
            label: "look".into(),
            resumed: false,
            extra: Extra::default(),
        })));
        self.children.push((run, announce));
        run
    }

    fn child_ends(&mut self, dice: &mut Dice<'_>) {
        if self.children.is_empty() {
            return;
        }
        let index = usize::from(dice.roll(255).unwrap_or(0)) % self.children.len();
        let run = self.children[index].0;
        self.end_child(run);
        if dice.roll(4) == Some(0) {
            self.quiet();
        }
    }

    /// `run` ends, and this one is told.
    pub fn end_child(&mut self, run: RunId) -> Seq {
        self.end_child_with(run, format!("{run} has ended"))
    }

    /// The same, with what it has to say.
    pub fn end_child_with(&mut self, run: RunId, text: String) -> Seq {
        let index = self.children.iter().position(|(child, _)| *child == run).unwrap();
        let (run, announce) = self.children.remove(index);
        let told = Announced {
            run,
            announce,
            inherited: false,
            kept: false,
            worked_ms: 0,
            extra: Extra::default(),
        };
        self.push(Event::MessageReceived(MessageReceived {
            from: Sender::Child(told),
            message: Message::user(text),
            later: false,
            asks: None,
            extra: Extra::default(),
        }))
    }

    /// No child has ended for a while.
    pub fn quiet(&mut self) {
        let extra = Extra::default();
        self.push(Event::TimePassed(TimePassed { worked_ms: 0, quiet: true, extra }));
    }

    fn pause(&mut self) {
        let by = || "someone".to_owned();
        self.push(Event::Paused(Paused { by: by(), interrupted: false, extra: Extra::default() }));
        self.push(Event::Resumed(Resumed { by: by(), extra: Extra::default() }));
    }

    pub fn cancel(&mut self, scope: CancelScope) {
        let by = "someone".to_owned();
        self.push(Event::CancelRequested(CancelRequested { by, scope, extra: Extra::default() }));
    }

    /// What the loop would do, with the dice as model and tools. A roll may end it in the middle:
    /// the process died.
    pub fn step(&mut self, dice: &mut Dice<'_>) -> bool {
        match self.next() {
            Step::CallModel { reserved, share, .. } => self.model_call(reserved, share, dice),
            Step::CallTools(calls) => self.run_tools(&calls, dice),
            Step::Answer { calls, ending, why, .. } => {
                for call in calls {
                    self.finish_call(call, ending, ToolOutput::error(why.clone()));
                }
            }
            Step::Tell { limit, text } => {
                self.push(Event::MessageReceived(MessageReceived {
                    from: Sender::LimitNear(limit),
                    message: Message::user(text),
                    later: false,
                    asks: None,
                    extra: Extra::default(),
                }));
            }
            Step::Compact => self.compact(),
            Step::Finish(outcome) => {
                let worked_ms = self.worked();
                let extra = Extra::default();
                self.push(Event::RunFinished(RunFinished {
                    outcome,
                    worked_ms,
                    changes: None,
                    extra,
                }));
            }
            Step::Wait | Step::WaitForBudget => return self.someone_answers(),
            Step::Done(_) => self.say("once more"),
        }
        true
    }

    fn model_call(&mut self, reserved: Usage, share: Option<u64>, dice: &mut Dice<'_>) {
        let purpose = Purpose::Turn;
        self.push(Event::ModelCalled(ModelCalled {
            reserved,
            purpose,
            model: String::new(),
            share,
            extra: Extra::default(),
        }));
        let seen = self.transcript.seq();
        let again = Remedy::retry(10);
        let other = Remedy::fallback("test/other");
        match dice.roll(12) {
            None | Some(0) => {} // died
            Some(1) => self.model_failed(FailureKind::Cancelled, None),
            Some(2) => self.model_failed(FailureKind::ContextOverflow, None),
            Some(3) => self.model_failed(FailureKind::Other, None),
            Some(5) => self.model_failed(FailureKind::Other, Some(again)),
            Some(6) => self.model_failed(FailureKind::Other, Some(other)),
            Some(4) => {
                self.say("while you think");
                self.model_reply(seen, dice);
            }
            Some(_) => self.model_reply(seen, dice),
        }
    }

    pub fn model_failed(&mut self, kind: FailureKind, remedy: Option<Remedy>) {
        let worked_ms = self.worked();
        let (reason, usage) = ("no".to_owned(), Usage::default());
        let extra = Extra::default();
        self.push(Event::ModelFailed(ModelFailed {
            kind,
            reason,
            usage,
            uncertain: None,
            remedy,
            worked_ms,
            extra,
        }));
    }

    pub fn model_reply(&mut self, seen: Seq, dice: &mut Dice<'_>) {
        self.reply_to(seen, dice.roll(4).unwrap_or(0).into());
    }

    /// A reply to all there is, with so many calls.
    pub fn reply_with_calls(&mut self, calls: usize) {
        self.reply_to(self.transcript.seq(), calls);
    }

    /// A reply to what there was up to `seen`, with so many calls.
    pub fn reply_to(&mut self, seen: Seq, calls: usize) {
        let mut parts = vec![Part::text(format!("text {}", self.records.len()))];
        for _ in 0..calls {
            self.calls += 1;
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(format!("call-{}", self.calls)),
                name: "Read".into(),
                input: json!({"file_path": "a"}),
                extra: Extra::default(),
            }));
        }
        let stop = if parts.len() > 1 { Stop::ToolUse } else { Stop::End };
        let input_tokens = 40 * self.transcript.messages().len() as u64;
        let usage = Usage { input_tokens, output_tokens: 20, cost: Usd(100), ..Usage::default() };
        self.push(Event::ModelReplied(Box::new(ModelReplied {
            seen,
            message: Message::new(Role::Assistant, parts),
            stop,
            usage,
            uncertain: None,
            request_id: None,
            service_tier: None,
            rate_limits: None,
            worked_ms: self.worked(),
            extra: Extra::default(),
        })));
    }

    fn run_tools(&mut self, calls: &[ToolCall], dice: &mut Dice<'_>) {
        let mut open: Vec<&ToolCall> = Vec::new();
        for call in calls {
            match dice.roll(10) {
                // A person is asked about some, once.
                Some(9) if self.may_ask(call) => self.ask_about(call),
                roll => {
                    self.start_call(call.id.clone(), roll.is_some_and(|roll| roll % 2 == 0));
                    open.push(call);
                }
            }
        }
        // Results come in any order, some never.
        while let Some(call) = open.pop() {
            match dice.roll(8) {
                None | Some(0) => return, // died
                Some(1) => self.leave_pending(call.id.clone()),
                Some(2) => {
                    self.say("while a tool runs");
                    open.insert(0, call);
                }
                Some(_) => self.finish_call(
                    call.id.clone(),
                    Ending::Returned,
                    ToolOutput { written_bytes: 100, ..ToolOutput::text("result ".repeat(20)) },
                ),
            }
        }
    }

    /// Nobody is asked twice, nor about what was let run before its process died.
    fn may_ask(&self, call: &ToolCall) -> bool {
        self.records.iter().all(|record| match &record.event {
            Event::ApprovalAsked(asked) => asked.call != call.id,
            Event::ToolStarted(started) => started.call != call.id,
            _ => true,
        })
    }

    /// A person is asked about `call`.
    pub fn ask_about(&mut self, call: &ToolCall) {
        self.push(Event::ApprovalAsked(Box::new(ApprovalAsked {
            call: call.id.clone(),
            tool: "Read".into(),
            digest: digest(call),
            shown: "a".into(),
            by: "mode ask".into(),
            rule: None,
            extra: Extra::default(),
        })));
    }

    /// A person says something about the question `digest`.
    pub fn decide(&mut self, call: CallId, digest: String, answer: Approval) {
        let (by, extra) = ("someone".to_owned(), Extra::default());
        self.push(Event::ApprovalGiven(ApprovalGiven { call, digest, answer, by, extra }));
    }

    pub fn start_call(&mut self, call: CallId, repeatable: bool) {
        let (tool, extra) = ("Read".to_owned(), Extra::default());
        self.push(Event::ToolStarted(ToolStarted {
            call,
            tool,
            repeatable,
            by: String::new(),
            extra,
        }));
    }

    pub fn leave_pending(&mut self, call: CallId) {
        let (waits_for, extra) = ("someone".to_owned(), Extra::default());
        self.push(Event::ToolPending(ToolPending { call, waits_for, extra }));
    }

    pub fn finish_call(&mut self, call: CallId, ending: Ending, output: ToolOutput) {
        let worked_ms = self.worked();
        let extra = Extra::default();
        let by = String::new();
        let finished = ToolFinished { call, output, ending, by, took_ms: 1, worked_ms, extra };
        self.push(Event::ToolFinished(finished));
    }

    fn compact(&mut self) {
        let before = self.transcript.compactable_before(500).unwrap_or(Seq(u64::MAX));
        let reserved = Usage { input_tokens: 10, ..Usage::default() };
        let purpose = Purpose::Compaction;
        self.push(Event::ModelCalled(ModelCalled {
            reserved,
            purpose,
            model: String::new(),
            share: None,
            extra: Extra::default(),
        }));
        self.push(Event::Compacted(Box::new(Compacted {
            before,
            summary: "what was".into(),
            by_model: true,
            usage: Usage::default(),
            uncertain: None,
            worked_ms: self.worked(),
            extra: Extra::default(),
        })));
    }

    /// Whoever owes the result of a pending call appends it; else someone writes.
    fn someone_answers(&mut self) -> bool {
        let question = self.transcript.questions().next();
        if let Some((call, digest)) =
            question.map(|(call, digest)| (call.clone(), digest.to_owned()))
        {
            let answer = match self.records.len() % 3 {
                0 => Approval::Denied { reason: String::new() },
                1 => Approval::Run { rule: "Read".into() },
                _ => Approval::Once,
            };
            self.decide(call, digest, answer);
            return true;
        }
        let pending: Vec<CallId> = pending_calls(&self.records);
        match pending.first() {
            Some(call) => {
                self.finish_call(call.clone(), Ending::Returned, ToolOutput::text("late"));
            }
            None => match self.children.first() {
                Some((run, _)) => _ = self.end_child(*run),
                None => self.say("go on"),
            },
        }
        true
    }
}

/// Calls that pend by the log alone.
fn pending_calls(records: &[Record]) -> Vec<CallId> {
    let mut pending = Vec::new();
    for record in records {
        match &record.event {
            Event::ToolPending(event) => pending.push(event.call.clone()),
            Event::ToolFinished(event) => pending.retain(|call| *call != event.call),
            _ => {}
        }
    }
    pending
}
