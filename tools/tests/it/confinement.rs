//! What confined commands cannot do, seen from outside.

use crate::fixture::{CANARY, Fixture, eventually, host, marker, processes_with};
use posse_agent::Toolbox;
use posse_protocol::{Network, Profile};
use posse_tools::confine::{Backend, CommandLimits, Confinement, PROTECTED};
use posse_tools::launch::{Launcher, allowed_environment};
use posse_tools::{Scratch, toolset_within};
use serde_json::json;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

/// A launcher whose home folder is `home`, with one back end.
pub fn launcher(home: &Path, backend: Backend) -> Launcher {
    let mut variables: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| name != "HOME").collect();
    variables.push(("HOME".into(), home.into()));
    Launcher::through(&host())
        .with_environment(allowed_environment(variables.into_iter(), &[]))
        .with_backends(&[backend])
}

/// True when the machine cannot do it, which is then said.
pub fn cannot(backend: Backend) -> bool {
    let Err(reason) = launcher(Path::new("/"), backend).check(backend) else { return false };
    not_tested(&format!("confinement by {backend}: {reason}"));
    true
}

/// Says so, here and in the list of `./test`.
#[allow(clippy::print_stderr)]
pub fn not_tested(what: &str) {
    eprintln!("not tested here: {what}");
    if let Some(list) = std::env::var_os("POSSE_TEST_SKIPPED") {
        use std::io::Write;
        let list = std::fs::File::options().create(true).append(true).open(list);
        writeln!(list.unwrap(), "{what}").unwrap();
    }
}

/// Bash within a confinement; everything else as usual.
pub struct Shell {
    pub fixture: Fixture,
    pub tools: Toolbox,
}

impl Shell {
    pub fn new(backend: Backend, profile: Profile) -> Shell {
        let fixture = Fixture::new();
        let home = fixture.outside();
        Shell::of(fixture, launcher(&home, backend), profile)
    }

    pub fn of(fixture: Fixture, launcher: Launcher, profile: Profile) -> Shell {
        let confinement = Confinement { profile, ..Confinement::default() };
        let tools =
            toolset_within(&fixture.workspace, None, Vec::new(), Some(&launcher), &confinement);
        Shell { fixture, tools: Toolbox::new(tools) }
    }

    /// What a command says, whether it failed or not.
    pub fn say(&self, command: &str) -> String {
        let input = json!({"command": command, "timeout": 60_000});
        let output = self.fixture.call_with(&self.tools, "Bash", input);
        self.fixture.runtime.block_on(output).joined_text()
    }

    /// Runs a command that is to fail.
    #[track_caller]
    pub fn fails(&self, command: &str) {
        let text = self.say(&format!("{command} && echo DONE"));
        assert!(!text.contains("DONE"), "{command}: {text}");
    }
}

/// The names that are in the workspace.
pub fn names(shell: &Shell) -> Vec<String> {
    let entries = std::fs::read_dir(shell.fixture.workspace.path()).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const BOTH: [Backend; 2] = Backend::ALL;

#[test]
fn a_read_only_command_reads_the_workspace_and_changes_nothing() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let shell = Shell::new(backend, Profile::ReadOnly);
        shell.fixture.put("a", "content");
        let mode = || shell.fixture.path("a").metadata().unwrap().permissions().mode();
        let before = (mode(), shell.fixture.path("a").metadata().unwrap().modified().unwrap());
        assert_eq!(shell.say("cat a"), "content\n");
        for command in [
            "echo x > b",
            "echo x >> a",
            ": > a",
            "truncate -s 0 a",
            "mkdir c",
            "ln -s a d",
            "ln a e",
            "mv a f",
            "rm a",
            "mkfifo g",
            "chmod 777 a",
            "touch -d 2001-01-01 a",
            "chattr +d a",
            "setfattr -n user.x -v y a",
        ] {
            shell.fails(command);
        }
        let after = (mode(), shell.fixture.path("a").metadata().unwrap().modified().unwrap());
        assert_eq!(after, before, "{backend}");
        assert_eq!(names(&shell), ["a"], "{backend}");
        assert_eq!(shell.fixture.content("a"), b"content");
    }
}

