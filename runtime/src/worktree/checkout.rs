//! Checkouts of repositories, in which runs work that are bound to no machine. The state of a checkout
//! is one commit on top of the commit at which the run began. As a bundle, it is stored with the log.

mod bring;
mod merge;

pub use bring::Brought;
pub(crate) use merge::Merge;

use super::git::Git;
use super::owner::Owner;
use super::repository::Repositories;
use super::{BRANCHES, STILL_IN, commit_all, described, forget, left, stuck};
use crate::error::RepositoryError;
use parking_lot::Mutex;
use posse_protocol::{Changes, Extra, Kept, RepositorySite, RunId, Seq, Worktree};
use posse_store::{Bundle, BundleAbout};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempPath;

/// The extension of temporary files with bundles.
pub(super) const BUNDLE: &str = ".bundle";

/// The most bytes of a state that is stored with each step.
const SMALL: usize = 4 << 20;

/// How often a larger state is stored with a step.
const SELDOM: Duration = Duration::from_secs(60);

/// How often a process asks for a checkout that another one still has, and how long it waits in between.
const ASKED: u32 = 20;
const BREAK: Duration = Duration::from_millis(50);

/// Where the checkout of a run is on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalCheckout {
    pub(crate) run: RunId,
    pub(crate) url: String,
    /// The commit of the repository.
    pub(crate) commit: String,
    pub(crate) worktree: Worktree,
}

impl LocalCheckout {
    /// Describes what the store has of a run that ends where its checkout cannot be made; `None` if it has no changes.
    pub(crate) fn stored(&self, bundle: &Bundle) -> Option<Changes> {
        let about = &bundle.about;
        if about.tip == self.worktree.base && about.lacks.is_empty() {
            return None;
        }
        let (why, bundle) = match about.lacks.as_str() {
            "" => (String::new(), bundle.sha256()),
            // Where they are is not known here.
            lacks => (format!(", but not the latest changes: {lacks}"), String::new()),
        };
        let problem = format!(
            "the run ended where its checkout could not be made; its branch is stored{why}"
        );
        let commit = about.tip.clone();
        Some(Changes { commit, bundle, ..stuck(&self.worktree, problem) })
    }
}

/// The checkout of a run that this process executes.
#[derive(Debug)]
pub(crate) struct Checkout {
    repositories: Repositories,
    local: LocalCheckout,
    /// The name of this machine; empty if it is the only one.
    host: String,
    /// What the store has. Who holds this lock may use git in the checkout.
    stored: tokio::sync::Mutex<Stored>,
    /// Until this process leaves the checkout.
    owner: Mutex<Option<(Owner, u64)>>,
    /// The children whose changes were looked at, with the ends of their logs.
    looked: Mutex<HashMap<RunId, Seq>>,
}

/// The state of a checkout as the store has it.
#[derive(Debug, Default)]
struct Stored {
    tip: String,
    bundle: Option<Arc<Bundle>>,
    /// Changes of subagents that were taken over.
    merged: BTreeMap<RunId, String>,
    /// When a large state was last stored with a step.
    large: Option<Instant>,
}

/// Whether a checkout was on this machine already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Yes, as the store has it.
    AsItWas,
    /// Yes, as a process that died left it. It may have changes that the store lacks.
    Found,
    /// It is new. The text says which changes of the run it lacks, if there are any.
    New { lacks: String },
}

/// How much of a state is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// What a step can store: a small state, or sometimes a larger one.
    Step,
    /// All that the store takes, since the run ends or changes hands.
    Whole,
}

/// A state to store.
pub(crate) struct NewState {
    /// In place of the stored one, if that is another one.
    pub(crate) bundle: Option<Arc<Bundle>>,
    /// Why the state of the checkout is not in it.
    pub(crate) problem: Option<String>,
}

impl Repositories {
    /// Returns where the checkout of `run` is on this machine. It makes nothing.
    pub(crate) fn local(&self, run: RunId, site: &RepositorySite) -> LocalCheckout {
        let text = |path: PathBuf| path.display().to_string();
        let folder = text(self.worktrees.around.join(run.to_string()));
        let data = text(self.copy_of(&site.url));
        let worktree = Worktree {
            repository: data.clone(),
            origin: data.clone(),
            data,
            folder,
            base: site.base().to_owned(),
            branch: branch_of(run),
            extra: Extra::default(),
        };
        LocalCheckout { run, url: site.url.clone(), commit: site.commit.clone(), worktree }
    }

