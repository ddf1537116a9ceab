//! Offences: entries in a repository that make git run or obey something.

use super::super::protected::{COMMON_FOLDER, GIT, HEAD, OBJECTS, REFS, WORKTREE_CONFIG};
use super::aside::parent;
use super::named::{first_line, plain};
use super::settings::{self, Setting};
use super::tree::{Entry, Found, Identity, Root, entries, entry, identity, text_at};
use posse_protocol::hex;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The settings of a repository, and those of one checkout.
const SETTINGS: [&str; 2] = ["config", WORKTREE_CONFIG];
/// Folders whose files git runs or obeys: hooks, and remotes in their old format.
pub(super) const FOLDERS: [&str; 3] = [HOOKS, "remotes", "branches"];
const HOOKS: &str = "hooks";
const SAMPLE: &str = ".sample";

/// The maximum number of bytes of a file that points to data. Git reads as much.
pub(in super::super) const POINTER: u64 = 1 << 20;

/// The longest path that the kernel takes, with what stands around it in such a file.
const LONGEST_PATH: usize = 4096 + 16;

/// The beginning of a file `.git`.
pub(in super::super) const GITDIR: &[u8] = b"gitdir: ";

/// An entry that makes git run or obey what others wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct UnsafeEntry {
    /// Relative to the inspected folder.
    #[serde(with = "any_name")]
    pub path: PathBuf,
    pub what: UnsafeKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum UnsafeKind {
    /// A setting, and its value.
    Setting(String, Option<String>),
    /// A link in git's data. Git writes through some of them.
    Link(#[serde(with = "any_name")] PathBuf),
    /// A folder with hooks or remotes, and its identity.
    Folder(Option<Identity>),
    /// A whole file or link: unreadable settings or a pointer to data elsewhere. The path identifies it.
    Whole(#[serde(with = "any_name")] PathBuf),
    /// A folder that is deeper than the search goes.
    TooDeep,
}

impl UnsafeEntry {
    /// Returns true if it is in the remains of a repository. Git does not obey them, so anyone may have put it
    /// there. It counts as new when the folder becomes a repository.
    pub(super) fn is_of_remains(&self, found: &Found) -> bool {
        let is_pointer = self.path.file_name().is_some_and(|it| it.eq_ignore_ascii_case(GIT));
        let mut around = self.path.ancestors().skip(1);
        let data = around.find(|folder| found.data.contains(*folder));
        let is_in_data = !is_pointer && self.what != UnsafeKind::TooDeep;
        is_in_data && data.is_some_and(|data| found.remains.contains(data))
    }
}

impl UnsafeKind {
    pub(super) fn setting(setting: &Setting) -> UnsafeKind {
        let brief = |text: &str| brief(text.as_bytes()).to_string_lossy().into_owned();
        UnsafeKind::Setting(brief(&setting.key()), setting.value.as_deref().map(brief))
    }
}

/// All unsafe_entries in the repositories that were found.
pub(super) fn unsafe_entries(root: &Root, found: &Found) -> BTreeSet<UnsafeEntry> {
    let mut unsafe_entries = BTreeSet::new();
    for data in &found.data {
        // The search could open it, so another process has removed it since.
        let Ok(Some(folder)) = root.folder(data) else { continue };
        let around = root.path.join(data);
        let mut add = |name: &str, what: UnsafeKind| {
            unsafe_entries.insert(UnsafeEntry { path: data.join(name), what });
        };
        for name in SETTINGS {
            match entry(&folder, OsStr::new(name), settings::MOST) {
                Entry::None | Entry::Folder => {}
                Entry::File(text) => match settings::read(&text) {
                    None => add(name, UnsafeKind::Whole(digest(&text))),
                    Some(all) => {
                        for setting in harmful(&all, &around, root) {
                            add(name, UnsafeKind::setting(setting));
                        }
                    }
                },
                Entry::Link(to) => add(name, UnsafeKind::Whole(brief(to.as_os_str().as_bytes()))),
                Entry::Other => add(name, UnsafeKind::Whole(PathBuf::new())),
            }
        }
        match entry(&folder, OsStr::new(COMMON_FOLDER), POINTER) {
            Entry::None | Entry::Folder => {}
            Entry::File(text) if shares_data_of_its_own(&around, &text) => {}
            Entry::File(text) => add(COMMON_FOLDER, UnsafeKind::Whole(digest(&text))),
            Entry::Link(to) => {
                add(COMMON_FOLDER, UnsafeKind::Whole(brief(to.as_os_str().as_bytes())))
            }
            Entry::Other => add(COMMON_FOLDER, UnsafeKind::Whole(PathBuf::new())),
        }
        for name in FOLDERS {
            match entry(&folder, OsStr::new(name), 0) {
                Entry::Link(to) => add(name, UnsafeKind::Whole(brief(to.as_os_str().as_bytes()))),
                Entry::Folder => {
                    let files = root.folder(&data.join(name)).ok().flatten();
                    let files = files.and_then(|files| entries(&files).ok()).unwrap_or_default();
                    let is_obeyed = |(file, kind): &(OsString, FileType)| {
                        let is_sample = name == HOOKS && file.to_string_lossy().ends_with(SAMPLE);
                        *kind != FileType::Directory && !is_sample
                    };
                    if files.iter().any(is_obeyed) {
                        add(name, UnsafeKind::Folder(identity(&folder, OsStr::new(name))));
                    }
                }
                Entry::None | Entry::File(_) | Entry::Other => {}
            }
        }
    }
    // A wall protects that of the workspace itself.
    for pointer in found.pointers.iter().filter(|path| *path != Path::new(GIT)) {
        if let Some(to) = leads_out(root, pointer) {
            unsafe_entries
                .insert(UnsafeEntry { path: pointer.clone(), what: UnsafeKind::Whole(to) });
        }
    }
    let too_deep = found.too_deep.iter().cloned();
    unsafe_entries.extend(too_deep.map(|path| UnsafeEntry { path, what: UnsafeKind::TooDeep }));
    let known: BTreeSet<PathBuf> = unsafe_entries.iter().map(|entry| entry.path.clone()).collect();
    for (path, to) in &found.links {
        // Old versions of git store the checked-out branch as such a link.
        let is_plain = to.components().all(|part| matches!(part, Component::Normal(_)));
        let is_branch = path.file_name() == Some(OsStr::new(HEAD)) && to.starts_with("refs/heads");
        if !(known.contains(path) || is_branch && is_plain) {
            unsafe_entries
                .insert(UnsafeEntry { path: path.clone(), what: UnsafeKind::Link(to.clone()) });
        }
    }
    unsafe_entries
}

/// Entries that are harmless in this folder but may be unsafe_entries in a folder above or below, because they lead to
/// another place in here. A command that inspects such a folder at the same time must know that they existed.
pub(super) fn harmless_only_here(root: &Root, found: &Found) -> Vec<UnsafeEntry> {
    let pointers = found.pointers.iter().filter_map(|path| {
        let what = UnsafeKind::Whole(leads_to(root, path)?.to);
        Some(UnsafeEntry { path: path.clone(), what })
    });
    let whole = found.data.iter().filter(|data| !found.remains.contains(*data));
    let files = whole.flat_map(|data| SETTINGS.map(|name| data.join(name)));
    let settings = files.flat_map(|path| {
        let text = parent(root, &path).ok().flatten().map(|(folder, name)| {
            match entry(&folder, &name, settings::MOST) {
                Entry::File(text) => text,
                _ => Vec::new(),
            }
        });
        let all = text.and_then(|text| settings::read(&text)).unwrap_or_default();
        let all = all.into_iter().filter(names_files);
        all.map(move |it| UnsafeEntry { path: path.clone(), what: UnsafeKind::setting(&it) })
    });
    pointers.chain(settings).collect()
}

/// The maximum length of a value that is kept as it is, in bytes.
const BRIEF: usize = 256;

/// The text, or its digest if it is long.
pub(super) fn brief(text: &[u8]) -> PathBuf {
    if text.len() > BRIEF { digest(text) } else { PathBuf::from(OsStr::from_bytes(text)) }
}

/// Identifies a text.
fn digest(text: &[u8]) -> PathBuf {
    PathBuf::from(hex(&Sha256::digest(text)))
}

/// Returns those of `all`, the settings in a file of the repository in `data`, that are not harmless. A file names the
/// folder with the files once. To look for each of a hundred thousand names takes hours.
pub(super) fn harmful<'s>(
    all: &'s [Setting],
    data: &Path,
    root: &Root,
) -> impl Iterator<Item = &'s Setting> {
    let names = all.iter().filter(|it| names_files(it)).count();
    all.iter().filter(move |it| {
        let is_one_of_many = names > 1 && names_files(it);
        is_one_of_many || !is_harmless(it, data, root)
    })
}

