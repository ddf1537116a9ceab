//! The fake model in a process of its own, so that its costs are its own.

use super::Result;
use super::background;
use super::line::say;
use super::meter::Meter;
use super::part::{Part, Process, next_order};
use posse_testkit::{Conversation, FakeModel, Gate, Reply, Script, When};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// What the model does, and how soon.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Scene {
    play: Play,
    pace: Pace,
}

/// What the model does.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Play {
    /// Reads three files, one a turn, and answers.
    Reads,
    /// Notes something, turn after turn.
    Notes,
    /// As a main agent, calls so many children, which do the same as `Reads`.
    Tree(usize),
    /// Starts children in the background.
    Crowd(background::Size),
    /// The same with faults of the provider, and with commands that hang.
    RoughCrowd(background::Size),
    /// Says a text of so many bytes.
    Text(usize),
}

/// When the model replies.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Pace {
    AtOnce,
    /// After [`LATENCY`].
    Thinking,
    /// At once, except for the last reply of a conversation: that one waits until all are released.
    Held,
}

/// How long the model thinks before each reply.
const LATENCY: Duration = Duration::from_millis(200);
/// Files that are read.
pub const FILES: [&str; 3] = ["one.txt", "two.txt", "three.txt"];
/// Turns of [`Play::Notes`].
pub const NOTES: usize = 512;
/// How long it may take until all replies are held.
const PATIENCE: Duration = Duration::from_secs(300);

/// The prompt of a main agent. No other run has this text.
pub const LEAD: &str = "Have every part of it looked at, then say whether all is there.";
/// The prompt of its children.
pub const FOLLOW: &str = "Read the three files and say whether all is there.";

/// What the server has seen in the end, and what that took.
#[derive(Serialize, Deserialize)]
pub struct Seen {
    pub requests: usize,
    refused: usize,
    abandoned: usize,
    pub connections: usize,
    /// Seconds of processor time.
    pub cpu: f64,
}

impl Scene {
    pub async fn serve(self) -> Result<Seen> {
        let gate = Gate::new();
        let script = self.play.script(self.pace, &gate).without_capture();
        let script = match self.play {
            Play::Reads => script.without_cache().turns_only(),
            // The fake model itself is measured with this one, as tests have it.
            Play::Text(_) => script,
            _ => script.without_cache(),
        };
        let fake = FakeModel::start(script).await?;
        say(&json!(fake.url()).to_string());
        let meter = Meter::start();
        while let Some(order) = next_order().await? {
            match order.split_once(' ') {
                Some(("held", count)) => {
                    wait_for_held(&gate, count.parse()?).await?;
                    say(&json!(gate.held()).to_string());
                }
                _ if order == "count" => say(&json!(fake.count()).to_string()),
                _ if order == "open" => gate.open(),
                _ => break,
            }
        }
        let seen = Seen {
            requests: fake.count(),
            refused: fake.refused(),
            abandoned: fake.abandoned(),
            connections: fake.connections(),
            cpu: meter.read().cpu,
        };
        fake.shutdown().await;
        Ok(seen)
    }
}

impl Play {
    /// The prompt of the first run.
    pub fn prompt(self) -> &'static str {
        match self {
            Play::Tree(_) => LEAD,
            Play::Crowd(_) | Play::RoughCrowd(_) => background::LEAD,
            Play::Reads | Play::Notes | Play::Text(_) => FOLLOW,
        }
    }

    /// The script; `gate` holds what the pace wants to be held.
    pub fn script(self, pace: Pace, gate: &Gate) -> Script {
        let latency = match pace {
            Pace::Thinking => LATENCY,
            Pace::AtOnce | Pace::Held => Duration::ZERO,
        };
        let last = Reply::text("I have seen it all, and it is all there.");
        let last = match pace {
            Pace::Held => last.held_by(gate),
            Pace::AtOnce | Pace::Thinking => last,
        };
        let reads = FILES.iter().map(|file| {
            let read = Reply::text(&format!("I read {file}."));
            read.and_tool_call("Read", json!({"file_path": file}))
        });
        let reads = reads.chain([last.clone()]).map(|reply| reply.latency(latency));
        match self {
            Play::Reads => Script::turns(reads),
            Play::Notes => {
                let notes = (0..NOTES).map(|_| Reply::tool_call("Note", json!({})));
                Script::turns(notes.chain([last]))
            }
            Play::Tree(children) => {
                let follow = reads.fold(Conversation::when(When::any()), Conversation::reply);
                Script::new().conversation(lead(children, latency)).conversation(follow)
            }
            Play::Crowd(size) => background::script(size, latency),
            Play::RoughCrowd(size) => background::rough_script(size, latency),
            Play::Text(bytes) => {
                let text = "Sixteen letters.".repeat(bytes.div_ceil(16));
                Script::always(Reply::text(&text[..bytes]))
            }
        }
    }
}

/// A main agent that calls so many children in one reply, and ends when it has their results.
pub fn lead(children: usize, latency: Duration) -> Conversation {
    let calls = (1..=children).fold(Reply::empty(), |reply, number| {
        let description = format!("Look at part {number}");
        let call =
            json!({"description": description, "prompt": FOLLOW, "subagent_type": "explore"});
        reply.and_tool_call("Task", call)
    });
    Conversation::when(When::any().first_user_contains(LEAD))
        .reply(calls.latency(latency))
        .reply(Reply::text("All of it is there.").latency(latency))
}

async fn wait_for_held(gate: &Gate, count: usize) -> Result<()> {
    tokio::time::timeout(PATIENCE, async {
        // The gate itself waits only as long as a test should.
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
    pub fn start(play: Play, pace: Pace) -> Result<Self> {
        let mut process = Process::start(&Part::Serve(Scene { play, pace }))?;
        let url = process.hear()?;
        Ok(Server { process, url })
    }

    /// Does a part that makes so many requests to a new server, from its start to its report.
    pub fn round<T: DeserializeOwned>(
        play: Play,
        pace: Pace,
        requests: usize,
        part: impl FnOnce(String) -> Part,
    ) -> Result<T> {
        let server = Server::start(play, pace)?;
        let report = Process::report(&part(server.url.clone()))?;
        server.end_after(requests)?;
        Ok(report)
    }

    /// Waits until this many replies are held.
    pub fn wait_for_held(&mut self, count: usize) -> Result<()> {
        self.process.tell(&format!("held {count}"))?;
        self.process.hear::<usize>().map(|_| ())
    }

    /// Releases all replies.
    pub fn open(&mut self) -> Result<()> {
        self.process.tell("open")
    }

    /// Requests so far.
    pub fn requests(&mut self) -> Result<usize> {
        self.process.tell("count")?;
        self.process.hear()
    }

    /// Ends it. Fails if a request did not fit the script.
    pub fn end(mut self) -> Result<Seen> {
        self.process.tell("end")?;
        let seen: Seen = self.process.end()?;
        match seen.refused {
            0 => Ok(seen),
            refused => Err(format!("the fake model refused {refused} requests").into()),
        }
    }

    /// Ends it. Fails if it did not answer just this many requests, all to their end.
    pub fn end_after(self, requests: usize) -> Result<Seen> {
        let seen = self.end()?;
        if (seen.requests, seen.abandoned) != (requests, 0) {
            let Seen { requests: came, abandoned, .. } = seen;
            return Err(format!(
                "the fake model saw {came} requests instead of {requests}, lost {abandoned}"
            )
            .into());
        }
        Ok(seen)
    }
}
