//! Skills: folders with a SKILL.md that teach an agent something. A command is a skill of one file,
//! which only people invoke.
//!
//! Posse reads names and descriptions at the start and a body on use; the agent reads the other
//! files. A skill is text: it runs nothing and grants nothing, and Posse trusts it no more than any
//! other file. An unusable skill is a problem with a place in a file.

mod arguments;
pub(crate) mod body;
mod folders;
pub(crate) mod invocation;
mod live;
pub(crate) mod load;
mod reading;
pub(crate) mod scripts;
mod source;
mod tolerant;
pub(crate) mod tool;

use reading::Form;

pub use live::LiveSkills;
pub use source::{Source, Sources};

use crate::agents::{AgentCatalog, Level, Problem};
use crate::tool_facts::filter;
use crate::trust::TrustStatus;
use posse_protocol::SkillRules;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A skill, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Its purpose, and when to use it.
    pub description: String,
    /// Its folder, canonical and absolute. A command has the folder of its file.
    pub folder: PathBuf,
    /// The file with its text: SKILL.md, or the file of a command.
    pub file: PathBuf,
    /// It is a command: a skill of one file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_command: bool,
    /// The tools that it asks for. This does not grant them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Names of its arguments, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// A description of its arguments, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub argument_hint: String,
    /// Models do not see it: only people invoke it.
    pub is_manual: bool,
    /// Its licence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    /// The size of its body in bytes.
    pub bytes: u64,
}

impl Skill {
    /// Returns its body as an agent would get it with these arguments.
    ///
    /// # Errors
    /// When it can no longer be read, with the reason.
    pub fn body(&self, arguments: &str) -> Result<String, String> {
        Ok(self.load()?.filled(arguments, &self.folder))
    }

    fn load(&self) -> Result<body::Loaded, String> {
        let form = if self.is_command { Form::Command } else { Form::Skill };
        body::load(&self.file, form)
    }

    /// Returns the names of executable files in its folder: empty if the skill is only text.
    pub fn scripts(&self) -> Vec<String> {
        if self.is_command { Vec::new() } else { scripts::of(&self.folder) }
    }

    /// True when `folder` is its own folder.
    fn is_in(&self, folder: &Path) -> bool {
        !self.is_command && self.folder == folder
    }

    /// Returns the names of the other files in its folder, as many as an agent sees.
    pub fn files(&self) -> Vec<String> {
        if self.is_command { Vec::new() } else { body::files(&self.folder).names }
    }
}

/// A skill that was found, whether it is in use or not.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Its SKILL.md, or the file of a command.
    pub file: PathBuf,
    /// The skill itself; `None` if it is unusable, and then a problem says why.
    pub skill: Option<Skill>,
    /// The source of the skill that takes precedence over this one.
    pub shadowed_by: Option<Source>,
    /// The settings deny it.
    pub is_denied: bool,
    /// The trust in the folder that contains it; `None` for a skill of the user.
    pub standing: Option<TrustStatus>,
}

impl Entry {
    /// True when the folder that contains it is not trusted.
    pub fn is_untrusted(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| !standing.is_trusted())
    }
}

/// Skills by name. Names are not case-sensitive.
#[derive(Clone, Debug, Default)]
pub struct SkillCatalog {
    /// In order of precedence.
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

    /// Returns the usable skills by name: those that no other skill shadows and the settings allow.
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

    /// Returns every skill that was found, in order of precedence: also those that are shadowed,
    /// denied or unusable.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the skill that `name` means, usable or not.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let in_force = self.entries.iter().filter(|entry| entry.shadowed_by.is_none());
        in_force.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// Returns the problems that authors of skills should know, file by file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// True when the settings allow a skill `name`.
    pub fn allows(&self, name: &str) -> bool {
        self.rules.iter().all(|rules| allows(rules, name))
    }

    /// Returns a problem for each agent that preloads a skill that does not exist.
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

    /// Returns why the skill in `folder` is only listed, if it is: its folder is not trusted, and
    /// it contains something executable.
    pub(crate) fn held_back(&self, folder: &Path) -> Option<String> {
        let here = |entry: &&Entry| entry.skill.as_ref().is_some_and(|it| it.is_in(folder));
        let entry = self.entries.iter().find(here).filter(|entry| entry.is_untrusted())?;
        scripts::held_back(folder, entry.standing.as_ref())
    }

    /// True when the skill in `folder` belongs to the user, or to a trusted project.
    pub(crate) fn is_trusted(&self, folder: &Path) -> bool {
        let here = |entry: &&Entry| entry.skill.as_ref().is_some_and(|it| it.is_in(folder));
        self.entries.iter().find(here).is_some_and(|entry| !entry.is_untrusted())
    }

    /// Returns the first skill `name` that does not come from a project.
    pub(crate) fn own(&self, name: &str) -> Option<&Skill> {
        let own = self
            .entries
            .iter()
            .filter(|entry| !entry.is_denied && !matches!(entry.source, Source::Project { .. }));
        let mut skills = own.filter_map(|entry| entry.skill.as_ref());
        skills.find(|skill| skill.name.eq_ignore_ascii_case(name))
    }
}

/// True when `rules` allow a skill `name`. A denial always wins.
pub(crate) fn allows(rules: &SkillRules, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let fits = |entry: &String| {
        let entry = entry.to_ascii_lowercase();
        entry == name || entry.contains('*') && filter::matches(&entry, &name)
    };
    rules.allow.as_ref().is_none_or(|allow| allow.iter().any(fits)) && !rules.deny.iter().any(fits)
}
