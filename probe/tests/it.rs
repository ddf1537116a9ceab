//! The probes, within each confinement, as whoever runs the tests and as an ordinary user.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use posse_probe::{Held, probe};
use posse_protocol::Profile;
use posse_tools::confine::Backend;
use posse_tools::launch::{Launcher, allowed_environment};
use std::io::Write;
use std::path::PathBuf;

/// Whom root becomes to be an ordinary user.
const NOBODY: &str = "65534";

/// The example, which is what the launcher starts again.
fn host() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let host = test.parent().unwrap().parent().unwrap().join("examples/probe");
    assert!(host.exists(), "run `cargo build -p posse-probe --example probe` first");
    host
}

fn launcher() -> Launcher {
    Launcher::through(&host()).with_environment(allowed_environment(std::env::vars_os(), &[]))
}

/// Says so, here and in the list of `./test`.
#[allow(clippy::print_stderr)]
fn not_tested(what: &str) {
    eprintln!("not tested here: {what}");
    if let Some(list) = std::env::var_os("POSSE_TEST_SKIPPED") {
        let list = std::fs::File::options().create(true).append(true).open(list);
        writeln!(list.unwrap(), "{what}").unwrap();
    }
}

#[track_caller]
fn check(launcher: &Launcher, backend: Backend, profile: Profile) {
    let launcher = launcher.clone().with_backends(&[backend]);
    if let Err(reason) = launcher.check(backend) {
        not_tested(&format!("probes within {backend}: {reason}"));
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let probed = runtime.block_on(probe(&launcher, profile)).unwrap();
    assert_eq!(probed.backend, backend);
    assert!(probed.probes.len() > 60, "{}", probed.probes.len());
    let succeeded: Vec<&str> = probed.succeeded().map(|probe| probe.name).collect();
    assert_eq!(succeeded, Vec::<&str>::new(), "{backend} {profile}");
    assert!(probed.probes.iter().any(|probe| probe.held == Held::Private));
    assert!(probed.probes.iter().all(|probe| probe.held != Held::Untried), "{backend} {profile}");
}

#[test]
fn nothing_hostile_succeeds_within_bubblewrap() {
    check(&launcher(), Backend::Bubblewrap, Profile::ReadOnly);
    check(&launcher(), Backend::Bubblewrap, Profile::WorkspaceWrite);
}

#[test]
fn nothing_hostile_succeeds_within_landlock() {
    check(&launcher(), Backend::Landlock, Profile::ReadOnly);
}

/// The probes are no dead letters: where nothing confines them, nearly all of them succeed.
#[test]
fn unconfined_the_probes_succeed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let probed = runtime.block_on(probe(&launcher(), Profile::Full)).unwrap();
    let succeeded: Vec<&str> = probed.succeeded().map(|probe| probe.name).collect();
    for name in [
        "signal to an outside process",
        "/proc/PID/cmdline of an outside process",
        "create a file",
        "create in /tmp",
        "truncate",
        "chmod",
        "utimensat",
        "a daemon in a session of its own writes",
        "write into a FIFO outside",
        "read what the host hides",
        "TCP connect",
        "UDP send",
        "Unix socket by path",
        "abstract Unix socket",
    ] {
        assert!(succeeded.contains(&name), "{name} is not in {succeeded:?}");
    }
    assert!(succeeded.len() > 40, "{succeeded:?}");
}

#[test]
fn nothing_hostile_succeeds_as_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        not_tested("probes as root: the tests run as an ordinary user");
        return;
    }
    // The host, in a place where an ordinary user finds it.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let copy = folder.path().join("host");
    std::fs::copy(host(), &copy).unwrap();
    // Their home, where nothing is that commands could write.
    let home =
        ["/srv", "/opt", "/var/lib", "/"].iter().find_map(|it| tempfile::tempdir_in(it).ok());
    let home = home.unwrap();
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).unwrap();
    for (backend, profile) in
        [("bubblewrap", "read-only"), ("bubblewrap", "workspace-write"), ("landlock", "read-only")]
    {
        let output = std::process::Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
            .arg(&copy)
            .args([backend, profile])
            .current_dir(folder.path())
            .env("TMPDIR", folder.path())
            .env("HOME", home.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.trim(), "0 succeeded, 0 untried", "{backend} {profile}: {text} {errors}");
    }
}
