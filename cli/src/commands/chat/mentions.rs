//! Files that a message names as `@path`: the agent is told that they are there, and reads what it needs
//! with its own tools, as far as its rules allow.

use std::path::{Component, Path};

/// Files that are named to the agent.
const MOST: usize = 50;

/// `text` as it is sent: after it stands which of its words are files of `folder`.
pub fn told(text: &str, folder: &Path) -> String {
    let mut files: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(file) = word.strip_prefix('@').and_then(|word| found(word, folder))
            && !files.contains(&file)
            && files.len() < MOST
        {
            files.push(file);
        }
    }
    match files.is_empty() {
        true => text.to_owned(),
        false => format!("{text}\n\n[In the working folder: {}]", files.join(", ")),
    }
}

/// The path that `word` means, if it is one below `folder`. What ends a sentence is no part of it.
fn found(word: &str, folder: &Path) -> Option<String> {
    let shortest = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"', '`']);
    let word = [word, shortest].into_iter().find(|word| is_below(word, folder))?;
    let kind = if folder.join(word).is_dir() { "folder" } else { "file" };
    Some(format!("{kind} {}", word.trim_end_matches('/')))
}

fn is_below(word: &str, folder: &Path) -> bool {
    let path = Path::new(word);
    let stays =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    !word.is_empty() && stays && folder.join(path).exists()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        let sent = |text: &str| told(text, folder.path());
        assert_eq!(
            sent("explain @src/lib.rs, and (@src/)."),
            "explain @src/lib.rs, and (@src/).\n\n[In the working folder: file src/lib.rs]"
        );
        assert_eq!(sent("in @src"), "in @src\n\n[In the working folder: folder src]");
        for other in ["me@src", "@agent-explore go", "@../x", "@/etc/passwd", "@", "@nothing.rs"] {
            assert_eq!(sent(other), other);
        }
    }
}
