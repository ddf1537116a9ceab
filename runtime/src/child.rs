//! Children: which runs may start them, and their place in the tree.

pub(crate) mod context;
pub(crate) mod rules;

use crate::error::Error;
use crate::runtime::Runtime;
use posse_agent::Transcript;
use posse_protocol::{
    AgentName, AgentSpec, Announce, Budget, CallId, Caller, ChildStarted, DelegationStrategy,
    Event, Extra, Limit, Offer, Parent, RunId, RunStarted, Seq, TimeAtWork,
};
use posse_store::{Append, Filter, RunRow, StoreError};
use std::path::Path;
use std::sync::Arc;

/// The parent of a run that is about to start.
pub(crate) struct Above {
    pub(crate) run: RunId,
    /// The call that waits for the child.
    pub(crate) call: Option<CallId>,
    /// How the child's end is announced if no call waits.
    pub(crate) announce: Option<Announce>,
    /// How long the parent has worked, and how long it may continue.
    pub(crate) time: TimeAtWork,
    pub(crate) started: Arc<RunStarted>,
}

/// Why a run that began as `started` has no agents to call.
pub(crate) fn deepest(started: &RunStarted) -> String {
    if started.agent.children.agents.as_ref().is_some_and(Vec::is_empty) {
        return "its definition names no agent that it may call".to_owned();
    }
    let depth = started.parent.as_ref().map_or(0, |parent| parent.ancestors.len());
    format!("it stands at depth {depth}, and its tree goes no deeper than {depth}")
}

impl Above {
    /// The priority of a child in the queue, unless the call sets another.
    pub(crate) fn priority(&self) -> i32 {
        self.started.priority
    }

    pub(crate) fn link(&self) -> Parent {
        let mut ancestors = self.ancestors().to_vec();
        ancestors.push(self.run);
        let account = match self.started.grant.budget.is_empty() {
            false => Some(self.run),
            true => self.started.parent.as_ref().and_then(|parent| parent.account),
        };
        Parent {
            run: self.run,
            call: self.call.clone(),
            announce: self.announce,
            account,
            limited: self.limited().collect(),
            abreast: self.started.agent.children.subagents.max_concurrent,
            time: self.time.clone(),
            ancestors,
            extra: Extra::default(),
        }
    }

    /// What budgets limit for the subagents of this run.
    fn limited(&self) -> impl Iterator<Item = Limit> {
        let above = self.started.parent.as_ref().map_or(&[][..], |parent| &parent.limited);
        let own = &self.started.grant.budget;
        Budget::DIMENSIONS
            .into_iter()
            .filter(move |limit| own.of(*limit).is_some() || above.contains(limit))
    }

    /// True when a budget limits `limit` for the subagents of this run.
    pub(crate) fn limits(&self, limit: Limit) -> bool {
        self.limited().any(|limited| limited == limit)
    }

    /// The runs above this one.
    fn ancestors(&self) -> &[RunId] {
        self.started.parent.as_ref().map_or(&[], |parent| &parent.ancestors)
    }

    pub(crate) fn depth_left(&self) -> u32 {
        self.started.grant.delegation.as_ref().map_or(0, |delegation| delegation.depth)
    }

    pub(crate) fn strategy(&self) -> Option<DelegationStrategy> {
        self.started.grant.delegation.as_ref().map(|delegation| delegation.strategy)
    }

    /// The agents that it may call.
    pub(crate) fn on_offer(&self) -> &[Offer] {
        self.started.grant.delegation.as_ref().map_or(&[], |delegation| &delegation.agents)
    }

    fn offer(&self, name: &AgentName) -> Option<&Offer> {
        let same = |offer: &&Offer| offer.name.as_str().eq_ignore_ascii_case(name.as_str());
        self.on_offer().iter().find(same)
    }

