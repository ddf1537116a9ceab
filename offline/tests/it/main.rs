//! The offline model at its seam: requests in, replies out, tools played by the test. How well it
//! answers with real tools on real files is measured by the question set of the command line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod conversations;
mod delegation;
mod limits;
mod properties;
mod replies;
mod safety;
mod world;

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
