//! What an answer must cite to be right, and how a repository comes to be.

use std::path::Path;
use std::process::{Command, Stdio};

/// Citations of an answer that count: a right place far down a list is no answer.
const FIRST_CITATIONS: usize = 5;
/// Characters in which an answer must come to the point.
const FIRST_CHARACTERS: usize = 400;

/// A repository and what is asked about it.
pub struct Repository {
    pub name: &'static str,
    /// Files that are simply there.
    pub files: &'static [(&'static str, &'static str)],
    /// Commits, oldest first.
    pub commits: &'static [Commit],
    pub asked: Vec<Asked>,
}

pub struct Commit {
    pub author: &'static str,
    pub date: &'static str,
    pub message: &'static str,
    pub files: &'static [(&'static str, &'static str)],
}

/// A question, and the answers to it that are right.
pub struct Asked {
    pub text: &'static str,
    right: Vec<Right>,
}

enum Right {
    /// A line of this file that has this text; any line if it is empty.
    Place(&'static str, &'static str),
    /// This text, early on.
    Saying(&'static str),
    /// That there is no such thing.
    Nothing(&'static str),
}

/// A place that is right: a line of `path` with `text` in it.
pub fn place(path: &'static str, text: &'static str) -> Asked {
    Asked { text: "", right: vec![Right::Place(path, text)] }
}

/// It is right to say that `subject` was not found.
pub fn nothing(subject: &'static str) -> Asked {
    Asked { text: "", right: vec![Right::Nothing(subject)] }
}

impl Asked {
    pub fn new(text: &'static str, right: impl IntoIterator<Item = Asked>) -> Self {
        Asked { text, right: right.into_iter().flat_map(|one| one.right).collect() }
    }

    /// It is right to say this.
    pub fn saying(text: &'static str) -> Self {
        Asked { text: "", right: vec![Right::Saying(text)] }
    }

    /// Whether `answer`, given in `folder`, is right.
    pub fn is_answered(&self, answer: &str, folder: &Path) -> bool {
        let cited = citations(answer);
        let beginning: String = answer.chars().take(FIRST_CHARACTERS).collect();
        self.right.iter().any(|right| match right {
            Right::Saying(text) => beginning.contains(text),
            Right::Nothing(subject) => {
                let admits =
                    beginning.contains("I found no") || beginning.contains("Nothing mentions");
                admits && beginning.to_lowercase().contains(&subject.to_lowercase())
            }
            Right::Place(path, text) => cited.iter().take(FIRST_CITATIONS).any(|(cited, line)| {
                cited == path
                    && line_of(&folder.join(path), *line).is_some_and(|found| found.contains(text))
            }),
        })
    }
}

/// Every `path:line` in a code span, in order.
fn citations(answer: &str) -> Vec<(&str, usize)> {
    let spans = answer.split('`').skip(1).step_by(2);
    let place = |span: &'_ str| -> Option<(usize, usize)> {
        let (path, line) = span.rsplit_once(':')?;
        Some((path.len(), line.parse().ok()?))
    };
    spans.filter_map(|span| place(span).map(|(end, line)| (&span[..end], line))).collect()
}

fn line_of(path: &Path, line: usize) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().nth(line.checked_sub(1)?).map(str::to_owned)
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