/// Returns true for the setting that says where the files of a repository are.
fn names_files(setting: &Setting) -> bool {
    setting.section == "core" && setting.name == "worktree"
}

/// Returns true for a setting that makes git run and obey nothing. It belongs to the repository in
/// `data`, whose files must be below `root`.
fn is_harmless(setting: &Setting, data: &Path, root: &Root) -> bool {
    match (setting.section.as_str(), setting.name.as_str(), &setting.value) {
        ("core", "worktree", Some(value)) => {
            let folder = data.join(value);
            if value.contains(char::REPLACEMENT_CHARACTER) {
                return false;
            }
            // As git requires for submodules: the folder with the files must name this data in turn.
            let Ok(top) = folder.canonicalize() else { return false };
            let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
            top.starts_with(&root.path) && (top == data || points_to(&top, &data))
        }
        _ => setting.is_harmless(),
    }
}

/// Returns true if the files at `top` say that they belong to the repository in `data`.
fn points_to(top: &Path, data: &Path) -> bool {
    let git = top.join(GIT);
    let text = text_at(&git, POINTER);
    // Git cannot use a longer path, and to follow half a million parts of one takes long.
    if text.as_ref().is_some_and(|text| text.len() > LONGEST_PATH) {
        return false;
    }
    let named = text.and_then(|text| Some(top.join(first_line(text.strip_prefix(GITDIR)?))));
    named.unwrap_or(git).canonicalize().is_ok_and(|real| real == data)
}