    /// Makes the checkout of a run with the state that the store has. If the owner before was on this machine, too, its
    /// checkout stays as it is: nothing of it is older than what the store has.
    ///
    /// # Errors
    /// When the repository cannot be fetched, or git fails.
    pub(crate) async fn enter(
        &self,
        local: LocalCheckout,
        bundle: Option<Bundle>,
        epoch: u64,
        host: String,
    ) -> Result<(Arc<Checkout>, Made), RepositoryError> {
        let tip = match &bundle {
            Some(bundle) => bundle.about.tip.clone(),
            None => local.worktree.base.clone(),
        };
        let lacks = bundle.as_ref().map(|it| it.about.lacks.clone()).unwrap_or_default();
        let mut owner = self.own(&local).await?;
        let former = owner.former(epoch).filter(|_| is_complete(&local.worktree));
        let made = match former {
            Some(former) => {
                unlock(&local.worktree);
                match former.has_stored_all && lacks.is_empty() {
                    true => Made::AsItWas,
                    false => Made::Found,
                }
            }
            None => {
                let made = self.make(&local, bundle.as_ref(), &tip, &mut owner).await;
                self.note(&local.url, &made);
                made?;
                Made::New { lacks }
            }
        };
        owner.enter(epoch).map_err(told)?;
        let merged = bundle.as_ref().map(|it| it.about.merged.clone()).unwrap_or_default();
        let stored = Stored { tip, bundle: bundle.map(Arc::new), merged, large: None };
        let checkout = Checkout {
            repositories: self.clone(),
            local,
            host,
            stored: tokio::sync::Mutex::new(stored),
            owner: Mutex::new(Some((owner, epoch))),
            looked: Mutex::default(),
        };
        Ok((Arc::new(checkout), made))
    }

    /// Returns the right to use the checkout of a run. An owner that has just left may still have it.
    async fn own(&self, local: &LocalCheckout) -> Result<Owner, RepositoryError> {
        self.around()?;
        for _ in 0..ASKED {
            if let Some(owner) = Owner::claim(&self.mark_of(local.run)).map_err(told)? {
                return Ok(owner);
            }
            tokio::time::sleep(BREAK).await;
        }
        Err(RepositoryError::InUse(format!(
            "another process on this machine still has the checkout {}; it may be stopped or paused",
            local.worktree.folder
        )))
    }

    /// Returns the file that says which owner of a run has its checkout.
    fn mark_of(&self, run: RunId) -> PathBuf {
        self.worktrees.around.join(format!("{run}.owner"))
    }

    async fn make(
        &self,
        local: &LocalCheckout,
        bundle: Option<&Bundle>,
        tip: &str,
        owner: &mut Owner,
    ) -> Result<(), RepositoryError> {
        self.fetched(&local.url, &local.commit).await?;
        // Only now: until here, the former checkout stays, with what the store may lack.
        owner.begin().map_err(told)?;
        let (around, launcher) = (self.around()?, self.launcher()?);
        let worktree = &local.worktree;
        let folder = Path::new(&worktree.folder);
        self.worktrees.sweep_away(folder).await.map_err(told)?;
        forget(worktree).map_err(told)?;
        unlock(worktree);
        let git = Git::writing(launcher, worktree, around);
        if let Some(bundle) = bundle {
            self.unpack(&git, local.run, bundle).await?;
        }
        point(&git, &worktree.branch, tip).await?;
        self.worktrees.make(worktree).await.map_err(told)?;
        Ok(())
    }

    /// Brings the commits of `bundle` into the copy of its repository.
    async fn unpack(
        &self,
        git: &Git<'_>,
        run: RunId,
        bundle: &Bundle,
    ) -> Result<(), RepositoryError> {
        if bundle.data.is_empty() {
            return Ok(());
        }
        let data = bundle.data.clone();
        let file = self.new_file(run, data).await?;
        let heads = git.whole(&["bundle", "unbundle", &file.display().to_string()]).await;
        let heads = heads.map_err(RepositoryError::Local)?;
        match heads.split_whitespace().next() == Some(&bundle.about.tip) {
            true => Ok(()),
            false => Err(RepositoryError::Local(format!(
                "the bundle of run {run} has another commit than {}",
                bundle.about.tip
            ))),
        }
    }

