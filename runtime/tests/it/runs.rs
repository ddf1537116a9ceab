//! From a prompt to a result.

use crate::bench::{Bench, within};
use futures_util::FutureExt;
use posse::ModelChoice;
use posse::protocol::{Delta, Event, Outcome, Seq};
use posse::store::{Filter, StoreError};
use posse::{Error, Status, Update};
use posse_testkit::{Reply, Script};
use serde_json::json;

fn reader() -> Script {
    Script::turns([
        Reply::text("Let me look.")
            .and_tool_call("Read", json!({"file_path": "a.txt"}))
            .and_tool_call("Read", json!({"file_path": "b.txt"})),
        Reply::text("It says {{last_tool_result}}"),
    ])
}

#[tokio::test]
async fn a_run_reads_files_and_answers() {
    let bench = Bench::new(reader()).await;
    bench.write("a.txt", "alpha");
    bench.write("b.txt", "beta");
    let run = bench.start("read them").await;
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome:?}");
    assert!(outcome.text().contains("beta"), "{outcome:?}");
    let expected = [
        "run_started",
        "message_received",
        "model_called",
        "model_replied",
        "tool_started",
        "tool_started",
        "tool_finished",
        "tool_finished",
        "model_called",
        "model_replied",
        "run_finished",
    ];
    assert_eq!(bench.kinds(run.id()).await, expected);
    let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
    assert_eq!((row.status, row.spending.turns, row.spending.tool_calls), (Status::Finished, 2, 2));
    assert_eq!(row.state.outcome.as_deref(), Some("completed"));
    assert!(row.spending.spent.input_tokens > 0 && row.cost().0 > 0);
    // Results stand in call order, whichever came first.
    let request = &bench.fake.requests()[1].body;
    let results = request["messages"][2]["content"].as_array().unwrap();
    assert!(results[0].to_string().contains("alpha"), "{results:?}");
    assert!(results[1].to_string().contains("beta"), "{results:?}");
}

#[tokio::test]
async fn text_arrives_as_deltas_before_it_is_stored_and_events_come_once_each() {
    let gate = posse_testkit::Gate::new();
    let script = Script::always(Reply::text("one two three four").held_after_deltas(1, &gate));
    let bench = Bench::new(script).await;
    let run = bench.start("speak").await;
    let mut events = run.events(Seq::ZERO);
    let mut text = String::new();
    let mut seqs = Vec::new();
    let mut stored_when_text_came = None;
    while let Some(update) = within(events.next()).await {
        match update.unwrap() {
            Update::Delta(Delta::Text { text: piece }) => {
                stored_when_text_came.get_or_insert(seqs.len());
                text.push_str(&piece);
                gate.open();
            }
            Update::Delta(_) => {}
            Update::Event(record) => seqs.push(record.seq.0),
        }
    }
    assert_eq!(text, "one two three four");
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert_eq!(stored_when_text_came, Some(3), "deltas come while the reply is not stored yet");
}

#[tokio::test]
async fn an_error_is_told_once_and_nothing_comes_after_it() {
    let bench = Bench::new(Script::always(Reply::text("never"))).await;
    let nobody = bench.runtime.handle(posse::RunId::new());
    let mut events = nobody.events(Seq::ZERO);
    let error = within(events.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::NotFound(_))), "{error:?}");
    assert!(within(events.next()).await.is_none());
    let mut tree = nobody.tree_events(Seq::ZERO);
    assert!(within(tree.next()).await.unwrap().is_err());
    assert!(within(tree.next()).await.is_none());
}

#[tokio::test]
async fn a_message_during_a_call_is_read_before_the_next_step() {
    let gate = posse_testkit::Gate::new();
    let script =
        Script::turns([Reply::text("first").held_by(&gate), Reply::text("{{last_user}} it is")]);
    let bench = Bench::new(script).await;
    let run = bench.start("begin").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.send(run.id(), "blue").await.unwrap();
    gate.open();
    let outcome = within(run.outcome()).await.unwrap();
    assert_eq!(outcome, Outcome::completed("blue it is"));
    let messages = bench.fake.requests()[1].body["messages"].to_string();
    let (first, blue) = (messages.find("first").unwrap(), messages.find("blue").unwrap());
    assert!(first < blue, "{messages}");
}

#[tokio::test]
async fn a_finished_run_is_reopened_by_a_message() {
    let bench = Bench::new(Script::turns([Reply::text("one"), Reply::text("two")])).await;
    let run = bench.start("begin").await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "one");
    bench.runtime.send(run.id(), "and?").await.unwrap();
    let finished =
        |event: &Event| matches!(event, Event::RunFinished(f) if f.outcome.text() == "two");
    bench.until(&run, finished).await;
    assert_eq!(within(run.outcome()).await.unwrap().text(), "two");
}

