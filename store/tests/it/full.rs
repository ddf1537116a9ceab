//! A full disk: a real one of a few megabytes, mounted in memory for a child of this binary.

use crate::process::{FOLDER, arguments_of_child, folder_of_child};
use crate::sample::*;
use posse_protocol::{RunId, Status};
use posse_store::{
    Append, Bundle, BundleAbout, Claims, Inspection, Leftover, Leftovers, Logs, Options, Ownership,
    Reserve, SqliteStore, Store, StoreError, Wanted,
};
use posse_testkit::skipped;
use sqlx::Row;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::task::JoinSet;

#[tokio::test]
async fn a_full_disk_stops_nothing_but_new_work() {
    let folder = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let namespace = if is_root { "-m" } else { "-Urm" };
    let script = r#"mount -t tmpfs -o size=8m,mode=700 tmpfs "$0" && echo mounted && exec "$@""#;
    let child = Command::new("unshare")
        .args([namespace, "sh", "-c", script])
        .arg(folder.path())
        .args(arguments_of_child("full::child_on_a_small_disk"))
        .env(FOLDER, folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("`unshare` is needed to mount a small disk");
    let ended = tokio::time::timeout(Duration::from_secs(50), child.wait_with_output()).await;
    let ended = ended.expect("the child on a full disk hangs").unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    if !output.contains("mounted") {
        assert!(!is_root, "root could not mount a small disk: {errors}");
        let why = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        skipped(&format!(
            "posse-store: a full disk (none can be mounted here without being root: {why})"
        ));
        return;
    }
    assert!(ended.status.success(), "{:?}\n{output}\n{errors}", ended.status);
    assert!(output.contains("all points passed"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a child of `a_full_disk_stops_nothing_but_new_work`"]
async fn child_on_a_small_disk() {
    let Some(folder) = folder_of_child() else { return };
    for (index, left) in [0, 4, 8, 12, 40, 100, 300, 700].into_iter().enumerate() {
        let folder = folder.join(format!("point {index}"));
        std::fs::create_dir(&folder).unwrap();
        fills_up_with(&folder, left * 1_024).await;
        std::fs::remove_dir_all(&folder).unwrap();
    }
    starts_on_a_full_disk(&folder.join("start")).await;
    no_room_even_to_open(&folder.join("new")).await;
    its_own_log_fills_the_disk(&folder.join("log")).await;
    for filled in [Kept::Reserve, Kept::Nothing] {
        a_log_that_was_left_fills_the_disk(&folder.join("left"), filled).await;
    }
    a_bundle_does_not_fit(&folder.join("bundle")).await;
    a_bundle_leaves_the_reserve(&folder.join("retried")).await;
    println!("all points passed");
}

/// Returns an append of a message and a bundle of this many bytes by the owner of `run`.
fn with_bundle(run: RunId, bytes: usize) -> Append {
    // Bytes that cannot be stored in fewer.
    let data: Vec<u8> = (0..bytes).map(|at| (at * at / 7 % 251) as u8).collect();
    let bundle = Some(Arc::new(Bundle { about: BundleAbout::default(), data: data.into() }));
    Append { bundle, ..step(run, 1, message("with a bundle")) }
}

async fn a_bundle_does_not_fit(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let store = open(folder).await.unwrap();
    let run = create(&store, 2, Ownership::Mine).await;
    for bytes in [20 << 20, 4 << 20] {
        let refused = store.append(vec![with_bundle(run, bytes)]).await;
        assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
        // It took no room from others.
        store.append(vec![step(run, 1, message("a step"))]).await.unwrap();
        store.append(vec![with_bundle(run, 300_000)]).await.unwrap();
    }
    assert_eq!(store.bundle(run).await.unwrap().unwrap().data.len(), 300_000);
    store.close().await;
    is_sound(folder).await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// A run that tries to store its bundle again and again takes no space that others need to stop.
async fn a_bundle_leaves_the_reserve(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let store = Arc::new(open(folder).await.unwrap());
    let run = create(&*store, 2, Ownership::Mine).await;
    let other = create(&*store, 2, Ownership::Mine).await;
    // What was replaced is still to be removed.
    for bytes in [400_000, 100_000] {
        store.append(vec![with_bundle(run, bytes)]).await.unwrap();
    }
    let filler = Filler::new(folder, 0);
    append_until_full(&store, &[other]).await;
    let reserved = || std::fs::metadata(folder.join("posse.db-reserve")).map_or(0, |it| it.len());
    assert_eq!(reserved(), 1 << 20, "the reserve is gone already");
    for bytes in [300_000, 500_000, 300_000] {
        let refused = store.append(vec![with_bundle(run, bytes)]).await;
        assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
        let (which, ended_for) = (Leftover::Archived, Duration::ZERO);
        store.leftovers(Leftovers { which, ended_for, limit: 9 }).await.unwrap();
        assert_eq!(reserved(), 1 << 20, "a bundle took the reserve");
    }
    let asked = Append { reserve: Reserve::Use, ..Append::by_anyone(run, cancel()) };
    store.append(vec![asked]).await.unwrap();
    drop(filler);
    store.close().await;
    is_sound(folder).await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// Takes all space of a folder except `left` bytes, until it is dropped.
struct Filler(PathBuf);

impl Filler {
    fn new(folder: &Path, left: u64) -> Self {
        let path = folder.join("filler");
        let mut file = File::create(&path).unwrap();
        let mut length = 0;
        for size in [65_536, 4_096, 1] {
            let block = vec![1; size];
            while let Ok(written) = file.write(&block) {
                length += written as u64;
            }
        }
        file.set_len(length.saturating_sub(left)).unwrap();
        Filler(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn open(folder: &Path) -> Result<SqliteStore, StoreError> {
    let poll = Duration::from_millis(10);
    SqliteStore::open(Options { poll, ..Options::new(folder.join("posse.db")) }).await
}

async fn is_sound(folder: &Path) {
    let mut connection = connect(&folder.join("posse.db")).await;
    let row = sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "ok");
}

/// Appends from several tasks until the disk is full. Returns the number of events of each run.
async fn append_until_full(store: &Arc<SqliteStore>, runs: &[RunId]) -> Vec<usize> {
    let mut lengths = vec![2; runs.len()];
    for round in 0.. {
        assert!(round < 1_000, "the disk never became full");
        let mut appends = JoinSet::new();
        for index in 0..40 {
            let (store, at) = (store.clone(), index % runs.len());
            let run = runs[at];
            appends.spawn(async move { (at, say(&*store, run, &"x".repeat(2_000)).await) });
        }
        let mut full = false;
        while let Some(result) = appends.join_next().await {
            match result.unwrap() {
                (at, Ok(_)) => lengths[at] += 1,
                (_, Err(StoreError::Full)) => full = true,
                (_, Err(error)) => panic!("{error}"),
            }
        }
        if full {
            return lengths;
        }
    }
    lengths
}

async fn fills_up_with(folder: &Path, left: u64) {
    let store = Arc::new(open(folder).await.unwrap());
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(create(&*store, 2, Ownership::Mine).await);
    }
    let queued = create(&*store, 2, Ownership::Queued).await;
    let unowned = create(&*store, 2, Ownership::Queued).await;
    let filler = Filler::new(folder, left);
    let mut lengths = append_until_full(&store, &runs).await;

    // New work is refused, and everything can be read.
    assert!(matches!(say(&*store, runs[0], "hello").await, Err(StoreError::Full)));
    let wanted = Wanted { limit: 1, ..Wanted::default() };
    assert!(matches!(store.claim(&wanted).await, Err(StoreError::Full)));
    let creation = creation(2, Ownership::Queued);
    assert!(matches!(store.append(vec![creation.clone()]).await, Err(StoreError::Full)));
    store.renew().await.unwrap();
    for (run, length) in runs.iter().zip(&lengths) {
        assert_eq!(read(&*store, *run).await.unwrap(), *length, "what was answered is stored");
    }
    is_sound(folder).await;

    // Appends that stop runs are stored, in this store and in another.
    let reserve = Reserve::Use;
    for (run, length) in runs[..4].iter().zip(&mut lengths) {
        let asked = Append { reserve, ..Append::by_anyone(*run, cancel()) };
        store.append(vec![asked]).await.unwrap();
        store.append(vec![Append { reserve, ..step(*run, 1, finished()) }]).await.unwrap();
        *length += 2;
        assert_eq!(row(&*store, *run).await.status, Status::Finished);
    }
    let other = open(folder).await.unwrap();
    let asked = Append { reserve, ..Append::by_anyone(runs[4], cancel()) };
    other.append(vec![asked]).await.unwrap();
    lengths[4] += 1;
    assert_eq!(read(&other, runs[4]).await.unwrap(), lengths[4]);
    // A run that no worker executes can be claimed, to end it.
    let asked = Append { reserve, ..Append::by_anyone(unowned, cancel()) };
    other.append(vec![asked]).await.unwrap();
    let claimed = claim(&other, 9).await;
    assert_eq!(ids(&claimed), [unowned], "and no other");
    other.append(vec![Append { reserve, ..step(unowned, 1, finished()) }]).await.unwrap();
    assert_eq!(row(&other, unowned).await.status, Status::Finished);
    assert!(matches!(other.claim(&wanted).await, Err(StoreError::Full)), "nobody is to stop");
    other.close().await;
    is_sound(folder).await;

    // When there is space again, everything continues by itself.
    let mut ready = store.ready();
    ready.mark_unchanged();
    drop(filler);
    tokio::time::timeout(Duration::from_secs(10), ready.changed()).await.unwrap().unwrap();
    say(&*store, runs[5], "hello").await.unwrap();
    lengths[5] += 1;
    let made = creation.run;
    store.append(vec![creation]).await.unwrap();
    let free: Vec<RunId> = ids(&claim(&*store, 9).await);
    assert_eq!(free, [queued, made]);
    store.append(vec![step(runs[5], 1, time_passed())]).await.unwrap();
    lengths[5] += 1;
    for (run, length) in runs.iter().zip(&lengths) {
        assert_eq!(read(&*store, *run).await.unwrap(), *length);
    }
    let reserve = std::fs::metadata(folder.join("posse.db-reserve")).unwrap().len();
    assert_eq!(reserve, 1 << 20, "the reserve is kept again");
    is_sound(folder).await;
    store.close().await;
}

/// A process that starts on a full disk can read, and can stop runs with the reserve.
async fn starts_on_a_full_disk(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let store = open(folder).await.unwrap();
    let run = create(&store, 5, Ownership::Queued).await;
    store.close().await;
    let filler = Filler::new(folder, 0);
    let store = open(folder).await.unwrap();
    assert_eq!(read(&store, run).await.unwrap(), 5);
    assert!(matches!(say(&store, run, "hello").await, Err(StoreError::Full)));
    let asked = Append { reserve: Reserve::Use, ..Append::by_anyone(run, cancel()) };
    store.append(vec![asked]).await.unwrap();
    drop(filler);
    say(&store, run, "hello").await.unwrap();
    assert_eq!(read(&store, run).await.unwrap(), 7);
    store.close().await;
    is_sound(folder).await;
    std::fs::remove_dir_all(folder).unwrap();
}

async fn no_room_even_to_open(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let filler = Filler::new(folder, 0);
    let refused = open(folder).await.err().expect("there is no room for a database");
    assert!(matches!(refused, StoreError::Full), "{refused}");
    drop(filler);
    let store = open(folder).await.unwrap();
    create(&store, 2, Ownership::Queued).await;
    store.close().await;
    is_sound(folder).await;
}

/// Small appends make a log that is many times as long as its content.
async fn its_own_log_fills_the_disk(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let store = open(folder).await.unwrap();
    let run = create(&store, 2, Ownership::Mine).await;
    let mut written = 0;
    for _ in 0..1_500 {
        say(&store, run, &"x".repeat(100)).await.expect("the log makes room");
        written += 1;
    }
    assert_eq!(read(&store, run).await.unwrap(), 2 + written);
    store.close().await;
    is_sound(folder).await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// What is left of the reserve.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Reserve,
    Nothing,
}

/// A process that died has left a log that fills the disk. The next process can write.
async fn a_log_that_was_left_fills_the_disk(folder: &Path, kept: Kept) {
    std::fs::create_dir(folder).unwrap();
    let store = open(folder).await.unwrap();
    let run = create(&store, 2, Ownership::Queued).await;
    store.close().await;
    if kept == Kept::Nothing {
        std::fs::remove_file(folder.join("posse.db-reserve")).unwrap();
    }
    // Only this connection writes, and it is never closed, so it leaves the log as it is.
    let mut died = connect(&folder.join("posse.db")).await;
    sqlx::query("PRAGMA wal_autocheckpoint = 0").execute(&mut died).await.unwrap();
    let touch = "UPDATE runs SET note = note || 'x'";
    while sqlx::query(touch).execute(&mut died).await.is_ok() {}
    std::mem::forget(died);
    let length = std::fs::metadata(folder.join("posse.db-wal")).unwrap().len();
    assert!(length > 4 << 20, "{length}");

    let store = open(folder).await.unwrap();
    say(&store, run, "hello").await.expect("the log makes room");
    assert_eq!(ids(&claim(&store, 9).await), [run]);
    store.close().await;
    is_sound(folder).await;
    std::fs::remove_dir_all(folder).unwrap();
}
