//! Trees with children in the background, which are announced in each of the four ways and in several
//! at once: the scripts of the fake model, and how such a tree is played.

use super::scenario::ATTEMPTS;
use super::script::{bash, paced};
use super::stage::{Acted, Halt, Stage};
use super::tree::{read, said_to, sleep, task};
use super::violation::Promise;
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How children in the background are announced, or what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Telling {
    /// Before their parent's next step.
    Steer,
    /// When their parent's turn ends.
    Followup,
    /// All together.
    Collect,
    /// Not at all.
    Silent,
    /// One in each way, beside children that the parent waits for.
    Mixed,
    /// As children of two children: one in the background, one that its parent waits for.
    Nested,
    /// They fail, run out of time, or have a parent that fails.
    Failing,
    /// A person cancels their parent.
    Cancel,
    /// Together, with a debounce interval of zero.
    Quiet,
    /// To a session whose turn has ended.
    Idle,
}

/// All of them.
pub(crate) const TELLINGS: [Telling; 10] = [
    Telling::Steer,
    Telling::Followup,
    Telling::Collect,
    Telling::Silent,
    Telling::Mixed,
    Telling::Nested,
    Telling::Failing,
    Telling::Cancel,
    Telling::Quiet,
    Telling::Idle,
];

impl fmt::Display for Telling {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Telling::Steer => "steer",
            Telling::Followup => "followup",
            Telling::Collect => "collect",
            Telling::Silent => "silent",
            Telling::Mixed => "mixed",
            Telling::Nested => "nested",
            Telling::Failing => "failing",
            Telling::Cancel => "cancel",
            Telling::Quiet => "quiet",
            Telling::Idle => "idle",
        })
    }
}

/// In the prompt of a run that fails.
pub(crate) const FAILS: &str = "cannot be done";
/// In the prompt of a run that runs out of time.
pub(crate) const LATE: &str = "takes too long";
/// The message of a session.
pub(crate) const LINE: &str = "task-a of a session";

/// A run of a tree: its prompt, and the replies of its model.
pub(crate) struct Role {
    pub(crate) prompt: String,
    /// One for each turn.
    pub(crate) replies: Vec<Reply>,
    /// To every later request.
    pub(crate) after: Option<Reply>,
}

/// The nonces of two tool calls, of which the second takes longer.
const LEDGER: [&str; 2] = ["fx-g2.", "fx-g3."];

impl Telling {
    /// How many runs there are in the end, at least and at most.
    pub(crate) fn runs(self) -> RangeInclusive<usize> {
        let all = self.cast().len();
        match self {
            // A run that is cancelled early has no children yet.
            Telling::Cancel => 1..=all,
            _ => all..=all,
        }
    }

    /// The nonces of its tools.
    pub(crate) fn nonces(self) -> Vec<String> {
        LEDGER.map(str::to_owned).to_vec()
    }

    /// Settings of the user.
    pub(crate) fn settings(self) -> String {
        let quiet = match self {
            Telling::Quiet => "\n[subagents]\nquiet_seconds = 0\n",
            _ => "",
        };
        format!("max_depth = 2\nmax_concurrent = 8\n{quiet}")
    }

    /// About how long its first command takes without kills.
    pub(crate) fn horizon(self) -> Duration {
        Duration::from_millis(match self {
            Telling::Cancel => 300,
            Telling::Failing => 1_300,
            Telling::Nested => 800,
            _ => 600,
        })
    }

    /// About how many events its first command prints.
    pub(crate) fn events(self) -> u64 {
        match self {
            Telling::Mixed | Telling::Nested => 80,
            _ => 45,
        }
    }

    /// The script of the fake model.
    pub(crate) fn script(self) -> Script {
        script_of(self.cast())
    }

    /// All runs, the root first.
    fn cast(self) -> Vec<Role> {
        match self {
            Telling::Steer => three_in("steer"),
            Telling::Followup => three_in("followup"),
            Telling::Collect | Telling::Quiet => three_in("collect"),
            Telling::Silent => three_in("silent"),
            Telling::Mixed => mixed(),
            Telling::Nested => nested(),
            Telling::Failing => failing(),
            Telling::Cancel => cancelled(),
            Telling::Idle => {
                let mut cast = three_in("followup");
                LINE.clone_into(&mut cast[0].prompt);
                cast
            }
        }
    }
}

/// The script of the fake model for the runs of `cast`.
pub(crate) fn script_of(cast: Vec<Role>) -> Script {
    let talkers = cast.iter().filter(|role| !role.replies.is_empty());
    let script = talkers.fold(Script::new(), |script, role| {
        let replies = role.replies.iter().cloned();
        script.conversation(replies.fold(said_to(&role.prompt), Conversation::reply))
    });
    cast.into_iter().fold(script, |script, role| {
        let asked_again = When::any().first_user_contains(&role.prompt);
        match role.after {
            Some(after) => script.rule(Rule::when(asked_again).reply(after)),
            None => script,
        }
    })
}

/// A root with three children, each slower than the one before it.
fn three_in(announce: &str) -> Vec<Role> {
    let spawned = ["bg-1.", "bg-2.", "bg-3."].map(|prompt| spawn(prompt, announce));
    let [one, two, three] = three();
    vec![leading("task-a", spawned, []), one, two, three]
}

fn three() -> [Role; 3] {
    let look = Reply::empty().and_tool_call("Read", read()).and_tool_call("Read", read());
    [
        working("bg-1.", []),
        working("bg-2.", [bash(Reply::empty(), LEDGER[0])]),
        working("bg-3.", [look, slowly(LEDGER[1])]),
    ]
}

