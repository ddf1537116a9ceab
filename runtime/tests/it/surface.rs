//! What hosts do with the public types besides calling them: spawn their futures, print them.

use crate::bench::Bench;
use posse::protocol::Seq;
use posse::query::{Query, query};
use posse::subagents::SubagentExecutor;
use posse::{Events, RunHandle, Runtime, RuntimeConfig, TreeEvents};
use posse_testkit::{Reply, Script};

fn is_send<T: Send>(_: T) {}

/// Never called: what is asked of the compiler needs no values.
fn any<T>() -> T {
    panic!("it is only compiled")
}

/// Every future can be spawned, on whatever thread. That this compiles is the test.
#[allow(dead_code, reason = "it is only compiled")]
fn all_futures_can_be_spawned(runtime: &Runtime, run: &RunHandle) {
    is_send(Runtime::open(any()));
    is_send(runtime.start(any()));
    is_send(runtime.start_and_watch(any()));
    is_send(runtime.enqueue(any()));
    is_send(runtime.answer(any(), any(), any()));
    is_send(runtime.list(&any()));
    is_send(runtime.read(any(), any(), any()));
    is_send(runtime.position(any()));
    is_send(runtime.positions(&[]));
    is_send(runtime.shutdown());
    is_send(runtime.shutdown_within(any()));
    is_send(runtime.choice());
    is_send(runtime.questions(any()));
    is_send(runtime.questions_of(any()));
    is_send(runtime.decide(any(), any(), any(), any(), any()));
    is_send(runtime.archive(any()));
    is_send(runtime.prune(any(), any()));
    is_send(runtime.costs(&any()));
    is_send(runtime.audit(&any()));
    is_send(runtime.audited_runs());
    is_send(runtime.send(any(), ""));
    is_send(runtime.send_later(any(), ""));
    is_send(runtime.post(any(), ""));
    is_send(runtime.post_later(any(), ""));
    is_send(runtime.cancel(any(), any(), any()));
    is_send(runtime.pause(any(), any(), any()));
    is_send(runtime.unpause(any(), any(), any()));
    is_send(runtime.find(any()));
    is_send(runtime.grant_of(&any()));
    is_send(runtime.select(&any()));
    is_send(runtime.verify(&any()));
    is_send(runtime.orphans());
    is_send(runtime.deliveries(&any()));
    is_send(runtime.retry_deliveries(&any()));
    is_send(runtime.flush_webhooks());
    is_send(runtime.test_webhook(any()));
    is_send(run.outcome());
    is_send(run.at_rest());
    is_send(run.position());
    is_send(run.tree());
    is_send(run.tree_page(any()));
    is_send(any::<Events>().next());
    is_send(any::<TreeEvents>().next());
    is_send(query("", any()));
    is_send(any::<Query>().next());
    is_send(any::<Query>().result());
    let executor: SubagentExecutor = any();
    is_send(executor.execute(any(), any()));
    is_send(executor.query(any()));
    is_send(executor.shutdown());
}

#[tokio::test]
async fn what_is_printed_of_a_runtime_and_a_run_is_short_and_no_secret() {
    let bench = Bench::with(Script::always(Reply::text("done")), |config| {
        let mut config: RuntimeConfig = config;
        config.models.keys = config.models.keys.with("OPENAI_API_KEY", "sk-very-secret");
        config
    })
    .await;
    let run = bench.start("the prompt").await;
    let id = run.id().to_string();
    let (events, tree) = (run.events(Seq(3)), run.tree_events(Seq(3)));
    for (shown, part) in [
        (format!("{:?}", bench.runtime), "runs.db"),
        (format!("{:?}", bench.config), "runs.db"),
        (format!("{run:?}"), id.as_str()),
        (format!("{events:?}"), id.as_str()),
        (format!("{tree:?}"), id.as_str()),
    ] {
        assert!(shown.contains(part) && shown.len() < 400, "{shown}");
        assert!(!shown.contains("sk-very-secret"), "{shown}");
    }
}
