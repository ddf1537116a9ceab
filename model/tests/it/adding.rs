//! What it takes to add a vendor or a wire: what `CONTRIBUTING.md` says, and nothing else.

use crate::anthropic::encode::{request, result};
use crate::host::nowhere;
use posse_model::catalog::{Additions, Locality, Vendor};
use posse_model::wire::Wire;
use posse_model::{Catalog, Keys, ModelError, Models, Options};
use posse_protocol::{Delta, Effect, Message, Part, Role, ToolSpec};
use posse_testkit::{FakeModel, Reply, Script};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

const TEXT: &str = include_str!("../../catalog.toml");

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/models.md");

/// A vendor that nobody knows, as a row of the catalog.
const ROW: &str = r#"
[vendors.acme]
base_url = "https://models.acme.example/v1"
base_url_variable = "ACME_BASE_URL"
key_variable = "ACME_API_KEY"
model = "acme-large"
prefixes = ["acme-"]
"#;

#[tokio::test]
async fn a_vendor_is_a_row_of_the_catalog() {
    let (head, models) = TEXT.split_once("\n[models.").unwrap();
    let catalog = Catalog::of_text(format!("{head}\n{ROW}\n[models.{models}").leak());
    assert_eq!(catalog.models(), Catalog::built_in().models(), "the others stay as they are");

    // The variables that the row names are read, and no other code names them.
    let fake = FakeModel::start(Script::always(Reply::text("hello"))).await.unwrap();
    let keys = Keys::collect(&catalog, |variable| match variable {
        "ACME_API_KEY" => Some("key-of-acme".to_owned()),
        "ACME_BASE_URL" => Some(format!("{}/v1", fake.url())),
        _ => None,
    });
    let models = Models::new(catalog, keys, Options::default());
    let choice = models.choose().await.unwrap();
    assert_eq!(choice.model, "acme/acme-large");
    assert_eq!(choice.why.to_string(), "ACME_API_KEY is set");

    for name in ["acme/acme-large", "acme-large", "acme/other"] {
        let model = models.resolve(name).unwrap();
        let asked = request(vec![Message::user("hi")]);
        let reply = model.call(asked, &|_| {}, &CancellationToken::new()).await.unwrap();
        assert_eq!(reply.message.text(), "hello");
        let sent = fake.last_request();
        assert_eq!(sent.header("authorization"), Some("Bearer key-of-acme"));
        assert!(name.ends_with(&sent.model()), "{}", sent.model());
    }
    fake.assert_nothing_refused();
}

/// The line of the reference about `vendor`.
fn line(vendor: &Vendor) -> String {
    let listed = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let texts = |names: &[String]| listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let hosts = vendor.host_variable.iter().map(String::as_str);
    let variables = vendor.base_url_variables.iter().map(String::as_str).chain(hosts);
    let address = listed(&variables.collect::<Vec<_>>());
    let url = url::Url::parse(&vendor.base_url).unwrap();
    let (wants, at) = match vendor.reach {
        Locality::Remote => ("", String::new()),
        Locality::Local => {
            let (host, port) = (url.host_str().unwrap(), url.port_or_known_default().unwrap());
            (", if it wants one", format!("; {host}:{port}"))
        }
    };
    let (name, wire, keys) = (&vendor.name, vendor.wire.name(), texts(&vendor.key_variables));
    format!("| `{name}` | `{wire}` | {keys}{wants} | {address}{at} |\n")
}

/// With `INSTA_UPDATE=always`, as for snapshots, the table is written anew from the catalog.
#[test]
fn the_reference_lists_every_vendor() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let head = "| name | wire | key | address |\n| --- | --- | --- | --- |\n";
    let begin = page.find(head).unwrap() + head.len();
    let end = page[begin..].find("| `offline` |").unwrap() + begin;
    let table: String = Catalog::built_in().vendors().iter().map(line).collect();
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        std::fs::write(PAGE, format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
    } else {
        assert_eq!(page[begin..end], table, "run this test with INSTA_UPDATE=always");
    }
}

