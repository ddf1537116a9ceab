//! The law about git: nothing that an agent wrote runs when the user calls git.
//!
//! Walls keep the repository of the workspace as it is, and what its settings name. Other
//! repositories can be made and changed anywhere below, and no wall can stand where nothing is yet.
//! So they are looked at before a command and after it: a setting that is not harmless, a hook, a
//! link in git's data or a way to data elsewhere that was not there before is set aside, and told.

mod named;
mod settings;
mod tree;

use super::protected::{COMMON_FOLDER, GIT, HEAD, IN_GIT, WORKTREE_CONFIG, data_of};
use super::repository::Repository;
use super::walls::Walls;
use named::{Checkout, common_folder, plain};
use posse_protocol::Profile;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use settings::Setting;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tree::{Entry, Found, Root, entries, entry, identity};

pub(super) use tree::text_at;

/// What is added to the name of something that git is not to find.
const ASIDE: &str = ".set-aside";

/// Things set aside at one name, at most.
const ASIDES: u32 = 1_000;

/// Settings of a repository, and those of one checkout.
const SETTINGS: [&str; 2] = ["config", WORKTREE_CONFIG];
const HOOKS: &str = "hooks";
const SAMPLE: &str = ".sample";

/// The most that is read of a file that says where data are, in bytes.
pub(super) const POINTER: u64 = 64 << 10;

/// The repositories that a command can reach, as they were before it.
pub(crate) struct Repositories {
    walls: Walls,
    looked: Vec<Looked>,
    /// What settings name in the workspace, and where it was.
    named: BTreeMap<PathBuf, Option<PathBuf>>,
    /// To be mounted, so that a command can only read it.
    fixed: Vec<PathBuf>,
}

/// One folder that was looked through.
struct Looked {
    root: Root,
    before: BTreeSet<Offence>,
    /// What has a wall around it, and which files these were. As long as they still are, nobody but
    /// the user has changed them.
    walled: BTreeMap<PathBuf, (u64, u64)>,
}

/// Something that makes git run or obey what others wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Offence {
    /// Below the folder that was looked through.
    path: PathBuf,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A setting, and its value.
    Setting(String, Option<String>),
    /// A link in git's data. Git writes through some of them.
    Link(PathBuf),
    /// Hooks; settings that nobody can read; a way to data elsewhere, and where it leads.
    Whole(PathBuf),
}

impl Repositories {
    /// Looks at the repositories in and around a workspace that a command is about to change.
    pub(crate) fn look(walls: &Walls) -> io::Result<Option<Repositories>> {
        if walls.profile != Profile::WorkspaceWrite || walls.is_own {
            return Ok(None);
        }
        let mut looked = Vec::new();
        let mut fixed = Vec::new();
        let mut checkouts = of_workspace(&walls.workspace, &walls.homes);
        let roots = [(&walls.workspace, false)].into_iter();
        for (path, is_data) in roots.chain(walls.repository.iter().map(|path| (path, true))) {
            let root = Root::open(path, is_data)?;
            let is_same = |it| identity(&root.handle, OsStr::new(".")) == Some(it);
            if !is_data && !walls.identity.is_none_or(is_same) {
                return Err(io::Error::other("the workspace was replaced meanwhile"));
            }
            let found = root.search()?;
            let before = offences(&root, &found)?;
            let mut walled = guarded(&root, walls);
            for data in &found.data {
                let hooks = data.join(HOOKS);
                let has_hooks = before.iter().any(|offence| offence.path == hooks);
                if has_hooks && !walled.keys().any(|it| hooks.starts_with(it)) {
                    walled.extend(
                        identity(&root.handle, hooks.as_os_str()).map(|it| (hooks.clone(), it)),
                    );
                    fixed.push(root.path.join(&hooks));
                }
            }
            checkouts.extend(of_found(&root, &found));
            looked.push(Looked { root, before, walled });
        }
        let named = named::named(&walls.workspace, &walls.homes, &checkouts).into_iter();
        let named: BTreeMap<_, _> = named.map(|it| (it.clone(), it.canonicalize().ok())).collect();
        let reals = named.values().flatten().cloned();
        let inside =
            |real: &PathBuf| real.starts_with(&walls.workspace) && *real != walls.workspace;
        fixed.extend(reals.filter(inside));
        fixed.sort();
        fixed.dedup_by(|inner, outer| inner.starts_with(outer));
        Ok(Some(Repositories { walls: walls.clone(), looked, named, fixed }))
    }

