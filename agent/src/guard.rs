//! What decides whether a call may run.

use posse_protocol::{ToolCall, ToolSpec};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Decides whether a call may run. Asked once for each call, before anything of it happens; does
/// no I/O.
pub trait Guard: Send + Sync {
    /// What is to be done with `call` of the tool that `spec` describes.
    fn judge(&self, call: &ToolCall, spec: &ToolSpec, standing: &Standing) -> Ruling;
}

/// What the run's own log adds to the rules it began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Rules that a person has allowed for the rest of the run.
    pub approved: Vec<String>,
    /// Lists of rules, of each of which a call must fit one: what skills in use narrow to.
    pub narrowed: Vec<Vec<String>>,
}

/// What is to be done with a call, and what says so: a rule, the mode, the grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It runs.
    Allow {
        /// What says so.
        by: String,
    },
    /// A person decides.
    Ask {
        /// What says so.
        by: String,
        /// The rule that would allow it, and what is like it, from then on.
        rule: Option<String>,
    },
    /// It does not run.
    Deny {
        /// What says so.
        by: String,
        /// What the model is told: the reason and what it may do instead.
        reason: String,
    },
}

/// What a question about `call` and its answer are bound to: the tool's name as it was called, and
/// the arguments, byte for byte.
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

/// Lets every call run. For agents that nothing but their tools narrows.
pub struct Unguarded;

impl Guard for Unguarded {
    fn judge(&self, _: &ToolCall, _: &ToolSpec, _: &Standing) -> Ruling {
        Ruling::Allow { by: String::new() }
    }
}
