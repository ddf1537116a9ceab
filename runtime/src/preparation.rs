//! Prepares a run before it starts. All errors about a run are found here, before anything is stored.

use crate::agents::{AgentCatalog, Source};
mod guidance;
mod mention;
mod server;
mod skills;

use crate::authority;
use crate::budget::budget_of;
use crate::child::rules::{self, Rules, check_enabled};
use crate::child::{Above, context};
use crate::error::Error;
use crate::limits::{DEEPEST, WITHOUT_LIMIT};
use crate::limits::{replaced, stricter};
use crate::named_files;
use crate::place::{localise, without_files};
use crate::policy::FileRules;
use crate::runtime::{Inner, Runtime};
use crate::selection::{self, Money};
use crate::skills::allows;
use crate::skills::invocation::Invocation;
use crate::skills::tool as skill_tool;
use crate::tool_facts::filter;
use crate::tool_facts::{TASK, TOOLS_PAGE, ToolFacts, built_in_tools, granted_tools, of_source};
use crate::toolset::RunFolders;
use crate::trust::{self, TrustStatus};
use posse_protocol::{
    AgentName, AgentSpec, Context, Delegation, DelegationStrategy, Effect, Event, Extra, Grant,
    Isolation, Limit, Limits, Message, MessageOptions, MessageReceived, Offer, Part, Profile,
    RunId, RunSpec, RunStarted, Sender, Site, SourceOffer, near, piped,
};
use posse_store::{Bundle, is_worker_name};
use posse_tools::confine::Confinement;
use skills::{Author, keep_useful, teach};
use std::path::Path;
use std::sync::Arc;

/// The first events of a run to start.
pub(crate) struct Prepared {
    pub(crate) started: RunStarted,
    /// The state of its checkout.
    pub(crate) bundle: Option<Arc<Bundle>>,
    pub(crate) message: Option<MessageReceived>,
}

impl Prepared {
    pub(crate) fn events(self) -> Vec<Event> {
        let started = self.started.into();
        let message = self.message.map(Event::MessageReceived);
        std::iter::once(started).chain(message).collect()
    }
}

/// The longest description of an agent that other agents see, in characters.
const DESCRIPTION: usize = 1_000;
/// The default limit of turns for a child: no person watches it, and a child that never stops would spend without end.
const TURNS_OF_A_CHILD: u32 = 100;

