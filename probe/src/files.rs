//! Probes of files.

use super::inside::{Stage, slug};
use super::scene;
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Another way to the file behind a handle.
fn path_of(handle: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

fn target(stage: &Stage, name: &str) -> PathBuf {
    stage.target.join(slug(name))
}

pub(super) fn create(stage: &Stage) -> io::Result<()> {
    std::fs::write(target(stage, "create a file"), "x")
}

fn create_in(folder: &str, stage: &Stage) -> io::Result<()> {
    std::fs::write(Path::new(folder).join(&stage.word), "x")
}

pub(super) fn create_in_tmp(stage: &Stage) -> io::Result<()> {
    create_in("/tmp", stage)
}

pub(super) fn create_in_var_tmp(stage: &Stage) -> io::Result<()> {
    create_in("/var/tmp", stage)
}

pub(super) fn create_in_run(stage: &Stage) -> io::Result<()> {
    create_in("/run", stage)
}

pub(super) fn create_in_shm(stage: &Stage) -> io::Result<()> {
    create_in("/dev/shm", stage)
}

pub(super) fn append(stage: &Stage) -> io::Result<()> {
    OpenOptions::new().append(true).open(target(stage, "append"))?.write_all(b"x")
}

pub(super) fn open_truncating(stage: &Stage) -> io::Result<()> {
    let path = target(stage, "open with O_TRUNC");
    OpenOptions::new().write(true).truncate(true).open(path).map(|_| ())
}

pub(super) fn truncate(stage: &Stage) -> io::Result<()> {
    super::kernel::truncate(&target(stage, "truncate"))
}

pub(super) fn temporary_and_link(stage: &Stage) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE;
    let file = rustix::fs::open(&stage.target, flags, Mode::RWXU)?;
    let from = path_of(&file);
    let to = target(stage, "O_TMPFILE and link");
    let cwd = rustix::fs::CWD;
    Ok(rustix::fs::linkat(cwd, from, cwd, to, AtFlags::SYMLINK_FOLLOW)?)
}

pub(super) fn make_folder(stage: &Stage) -> io::Result<()> {
    std::fs::create_dir(target(stage, "mkdir"))
}

pub(super) fn make_link(stage: &Stage) -> io::Result<()> {
    symlink("x", target(stage, "symlink"))
}

pub(super) fn make_hard_link(stage: &Stage) -> io::Result<()> {
    std::fs::hard_link(target(stage, "link"), stage.target.join("linked"))
}

pub(super) fn rename(stage: &Stage) -> io::Result<()> {
    std::fs::rename(target(stage, "rename"), stage.target.join("renamed"))
}

pub(super) fn make_pipe(stage: &Stage) -> io::Result<()> {
    scene::make_pipe(&target(stage, "mkfifo"))
}

pub(super) fn unlink(stage: &Stage) -> io::Result<()> {
    std::fs::remove_file(target(stage, "unlink"))
}

