//! Common code of the tests: events, a store in its own folder, and direct access to the database.

use posse_protocol::{Event, RunId, Seq};
use posse_store::{
    Append, Claimed, Filter, Guard, Options, Ownership, Reserve, RunRow, SqliteStore, Store,
    StoreError, Wanted,
};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Parses an event.
pub fn event(body: serde_json::Value) -> Event {
    serde_json::from_value(body).unwrap()
}

pub fn started() -> Event {
    event(json!({
        "type": "run_started", "agent": {"name": "tester"}, "model": "test/model",
        "grant": {"tools": [], "workspace": "/w"},
    }))
}

pub fn message(text: &str) -> Event {
    event(json!({
        "type": "message_received", "from": "user",
        "message": {"role": "user", "parts": [{"type": "text", "text": text}]},
    }))
}

pub fn cancel() -> Event {
    event(json!({"type": "cancel_requested", "by": "tester"}))
}

pub fn time_passed() -> Event {
    event(json!({"type": "time_passed", "worked_ms": 1}))
}

pub fn finished() -> Event {
    let outcome = json!({"kind": "cancelled", "by": "tester"});
    event(json!({"type": "run_finished", "outcome": outcome, "worked_ms": 1}))
}

pub fn creation(events: usize, then: Ownership) -> Append {
    let mut all = vec![started()];
    all.extend((2..=events).map(|index| message(&format!("event {index} of this run"))));
    Append {
        run: RunId::new(),
        events: all.into(),
        guard: Guard::Create(then),
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    }
}

/// Creates a run with this many events.
pub async fn create(store: &dyn Store, events: usize, then: Ownership) -> RunId {
    let append = creation(events, then);
    let run = append.run;
    store.append(vec![append]).await.unwrap();
    run
}

pub fn step(run: RunId, epoch: u64, event: Event) -> Append {
    let guard = Guard::Owner { epoch, last: None, then: Ownership::Mine };
    Append {
        run,
        events: [event].into(),
        guard,
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    }
}

pub async fn say(store: &dyn Store, run: RunId, text: &str) -> Result<Seq, StoreError> {
    let append = Append::by_anyone(run, message(text));
    store.append(vec![append]).await.map(|it| it[0].last)
}

pub async fn claim(store: &dyn Store, limit: usize) -> Vec<Claimed> {
    let wanted = Wanted { limit, ..Wanted::default() };
    store.claim(&wanted).await.unwrap()
}

pub fn ids(claimed: &[Claimed]) -> Vec<RunId> {
    claimed.iter().map(|it| it.row.id).collect()
}

pub async fn row(store: &dyn Store, run: RunId) -> RunRow {
    let filter = Filter { id: Some(run), ..Filter::default() };
    store.list(&filter).await.unwrap().pop().unwrap()
}

pub async fn read(store: &dyn Store, run: RunId) -> Result<usize, StoreError> {
    store.read(run, Seq::ZERO, usize::MAX).await.map(|records| records.len())
}

/// A database in its own folder.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self) -> PathBuf {
        self.folder().join("posse.db")
    }

    pub fn options(&self) -> Options {
        Options {
            reserve_bytes: 4_096,
            poll: Duration::from_millis(10),
            ..Options::new(self.file())
        }
    }

    pub async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.options()).await.unwrap()
    }

    /// Changes the database without the store.
    pub async fn tamper(&self, statements: &str) {
        tamper(&self.file(), statements).await;
    }

    /// Returns a copy of every file, as if all processes were killed now.
    pub fn killed(&self) -> Place {
        let copy = Place::new();
        for (path, bytes) in self.contents() {
            let to = copy.folder().join(path.strip_prefix(self.folder()).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
        copy
    }

    /// Flips a bit of the byte at `at` in a file.
    pub fn flip(&self, name: &str, at: usize) {
        let path = self.folder().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(path, bytes).unwrap();
    }

    /// Changes rows by `there`, and back by `back` without updating the index. Afterwards the rows
    /// are unchanged, and the index is wrong.
    pub async fn blind(&self, index: &str, there: &str, back: &str) {
        self.tamper(there).await;
        let mut connection = connect(&self.file()).await;
        let (root, sql): (i64, String) =
            sqlx::query_as("SELECT rootpage, sql FROM sqlite_schema WHERE name = $1")
                .bind(index)
                .fetch_one(&mut connection)
                .await
                .unwrap();
        connection.close().await.unwrap();
        let table = if index.starts_with("runs") { "runs" } else { "deliveries" };
        let hide = format!(
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '{index}'"
        );
        self.tamper(&hide).await;
        self.tamper(back).await;
        let sql = sql.replace('\'', "''");
        let show = format!(
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, \
             sql) VALUES ('index', '{index}', '{table}', {root}, '{sql}')"
        );
        self.tamper(&show).await;
    }

    /// Returns every file below the folder, with its content.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push((path.clone(), std::fs::read(path).unwrap())),
                }
            }
        }
        found.sort();
        found
    }
}

pub async fn connect(file: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file);
    options.busy_timeout(Duration::from_secs(10)).connect().await.unwrap()
}

pub async fn tamper(file: &Path, statements: &str) {
    let mut connection = connect(file).await;
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Polls until `condition` holds; fails the test after ten seconds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
