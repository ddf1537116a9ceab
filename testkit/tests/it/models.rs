//! Lists of models, as each kind of server gives them.

use crate::client::{client, start};
use posse_testkit::{FakeModel, Reply, Rule, Script, When};
use serde_json::{Value, json};

async fn get(fake: &FakeModel, path: &str, header: Option<(&str, &str)>) -> (u16, Value) {
    let mut request = client().get(format!("{}{path}", fake.url()));
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Checks that the list at `path` names these models.
async fn check(fake: &FakeModel, path: &str, header: Option<(&str, &str)>, names: [&str; 2]) {
    let (status, document) = get(fake, path, header).await;
    assert_eq!(status, 200, "{document}");
    let list = document.get("data").or(document.get("models")).unwrap().as_array().unwrap();
    let key = if document.get("data").is_some() { "id" } else { "name" };
    let found: Vec<&Value> = list.iter().map(|model| &model[key]).collect();
    assert_eq!(found, names, "{document}");
}

#[tokio::test]
async fn every_kind_of_server_lists_the_models_of_the_script() {
    let rule = || Rule::when(When::any().model("asked-for")).reply(Reply::text("x"));
    let fake = start(Script::new().model("listed").rule(rule()).rule(rule())).await;
    let names = ["listed", "asked-for"];
    check(&fake, "/v1/models", None, names).await;
    check(&fake, "/groq/openai/v1/models?limit=5", None, names).await;
    check(&fake, "/v1/models", Some(("anthropic-version", "2023-06-01")), names).await;
    check(&fake, "/api/tags", None, names).await;
    let gemini = ["models/listed", "models/asked-for"];
    check(&fake, "/v1beta/models", None, gemini).await;
    check(&fake, "/v1/models", Some(("x-goog-api-key", "k")), gemini).await;
    check(&fake, "/v1beta/openai/models", None, names).await;
    assert_eq!(get(&fake, "/api/version", None).await.0, 200);
}

#[tokio::test]
async fn lists_have_the_shape_of_their_kind() {
    let fake = start(Script::always(Reply::text("x"))).await;
    let (_, openai) = get(&fake, "/v1/models", None).await;
    assert_eq!(openai["object"], "list");
    assert_eq!(openai["data"][0]["object"], "model");
    let (_, anthropic) = get(&fake, "/v1/models", Some(("anthropic-version", "v"))).await;
    assert_eq!(anthropic["data"][0]["type"], "model");
    let ends = [&anthropic["first_id"], &anthropic["last_id"], &anthropic["has_more"]];
    assert_eq!(ends, [&json!("fake-1"), &json!("fake-1"), &json!(false)]);
    let (_, gemini) = get(&fake, "/v1beta/models", None).await;
    assert_eq!(gemini["models"][0]["supportedGenerationMethods"], json!(["generateContent"]));
    let (_, ollama) = get(&fake, "/api/tags", None).await;
    assert_eq!(ollama["models"][0]["model"], "fake-1");
}

#[tokio::test]
async fn one_model_can_be_looked_up() {
    let fake = start(
        Script::parse("models = [\"org/one\"]\n[[rule]]\nreply = [{ text = \"x\" }]").unwrap(),
    )
    .await;
    let (status, document) = get(&fake, "/v1/models/org/one", None).await;
    assert_eq!((status, &document["id"]), (200, &json!("org/one")));
    let (status, document) = get(&fake, "/v1/models/two", None).await;
    assert_eq!((status, &document["error"]["code"]), (404, &json!("model_not_found")));
    let response = client().post(format!("{}/v1/models", fake.url())).send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(fake.refused(), 0);
}
