//! Models that the host brings along.

use crate::bench::{Bench, within};
use async_trait::async_trait;
use posse::ModelChoice;
use posse::model::{ChoiceReason, DeltaSink, ModelInfo, Reply, Request};
use posse::protocol::{
    CallId, Delta, Event, Extra, Message, Part, Price, Role, Stop, ToolCall, Usage, Usd,
};
use posse::{
    AgentSpec, HostModel, Keys, Limits, Model, ModelError, NamedBy, RunSpec, Runtime, RuntimeConfig,
};
use posse_testkit::{Reply as Scripted, Script};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reads a file and says what is in it.
struct Reader {
    info: ModelInfo,
}

#[async_trait]
impl Model for Reader {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
        _: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let last = request.messages.last().filter(|message| message.role == Role::User);
        let read =
            last.into_iter().flat_map(|message| &message.parts).find_map(|part| match part {
                Part::ToolResult(result) => result.parts.iter().find_map(|part| match part {
                    Part::Text(text) => Some(text.text.clone()),
                    _ => None,
                }),
                _ => None,
            });
        let (part, stop) = match read {
            Some(text) => {
                let text = format!("It says: {text}");
                deltas(Delta::Text { text: text.clone() });
                (Part::text(text), Stop::End)
            }
            None => {
                let (id, name) = (CallId("c1".to_owned()), "Read".to_owned());
                let input = json!({"file_path": "note.txt"});
                let call = ToolCall { id, name, input, extra: Extra::default() };
                (Part::ToolCall(call), Stop::ToolUse)
            }
        };
        let mut usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
        usage.cost = self.info.price.of(&usage);
        let message = Message::from_model("reader", vec![part]);
        Ok(Reply { message, stop, usage, request_id: None, service_tier: None, rate_limits: None })
    }
}

fn reader(id: &str, price: Price) -> HostModel {
    let id = id.to_owned();
    let info = ModelInfo { id, context_window: 100_000, max_output: 4_000, price };
    HostModel::new(Arc::new(Reader { info }))
}

/// A runtime without a key or a local server, with these models of its own.
async fn bench(models: Vec<HostModel>) -> Bench {
    let silent = Script::always(Scripted::text("never asked"));
    Bench::with(silent, |mut config| {
        config.models.model = None;
        config.models.keys = nowhere();
        config.models.host = models;
        config
    })
    .await
}

/// Addresses at which nothing listens, for every local vendor.
fn nowhere() -> Keys {
    ["OLLAMA_BASE_URL", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"]
        .into_iter()
        .fold(Keys::default(), |keys, name| keys.with(name, "http://127.0.0.1:1/v1"))
}

#[tokio::test]
async fn a_model_of_the_host_answers_a_run_with_the_tools_of_the_runtime() {
    let price = Price { input: 1_000, output: 2_000, ..Price::default() };
    let bench = bench(vec![reader("acme/reader", price)]).await;
    bench.write("note.txt", "the kettle boils");
    let limits = Limits { cost: Some(Usd::from_dollars(1.0)), ..Limits::default() };
    let spec = RunSpec {
        models: ModelChoice::of("acme".to_owned()),
        limits,
        ..bench.spec("what is in the note?")
    };
    let run = bench.runtime.start(spec).await.unwrap();
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome:?}");
    assert!(outcome.text().contains("the kettle boils"), "{outcome:?}");
    let log = bench.log(run.id()).await;
    let Event::RunStarted(started) = &log[0].event else { panic!() };
    assert_eq!(started.model, "acme/reader", "stored by its whole name");
    let row = run.row().await.unwrap();
    assert_eq!(row.spending.spent.cost, Usd(2 * (100 * 1_000 + 10 * 2_000)), "by its own price");
    assert_eq!(bench.fake.count(), 0);
}

