//! What is taken when nobody names a model: a key, a local server, or neither.

use crate::anthropic::transcripts::PLAIN;
use crate::host::{last_resort, nowhere};
use crate::server::{KEY, Server, Step, answer, streamed};
use posse_model::{Catalog, Choice, ChoiceReason, Keys, Models, Offer, Options, try_out};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn models(keys: Keys) -> Models {
    let models = Models::new(Catalog::built_in(), keys, Options::default());
    models.with(last_resort("offline/planner")).unwrap()
}

async fn chosen(keys: Keys) -> Choice {
    models(keys).choose().await.unwrap()
}

async fn listing(body: &str) -> Server {
    let json = "content-type: application/json\r\n";
    Server::start(vec![Step::Send(answer("200 OK", json, body))]).await
}

#[tokio::test]
async fn a_key_comes_before_a_server_and_keys_in_the_order_of_the_catalog() {
    let server = listing("{\"data\":[{\"id\":\"qwen3:8b\"}]}").await;
    let keys = nowhere().with("OLLAMA_BASE_URL", format!("{}/v1", server.url));
    let keys = keys.with("GOOGLE_API_KEY", "g");
    let choice = chosen(keys.clone()).await;
    assert_eq!(choice.model, "gemini/gemini-3.8-flash");
    assert_eq!(choice.why.to_string(), "GOOGLE_API_KEY is set");
    assert_eq!(chosen(keys.with("OPENAI_API_KEY", "o")).await.model, "openai/gpt-6-sol");
    assert_eq!(server.connections(), 0, "nobody was asked");
}

#[tokio::test]
async fn a_local_server_that_answers_is_taken_with_its_first_model_that_talks() {
    let server = listing(
        "{\"object\":\"list\",\"data\":[{\"id\":\"nomic-embed-text:latest\",\"object\":\"model\"},\
         {\"id\":\"qwen3:8b\",\"owned_by\":\"library\"}]}",
    )
    .await;
    let keys = nowhere().with("LMSTUDIO_BASE_URL", format!("{}/v1", server.url));
    let choice = chosen(keys.with("LMSTUDIO_API_KEY", "lm-key-123")).await;
    assert_eq!(choice.model, "lmstudio/qwen3:8b");
    assert_eq!(choice.why, ChoiceReason::Server { vendor: "lmstudio".to_owned() });
    let asked = &server.requests()[0];
    assert!(asked.starts_with("GET /v1/models HTTP/1.1"), "{asked}");
    assert!(asked.contains("authorization: Bearer lm-key-123"), "{asked}");
}

#[tokio::test]
async fn the_host_of_ollama_is_found_where_its_users_keep_it() {
    let server = listing("{\"data\":[{\"id\":\"a\"}]}").await;
    let port = server.url.rsplit(':').next().unwrap();
    let quiet = || {
        let others = ["LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"];
        let nowhere = "http://127.0.0.1:1/v1";
        others.into_iter().fold(Keys::default(), |keys, name| keys.with(name, nowhere))
    };
    for host in [
        format!("127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("0.0.0.0:{port}"),
        format!(":{port}"),
        format!("http://localhost:{port}/ignored"),
    ] {
        let choice = chosen(quiet().with("OLLAMA_HOST", &host)).await;
        assert_eq!(choice.model, "ollama/a", "{host}");
    }
    assert!(server.requests().iter().all(|asked| asked.starts_with("GET /v1/models ")));
}

#[tokio::test]
async fn what_is_no_model_server_is_not_taken_for_one() {
    let page = Server::start(vec![Step::Send(answer("200 OK", "", "<html>hello</html>"))]).await;
    let missing =
        Server::start(vec![Step::Send(answer("404 Not Found", "", "{\"data\":[]}"))]).await;
    let empty = listing("{\"data\":[]}").await;
    let only_vectors = listing("{\"data\":[{\"id\":\"bge-m3\"}]}").await;
    let servers = [
        ("OLLAMA_BASE_URL", &page),
        ("LMSTUDIO_BASE_URL", &missing),
        ("LLAMACPP_BASE_URL", &empty),
        ("VLLM_BASE_URL", &only_vectors),
    ];
    let keys =
        servers.iter().fold(Keys::default(), |keys, (name, server)| keys.with(*name, &server.url));
    let models = models(keys);
    assert_eq!(
        models.choose().await.unwrap(),
        Choice { model: "offline/planner".to_owned(), why: ChoiceReason::Nothing }
    );
    let local = models.local().await;
    let why = local[0].1.as_ref().unwrap_err();
    assert_eq!(*why, format!("what answers at {} lists no models", page.url));
    assert_eq!(local[2].1, Ok(Vec::new()));
}

#[tokio::test]
async fn servers_that_are_not_there_or_say_nothing_do_not_hold_anyone_up() {
    let silent = Server::start(vec![Step::Hold]).await;
    let began = Instant::now();
    let choice = chosen(nowhere().with("VLLM_BASE_URL", &silent.url)).await;
    assert_eq!(choice.model, "offline/planner");
    assert_eq!(choice.why.to_string(), "no key is set and no local server answers");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let models = models(nowhere());
    let local = models.local().await;
    assert_eq!(local[0].1, Err("no server answers at http://127.0.0.1:1".to_owned()));
}

const CALL: &str = "event: message_start\n\
data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":40,\"output_tokens\":1}}}\n\n\
event: content_block_start\n\
data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"report\",\"input\":{}}}\n\n\
event: content_block_delta\n\
data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"word\\\":\\\"ready\\\"}\"}}\n\n\
event: content_block_stop\n\
data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
event: message_delta\n\
data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":20}}\n\n\
event: message_stop\n\
data: {\"type\":\"message_stop\"}\n\n";

#[tokio::test]
async fn a_trial_tells_whether_the_tool_was_called_and_what_it_cost() {
    let check = async |body: &str, offer: Offer, called: Option<bool>| {
        let server = Server::start(vec![Step::Send(streamed(body))]).await;
        let keys = Keys::default().with("ANTHROPIC_API_KEY", KEY);
        let model = models(keys.with("ANTHROPIC_BASE_URL", &server.url))
            .resolve("claude-sonnet-4-5")
            .unwrap();
        let trial = try_out(&*model, offer, &CancellationToken::new()).await.unwrap();
        assert_eq!(trial.called_tool, called);
        assert_eq!(trial.request_id.as_deref(), Some("req_7"));
        assert!(trial.took >= trial.first.unwrap_or_default());
        let offered = server.requests()[0].contains("\"name\":\"report\"");
        assert_eq!(offered, offer == Offer::Tool);
        trial
    };
    let trial = check(CALL, Offer::Tool, Some(true)).await;
    assert_eq!((trial.usage.input_tokens, trial.usage.output_tokens), (40, 20));
    assert!(trial.usage.cost.dollars() > 0.0);
    check(PLAIN, Offer::Tool, Some(false)).await;
    assert!(!check(PLAIN, Offer::Nothing, None).await.text.is_empty());
}
