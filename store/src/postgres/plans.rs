//! Tests that the server finds what is asked for among a million runs by an index.

use super::message::Text;
use super::{PostgresOptions, PostgresStore};
use crate::engine::Bind;
use crate::leftover::Leftover;
use crate::selection::select;
use crate::sql::{self, RUN_COLUMNS, leftovers};
use crate::{Filter, Kin, Label, Store, Unfinished};
use posse_protocol::{RunId, Status};
use posse_testkit::postgres::{Database, Server};

/// How many runs have ended.
const ENDED: u64 = 1_000_000;
/// How many runs wait in the queue, and how many wait for something else.
const OPEN: u64 = 1_000;

/// Stores runs without their logs: 1,000,000 that have ended, 1,000 in the queue, and 1,000 that wait. Every tenth is a
/// root with nine children. It creates the indexes last, because that is much faster.
fn fill(database: &Database) {
    let value = |column: &str| match column {
        "id" => "'R' || lpad(CAST(n AS TEXT), 25, '0')".to_owned(),
        "root" => "'R' || lpad(CAST(n - n % 10 AS TEXT), 25, '0')".to_owned(),
        "parent" => "CASE WHEN n % 10 > 0 THEN 'R' || lpad(CAST(n - n % 10 AS TEXT), 25, '0') END"
            .to_owned(),
        "depth" => "CASE WHEN n % 10 > 0 THEN 1 ELSE 0 END".to_owned(),
        "agent" => "'agent-' || n % 1000".to_owned(),
        "model" => "'vendor/model-' || n % 10".to_owned(),
        "workspace" => "'/w/' || n % 1000".to_owned(),
        "label" => "CASE WHEN n % 1000 = 0 THEN 'label-' || n ELSE '' END".to_owned(),
        "key" => "CASE WHEN n % 3 = 0 THEN 'key-' || n END".to_owned(),
        "outcome" => format!("CASE WHEN n < {ENDED} THEN 'completed' END"),
        "finished_at" => format!("CASE WHEN n < {ENDED} THEN n ELSE 0 END"),
        "archived" => format!("CASE WHEN n < {} THEN 1 ELSE 0 END", ENDED - 1_000),
        "erased" => format!("CASE WHEN n < {} THEN 1 ELSE 0 END", ENDED - 2_000),
        "runnable" => format!("CASE WHEN n BETWEEN {ENDED} AND {} THEN 1 ELSE 0 END", ENDED + OPEN),
        "created_at" | "updated_at" | "ready_at" => "n".to_owned(),
        "last_seq" => "9".to_owned(),
        "version" => "1".to_owned(),
        "title" => "'a title of an ordinary length, as runs have it'".to_owned(),
        "last_hash" => "md5(CAST(n AS TEXT)) || md5(CAST(-n AS TEXT))".to_owned(),
        "cleanup" => "CASE WHEN n % 5000 = 0 THEN 'delete' ELSE 'keep' END".to_owned(),
        "calling_for" => "'turn'".to_owned(),
        "note" | "host" | "needs" => "''".to_owned(),
        "owner" | "damaged" | "account" | "budget" | "drawn" | "calling" | "abreast"
        | "archive_after" => "NULL".to_owned(),
        _ => "0".to_owned(),
    };
    let values: Vec<String> = RUN_COLUMNS.split(", ").map(|column| value(column.trim())).collect();
    database.execute(&format!(
        "SET search_path = posse; SET maintenance_work_mem = '256MB';
        ALTER TABLE runs SET UNLOGGED;
        DO $$ DECLARE made TEXT[]; name TEXT; statement TEXT; BEGIN
            SELECT array_agg(indexdef) INTO made FROM pg_indexes
                WHERE schemaname = 'posse' AND tablename = 'runs' AND indexname <> 'runs_pkey';
            FOR name IN SELECT indexname FROM pg_indexes
                WHERE schemaname = 'posse' AND tablename = 'runs' AND indexname <> 'runs_pkey'
            LOOP EXECUTE 'DROP INDEX posse.' || name; END LOOP;
            INSERT INTO runs ({RUN_COLUMNS}) SELECT {} FROM generate_series(1, {}) AS n;
            FOREACH statement IN ARRAY made LOOP EXECUTE statement; END LOOP;
        END $$",
        values.join(", "),
        ENDED + 2 * OPEN,
    ));
    database.execute("VACUUM ANALYZE posse.runs");
}

