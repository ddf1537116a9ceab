//! The agents there are: who defines them, who comes before whom, and what is wrong with them.
//!
//! Reads files that it is pointed to, never the environment. A definition that cannot be used is a
//! problem with a place, never a panic, and hides no other; its name then means nobody, so that
//! no slip in a file brings back a wider agent behind it.

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
use crate::trust::Standing;
use load::Reader;
use posse_protocol::{AgentName, AgentSpec};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Agents by name. Names match whatever the case.
#[derive(Clone, Debug)]
pub struct AgentCatalog {
    /// In the order of precedence.
    entries: Vec<Entry>,
    /// Those that nothing shadows, in the order in which they are shown.
    effective: Vec<usize>,
    problems: Vec<Problem>,
}

/// A definition that was found, whether it is in force or not.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the agent is called.
    pub name: AgentName,
    /// Where it comes from.
    pub source: Source,
    /// The file it stands in.
    pub path: Option<PathBuf>,
    /// The line it begins at.
    pub line: Option<u32>,
    /// Line and column of its `model`, where they are known.
    pub model_at: Option<(u32, u32)>,
    /// As it is written; `None` for an agent of the program.
    pub definition: Option<Arc<AgentDefinition>>,
    /// The agent itself; `None` when it cannot be used, which a problem says why.
    pub agent: Option<AgentSpec>,
    /// What is thought of the folder that brings it along; nothing for an agent of the user's.
    pub standing: Option<Standing>,
    /// Who has its name instead.
    pub shadowed_by: Option<Source>,
    /// The settings files that change it.
    pub changed_by: Vec<PathBuf>,
}

impl Entry {
    /// Lower comes first. An agent that nobody trusts comes after all others, and so takes no name
    /// from them.
    fn rank(&self) -> u8 {
        if self.is_trusted() { self.source.rank() } else { u8::MAX }
    }

    fn is_trusted(&self) -> bool {
        self.standing.as_ref().is_none_or(Standing::is_trusted)
    }

    /// True when somebody has its name instead only because nobody trusts its folder.
    pub fn is_kept_from_its_name(&self) -> bool {
        !self.is_trusted()
            && self.shadowed_by.as_ref().is_some_and(|by| by.rank() > self.source.rank())
    }

    /// The models that its definition and those who change it name, in force or not.
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

    /// Adds an agent of the program. It comes before those of projects and users.
    ///
    /// # Errors
    /// When the program has added one of that name; the first stays.
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

    /// Adds an agent of the program, in place of one of that name that it added before.
    pub fn set(&mut self, agent: AgentSpec) {
        let replaced =
            |entry: &Entry| entry.source == Source::Host && same(&entry.name, &agent.name);
        self.entries.retain(|entry| !replaced(entry));
        // Nothing of that name is left that could be in the way.
        let _ = self.add(agent);
    }

    /// The agent called `name`.
    ///
    /// # Errors
    /// When there is none, with who there is; or when what defines it cannot be used.
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

    /// The agents that can be used: those that come with Posse or have their names, then the
    /// others by name.
    pub fn iter(&self) -> impl Iterator<Item = &AgentSpec> {
        self.effective.iter().filter_map(|index| self.entries[*index].agent.as_ref())
    }

    /// Every definition that was found, those that come first first: also those that others shadow
    /// and those that cannot be used.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The definition that `name` means.
    pub fn entry(&self, name: &AgentName) -> Option<&Entry> {
        let effective = self.effective.iter().map(|index| &self.entries[*index]);
        effective.into_iter().find(|entry| same(&entry.name, name))
    }

    /// What the authors of definitions should know, file by file.
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

    /// Says which agents would take the name of another if they were trusted.
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
        // What else is said of them does not matter now.
        let is_about = |problem: &Problem| {
            let same = |note: &Problem| note.path == problem.path && note.agent == problem.agent;
            notes.iter().any(same)
        };
        self.problems.retain(|problem| !is_about(problem));
        self.problems.extend(notes);
    }

    /// Says which agents may call somebody who is not there.
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

    /// True when there is an agent of this name, whatever its case.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.iter().any(|agent| agent.name.as_str().eq_ignore_ascii_case(name))
    }

    /// Decides who shadows whom, and in which order agents are shown.
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

/// Adds `findings` to `problems`. What has no place of its own stands at `line`.
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
