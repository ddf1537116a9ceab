//! The models that this library has in itself: what a host gets that brings none of its own.

use posse_model::HostModel;

/// The models that are there without a key and without a server: the offline one, as a last resort,
/// if this library was built with the feature `offline`; else none.
pub fn built_in_models() -> Vec<HostModel> {
    #[cfg(feature = "offline")]
    return vec![offline()];
    #[cfg(not(feature = "offline"))]
    return Vec::new();
}

#[cfg(feature = "offline")]
fn offline() -> HostModel {
    let mut model = HostModel::new(std::sync::Arc::new(posse_offline::Offline::new()));
    // Free, and known to be.
    model.abilities.priced = true;
    model.last_resort = true;
    model
}
