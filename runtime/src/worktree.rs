//! Worktrees: a separate checkout for a run that asks for one.
//!
//! A process may die at any point, so making a worktree, collecting its changes and removing it can each be repeated.
//! The log of a run names its worktree. A folder that exists although its run has ended was left by a crash.

mod address;
mod checkout;
mod git;
mod left;
mod owner;
mod repository;
mod version;

pub(crate) use address::Address;
pub use checkout::Brought;
pub(crate) use checkout::{Checkout, Made, Merge, Share, branch_of};
pub(crate) use repository::Repositories;

use crate::error::Error;
use git::Git;
use posse_protocol::{Changes, Extra, Kept, RunId, Worktree};
use posse_tools::confine::has_git;
use posse_tools::launch::Launcher;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The prefix of the branches of runs.
const BRANCHES: &str = "posse/";

/// Says in the problem of changes where they are.
pub(crate) const STILL_IN: &str = "; it still is in ";

/// The extension of the folder of a worktree that is being removed.
const REMOVED: &str = "removed";

/// How long a temporary file may be in use.
const LONGEST_USE: Duration = Duration::from_secs(3_600);

/// The most bytes of a diff that are kept.
const DIFFERENCE: usize = 64 << 10;

/// Makes worktrees and collects their changes.
#[derive(Clone, Debug)]
pub(crate) struct Worktrees {
    /// The folder that contains all worktrees.
    around: PathBuf,
    launcher: Option<Launcher>,
}

/// Why a worktree could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// There is no commit to make it from.
    #[error(
        "{folder} is not in a git repository with a commit, so there is nothing to make a worktree \
         of: {reason}; commit something first, or leave `isolation` out"
    )]
    NoRepository {
        /// The folder that was searched.
        folder: String,
        /// What git said.
        reason: String,
    },
    /// No process can be started here.
    #[error("a worktree needs git, and this host starts no processes: it has no launcher")]
    NoLauncher,
    /// Git failed.
    #[error("git cannot {what}: {reason}")]
    Git {
        /// The task.
        what: &'static str,
        /// What it said.
        reason: String,
    },
}

impl Worktrees {
    pub(crate) fn new(around: PathBuf, launcher: Option<Launcher>) -> Self {
        Worktrees { around, launcher }
    }

    /// Plans the worktree for `run` on the repository of `folder`, and returns the folder in it that stands for
    /// `folder`. It makes nothing.
    pub(crate) async fn plan(
        &self,
        run: RunId,
        folder: &str,
    ) -> Result<(Worktree, String), WorktreeError> {
        let launcher = self.launcher.as_ref().ok_or(WorktreeError::NoLauncher)?;
        let git = Git::reading(launcher, Path::new(folder));
        let missing =
            |reason: String| WorktreeError::NoRepository { folder: folder.to_owned(), reason };
        let top = git.line(&["rev-parse", "--show-toplevel"]).await.map_err(missing)?;
        if let Some(broken) = taken_apart(Path::new(folder), Path::new(&top)) {
            let reason = format!("{} is no whole repository", broken.join(".git").display());
            return Err(missing(reason));
        }
        let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let data = git.line(&common).await.map_err(missing)?;
        if !is_genuine(Path::new(&top), Path::new(&data)) {
            let reason = format!("its data are said to be in {data}, where they do not belong");
            return Err(missing(reason));
        }
        let below = git.line(&["rev-parse", "--show-prefix"]).await.map_err(missing)?;
        let base = git.line(&["rev-parse", "--verify", "HEAD^{commit}"]).await.map_err(missing)?;
        let own = self.around.join(run.to_string());
        let within = own.join(below.trim_end_matches('/'));
        let text = |path: &Path| path.display().to_string().trim_end_matches('/').to_owned();
        let worktree = Worktree {
            repository: top,
            data,
            origin: folder.to_owned(),
            folder: text(&own),
            base,
            branch: format!("{BRANCHES}{run}"),
            extra: Extra::default(),
        };
        Ok((worktree, text(&within)))
    }