    /// What a command can only read.
    pub(crate) fn fixed(&self) -> &[PathBuf] {
        &self.fixed
    }

    /// Sets aside what the command has added, when it and all it started are dead. Returns what that
    /// was, for people.
    pub(crate) fn settle(&self) -> Vec<String> {
        let mut told = Vec::new();
        let mut checkouts = of_workspace(&self.walls.workspace, &self.walls.homes);
        for looked in &self.looked {
            let settled = looked.root.search().and_then(|found| {
                checkouts.extend(of_found(&looked.root, &found));
                looked.settle(&found)
            });
            match settled {
                Ok(more) => told.extend(more),
                Err(error) => told.push(format!(
                    "{} could not be looked through ({error})",
                    looked.root.path.display()
                )),
            }
        }
        let Some(root) = self.looked.first().map(|looked| &looked.root) else { return told };
        let mut named = named::named(&self.walls.workspace, &self.walls.homes, &checkouts);
        named.extend(self.named.keys().cloned());
        for path in named {
            let before = self.named.get(&path).cloned().flatten();
            if path.symlink_metadata().is_err() || path.canonicalize().ok() == before {
                continue;
            }
            if let Ok(below) = path.strip_prefix(&root.path)
                && let Ok(name) = set_aside_way(root, below)
            {
                told.push(format!("{}, which settings of git name", name.display()));
            }
        }
        told
    }
}

/// The data of all repositories whose files are below the top of `folder`, if they lie there too.
///
/// # Errors
/// When the folder cannot be looked through.
pub fn nested_repositories(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let root = Root::open(folder, false)?;
    let found = root.search()?;
    let mut led_to = BTreeSet::new();
    for pointer in found.pointers.iter().filter(|path| *path != Path::new(GIT)) {
        let target = leads_to(&root, pointer)?.map(|(_, target)| target);
        led_to.extend(target.and_then(|target| target.canonicalize().ok()));
    }
    let is_git = |path: &Path| path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(GIT));
    let data = found.data.iter().filter(|path| *path != Path::new(GIT));
    let data = data.map(|path| folder.join(path));
    Ok(data.filter(|path| is_git(path) || led_to.contains(path)).collect())
}

/// True for a file that no file tool writes: all in a repository below the workspace but its files, and
/// what settings name.
pub(super) fn is_closed_to_tools(real: &Path, workspace: &Path, homes: &[PathBuf]) -> bool {
    let Ok(below) = real.strip_prefix(workspace) else { return false };
    let is = |name: &OsStr, other: &str| name.eq_ignore_ascii_case(other);
    // That of the workspace itself has rules of its own.
    if below.iter().skip(1).any(|name| is(name, GIT)) {
        return true;
    }
    let folders = real.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
    let mut checkouts = Vec::new();
    for folder in folders {
        let has_head = folder.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir());
        let name = real.strip_prefix(folder).ok().and_then(|below| below.iter().next());
        let is_obeyed = name.is_some_and(|name| IN_GIT.iter().any(|it| is(name, it)));
        if folder != workspace && has_head && is_obeyed {
            return true;
        }
        checkouts.extend(data_of(folder).map(|data| Checkout { data, top: folder.to_owned() }));
    }
    // With it a folder becomes a repository.
    if real.file_name().is_some_and(|name| is(name, HEAD)) && real.symlink_metadata().is_err() {
        let is_workspace_s = data_of(workspace).is_some_and(|data| real.starts_with(data));
        if !is_workspace_s {
            return true;
        }
    }
    checkouts.extend(of_workspace(workspace, homes));
    let named = named::named(workspace, homes, &checkouts);
    let is_in = |path: &PathBuf| {
        real.starts_with(path) || path.canonicalize().is_ok_and(|it| real.starts_with(it))
    };
    named.iter().any(is_in)
}

