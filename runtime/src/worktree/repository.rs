//! Repositories of other machines: a bare copy of each on this machine, from which the checkouts of runs
//! are made. Any of it can be removed while no run works; it is fetched again.
//!
//! Fetching is the only use of git that is not confined: it needs the keys and the settings of the user.

use super::address::{is_address, is_commit, shown};
use super::git::Git;
use super::version::too_old;
use super::{Address, Worktrees, make_private};
use crate::error::RepositoryError;
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{RunId, hex};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The settings of a copy. Git works in its checkouts by their own names only.
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";

/// The references that keep fetched commits.
const KEPT: &str = "refs/posse/base/";

/// The most loose objects of a copy.
const LOOSE: usize = 5_000;

/// The most files with packs of a copy. Most packs have three.
const PACKS: usize = 150;

/// The most bytes of a file `.git`.
const LONGEST: u64 = 8 << 10;

/// How many repositories that cannot be reached are remembered.
const REMEMBERED: usize = 50;

/// The copies of repositories on this machine, and the checkouts of runs.
#[derive(Clone, Debug)]
pub(crate) struct Repositories {
    pub(super) copies: PathBuf,
    pub(super) worktrees: Worktrees,
    known: Arc<Mutex<Known>>,
    /// Why the git of this machine cannot be used, if it cannot.
    too_old: Arc<OnceCell<Option<String>>>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    /// Only one task fetches from a repository at a time.
    fetching: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// Why repositories could not be reached when this process last tried.
    unreachable: BTreeMap<String, String>,
}

impl Repositories {
    pub(crate) fn new(copies: PathBuf, worktrees: Worktrees) -> Self {
        Repositories { copies, worktrees, known: Arc::default(), too_old: Arc::default() }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// Returns the repositories that could not be reached, each with the reason.
    pub(crate) fn unreachable(&self) -> BTreeMap<String, String> {
        self.known().unreachable.clone()
    }

    pub(super) fn note(&self, url: &str, result: &Result<(), RepositoryError>) {
        let unreachable = &mut self.known().unreachable;
        match result {
            Ok(()) => drop(unreachable.remove(url)),
            Err(error @ RepositoryError::Away(_)) if unreachable.len() < REMEMBERED => {
                let reason: String = error.to_string().chars().take(300).collect();
                unreachable.insert(url.to_owned(), reason.replace('\n', " "));
            }
            Err(_) => {}
        }
    }

    /// Returns the checkouts that stand on this machine, by their runs.
    pub(crate) fn standing(&self) -> Vec<(RunId, PathBuf)> {
        let is_ours = |(_, folder): &(RunId, PathBuf)| {
            let data = git_file(&folder.join(".git"));
            data.is_some_and(|data| data.starts_with(&self.copies))
        };
        self.worktrees.standing().into_iter().filter(is_ours).collect()
    }

    /// Packs the copies in which many small files lie.
    pub(crate) async fn tidy(&self) {
        let copies = self.copies.clone();
        let listing = move || {
            let listed = std::fs::read_dir(copies).into_iter().flatten().flatten();
            listed.map(|entry| entry.path()).filter(|copy| is_untidy(copy)).collect()
        };
        let untidy: Vec<PathBuf> = tokio::task::spawn_blocking(listing).await.unwrap_or_default();
        for copy in untidy {
            let Ok(launcher) = self.launcher() else { return };
            // If this fails, a later sweep tries again. New files belong to a checkout that is being stored.
            let gc = ["-c", "gc.worktreePruneExpire=never", "gc", "--quiet", "--prune=1.hour.ago"];
            let _ = Git::tidying(launcher, &copy).run(&gc).await;
        }
    }

    /// Returns the path of the copy of the repository at `url`.
    pub(super) fn copy_of(&self, url: &str) -> PathBuf {
        let name = hex(&Sha256::digest(url));
        self.copies.join(format!("{}.git", &name[..32]))
    }

    /// Returns the commit that `address` means now.
    ///
    /// # Errors
    /// When the repository cannot be reached, or has no such branch.
    pub(crate) async fn resolve(&self, address: &Address) -> Result<String, RepositoryError> {
        if let Some(commit) = address.commit() {
            return Ok(commit.to_owned());
        }
        let launcher = self.launcher()?;
        let copy = self.make_copy(&address.url).await?;
        let git = Git::asking(launcher, &copy);
        let revision = &address.revision;
        let wanted = match revision.as_str() {
            "" => vec!["HEAD".to_owned()],
            name => vec![
                format!("refs/heads/{name}"),
                format!("refs/tags/{name}^{{}}"),
                format!("refs/tags/{name}"),
            ],
        };
        let mut ask = vec!["ls-remote", "--quiet", "--", &address.url];
        ask.extend(wanted.iter().map(String::as_str));
        let told = git.whole(&ask).await.map_err(|why| cannot_reach(&address.url, &why))?;
        let found = |name: &String| {
            let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, found)| found == name).map(|(commit, _)| commit.to_owned())
        };
        wanted.iter().find_map(found).ok_or_else(|| {
            let what = match revision.as_str() {
                "" => "it has no commit".to_owned(),
                name => format!(
                    "it has no branch and no tag `{name}`; a commit needs its full id, of 40 digits"
                ),
            };
            let url = &address.url;
            RepositoryError::Missing(format!("the repository {url} cannot be used: {what}"))
        })
    }

    /// Fetches `commit` of the repository at `url`, unless it is here. Returns the path of the copy.
    pub(super) async fn fetched(
        &self,
        url: &str,
        commit: &str,
    ) -> Result<PathBuf, RepositoryError> {
        if !is_address(url) || !is_commit(commit) {
            let why = format!("`{}` has no commit that can be fetched", shown(url));
            return Err(RepositoryError::Missing(why));
        }
        let alone = self.known().fetching.entry(url.to_owned()).or_default().clone();
        let _alone = alone.lock().await;
        let copy = self.make_copy(url).await?;
        let git = Git::fetching(self.launcher()?, &copy);
        let kept = format!("{KEPT}{commit}");
        if git.run(&["rev-parse", "--verify", "--quiet", &kept]).await.is_ok() {
            return Ok(copy);
        }
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let fetch = [&fetch[..], &["--no-auto-maintenance", "--"]].concat();
        let failed = |why: String| cannot_reach(url, &why);
        // Some servers give only what is on a branch.
        if git.run(&[&fetch[..], &[url, commit]].concat()).await.is_err() {
            let all = ["+refs/heads/*:refs/posse/heads/*", "+refs/tags/*:refs/posse/tags/*"];
            git.run(&[&fetch[..], &[url], &all[..]].concat()).await.map_err(failed)?;
        }
        let object = format!("{commit}^{{commit}}");
        if git.run(&["cat-file", "-e", &object]).await.is_err() {
            let what = format!("it has no commit {commit} on a branch or a tag");
            let why = format!("the repository {url} cannot be used: {what}");
            return Err(RepositoryError::Missing(why));
        }
        git.run(&["update-ref", &kept, commit]).await.map_err(RepositoryError::Local)?;
        Ok(copy)
    }

    /// Makes an empty copy for the repository at `url`, unless there is one.
    async fn make_copy(&self, url: &str) -> Result<PathBuf, RepositoryError> {
        let copy = self.copy_of(url);
        let failed =
            |why: String| RepositoryError::Local(format!("a copy of {url} cannot be made: {why}"));
        let launcher = self.launcher()?;
        make_private(&self.copies).map_err(|error| failed(error.to_string()))?;
        let asked = self.too_old.get_or_init(|| too_old(launcher, &self.copies)).await;
        if let Some(why) = asked {
            // Another machine may have a newer one.
            return Err(RepositoryError::Away(why.clone()));
        }
        if copy.join("HEAD").exists() {
            settle(&copy).map_err(&failed)?;
            return Ok(copy);
        }
        let new = format!("{}.new", RunId::new());
        let git = Git::making(launcher, &self.copies);
        let init = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--"];
        git.run(&[&init[..], &[&new]].concat()).await.map_err(failed)?;
        let made = self.copies.join(new);
        let placed = std::fs::write(made.join("config"), SETTINGS)
            .and_then(|()| std::fs::rename(&made, &copy));
        // Another process may have been faster.
        if let Err(error) = placed {
            let _ = posse_tools::remove_folder(&made);
            if !copy.join("HEAD").exists() {
                return Err(failed(error.to_string()));
            }
        }
        Ok(copy)
    }

    pub(super) fn launcher(&self) -> Result<&posse_tools::launch::Launcher, RepositoryError> {
        let none = || RepositoryError::Local(super::WorktreeError::NoLauncher.to_string());
        self.worktrees.launcher.as_ref().ok_or_else(none)
    }

    /// Returns the folder for checkouts, and closes it to others.
    pub(super) fn around(&self) -> Result<&Path, RepositoryError> {
        let around = self.worktrees.around.as_path();
        make_private(around).map_err(|error| RepositoryError::Local(error.to_string()))?;
        Ok(around)
    }
}

