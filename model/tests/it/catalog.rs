//! The catalog: every row of the file, and what users add to it.

use posse_model::Catalog;
use posse_model::catalog::{Additions, Locality, Source};
use posse_model::wire::{EffortStyle, Gemini, Wire};
use std::collections::BTreeSet;
use toml::{Table, Value};

const TEXT: &str = include_str!("../../catalog.toml");

fn whole() -> Table {
    TEXT.parse().unwrap()
}

fn added(text: &str) -> Result<Catalog, String> {
    let additions: Additions = toml::from_str(text).map_err(|error| error.to_string())?;
    Catalog::with(additions).map_err(|error| error.to_string())
}

#[test]
fn every_row_of_the_file_can_be_used() {
    let whole = whole();
    // As a user's the rows pass every check, which the catalog itself does not repeat at run time.
    Catalog::with(whole.clone().try_into().unwrap()).unwrap();

    let catalog = Catalog::built_in();
    let names: BTreeSet<&str> = catalog.vendors().iter().map(|vendor| &*vendor.name).collect();
    let written: BTreeSet<&str> =
        whole["vendors"].as_table().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, written, "every vendor can be read");
    assert_eq!(catalog.vendors().len(), written.len());

    let models = whole["models"].as_table().unwrap();
    let listed: BTreeSet<String> = catalog.models().into_iter().collect();
    let written: BTreeSet<String> = models.keys().cloned().collect();
    assert_eq!(listed, written, "a model that is read in pieces is the model that is written");
    for (id, row) in models {
        let found = catalog.find(id).unwrap();
        assert_eq!((found.id(), found.source), (id.clone(), Source::BuiltIn));
        let number = |key: &str| row[key].as_integer().unwrap() as u64;
        assert_eq!(found.properties.window, number("window"), "{id}");
        assert_eq!(found.properties.max_output, number("max_output"), "{id}");
        if let Some(price) = row.get("price") {
            let dated = found.properties.price.as_ref().unwrap();
            let date = dated.date.as_deref().unwrap();
            assert!(date.len() == 10 && date.starts_with("202"), "{id}: {date}");
            let input = price["input"].as_float().unwrap();
            assert!((dated.price.input as f64 - input * 1e3).abs() <= 0.5, "{id}");
            assert!(dated.price.cache_read <= dated.price.input, "{id}");
        }
    }
    for (alias, target) in catalog.aliases() {
        assert!(written.contains(target), "{alias} = {target}");
        assert_eq!(catalog.find(alias).unwrap().id(), target);
    }
}

#[test]
fn every_vendor_has_an_address_a_key_and_a_model_to_begin_with() {
    let catalog = Catalog::built_in();
    for vendor in catalog.vendors() {
        let url = url::Url::parse(&vendor.base_url).unwrap();
        assert!(!vendor.key_variables.is_empty() && !vendor.base_url_variables.is_empty());
        match vendor.reach {
            Locality::Remote => {
                assert_eq!(url.scheme(), "https", "{}", vendor.name);
                let model = catalog.preferred(vendor).unwrap();
                assert_eq!(catalog.find(&model).unwrap().source, Source::BuiltIn, "{model}");
                assert!(vendor.needs_key());
            }
            Locality::Local => {
                assert_eq!(url.host_str(), Some("127.0.0.1"), "{}", vendor.name);
                assert!(!vendor.needs_key());
                let found = catalog.find(&format!("{}/anything", vendor.name)).unwrap();
                let price = found.properties.price.unwrap().price;
                assert_eq!((price.input, price.output), (0, 0), "what runs at home is free");
            }
        }
    }
    let variables: Vec<&str> = catalog.variables().collect();
    let distinct: BTreeSet<&&str> = variables.iter().collect();
    assert_eq!(distinct.len(), variables.len(), "no two vendors share a variable");
}

#[test]
fn a_model_speaks_the_dialect_of_its_vendor_and_its_own() {
    let catalog = Catalog::built_in();
    let dialect = |name: &str| catalog.find(name).unwrap().dialect;
    assert_eq!(dialect("sonnet").effort, EffortStyle::ThinkingLevel);
    assert_eq!(dialect("claude-sonnet-4-5").effort, EffortStyle::ThinkingBudget);
    assert!(dialect("claude-sonnet-4-5").output_schema, "as its vendor says");
    assert_eq!(dialect("gemini-3.8-flash").gemini, Gemini::Three);
    assert_eq!(dialect("gemini-2.5-pro").gemini, Gemini::Two);
    assert_eq!(dialect("gpt-4.1").effort, EffortStyle::None);
    assert!(!dialect("mistral").stream_usage);
    assert_eq!(catalog.find("gpt").unwrap().wire(), Wire::OpenaiResponses);
    assert_eq!(catalog.find("groq/unheard-of").unwrap().wire(), Wire::OpenaiChat);
}

