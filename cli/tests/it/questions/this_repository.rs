//! This repository itself. Lines are found by their text, so that they may move.

use super::{Asked, Repository, nothing, place};

pub fn repository() -> Repository {
    Repository { name: "this-repository", files: &[], commits: &[], asked: asked() }
}

fn asked() -> Vec<Asked> {
    vec![
        Asked::new("Where is next_step defined?", [place("agent/src/step.rs", "pub fn next_step")]),
        Asked::new("what does RunRow::admit do", [place("store/src/row.rs", "fn admit")]),
        Asked::new(
            "where is the trait Journal used",
            [
                place("agent/src/run.rs", "Journal"),
                place("agent/src/desk.rs", "Journal"),
                place("runtime/src/journal.rs", "Journal"),
                place("agent/src/shift.rs", "Journal"),
            ],
        ),
        Asked::new("What does this project do?", [place("README.md", "")]),
        Asked::new(
            "how is the code laid out?",
            [place("ARCHITECTURE.md", ""), place("README.md", "")],
        ),
        Asked::new(
            "how do I run all the tests",
            [place("README.md", "./test"), place("CONTRIBUTING.md", ""), place("justfile", "test")],
        ),
        Asked::new(
            "which decision records are about SQLite?",
            [place("docs/adr/0004-sqlite-one-writer.md", "")],
        ),
        Asked::new("where is the fake model server", [place("testkit/src/fake_model.rs", "")]),
        Asked::new(
            "explain the Toolbox struct",
            [place("agent/src/tool.rs", "pub struct Toolbox")],
        ),
        Asked::new(
            "how does Grep limit its results?",
            [place("tools/src/grep/results.rs", ""), place("tools/src/grep.rs", "")],
        ),
        Asked::new("where are exit codes documented", [place("docs/reference/exit-codes.md", "")]),
        Asked::new(
            "Where is COMPACT_AT_PERCENT used?",
            [place("agent/src/step.rs", "COMPACT_AT_PERCENT")],
        ),
        Asked::new(
            "which tool runs shell commands",
            [place("tools/src/bash.rs", ""), place("docs/reference/tools.md", "")],
        ),
        Asked::new("where is the PostgresLedger type", [nothing("PostgresLedger")]),
    ]
}
