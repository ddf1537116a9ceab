//! The trees of runs in a cycle: children in the background, announced in each way, children that
//! their parent waits for, and commands with effects in one ledger.

use super::place::Place;
use crate::announce::{Role, leading, script_of, spawn, working};
use crate::tree::{read, task};
use posse_testkit::{Reply, Script};
use serde_json::json;
use std::time::Duration;

/// The runs of a tree.
pub(super) const RUNS: usize = 7;
/// The effects of a tree.
const EFFECTS: usize = 4;

/// The file with the effects of runs in a folder.
pub(super) const LEDGER: &str = "ledger";

/// The name of a tree.
pub(super) fn name(tree: usize) -> char {
    char::from(b'a' + tree as u8)
}

/// The prompt of its root.
pub(super) fn prompt(tree: usize) -> String {
    format!("task-{}.", name(tree))
}

/// The message to the first tree.
pub(super) const MESSAGE: &str = "and now the second part";

/// The nonces of all effects.
pub(super) fn nonces(trees: usize) -> Vec<String> {
    let of_tree = |tree| (1..=EFFECTS).map(move |effect| nonce(tree, effect));
    (0..trees).flat_map(of_tree).collect()
}

fn nonce(tree: usize, effect: usize) -> String {
    format!("fx-{}{effect}.", name(tree))
}

/// The script of the fake model.
pub(super) fn script(trees: usize, place: Place) -> Script {
    script_of((0..trees).flat_map(|tree| cast(tree, place)).collect())
}

fn cast(tree: usize, place: Place) -> Vec<Role> {
    let of = |who: &str, number: usize| format!("{who}-{}{number}.", name(tree));
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| of("bg", number));
    let (lead, leaf) = (of("fg", 1), of("leaf", 1));
    let spawned = [
        spawn(&one, "steer"),
        spawn(&two, "followup"),
        spawn(&three, "collect"),
        spawn(&four, "silent"),
    ];
    let look = || Reply::empty().and_tool_call("Read", read());
    let command = |effect| command(&nonce(tree, effect), place);
    let all = vec![
        leading(&prompt(tree), spawned, [("Task", task(&lead))]),
        working(&one, [command(1)]),
        working(&two, [look(), look()]),
        working(&three, [look(), command(2)]),
        working(&four, [command(3)]),
        leading(&lead, [], [("Task", task(&leaf))]),
        working(&leaf, [look(), command(4)]),
    ];
    all.into_iter().map(slow).collect()
}

/// Leaves time for faults.
fn slow(role: Role) -> Role {
    let slow = |reply: Reply| reply.latency(Duration::from_millis(150));
    Role {
        replies: role.replies.into_iter().map(slow).collect(),
        after: role.after.map(slow),
        ..role
    }
}

/// A command with one effect. In a checkout it has a file of its own, so that all changes fit together.
fn command(nonce: &str, place: Place) -> Reply {
    let file = if place == Place::Folder { LEDGER } else { nonce };
    let command = format!("sleep 0.2; printf '%s\\n' '{nonce}' >> {file}; sleep 0.2");
    Reply::empty().and_tool_call("Bash", json!({"command": command}))
}

/// Settings of the user on the machine `host`.
pub(super) fn settings(host: &str) -> String {
    format!("host = \"{host}\"\nmax_depth = 2\n")
}
