//! How processes learn about each other's changes. A notification is only a hint, and the tables
//! are the truth. A process reads the tables after a notification, after it may have missed one,
//! and from time to time.
//!
//! Writing transactions do not notify, because the server would commit them one after the other.
//! Instead, changes are collected for a moment and sent together, on a separate connection.

use super::link::{Link, Replies};
use super::message::{Message, Text};
use super::statements::{self as pg, Begin};
use crate::engine::{Bind, Cells, Hub, bind_ids, number};
use crate::sql;
use parking_lot::Mutex;
use posse_protocol::{RunId, Seq, WorkerId};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How long to collect changes before a notification.
const COALESCED: Duration = Duration::from_millis(10);
/// The most runs in a notification, which holds 7,999 bytes. If there are more, the others check
/// all runs that they watch.
const NAMED: usize = 250;
/// How soon a listener tries to connect again.
const AGAIN: Duration = Duration::from_millis(500);
/// The most runs in one statement.
const LOOKED_AT: usize = 4_096;

/// The changes to tell other processes.
#[derive(Default)]
pub(super) struct Bell {
    news: Mutex<News>,
    rung: Notify,
}

/// Changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    /// Runs whose logs have grown.
    runs: BTreeSet<RunId>,
    /// True if there were too many runs to name.
    many: bool,
    /// True if a run may have become claimable.
    ready: bool,
}

impl Bell {
    /// Adds changes to the next notification.
    pub(super) fn ring(&self, tails: &[(RunId, Seq)], ready: bool) {
        if tails.is_empty() && !ready {
            return;
        }
        let mut news = self.news.lock();
        news.ready |= ready;
        news.runs.extend(tails.iter().map(|(run, _)| *run));
        if news.runs.len() > NAMED {
            (news.runs, news.many) = (BTreeSet::new(), true);
        }
        drop(news);
        self.rung.notify_one();
    }

    fn take(&self) -> News {
        std::mem::take(&mut *self.news.lock())
    }
}

impl News {
    fn is_empty(&self) -> bool {
        *self == News::default()
    }

    fn add(&mut self, other: News) {
        self.runs.extend(other.runs);
        (self.many, self.ready) = (self.many | other.many, self.ready | other.ready);
    }

    /// Returns the text of a notification: the worker, flags, and the runs.
    fn written(&self, worker: WorkerId) -> String {
        let flag = |is: bool, letter: &'static str| if is { letter } else { "" };
        let mut text = format!("{worker} {}{}.", flag(self.ready, "r"), flag(self.many, "m"));
        for run in &self.runs {
            text.push(' ');
            text.push_str(&run.to_string());
        }
        text
    }

    /// Parses a notification. Returns `None` if it comes from `worker` itself. A text that cannot
    /// be parsed may mean any change.
    fn read(text: &str, worker: WorkerId) -> Option<News> {
        let mut words = text.split(' ');
        let by: Option<WorkerId> = words.next().and_then(|word| word.parse().ok());
        if by == Some(worker) {
            return None;
        }
        let flags = words.next().filter(|flags| by.is_some() && flags.ends_with('.'));
        let Some(flags) = flags else {
            return Some(News { runs: BTreeSet::new(), many: true, ready: true });
        };
        let runs = words.filter_map(|word| word.parse().ok()).collect();
        Some(News { runs, many: flags.contains('m'), ready: flags.contains('r') })
    }
}

/// The task that notifies other processes, and checks for changes by other processes.
pub(super) struct Outside {
    pub(super) link: Link,
    pub(super) begin: Arc<Begin>,
    pub(super) worker: WorkerId,
    pub(super) hub: Arc<Hub>,
    pub(super) bell: Arc<Bell>,
    pub(super) channel: String,
    pub(super) poll: Duration,
    /// Whether to notify other processes.
    pub(super) tells: bool,
    pub(super) closing: watch::Receiver<bool>,
}

/// A message, and the positions of the replies about logs and about claimable runs.
type Question = (Message, Vec<usize>, Vec<usize>);

/// A notification that the listener received.
pub(super) struct Heard(News);

impl Outside {
    pub(super) async fn run(mut self, mut heard: mpsc::Receiver<Heard>) {
        let mut ticks = interval(self.poll);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A process that opens a store has requests first.
        ticks.reset();
        let (bell, mut closing) = (self.bell.clone(), self.closing.clone());
        loop {
            tokio::select! {
                () = closed(&mut closing) => break,
                () = bell.rung.notified() => {
                    sleep(COALESCED).await;
                    self.tell().await;
                }
                _ = ticks.tick() => self.look(None).await,
                Some(Heard(mut news)) = heard.recv() => {
                    while let Ok(Heard(more)) = heard.try_recv() {
                        news.add(more);
                    }
                    self.look(Some(news)).await;
                }
            }
        }
        // Tell others that this worker has gone.
        self.tell().await;
        self.link.close().await;
    }

