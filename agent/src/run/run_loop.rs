//! The steps of the loop: call the model, run tools, compact, finish.

mod heard;
mod tools;

use crate::allowance::CountHeld;
use crate::log_buffer::{Draw, Interrupts, LogBuffer, Watched};
use crate::patience::{RetryState, Waits};
use crate::run::Agent;
use crate::schema::{self, Schema, Verdict};
use crate::step::{Bounds, keep_tokens, reservation, share};
use crate::transcript::{BYTES_PER_TOKEN, Transcript};
use crate::{
    Allowance, DeltaSink, Journal, JournalError, Model, ModelError, Reply, Request, compact,
};
use heard::{Listener, counted};
use posse_protocol::{
    CallId, Charge, Compacted, Delta, Ending, Event, Extra, FailureKind, Limit, Limits, Message,
    MessageReceived, ModelCalled, ModelFailed, ModelReplied, Outcome, Purpose, Remedy, RunFinished,
    Sender, Seq, Share, ToolFinished, ToolOutput, ToolSpec, Usage,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a run waits for budget that other runs hold before it continues without it.
const BUDGET_PATIENCE: Duration = Duration::from_secs(600);
/// How long it waits between two checks: at first, and at most.
const BUDGET_LOOKS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// The state of one call of [`crate::run`].
pub(crate) struct RunLoop<'a> {
    agent: &'a Agent,
    model: &'a Arc<dyn Model>,
    pub(crate) bounds: Bounds,
    pub(crate) log_buffer: LogBuffer<'a>,
    /// The compiled schema, once there was an answer to check.
    schema: Option<Result<Schema, String>>,
    /// Since when the run waits for budget, and how often it has checked.
    without_budget: Option<(Instant, u32)>,
    /// The share of money at the last check.
    money: Option<Share>,
    /// The share when a budget last refused a draw.
    refused: Option<Share>,
}

impl<'a> RunLoop<'a> {
    /// The model that a message asked for, if the agent has a different one.
    pub(crate) fn other_model(&self) -> Option<String> {
        let asked = self.log_buffer.transcript.asked_model.as_ref();
        asked.filter(|asked| **asked != self.agent.model.info().id).cloned()
    }

    pub(crate) async fn begin(
        agent: &'a Agent,
        journal: &'a dyn Journal,
    ) -> Result<Self, JournalError> {
        let log_buffer = LogBuffer::open(journal).await?;
        let model = model_of(agent, &log_buffer.transcript);
        let bounds = Bounds {
            limits: agent.limits.clone(),
            model: model.info().clone(),
            overhead_tokens: overhead_tokens(&agent.system, &agent.offered),
            allowance: Allowance::default(),
            shares_money: false,
        };
        let (schema, without_budget, money, refused) = (None, None, None, None);
        Ok(RunLoop { agent, model, bounds, log_buffer, schema, without_budget, money, refused })
    }

    /// Reads the limits of the run and its allowance from budgets.
    ///
    /// Budgets see only stored events. A reply that is not stored has not given back the reserved
    /// amount of its call, so the reply is stored first.
    pub(crate) async fn take_stock(&mut self) -> Result<(), JournalError> {
        self.bounds.limits = self.log_buffer.transcript.leg_limits(&self.agent.limits);
        if !self.bounds.allowance.is_empty() {
            self.log_buffer.store().await?;
        }
        let allowance = self.log_buffer.allowance().await?;
        let money = allowance.of(Limit::Cost);
        self.bounds.shares_money = money.is_some_and(|share| share.holder != self.agent.run);
        // While other runs give budget back, it is worth waiting.
        if let (Some(money), Some((since, _))) = (money, &mut self.without_budget)
            && self.money.replace(*money) != Some(*money)
        {
            *since = Instant::now();
        }
        self.bounds.allowance = match self.has_waited_enough() {
            true => allowance.without_what_others_hold(),
            false => allowance,
        };
        Ok(())
    }

