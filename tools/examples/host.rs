//! The smallest program that gives agents a shell, and what the tests use as their host.
//!
//! `host COMMAND...` runs shell commands in the current folder through the launcher.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use posse_tools::Workspace;
use posse_tools::launch::{self, Command, Status};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // First of all, before any thread: this same program is started again as a supervisor.
    let launcher = launch::init();
    let launcher = launcher.with_environment(launch::allowed_environment(std::env::vars_os()));

    let workspace = Workspace::open(Path::new("."))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let nobody_cancels = CancellationToken::new();
    let show = |text: &str| print!("{text}");
    for line in std::env::args_os().skip(1) {
        let command = Command {
            program: "bash".into(),
            args: vec!["--noprofile".into(), "--norc".into(), "-c".into(), line],
            cwd: ".".into(),
            variables: Vec::new(),
            deadline: Duration::from_secs(600),
            output_cap: 30_000,
        };
        let run = launcher.run(&workspace, &command, &nobody_cancels, &show);
        let finished = runtime.block_on(run)?;
        if finished.status != Status::Exited(0) {
            eprintln!("host: {:?}", finished.status);
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
