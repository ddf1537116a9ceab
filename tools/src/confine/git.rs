//! The rule about git: nothing that an agent wrote runs when the user calls git.
//!
//! Walls protect the repository of the workspace, and the files that its settings name. A command can create
//! and change other repositories anywhere below, and no wall can protect a path that does not exist yet. So the
//! supervisor inspects these repositories before and after a command. It sets aside and reports what is new:
//! settings that are not harmless, hooks, links in git's data, and pointers to data elsewhere.

mod aside;
mod baseline;
mod interpreters;
mod named;
mod nested;
mod on_entry;
mod path_trace;
mod programs;
mod python;
mod script;
mod settings;
mod spelled;
mod tree;
mod unsafe_entry;
mod words;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod written;

pub(super) use named::{first_line, plain};
pub(super) use nested::NestedCheckouts;
pub use tree::text_at;
pub(super) use unsafe_entry::{GITDIR, POINTER};

use super::command_sandbox::CommandSandbox;
use super::placeholder::is_placeholder;
use super::protected::{GIT, HEAD, IN_GIT, data_of, has_head, is_closed_beside_head};
use super::repository::folders_with;
use aside::{first_link, hide, parent, remove, set_aside, set_aside_at, while_writable, write};
use baseline::{Baseline, Named, StoredBaseline};
use named::Checkout;
use path_trace::PathTrace;
use settings::Setting;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tree::{Entry, Found, Identity, Root, entry, identity};
use unsafe_entry::{
    FOLDERS, UnsafeEntry, UnsafeKind, harmful, harmless_only_here, leads_to, unsafe_entries,
};

/// The maximum number of bytes of a settings file to read.
pub(super) const SETTINGS_BYTES: u64 = settings::MOST;

/// Why no agent changes anything in a workspace for which [`is_hooks`] is true.
pub(super) const HOOKS_HERE: &str = "git takes hooks from this folder, or a folder that programs obey holds too many names to check";

/// How many entries that were set aside are reported one by one.
const TOLD: usize = 50;

/// How many characters of a path are reported.
const SHOWN: usize = 300;

/// The repositories that a command can reach, as they were before it.
pub(crate) struct Repositories {
    sandbox: CommandSandbox,
    looked: Vec<Looked>,
    /// The paths in the workspace that settings name, with their real paths before the command.
    named: Named,
    /// Those of them that are only folders on the way to others, which leads on by `..`.
    left: BTreeSet<PathBuf>,
    /// Paths to mount so that a command can only read them.
    fixed: Vec<PathBuf>,
    written_down: StoredBaseline,
}

/// One inspected folder.
struct Looked {
    root: Root,
    is_workspace: bool,
    before: BTreeSet<UnsafeEntry>,
    walled: Walls,
    /// The same for the remains of repositories, which an agent may have written. It counts only as long as
    /// they are no repository.
    remains: BTreeSet<UnsafeEntry>,
    walled_remains: Walls,
}

/// Paths with a wall, and the files that they were. As long as they are the same files, only the user has
/// changed them.
type Walls = BTreeMap<PathBuf, Identity>;

