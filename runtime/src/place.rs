//! Workspaces that are no folder of one machine: checkouts of repositories, and none.

use crate::child::Above;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::tool_facts::{is_of_the_run, looks_here};
use crate::worktree::{Address, Brought, Checkout, branch_of};
use posse_protocol::{
    Effect, Extra, Grant, Isolation, Place, RepositorySite, RunId, RunSpec, RunStarted, Seq, Site,
    ToolFacts,
};
use posse_store::{Bundle, StoreError, seal_of};
use std::path::Path;
use std::sync::Arc;

/// A branch that [`Runtime::fetch`] brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The name of the branch.
    pub branch: String,
    /// Its commit.
    pub commit: String,
    /// The commit of the repository on which it stands.
    pub base: String,
    /// True if it was there already.
    pub present: bool,
    /// Why later changes of the run are not on it, if there were any.
    pub lacks: String,
}

impl Runtime {
    /// Returns where a run of `spec` in the folder `workspace` works, as a child of `above` if there is one.
    pub(crate) async fn site(
        &self,
        spec: &RunSpec,
        above: Option<&Above>,
        workspace: &str,
    ) -> Result<Site, Error> {
        let inherited = above.map(|above| &above.started.grant.site);
        match (&spec.place, inherited) {
            (Some(Place::Repository(_)), Some(Site::Nowhere)) => Err(Error::InvalidInput(
                "a child of a run without files works without files, too; it cannot work in a \
                 repository"
                    .to_owned(),
            )),
            (Some(Place::Nowhere), _) | (_, Some(Site::Nowhere)) => Ok(Site::Nowhere),
            (Some(Place::Repository(text)), above) => {
                let wrong = Error::InvalidInput;
                let address = Address::read(text, Path::new(workspace)).map_err(wrong)?;
                let same = |site: &Site| site.repository().is_some_and(|it| it.url == address.url);
                if above.is_some_and(|above| !same(above)) {
                    return Err(Error::InvalidInput(format!(
                        "a child works where its parent works, or at another commit of the same \
                         repository: {} is another one",
                        address.url
                    )));
                }
                let commit = self.inner.repositories.resolve(&address).await?;
                let (url, origin) = (address.url, origin(above, workspace));
                let (from, extra) = (String::new(), Extra::default());
                Ok(Site::Repository(RepositorySite { url, commit, from, origin, extra }))
            }
            // The parent may have been copied from a database that only this machine had.
            (None, None | Some(Site::Here)) => Ok(self.config().site_of(workspace)),
            (None, Some(site)) => Ok(site.clone()),
        }
    }

    /// Returns the state with which a child begins in its checkout, and notes it in `grant`: the present state of its
    /// parent, unless the child was started at a commit of its own.
    pub(crate) async fn begin_state(
        &self,
        run: RunId,
        spec: &RunSpec,
        above: Option<&Above>,
        grant: &mut Grant,
    ) -> Result<Option<Arc<Bundle>>, Error> {
        let (Some(above), Site::Repository(site)) = (above, &mut grant.site) else {
            return Ok(None);
        };
        site.from.clear();
        if spec.place.is_some() {
            return Ok(None);
        }
        let executed_here = self.checkout_of(above.run);
        let (tip, bundle) = match executed_here {
            Some(checkout) => checkout.for_child(run).await?,
            None => match self.inner.store.bundle(above.run).await? {
                Some(bundle) => (bundle.about.tip.clone(), Some(Arc::new(bundle))),
                None => (site.commit.clone(), None),
            },
        };
        if tip == site.commit {
            return Ok(None);
        }
        site.from = tip;
        Ok(bundle)
    }

    /// Returns the checkout of a run that this process executes.
    pub(crate) fn checkout_of(&self, run: RunId) -> Option<Arc<Checkout>> {
        let checkouts = &self.inner.checkouts;
        let mut checkouts = checkouts.lock();
        checkouts.retain(|_, checkout| checkout.strong_count() > 0);
        checkouts.get(&run)?.upgrade()
    }

    pub(crate) fn note_checkout(&self, run: RunId, checkout: &Arc<Checkout>) {
        let checkouts = &self.inner.checkouts;
        let mut checkouts = checkouts.lock();
        checkouts.insert(run, Arc::downgrade(checkout));
    }

    /// Returns `started` with the folders of this machine, if the run is bound to none.
    pub(crate) fn localised(&self, run: RunId, started: Arc<RunStarted>) -> Arc<RunStarted> {
        if !started.grant.site.is_portable() {
            return started;
        }
        let mut started = started;
        localise(self, run, &mut Arc::make_mut(&mut started).grant);
        started
    }

