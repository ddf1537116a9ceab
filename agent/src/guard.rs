//! The trait that decides whether a call may run.

use posse_protocol::{ToolCall, ToolSpec};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Decides whether a call may run. The loop asks once for each call, before the call starts. A
/// guard does no I/O.
pub trait Guard: Send + Sync {
    /// Decides about `call` of the tool that `spec` describes.
    fn judge(&self, call: &ToolCall, spec: &ToolSpec, standing: &AddedRules) -> Ruling;
}

/// Rules that the log of the run adds to those it started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedRules {
    /// Rules that a person approved for the rest of the run.
    pub approved: Vec<String>,
    /// Lists of rules from the skills in use. A call must match a rule of each list.
    pub narrowed: Vec<Vec<String>>,
}

/// The decision about a call, and its source: a rule, the mode or the grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The call runs.
    Allow {
        /// The source of the decision.
        by: String,
    },
    /// Posse asks a person.
    Ask {
        /// The source of the decision.
        by: String,
        /// The rule that would allow this call and similar ones from now on.
        rule: Option<String>,
    },
    /// The call does not run.
    Deny {
        /// The source of the decision.
        by: String,
        /// The message for the model: the reason, and what it may do instead.
        reason: String,
    },
}

/// The hash that binds an answer to its question about `call`. It covers the name of the tool as
/// called, and the arguments, byte for byte.
pub fn digest(call: &ToolCall) -> String {
    let mut hash = Sha256::new();
    hash.update((call.name.len() as u64).to_le_bytes());
    hash.update(&call.name);
    hash.update(call.input.to_string());
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Allows every call. For agents whose only restriction is their list of tools.
pub struct Unguarded;

impl Guard for Unguarded {
    fn judge(&self, _: &ToolCall, _: &ToolSpec, _: &AddedRules) -> Ruling {
        Ruling::Allow { by: String::new() }
    }
}
