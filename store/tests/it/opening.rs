//! Opening: foreign files are left unchanged, new files are private, and migrations run once.

use crate::sample::*;
use posse_protocol::{Usage, Usd};
use posse_store::{
    By, Inspection, Logs, Options, Ownership, SpendingQuery, SqliteStore, Store, StoreError,
};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// Expects that a file with these `bytes` is refused with `what` in the reason, and left unchanged.
async fn check_refused(bytes: &[u8], what: &str) {
    let place = Place::new();
    std::fs::write(place.file(), bytes).unwrap();
    let error = match SqliteStore::open(place.options()).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened what should be refused: {what}"),
    };
    assert!(error.contains(what), "{error}");
    assert!(error.contains(&place.file().display().to_string()), "{error}");
    assert_eq!(place.contents(), [(place.file(), bytes.to_vec())], "{what}");
}

#[tokio::test]
async fn what_is_no_database_is_refused_untouched() {
    check_refused(b"hello", "it is not a Posse database").await;
    check_refused(&b"# not a database\n".repeat(1_000), "it is not a Posse database").await;
    check_refused(&[0; 8_192], "it is not a Posse database").await;
}

#[tokio::test]
async fn a_truncated_database_is_refused_untouched() {
    let place = Place::new();
    let store = place.open().await;
    for _ in 0..20 {
        create(&store, 20, Ownership::Queued).await;
    }
    store.close().await;
    let whole = std::fs::read(place.file()).unwrap();
    assert!(whole.len() > 100_000);
    for length in [16, 60, 100, 4_096, 4_097, whole.len() / 2, whole.len() - 4_096, whole.len() - 1]
    {
        let what = if length < 108 { "it ends after" } else { "of its" };
        check_refused(&whole[..length], what).await;
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_untouched() {
    for statements in [
        "CREATE TABLE bookmarks (url TEXT)",
        "CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 1",
        "PRAGMA application_id = 5; VACUUM",
    ] {
        let place = Place::new();
        std::fs::write(place.file(), b"").unwrap();
        place.tamper(statements).await;
        let bytes = std::fs::read(place.file()).unwrap();
        check_refused(&bytes, "belongs to another program").await;
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.file()).unwrap();
    let error = SqliteStore::open(place.options()).await.err().unwrap();
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("posse.db"), "{error}");
    let below_a_file = Options::new("/dev/null/posse.db");
    let error = SqliteStore::open(below_a_file).await.err().unwrap();
    assert!(error.to_string().contains("/dev/null/posse.db"), "{error}");
}

#[tokio::test]
async fn a_pipe_is_refused_at_once() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.file()).status().unwrap();
    assert!(made.success());
    let opening = SqliteStore::open(place.options());
    let opened = tokio::time::timeout(std::time::Duration::from_secs(20), opening).await;
    let error = opened.expect("it does not wait for the other end").err().unwrap().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
}

#[tokio::test]
async fn what_is_left_of_a_database_is_not_taken_for_a_new_one() {
    for beside in ["-scratch", "-workers", "-worktrees", "-reserve"] {
        let place = Place::new();
        std::fs::write(place.file(), b"").unwrap();
        place.open().await.close().await;
        std::fs::remove_file(place.folder().join("posse.db-reserve")).unwrap();
        std::fs::remove_dir(place.folder().join("posse.db-workers")).unwrap();
        std::fs::write(place.file(), b"").unwrap();
        std::fs::create_dir(place.folder().join(format!("posse.db{beside}"))).unwrap();
        let error = SqliteStore::open(place.options()).await.err().unwrap();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains(&format!("it is empty, and `{beside}`")), "{error}");
        assert_eq!(std::fs::read(place.file()).unwrap(), b"", "it is left alone");
    }
}