impl Repositories {
    /// Inspects the repositories in and around a workspace that a command is about to change.
    pub(crate) fn look(sandbox: &CommandSandbox) -> io::Result<Option<Repositories>> {
        if !sandbox.are_looked_through() {
            return Ok(None);
        }
        let mut baseline = Baseline::of(sandbox)?;
        let mut looked = Vec::new();
        let mut fixed = Vec::new();
        let mut checkouts = of_workspace(&sandbox.workspace);
        let mut seen = BTreeSet::new();
        for (path, is_data) in roots(sandbox, baseline.left()) {
            // The scratch folder may not exist yet.
            let Ok(path) = path.canonicalize() else { continue };
            if !seen.insert(path.clone()) {
                continue;
            }
            let mut root = Root::open(&path, is_data)?;
            let is_temporary = |it: &PathBuf| it.canonicalize().is_ok_and(|it| it == path);
            root.is_temporary = sandbox.temporary.as_ref().is_some_and(is_temporary);
            let open = rustix::fs::fstat(&root.handle)?;
            let is_same = |it| it == (open.st_dev, open.st_ino);
            if path == sandbox.workspace && !sandbox.identity.is_none_or(is_same) {
                return Err(io::Error::other("the workspace was replaced meanwhile"));
            }
            let found = root.search();
            let now = unsafe_entries(&root, &found);
            let (mut walled, mut walled_remains) = (guarded(&root, sandbox), Walls::new());
            let others = harmless_only_here(&root, &found);
            let whole = now.iter().filter(|it| !it.is_of_remains(&found)).cloned();
            let before = baseline.settled(&path, whole.chain(others).collect());
            let remains: BTreeSet<UnsafeEntry> =
                now.iter().filter(|it| it.is_of_remains(&found)).cloned().collect();
            // Build no wall around what another command created: the wall would preserve it. What other commands
            // found counts even if we see no repository, because one of them may have taken it apart.
            let is_same = |it: &UnsafeEntry| match it.what {
                UnsafeKind::Folder(Some(was)) => {
                    identity(&root.handle, it.path.as_os_str()) == Some(was)
                }
                _ => false,
            };
            let is_there = |it: &&UnsafeEntry| now.contains(it) || is_same(it);
            let folders = before.iter().filter(is_there).map(|it| (&it.path, true));
            let folders = folders.chain(remains.iter().map(|it| (&it.path, false)));
            let is_meant = |path: &Path| FOLDERS.iter().any(|name| path.ends_with(name));
            let folders: BTreeSet<(PathBuf, bool)> = folders
                .filter(|(path, _)| is_meant(path))
                .map(|(path, is_users)| (path.clone(), is_users))
                .collect();
            // We could not see what a command puts into another user's folder that cannot be listed.
            let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            let closed = found.unseen.iter().filter(|(_, error)| is_closed(error));
            let closed = closed.map(|(path, _)| (path.clone(), true));
            for (path, is_users) in closed.chain(folders) {
                let walls = if is_users { &mut walled } else { &mut walled_remains };
                if !walls.keys().any(|it| path.starts_with(it)) {
                    let identity = identity(&root.handle, path.as_os_str());
                    walls.extend(identity.map(|it| (path.clone(), it)));
                    fixed.push(root.path.join(&path));
                }
            }
            checkouts.extend(of_found(&root, &found));
            let is_workspace = path == sandbox.workspace;
            looked.push(Looked { root, is_workspace, before, walled, remains, walled_remains });
        }
        let named::Found { places, mut left, .. } =
            named::named(&sandbox.workspace, &sandbox.homes, &checkouts, None);
        left.retain(|it| !places.contains_key(it));
        let leads = |path: &PathBuf| PathTrace::to(path, &sandbox.workspace).leads();
        let found: BTreeSet<PathBuf> = places.keys().filter_map(leads).collect();
        let named: Named = places.keys().chain(&left).map(|it| (it.clone(), leads(it))).collect();
        let named = baseline.settled_names(named);
        // Paths that other commands found to be named stay protected, whatever one does to the settings.
        let is_there = |it: &&PathBuf| it.canonicalize().is_ok_and(|real| real == **it);
        let settled = named.values().flatten().filter(|it| !left.contains(*it));
        let inside =
            |real: &&PathBuf| real.starts_with(&sandbox.workspace) && **real != sandbox.workspace;
        fixed.extend(found.iter().chain(settled).filter(is_there).filter(inside).cloned());
        fixed.sort();
        fixed.dedup_by(|inner, outer| inner.starts_with(outer));
        let written_down = baseline.share()?;
        Ok(Some(Repositories {
            sandbox: sandbox.clone(),
            looked,
            named,
            left,
            fixed,
            written_down,
        }))
    }

