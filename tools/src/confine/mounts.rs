//! The mounts of a command in a sandbox of bubblewrap: the whole machine, read-only. On top of it are
//! private folders, writable paths, and gaps where secrets are.

use super::command_sandbox::{CommandSandbox, Link};
use super::excluded::{emptied, excluded};
use super::lending::Lender;
use super::pinned::{Followed, changeable, followed, pinned};
use super::protected::{
    GIT, HEAD, IN_GIT, IN_HOME, PROTECTED, data_of, makes_a_repository, obeyed_below_home,
};
use super::secrets;
use super::tracked::tracked;
use super::{home, mask};
use crate::remove;
use posse_protocol::Profile;
use rustix::fs::{Mode, OFlags, ResolveFlags, fchmod};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Folders that every user writes to and that processes share. Each command has its own, in memory.
const PRIVATE: [(&str, u64); 4] =
    [("/tmp", 1 << 30), ("/var/tmp", 1 << 30), ("/run", 16 << 20), ("/dev/shm", 256 << 20)];

/// Those in which people keep files for later, and the names of the folders that replace them in a run.
pub(super) const LASTING: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

/// Paths in private folders that are not secret, such as the programs of some systems.
const SHOWN_IN_PRIVATE: [&str; 2] = ["/run/current-system", "/run/booted-system"];

/// The size of a gap, which is empty.
const GAP_BYTES: u64 = 64 << 10;

