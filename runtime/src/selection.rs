//! Which model a run has, and where that choice comes from.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime_config::RuntimeConfig;
use posse_model::{ChoiceReason, Models, ResolveError};
use posse_protocol::{AgentSpec, Event, RunId, RunSpec, RunStarted, Seq};
use posse_store::Store;
use std::sync::Arc;

/// The models of a run that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The model, as `vendor/name`.
    pub model: String,
    /// The fallbacks, in this order.
    pub fallbacks: Vec<String>,
    /// Where the choice comes from.
    pub named_by: NamedBy,
    /// Why other named models are left out: there is no API key for them.
    pub skipped: Vec<ResolveError>,
}

/// Where the model of a run was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// In the start of the run.
    Spec,
    /// In its agent.
    Agent,
    /// In the rules for children of its parent.
    Rules,
    /// In its parent.
    Parent,
    /// In the configuration of the runtime.
    Config,
    /// Nowhere: the runtime chose it, for this reason.
    Choice(ChoiceReason),
}

impl Runtime {
    /// Returns the models that a run of `spec` would have: those it names, else those of its agent, else those of the
    /// rules for children, else those of its parent, else those of the configuration, else a model that is available
    /// here.
    ///
    /// # Errors
    /// When there is no such agent or model, or no key for it.
    pub async fn select(&self, spec: &RunSpec) -> Result<Selection, Error> {
        let parent = match &spec.parent {
            Some(caller) => Some(self.start_of(caller.run).await?),
            None => None,
        };
        let agents = self.agents_in(&spec.workspace);
        self.selected(spec, agents.find(&spec.agent)?, parent.as_deref()).await
    }

    pub(crate) async fn selected(
        &self,
        spec: &RunSpec,
        agent: &AgentSpec,
        parent: Option<&RunStarted>,
    ) -> Result<Selection, Error> {
        let models = self.models();
        let usual = parent.and_then(|parent| self.rules(&parent.agent).model().cloned());
        let (named, more, named_by) =
            match named(spec, agent, parent, usual.as_ref(), self.config()) {
                Some(named) => named,
                None => {
                    let choice = Box::pin(self.choice()).await?;
                    (&choice.model, &[][..], NamedBy::Choice(choice.why.clone()))
                }
            };
        let (mut usable, mut skipped) = (Vec::new(), Vec::new());
        // A start that names only fallbacks means them as fallbacks of the model that the run would use anyway.
        let behind: &[String] = match named_by {
            NamedBy::Spec => &[],
            _ => &spec.models.fallbacks,
        };
        for name in std::iter::once(named).chain(more).chain(behind) {
            match models.resolve(name) {
                Ok(model) if usable.contains(&model.info().id) => {}
                Ok(model) => usable.push(model.info().id.clone()),
                Err(missing @ ResolveError::MissingKey { .. }) => skipped.push(missing),
                Err(error) => return Err(error.into()),
            }
        }
        let mut usable = usable.into_iter();
        match usable.next() {
            Some(model) => Ok(Selection { model, fallbacks: usable.collect(), named_by, skipped }),
            None => Err(none_usable(skipped).into()),
        }
    }

    /// Checks that a model is available here: its vendor is known, and its API key is set if it needs one.
    ///
    /// # Errors
    /// When it is not available; the error says what to do.
    pub fn check_model(&self, name: &str) -> Result<(), Error> {
        self.models().resolve(name)?;
        Ok(())
    }

    /// Checks that `run` can continue with a model: like [`Runtime::check_model`], and as at the start of a run, a cost
    /// limit requires a model with a known price. Returns the full name of the model.
    ///
    /// # Errors
    /// When it cannot; the error says what to do.
    pub async fn check_model_for(&self, run: RunId, name: &str) -> Result<String, Error> {
        let model = self.models().resolve(name)?.info().id.clone();
        let first = self.inner.store.read(run, Seq::ZERO, 1).await?;
        let Some(Event::RunStarted(started)) = first.first().map(|record| &record.event) else {
            return Ok(model);
        };
        let mut limited = started.limits.cost.is_some();
        let mut next = Some(run);
        while let Some(id) = next.filter(|_| !limited) {
            let Some(row) = self.row(id).await? else { break };
            limited = row.funds.budget.is_some_and(|budget| budget.cost.is_some());
            next = row.funds.account;
        }
        let money = if limited { Money::Limited } else { Money::Free };
        let (fallbacks, skipped, named_by) = (Vec::new(), Vec::new(), NamedBy::Spec);
        let selection = Selection { model, fallbacks, named_by, skipped };
        check(&selection, self.models(), &started.agent, money)?;
        Ok(selection.model)
    }
}