#[test]
fn a_command_with_the_workspace_changes_that_and_nothing_else() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    assert_eq!(shell.say("mkdir a && echo x > a/b && chmod 700 a/b && cat a/b"), "x\n");
    let outside = shell.fixture.outside();
    let outside = outside.display();
    shell.fails(&format!("echo x > {outside}/canary"));
    shell.fails(&format!("echo x > {outside}/new"));
    let marker = marker();
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/dev", "/"] {
        let path = Path::new(folder).join(&marker);
        shell.say(&format!("echo x > {}", path.display()));
        assert!(!path.exists(), "{}", path.display());
    }
    shell.fixture.canary_is_whole();
    assert_eq!(names(&shell), ["a"]);
}

#[test]
fn a9_a11_a12_protected_names_cannot_be_made_and_leave_no_trace() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    for name in PROTECTED.iter().chain(&[".git"]) {
        shell.fails(&format!("echo x > {name}"));
        shell.fails(&format!("mkdir {name}"));
        shell.fails(&format!("echo x > {name}/settings.json"));
        shell.fails(&format!("rmdir {name}"));
        shell.fails(&format!("mv {name} other && mkdir {name}"));
        shell.fails(&format!("cd {name} && echo x > settings.json"));
        shell.fails(&format!("mkdir other; echo x > other/x; mv -T other {name}"));
        // One that ends while another is not quite gone leaves them to the next.
        let is_left = || names(&shell).iter().any(|it| it == name);
        let gone = (0..20).any(|_| {
            let left = is_left();
            if left {
                shell.say("true");
            }
            !left
        });
        assert!(gone, "{name}");
    }
    // Programs that walk the tree are not put off by what holds the places.
    assert_eq!(shell.say("git status 2>&1 | head -1 | cut -c1-5"), "fatal\n");
}

#[test]
fn a11_a45_a_repository_can_be_used_and_what_git_runs_cannot_be_changed() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    let free = Shell {
        tools: Toolbox::new(posse_tools::toolset_within(
            &shell.fixture.workspace,
            None,
            Vec::new(),
            Some(&launcher(&shell.fixture.outside(), Backend::Bubblewrap)),
            &Confinement::none(),
        )),
        fixture: Fixture::new(),
    };
    let made =
        "git init -q . && git config user.name n && git config user.email e && rm -r .git/hooks";
    assert_eq!(free.say(made), "[no output]\n");
    let config = shell.fixture.content(".git/config");
    shell.say("echo x > a; git add -A; git commit -qm first");
    assert_eq!(shell.say("git log --format=%s; git status --short"), "first\n");
    for command in [
        "echo x > .git/hooks/pre-commit",
        "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "git config core.fsmonitor /bin/false",
        "git config core.hooksPath x",
        "echo x >> .git/config",
        "mv .git g && mkdir .git",
        "rm -rf .git/config",
        "mv .git/config .git/c",
        "ln -f a .git/config",
        "echo x > .gitmodules",
        "mkdir -p .git/modules/x",
        "mkdir -p .git/worktrees/x",
    ] {
        shell.fails(command);
    }
    shell.say("echo ../evil > .git/commondir; echo x > .git/config.worktree");
    assert_eq!(shell.fixture.content(".git/config"), config);
    for name in ["hooks", "modules", "worktrees", "commondir", "config.worktree"] {
        assert!(!shell.fixture.path(".git").join(name).exists(), "{name}");
    }
    assert_eq!(names(&shell), [".git", "a"]);
}

#[test]
fn a_protected_link_stops_the_command_before_it_starts() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    symlink("elsewhere", shell.fixture.path(".claude")).unwrap();
    let text = shell.say("touch ran");
    assert!(text.contains(".claude is a link"), "{text}");
    assert_eq!(names(&shell), [".claude"]);
}

#[test]
fn what_one_command_leaves_behind_still_protects_another() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            shell.say("touch up; until [ -e go ]; do sleep 0.01; done; mkdir .posse/x; mv .posse y")
        });
        eventually("the first one runs", || shell.fixture.path("up").exists());
        // It ends while the first one runs: what holds the places is needed still.
        assert_eq!(shell.say("true"), "[no output]\n");
        std::fs::write(shell.fixture.path("go"), "").unwrap();
        let text = long.join().unwrap();
        assert!(text.contains("Read-only") && text.contains("busy"), "{text}");
    });
    assert_eq!(names(&shell), ["go", "up"]);
}

