//! The fake model in a process of its own, so that nobody else pays for it.

use super::Result;
use super::line::say;
use super::process::{Process, next_order};
use posse_testkit::{Conversation, FakeModel, Gate, Reply, Script, When};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Serves a scene until told to end
#[derive(clap::Args)]
pub struct Serve {
    /// Which conversation
    #[arg(long, value_enum)]
    scene: Scene,
    /// A main agent hands the scene to so many others
    #[arg(long)]
    children: Option<usize>,
    /// Before each reply
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Hold the last reply until told to let go
    #[arg(long)]
    hold: bool,
}

/// What the model does.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Scene {
    /// Reads three files, one a turn, and answers
    Reads,
    /// Notes something, turn after turn
    Notes,
}

/// Files that the scene of reads reads.
pub const FILES: [&str; 3] = ["one.txt", "two.txt", "three.txt"];
/// Turns of the scene of notes.
pub const NOTES: usize = 512;
/// How long everyone may take to arrive.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the server has seen in the end.
#[derive(Serialize, Deserialize)]
pub struct Seen {
    pub requests: usize,
    pub refused: usize,
    pub abandoned: usize,
}

/// What a main agent is told, and nobody else.
pub const LEAD: &str = "Have every part of it looked at, then say whether all is there.";
/// What those are told whom it calls.
pub const FOLLOW: &str = "Read the three files and say whether all is there.";

/// The script of a scene; `gate` holds its last reply.
pub fn script(scene: Scene, latency: Duration, gate: Option<&Gate>) -> Script {
    Script::turns(replies(scene, latency, gate))
}

/// The script of a main agent that hands a scene to `children`, all in one reply. `gate` holds the
/// last reply of each of these.
pub fn script_of_tree(
    scene: Scene,
    children: usize,
    latency: Duration,
    gate: Option<&Gate>,
) -> Script {
    let call = |number: usize| {
        let description = format!("Look at part {number}");
        json!({"description": description, "prompt": FOLLOW, "subagent_type": "explore"})
    };
    let calls = (1..=children).map(call);
    let calls = calls.fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
    let lead = Conversation::when(When::any().first_user_contains(LEAD))
        .reply(calls.latency(latency))
        .reply(Reply::text("All of it is there.").latency(latency));
    let replies = replies(scene, latency, gate).into_iter();
    let follow = replies.fold(Conversation::when(When::any()), Conversation::reply);
    Script::new().conversation(lead).conversation(follow)
}

fn replies(scene: Scene, latency: Duration, gate: Option<&Gate>) -> Vec<Reply> {
    let mut replies: Vec<Reply> = match scene {
        Scene::Reads => FILES
            .iter()
            .map(|file| {
                Reply::text(&format!("I read {file}."))
                    .and_tool_call("Read", json!({"file_path": file}))
            })
            .collect(),
        Scene::Notes => (0..NOTES).map(|_| Reply::tool_call("Note", json!({}))).collect(),
    };
    let last = Reply::text("I have seen it all, and it is all there.");
    replies.push(match gate {
        Some(gate) => last.held_by(gate),
        None => last,
    });
    replies.into_iter().map(|reply| reply.latency(latency)).collect()
}

impl Serve {
    pub async fn run(self) -> Result<()> {
        let gate = Gate::new();
        let latency = Duration::from_millis(self.latency_ms);
        let holding = self.hold.then_some(&gate);
        let script = match (self.children, self.scene) {
            (None, Scene::Reads) => script(Scene::Reads, latency, holding).turns_only(),
            // Whoever measures this one asks what the requests were, by the tokens they are charged.
            (None, Scene::Notes) => script(Scene::Notes, latency, holding),
            (Some(children), scene) => script_of_tree(scene, children, latency, holding),
        };
        let fake = FakeModel::start(script.without_capture().without_cache()).await?;
        say(&json!(fake.url()).to_string());
        while let Some(order) = next_order().await? {
            match order.split_once(' ') {
                Some(("held", count)) => {
                    wait_for_held(&gate, count.parse()?).await?;
                    say(&json!(gate.held()).to_string());
                }
                _ if order == "open" => gate.open(),
                _ => break,
            }
        }
        let (requests, refused, abandoned) = (fake.count(), fake.refused(), fake.abandoned());
        say(&serde_json::to_string(&Seen { requests, refused, abandoned })?);
        fake.shutdown().await;
        Ok(())
    }
}

async fn wait_for_held(gate: &Gate, count: usize) -> Result<()> {
    tokio::time::timeout(PATIENCE, async {
        // The gate's own patience is that of a test.
        while gate.wait_for_held(count).await.is_err() {}
    })
    .await
    .map_err(|_| format!("only {} of {count} requests came", gate.held()).into())
}

/// A fake model in a process of its own, from outside.
pub struct Server {
    process: Process,
    pub url: String,
}

impl Server {
    pub fn start(scene: &str, latency: Duration) -> Result<Self> {
        Self::spawn(scene, &[format!("--latency-ms={}", latency.as_millis())])
    }

    /// One that holds the last reply of every conversation.
    pub fn holding(scene: &str) -> Result<Self> {
        Self::spawn(scene, &["--hold".to_owned()])
    }

    /// One for a main agent that hands the scene of reads to so many others.
    pub fn of_tree(children: usize, latency: Duration) -> Result<Self> {
        let latency = format!("--latency-ms={}", latency.as_millis());
        Self::spawn("reads", &[format!("--children={children}"), latency])
    }

    /// The same, holding the last reply of each of these.
    pub fn of_tree_holding(children: usize) -> Result<Self> {
        Self::spawn("reads", &[format!("--children={children}"), "--hold".to_owned()])
    }

    fn spawn(scene: &str, options: &[String]) -> Result<Self> {
        let mut arguments = ["serve", "--scene", scene].map(str::to_owned).to_vec();
        arguments.extend_from_slice(options);
        let mut process = Process::part(&arguments)?;
        let url = process.hear()?;
        Ok(Server { process, url })
    }

    /// Waits until this many replies are held.
    pub fn wait_for_held(&mut self, count: usize) -> Result<()> {
        self.process.tell(&format!("held {count}"))?;
        self.process.hear::<usize>().map(|_| ())
    }

    /// Lets all replies go.
    pub fn open(&mut self) -> Result<()> {
        self.process.tell("open")
    }

    /// Ends it. Fails when a request was not answered as the scene wants.
    pub fn end(mut self, requests: usize) -> Result<()> {
        self.process.tell("end")?;
        let seen: Seen = self.process.hear()?;
        self.process.wait()?;
        if (seen.requests, seen.refused, seen.abandoned) != (requests, 0, 0) {
            return Err(format!(
                "the fake model saw {} requests instead of {requests}, refused {}, lost {}",
                seen.requests, seen.refused, seen.abandoned
            )
            .into());
        }
        Ok(())
    }
}
