//! The catalog of agents: where they are defined, which definition wins, and their problems.
//!
//! Reads only the files that it is given, never the environment. A definition that cannot be used
//! becomes a problem with a place, never a panic, and does not hide other definitions. Its name
//! then finds no agent: otherwise a mistake in a file could bring back a less strict agent of the
//! same name.

mod change;
mod draft;
mod folders;
mod json;
mod live;
mod load;
mod resolve;
mod source;
mod template;
mod tool_list;

pub use crate::definition::{
    AgentDefinition, COLORS, DefinedChildren, DefinedModels, DefinedRights, DefinedStart, Measure,
    Memory, Network, Paths, PermissionMode,
};
pub use crate::front_matter::problem::{Level, Problem};
pub use crate::tool_facts::{ToolFacts, built_in_tools, granted_tools, tools_of};
pub use live::LiveCatalog;
pub use source::{Given, Source, Sources};
pub use template::template;

use crate::error::Error;
use crate::front_matter::problem::Findings;
use crate::trust::TrustStatus;
use load::Reader;
use posse_protocol::{AgentName, AgentSpec};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Agents by name. Names are compared without regard to case.
#[derive(Clone, Debug)]
pub struct AgentCatalog {
    /// In the order of precedence.
    entries: Vec<Entry>,
    /// Indexes of the entries that no other entry shadows, in display order.
    effective: Vec<usize>,
    problems: Vec<Problem>,
}

/// A definition that was found, whether it is in effect or not.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the agent.
    pub name: AgentName,
    /// The source of the definition.
    pub source: Source,
    /// The file that contains it.
    pub path: Option<PathBuf>,
    /// The line it begins at.
    pub line: Option<u32>,
    /// Line and column of its `model`, if known.
    pub model_at: Option<(u32, u32)>,
    /// The definition as written; `None` for an agent that the host added.
    pub definition: Option<Arc<AgentDefinition>>,
    /// The agent; `None` if the definition cannot be used. A problem then says why.
    pub agent: Option<AgentSpec>,
    /// Whether the folder that it comes from is trusted; `None` for an agent of the user.
    pub standing: Option<TrustStatus>,
    /// The source of the entry that shadows this one.
    pub shadowed_by: Option<Source>,
    /// The settings files that change it.
    pub changed_by: Vec<PathBuf>,
}

impl Entry {
    /// The precedence; a lower rank wins. An untrusted agent comes after all others, so it never
    /// shadows them.
    fn rank(&self) -> u8 {
        if self.is_trusted() { self.source.rank() } else { u8::MAX }
    }

    fn is_trusted(&self) -> bool {
        self.standing.as_ref().is_none_or(TrustStatus::is_trusted)
    }

    /// True when another agent shadows this one only because the folder of this one is not trusted.
    pub fn is_kept_from_its_name(&self) -> bool {
        !self.is_trusted()
            && self.shadowed_by.as_ref().is_some_and(|by| by.rank() > self.source.rank())
    }

    /// The models that its definition and the changes to it name, in effect or not.
    pub fn named_models(&self) -> Vec<String> {
        let written = self.definition.iter().map(|written| resolve::models(&written.models));
        let all = written.chain(self.agent.iter().map(|agent| agent.models.clone()));
        all.flat_map(|choice| choice.model.into_iter().chain(choice.fallbacks)).collect()
    }
}

impl AgentCatalog {
    /// The agents that come with Posse.
    pub fn built_in() -> Self {
        Reader::default().load(&Sources::default(), Vec::new())
    }

    pub(crate) fn of(mut entries: Vec<Entry>, problems: Vec<Problem>) -> Self {
        entries.sort_by_key(Entry::rank);
        let mut catalog = AgentCatalog { entries, effective: Vec::new(), problems };
        catalog.settle();
        catalog
    }

    /// Adds an agent of the host. It shadows agents of projects and users.
    ///
    /// # Errors
    /// When the host already added an agent of this name. The first one stays.
    pub fn add(&mut self, agent: AgentSpec) -> Result<(), Error> {
        let mut hosted = self.entries.iter().filter(|entry| entry.source == Source::Host);
        if hosted.any(|entry| same(&entry.name, &agent.name)) {
            return Err(Error::AlreadyExists { name: agent.name });
        }
        self.entries.push(Entry {
            name: agent.name.clone(),
            source: Source::Host,
            path: None,
            line: None,
            model_at: None,
            definition: None,
            agent: Some(agent),
            standing: None,
            shadowed_by: None,
            changed_by: Vec::new(),
        });
        self.entries.sort_by_key(Entry::rank);
        self.settle();
        Ok(())
    }

    /// Adds an agent of the host, or replaces the one of the same name that the host added before.
    pub fn set(&mut self, agent: AgentSpec) {
        let replaced =
            |entry: &Entry| entry.source == Source::Host && same(&entry.name, &agent.name);
        self.entries.retain(|entry| !replaced(entry));
        // `add` cannot fail: no host agent of that name is left.
        let _ = self.add(agent);
    }

