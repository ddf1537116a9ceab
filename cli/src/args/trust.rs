//! Options of `posse trust`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TrustOptions {
    /// Trust this folder and the folders above it, up to the root of its repository [default: the
    /// current one]
    pub folder: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
    #[command(subcommand)]
    pub verb: Option<TrustVerb>,
}

#[derive(Subcommand)]
pub enum TrustVerb {
    /// List the folders that you trust, and whether each has changed since
    List,
    /// Stop trusting a folder and the folders above it, up to the root of its repository
    Remove {
        /// The folder [default: the current one]
        folder: Option<PathBuf>,
    },
}
