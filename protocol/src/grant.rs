//! What a run may do.

use crate::Extra;
use serde::{Deserialize, Serialize};

/// What a run may do. Computed when the run starts, stored in its first event; it only narrows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Names of the tools it may call, as offered to the model. Empty allows none.
    pub tools: Vec<String>,
    /// The folder it works in, canonical and absolute; nothing outside is readable or writable
    /// through the file tools.
    pub workspace: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Grant {
    /// True when a tool of this name may be called.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }
}
