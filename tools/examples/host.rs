//! The smallest program that gives agents a shell, and what the tests use as their host.
//!
//! `host [read-only|workspace-write|full] COMMAND...` runs shell commands in the current folder
//! through the launcher, confined as said. `host hold COMMAND` holds one with pipes and shows its lines.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use posse_agent::Claim;
use posse_tools::Workspace;
use posse_tools::confine::Confinement;
use posse_tools::launch::{self, Command, Status};
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PROFILES: [&str; 3] = ["read-only", "workspace-write", "full"];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // First of all, before any thread: this same program is started again as a supervisor.
    let launcher = launch::init();
    let launcher = launcher.with_environment(launch::allowed_environment(std::env::vars_os(), &[]));

    let workspace = Workspace::open(Path::new("."))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let nobody_cancels = CancellationToken::new();
    let show = |text: &str| print!("{text}");
    let mut lines: Vec<OsString> = std::env::args_os().skip(1).collect();
    let confinement = match lines.first().and_then(|word| word.to_str()) {
        Some("read-only") => Confinement::default(),
        Some("full") => Confinement::none(),
        _ => Confinement::workspace_write(),
    };
    if lines.first().is_some_and(|word| PROFILES.iter().any(|profile| word == profile)) {
        lines.remove(0);
    }
    let holds = lines.first().is_some_and(|word| word == "hold");
    if holds {
        lines.remove(0);
    }
    for line in lines {
        let command = Command {
            program: "bash".into(),
            args: vec!["--noprofile".into(), "--norc".into(), "-c".into(), line],
            cwd: ".".into(),
            variables: Vec::new(),
            deadline: Duration::from_secs(600),
            output_cap: 30_000,
            writable_bytes: None,
            confinement: confinement.clone(),
        };
        if holds {
            runtime.block_on(async {
                let claim = Claim::default();
                let held = launcher.hold(&claim, &workspace, &command, &nobody_cancels);
                let mut process = held.await?;
                while let Some(line) = process.read_line(1_000).await? {
                    println!("{}", String::from_utf8_lossy(&line));
                }
                Ok::<(), Box<dyn Error>>(())
            })?;
            continue;
        }
        let run = launcher.run(&workspace, &command, &nobody_cancels, &show);
        let finished = runtime.block_on(run)?;
        if finished.status != Status::Exited(0) {
            eprintln!("host: {:?}", finished.status);
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
