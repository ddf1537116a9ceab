//! Models that the program brings along: their names, what is known of them, and when they are
//! taken.

use crate::anthropic::encode::request;
use async_trait::async_trait;
use posse_model::catalog::Additions;
use posse_model::{
    Abilities, Cassette, Catalog, Choice, ChoiceReason, DeltaSink, HostModel, Keys, Model,
    ModelError, ModelInfo, Models, Options, Places, Recording, Replay, Reply, Request,
};
use posse_protocol::{Message, Part, Price, Stop, Usage};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A model that says its own name.
struct Parrot {
    info: ModelInfo,
}

#[async_trait]
impl Model for Parrot {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        _: Request,
        _: DeltaSink<'_>,
        _: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        Ok(Reply {
            message: Message::from_model("parrot", vec![Part::text(&self.info.id)]),
            stop: Stop::End,
            usage: Usage::default(),
            request_id: None,
            service_tier: None,
            rate_limits: None,
        })
    }
}

fn parrot(id: &str, price: Price) -> HostModel {
    let id = id.to_owned();
    let info = ModelInfo { id, context_window: 10_000, max_output: 1_000, price };
    HostModel::new(Arc::new(Parrot { info }))
}

fn brought(id: &str) -> HostModel {
    parrot(id, Price::default())
}

/// A model without a price that is taken when there is no other.
pub fn last_resort(id: &str) -> HostModel {
    let free = Abilities { tools: true, output_schema: false, priced: true };
    HostModel { abilities: free, last_resort: true, ..brought(id) }
}

