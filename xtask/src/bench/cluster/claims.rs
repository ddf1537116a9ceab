//! Claims, and looks at the queue, beside few and very many runs: half of them wait, half have ended.
//! What counts is that neither grows with their number.

use super::{Cluster, Place};
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, note, rate, seconds, written};
use posse::store::{Claims, Look, PostgresStore, Store, Wanted};
use posse_testkit::postgres::Database;
use std::time::Instant;

/// Runs of one claim, as a worker makes it.
const AT_ONCE: usize = 64;
/// Runs that wait beside the others, to be claimed.
const FRESH: usize = 20_000;

/// One size: its namespace, and what was measured.
struct Queue {
    runs: usize,
    place: Place,
    claims: Vec<f64>,
    looks: Vec<f64>,
    /// Claimed runs in a second, for each round.
    rates: Vec<f64>,
}

pub async fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    let sizes: &[usize] = effort.pick(&[0, 100_000][..], &[0, 100_000, 1_000_000]);
    let mut queues = Vec::new();
    for runs in sizes {
        let place = Place { schema: format!("queue_{runs}"), ..cluster.place() };
        PostgresStore::open(place.options()).await?.close().await;
        let began = Instant::now();
        fill(&cluster.database, &place, *runs);
        note(&format!("a queue of {runs} runs in {:.1?}", began.elapsed()));
        let (claims, looks, rates) = Default::default();
        queues.push(Queue { runs: *runs, place, claims, looks, rates });
    }
    let (rounds, times) = (effort.pick(1, 3), effort.pick(50, 60));
    for _ in 0..rounds {
        for queue in &mut queues {
            queue.claim(times).await?;
        }
    }
    let Some((few, rest)) = queues.split_first() else { return Ok(()) };
    few.print(None);
    rest.iter().for_each(|queue| queue.print(Some(few)));
    for queue in &queues {
        cluster.database.execute(&format!("DROP SCHEMA {} CASCADE", queue.place.schema));
    }
    Ok(())
}

impl Queue {
    /// Looks and claims so many times.
    async fn claim(&mut self, times: usize) -> Result<()> {
        let store = PostgresStore::open(self.place.options()).await?;
        let wanted = Wanted { limit: AT_ONCE, ..Wanted::default() };
        let look = Look::Ahead { workspace: None };
        // The first ones connect, and fill the caches of the server.
        for _ in 0..3 {
            store.queue(&look).await?;
            store.claim(&wanted).await?;
        }
        let mut sum = 0.0;
        for _ in 0..times {
            let began = Instant::now();
            store.queue(&look).await?;
            self.looks.push(began.elapsed().as_secs_f64());
            let began = Instant::now();
            let claimed = store.claim(&wanted).await?.len();
            let took = began.elapsed().as_secs_f64();
            if claimed != AT_ONCE {
                return Err(format!("claimed {claimed} of {AT_ONCE}").into());
            }
            self.claims.push(took);
            sum += took;
        }
        self.rates.push((times * AT_ONCE) as f64 / sum);
        store.close().await;
        Ok(())
    }

    /// Prints what was measured, and how many times that of the smallest one it is.
    fn print(&self, few: Option<&Queue>) {
        let beside = written(self.runs);
        let line =
            |what: &str, shown: String| Line::new(format!("claims: {what} beside {beside}"), shown);
        let rates = Samples::new(self.rates.iter().copied());
        let spread = |times: &[f64]| Samples::new(times.iter().copied());
        let (claims, looks) = (spread(&self.claims), spread(&self.looks));
        let lines = [
            line("runs", rates.shown(rate)),
            line("64 runs", claims.spread()),
            line("a look at the queue", looks.spread()),
        ];
        let Some(few) = few else { return lines.into_iter().for_each(Line::print) };
        let [of_rates, of_claims, of_looks] = lines;
        let before = Samples::new(few.rates.iter().copied());
        let of_rates = of_rates.raw(before.shown(rate)).ratio_of(rates.median(), before.median());
        of_rates.at_least(0.8, "beside none").print();
        for (line, times, before) in
            [(of_claims, claims, spread(&few.claims)), (of_looks, looks, spread(&few.looks))]
        {
            let line = line.raw(format!("p99 {}", seconds(before.high())));
            line.ratio_of(times.high(), before.high()).at_most(1.5, "p99 beside none").print();
        }
    }
}

/// Stores runs without their logs: half of `runs` have ended, the others and [`FRESH`] wait. Indexes are
/// made last, because that is much faster.
fn fill(database: &Database, place: &Place, runs: usize) {
    let schema = &place.schema;
    let of_runs =
        format!("schemaname = '{schema}' AND tablename = 'runs' AND indexname <> 'runs_pkey'");
    let ended = runs / 2;
    // Trees of ten runs; what waits is of all priorities the usual one.
    database.execute(&format!(
        "SET search_path = {schema}; SET synchronous_commit = off; SET maintenance_work_mem = '256MB';
        DO $$ DECLARE made TEXT[]; name TEXT; statement TEXT; BEGIN
            SELECT array_agg(indexdef) INTO made FROM pg_indexes WHERE {of_runs};
            FOR name IN SELECT indexname FROM pg_indexes WHERE {of_runs}
            LOOP EXECUTE 'DROP INDEX {schema}.' || name; END LOOP;
            INSERT INTO runs (id, agent, model, title, workspace, session, created_at, updated_at,
                last_seq, last_hash, version, epoch, runnable, ready_at, outcome, note, archived,
                turns, tool_calls, input_tokens, output_tokens, cost, reserved_input,
                reserved_output, reserved_cost, parent, root, depth, finished_at, stopping, awaits,
                label, priority, background, expects, gathers, gathered_at, paused, cleanup, erased,
                calling_for, asks, uncertain_input, uncertain_output, uncertain_cost, cut_calls,
                deaths, calls_at_death, host, needs)
            SELECT lpad(n::text, 26, '0'), 'general-purpose', 'anthropic/claude-sonnet-4-5',
                'a title of an ordinary length, as runs have it', '/work/' || n % 100, 0, n, n,
                9, repeat('0', 64), 1, 1, CASE WHEN n < {ended} THEN 0 ELSE 1 END, n,
                CASE WHEN n < {ended} THEN 'completed' END, '', 0,
                2, 1, 500, 50, 900, 0, 0, 0,
                CASE WHEN n % 10 > 0 THEN lpad((n - n % 10)::text, 26, '0') END,
                lpad((n - n % 10)::text, 26, '0'), CASE WHEN n % 10 > 0 THEN 1 ELSE 0 END,
                CASE WHEN n < {ended} THEN n ELSE 0 END, 0, 0,
                '', 0, 0, 0, 0, 0, 0, 'keep', 0,
                'turn', 0, 0, 0, 0, 0,
                0, 0, '', ''
            FROM generate_series(0, {}) AS n;
            FOREACH statement IN ARRAY made LOOP EXECUTE statement; END LOOP;
        END $$",
        runs + FRESH - 1,
    ));
    database.execute(&format!("VACUUM ANALYZE {schema}.runs"));
    database.execute("CHECKPOINT");
}
