use super::*;
use crate::DeliveryState;
use crate::leftover::Leftover;
use crate::spending::By;
use crate::{Filter, Kin, Unfinished};
use posse_protocol::RunId;
use sqlx::{AssertSqlSafe, Connection, Executor, Row, SqlSafeStr, SqliteConnection};

/// The statements that only PostgreSQL gets.
fn lateral() -> Vec<String> {
    let here = Passed { workspace: true, ..Passed::default() };
    [Passed::default(), here].map(|it| queue_by_root(ByRoot::LateralJoin, it, "")).to_vec()
}

fn save_all(count: usize) -> String {
    save_runs(count, Columns::All)
}

fn save_moving(count: usize) -> String {
    save_runs(count, Columns::Moving)
}

/// Every statement of a store, without the pragmas and transactions of the engine.
fn all() -> Vec<String> {
    let fixed = [
        WORKERS,
        WORKER_SAVE,
        WORKER_DELETE,
        DISOWN,
        TO_STOP,
        DIED,
        MARK_DAMAGED,
        EVENTS_FROM,
        TAIL,
        NEWEST,
        ORPHANS,
        STRANGERS,
        ERASE,
        stage::BUNDLE,
        stage::PARTS,
        stage::STORED_PARTS,
        stage::COUNT_PARTS,
        stage::BUNDLE_STAGE,
        stage::PART_INSERT,
        stage::BUNDLE_RETIRE,
        stage::BUNDLE_GIVE_UP,
        stage::BUNDLE_SHOW,
        stage::BUNDLES_OF_NOBODY,
        stage::LOG_SHOW,
        stage::LOG_BEGIN,
        stage::LOG_GO_ON,
        stage::LOG_GIVE_UP,
        stage::LOG_HIDE,
        stage::LOGS_KEEP,
        stage::BUNDLES_KEEP,
        stage::LOG_HIDDEN,
        stage::BUNDLE_EXPIRED,
        stage::PARTS_REMOVE,
        stage::BUNDLE_REMOVE,
        stage::LOG_EXPIRED,
        stage::EVENTS_REMOVE,
        stage::LOG_SHORTEN,
        stage::LOG_REMOVE,
        stage::EXPIRED,
    ];
    let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
    let of_deliveries = [
        DELIVERY_INSERT,
        DELIVERIES_DUE,
        DELIVERY_CHANGE,
        DELIVERY_CONDEMN,
        DELIVERIES_OF_NOBODY,
        DELIVERY_NEXT,
    ];
    all.extend(of_deliveries.map(str::to_owned));
    for bits in 0..8 {
        let filter = DeliveryFilter {
            id: (bits & 1 != 0).then(|| "msg_1".to_owned()),
            run: (bits & 2 != 0).then(|| RunId::from_u128(1)),
            state: (bits & 4 != 0).then_some(DeliveryState::Dead),
            limit: 0,
        };
        all.push(deliveries(&filter));
    }
    all.extend([runs_by_beginning(), runs_by_ending(), runs_by_piece(), calls_of_a_run()]);
    all.extend(Leftover::ALL.map(leftovers));
    let every = [By::Nothing, By::Run, By::Tree, By::Agent, By::Model, By::Label, By::Day];
    for (by, bits) in every.into_iter().flat_map(|by| (0..16).map(move |bits| (by, bits))) {
        let is_set = |bit: i32| bits & (1 << bit) != 0;
        let (tree, workspace) = (is_set(0), is_set(1));
        all.push(spending(Ask { by, tree, workspace, since: is_set(2), until: is_set(3) }));
    }
    for count in [1, 2, 64] {
        all.extend(
            [
                insert_events,
                insert_calls,
                insert_runs,
                change_runs,
                save_all,
                save_moving,
                runs_by_id,
                tails,
                runs_by_key,
                stage::logs_of,
            ]
            .map(|it| it(count)),
        );
    }
    for ids in [0, 1, 64] {
        for (workspace, only_to_stop) in [(false, false), (true, false), (false, true)] {
            for again in [None, Some(WorkerId::new())] {
                all.push(claimable(Shape { ids, workspace, only_to_stop, again }, ""));
            }
        }
    }
    let here = Passed { workspace: true, ..Passed::default() };
    all.extend([
        queue_by_root(ByRoot::Condition, Passed::default(), ""),
        queue_by_root(ByRoot::Condition, here, ""),
    ]);
    all.extend([queue_since(""), queue_until()]);
    for count in [1, 4, 16, 64, 256] {
        all.extend([queue_of(count, ""), places(count)]);
        all.push(queue_ahead(Passed { agents: count, ..Passed::default() }, ""));
        let (agents, models, parents) = (count, count, count);
        all.push(queue_ahead(Passed { workspace: true, agents, models, parents }, ""));
    }
    all.push(queue_ahead(Passed::default(), ""));
    all.extend(crate::selection::samples());
    all
}

