//! Where the runs of a cycle work: in a folder that all workers share, or in checkouts of a repository.

use super::story;
use crate::log::RunLog;
use crate::process::{Death, Posse};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// Where the runs of a cycle work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a folder. All workers are on one machine.
    Folder,
    /// In checkouts of a repository. All workers are on one machine.
    Checkouts,
    /// In checkouts of a repository. Each worker is on a machine of its own.
    Machines,
}

impl Place {
    /// The place of cycle `number`. Each fault meets all of them. Checkouts are slow, so they are few.
    pub(super) fn of(number: usize) -> Self {
        match (number / 20 + number) % 20 {
            2 => Place::Checkouts,
            4 => Place::Machines,
            _ => Place::Folder,
        }
    }

    /// The home folder of this worker.
    pub(super) fn home(self, folder: &Path, worker: usize) -> PathBuf {
        match self {
            Place::Machines => folder.join(format!("home-{worker}")),
            Place::Folder | Place::Checkouts => folder.join("home"),
        }
    }

    /// Writes the settings of commands and of all workers, and what is in the workspace.
    pub(super) async fn furnish(self, folder: &Path, workers: usize) -> io::Result<()> {
        let workspace = folder.join("workspace");
        std::fs::create_dir_all(&workspace)?;
        let settle = |home: &Path, host: &str| {
            let settings = home.join(".config/posse");
            std::fs::create_dir_all(&settings)?;
            std::fs::write(settings.join("config.toml"), story::settings(host))
        };
        settle(&folder.join("home"), "here")?;
        if self == Place::Machines {
            for worker in 0..workers {
                settle(&self.home(folder, worker), &format!("machine-{worker}"))?;
            }
        }
        std::fs::write(workspace.join("seed.txt"), "one\nmark\nthree\n")?;
        if self == Place::Folder {
            return std::fs::write(workspace.join(story::LEDGER), "");
        }
        git(&workspace, &["init", "--quiet", "--initial-branch=main"]).await?;
        git(&workspace, &["add", "."]).await?;
        git(&workspace, &["commit", "--quiet", "--message=first"]).await.map(drop)
    }

    /// The arguments that say where a run works.
    pub(super) fn arguments(self, posse: &Posse) -> Vec<String> {
        match self {
            Place::Folder => Vec::new(),
            Place::Checkouts | Place::Machines => {
                let url = format!("file://{}@main", posse.workspace().display());
                vec!["--repo".to_owned(), url]
            }
        }
    }

    /// How often each of these effects is in what the runs have left.
    pub(super) async fn seen(
        self,
        posse: &Posse,
        logs: &[RunLog],
        nonces: &[String],
    ) -> io::Result<Vec<usize>> {
        let lines = |text: &str, nonce: &String| text.lines().filter(|line| line == nonce).count();
        if self == Place::Folder {
            let ledger = std::fs::read_to_string(posse.workspace().join(story::LEDGER))?;
            return Ok(nonces.iter().map(|nonce| lines(&ledger, nonce)).collect());
        }
        let mut seen = vec![0; nonces.len()];
        for log in logs {
            let text = serde_json::to_string(&log.records).map_err(io::Error::other)?;
            let own: Vec<usize> =
                (0..nonces.len()).filter(|&index| text.contains(&nonces[index])).collect();
            // What it fails to bring is missing below.
            if own.is_empty() || !fetch(posse, &log.run).await? {
                continue;
            }
            for index in own {
                let file = format!("{}:{}", log.run, nonces[index]);
                let text = git(&posse.workspace(), &["show", &file]).await.unwrap_or_default();
                // A parent takes over what its child has done.
                seen[index] = seen[index].max(lines(&text, &nonces[index]));
            }
        }
        Ok(seen)
    }
}

/// Brings the changes of a run, as a branch with its name. Returns false if there are none.
async fn fetch(posse: &Posse, run: &str) -> io::Result<bool> {
    let exit = posse.run(&["runs", "fetch", run, "--branch", run], "", Death::default()).await?;
    Ok(exit.code() == Some(0))
}

#[expect(clippy::disallowed_methods, reason = "the harness looks at what agents have left")]
async fn git(folder: &Path, arguments: &[&str]) -> io::Result<String> {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "u").env(format!("GIT_{who}_EMAIL"), "u");
    }
    let ended = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&ended.stderr).into_owned())),
    }
}
