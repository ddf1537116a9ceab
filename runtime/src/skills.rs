//! The skills there are: folders with a SKILL.md that teach an agent something.
//!
//! Names and descriptions are known from the start, a body when it is used, other files when the
//! agent reads them. A skill is text: it runs nothing, grants nothing, and whoever wrote it is
//! believed no more than any other file. What cannot be used is a problem with a place.

mod arguments;
pub(crate) mod body;
mod folders;
mod live;
pub(crate) mod load;
mod reading;
pub(crate) mod scripts;
mod source;
mod tolerant;
pub(crate) mod tool;

pub use live::LiveSkills;
pub use source::{Source, Sources};

use crate::agents::{AgentCatalog, Level, Problem};
use crate::tool_facts::filter;
use crate::trust::Standing;
use posse_protocol::SkillRules;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A skill, but for its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// What it is called by.
    pub name: String,
    /// What it is for and when to use it.
    pub description: String,
    /// Its folder, canonical and absolute.
    pub folder: PathBuf,
    /// The tools that it asks for. That grants none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Names of its arguments, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// What its arguments are, in words for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub argument_hint: String,
    /// Models are not told of it: it is for people to hand over.
    pub is_manual: bool,
    /// Under what licence it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// Bytes of its body.
    pub bytes: u64,
}

impl Skill {
    /// Its body as an agent would be given it, for these arguments.
    ///
    /// # Errors
    /// When it cannot be read any more, in words.
    pub fn body(&self, arguments: &str) -> Result<String, String> {
        Ok(body::load(&self.folder)?.filled(arguments, &self.folder))
    }

    /// Names of what could be run in its folder: nothing for a skill that is only text.
    pub fn scripts(&self) -> Vec<String> {
        scripts::of(&self.folder)
    }

    /// Names of the other files in its folder, those at most that an agent is told of.
    pub fn files(&self) -> Vec<String> {
        body::files(&self.folder).names
    }
}

/// A skill that was found, whether it is in force or not.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Its SKILL.md.
    pub file: PathBuf,
    /// The skill itself; `None` when it cannot be used, which a problem says why.
    pub skill: Option<Skill>,
    /// Who has its name instead.
    pub shadowed_by: Option<Source>,
    /// The settings deny it.
    pub is_denied: bool,
    /// What is thought of the folder that brings it along; nothing for a skill of the user's.
    pub standing: Option<Standing>,
}

impl Entry {
    /// Nobody has said that whoever brings it along is to be trusted.
    pub fn is_untrusted(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| !standing.is_trusted())
    }
}

/// Skills by name. Names match whatever the case.
#[derive(Clone, Debug, Default)]
pub struct SkillCatalog {
    /// In the order of precedence.
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    rules: Vec<SkillRules>,
    pub(crate) no_inheritance: bool,
}

impl SkillCatalog {
    fn of(
        mut entries: Vec<Entry>,
        problems: Vec<Problem>,
        rules: Vec<SkillRules>,
        inherit: bool,
    ) -> Self {
        let mut winners: HashMap<String, Source> = HashMap::with_capacity(entries.len());
        for entry in &mut entries {
            let name = entry.name.to_ascii_lowercase();
            entry.shadowed_by = winners.get(&name).cloned();
            entry.is_denied = !rules.iter().all(|rules| allows(rules, &entry.name));
            winners.entry(name).or_insert_with(|| entry.source.clone());
        }
        SkillCatalog { entries, problems, rules, no_inheritance: !inherit }
    }

    /// The skills that can be used, by name: those that nothing shadows and the settings allow.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        let mut found: Vec<&Skill> = self
            .entries
            .iter()
            .filter(|entry| entry.shadowed_by.is_none() && !entry.is_denied)
            .filter_map(|entry| entry.skill.as_ref())
            .collect();
        found.sort_by_key(|skill| skill.name.to_ascii_lowercase());
        found.into_iter()
    }

    /// Every skill that was found, those that come first first: also those that others shadow,
    /// that the settings deny, and that cannot be used.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The skill that `name` means, usable or not.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let in_force = self.entries.iter().filter(|entry| entry.shadowed_by.is_none());
        in_force.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// What the authors of skills should know, file by file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether the settings allow a skill called `name`.
    pub fn allows(&self, name: &str) -> bool {
        self.rules.iter().all(|rules| allows(rules, name))
    }

    /// Which agents are to know a skill from the start that is not there.
    pub fn check_agents(&self, agents: &AgentCatalog) -> Vec<Problem> {
        let entries = agents.iter().filter_map(|agent| {
            let entry = agents.entry(&agent.name)?;
            Some(agent.start.skills.iter().map(move |skill| (entry, skill)))
        });
        let missing = entries.flatten().filter(|(_, skill)| {
            !self.iter().any(|known| known.name.eq_ignore_ascii_case(skill) && !known.is_manual)
        });
        let problem = |(entry, skill): (&crate::agents::Entry, &String)| Problem {
            path: entry.path.clone(),
            line: entry.line,
            column: None,
            level: Level::Warning,
            agent: Some(entry.name.to_string()),
            reason: format!(
                "it is to know the skill `{skill}` from the start, but there is none that it may use"
            ),
        };
        missing.map(problem).collect()
    }

    /// Why the skill in `folder` is only listed, if that is so: nobody trusts who brings it along,
    /// and it has something to run.
    pub(crate) fn held_back(&self, folder: &Path) -> Option<String> {
        let here = |entry: &&Entry| entry.skill.as_ref().is_some_and(|it| it.folder == folder);
        let entry = self.entries.iter().find(here).filter(|entry| entry.is_untrusted())?;
        scripts::held_back(folder, entry.standing.as_ref())
    }

    /// True when the skill in `folder` is the user's, or of a project that is trusted.
    pub(crate) fn is_trusted(&self, folder: &Path) -> bool {
        let here = |entry: &&Entry| entry.skill.as_ref().is_some_and(|it| it.folder == folder);
        self.entries.iter().find(here).is_some_and(|entry| !entry.is_untrusted())
    }

    /// The first skill called `name` that no project brings along.
    pub(crate) fn own(&self, name: &str) -> Option<&Skill> {
        let own = self
            .entries
            .iter()
            .filter(|entry| !entry.is_denied && !matches!(entry.source, Source::Project { .. }));
        let mut skills = own.filter_map(|entry| entry.skill.as_ref());
        skills.find(|skill| skill.name.eq_ignore_ascii_case(name))
    }
}

/// Whether `rules` allow a skill called `name`. What is denied is denied.
pub(crate) fn allows(rules: &SkillRules, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let fits = |entry: &String| {
        let entry = entry.to_ascii_lowercase();
        entry == name || entry.contains('*') && filter::matches(&entry, &name)
    };
    rules.allow.as_ref().is_none_or(|allow| allow.iter().any(fits)) && !rules.deny.iter().any(fits)
}
