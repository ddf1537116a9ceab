//! What a run may do.

use crate::{
    Budget, Delegation, Extra, Mode, Network, Permissions, Profile, SkillOffer, SourceOffer,
    ToolFacts, Worktree,
};
use serde::{Deserialize, Serialize};

/// What a run may do. Computed when the run starts, stored in its first event; it only narrows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Names of the tools it may call, as offered to the model. Empty allows none.
    pub tools: Vec<String>,
    /// The folder it works in, canonical and absolute; nothing outside is readable or writable
    /// through the file tools.
    pub workspace: String,
    /// What its tools may be called with: each list narrows those tools that it names, of which a
    /// call must then fit one rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Vec<String>>,
    /// Rules about calls, for it and the runs it starts.
    #[serde(default, skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// How calls are decided that no rule decides.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub mode: Mode,
    /// How far processes may reach, of it and the runs it starts; its own reach is
    /// [`Grant::profile`].
    #[serde(default, skip_serializing_if = "is_usual")]
    pub reach: Profile,
    /// Whom they may talk to.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub network: Network,
    /// There is a person who can be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// A folder of its own besides, absolute; made when it is first used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
    /// The worktree that is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Names of the tools that runs it starts may be granted, whether it may call them or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hand_on: Vec<String>,
    /// What those of these tools say of themselves that do not come with Posse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<ToolFacts>,
    /// To whom it may hand work; nothing when it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// The skills it may use, and those it starts too. Their folders can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillOffer>,
    /// What sources of tools offered when the run at the top was prepared, as far as it or those below it
    /// may be granted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceOffer>,
    /// How much it and everything below it may spend together.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The tools that change files and come with Posse; stored grants say nothing of them. Their names are
/// the words by which rules mean every tool that changes files.
const WRITING: [&str; 2] = ["Write", "Edit"];

/// What stands for every path in a rule.
const EVERY_PATH: [&str; 6] = ["", "*", "**", "/**", "./**", "//**"];

/// True when `rule` denies every call of `tool`, which changes files. One about the paths of a tool of
/// Posse is about all of them.
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
    /// How far its own processes reach: no further than its file tools, and nowhere in a plan. A
    /// shell cannot be kept to some paths of the workspace, so where its writing is, it only reads.
    pub fn profile(&self) -> Profile {
        match self.scopes.iter().flatten().any(|rule| self.is_about_writing(rule)) {
            true => Profile::ReadOnly,
            false => self.files(),
        }
    }

    /// How far its file tools reach, which rules can keep to some paths.
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

    /// True when a rule of a scope narrows what may be written.
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

    /// True when a tool of this name may be called.
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
