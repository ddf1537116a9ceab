//! Files that a person names as `@path`. Posse tells the agent that they exist. The agent reads them with its own
//! tools, as far as its rules allow.

use std::path::{Component, Path};

/// How many files are listed, at most.
const MOST: usize = 50;

/// A remark that lists the files of `folder` that words of `text` name.
pub(crate) fn told(text: &str, folder: &Path) -> Option<String> {
    let mut files: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(file) = word.strip_prefix('@').and_then(|word| found(word, folder))
            && !files.contains(&file)
            && files.len() < MOST
        {
            files.push(file);
        }
    }
    (!files.is_empty()).then(|| format!("[In the working folder: {}]", files.join(", ")))
}

/// The path that `word` names, if it exists below `folder`. Ignores punctuation at the end.
fn found(word: &str, folder: &Path) -> Option<String> {
    let shortest = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"', '`']);
    let word = [word, shortest].into_iter().find(|word| is_below(word, folder))?;
    let kind = if folder.join(word).is_dir() { "folder" } else { "file" };
    let plain = word.strip_suffix("/.").unwrap_or(word).trim_end_matches('/');
    Some(format!("{kind} {plain}"))
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
        let told = |text: &str| told(text, folder.path());
        let both = Some("[In the working folder: file src/lib.rs, folder src]".to_owned());
        assert_eq!(told("explain @src/lib.rs, and @src/."), both);
        for other in ["me@src", "@agent-explore go", "@../x", "@/etc/passwd", "@", "@nothing.rs"] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
