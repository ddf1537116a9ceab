//! Budgets in random trees: compares the store with an oracle that walks a list of accounts.

use crate::sample::*;
use posse_protocol::{Budget, Event, Limit, Parent, RunId, TimeAtWork, Usd};
use posse_store::{
    Append, Durability, Filter, Guard, Kin, Options, Ownership, Reserve, SqliteStore, Store,
    StoreError, Wanted,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::cell::Cell;
use std::sync::Arc;

const LIMITS: [Limit; 6] = Budget::DIMENSIONS;
/// An amount of each of [`LIMITS`].
type Amounts = [u64; 6];

/// A step of a test. Numbers select a run by remainder, so any number is valid.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Starts a child below a run. The bits of `budget` select its limits.
    Start { below: usize, budget: u64 },
    /// A model call. The one before it may have no answer.
    Call { run: usize, tokens: u64 },
    /// A model call for a summary, which does not count as a turn.
    Summarize { run: usize, tokens: u64 },
    /// An answer that used this percentage of the reservation.
    Reply { run: usize, percent: u64 },
    /// A failure without costs.
    Fail { run: usize },
    /// A tool call.
    Tool { run: usize },
    /// The end of a run.
    Finish { run: usize },
    /// A message that reopens an ended run.
    Reopen { run: usize },
    /// An answer and the next call, in one append.
    ReplyAndCall { run: usize, percent: u64, tokens: u64 },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let run = 0..64_usize;
    let one = prop_oneof![
        3 => (run.clone(), prop_oneof![2 => Just(0), 1 => any::<u64>()])
            .prop_map(|(below, budget)| Move::Start { below, budget }),
        5 => (run.clone(), 1..60_u64).prop_map(|(run, tokens)| Move::Call { run, tokens }),
        1 => (run.clone(), 1..60_u64).prop_map(|(run, tokens)| Move::Summarize { run, tokens }),
        4 => (run.clone(), 0..=100_u64).prop_map(|(run, percent)| Move::Reply { run, percent }),
        1 => run.clone().prop_map(|run| Move::Fail { run }),
        2 => run.clone().prop_map(|run| Move::Tool { run }),
        2 => run.clone().prop_map(|run| Move::Finish { run }),
        1 => run.clone().prop_map(|run| Move::Reopen { run }),
        2 => (run, 0..=100_u64, 1..60_u64)
            .prop_map(|(run, percent, tokens)| Move::ReplyAndCall { run, percent, tokens }),
    ];
    prop::collection::vec(one, 1..70)
}

/// A run in the oracle.
#[derive(Clone)]
struct Run {
    id: RunId,
    epoch: u64,
    above: Vec<usize>,
    budget: [Option<u64>; 6],
    drawn: Amounts,
    /// The part of the drawn amount that runs below may give back.
    out: Amounts,
    reserved: Amounts,
    spent: Amounts,
    open: bool,
    /// True if its turn has no answer yet.
    turn: bool,
}

/// All runs of a tree, beginning with the root.
#[derive(Clone)]
struct Oracle(Vec<Run>);

impl Oracle {
    /// Returns the account to draw on: the nearest candidate that is open, or else the last.
    fn account(&self, candidates: &[usize], limit: usize) -> Option<usize> {
        let all: Vec<usize> =
            candidates.iter().copied().filter(|it| self.0[*it].budget[limit].is_some()).collect();
        all.iter().copied().find(|it| self.0[*it].open).or(all.last().copied())
    }

    /// Returns the ancestors of `run`, nearest first.
    fn above(&self, run: usize) -> Vec<usize> {
        self.0[run].above.iter().rev().copied().collect()
    }

    fn with_above(&self, run: usize) -> Vec<usize> {
        std::iter::once(run).chain(self.above(run)).collect()
    }