impl Looked {
    fn settle(&self, found: &Found) -> io::Result<Vec<String>> {
        let now = offences(&self.root, found)?;
        let is_walled = |path: &Path| {
            let mut around = self.walled.iter().filter(|(wall, _)| path.starts_with(wall));
            around.any(|(wall, was)| identity(&self.root.handle, wall.as_os_str()) == Some(*was))
        };
        let is_new = |it: &&Offence| !self.before.contains(it) && !is_walled(&it.path);
        let mut new: Vec<&Offence> = now.iter().filter(is_new).collect();
        // What is in a folder comes before the folder.
        new.sort_by_key(|offence| std::cmp::Reverse(offence.path.components().count()));
        let mut told = BTreeSet::new();
        for offence in new {
            let shown = match self.root.is_data {
                true => self.root.path.join(&offence.path),
                false => offence.path.clone(),
            };
            let shown = shown.display();
            let done = match &offence.what {
                What::Setting(..) => self.without_new_settings(&offence.path),
                What::Link(_) => remove(&self.root, &offence.path),
                What::Whole(_) => set_aside(&self.root, &offence.path),
            };
            let kind = match &offence.what {
                What::Setting(key, _) => format!("{key} in {shown}"),
                What::Link(_) => format!("the link {shown}"),
                What::Whole(_) => shown.to_string(),
            };
            told.insert(match done {
                Ok(()) => kind,
                Err(error) => format!("{kind} (NOT done: {error})"),
            });
        }
        Ok(told.into_iter().collect())
    }

    /// Puts settings in the place of those at `path`, without those that are new and not harmless.
    fn without_new_settings(&self, path: &Path) -> io::Result<()> {
        let Some((folder, name)) = parent(&self.root, path)? else { return Ok(()) };
        let Entry::File(text) = entry(&folder, &name, settings::MOST) else { return Ok(()) };
        let data = self.root.path.join(path.parent().unwrap_or(path));
        let is_offence = |setting: &Setting| {
            let what = What::Setting(setting.key(), setting.value.clone());
            let offence = Offence { path: path.to_owned(), what };
            !is_harmless(setting, &data, &self.root) && !self.before.contains(&offence)
        };
        let (mut kept, mut from) = (Vec::new(), 0);
        for setting in settings::read(&text).unwrap_or_default().iter().filter(|it| is_offence(it))
        {
            kept.extend(&text[from..setting.range.start]);
            kept.push(b'\n');
            from = setting.range.end;
        }
        // Another setting of the same file came before.
        if from == 0 {
            return Ok(());
        }
        kept.extend(&text[from..]);
        let is_clean = settings::read(&kept).is_some_and(|all| !all.iter().any(is_offence));
        set_aside_at(&folder, &name)?;
        if is_clean { write(&folder, &name, &kept) } else { Ok(()) }
    }
}

/// The repository that the workspace itself is of, wherever its data are.
fn of_workspace(workspace: &Path, homes: &[PathBuf]) -> Vec<Checkout> {
    let Repository { top, data, elsewhere } = Repository::of(workspace, homes);
    let top = top.unwrap_or_else(|| workspace.to_owned());
    let data = data_of(workspace).into_iter().chain(data).chain(elsewhere);
    data.map(|data| Checkout { data, top: top.clone() }).collect()
}

