//! Requests to the writer, grouped for one transaction, and their answers.

use super::deliveries::{Change, Changed};
use super::recent::Stored;
use crate::append::{Append, Appended, Draft, Guard, Ownership, Reserve};
use crate::bundle::BundleRow;
use crate::{Brought, Claimed, RunCopy, StoreError, StoredEvent, Wanted};
use posse_protocol::{RunId, Seq};
use std::sync::Arc;
use tokio::sync::oneshot;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Request {
    Append { batch: Vec<Draft>, reply: Reply<Vec<Appended>> },
    Claim { wanted: Wanted, reply: Reply<Vec<Claimed>> },
    GiveBack { claimed: Vec<Claimed> },
    Deliveries { change: Change, reply: Reply<Changed> },
    Renew { reply: Reply<()> },
    Damage { run: RunId, reason: String, reply: Reply<()> },
    Erase { run: RunId, last: Seq, reply: Reply<()> },
    Bring { tree: Vec<RunCopy>, reply: Reply<Vec<Brought>> },
    Stage { staging: Staging, reply: Reply<bool> },
    Close,
}

/// A small change that nobody sees, for an engine whose writer makes all changes.
pub(crate) enum Staging {
    /// Keeps the bundle with this hash, and stores a part of it.
    Bundle { run: RunId, sha256: String, part: Option<BundleRow>, reserve: Reserve },
    /// Stores the next events of a log that arrives. Answers whether the log ends with them now.
    Events { run: RunId, events: Vec<StoredEvent> },
    /// Gives up a log that arrives, and removes some of it. Answers whether there was any.
    GiveUpLog { run: RunId },
    /// Gives up a bundle that does not count.
    GiveUpBundle { run: RunId, sha256: String },
    /// Removes some of what has expired. Answers whether there was any.
    RemoveExpired,
}

/// The requests of one transaction. Requests that arrive at the same time have no order.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) appends: Vec<(Vec<Draft>, Reply<Vec<Appended>>)>,
    pub(crate) claims: Vec<(Wanted, Reply<Vec<Claimed>>)>,
    pub(crate) deliveries: Vec<(Change, Reply<Changed>)>,
    pub(crate) renewals: Vec<Reply<()>>,
    pub(crate) damages: Vec<(RunId, String, Reply<()>)>,
    pub(crate) erasures: Vec<(RunId, Seq, Reply<()>)>,
    pub(crate) trees: Vec<(Vec<RunCopy>, Reply<Vec<Brought>>)>,
    pub(crate) stagings: Vec<(Staging, Reply<bool>)>,
    /// True if only runs that were asked to stop may be claimed.
    pub(crate) only_to_stop: bool,
}

/// Whether workers may claim runs while the disk is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    /// They may claim runs that were asked to stop, to end them.
    ToStop,
    /// No run was asked to stop, so they may claim none.
    None,
}

/// The answers of a transaction, each list in the order of the requests.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) appended: Vec<Result<Vec<Appended>, StoreError>>,
    pub(crate) claimed: Vec<Vec<Claimed>>,
    pub(crate) deliveries: Vec<Changed>,
    pub(crate) erased: Vec<Result<(), StoreError>>,
    pub(crate) brought: Vec<Result<Vec<Brought>, StoreError>>,
    pub(crate) staged: Vec<bool>,
}

impl FromIterator<Request> for Work {
    fn from_iter<I: IntoIterator<Item = Request>>(requests: I) -> Self {
        let mut work = Work::default();
        for request in requests {
            match request {
                Request::Append { batch, reply } => work.appends.push((batch, reply)),
                // The caller has gone and would never learn of the claim.
                Request::Claim { reply, .. } if reply.is_closed() => {}
                Request::Claim { wanted, reply } => work.claims.push((wanted, reply)),
                Request::GiveBack { claimed } => {
                    work.appends.append(&mut Work::giving_back(claimed).appends);
                }
                Request::Deliveries { change, reply } => work.deliveries.push((change, reply)),
                Request::Renew { reply } => work.renewals.push(reply),
                Request::Damage { run, reason, reply } => work.damages.push((run, reason, reply)),
                Request::Erase { run, last, reply } => work.erasures.push((run, last, reply)),
                Request::Bring { tree, reply } => work.trees.push((tree, reply)),
                Request::Stage { staging, reply } => work.stagings.push((staging, reply)),
                Request::Close => {}
            }
        }
        work
    }
}

impl Work {
    /// Returns the requests that release runs whose claimers have gone before they got the answer.
    pub(crate) fn giving_back(claimed: Vec<Claimed>) -> Self {
        let give_back = |claimed: Claimed| {
            let guard = Guard::Owner { epoch: claimed.epoch, last: None, then: Ownership::Queued };
            let run = claimed.row.id;
            let events = Arc::new([]);
            let append = Append {
                run,
                events,
                guard,
                reserve: Reserve::Use,
                outbox: Vec::new(),
                bundle: None,
            };
            (vec![Draft { append, bodies: Vec::new(), bundle: None }], oneshot::channel().0)
        };
        Work { appends: claimed.into_iter().map(give_back).collect(), ..Work::default() }
    }