    /// Draws for `run`, or returns false if too little is left. One turn stays for each run above
    /// it, and a quarter of the money for all of them together.
    fn draw(&mut self, run: usize, from: &[usize], limit: usize, amount: u64) -> bool {
        let Some(account) = self.account(from, limit) else { return true };
        let between = self.0[run].above.len().saturating_sub(self.0[account].above.len());
        let kept = match limit {
            2 if between > 0 && amount > 0 => self.0[account].budget[limit].unwrap() / 4,
            3 if amount > 0 => between as u64,
            _ => 0,
        };
        let it = &mut self.0[account];
        it.drawn[limit] += amount;
        it.drawn[limit] + kept <= it.budget[limit].unwrap()
    }

    /// Gives an amount back. What exceeds the amount that one account has out goes to the next one.
    fn give_back(&mut self, from: &[usize], limit: usize, mut amount: u64) {
        let mut rest = from;
        while amount > 0
            && let Some(account) = self.account(rest, limit)
        {
            let taken = amount.min(self.0[account].drawn[limit]);
            self.0[account].drawn[limit] -= taken;
            amount -= taken;
            let at = rest.iter().position(|it| *it == account).unwrap();
            rest = &rest[at + 1..];
        }
    }

    fn hold(&mut self, from: &[usize], limit: usize, change: i64) {
        let (mut rest, mut change) = (from, change);
        while change != 0
            && let Some(account) = self.account(rest, limit)
        {
            let sum = self.0[account].out[limit] as i64 + change;
            self.0[account].out[limit] = sum.max(0) as u64;
            change = sum.min(0);
            let at = rest.iter().position(|it| *it == account).unwrap();
            rest = &rest[at + 1..];
        }
    }

    fn call(&mut self, run: usize, tokens: u64, turns: u64) -> bool {
        // A repeated call after an interruption is the same turn.
        let again = std::mem::replace(&mut self.0[run].turn, turns > 0);
        let turns = if again { 0 } else { turns };
        self.settle_reserved(run, None);
        let from = self.with_above(run);
        let wanted = [tokens, tokens / 10, tokens * 3, turns, 0, 0];
        let fits = (0..6).all(|limit| self.draw(run, &from, limit, wanted[limit]));
        self.0[run].spent[3] += turns;
        self.0[run].reserved = [wanted[0], wanted[1], wanted[2], 0, 0, 0];
        for (limit, amount) in self.0[run].reserved.into_iter().enumerate() {
            self.hold(&from, limit, amount as i64);
        }
        fits
    }

    /// Settles a call that used `used` of its reservation, or all of it if that is unknown.
    fn settle(&mut self, run: usize, used: Option<Amounts>) {
        self.0[run].turn = false;
        self.settle_reserved(run, used);
    }

    fn settle_reserved(&mut self, run: usize, used: Option<Amounts>) {
        let reserved = std::mem::take(&mut self.0[run].reserved);
        let used = used.unwrap_or(reserved);
        let from = self.with_above(run);
        for limit in 0..3 {
            self.hold(&from, limit, -(reserved[limit] as i64));
            self.give_back(&from, limit, reserved[limit] - used[limit]);
            self.0[run].spent[limit] += used[limit];
        }
    }

    fn tool(&mut self, run: usize) -> bool {
        let from = self.with_above(run);
        self.0[run].spent[4] += 1;
        self.draw(run, &from, 4, 1)
    }

    /// Opens a run, new or reopened: draws the run itself and its budget.
    fn open(&mut self, run: usize) -> bool {
        let above = self.above(run);
        let mut fits = true;
        for (limit, dimension) in LIMITS.into_iter().enumerate() {
            let itself = u64::from(dimension == Limit::Children);
            let wanted = self.0[run].budget[limit].unwrap_or(0) + itself;
            let account = self.account(&above, limit);
            fits &= self.draw(run, &above, limit, wanted);
            self.hold(&above, limit, wanted as i64);
            if account.is_some() {
                self.0[run].out[limit] = 0;
            }
            self.0[run].drawn[limit] = self.0[run].out[limit];
        }
        self.0[run].open = true;
        fits
    }