/// Those that were found below `root`.
fn of_found(root: &Root, found: &Found) -> Vec<Checkout> {
    let all = found.data.iter().map(|data| root.path.join(data));
    all.filter_map(|data| top_of(&data).map(|top| Checkout { data, top })).collect()
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

/// What walls keep as it is, whoever runs: below `root`, in the workspace's own repository.
fn guarded(root: &Root, walls: &Walls) -> BTreeMap<PathBuf, (u64, u64)> {
    let data = data_of(&walls.workspace).into_iter().chain(walls.repository.clone());
    let names = data.flat_map(|data| IN_GIT.map(|name| data.join(name)));
    let below = names.filter_map(|path| path.strip_prefix(&root.path).ok().map(Path::to_owned));
    let known = |path: PathBuf| Some((identity(&root.handle, path.as_os_str())?, path));
    below.filter_map(known).map(|(identity, path)| (path, identity)).collect()
}

/// All that makes git run or obey something, in the repositories that were found.
fn offences(root: &Root, found: &Found) -> io::Result<BTreeSet<Offence>> {
    let mut offences = BTreeSet::new();
    for data in &found.data {
        let Some(folder) = root.folder(data)? else { continue };
        let around = root.path.join(data);
        let mut add = |name: &str, what: What| {
            offences.insert(Offence { path: data.join(name), what });
        };
        for name in SETTINGS {
            match entry(&folder, OsStr::new(name), settings::MOST) {
                Entry::None | Entry::Folder => {}
                Entry::File(text) => match settings::read(&text) {
                    None => add(name, What::Whole(PathBuf::new())),
                    Some(all) => {
                        for setting in all.iter().filter(|it| !is_harmless(it, &around, root)) {
                            add(name, What::Setting(setting.key(), setting.value.clone()));
                        }
                    }
                },
                Entry::Link(to) => add(name, What::Whole(to)),
                Entry::Other => add(name, What::Whole(PathBuf::new())),
            }
        }
        match entry(&folder, OsStr::new(COMMON_FOLDER), POINTER) {
            Entry::None | Entry::Folder => {}
            Entry::File(_) if shares_data_of_its_own(&around) => {}
            Entry::File(text) => {
                let to = String::from_utf8_lossy(&text).trim().to_owned();
                add(COMMON_FOLDER, What::Whole(to.into()));
            }
            Entry::Link(to) => add(COMMON_FOLDER, What::Whole(to)),
            Entry::Other => add(COMMON_FOLDER, What::Whole(PathBuf::new())),
        }
        match entry(&folder, OsStr::new(HOOKS), 0) {
            Entry::Link(to) => add(HOOKS, What::Whole(to)),
            Entry::Folder => {
                let hooks = root.folder(&data.join(HOOKS))?;
                let hooks = hooks.as_ref().map(entries).transpose()?.unwrap_or_default();
                let is_hook = |(name, kind): &(OsString, rustix::fs::FileType)| {
                    *kind != rustix::fs::FileType::Directory
                        && !name.to_string_lossy().ends_with(SAMPLE)
                };
                if hooks.iter().any(is_hook) {
                    add(HOOKS, What::Whole(PathBuf::new()));
                }
            }
            Entry::None | Entry::File(_) | Entry::Other => {}
        }
    }
    // That of the workspace itself has a wall.
    for pointer in found.pointers.iter().filter(|path| *path != Path::new(GIT)) {
        if let Some(to) = leads_out(root, pointer)? {
            offences.insert(Offence { path: pointer.clone(), what: What::Whole(to) });
        }
    }
    for (path, to) in &found.links {
        // As old versions of git write the branch that is checked out.
        let is_branch = path.file_name() == Some(OsStr::new(HEAD)) && to.starts_with("refs/heads");
        if !is_branch && !offences.iter().any(|offence| offence.path == *path) {
            offences.insert(Offence { path: path.clone(), what: What::Link(to.clone()) });
        }
    }
    Ok(offences)
}

/// The same for one setting of the repository in `data`, whose files must be below `root`.
fn is_harmless(setting: &Setting, data: &Path, root: &Root) -> bool {
    match (setting.section.as_str(), setting.name.as_str(), &setting.value) {
        ("core", "worktree", Some(value)) => {
            let folder = data.join(value);
            let real = folder.canonicalize().unwrap_or_else(|_| plain(&folder));
            real.starts_with(&root.path)
        }
        _ => setting.is_harmless(),
    }
}

/// True when the folder that the repository in `data` names as common is its own, or that of the
/// repository whose worktree it is. That one is looked at, too.
fn shares_data_of_its_own(data: &Path) -> bool {
    let common = common_folder(data);
    let is_around = data.parent().and_then(Path::parent) == Some(common.as_path())
        && data.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
    let has_head = || common.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir());
    common == *data || (is_around && has_head())
}

