//! Real processes: a killed process frees its runs at once. This binary is its own child.

use crate::sample::*;
use posse_protocol::Status;
use posse_store::{Claims, Logs, Options, Ownership, SqliteStore};
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Names the folder in which a child works. Without it, a child does nothing.
pub const FOLDER: &str = "POSSE_STORE_TEST_FOLDER";

/// Returns the folder for a child, if this process is one.
pub fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns the command that runs one of the ignored tests of this binary.
pub fn arguments_of_child(test: &str) -> Vec<String> {
    let binary = std::env::current_exe().unwrap().display().to_string();
    [binary.as_str(), "--exact", test, "--ignored", "--nocapture"].map(str::to_owned).to_vec()
}

/// Options with a lease that is longer than any test.
fn patient(folder: PathBuf) -> Options {
    let lease = Duration::from_secs(100_000);
    Options { lease, poll: Duration::from_millis(10), ..Options::new(folder.join("posse.db")) }
}

#[tokio::test]
#[ignore = "a child of `a_killed_process_frees_its_runs_at_once`"]
async fn child_that_claims() {
    let Some(folder) = folder_of_child() else { return };
    let store = SqliteStore::open(patient(folder)).await.unwrap();
    println!("\nclaimed {}", claim(&store, 5).await.len());
    // Until this process or its parent is killed.
    let _ = std::io::stdin().read(&mut [0]);
}

#[tokio::test]
async fn a_killed_process_frees_its_runs_at_once() {
    let place = Place::new();
    let store = SqliteStore::open(patient(place.folder().to_owned())).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(create(&store, 2, Ownership::Queued).await);
    }
    let arguments = arguments_of_child("process::child_that_claims");
    for round in 1..=3 {
        let mut child = Command::new(&arguments[0])
            .args(&arguments[1..])
            .env(FOLDER, place.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next_line().await.unwrap().expect("the child ended early");
            if let Some(count) = line.strip_prefix("claimed ") {
                assert_eq!(count, "3");
                break;
            }
        }
        assert!(claim(&store, 5).await.is_empty(), "the child owns them");
        assert_eq!(row(&store, runs[0]).await.status, Status::Running);
        let mut ready = store.ready();
        ready.mark_unchanged();
        child.kill().await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), ready.changed()).await.unwrap().unwrap();
        assert_eq!(row(&store, runs[0]).await.status, Status::Crashed);
        let taken = claim(&store, 5).await;
        assert_eq!(ids(&taken), runs);
        assert_eq!(taken[0].epoch, 2 * round);
        for claimed in taken {
            let mut back = step(claimed.row.id, claimed.epoch, time_passed());
            back.guard = posse_store::Guard::Owner {
                epoch: claimed.epoch,
                last: None,
                then: Ownership::Queued,
            };
            store.append(vec![back]).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_wait_for_another_process_and_readers_do_not() {
    let place = Place::new();
    let store = place.open().await;
    let run = create(&store, 2, Ownership::Mine).await;
    let mut other = connect(&place.file()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let waiting = say(&store, run, "hello");
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "written beside another writer");
    assert_eq!(read(&store, run).await.unwrap(), 2);
    assert_eq!(row(&store, run).await.log.last_seq.0, 2);
    sqlx::query("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(waiting.await.unwrap().0, 3);
}
