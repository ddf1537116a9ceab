//! Finds executable files in the folder of a skill. A skill with such files that is not trusted is
//! only listed.

use crate::trust::TrustStatus;
use posse_protocol::SkillOffer;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// File name extensions that interpreters run.
const ENDINGS: [&str; 22] = [
    "awk", "bash", "bat", "cjs", "cmd", "fish", "go", "jar", "js", "lua", "mjs", "php", "pl",
    "ps1", "py", "pyc", "r", "rb", "rs", "sh", "ts", "zsh",
];
/// The most files and levels to search. A folder with more counts as executable.
const FILES: usize = 10_000;
const DEPTH: usize = 16;
/// The most names in a message.
const TOLD: usize = 20;

/// Returns the names of executable files in `folder`: with the executable bit, for an interpreter,
/// or links that lead elsewhere.
pub(super) fn of(folder: &Path) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut seen = 0;
    look(folder, folder, 0, &mut seen, &mut scripts);
    scripts.sort();
    scripts
}

/// Returns why the skill in `folder` is only listed, if it has something executable.
pub(super) fn held_back(folder: &Path, standing: Option<&TrustStatus>) -> Option<String> {
    let scripts = of(folder);
    if scripts.is_empty() {
        return None;
    }
    let standing = standing.map_or_else(|| "not trusted".to_owned(), ToString::to_string);
    let more = if scripts.len() > TOLD { ", …" } else { "" };
    let names: Vec<&str> = scripts.iter().take(TOLD).map(String::as_str).collect();
    Some(format!(
        "it has scripts ({}{more}), and its folder is {standing}. Only the user can trust the folder; \
         continue without this skill",
        names.join(", ")
    ))
}

/// Returns why `offer` is only listed, if it was untrusted when the run started.
pub(crate) fn inert(offer: &SkillOffer) -> Option<String> {
    held_back(Path::new(&offer.path), None).filter(|_| offer.untrusted)
}

fn look(root: &Path, folder: &Path, depth: usize, seen: &mut usize, into: &mut Vec<String>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // A folder that cannot be read may hold anything.
        Err(_) => return into.push(below(root, folder)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        *seen += 1;
        if *seen > FILES || depth > DEPTH {
            return into.push(format!("{}/…", below(root, folder)));
        }
        match std::fs::symlink_metadata(&path) {
            Ok(data) if data.is_dir() => look(root, &path, depth + 1, seen, into),
            Ok(data) if !is_script(&path, &data) => {}
            _ => into.push(below(root, &path)),
        }
    }
}

fn is_script(path: &Path, data: &Metadata) -> bool {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    let has_ending = || ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    !data.is_file() || data.permissions().mode() & 0o111 != 0 || has_ending() || has_marks(path)
}

/// True when the file begins like a script or a program. An unreadable file counts as one.
fn has_marks(path: &Path) -> bool {
    const NONBLOCK: i32 = 0o4000;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path);
    let mut first = Vec::new();
    match file.and_then(|file| file.take(4).read_to_end(&mut first)) {
        Ok(_) => first.starts_with(b"#!") || first == *b"\x7fELF",
        Err(_) => true,
    }
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_run_is_found_however_it_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("SKILL.md", "text");
        write("reference/forms.md", "text");
        write("data.json", "{}");
        assert!(of(folder).is_empty());
        write("scripts/run.PY", "");
        write(".hidden/tool", "#!/bin/sh\n");
        write("a/b/c/d/e/f/deep", "\x7fELF…");
        write("plain", "text");
        std::fs::set_permissions(folder.join("plain"), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.join("link.md")).unwrap();
        assert_eq!(
            of(folder),
            [".hidden/tool", "a/b/c/d/e/f/deep", "link.md", "plain", "scripts/run.PY"]
        );
    }
}