    /// Makes a temporary file for a bundle. It is removed when it is dropped.
    async fn new_file(&self, run: RunId, data: Arc<[u8]>) -> Result<TempPath, RepositoryError> {
        let around = self.around()?.to_owned();
        let prefix = format!("{run}-");
        let making = move || {
            let mut named = tempfile::Builder::new();
            let mut file = named.prefix(&prefix).suffix(BUNDLE).tempfile_in(around)?;
            file.write_all(&data)?;
            Ok::<TempPath, std::io::Error>(file.into_temp_path())
        };
        tokio::task::spawn_blocking(making).await.map_err(told)?.map_err(told)
    }

    /// Removes a checkout that no process uses, and its branch.
    ///
    /// # Errors
    /// When a process uses it, or git fails.
    pub(crate) async fn remove(&self, local: &LocalCheckout) -> Result<(), RepositoryError> {
        let owner = self.own(local).await?;
        self.remove_owned(local, owner, Vec::new()).await
    }

    /// Removes the checkout of this process and its branch, and the branches of children whose changes it took over.
    pub(crate) async fn remove_own(&self, checkout: &Checkout) -> Result<(), RepositoryError> {
        let merged = checkout.stored.lock().await.merged.keys().copied().collect();
        let Some((owner, _)) = checkout.owner.lock().take() else { return Ok(()) };
        self.remove_owned(&checkout.local, owner, merged).await
    }

    async fn remove_owned(
        &self,
        local: &LocalCheckout,
        owner: Owner,
        merged: Vec<RunId>,
    ) -> Result<(), RepositoryError> {
        let worktree = &local.worktree;
        self.worktrees.sweep_away(Path::new(&worktree.folder)).await.map_err(told)?;
        if !Path::new(&worktree.data).exists() {
            owner.remove();
            return Ok(());
        }
        forget(worktree).map_err(told)?;
        let git = Git::writing(self.launcher()?, worktree, self.around()?);
        for run in merged.into_iter().chain([local.run]) {
            let branch = format!("refs/heads/{}", branch_of(run));
            git.run(&["update-ref", "-d", &branch]).await.map_err(RepositoryError::Local)?;
        }
        owner.remove();
        Ok(())
    }

    /// Returns changes of a checkout that no process uses, if they are only there.
    pub(crate) fn only_there(&self, local: &LocalCheckout) -> Option<Changes> {
        let owner = Owner::claim(&self.mark_of(local.run));
        let is_lacking = owner.ok().flatten().is_some_and(|mut owner| owner.is_lacking());
        let place = &local.worktree.folder;
        let problem = || format!("the store lacks the latest of it{STILL_IN}{place}");
        is_lacking.then(|| stuck(&local.worktree, problem()))
    }

    /// Removes the folder of a checkout that no process uses. Returns false if it stays. What its copy knows of it goes
    /// with the next checkout there.
    pub(crate) async fn sweep_away(&self, run: RunId, folder: &Path) -> bool {
        let Ok(Some(owner)) = Owner::claim(&self.mark_of(run)) else { return false };
        let is_gone = self.worktrees.sweep_away(folder).await.is_ok();
        if is_gone {
            owner.remove();
        }
        is_gone
    }
}

impl Checkout {
    fn worktree(&self) -> &Worktree {
        &self.local.worktree
    }

