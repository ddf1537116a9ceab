//! What a command in a box of bubblewrap's finds where: the whole machine, to be read; in it
//! private folders, what it may change, and gaps where secrets are.

use super::excluded::{emptied, excluded};
use super::lending::{Lender, never};
use super::pinned::{changeable, followed_links, pinned};
use super::protected::{
    GIT, HEAD, IN_GIT, IN_HOME, PROTECTED, data_of, makes_a_repository, obeyed_below_home,
};
use super::secrets;
use super::tracked::tracked;
use super::walls::{Link, Walls};
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

/// Folders that everybody writes to, in which processes meet; each command has its own, in memory.
const PRIVATE: [(&str, u64); 4] =
    [("/tmp", 1 << 30), ("/var/tmp", 1 << 30), ("/run", 16 << 20), ("/dev/shm", 256 << 20)];

/// Those of them in which people keep things for later, and the names under which a run keeps its own.
pub(super) const LASTING: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

/// What is not secret in a folder that is private: where some systems keep their programs, and how
/// names are resolved.
const SHOWN_IN_PRIVATE: [&str; 2] = ["/run/current-system", "/run/booted-system"];

/// A gap holds nothing.
const GAP_BYTES: u64 = 64 << 10;

/// Which folder or file something is: its device and its number there.
pub(super) type Identity = (u64, u64);

/// One thing that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mount {
    Private {
        path: PathBuf,
        bytes: u64,
    },
    /// What is private and lasts: it lies in a folder outside.
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
    /// With the files that git tracks there, if it tracks any; with none where that is not known.
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

    /// What is deeper is mounted later, since it would be covered otherwise; in one place a secret
    /// wins over what is shown, and that over what is private.
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

/// What makes bubblewrap mount all this.
pub(super) struct Layout {
    pub arguments: Vec<OsString>,
    /// Files that must be there until it has.
    pub masks: Vec<TempPath>,
    /// The places in the box that can be written, none of them within another.
    pub writable: Vec<PathBuf>,
    /// What is mounted in places that commands can change, and which folder or file each is.
    pub inside: Vec<(PathBuf, Identity)>,
    /// Where something is mounted in there, gaps included.
    pub points: Vec<PathBuf>,
}

/// The layout of a box. What it shows comes from `lender`, if there is one.
///
/// # Errors
/// When what an earlier command left in a temporary folder is in the way and cannot be removed, or
/// something cannot be lent.
pub(super) fn layout(walls: &Walls, mut lender: Option<&mut Lender>) -> io::Result<Layout> {
    let (mut masks, mut others): (Vec<TempPath>, Vec<TempPath>) = (Vec::new(), Vec::new());
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |parts: &[&dyn AsRef<std::ffi::OsStr>]| {
        arguments.extend(parts.iter().map(|part| part.as_ref().to_owned()));
    };
    add(&[&"--ro-bind", &"/", &"/", &"--dev", &"/dev", &"--proc", &"/proc"]);
    // Settings of the kernel ask for the uid of root, which a command of root's has.
    let mut sealed: Vec<PathBuf> = vec!["/dev".into(), "/proc".into()];
    let mut mounts = mounts(walls);
    clear_lasting(&mounts)?;
    if lender.is_some() {
        mounts = within_reach(mounts)?;
    }
    let mut source = |path: &Path| match &mut lender {
        Some(lender) => lender.lend(path),
        None => Ok(path.to_owned()),
    };
    let writable = writable(&mounts);
    let inside = inside(&mounts, walls)?;
    let points = points(&mounts, walls);
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
                // Git takes what is in a folder that it cannot look into for unchanged, at times.
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
            // As bubblewrap binds it, this device cannot be opened.
            Mount::Gap { path, .. } => add(&[&"--ro-bind", &"/dev/null", path]),
        }
    }
    if !masks.is_empty() {
        let settings = format!("{} {}", mask::NO_TIDYING, mask::UNCHANGED);
        add(&[&"--setenv", &mask::GIT_SETTINGS, &settings]);
    }
    masks.append(&mut others);
    if let Some((path, text)) = excluded(walls) {
        add(&[&"--ro-bind", &source(&text)?, &path]);
        masks.push(text);
    }
    // Only now: what is in them had to be made first.
    for path in sealed {
        add(&[&"--remount-ro", &path]);
    }
    Ok(Layout { arguments, masks, writable, inside, points })
}