impl Runtime {
    /// Decides everything about a run before anything is stored.
    pub(crate) async fn prepare(
        &self,
        run: RunId,
        spec: &RunSpec,
        above: Option<&Above>,
    ) -> Result<Prepared, Error> {
        let config = self.config();
        if spec.key.as_ref().is_some_and(|key| key.trim().is_empty()) {
            let why = "the key is empty; leave it out, or say what tells this run from others";
            return Err(Error::InvalidInput(why.to_owned()));
        }
        let (mut agent, mut grant) = self.granted(run, spec, above).await?;
        let bundle = Box::pin(self.begin_state(run, spec, above, &mut grant)).await?;
        if grant.site.repository().is_some() {
            localise(self, run, &mut grant);
        }
        let prompt = prompt(spec)?;
        let agents = self.agents_for(&spec.workspace, above.map(|above| &*above.started));
        let given = above.and_then(|above| above.given(&spec.agent));
        let rules = above.map(|above| self.rules(&above.started.agent));
        agent.instructions = spec.instructions.applied(std::mem::take(&mut agent.instructions));
        teach(&mut agent, &grant.skills)?;
        agent.models.effort = spec.models.effort.or(agent.models.effort).or(config.models.effort);
        agent.output_schema = spec.output_schema.clone().or(agent.output_schema.take());
        if let Some(schema) = &agent.output_schema {
            posse_agent::check_schema(schema).map_err(|why| {
                Error::InvalidInput(format!("the output schema cannot be used: {why}"))
            })?;
        }
        let usual = replaced(&agent.limits, &config.limits);
        let mut limits = match &rules {
            None => replaced(&spec.limits, &usual),
            // The model that starts a child may be tricked into allowing too much, so it can only narrow.
            Some(rules) => {
                let limits = stricter(spec.limits.clone(), &usual);
                let wall_ms = limits.wall_ms.or(rules.timeout_ms());
                Limits { wall_ms, turns: limits.turns.or(Some(TURNS_OF_A_CHILD)), ..limits }
            }
        };
        let parent = above.map(|above| &*above.started);
        // A child gets no more time than the parent that waits for it.
        let time = parent.and_then(|parent| parent.limits.wall_ms);
        limits.wall_ms = limits.wall_ms.into_iter().chain(time).min();
        limits.wall_ms = limits.wall_ms.filter(|time| *time != WITHOUT_LIMIT);
        let selection = self.selected(spec, &agent, parent).await?;
        let own = limits.cost.or(grant.budget.cost);
        let money = match own.is_some() || above.is_some_and(|above| above.limits(Limit::Cost)) {
            true => Money::Limited,
            false => Money::Free,
        };
        selection::check(&selection, self.models(), &agent, money)?;
        let project = given.map_or_else(|| trusted_project(&agents, &spec.agent), |_| None);
        // Another machine cannot ask whether the folder is still trusted.
        let project = project.filter(|_| !grant.site.is_portable());
        // Trust for one run also applies to its subagents.
        let trusted = match parent {
            Some(parent) => parent.trusted.clone(),
            None => self.config().around(&spec.workspace).agents.trusted_for_now(),
        };
        let guidance = match agent.start.omit_guidance {
            true => Vec::new(),
            // Boxed: most starts wait for no file.
            false => Box::pin(self.guidance_of(&grant, parent)).await?,
        };
        let mut started = RunStarted {
            guidance,
            fallbacks: selection.fallbacks,
            limits,
            session: spec.session,
            key: spec.key.clone(),
            parent: above.map(Above::link),
            label: spec.label.clone(),
            priority: above.map_or(0, Above::priority).saturating_add(spec.priority),
            trusted,
            project,
            archive_after_ms: rules.as_ref().and_then(Rules::archive_after_ms),
            cleanup: spec.cleanup.or(rules.map(|rules| rules.cleanup())).unwrap_or_default(),
            ..RunStarted::new(agent, selection.model, grant)
        };
        let context = spec.context.unwrap_or(started.agent.start.context);
        let mut notes = Vec::new();
        if let Some(above) = above
            && context != Context::Fresh
        {
            let taken = Box::pin(context::take_over(self, above, &started, context)).await?;
            started.forked = taken.forked.map(Box::new);
            notes.extend(taken.note);
        }
        let mut message = None;
        if let Some(prompt) = prompt {
            let invoked = match started.parent {
                None => self.invocation(&prompt, &started.grant)?,
                // A slash means nothing in the words of an agent.
                Some(_) => None,
            };
            message = Some(first_message(&mut started, prompt, notes, invoked));
        }
        if started.grant.site.is_portable() {
            started.grant.worktree = None;
        }
        Ok(Prepared { started, bundle, message })
    }

    /// Returns the agent that `spec` asks for, and the grant of its run, as a child of `above` if there is one.
    pub(crate) async fn granted(
        &self,
        run: RunId,
        spec: &RunSpec,
        above: Option<&Above>,
    ) -> Result<(AgentSpec, Grant), Error> {
        let config = self.config();
        let agents = self.agents_for(&spec.workspace, above.map(|above| &*above.started));
        let rules = above.map(|above| self.rules(&above.started.agent));
        if let (Some(rules), Some(above)) = (&rules, above) {
            check_enabled(rules, &above.started.agent.name)?;
            above.check_may_call(&spec.agent)?;
        }
        let given = above.and_then(|above| above.given(&spec.agent));
        let agent = given.map_or_else(|| agents.find(&spec.agent), Ok)?.clone();
        prompt(spec)?;
        let workspace = {
            // A child works where its caller does.
            let home = config.permissions.home.as_deref().filter(|_| above.is_none());
            canonical_folder(&spec.workspace, home)?
        };
        if let Some(above) = above {
            above.check_within(&workspace)?;
        }
        let strategy =
            spec.strategy.or(above.and_then(Above::strategy)).unwrap_or(config.delegation.strategy);
        let author = author(&agents, &agent);
        let mut skills = self.skills_of(spec, &agent, author, &workspace, above)?;
        for narrower in rules.iter().flat_map(Rules::skills) {
            skills.retain(|skill| allows(&narrower, &skill.name));
        }
        let general = above.is_none().then_some(&config.budget);
        let budget = budget_of(spec, &agent, general);
        let site = Box::pin(self.site(spec, above, &workspace)).await?;
        let needs = needs(spec, above)?;
        let mut grant = Grant { workspace, site, needs, skills, budget, ..Grant::default() };
        grant.sources = match above {
            // A child can only have tools that its parent was offered.
            Some(above) => above.started.grant.sources.clone(),
            None if self.inner.sources.is_empty_in(&grant.workspace) => Vec::new(),
            None => Box::pin(self.offers(run, spec, &agent, &grant)).await?,
        };
        let mut grant = self.grant(&agents, &agent, grant, above, strategy, spec)?;
        // A checkout is a worktree of its own already.
        let is_in_folder = !grant.site.is_portable();
        if agent.start.isolation == Some(Isolation::Worktree) && is_in_folder {
            let worktrees = &self.inner.worktrees;
            let planned = Box::pin(worktrees.plan(run, &grant.workspace)).await?;
            grant.worktree = Some(planned.0);
            grant.workspace = planned.1;
        }
        Ok((agent, grant))
    }

