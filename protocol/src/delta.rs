//! What is shown while it happens and never stored.

use crate::{CallId, Usage};
use serde::{Deserialize, Serialize};

/// A piece of something that is still under way. Readers may miss some; the stored event that
/// follows has the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// More text of the model.
    Text {
        /// What is new.
        text: String,
    },
    /// More reasoning of the model.
    Thinking {
        /// What is new.
        text: String,
    },
    /// More of the input of a tool call. The loop counts it; nobody is shown it.
    Called {
        /// How much is new.
        bytes: usize,
    },
    /// What the provider has counted so far of the call of the model. The loop keeps it; nobody is
    /// shown it.
    Counted {
        /// Tokens; no money.
        usage: Usage,
    },
    /// The call of the model waits until its provider takes more.
    Waiting {
        /// The provider.
        on: String,
        /// How many calls go before it.
        ahead: usize,
    },
    /// The run waits because its log cannot be written now. The next event tells that it goes on.
    Held {
        /// Why, for example that the disk is full.
        reason: String,
    },
    /// A tool says how far it is.
    ToolProgress {
        /// Which call.
        call: CallId,
        /// What is new, for example output of a command.
        text: String,
    },
}
