//! What makes git run or obey something, in a repository.

use super::super::protected::{COMMON_FOLDER, GIT, HEAD, WORKTREE_CONFIG};
use super::aside::parent;
use super::named::{common_folder, first_line, plain};
use super::settings::{self, Setting};
use super::tree::{Entry, Found, Identity, Root, entries, entry, identity, text_at};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Settings of a repository, and those of one checkout.
const SETTINGS: [&str; 2] = ["config", WORKTREE_CONFIG];
pub(super) const HOOKS: &str = "hooks";
const SAMPLE: &str = ".sample";

/// The most that is read of a file that says where data are, in bytes: as much as git reads.
pub(in super::super) const POINTER: u64 = 1 << 20;

/// Something that makes git run or obey what others wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Offence {
    /// Below the folder that was looked through.
    #[serde(with = "any_name")]
    pub path: PathBuf,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum What {
    /// A setting, and its value.
    Setting(String, Option<String>),
    /// A link in git's data. Git writes through some of them.
    Link(#[serde(with = "any_name")] PathBuf),
    /// A folder with hooks, and which one.
    Hooks(Option<Identity>),
    /// Settings that cannot be read, and which; a way to data elsewhere, and where it leads.
    Whole(#[serde(with = "any_name")] PathBuf),
}

/// All that makes git run or obey something, in the repositories that were found.
pub(super) fn offences(root: &Root, found: &Found) -> BTreeSet<Offence> {
    let mut offences = BTreeSet::new();
    for data in &found.data {
        // It could be opened a moment ago: others have removed it.
        let Ok(Some(folder)) = root.folder(data) else { continue };
        let around = root.path.join(data);
        let mut add = |name: &str, what: What| {
            offences.insert(Offence { path: data.join(name), what });
        };
        for name in SETTINGS {
            match entry(&folder, OsStr::new(name), settings::MOST) {
                Entry::None | Entry::Folder => {}
                Entry::File(text) => match settings::read(&text) {
                    None => add(name, What::Whole(digest(&text))),
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
            Entry::File(text) => add(COMMON_FOLDER, What::Whole(first_line(&text).to_owned())),
            Entry::Link(to) => add(COMMON_FOLDER, What::Whole(to)),
            Entry::Other => add(COMMON_FOLDER, What::Whole(PathBuf::new())),
        }
        match entry(&folder, OsStr::new(HOOKS), 0) {
            Entry::Link(to) => add(HOOKS, What::Whole(to)),
            Entry::Folder => {
                let hooks = root.folder(&data.join(HOOKS)).ok().flatten();
                let hooks = hooks.and_then(|hooks| entries(&hooks).ok()).unwrap_or_default();
                let is_hook = |(name, kind): &(OsString, FileType)| {
                    *kind != FileType::Directory && !name.to_string_lossy().ends_with(SAMPLE)
                };
                if hooks.iter().any(is_hook) {
                    add(HOOKS, What::Hooks(identity(&folder, OsStr::new(HOOKS))));
                }
            }
            Entry::None | Entry::File(_) | Entry::Other => {}
        }
    }
    // That of the workspace itself has a wall.
    for pointer in found.pointers.iter().filter(|path| *path != Path::new(GIT)) {
        if let Some(to) = leads_out(root, pointer) {
            offences.insert(Offence { path: pointer.clone(), what: What::Whole(to) });
        }
    }
    let known: BTreeSet<PathBuf> = offences.iter().map(|offence| offence.path.clone()).collect();
    for (path, to) in &found.links {
        // As old versions of git write the branch that is checked out.
        let is_plain = to.components().all(|part| matches!(part, Component::Normal(_)));
        let is_branch = path.file_name() == Some(OsStr::new(HEAD)) && to.starts_with("refs/heads");
        if !(known.contains(path) || is_branch && is_plain) {
            offences.insert(Offence { path: path.clone(), what: What::Link(to.clone()) });
        }
    }
    offences
}

/// What tells one text from another.
fn digest(text: &[u8]) -> PathBuf {
    let digits = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    PathBuf::from(digits)
}

/// True for a setting that makes git run and obey nothing, of the repository in `data`, whose files must be below `root`.
pub(super) fn is_harmless(setting: &Setting, data: &Path, root: &Root) -> bool {
    match (setting.section.as_str(), setting.name.as_str(), &setting.value) {
        ("core", "worktree", Some(value)) => {
            let folder = data.join(value);
            if value.contains(char::REPLACEMENT_CHARACTER) {
                return false;
            }
            // As git does for submodules: the files say in turn that these are their data.
            let Ok(top) = folder.canonicalize() else { return false };
            let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
            top.starts_with(&root.path) && (top == data || points_to(&top, &data))
        }
        _ => setting.is_harmless(),
    }
}

/// True when the files at `top` are those of the repository in `data`, as they say.
fn points_to(top: &Path, data: &Path) -> bool {
    let git = top.join(GIT);
    let named = text_at(&git, POINTER)
        .and_then(|text| Some(top.join(first_line(text.strip_prefix(b"gitdir: ")?))));
    named.unwrap_or(git).canonicalize().is_ok_and(|real| real == data)
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
fn leads_out(root: &Root, pointer: &Path) -> Option<PathBuf> {
    let (to, target) = leads_to(root, pointer)?;
    let real = target.canonicalize().unwrap_or_else(|_| plain(&target));
    // Outside, what a command finds in its temporary folders has another name, by which no agent has
    // put anything anywhere. So this leads to nothing of theirs, and back when the next command runs.
    let there = root.outside(&plain(&target)).and_then(|it| it.canonicalize().ok());
    let is_inside = |it: &PathBuf| it.starts_with(&root.path);
    (!is_inside(&real) && !there.is_some_and(|it| is_inside(&it))).then_some(to)
}

/// Where it says that the data are, and where that is.
pub(super) fn leads_to(root: &Root, pointer: &Path) -> Option<(PathBuf, PathBuf)> {
    let (folder, name) = parent(root, pointer).ok()??;
    let to = match entry(&folder, &name, POINTER) {
        Entry::Link(to) => to,
        Entry::File(text) => first_line(text.strip_prefix(b"gitdir: ")?).to_owned(),
        Entry::None | Entry::Folder | Entry::Other => return None,
    };
    let around = root.path.join(pointer.parent().unwrap_or(pointer));
    Some((to.clone(), around.join(to)))
}

/// Writes a path as JSON. It may hold bytes that are not UTF-8.
mod any_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}