#[tokio::test]
async fn a_log_without_its_database_is_not_removed() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, 2, Ownership::Queued).await;
    let place = place.killed();
    std::fs::remove_file(place.file()).unwrap();
    let error = SqliteStore::open(place.options()).await.err().unwrap().to_string();
    assert!(error.contains("it is not there, and its write-ahead log"), "{error}");
    assert!(place.folder().join("posse.db-wal").metadata().unwrap().len() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_new_database_at_once() {
    for _ in 0..10 {
        let place = Place::new();
        let mut openings = tokio::task::JoinSet::new();
        for _ in 0..6 {
            openings.spawn(SqliteStore::open(place.options()));
        }
        let mut stores = Vec::new();
        while let Some(opened) = openings.join_next().await {
            stores.push(opened.unwrap().unwrap());
        }
        for store in &stores {
            create(store, 2, Ownership::Queued).await;
        }
        assert_eq!(claim(&stores[0], 99).await.len(), 6);
        for store in stores {
            store.close().await;
        }
    }
}

#[tokio::test]
async fn opening_again_finds_everything_and_changes_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 5, Ownership::Queued).await;
    store.close().await;
    let before = std::fs::read(place.file()).unwrap();
    let names: Vec<_> = place.contents().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [place.file(), place.folder().join("posse.db-reserve")]);
    let again = place.open().await;
    assert_eq!(read(&again, run).await.unwrap(), 5);
    again.close().await;
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
}

