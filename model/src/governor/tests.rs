//! Tests of the governor, with a clock that moves only when all tasks wait.

use super::*;
use crate::http::Limit;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

fn governor(first_width: usize, caps: Caps) -> Arc<Governor> {
    let pacing = Pacing::Adaptive { first_width };
    Arc::new(Governor::new("acme".to_owned(), "http://acme".to_owned(), pacing, caps))
}

fn request() -> Request {
    Request {
        system: "x".repeat(4000).into(),
        messages: Vec::new(),
        tools: Arc::new([]),
        max_tokens: 100,
        effort: None,
        output_schema: None,
    }
}

async fn leave(governor: &Governor) -> Leave<'_> {
    governor.leave(&request(), |_| ()).await.unwrap()
}

/// Lets all other tasks run until all of them wait.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A provider that accepts `limit` calls at a time and tells the others to wait for `asks`.
struct Acme {
    governor: Arc<Governor>,
    limit: usize,
    asks: Option<Duration>,
    taken: AtomicUsize,
}

impl Acme {
    fn new(limit: usize, asks: Option<Duration>) -> Arc<Self> {
        let governor = governor(16, Caps::default());
        Arc::new(Acme { governor, limit, asks, taken: AtomicUsize::new(0) })
    }

    /// One call, made again as often as it is refused, as a patient loop does.
    async fn call(self: Arc<Self>) {
        for attempt in 0.. {
            let mut leave = leave(&self.governor).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.taken.fetch_add(1, Ordering::SeqCst) >= self.limit {
                self.taken.fetch_sub(1, Ordering::SeqCst);
                leave.failed(Kind::RateLimited(self.asks), &Limits::default());
                drop(leave);
                let own = Duration::from_millis(500 << attempt);
                tokio::time::sleep(self.asks.unwrap_or(own)).await;
                continue;
            }
            leave.taken();
            tokio::time::sleep(SECOND).await;
            self.taken.fetch_sub(1, Ordering::SeqCst);
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_calls_of_a_provider_that_takes_ten_are_refused_seldom() {
    for asks in [None, Some(SECOND), Some(3 * SECOND)] {
        let acme = Acme::new(10, asks);
        let mut calls = JoinSet::new();
        let began = Instant::now();
        for _ in 0..100 {
            calls.spawn(acme.clone().call());
        }
        calls.join_all().await;
        let provider = acme.governor.provider();
        assert_eq!((provider.needed(), provider.in_flight, provider.waiting), (100, 0, 0));
        assert!(provider.sent <= 115, "{asks:?}: {provider:?}");
        assert!(began.elapsed() < 20 * SECOND, "{asks:?}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_in_the_order_in_which_they_came() {
    let governor = governor(1, Caps { max_concurrent: Some(1), ..Caps::default() });
    let first = leave(&governor).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = JoinSet::new();
    for number in 0..20 {
        let (governor, order) = (governor.clone(), order.clone());
        calls.spawn(async move {
            let place = order.clone();
            let queued = move |before| place.lock().push((number, before));
            let mut leave = governor.leave(&request(), queued).await.unwrap();
            leave.taken();
            order.lock().push((number, usize::MAX));
        });
        settle().await;
    }
    assert_eq!(governor.provider().waiting, 20);
    drop(first);
    calls.join_all().await;
    let order = order.lock();
    let expected = (0..20).map(|number| (number, number));
    let expected = expected.chain((0..20).map(|number| (number, usize::MAX)));
    assert_eq!(*order, expected.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_up_waiting_leaves_its_place_to_the_next() {
    let governor = governor(1, Caps { max_concurrent: Some(1), ..Caps::default() });
    let first = leave(&governor).await;
    let mut quitter = Box::pin(leave(&governor));
    assert!(futures_util::poll!(&mut quitter).is_pending());
    let mut second = Box::pin(leave(&governor));
    assert!(futures_util::poll!(&mut second).is_pending());
    drop(first);
    // It is woken, and does not use its turn.
    drop(quitter);
    let second = second.await;
    assert_eq!((governor.provider().in_flight, governor.provider().waiting), (1, 0));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_for_time_has_it_from_all_and_then_hears_from_one() {
    let governor = governor(16, Caps::default());
    leave(&governor).await.failed(Kind::RateLimited(Some(30 * SECOND)), &Limits::default());
    let began = Instant::now();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (governor, sent) = (governor.clone(), sent.clone());
        calls.spawn(async move {
            let mut leave = leave(&governor).await;
            sent.lock().push(began.elapsed());
            tokio::time::sleep(5 * SECOND).await;
            leave.taken();
        });
    }
    settle().await;
    let provider = governor.provider();
    assert!(provider.held_for.is_some_and(|left| left > 29 * SECOND), "{provider:?}");
    assert_eq!((provider.waiting, provider.in_flight), (50, 0));
    calls.join_all().await;
    let sent = sent.lock();
    assert!(sent[0] >= 30 * SECOND, "{sent:?}");
    assert!(sent[1] >= 35 * SECOND, "the others wait for what becomes of it: {sent:?}");
    let second = sent.iter().filter(|at| **at < 40 * SECOND).count() - 1;
    assert!(second <= 16, "and do not come all at once: {sent:?}");
    assert_eq!(governor.provider().held_for, None);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_ends_without_news_is_followed_by_another() {
    let governor = governor(16, Caps::default());
    leave(&governor).await.failed(Kind::RateLimited(Some(SECOND)), &Limits::default());
    let probe = leave(&governor).await;
    let mut next = Box::pin(leave(&governor));
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(probe);
    let mut next = next.await;
    next.failed(Kind::RateLimited(Some(2 * SECOND)), &Limits::default());
    drop(next);
    let again = Instant::now();
    leave(&governor).await.failed(Kind::Rejected, &Limits::default());
    assert!(again.elapsed() >= 2 * SECOND);
    assert_eq!(governor.provider().sent, 4);
    // An answer of any kind will do.
    let (_one, _two) = (leave(&governor).await, leave(&governor).await);
    assert_eq!(governor.provider().in_flight, 2);
}

#[tokio::test(start_paused = true)]
async fn refusals_without_a_word_are_answered_with_longer_and_longer_pauses() {
    let governor = governor(16, Caps::default());
    let began = Instant::now();
    let mut sent = Vec::new();
    for _ in 0..12 {
        let mut leave = leave(&governor).await;
        sent.push(began.elapsed());
        leave.failed(Kind::Overloaded(None), &Limits::default());
    }
    let last = sent[11] - sent[10];
    assert_eq!(last.as_secs(), 30, "{sent:?}");
    assert!(sent.windows(2).skip(2).all(|pair| pair[0] < pair[1]), "{sent:?}");
    leave(&governor).await.taken();
    let soon = Instant::now();
    drop(leave(&governor).await);
    assert!(soon.elapsed() < SECOND, "over as soon as one is taken");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_is_the_caller_s_to_decide_about() {
    let governor = governor(16, Caps::default());
    let asked = Kind::RateLimited(Some(600 * SECOND));
    leave(&governor).await.failed(asked, &Limits::default());
    let refused = governor.leave(&request(), |_| ()).await;
    let RetryLater(left) = refused.err().unwrap();
    assert!(left > 590 * SECOND, "{left:?}");
    assert_eq!((governor.provider().sent, governor.provider().waiting), (1, 0));
    tokio::time::sleep(545 * SECOND).await;
    leave(&governor).await.taken();
    assert_eq!(governor.provider().sent, 2);
}

#[tokio::test(start_paused = true)]
async fn what_headers_say_is_left_is_not_overdrawn() {
    let governor = governor(64, Caps::default());
    let requests = Some(Limit { left: 5, whole: Some(65), resets_in_ms: Some(60_000) });
    let limits = Limits { requests, tokens: None };
    let mut first = leave(&governor).await;
    first.told(&limits);
    first.taken();
    let began = Instant::now();
    let mut sent = Vec::new();
    for _ in 0..10 {
        drop(leave(&governor).await);
        sent.push(began.elapsed());
    }
    assert!(sent[4] < SECOND, "five are left: {sent:?}");
    assert!(sent[5] >= SECOND && sent[5] < 2 * SECOND, "then one a second: {sent:?}");
    assert!(sent[9] >= 5 * SECOND && sent[9] < 6 * SECOND, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn caps_of_the_user_hold_whatever_the_provider_takes() {
    let caps = Caps { max_concurrent: Some(3), requests_per_minute: Some(6), ..Caps::default() };
    let governor = governor(16, caps);
    let most = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let (governor, most) = (governor.clone(), most.clone());
        calls.spawn(async move {
            let mut leave = leave(&governor).await;
            most.fetch_max(governor.provider().in_flight, Ordering::SeqCst);
            leave.taken();
            tokio::time::sleep(SECOND).await;
        });
    }
    calls.join_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!(began.elapsed() >= 60 * SECOND && began.elapsed() < 65 * SECOND);

    let tokens = Caps { tokens_per_minute: Some(3000), ..Caps::default() };
    let governor = self::governor(16, tokens);
    let began = Instant::now();
    for _ in 0..3 {
        // A thousand tokens are sent, and five hundred more are expected.
        drop(leave(&governor).await);
    }
    assert!(began.elapsed() >= 60 * SECOND, "{:?}", began.elapsed());
    let usage = Usage { input_tokens: 1000, output_tokens: 2000, ..Usage::default() };
    let mut expensive = leave(&governor).await;
    expensive.spent(&usage);
    drop(expensive);
    let began = Instant::now();
    drop(leave(&governor).await);
    assert!(began.elapsed() >= 59 * SECOND, "it took more than was expected of it");
}

#[test]
fn a_host_may_begin_with_more_calls_than_a_width_grows_to_by_itself() {
    const MANY: usize = 10_000;
    let width = |caps| governor(MANY, caps).provider().width;
    assert_eq!(width(Caps::default()), MANY);
    assert_eq!(width(Caps { max_concurrent: Some(3), ..Caps::default() }), 3);
}

#[tokio::test(start_paused = true)]
async fn without_pacing_nobody_waits_and_all_is_counted() {
    let (name, address) = ("acme".to_owned(), "http://acme".to_owned());
    let caps = Caps { max_concurrent: Some(1), ..Caps::default() };
    let governor = Governor::new(name, address, Pacing::Off, caps);
    let (mut one, _two) = (leave(&governor).await, leave(&governor).await);
    one.failed(Kind::RateLimited(Some(30 * SECOND)), &Limits::default());
    drop(leave(&governor).await);
    let provider = governor.provider();
    assert_eq!((provider.sent, provider.refused, provider.needed()), (3, 1, 2));
}