    fn finish(&mut self, run: usize) {
        self.settle(run, None);
        self.0[run].open = false;
        let above = self.above(run);
        for (limit, dimension) in LIMITS.into_iter().enumerate() {
            let itself = u64::from(dimension == Limit::Children);
            let own = &self.0[run];
            let carved = own.budget[limit];
            let unused = carved.map_or(0, |budget| budget - own.drawn[limit]);
            let back = carved.map_or(0, |budget| budget as i64 - own.out[limit] as i64);
            self.give_back(&above, limit, unused + itself);
            self.hold(&above, limit, -back - itself as i64);
        }
    }
}

/// Returns the limits that the bits of `seed` select.
fn budget(seed: u64, largest: u64) -> [Option<u64>; 6] {
    let scale = [largest * 4, largest, largest * 12, largest / 4, largest / 8, largest / 10];
    std::array::from_fn(|limit| {
        let share = (seed >> (limit * 8)) & 0xff;
        (share >= 0x80).then(|| scale[limit] * (share & 0x3f) / 64)
    })
}

fn as_budget(of: [Option<u64>; 6]) -> Budget {
    Budget {
        input_tokens: of[0],
        output_tokens: of[1],
        cost: of[2].map(Usd),
        turns: of[3],
        tool_calls: of[4],
        children: of[5],
        ..Budget::default()
    }
}

fn usage(amounts: Amounts) -> serde_json::Value {
    json!({"input_tokens": amounts[0], "output_tokens": amounts[1], "cost": amounts[2]})
}

fn called(tokens: u64, purpose: &str) -> Event {
    let reserved = usage([tokens, tokens / 10, tokens * 3, 0, 0, 0]);
    event(json!({"type": "model_called", "reserved": reserved, "purpose": purpose}))
}

fn replied(used: Amounts) -> Event {
    event(json!({
        "type": "model_replied", "seen": 1, "stop": "end", "usage": usage(used), "worked_ms": 1,
        "message": {"role": "assistant", "parts": []},
    }))
}

fn failed() -> Event {
    event(json!({
        "type": "model_failed", "kind": "other", "reason": "down", "usage": {}, "worked_ms": 1,
    }))
}

fn tool() -> Event {
    event(json!({"type": "tool_started", "call": "c", "tool": "Read", "repeatable": true}))
}

/// Returns the append that creates `run`.
fn birth(oracle: &Oracle, run: usize) -> Append {
    let it = &oracle.0[run];
    let Event::RunStarted(started) = started() else { panic!("no start") };
    let mut started = Arc::unwrap_or_clone(started);
    started.grant.budget = as_budget(it.budget);
    let has_budget = |above: &&usize| oracle.0[**above].budget.iter().any(Option::is_some);
    let ancestors: Vec<RunId> = it.above.iter().map(|above| oracle.0[*above].id).collect();
    started.parent = ancestors.last().map(|parent| Parent {
        run: *parent,
        call: None,
        announce: None,
        account: it.above.iter().rev().find(has_budget).map(|above| oracle.0[*above].id),
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors: ancestors.clone(),
        extra: posse_protocol::Extra::default(),
    });
    Append {
        run: it.id,
        events: [started.into(), message("go")].into(),
        guard: Guard::Create(Ownership::Mine),
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    }
}

fn steps(run: &Run, events: Vec<Event>) -> Append {
    let guard = Guard::Owner { epoch: run.epoch, last: None, then: Ownership::Mine };
    let (events, reserve) = (events.into(), Reserve::Leave);
    Append { run: run.id, events, guard, reserve, outbox: Vec::new(), bundle: None }
}

fn part(reserved: Amounts, percent: u64) -> Amounts {
    reserved.map(|amount| amount * percent / 100)
}

