//! Tidy.
use std::process::ExitCode;
/// Options of tidy
#[derive(clap::Args)]
pub struct Tidy {}
impl Tidy {
    pub fn run(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}
