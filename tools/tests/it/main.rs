//! The tools through their public face, on real folders and real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod bash;
mod bench;
mod confinement;
mod edit;
mod escapes;
mod failpoints;
mod fixture;
mod git_law;
mod glob;
mod grep;
mod launch;
mod lending;
mod list;
mod path;
mod process;
mod race;
mod read;
mod read_only;
mod scratch;
mod second_wall;
mod spec;
mod todo;
mod tree;
mod write;

#[test]
fn every_file_beside_this_one_is_a_module_of_it() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(module == "main" || main.contains(&format!("mod {module};")), "{name}");
    }
}