    /// Returns the grant that a root of `spec` would get here. It starts nothing.
    ///
    /// # Errors
    /// When there is no such agent or folder, or a rule cannot be enforced.
    pub async fn grant_of(&self, spec: &RunSpec) -> Result<Grant, Error> {
        let spec = RunSpec { session: true, prompt: None, ..spec.clone() };
        Ok(self.granted(RunId::new(), &spec, None).await?.1)
    }

    /// Returns the grant of a run of `agent` with the folder and the skills of `grant`, as a child of `above` if there
    /// is one.
    fn grant(
        &self,
        agents: &AgentCatalog,
        agent: &AgentSpec,
        grant: Grant,
        above: Option<&Above>,
        strategy: DelegationStrategy,
        spec: &RunSpec,
    ) -> Result<Grant, Error> {
        let all = self.inner.tools.facts_with(&grant.workspace, &grant.sources)?;
        // An agent may name tools that a source does not offer today.
        let sources = grant.sources.iter().map(|offer| of_source(&offer.source));
        let named: Vec<ToolFacts> = all.iter().cloned().chain(sources).collect();
        let rights = &agent.rights;
        for list in [rights.tools.as_deref().unwrap_or_default(), &rights.disallowed_tools] {
            if let Some(name) = filter::unknown(list, &named) {
                let names = named.iter().map(|tool| tool.name.as_str());
                return Err(Error::InvalidInput(format!(
                    "agent `{}` names a tool `{name}` that does not exist here; {}",
                    agent.name,
                    near::suggestion(name, names, TOOLS_PAGE)
                )));
            }
        }
        let may_hand_on = |tool: &&ToolFacts| match above {
            None => true,
            Some(above) => {
                above.started.grant.hand_on.contains(&tool.name)
                    && !filter::denied_to_children(tool)
            }
        };
        let mut available: Vec<&ToolFacts> = all.iter().filter(may_hand_on).collect();
        let mut hand_on: Vec<String> = available.iter().map(|tool| tool.name.clone()).collect();
        // The grant stores the tools of sources elsewhere, in full.
        let offers = grant.sources.iter().flat_map(|offer| &offer.tools);
        let ours: Vec<ToolFacts> =
            built_in_tools().into_iter().chain(offers.map(|tool| tool.facts.clone())).collect();
        let known = available.iter().filter(|tool| !ours.contains(tool));
        let known = known.map(|tool| (*tool).clone()).collect();
        let delegation = self.delegation(agents, agent, above, strategy, &grant.site);
        let offered =
            delegation.as_ref().is_some_and(|it| it.strategy != DelegationStrategy::Manual);
        available.retain(|tool| offered || tool.effect != Effect::Delegate);
        available.retain(|tool| !grant.skills.is_empty() || !skill_tool::is(tool));
        let mut tools = granted_tools(available, rights);
        let rules = above.map(|above| self.rules(&above.started.agent));
        // The start of a run decides for all its subagents; a definition, for its own runs.
        for names in [&mut tools, &mut hand_on] {
            rules::narrow(names, &named, rules.as_ref(), spec)?;
            if grant.site == Site::Nowhere {
                without_files(names, &named, agent.start.isolation)?;
            }
        }
        if tools.is_empty() {
            let why = match above {
                Some(_) => "none of those it names may be handed on to it",
                None if grant.site == Site::Nowhere => {
                    "the tools it names need files, and this run works without"
                }
                None => "give it some, or leave `tools` out for all",
            };
            return Err(Error::InvalidInput(format!(
                "agent `{}` has no available tools, so it can do nothing: {why}",
                agent.name
            )));
        }
        let mut grant = Grant { tools, hand_on, known, delegation, ..grant };
        let parent = above.map(|above| &above.started.grant);
        authority::narrow(&mut grant, self.config(), parent, agent, spec, rules.as_ref())?;
        authority::check_grant(&grant, &named)?;
        keep_offered(&mut grant);
        keep_useful(&mut grant, agent);
        Ok(grant)
    }