/// Where the file or link `.git` at `pointer` leads, if that is not below `root`.
fn leads_out(root: &Root, pointer: &Path) -> io::Result<Option<PathBuf>> {
    let Some((to, target)) = leads_to(root, pointer)? else { return Ok(None) };
    let real = target.canonicalize().unwrap_or_else(|_| plain(&target));
    Ok((!real.starts_with(&root.path)).then_some(to))
}

/// Where it says that the data are, and where that is.
fn leads_to(root: &Root, pointer: &Path) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let Some((folder, name)) = parent(root, pointer)? else { return Ok(None) };
    let to = match entry(&folder, &name, POINTER) {
        Entry::Link(to) => to,
        Entry::File(text) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            let Some(to) = text.strip_prefix("gitdir:") else { return Ok(None) };
            PathBuf::from(to.trim())
        }
        Entry::None | Entry::Folder | Entry::Other => return Ok(None),
    };
    let around = root.path.join(pointer.parent().unwrap_or(pointer));
    Ok(Some((to.clone(), around.join(to))))
}

/// The folder that `path` is in, and its name there; nothing where it has gone.
fn parent(root: &Root, path: &Path) -> io::Result<Option<(OwnedFd, OsString)>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let folder = root.folder(path.parent().unwrap_or(Path::new("")))?;
    Ok(folder.map(|folder| (folder, name.to_owned())))
}

fn remove(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => gone(unlinkat(&folder, &name, AtFlags::empty())),
        None => Ok(()),
    }
}

fn set_aside(root: &Root, path: &Path) -> io::Result<()> {
    match parent(root, path)? {
        Some((folder, name)) => set_aside_at(&folder, &name),
        None => Ok(()),
    }
}

/// The same for the first link on the way to `path`, or for what is there. Returns its name.
fn set_aside_way(root: &Root, path: &Path) -> io::Result<PathBuf> {
    let mut way: Vec<&Path> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    way.reverse();
    let is_link =
        |it: &&&Path| root.path.join(it).symlink_metadata().is_ok_and(|it| it.is_symlink());
    let first = way.iter().find(is_link).copied().unwrap_or(path);
    set_aside(root, first).map(|()| first.to_owned())
}

fn set_aside_at(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    for number in 1..ASIDES {
        let mut aside = name.to_owned();
        aside.push(ASIDE);
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        match renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // Some file systems do not know this way to rename.
            Err(Errno::INVAL | Errno::NOSYS) if identity(folder, &aside).is_some() => {}
            Err(Errno::INVAL | Errno::NOSYS) => {
                return gone(renameat(folder, name, folder, &aside));
            }
            renamed => return gone(renamed),
        }
    }
    Err(io::Error::other("too much was set aside there"))
}

/// Writes a new file in one step.
fn write(folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let passing = format!(".posse-{:016x}.tmp", RandomState::new().hash_one(name));
    let file = openat(folder, &passing, flags, Mode::from_raw_mode(0o644))?;
    let mut file = std::fs::File::from(file);
    let written = io::Write::write_all(&mut file, content);
    let done = written.and_then(|()| Ok(renameat(folder, &passing, folder, name)?));
    if done.is_err() {
        let _ = unlinkat(folder, &passing, AtFlags::empty());
    }
    done
}

/// What has gone meanwhile needs no more doing.
fn gone(done: Result<(), Errno>) -> io::Result<()> {
    match done {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        done => Ok(done?),
    }
}
