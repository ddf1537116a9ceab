//! The wall within a box of bubblewrap's: it holds back what read-only mounts let pass, and nothing
//! that ordinary work needs.

use crate::confinement::{Shell, cannot, launcher, not_tested};
use crate::fixture::{Fixture, host};
use posse_agent::Toolbox;
use posse_protocol::Profile;
use posse_tools::confine::{Backend, CommandLimits, Confinement, keeps_moves};
use posse_tools::launch::{Command, LaunchError, Launcher, allowed_environment};
use posse_tools::{Scratch, toolset_within};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// True when the machine has no such wall, which is then said.
fn has_none() -> bool {
    if cannot(Backend::Bubblewrap) {
        return true;
    }
    if !keeps_moves() {
        not_tested("the wall within bubblewrap: the kernel has no Landlock of version 2");
    }
    !keeps_moves()
}

/// A FIFO with a reader, where commands write nothing.
struct Pipe {
    folder: TempDir,
    reader: File,
}

impl Pipe {
    /// Nothing where what is built lies among temporary files.
    fn new() -> Option<Pipe> {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap();
        if ["/tmp", "/var/tmp", "/run", "/dev"].iter().any(|it| place.starts_with(it)) {
            not_tested("FIFOs outside: all that tests may write is private to commands");
            return None;
        }
        let folder = tempfile::tempdir_in(place).unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        // Nobody who opens it waits for somebody else.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let reader = open(&pipe, flags, Mode::empty()).unwrap().into();
        Some(Pipe { folder, reader })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }

    /// What has come.
    fn heard(&mut self) -> String {
        let mut said = Vec::new();
        let _ = self.reader.read_to_end(&mut said);
        String::from_utf8(said).unwrap()
    }
}

#[test]
fn a_fifo_outside_takes_nothing_from_a_command() {
    if has_none() {
        return;
    }
    let Some(mut pipe) = Pipe::new() else { return };
    let path = pipe.path();
    let path = path.display();
    for profile in [Profile::ReadOnly, Profile::WorkspaceWrite] {
        let fixture = Fixture::new();
        let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
        let launcher = launcher.showing([pipe.folder.path().to_owned()]);
        let shell = Shell::of(fixture, launcher, profile);
        assert_eq!(shell.say(&format!("test -p {path} && echo there")), "there\n");
        for attempt in [
            format!("echo secret > {path}"),
            format!("echo secret >> {path}"),
            format!("exec 3<> {path}; echo secret >&3"),
            format!("exec 3< {path}; echo secret > /proc/self/fd/3"),
            format!("ln -s {path} /tmp/link && echo secret > /tmp/link"),
            format!("ln {path} here && echo secret > here"),
            format!("mv {path} here && echo secret > here"),
            format!("(echo secret | dd of={path} conv=notrunc)"),
        ] {
            shell.fails(&attempt);
        }
        assert_eq!(pipe.heard(), "", "{profile}");
    }
    // It is no dead letter.
    std::fs::write(pipe.path(), "heard").unwrap();
    assert_eq!(pipe.heard(), "heard");
}

/// A shell with a scratch folder.
fn with_scratch(profile: Profile) -> Shell {
    let fixture = Fixture::new();
    let scratch = Scratch::at(&fixture.folder.path().join("scratch")).unwrap();
    let launcher = launcher(&fixture.outside(), Backend::Bubblewrap);
    let confinement = Confinement { profile, ..Confinement::default() };
    let (workspace, scratch) = (&fixture.workspace, Some(&scratch));
    let tools = toolset_within(workspace, scratch, Vec::new(), Some(&launcher), &confinement);
    Shell { fixture, tools: Toolbox::new(tools) }
}

