//! Long transcripts: summarised by the model, or by extracts when that fails.

use crate::bench::{Bench, within};
use posse::protocol::{Compacted, Event, Limits, Purpose, Usd};
use posse_testkit::{Reply, Rule, Script, Usage, When};
use serde_json::json;

/// A model that claims, after two tool calls, that its window is nearly full.
fn long_talk(summary: Reply) -> Script {
    let nearly_full = Usage { input_tokens: Some(190_000), ..Usage::default() };
    Script::new()
        .rule(Rule::when(When::any().last_user_contains("outgrow your context")).reply(summary))
        .rule(
            Rule::when(When::any().first_user_contains("Summary of the conversation"))
                .reply(Reply::text("done")),
        )
        .rule(
            Rule::when(When::any().turn(0))
                .reply(Reply::text("first step").and_tool_call("List", json!({}))),
        )
        .rule(
            Rule::when(When::any().turn(1))
                .reply(Reply::text("second step").and_tool_call("List", json!({}))),
        )
        .rule(
            Rule::when(When::any().turn(2)).reply(
                Reply::text("third step").and_tool_call("List", json!({})).usage(nearly_full),
            ),
        )
}

async fn check(summary: Reply) -> (Compacted, Bench) {
    let bench = Bench::new(long_talk(summary)).await;
    let run = bench.start("the original task").await;
    let outcome = within(run.outcome()).await.unwrap();
    assert_eq!(outcome.text(), "done", "{outcome:?}");
    let log = bench.log(run.id()).await;
    let compacted = log.iter().find_map(|record| match &record.event {
        Event::Compacted(compacted) => Some((**compacted).clone()),
        _ => None,
    });
    (compacted.unwrap(), bench)
}

#[tokio::test]
async fn the_model_writes_the_summary_and_the_history_stays_in_the_log() {
    let (compacted, bench) = check(Reply::text("we did three steps")).await;
    assert!(compacted.by_model);
    assert!(compacted.summary.contains("we did three steps"));
    let last = bench.fake.requests().last().unwrap().body["messages"].clone();
    let text = last.to_string();
    assert!(text.contains("we did three steps") && !text.contains("first step"), "{text}");
    let rows = bench.runtime.list(&posse::store::Filter::default()).await.unwrap();
    let log = serde_json::to_string(&bench.log(rows[0].id).await).unwrap();
    assert!(log.contains("first step"), "history is never rewritten");
}

#[tokio::test]
async fn extracts_stand_in_when_the_summary_fails() {
    let (compacted, _) = check(Reply::error(500, "no summary today")).await;
    assert!(!compacted.by_model);
    assert!(compacted.summary.contains("the original task"), "{}", compacted.summary);
}

/// The provider may charge all that is sent as written to its cache, which costs more: a summary
/// that only the cheaper price allows is not asked for.
#[tokio::test]
async fn a_summary_that_may_cost_more_than_is_left_is_not_asked_for() {
    let asked_for_a_summary = async |limit: Option<Usd>| {
        let bench = Bench::new(long_talk(Reply::text("we did three steps"))).await;
        let limits = Limits { cost: limit, ..Limits::default() };
        let spec = posse::RunSpec { limits, ..bench.spec("the original task") };
        let run = bench.runtime.start(spec).await.unwrap();
        within(run.outcome()).await.unwrap();
        let log = bench.log(run.id()).await;
        let mut spent = Usd::ZERO;
        for record in &log {
            match &record.event {
                Event::ModelReplied(replied) => spent += replied.usage.cost,
                Event::ModelCalled(called) if called.purpose == Purpose::Compaction => {
                    return Some((spent, called.reserved.clone()));
                }
                Event::Compacted(compacted) => assert!(!compacted.by_model),
                _ => {}
            }
        }
        None
    };
    let (spent, reserved) = asked_for_a_summary(None).await.unwrap();
    // Claude Sonnet: 3 $ a million to send, 3.75 $ to write to the cache, 15 $ to receive.
    let cost = |input: u64| Usd(reserved.input_tokens * input + reserved.output_tokens * 15_000);
    assert_eq!(reserved.cost, cost(3_750));
    assert!(asked_for_a_summary(Some(spent + cost(3_750))).await.is_some());
    assert!(asked_for_a_summary(Some(spent + cost(3_000))).await.is_none());
}