#[tokio::test]
async fn there_is_nothing_after_the_end_of_a_run_until_it_is_reopened() {
    let bench = Bench::new(Script::turns([Reply::text("one"), Reply::text("two")])).await;
    let run = bench.start("begin").await;
    within(run.outcome()).await.unwrap();
    let end = bench.log(run.id()).await.last().unwrap().seq;
    let mut events = run.events(end);
    assert!(within(events.next()).await.is_none());
    assert!(within(run.tree_events(end).next()).await.is_none());
    assert!(within(run.events(Seq(end.0 + 9)).next()).await.is_none());
    bench.runtime.send(run.id(), "and?").await.unwrap();
    let mut kinds = Vec::new();
    while let Some(update) = within(events.next()).await {
        if let Update::Event(record) = update.unwrap() {
            kinds.push(record.event.kind());
        }
    }
    assert_eq!(kinds, ["message_received", "model_called", "model_replied", "run_finished"]);
}

#[tokio::test]
async fn a_run_that_was_reopened_is_followed_from_its_first_end_on() {
    let gate = posse_testkit::Gate::new();
    let script = Script::turns([Reply::text("one"), Reply::text("two").held_by(&gate)]);
    let bench = Bench::new(script).await;
    let run = bench.start("begin").await;
    within(run.outcome()).await.unwrap();
    bench.runtime.send(run.id(), "and?").await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    let end = bench.log(run.id()).await.last().unwrap().seq;
    let mut events = run.events(end);
    // It is at work: there is nothing to read yet, and no end.
    assert!(events.next().now_or_never().is_none());
    gate.open();
    let mut last = None;
    while let Some(update) = within(events.next()).await {
        if let Update::Event(record) = update.unwrap() {
            last = Some(record.event.kind());
        }
    }
    assert_eq!(last, Some("run_finished"));
}

#[tokio::test]
async fn a_repeated_start_with_the_same_key_finds_the_first_run() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let spec = || posse::RunSpec { key: Some("nightly".into()), ..bench.spec("once") };
    let first = bench.runtime.start(spec()).await.unwrap();
    let second = bench.runtime.start(spec()).await.unwrap();
    assert_eq!(first.id(), second.id());
    within(second.outcome()).await.unwrap();
    assert_eq!(bench.fake.count(), 1);
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_stored() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let refusals = [
        (posse::RunSpec { agent: "nobody".parse().unwrap(), ..bench.spec("x") }, "nobody"),
        (bench.spec("  "), "the prompt is empty"),
        (posse::RunSpec { prompt: None, ..bench.spec("x") }, "needs a prompt"),
        (
            posse::RunSpec { models: ModelChoice::of("acme/x".to_owned()), ..bench.spec("x") },
            "acme",
        ),
        (
            posse::RunSpec { workspace: "/nonexistent/x".into(), ..bench.spec("x") },
            "/nonexistent/x",
        ),
    ];
    for (spec, expected) in refusals {
        let error = match bench.runtime.start(spec).await {
            Err(error) => error.to_string(),
            Ok(_) => panic!("not refused: {expected}"),
        };
        assert!(error.contains(expected), "{error}");
    }
    assert!(bench.runtime.list(&Filter::default()).await.unwrap().is_empty());
    let missing = posse::RunId::new();
    let error = bench.runtime.send(missing, "x").await;
    assert!(matches!(error, Err(Error::Store(StoreError::NotFound(_)))), "{error:?}");
}

#[tokio::test]
async fn short_ids_find_runs_when_they_are_unambiguous() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let one = bench.start("one").await;
    let other = bench.start("two").await;
    assert_eq!(bench.runtime.find(&one.id().short()).await.unwrap().id, one.id());
    let common: String = one.id().to_string().chars().take(6).collect();
    assert!(other.id().to_string().starts_with(&common));
    let error = bench.runtime.find(&common).await.unwrap_err().to_string();
    assert!(error.contains("2 runs match"), "{error}");
    let error = bench.runtime.find("zz").await.unwrap_err().to_string();
    assert!(error.contains("no run matches"), "{error}");
}

#[tokio::test]
async fn a_failing_model_is_a_failed_outcome_with_the_partial_result() {
    let script = Script::turns([
        Reply::text("so far so good").and_tool_call("List", json!({})),
        Reply::error_of_type(400, "invalid_request_error", "no such thing"),
    ]);
    let bench = Bench::new(script).await;
    let run = bench.start("go").await;
    match within(run.outcome()).await.unwrap() {
        Outcome::Failed { reason, partial, .. } => {
            assert!(reason.contains("no such thing"), "{reason}");
            assert_eq!(partial, "so far so good");
        }
        other => panic!("{other:?}"),
    }
}
