//! Commands of root's are a user that owns nothing but what they are lent.

use crate::confinement::{cannot, launcher, not_tested};
use crate::fixture::{Fixture, host};
use posse_protocol::Profile;
use posse_tools::Workspace;
use posse_tools::confine::{Backend, Confinement};
use posse_tools::launch::{Command, Finished, LaunchError, Launcher, allowed_environment};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A folder outside of those that are private to commands, which others may enter.
fn open_folder() -> Option<TempDir> {
    let all = ["/srv", "/opt", "/var/lib"].iter();
    let folder = all.filter_map(|it| tempfile::tempdir_in(it).ok()).next()?;
    let mode = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    Some(folder)
}

/// What a command that does this comes to, in `folder`.
fn run(folder: &Path, reach: Confinement, line: &str) -> Finished {
    let fixture = Fixture::new();
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
    run_by(&launcher, &fixture, folder, reach, line)
}

fn run_by(
    launcher: &Launcher,
    fixture: &Fixture,
    folder: &Path,
    reach: Confinement,
    line: &str,
) -> Finished {
    try_by(launcher, fixture, folder, reach, line).unwrap()
}

fn try_by(
    launcher: &Launcher,
    fixture: &Fixture,
    folder: &Path,
    reach: Confinement,
    line: &str,
) -> Result<Finished, LaunchError> {
    let workspace = Workspace::open(folder).unwrap();
    let command = Command {
        program: "bash".into(),
        args: vec!["-c".into(), line.into()],
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 10_000,
        writable_bytes: None,
        confinement: reach,
    };
    let never = CancellationToken::new();
    let run = launcher.run(&workspace, &command, &never, &|_| {});
    fixture.runtime.block_on(run)
}

/// True when the machine cannot do it, which is then said.
fn cannot_lend() -> bool {
    if !rustix::process::geteuid().is_root() {
        not_tested("commands of root's: the tests run as an ordinary user");
        return true;
    }
    if cannot(Backend::Bubblewrap) {
        return true;
    }
    let Some(folder) = open_folder() else { return true };
    let why = run(folder.path(), Confinement::default(), "true").why_root;
    if let Some(why) = &why {
        not_tested(&format!("commands of root's as another user: {why}"));
    }
    why.is_some()
}

fn put(path: PathBuf, content: &str, mode: u32) -> PathBuf {
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path
}

#[test]
fn what_only_root_can_read_is_not_read_and_the_workspace_is_root_s() {
    if cannot_lend() {
        return;
    }
    let folder = open_folder().unwrap();
    let secret = put(folder.path().join("secret"), "canary", 0o600);
    let plain = put(folder.path().join("plain"), "for all", 0o644);
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    put(work.join("own"), "own", 0o600);
    for profile in [Profile::ReadOnly, Profile::WorkspaceWrite] {
        let reach = Confinement { profile, ..Confinement::default() };
        let (secret, plain) = (secret.display(), plain.display());
        let line = format!("cat {secret}; cat {plain} own; stat -c %U own; id -u; ls /tmp");
        let finished = run(&work, reach, &line);
        assert_eq!(finished.why_root, None);
        let said = finished.output;
        assert!(!said.contains("canary"), "{said}");
        assert!(said.ends_with("for allownroot\n0\n"), "{said}");
    }
    let line = "echo x > made && mkdir -m 700 folder && echo y > folder/f && ln -s f folder/l && \
                echo z >> own && chmod 640 own && mv own moved && : > /dev/stdout && git init -q . ";
    let finished = run(&work, Confinement::workspace_write(), &format!("{line}; true"));
    assert_eq!(finished.why_root, None, "{}", finished.output);
    for (name, mode) in [("made", 0o644), ("folder", 0o700), ("folder/f", 0o644), ("moved", 0o640)]
    {
        let found = work.join(name).symlink_metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (0, 0), "{name}");
        assert_eq!(found.mode() & 0o777, mode, "{name}");
    }
    assert_eq!(std::fs::read_to_string(work.join("moved")).unwrap(), "ownz\n");
    assert_eq!(work.join("folder/l").symlink_metadata().unwrap().uid(), 0);
}

