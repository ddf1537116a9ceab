//! Landlock: the list of files that a command may open. Landlock cannot exclude paths from an allowed
//! folder. So around each secret, the rules allow every other file one by one.

use super::command_sandbox::CommandSandbox;
use super::{home, secrets};
use crate::linux::real_path;
use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::{Path, PathBuf};

/// The first version that handles truncation. Before it, a command could empty read-only files.
const LEAST: ABI = ABI::V3;
/// The first version that restricts signals.
const BEST: ABI = ABI::V6;

/// The first version that allows moving a file to another folder.
const MOVES: ABI = ABI::V2;

/// Folders that commands do not see: data about all processes, devices such as disks, and folders in
/// which all users keep files.
const NOT_SHOWN: [&str; 6] = ["/proc", "/dev", "/tmp", "/var/tmp", "/run", "/lost+found"];

/// Facts about the machine that programs need.
const SHOWN: [&str; 9] = [
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/sys",
    "/run/current-system",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The version of Landlock in the kernel; 0 for none.
#[expect(unsafe_code, reason = "the crate does not tell")]
pub fn landlock_version() -> i64 {
    const VERSION: u32 = 1;
    let none = std::ptr::null::<u8>();
    // SAFETY: for a query of its version, the kernel reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) }.max(0)
}

/// Returns true if the kernel's Landlock allows ordinary work. Before version 2, a file could not be
/// moved or linked from one folder to another.
pub fn keeps_moves() -> bool {
    landlock_version() >= 2
}

/// Permanently allows this process, and all processes that it starts, to write only below `folders`.
/// Reading and executing are not restricted.
pub(super) fn write_only_below(folders: &[PathBuf]) -> io::Result<()> {
    let rules = rules_about_writing(folders).map_err(io::Error::other)?;
    rules.restrict_self().map_err(io::Error::other)?;
    Ok(())
}

fn rules_about_writing(folders: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let writing = AccessFs::from_write(LEAST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(MOVES))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)?
        .create()?;
    for folder in folders {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // A path that does not exist cannot be written.
        let Ok(place) = rustix::fs::open(folder, flags, Mode::empty()) else { continue };
        // The paths are mount points. If one is a link now, it was replaced and leads elsewhere.
        if real_path(&place).ok().as_ref() != Some(folder) {
            continue;
        }
        let access = if folder.is_dir() { writing } else { writing & AccessFs::from_file(LEAST) };
        rules = rules.add_rule(PathBeneath::new(place, access))?;
    }
    Ok(rules)
}

/// Restricts this process, and all processes that it starts, permanently.
pub(super) fn enforce(sandbox: &CommandSandbox) -> io::Result<()> {
    let rules = rules(sandbox).map_err(io::Error::other)?;
    rules.restrict_self().map_err(io::Error::other)?;
    Ok(())
}

fn rules(sandbox: &CommandSandbox) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(BEST))?
        .handle_access(AccessNet::from_all(BEST))?
        .scope(Scope::from_all(BEST))?;
    let mut rules = rules.create()?;
    let look = AccessFs::from_read(BEST);
    let mut hidden = secrets::hidden(sandbox);
    hidden.extend(NOT_SHOWN.map(PathBuf::from));
    let homes = home::hidden(sandbox);
    let closed: Vec<PathBuf> = hidden.iter().chain(homes.iter().copied()).cloned().collect();
    rules = allow_around(rules, Path::new("/"), &closed, look)?;
    for path in SHOWN {
        rules = allow(rules, path.as_ref(), look)?;
    }
    for path in DEVICES {
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules = allow(rules, path.as_ref(), device)?;
    }
    let places = home::shown(sandbox);
    let open = sandbox.homes.iter().filter(|home| !homes.contains(home));
    let folders = open.chain(&sandbox.readable).chain([&sandbox.workspace]);
    let hidden_places = places.iter().filter(|it| home::is_hidden_otherwise(&it.real, sandbox));
    for path in folders.chain(hidden_places.map(|place| &place.real)) {
        let Ok(path) = path.canonicalize() else { continue };
        rules = allow_around(rules, &path, &closed, look)?;
    }
    for path in &sandbox.writable {
        rules = allow(rules, path, AccessFs::from_all(BEST))?;
    }
    Ok(rules)
}

/// Allows a folder with everything in it, except for hidden paths.
fn allow_around(
    mut rules: RulesetCreated,
    folder: &Path,
    hidden: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    // The folder itself is hidden.
    if hidden.iter().any(|path| path == folder)
        && !NOT_SHOWN.iter().any(|it| Path::new(it) == folder)
    {
        return Ok(rules);
    }
    let inside = |path: &&PathBuf| path.starts_with(folder) && *path != folder;
    let hidden: Vec<PathBuf> = hidden.iter().filter(inside).cloned().collect();
    if hidden.is_empty() {
        return allow(rules, folder, access);
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // The target of a link has its own rule, or none.
        if hidden.contains(&path) || entry.file_type().is_ok_and(|it| it.is_symlink()) {
            continue;
        }
        rules = allow_around(rules, &path, &hidden, access)?;
    }
    Ok(rules)
}

/// Allows `path`, if it exists.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(place) = PathFd::new(path) else { return Ok(rules) };
    let is_folder = path.is_dir();
    let access = if is_folder { access } else { access & AccessFs::from_file(BEST) };
    rules.add_rule(PathBeneath::new(place, access))
}
