//! Where the workspace of a run is.

use crate::Extra;
use serde::{Deserialize, Serialize};

/// Where the workspace of a run is. Only a worker that can have it executes the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Site {
    /// A folder of the machine that has the database: there is only one.
    #[default]
    Here,
    /// A folder of the machine with this name.
    Host {
        /// The name of the machine.
        name: String,
    },
    /// A folder that is the same on every machine.
    Shared,
    /// A checkout of a git repository, on the machine of whoever executes the run.
    Repository(RepositorySite),
    /// Nowhere: the run has no files.
    Nowhere,
}

/// The repository and the commit that a run works on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositorySite {
    /// The address from which a worker clones it, without a password.
    pub url: String,
    /// The commit of the repository at which the work began, as a full id.
    pub commit: String,
    /// The commit at which this run began, if its caller had changed something before. The repository
    /// does not have it; the bundle of the run does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The folder in which the run was started, absolute. Lists show it.
    pub origin: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RepositorySite {
    /// Returns the commit at which the run began.
    pub fn base(&self) -> &str {
        if self.from.is_empty() { &self.commit } else { &self.from }
    }
}

impl Site {
    /// Returns the machine that the workspace is bound to; empty if it is bound to none.
    pub fn host(&self) -> &str {
        match self {
            Site::Here | Site::Shared | Site::Repository(_) | Site::Nowhere => "",
            Site::Host { name } => name,
        }
    }

    /// Returns the repository, if the workspace is a checkout of one.
    pub fn repository(&self) -> Option<&RepositorySite> {
        match self {
            Site::Repository(repository) => Some(repository),
            _ => None,
        }
    }

    /// Returns true if the workspace is no folder that was there before the run.
    pub fn is_portable(&self) -> bool {
        matches!(self, Site::Repository(_) | Site::Nowhere)
    }
}

/// The workspace of a run, if it is not a folder of the machine that starts the run. In JSON:
/// `{"repository": "https://example.org/x.git@main"}` or `"nowhere"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A git repository: its address or a folder, and after the last `@`, a commit or a branch.
    Repository(String),
    /// Nowhere: the run has no files.
    Nowhere,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_site_is_stored_with_its_kind() {
        let site = Site::Repository(RepositorySite {
            url: "https://example.org/x.git".to_owned(),
            commit: "c".to_owned(),
            origin: "/w".to_owned(),
            ..RepositorySite::default()
        });
        let stored = json!({"kind": "repository", "url": "https://example.org/x.git",
            "commit": "c", "origin": "/w"});
        assert_eq!(serde_json::to_value(&site).unwrap(), stored);
        assert_eq!(serde_json::from_value::<Site>(stored.clone()).unwrap(), site);
        let mut newer = stored;
        newer["depth"] = json!(1);
        let read: Site = serde_json::from_value(newer.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), newer, "unknown fields survive");
        assert_eq!(serde_json::to_value(Site::Nowhere).unwrap(), json!({"kind": "nowhere"}));
        assert_eq!(site.repository().unwrap().base(), "c");
    }
}