#[expect(clippy::disallowed_methods, reason = "the probe is whether a child is confined too")]
fn by_child(program: &str, args: &[&str], path: &Path) -> io::Result<()> {
    let mut child = Command::new(program);
    child.args(args).args(["-c", "echo x > \"$0\""]).arg(path);
    let status = child.stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

pub(super) fn write_by_shell(stage: &Stage) -> io::Result<()> {
    by_child("sh", &[], &target(stage, "a child of a shell writes"))
}

pub(super) fn write_by_daemon(stage: &Stage) -> io::Result<()> {
    let path = target(stage, "a daemon in a session of its own writes");
    by_child("setsid", &["--wait", "sh"], &path)
}

/// The inherited descriptors, without the usual three.
fn inherited() -> impl Iterator<Item = (i32, PathBuf)> {
    (3..256).filter_map(|number| {
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        std::fs::read_link(&path).ok().map(|leads_to| (number, leads_to))
    })
}

pub(super) fn write_inherited(_: &Stage) -> io::Result<()> {
    let mut written = Err(io::ErrorKind::NotFound.into());
    for (number, _) in inherited() {
        written = super::kernel::write_to(number, b"x").or(written);
    }
    written
}

pub(super) fn reopen_inherited(stage: &Stage) -> io::Result<()> {
    let wanted = slug("open /proc/self/fd/N again to write");
    for (number, leads_to) in inherited() {
        if leads_to.file_name().is_some_and(|name| *name == *wanted) {
            let path = format!("/proc/self/fd/{number}");
            return OpenOptions::new().append(true).open(path)?.write_all(b"x");
        }
    }
    // None was inherited, so the probe uses one that only reads.
    let file = File::open(stage.target.join(wanted))?;
    let path = path_of(&file);
    OpenOptions::new().append(true).open(path)?.write_all(b"x")
}

/// A read-only mount does not prevent this.
pub(super) fn write_into_pipe(stage: &Stage) -> io::Result<()> {
    let pipe = stage.pipe.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let at_once = libc::O_NONBLOCK;
    let write = |path: &Path, read: bool| {
        let mut options = OpenOptions::new();
        options.read(read).write(true).custom_flags(at_once).open(path)?.write_all(b"x")
    };
    // By its name, and from a descriptor that only reads.
    let reader = OpenOptions::new().read(true).custom_flags(at_once).open(pipe);
    let again = reader.and_then(|reader| write(&path_of(&reader), false));
    write(pipe, false).or(write(pipe, true)).or(again)
}

pub(super) fn change_mode(stage: &Stage) -> io::Result<()> {
    std::fs::set_permissions(target(stage, "chmod"), Permissions::from_mode(0o777))
}

pub(super) fn change_owner(stage: &Stage) -> io::Result<()> {
    // To the same values, which is always allowed, and changes the change time.
    let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    chown(target(stage, "chown"), Some(own.0), Some(own.1))
}

pub(super) fn change_times(stage: &Stage) -> io::Result<()> {
    let then = Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = Timestamps { last_access: then, last_modification: then };
    let path = target(stage, "utimensat");
    Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::empty())?)
}

pub(super) fn set_attribute(stage: &Stage) -> io::Result<()> {
    let path = target(stage, "setxattr");
    Ok(rustix::fs::setxattr(path, "user.probe", b"x", XattrFlags::empty())?)
}

pub(super) fn set_flags(stage: &Stage) -> io::Result<()> {
    let file = File::open(target(stage, "FS_IOC_SETFLAGS"))?;
    let flags = rustix::fs::ioctl_getflags(&file)?;
    Ok(rustix::fs::ioctl_setflags(&file, flags | rustix::fs::IFlags::NODUMP)?)
}