#[test]
fn secrets_in_the_home_folder_cannot_be_read() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let shell = Shell::new(backend, Profile::ReadOnly);
        let home = shell.fixture.outside();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".ssh/key-7"), CANARY).unwrap();
        std::fs::write(home.join(".netrc"), CANARY).unwrap();
        std::fs::write(home.join(".gitconfig"), "plain").unwrap();
        let home = home.display();
        for path in [".ssh/key-7", ".netrc", ".ssh/../.ssh/key-7"] {
            let text = shell.say(&format!("cat {home}/{path}; cd {home} && cat {path}"));
            assert!(!text.contains("canary:"), "{backend} {path}: {text}");
        }
        assert!(!shell.say(&format!("ls -a {home}/.ssh")).contains("key-7"), "{backend}");
        assert_eq!(shell.say(&format!("cat {home}/.gitconfig")), "plain\n", "{backend}");
    }
}

#[test]
fn what_the_host_hides_is_hidden_and_a_scratch_folder_in_it_is_there() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let fixture = Fixture::new();
        let data = fixture.outside().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("posse.db"), CANARY).unwrap();
        let scratch = Scratch::at(&data.join("scratch/run")).unwrap();
        let launcher = launcher(&fixture.outside(), backend).hiding([data.clone()]);
        let confinement = Confinement::default();
        let tools = toolset_within(
            &fixture.workspace,
            Some(&scratch),
            Vec::new(),
            Some(&launcher),
            &confinement,
        );
        let shell = Shell { fixture, tools: Toolbox::new(tools) };
        let data = data.display();
        let text =
            shell.say(&format!("cat {data}/posse.db; echo hello > $TMPDIR/a; cat $TMPDIR/a"));
        assert!(!text.contains("canary:") && text.ends_with("hello\n"), "{backend}: {text}");
        assert_eq!(std::fs::read_to_string(scratch.path().join("a")).unwrap(), "hello\n");
    }
}

#[test]
fn nobody_hears_of_a_command_without_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let other = datagrams.local_addr().unwrap().port();
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let shell = Shell::new(backend, Profile::ReadOnly);
        shell.fails(&format!("echo x > /dev/tcp/127.0.0.1/{port}"));
        // In a network of its own it goes out, and to nobody.
        shell.say(&format!("echo x > /dev/udp/127.0.0.1/{other}"));
        assert!(listener.accept().is_err(), "{backend}");
        assert!(datagrams.recv(&mut [0; 8]).is_err(), "{backend}");
    }
}

#[test]
fn an_open_network_is_reached_and_local_sockets_are_not() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fixture = Fixture::new();
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
    let confinement = Confinement { network: Network::Open, ..Confinement::default() };
    let tools = toolset_within(&fixture.workspace, None, Vec::new(), Some(&launcher), &confinement);
    let shell = Shell { fixture, tools: Toolbox::new(tools) };
    assert_eq!(shell.say(&format!("echo x > /dev/tcp/127.0.0.1/{port} && echo sent")), "sent\n");
    listener.accept().unwrap();
    shell.fails("python3 -c 'import socket; socket.socket(socket.AF_UNIX)'");
}

#[test]
fn some_hosts_are_no_reason_to_open_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let network = Network::Hosts(vec!["example.org".into()]);
    let confinement = Confinement { network, ..Confinement::default() };
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let fixture = Fixture::new();
        let launcher = launcher(&fixture.outside(), backend);
        let (folder, none) = (&fixture.workspace, Vec::new());
        let tools = Toolbox::new(toolset_within(folder, None, none, Some(&launcher), &confinement));
        if backend == Backend::Landlock {
            assert!(tools.find("Bash").is_none());
            continue;
        }
        let shell = Shell { fixture, tools };
        shell.fails(&format!("echo x > /dev/tcp/127.0.0.1/{port}"));
        assert!(listener.accept().is_err());
    }
}