    /// Returns a git for the copy of the repository.
    fn outside(&self) -> Result<Git<'_>, RepositoryError> {
        let Repositories { worktrees, .. } = &self.repositories;
        Ok(Git::writing(self.repositories.launcher()?, self.worktree(), &worktrees.around))
    }

    /// Returns a git for the files.
    fn inside(&self) -> Result<Git<'_>, RepositoryError> {
        let Worktree { data, folder, .. } = self.worktree();
        self.outside()?.in_worktree(Path::new(data), folder).map_err(RepositoryError::Local)
    }

    /// Makes one commit of all files, and returns its id.
    async fn snapshot(&self, git: &Git<'_>) -> Result<String, RepositoryError> {
        let Worktree { base, branch, .. } = self.worktree();
        let run = async || {
            commit_all(git, base).await?;
            let tree = git.line(&["write-tree"]).await?;
            let tree_of = async |commit: &str| {
                git.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await
            };
            if tree_of("HEAD").await? == tree {
                return git.line(&["rev-parse", "--verify", "HEAD"]).await;
            }
            let tip = match tree_of(base).await? == tree {
                true => base.clone(),
                false => {
                    let message = format!("What run {} changed", self.local.run);
                    git.line(&["commit-tree", &tree, "-p", base, "-m", &message]).await?
                }
            };
            git.run(&["update-ref", &format!("refs/heads/{branch}"), &tip]).await?;
            Ok(tip)
        };
        run()
            .await
            .map_err(|why: String| RepositoryError::Local(format!("git cannot commit: {why}")))
    }

    /// Makes a bundle of the commit `tip` of at most `most` bytes.
    async fn bundle(
        &self,
        git: &Git<'_>,
        tip: &str,
        most: usize,
    ) -> Result<Arc<[u8]>, RepositoryError> {
        if tip == self.local.commit {
            return Ok(Arc::new([]));
        }
        let file = self.repositories.new_file(self.local.run, Arc::new([])).await?;
        let name = file.display().to_string();
        let branch = format!("refs/heads/{}", self.worktree().branch);
        let until = format!("^{}", self.local.commit);
        let made = git.run(&["bundle", "create", "--quiet", &name, &branch, &until]).await;
        made.map_err(|why| RepositoryError::Local(format!("git cannot bundle: {why}")))?;
        let bytes = std::fs::metadata(&file).map_err(told)?.len();
        if bytes > most as u64 {
            let why = match most < Bundle::MOST && bytes <= Bundle::MOST as u64 {
                true => format!("the changes are {bytes} bytes, and so many are stored seldom"),
                false => format!("the changes are {bytes} bytes, and at most {most} are stored"),
            };
            return Err(RepositoryError::Local(why));
        }
        let heads = git.line(&["bundle", "list-heads", &name]).await;
        if heads.map_err(RepositoryError::Local)?.split(' ').next() != Some(tip) {
            let why = "the branch of the run was changed meanwhile".to_owned();
            return Err(RepositoryError::Local(why));
        }
        Ok(tokio::fs::read(&file).await.map_err(told)?.into())
    }

    fn about(&self, tip: String, stored: &Stored) -> BundleAbout {
        BundleAbout {
            tip,
            base: self.local.commit.clone(),
            branch: self.worktree().branch.clone(),
            merged: stored.merged.clone(),
            ..BundleAbout::default()
        }
    }

    /// Returns the present state for a subagent that begins with it: the commit, and a bundle if the
    /// repository does not have the commit.
    pub(crate) async fn for_child(
        &self,
        child: RunId,
    ) -> Result<(String, Option<Arc<Bundle>>), RepositoryError> {
        let _alone = self.stored.lock().await;
        unlock(self.worktree());
        let tip = self.snapshot(&self.inside()?).await?;
        if tip == self.local.commit {
            return Ok((tip, None));
        }
        let data = self.bundle(&self.outside()?, &tip, Bundle::MOST).await?;
        let mut about = self.about(tip.clone(), &Stored::default());
        about.branch = branch_of(child);
        Ok((tip, Some(Arc::new(Bundle { about, data }))))
    }

    /// Returns the present state, if it differs from the stored one and can be stored now.
    pub(crate) async fn state(&self, share: Share) -> NewState {
        let mut stored = self.stored.lock().await;
        unlock(self.worktree());
        let is_soon = stored.large.is_some_and(|at| at.elapsed() < SELDOM);
        let most = if share == Share::Step && is_soon { SMALL } else { Bundle::MOST };
        let now = async {
            let tip = self.snapshot(&self.inside()?).await?;
            let before = stored.bundle.as_ref();
            let is_same = tip == stored.tip
                && before.is_none_or(|it| it.about.lacks.is_empty())
                && before.map_or(stored.merged.is_empty(), |it| it.about.merged == stored.merged);
            if is_same {
                return Ok(None);
            }
            let data = self.bundle(&self.outside()?, &tip, most).await?;
            Ok(Some(Arc::new(Bundle { about: self.about(tip, &stored), data })))
        };
        let problem: RepositoryError = match now.await {
            Ok(bundle) => {
                if bundle.as_ref().is_some_and(|it: &Arc<Bundle>| it.data.len() > SMALL) {
                    stored.large = Some(Instant::now());
                }
                return NewState { bundle, problem: None };
            }
            Err(error) => error,
        };
        self.note(true);
        // The stored state stays, and says what it lacks.
        let lacks = problem.to_string();
        let bundle = match &stored.bundle {
            Some(before) if !before.about.lacks.is_empty() => None,
            Some(before) => {
                let about = BundleAbout { lacks: lacks.clone(), ..before.about.clone() };
                Some(Bundle { about, data: before.data.clone() })
            }
            None => {
                let about = self.about(stored.tip.clone(), &Stored::default());
                let about = BundleAbout { lacks: lacks.clone(), ..about };
                Some(Bundle { about, data: Arc::new([]) })
            }
        };
        NewState { bundle: bundle.map(Arc::new), problem: Some(lacks) }
    }

    /// Notes that the store has this state now.
    pub(crate) async fn is_stored(&self, bundle: Arc<Bundle>) {
        let mut stored = self.stored.lock().await;
        if bundle.about.lacks.is_empty() {
            self.note(false);
        }
        stored.tip.clone_from(&bundle.about.tip);
        stored.bundle = Some(bundle);
    }

    /// Notes beside the checkout whether the store lacks finished changes.
    fn note(&self, is_lacking: bool) {
        if let Some((owner, epoch)) = &mut *self.owner.lock() {
            // If this fails, the disk is full, and the end of the run says so.
            let _ = owner.note(*epoch, is_lacking);
        }
    }

    /// Leaves the checkout to the next owner of the run.
    pub(crate) fn leave(&self, state: &NewState) {
        if let Some((owner, epoch)) = self.owner.lock().take() {
            owner.leave(epoch, state.problem.is_none());
        }
    }

    /// Describes the changes of a run that ends with `state`; `None` if nothing was changed.
    pub(crate) async fn changes(&self, state: &NewState) -> Option<Changes> {
        let place = self.place();
        let problem = |why: &str| stuck(self.worktree(), format!("{why}{STILL_IN}{place}"));
        if let Some(why) = &state.problem {
            return Some(problem(why));
        }
        let stored = self.stored.lock().await;
        let bundle = state.bundle.as_ref().or(stored.bundle.as_ref());
        let tip = bundle.map_or(&stored.tip, |bundle| &bundle.about.tip).clone();
        let described = async {
            let git = self.inside()?;
            let kept =
                left::kept(&git, &self.worktree().folder).await.map_err(RepositoryError::Local)?;
            let kept = kept.map(|kept| Kept { folder: place.clone(), ..kept });
            described(&git, self.worktree(), tip, kept).await.map_err(RepositoryError::Local)
        };
        match described.await {
            Ok(changes) if changes.files == 0 && changes.kept.is_none() => None,
            Ok(changes) => {
                let bundle = bundle.filter(|_| changes.files > 0);
                let bundle = bundle.map(|bundle| bundle.sha256()).unwrap_or_default();
                Some(Changes { bundle, ..changes })
            }
            Err(error) => Some(problem(&error.to_string())),
        }
    }

    /// The folder of the checkout, with the name of the machine.
    pub(crate) fn place(&self) -> String {
        match self.host.as_str() {
            "" => self.worktree().folder.clone(),
            host => format!("{host}:{}", self.worktree().folder),
        }
    }

    pub(crate) fn local(&self) -> &LocalCheckout {
        &self.local
    }
}

