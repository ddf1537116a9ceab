//! Processes that a benchmark starts and talks with, line by line. None outlives its guard.

use super::Result;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A part of a benchmark in a process of its own. It is killed when this is dropped.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this binary again, as the part that `arguments` name.
    pub fn part(arguments: &[String]) -> Result<Self> {
        let mut command = command(std::env::current_exe()?);
        command.args(["bench", "part"]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("a process without an input")?;
        let output = child.stdout.take().ok_or("a process without an output")?;
        Ok(Process { child, input, output: BufReader::new(output) })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
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

    /// Waits for its end.
    pub fn wait(mut self) -> Result<()> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a part ended with {status}").into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command to be started.
#[expect(clippy::disallowed_methods, reason = "a benchmark starts its own parts, unconfined")]
pub fn command(program: PathBuf) -> Command {
    Command::new(program)
}

/// The program `name` that was built beside this one.
pub fn sibling(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.exists() {
        return Err(format!("{} was not built; run `cargo xtask bench`", path.display()).into());
    }
    Ok(path)
}

/// The next line that this part is told; nothing when whoever started it has no more to say.
pub async fn next_order() -> Result<Option<String>> {
    // On a thread of its own, so that the runtime goes on meanwhile.
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next().transpose());
    Ok(line.await??)
}
