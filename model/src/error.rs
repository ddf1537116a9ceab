//! Why a name gives no model.

/// Why a name gives no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// What stands before the `/` is no vendor.
    #[error(
        "`{name}`: there is no vendor `{vendor}`; {suggestion}. A vendor of your own is a table [vendors.{vendor}] in your settings"
    )]
    UnknownVendor {
        /// What was asked for.
        name: String,
        /// The part before the `/`.
        vendor: String,
        /// Which vendor may be meant.
        suggestion: String,
    },
    /// A name without a vendor that is no known model either.
    #[error("`{name}` is not a known model; {suggestion}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// Which model may be meant, and how others are written.
        suggestion: String,
    },
    /// There is no key for the vendor.
    #[error("`{name}` needs a key, and there is none; set {variable}")]
    MissingKey {
        /// What was asked for.
        name: String,
        /// Where the key is expected.
        variable: String,
    },
    /// Of several models that were named, each lacks its key.
    #[error("none of the models can be used: {reasons}")]
    NoneUsable {
        /// What each lacks.
        reasons: String,
    },
    /// It is not in the cassette that is played.
    #[error(
        "`{name}` is not in the cassette {path}, which has {recorded}; leave the model out, or record again"
    )]
    NotRecorded {
        /// What was asked for.
        name: String,
        /// Which cassette.
        path: String,
        /// The models it has.
        recorded: String,
    },
    /// No model is named, and there is no default.
    #[error("there is no model to take: {reason}; {remedy}")]
    NothingToTake {
        /// Why there is none.
        reason: String,
        /// What would help.
        remedy: String,
    },
    /// A model that the program brings along cannot be one.
    #[error("the model `{name}` of this program cannot be used: {reason}")]
    UnusableHostModel {
        /// What it is called.
        name: String,
        /// Why not, and what would be right.
        reason: String,
    },
    /// The key cannot be a key.
    #[error(
        "the key in {variable} has characters that cannot be sent, such as a line break; set {variable} to the key alone"
    )]
    UnusableKey {
        /// Where the key came from.
        variable: String,
    },
    /// The base URL is invalid.
    #[error("{place} is not a usable URL: {reason}; set it to something like {example}")]
    UnusableUrl {
        /// Where the URL came from.
        place: String,
        /// What is wrong with it.
        reason: String,
        /// What it could be.
        example: String,
    },
}