/// One child in each way, and two that the parent waits for.
fn mixed() -> Vec<Role> {
    let spawned = [
        spawn("bg-1.", "steer"),
        spawn("bg-2.", "followup"),
        spawn("bg-3.", "collect"),
        spawn("bg-4.", "silent"),
        spawn("bg-5.", "collect"),
    ];
    let more = paced(Reply::text("One more.").and_tool_call("Task", task("fg-2.")));
    let mut cast = vec![leading("task-a", spawned, [("Task", task("fg-1."))])];
    cast[0].replies.insert(1, more);
    cast.extend(three());
    let look = || Reply::empty().and_tool_call("Read", read());
    cast.push(working("bg-4.", [look(), look()]));
    cast.push(working("bg-5.", [look()]));
    cast.push(working("fg-1.", [look()]));
    cast.push(working("fg-2.", []));
    cast
}

/// Two children with children of their own. The root waits for one of the two.
fn nested() -> Vec<Role> {
    let root = leading("task-a", [spawn("lead-1.", "followup")], [("Task", task("lead-2."))]);
    let first = leading("lead-1.", [spawn("bg-1.", "steer"), spawn("bg-2.", "collect")], []);
    let second = leading("lead-2.", [spawn("bg-3.", "followup")], []);
    [root, first, second].into_iter().chain(three()).collect()
}

/// One child that fails, one that runs out of time, one that fails while its own child works, and one
/// that completes.
fn failing() -> Vec<Role> {
    let (fails, late) = (format!("bg-1. {FAILS}"), format!("bg-4. {LATE}"));
    let breaks = format!("lead-1. {FAILS}");
    let mut hurried = spawn(&late, "collect");
    hurried["runTimeoutSeconds"] = 1.into();
    let spawned =
        [spawn(&fails, "followup"), hurried, spawn(&breaks, "steer"), spawn("bg-3.", "collect")];
    let broken = || paced(Reply::error(403, "there is no way to do this"));
    let [_, _, good] = three();
    let lead = Role {
        prompt: breaks,
        replies: vec![call_all([spawn("bg-2.", "followup")], [])],
        after: Some(broken()),
    };
    vec![
        leading("task-a", spawned, []),
        good,
        Role { prompt: fails, replies: Vec::new(), after: Some(broken()) },
        Role { prompt: late, replies: Vec::new(), after: Some(paced(forever())) },
        lead,
        working("bg-2.", [sleep(LEDGER[0])]),
    ]
}

/// One child in each way. Most do not end by themselves.
fn cancelled() -> Vec<Role> {
    let spawned = [
        spawn("bg-1.", "steer"),
        spawn("bg-2.", "followup"),
        spawn("bg-3.", "collect"),
        spawn("bg-4.", "silent"),
    ];
    vec![
        leading("task-a", spawned, []),
        working("bg-1.", []),
        working("bg-2.", [sleep(LEDGER[0])]),
        working("bg-3.", [sleep(LEDGER[1])]),
        working("bg-4.", [forever()]),
    ]
}

/// A run that starts children, works on a little, and then waits for their announcements.
pub(crate) fn leading<const N: usize, const M: usize>(
    prompt: &str,
    spawned: [Value; N],
    called: [(&str, Value); M],
) -> Role {
    let look = Reply::text("Meanwhile I look.").and_tool_call("Read", read());
    Role {
        prompt: prompt.to_owned(),
        replies: vec![call_all(spawned, called), paced(look), paced(Reply::text("I wait."))],
        after: Some(paced(Reply::text("I have heard it."))),
    }
}

/// A run that does this, and answers.
pub(crate) fn working<const N: usize>(prompt: &str, work: [Reply; N]) -> Role {
    let answer = Reply::text("This part is done.");
    let replies = work.into_iter().chain([answer]).map(paced).collect();
    Role { prompt: prompt.to_owned(), replies, after: None }
}

fn call_all<const N: usize, const M: usize>(
    spawned: [Value; N],
    called: [(&str, Value); M],
) -> Reply {
    let spawned = spawned.into_iter().map(|call| ("spawn_subagent", call));
    let begin = Reply::text("I hand it on.");
    let all = spawned.chain(called);
    paced(all.fold(begin, |reply, (tool, call)| reply.and_tool_call(tool, call)))
}

pub(crate) fn spawn(prompt: &str, announce: &str) -> Value {
    json!({
        "task": prompt,
        "label": format!("do {prompt}"),
        "agentId": "general-purpose",
        "announce": announce,
    })
}

/// A slow command.
fn slowly(nonce: &str) -> Reply {
    let command = format!("sleep 0.15; printf '%s\\n' '{nonce}' >> ledger");
    Reply::empty().and_tool_call("Bash", json!({"command": command}))
}

/// A command that does not end by itself, and leaves nothing behind.
fn forever() -> Reply {
    Reply::empty().and_tool_call("Bash", json!({"command": "sleep 61"}))
}

/// Plays a session that the process leaves as soon as its turn has ended. Announcements wake it when it
/// is resumed.
pub(crate) async fn talk(stage: &mut Stage) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        let session = stage.rows().await?.pop().map(|row| row.run);
        let mut command = vec!["chat"];
        let mut line = LINE;
        match &session {
            Some(run) => {
                command.extend(["--resume", run]);
                if stage.log(run).await?.heard(LINE) > 0 {
                    line = "";
                }
            }
            None => command.extend(["--model", "anthropic/claude-sonnet-4-5"]),
        }
        if stage.act(&command, line, &[0]).await? == Acted::Done {
            return Ok(());
        }
    }
    Err(stage.give_up(Promise::InTime, "the session did not come to the end of its turn"))
}
