//! Prepares the place of a run that is bound to no machine: a checkout of its repository, or an empty
//! folder.

use super::{Executor, Next, is_stopped};
use crate::error::{Error, RepositoryError};
use crate::journal::{InCheckout, RunJournal};
use crate::runtime::Inner;
use crate::stall::Pulse;
use crate::supervisor::{Again, Left};
use crate::tool_facts::{only_looks, tools_of};
use crate::worktree::{Checkout, Made, Merge, branch_of, check_is_own};
use posse_agent::Journal;
use posse_protocol::{
    Effect, Event, Extra, Message, MessageReceived, RepositorySite, RunId, RunStarted, Sender, Seq,
};
use posse_store::{Bundle, Filter, Kin, Ownership, RunRow, StoreError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a process that has the only workers tries to fetch a repository.
const TRIES: u32 = 3;

/// How long it waits in between.
const WAIT: Duration = Duration::from_secs(2);

/// How often a run that fetches a repository shows that it lives.
const BEAT: Duration = Duration::from_secs(5);

impl Executor {
    /// Makes the folder of a run that is bound to no machine.
    pub(super) async fn take_place(
        &self,
        run: RunId,
        started: &Arc<RunStarted>,
        journal: &RunJournal,
        epoch: u64,
        pulse: &Pulse,
        stop: &CancellationToken,
    ) -> Result<(), Next> {
        // The caller that starts a run need not wait for this.
        if journal.is_unborn() {
            let stored = journal.hand_over(Vec::new(), None, Ownership::Mine).await;
            stored.map_err(unusable)?;
        }
        let Some(site) = started.grant.site.repository() else {
            return match make_empty(started.grant.workspace.as_ref()) {
                Ok(()) => Ok(()),
                Err(error) => {
                    let why = format!("the empty folder of the run cannot be made: {error}");
                    journal.tell_held(&why);
                    // Another machine may be able to make it.
                    Err(match self.config().scheduling.worker.host.is_empty() {
                        true => Next::Leave(self.fail(run, journal, &why).await),
                        false => self.give_back(journal).await,
                    })
                }
            };
        };
        let (place, made) = match journal.checkout() {
            // The run goes on in this process, without a break.
            Some(place) => (place, Made::AsItWas),
            None => {
                let entered = self.enter(run, site, journal, epoch, pulse);
                let (checkout, made) = tokio::select! {
                    entered = entered => entered?,
                    // The worker that executes the run next begins again.
                    () = stop.cancelled() => {
                        let _ = journal.hand_over(Vec::new(), None, Ownership::Queued).await;
                        return Err(Next::Leave(Left::AtRest));
                    }
                };
                (self.work_in(run, started, journal, &checkout, &made), made)
            }
        };
        let checkout = &place.checkout;
        let Ok(records) = journal.read_after(Seq::ZERO).await else {
            return Err(Next::Later(None));
        };
        let mut news = Vec::new();
        let has_worked = records.iter().any(|it| matches!(it.event, Event::ModelReplied(_)));
        if let Made::New { lacks } = made
            && has_worked
        {
            let end = records.iter().rev().find_map(|it| match &it.event {
                Event::RunFinished(finished) => Some(finished.changes.as_ref()),
                _ => None,
            });
            // What the end of a run that goes on could not store.
            let problem = end.flatten().map(|changes| changes.problem.as_str());
            let lacks = if lacks.is_empty() { problem.unwrap_or_default() } else { &lacks };
            news.push(moved(checkout, lacks));
        }
        if started.grant.delegation.is_some() {
            let taken = self.take_over(run, checkout, pulse).await.map_err(unusable)?;
            place.touched.fetch_or(!taken.is_empty(), Ordering::Relaxed);
            news.extend(taken);
        }
        if news.is_empty() {
            return Ok(());
        }
        let told = Event::MessageReceived(MessageReceived {
            from: Sender::Workspace,
            message: Message::user(news.join("\n")),
            later: false,
            asks: None,
            extra: Extra::default(),
        });
        journal.hand_over(vec![told], None, Ownership::Mine).await.map(|_| ()).map_err(unusable)
    }

    /// Makes the checkout of a run.
    async fn enter(
        &self,
        run: RunId,
        site: &RepositorySite,
        journal: &RunJournal,
        epoch: u64,
        pulse: &Pulse,
    ) -> Result<(Arc<Checkout>, Made), Next> {
        let Inner { store, repositories, .. } = &*self.runtime.inner;
        let bundle = match store.bundle(run).await {
            Ok(bundle) => bundle,
            Err(StoreError::Damaged { reason, .. }) => {
                return Err(Next::Leave(self.fail(run, journal, &reason).await));
            }
            Err(error) => return Err(unusable(error)),
        };
        let host = &self.config().scheduling.worker.host;
        let mut tries = 0;
        loop {
            let local = repositories.local(run, site);
            let enter = repositories.enter(local, bundle.clone(), epoch, host.clone());
            let error = tokio::select! {
                entered = alive(pulse, Box::pin(enter)) => match entered {
                    Ok(entered) => return Ok(entered),
                    Err(error) => Some(error),
                },
                // A run that was asked to stop needs no files for that.
                () = asked_to_stop(journal) => None,
            };
            let unmade = async |why: &str| {
                let local = repositories.local(run, site);
                journal.works_nowhere(bundle.as_ref().and_then(|it| local.stored(it)));
                Next::Leave(self.fail(run, journal, why).await)
            };
            let error = match error {
                None => return Err(unmade("it was stopped").await),
                Some(RepositoryError::Missing(why)) => return Err(unmade(&why).await),
                Some(error) => {
                    // A process that is paused ends its part as soon as it goes on.
                    tries += u32::from(!matches!(error, RepositoryError::InUse(_)));
                    error.to_string()
                }
            };
            journal.tell_held(&error);
            match host.is_empty() {
                // Other workers may reach it.
                false => return Err(self.give_back(journal).await),
                true if tries >= TRIES => return Err(unmade(&error).await),
                true => tokio::time::sleep(WAIT).await,
            }
        }
    }

    /// Gives a run back to the queue, for other workers.
    async fn give_back(&self, journal: &RunJournal) -> Next {
        match journal.hand_over(Vec::new(), None, Ownership::Queued).await {
            Err(error @ StoreError::Unusable { .. }) => unusable(error),
            _ => Next::Leave(Left::ToOthers(Again::Later)),
        }
    }

    /// Lets the journal store the state of a checkout.
    fn work_in(
        &self,
        run: RunId,
        started: &RunStarted,
        journal: &RunJournal,
        checkout: &Arc<Checkout>,
        made: &Made,
    ) -> InCheckout {
        let tools = tools_of(&started.grant).into_iter();
        let looking =
            tools.filter(|tool| only_looks(tool) || matches!(tool.effect, Effect::Delegate));
        let place = InCheckout {
            repositories: self.runtime.inner.repositories.clone(),
            checkout: checkout.clone(),
            looking: Arc::new(looking.map(|tool| tool.name).collect()),
            touched: Arc::new(AtomicBool::new(*made == Made::Found)),
        };
        journal.works_in_checkout(place.clone());
        self.runtime.note_checkout(run, checkout);
        if *made != Made::AsItWas {
            // Tools of a waiting session have the former folder open.
            let mut parked = self.parked.lock();
            parked.retain(|session| session.run != run);
        }
        place
    }

    /// Takes over what children that have completed changed. Returns what to tell the model.
    ///
    /// # Errors
    /// When the store cannot be used now.
    async fn take_over(
        &self,
        run: RunId,
        checkout: &Checkout,
        pulse: &Pulse,
    ) -> Result<Vec<String>, StoreError> {
        let limit = usize::MAX >> 1;
        let kin = Kin::ChildrenOf(run);
        let store = &self.runtime.inner.store;
        let children = store.list(&Filter { kin, limit, ..Filter::default() }).await?;
        let mut news = Vec::new();
        for child in children.iter().rev().filter(|row| row.has_completed()) {
            if child.log.erased || checkout.has_looked_at(child.id, child.log.last_seq) {
                continue;
            }
            let told = match self.left_by(child).await {
                Ok(None) => None,
                Ok(Some((site, bundle))) => {
                    let taking = Box::pin(take(checkout, child, &site, &bundle));
                    alive(pulse, taking).await
                }
                Err(Error::Store(StoreError::Unusable { path, reason })) => {
                    return Err(StoreError::Unusable { path, reason });
                }
                Err(Error::Store(StoreError::Full)) => return Err(StoreError::Full),
                Err(Error::ShuttingDown) => return Err(StoreError::Closed),
                // The others are not to blame.
                Err(error) => Some(format!("[{} cannot be read: {error}.]", whose(child))),
            };
            checkout.look_at(child.id, child.log.last_seq);
            news.extend(told);
        }
        Ok(news)
    }

    /// Returns where a child worked and its bundle, if it has changed something in a checkout.
    async fn left_by(&self, child: &RunRow) -> Result<Option<(RepositorySite, Bundle)>, Error> {
        let started = self.runtime.start_of(child.id).await?;
        let Some(site) = started.grant.site.repository() else { return Ok(None) };
        let bundle = self.runtime.bundle_of(child.id).await?;
        let has_changes = |it: &Bundle| it.about.tip != site.base() || !it.about.lacks.is_empty();
        Ok(bundle.filter(has_changes).map(|bundle| (site.clone(), bundle)))
    }
}

/// Takes over the changes of one child. Returns what to tell the model.
async fn take(
    checkout: &Checkout,
    child: &RunRow,
    site: &RepositorySite,
    bundle: &Bundle,
) -> Option<String> {
    let (tip, from) = (&bundle.about.tip, site.base());
    if checkout.has_merged(child.id, tip).await {
        return None;
    }
    let (who, branch) = (whose(child), branch_of(child.id));
    let lacks = match bundle.about.lacks.as_str() {
        "" => String::new(),
        why => format!(" Later changes of it are LOST, since they could not be stored ({why})."),
    };
    let told = match checkout.merge(child.id, site, bundle).await {
        // A process that died may have taken them over, and not told of it.
        Ok(Merge::Taken(0)) => format!("{who} are in your working folder already."),
        Ok(Merge::Taken(1)) => format!("{who} are in your working folder now: 1 file."),
        Ok(Merge::Taken(files)) => {
            format!("{who} are in your working folder now: {files} files.")
        }
        Ok(Merge::Refused(why)) => format!(
            "{who} do not fit into your working folder: {why}. They are on the branch {branch}; \
             `git diff {from} {branch}` shows them."
        ),
        Err(error) => format!(
            "{who} could not be brought into your working folder: {error}. They are stored as the \
             branch {branch} of that run."
        ),
    };
    Some(format!("[{told}{lacks}]"))
}

fn whose(child: &RunRow) -> String {
    format!("the changes of run {} ({})", child.id, child.about.agent)
}

/// Makes an empty folder, unless it is there.
fn make_empty(folder: &Path) -> std::io::Result<()> {
    if let Some(around) = folder.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(around)?;
    }
    match std::fs::DirBuilder::new().mode(0o500).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_is_own(folder),
        made => made,
    }
}

