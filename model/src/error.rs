//! Errors of resolving the name of a model.

/// Why a name does not resolve to a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The part before the `/` is no known vendor.
    #[error(
        "`{name}`: there is no vendor `{vendor}`; {suggestion}. A vendor of your own is a table [vendors.{vendor}] in your settings"
    )]
    UnknownVendor {
        /// The name.
        name: String,
        /// The part before the `/`.
        vendor: String,
        /// A vendor that may be meant.
        suggestion: String,
    },
    /// A name without a vendor that is no known model either.
    #[error("`{name}` is not a known model; {suggestion}")]
    UnknownModel {
        /// The name.
        name: String,
        /// A model that may be meant, and how to write others.
        suggestion: String,
    },
    /// The API key of the vendor is not set.
    #[error("`{name}` needs a key, and there is none; set {variable}")]
    MissingKey {
        /// The name.
        name: String,
        /// The environment variable for the key.
        variable: String,
    },
    /// Several models were named, and all lack their keys.
    #[error("none of the models can be used: {reasons}")]
    NoneUsable {
        /// What each one lacks.
        reasons: String,
    },
    /// The cassette of the replay does not have it.
    #[error(
        "`{name}` is not in the cassette {path}, which has {recorded}; leave the model out, or record again"
    )]
    NotRecorded {
        /// The name.
        name: String,
        /// The cassette.
        path: String,
        /// The models in it.
        recorded: String,
    },
    /// No model is named, and there is no default.
    #[error("there is no model to take: {reason}; {remedy}")]
    NothingToTake {
        /// Why there is none.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A model of the host is invalid.
    #[error("the model `{name}` of this program cannot be used: {reason}")]
    UnusableHostModel {
        /// Its name.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The key has invalid characters.
    #[error(
        "the key in {variable} has characters that cannot be sent, such as a line break; set {variable} to the key alone"
    )]
    UnusableKey {
        /// The environment variable with the key.
        variable: String,
    },
    /// The base URL is invalid.
    #[error("{place} is not a usable URL: {reason}; set it to something like {example}")]
    UnusableUrl {
        /// Where the URL is set.
        place: String,
        /// What is wrong with it.
        reason: String,
        /// A valid example.
        example: String,
    },
}
