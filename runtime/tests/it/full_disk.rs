//! Runs on a full disk: a real one, a few megabytes of memory mounted for a child of this binary.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{CancelScope, Event, Outcome};
use posse::store::{Filter, StoreError};
use posse::{Error, RuntimeConfig};
use posse_testkit::{Gate, Reply, Script, skipped};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Tells the child where the small disk is.
const DISK: &str = "POSSE_TEST_SMALL_DISK";

#[tokio::test]
#[allow(clippy::disallowed_methods)]
async fn a_full_disk_pauses_runs_refuses_new_ones_and_lets_them_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let namespace = if is_root { "-m" } else { "-Urm" };
    let script = r#"mount -t tmpfs -o size=6m,mode=700 tmpfs "$0" && echo mounted && exec "$@""#;
    let child = tokio::process::Command::new("unshare")
        .args([namespace, "sh", "-c", script])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "full_disk::child_on_a_small_disk", "--nocapture"])
        .env(DISK, folder.path())
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
            "posse: runs on a full disk (none can be mounted here without being root: {why})"
        ));
        return;
    }
    assert!(ended.status.success(), "{:?}\n{output}\n{errors}", ended.status);
    assert!(output.contains("1 passed"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a child of the test above"]
#[allow(clippy::disallowed_methods)]
async fn child_on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(DISK).expect("run by its parent"));
    let gate = Gate::new();
    let script = Script::turns([
        Reply::text("first").and_tool_call("List", json!({})),
        Reply::text("second").held_by(&gate).and_tool_call("List", json!({})),
        Reply::text("third"),
    ]);
    let database = disk.join("runs.db");
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.storage.database = database;
        config
    })
    .await;
    let pausing = bench.start("goes on when there is space").await;
    let stopped = bench.start("is cancelled without space").await;
    within(gate.wait_for_held(2)).await.unwrap();
    let filler = fill(&disk);

    let refused = bench.runtime.start(bench.spec("one more")).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Full))), "a named error");
    assert_eq!(bench.runtime.list(&Filter::default()).await.unwrap().len(), 2, "reads work");

    // Both get their replies and cannot store them.
    gate.open();
    bench.runtime.cancel(stopped.id(), "the test", CancelScope::Run).await.unwrap();
    let outcome = within(stopped.outcome()).await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    let log = bench.log(stopped.id()).await;
    assert!(matches!(log.last().unwrap().event, Event::RunFinished(_)), "stored, from the reserve");
    let row = bench.runtime.find(&pausing.id().to_string()).await.unwrap();
    assert_eq!(row.status, posse::Status::Running, "the other one waits for space");

    std::fs::remove_file(filler).unwrap();
    let outcome = within(pausing.outcome()).await.unwrap();
    assert_eq!(outcome, Outcome::completed("third"));
    eventually(async || bench.runtime.start(bench.spec("again")).await.is_ok()).await;
    bench.runtime.shutdown().await;
}

/// Takes all the space there is.
fn fill(disk: &std::path::Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [65_536, 4_096, 1] {
        let block = vec![1; size];
        while file.write(&block).is_ok() {}
    }
    path
}