    async fn tell(&mut self) {
        let news = self.bell.take();
        if news.is_empty() || !self.tells {
            return;
        }
        let mut message = Message::default();
        let notify = Text::new("SELECT pg_notify($1, $2)").text(self.channel.clone());
        message.add(notify.text(news.written(self.worker)));
        // If this fails, others find the changes when they poll.
        let _ = self.link.probe(message).await;
    }

    /// Asks for the last positions of logs and, if `all`, whether runs can be claimed.
    fn question(&self, watched: &[RunId], all: bool) -> Question {
        let mut message = Message::default();
        message.begin(&self.begin.looking, Begin::READING);
        let mut tails = Vec::new();
        for runs in watched.chunks(LOOKED_AT) {
            tails.push(message.add(bind_ids(Text::new(&sql::tails(runs.len())), runs, runs.len())));
        }
        let waits = [pg::DEAD, pg::SOMETHING_WAITS];
        let waits = if all { waits.map(|it| message.say(it)).to_vec() } else { Vec::new() };
        message.say("COMMIT");
        (message, tails, waits)
    }

    /// Checks for changes by other processes: those in `news`, or all that watchers here wait for.
    async fn look(&mut self, news: Option<News>) {
        let all = news.as_ref().is_none_or(|news| news.many);
        let mut watched = self.hub.watched();
        if let Some(news) = &news {
            if news.ready {
                self.hub.wake();
            }
            if !all {
                watched.retain(|run| news.runs.contains(run));
                if watched.is_empty() {
                    return;
                }
            }
        }
        let (message, tails, waits) = self.question(&watched, all);
        // The next transaction meets and reports an error.
        let Ok(replies) = self.link.probe(message).await else { return };
        self.hub.moved(moved(&replies, &tails));
        if waits.iter().any(|at| !replies.rows(*at).is_empty()) {
            self.hub.wake();
        }
    }
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    // The sender may be gone.
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Returns the last positions of logs.
fn moved(replies: &Replies, tails: &[usize]) -> Vec<(RunId, Seq)> {
    let rows = tails.iter().flat_map(|at| replies.rows(*at));
    let tail = |row| Some((Cells::text(row, 0).ok()?.parse().ok()?, Seq(number(row, 1).ok()?)));
    rows.filter_map(tail).collect()
}

/// Listens for notifications of other processes until the store closes.
pub(super) async fn listen(
    options: PgConnectOptions,
    channel: String,
    worker: WorkerId,
    told: mpsc::Sender<Heard>,
    mut closing: watch::Receiver<bool>,
) {
    let listening = async {
        loop {
            // The pool has one connection, and replaces it when it is lost.
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_lazy_with(options.clone());
            let _ = hear(&pool, &channel, worker, &told).await;
            let _ = timeout(AGAIN, pool.close()).await;
            sleep(AGAIN).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = closed(&mut closing) => {}
    }
}

async fn hear(
    pool: &sqlx::PgPool,
    channel: &str,
    worker: WorkerId,
    told: &mpsc::Sender<Heard>,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    // Notifications before this, or while the connection was lost, are missed.
    let anything = || Heard(News { runs: BTreeSet::new(), many: true, ready: true });
    let mut heard = Some(anything());
    loop {
        if let Some(heard) = heard.take()
            && told.send(heard).await.is_err()
        {
            return Ok(());
        }
        heard = match listener.try_recv().await? {
            Some(notification) => News::read(notification.payload(), worker).map(Heard),
            None => Some(anything()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_by_others_alone() {
        let (mine, other) = (WorkerId::new(), WorkerId::new());
        let bell = Bell::default();
        assert!(bell.take().is_empty());
        bell.ring(&[], false);
        assert!(bell.take().is_empty());
        let runs = [RunId::new(), RunId::new()];
        bell.ring(&runs.map(|run| (run, Seq(3))), false);
        bell.ring(&[(runs[0], Seq(4))], true);
        let text = bell.take().written(mine);
        assert_eq!(News::read(&text, mine), None);
        let expected = News { runs: BTreeSet::from(runs), many: false, ready: true };
        assert_eq!(News::read(&text, other), Some(expected));
        let anything = News { runs: BTreeSet::new(), many: true, ready: true };
        assert_eq!(News::read("hello there", mine), Some(anything));
    }

    #[test]
    fn a_notification_holds_what_is_told() {
        let bell = Bell::default();
        for _ in 0..NAMED {
            bell.ring(&[(RunId::new(), Seq(1))], true);
        }
        let most = bell.take();
        assert_eq!(most.runs.len(), NAMED);
        assert!(most.written(WorkerId::new()).len() < 7_999);
        let many: Vec<_> = (0..1_000).map(|_| (RunId::new(), Seq(1))).collect();
        bell.ring(&many, false);
        let many = bell.take();
        assert!(many.many && many.runs.is_empty());
    }
}