#[tokio::test]
async fn files_are_for_their_owner_only() {
    let place = Place::new();
    let folder = place.folder().join("deep/down");
    let store = SqliteStore::open(Options::new(folder.join("posse.db"))).await.unwrap();
    create(&store, 2, Ownership::Mine).await;
    let mode = |name: &str| {
        let path = folder.join(name);
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    for name in ["", "../", "posse.db-workers"] {
        assert_eq!(mode(name), 0o700, "{name}");
    }
    for name in ["posse.db", "posse.db-wal", "posse.db-shm", "posse.db-reserve"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let lock = std::fs::read_dir(folder.join("posse.db-workers")).unwrap().next().unwrap();
    assert_eq!(lock.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn two_names_of_a_database_are_one() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    let link = place.folder().join("link.db");
    std::os::unix::fs::symlink(place.file(), &link).unwrap();
    let other = SqliteStore::open(Options { path: link, ..place.options() }).await.unwrap();
    assert_eq!(row(&other, run).await.status, posse_protocol::Status::Running);
    drop(store);
    until("the lock is seen to fall", async || !claim(&other, 1).await.is_empty()).await;
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    let place = Place::new();
    let store = place.open().await;
    let queued = create(&store, 3, Ownership::Queued).await;
    let stopping = create(&store, 3, Ownership::Mine).await;
    store.append(vec![posse_store::Append::by_anyone(stopping, cancel())]).await.unwrap();
    store.close().await;
    let trees = "parent, root, depth, stopping, awaits";
    let background = "label, priority, background, expects, gathers, gathered_at, paused, \
        finished_at, cleanup, erased, account, budget, drawn, calling, calling_for, asks, abreast, \
        archive_after";
    let columns =
        trees.split(", ").chain(background.split(", ")).chain(UNCERTAIN).chain(DEATHS).chain(WORK);
    let mut dropped: String =
        columns.map(|column| format!("ALTER TABLE runs DROP COLUMN {column};")).collect();
    dropped.push_str("ALTER TABLE workers DROP COLUMN about;");
    place
        .tamper(&format!(
            "DROP INDEX runs_by_root; DROP INDEX runs_by_parent; DROP INDEX runs_at_the_top; \
             DROP INDEX runs_ready; DROP INDEX runs_ready_since; DROP INDEX runs_ready_by_root; \
             DROP INDEX runs_gathering; DROP INDEX runs_to_put_away; \
             DROP INDEX runs_to_put_away_early; DROP INDEX runs_asking; \
             DROP INDEX runs_to_erase; DROP INDEX runs_to_delete; DROP INDEX runs_open_in_tree; \
             DROP INDEX runs_open_by_workspace; DROP INDEX runs_open_at_the_top; \
             DROP INDEX runs_calling; DROP INDEX runs_by_ending; \
             UPDATE runs SET turns = 3, input_tokens = 500, cost = 7, reserved_input = 20; \
             DROP INDEX runs_by_agent; DROP INDEX runs_by_label; DROP INDEX runs_by_outcome; \
             DROP TABLE model_calls; DROP TABLE deliveries; {dropped} \
             CREATE INDEX runs_ready ON runs (ready_at, id) WHERE runnable = 1 AND owner IS NULL; \
             PRAGMA user_version = 1"
        ))
        .await;
    let store = place.open().await;
    for (run, is_stopping) in [(queued, false), (stopping, true)] {
        let row = row(&store, run).await;
        assert_eq!((row.family.root, row.family.parent, row.family.depth), (run, None, 0));
        assert_eq!(row.state.stopping, is_stopping);
    }
    say(&store, queued, "still here?").await.unwrap();
    assert_eq!(read(&store, queued).await.unwrap(), 4);
    // Costs from before the ledger are one row for each run.
    let query = SpendingQuery { by: By::Run, tree: Some(queued), ..SpendingQuery::default() };
    let sums = store.spending(&query).await.unwrap();
    assert_eq!((sums[0].calls, sums[0].unanswered), (4, 1));
    let (known, uncertain) = (&sums[0].usage, &sums[0].uncertain);
    assert_eq!((known.input_tokens, known.cost.0, uncertain.input_tokens), (500, 7, 20));
}

/// The columns of `runs` with uncertain spending.
const UNCERTAIN: [&str; 4] = ["uncertain_input", "uncertain_output", "uncertain_cost", "cut_calls"];

/// The columns of `runs` that count deaths.
const DEATHS: [&str; 2] = ["deaths", "calls_at_death"];
/// Columns that say which worker a run needs.
const WORK: [&str; 2] = ["host", "needs"];

#[tokio::test]
async fn what_was_cut_short_before_it_was_told_apart_is_uncertain() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 1, Ownership::Mine).await;
    let called = |tokens: u64| {
        let reserved = Usage { input_tokens: tokens, cost: Usd(tokens * 3), ..Usage::default() };
        event(json!({"type": "model_called", "reserved": reserved}))
    };
    // One call is answered, the next has no answer, and one fails.
    let spent =
        |tokens: u64| json!({"input_tokens": tokens, "output_tokens": 0, "cost": tokens * 3});
    let replied = event(json!({"type": "model_replied", "seen": 1, "stop": "end", "worked_ms": 1,
        "message": {"role": "assistant", "parts": []}, "usage": spent(5)}));
    let failed = event(json!({"type": "model_failed", "kind": "other", "reason": "cut",
        "worked_ms": 1, "usage": spent(300)}));
    for event in [called(9), replied, called(20), called(300), failed] {
        store.append(vec![step(run, 1, event)]).await.unwrap();
    }
    let written = row(&store, run).await;
    let ledger = store.ledger(run).await.unwrap();
    store.close().await;
    let mut dropped: String =
        UNCERTAIN.map(|column| format!("ALTER TABLE runs DROP COLUMN {column};")).concat();
    for column in &UNCERTAIN[..3] {
        dropped.push_str(&format!("ALTER TABLE model_calls DROP COLUMN {column};"));
    }
    for column in DEATHS.into_iter().chain(WORK) {
        dropped.push_str(&format!("ALTER TABLE runs DROP COLUMN {column};"));
    }
    dropped.push_str("ALTER TABLE deliveries DROP COLUMN seal;");
    dropped.push_str("ALTER TABLE workers DROP COLUMN about;");
    place.tamper(&format!("{dropped} PRAGMA user_version = 3")).await;
    let store = place.open().await;
    let migrated = row(&store, run).await;
    assert_eq!((migrated.known(), migrated.unsure()), (written.known(), written.unsure()));
    assert_eq!(
        (migrated.cost(), migrated.spending.uncertain.cost, migrated.spending.cut_calls),
        (Usd(15), Usd(960), 2)
    );
    assert_eq!(store.ledger(run).await.unwrap(), ledger);
}
