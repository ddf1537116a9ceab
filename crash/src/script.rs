//! The scripts of the fake model for each scenario, and the effects of its tool calls.
//!
//! Every reply depends on the request alone, so that a resumed run gets the same replies. Every call
//! that changes something has a nonce that no other call has.

use super::scenario::Scenario;
use super::tree;
use posse_testkit::{Conversation, Reply, Rule, Script, Usage, When};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A text in every request for a summary.
const COMPACTION: &str = "about to outgrow your context";
/// A text in every summary.
const SUMMARY: &str = "[Summary of the conversation so far";
/// The end of every complete file.
pub(crate) const END: &str = "the end\n";

/// The script of `scenario`.
pub(crate) fn script(scenario: Scenario) -> Script {
    match scenario {
        // A message at the very end of the run takes another turn.
        Scenario::Steering => tools(Script::new(), "task-a", "")
            .rule(Rule::when(When::any().turn(5)).reply(paced(Reply::text("That too.")))),
        Scenario::Tools | Scenario::Shutdown | Scenario::Archiving => {
            tools(Script::new(), "task-a", "")
        }
        Scenario::Recovery => tools(tools(Script::new(), "task-a", ""), "task-b", "b"),
        Scenario::Crowd => ["a", "b", "c"].iter().fold(Script::new(), |script, name| {
            script.conversation(
                Conversation::when(When::any().first_user_contains(&format!("task-{name}")))
                    .reply(paced(bash(Reply::text("First."), &format!("fx-{name}1."))))
                    .reply(paced(bash(
                        write(Reply::empty(), &format!("fx-{name}2.")),
                        &format!("fx-{name}3."),
                    )))
                    .reply(paced(Reply::text("Done."))),
            )
        }),
        Scenario::Compaction => compaction(),
        Scenario::Reopening => Script::turns([
            paced(bash(Reply::text("First."), "fx-1.")),
            paced(Reply::text("First done.")),
            paced(bash(Reply::text("Second."), "fx-2.")),
            paced(Reply::text("Second done.")),
            paced(write(Reply::text("Third."), "fx-3.")),
            paced(Reply::text("Third done.")),
        ]),
        Scenario::Chat => Script::turns([
            paced(bash(Reply::text("First."), "fx-1.")),
            paced(Reply::text("First done.")),
            paced(bash(Reply::text("Second."), "fx-2.")),
            paced(Reply::text("Second done.")),
        ]),
        Scenario::Cancel => {
            Script::turns([paced(tree::sleep("fx-1.")), paced(Reply::text("Awake again."))])
        }
        Scenario::Tree
        | Scenario::TreeNarrow
        | Scenario::TreeResume
        | Scenario::TreeCancel
        | Scenario::TreeForsaken => tree::script(scenario),
        Scenario::TreeAnnounce(telling) => telling.script(),
    }
}

/// Writes the first files of the workspace.
pub(crate) fn furnish(scenario: Scenario, workspace: &Path) -> io::Result<()> {
    for seed in ["seed.txt", "seedb.txt"] {
        std::fs::write(workspace.join(seed), "one\nmark\nthree\n")?;
    }
    if scenario == Scenario::Compaction {
        let line = "something long enough to fill the window soon\n";
        std::fs::write(workspace.join("big.txt"), line.repeat(1_700))?;
    }
    Ok(())
}

/// The nonces of `scenario`.
pub(crate) fn nonces(scenario: Scenario) -> Vec<String> {
    let of = |names: &[&str], count: u32| {
        let each = |name: &&str| (1..=count).map(|n| format!("fx-{name}{n}.")).collect::<Vec<_>>();
        names.iter().flat_map(each).collect()
    };
    match scenario {
        Scenario::Tools | Scenario::Shutdown | Scenario::Steering | Scenario::Archiving => {
            of(&[""], 4)
        }
        Scenario::Recovery => of(&["", "b"], 4),
        Scenario::Crowd => of(&["a", "b", "c"], 3),
        Scenario::Compaction | Scenario::Chat => of(&[""], 2),
        Scenario::Reopening => of(&[""], 3),
        Scenario::Cancel => of(&[""], 1),
        Scenario::Tree
        | Scenario::TreeNarrow
        | Scenario::TreeResume
        | Scenario::TreeCancel
        | Scenario::TreeForsaken => tree::nonces(scenario),
        Scenario::TreeAnnounce(telling) => telling.nonces(),
    }
}

/// Every tool that changes something, and several reads in one turn.
fn tools(script: Script, task: &str, name: &str) -> Script {
    let fx = |number: u32| format!("fx-{name}{number}.");
    let written = file(&fx(2));
    // A file for each run: if two edited one file, one of them would be refused.
    let seed = format!("seed{name}.txt");
    let edit = json!({
        "file_path": seed,
        "old_string": "mark",
        "new_string": format!("mark {}", fx(3)),
    });
    let read = |path: &str| json!({"file_path": path});
    script.conversation(
        Conversation::when(When::any().first_user_contains(task))
            .reply(paced(write(bash(Reply::text("I begin."), &fx(1)), &fx(2))))
            .reply(paced(
                Reply::empty()
                    .and_tool_call("Read", read(&seed))
                    .and_tool_call("Read", read(&written))
                    .and_tool_call("Grep", json!({"pattern": "mark"})),
            ))
            .reply(paced(Reply::empty().and_tool_call("Edit", edit)))
            .reply(paced(bash(Reply::empty(), &fx(4))))
            .reply(paced(Reply::text("Done."))),
    )
}

/// Two large reads, a reply that claims a full window, a summary, and two more turns.
fn compaction() -> Script {
    let read = || json!({"file_path": "big.txt"});
    let full = Usage { input_tokens: Some(190_000), ..Usage::default() };
    let summary = Reply::text("Read a large file twice, called fx once; call it again.");
    Script::new()
        .rule(Rule::when(When::any().last_user_contains(COMPACTION)).reply(paced(summary)))
        .conversation(
            // The kept part begins with the reply that filled the window: turn 1.
            Conversation::when(When::any().any_message_contains(SUMMARY))
                .reply(paced(Reply::text("Nothing was kept.")))
                .reply(paced(bash(Reply::text("On."), "fx-2.")))
                .reply(paced(Reply::text("Done."))),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("task-a"))
                .reply(paced(
                    Reply::empty().and_tool_call("Read", read()).and_tool_call("Read", read()),
                ))
                .reply(paced(bash(Reply::text("Much text."), "fx-1.").usage(full))),
        )
}

/// Slows a reply down, so that there is time for a kill between any two events.
pub(crate) fn paced(reply: Reply) -> Reply {
    reply.latency(Duration::from_millis(12)).token_delay(Duration::from_millis(2))
}

pub(crate) fn bash(reply: Reply, nonce: &str) -> Reply {
    let command = format!("sleep 0.01; printf '%s\\n' '{nonce}' >> ledger; sleep 0.01");
    reply.and_tool_call("Bash", json!({"command": command}))
}

fn write(reply: Reply, nonce: &str) -> Reply {
    let content: Value = format!("{nonce}\n{}{END}", "filling\n".repeat(30)).into();
    reply.and_tool_call("Write", json!({"file_path": file(nonce), "content": content}))
}

/// The file that a call writes. Its name does not contain the nonce.
fn file(nonce: &str) -> String {
    format!("{}whole", nonce.replace("fx-", "file-"))
}
