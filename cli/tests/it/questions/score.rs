//! What an answer must and must not say, and how a repository comes to be.

use std::path::Path;
use std::process::{Command, Stdio};

/// A repository and what is asked about it.
pub struct Repository {
    pub name: &'static str,
    /// Files that are simply there.
    pub files: &'static [(&'static str, &'static str)],
    /// Commits, the oldest first; their files are added to the others.
    pub commits: &'static [Commit],
    pub asked: Vec<Asked>,
}

/// A commit and the files it brings.
pub struct Commit {
    pub author: &'static str,
    pub date: &'static str,
    pub message: &'static str,
    pub files: &'static [(&'static str, &'static str)],
}

/// A question, what a right answer says, and what only a wrong one says.
pub struct Asked {
    pub text: &'static str,
    says: &'static [&'static str],
    never: &'static [&'static str],
}

/// Asks a question.
pub fn ask(text: &'static str) -> Asked {
    Asked { text, says: &[], never: &[] }
}

impl Asked {
    /// A right answer says all of these.
    pub fn says(self, says: &'static [&'static str]) -> Self {
        Asked { says, ..self }
    }

    /// A right answer says none of these.
    pub fn never(self, never: &'static [&'static str]) -> Self {
        Asked { never, ..self }
    }

    /// What is wrong with `answer`, if anything is.
    pub fn check(&self, answer: &str) -> Result<(), String> {
        let missing = self.says.iter().filter(|text| !answer.contains(**text));
        let wrong = self.never.iter().filter(|text| answer.contains(**text));
        let missing = missing.map(|text| format!("does not say {text:?}"));
        let faults: Vec<String> =
            missing.chain(wrong.map(|text| format!("says {text:?}"))).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }
}

impl Repository {
    /// Makes the repository in `folder`.
    pub fn make(&self, folder: &Path) {
        write(folder, self.files);
        if self.commits.is_empty() {
            return;
        }
        git(folder, &["init", "--quiet"], &[]);
        for commit in self.commits {
            write(folder, commit.files);
            git(folder, &["add", "--all"], &[]);
            let mail = format!("{}@example.org", commit.author.replace(' ', ".").to_lowercase());
            let people = [
                ("GIT_AUTHOR_NAME", commit.author),
                ("GIT_AUTHOR_EMAIL", &mail),
                ("GIT_AUTHOR_DATE", commit.date),
                ("GIT_COMMITTER_NAME", commit.author),
                ("GIT_COMMITTER_EMAIL", &mail),
                ("GIT_COMMITTER_DATE", commit.date),
            ];
            git(folder, &["commit", "--quiet", "--message", commit.message], &people);
        }
    }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn git(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) {
    let status = Command::new("git")
        .args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}