/// What is mounted from places that commands can change, as it is now. Bubblewrap mounts it by its path
/// in a moment; until then a command could put a link in the place of a folder around it.
fn inside(mounts: &[Mount], walls: &Walls) -> io::Result<Vec<(PathBuf, Identity)>> {
    let roots = roots(walls);
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

/// Where something is mounted in places that commands can change. Had a command put a link there when
/// bubblewrap mounted it, it would be mounted where the link led, and nothing in its place.
fn points(mounts: &[Mount], walls: &Walls) -> Vec<PathBuf> {
    let roots = roots(walls);
    let is_inside = |path: &Path| innermost(&roots, path).is_some_and(|root| root != path);
    let mounted = mounts.iter().filter(|it| matches!(it, Mount::Shown { .. } | Mount::Gap { .. }));
    mounted.map(Mount::path).filter(|path| is_inside(path)).map(Path::to_owned).collect()
}

/// A handle of the folder at `path`, which only names it.
pub(super) fn folder_handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Which folder or file is at `path` below `handle`, if no link is on the way.
pub(super) fn identity_below(handle: &OwnedFd, path: &Path) -> io::Result<Identity> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let way = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = rustix::fs::openat2(handle, path, flags, Mode::empty(), way)?;
    let found = rustix::fs::fstat(found)?;
    Ok((found.st_dev, found.st_ino))
}

/// What a user who owns nothing can mount: not in folders that only root may enter. A gap there is
/// needless, since nobody in the box gets that far.
fn within_reach(mounts: Vec<Mount>) -> io::Result<Vec<Mount>> {
    let mut within: Vec<Mount> = Vec::new();
    for mount in mounts {
        let path = mount.path();
        let is_inside = within.iter().any(|it| path.starts_with(it.path()) && path != it.path());
        if is_inside || path.ancestors().skip(1).all(everybody_may_enter) {
            within.push(mount);
        } else if !matches!(mount, Mount::Gap { .. }) {
            let path = path.display();
            return Err(never(format!("{path} is in a folder that others may not enter")));
        }
    }
    Ok(within)
}

fn everybody_may_enter(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0)
}

/// The places that can be written. Of devices there are only those that a command needs; `/proc` is
/// sealed.
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
    // What is around another comes before it.
    places.dedup_by(|later, earlier| later.starts_with(earlier));
    places
}