    /// Makes `worktree`, unless it exists.
    pub(crate) async fn make(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let launcher = self.launcher.as_ref().ok_or(WorktreeError::NoLauncher)?;
        let failed = |reason: String| WorktreeError::Git { what: "make a worktree", reason };
        make_private(&self.around).map_err(|error| failed(error.to_string()))?;
        let Worktree { folder, branch, base, data, .. } = worktree;
        let name = Path::new(folder).file_name().unwrap_or_default();
        // Git writes the index last, when all files are there.
        let index = Path::new(data).join("worktrees").join(name).join("index");
        if Path::new(folder).join(".git").exists() && index.exists() {
            return Ok(());
        }
        let git = Git::writing(launcher, worktree, &self.around);
        // Remove the unfinished worktree of a dead process.
        forget(worktree).map_err(|error| failed(error.to_string()))?;
        let reference = format!("refs/heads/{branch}");
        let known = git.line(&["rev-parse", "--verify", "--quiet", &reference]).await.is_ok();
        if known && let Some(place) = checked_out(&git, &reference, folder).await {
            return Err(failed(format!(
                "its branch {branch} is checked out in {place}; check out another branch there"
            )));
        }
        let add = ["worktree", "add", "--force", "--no-checkout"];
        let made = match known {
            true => git.run(&[&add[..], &[folder, branch]].concat()).await,
            false => git.run(&[&add[..], &["-b", branch, folder, base]].concat()).await,
        };
        made.map_err(failed)?;
        // Only now the settings of the branch apply, and the filters that they name are known.
        let git = git.in_worktree(Path::new(data), folder).map_err(failed)?;
        git.run(&["reset", "--hard", "--quiet"]).await.map_err(failed)?;
        Ok(())
    }

    /// Commits the changes to the branch of the worktree, and reports what the branch cannot hold; `None` if nothing
    /// was changed.
    pub(crate) async fn take(&self, worktree: &Worktree) -> Result<Option<Changes>, WorktreeError> {
        let launcher = self.launcher.as_ref().ok_or(WorktreeError::NoLauncher)?;
        let failed = |reason: String| WorktreeError::Git { what: "take what was changed", reason };
        let Worktree { folder, base, branch, .. } = worktree;
        if !Path::new(folder).exists() {
            return Ok(None);
        }
        let git = Git::writing(launcher, worktree, &self.around);
        let git = git.in_worktree(Path::new(&worktree.data), folder).map_err(failed)?;
        if commit_all(&git, base).await.map_err(failed)? == Tree::Changed {
            let message = format!("What run {} changed", branch.trim_start_matches(BRANCHES));
            let quiet = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--allow-empty"];
            git.run(&[&quiet[..], &["-m", &message]].concat()).await.map_err(failed)?;
        }
        let commit = git.line(&["rev-parse", "--verify", "HEAD"]).await.map_err(failed)?;
        let kept = left::kept(&git, folder).await.map_err(failed)?;
        let changes = described(&git, worktree, commit, kept).await.map_err(failed)?;
        Ok((changes.files > 0 || changes.kept.is_some()).then_some(changes))
    }

    /// Like `take`, but reports a failure as a problem in the result.
    pub(crate) async fn changes(&self, worktree: &Worktree) -> Option<Changes> {
        self.take(worktree).await.unwrap_or_else(|error| {
            Some(stuck(worktree, format!("{error}{STILL_IN}{}", worktree.folder)))
        })
    }