/// Returns true if `text`, the common folder of the repository in `data`, names its own folder, or that
/// of the repository whose worktree it is. The latter is inspected, too.
fn shares_data_of_its_own(data: &Path, text: &[u8]) -> bool {
    // A path that leads nowhere may lead elsewhere tomorrow.
    let Ok(common) = data.join(first_line(text)).canonicalize() else { return false };
    let is_around = data.parent().and_then(Path::parent) == Some(common.as_path())
        && data.parent().and_then(Path::file_name) == Some(OsStr::new("worktrees"));
    let has_head = || common.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir());
    !text.contains(&0) && (common == *data || (is_around && has_head()))
}

/// Identifies the file or link `.git` at `pointer` if it does not lead to the data of a repository
/// below `root`.
fn leads_out(root: &Root, pointer: &Path) -> Option<PathBuf> {
    let Pointer { to, target, is_odd } = leads_to(root, pointer)?;
    // A command's temporary folders have other paths outside. At the path that the command uses, no agent has put
    // anything. So outside, this leads to nothing of theirs; for the next command it leads back here.
    let there = || root.outside(&plain(&target))?.canonicalize().ok();
    // A pointer that leads nowhere, or is too long for a path, may lead anywhere tomorrow.
    let real = target.canonicalize().ok().or_else(there);
    let is_inside = real.as_ref().is_some_and(|it| it.starts_with(&root.path));
    // A folder that is no repository may become one after the last inspection.
    let has = |name: &str| real.as_ref().is_some_and(|it| it.join(name).symlink_metadata().is_ok());
    let is_one = has(HEAD) && [OBJECTS, REFS, COMMON_FOLDER].iter().any(|name| has(name));
    (is_odd || !is_inside || !is_one).then_some(to)
}

