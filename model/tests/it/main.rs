//! Tests of the model crate: codecs as pure functions, calls over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod adding;
mod answers;
mod anthropic;
mod call;
mod cassette;
mod catalog;
mod choice;
mod fault;
mod gemini;
mod headers;
mod host;
mod openai_chat;
mod openai_responses;
mod resolve;
mod server;
mod sse;

#[test]
fn no_test_file_is_forgotten() {
    let listed = include_str!("main.rs");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "{name}");
    }
}
