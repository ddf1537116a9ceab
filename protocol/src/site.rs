//! Where the workspace of a run is.

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
}

impl Site {
    /// Returns the machine that the workspace is bound to; empty if it is bound to none.
    pub fn host(&self) -> &str {
        match self {
            Site::Here | Site::Shared => "",
            Site::Host { name } => name,
        }
    }
}