/// Returns why none of the named models is usable.
fn none_usable(mut skipped: Vec<ResolveError>) -> ResolveError {
    match skipped.pop() {
        Some(only) if skipped.is_empty() => only,
        last => {
            let reasons: Vec<String> =
                skipped.iter().chain(&last).map(ToString::to_string).collect();
            ResolveError::NoneUsable { reasons: reasons.join("; ") }
        }
    }
}

/// Returns the model that a later message asked `run` to use, if it is not `model`.
pub(crate) async fn asked(store: &Arc<dyn Store>, run: RunId, model: &str) -> Option<String> {
    let records = store.read(run, Seq::ZERO, usize::MAX).await.ok()?;
    let last = records.iter().rev().find_map(|record| match &record.event {
        Event::MessageReceived(received) => received.asks.as_ref()?.model.clone(),
        _ => None,
    });
    last.filter(|last| last != model)
}

/// Returns the first named model, its fallbacks, and where it was named.
fn named<'a>(
    spec: &'a RunSpec,
    agent: &'a AgentSpec,
    parent: Option<&'a RunStarted>,
    usual: Option<&'a String>,
    config: &'a RuntimeConfig,
) -> Option<(&'a String, &'a [String], NamedBy)> {
    let wanted = [
        (meant(spec.models.model.as_ref(), config), &spec.models.fallbacks, NamedBy::Spec),
        (meant(agent.models.model.as_ref(), config), &agent.models.fallbacks, NamedBy::Agent),
        (meant(usual, config), &agent.models.fallbacks, NamedBy::Rules),
        (
            parent.map(|it| &it.model),
            parent.map_or(&agent.models.fallbacks, |it| &it.fallbacks),
            NamedBy::Parent,
        ),
        (config.models.model.as_ref(), &config.models.fallbacks, NamedBy::Config),
    ];
    wanted.into_iter().find_map(|(model, more, by)| Some((model?, &more[..], by)))
}

/// Returns the model that `word` stands for. `inherit` stands for none, nor does a role that the settings leave empty.
fn meant<'a>(word: Option<&'a String>, config: &'a RuntimeConfig) -> Option<&'a String> {
    match word?.trim() {
        "inherit" | "" => None,
        "small" => config.models.small_model.as_ref(),
        "plan" => config.models.plan_model.as_ref(),
        _ => word,
    }
}

/// Whether the cost of a run is limited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Money {
    /// A limit or a budget applies.
    Limited,
    /// No limit applies.
    Free,
}

/// Refuses a selection with a model that cannot do what `agent` needs, or whose price must be known and is not.
pub(crate) fn check(
    selection: &Selection,
    models: &Models,
    agent: &AgentSpec,
    money: Money,
) -> Result<(), Error> {
    for id in std::iter::once(&selection.model).chain(&selection.fallbacks) {
        let abilities = models.abilities(id)?;
        if money == Money::Limited && !abilities.priced {
            return Err(Error::InvalidInput(format!(
                "the price of {id} is not known, so a limit of cost cannot be kept; set the price in \
                 your settings, under [models.\"{id}\"]: price = {{ input = 1.0, output = 4.0 }} \
                 (USD per million tokens), or limit turns, tokens or time instead of money"
            )));
        }
        if !abilities.tools {
            return Err(Error::InvalidInput(format!(
                "{id} cannot call tools, and without them an agent can do nothing; take another model"
            )));
        }
        if agent.output_schema.is_some() && !abilities.output_schema {
            return Err(Error::InvalidInput(format!(
                "the answer of {id} cannot be held to a JSON Schema; take another model, or leave \
                 the schema out and say in the prompt what the answer is to look like"
            )));
        }
    }
    Ok(())
}