/// Identifies a folder or file: its device and its inode.
pub(super) type Identity = (u64, u64);

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mount {
    Private {
        path: PathBuf,
        bytes: u64,
    },
    /// A private folder that outlives the command. Its files are in a folder outside.
    Lasting {
        path: PathBuf,
        from: PathBuf,
    },
    Shown {
        path: PathBuf,
        access: Access,
    },
    Link {
        path: PathBuf,
        to: PathBuf,
    },
    /// An empty file.
    Empty {
        path: PathBuf,
    },
    /// A hidden path. `tracked` holds the files that git tracks there; it is empty if they are unknown.
    Gap {
        path: PathBuf,
        tracked: Option<BTreeSet<PathBuf>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Mount {
    fn path(&self) -> &Path {
        match self {
            Mount::Private { path, .. }
            | Mount::Lasting { path, .. }
            | Mount::Shown { path, .. }
            | Mount::Link { path, .. }
            | Mount::Empty { path }
            | Mount::Gap { path, .. } => path,
        }
    }

    /// Deeper mounts come later, because an earlier one would be covered. At the same path, a secret
    /// takes precedence over a shown path, and a shown path over a private folder.
    fn order(&self) -> (usize, u8) {
        let rank = match self {
            Mount::Private { .. } | Mount::Lasting { .. } => 0,
            Mount::Shown { .. } | Mount::Link { .. } => 1,
            Mount::Empty { .. } => 2,
            Mount::Gap { .. } => 3,
        };
        (self.path().components().count(), rank)
    }
}

/// The mounts as arguments for bubblewrap, and facts about them.
pub(super) struct Layout {
    pub arguments: Vec<OsString>,
    /// Files that must exist until bubblewrap has mounted them.
    pub masks: Vec<TempPath>,
    /// The writable paths in the sandbox. None of them contains another.
    pub writable: Vec<PathBuf>,
    /// Mounts in places that commands can change, and the folder or file that each of them must be.
    pub inside: Vec<(PathBuf, Identity)>,
    /// All mount points in places that commands can change, including gaps.
    pub points: Vec<PathBuf>,
}

/// Computes the layout of a sandbox. With a `lender`, it lends every path that the sandbox shows.
///
/// # Errors
/// If an earlier command left a file in a temporary folder that is in the way and cannot be removed, or
/// if a path cannot be lent.
pub(super) fn layout(
    sandbox: &CommandSandbox,
    mut lender: Option<&mut Lender>,
) -> io::Result<Layout> {
    let (mut masks, mut others): (Vec<TempPath>, Vec<TempPath>) = (Vec::new(), Vec::new());
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |parts: &[&dyn AsRef<std::ffi::OsStr>]| {
        arguments.extend(parts.iter().map(|part| part.as_ref().to_owned()));
    };
    add(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc"]);
    // Kernel settings in `/proc` are writable for the uid of root, which a command of a root host has.
    let mut sealed: Vec<PathBuf> = vec!["/dev".into(), "/proc".into()];
    let mut mounts = mounts(sandbox);
    clear_lasting(&mounts)?;
    if lender.is_some() {
        mounts = within_reach(mounts);
    }
    let mut source = |path: &Path| match &mut lender {
        Some(lender) => lender.lend(path),
        None => Ok(path.to_owned()),
    };
    let writable = writable(&mounts);
    let inside = inside(&mounts, sandbox)?;
    let points = points(&mounts, sandbox);
    for mount in mounts {
        match &mount {
            Mount::Private { path, bytes } => {
                add(&[&"--perms", &"1777", &"--size", &bytes.to_string(), &"--tmpfs", path]);
            }
            Mount::Lasting { path, from } => add(&[&"--bind", &source(from)?, path]),
            Mount::Shown { path, access: Access::Read } => {
                add(&[&"--ro-bind", &source(path)?, path]);
            }
            Mount::Shown { path, access: Access::Write } => add(&[&"--bind", &source(path)?, path]),
            Mount::Link { path, to } => add(&[&"--symlink", to, path]),
            Mount::Empty { path } => {
                let empty = mask::holding("");
                let empty = empty.ok_or_else(|| io::Error::other("no file can be made"))?;
                add(&[&"--ro-bind", &source(&empty)?, path]);
                others.push(empty);
            }
            Mount::Gap { path, tracked } if path.is_dir() => {
                let bytes = GAP_BYTES.to_string();
                let files = tracked.as_ref().map(mask::of_all);
                // If the files cannot be masked, close the folder: git then sometimes takes them for unchanged.
                let mode =
                    if files.as_ref().is_some_and(Option::is_none) { "0000" } else { "0555" };
                add(&[&"--perms", &mode, &"--size", &bytes, &"--tmpfs", path]);
                for (file, mask) in files.flatten().into_iter().flatten() {
                    add(&[&"--ro-bind", &source(&mask)?, &file]);
                    masks.push(mask);
                }
                sealed.push(path.clone());
            }
            Mount::Gap { path, tracked: Some(_) } if let Some(mask) = mask::of(path) => {
                add(&[&"--ro-bind", &source(&mask)?, path]);
                masks.push(mask);
            }
            // As bubblewrap mounts it, this device cannot be opened.
            Mount::Gap { path, .. } => add(&[&"--ro-bind", &"/dev/null", path]),
        }
    }
    if !masks.is_empty() {
        let settings = format!("{} {}", mask::NO_TIDYING, mask::UNCHANGED);
        add(&[&"--setenv", &mask::GIT_SETTINGS, &settings]);
    }
    masks.append(&mut others);
    if let Some((path, text)) = excluded(sandbox) {
        add(&[&"--ro-bind", &source(&text)?, &path]);
        masks.push(text);
    }
    // Only now, because the mount points in these folders had to be created first.
    for path in sealed {
        add(&[&"--remount-ro", &path]);
    }
    Ok(Layout { arguments, masks, writable, inside, points })
}

/// The paths to mount in places that commands can change, as they are now. Bubblewrap mounts them by
/// path a moment later. Until then, a command could replace a folder above with a link.
fn inside(mounts: &[Mount], sandbox: &CommandSandbox) -> io::Result<Vec<(PathBuf, Identity)>> {
    let roots = roots(sandbox);
    let mut inside = Vec::new();
    for mount in mounts {
        let Mount::Shown { path, .. } = mount else { continue };
        let is_hidden = |it: &Mount| matches!(it, Mount::Gap { path: gap, .. } if gap == path);
        if mounts.iter().any(is_hidden) {
            continue;
        }
        let Some(root) = innermost(&roots, path).filter(|root| *root != path) else { continue };
        let handle = folder_handle(root)?;
        let below = path.strip_prefix(root).unwrap_or(path);
        let identity = identity_below(&handle, below).map_err(|error| {
            io::Error::other(format!("{} was replaced meanwhile: {error}", path.display()))
        })?;
        inside.push((path.clone(), identity));
    }
    Ok(inside)
}

/// The mount points in places that commands can change. If a command put a link there in time,
/// bubblewrap would mount at the link's target, and nothing at the mount point itself.
fn points(mounts: &[Mount], sandbox: &CommandSandbox) -> Vec<PathBuf> {
    let roots = roots(sandbox);
    let is_inside = |path: &Path| innermost(&roots, path).is_some_and(|root| root != path);
    let mounted = mounts.iter().filter(|it| matches!(it, Mount::Shown { .. } | Mount::Gap { .. }));
    mounted.map(Mount::path).filter(|path| is_inside(path)).map(Path::to_owned).collect()
}

/// A handle of the folder at `path`. It cannot be used for reading.
pub(super) fn folder_handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Identifies the folder or file at `path` below `handle`. Fails if a link is on the way.
pub(super) fn identity_below(handle: &OwnedFd, path: &Path) -> io::Result<Identity> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let way = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = rustix::fs::openat2(handle, path, flags, Mode::empty(), way)?;
    let found = rustix::fs::fstat(found)?;
    Ok((found.st_dev, found.st_ino))
}

/// Changes the mounts so that a user who owns nothing can make them. A folder that only root may enter
/// becomes a gap if there is a mount in it: in a gap, that user may enter everything. Gaps in such a folder
/// are dropped, because no process in the sandbox can reach them.
fn within_reach(mounts: Vec<Mount>) -> Vec<Mount> {
    let mut within: Vec<Mount> = Vec::new();
    for mount in mounts {
        let path = mount.path();
        let is_inside = within.iter().any(|it| path.starts_with(it.path()) && path != it.path());
        let closed = path.ancestors().skip(1).filter(|it| !everybody_may_enter(it)).last();
        match closed.filter(|_| !is_inside).map(Path::to_owned) {
            Some(_) if matches!(mount, Mount::Gap { .. }) => {}
            Some(path) => within.extend([Mount::Gap { path, tracked: None }, mount]),
            None => within.push(mount),
        }
    }
    within.sort_by_key(Mount::order);
    within
}

fn everybody_may_enter(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
}

/// The writable paths. `/dev` contains only the devices that a command needs, and `/proc` is read-only.
fn writable(mounts: &[Mount]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = vec!["/dev".into()];
    for mount in mounts {
        match mount {
            Mount::Private { path, .. }
            | Mount::Lasting { path, .. }
            | Mount::Shown { path, access: Access::Write } => places.push(path.clone()),
            Mount::Shown { access: Access::Read, .. }
            | Mount::Link { .. }
            | Mount::Empty { .. }
            | Mount::Gap { .. } => {}
        }
    }
    places.sort();
    // A folder comes before the paths inside it.
    places.dedup_by(|later, earlier| later.starts_with(earlier));
    places
}

/// Creates the lasting folders, and removes files in them that are in the way of other mounts. A command could
/// have left a link there, so that the mount would appear elsewhere. No other command of the run is active now.
fn clear_lasting(mounts: &[Mount]) -> io::Result<()> {
    for lasting in mounts {
        let Mount::Lasting { path, from } = lasting else { continue };
        match DirBuilder::new().mode(0o700).create(from) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = File::open(from)?;
        // The mode that programs expect. The folder around it is closed to other users.
        fchmod(&folder, Mode::from_raw_mode(0o1777))?;
        let below = mounts.iter().filter_map(|mount| mount.path().strip_prefix(path).ok());
        let names: BTreeSet<&OsStr> = below.filter_map(|it| it.iter().next()).collect();
        names.into_iter().try_for_each(|name| remove::remove(&folder, name))?;
        // Create mount points here: if bubblewrap did, they would count as written by the command.
        let is_around =
            |it: &&Mount, place: &Path| place.starts_with(it.path()) && it.path() != place;
        let nearest = |place: &Path| mounts.iter().rfind(|it| is_around(it, place));
        for place in mounts.iter().map(Mount::path).filter(|place| place.is_dir()) {
            if nearest(place) == Some(lasting)
                && let Ok(below) = place.strip_prefix(path)
            {
                DirBuilder::new().recursive(true).create(from.join(below))?;
            }
        }
    }
    Ok(())
}

fn mounts(sandbox: &CommandSandbox) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for (path, bytes) in PRIVATE {
        // If it is a link, it leads to another of these folders.
        let is_folder = Path::new(path).symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder || path.starts_with("/dev/") {
            let name = LASTING.iter().find(|(lasting, _)| *lasting == path).map(|(_, name)| name);
            let from = sandbox.temporary.as_ref().zip(name).map(|(folder, name)| folder.join(name));
            let path = path.into();
            mounts.push(match from {
                Some(from) => Mount::Lasting { path, from },
                None => Mount::Private { path, bytes },
            });
        }
    }
    let mut show = |path: &Path, access| {
        // The root folder is readable already.
        if let Ok(path) = path.canonicalize()
            && path.parent().is_some()
        {
            mounts.push(Mount::Shown { path, access });
        }
    };
    SHOWN_IN_PRIVATE.iter().for_each(|path| show(path.as_ref(), Access::Read));
    if sandbox.link == Link::Open {
        show("/etc/resolv.conf".as_ref(), Access::Read);
    }
    let homes = home::hidden(sandbox);
    sandbox.homes.iter().filter(|home| !homes.contains(home)).for_each(|home| {
        show(home, Access::Read);
    });
    let places = home::shown(sandbox);
    let hidden_places = places.iter().filter(|it| home::is_hidden_otherwise(&it.real, sandbox));
    hidden_places.for_each(|place| show(&place.real, Access::Read));
    sandbox.readable.iter().filter(|path| is_apart(path, sandbox)).for_each(|path| {
        show(path, Access::Read);
    });
    // A command that does not run as root needs these to be shown, too.
    let more = sandbox.shown.iter().filter(|path| sandbox.lends && is_apart(path, sandbox));
    more.for_each(|path| show(path, Access::Read));
    let writes = sandbox.profile == Profile::WorkspaceWrite;
    let Followed { links, mut left } = followed(sandbox);
    let is_pinned = links.iter().any(|link| link.parent() == Some(&sandbox.workspace));
    show(&sandbox.workspace, if writes && !is_pinned { Access::Write } else { Access::Read });
    sandbox.writable.iter().for_each(|path| show(path, Access::Write));
    let to_homes = places.into_iter().filter(|place| place.path != place.real);
    mounts.extend(to_homes.map(|place| Mount::Link { path: place.path, to: place.real }));
    let gap = |home: &&PathBuf| Mount::Gap { path: (*home).clone(), tracked: None };
    mounts.extend(homes.iter().map(gap));
    let hidden = secrets::hidden(sandbox);
    let mut opened = Vec::new();
    if writes {
        // Nothing can be mounted over a link. The names around it stay as they are: see `pinned.rs`.
        let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|it| !it.is_symlink());
        let there = guarded(sandbox).into_iter().filter(|(path, _)| is_there(path));
        let roots = roots(sandbox);
        let fixed = sandbox.fixed.iter().filter_map(|path| path.canonicalize().ok());
        // A command may have replaced a path with a link. Paths outside these roots cannot be changed
        // anyway, and mounting one would reveal it.
        let fixed = fixed.filter(|path| innermost(&roots, path).is_some());
        let kept = there.chain(fixed.map(|path| (path, Access::Read)));
        // Mounting a hidden path read-only would reveal it, too.
        let gaps: Vec<&Path> = hidden.iter().map(PathBuf::as_path).collect();
        let is_hidden = |path: &Path| gaps.contains(&path) || is_in_gap(path, &gaps, &roots);
        let kept: Vec<_> = kept.filter(|(path, _)| !is_hidden(path)).collect();
        let only_read = kept.iter().filter(|(_, access)| *access == Access::Read);
        // The workspace may be in a hidden folder, such as another user's home.
        let around = |gap: &&Path| sandbox.workspace.starts_with(gap);
        let inner = gaps.iter().copied().filter(|gap| !around(gap));
        let closed: Vec<&Path> = only_read.map(|(path, _)| path.as_path()).chain(inner).collect();
        let pinned = pinned(&links, &closed);
        // As a mount, a folder can neither be moved nor replaced.
        left.retain(|it| !closed.iter().any(|at| it.starts_with(at)));
        opened.extend(pinned.iter().flat_map(|folder| changeable(folder)));
        for paths in [&mut opened, &mut left] {
            paths.sort();
            paths.dedup();
            paths.retain(|path| {
                let is_kept = kept.iter().any(|(kept, _)| kept == path);
                !is_kept && !pinned.contains(path) && !gaps.contains(&path.as_path())
            });
        }
        left.retain(|path| !opened.contains(path));
        let shown =
            |(path, access): (&PathBuf, Access)| Mount::Shown { path: path.clone(), access };
        mounts.extend(pinned.iter().map(|path| (path, Access::Read)).map(shown));
        let open = opened.iter().chain(&left);
        mounts.extend(open.map(|path| (path, Access::Write)).map(shown));
        let emptied = emptied(sandbox);
        mounts.extend(kept.into_iter().map(|(path, access)| {
            match emptied.as_ref() == Some(&path) {
                true => Mount::Empty { path },
                false => Mount::Shown { path, access },
            }
        }));
    }
    let mut known = tracked(&hidden);
    for path in hidden {
        // The run's own folders may be inside a hidden one: the database's, or another person's home.
        let is_inside = |other: &Path| other.starts_with(&path) && other != path;
        let holds_others = mounts.iter().any(|mount| is_inside(mount.path()));
        let tracked = known.remove(&path).filter(|_| !holds_others);
        mounts.push(Mount::Gap { path, tracked });
    }
    if writes {
        let held = held(&mounts, &opened, &left, sandbox);
        mounts.extend(held);
    }
    mounts.sort_by_key(Mount::order);
    mounts.dedup();
    without_covered(mounts)
}

