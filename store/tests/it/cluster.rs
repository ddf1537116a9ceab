//! Several processes on one PostgreSQL database: conflicts, and a server that closes connections.

use crate::postgres::Servers;
use crate::sample::*;
use futures_util::future::join_all;
use posse_protocol::{Event, RunId, Seq};
use posse_store::conformance::Subject;
use posse_store::{
    Append, By, CostCheck, Filter, Guard, Kin, Logs, Notifications, Ownership, PostgresOptions,
    PostgresStore, Projection, Reserve, Spending, SpendingQuery, Store, StoreError,
};
use posse_testkit::postgres::{Bouncer, Database, Server};
use posse_testkit::skipped;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub async fn database() -> Database {
    Server::shared().database()
}

async fn open(database: &Database) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap())
}

fn start(parent: serde_json::Value, budget: serde_json::Value) -> Event {
    event(json!({
        "type": "run_started", "agent": {"name": "tester"}, "model": "test/model", "parent": parent,
        "grant": {"tools": [], "workspace": "/w", "budget": budget},
    }))
}

fn made(run: RunId, first: Event) -> Append {
    let (guard, reserve) = (Guard::Create(Ownership::Mine), Reserve::Leave);
    Append {
        run,
        events: [first, message("go")].into(),
        guard,
        reserve,
        outbox: Vec::new(),
        bundle: None,
    }
}

fn called(tokens: u64) -> Event {
    let reserved = json!({"input_tokens": tokens, "output_tokens": tokens, "cost": tokens * 3});
    event(json!({"type": "model_called", "reserved": reserved, "purpose": "turn"}))
}

fn replied(tokens: u64) -> Event {
    let usage = json!({"input_tokens": tokens, "output_tokens": tokens, "cost": tokens * 3});
    event(json!({
        "type": "model_replied", "seen": 1, "stop": "end", "usage": usage, "worked_ms": 1,
        "message": {"role": "assistant", "parts": []},
    }))
}

/// Returns a child of `root`, and the appends that create it and tell its parent.
fn birth(root: RunId) -> (RunId, Vec<Append>) {
    let child = RunId::new();
    let parent = json!({"run": root, "account": root, "ancestors": [root]});
    let note = event(json!({"type": "child_started", "run": child, "agent": "tester"}));
    let made = made(child, start(parent, json!({})));
    (child, vec![made, Append::by_anyone(root, note)])
}

