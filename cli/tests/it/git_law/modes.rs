//! Modes of files: with them, an agent could pass off its files as Posse's, or hide what is protected.

use super::{check, prepared, trick};

/// The first command closes the repository of the workspace, so that the next one might find it unprotected.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_repository_which_it_had_closed() {
    check(&[
        trick(
            "the mode of a placeholder",
            "chmod 1555 .git
THEN
chmod 755 .git; ln .git/config .git/x
THEN
printf '[core]\nfsmonitor = \"PAYLOAD; false\"\n' >> .git/x",
            "git status",
        ),
        trick(
            "not listable",
            "chmod 0311 .git
THEN
chmod 755 .git; printf '[core]\nfsmonitor = \"PAYLOAD; false\"\n' >> .git/config",
            "chmod 755 .git; git status",
        ),
        trick(
            "closed",
            "chmod 0 .git
THEN
chmod 755 .git; printf '[core]\nfsmonitor = \"PAYLOAD; false\"\n' >> .git/config",
            "chmod 755 .git; git status",
        ),
        prepared(
            "data that a file names",
            "mkdir p; mv .git p/data; echo 'gitdir: p/data' > .git",
            "chmod 0 p
THEN
chmod 755 p; ln p/data/config x
THEN
printf '[core]\nfsmonitor = \"PAYLOAD; false\"\n' >> x",
            "chmod 755 p; git status",
        ),
    ])
    .await;
}

/// A protected file may have another name, which an earlier run in a folder around gave it.
#[tokio::test]
async fn nothing_runs_that_an_agent_wrote_by_another_name_of_a_protected_file() {
    let write = "printf '[core]\nfsmonitor = \"PAYLOAD; false\"\n' >>";
    let agent = |name: &str| &*format!("{write} {name}").leak();
    check(&[
        prepared("in the workspace", "ln .git/config notes", agent("notes"), "git status"),
        prepared("in the data", "ln .git/config .git/x", agent(".git/x"), "git status"),
    ])
    .await;
}

/// An empty file could look like a placeholder until a later command fills it by another name.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_file_which_looked_like_a_placeholder() {
    check(&[prepared(
        "a script that a hook would run",
        "mkdir -p scripts .git/hooks
         printf '#!/bin/sh\n[ -f scripts/opt.sh ] && . scripts/opt.sh\nexit 0\n' > .git/hooks/pre-commit
         chmod +x .git/hooks/pre-commit",
        ": > x; ln x scripts/opt.sh; chmod 1444 x
THEN
chmod 755 x; echo PAYLOAD > x",
        "git commit -qm y --allow-empty",
    )])
    .await;
}