/// Returns true for a folder that no confined command can have replaced with a link.
fn is_apart(path: &Path, sandbox: &CommandSandbox) -> bool {
    path.canonicalize().is_ok_and(|real| real == *path && !sandbox.gives(path))
}

/// The folders around fixed or hidden paths in writable places, each as its own mount. Otherwise a
/// command could move such a folder away with everything in it, and put another in its place. Paths in
/// `opened` are writable in a folder that is not. Those in `left` must stay where they are, too.
fn held(
    mounts: &[Mount],
    opened: &[PathBuf],
    left: &[PathBuf],
    sandbox: &CommandSandbox,
) -> Vec<Mount> {
    let is_kept = |mount: &&Mount| match mount {
        Mount::Gap { .. } | Mount::Empty { .. } | Mount::Shown { access: Access::Read, .. } => true,
        Mount::Shown { access: Access::Write, .. }
        | Mount::Private { .. }
        | Mount::Lasting { .. }
        | Mount::Link { .. } => false,
    };
    let mut roots = roots(sandbox);
    roots.extend(opened);
    let kept: Vec<&Path> = mounts.iter().filter(is_kept).map(Mount::path).collect();
    let is_gap = |mount: &&Mount| matches!(mount, Mount::Gap { .. });
    let gaps: Vec<&Path> = mounts.iter().filter(is_gap).map(Mount::path).collect();
    let mut held = BTreeSet::new();
    for path in kept.iter().copied().chain(left.iter().map(PathBuf::as_path)) {
        // A command cannot move a root or the folders above it.
        let Some(root) = innermost(&roots, path).filter(|root| *root != path) else { continue };
        // The same holds for paths that it does not see.
        if is_in_gap(path, &gaps, &roots) {
            continue;
        }
        let inside: Vec<&&Path> =
            kept.iter().filter(|it| it.starts_with(root) && **it != root).collect();
        let around = path.ancestors().skip(1).take_while(|it| *it != root);
        // Paths inside a read-only mount cannot be moved.
        held.extend(around.filter(|it| !inside.iter().any(|kept| it.starts_with(kept))));
    }
    held.into_iter()
        .map(|path| Mount::Shown { path: path.to_owned(), access: Access::Write })
        .collect()
}