/// Makes the folders that last, and removes from them what is in the way of other mounts: a command
/// could have left a link there, and what is mounted there would be found in another place. No other
/// command of the run is at work now.
fn clear_lasting(mounts: &[Mount]) -> io::Result<()> {
    for lasting in mounts {
        let Mount::Lasting { path, from } = lasting else { continue };
        match DirBuilder::new().mode(0o700).create(from) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = File::open(from)?;
        // As programs expect it. The folder around it is closed to others.
        fchmod(&folder, Mode::from_raw_mode(0o1777))?;
        let below = mounts.iter().filter_map(|mount| mount.path().strip_prefix(path).ok());
        let names: BTreeSet<&OsStr> = below.filter_map(|it| it.iter().next()).collect();
        names.into_iter().try_for_each(|name| remove::remove(&folder, name))?;
        // What bubblewrap made there would count as written by the command.
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

fn mounts(walls: &Walls) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for (path, bytes) in PRIVATE {
        // A link leads to another of them.
        let is_folder = Path::new(path).symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder || path.starts_with("/dev/") {
            let name = LASTING.iter().find(|(lasting, _)| *lasting == path).map(|(_, name)| name);
            let from = walls.temporary.as_ref().zip(name).map(|(folder, name)| folder.join(name));
            let path = path.into();
            mounts.push(match from {
                Some(from) => Mount::Lasting { path, from },
                None => Mount::Private { path, bytes },
            });
        }
    }
    let mut show = |path: &Path, access| {
        // Where all is to be read already there is nothing to show.
        if let Ok(path) = path.canonicalize()
            && path.parent().is_some()
        {
            mounts.push(Mount::Shown { path, access });
        }
    };
    SHOWN_IN_PRIVATE.iter().for_each(|path| show(path.as_ref(), Access::Read));
    if walls.link == Link::Open {
        show("/etc/resolv.conf".as_ref(), Access::Read);
    }
    let homes = home::hidden(walls);
    walls.homes.iter().filter(|home| !homes.contains(home)).for_each(|home| {
        show(home, Access::Read);
    });
    let places = home::shown(walls);
    let hidden_places = places.iter().filter(|it| home::is_hidden_otherwise(&it.real, walls));
    hidden_places.for_each(|place| show(&place.real, Access::Read));
    walls.readable.iter().filter(|path| is_apart(path, walls)).for_each(|path| {
        show(path, Access::Read);
    });
    // To a command that is not root, more is to be shown.
    let more = walls.shown.iter().filter(|path| walls.lends && is_apart(path, walls));
    more.for_each(|path| show(path, Access::Read));
    let writes = walls.profile == Profile::WorkspaceWrite;
    let links = followed_links(walls);
    let is_pinned = links.iter().any(|link| link.parent() == Some(&walls.workspace));
    show(&walls.workspace, if writes && !is_pinned { Access::Write } else { Access::Read });
    walls.writable.iter().for_each(|path| show(path, Access::Write));
    let to_homes = places.into_iter().filter(|place| place.path != place.real);
    mounts.extend(to_homes.map(|place| Mount::Link { path: place.path, to: place.real }));
    let gap = |home: &&PathBuf| Mount::Gap { path: (*home).clone(), tracked: None };
    mounts.extend(homes.iter().map(gap));
    let hidden = secrets::hidden(walls);
    let mut opened = Vec::new();
    if writes {
        let there = guarded(walls).into_iter().filter(|(path, _)| path.symlink_metadata().is_ok());
        let roots = roots(walls);
        let fixed = walls.fixed.iter().filter_map(|path| path.canonicalize().ok());
        // A command may have put a link there since: what is elsewhere cannot be changed anyway, and to
        // mount it would show it.
        let fixed = fixed.filter(|path| innermost(&roots, path).is_some());
        let kept = there.chain(fixed.map(|path| (path, Access::Read)));
        // To keep what nobody sees would show it, too.
        let gaps: Vec<&Path> = hidden.iter().map(PathBuf::as_path).collect();
        let is_hidden = |path: &Path| gaps.contains(&path) || is_in_gap(path, &gaps, &roots);
        let kept: Vec<_> = kept.filter(|(path, _)| !is_hidden(path)).collect();
        let only_read = kept.iter().filter(|(_, access)| *access == Access::Read);
        let closed: Vec<&Path> =
            only_read.map(|(path, _)| path.as_path()).chain(gaps.iter().copied()).collect();
        let pinned = pinned(&links, &closed);
        opened.extend(pinned.iter().flat_map(|folder| changeable(folder)));
        opened.retain(|path| {
            let is_kept = kept.iter().any(|(kept, _)| kept == path);
            !is_kept && !pinned.contains(path) && !gaps.contains(&path.as_path())
        });
        let shown =
            |(path, access): (&PathBuf, Access)| Mount::Shown { path: path.clone(), access };
        mounts.extend(pinned.iter().map(|path| (path, Access::Read)).map(shown));
        mounts.extend(opened.iter().map(|path| (path, Access::Write)).map(shown));
        let emptied = emptied(walls);
        mounts.extend(kept.into_iter().map(|(path, access)| {
            match emptied.as_ref() == Some(&path) {
                true => Mount::Empty { path },
                false => Mount::Shown { path, access },
            }
        }));
    }
    let mut known = tracked(&hidden);
    for path in hidden {
        // Own folders may lie in one that is hidden: the database's, or another person's home.
        let is_inside = |other: &Path| other.starts_with(&path) && other != path;
        let holds_others = mounts.iter().any(|mount| is_inside(mount.path()));
        let tracked = known.remove(&path).filter(|_| !holds_others);
        mounts.push(Mount::Gap { path, tracked });
    }
    if writes {
        let held = held(&mounts, &opened, walls);
        mounts.extend(held);
    }
    mounts.sort_by_key(Mount::order);
    mounts.dedup();
    without_covered(mounts)
}

/// True for a folder that lies where no confined command can have put a link in its place.
fn is_apart(path: &Path, walls: &Walls) -> bool {
    path.canonicalize().is_ok_and(|real| real == *path && !walls.gives(path))
}

/// The folders around what is fixed or hidden in places that can be changed, each as a mount of its
/// own: otherwise one could be moved away with all that is in it, and another put in its place. What is
/// `opened` can be changed in a folder that cannot.
fn held(mounts: &[Mount], opened: &[PathBuf], walls: &Walls) -> Vec<Mount> {
    let is_kept = |mount: &&Mount| match mount {
        Mount::Gap { .. } | Mount::Empty { .. } | Mount::Shown { access: Access::Read, .. } => true,
        Mount::Shown { access: Access::Write, .. }
        | Mount::Private { .. }
        | Mount::Lasting { .. }
        | Mount::Link { .. } => false,
    };
    let mut roots = roots(walls);
    roots.extend(opened);
    let kept: Vec<&Path> = mounts.iter().filter(is_kept).map(Mount::path).collect();
    let is_gap = |mount: &&Mount| matches!(mount, Mount::Gap { .. });
    let gaps: Vec<&Path> = mounts.iter().filter(is_gap).map(Mount::path).collect();
    let mut held = BTreeSet::new();
    for path in &kept {
        // What is around a root, or is one, is not the command's to move.
        let Some(root) = innermost(&roots, path).filter(|root| *root != *path) else { continue };
        // Nor what nobody sees.
        if is_in_gap(path, &gaps, &roots) {
            continue;
        }
        let inside: Vec<&&Path> =
            kept.iter().filter(|it| it.starts_with(root) && **it != root).collect();
        let around = path.ancestors().skip(1).take_while(|it| *it != root);
        // What is in something that cannot be changed stays as it is.
        held.extend(around.filter(|it| !inside.iter().any(|kept| it.starts_with(kept))));
    }
    held.into_iter()
        .map(|path| Mount::Shown { path: path.to_owned(), access: Access::Write })
        .collect()
}

/// True when `path` lies in one of `gaps`, and nothing that a command may change lies between them.
fn is_in_gap(path: &Path, gaps: &[&Path], roots: &[&PathBuf]) -> bool {
    let Some(root) = innermost(roots, path) else { return false };
    gaps.iter().any(|gap| gap.starts_with(root) && path.starts_with(gap) && path != *gap)
}

/// What a command may change, but for what is kept in there.
fn roots(walls: &Walls) -> Vec<&PathBuf> {
    std::iter::once(&walls.workspace).chain(&walls.writable).collect()
}

/// The one of `roots` that `path` is in or is, the nearest to it.
fn innermost<'r>(roots: &[&'r PathBuf], path: &Path) -> Option<&'r Path> {
    let around = roots.iter().filter(|root| path.starts_with(root));
    around.max_by_key(|root| root.components().count()).map(|root| root.as_path())
}