#[test]
fn where_nothing_confines_there_is_no_shell() {
    let fixture = Fixture::new();
    let none = launcher(&fixture.outside(), Backend::Bubblewrap).with_backends(&[]);
    let landlock = launcher(&fixture.outside(), Backend::Landlock);
    let check = |launcher: &Launcher, profile, expected: bool| {
        let confinement = Confinement { profile, ..Confinement::default() };
        let tools =
            toolset_within(&fixture.workspace, None, Vec::new(), Some(launcher), &confinement);
        assert_eq!(Toolbox::new(tools).find("Bash").is_some(), expected, "{profile}");
    };
    check(&none, Profile::ReadOnly, false);
    check(&none, Profile::WorkspaceWrite, false);
    check(&none, Profile::Full, true);
    check(&landlock, Profile::WorkspaceWrite, false);
}

#[test]
fn other_processes_are_not_seen() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let shell = Shell::new(backend, Profile::ReadOnly);
        let own = std::process::id();
        let text =
            shell.say(&format!("cat /proc/{own}/environ /proc/{own}/cmdline | tr '\\0' ' '"));
        assert!(!text.contains("CARGO") && !text.contains("confinement"), "{backend}: {text}");
        shell.fails(&format!("kill -0 {own}"));
    }
}

#[test]
fn a_memory_bomb_is_stopped() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let limits = CommandLimits { memory_bytes: 256 << 20, ..CommandLimits::usual() };
        let fixture = Fixture::new();
        let launcher = launcher(&fixture.outside(), backend).with_limits(limits);
        let shell = Shell::of(fixture, launcher, Profile::ReadOnly);
        // Several processes, none of which is over the limit by itself.
        let hog = "x = bytearray(100 << 20); import time; time.sleep(60)";
        let text = shell.say(&format!("for i in 1 2 3 4; do python3 -c '{hog}' & done; wait"));
        assert!(text.contains("more than 256 MiB of memory"), "{backend}: {text}");
        let text = shell.say("python3 -c 'x = bytearray(64 << 30)'");
        assert!(text.contains("MemoryError") || text.contains("MiB of memory"), "{text}");
    }
}

#[test]
fn a_fork_bomb_is_stopped() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let limits = CommandLimits { processes: 50, ..CommandLimits::usual() };
        let fixture = Fixture::new();
        let launcher = launcher(&fixture.outside(), backend).with_limits(limits);
        let shell = Shell::of(fixture, launcher, Profile::ReadOnly);
        let marker = marker();
        let text = shell.say(&format!("bomb() {{ bomb | bomb & }}; bomb; sleep 30; : {marker}"));
        assert!(text.contains("more than 50 processes"), "{backend}: {text}");
        eventually("all are dead", || processes_with(&marker).is_empty());
    }
}

#[test]
fn a_file_does_not_grow_beyond_its_limit() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let limits = CommandLimits { file_bytes: 1 << 20, ..CommandLimits::usual() };
    let fixture = Fixture::new();
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap).with_limits(limits);
    let shell = Shell::of(fixture, launcher, Profile::WorkspaceWrite);
    shell.fails("head -c 5000000 /dev/zero > big");
    assert!(shell.fixture.path("big").metadata().unwrap().len() <= 1 << 20);
}

#[test]
fn many_files_together_do_not_grow_beyond_their_limit() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let limits = CommandLimits { disk_bytes: 8 << 20, ..CommandLimits::usual() };
    let fixture = Fixture::new();
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap).with_limits(limits);
    let shell = Shell::of(fixture, launcher, Profile::WorkspaceWrite);
    let text =
        shell.say("for i in $(seq 600); do head -c 1000000 /dev/zero > f$i; sleep 0.02; done");
    // Where files are in memory nothing is written to a disk.
    let on_disk = !text.is_empty() && text.contains("more than 8 MiB to disks");
    assert!(on_disk || shell.fixture.path("f600").exists(), "{text}");
}

#[test]
fn a_flood_of_output_is_cut_and_others_go_on() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let shell = Shell::new(backend, Profile::ReadOnly);
        std::thread::scope(|scope| {
            let flood = scope.spawn(|| shell.say("timeout 1 yes"));
            assert_eq!(shell.say("echo still here"), "still here\n");
            assert!(flood.join().unwrap().len() < 40_000);
        });
    }
}