    /// Removes the stored baseline. Call it after `settle`.
    pub(crate) fn forget(&self) {
        self.written_down.remove();
    }

    /// The same for a command that never began. Keeps what an earlier command left.
    pub(crate) fn forget_unused(&self) {
        self.written_down.remove_unused();
    }

    /// The paths that a command can only read.
    pub(crate) fn fixed(&self) -> &[PathBuf] {
        &self.fixed
    }

    /// Sets aside what the command has added. Call it when all its processes are dead. Returns what was
    /// set aside, for people.
    pub(crate) fn settle(&self) -> Vec<String> {
        let (mut told, mut more) = (Vec::new(), 0);
        let mut tell = |told: &mut Vec<String>, what: String| {
            // There may be a million of them.
            if told.len() < TOLD { told.push(what) } else { more += 1 }
        };
        let mut checkouts = of_workspace(&self.sandbox.workspace);
        for looked in &self.looked {
            let found = looked.root.search();
            checkouts.extend(of_found(&looked.root, &found));
            looked.settle(&found).into_iter().for_each(|it| tell(&mut told, it));
            let unseen = found.unseen.into_iter();
            for (path, error) in unseen.filter(|(path, _)| !looked.is_walled(path)) {
                let path = short(&looked.root.path.join(path));
                tell(&mut told, format!("{path} (NOT done: it cannot be looked into: {error})"));
            }
        }
        let Some(root) = self.looked.first().map(|looked| &looked.root) else { return told };
        // Without a link in the place of such a folder, the ways through it lead where they led before.
        let why = "settings of git name it";
        let left = self.left.iter().filter_map(|path| self.settle_named(root, path, why));
        left.for_each(|it| tell(&mut told, it));
        let found = named::named(&self.sandbox.workspace, &self.sandbox.homes, &checkouts, None);
        let mut named = found.places;
        for path in self.named.keys() {
            named.entry(path.clone()).or_insert_with(|| why.to_owned());
        }
        let named = named.iter().filter_map(|(path, why)| self.settle_named(root, path, why));
        named.for_each(|it| tell(&mut told, it));
        if more > 0 {
            told.push(format!("{more} more"));
        }
        told
    }

    /// Sets aside what is at `path`, or the link that leads on from there, if it leads elsewhere than before.
    /// Returns what it was.
    fn settle_named(&self, root: &Root, path: &Path, why: &str) -> Option<String> {
        let before = self.named.get(path).cloned().flatten();
        // A link counts even if its target does not exist: something may create the target later.
        let leads = PathTrace::to(path, &self.sandbox.workspace).leads();
        // Of a folder on the way only links matter.
        let is_left = self.left.contains(path) && leads.as_deref() == Some(path);
        if leads.is_none() || leads == before || is_left || is_held(path) {
            return None;
        }
        let name = first_link(root, path.strip_prefix(&root.path).ok()?);
        let shown = format!("{} ({why})", name.display());
        Some(match set_aside(root, name) {
            Ok(()) => shown,
            Err(error) => format!("{shown} (NOT done: {error})"),
        })
    }
}

/// A repository whose files and data are below the top of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    /// The folder with its files.
    pub top: PathBuf,
    /// The folder with its data.
    pub data: PathBuf,
}

/// Returns all such repositories in `folder`.
///
/// # Errors
/// If the folder cannot be opened.
pub fn nested_repositories(folder: &Path) -> io::Result<Vec<Nested>> {
    let root = Root::open(folder, false)?;
    let found = root.search();
    let all: BTreeSet<PathBuf> = found.data.iter().map(|path| folder.join(path)).collect();
    let is_git = |path: &&PathBuf| path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(GIT));
    let usual = all.iter().filter(is_git).cloned();
    let usual = usual.filter_map(|data| Some(Nested { top: data.parent()?.to_owned(), data }));
    let led_to = found.pointers.iter().filter_map(|pointer| {
        let data = leads_to(&root, pointer)?.target.canonicalize().ok()?;
        Some(Nested { top: folder.join(pointer).parent()?.to_owned(), data })
    });
    let led_to = led_to.filter(|it| all.contains(&it.data));
    Ok(usual.chain(led_to).filter(|it| it.top != folder).collect())
}