    pub(crate) fn len(&self) -> usize {
        let marks = self.renewals.len() + self.damages.len() + self.erasures.len();
        let marks = marks + self.trees.len() + self.stagings.len();
        self.appends.len() + self.claims.len() + self.deliveries.len() + marks
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the stored events, by run.
    pub(crate) fn stored(&self, answers: &Answers) -> impl Iterator<Item = (RunId, Stored)> {
        let appended = self.appends.iter().zip(&answers.appended);
        appended.filter_map(|((batch, _), result)| Some((batch, result.as_ref().ok()?))).flat_map(
            |(batch, appended)| {
                batch.iter().zip(appended).map(|(draft, appended)| {
                    let stored = Stored {
                        first: appended.first,
                        at: appended.at,
                        events: draft.append.events.clone(),
                        bytes: draft.bodies.iter().map(|body| body.len()).sum(),
                    };
                    (draft.append.run, stored)
                })
            },
        )
    }

    /// Answers all requests. Returns the runs that were claimed for callers that have gone.
    pub(crate) fn answer(self, answers: Answers) -> Vec<Claimed> {
        // Other callers that have gone do not need their answers.
        for ((_, reply), result) in self.appends.into_iter().zip(answers.appended) {
            let _ = reply.send(result);
        }
        for ((_, _, reply), result) in self.erasures.into_iter().zip(answers.erased) {
            let _ = reply.send(result);
        }
        for ((_, reply), result) in self.trees.into_iter().zip(answers.brought) {
            let _ = reply.send(result);
        }
        for ((_, reply), staged) in self.stagings.into_iter().zip(answers.staged) {
            let _ = reply.send(Ok(staged));
        }
        for reply in self.renewals.into_iter().chain(self.damages.into_iter().map(|it| it.2)) {
            let _ = reply.send(Ok(()));
        }
        for ((_, reply), changed) in self.deliveries.into_iter().zip(answers.deliveries) {
            // If the caller has gone, the taken deliveries are due again when their lease ends.
            let _ = reply.send(Ok(changed));
        }
        let claims = self.claims.into_iter().zip(answers.claimed);
        claims
            .filter_map(|((_, reply), claimed)| reply.send(Ok(claimed)).err())
            .flat_map(Result::unwrap_or_default)
            .collect()
    }

    /// Answers all requests with `error`.
    pub(crate) fn refuse(self, error: &StoreError) {
        for (_, reply) in self.appends {
            let _ = reply.send(Err(error.clone()));
        }
        for (_, reply) in self.claims {
            let _ = reply.send(Err(error.clone()));
        }
        for (_, reply) in self.trees {
            let _ = reply.send(Err(error.clone()));
        }
        for (_, reply) in self.stagings {
            let _ = reply.send(Err(error.clone()));
        }
        for (_, reply) in self.deliveries {
            let _ = reply.send(Err(error.clone()));
        }
        let marks = self.damages.into_iter().map(|it| it.2);
        let marks = marks.chain(self.erasures.into_iter().map(|it| it.2));
        for reply in self.renewals.into_iter().chain(marks) {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Keeps the requests that may use the reserve, and refuses the others with `Full`.
    pub(crate) fn keep_urgent(mut self, claims: Claims) -> Work {
        for reply in self.renewals.drain(..) {
            // No other worker can take over runs either, because that needs space too.
            let _ = reply.send(Ok(()));
        }
        let is_urgent = |batch: &[Draft]| batch.iter().any(|it| it.append.reserve == Reserve::Use);
        let (urgent, others) = self.appends.into_iter().partition(|(batch, _)| is_urgent(batch));
        let kept = match claims {
            Claims::ToStop => std::mem::take(&mut self.claims),
            Claims::None => Vec::new(),
        };
        // A removal makes room in the file, but none on the disk, and it needs some first. The reserve
        // is not for that.
        let is_urgent = |staging: &Staging| match staging {
            Staging::Bundle { reserve, .. } => *reserve == Reserve::Use,
            Staging::Events { .. } | Staging::GiveUpLog { .. } => false,
            Staging::GiveUpBundle { .. } | Staging::RemoveExpired => false,
        };
        let (stagings, less) = self.stagings.into_iter().partition(|(it, _)| is_urgent(it));
        Work { appends: others, stagings: less, ..self }.refuse(&StoreError::Full);
        let only_to_stop = true;
        Work { appends: urgent, stagings, claims: kept, only_to_stop, ..Work::default() }
    }

    /// Splits the work into single requests.
    pub(crate) fn apart(self) -> impl Iterator<Item = Work> {
        let appends =
            self.appends.into_iter().map(|it| Work { appends: vec![it], ..Work::default() });
        let claims = self.claims.into_iter().map(|it| Work { claims: vec![it], ..Work::default() });
        let damages =
            self.damages.into_iter().map(|it| Work { damages: vec![it], ..Work::default() });
        let deliveries =
            self.deliveries.into_iter().map(|it| Work { deliveries: vec![it], ..Work::default() });
        let erasures =
            self.erasures.into_iter().map(|it| Work { erasures: vec![it], ..Work::default() });
        let trees = self.trees.into_iter().map(|it| Work { trees: vec![it], ..Work::default() });
        let stagings =
            self.stagings.into_iter().map(|it| Work { stagings: vec![it], ..Work::default() });
        let renewals = Work { renewals: self.renewals, ..Work::default() };
        let renewals = (!renewals.is_empty()).then_some(renewals);
        let marks =
            renewals.into_iter().chain(damages).chain(erasures).chain(trees).chain(stagings);
        marks.chain(appends).chain(deliveries).chain(claims)
    }
}
