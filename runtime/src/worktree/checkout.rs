//! Checkouts of repositories, in which runs work that are bound to no machine. The state of a checkout
//! is one commit on top of the commit at which the run began. As a bundle, it is stored with the log.

use super::git::Git;
use super::repository::Repositories;
use super::{BRANCHES, RepositoryError, commit_all, described, forget, left, stuck};
use posse_protocol::{Changes, Extra, Kept, RepositorySite, RunId, Worktree};
use posse_store::{Bundle, BundleAbout};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the checkout of a run is on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalCheckout {
    pub(crate) run: RunId,
    pub(crate) url: String,
    /// The commit of the repository.
    pub(crate) commit: String,
    pub(crate) worktree: Worktree,
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
}

/// The state of a checkout as the store has it.
#[derive(Debug, Default)]
struct Stored {
    tip: String,
    bundle: Option<Arc<Bundle>>,
    /// Changes of subagents that were taken over.
    merged: BTreeMap<RunId, String>,
}

/// Whether a checkout was here already, as this process left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    AsItWas,
    /// It is new. The text says which changes of the run it lacks, if there are any.
    New {
        lacks: String,
    },
}

/// What became of the changes of a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// They are in the checkout: so many files.
    Taken(usize),
    /// They do not fit, for this reason. They are on the branch only.
    Refused(String),
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
            branch: format!("{BRANCHES}{run}"),
            extra: Extra::default(),
        };
        LocalCheckout { run, url: site.url.clone(), commit: site.commit.clone(), worktree }
    }

    /// Makes the checkout of a run with the state that the store has. If this process left the checkout
    /// with that state at the end of the epoch before, it stays as it is.
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
        let left = self.known().left.remove(&local.run);
        let is_left = left.is_some_and(|(known, before)| known == tip && before + 1 == epoch);
        let lacks = bundle.as_ref().map(|it| it.about.lacks.clone()).unwrap_or_default();
        let made = match is_left && Path::new(&local.worktree.folder).join(".git").exists() {
            true => Made::AsItWas,
            false => {
                let made = self.make(&local, bundle.as_ref(), &tip).await;
                self.note(&local.url, &made);
                made?;
                Made::New { lacks }
            }
        };
        let merged = bundle.as_ref().map(|it| it.about.merged.clone()).unwrap_or_default();
        let stored = Stored { tip, bundle: bundle.map(Arc::new), merged };
        let (repositories, stored) = (self.clone(), tokio::sync::Mutex::new(stored));
        Ok((Arc::new(Checkout { repositories, local, host, stored }), made))
    }

    async fn make(
        &self,
        local: &LocalCheckout,
        bundle: Option<&Bundle>,
        tip: &str,
    ) -> Result<(), RepositoryError> {
        self.fetched(&local.url, &local.commit).await?;
        let (around, launcher) = (self.around()?, self.launcher()?);
        let worktree = &local.worktree;
        let folder = Path::new(&worktree.folder);
        self.worktrees.sweep_away(folder).await.map_err(told)?;
        forget(worktree).map_err(told)?;
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
        let file = self.file_of(run);
        let (path, data) = (file.clone(), bundle.data.clone());
        write(path, data).await?;
        let name = file.display().to_string();
        let unpacked = git.run(&["bundle", "unbundle", &name]).await;
        let _ = std::fs::remove_file(&file);
        unpacked.map_err(RepositoryError)
    }

    fn file_of(&self, run: RunId) -> PathBuf {
        self.worktrees.around.join(format!("{run}.bundle"))
    }

    /// Notes that this process leaves the checkout of a run as the store has it.
    pub(crate) async fn leave(&self, checkout: &Checkout, epoch: u64) {
        let tip = checkout.stored.lock().await.tip.clone();
        self.known().left.insert(checkout.local.run, (tip, epoch));
    }

    /// Removes a checkout and its branch.
    pub(crate) async fn remove(&self, local: &LocalCheckout) -> Result<(), RepositoryError> {
        self.known().left.remove(&local.run);
        let worktree = &local.worktree;
        self.worktrees.sweep_away(Path::new(&worktree.folder)).await.map_err(told)?;
        let _ = std::fs::remove_file(self.file_of(local.run));
        if !Path::new(&worktree.data).exists() {
            return Ok(());
        }
        forget(worktree).map_err(told)?;
        let git = Git::writing(self.launcher()?, worktree, self.around()?);
        let branch = format!("refs/heads/{}", worktree.branch);
        git.run(&["update-ref", "-d", &branch]).await.map_err(RepositoryError)
    }

    /// Brings the branch of a bundle into the repository of the user around `folder`, under the name
    /// `branch`. A branch of this name must not exist, or be the same.
    ///
    /// # Errors
    /// When there is no repository, it lacks the commit on which the branch stands, or there is another
    /// branch of this name.
    pub(crate) async fn bring(
        &self,
        run: RunId,
        bundle: &Bundle,
        folder: &str,
        branch: &str,
    ) -> Result<Brought, RepositoryError> {
        let planned = self.worktrees.plan(run, folder).await.map_err(told)?.0;
        let git = Git::writing(self.launcher()?, &planned, self.around()?);
        let name = format!("refs/heads/{branch}");
        let is_name = git.run(&["check-ref-format", &name]).await.is_ok();
        if !is_name || branch.starts_with('-') {
            return Err(RepositoryError(format!("`{branch}` cannot be the name of a branch")));
        }
        let tip = &bundle.about.tip;
        let known = git.line(&["rev-parse", "--verify", "--quiet", &name]).await;
        match known {
            Ok(known) if known == *tip => return Ok(Brought::Present),
            Ok(known) => {
                return Err(RepositoryError(format!(
                    "the branch `{branch}` exists and is at another commit, {}; name another \
                     branch with --branch",
                    &known[..known.len().min(12)]
                )));
            }
            Err(_) => {}
        }
        let base = format!("{}^{{commit}}", bundle.about.base);
        if git.run(&["cat-file", "-e", &base]).await.is_err() {
            return Err(RepositoryError(format!(
                "the repository of {folder} lacks the commit {} on which the run began; fetch it \
                 first, with `git fetch`",
                bundle.about.base
            )));
        }
        self.unpack(&git, run, bundle).await?;
        // It fails if the branch was made meanwhile.
        let none = "0".repeat(tip.len());
        let made = git.run(&["update-ref", &name, tip, &none]).await;
        made.map_err(RepositoryError)?;
        Ok(Brought::New)
    }
}