    /// The agent called `name`.
    ///
    /// # Errors
    /// When the agent is unknown (the error lists the known ones) or its definition cannot be used.
    pub fn find(&self, name: &AgentName) -> Result<&AgentSpec, Error> {
        match self.entry(name) {
            Some(Entry { agent: Some(agent), .. }) => Ok(agent),
            Some(entry) => Err(Error::UnusableAgent {
                name: entry.name.clone(),
                problem: self.error_of(entry),
            }),
            None => Err(Error::UnknownAgent {
                name: name.clone(),
                known: self.iter().map(|agent| agent.name.to_string()).collect(),
            }),
        }
    }

    /// The usable agents: those with the name of a built-in agent first, then the others by name.
    pub fn iter(&self) -> impl Iterator<Item = &AgentSpec> {
        self.effective.iter().filter_map(|index| self.entries[*index].agent.as_ref())
    }

    /// Every definition that was found, by precedence, including shadowed and unusable ones.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The definition that `name` means.
    pub fn entry(&self, name: &AgentName) -> Option<&Entry> {
        let effective = self.effective.iter().map(|index| &self.entries[*index]);
        effective.into_iter().find(|entry| same(&entry.name, name))
    }

    /// Problems in the definitions, file by file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn effective_mut(&mut self, name: &AgentName) -> Option<&mut Entry> {
        let index = self.effective.iter().find(|index| same(&self.entries[**index].name, name))?;
        self.entries.get_mut(*index)
    }

    pub(crate) fn report(
        &mut self,
        findings: &Findings,
        path: Option<&Path>,
        line: Option<u32>,
        agent: Option<&AgentName>,
    ) {
        report(&mut self.problems, findings, path, line, agent);
    }

    /// Notes the agents that would shadow another agent if their folder were trusted.
    pub(crate) fn note_kept_from_names(&mut self) {
        let kept = self.entries.iter().filter(|entry| entry.is_kept_from_its_name());
        let notes: Vec<Problem> = kept
            .map(|entry| Problem {
                path: entry.path.clone(),
                line: entry.line,
                column: None,
                level: Level::Note,
                agent: Some(entry.name.to_string()),
                reason: format!(
                    "not used: this folder is not trusted, and there is another agent `{}` ({})",
                    entry.name,
                    entry.shadowed_by.as_ref().map_or_else(String::new, Source::to_string),
                ),
            })
            .collect();
        // Other problems of these agents do not matter, because the agents are not used.
        let is_about = |problem: &Problem| {
            let same = |note: &Problem| note.path == problem.path && note.agent == problem.agent;
            notes.iter().any(same)
        };
        self.problems.retain(|problem| !is_about(problem));
        self.problems.extend(notes);
    }

    /// Warns about agents that may call an agent that does not exist.
    pub(crate) fn check_callees(&mut self) {
        let mut missing = Vec::new();
        for entry in self.effective.iter().map(|index| &self.entries[*index]) {
            let agents =
                entry.agent.iter().flat_map(|agent| agent.children.agents.iter().flatten());
            let started =
                entry.agent.iter().flat_map(|agent| &agent.children.subagents.allowed_agents);
            for callee in agents.chain(started.flatten()) {
                if callee != "*" && !self.knows(callee) {
                    missing.push(Problem {
                        path: entry.path.clone(),
                        line: entry.line,
                        column: None,
                        level: Level::Warning,
                        agent: Some(entry.name.to_string()),
                        reason: format!("it may call `{callee}`, but there is no such agent"),
                    });
                }
            }
        }
        self.problems.extend(missing);
    }

    /// True when an agent of this name exists, compared without regard to case.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.iter().any(|agent| agent.name.as_str().eq_ignore_ascii_case(name))
    }

    /// Decides which entries shadow which, and the display order.
    fn settle(&mut self) {
        self.effective.clear();
        let mut winners: HashMap<String, Source> = HashMap::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let name = entry.name.as_str().to_ascii_lowercase();
            entry.shadowed_by = winners.get(&name).cloned();
            if entry.shadowed_by.is_none() {
                winners.insert(name, entry.source.clone());
                self.effective.push(index);
            }
        }
        let built_in: Vec<&AgentName> = self
            .entries
            .iter()
            .filter(|entry| entry.source == Source::BuiltIn)
            .map(|entry| &entry.name)
            .collect();
        let key = |index: &usize| {
            let name = &self.entries[*index].name;
            let position = built_in.iter().position(|known| same(known, name));
            (position.unwrap_or(usize::MAX), name.as_str().to_ascii_lowercase())
        };
        self.effective.sort_by_cached_key(key);
    }

    fn error_of(&self, entry: &Entry) -> String {
        let of_entry = |problem: &&Problem| {
            problem.level == Level::Error && problem.agent.as_deref() == Some(entry.name.as_str())
        };
        let in_file = self.problems.iter().filter(of_entry);
        let found = in_file.clone().find(|problem| problem.path == entry.path);
        found.or_else(|| in_file.clone().next()).map_or_else(String::new, Problem::to_string)
    }
}

/// Adds `findings` to `problems`. A finding without a place gets `line`.
fn report(
    problems: &mut Vec<Problem>,
    findings: &Findings,
    path: Option<&Path>,
    line: Option<u32>,
    agent: Option<&AgentName>,
) {
    for finding in &findings.0 {
        let mut problem = finding.problem(path, agent.map(AgentName::as_str));
        problem.line = problem.line.or(line);
        problems.push(problem);
    }
}

fn same(one: &AgentName, other: &AgentName) -> bool {
    one.as_str().eq_ignore_ascii_case(other.as_str())
}
