//! The fake model, seen from outside: over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod caching;
mod capture;
mod chat;
mod client;
mod conversations;
mod demo;
mod endpoints;
mod fault;
mod files;
mod gates;
mod gemini;
mod grid;
mod http;
mod load;
mod matching;
mod messages;
mod models;
mod python;
mod reasoning;
mod responses;
mod turnstile;
mod validation;
mod wires;

/// Every file beside this one is a module of this binary.
#[test]
fn no_test_file_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        let listed = module == "main" || main.contains(&format!("mod {module};"));
        assert!(listed, "{name} is not listed in main.rs");
    }
}
