//! Prepares the place of a run that is bound to no machine: a checkout of its repository, or an empty
//! folder.

use super::{Executor, Next};
use crate::error::Error;
use crate::journal::{InCheckout, RunJournal};
use crate::runtime::Inner;
use crate::stall::Pulse;
use crate::supervisor::{Again, Left};
use crate::tool_facts::{only_looks, tools_of};
use crate::worktree::{Checkout, Made, Merge};
use posse_agent::{Journal, Transcript};
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
                    Err(Next::Leave(self.fail(run, journal, &why).await))
                }
            };
        };
        let (place, made) = match journal.checkout() {
            // The run goes on in this process, without a break.
            Some(place) => (place, Made::AsItWas),
            None => {
                let (checkout, made) = self.enter(run, site, journal, epoch, pulse).await?;
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
            news.push(moved(checkout, &lacks));
        }
        if started.grant.delegation.is_some() {
            let taken = self.take_over(run, checkout).await.map_err(|_| Next::Later(None))?;
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
            let error = match alive(pulse, Box::pin(enter)).await {
                Ok(entered) => return Ok(entered),
                Err(error) => error.to_string(),
            };
            journal.tell_held(&error);
            tries += 1;
            let records = journal.read_after(Seq::ZERO).await;
            let is_stopping = records.is_ok_and(|it| Transcript::of(&it).cancelled_by().is_some());
            match host.is_empty() {
                // A run that was asked to stop needs no files for that.
                _ if is_stopping => {
                    return Err(Next::Leave(self.fail(run, journal, &error).await));
                }
                // Other workers may reach it.
                false => {
                    let left = journal.hand_over(Vec::new(), None, Ownership::Queued).await;
                    return Err(match left {
                        Err(error @ StoreError::Unusable { .. }) => unusable(error),
                        _ => Next::Leave(Left::ToOthers(Again::Later)),
                    });
                }
                true if tries >= TRIES => {
                    return Err(Next::Leave(self.fail(run, journal, &error).await));
                }
                true => tokio::time::sleep(WAIT).await,
            }
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
            touched: Arc::new(AtomicBool::new(false)),
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
    async fn take_over(&self, run: RunId, checkout: &Checkout) -> Result<Vec<String>, Error> {
        let limit = usize::MAX >> 1;
        let kin = Kin::ChildrenOf(run);
        let children = self.runtime.list(&Filter { kin, limit, ..Filter::default() }).await?;
        let mut news = Vec::new();
        for child in children.iter().rev().filter(|row| row.has_completed()) {
            if let Some((from, bundle)) = self.left_by(child).await? {
                let (tip, branch) = (&bundle.about.tip, &bundle.about.branch);
                if checkout.has_merged(child.id, tip).await {
                    continue;
                }
                let who = format!("the changes of run {} ({})", child.id, child.about.agent);
                let merged = checkout.merge(child.id, &from, &bundle).await;
                let refused = |why: &str| {
                    format!(
                        "[{who} do not fit into your working folder: {why}. They are on the \
                         branch {branch}; `git diff {from} {branch}` shows them.]"
                    )
                };
                news.push(match merged {
                    Ok(Merge::Taken(0)) => continue,
                    Ok(Merge::Taken(files)) => {
                        let files =
                            if files == 1 { "1 file".into() } else { format!("{files} files") };
                        format!("[{who} are in your working folder now: {files}.]")
                    }
                    Ok(Merge::Refused(why)) => refused(&why),
                    Err(error) => refused(&error.to_string()),
                });
            }
        }
        Ok(news)
    }

    /// Returns the commit with which a child began and its bundle, if it has changed something in a checkout.
    async fn left_by(&self, child: &RunRow) -> Result<Option<(String, Bundle)>, Error> {
        if child.log.erased {
            return Ok(None);
        }
        let started = self.runtime.start_of(child.id).await?;
        let Some(site) = started.grant.site.repository() else { return Ok(None) };
        let bundle = self.runtime.inner.store.bundle(child.id).await?;
        let base = site.base().to_owned();
        Ok(bundle.filter(|bundle| bundle.about.tip != base).map(|bundle| (base, bundle)))
    }
}

/// Makes an empty folder, unless it is there.
fn make_empty(folder: &Path) -> std::io::Result<()> {
    if let Some(around) = folder.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(around)?;
    }
    match std::fs::DirBuilder::new().mode(0o500).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
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

/// Waits for `work`, which shows no sign of life by itself.
async fn alive<T>(pulse: &Pulse, mut work: std::pin::Pin<Box<impl Future<Output = T>>>) -> T {
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(BEAT) => pulse.beat(),
        }
    }
}