    /// The agent `name` as it was when this run began, if the agent is not defined in a file.
    pub(crate) fn given(&self, name: &AgentName) -> Option<&AgentSpec> {
        self.offer(name)?.agent.as_deref()
    }

    pub(crate) fn check_may_call(&self, name: &AgentName) -> Result<(), Error> {
        let own = &self.started.agent.name;
        let Some(delegation) = &self.started.grant.delegation else {
            return Err(Error::InvalidInput(format!(
                "`{own}` may not hand work to others: {}; `maxDepth` of the agent at the top says how \
                 deep a tree may be",
                deepest(&self.started)
            )));
        };
        if self.offer(name).is_none() {
            let known = delegation.agents.iter().map(|offer| offer.name.to_string()).collect();
            return Err(Error::UnknownAgent { name: name.clone(), known });
        }
        Ok(())
    }

    /// Refuses a folder outside of the run's workspace.
    pub(crate) fn check_within(&self, workspace: &str) -> Result<(), Error> {
        let own = &self.started.grant.workspace;
        if Path::new(workspace).starts_with(own) {
            return Ok(());
        }
        Err(Error::InvalidInput(format!(
            "a child works in its parent's folder or below it: {workspace} is outside of {own}"
        )))
    }

    /// Appends to store together with a child, new or `resumed`: the event in the parent's log, and
    /// checks that no run above is being cancelled.
    pub(crate) fn beside(
        &self,
        child: RunId,
        agent: &AgentName,
        label: &str,
        resumed: bool,
    ) -> Vec<Append> {
        let started = Event::ChildStarted(Box::new(ChildStarted {
            run: child,
            call: self.call.clone(),
            announce: self.announce,
            agent: agent.clone(),
            label: label.to_owned(),
            resumed,
            extra: Extra::default(),
        }));
        let mut beside = vec![Append::by_anyone(self.run, started)];
        beside.extend(self.ancestors().iter().map(|run| Append::while_open(*run)));
        beside
    }
}

impl Runtime {
    /// The calling run, as the parent of a new run.
    pub(crate) async fn above(&self, caller: &Caller) -> Result<Above, Error> {
        let (run, call, announce) = (caller.run, caller.call.clone(), caller.announce);
        let started = self.localised(run, self.start_of(run).await?);
        let mut time = caller.time.clone();
        if started.limits.wall_ms.is_some() {
            let records = self.read(run, Seq::ZERO, usize::MAX).await?;
            time = Transcript::of(&records).time(&started.limits);
        }
        Ok(Above { run, call, announce, time, started })
    }

    /// The first event of `run`.
    pub(crate) async fn start_of(&self, run: RunId) -> Result<Arc<RunStarted>, Error> {
        match self.read(run, Seq::ZERO, 1).await?.pop().map(|record| record.event) {
            Some(Event::RunStarted(started)) => Ok(started),
            _ => Err(Error::Store(StoreError::NotFound(run))),
        }
    }

    pub(crate) async fn row(&self, run: RunId) -> Result<Option<RunRow>, Error> {
        let filter = Filter { id: Some(run), limit: 1, ..Filter::default() };
        Ok(self.list(&filter).await?.pop())
    }

    /// The ancestor that makes a run below it stop, in words, if any: one that is being cancelled
    /// or ended without completing. An ancestor that completed counts only if no nearer ancestor is
    /// a background child, because nothing above a background child waits for it.
    pub(crate) async fn forsaken(&self, parent: &Parent) -> Result<Option<String>, Error> {
        let mut is_awaited = true;
        for run in parent.ancestors.iter().rev() {
            let Some(row) = self.row(*run).await? else { continue };
            let has_ended = match row.has_completed() {
                true => is_awaited,
                false => row.state.stopping || row.state.outcome.is_some(),
            };
            is_awaited &= !row.family.background;
            if has_ended {
                return Ok(Some(format!(
                    "its caller ({}), which does not wait any more",
                    row.about.agent
                )));
            }
        }
        Ok(None)
    }
}