/// Applies a move to the oracle. Returns the append for the store, and whether the oracle allows
/// it, or `None` if the move does not apply.
fn make(oracle: &mut Oracle, what: Move) -> Option<(Append, bool)> {
    let count = oracle.0.len();
    let open = |oracle: &Oracle, run: usize| oracle.0[run % count].open.then_some(run % count);
    match what {
        Move::Start { below, budget: seed } => {
            let parent = open(oracle, below).filter(|_| count < 14)?;
            let above = oracle.0[parent].above.iter().copied().chain([parent]).collect();
            oracle.0.push(Run {
                id: RunId::new(),
                epoch: 1,
                above,
                budget: budget(seed, 400),
                drawn: [0; 6],
                out: [0; 6],
                reserved: [0; 6],
                spent: [0; 6],
                open: false,
                turn: false,
            });
            let append = birth(oracle, count);
            Some((append, oracle.open(count)))
        }
        Move::Call { run, tokens } => {
            let run = open(oracle, run)?;
            let append = steps(&oracle.0[run], vec![called(tokens, "turn")]);
            Some((append, oracle.call(run, tokens, 1)))
        }
        Move::Summarize { run, tokens } => {
            let run = open(oracle, run)?;
            let append = steps(&oracle.0[run], vec![called(tokens, "compaction")]);
            Some((append, oracle.call(run, tokens, 0)))
        }
        Move::Reply { run, percent } => {
            let run = open(oracle, run)?;
            let used = part(oracle.0[run].reserved, percent);
            let append = steps(&oracle.0[run], vec![replied(used)]);
            oracle.settle(run, Some(used));
            Some((append, true))
        }
        Move::ReplyAndCall { run, percent, tokens } => {
            let run = open(oracle, run)?;
            let used = part(oracle.0[run].reserved, percent);
            let append = steps(&oracle.0[run], vec![replied(used), called(tokens, "turn")]);
            oracle.settle(run, Some(used));
            Some((append, oracle.call(run, tokens, 1)))
        }
        Move::Fail { run } => {
            let run = open(oracle, run)?;
            let append = steps(&oracle.0[run], vec![failed()]);
            oracle.settle(run, Some([0; 6]));
            Some((append, true))
        }
        Move::Tool { run } => {
            let run = open(oracle, run)?;
            Some((steps(&oracle.0[run], vec![tool()]), oracle.tool(run)))
        }
        // The root ends last, so that the test can ask it what the tree has spent.
        Move::Finish { run } => {
            let run = open(oracle, run).filter(|run| *run > 0)?;
            let append = steps(&oracle.0[run], vec![finished()]);
            oracle.finish(run);
            Some((append, true))
        }
        Move::Reopen { run } => {
            let run = run % count;
            if oracle.0[run].open {
                return None;
            }
            let append = Append::by_anyone(oracle.0[run].id, message("go on"));
            Some((append, oracle.open(run)))
        }
    }
}

/// Compares every account with the oracle, and that of the root with its budget.
async fn compare(store: &dyn Store, oracle: &Oracle, after: &str) {
    let tree = Filter { kin: Kin::TreeOf(oracle.0[0].id), ..Filter::default() };
    let rows = store.list(&tree).await.unwrap();
    for (index, it) in oracle.0.iter().enumerate() {
        let row = rows.iter().find(|row| row.id == it.id).unwrap();
        for (position, limit) in LIMITS.into_iter().enumerate() {
            let Some(budget) = it.budget[position] else { continue };
            let drawn = row.funds.drawn.unwrap().of(limit);
            assert_eq!(drawn, it.drawn[position], "{limit} drawn of run {index} after {after}");
            assert_eq!(
                row.funds.held.of(limit),
                it.out[position],
                "{limit} of run {index} at {after}"
            );
            assert!(drawn <= budget, "{limit}: {drawn} of {budget} after {after}");
        }
    }
}