/// Returns why no file tool may write a file: it is data of a repository below the workspace, or settings of
/// git name it.
pub(super) fn why_closed(
    real: &Path,
    workspace: &Path,
    homes: &[PathBuf],
    nested: &[Checkout],
) -> Option<String> {
    let is_data = || Some("it is data of a git repository".to_owned());
    let below = real.strip_prefix(workspace).ok()?;
    let is = |name: &OsStr, other: &str| name.eq_ignore_ascii_case(other);
    // The workspace's own repository has separate rules.
    if below.iter().skip(1).any(|name| is(name, GIT)) {
        return is_data();
    }
    let folders = real.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
    let mut checkouts = nested.to_vec();
    for folder in folders {
        let name = real.strip_prefix(folder).ok().and_then(|below| below.iter().next());
        if name.is_some_and(is_closed_beside_head) && may_have_head(folder) {
            return is_data();
        }
        // Submodules and worktrees have their data elsewhere, but their hooks run files here.
        checkouts.extend(of_folder(folder));
    }
    // A new HEAD could make its folder a repository.
    if real.file_name().is_some_and(|name| is(name, HEAD)) && real.symlink_metadata().is_err() {
        return is_data();
    }
    checkouts.extend(of_workspace(workspace));
    let named = named::named(workspace, homes, &checkouts, Some(real));
    if named.is_hooks || named.are_too_many {
        return Some(HOOKS_HERE.to_owned());
    }
    named.places.into_iter().find(|(path, _)| is_below(real, path)).map(|(_, why)| why)
}

/// Returns true if a folder has `HEAD`, and also if it cannot be listed. `false` if it does not exist.
fn may_have_head(folder: &Path) -> bool {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    let entries = entries.flatten().map(|it| (it.file_name(), it.file_type()));
    let names: Vec<(OsString, bool)> =
        entries.map(|(name, kind)| (name, kind.is_ok_and(|kind| kind.is_dir()))).collect();
    has_head(names.iter().map(|(name, is_folder)| (name.as_os_str(), *is_folder)))
}

/// The paths in `workspace` that the settings of git name there, each with the reason.
pub(super) fn why_named(workspace: &Path, homes: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    named::named(workspace, homes, &of_workspace(workspace), None).places
}

/// Returns true for a placeholder. It is removed elsewhere, and needs no report.
fn is_held(path: &Path) -> bool {
    let Ok(there) = path.symlink_metadata() else { return false };
    let is_empty = match there.is_dir() {
        true => std::fs::read_dir(path).is_ok_and(|mut all| all.next().is_none()),
        false => there.len() == 0,
    };
    let is_alone = there.is_dir() || there.nlink() == 1;
    is_placeholder(&there) && !there.is_symlink() && is_empty && is_alone
}

/// The target of the file or link `.git` in `folder`, wherever that is.
fn data_elsewhere(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(GIT);
    match git.read_link() {
        Ok(target) => folder.join(target).canonicalize().ok(),
        Err(_) => {
            let text = text_at(&git, POINTER)?;
            folder.join(first_line(text.strip_prefix(GITDIR)?)).canonicalize().ok()
        }
    }
}

/// Returns true if `real` is `path` or below it, in any spelling: some file systems ignore case in names.
fn is_below(real: &Path, path: &Path) -> bool {
    let mut names = real.iter();
    let is_same = |name: &OsStr, other: &OsStr| {
        name == other
            || name.to_string_lossy().to_lowercase() == other.to_string_lossy().to_lowercase()
    };
    path.iter().all(|name| names.next().is_some_and(|it| is_same(it, name)))
}

