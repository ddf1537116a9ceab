//! Tells the program its version, with the commit that it is built from where that is known.

#![allow(clippy::disallowed_methods, reason = "a build script asks cargo and git")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    // What is built again and again while it is worked on need not be built for each commit.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(commit).flatten();
    let shown = commit.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=POSSE_VERSION={shown}");
}

/// The commit of the checkout, or of the package that was made from one.
fn commit() -> Option<String> {
    let packed = std::fs::read_to_string(".cargo_vcs_info.json").ok();
    if let Some(at) = packed.as_deref().and_then(|text| text.split("\"sha1\": \"").nth(1)) {
        return at.get(..10).map(str::to_owned);
    }
    let folder = Path::new("../.git");
    for name in ["HEAD", "logs/HEAD"] {
        println!("cargo::rerun-if-changed={}", folder.join(name).display());
    }
    let git = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok()?;
    let name = String::from_utf8(git.stdout).ok()?.trim().to_owned();
    (git.status.success() && !name.is_empty()).then_some(name)
}