/// A value for a placeholder.
enum Value<'v> {
    Text(&'v str),
    Number(i64),
}

use Value::{Number, Text as Word};

fn plan(database: &Database, statement: &str, values: &[Value<'_>]) -> String {
    let bind = |text: Text, value: &Value<'_>| match value {
        Word(word) => text.text((*word).to_owned()),
        Number(number) => text.number(*number),
    };
    let statement = values.iter().fold(Text::new(statement), bind).finish();
    database.text(&format!("SET search_path = posse; EXPLAIN {statement}"))
}

#[tokio::test]
async fn an_index_leads_to_what_is_asked_for_among_a_million_on_a_server() {
    let database = Server::shared().database();
    let store = PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap();
    store.close().await;
    fill(&database);
    let run = RunId::from_u128(1);
    let id = run.to_string();
    let open = |filter: Filter| Filter { unfinished: Unfinished::Only, ..filter };
    let text = |text: &str| Some(text.to_owned());
    let listed: Vec<(Filter, &str)> = vec![
        (Filter::default(), "runs_pkey"),
        (open(Filter::default()), "runs_unfinished"),
        (Filter { workspace: text("/w/7"), ..Filter::default() }, "runs_by_workspace"),
        (open(Filter { workspace: text("/w/7"), ..Filter::default() }), "runs_open_by_workspace"),
        (open(Filter { kin: Kin::Roots, ..Filter::default() }), "runs_open_at_the_top"),
        (Filter { kin: Kin::ChildrenOf(run), ..Filter::default() }, "runs_by_parent"),
        (Filter { kin: Kin::TreeOf(run), ..Filter::default() }, "runs_by_root"),
        (open(Filter { kin: Kin::TreeOf(run), ..Filter::default() }), "runs_open_in_tree"),
        (Filter { agent: text("agent-7"), ..Filter::default() }, "runs_by_agent"),
        (Filter { label: text("label-7000").map(Label::Is), ..Filter::default() }, "runs_by_label"),
        (Filter { outcome: text("failed"), ..Filter::default() }, "runs_by_outcome"),
        (Filter { status: vec![Status::Paused], ..Filter::default() }, "runs_unfinished"),
    ];
    let mut checks: Vec<(String, String)> = Vec::new();
    for (filter, index) in listed {
        let selection = select(&Filter { limit: 20, ..filter }, &[]);
        let mut values: Vec<Value<'_>> = selection.texts.iter().map(|it| Word(it)).collect();
        values.push(Number(20));
        checks.push((plan(&database, &selection.statement, &values), index.to_owned()));
    }
    let here = " AND host IN ('', 'a') AND needs IN ('')";
    let passed = sql::Passed::default();
    let shape = sql::Shape::default();
    let one = sql::Shape { ids: 1, ..shape };
    let statements: Vec<(String, Vec<Value<'_>>, &str)> = vec![
        (sql::claimable(shape, here), vec![Number(1), Number(64)], "runs_ready"),
        (sql::claimable(one, here), vec![Number(1), Word(&id), Number(1)], "runs_"),
        (sql::queue_ahead(passed, here), vec![Number(1), Number(64)], "runs_ready"),
        (
            sql::queue_by_root(sql::ByRoot::LateralJoin, passed, here),
            vec![Number(100), Number(1), Number(8)],
            "runs_ready_by_root",
        ),
        (sql::queue_since(here), vec![Number(1), Number(9), Number(64)], "runs_ready_since"),
        (sql::queue_until(), vec![], "runs_ready_since"),
        (sql::runs_by_ending(), vec![Word("0007"), Number(20)], "runs_by_ending"),
        (sql::runs_by_key(1), vec![Word("key-9")], "runs_by_key"),
    ];
    for (statement, values, index) in statements {
        checks.push((plan(&database, &statement, &values), index.to_owned()));
    }
    for (which, index) in [
        (Leftover::Ended, "runs_to_put_away"),
        (Leftover::Due, "runs_to_put_away"),
        (Leftover::Unwanted, "runs_to_delete"),
        (Leftover::Archived, "runs_to_erase"),
    ] {
        let values = [Number(i64::MAX), Number(1), Number(100)];
        checks.push((plan(&database, &leftovers(which), &values), index.to_owned()));
    }
    for (plan, index) in checks {
        assert!(plan.contains(&index), "{index}: {plan}");
        assert!(!plan.contains("Seq Scan on runs"), "{index}: {plan}");
    }
}