/// Returns true if `path` is in one of `gaps`, without a writable root between them.
fn is_in_gap(path: &Path, gaps: &[&Path], roots: &[&PathBuf]) -> bool {
    let Some(root) = innermost(roots, path) else { return false };
    gaps.iter().any(|gap| gap.starts_with(root) && path.starts_with(gap) && path != *gap)
}

/// The folders that a command may change, except for protected paths in them.
fn roots(sandbox: &CommandSandbox) -> Vec<&PathBuf> {
    std::iter::once(&sandbox.workspace).chain(&sandbox.writable).collect()
}

/// The nearest of `roots` that contains `path` or is `path`.
fn innermost<'r>(roots: &[&'r PathBuf], path: &Path) -> Option<&'r Path> {
    let around = roots.iter().filter(|root| path.starts_with(root));
    around.max_by_key(|root| root.components().count()).map(|root| root.as_path())
}

/// Removes gaps in places that are not visible anyway, where mounting is impossible. Also removes links
/// in shown folders, which contain these links already.
fn without_covered(mounts: Vec<Mount>) -> Vec<Mount> {
    let mut kept: Vec<Mount> = Vec::new();
    for mount in mounts {
        let around = kept.iter().rev().find(|it| mount.path().starts_with(it.path()));
        let covered = matches!(
            around,
            Some(Mount::Private { .. } | Mount::Lasting { .. } | Mount::Gap { .. })
        );
        let is_needless = match mount {
            Mount::Gap { .. } => covered,
            Mount::Link { .. } => !covered,
            Mount::Private { .. }
            | Mount::Lasting { .. }
            | Mount::Shown { .. }
            | Mount::Empty { .. } => false,
        };
        if !is_needless {
            kept.push(mount);
        }
    }
    kept
}