#[test]
fn a_user_adds_a_vendor_and_comes_first_with_it() {
    let catalog = added(
        "[vendors.work]\nbase_url = \"https://models.example.com/v1\"\nkey_variable = \"WORK_KEY\"\n\
         key_header = \"api-key\"\nmodel = \"large\"\nprefixes = \"work-\"\nwindow = 64_000\n\
         dialect = { output_schema = true }\n\
         [models.\"work/large\"]\nmax_output = 1_000\nprice = { input = 1, output = 2.5 }\n\
         [aliases]\nboss = \"work/large\"\n",
    )
    .unwrap();
    let vendor = &catalog.vendors()[0];
    assert_eq!(
        (&*vendor.name, vendor.wire, vendor.source),
        ("work", Wire::OpenaiChat, Source::User)
    );
    assert_eq!(catalog.preferred(vendor).as_deref(), Some("work/large"));
    let found = catalog.find("boss").unwrap();
    assert_eq!((found.id().as_str(), found.source), ("work/large", Source::User));
    assert_eq!((found.properties.window, found.properties.max_output), (64_000, 1_000));
    let price = found.properties.price.as_ref().unwrap().price;
    assert_eq!((price.input, price.cache_read, price.output), (1_000, 1_000, 2_500));
    assert!(found.dialect.output_schema);
    assert_eq!(catalog.find("work-horse").unwrap().id(), "work/work-horse");
    assert!(catalog.variables().any(|name| name == "WORK_KEY"));
    assert!(catalog.models().starts_with(&["work/large".to_owned()]));
}

#[test]
fn a_user_changes_what_is_known_and_the_rest_stays() {
    let catalog = added(
        "[vendors.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\nwire = \"openai-chat\"\n\
         [models.\"anthropic/claude-sonnet-5-5\"]\nwindow = 90_000\n\
         dialect = { effort = \"none\" }\n\
         [aliases]\nsonnet = \"openrouter/anthropic/claude-sonnet-5\"\n",
    )
    .unwrap();
    let openai = catalog.vendor("openai").unwrap();
    assert_eq!((openai.wire, &*openai.base_url), (Wire::OpenaiChat, "http://127.0.0.1:9/v1"));
    assert_eq!(openai.key_variables, ["OPENAI_API_KEY"]);
    assert_eq!(catalog.vendors().len(), Catalog::built_in().vendors().len());
    let changed = catalog.find("anthropic/claude-sonnet-5-5").unwrap();
    assert_eq!(changed.source, Source::User);
    assert_eq!((changed.properties.window, changed.properties.max_output), (90_000, 90_000));
    assert_eq!(changed.dialect.effort, EffortStyle::None);
    assert!(changed.dialect.output_schema, "its vendor still says so");
    assert_eq!(changed.properties.price, {
        let before = Catalog::built_in();
        before.find("anthropic/claude-sonnet-5-5").unwrap().properties.price
    });
    assert_eq!(catalog.find("sonnet").unwrap().id(), "openrouter/anthropic/claude-sonnet-5");
}

#[test]
fn rows_that_cannot_be_used_are_refused_with_their_place() {
    let check = |text: &str, says: &str| {
        let error = added(text).unwrap_err();
        assert!(error.contains(says), "{text}\n{error}\nnot: {says}");
        error
    };
    check("[vendors.work]\nwire = \"openai-chat\"", "[vendors.work]: it has no `base_url`");
    check("[vendors.work]\nbase_url = \"models.example.com\"", "`base_url` is not a usable URL");
    check("[vendors.work]\nbase_url = \"ftp://x\"", "its scheme is `ftp`");
    check("[vendors.openai]\nwire = \"morse\"", "`wire`: unknown variant `morse`, expected one of");
    check("[vendors.offline]\nbase_url = \"http://x\"", "`offline` is the built-in model");
    check("[vendors.\"a/b\"]\nbase_url = \"http://x\"", "the name of a vendor has letters");
    check("[vendors.openai]\nkey_header = \"a b\"", "is no header");
    check("[vendors.openai]\nbase_ulr = \"http://x\"", "unknown field `base_ulr`");
    check("[vendors.openai]\ndialect = { accent = true }", "[vendors.openai]: `dialect`: unknown");
    check("[vendors.openai]\ndialect = { effort = \"much\" }", "unknown variant `much`");
    check("[models.gpt]\nwindow = 1", "`gpt` is no model; write it as `vendor/name`");
    check("[models.\"acme/x\"]\nwindow = 1", "there is no vendor `acme`; name one of anthropic");
    check("[models.\"openai/x\"]\nwindow = 0", "at least 1");
    check("[models.\"openai/x\"]\nwindow = 10\nmax_output = 11", "does not fit into `window`");
    check("[models.\"openai/x\"]\nprice = { input = -1, output = 1 }", "`price` has -1");
    check("[models.\"openai/x\"]\nprice = { input = 1 }", "missing field `output`");
    check("[models.\"openai/x\"]\ndialect = { call_ids = 9 }", "[models.\"openai/x\"]: `dialect`");
    check("[aliases]\n\"a,b\" = \"openai/x\"", "`a,b` is no short name");
    check("[aliases]\nbest = \"sonnet\"", "[aliases.best]: `sonnet` is no model");
    let error = check(
        "[vendors.openai]\nkey_variable = \"sk-proj-123\"",
        "name the variable, never the key",
    );
    assert!(!error.contains("sk-proj-123"), "{error}");
}

#[test]
fn the_file_gives_no_price_without_both_directions() {
    for (id, row) in whole()["models"].as_table().unwrap() {
        let Some(price) = row.get("price") else { continue };
        let is_number = |key: &str| price.get(key).is_some_and(Value::is_float);
        assert!(is_number("input") && is_number("output"), "{id}");
    }
}