/// Gives a copy its own settings again. Git would execute programs that others name: an agent could have
/// written them if the database is in a folder where agents work.
fn settle(copy: &Path) -> Result<(), String> {
    let shown = copy.display();
    let foreign =
        |name: &str| format!("{shown} has a {name} that Posse did not make; remove {shown}");
    if !copy.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Err(format!("{shown} is not a folder; remove it"));
    }
    for name in ["commondir", "config.worktree", "gitdir"] {
        if copy.join(name).symlink_metadata().is_ok() {
            return Err(foreign(name));
        }
    }
    let config = copy.join("config");
    let is_file = config.symlink_metadata().is_ok_and(|found| found.is_file());
    if is_file && std::fs::read(&config).is_ok_and(|text| text == SETTINGS.as_bytes()) {
        return Ok(());
    }
    let new = copy.join(format!("config.{}", RunId::new()));
    let placed = std::fs::write(&new, SETTINGS).and_then(|()| std::fs::rename(&new, &config));
    placed.map_err(|error| format!("{}: {error}", config.display()))
}

fn cannot_reach(url: &str, why: &str) -> RepositoryError {
    let why = why.trim().replace('\n', " ");
    RepositoryError::Away(format!("the repository {url} cannot be fetched: {why}"))
}

/// True if a copy has so many loose objects, or packs, that git would tidy it. Like git, this counts the objects in one
/// of 256 folders.
fn is_untidy(copy: &Path) -> bool {
    let count = |below: &str| std::fs::read_dir(copy.join(below)).map_or(0, Iterator::count);
    count("objects/17") > LOOSE / 256 || count("objects/pack") > PACKS
}

/// Returns the folder that a file `.git` names. The file is in a checkout, so it is read like one that an agent wrote.
fn git_file(path: &Path) -> Option<PathBuf> {
    let text = posse_tools::confine::text_at(path, LONGEST)?;
    let text = String::from_utf8(text).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir: ")?.trim_end()))
}
