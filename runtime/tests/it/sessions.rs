//! Sessions: turns that end in waiting.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{CancelScope, Delta, Event, Stop};
use posse::{RunHandle, RunSpec, Seq, Status, Update};
use posse_testkit::{Gate, Reply, Script};
use serde_json::json;

async fn session(bench: &Bench) -> RunHandle {
    let spec = RunSpec { session: true, prompt: None, ..bench.spec("") };
    bench.runtime.start(spec).await.unwrap()
}

async fn at_rest(bench: &Bench, run: &RunHandle) {
    eventually(async || {
        let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
        row.status == Status::Waiting
    })
    .await;
}

#[tokio::test]
async fn each_line_is_a_turn_and_an_idle_session_is_not_in_memory() {
    let script = Script::turns([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let bench = Bench::new(script).await;
    let run = session(&bench).await;
    for (line, reply) in [("a", "one"), ("b", "two"), ("c", "three")] {
        bench.runtime.send(run.id(), line).await.unwrap();
        let said =
            |event: &Event| matches!(event, Event::ModelReplied(r) if r.message.text() == reply);
        bench.until(&run, said).await;
        at_rest(&bench, &run).await;
        eventually(async || bench.runtime.executing() == 0).await;
    }
    let last = bench.fake.requests()[2].body["messages"].as_array().unwrap().len();
    assert_eq!(last, 5, "the whole conversation");
}

#[tokio::test]
async fn a_session_survives_a_restart() {
    let script = Script::turns([Reply::text("one"), Reply::text("two")]);
    let mut bench = Bench::new(script).await;
    let run = session(&bench).await;
    bench.runtime.send(run.id(), "a").await.unwrap();
    bench.until(&run, |event| matches!(event, Event::ModelReplied(_))).await;
    bench.runtime.shutdown().await;
    bench.reopen().await;
    let run = bench.runtime.handle(run.id());
    bench.runtime.send(run.id(), "b").await.unwrap();
    bench.until(&run, |e| matches!(e, Event::ModelReplied(r) if r.message.text() == "two")).await;
}

#[tokio::test]
async fn an_interrupt_stops_the_turn_and_not_the_session() {
    let gate = Gate::new();
    let script = Script::turns([
        Reply::text("a very long answer").held_after_deltas(1, &gate),
        Reply::text("as you wish"),
    ]);
    let bench = Bench::new(script).await;
    let run = session(&bench).await;
    let mut events = run.events(Seq::ZERO);
    bench.runtime.send(run.id(), "talk").await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    // What it says is on its way until somebody hears it.
    let heard = |update: &Update| matches!(update, Update::Delta(Delta::Text { .. }));
    while !heard(&within(events.next()).await.unwrap().unwrap()) {}
    bench.runtime.cancel(run.id(), "the user", CancelScope::Turn).await.unwrap();
    let stopped =
        |event: &Event| matches!(event, Event::ModelReplied(r) if r.stop == Stop::Cancelled);
    bench.until(&run, stopped).await;
    at_rest(&bench, &run).await;
    bench.runtime.send(run.id(), "be brief").await.unwrap();
    let said = |e: &Event| matches!(e, Event::ModelReplied(r) if r.message.text() == "as you wish");
    bench.until(&run, said).await;
}

#[tokio::test]
async fn what_a_session_has_read_it_may_edit_in_its_next_turn() {
    let edit = json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "omega"});
    let script = Script::turns([
        Reply::tool_call("Read", json!({"file_path": "a.txt"})),
        Reply::text("read"),
        Reply::tool_call("Edit", edit),
        Reply::text("edited"),
    ]);
    let bench = Bench::new(script).await;
    bench.write("a.txt", "alpha\n");
    let run = session(&bench).await;
    for (line, reply) in [("read it", "read"), ("edit it", "edited")] {
        bench.runtime.send(run.id(), line).await.unwrap();
        bench
            .until(&run, |e| matches!(e, Event::ModelReplied(r) if r.message.text() == reply))
            .await;
        at_rest(&bench, &run).await;
    }
    assert_eq!(std::fs::read_to_string(bench.work().join("a.txt")).unwrap(), "omega\n");
}