#[tokio::test]
async fn a_run_goes_on_with_it_in_another_process_that_brings_it_too() {
    let mut bench = bench(vec![reader("acme/reader", Price::default())]).await;
    bench.write("note.txt", "the kettle boils");
    let spec = RunSpec {
        models: ModelChoice::of("acme/reader".to_owned()),
        ..bench.spec("read the note")
    };
    let queued = bench.runtime.enqueue(spec).await.unwrap().run();
    bench.runtime.shutdown().await;
    bench.reopen().await;
    let outcome = within(bench.runtime.handle(queued).outcome()).await.unwrap();
    assert!(outcome.text().contains("the kettle boils"), "{outcome:?}");
}

#[tokio::test]
async fn what_it_does_not_promise_is_refused_before_anything_is_stored() {
    let bench = bench(vec![reader("acme/reader", Price::default())]).await;
    let named = || RunSpec { models: ModelChoice::of("acme/reader".to_owned()), ..bench.spec("x") };
    let limits = Limits { cost: Some(Usd::from_dollars(1.0)), ..Limits::default() };
    let error = bench.runtime.start(RunSpec { limits, ..named() }).await.err().unwrap();
    assert!(error.to_string().contains("the price of acme/reader is not known"), "{error}");
    let schema = Some(json!({"type": "object"}));
    let error = bench.runtime.start(RunSpec { output_schema: schema, ..named() }).await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains("cannot be held to a JSON Schema"), "{error}");
}

#[tokio::test]
async fn a_last_resort_is_taken_when_there_is_nothing_else() {
    let spare = HostModel { last_resort: true, ..reader("acme/reader", Price::default()) };
    let bench = bench(vec![spare]).await;
    let selection = bench.runtime.select(&bench.spec("x")).await.unwrap();
    assert_eq!(selection.model, "acme/reader");
    assert_eq!(selection.named_by, NamedBy::Choice(ChoiceReason::Nothing));
}

#[tokio::test]
async fn without_the_offline_model_the_choice_says_what_to_do() {
    let bench = bench(Vec::new()).await;
    let expected = "there is no model to take: no key is set and no local server answers; set a key \
                    such as ANTHROPIC_API_KEY, start a local server such as ollama, or ";
    for _ in 0..2 {
        let error = bench.runtime.choice().await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = bench.runtime.start(bench.spec("x")).await.err().unwrap().to_string();
    assert!(error.starts_with(expected), "{error}");
    // An agent that names a model needs no choice; one that is not there is told by its name.
    bench.config.definitions.agents.set(AgentSpec {
        models: ModelChoice::of("offline/planner".to_owned()),
        instructions: "Look.".to_owned(),
        ..AgentSpec::new("looker".parse().unwrap())
    });
    let spec = RunSpec::new("looker".parse().unwrap(), "x", bench.work());
    let error = bench.runtime.start(spec).await.err().unwrap().to_string();
    assert!(error.starts_with("`offline/planner` is not a known model"), "{error}");
}

#[cfg(feature = "offline")]
#[tokio::test]
async fn the_offline_model_is_there_from_the_beginning_and_costs_nothing() {
    let bench = bench(posse::built_in_models()).await;
    let choice = bench.runtime.choice().await.unwrap();
    assert_eq!((choice.model.as_str(), &choice.why), ("offline/planner", &ChoiceReason::Nothing));
    let models = RuntimeConfig::new("runs.db", Keys::default()).models;
    assert_eq!(models.host.len(), 1);
    let abilities = bench.runtime.models().abilities("offline").unwrap();
    assert!(abilities.tools && abilities.priced, "free, and known to be");
}

#[tokio::test]
async fn a_name_that_the_catalog_has_is_refused_and_no_database_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("runs.db");
    let config = {
        let mut config: RuntimeConfig = RuntimeConfig::new(&database, Keys::default());
        config.models.host = vec![reader("anthropic/mine", Price::default())];
        config
    };
    let error = Runtime::open(config).await.err().unwrap().to_string();
    assert_eq!(
        error,
        "the model `anthropic/mine` of this program cannot be used: the catalog has \
         a vendor `anthropic`; call the vendor of this model otherwise"
    );
    assert!(!database.exists());
}
