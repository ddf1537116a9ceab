//! What the file tools may write is never trusted as the user's, whatever else there is.

use super::super::{Confinement, FileRules};
use super::*;
use crate::path_rules::{PathRules, Reached, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fs;

const NAMES: [&str; 13] = [
    "HEAD",
    "head",
    "objects",
    "refs",
    "config",
    "hooks",
    "commondir",
    "config.worktree",
    "remotes",
    "pre-commit",
    "x",
    ".git",
    "modules",
];

const TEXTS: [&str; 4] = [
    "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = evil\n\tworktree = ../x\n",
    "[core]\n\tfsmonitor = evil\n",
    "[include]\n\tpath = x\n",
    "ref: refs/heads/m\n",
];

/// What a look finds in `folder` and trusts: git runs or obeys it from now on.
fn trusted(folder: &Path) -> BTreeSet<UnsafeEntry> {
    let root = Root::open(folder, false).unwrap();
    let found = root.search();
    let all = unsafe_entries(&root, &found).into_iter();
    all.filter(|it| !it.is_of_remains(&found)).chain(harmless_only_here(&root, &found)).collect()
}

/// Writes a file with the folders around it, if nothing is in the way.
fn put(path: &Path, text: &str) {
    if fs::create_dir_all(path.parent().unwrap()).is_ok() {
        let _ = fs::write(path, text);
    }
}

fn may_write(work: &Path, path: &Path) -> bool {
    let rules = FileRules::new(&Confinement::workspace_write(), &[work], &[], &[], None);
    rules.refuse(None, Usage::Change, Reached::Named, path, path).is_none()
}

fn path() -> impl Strategy<Value = PathBuf> {
    vec(select(&NAMES[..]), 1..4).prop_map(|names| names.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Commands may have left anything. Then the file tools write, one file after the other.
    #[test]
    fn what_file_tools_write_is_not_trusted(
        left in vec((path(), select(&TEXTS[..])), 0..6),
        written in vec((path(), select(&TEXTS[..])), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        for (path, text) in &left {
            put(&work.join(path), text);
        }
        for (path, text) in &written {
            let (before, path) = (trusted(&work), work.join(path));
            if may_write(&work, &path) {
                put(&path, text);
            }
            prop_assert_eq!(&trusted(&work), &before, "{}", path.display());
        }
    }
}

/// One definition: what makes a folder a repository in a search is closed to the file tools beside `HEAD`.
#[test]
fn whatever_makes_a_folder_a_repository_is_closed_beside_head() {
    for head in ["HEAD", "head", "Head"] {
        for name in NAMES {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().canonicalize().unwrap();
            put(&work.join("a").join(head), TEXTS[3]);
            let file = work.join("a").join(name).join("b");
            let is_open = may_write(&work, &file);
            put(&file, "");
            let found = Root::open(&work, false).unwrap().search();
            assert!(!(is_open && found.data.contains(Path::new("a"))), "{name} beside {head}");
        }
    }
}

#[test]
fn ordinary_folders_with_names_of_git_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    for path in ["a/HEAD", "b/config", "b/objects/x", "c/hooks/pre-commit", "c/refs/x"] {
        put(&work.join(path), TEXTS[0]);
    }
    for path in [
        "a/HEAD",
        "a/x",
        "a/x/config",
        "b/config",
        "b/objects/x",
        "b/objects/y",
        "b/hooks/x",
        "b/refs/x",
        "c/hooks/pre-commit",
        "c/config",
        "c/refs/y",
        "config",
        "config/a",
        "hooks/a.ts",
        "objects/x",
        "branches",
        "modules/a.py",
        "remotes/x",
        "commondir",
        "HEAD.md",
        "d/e/config",
    ] {
        assert!(may_write(&work, &work.join(path)), "{path}");
    }
    for path in ["a/config", "a/Config/x", "a/objects/x", "b/HEAD", "b/head", "d/e/.git/config"] {
        assert!(!may_write(&work, &work.join(path)), "{path}");
    }
}

/// They become new when the folder becomes a repository, whatever they were before.
#[test]
fn remains_are_known_by_the_repository_that_they_are_in() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    put(&work.join("x/config"), TEXTS[0]);
    put(&work.join("x/hooks/pre-commit"), "");
    put(&work.join("x/y/config"), TEXTS[1]);
    put(&work.join("x/y/HEAD"), TEXTS[3]);
    fs::create_dir_all(work.join("x/objects")).unwrap();
    std::os::unix::fs::symlink("/nowhere", work.join("x/objects/info")).unwrap();
    put(&work.join("z/.git"), "gitdir: ../x\n");
    let of_remains = || {
        let root = Root::open(&work, false).unwrap();
        let found = root.search();
        let all = unsafe_entries(&root, &found).into_iter().filter(|it| it.is_of_remains(&found));
        all.map(|it| it.path.display().to_string()).collect::<BTreeSet<_>>()
    };
    let expected = ["x/config", "x/hooks", "x/objects/info"].map(str::to_owned);
    assert_eq!(of_remains(), expected.into());
    assert_eq!(trusted(&work).iter().filter(|it| it.path.starts_with("x/y")).count(), 1);
    put(&work.join("x/head"), TEXTS[3]);
    assert_eq!(of_remains(), BTreeSet::new());
}
