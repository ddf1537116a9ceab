use super::*;
use crate::append::{Ownership, Reserve};
use crate::row::RunWork;
use posse_protocol::{AgentSpec, Extra, Grant, MessageReceived, Parent, RunStarted, TimeAtWork};

const AT: u64 = 1_000;

fn run(number: u128) -> RunId {
    RunId::from_u128(number)
}

fn stamp() -> Stamp {
    Stamp { worker: WorkerId::new(), at: AT }
}

fn started(account: Option<RunId>, key: Option<&str>) -> Event {
    let agent = AgentSpec::new("tester".parse().unwrap());
    let parent = account.map(|run| Parent {
        run,
        call: None,
        announce: None,
        account,
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors: vec![run],
        extra: Extra::default(),
    });
    let key = key.map(str::to_owned);
    RunStarted { parent, key, ..RunStarted::new(agent, "test/model", Grant::default()) }.into()
}

fn draft(run: RunId, event: Event, guard: Guard) -> Draft {
    let (events, outbox) = (std::sync::Arc::new([event]), Vec::new());
    let append = Append { run, events, guard, reserve: Reserve::Leave, outbox, bundle: None };
    Draft::new(append, None).unwrap()
}

fn creation(run: RunId, account: Option<RunId>, key: Option<&str>) -> Draft {
    draft(run, started(account, key), Guard::Create(Ownership::Queued))
}

fn saying(run: RunId) -> Draft {
    let message = Event::MessageReceived(MessageReceived::user("hello"));
    draft(run, message, Guard::Anyone { last: None })
}

fn row(id: u128, account: Option<u128>) -> (RunId, Box<RunRow>) {
    let mut row = RunRow::new(run(id), AT);
    row.funds.account = account.map(run);
    (run(id), Box::new(row))
}

#[test]
fn rows_are_read_level_by_level_and_each_once() {
    // Run 1 draws on 2, and 2 on 3. Run 9 does not exist. The log of 7 is removed.
    let stored: Rows = [row(1, Some(2)), row(2, Some(3)), row(3, None), row(7, Some(3))].into();
    let drafts =
        [saying(run(1)), saying(run(1)), saying(run(9)), creation(run(5), Some(run(2)), None)];
    let mut loading = Loading::of(&drafts, [run(7)]);
    let mut rows = Rows::new();
    let mut rounds = Vec::new();
    loop {
        let missing = loading.next(&rows);
        if missing.is_empty() {
            break;
        }
        let found = missing.iter().filter_map(|run| Some((*run, stored.get(run)?.clone())));
        rows.extend(found);
        rounds.push(missing.into_iter().collect::<Vec<_>>());
    }
    assert_eq!(rounds, [vec![run(1), run(2), run(5), run(7), run(9)], vec![run(3)]]);
    // Known rows are not asked for.
    assert!(Loading::of(&[saying(run(1))], [run(7)]).next(&rows).is_empty());
}

#[test]
fn accounts_that_go_in_circles_end() {
    let rows: Rows = [row(1, Some(2)), row(2, Some(1)), row(3, Some(3))].into();
    let mut loading = Loading::of(&[saying(run(1)), saying(run(3))], []);
    assert!(loading.next(&rows).is_empty());
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut rows: Rows = [row(1, None)].into();
    let (before, mut changes) = (rows.clone(), Changes::default());
    let refused = changes.admit(&mut rows, &[saying(run(1)), saying(run(2))], stamp());
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    assert_eq!(rows, before);
    assert!(changes.events.is_empty() && changes.rows.is_empty() && !changes.freed);
    let taken = changes.admit(&mut rows, &[saying(run(1))], stamp()).unwrap();
    assert_eq!((taken[0].first, taken[0].last, taken[0].at), (Seq(1), Seq(1), AT));
    assert_eq!((changes.events.len(), changes.rows.len()), (1, 1));
    assert_eq!(rows[&run(1)].log.last_hash, changes.events[0].hash);
}

#[test]
fn a_key_is_taken_by_the_store_by_the_batch_and_by_the_transaction() {
    let (mut rows, mut changes) = (Rows::new(), Changes::default());
    changes.know_key("stored".to_owned(), run(1));
    let mut admit = |batch: &[Draft]| changes.admit(&mut rows, batch, stamp());
    let owner = |result: Result<Vec<Appended>, StoreError>| match result {
        Err(StoreError::KeyTaken { run, .. }) => run,
        other => panic!("{other:?}"),
    };
    assert_eq!(owner(admit(&[creation(run(2), None, Some("stored"))])), run(1));
    let twice = [creation(run(2), None, Some("new")), creation(run(3), None, Some("new"))];
    assert_eq!(owner(admit(&twice)), run(2));
    admit(&[creation(run(4), None, Some("new"))]).unwrap();
    assert_eq!(owner(admit(&[creation(run(5), None, Some("new"))])), run(4));
    let asked = Loading::of(&twice, []);
    assert_eq!(asked.keys().iter().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn claims_go_by_priority_then_time_and_pass_over_what_is_damaged() {
    let waiting = |id: u128, priority: i32, ready_at: u64| {
        let work = RunWork { priority, ready_at, runnable: true, ..RunWork::default() };
        RunRow { work, ..RunRow::new(run(id), AT) }
    };
    let found = vec![
        waiting(1, 0, 5),
        waiting(2, 0, 4),
        waiting(3, 1, 9),
        RunRow::unreadable(run(4), "a joke"),
        waiting(2, 0, 4),
        waiting(5, 0, 5),
    ];
    let (mut rows, mut changes) = (Rows::new(), Changes::default());
    let worker = stamp().worker;
    let taken = changes.claim(&mut rows, found, 3, worker);
    let ids: Vec<RunId> = taken.claimed.iter().map(|it| it.row.id).collect();
    assert_eq!(ids, [run(3), run(2), run(1)]);
    assert!(taken.claimed.iter().all(|it| it.epoch == 1 && it.row.work.owner == Some(worker)));
    assert_eq!(taken.damaged.len(), 1, "{:?}", taken.damaged);
    assert_eq!(changes.rows.len(), 3);
    // Rows of dead workers are dropped, to be read again.
    changes.free(&mut rows, &HashSet::new());
    assert!(rows.is_empty() && changes.freed);
}