impl Looked {
    /// Returns true if the path is behind a wall that still stands.
    fn is_walled(&self, path: &Path) -> bool {
        self.stand_around(&self.walled, path)
    }

    fn stand_around(&self, walls: &Walls, path: &Path) -> bool {
        let mut around = walls.iter().filter(|(wall, _)| path.starts_with(wall));
        around.any(|(wall, was)| identity(&self.root.handle, wall.as_os_str()) == Some(*was))
    }

    /// Returns true if the command has added the entry, or has made a repository of the remains around it.
    fn is_new(&self, entry: &UnsafeEntry, found: &Found) -> bool {
        let was_left = || {
            entry.is_of_remains(found)
                && (self.remains.contains(entry)
                    || self.stand_around(&self.walled_remains, &entry.path))
        };
        !self.before.contains(entry) && !self.is_walled(&entry.path) && !was_left()
    }

    fn settle(&self, found: &Found) -> BTreeSet<String> {
        let now = unsafe_entries(&self.root, found);
        let mut new: Vec<&UnsafeEntry> = now.iter().filter(|it| self.is_new(it, found)).collect();
        // The content of a folder comes before the folder.
        new.sort_by_key(|entry| std::cmp::Reverse(entry.path.components().count()));
        let (mut told, mut rewritten) = (BTreeSet::new(), BTreeSet::new());
        for entry in new {
            let shown = match self.is_workspace {
                true => entry.path.clone(),
                false => self.root.path.join(&entry.path),
            };
            let shown = short(&shown);
            let done = match &entry.what {
                // One pass removes all new settings of a file.
                UnsafeKind::Setting(..) if !rewritten.insert(&entry.path) => Ok(()),
                UnsafeKind::Setting(..) => self.without_new_settings(&entry.path, found),
                UnsafeKind::Link(_) => remove(&self.root, &entry.path),
                UnsafeKind::Folder(_) | UnsafeKind::Whole(_) => set_aside(&self.root, &entry.path),
                UnsafeKind::TooDeep => hide(&self.root, &entry.path),
            };
            let kind = match &entry.what {
                UnsafeKind::Setting(key, _) => format!("{key} in {shown}"),
                UnsafeKind::Link(_) => format!("the link {shown}"),
                UnsafeKind::Folder(_) | UnsafeKind::Whole(_) => shown,
                UnsafeKind::TooDeep => format!("{shown}, which is too deep"),
            };
            told.insert(match done {
                Ok(()) => kind,
                Err(error) => format!("{kind} (NOT done: {error})"),
            });
        }
        told
    }

    /// Rewrites the settings at `path` without those that are new and not harmless.
    fn without_new_settings(&self, path: &Path, found: &Found) -> io::Result<()> {
        let Some((folder, name)) = parent(&self.root, path)? else { return Ok(()) };
        let Entry::File(text) = entry(&folder, &name, settings::MOST) else { return Ok(()) };
        let data = self.root.path.join(path.parent().unwrap_or(path));
        let is_new = |setting: &&Setting| {
            let entry = UnsafeEntry { path: path.to_owned(), what: UnsafeKind::setting(setting) };
            self.is_new(&entry, found)
        };
        let (mut kept, mut from) = (Vec::new(), 0);
        let all = settings::read(&text).unwrap_or_default();
        for setting in harmful(&all, &data, &self.root).filter(is_new) {
            kept.extend(&text[from..setting.range.start]);
            kept.push(b'\n');
            from = setting.range.end;
        }
        kept.extend(&text[from..]);
        let is_clean = settings::read(&kept)
            .is_some_and(|all| !harmful(&all, &data, &self.root).any(|it| is_new(&it)));
        while_writable(&folder, || {
            set_aside_at(&folder, &name)?;
            if is_clean { write(&folder, &name, &kept) } else { Ok(()) }
        })
    }
}

