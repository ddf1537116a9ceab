//! Lists and searches of runs in a database of a million, against a bare `SELECT` by the primary
//! key in the same database.

use super::Result;
use super::harness::Effort;
use super::line::{Line, Samples, note};
use posse::RunId;
use posse::store::{
    By, Filter, Inspection, Kin, Leftover, Leftovers, Options, SpendingQuery, SqliteStore, Store,
    Unfinished,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use std::path::Path;
use std::time::{Duration, Instant};

/// Measures lists and searches among very many runs
#[derive(clap::Args)]
pub struct Registry {
    /// How many runs there are
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// How often each is asked
    #[arg(long, default_value_t = 200)]
    times: usize,
    /// Measure this build, optimised or not
    #[arg(long)]
    as_built: bool,
}

/// One run in so many is a root; the others are its children.
const TREE: u64 = 10;
/// One run in so many has not ended.
const OPEN: u64 = 1_000;
/// Folders that the runs are spread over.
const FOLDERS: u64 = 100;
/// Runs of one statement.
const BATCH: u64 = 500;

impl Registry {
    pub fn effort(&self) -> Effort {
        Effort { quick: false, as_built: self.as_built }
    }

    pub async fn measure(self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("runs.db");
        let store = SqliteStore::open(Options::new(&path)).await?;
        let began = Instant::now();
        fill(&path, self.runs).await?;
        note(&format!("added {} runs in {:.1?}", self.runs, began.elapsed()));
        let raw = self.bare(&path).await?;
        let pick = |turn: usize| id(spread(turn, self.runs));
        let root = |turn: usize| id(spread(turn, self.runs) / TREE * TREE);
        let filter =
            |change: &dyn Fn(Filter) -> Filter| change(Filter { limit: 50, ..Filter::default() });
        let lists: [(&str, &dyn Fn(usize) -> Filter); 8] = [
            ("list: the newest 50", &|_| filter(&|it| it)),
            ("list: 50 roots", &|_| filter(&|it| Filter { kin: Kin::Roots, ..it })),
            ("list: a page of 50, somewhere", &|turn| {
                filter(&|it| Filter { before: Some(pick(turn)), ..it })
            }),
            ("list: 50 of a folder", &|turn| {
                let folder = format!("/work/{}", turn as u64 % FOLDERS);
                filter(&|it| Filter { workspace: Some(folder.clone()), ..it })
            }),
            ("list: 50 unfinished", &|_| {
                filter(&|it| Filter { unfinished: Unfinished::Only, ..it })
            }),
            ("list: children of one", &|turn| {
                filter(&|it| Filter { kin: Kin::ChildrenOf(root(turn)), ..it })
            }),
            ("list: a tree", &|turn| filter(&|it| Filter { kin: Kin::TreeOf(root(turn)), ..it })),
            ("find: by id", &|turn| filter(&|it| Filter { id: Some(pick(turn)), ..it })),
        ];
        for (name, filter) in lists {
            let ask = async |turn: usize| Ok(store.list(&filter(turn)).await?.len());
            self.ask(name, &raw, ask).await?;
        }
        let parts: [(&str, &dyn Fn(String) -> String); 2] = [
            ("find: by the first 20 characters", &|id| id[..20].to_owned()),
            ("find: by the last 8 characters", &|id| id[18..].to_owned()),
        ];
        for (name, part) in parts {
            let ask =
                async |turn: usize| Ok(store.find(&part(pick(turn).to_string())).await?.len());
            self.ask(name, &raw, ask).await?;
        }
        let old = Leftovers { which: Leftover::Ended, ended_for: Duration::ZERO, limit: 256 };
        let ask = async |_: usize| Ok(store.leftovers(old).await?.len());
        self.ask("sweep: 256 to archive", &raw, ask).await?;
        let ask = async |turn: usize| {
            let query = SpendingQuery { tree: Some(root(turn)), ..SpendingQuery::default() };
            Ok(store.spending(&query).await?.len())
        };
        self.ask("cost: of a tree", &raw, ask).await?;
        let few = Registry { times: 5, ..self };
        let ask = async |_: usize| {
            let query = SpendingQuery { by: By::Model, ..SpendingQuery::default() };
            Ok(store.spending(&query).await?.len())
        };
        few.ask("cost: of all, by model", &raw, ask).await?;
        store.close().await;
        Ok(())
    }

    /// Prints how long `ask` takes, which must find something.
    async fn ask(
        &self,
        name: &str,
        raw: &Samples,
        ask: impl AsyncFn(usize) -> Result<usize>,
    ) -> Result<()> {
        let posse = self.times(async |turn| match ask(turn).await? {
            0 => Err(format!("{name} found nothing").into()),
            _ => Ok(()),
        });
        let posse = posse.await?;
        let line = Line::new(name, posse.spread()).raw(raw.spread());
        line.ratio_of(posse.median(), raw.median()).print();
        Ok(())
    }

    /// A bare `SELECT` of one row by its primary key.
    async fn bare(&self, path: &Path) -> Result<Samples> {
        let mut connection = connect(path).await?;
        let times = self.times(async |turn| {
            let query = sqlx::query("SELECT * FROM runs WHERE id = $1");
            let wanted = id(spread(turn, self.runs)).to_string();
            query.bind(wanted).fetch_one(&mut connection).await?;
            Ok(())
        });
        let times = times.await?;
        connection.close().await?;
        Ok(times)
    }

    /// How long each call of `ask` takes.
    async fn times(&self, mut ask: impl AsyncFnMut(usize) -> Result<()>) -> Result<Samples> {
        let mut times = Vec::with_capacity(self.times);
        for turn in 0..self.times {
            let began = Instant::now();
            ask(turn).await?;
            times.push(began.elapsed().as_secs_f64());
        }
        Ok(Samples::new(times))
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection> {
    Ok(SqliteConnectOptions::new().filename(path).connect().await?)
}

/// The ids of the runs: in order, with ends that look random, as those of real runs.
fn id(number: u64) -> RunId {
    let end = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    RunId::from_u128(u128::from(1_700_000_000_000 + number) << 80 | 7 << 76 | u128::from(end))
}

/// Some run for a turn; never the first, which has none before it.
fn spread(turn: usize, runs: u64) -> u64 {
    1 + (turn as u64).wrapping_mul(7_919) % runs.saturating_sub(1).max(1)
}

/// Adds runs as rows, each with one model call, without logs, which nothing here reads.
async fn fill(path: &Path, runs: u64) -> Result<()> {
    let mut connection = connect(path).await?;
    sqlx::query("PRAGMA synchronous = OFF").execute(&mut connection).await?;
    let mut first = 0;
    while first < runs {
        let last = (first + BATCH).min(runs);
        let rows: Vec<String> = (first..last).map(row).collect();
        let calls: Vec<String> = (first..last).map(call).collect();
        let text = format!(
            "BEGIN; INSERT INTO runs (id, agent, model, title, workspace, session, created_at, \
             updated_at, last_seq, last_hash, version, epoch, runnable, ready_at, outcome, note, \
             archived, turns, tool_calls, input_tokens, output_tokens, cost, reserved_input, \
             reserved_output, reserved_cost, parent, root, depth, label, finished_at, stopping, \
             awaits, priority, background, expects, gathers, gathered_at, paused, cleanup, erased, \
             calling_for, asks, uncertain_input, uncertain_output, uncertain_cost, cut_calls, \
             deaths, calls_at_death, host, needs) VALUES {}; INSERT INTO model_calls (run, seq, at, root, agent, model, label, purpose, \
             ending, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, \
             reasoning_tokens, cost, uncertain_input, uncertain_output, uncertain_cost) \
             VALUES {}; COMMIT",
            rows.join(", "),
            calls.join(", ")
        );
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await?;
        first = last;
    }
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

fn row(number: u64) -> String {
    let (own, root) = (id(number), id(number / TREE * TREE));
    let (parent, depth) = match number % TREE {
        0 => ("NULL".to_owned(), 0),
        _ => (format!("'{root}'"), 1),
    };
    let at = 1_700_000_000_000 + number;
    // Whole trees are open, so that many are not.
    let (outcome, finished) = match number / TREE % OPEN {
        0 => ("NULL", 0),
        _ => ("'completed'", at),
    };
    let folder = number / TREE % FOLDERS;
    format!(
        "('{own}', 'code', 'test/model', 'do {number}', '/work/{folder}', 0, {at}, {at}, 9, '', 3, \
         1, 0, {at}, {outcome}, '', 0, 2, 1, 500, 50, 900, 0, 0, 0, {parent}, '{root}', {depth}, \
         'label {}', {finished}, 0, 0, 0, 0, 0, 0, 0, 0, 'keep', 0, 'turn', 0, 0, 0, 0, 0, 0, 0, \
         '', '')",
        number % 20
    )
}

fn call(number: u64) -> String {
    let (own, root) = (id(number), id(number / TREE * TREE));
    let at = 1_700_000_000_000 + number;
    let label = number % 20;
    format!(
        "('{own}', 8, {at}, '{root}', 'code', 'test/model', 'label {label}', 'turn', 'replied', 500, \
         0, 0, 50, 0, 900, 0, 0, 0)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_rows_fit_the_schema_of_today() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let store = SqliteStore::open(Options::new(&path)).await.unwrap();
        fill(&path, 2 * BATCH).await.unwrap();
        let roots = Filter { kin: Kin::Roots, limit: usize::MAX, ..Filter::default() };
        assert_eq!(store.list(&roots).await.unwrap().len() as u64, 2 * BATCH / TREE);
        store.close().await;
    }
}