/// Makes the branch point to `tip`.
async fn point(git: &Git<'_>, branch: &str, tip: &str) -> Result<(), RepositoryError> {
    let name = format!("refs/heads/{branch}");
    git.run(&["update-ref", &name, tip]).await.map_err(RepositoryError::Local)
}

/// True when git has finished making the worktree.
fn is_complete(worktree: &Worktree) -> bool {
    let folder = Path::new(&worktree.folder);
    let name = folder.file_name().unwrap_or_default();
    let index = Path::new(&worktree.data).join("worktrees").join(name).join("index");
    folder.join(".git").exists() && index.exists()
}

/// Removes what a git that was killed holds locked. Only the owner of the run uses these.
fn unlock(worktree: &Worktree) {
    let data = Path::new(&worktree.data);
    let own =
        data.join("worktrees").join(Path::new(&worktree.folder).file_name().unwrap_or_default());
    let branch = data.join("refs/heads").join(format!("{}.lock", worktree.branch));
    for lock in [own.join("index.lock"), own.join("HEAD.lock"), branch] {
        // Mostly, there is none.
        let _ = std::fs::remove_file(lock);
    }
}

/// Returns the branch of a run.
pub(crate) fn branch_of(run: RunId) -> String {
    format!("{BRANCHES}{run}")
}

fn told(error: impl std::fmt::Display) -> RepositoryError {
    RepositoryError::Local(error.to_string())
}