    /// Removes `worktree`, and also its branch if that has no changes.
    pub(crate) async fn remove(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let launcher = self.launcher.as_ref().ok_or(WorktreeError::NoLauncher)?;
        let failed = |reason: String| WorktreeError::Git { what: "remove a worktree", reason };
        let Worktree { folder, base, branch, .. } = worktree;
        make_private(&self.around).map_err(|error| failed(error.to_string()))?;
        let git = Git::writing(launcher, worktree, &self.around);
        self.sweep_away(Path::new(folder)).await.map_err(|error| failed(error.to_string()))?;
        forget(worktree).map_err(|error| failed(error.to_string()))?;
        let reference = format!("refs/heads/{branch}");
        let tip = git.line(&["rev-parse", "--verify", "--quiet", &reference]).await;
        if tip.is_ok_and(|tip| tip == *base) {
            git.run(&["branch", "--quiet", "-D", branch]).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Removes `folder`, and the leftovers of earlier removals that died. It renames the folder first: a half-removed
    /// worktree would look as if the run had deleted those files.
    pub(crate) async fn sweep_away(&self, folder: &Path) -> std::io::Result<()> {
        // A run that continued may have left one before.
        self.sweep_away_the_rest().await;
        let (folder, removed) = (folder.to_owned(), folder.with_extension(REMOVED));
        let sweeping = move || match std::fs::rename(folder, &removed) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => posse_tools::remove_folder(&removed),
        };
        tokio::task::spawn_blocking(sweeping).await?
    }

    /// Finishes removals that died with their process. Files that cannot be removed stay.
    pub(crate) async fn sweep_away_the_rest(&self) {
        let around = self.around.clone();
        let sweeping = move || {
            let entries = std::fs::read_dir(around).into_iter().flatten().flatten();
            let paths = entries.map(|entry| entry.path());
            for path in paths {
                if path.extension().is_some_and(|it| it == REMOVED) {
                    let _ = posse_tools::remove_folder(&path);
                } else if is_lost(&path) {
                    let _ = std::fs::remove_file(&path);
                }
            }
        };
        let _ = tokio::task::spawn_blocking(sweeping).await;
    }

    /// Returns the existing folders, by their runs.
    pub(crate) fn standing(&self) -> Vec<(RunId, PathBuf)> {
        let Ok(entries) = std::fs::read_dir(&self.around) else { return Vec::new() };
        let named = entries.flatten().filter_map(|entry| {
            let run = entry.file_name().to_str()?.parse().ok()?;
            Some((run, entry.path()))
        });
        let mut standing: Vec<(RunId, PathBuf)> = named.collect();
        standing.sort();
        standing
    }
}

impl From<WorktreeError> for Error {
    fn from(error: WorktreeError) -> Self {
        Error::InvalidInput(error.to_string())
    }
}

/// True when the data of the repository at `top` are where git puts them. An agent could point git to
/// another folder, and Posse would let git change that folder.
fn is_genuine(top: &Path, data: &Path) -> bool {
    let git = top.join(".git");
    let is_there = data.canonicalize().is_ok_and(|real| real == data);
    match git.symlink_metadata() {
        Ok(found) if found.is_dir() => is_there && data == git,
        Ok(found) => is_there && found.is_file(),
        Err(_) => false,
    }
}

/// Returns the first folder from `folder` up to `top`, where git found a repository, that has an invalid `.git`. An
/// agent may have damaged it, so that git finds the repository around it.
fn taken_apart(folder: &Path, top: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let below = folder.ancestors().take_while(|it| *it != top);
    below.filter(|it| has_git(it)).map(Path::to_owned).next()
}

/// The mode of a folder that only its owner uses.
const PRIVATE: u32 = 0o700;

/// Makes `folder`, if necessary, and closes it to other users.
fn make_private(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(folder)?;
    check_is_own(folder)?;
    // The folder may have existed before.
    match folder.metadata()?.permissions().mode() & 0o777 {
        PRIVATE => Ok(()),
        mode if mode & PRIVATE == PRIVATE => {
            std::fs::set_permissions(folder, Permissions::from_mode(PRIVATE))
        }
        // Posse leaves none like that. A command may have closed it, so that nobody looks into it.
        _ => {
            let shown = folder.display();
            let why = format!(
                "{shown} is closed to you, and may contain what an agent put there; look into it, and remove it"
            );
            Err(std::io::Error::other(why))
        }
    }
}

/// Fails for a folder that another user has made: its content would decide what git executes.
pub(crate) fn check_is_own(folder: &Path) -> std::io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let named = folder.symlink_metadata()?;
    let found = folder.metadata()?;
    match found.is_dir() && found.uid() == own && [own, 0].contains(&named.uid()) {
        true => Ok(()),
        false => {
            let shown = folder.display();
            let why = format!(
                "{shown} is not a folder of yours; keep the database in a folder of your own"
            );
            Err(std::io::Error::other(why))
        }
    }
}

/// True for a temporary file of a process that has died. No use of one takes so long.
fn is_lost(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let run = name.and_then(|name| name.strip_suffix(checkout::BUNDLE)?.split_once('-'));
    let is_bundle = run.is_some_and(|(run, _)| run.parse::<RunId>().is_ok());
    let changed = path.symlink_metadata().and_then(|data| data.modified());
    is_bundle && changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LONGEST_USE))
}

