//! Children: who may start them, and where they stand.

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

/// The run on whose behalf another is started.
pub(crate) struct Above {
    pub(crate) run: RunId,
    /// The call that waits.
    pub(crate) call: Option<CallId>,
    /// How the end is told if none does.
    pub(crate) announce: Option<Announce>,
    /// How it stands with its time.
    pub(crate) time: TimeAtWork,
    pub(crate) started: Arc<RunStarted>,
}

/// Why a run that began as `started`, and has nobody to hand work to, has nobody.
pub(crate) fn deepest(started: &RunStarted) -> String {
    if started.agent.children.agents.as_ref().is_some_and(Vec::is_empty) {
        return "its definition names no agent that it may call".to_owned();
    }
    let depth = started.parent.as_ref().map_or(0, |parent| parent.ancestors.len());
    format!("it stands at depth {depth}, and its tree goes no deeper than {depth}")
}

impl Above {
    /// What a child has to go by when slots are scarce, unless more or less is asked for.
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

    /// What budgets limit for those below this one.
    fn limited(&self) -> impl Iterator<Item = Limit> {
        let above = self.started.parent.as_ref().map_or(&[][..], |parent| &parent.limited);
        let own = &self.started.grant.budget;
        Budget::DIMENSIONS
            .into_iter()
            .filter(move |limit| own.of(*limit).is_some() || above.contains(limit))
    }

    /// Whether a budget limits `limit` for those below this one.
    pub(crate) fn limits(&self, limit: Limit) -> bool {
        self.limited().any(|limited| limited == limit)
    }

    /// Those above this one.
    fn ancestors(&self) -> &[RunId] {
        self.started.parent.as_ref().map_or(&[], |parent| &parent.ancestors)
    }

    pub(crate) fn depth_left(&self) -> u32 {
        self.started.grant.delegation.as_ref().map_or(0, |delegation| delegation.depth)
    }

    pub(crate) fn strategy(&self) -> Option<DelegationStrategy> {
        self.started.grant.delegation.as_ref().map(|delegation| delegation.strategy)
    }

    /// Whom it may call.
    pub(crate) fn on_offer(&self) -> &[Offer] {
        self.started.grant.delegation.as_ref().map_or(&[], |delegation| &delegation.agents)
    }

    fn offer(&self, name: &AgentName) -> Option<&Offer> {
        let same = |offer: &&Offer| offer.name.as_str().eq_ignore_ascii_case(name.as_str());
        self.on_offer().iter().find(same)
    }

    /// The agent called `name` as it was when this run began, if no file holds it.
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

    /// Refuses a folder outside of the one that this run works in.
    pub(crate) fn check_within(&self, workspace: &str) -> Result<(), Error> {
        let own = &self.started.grant.workspace;
        if Path::new(workspace).starts_with(own) {
            return Ok(());
        }
        Err(Error::InvalidInput(format!(
            "a child works in its parent's folder or below it: {workspace} is outside of {own}"
        )))
    }

    /// What is stored together with a child, new or `resumed`: that its parent knows of it, and
    /// that nobody above was told to stop.
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
    /// The run `run` as somebody who starts others.
    pub(crate) async fn above(&self, caller: &Caller) -> Result<Above, Error> {
        let (run, call, announce) = (caller.run, caller.call.clone(), caller.announce);
        let started = self.start_of(run).await?;
        let mut time = caller.time.clone();
        if started.limits.wall_ms.is_some() {
            let records = self.read(run, Seq::ZERO, usize::MAX).await?;
            time = Transcript::of(&records).time(&started.limits);
        }
        Ok(Above { run, call, announce, time, started })
    }

    /// How `run` began.
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

    /// Who of those above has ended or was told to stop, in words, if that is why a run that
    /// somebody above waits for is to stop. Above a run in the background nobody waits: there only
    /// those count that take along what they have started.
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
