//! Which model a run has, and who said so.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::runtime_config::RuntimeConfig;
use posse_model::{Models, ResolveError, Why};
use posse_protocol::{AgentSpec, Event, RunId, RunSpec, RunStarted, Seq};
use posse_store::Store;
use std::sync::Arc;

/// The models of a run that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The model, as `vendor/name`.
    pub model: String,
    /// Those to go on with when it cannot be had, in this order.
    pub fallbacks: Vec<String>,
    /// Who named them.
    pub named_by: NamedBy,
    /// Why models that were named besides are left out: there is no key for them.
    pub skipped: Vec<ResolveError>,
}

/// Who named the model of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// Whoever starts it.
    Spec,
    /// Its agent.
    Agent,
    /// What holds for children of the run on whose behalf it starts.
    Rules,
    /// The run on whose behalf it starts.
    Parent,
    /// The runtime's configuration.
    Config,
    /// Nobody: it was chosen, for this reason.
    Choice(Why),
}

impl Runtime {
    /// The models that a run of `spec` would have: those it names, else those of its agent, else
    /// those of its parent, else those of the configuration, else what can be had here.
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
        // Whoever names only fallbacks means them behind the model that is used without a word.
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

    /// Whether a model can be had here: its vendor is known, and there is a key if it needs one.
    ///
    /// # Errors
    /// When it cannot, with what to do about it.
    pub fn check_model(&self, name: &str) -> Result<(), Error> {
        self.models().resolve(name)?;
        Ok(())
    }

    /// Whether `run` can go on with a model: as [`Runtime::check_model`], and as at its start, where a
    /// limit of cost asks for a model whose price is known. Returns the model's full name.
    ///
    /// # Errors
    /// When it cannot, with what to do about it.
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

/// Why none of the models that were named can be used.
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

/// The model that somebody has asked `run` to use since it began, if that is not `model`.
pub(crate) async fn asked(store: &Arc<dyn Store>, run: RunId, model: &str) -> Option<String> {
    let records = store.read(run, Seq::ZERO, usize::MAX).await.ok()?;
    let last = records.iter().rev().find_map(|record| match &record.event {
        Event::MessageReceived(received) => received.asks.as_ref()?.model.clone(),
        _ => None,
    });
    last.filter(|last| last != model)
}

/// The model somebody names, and its fallbacks.
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

/// The model that `word` means, if it means one here: `inherit` leaves it to others, and so does
/// the name of a role that the settings do not fill.
fn meant<'a>(word: Option<&'a String>, config: &'a RuntimeConfig) -> Option<&'a String> {
    match word?.trim() {
        "inherit" | "" => None,
        "small" => config.models.small_model.as_ref(),
        "plan" => config.models.plan_model.as_ref(),
        _ => word,
    }
}

/// Whether a run may spend as much as it likes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Money {
    /// A limit or a budget says how much.
    Limited,
    /// Nobody says.
    Free,
}

/// Refuses what a model of the selection cannot do for `agent`, whose money may be limited.
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
