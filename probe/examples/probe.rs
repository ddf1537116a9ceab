//! `probe BACKEND PROFILE` makes the hostile probes and prints those that succeeded.

#![allow(clippy::print_stdout)]

use posse_probe::{Held, probe};
use posse_protocol::Profile;
use posse_tools::confine::Backend;
use posse_tools::launch;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // First of all, before any thread: this same program is started again.
    posse_probe::init();
    let launcher = launch::init();
    let launcher = launcher.with_environment(launch::allowed_environment(std::env::vars_os(), &[]));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [backend, profile] = arguments.as_slice() else {
        return Err("usage: probe BACKEND PROFILE".into());
    };
    let backend = Backend::ALL.into_iter().find(|it| it.as_str() == backend);
    let launcher = launcher.with_backends(&[backend.ok_or("no such back end")?]);
    let profile = match profile.as_str() {
        "read-only" => Profile::ReadOnly,
        "workspace-write" => Profile::WorkspaceWrite,
        _ => return Err("the profile is read-only or workspace-write".into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let probed = runtime.block_on(probe(&launcher, profile))?;
    let untried = probed.probes.iter().filter(|probe| probe.held == Held::Untried).count();
    println!("{} succeeded, {untried} untried", probed.succeeded().count());
    for probe in probed.succeeded() {
        println!("{}", probe.name);
    }
    Ok(())
}