    /// Waits for other runs to give back budget.
    pub(crate) async fn wait_for_budget(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<(), JournalError> {
        self.give_up_lost_call().await?;
        let (since, looks) = self.without_budget.unwrap_or_else(|| (Instant::now(), 0));
        self.without_budget = Some((since, looks + 1));
        let [first, longest] = BUDGET_LOOKS;
        self.pause((first * 2_u32.pow(looks.min(16))).min(longest), stop).await?;
        Ok(())
    }

    /// Records that a crash cut the call short. Its reserved amount counts as spent, so that no run
    /// waits for it to come back.
    async fn give_up_lost_call(&mut self) -> Result<(), JournalError> {
        let Some(reserved) = self.log_buffer.transcript.reserved().cloned() else { return Ok(()) };
        self.log_buffer.note(Event::ModelFailed(ModelFailed {
            kind: FailureKind::Other,
            reason: "a crash cut the call short".to_owned(),
            usage: reserved.clone(),
            uncertain: Some(reserved),
            remedy: Some(Remedy::retry(0)),
            worked_ms: self.log_buffer.worked_ms(),
            extra: Extra::default(),
        }));
        self.log_buffer.store().await
    }

    /// Stores the queued events and `draws`, unless a budget refuses `draws`.
    async fn draw(&mut self, draws: Vec<Event>) -> Result<Draw, JournalError> {
        if self.bounds.allowance.is_empty() {
            draws.into_iter().for_each(|event| self.log_buffer.note(event));
            self.log_buffer.store().await?;
            return Ok(Draw::Taken);
        }
        let draw = self.log_buffer.draw(draws).await?;
        if draw == Draw::Taken {
            (self.without_budget, self.refused) = (None, None);
        }
        Ok(draw)
    }

    /// The outcome of a run whose draw was refused twice with the same `share`, if nothing will come
    /// back to that budget. Checking again would give the same result.
    pub(crate) fn out_of_budget(&mut self, share: Share) -> Option<Outcome> {
        let before = self.refused.replace(share);
        let is_final = before == Some(share) && (share.held == 0 || self.has_waited_enough());
        let partial = self.log_buffer.transcript.last_text();
        is_final.then(|| Outcome::out_of_budget(share.limit, share.holder, partial))
    }

    fn has_waited_enough(&self) -> bool {
        self.without_budget.is_some_and(|(since, _)| since.elapsed() >= BUDGET_PATIENCE)
    }

    /// Answers calls without running them.
    pub(crate) fn answer(&mut self, calls: Vec<CallId>, ending: Ending, why: &str, by: &str) {
        for call in calls {
            let answer = self.answer_to(call, ToolOutput::error(why), ending, 0);
            self.log_buffer.stand_in(ToolFinished { by: by.to_owned(), ..answer });
        }
        fail::fail_point!("loop.calls.answered");
    }

    /// Sends the agent a message.
    pub(crate) fn tell(&mut self, from: Sender, text: String) {
        self.log_buffer.note(Event::MessageReceived(MessageReceived {
            from,
            message: Message::user(text),
            later: false,
            asks: None,
            extra: Extra::default(),
        }));
    }

    /// Waits until the vendor may be called again. Returns false if an event or `stop` ended the wait early.
    pub(crate) async fn wait_for_provider(
        &mut self,
        after_ms: u64,
        stop: &CancellationToken,
    ) -> Result<bool, JournalError> {
        if after_ms == 0 || self.agent.patience.waits == Waits::Skipped {
            return Ok(true);
        }
        self.pause(Duration::from_millis(after_ms), stop).await
    }

    /// Waits for `length`. Returns false if an event or `stop` ended the wait early.
    async fn pause(
        &mut self,
        length: Duration,
        stop: &CancellationToken,
    ) -> Result<bool, JournalError> {
        self.log_buffer.store().await?;
        let token = CancellationToken::new();
        let pause = tokio::time::sleep(length);
        let work = async {
            tokio::select! {
                () = pause => true,
                () = stop.cancelled() => false,
                () = token.cancelled() => false,
            }
        };
        let waited = self.log_buffer.watch_wait(&self.bounds, &token, work).await?;
        Ok(matches!(waited, Watched::Ended(true)))
    }

    /// Calls the model, if the budgets cover the call.
    pub(crate) async fn call_model(
        &mut self,
        max_tokens: u64,
        reserved: Usage,
        share: Option<u64>,
    ) -> Result<Draw, JournalError> {
        let before = self.log_buffer.interrupts();
        let model = self.model;
        let stored = self.begin_model_call(Purpose::Turn, reserved.clone(), share);
        let (draw, ()) = tokio::join!(stored, async { model.get_ready() });
        let draw = draw?;
        if draw != Draw::Taken {
            return Ok(draw);
        }
        fail::fail_point!("loop.model.called");
        let seen = self.log_buffer.transcript.seq();
        let listener = Listener::default();
        let listen = |delta: Delta| {
            if let Some(delta) = listener.hear(delta) {
                (self.agent.deltas)(delta);
            }
        };
        let request = self.request(self.log_buffer.transcript.messages(), max_tokens);
        let result = self.ask(request, &listen, before).await?;
        fail::fail_point!("loop.model.replied");
        let heard = listener.into_heard();
        let price = &self.bounds.model.price;
        let worked_ms = self.log_buffer.worked_ms();
        let event = match result {
            Ok(reply) => replied(seen, counted(reply, &reserved, price), None, worked_ms),
            Err(ModelError::Cancelled) if self.agent.cut.is_cancelled() => {
                let (model, reason) =
                    (self.bounds.model.id.clone(), "its process ended".to_owned());
                let error = ModelError::Cut { model, reason };
                let charge = heard.charge(&error, &reserved, price);
                failed(&error, error.to_string(), &charge, Some(Remedy::retry(0)), worked_ms)
            }
            Err(error @ ModelError::Cancelled) if !heard.text.trim().is_empty() => {
                let charge = heard.charge(&error, &reserved, price);
                let uncertain = charge.is_uncertain().then_some(charge.uncertain);
                replied(seen, heard.into_reply(charge.known), uncertain, worked_ms)
            }
            Err(error) => {
                let charge = heard.charge(&error, &reserved, price);
                let remedy = self.remedy(&error);
                // With a fallback, the run does not wait for this model.
                let too_long = match remedy {
                    None => self.agent.patience.too_long(&error, self.trouble()),
                    Some(_) => None,
                };
                let reason = error.to_string() + &too_long.unwrap_or_default();
                failed(&error, reason, &charge, remedy, worked_ms)
            }
        };
        self.log_buffer.note(event);
        self.model = model_of(self.agent, &self.log_buffer.transcript);
        if self.bounds.model.id != self.model.info().id {
            self.bounds.model = self.model.info().clone();
        }
        Ok(Draw::Taken)
    }

    /// The retries since the last reply.
    fn trouble(&self) -> RetryState {
        let phase = &self.log_buffer.transcript.phase;
        let waited = Duration::from_millis(phase.waited_ms);
        RetryState { run: self.agent.run, retries: phase.retries, waited }
    }

    /// What to do after a failed call: retry, fall back, or neither.
    fn remedy(&self, error: &ModelError) -> Option<Remedy> {
        let trouble = self.trouble();
        if let Some(wait) = self.agent.patience.wait_after(error, trouble) {
            let of = self.agent.patience.retries_after(error);
            return Some(Remedy::retry_of(wait.as_millis() as u64, trouble.retries + 1, of));
        }
        if is_cancelled(error) || matches!(error, ModelError::ContextOverflow { .. }) {
            return None;
        }
        let models = std::iter::once(&self.agent.model).chain(&self.agent.fallbacks);
        let mut after = models.skip_while(|model| model.info().id != self.bounds.model.id);
        Some(Remedy::fallback(&after.nth(1)?.info().id))
    }

    /// Stores the intent to call the model, before the call.
    async fn begin_model_call(
        &mut self,
        purpose: Purpose,
        reserved: Usage,
        share: Option<u64>,
    ) -> Result<Draw, JournalError> {
        let model = self.bounds.model.id.clone();
        let called = ModelCalled { reserved, purpose, model, share, extra: Extra::default() };
        self.draw(vec![Event::ModelCalled(called)]).await
    }

    fn request(&self, messages: Vec<Arc<Message>>, max_tokens: u64) -> Request {
        Request {
            system: self.agent.system.clone(),
            messages,
            tools: self.agent.offered.clone(),
            max_tokens,
            effort: self.agent.effort,
            output_schema: self.agent.output_schema.clone(),
        }
    }

    /// Sends a request. Cancels it on cancel requests since `before` and when the time is up.
    async fn ask(
        &mut self,
        request: Request,
        deltas: DeltaSink<'_>,
        before: Interrupts,
    ) -> Result<Result<Reply, ModelError>, JournalError> {
        // The run was paused while the intent was stored. Nothing has been sent yet.
        if self.log_buffer.interrupts() > before || self.log_buffer.transcript.phase.paused {
            return Ok(Err(ModelError::NotSent));
        }
        let token = self.agent.cut.child_token();
        let work = self.model.call(request, deltas, &token);
        Ok(match self.log_buffer.watch(&self.bounds, &token, work).await? {
            Watched::Ended(result) => result,
            Watched::Dropped => Err(ModelError::Cancelled),
        })
    }

    pub(crate) async fn compact(&mut self) -> Result<(), JournalError> {
        self.log_buffer.store().await?;
        let transcript = &self.log_buffer.transcript;
        let keep = keep_tokens(transcript, &self.bounds);
        let before = transcript.compactable_before(keep).unwrap_or(transcript.seq().next());
        // The request for a summary must fit into the context window, too. The transcript stays as it is.
        let share = share(transcript, &self.bounds);
        let all = transcript.messages_with(share);
        let request = tokens(compact::REQUEST.len());
        let input = transcript.request_tokens(self.bounds.overhead_tokens, share) + request;
        let max_tokens = self.bounds.model.max_output.min(4_096);
        let reserved = reservation(&self.bounds.model.price, input, max_tokens);
        let limits = self.bounds.allowance.within(&self.bounds.limits, transcript, CountHeld::Now);
        let before_call = self.log_buffer.interrupts();
        let listener = Listener::default();
        let (summary, by_model, charge) = if may_spend(transcript, &limits, &reserved)
            && self.begin_model_call(Purpose::Compaction, reserved.clone(), None).await?
                == Draw::Taken
        {
            fail::fail_point!("loop.compact.called");
            let mut messages = all.clone();
            messages.push(Arc::new(Message::user(compact::REQUEST)));
            // A summary is text, even if the final answer must be JSON.
            let request = Request { output_schema: None, ..self.request(messages, max_tokens) };
            let listen = |delta: Delta| drop(listener.hear(delta));
            let result = self.ask(request, &listen, before_call).await?;
            fail::fail_point!("loop.compact.replied");
            match result {
                Ok(reply) => {
                    let reply = counted(reply, &reserved, &self.bounds.model.price);
                    let charge = Charge { known: reply.usage, uncertain: Usage::default() };
                    match reply.message.text() {
                        text if text.trim().is_empty() => (compact::extract(&all), false, charge),
                        text => (text, true, charge),
                    }
                }
                Err(error) => {
                    let price = &self.bounds.model.price;
                    let charge = listener.into_heard().charge(&error, &reserved, price);
                    (compact::extract(&all), false, charge)
                }
            }
        } else {
            (compact::extract(&all), false, Charge::default())
        };
        let worked_ms = self.log_buffer.worked_ms();
        self.log_buffer.note(Event::Compacted(Box::new(Compacted {
            before,
            summary: compact::framed(&summary),
            by_model,
            usage: charge.total(),
            uncertain: told(&charge),
            worked_ms,
            extra: Extra::default(),
        })));
        self.log_buffer.store().await
    }

    /// Decides whether the run may end with `outcome`. Its answer must follow the schema, if there is one.
    pub(crate) fn judge(&mut self, outcome: Outcome) -> Verdict {
        let (Some(schema), Outcome::Completed { output, .. }) =
            (&self.agent.output_schema, &outcome)
        else {
            return Verdict::Finish(outcome);
        };
        let schema = self.schema.get_or_insert_with(|| Schema::compile(schema));
        schema::judge(schema, output, self.log_buffer.transcript.spent.misfits)
    }

    pub(crate) async fn finish(&mut self, outcome: &Outcome) -> Result<bool, JournalError> {
        let worked_ms = self.log_buffer.worked_ms();
        let extra = Extra::default();
        let finished = RunFinished { outcome: outcome.clone(), worked_ms, changes: None, extra };
        self.log_buffer.conclude(Event::RunFinished(finished)).await
    }
}

fn replied(seen: Seq, reply: Reply, uncertain: Option<Usage>, worked_ms: u64) -> Event {
    Event::ModelReplied(Box::new(ModelReplied {
        seen,
        message: reply.message,
        stop: reply.stop,
        usage: reply.usage,
        uncertain,
        request_id: reply.request_id,
        service_tier: reply.service_tier,
        rate_limits: reply.rate_limits,
        worked_ms,
        extra: Extra::default(),
    }))
}

/// The model in use.
fn model_of<'a>(agent: &'a Agent, transcript: &Transcript) -> &'a Arc<dyn Model> {
    let in_use = |model: &&Arc<dyn Model>| transcript.model() == Some(model.info().id.as_str());
    agent.fallbacks.iter().find(in_use).unwrap_or(&agent.model)
}

