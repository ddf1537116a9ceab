//! The models that are part of this library.

use posse_model::HostModel;

/// The models that need neither a key nor a server: the offline model, as a last resort, if this
/// library was built with the feature `offline`; else none.
pub fn built_in_models() -> Vec<HostModel> {
    #[cfg(feature = "offline")]
    return vec![offline()];
    #[cfg(not(feature = "offline"))]
    return Vec::new();
}

#[cfg(feature = "offline")]
fn offline() -> HostModel {
    let mut model = HostModel::new(std::sync::Arc::new(posse_offline::Offline::new()));
    // The price is known: it is free.
    model.abilities.priced = true;
    model.last_resort = true;
    model
}