/// Removes `worktree`, whose folder is gone, from the list of its repository. `git worktree prune` would also remove
/// worktrees of the user that the confined git cannot see.
fn forget(worktree: &Worktree) -> std::io::Result<()> {
    let own = Path::new(&worktree.folder).join(".git");
    let listed = match std::fs::read_dir(Path::new(&worktree.data).join("worktrees")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    for entry in listed {
        let data = entry?.path();
        let named = std::fs::read_to_string(data.join("gitdir")).unwrap_or_default();
        if Path::new(named.trim_end()) == own && !own.exists() {
            posse_tools::remove_folder(&data)?;
        }
    }
    Ok(())
}

/// True when a worktree with these changes holds nothing that its branch lacks.
pub(crate) fn is_taken(changes: Option<&Changes>) -> bool {
    changes.is_none_or(|changes| changes.problem.is_empty() && changes.kept.is_none())
}

/// Returns where `reference` is checked out, if that is not in `folder`. Git does not move a branch that is checked out
/// elsewhere.
async fn checked_out(git: &Git<'_>, reference: &str, folder: &str) -> Option<String> {
    let list = git.whole(&["worktree", "list", "--porcelain"]).await.ok()?;
    let mut place = None;
    for line in list.lines() {
        match line.split_once(' ') {
            Some(("worktree", path)) => place = Some(path),
            Some(("branch", branch)) if branch == reference => {
                let is_other = |path: &&str| *path != folder && Path::new(path).exists();
                return place.filter(is_other).map(str::to_owned);
            }
            _ => {}
        }
    }
    None
}

/// Whether files differ from the last commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    Same,
    Changed,
}

/// Puts all changes of a checkout into git's index.
async fn commit_all(git: &Git<'_>, base: &str) -> Result<Tree, String> {
    git.restore_protected(base).await?;
    // Overrides the settings of the user about untracked files.
    let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"];
    if git.whole(&status).await?.is_empty() {
        return Ok(Tree::Same);
    }
    git.add_all().await?;
    git.restore_protected(base).await?;
    Ok(Tree::Changed)
}

/// Describes what changed between the base of `worktree` and `commit`.
async fn described(
    git: &Git<'_>,
    worktree: &Worktree,
    commit: String,
    kept: Option<Kept>,
) -> Result<Changes, String> {
    let base = &worktree.base;
    let diff = ["diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let between = [base.as_str(), commit.as_str(), "--"];
    let numbers = git.whole(&[&diff[..], &["--numstat"], &between[..]].concat()).await?;
    let (files, added, removed) = counted(&numbers);
    let difference = match files {
        0 => String::new(),
        _ => git.whole(&[&diff[..], &between[..]].concat()).await?,
    };
    let mut end = difference.len().min(DIFFERENCE);
    while !difference.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Changes {
        branch: worktree.branch.clone(),
        commit,
        base: base.clone(),
        files,
        added,
        removed,
        problem: String::new(),
        kept,
        bundle: String::new(),
        left_out: (difference.len() - end) as u64,
        difference: difference[..end].to_owned(),
        extra: Extra::default(),
    })
}

/// Returns changes that could not be taken, and why.
pub(crate) fn stuck(worktree: &Worktree, problem: String) -> Changes {
    Changes {
        branch: worktree.branch.clone(),
        commit: String::new(),
        base: worktree.base.clone(),
        files: 0,
        added: 0,
        removed: 0,
        difference: String::new(),
        problem,
        kept: None,
        bundle: String::new(),
        left_out: 0,
        extra: Extra::default(),
    }
}

/// Counts files, added lines and removed lines in the output of `git diff --numstat`.
fn counted(numbers: &str) -> (u64, u64, u64) {
    let mut counted = (0, 0, 0);
    for line in numbers.lines() {
        let mut columns = line.split('\t');
        // A binary file has dashes.
        let mut number = || columns.next().and_then(|it| it.parse().ok()).unwrap_or(0_u64);
        counted = (counted.0 + 1, counted.1 + number(), counted.2 + number());
    }
    counted
}