/// Whether a branch is new in the repository of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It was made.
    New,
    /// It was there already, at the same commit.
    Present,
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
        self.outside()?.in_worktree(Path::new(data), folder).map_err(RepositoryError)
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
        run().await.map_err(|why: String| RepositoryError(format!("git cannot commit: {why}")))
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
        let file = self.repositories.file_of(self.local.run);
        let name = file.display().to_string();
        let branch = format!("refs/heads/{}", self.worktree().branch);
        let until = format!("^{}", self.local.commit);
        let made = git.run(&["bundle", "create", "--quiet", &name, &branch, &until]).await;
        made.map_err(|why| RepositoryError(format!("git cannot bundle: {why}")))?;
        let bytes = std::fs::metadata(&file).map_err(told)?.len();
        let read = async {
            if bytes > most as u64 {
                return Err(RepositoryError(format!(
                    "the changes are {bytes} bytes, and at most {most} are stored"
                )));
            }
            tokio::fs::read(&file).await.map_err(told)
        };
        let read = read.await;
        let _ = std::fs::remove_file(&file);
        Ok(read?.into())
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
        let tip = self.snapshot(&self.inside()?).await?;
        if tip == self.local.commit {
            return Ok((tip, None));
        }
        let data = self.bundle(&self.outside()?, &tip, Bundle::MOST).await?;
        let mut about = self.about(tip.clone(), &Stored::default());
        about.branch = format!("{BRANCHES}{child}");
        Ok((tip, Some(Arc::new(Bundle { about, data }))))
    }

    /// Returns the present state, if it differs from the stored one and has at most `most` bytes.
    pub(crate) async fn state(&self, most: usize) -> NewState {
        let stored = self.stored.lock().await;
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
            Ok(bundle) => return NewState { bundle, problem: None },
            Err(error) => error,
        };
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
        stored.tip.clone_from(&bundle.about.tip);
        stored.bundle = Some(bundle);
    }

    /// Describes the changes of a run that ends with `state`; `None` if nothing was changed.
    pub(crate) async fn changes(&self, state: &NewState) -> Option<Changes> {
        let place = self.place();
        let problem = |why: &str| stuck(self.worktree(), format!("{why}; it still is in {place}"));
        if let Some(why) = &state.problem {
            return Some(problem(why));
        }
        let stored = self.stored.lock().await;
        let bundle = state.bundle.as_ref().or(stored.bundle.as_ref());
        let tip = bundle.map_or(&stored.tip, |bundle| &bundle.about.tip).clone();
        let described = async {
            let git = self.inside()?;
            let kept = left::kept(&git, &self.worktree().folder).await.map_err(RepositoryError)?;
            let kept = kept.map(|kept| Kept { folder: place.clone(), ..kept });
            described(&git, self.worktree(), tip, kept).await.map_err(RepositoryError)
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

    /// True when the changes of `child` up to the commit `tip` were looked at.
    pub(crate) async fn has_merged(&self, child: RunId, tip: &str) -> bool {
        self.stored.lock().await.merged.get(&child).is_some_and(|known| known == tip)
    }

    /// Takes over the changes of a subagent that began with the commit `from`.
    ///
    /// # Errors
    /// When git fails. Nothing has changed then.
    pub(crate) async fn merge(
        &self,
        child: RunId,
        from: &str,
        bundle: &Bundle,
    ) -> Result<Merge, RepositoryError> {
        let mut stored = self.stored.lock().await;
        let (outside, inside) = (self.outside()?, self.inside()?);
        self.repositories.unpack(&outside, self.local.run, bundle).await?;
        let tip = &bundle.about.tip;
        point(&outside, &format!("{BRANCHES}{child}"), tip).await?;
        let own = self.snapshot(&inside).await?;
        // The own state on top of the commit at which the child began, so that git takes this as the base.
        let tree = format!("{own}^{{tree}}");
        let beside = ["commit-tree", &tree, "-p", from, "-m", "Merge"];
        let beside = outside.line(&beside).await.map_err(RepositoryError)?;
        let merge = ["merge-tree", "--write-tree", "--messages", &beside, tip];
        let merged = match outside.line(&merge).await {
            // The first line of a conflict is the id of a tree, too.
            Err(why) => {
                let lines = why.lines().filter(|line| line.starts_with("CONFLICT"));
                let conflicts: Vec<&str> = lines.collect();
                let why = if conflicts.is_empty() { why } else { conflicts.join("; ") };
                Merge::Refused(why.chars().take(500).collect())
            }
            Ok(tree) => {
                let names = ["diff-tree", "-r", "-z", "--name-only", &own, &tree];
                let changed = inside.list(&names).await.map_err(RepositoryError)?;
                let update = inside.run(&["read-tree", "-m", "-u", &own, &tree]).await;
                update.map_err(RepositoryError)?;
                Merge::Taken(changed.split('\0').filter(|it| !it.is_empty()).count())
            }
        };
        stored.merged.insert(child, tip.clone());
        Ok(merged)
    }
}

/// Makes the branch point to `tip`.
async fn point(git: &Git<'_>, branch: &str, tip: &str) -> Result<(), RepositoryError> {
    let name = format!("refs/heads/{branch}");
    git.run(&["update-ref", &name, tip]).await.map_err(RepositoryError)
}

async fn write(path: PathBuf, data: Arc<[u8]>) -> Result<(), RepositoryError> {
    tokio::fs::write(path, &data).await.map_err(told)
}

fn told(error: impl std::fmt::Display) -> RepositoryError {
    RepositoryError(error.to_string())
}
