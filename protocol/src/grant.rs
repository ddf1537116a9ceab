//! Grants: what a run may do.

use crate::{
    Budget, Delegation, Extra, Mode, Network, Permissions, Profile, Site, SkillOffer, SourceOffer,
    ToolFacts, Worktree,
};
use serde::{Deserialize, Serialize};

/// What a run may do. Posse computes it when the run starts and stores it in the first event. A child's
/// grant can only be stricter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The names of the tools it may call, as the model sees them. Empty allows none.
    pub tools: Vec<String>,
    /// The folder it works in, canonical and absolute. The file tools cannot read or write outside of it.
    pub workspace: String,
    /// The arguments with which it may call tools. Each list restricts the tools that it names: a call
    /// of one of them must match a rule of the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Vec<String>>,
    /// Rules about calls, for this run and its subagents.
    #[serde(default, skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// How Posse decides about calls that no rule matches.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub mode: Mode,
    /// The widest profile of this run and its subagents. [`Grant::profile`] is the run's own.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub reach: Profile,
    /// Which hosts their processes may connect to.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub network: Network,
    /// A person can answer the questions of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// An additional folder of its own, absolute. It is created on first use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
    /// The git worktree of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The names of the tools that its subagents may be granted, whether the run itself may call them or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hand_on: Vec<String>,
    /// Facts about those of these tools that are not built in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<ToolFacts>,
    /// The agents it may call; `None` if it may call none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// The skills that the run and its subagents may use. They can read the folders of the skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillOffer>,
    /// The tools that tool sources offered when the root was prepared, if the run or its subagents may
    /// be granted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceOffer>,
    /// Where the workspace is.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub site: Site,
    /// The label that the worker of the run must have; empty if it needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub needs: String,
    /// How much the run and its subagents may spend together.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The built-in tools that change files; stored grants hold no facts about them. In rules, their names
/// stand for every tool that changes files.
const WRITING: [&str; 2] = ["Write", "Edit"];

/// The patterns that match every path in a rule.
const EVERY_PATH: [&str; 6] = ["", "*", "**", "/**", "./**", "//**"];

/// True when `rule` denies every call of `tool`, which changes files. A rule about the paths of a
/// built-in tool applies to every tool that changes files.
fn denies(rule: &str, tool: &str) -> bool {
    let rule = rule.trim();
    match rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
        None => rule == tool,
        Some((name, paths)) => {
            let name = name.trim();
            (WRITING.contains(&name) || name == tool) && EVERY_PATH.contains(&paths.trim())
        }
    }
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Grant {
    /// The profile of the run's own processes: at most that of its file tools, and read-only in plan
    /// mode. A shell cannot be restricted to some paths of the workspace, so it gets read-only if a
    /// scope restricts writing.
    pub fn profile(&self) -> Profile {
        match self.scopes.iter().flatten().any(|rule| self.is_about_writing(rule)) {
            true => Profile::ReadOnly,
            false => self.files(),
        }
    }

    /// The profile of the run's file tools, which rules can restrict to some paths.
    pub fn files(&self) -> Profile {
        let known = self.known.iter().filter(|tool| tool.changes_files());
        let all = WRITING.into_iter().chain(known.map(|tool| tool.name.as_str()));
        let mut writing = all.filter(|tool| self.allows(tool));
        let writes = writing.any(|tool| !self.permissions.deny.iter().any(|it| denies(it, tool)));
        match writes && self.mode != Mode::Plan {
            true => self.reach,
            false => Profile::ReadOnly,
        }
    }

    /// True when a rule of a scope restricts what the run may write.
    fn is_about_writing(&self, rule: &str) -> bool {
        let name = rule.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
        let ours = ["write", "edit", "create_file", "str_replace", "replace"];
        let means = |tool: &&ToolFacts| {
            let mut names = std::iter::once(&tool.name).chain(&tool.aliases);
            names.any(|known| known.eq_ignore_ascii_case(&name))
        };
        ours.iter().any(|it| name.starts_with(it))
            || self.known.iter().find(means).is_some_and(ToolFacts::writes_files)
    }

    /// True when the run may call the tool with this name.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Effect};

    #[test]
    fn who_may_change_no_file_has_commands_that_change_none() {
        let profile = |tools: &[&str], deny: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
            let permissions = Permissions { deny: all(deny), ..Permissions::default() };
            let (tools, mode, reach) = (all(tools), Mode::AcceptEdits, Profile::WorkspaceWrite);
            Grant { tools, permissions, mode, reach, ..Grant::default() }.profile()
        };
        let both = ["Bash", "Write", "Edit"];
        for deny in [&["Write", "Edit"][..], &["Edit(**)"], &["Write(*)"], &["Edit(./**)"]] {
            assert_eq!(profile(&both, deny), Profile::ReadOnly, "{deny:?}");
        }
        for deny in [&[][..], &["Edit"], &["Write"], &["Edit(src/**)"], &["Read", "Bash(rm:*)"]] {
            assert_eq!(profile(&both, deny), Profile::WorkspaceWrite, "{deny:?}");
        }
        assert_eq!(profile(&["Bash", "Edit"], &["Edit"]), Profile::ReadOnly);
        assert_eq!(profile(&["Bash"], &[]), Profile::ReadOnly);
    }

    #[test]
    fn a_host_s_tool_that_changes_files_counts_as_one_of_ours() {
        let save = ToolFacts {
            about: Some(About::File("path".to_owned())),
            ..ToolFacts::new("save", Effect::Write)
        };
        let profile = |known: &ToolFacts, deny: &[&str], scope: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            let permissions = Permissions { deny: all(deny), ..Permissions::default() };
            let (tools, known) = (all(&["Bash", "save"]), vec![known.clone()]);
            let (mode, reach) = (Mode::AcceptEdits, Profile::WorkspaceWrite);
            let scopes = vec![all(scope)];
            Grant { tools, known, permissions, scopes, mode, reach, ..Grant::default() }.profile()
        };
        assert_eq!(profile(&save, &[], &[]), Profile::WorkspaceWrite);
        for deny in ["save", "save(**)", "Edit(**)"] {
            assert_eq!(profile(&save, &[deny], &[]), Profile::ReadOnly, "{deny}");
        }
        assert_eq!(profile(&save, &[], &["save(docs/**)"]), Profile::ReadOnly);
        let elsewhere = ToolFacts::new("save", Effect::Write);
        assert_eq!(profile(&elsewhere, &[], &[]), Profile::ReadOnly, "it names no file");
    }
}