/// The models of a vendor that speaks `wire` at `url`.
fn speaking(wire: &str, url: &str) -> Result<Models, String> {
    let row = format!(
        "[vendors.own]\nbase_url = \"{url}\"\nwire = \"{wire}\"\nkey_variable = \"OWN_KEY\"\n"
    );
    let additions: Additions = toml::from_str(&row).map_err(|error| error.to_string())?;
    let catalog = Catalog::with(additions).map_err(|error| error.to_string())?;
    Ok(Models::new(catalog, nowhere().with("OWN_KEY", "key-of-own"), Options::default()))
}

/// A call with a tool, its result, an answer and a refusal, over HTTP, on every wire of the table.
#[tokio::test]
async fn a_wire_is_a_row_of_the_table_and_a_codec() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let unknown = speaking("morse", "http://127.0.0.1:1").err().unwrap();
    let faked: Vec<&str> = posse_testkit::Wire::ALL.iter().map(|wire| wire.name()).collect();
    for wire in Wire::ALL {
        let name = wire.name();
        assert!(unknown.contains(&format!("`{name}`")), "{unknown}");
        assert!(page.contains(&format!("`{name}` (`/")), "{name} is not on the page of models");
        assert!(faked.contains(&name), "the fake model does not speak {name}");
        let tests = format!("tests/it/{}", name.replace('-', "_"));
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&tests).is_dir(), "there is no {tests}");

        let call = Reply::tool_call("Read", json!({"path": "a.txt"}));
        let script = Script::turns([call, Reply::text("It says x."), Reply::error(429, "slowly")]);
        let fake = FakeModel::start(script).await.unwrap();
        let model = speaking(name, &fake.url()).unwrap().resolve("own/some-model").unwrap();

        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let tool = ToolSpec::new("Read", "Reads a file.", Effect::Read, schema);
        let asked = |messages: &[Message]| {
            let mut request = request(messages.to_vec());
            request.tools = Arc::new([tool.clone()]);
            request
        };
        let shown = Mutex::new(String::new());
        let deltas = |delta: Delta| {
            if let Delta::Text { text, .. } = delta {
                shown.lock().unwrap().push_str(&text);
            }
        };
        let never = CancellationToken::new();
        let mut messages = vec![Message::user("What does a.txt say?")];
        let reply = model.call(asked(&messages), &deltas, &never).await.unwrap();
        assert_eq!(reply.message.wire.as_deref(), Some(name), "a message tells its wire");
        assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0, "{name}");
        let call = reply.message.tool_calls().next().unwrap().clone();
        assert_eq!((&*call.name, call.input), ("Read", json!({"path": "a.txt"})), "{name}");

        messages.push(reply.message);
        let parts = vec![result(&call.id.to_string(), vec![Part::text("x")], false)];
        messages.push(Message::new(Role::User, parts));
        let reply = model.call(asked(&messages), &deltas, &never).await.unwrap();
        assert_eq!(reply.message.text(), "It says x.", "{name}");
        assert_eq!(*shown.lock().unwrap(), "It says x.", "{name} shows its text as it comes");
        assert_eq!(fake.last_request().tool_results(), ["x"], "{name}");

        messages.push(reply.message);
        messages.push(Message::user("Go on."));
        let refused = model.call(asked(&messages), &deltas, &never).await.unwrap_err();
        assert!(matches!(refused, ModelError::RetryAfter { .. }), "{name}: {refused}");
        assert!(refused.to_string().contains("slowly"), "{name}: {refused}");
        fake.assert_nothing_refused();
        let wires = fake.requests().into_iter().map(|sent| sent.wire.unwrap().name());
        assert_eq!(wires.collect::<Vec<_>>(), [name; 3]);
    }
    assert_eq!(Wire::ALL.len(), faked.len(), "no other wire is left over in the fake model");
}
