//! Messages to the agent, and when the model sees them: part of the fold.

use super::news::News;
use super::{Transcript, weigh};
use crate::calls::CallState;
use posse_protocol::{Announce, Announced, Limits, Message, MessageReceived, Sender, Seq};
use std::sync::Arc;

impl Transcript {
    pub(super) fn receive(&mut self, seq: Seq, received: &MessageReceived) {
        // A new message makes the next call different from the failed one.
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
                let narrows = received.asks.as_ref().and_then(|asks| asks.narrows.clone());
                self.standing.narrowed.extend(narrows);
                self.phase.awake |= idle || !received.later;
                // Who interrupts and then says something does not want what was about to begin.
                if self.phase.interrupted && received.from == Sender::User {
                    for call in self.calls.iter_mut().filter(|call| call.is_fresh()) {
                        call.state = CallState::Abandoned { begun: false, lost: false };
                    }
                }
            }
            Sender::Child(told) => return self.hear(seq, told, &received.message),
            Sender::LimitNear(limit) => self.spent.told.push(*limit),
            Sender::Workspace => {}
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

    /// Converts limits that count from now into limits that count from the beginning of this leg.
    fn as_of_now(&self, limits: Limits) -> Limits {
        let (spent, usage) = (&self.spent, self.leg_usage());
        // A vendor may report any number.
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

    /// How much time the sender of a message has left, if its time is limited.
    fn time_left_to(&self, from: &Sender) -> Option<u64> {
        match from {
            Sender::Run(caller) => caller.time.left_ms,
            // The first message comes from the parent.
            _ if !self.phase.begun => self.started.as_ref()?.parent.as_ref()?.time.left_ms,
            _ => None,
        }
    }

    /// True when no work is under way and the model has nothing to answer.
    fn is_idle(&self) -> bool {
        self.phase.finished.is_some() || !self.has_news() && self.calls_done()
    }

    /// Receives the announcement of a child. It belongs to the present leg and begins no new one.
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

    /// Delivers the collected results in one message.
    pub(super) fn tell_gathered(&mut self, seq: Seq) {
        if let Some((message, of)) = self.awaited.gathered() {
            self.tell_later(News { seq, message, of });
        }
    }

    /// Delivers a message at the end of the present turn, or at once if no turn is under way.
    fn tell_later(&mut self, news: News) {
        if !self.is_idle() {
            self.later.push(news);
            return;
        }
        self.phase.awake = true;
        self.tell(news);
        self.end_turn();
    }

    /// Delivers a message before the next step.
    fn tell(&mut self, news: News) {
        self.weight.since += weigh(&news.message.parts);
        self.inbox.push(news);
    }

    /// Delivers the messages that were waiting for the end of the turn.
    pub(super) fn end_turn(&mut self) {
        for news in std::mem::take(&mut self.later) {
            self.tell(news);
            self.phase.awake = true;
        }
        self.inbox.sort_by_key(|news| news.seq);
    }
}
