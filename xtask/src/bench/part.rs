//! Parts of benchmarks, in processes of their own: this binary again with a hidden command. A part
//! says that it is ready, waits for the order to go, and reports. No process outlives its guard.

use super::line::say;
use super::meter::{self, Meter};
use super::server::Scene;
use super::{Result, background, cluster, delegation, load, model, raw, spine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What a process of a benchmark does.
#[derive(Serialize, Deserialize)]
pub enum Part {
    /// The fake model.
    Serve(Scene),
    /// Recorded requests by a raw client.
    Raw(raw::Raw),
    /// Many runs at once.
    Load(load::Load),
    /// A main agent and its children.
    Tree(delegation::Tree),
    /// Definitions of agents, loaded.
    Define(delegation::Define),
    /// Sessions and their children in the background.
    Crowd(background::Crowd),
    /// Appends to a database on a server.
    Writers(cluster::Writers),
    /// A worker on a server.
    Work(cluster::Work),
    /// A few long conversations by runs.
    Talk(spine::Talk),
    /// The requests of long conversations by a raw client.
    TalkRaw(spine::TalkRaw),
    /// Fills a database with runs, and dies.
    Fill(spine::Fill),
    /// Claims the unfinished runs of a database, and dies.
    Claim(spine::Claim),
    /// Replies heard by a model.
    Hear(model::Hear),
    /// The same replies heard by a raw client.
    HearRaw(model::Hear),
    /// As many requests as a server answers.
    Flood(model::Flood),
}

/// Does the part that is given as JSON.
pub fn run(part: &str) -> Result<()> {
    let part = serde_json::from_str(part)?;
    meter::allow_open_files();
    meter::runtime()?.block_on(async {
        match part {
            Part::Serve(scene) => report(&scene.serve().await?),
            Part::Raw(raw) => report(&raw.run().await?),
            Part::Load(load) => report(&load.run().await?),
            Part::Tree(tree) => report(&tree.run().await?),
            Part::Define(define) => report(&define.run().await?),
            Part::Crowd(crowd) => report(&crowd.run().await?),
            Part::Writers(writers) => report(&writers.run().await?),
            Part::Work(work) => report(&work.run().await?),
            Part::Talk(talk) => report(&talk.run().await?),
            Part::TalkRaw(talk) => report(&talk.run().await?),
            Part::Fill(fill) => report(&fill.run().await?),
            Part::Claim(claim) => report(&claim.run().await?),
            Part::Hear(hear) => report(&hear.run().await?),
            Part::HearRaw(hear) => report(&hear.run_raw().await?),
            Part::Flood(flood) => report(&flood.run().await?),
        }
    })?;
    // At once: a thread may still read from standard input, and a store that was left open must
    // stay as a killed process leaves it.
    std::process::exit(0);
}

fn report(report: &impl Serialize) -> Result<()> {
    say(&serde_json::to_string(report)?);
    Ok(())
}

/// Says that this part is ready and waits for the order to go. Measures from then on.
pub async fn ready() -> Result<Meter> {
    report(&"ready")?;
    next_order().await?;
    Ok(Meter::start())
}

/// The next line of standard input; none at its end.
pub async fn next_order() -> Result<Option<String>> {
    // On a thread of its own, so that the runtime goes on meanwhile.
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next().transpose());
    Ok(line.await??)
}

/// A part in a process of its own. It is killed when this is dropped.
pub struct Process {
    child: Guarded,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Does `part` from its start to its report.
    pub fn report<T: DeserializeOwned>(part: &Part) -> Result<T> {
        Process::ready(part)?.go()
    }

    /// Starts `part`, and waits until it is ready.
    pub fn ready(part: &Part) -> Result<Self> {
        let mut process = Process::start(part)?;
        process.hear::<String>()?;
        Ok(process)
    }

    /// Starts `part`.
    pub fn start(part: &Part) -> Result<Self> {
        let mut command = command(std::env::current_exe()?);
        command.args(["bench", "part"]).arg(serde_json::to_string(part)?);
        let mut child = Guarded(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let input = child.0.stdin.take().ok_or("a process without an input")?;
        let output = child.0.stdout.take().ok_or("a process without an output")?;
        Ok(Process { child, input, output: BufReader::new(output) })
    }

    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends a line.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// Waits for the next line, which is JSON.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a part of the benchmark ended before it was done; see above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Lets a part go that is ready, and waits for its report and its end.
    pub fn go<T: DeserializeOwned>(mut self) -> Result<T> {
        self.tell("go")?;
        self.end()
    }

    /// Waits for the report and the end.
    pub fn end<T: DeserializeOwned>(mut self) -> Result<T> {
        let report = self.hear()?;
        self.child.wait()?;
        Ok(report)
    }
}

/// A process that does not outlive its guard.
pub struct Guarded(pub Child);

impl Guarded {
    /// Waits for its end, which must be a success.
    pub fn wait(&mut self) -> Result<()> {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a process ended with {status}").into()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command to be started.
#[expect(clippy::disallowed_methods, reason = "a benchmark starts its own parts, unconfined")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// The program `name` that was built beside this one, without a terminal.
pub fn sibling(name: &str) -> Result<Command> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.exists() {
        return Err(format!("{} was not built; run `cargo xtask bench`", path.display()).into());
    }
    let mut command = command(path);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// The binary of Posse, with the model at `url` and with `home` in place of the user's own.
pub fn posse(home: &Path, url: &str) -> Result<Command> {
    let mut posse = sibling("posse")?;
    posse.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "any").env("HOME", home);
    for kind in ["config", "data", "state", "cache"] {
        posse.env(format!("XDG_{}_HOME", kind.to_uppercase()), home.join(kind));
    }
    posse.stderr(Stdio::null());
    Ok(posse)
}
