//! Crash cycles.
use std::process::ExitCode;
/// Options of crash cycles
#[derive(clap::Args)]
pub struct Crash {}
impl Crash {
    pub fn run(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}
