//! Long transcripts: summarised by the model, or by extracts when that fails.

use crate::bench::{Bench, within};
use posse::protocol::{Compacted, Event};
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