/// Leaves out gaps in what is not seen anyway, since nothing can be mounted there, and links in what
/// is shown, which are there already.
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

/// What of the workspace and its repository is a mount of its own, so that it is neither moved away nor replaced, and
/// whether it can be changed.
fn guarded(walls: &Walls) -> Vec<(PathBuf, Access)> {
    let repository = walls.repository.iter().map(|data| (data.clone(), Access::Write));
    let paths = protected(walls).into_iter().map(|path| (path, Access::Read)).chain(repository);
    let git = walls.workspace.join(GIT);
    if walls.writable.contains(&git) {
        return paths.collect();
    }
    // A file that leads to a repository elsewhere, somebody's empty folder, or a repository that a
    // command takes apart, is only read.
    let is_whole = git.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir());
    let access = if is_whole { Access::Write } else { Access::Read };
    paths.chain([(git, access)]).collect()
}

/// The paths that must not be written, there or not, but for git's folder itself.
pub(super) fn protected(walls: &Walls) -> Vec<PathBuf> {
    let workspace = &walls.workspace;
    let mut paths: Vec<PathBuf> = PROTECTED.iter().map(|name| workspace.join(name)).collect();
    paths.extend(makes_a_repository(workspace).map(|name| workspace.join(name)));
    for data in data_of(workspace).iter().chain(&walls.repository) {
        paths.extend(IN_GIT.iter().map(|name| data.join(name)));
    }
    for home in walls.homes.iter().filter(|home| home.starts_with(workspace)) {
        paths.extend(IN_HOME.iter().map(|name| home.join(name)));
    }
    paths.extend(obeyed_below_home(workspace, &walls.homes, &walls.hidden).places);
    // What the host gave to be written, it meant.
    paths.retain(|path| !walls.writable.iter().any(|given| path.starts_with(given)));
    paths
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Backend;
    use super::*;
    use proptest::prelude::*;

    /// Folders that a layout is made of, each of which may be anything.
    const FOLDERS: [&str; 8] = ["a", "a/b", "a/b/c", "a/b/c/d", "a/e", "a/b/.git", "f", "f/g"];

    fn walls(root: &Path, places: &[Vec<usize>; 5], workspace: usize) -> Walls {
        let paths = |at: usize| places[at].iter().map(|it| root.join(FOLDERS[*it])).collect();
        Walls {
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
        /// Whatever lies in what: only what was given can be written, and what is fixed or hidden in
        /// there cannot be moved away with a folder around it.
        #[test]
        fn nothing_above_what_was_given_can_be_written_and_nothing_kept_can_be_moved(
            places in prop::array::uniform5(prop::collection::vec(0..FOLDERS.len(), 0..3)),
            workspace in 0..FOLDERS.len(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            FOLDERS.iter().for_each(|it| std::fs::create_dir_all(root.join(it)).unwrap());
            let walls = walls(&root, &places, workspace);
            let mounts = mounts(&walls);
            let given: Vec<&PathBuf> =
                std::iter::once(&walls.workspace).chain(&walls.writable).collect();
            for mount in &mounts {
                if let Mount::Shown { path, access: Access::Write } = mount {
                    prop_assert!(given.iter().any(|it| path.starts_with(it)), "{path:?}: {mounts:?}");
                }
            }
            // Nothing that is hidden in the workspace is shown because it is fixed, too.
            for hidden in walls.hidden.iter().filter(|it| it.starts_with(&walls.workspace)) {
                for fixed in walls.fixed.iter().filter(|it| it.starts_with(hidden)) {
                    let given = walls.writable.iter().chain(&walls.readable).chain(&walls.homes);
                    let is_given = given.into_iter().any(|it| it.starts_with(hidden));
                    let last = mounts.iter().rfind(|mount| fixed.starts_with(mount.path()));
                    let is_gap = matches!(last, Some(Mount::Gap { .. }));
                    prop_assert!(is_given || is_gap, "{fixed:?}: {mounts:?}");
                }
            }
            for kept in walls.hidden.iter().chain(&walls.fixed) {
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

    /// A command may swap a file for a link while the box of another is planned.
    #[test]
    fn what_is_fixed_shows_neither_what_a_link_leads_to_nor_what_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/priv")).unwrap();
        std::fs::create_dir(root.join("f")).unwrap();
        std::os::unix::fs::symlink("../f", root.join("a/k")).unwrap();
        let none = [const { Vec::new() }; 5];
        let mut walls = walls(&root, &none, 0);
        walls.fixed = vec![root.join("a/k"), root.join("a/priv")];
        walls.hidden = vec![root.join("a/priv")];
        let mounts = mounts(&walls);
        let shown = |path: &str| {
            let path = root.join(path);
            mounts.iter().any(|it| matches!(it, Mount::Shown { path: at, .. } if *at == path))
        };
        assert!(!shown("f") && !shown("a/k") && !shown("a/priv"), "{mounts:?}");
        let is_gap = |it: &Mount| matches!(it, Mount::Gap { path, .. } if path.ends_with("priv"));
        assert!(mounts.iter().any(is_gap), "{mounts:?}");
        assert!(points(&mounts, &walls).contains(&root.join("a/priv")));
    }
}