async fn check(store: &dyn Store, root_budget: u64, moves: Vec<Move>) -> [usize; 2] {
    let mut counts = [0, 0];
    let mut oracle = Oracle(vec![Run {
        id: RunId::new(),
        epoch: 1,
        above: Vec::new(),
        budget: budget(root_budget, 800),
        drawn: [0; 6],
        out: [0; 6],
        reserved: [0; 6],
        spent: [0; 6],
        open: true,
        turn: false,
    }]);
    store.append(vec![birth(&oracle, 0)]).await.unwrap();
    for what in moves {
        let mut next = oracle.clone();
        let Some((append, fits)) = make(&mut next, what) else { continue };
        let run = append.run;
        let answer = store.append(vec![append]).await;
        match (fits, answer) {
            (true, Ok(_)) => oracle = next,
            (false, Err(StoreError::OverBudget { wanted, left, .. })) => assert!(wanted > left),
            (fits, answer) => panic!("{what:?}: the oracle says {fits}, the store {answer:?}"),
        }
        counts[usize::from(fits)] += 1;
        if fits && matches!(what, Move::Reopen { .. }) {
            let wanted = Wanted { limit: 1, runs: vec![run], ..Wanted::default() };
            let claimed = store.claim(&wanted).await.unwrap().pop().unwrap();
            oracle.0.iter_mut().find(|it| it.id == run).unwrap().epoch = claimed.epoch;
        }
        compare(store, &oracle, &format!("{what:?}")).await;
    }
    finish_all(store, &mut oracle).await;
    counts
}

/// Ends all runs. Then the account of the root shows what the tree has spent, and holds nothing.
async fn finish_all(store: &dyn Store, oracle: &mut Oracle) {
    for run in (0..oracle.0.len()).rev() {
        if oracle.0[run].open {
            store.append(vec![steps(&oracle.0[run], vec![finished()])]).await.unwrap();
            oracle.finish(run);
            compare(store, oracle, "the end").await;
        }
    }
    let root = row(store, oracle.0[0].id).await;
    for (position, limit) in LIMITS.into_iter().enumerate() {
        if oracle.0[0].budget[position].is_some() {
            let spent: u64 = oracle.0.iter().map(|it| it.spent[position]).sum();
            assert_eq!(root.funds.drawn.unwrap().of(limit), spent, "{limit} spent by the tree");
            assert_eq!(root.funds.held.of(limit), 0, "{limit} is still held");
        }
    }
}

#[tokio::test]
async fn what_is_reserved_stays_where_it_was_drawn_whatever_else_its_run_does() {
    let place = Place::new();
    let store = place.open().await;
    // The run in between holds the tokens of the child, and the root holds them after its end.
    let tokens_only = 0xff;
    let moves = vec![
        Move::Start { below: 0, budget: tokens_only },
        Move::Start { below: 1, budget: 0 },
        Move::Call { run: 2, tokens: 24 },
        Move::Finish { run: 1 },
        Move::Reopen { run: 1 },
        Move::Tool { run: 2 },
        Move::Reply { run: 2, percent: 50 },
    ];
    assert_eq!(check(&store, tokens_only, moves).await, [0, 7]);
}

#[test]
fn no_tree_overdraws_and_nobody_is_refused_who_had_budget() {
    let place = Place::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = Options { durability: Durability::Process, ..place.options() };
    let store = runtime.block_on(SqliteStore::open(options)).unwrap();
    let counts = Cell::new([0, 0]);
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&(any::<u64>(), moves()), |(root_budget, moves)| {
            let [refused, taken] = runtime.block_on(check(&store, root_budget, moves));
            let [refusals, draws] = counts.get();
            counts.set([refusals + refused, draws + taken]);
            Ok(())
        })
        .unwrap();
    let [refused, taken] = counts.get();
    assert!(refused > 300 && taken > 3_000, "{refused} refused, {taken} taken: too one-sided");
    runtime.block_on(store.close());
}
