//! A real terminal: tmux, on a socket of its own.

use crate::world::{World, eventually};
use posse_testkit::skipped;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

pub struct Terminal {
    socket: String,
    folder: PathBuf,
}

impl Terminal {
    /// Opens a terminal of this size with a shell in the world's folder; `None` without tmux,
    /// which leaves what needs a terminal untested.
    pub async fn open(world: &World, columns: u16, rows: u16) -> Option<Terminal> {
        Terminal::open_as(world, "tmux", columns, rows).await
    }

    /// One more, which is called `name`.
    pub async fn open_as(world: &World, name: &str, columns: u16, rows: u16) -> Option<Terminal> {
        let there = Command::new("tmux").arg("-V").stdout(Stdio::null()).status().await;
        if !there.is_ok_and(|status| status.success()) {
            skipped("posse-cli: what needs a terminal (there is no tmux)");
            return None;
        }
        let socket = world.folder.path().join(name).display().to_string();
        let mut command = Command::new("tmux");
        command
            .args(["-S", &socket, "-f", "/dev/null", "new-session", "-d"])
            .args(["-x", &columns.to_string(), "-y", &rows.to_string()])
            .arg("bash --noprofile --norc")
            .current_dir(world.work())
            .env_clear()
            .envs(world.environment())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            // A shell that is told to go writes its history then.
            .env("HISTFILE", "");
        assert!(command.status().await.unwrap().success());
        let terminal = Terminal { socket, folder: world.folder.path().canonicalize().unwrap() };
        let binary = env!("CARGO_BIN_EXE_posse");
        terminal
            .enter(&format!("PS1='$ '; posse() {{ {binary} \"$@\"; }}; clear; echo ready"))
            .await;
        terminal.shows("ready\n$").await;
        terminal.enter("clear").await;
        Some(terminal)
    }

    async fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command.args(["-S", &self.socket]).args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses a key, in tmux's words: `C-c`, `Up`.
    pub async fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]).await;
    }

    /// Types this at once, as it is.
    pub async fn type_out(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]).await;
    }

    /// Types a line.
    pub async fn enter(&self, line: &str) {
        self.type_out(line).await;
        self.press("Enter").await;
    }

    /// Makes the terminal another size.
    pub async fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]).await;
    }

    /// What the terminal shows, without empty lines at its end.
    pub async fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).await.trim_end().to_owned()
    }

    /// The same with its colours.
    pub async fn painted(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"]).await
    }

    /// From now on keeps every byte that the terminal is sent in this file of the working folder.
    pub async fn record(&self, name: &str) {
        let file = self.folder.join("work").join(name);
        self.tmux(&["pipe-pane", &format!("cat > '{}'", file.display())]).await;
    }

    /// Waits until the terminal shows this.
    pub async fn shows(&self, part: &str) -> String {
        let mut screen = String::new();
        let began = std::time::Instant::now();
        eventually(part, async || {
            screen = self.screen().await;
            assert!(began.elapsed().as_secs() < 30, "no {part:?} in:\n{screen}");
            screen.contains(part)
        })
        .await;
        screen
    }
}

impl Drop for Terminal {
    /// Who still works in the world's folder would write into it while it is removed.
    fn drop(&mut self) {
        let mut command = std::process::Command::new("tmux");
        let _ = command.args(["-S", &self.socket, "kill-server"]).stderr(Stdio::null()).status();
        let began = Instant::now();
        while is_in_use(&self.folder) && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// True for root, who can be two people. Otherwise tells that `what` is not tested.
pub fn can_be_two_people(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skipped(&format!("{what} (only root can be two people)"));
    }
    is_root
}

/// True while a process works in the folder: the server, its shell, what that started.
fn is_in_use(folder: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let works_in = |process: std::fs::DirEntry| std::fs::read_link(process.path().join("cwd")).ok();
    processes.flatten().filter_map(works_in).any(|place| place.starts_with(folder))
}
