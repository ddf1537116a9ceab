//! Tab completion at the prompt of a chat: commands, skills, and files after an `@`. Also decides which lines continue.

use super::words;
use posse::LiveSkills;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::path::{Path, PathBuf};

/// The most files to search for a name.
const LOOKED_AT: usize = 20_000;
/// The most candidates.
const OFFERED: usize = 100;

/// Completes the line that a person types.
pub struct Completion {
    pub folder: PathBuf,
    /// Skills and commands, which a slash names.
    pub skills: LiveSkills,
}

impl Helper for Completion {}
impl Highlighter for Completion {}

impl Hinter for Completion {
    type Hint = String;
}

impl Validator for Completion {
    /// A backslash at the end of a line continues it on the next one.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match context.input().ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(self.candidates(line.get(..position).unwrap_or(line)))
    }
}

impl Completion {
    /// The start of the last word of `typed`, and its completions.
    fn candidates(&self, typed: &str) -> (usize, Vec<Pair>) {
        let start = typed.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let word = &typed[start..];
        if start == 0 && word.starts_with('/') {
            let catalog = self.skills.current();
            let skills = catalog.iter().map(|skill| format!("/{}", skill.name));
            let mut names: Vec<String> =
                words::all_names().map(str::to_owned).chain(skills).collect();
            names.retain(|name| name.starts_with(word));
            let pair = |name: String| Pair { display: name.clone(), replacement: name };
            return (0, names.into_iter().take(OFFERED).map(pair).collect());
        }
        let Some(path) = word.strip_prefix('@') else { return (typed.len(), Vec::new()) };
        let pair = |path: String| Pair { replacement: format!("@{path}"), display: path };
        (start, files(&self.folder, path).into_iter().map(pair).collect())
    }
}

/// The files and folders of `folder` whose path begins with `typed`; if there are none, files anywhere
/// below it whose name does. Files that git ignores are left out.
fn files(folder: &Path, typed: &str) -> Vec<String> {
    let (parent, name) = typed.rsplit_once('/').unwrap_or(("", typed));
    if Path::new(parent).is_absolute() || parent.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let mut found = matching(folder, &folder.join(parent), Some(1), name);
    if found.is_empty() && parent.is_empty() && !name.is_empty() {
        found = matching(folder, folder, None, name);
    }
    found.sort();
    found.truncate(OFFERED);
    found
}

fn matching(folder: &Path, from: &Path, depth: Option<usize>, name: &str) -> Vec<String> {
    let mut walk = ignore::WalkBuilder::new(from);
    walk.max_depth(depth).hidden(!name.starts_with('.')).follow_links(false);
    let entries = walk.build().flatten().skip(1).take(LOOKED_AT);
    let fits = entries.filter(|entry| {
        entry.file_name().to_str().is_some_and(|it| it.starts_with(name) && it != ".git")
    });
    fits.filter_map(|entry| {
        let path = entry.path().strip_prefix(folder).ok()?.to_str()?.to_owned();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(if is_folder { format!("{path}/") } else { path })
    })
    .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tab_completes_commands_and_files_that_git_does_not_ignore() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src/deep", ".git", "target"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["src/lib.rs", "src/deep/walker.rs", "setup.sh", "target/setup.o", ".env"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
        let commands = folder.path().join("target/commands");
        std::fs::create_dir_all(commands.join("git")).unwrap();
        std::fs::write(commands.join("git/commit.md"), "Commit.").unwrap();
        let skills = LiveSkills::load(posse::skills::Sources {
            user_commands: vec![commands],
            ..posse::skills::Sources::default()
        });
        let completion = Completion { folder: folder.path().to_owned(), skills };
        let completed = |typed: &str| {
            let (start, pairs) = completion.candidates(typed);
            let texts = pairs.into_iter().map(|pair| pair.replacement);
            (start, texts.collect::<Vec<_>>())
        };
        assert_eq!(completed("/comp"), (0, vec!["/compact".to_owned()]));
        assert_eq!(completed("/gi"), (0, vec!["/git:commit".to_owned()]));
        assert_eq!(completed("see @s"), (4, vec!["@setup.sh".to_owned(), "@src/".to_owned()]));
        assert_eq!(completed("@src/l"), (0, vec!["@src/lib.rs".to_owned()]));
        assert_eq!(completed("@walk"), (0, vec!["@src/deep/walker.rs".to_owned()]));
        assert_eq!(completed("@.e"), (0, vec!["@.env".to_owned()]));
        for nothing in ["@tar", "@../", "@/etc/pas", "plain", "say /comp"] {
            assert!(completed(nothing).1.is_empty(), "{nothing}");
        }
    }
}
