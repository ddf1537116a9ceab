//! What a run may do.

use crate::{Budget, Delegation, Extra, Mode, Network, Permissions, Profile, SkillOffer, Worktree};
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
    /// To whom it may hand work; nothing when it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// The skills it may use, and those it starts too. Their folders can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillOffer>,
    /// How much it and everything below it may spend together.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// True when a rule of a scope narrows what may be written.
fn is_about_writing(rule: &str) -> bool {
    let name = rule.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
    ["write", "edit", "create_file", "str_replace", "replace"].iter().any(|it| name.starts_with(it))
}

/// The tool that changes files and that `name` is a name of.
fn writing_tool(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "write" | "write_file" | "writefile" | "create_file" => Some("Write"),
        "edit" | "edit_file" | "editfile" | "str_replace" | "replace" | "replace_in_file" => {
            Some("Edit")
        }
        _ => None,
    }
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Grant {
    /// How far its own processes reach: no further than its file tools, and nowhere in a plan. A
    /// shell cannot be kept to some paths of the workspace, so where its writing is, it only reads.
    pub fn profile(&self) -> Profile {
        match self.scopes.iter().flatten().any(|rule| is_about_writing(rule)) {
            true => Profile::ReadOnly,
            false => self.files(),
        }
    }

    /// How far its file tools reach, which rules can keep to some paths.
    pub fn files(&self) -> Profile {
        let can = |tool: &str| self.allows(tool) && !self.denies_all(tool);
        let writes = can("Write") || can("Edit");
        match writes && self.mode != Mode::Plan {
            true => self.reach,
            false => Profile::ReadOnly,
        }
    }

    /// True when a rule denies every call of `tool`, which is Write or Edit.
    fn denies_all(&self, tool: &str) -> bool {
        self.permissions.deny.iter().any(|rule| {
            let (name, specifier) = match rule.trim().split_once('(') {
                Some((name, rest)) => (name.trim(), rest.strip_suffix(')')),
                None => (rule.trim(), None),
            };
            match specifier.map(str::trim) {
                None => name == "*" || writing_tool(name) == Some(tool),
                // A rule about paths is about both.
                Some(paths) => paths == "**" && writing_tool(name).is_some(),
            }
        })
    }

    /// True when a tool of this name may be called.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_change_no_file_has_commands_that_change_none() {
        let profile = |deny: &[&str]| {
            let mut grant = Grant {
                tools: vec!["Write".to_owned(), "Edit".to_owned(), "Bash".to_owned()],
                mode: Mode::AcceptEdits,
                reach: Profile::WorkspaceWrite,
                ..Grant::default()
            };
            grant.permissions.deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
            grant.profile()
        };
        for deny in [&["Edit", "Write"][..], &["edit", "write_file"], &["Edit(**)"], &["*"]] {
            assert_eq!(profile(deny), Profile::ReadOnly, "{deny:?}");
        }
        for deny in [&[][..], &["Edit"], &["Write"], &["Edit(docs/**)", "Write(a)"], &["Bash(x:*)"]]
        {
            assert_eq!(profile(deny), Profile::WorkspaceWrite, "{deny:?}");
        }
    }
}
