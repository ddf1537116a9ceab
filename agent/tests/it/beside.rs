//! Calls that run beside each other, and beside what the loop stores.

use crate::answers::Paper;
use crate::world::World;
use async_trait::async_trait;
use posse_agent::protocol::*;
use posse_agent::{
    Agent, Answer, DeltaSink, Ended, Expect, Journal, JournalError, Model, ModelError, ModelInfo,
    Patience, Reply, Request, Tool, ToolContext, Toolbox, run,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

/// What a tool and the journal need one after the other.
#[derive(Default)]
struct Shared {
    lock: Mutex<()>,
    /// The tool has the lock.
    is_held: Notify,
    /// The journal waits for the lock.
    is_wanted: Notify,
}

/// Calls both tools, and then says that it is done.
struct Caller(ModelInfo);

#[async_trait]
impl Model for Caller {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    async fn call(
        &self,
        request: Request,
        _deltas: DeltaSink<'_>,
        _cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let call = |name: &str| {
            let (id, name) = (CallId::from(name), name.to_owned());
            Part::ToolCall(ToolCall { id, name, input: json!({}), extra: Extra::default() })
        };
        let has_called = request.messages.iter().any(|it| it.role == Role::Assistant);
        let (parts, stop) = match has_called {
            false => (vec![call("Quick"), call("Slow")], Stop::ToolUse),
            true => (vec![Part::text("done")], Stop::End),
        };
        Ok(Reply {
            message: Message::new(Role::Assistant, parts),
            stop,
            usage: Usage::default(),
            request_id: None,
            service_tier: None,
            rate_limits: None,
        })
    }
}

/// `Quick` ends when `Slow` has the lock. `Slow` keeps it until the journal wants it, too.
struct Step {
    spec: ToolSpec,
    shared: Arc<Shared>,
}

#[async_trait]
impl Tool for Step {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _input: Value, _context: &ToolContext) -> Answer {
        if self.spec.name == "Quick" {
            self.shared.is_held.notified().await;
        } else {
            let _held = self.shared.lock.lock().await;
            self.shared.is_held.notify_one();
            self.shared.is_wanted.notified().await;
        }
        ToolOutput::text("ok").into()
    }
}

/// A log that needs the lock to store a result, as a checkout does whose state is stored with it.
struct Locking {
    paper: Paper,
    shared: Arc<Shared>,
}

#[async_trait]
impl Journal for Locking {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let has_result = events.iter().any(|it| matches!(it, Event::ToolFinished(_)));
        let _held = match has_result {
            true => {
                self.shared.is_wanted.notify_one();
                Some(self.shared.lock.lock().await)
            }
            false => None,
        };
        self.paper.record(events, expect).await
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        self.paper.read_after(seq).await
    }

    fn tail(&self) -> Seq {
        self.paper.tail()
    }

    async fn changed(&self, seq: Seq) {
        self.paper.changed(seq).await;
    }
}

#[tokio::test]
async fn a_call_goes_on_while_the_result_of_another_is_stored() {
    let shared = Arc::new(Shared::default());
    let tool = |name: &str| -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, "a step", Effect::Delegate, json!({"type": "object"}));
        Arc::new(Step { spec, shared: shared.clone() })
    };
    let log = World::new(false, Limits::default());
    let info = ModelInfo { context_window: 100_000, ..log.bounds.model.clone() };
    let tools = vec!["Quick".to_owned(), "Slow".to_owned()];
    let agent = Agent {
        run: RunId::from_u128(1),
        system: "Work.".into(),
        model: Arc::new(Caller(info)),
        fallbacks: Vec::new(),
        patience: Patience::default(),
        effort: None,
        output_schema: None,
        tools: Toolbox::new(vec![tool("Quick"), tool("Slow")]),
        offered: Arc::default(),
        grant: Grant { tools, ..Grant::default() },
        guard: Arc::new(posse_agent::Unguarded),
        limits: Limits::default(),
        deltas: Arc::new(|_| {}),
        cut: Default::default(),
    };
    let journal = Locking { paper: Paper::new(log.records.clone()), shared: shared.clone() };
    let stop = CancellationToken::new();
    let running = run(&agent, &journal, &stop);
    let ended = tokio::time::timeout(Duration::from_secs(60), running).await;
    let ended = ended.expect("the call and the log wait for each other").unwrap();
    assert!(matches!(ended, Ended::Finished(Outcome::Completed { .. })), "{ended:?}");
}