    /// Returns what the tool sources offer for a root. Posse asks them before it knows what the run may write, so their
    /// processes can only read, unless the reach is `full`.
    async fn offers(
        &self,
        run: RunId,
        spec: &RunSpec,
        agent: &AgentSpec,
        grant: &Grant,
    ) -> Result<Vec<SourceOffer>, Error> {
        let Inner { tools, sources, config, .. } = &*self.inner;
        let mut grant = grant.clone();
        authority::narrow(&mut grant, config, None, agent, spec, None)?;
        let facts = tools.facts(&grant.workspace)?;
        let policy = authority::policy(&grant, config, &facts).map(Arc::new)?;
        let mut confinement = Confinement::of(&grant);
        if grant.reach == Profile::Full {
            confinement.profile = Profile::Full;
        }
        let (workspace, read_only) = (grant.workspace.as_str(), Vec::new());
        let folders = RunFolders { workspace, scratch: None, read_only };
        let who = (run, agent.name.clone());
        let rules = FileRules::of(&policy);
        let context = tools.source_context(who, folders, &confinement, rules)?;
        sources.offers(&context, &facts).await
    }

    /// Returns which agents a run of `agent` may call.
    fn delegation(
        &self,
        agents: &AgentCatalog,
        agent: &AgentSpec,
        above: Option<&Above>,
        strategy: DelegationStrategy,
        site: &Site,
    ) -> Option<Delegation> {
        let own = agent.children.max_depth;
        let depth = match above {
            None => own.unwrap_or(self.config().delegation.max_depth).min(DEEPEST),
            Some(above) => above.depth_left().saturating_sub(1).min(own.unwrap_or(DEEPEST)),
        };
        if depth == 0 {
            return None;
        }
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let may_call = |offer: &Offer| {
            let name = offer.name.as_str();
            let named = agent.children.agents.as_ref();
            named.is_none_or(|named| named.iter().any(|entry| entry == "*" || same(entry, name)))
        };
        let all = match above {
            Some(above) => above.on_offer().to_vec(),
            None => agents.iter().map(|other| offer(agents, other, site)).collect(),
        };
        let rules = self.rules(agent);
        if rules.forbid_all() {
            return None;
        }
        let allowed = |offer: &Offer| rules.allow(offer.name.as_str());
        let offers: Vec<Offer> = all.into_iter().filter(may_call).filter(allowed).collect();
        let extra = Extra::default();
        (!offers.is_empty()).then_some(Delegation { strategy, depth, agents: offers, extra })
    }
}

/// Keeps only the offered tools that `grant` allows to call or to pass on.
fn keep_offered(grant: &mut Grant) {
    let Grant { sources, tools, hand_on, .. } = grant;
    for offer in sources {
        let of_use = |name: &String| tools.contains(name) || hand_on.contains(name);
        offer.tools.retain(|tool| of_use(&tool.name));
    }
}

/// Returns the author of `agent`.
fn author(agents: &AgentCatalog, agent: &AgentSpec) -> Author {
    match agents.entry(&agent.name).map(|entry| &entry.source) {
        Some(Source::Project { .. }) => Author::Project,
        _ => Author::Other,
    }
}

/// Returns the project that defines the agent `name`, if that is trusted.
fn trusted_project(agents: &AgentCatalog, name: &AgentName) -> Option<String> {
    let entry = agents.entry(name).filter(|entry| entry.standing == Some(TrustStatus::Trusted))?;
    let Source::Project { path } = &entry.source else { return None };
    Some(trust::folder_of(path).display().to_string())
}

/// Returns `agent` as an offer.
fn offer(agents: &AgentCatalog, agent: &AgentSpec, site: &Site) -> Offer {
    let source = agents.entry(&agent.name).map(|entry| &entry.source);
    // Another machine may not have the file of a definition.
    let is_elsewhere = site.is_portable() && !matches!(source, Some(Source::BuiltIn));
    let fleeting =
        matches!(source, Some(Source::CommandLine { .. } | Source::Host)) || is_elsewhere;
    Offer {
        name: agent.name.clone(),
        description: agent.description.chars().take(DESCRIPTION).collect(),
        agent: fleeting.then(|| Box::new(agent.clone())),
        extra: Extra::default(),
    }
}