#[tokio::test]
async fn every_statement_prepares() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    connection.execute(AssertSqlSafe(SCHEMA.whole())).await.unwrap();
    for statement in all() {
        let text = AssertSqlSafe(statement.clone()).into_sql_str();
        let prepared = connection.prepare(text).await;
        assert!(prepared.is_ok(), "{statement}: {:?}", prepared.err());
    }
}

/// Returns the query plan of a statement.
async fn plan(connection: &mut SqliteConnection, statement: &str) -> String {
    let explained = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let steps = sqlx::query(explained).fetch_all(connection).await.unwrap();
    steps.iter().map(|step| step.get::<String, _>(3) + "; ").collect()
}

#[tokio::test]
async fn an_index_leads_to_what_is_asked_for_among_a_million() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    connection.execute(AssertSqlSafe(SCHEMA.whole())).await.unwrap();
    let listed = |workspace: bool, kin, unfinished: bool| {
        let unfinished = if unfinished { Unfinished::Only } else { Unfinished::All };
        let workspace = workspace.then(|| "/w".to_owned());
        let filter = Filter { workspace, kin, unfinished, ..Filter::default() };
        crate::selection::select(&filter, &[]).statement
    };
    let run = RunId::from_u128(1);
    let next = Filter { kin: Kin::TreeOf(run), after: Some(run), ..Filter::default() };
    let next_of_tree = crate::selection::select(&next, &[]).statement;
    let table = [
        (listed(false, Kin::All, false), "sqlite_autoindex_runs_1"),
        (listed(false, Kin::All, true), "runs_unfinished"),
        (listed(true, Kin::All, false), "runs_by_workspace"),
        (listed(true, Kin::All, true), "runs_open_by_workspace"),
        (listed(false, Kin::Roots, false), "runs_at_the_top"),
        (listed(false, Kin::Roots, true), "runs_open_at_the_top"),
        (listed(false, Kin::Heads, true), "runs_unfinished"),
        (listed(false, Kin::ChildrenOf(run), false), "runs_by_parent"),
        (listed(false, Kin::TreeOf(run), false), "runs_by_root"),
        (listed(false, Kin::TreeOf(run), true), "runs_open_in_tree"),
        (next_of_tree, "runs_by_root"),
        (runs_by_beginning(), "sqlite_autoindex_runs_1"),
        (runs_by_ending(), "runs_by_ending"),
        (leftovers(Leftover::Ended), "runs_to_put_away"),
        (leftovers(Leftover::Due), "runs_to_put_away_early"),
        (leftovers(Leftover::Unwanted), "runs_to_delete"),
        (leftovers(Leftover::Archived), "runs_to_erase"),
    ];
    for (statement, index) in table {
        let plan = plan(&mut connection, &statement).await;
        let wanted = format!("runs USING INDEX {index}");
        assert!(plan.contains(&wanted), "{statement}: {plan}");
        let is_sorted = !plan.contains("TEMP B-TREE") || index == "runs_by_ending";
        assert!(is_sorted, "{statement}: {plan}");
    }
    for count in [1, 64] {
        let plan = plan(&mut connection, &save_moving(count)).await;
        assert!(
            plan.contains("SEARCH runs USING COVERING INDEX sqlite_autoindex_runs_1"),
            "{plan}"
        );
    }
    let by = By::Nothing;
    for (tree, index) in [(true, "sqlite_autoindex_model_calls_1"), (false, "model_calls_by_time")]
    {
        let ask = Ask { by, tree, workspace: false, since: !tree, until: false };
        let plan = plan(&mut connection, &spending(ask)).await;
        assert!(plan.contains(&format!("SEARCH model_calls USING INDEX {index}")), "{plan}");
        let is_bounded = plan.contains("runs_calling") || tree;
        assert!(is_bounded && !plan.contains("SCAN model_calls"), "{plan}");
    }
}