/// A file or link `.git`.
pub(super) struct Pointer {
    /// Identifies its content.
    to: PathBuf,
    /// The folder of the data.
    pub target: PathBuf,
    /// True if git may read it differently.
    is_odd: bool,
}

/// Reads the file or link `.git` at `pointer`. `None` if git does not recognize it.
pub(super) fn leads_to(root: &Root, pointer: &Path) -> Option<Pointer> {
    let (folder, name) = parent(root, pointer).ok()??;
    let around = root.path.join(pointer.parent().unwrap_or(pointer));
    match entry(&folder, &name, POINTER) {
        Entry::Link(to) => {
            let target = around.join(&to);
            Some(Pointer { target, to: brief(to.as_os_str().as_bytes()), is_odd: false })
        }
        Entry::File(text) => {
            let target = around.join(first_line(text.strip_prefix(GITDIR)?));
            Some(Pointer { target, to: digest(&text), is_odd: text.contains(&0) })
        }
        Entry::None | Entry::Folder | Entry::Other => None,
    }
}

/// Converts a path to JSON. It may contain bytes that are not UTF-8.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_that_cannot_be_followed_to_its_end_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let put = |name: &str, text: &[u8]| {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), text).unwrap();
        };
        put("data/HEAD", b"x");
        fs::create_dir_all(top.join("data/refs")).unwrap();
        put("good/.git", b"gitdir: ../data\r\n");
        put("missing/.git", b"gitdir: ../later\n");
        put("half/HEAD", b"x");
        put("to-half/.git", b"gitdir: ../half\n");
        put("outside/.git", b"gitdir: /etc\n");
        put("space/.git", b"gitdir:  ../data\n");
        put("none/.git", b"gitdir:../data\n");
        let way = format!("gitdir: /etc\0{}/..{}/data\n", "/..".repeat(9), top.display());
        put("cut/.git", way.as_bytes());
        put("inside/.git", b"gitdir: ../data\0x\n");
        for (name, to) in [("later", "../later"), ("round", "round/.git"), ("fine", "../data")] {
            fs::create_dir_all(top.join("links").join(name)).unwrap();
            symlink(Path::new("..").join(to), top.join("links").join(name).join(".git")).unwrap();
        }
        let root = Root::open(&top, false).unwrap();
        let all = unsafe_entries(&root, &root.search());
        let paths: Vec<_> = all.iter().map(|it| it.path.to_str().unwrap()).collect();
        let expected = [
            "cut/.git",
            "inside/.git",
            "links/later/.git",
            "links/round/.git",
            "missing/.git",
            "outside/.git",
            "space/.git",
            "to-half/.git",
        ];
        assert_eq!(paths, expected);
    }

    /// The workspace itself may be the data of a repository.
    #[test]
    fn links_in_a_repository_without_files_are_found_where_git_writes() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        ["objects", "refs/heads", "bin"].iter().for_each(|it| {
            fs::create_dir_all(top.join(it)).unwrap();
        });
        fs::write(top.join("HEAD"), "ref: refs/heads/x").unwrap();
        for name in ["FETCH_HEAD", "refs/heads/x", "packed-refs", "bin/tool", "current"] {
            symlink("/nowhere", top.join(name)).unwrap();
        }
        let root = Root::open(&top, false).unwrap();
        let all = unsafe_entries(&root, &root.search());
        let paths: Vec<_> = all.iter().map(|it| it.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["FETCH_HEAD", "packed-refs", "refs/heads/x"]);
    }

    #[test]
    fn a_long_target_is_kept_as_a_digest() {
        let (one, other) = (brief(&[b'a'; 4000]), brief(&[b'a'; 4001]));
        assert!(one != other && one.as_os_str().len() == 64);
        assert_eq!(brief(b"refs/heads/main"), Path::new("refs/heads/main"));
    }
}