/// The uncertain part of a charge for the log; `None` if the whole charge is zero.
fn told(charge: &Charge) -> Option<Usage> {
    (charge.total() != Usage::default()).then(|| charge.uncertain.clone())
}

fn is_cancelled(error: &ModelError) -> bool {
    matches!(error, ModelError::Cancelled | ModelError::NotSent)
}

fn failed(
    error: &ModelError,
    reason: String,
    charge: &Charge,
    remedy: Option<Remedy>,
    worked_ms: u64,
) -> Event {
    let kind = match error {
        ModelError::ContextOverflow { .. } => FailureKind::ContextOverflow,
        error if is_cancelled(error) => FailureKind::Cancelled,
        _ => FailureKind::Other,
    };
    let extra = Extra::default();
    let (usage, uncertain) = (charge.total(), told(charge));
    Event::ModelFailed(ModelFailed { kind, reason, usage, uncertain, remedy, worked_ms, extra })
}

/// True when a call that spends at most `reserved` stays within `limits`.
fn may_spend(transcript: &Transcript, limits: &Limits, reserved: &Usage) -> bool {
    let after = transcript.leg_usage() + reserved;
    limits.input_tokens.is_none_or(|limit| after.all_input_tokens() <= limit)
        && limits.output_tokens.is_none_or(|limit| after.output_tokens <= limit)
        && limits.cost.is_none_or(|limit| after.cost <= limit)
}

/// Estimated tokens of the instructions and tools in every request, on the high side.
fn overhead_tokens(system: &str, tools: &[ToolSpec]) -> u64 {
    let schemas = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.schema.text().len() + 40);
    tokens(system.len() + schemas.sum::<usize>())
}

/// Estimated tokens of `bytes` bytes of text, on the high side.
fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}