fn read_some(path: impl AsRef<Path>) -> io::Result<()> {
    let mut byte = [0];
    match File::open(path)?.read(&mut byte)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

pub(super) fn read_secret(stage: &Stage) -> io::Result<()> {
    read_some(&stage.secret)
}

/// By a name that a toolchain might have.
pub(super) fn read_home_by_link(stage: &Stage) -> io::Result<()> {
    read_some(stage.workspace.join("env"))
}

pub(super) fn read_home(stage: &Stage) -> io::Result<()> {
    read_some(&stage.at_home)
}

pub(super) fn read_shadow(_: &Stage) -> io::Result<()> {
    read_some("/etc/shadow")
}

pub(super) fn read_disk(_: &Stage) -> io::Result<()> {
    let mut tried = Err(io::ErrorKind::NotFound.into());
    for entry in std::fs::read_dir("/sys/block")?.flatten() {
        let device = Path::new("/dev").join(entry.file_name());
        tried = read_some(device).or(tried);
    }
    tried
}

pub(super) fn read_environment(stage: &Stage) -> io::Result<()> {
    read_some(format!("/proc/{}/environ", stage.process))
}

pub(super) fn read_arguments(stage: &Stage) -> io::Result<()> {
    read_some(format!("/proc/{}/cmdline", stage.process))
}

pub(super) fn read_through_root(stage: &Stage) -> io::Result<()> {
    read_some(Path::new(&format!("/proc/{}/root", stage.process)).join("etc/passwd"))
}

pub(super) fn open_by_handle(_: &Stage) -> io::Result<()> {
    super::kernel::open_by_handle()
}

pub(super) fn write_hook(stage: &Stage) -> io::Result<()> {
    let hooks = stage.workspace.join(".git/hooks");
    let _ = std::fs::create_dir(&hooks);
    std::fs::write(hooks.join("pre-commit"), "x")
}

pub(super) fn write_git_config(stage: &Stage) -> io::Result<()> {
    std::fs::write(stage.workspace.join(".git/config"), "x")
}

pub(super) fn make_posse(stage: &Stage) -> io::Result<()> {
    let _ = std::fs::remove_dir(stage.workspace.join(".posse"));
    std::fs::create_dir_all(stage.workspace.join(".posse/agents"))
}

pub(super) fn make_settings(stage: &Stage) -> io::Result<()> {
    let _ = std::fs::remove_dir(stage.workspace.join("posse.toml"));
    std::fs::write(stage.workspace.join("posse.toml"), "x")
}

pub(super) fn replace_git(stage: &Stage) -> io::Result<()> {
    std::fs::rename(stage.workspace.join(".git"), stage.workspace.join("moved"))
}

/// Such a file runs what an agent wrote with the rights of the user, whoever starts it.
pub(super) fn run_as_owner(stage: &Stage) -> io::Result<()> {
    let file = stage.workspace.join("as-owner");
    std::fs::write(&file, "x")?;
    std::fs::set_permissions(&file, Permissions::from_mode(0o4755))
}

pub(super) fn made_to_run_as_owner(stage: &Stage) -> io::Result<()> {
    let file = stage.workspace.join("made-as-owner");
    OpenOptions::new().write(true).create_new(true).mode(0o4755).open(file).map(drop)
}

pub(super) fn marked(stage: &Stage) -> io::Result<()> {
    let file = stage.workspace.join("marked");
    std::fs::write(&file, "")?;
    std::fs::set_permissions(&file, Permissions::from_mode(0o1444))
}

pub(super) fn made_with_mark(stage: &Stage) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o1777).create(stage.workspace.join("made-with-mark"))
}

/// Makes `folder` of the workspace the data of a repository, in which git would run a program.
fn make_repository(stage: &Stage, folder: &str) -> io::Result<std::path::PathBuf> {
    let data = stage.workspace.join(folder);
    for name in ["objects", "refs", "hooks"] {
        std::fs::create_dir_all(data.join(name))?;
    }
    std::fs::write(data.join("HEAD"), "ref: refs/heads/main\n")?;
    Ok(data)
}

pub(super) fn make_nested_settings(stage: &Stage) -> io::Result<()> {
    let data = make_repository(stage, "nested/.git")?;
    std::fs::write(data.join("config"), "[core]\n\tfsmonitor = x\n")
}

pub(super) fn make_nested_hook(stage: &Stage) -> io::Result<()> {
    let data = make_repository(stage, "hooked/.git")?;
    std::fs::write(data.join("hooks/pre-commit"), "x")
}

pub(super) fn make_bare_repository(stage: &Stage) -> io::Result<()> {
    let data = make_repository(stage, "bare")?;
    std::fs::write(data.join("config"), "[include]\n\tpath = x\n")
}

pub(super) fn link_in_git(stage: &Stage) -> io::Result<()> {
    std::os::unix::fs::symlink("hooks/x", stage.workspace.join(".git/COMMIT_EDITMSG"))
}

pub(super) fn change_included_settings(stage: &Stage) -> io::Result<()> {
    std::fs::write(stage.workspace.join("included"), "[core]\n\tfsmonitor = x\n")
}

/// Opens a setting of the kernel for writing, and does not change it.
pub(super) fn change_kernel_setting(_: &Stage) -> io::Result<()> {
    File::options().write(true).open("/proc/sys/kernel/core_pattern").map(drop)
}

/// Sets the mode of the program of process 1 to its present mode. A copy in memory does not count,
/// because no other process uses it.
pub(super) fn change_first_process(_: &Stage) -> io::Result<()> {
    let program = Path::new("/proc/1/exe");
    if program.read_link()?.starts_with("/memfd:bwrap (deleted)") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    std::fs::set_permissions(program, program.metadata()?.permissions())
}