/// A path for people, shortened if it is long.
fn short(path: &Path) -> String {
    let whole = path.display().to_string();
    if whole.len() <= SHOWN {
        return whole;
    }
    let letters: Vec<char> = whole.chars().collect();
    let (start, end) = (letters.len().min(SHOWN / 2), letters.len().saturating_sub(SHOWN / 2));
    letters[..start].iter().chain(&['…']).chain(&letters[end..]).collect()
}

/// The folders to inspect, and whether each consists only of a repository's data. They are the folders that this
/// command can change, and those that earlier commands could change and that were not inspected after them.
fn roots(sandbox: &CommandSandbox, left: Vec<PathBuf>) -> Vec<(PathBuf, bool)> {
    let mut roots = vec![(sandbox.workspace.clone(), false)];
    roots.extend(sandbox.repository.iter().map(|path| (path.clone(), true)));
    // Links may lead there.
    roots.extend(
        sandbox.writable.iter().chain(&sandbox.temporary).map(|path| (path.clone(), false)),
    );
    roots.extend(left.into_iter().map(|path| (path, false)));
    roots
}

/// The repositories whose files are in `folder`, wherever their data is.
fn of_folder(folder: &Path) -> impl Iterator<Item = Checkout> {
    let data = data_of(folder).into_iter().chain(data_elsewhere(folder));
    let top = folder.to_owned();
    data.map(move |data| Checkout { data, top: top.clone() })
}

/// The repositories that contain the workspace: its own and all those around it. Git in a repository around a
/// submodule runs files of the submodule, too.
fn of_workspace(workspace: &Path) -> Vec<Checkout> {
    folders_with(GIT, workspace).into_iter().flat_map(of_folder).collect()
}

/// Returns true if git takes hooks from the workspace itself, or if a folder that programs obey has too many names to
/// check for links.
pub(crate) fn is_hooks(workspace: &Path, homes: &[PathBuf]) -> bool {
    let found = named::named(workspace, homes, &of_workspace(workspace), None);
    found.is_hooks || found.are_too_many
}

/// The repositories that were found below `root`.
fn of_found(root: &Root, found: &Found) -> Vec<Checkout> {
    let data = found.data.iter().map(|data| root.path.join(data));
    let inside = data.filter_map(|data| top_of(&data).map(|top| Checkout { data, top }));
    let led_to = found.pointers.iter().filter_map(|pointer| {
        let top = root.path.join(pointer.parent()?);
        Some(Checkout { data: leads_to(root, pointer)?.target, top })
    });
    inside.chain(led_to).collect()
}

/// The folder with the files of the repository in `data`.
fn top_of(data: &Path) -> Option<PathBuf> {
    let text = text_at(&data.join("config"), settings::MOST).unwrap_or_default();
    let settings = settings::read(&text).unwrap_or_default();
    let says = settings.iter().rfind(|it| it.section == "core" && it.name == "worktree");
    match says.and_then(|setting| setting.value.as_deref()) {
        Some(value) => Some(plain(&data.join(value))),
        None => data.parent().map(Path::to_owned),
    }
}

/// The paths below `root` that a sandbox protects in every case: those of the workspace's own repository.
fn guarded(root: &Root, sandbox: &CommandSandbox) -> BTreeMap<PathBuf, Identity> {
    let data = data_of(&sandbox.workspace).into_iter().chain(sandbox.repository.clone());
    let names = data.flat_map(|data| IN_GIT.map(|name| data.join(name)));
    let below = names.filter_map(|path| path.strip_prefix(&root.path).ok().map(Path::to_owned));
    // A command may reach a file with several names by another one. What it adds there is set aside.
    let is_alone = |path: &PathBuf| {
        let found = root.path.join(path).symlink_metadata();
        found.is_ok_and(|found| found.is_dir() || found.nlink() == 1)
    };
    let known = |path: PathBuf| Some((identity(&root.handle, path.as_os_str())?, path));
    below.filter(is_alone).filter_map(known).map(|(identity, path)| (path, identity)).collect()
}
