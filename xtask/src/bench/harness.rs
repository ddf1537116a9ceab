//! What all benchmarks have in common: their options, an optimised build, the head of the table.

use super::part::command;
use super::{Result, line, meter};
use clap::ValueEnum;
use std::path::Path;

/// The options of a benchmark with several figures
#[derive(clap::Args)]
pub struct Choice<F: ValueEnum + Clone + Send + Sync + 'static> {
    /// Only this figure
    #[arg(long, value_enum)]
    pub only: Option<F>,
    #[command(flatten)]
    pub effort: Effort,
}

impl<F: ValueEnum + Clone + PartialEq + Send + Sync + 'static> Choice<F> {
    pub fn wants(&self, figure: F) -> bool {
        self.only.as_ref().is_none_or(|only| *only == figure)
    }
}

/// How much is measured
#[derive(Clone, Copy, clap::Args)]
pub struct Effort {
    /// One round of each, and smaller sizes
    #[arg(long)]
    pub quick: bool,
    /// Measure this build, optimised or not
    #[arg(long)]
    pub as_built: bool,
}

impl Effort {
    /// Everything, in this build.
    pub const AS_BUILT: Self = Effort { quick: false, as_built: true };

    /// `quick` or `full`, as the user wants it.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Measures several times.
    pub fn rounds<T>(self, mut measure: impl FnMut() -> Result<T>) -> Result<Vec<T>> {
        (0..self.pick(1, 3)).map(|_| measure()).collect()
    }

    /// Prints the head of the table and calls `measure`, in an optimised build unless the user
    /// wants this one.
    pub fn run(self, measure: impl Future<Output = Result<()>>) -> Result<()> {
        if cfg!(debug_assertions) && !self.as_built {
            return again_optimised();
        }
        meter::allow_open_files();
        line::head();
        meter::runtime()?.block_on(measure)
    }
}

/// Builds this program and Posse with optimisations, and runs it with the same arguments. It runs the program itself:
/// `cargo run` would select other features, and build everything once more.
fn again_optimised() -> Result<()> {
    let mut build = command(env!("CARGO"));
    build.args(["build", "--release", "--quiet", "-p", "posse-cli", "-p", "xtask"]);
    let own = std::env::current_exe()?;
    let builds = own.parent().and_then(Path::parent).ok_or("this program is in no folder")?;
    let mut again = command(builds.join("release").join("xtask"));
    again.args(std::env::args_os().skip(1));
    for mut step in [build, again] {
        let status = step.status()?;
        if !status.success() {
            return Err(format!("{step:?} failed; see above").into());
        }
    }
    Ok(())
}
