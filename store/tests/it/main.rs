//! Integration tests of the stores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod aging;
mod budgets;
mod bundles;
mod checkpoint;
mod cluster;
mod conformance;
mod damage;
mod flaws;
mod full;
mod groups;
mod leases;
mod lost;
mod memory;
mod mend;
mod newer;
mod opening;
mod owners;
mod postgres;
mod process;
mod retention;
mod sample;
mod tls;
mod wal;

// `memory` compiles a source file of the crate, which needs these.
use posse_store::*;

#[test]
fn every_file_here_is_part_of_the_tests() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let listed = include_str!("main.rs").contains(&format!("mod {name};"));
        assert!(listed || name == "main", "tests/it/{name}.rs is not listed in main.rs");
    }
}