#[test]
fn killing_the_host_leaves_nothing_of_a_confined_command() {
    for profile in ["read-only", "workspace-write"] {
        if cannot(Backend::Bubblewrap) {
            return;
        }
        let fixture = Fixture::new();
        let marker = marker();
        #[allow(clippy::disallowed_methods)]
        let mut process = std::process::Command::new(host())
            .args([profile, &format!("sleep 1000 & (setsid sleep 1000; : {marker}) & wait")])
            .current_dir(fixture.workspace.path())
            .spawn()
            .unwrap();
        eventually("it runs", || processes_with(&marker).len() > 2);
        process.kill().unwrap();
        process.wait().unwrap();
        eventually("nothing is left", || processes_with(&marker).is_empty());
        let clean = || std::fs::read_dir(fixture.workspace.path()).unwrap().count() == 0;
        eventually("the places are free", clean);
    }
}

#[test]
fn a_confined_command_that_heeds_term_can_still_speak() {
    for backend in BOTH {
        if cannot(backend) {
            continue;
        }
        let fixture = Fixture::new();
        let launcher = launcher(&fixture.outside(), backend).with_grace(Duration::from_secs(10));
        let shell = Shell::of(fixture, launcher, Profile::ReadOnly);
        let command = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
        let input = json!({"command": command, "timeout": 500});
        let output = shell.fixture.call_with(&shell.tools, "Bash", input);
        let text = shell.fixture.runtime.block_on(output).joined_text();
        assert!(text.starts_with("up\n") && text.contains("bye\n"), "{backend}: {text}");
    }
}

#[test]
fn a8_a10_a12_file_tools_do_not_write_what_is_protected() {
    let fixture = Fixture::new();
    fixture.put("posse.toml", "old");
    let why = ["run or obeyed outside"];
    for path in [
        ".posse/agents/x.md",
        ".claude/settings.json",
        ".Claude/settings.json",
        "a/../.claude/settings.json",
        ".git/hooks/pre-commit",
        ".mcp.json",
        "./.vscode/tasks.json",
    ] {
        fixture.refused("Write", json!({"file_path": path, "content": "x"}), &why);
    }
    fixture.ok("Read", json!({"file_path": "posse.toml"}));
    fixture.refused("Write", json!({"file_path": "posse.toml", "content": "x"}), &why);
    let edit = json!({"file_path": "posse.toml", "old_string": "old", "new_string": "new"});
    fixture.refused("Edit", edit, &why);
    let names: Vec<_> = std::fs::read_dir(fixture.workspace.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fixture.content("posse.toml"), b"old");
}

#[test]
fn a38_a_link_that_a_command_planted_leads_a_file_tool_nowhere() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    shell.fixture.put(".claude/settings.json", "old");
    let outside = shell.fixture.outside();
    let planted = format!("ln -s {} out; ln -s .claude in; ln -s .posse new", outside.display());
    assert_eq!(shell.say(&planted), "[no output]\n");
    let write = |path: &str| {
        let input = json!({"file_path": path, "content": "x"});
        let output = shell.fixture.call_with(&shell.tools, "Write", input);
        assert!(shell.fixture.runtime.block_on(output).is_error, "{path}");
    };
    for path in ["out/canary", "out/new", "in/settings.json", "in/other", "new/agents/a.md", "new"]
    {
        write(path);
    }
    shell.fixture.canary_is_whole();
    assert_eq!(shell.fixture.content(".claude/settings.json"), b"old");
    assert!(
        !shell.fixture.path(".posse").exists() && !shell.fixture.path(".claude/other").exists()
    );
}

#[test]
fn a45_a_hard_link_to_a_protected_file_is_replaced_and_not_written_through() {
    let fixture = Fixture::new();
    fixture.put(".mcp.json", "old");
    std::fs::hard_link(fixture.path(".mcp.json"), fixture.path("plain")).unwrap();
    fixture.ok("Read", json!({"file_path": "plain"}));
    fixture.ok("Write", json!({"file_path": "plain", "content": "new"}));
    assert_eq!(fixture.content(".mcp.json"), b"old");
}