/// The work of one worker: starts children of `root`, one after the other, that spend and end.
async fn work(store: &PostgresStore, root: RunId, children: usize) -> (Vec<RunId>, usize) {
    let (mut born, mut refused) = (Vec::new(), 0);
    for _ in 0..children {
        let (child, batch) = birth(root);
        match store.append(batch).await {
            Ok(_) => born.push(child),
            Err(StoreError::OverBudget { .. }) => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("a child was not born: {error}"),
        }
        for tokens in [7, 11, 3] {
            match store.append(vec![step(child, 1, called(tokens))]).await {
                Ok(_) => {
                    store.append(vec![step(child, 1, replied(tokens - 1))]).await.unwrap();
                }
                Err(StoreError::OverBudget { .. }) => refused += 1,
                Err(error) => panic!("a call was not stored: {error}"),
            }
        }
        // The end and its announcement to the parent are one batch.
        let told = Append::by_anyone(root, message(&format!("{child} is done")));
        store.append(vec![step(child, 1, finished()), told]).await.unwrap();
    }
    (born, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_who_write_to_one_tree_keep_its_sums_and_its_logs() {
    const TASKS: usize = 24;
    const CHILDREN: usize = 5;
    let database = database().await;
    let stores = [open(&database).await, open(&database).await];
    let root = RunId::new();
    // Enough for most of the calls, but not for all.
    let budget = json!({"cost": 5_000, "input_tokens": 100_000, "turns": 300, "children": 1_000});
    let first = made(root, start(json!(null), budget));
    stores[0].append(vec![first]).await.unwrap();
    let begun = Instant::now();
    let tasks = (0..TASKS).map(|task| {
        let store = stores[task % 2].clone();
        tokio::spawn(async move { work(&store, root, CHILDREN).await })
    });
    let (mut children, mut refused) = (Vec::new(), 0);
    for task in join_all(tasks).await {
        let (born, no) = task.unwrap();
        children.extend(born);
        refused += no;
    }
    println!("{} children, {refused} refusals, {:?}", children.len(), begun.elapsed());
    assert!(refused > 0, "the budget was to be too small");
    let store = &*stores[1];
    let filter = Filter { kin: Kin::TreeOf(root), limit: 1_000, ..Filter::default() };
    let rows = posse_store::Inspection::list(store, &filter).await.unwrap();
    assert_eq!(rows.len(), children.len() + 1);
    let (mut cost, mut turns) = (0, 0);
    for row in &rows {
        let records = store.read(row.id, Seq::ZERO, usize::MAX).await.unwrap();
        assert_eq!(records.len() as u64, row.log.last_seq.0);
        let mut projection = Projection::new(row.id);
        let ledger = posse_store::Inspection::ledger(store, row.id).await.unwrap();
        let mut reckoning = CostCheck::new(row.id, ledger);
        for record in &records {
            projection.apply(record);
            reckoning.apply(record);
        }
        assert_eq!(projection.difference(row), None, "{}", row.id);
        assert_eq!(reckoning.fault(row.log.last_seq), None, "{}", row.id);
        cost += row.spending.spent.cost.0;
        turns += row.spending.turns;
        if row.id == root {
            let log = serde_json::to_string(&records).unwrap();
            for child in &children {
                let (born, done) = (format!("\"run\":\"{child}\""), format!("{child} is done"));
                assert_eq!(log.matches(&born).count(), 1, "{child} was born");
                assert_eq!(log.matches(&done).count(), 1, "{child} was told of");
            }
        }
    }
    let account = rows.iter().find(|row| row.id == root).unwrap();
    let drawn = account.funds.drawn.unwrap();
    assert_eq!((drawn.cost.0, drawn.turns, drawn.children), (cost, turns, 0));
    assert_eq!(account.funds.held, posse_protocol::Amount::default(), "all have ended");
    assert!(cost <= 5_000 && turns <= 300, "{cost} and {turns}");
    let query = SpendingQuery { by: By::Nothing, tree: Some(root), ..SpendingQuery::default() };
    let sums: Vec<Spending> = posse_store::Inspection::spending(store, &query).await.unwrap();
    assert_eq!(sums[0].usage.cost.0, cost);
    assert!(posse_store::Inspection::orphans(store).await.unwrap().is_empty());
    for store in stores {
        store.close().await;
    }
}

/// Closes every session of a store, again and again until `stop`. Between two times it waits for
/// progress, which `answered` counts.
async fn cut_off(database: &Database, answered: &AtomicUsize, stop: &AtomicBool) -> usize {
    let mut cuts = 0;
    while !stop.load(Ordering::SeqCst) {
        let before = answered.load(Ordering::SeqCst);
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name LIKE 'posse %'",
        );
        cuts += 1;
        until("the store goes on", async || {
            stop.load(Ordering::SeqCst) || answered.load(Ordering::SeqCst) > before
        })
        .await;
    }
    cuts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_when_a_connection_breaks_is_stored_once() {
    const TASKS: usize = 8;
    const EACH: usize = 40;
    let database = database().await;
    let store = open(&database).await;
    let runs: Vec<RunId> =
        join_all((0..TASKS).map(|_| create(&*store, 1, Ownership::Queued))).await;
    let (answered, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let writing = async {
        let (store, answered) = (&*store, &answered);
        let each = runs.iter().map(|run| async move {
            let mut last = Seq(1);
            for number in 0..EACH {
                let event = message(&format!("number {number}"));
                // The store would refuse a writer that does not know its own last append.
                let guard = Guard::Anyone { last: Some(last) };
                let append = Append { guard, ..Append::by_anyone(*run, event) };
                last = store.append(vec![append]).await.unwrap()[0].last;
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
        join_all(each).await;
        stop.store(true, Ordering::SeqCst);
    };
    let (_, cuts) = tokio::join!(writing, cut_off(&database, &answered, &stop));
    println!("{cuts} times all connections were cut");
    assert!(cuts > 3, "{cuts}");
    for run in runs {
        assert_eq!(read(&*store, run).await.unwrap(), EACH + 1);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlives_a_server_that_is_killed() {
    let database = Server::alone().database();
    let stores = [open(&database).await, open(&database).await];
    let runs: Vec<RunId> =
        join_all((0..6).map(|_| create(&*stores[0], 1, Ownership::Queued))).await;
    let (answered, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let writers = runs.iter().enumerate().map(|(index, run)| {
        let (store, run) = (stores[index % 2].clone(), *run);
        let (answered, stop) = (answered.clone(), stop.clone());
        tokio::spawn(async move {
            let mut last = Seq(1);
            while !stop.load(Ordering::SeqCst) {
                let guard = Guard::Anyone { last: Some(last) };
                let append = Append { guard, ..Append::by_anyone(run, message("on and on")) };
                last = store.append(vec![append]).await.unwrap()[0].last;
                answered.fetch_add(1, Ordering::SeqCst);
            }
            last
        })
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..3 {
        let before = answered.load(Ordering::SeqCst);
        until("the writers go on", async || answered.load(Ordering::SeqCst) >= before + 100).await;
        tokio::task::block_in_place(|| database.server().kill());
        // A read waits for the server too.
        read(&*stores[0], runs[0]).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    let mut stored = 0;
    for (writer, run) in writers.into_iter().zip(&runs) {
        let last = writer.await.unwrap();
        assert_eq!(read(&*stores[1], *run).await.unwrap() as u64, last.0, "{run}");
        stored += last.0;
    }
    println!("{stored} events");
    let claimed = claim(&*stores[0], 9).await.len() + claim(&*stores[1], 9).await.len();
    assert_eq!(claimed, 6);
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_open_a_new_database_at_once_make_it_once() {
    let database = database().await;
    let stores = join_all((0..8).map(|_| open(&database))).await;
    let run = create(&*stores[0], 2, Ownership::Queued).await;
    for store in &stores {
        assert_eq!(read(&**store, run).await.unwrap(), 2);
    }
    let workers: HashSet<_> =
        stores.iter().map(|store| posse_store::Claims::worker(&**store)).collect();
    assert_eq!(workers.len(), 8);
    join_all(stores.iter().map(|store| store.close())).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_untouched() {
    let database = database().await;
    let store = open(&database).await;
    let run = create(&*store, 2, Ownership::Queued).await;
    store.close().await;
    database.execute("UPDATE posse.marks SET number = 99 WHERE name = 'schema'");
    let tables = "SELECT string_agg(c.relname || c.relfilenode, ' ' ORDER BY c.relname) \
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'posse'";
    let before = database.text(tables);
    match PostgresStore::open(PostgresOptions::new(database.url())).await {
        Err(StoreError::NewerDatabase { path, found: 99, known: 11 }) => {
            assert!(path.starts_with("postgres://posse@/"), "{path}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a newer database was opened"),
    }
    assert_eq!(database.text(tables), before);
    assert_eq!(database.text("SELECT max(number)::text FROM posse.marks"), "99");
    assert_eq!(database.text("SELECT count(*)::text FROM posse.workers"), "0");
    database.execute("UPDATE posse.marks SET number = 11 WHERE name = 'schema'");
    assert_eq!(read(&*open(&database).await, run).await.unwrap(), 2);
}

#[tokio::test]
async fn a_schema_of_a_development_version_is_refused_untouched() {
    let database = database().await;
    open(&database).await.close().await;
    for version in 1..11 {
        database
            .execute(&format!("UPDATE posse.marks SET number = {version} WHERE name = 'schema'"));
        match PostgresStore::open(PostgresOptions::new(database.url())).await {
            Err(StoreError::UnreleasedDatabase { found, first: 11, .. }) => {
                assert_eq!(found, version)
            }
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(database.text("SELECT max(number)::text FROM posse.marks"), version.to_string());
        assert_eq!(database.text("SELECT count(*)::text FROM posse.workers"), "0");
    }
}

/// Returns how long `far` takes to notice an append of `near`.
async fn told_after(near: &PostgresStore, far: &PostgresStore) -> Duration {
    let run = create(near, 2, Ownership::Queued).await;
    let mut tail = far.watch(run);
    let next = say(near, run, "hello").await.unwrap();
    let begun = Instant::now();
    let told = tokio::time::timeout(Duration::from_secs(5), tail.wait_for(|seq| *seq >= next));
    assert!(matches!(told.await, Ok(Ok(_))), "nobody was told");
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bell_is_heard_before_anybody_looks_by_itself() {
    let database = database().await;
    let poll = Duration::from_secs(1);
    let with = |bell| PostgresOptions { bell, poll, ..PostgresOptions::new(database.url()) };
    let near = PostgresStore::open(with(Notifications::On)).await.unwrap();
    let far = PostgresStore::open(with(Notifications::On)).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..9 {
        times.push(told_after(&near, &far).await);
    }
    times.sort();
    println!("told after {times:?}");
    assert!(times[4] < poll / 3, "{times:?}");
    // Without notifications it takes up to the polling interval.
    let deaf = PostgresStore::open(with(Notifications::Off)).await.unwrap();
    assert!(told_after(&near, &deaf).await < poll * 3);
    for store in [near, far, deaf] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_death_counts_and_silence_does_not() {
    let servers = Servers::new().await;
    let (killed, silent) = (servers.open("deaths").await, servers.open("deaths").await);
    let other = servers.open("deaths").await;
    let of_the_killed = create(&*killed, 2, Ownership::Mine).await;
    let of_the_silent = create(&*silent, 2, Ownership::Mine).await;
    servers.kill(killed).await;
    // The server notices the closed connection by itself.
    let sessions = || async {
        let count = "SELECT count(DISTINCT application_name)::text FROM pg_stat_activity \
            WHERE datname = current_database() AND application_name LIKE 'posse %'";
        servers.database().text(count) == "2"
    };
    until("the sessions of a killed worker end", sessions).await;
    servers.pass(servers.lease() + Duration::from_secs(1));
    other.renew().await.unwrap();
    let claimed = claim(&*other, 9).await;
    let deaths =
        |run: RunId| claimed.iter().find(|it| it.row.id == run).map(|it| it.row.work.deaths);
    assert_eq!(deaths(of_the_killed), Some(1));
    assert_eq!(deaths(of_the_silent), Some(0));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_text_comes_back_as_it_was() {
    let database = database().await;
    let store = open(&database).await;
    let odd =
        ["it's", r"back\slash\'", "nul\0nul", "\u{fdd0}0", "$1 ; -- \"", "E'\\x00'", "世界 🌍"];
    for text in odd {
        let run = RunId::new();
        let first = event(json!({
            "type": "run_started", "agent": {"name": "tester"}, "model": text, "key": text,
            "label": text, "grant": {"tools": [], "workspace": text},
        }));
        store.append(vec![made(run, first)]).await.unwrap();
        let records = store.read(run, Seq::ZERO, 9).await.unwrap();
        let mut projection = Projection::new(run);
        records.iter().for_each(|record| projection.apply(record));
        let found = row(&*store, run).await;
        assert_eq!(projection.difference(&found), None, "{text:?}");
        assert_eq!(found.about.key.as_deref(), Some(text));
        let again = made(RunId::new(), records[0].event.clone());
        assert!(
            matches!(store.append(vec![again]).await, Err(StoreError::KeyTaken { run: it, .. }) if it == run)
        );
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_and_a_lease_write_no_index() {
    let database = database().await;
    let store = open(&database).await;
    let run = create(&*store, 2, Ownership::Mine).await;
    for tokens in 1..=40 {
        store.append(vec![step(run, 1, called(tokens))]).await.unwrap();
        store.append(vec![step(run, 1, replied(tokens))]).await.unwrap();
        posse_store::Claims::renew(&*store).await.unwrap();
    }
    // Sessions report their statistics at their end at the latest.
    store.close().await;
    let written = |table: &str| {
        format!(
            "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables \
             WHERE schemaname = 'posse' AND relname = '{table}'"
        )
    };
    for (table, expected) in [("runs", 80), ("workers", 40), ("commits", 80)] {
        let told = || async {
            let numbers = database.text(&written(table));
            let mut numbers = numbers.split(' ').map(|number| number.parse::<i64>().unwrap());
            let (all, hot) = (numbers.next().unwrap(), numbers.next().unwrap());
            // A page can be full while another transaction still sees its dead rows.
            all >= expected && (all - hot) * 5 <= all
        };
        until(&format!("rows of {table} are updated in place"), told).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once_and_without_a_password() {
    let url = "postgres://posse:hunter2@127.0.0.1:1/posse?sslmode=disable";
    let begun = Instant::now();
    let Err(error) = PostgresStore::open(PostgresOptions::new(url)).await else {
        panic!("there is a server at port 1")
    };
    let told = format!("{error} {error:?}");
    assert!(told.contains("postgres://posse@127.0.0.1:1/posse"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_keeps_no_sessions_is_no_obstacle() {
    let database = database().await;
    let Some(bouncer) = Bouncer::start(&database) else {
        return skipped("PgBouncer is not installed: nothing was asked through it");
    };
    let options = || PostgresOptions {
        bell: Notifications::At(database.url()),
        poll: Duration::from_secs(1),
        ..PostgresOptions::new(bouncer.url(&database))
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let near = loop {
        match PostgresStore::open(options()).await {
            Ok(store) => break store,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let stores = [Arc::new(near), Arc::new(PostgresStore::open(options()).await.unwrap())];
    let root = RunId::new();
    let budget = json!({"cost": 1_000_000, "children": 1_000});
    stores[0].append(vec![made(root, start(json!(null), budget))]).await.unwrap();
    let tasks = (0..12).map(|task| {
        let store = stores[task % 2].clone();
        tokio::spawn(async move {
            let (born, refused) = work(&store, root, 3).await;
            assert_eq!((born.len(), refused), (3, 0));
            for child in born {
                assert_eq!(read(&*store, child).await.unwrap(), 9);
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let account = row(&*stores[1], root).await;
    assert_eq!(account.funds.drawn.unwrap().cost.0, 12 * 3 * 3 * (6 + 10 + 2));
    create(&*stores[0], 2, Ownership::Queued).await;
    assert_eq!(claim(&*stores[1], 9).await.len(), 1);
    posse_store::Claims::renew(&*stores[0]).await.unwrap();
    assert!(told_after(&stores[0], &stores[1]).await < Duration::from_secs(3));
    for store in stores {
        store.close().await;
    }
}