/// Returns the prompt, if there is one.
fn prompt(spec: &RunSpec) -> Result<Option<String>, Error> {
    match &spec.prompt {
        Some(prompt) if prompt.trim().is_empty() => {
            Err(Error::InvalidInput("the prompt is empty; say what to do".to_owned()))
        }
        Some(prompt) => Ok(Some(prompt.clone())),
        None if spec.session => Ok(None),
        None => Err(Error::InvalidInput(
            "a run needs a prompt; only a session may start without".to_owned(),
        )),
    }
}

/// Returns the message that starts the agent.
fn first_message(
    started: &mut RunStarted,
    prompt: String,
    notes: Vec<String>,
    invoked: Option<Invocation>,
) -> MessageReceived {
    let hint = asked_for(&prompt, &started.grant);
    // A parent agent does not name files as a person does, who knows which exist.
    let named = started.parent.is_none().then(|| named_in(&prompt, &started.grant)).flatten();
    // The title of a run is the prompt, without the notes around it.
    let has_remarks = hint.is_some() || named.is_some() || invoked.is_some();
    let around = started.forked.is_some() || has_remarks || !notes.is_empty();
    if started.label.is_empty() && (around || !started.agent.start.initial_prompt.is_empty()) {
        started.label = prompt.lines().next().unwrap_or_default().chars().take(200).collect();
    }
    let text = match started.agent.start.initial_prompt.as_str() {
        "" => prompt,
        before => format!("{before}\n\n{prompt}"),
    };
    received(text, notes.into_iter().chain(hint).chain(named), invoked)
}

/// Returns a message of a person, with remarks of the runtime and the skill that it invokes after it.
pub(crate) fn received(
    text: String,
    remarks: impl IntoIterator<Item = String>,
    invoked: Option<Invocation>,
) -> MessageReceived {
    let Invocation { text: skill, narrows } = invoked.unwrap_or_default();
    let skill = Some(skill).filter(|skill| !skill.is_empty());
    let parts = std::iter::once(text).chain(remarks).chain(skill).map(Part::text).collect();
    let asks = narrows.map(|narrows| {
        Box::new(MessageOptions { narrows: Some(narrows), ..MessageOptions::default() })
    });
    let message = Message { parts, ..Message::user("") };
    let extra = Extra::default();
    MessageReceived { from: Sender::User, message, later: false, asks, extra }
}

/// Returns a note for the run about the agents that `text` asks for.
pub(crate) fn asked_for(text: &str, grant: &Grant) -> Option<String> {
    let delegation = grant.delegation.as_ref()?;
    if !grant.allows(TASK) {
        return None;
    }
    mention::hint(&mention::mentioned(piped::parted(text).0, &delegation.agents))
}

/// Returns a note for the run about the files that `text` names.
pub(crate) fn named_in(text: &str, grant: &Grant) -> Option<String> {
    named_files::told(piped::parted(text).0, Path::new(&grant.workspace))
}

/// Returns the path of a workspace without links. The `home` folder at another mount has its usual path.
fn canonical_folder(path: &Path, home: Option<&Path>) -> Result<String, Error> {
    let unusable = |reason: String| Error::Workspace { path: path.display().to_string(), reason };
    if path.as_os_str().is_empty() {
        let reason = "name a folder; `.` is the current one".to_owned();
        return Err(Error::Workspace { path: "an empty path".to_owned(), reason });
    }
    let real = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
    if !real.is_dir() {
        return Err(unusable("it is not a folder".to_owned()));
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    let known = home.and_then(|home| posse_tools::confine::known_place(&real, &home));
    let text = known.unwrap_or(real).into_os_string().into_string();
    text.map_err(|_| unusable("its path is not valid UTF-8".to_owned()))
}

/// Returns the label that the worker of the run must have: that of `spec`, or else that of its caller.
fn needs(spec: &RunSpec, above: Option<&Above>) -> Result<String, Error> {
    match spec.needs.as_str() {
        "" => Ok(above.map(|above| above.started.grant.needs.clone()).unwrap_or_default()),
        label if is_worker_name(label) => Ok(label.to_owned()),
        label => Err(Error::InvalidInput(format!(
            "`{label}` cannot be a label of a worker: use at most 64 letters, digits, `.`, `_` and `-`"
        ))),
    }
}