/// What people do in temporary folders, with devices and with descriptors.
const ANYWHERE: [&str; 14] = [
    "f=$(mktemp) && echo x > $f && rm $f",
    "f=$(mktemp -p /tmp) && mv $f $f.moved && rm $f.moved",
    "d=$(mktemp -d -p /var/tmp) && mkdir $d/a $d/b && echo x > $d/a/f && mv $d/a/f $d/b/g",
    "cd $TMPDIR && mkdir a b c && echo x > a/f && ln a/f b/g && mv c a/ && test -d a/c && cat b/g",
    "mkfifo $TMPDIR/p && (cat $TMPDIR/p & echo x > $TMPDIR/p; wait)",
    "echo x > /dev/null && echo x > /dev/stdout && echo x > /dev/stderr && echo x > /dev/fd/1",
    "echo x > /proc/self/fd/1",
    "cat <(echo x) && echo x | tee >(cat) > /dev/null",
    "cat <<< x && cat <<END\nx\nEND",
    "echo x > /dev/shm/x && echo x > /run/x",
    "head -c 10 /dev/urandom > /dev/zero",
    "! command -v script || script -qec true /dev/null",
    "cd /tmp && echo x > x && : > x && truncate -s 5 x && test $(wc -c < x) = 5",
    "! command -v python3 || python3 -c 'import multiprocessing as m
m.Lock()
q = m.get_context(\"fork\").Queue()
q.put(1)
q.get()
with m.get_context(\"fork\").Pool(2) as p: p.map(abs, range(4))'",
];

/// And in a workspace that they may change.
const IN_WORKSPACE: [&str; 6] = [
    "mkdir -p a/b c && echo x > a/b/f && mv a/b/f c/g && ln c/g a/h && cat a/h && mv a/b c/",
    "mkfifo p && (cat p & echo x > p; wait) && rm p",
    "mkdir git && cd git && git init -q . && git config user.name n && git config user.email e",
    "cd git && mkdir d && echo x > d/f && git add . && git commit -qm one && git mv d/f g && git commit -qm two",
    "cd git && git branch other && git stash list && git gc -q && git log --oneline | wc -l",
    "tar cf /tmp/t.tar git && mkdir out && tar xf /tmp/t.tar -C out && rm -r git out",
];

#[test]
fn ordinary_work_goes_on_as_before() {
    if has_none() {
        return;
    }
    let check = |shell: &Shell, command: &str| {
        let said = shell.say(&format!("set -e; {{ {command}\n}} && echo DONE"));
        assert!(said.contains("DONE"), "{command}: {said}");
    };
    let shell = with_scratch(Profile::ReadOnly);
    ANYWHERE.iter().for_each(|command| check(&shell, command));
    let shell = with_scratch(Profile::WorkspaceWrite);
    ANYWHERE.iter().chain(&IN_WORKSPACE).for_each(|command| check(&shell, command));
}

#[test]
fn a_command_has_nothing_of_the_stage_before_it() {
    if has_none() {
        return;
    }
    let shell = Shell::new(Backend::Bubblewrap, Profile::WorkspaceWrite);
    // The one beside the usual three is the folder that is listed.
    assert_eq!(shell.say("ls /proc/self/fd | wc -l"), "4\n");
    assert_eq!(shell.say("tr '\\0' ' ' < /proc/$$/cmdline | cut -c1-5"), "bash \n");
    // The stage ignores a broken pipe; the command does not.
    assert_eq!(shell.say("yes | head -1; echo ${PIPESTATUS[0]}"), "y\n141\n");
    shell.fails("readlink /proc/1/exe");
}

/// What comes of a program that is started in a box.
fn start(program: &str, args: &[&str], limits: CommandLimits) -> Result<String, LaunchError> {
    let fixture = Fixture::new();
    let launcher = Launcher::through(&host())
        .with_environment(allowed_environment(std::env::vars_os(), &[]))
        .with_backends(&[Backend::Bubblewrap])
        .with_limits(limits);
    let command = Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 1000,
        writable_bytes: None,
        confinement: Confinement::default(),
    };
    let never = CancellationToken::new();
    let run = launcher.run(&fixture.workspace, &command, &never, &|_| {});
    fixture.runtime.block_on(run).map(|finished| finished.output)
}

#[test]
fn a_program_that_is_not_there_is_told_as_such() {
    if has_none() {
        return;
    }
    let usual = CommandLimits::usual();
    let missing = start("no-such-program", &[], usual).unwrap_err();
    assert!(matches!(&missing, LaunchError::NotStarted { .. }), "{missing:?}");
    let no_program = start("/etc/passwd", &[], usual).unwrap_err();
    assert!(matches!(&no_program, LaunchError::NotStarted { .. }), "{no_program:?}");
    assert_eq!(start("echo", &["a b", ""], usual).unwrap(), "a b \n");
    // The stage itself needs little memory and few files.
    let little = CommandLimits { memory_bytes: 8 << 20, open_files: 16, ..usual };
    assert_eq!(start("echo", &["x"], little).unwrap(), "x\n");
}