#[test]
fn a_folder_that_only_root_can_read_is_lent_where_the_user_shows_it() {
    if cannot_lend() {
        return;
    }
    let folder = open_folder().unwrap();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let file = put(closed.join("file"), "seen", 0o600);
    let fixture = Fixture::new();
    let hides = launcher(&fixture.outside(), Backend::Bubblewrap);
    let shows = hides.clone().showing([closed]);
    let work = fixture.workspace.path().to_owned();
    let line = format!("cat {path}; echo x > {path}", path = file.display());
    let said = |launcher| run_by(launcher, &fixture, &work, Confinement::default(), &line).output;
    assert!(!said(&hides).contains("seen"));
    assert!(said(&shows).starts_with("seen"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "seen");
}

#[test]
fn where_it_cannot_be_had_the_command_is_root_and_that_is_said() {
    if cannot_lend() {
        return;
    }
    // This file system has no mounts that change owners.
    let folder = open_folder().unwrap();
    let readable = vec![PathBuf::from("/sys/kernel")];
    let finished = run(folder.path(), Confinement { readable, ..Confinement::default() }, "id -u");
    let why = finished.why_root.unwrap();
    assert!(why.contains("/sys/kernel cannot be lent"), "{why}");
    assert_eq!(finished.output, "0\n");
}

#[test]
fn a_workspace_in_a_folder_that_only_root_may_enter_is_lent_without_what_is_beside_it() {
    if cannot_lend() {
        return;
    }
    let folder = open_folder().unwrap();
    let closed = folder.path().join("closed");
    let work = closed.join("near/work");
    std::fs::create_dir_all(&work).unwrap();
    put(closed.join("near/open"), "canary", 0o644);
    let secret = put(closed.join("near/secret"), "canary", 0o600);
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let reach = Confinement { hidden: vec![secret], ..Confinement::workspace_write() };
    let line = "echo x > made; cat made ../open ../secret; ls ..; echo y > ../left";
    let finished = run(&work, reach, line);
    assert_eq!(finished.why_root, None);
    assert!(finished.output.starts_with("x\n"), "{}", finished.output);
    assert!(!finished.output.contains("canary"), "{}", finished.output);
    assert_eq!(std::fs::read_to_string(work.join("made")).unwrap(), "x\n");
    assert!(!closed.join("near/left").exists());
}

/// What an agent could bring about makes no command root.
#[test]
fn where_it_fails_only_now_the_command_does_not_run() {
    if cannot_lend() {
        return;
    }
    // With so few open files, not all of these can be lent.
    let folder = open_folder().unwrap();
    let (work, others) = (folder.path().join("work"), folder.path().join("others"));
    std::fs::create_dir(&work).unwrap();
    let readable: Vec<PathBuf> = (0..150).map(|it| others.join(it.to_string())).collect();
    readable.iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
    let fixture = Fixture::new();
    let script = folder.path().join("few-files");
    let host = host();
    let text = format!("#!/bin/bash\nulimit -n 120\nexec {} \"$@\"\n", host.display());
    let script = put(script, &text, 0o755);
    let few = launcher_through(&script, &fixture.outside());
    let reach = Confinement { readable, ..Confinement::workspace_write() };
    let run = |launcher: &Launcher, reach: &Confinement| {
        try_by(launcher, &fixture, &work, reach.clone(), "echo x >> made")
    };
    let finished = run(&few, &Confinement::workspace_write()).unwrap();
    assert_eq!(finished.why_root, None);
    let refused = run(&few, &reach).unwrap_err().to_string();
    assert!(refused.contains("cannot be lent: Too many open files"), "{refused}");
    assert_eq!(std::fs::read_to_string(work.join("made")).unwrap(), "x\n");
    // Where it was had, it must be had, whatever fails.
    let own = folder.path().join("host");
    std::fs::copy(&host, &own).unwrap();
    let many = launcher_through(&own, &fixture.outside());
    assert_eq!(run(&many, &reach).unwrap().why_root, None);
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
    let refused = run(&many, &reach).unwrap_err().to_string();
    assert!(refused.contains("only root may run this program"), "{refused}");
    // Where it never can be had, that is known.
    let anew = launcher_through(&own, &fixture.outside());
    for _ in 0..2 {
        let why = run(&anew, &reach).unwrap().why_root.unwrap();
        assert!(why.contains("only root may run this program"), "{why}");
    }
}

fn launcher_through(executable: &Path, home: &Path) -> Launcher {
    let variables = std::env::vars_os().filter(|(name, _)| name != "HOME");
    let variables = variables.chain([("HOME".into(), home.into())]);
    Launcher::through(executable)
        .with_environment(allowed_environment(variables, &[]))
        .with_backends(&[Backend::Bubblewrap])
}

#[test]
fn what_is_hidden_where_only_root_gets_is_no_obstacle() {
    if cannot_lend() {
        return;
    }
    let folder = open_folder().unwrap();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let secret = put(closed.join("secret"), "canary", 0o644);
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let reach = Confinement { hidden: vec![secret.clone()], ..Confinement::default() };
    let finished = run(&work, reach, &format!("cat {}", secret.display()));
    assert_eq!(finished.why_root, None);
    assert!(!finished.output.contains("canary"), "{}", finished.output);
}

#[test]
fn a_file_of_root_s_in_a_closed_home_is_read_where_it_is_shown() {
    if cannot_lend() {
        return;
    }
    let fixture = Fixture::new();
    let home = fixture.outside();
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::create_dir(home.join("shown")).unwrap();
    put(home.join("shown/file"), "seen", 0o600);
    let launcher = launcher(&home, Backend::Bubblewrap).showing([home.join("shown")]);
    let reach = Confinement::workspace_write();
    let work = fixture.workspace.path().to_owned();
    let line = format!("cat {}/shown/file; ls {}", home.display(), home.display());
    let finished = run_by(&launcher, &fixture, &work, reach, &line);
    assert_eq!((finished.output.as_str(), finished.why_root), ("seenshown\n", None));
}

#[test]
fn where_only_root_may_make_a_box_the_command_is_root() {
    if cannot_lend() {
        return;
    }
    // The kernel does not count the processes of root.
    let line = "ulimit -u 1; exec \"$0\" workspace-write 'cat /proc/self/uid_map; echo x > made'";
    let folder = open_folder().unwrap();
    let output = std::process::Command::new("bash")
        .args(["-c", line])
        .arg(host())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(said, ["0", "0", "1"], "{output:?}");
    assert!(folder.path().join("made").exists());
}