    /// Brings the branch with the changes of `run` into the repository around `folder`. Without a name, the branch is
    /// called like the run.
    ///
    /// # Errors
    /// When the run has left no changes in the store, or the branch exists at another commit.
    pub async fn fetch(
        &self,
        run: RunId,
        folder: &Path,
        branch: Option<&str>,
    ) -> Result<Fetched, Error> {
        let row = self.row(run).await?.ok_or(StoreError::NotFound(run))?;
        if row.log.erased {
            return Err(StoreError::Erased(run).into());
        }
        let folder = folder.canonicalize().map_err(|error| Error::Workspace {
            path: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        let started = self.start_of(run).await?;
        let Some(site) = started.grant.site.repository() else {
            return Err(Error::InvalidInput(format!(
                "run {} works in a folder, {}, and its changes are there; only runs that were \
                 started with --repo are fetched",
                run.short(),
                row.about.workspace
            )));
        };
        let bundle = self.bundle_of(run).await?;
        let is_new = |bundle: &Bundle| bundle.about.tip != site.base();
        let lacks = bundle.as_ref().map(|bundle| bundle.about.lacks.clone());
        let Some(bundle) = bundle.filter(is_new) else {
            let run = run.short();
            return Err(Error::InvalidInput(match lacks.filter(|lacks| !lacks.is_empty()) {
                Some(why) => format!(
                    "nothing that run {run} has changed could be stored: {why}; it is in the \
                     checkout of the run"
                ),
                None => format!("run {run} has changed nothing, as far as it is stored"),
            }));
        };
        let branch = branch.map_or_else(|| branch_of(run), str::to_owned);
        let folder = folder.display().to_string();
        let brought = self.inner.repositories.bring(run, &bundle, &folder, &branch).await?;
        let present = brought == Brought::Present;
        let about = bundle.about;
        let (commit, base) = (about.tip, about.base);
        Ok(Fetched { branch, commit, base, present, lacks: about.lacks })
    }
}

impl Runtime {
    /// Returns the state that a run has left in the store.
    ///
    /// # Errors
    /// When it is damaged, or another one than the log names.
    pub(crate) async fn bundle_of(&self, run: RunId) -> Result<Option<Bundle>, Error> {
        let bundle = self.inner.store.bundle(run).await?;
        let (mut sealed, mut seen) = (None, Seq::ZERO);
        loop {
            let page = self.read(run, seen, PAGE).await?;
            let Some(last) = page.last() else { break };
            seen = last.seq;
            page.iter().for_each(|record| seal_of(&record.event, &mut sealed));
        }
        let found = bundle.as_ref().map(Bundle::sha256);
        match sealed {
            Some(sealed) if found.as_ref() != Some(&sealed) => {
                let reason =
                    format!("its bundle is missing or another one; the log names {sealed}");
                Err(StoreError::Damaged { run, seq: Seq::ZERO, reason }.into())
            }
            _ => Ok(bundle),
        }
    }
}

/// How many events are read at once.
const PAGE: usize = 500;

/// The folder in which the tree of a run was started.
fn origin(above: Option<&Site>, workspace: &str) -> String {
    let above = above.and_then(Site::repository).map(|above| above.origin.clone());
    above.unwrap_or_else(|| workspace.to_owned())
}

/// Sets the folders of this machine in the grant of a run that is bound to none.
pub(crate) fn localise(runtime: &Runtime, run: RunId, grant: &mut Grant) {
    if grant.scratch.is_some() {
        grant.scratch = runtime.config().scratch_of(run);
    }
    // The skills of another machine may not be here.
    grant.skills.retain(|skill| Path::new(&skill.path).is_dir());
    match &grant.site {
        Site::Repository(site) => {
            let local = runtime.inner.repositories.local(run, site);
            grant.workspace = local.worktree.folder.clone();
            grant.worktree = Some(local.worktree);
        }
        Site::Nowhere => grant.workspace = runtime.config().nowhere().display().to_string(),
        Site::Here | Site::Host { .. } | Site::Shared => {}
    }
}

/// Takes away what needs files from a run that has none.
///
/// # Errors
/// When the agent wants a worktree.
pub(crate) fn without_files(
    tools: &mut Vec<String>,
    known: &[ToolFacts],
    isolation: Option<Isolation>,
) -> Result<(), Error> {
    if isolation.is_some() {
        let why = "an agent with `isolation: worktree` needs files, and this run works without";
        return Err(Error::InvalidInput(why.to_owned()));
    }
    let needs_files = |tool: &ToolFacts| {
        let uses = tool.uses_paths() || tool.runs_commands() || looks_here(tool);
        let acts = matches!(tool.effect, Effect::Write | Effect::Execute);
        (uses || acts) && !is_of_the_run(tool)
    };
    let may_stay = |name: &String| !known.iter().any(|it| it.name == *name && needs_files(it));
    tools.retain(may_stay);
    Ok(())
}