/// Addresses at which nothing listens, for every local vendor.
pub fn nowhere() -> Keys {
    ["OLLAMA_BASE_URL", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"]
        .into_iter()
        .fold(Keys::default(), |keys, name| keys.with(name, "http://127.0.0.1:1/v1"))
}

fn models(hosts: impl IntoIterator<Item = HostModel>) -> Models {
    let models = Models::new(Catalog::built_in(), nowhere(), Options::default());
    hosts.into_iter().try_fold(models, Models::with).unwrap()
}

fn error_of(models: &Models, name: &str) -> String {
    models.resolve(name).err().unwrap().to_string()
}

#[tokio::test]
async fn it_is_found_by_its_name_and_answers() {
    let models = models([brought("acme/one")]);
    for name in ["acme/one", "acme"] {
        let model = models.resolve(name).unwrap();
        let asked = request(vec![Message::user("hi")]);
        let reply = model.call(asked, &|_| {}, &CancellationToken::new()).await.unwrap();
        assert_eq!(reply.message.text(), "acme/one", "{name}");
    }
    let listed: Vec<_> = models.host_models().map(|(model, short)| (model.name(), short)).collect();
    assert_eq!(listed, [("acme/one", Some("acme"))]);
    assert!(models.providers().is_empty(), "nobody paces it");
}

#[test]
fn of_two_of_one_vendor_each_has_its_whole_name_only() {
    let models = models([brought("acme/one"), brought("acme/two")]);
    assert_eq!(models.resolve("acme/two").unwrap().info().id, "acme/two");
    assert!(error_of(&models, "acme").starts_with("`acme` is not a known model"));
    assert!(models.host_models().all(|(_, short)| short.is_none()));
}

#[test]
fn what_nobody_brought_is_not_known_and_what_was_meant_is_suggested() {
    let models = models([brought("acme/one")]);
    let error = error_of(&models, "acme/other");
    assert!(error.starts_with("`acme/other` is not a known model"), "{error}");
    assert_eq!(error_of(&models, "acne"), "`acne` is not a known model; did you mean `acme`?");
    let error = error_of(&models, "acne/one");
    assert!(error.contains("there is no vendor `acne`; did you mean `acme`?"), "{error}");
    // A name that is kept for a program's own model, in a program that brings none.
    let error = error_of(&models, "offline/planner");
    assert!(error.starts_with("`offline/planner` is not a known model"), "{error}");
}

#[test]
fn names_that_cannot_be_are_refused_and_the_error_says_why() {
    let check = |hosts: &[&str], expected: &str| {
        let models = Models::new(Catalog::built_in(), Keys::default(), Options::default());
        let refused = hosts.iter().map(|id| brought(id)).try_fold(models, Models::with);
        let error = refused.err().unwrap().to_string();
        let last = hosts.last().unwrap();
        let begins = format!("the model `{last}` of this program cannot be used: ");
        assert_eq!(error.strip_prefix(&begins), Some(expected), "{error}");
    };
    let form = "a model is called `vendor/name`, such as `acme/one`";
    for name in ["", "one", "/one", "acme/", "a b/one", "acme/o ne", "acme/a,b", "ac/../me,"] {
        check(&[name], form);
    }
    let taken = "the catalog has a vendor `openai`; call the vendor of this model otherwise";
    check(&["openai/mine"], taken);
    check(&["acme/one", "acme/one"], "there is another one of this name; bring each once");
}

#[test]
fn vendors_of_the_settings_are_in_the_way_too() {
    let text = "[vendors.acme]\nbase_url = \"https://x.example.com\"";
    let additions: Additions = toml::from_str(text).unwrap();
    let catalog = Catalog::with(additions).unwrap();
    let models = Models::new(catalog, Keys::default(), Options::default());
    let error = models.with(brought("acme/one")).err().unwrap().to_string();
    assert!(error.contains("the catalog has a vendor `acme`"), "{error}");
}

#[test]
fn its_price_is_known_if_it_has_one_or_the_program_says_so() {
    let price = Price { input: 1_000, ..Price::default() };
    let models = models([brought("a/x"), parrot("b/x", price), last_resort("c/x")]);
    let priced = |name: &str| models.abilities(name).unwrap().priced;
    assert!(!priced("a/x") && priced("b/x") && priced("c/x") && priced("c"));
    assert!(models.abilities("a/x").unwrap().tools);
    assert!(!models.abilities("a/x").unwrap().output_schema);
}

#[tokio::test]
async fn only_a_last_resort_is_taken_without_being_named_and_the_first_of_them() {
    let hosts = [brought("a/x"), last_resort("b/x"), last_resort("c/x")];
    let choice = models(hosts).choose().await.unwrap();
    assert_eq!(choice, Choice { model: "b/x".to_owned(), why: ChoiceReason::Nothing });
}

#[tokio::test]
async fn without_one_the_error_says_what_to_do() {
    let error = models([]).choose().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no model to take: no key is set and no local server answers; set a key such as \
         ANTHROPIC_API_KEY, start a local server such as ollama, or name a model that needs neither"
    );
    let error = models([brought("a/x"), brought("b/x")]).choose().await.unwrap_err().to_string();
    assert!(error.ends_with("or name a model, such as a/x or b/x"), "{error}");
}

#[tokio::test]
async fn it_is_neither_recorded_nor_replayed_and_a_replay_of_nothing_falls_back_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let places = || Places { workspace: folder.path().to_owned(), home: None };
    let tape = folder.path().join("tape.jsonl");
    let recording = Arc::new(Recording::create(tape.clone(), places()).unwrap());
    let recorded = models([brought("a/x")]).with_cassette(Cassette::Recording(recording.clone()));
    let asked = || request(vec![Message::user("hi")]);
    let model = recorded.resolve("a/x").unwrap();
    model.call(asked(), &|_| {}, &CancellationToken::new()).await.unwrap();
    assert_eq!(recording.finish().unwrap(), 0);

    std::fs::write(&tape, "{\"cassette\":{\"version\":1,\"posse\":\"0.1.0\"}}\n").unwrap();
    let replay = || Cassette::Replay(Arc::new(Replay::open(tape.clone(), places()).unwrap()));
    let played = models([last_resort("a/x")]).with_cassette(replay());
    let choice = played.choose().await.unwrap();
    assert_eq!(choice.model, "a/x");
    assert!(matches!(choice.why, ChoiceReason::Cassette { .. }), "{choice:?}");
    let model = played.resolve("a/x").unwrap();
    assert!(model.call(asked(), &|_| {}, &CancellationToken::new()).await.is_ok());

    let error = models([]).with_cassette(replay()).choose().await.unwrap_err().to_string();
    assert!(error.contains("tape.jsonl has none; name one, or record again"), "{error}");
}
