//! The built-in offline model, unless this program was built without the feature `offline`.

/// True for the name of the offline model.
#[cfg(feature = "offline")]
pub fn is_offline(model: &str) -> bool {
    model == posse::offline::ID
}

/// True for the name of the offline model, which is not part of this build.
#[cfg(not(feature = "offline"))]
pub fn is_offline(_: &str) -> bool {
    false
}

/// Advice for a user without an API key.
pub const WITHOUT_KEY: &str = if cfg!(feature = "offline") {
    "`posse models` shows which models can be used now; `--model offline/planner` needs no key"
} else {
    "`posse models` shows which models can be used now"
};
