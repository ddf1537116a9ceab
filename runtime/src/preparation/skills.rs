//! Which skills a run has, and which of them it preloads. Posse decides this at the start and
//! stores it: the skills of its parent, or all, and further ones; without denied ones.

use crate::agents::{Level, Problem};
use crate::child::Above;
use crate::error::Error;
use crate::named_files;
use crate::runtime::Runtime;
use crate::skills::invocation::Invocation;
use crate::skills::{Entry, Skill, SkillCatalog, allows, body, load, scripts};
use crate::tool_facts::SKILL;
use posse_protocol::{AgentSpec, Extra, Grant, RunSpec, SkillOffer};
use std::path::{Path, PathBuf};

/// The most skills of one run, without preloaded ones.
const SKILLS: usize = 200;
/// The most bytes of all preloaded skills.
const KNOWN_BYTES: usize = 400_000;

/// The author of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The project that contains it.
    Project,
    /// Anyone else.
    Other,
}

impl Runtime {
    /// Returns what follows `message`, for a root with `grant`: the skill or command that it invokes, and
    /// the files that this names.
    pub(crate) fn invocation(
        &self,
        message: &str,
        grant: &Grant,
    ) -> Result<Option<Invocation>, Error> {
        if !message.trim_start().starts_with('/') {
            return Ok(None);
        }
        let catalog = self.skills_in(grant.workspace.as_ref());
        let invoked = catalog.invocation(message).map_err(Error::InvalidInput)?;
        Ok(invoked.map(|mut invoked| {
            // As with results of tools, no secret that a file holds reaches the vendor.
            invoked.text = self.config().permissions.redactor.text(&invoked.text).into_owned();
            if let Some(files) = named_files::told(&invoked.text, grant.workspace.as_ref()) {
                invoked.text.push_str("\n\n");
                invoked.text.push_str(&files);
            }
            invoked
        }))
    }

    /// Returns the skills of a run of `agent` in `workspace` that starts with `spec`, as a child of
    /// `above` if there is one.
    pub(crate) fn skills_of(
        &self,
        spec: &RunSpec,
        agent: &AgentSpec,
        author: Author,
        workspace: &str,
        above: Option<&Above>,
    ) -> Result<Vec<SkillOffer>, Error> {
        let catalog = self.skills_in(workspace.as_ref());
        let mut skills =
            match (spec.rights.skills.inherit.unwrap_or(!catalog.no_inheritance), above) {
                (false, _) => Vec::new(),
                (true, Some(above)) => above.started.grant.skills.clone(),
                (true, None) => on_offer(&catalog),
            };
        for folder in &spec.rights.skills.extra_dirs {
            for more in further(folder, workspace, above, &catalog)? {
                skills.retain(|known| !known.name.eq_ignore_ascii_case(&more.name));
                skills.push(more);
            }
        }
        skills.retain(|it| catalog.allows(&it.name) && allows(&spec.rights.skills, &it.name));
        let known = |skill: &SkillOffer| is_known(agent, skill);
        if author == Author::Other {
            // A skill of a project does not replace a skill that an agent of the user preloads.
            for skill in skills.iter_mut().filter(|skill| known(skill)) {
                if let Some(own) = catalog.own(&skill.name).filter(|own| !own.is_manual) {
                    *skill = offer(own);
                }
            }
        }
        let mut others = 0;
        skills.retain(|skill| {
            others += usize::from(!known(skill));
            others <= SKILLS || known(skill)
        });
        Ok(skills)
    }
}

/// Returns all skills that models see, by name.
fn on_offer(catalog: &SkillCatalog) -> Vec<SkillOffer> {
    let untrusted = |skill: &Skill| catalog.entry(&skill.name).is_some_and(Entry::is_untrusted);
    let offered = catalog.iter().filter(|skill| !skill.is_manual);
    offered.map(|skill| SkillOffer { untrusted: untrusted(skill), ..offer(skill) }).collect()
}

fn offer(skill: &Skill) -> SkillOffer {
    SkillOffer {
        untrusted: false,
        name: skill.name.clone(),
        description: skill.description.clone(),
        path: skill.folder.display().to_string(),
        extra: Extra::default(),
    }
}

/// Returns the skills in a folder that the start of a run names. A parent can only name folders in
/// its own workspace.
fn further(
    folder: &Path,
    workspace: &str,
    above: Option<&Above>,
    known: &SkillCatalog,
) -> Result<Vec<SkillOffer>, Error> {
    let named = folder.display();
    let unusable = |why: String| {
        Error::InvalidInput(format!("the folder of skills {named} cannot be used: {why}"))
    };
    let path = Path::new(workspace).join(folder);
    let path = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
    let within = above.map(|above| PathBuf::from(&above.started.grant.workspace));
    if let Some(within) = within.as_ref().filter(|within| !path.starts_with(within)) {
        return Err(unusable(format!("a run can only name folders in {}", within.display())));
    }
    if !path.is_dir() {
        return Err(unusable("it is not a folder".to_owned()));
    }
    let catalog = load::of_folder(&path, within, Path::new(workspace));
    let is_error = |problem: &&Problem| problem.level == Level::Error;
    if let Some(problem) = catalog.problems().iter().find(is_error) {
        return Err(unusable(problem.to_string()));
    }
    let mut offers = on_offer(&catalog);
    // A skill that a run finds in its workspace is no more trusted than in a folder of skills.
    for offer in offers.iter_mut().filter(|_| above.is_some()) {
        offer.untrusted = !known.is_trusted(Path::new(&offer.path));
    }
    Ok(offers)
}

fn is_known(agent: &AgentSpec, skill: &SkillOffer) -> bool {
    agent.start.skills.iter().any(|name| name.trim().eq_ignore_ascii_case(&skill.name))
}

/// Keeps only the skills that a run can use: if it can neither load skills nor start subagents, its
/// preloaded ones.
pub(crate) fn keep_useful(grant: &mut Grant, agent: &AgentSpec) {
    if !grant.allows(SKILL) && grant.delegation.is_none() {
        grant.skills.retain(|skill| is_known(agent, skill));
    }
}

/// Adds the preloaded skills of `agent` to its instructions.
pub(crate) fn teach(agent: &mut AgentSpec, skills: &[SkillOffer]) -> Result<(), Error> {
    let before = agent.instructions.len();
    for name in &agent.start.skills {
        let name = name.trim();
        let offer = skills.iter().find(|offer| offer.name.eq_ignore_ascii_case(name));
        let loaded = match offer {
            Some(offer) => match scripts::inert(offer) {
                Some(why) => Err(why),
                None => body::of_folder(Path::new(&offer.path)).map(|loaded| (offer, loaded)),
            },
            None => Err("it is not available here".to_owned()),
        };
        let text = match loaded {
            Ok((offer, loaded)) => format!(
                "\n\n# Skill `{}`\n\nIts files are in {}\n\n{}",
                offer.name,
                offer.path,
                loaded.filled("", Path::new(&offer.path))
            ),
            Err(why) => format!(
                "\n\n[You should know the skill `{name}`, but {why}. Say so if the task cannot be \
                 done without it.]"
            ),
        };
        agent.instructions.push_str(&text);
    }
    let taught = agent.instructions.len() - before;
    if taught > KNOWN_BYTES {
        return Err(Error::InvalidInput(format!(
            "the skills that agent `{}` is to know from the start have {taught} bytes, more than \
             the {KNOWN_BYTES} that fit; leave some out, and let it load them with the Skill tool",
            agent.name
        )));
    }
    Ok(())
}
