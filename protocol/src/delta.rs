//! Deltas: progress that is shown while it happens and never stored.

use crate::{CallId, Usage};
use serde::{Deserialize, Serialize};

/// A piece of text or progress while it arrives. Readers may miss some deltas; the stored event
/// that follows has the whole content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// More text of the model.
    Text {
        /// The new text.
        text: String,
    },
    /// More reasoning of the model.
    Thinking {
        /// The new text.
        text: String,
    },
    /// More of the input of a tool call. The loop counts its bytes; it is not shown.
    Called {
        /// The number of new bytes.
        bytes: usize,
    },
    /// What the vendor has counted of the present model call. The loop keeps it; it is not shown.
    Counted {
        /// The tokens, without their cost.
        usage: Usage,
    },
    /// The model call waits until its vendor accepts more calls.
    Waiting {
        /// The vendor.
        on: String,
        /// How many calls are before it in the queue.
        ahead: usize,
    },
    /// The run waits because its log cannot be written now. The next event shows that it continues.
    Held {
        /// The reason, for example that the disk is full.
        reason: String,
    },
    /// A tool reports progress.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The new text, for example output of a command.
        text: String,
    },
}