/// The paths of the workspace and its repository that are separate mounts, so that a command can
/// neither move nor replace them. The access says whether it can change them.
fn guarded(sandbox: &CommandSandbox) -> Vec<(PathBuf, Access)> {
    let repository = sandbox.repository.iter().map(|data| (data.clone(), Access::Write));
    let paths = protected(sandbox).into_iter().map(|path| (path, Access::Read)).chain(repository);
    let git = sandbox.workspace.join(GIT);
    if sandbox.writable.contains(&git) {
        return paths.collect();
    }
    // Read-only if it is a file that leads to a repository elsewhere, the user's empty folder, or a
    // repository that a command has taken apart.
    let is_whole = git.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let access = if is_whole { Access::Write } else { Access::Read };
    paths.chain([(git, access)]).collect()
}

/// The paths that must not be written, whether they exist or not, except for `.git` itself.
pub(super) fn protected(sandbox: &CommandSandbox) -> Vec<PathBuf> {
    let workspace = &sandbox.workspace;
    let mut paths: Vec<PathBuf> = PROTECTED.iter().map(|name| workspace.join(name)).collect();
    paths.extend(makes_a_repository(workspace).map(|name| workspace.join(name)));
    for data in data_of(workspace).iter().chain(&sandbox.repository) {
        paths.extend(IN_GIT.iter().map(|name| data.join(name)));
    }
    for home in sandbox.homes.iter().filter(|home| home.starts_with(workspace)) {
        paths.extend(IN_HOME.iter().map(|name| home.join(name)));
    }
    paths.extend(obeyed_below_home(workspace, &sandbox.homes, &sandbox.hidden).places);
    // The host gave these paths to be written on purpose.
    paths.retain(|path| !sandbox.writable.iter().any(|given| path.starts_with(given)));
    paths
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Backend;
    use super::*;
    use proptest::prelude::*;

    /// The folders of a layout. Each of them can have any role.
    const FOLDERS: [&str; 8] = ["a", "a/b", "a/b/c", "a/b/c/d", "a/e", "a/b/.git", "f", "f/g"];

    fn sandbox(root: &Path, places: &[Vec<usize>; 5], workspace: usize) -> CommandSandbox {
        let paths = |at: usize| places[at].iter().map(|it| root.join(FOLDERS[*it])).collect();
        CommandSandbox {
            backend: Backend::Bubblewrap,
            bubblewrap: "/usr/bin/bwrap".into(),
            lends: false,
            must_lend: false,
            profile: Profile::WorkspaceWrite,
            link: Link::None,
            workspace: root.join(FOLDERS[workspace]),
            identity: None,
            is_own: false,
            state: None,
            repository: None,
            writable: paths(0),
            temporary: None,
            readable: paths(1),
            hidden: paths(2),
            fixed: paths(3),
            homes: paths(4),
            programs: Vec::new(),
            toolchains: Vec::new(),
            shown: Vec::new(),
        }
    }

    proptest! {
        /// However the folders are nested, only the given ones can be written, and no fixed or hidden
        /// path in them can be moved away with a folder around it.
        #[test]
        fn nothing_above_what_was_given_can_be_written_and_nothing_kept_can_be_moved(
            places in prop::array::uniform5(prop::collection::vec(0..FOLDERS.len(), 0..3)),
            workspace in 0..FOLDERS.len(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            FOLDERS.iter().for_each(|it| std::fs::create_dir_all(root.join(it)).unwrap());
            let sandbox = sandbox(&root, &places, workspace);
            let mounts = mounts(&sandbox);
            let given: Vec<&PathBuf> =
                std::iter::once(&sandbox.workspace).chain(&sandbox.writable).collect();
            for mount in &mounts {
                if let Mount::Shown { path, access: Access::Write } = mount {
                    prop_assert!(given.iter().any(|it| path.starts_with(it)), "{path:?}: {mounts:?}");
                }
            }
            // A path that is both hidden in the workspace and fixed is not shown.
            for hidden in sandbox.hidden.iter().filter(|it| it.starts_with(&sandbox.workspace)) {
                for fixed in sandbox.fixed.iter().filter(|it| it.starts_with(hidden)) {
                    let given = sandbox.writable.iter().chain(&sandbox.readable).chain(&sandbox.homes);
                    let is_given = given.into_iter().any(|it| it.starts_with(hidden));
                    let last = mounts.iter().rfind(|mount| fixed.starts_with(mount.path()));
                    let is_gap = matches!(last, Some(Mount::Gap { .. }));
                    prop_assert!(is_given || is_gap, "{fixed:?}: {mounts:?}");
                }
            }
            for kept in sandbox.hidden.iter().chain(&sandbox.fixed) {
                let Some(root) = innermost(&given, kept) else { continue };
                for around in kept.ancestors().skip(1).take_while(|it| it.starts_with(root)) {
                    let stays = mounts.iter().any(|mount| {
                        let is_closed = match mount {
                            Mount::Gap { path, .. } => path.starts_with(root),
                            Mount::Shown { path, access: Access::Read } => {
                                path.starts_with(root) && path != root
                            }
                            _ => false,
                        };
                        mount.path() == around || is_closed && around.starts_with(mount.path())
                    });
                    prop_assert!(stays, "{around:?}: {mounts:?}");
                }
            }
        }
    }

    /// A command may replace a file with a link while another command's sandbox is planned.
    #[test]
    fn what_is_fixed_shows_neither_what_a_link_leads_to_nor_what_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/priv")).unwrap();
        std::fs::create_dir(root.join("f")).unwrap();
        std::os::unix::fs::symlink("../f", root.join("a/k")).unwrap();
        let none = [const { Vec::new() }; 5];
        let mut sandbox = sandbox(&root, &none, 0);
        sandbox.fixed = vec![root.join("a/k"), root.join("a/priv")];
        sandbox.hidden = vec![root.join("a/priv")];
        let mounts = mounts(&sandbox);
        let shown = |path: &str| {
            let path = root.join(path);
            mounts.iter().any(|it| matches!(it, Mount::Shown { path: at, .. } if *at == path))
        };
        assert!(!shown("f") && !shown("a/k") && !shown("a/priv"), "{mounts:?}");
        let is_gap = |it: &Mount| matches!(it, Mount::Gap { path, .. } if path.ends_with("priv"));
        assert!(mounts.iter().any(is_gap), "{mounts:?}");
        assert!(points(&mounts, &sandbox).contains(&root.join("a/priv")));
    }
}
