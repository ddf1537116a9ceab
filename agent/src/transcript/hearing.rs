//! What is said to the agent, and when it sees it: part of the fold.

use super::news::News;
use super::{Transcript, weigh};
use posse_protocol::{Announce, Announced, Limits, Message, MessageReceived, Sender, Seq};
use std::sync::Arc;

impl Transcript {
    pub(super) fn receive(&mut self, seq: Seq, received: &MessageReceived) {
        // What is asked now is not what the call that failed has asked.
        self.phase.again &= received.is_only_recorded();
        let idle = self.is_idle();
        if let Some(asks) = &received.asks {
            self.phase.asked_to_compact |= asks.compact;
            if asks.model.is_some() {
                self.asked_model.clone_from(&asks.model);
                self.fallback = None;
            }
        }
        match &received.from {
            Sender::User | Sender::Run(_) => {
                let limits = received.asks.as_ref().and_then(|asks| asks.limits.clone());
                if idle {
                    self.begin_leg(self.time_left_to(&received.from));
                    self.phase.leg_limits = limits;
                } else if let Some(limits) = limits {
                    self.phase.leg_limits = Some(self.as_of_now(limits));
                }
                self.phase.awake |= idle || !received.later;
            }
            Sender::Child(told) => return self.hear(seq, told, &received.message),
            Sender::LimitNear(limit) => self.spent.told.push(*limit),
            Sender::Misfit => {
                self.spent.misfits += 1;
                self.phase.awake = true;
            }
        }
        let news = News::said(seq, received.message.clone());
        match received.later && !idle {
            true => self.later.push(news),
            false => self.tell(news),
        }
        if idle {
            self.end_turn();
        }
    }

    /// Limits that count from now on, as limits that count from the beginning of this leg.
    fn as_of_now(&self, limits: Limits) -> Limits {
        let (spent, usage) = (&self.spent, self.leg_usage());
        // A provider may report any number.
        let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
        let sent = usage.input_tokens.saturating_add(cached);
        Limits {
            turns: limits.turns.map(|most| most.saturating_add(spent.turns)),
            tool_calls: limits.tool_calls.map(|most| most.saturating_add(spent.tool_calls)),
            input_tokens: limits.input_tokens.map(|most| most.saturating_add(sent)),
            output_tokens: limits
                .output_tokens
                .map(|most| most.saturating_add(usage.output_tokens)),
            cost: limits.cost.map(|most| most + usage.cost),
            wall_ms: limits.wall_ms.map(|most| most.saturating_add(self.leg_ms())),
            written_bytes: limits
                .written_bytes
                .map(|most| most.saturating_add(spent.written_bytes)),
            extra: limits.extra,
        }
    }

    /// How much time is left to whoever says something that sets the agent to work, if it is limited.
    fn time_left_to(&self, from: &Sender) -> Option<u64> {
        match from {
            Sender::Run(caller) => caller.time.left_ms,
            // What it is told first comes from its parent.
            _ if !self.phase.begun => self.started.as_ref()?.parent.as_ref()?.time.left_ms,
            _ => None,
        }
    }

    /// Nothing is under way, and the model has nothing to answer.
    fn is_idle(&self) -> bool {
        self.phase.finished.is_some() || !self.has_news() && self.calls_done()
    }

    /// The end of another run. It is part of the work that is under way, and begins none.
    fn hear(&mut self, seq: Seq, told: &Announced, message: &Message) {
        if told.announce == Announce::Silent {
            return;
        }
        let message = Arc::new(message.clone());
        if self.awaited.ended(told.run) {
            self.worked(told.worked_ms);
        }
        if told.kept {
            self.later.push(News::result(seq, message, told.run));
            return;
        }
        match told.announce {
            Announce::Collect if !told.inherited => {
                self.awaited.gather(told.run, message);
                if !self.awaited.gathers_more() {
                    self.tell_gathered(seq);
                }
            }
            Announce::Steer => {
                let idle = self.is_idle();
                self.phase.awake = true;
                self.tell(News::result(seq, message, told.run));
                if idle {
                    self.end_turn();
                }
            }
            _ => self.tell_later(News::result(seq, message, told.run)),
        }
    }

    /// What was gathered is told, in one message.
    pub(super) fn tell_gathered(&mut self, seq: Seq) {
        if let Some((message, of)) = self.awaited.gathered() {
            self.tell_later(News { seq, message, of });
        }
    }

    /// Tells something when the present turn ends: at once, if none is under way.
    fn tell_later(&mut self, news: News) {
        if !self.is_idle() {
            self.later.push(news);
            return;
        }
        self.phase.awake = true;
        self.tell(news);
        self.end_turn();
    }

    /// Tells something before the next step.
    fn tell(&mut self, news: News) {
        self.weight.since += weigh(&news.message.parts);
        self.inbox.push(news);
    }

    /// What was to wait for the end of the turn is told now.
    pub(super) fn end_turn(&mut self) {
        for news in std::mem::take(&mut self.later) {
            self.tell(news);
            self.phase.awake = true;
        }
        self.inbox.sort_by_key(|news| news.seq);
    }
}