/// What the model is told when its run continues in a new checkout.
fn moved(checkout: &Checkout, lacks: &str) -> String {
    let folder = &checkout.local().worktree.folder;
    let lost = match lacks {
        "" => "It has the changes of all finished tool calls".to_owned(),
        why => {
            format!("Some of your latest changes are LOST, since they could not be stored ({why})")
        }
    };
    format!(
        "[The run continues in a new checkout of its repository, maybe on another machine: {folder}. \
         {lost}. Files that git ignores are not in it, nor what an interrupted call changed, nor what \
         was outside of it. Look before you rely on them.]"
    )
}

fn unusable(error: StoreError) -> Next {
    match error {
        StoreError::Moved { .. } => Next::Again,
        StoreError::NotOwner(_) | StoreError::Closed => Next::Leave(Left::AtRest),
        error => Next::Later(Some(error.to_string())),
    }
}

/// Waits until someone asks the run to stop.
async fn asked_to_stop(journal: &RunJournal) {
    loop {
        let tail = journal.tail();
        if is_stopped(journal).await {
            return;
        }
        journal.changed(tail).await;
    }
}

/// Waits for `work`, which shows no sign of life by itself.
async fn alive<T>(pulse: &Pulse, mut work: std::pin::Pin<Box<impl Future<Output = T>>>) -> T {
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(BEAT) => pulse.beat(),
        }
    }
}