#[tokio::test]
async fn what_expires_is_removed_without_a_look_at_the_rest() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    connection.execute(AssertSqlSafe(SCHEMA.whole())).await.unwrap();
    let table = [
        (stage::LOG_EXPIRED, "hidden_logs_to_remove (expires<?)"),
        (stage::EVENTS_REMOVE, "sqlite_autoindex_events_1 (run=? AND seq>?)"),
        (stage::LOG_SHORTEN, "sqlite_autoindex_hidden_logs_1 (run=?)"),
        (stage::LOG_REMOVE, "sqlite_autoindex_hidden_logs_1 (run=?)"),
        (stage::BUNDLE_EXPIRED, "bundles_to_remove (expires<?)"),
        (stage::PARTS_REMOVE, "sqlite_autoindex_bundle_parts_1 (run=? AND data=? AND part=?)"),
        (stage::BUNDLE_REMOVE, "sqlite_autoindex_bundles_1 (run=? AND data=?)"),
    ];
    for (statement, index) in table {
        let plan = plan(&mut connection, statement).await;
        assert!(plan.contains(index), "{statement}: {plan}");
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{statement}: {plan}");
    }
}

/// Returns a statement without its string literals.
fn unquoted(statement: &str) -> String {
    statement.split('\'').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the words of a statement in upper case.
fn words(statement: &str) -> Vec<String> {
    let upper = unquoted(statement).to_uppercase();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    upper.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Words that PostgreSQL does not accept, or understands differently than SQLite.
const UNPORTABLE: [&str; 22] = [
    "AUTOINCREMENT",
    "BLOB",
    "BOOLEAN",
    "DATETIME",
    "GLOB",
    "GROUP_CONCAT",
    "IFNULL",
    "IIF",
    "INDEXED",
    "INSTR",
    "INTEGER",
    "ISNULL",
    "NOCASE",
    "NOTNULL",
    "PRAGMA",
    "PRINTF",
    "RANDOM",
    "REPLACE",
    "ROWID",
    "STRFTIME",
    "TOTAL",
    "UNIXEPOCH",
];

#[test]
fn every_statement_is_portable() {
    let schema = SCHEMA.whole();
    for statement in all().into_iter().chain(lateral()).chain(schema.split(';').map(str::to_owned))
    {
        for sign in ["?", "->", "==", "\"", "`", "["] {
            assert!(!unquoted(&statement).contains(sign), "`{sign}` in {statement}");
        }
        for word in words(&statement) {
            assert!(!UNPORTABLE.contains(&word.as_str()), "`{word}` in {statement}");
        }
        // Only one statement can be prepared at a time.
        assert!(!statement.contains(';'), "several in {statement}");
        // The first row gives the values in a list of rows their types.
        if let Some((_, rows)) = statement.split_once("VALUES ($")
            && statement.contains("(VALUES")
        {
            panic!("values of no type: {rows}");
        }
        // The PostgreSQL schema sets the collation of all TEXT columns, so no statement does.
        assert!(!words(&statement).contains(&"COLLATE".to_owned()), "{statement}");
    }
}

#[test]
fn placeholders_have_each_number_once_and_in_order() {
    for statement in all().into_iter().chain(lateral()) {
        let numbers: Vec<usize> = statement
            .split('$')
            .skip(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
            .map(|digits| digits.parse().unwrap())
            .collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{statement}");
    }
}

/// Needs a server: `POSSE_TEST_POSTGRES` holds the argument of `psql` for an empty database.
#[test]
#[ignore = "needs a PostgreSQL server and `psql`"]
#[allow(clippy::disallowed_methods)]
fn every_statement_prepares_on_postgresql() {
    use std::io::Write;
    let Ok(server) = std::env::var("POSSE_TEST_POSTGRES") else { return };
    let schema = SCHEMA.whole().replace(" TEXT", " TEXT COLLATE \"C\"");
    let numbered = all().into_iter().chain(lateral()).enumerate();
    let prepared: String =
        numbered.map(|(number, it)| format!("PREPARE s{number} AS {it};\n")).collect();
    let mut psql = std::process::Command::new("psql")
        .args(["-q", "-v", "ON_ERROR_STOP=1", &server])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("BEGIN;\n{schema};\n{prepared}ROLLBACK;\n");
    psql.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(psql.wait().unwrap().success());
}

#[test]
fn the_columns_are_counted() {
    assert_eq!(RUN_COLUMNS.split(", ").count(), RUN_WIDTH);
    assert_eq!(EVENT_COLUMNS.split(", ").count(), EVENT_WIDTH);
    assert_eq!(CALL_COLUMNS.split(", ").count(), CALL_WIDTH);
}
