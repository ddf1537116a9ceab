//! Files of a workspace that settings of git name: git runs or obeys them, so no agent changes them.

use super::settings::{self, MOST, Setting};
use super::tree::text_at;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Files with settings that are read for one repository: they may include each other.
const FILES: usize = 50;

/// Where the user's own settings are, below a home folder.
const AT_HOME: [&str; 2] = [".gitconfig", ".config/git/config"];

/// Settings that run a program, by the last part of their names.
const PROGRAMS: [&str; 27] = [
    "fsmonitor",
    "pager",
    "editor",
    "sshcommand",
    "askpass",
    "gitproxy",
    "alternaterefscommand",
    "external",
    "command",
    "cmd",
    "textconv",
    "driver",
    "clean",
    "smudge",
    "process",
    "program",
    "defaultkeycommand",
    "helper",
    "difffilter",
    "packobjectshook",
    "uploadpack",
    "receivepack",
    "update",
    "path",
    "tunnel",
    "tocmd",
    "cccmd",
];

/// What lies between words in a line of shell.
const BETWEEN: &[char] = &[
    ' ', '\t', '\n', '!', '\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '$', '{', '}', '=',
    ',',
];

/// After these a command begins.
const BEGINS: &[char] = &['\n', '!', '`', ';', '|', '&', '(', '{'];

/// Programs that are made for hooks, and the files at the top of a checkout that tell them what to run.
const RUNNERS: [(&str, &[&str]); 3] = [
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("lefthook", &["lefthook.yml", "lefthook.yaml", "lefthook.toml", ".lefthook.yml"]),
    ("overcommit", &[".overcommit.yml"]),
];

/// A repository: its data, and the folder with its files.
pub(super) struct Checkout {
    pub data: PathBuf,
    pub top: PathBuf,
}

/// What of `workspace` the settings of the user and of these repositories name, there or not, as
/// they name it: links are not followed.
pub(super) fn named(
    workspace: &Path,
    homes: &[PathBuf],
    checkouts: &[Checkout],
) -> BTreeSet<PathBuf> {
    let mut users = Vec::new();
    let mut read = 0;
    follow(Path::new("/etc/gitconfig"), homes, &mut read, &mut users);
    for file in homes.iter().flat_map(|home| AT_HOME.map(|name| home.join(name))) {
        follow(&file, homes, &mut read, &mut users);
    }
    let mut places = BTreeSet::new();
    for Checkout { data, top } in checkouts {
        let (mut own, mut read) = (Vec::new(), 0);
        let common = common_folder(data);
        for file in [data.join("config"), common.join("config"), data.join("config.worktree")] {
            follow(&file, homes, &mut read, &mut own);
        }
        places.extend(named_by_hooks(&common.join("hooks"), top));
        for (around, setting) in users.iter().chain(&own) {
            let named = paths(setting, around, top, homes);
            if setting.section == "core" && setting.name == "hookspath" {
                places.extend(named.iter().flat_map(|folder| named_by_hooks(folder, top)));
            }
            places.extend(named);
        }
    }
    // Where there is no repository yet, the user's own settings count all the same.
    for (around, setting) in &users {
        places.extend(paths(setting, around, workspace, homes));
    }
    let inside = |path: &PathBuf| path.starts_with(workspace) && path != workspace;
    places.into_iter().map(|path| plain(&path)).filter(inside).collect()
}

/// The settings in `file` and in all that it includes, each with the folder that its file is in.
fn follow(file: &Path, homes: &[PathBuf], read: &mut usize, all: &mut Vec<(PathBuf, Setting)>) {
    *read += 1;
    if *read > FILES {
        return;
    }
    let Some(text) = text_at(file, MOST) else { return };
    let around = file.parent().unwrap_or(file).to_owned();
    for setting in settings::read(&text).unwrap_or_default() {
        if is_include(&setting) {
            for path in paths(&setting, &around, &around, homes) {
                follow(&path, homes, read, all);
            }
        }
        all.push((around.clone(), setting));
    }
}

fn is_include(setting: &Setting) -> bool {
    ["include", "includeif"].contains(&setting.section.as_str()) && setting.name == "path"
}

/// What `setting`, of a file in `around`, names for the checkout at `top`.
fn paths(setting: &Setting, around: &Path, top: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    let Some(value) = setting.value.as_deref().filter(|value| !value.is_empty()) else {
        return Vec::new();
    };
    let at_home = |value: &str| -> Vec<PathBuf> {
        let below = value.strip_prefix("~/");
        below.iter().flat_map(|below| homes.iter().map(move |home| home.join(below))).collect()
    };
    let is_folder = matches!(
        (setting.section.as_str(), setting.name.as_str()),
        ("core", "hookspath") | ("init", "templatedir")
    );
    if is_include(setting) || is_folder {
        let base = if is_folder { top } else { around };
        return [at_home(value), vec![base.join(value)]].concat();
    }
    let runs = match setting.section.as_str() {
        "alias" => value.starts_with('!'),
        "pager" => true,
        _ => PROGRAMS.contains(&setting.name.as_str()),
    };
    if !runs {
        return Vec::new();
    }
    let places = words(value).flat_map(|word| {
        // `$(git rev-parse --show-toplevel)/tools/x` leaves a path that only looks absolute.
        let below = top.join(word.trim_start_matches('/'));
        [at_home(word), vec![top.join(word), below]].concat()
    });
    // Of the words of a command only those matter that are files.
    places.filter(|path| path.is_file()).collect()
}

/// The words of a line of shell that may be files of the folder in which it runs. The name of a program
/// without a folder is looked for on PATH.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut before = ";";
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let word = rest.trim_start_matches(BETWEEN);
            let between = &rest[..rest.len() - word.len()];
            let end = word.find(BETWEEN).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            if word.is_empty() {
                return None;
            }
            // What is in quotes, or behind `<`, may be anything.
            let begins = [before, between].iter().any(|it| it.contains(BEGINS))
                && !between.contains(|letter: char| "'\"<>=".contains(letter));
            (before, rest) = ("", after);
            if !begins || word.contains('/') {
                return Some(word);
            }
        }
    })
}

/// What the hooks in `folder` run in the checkout at `top`, as far as their text says: where links lead,
/// programs by their paths, and the settings of programs that are made for hooks.
fn named_by_hooks(folder: &Path, top: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut named = Vec::new();
    for hook in entries.map(|entry| entry.path()).filter(|path| !is_sample(path)) {
        named.extend(hook.read_link().ok().map(|target| folder.join(target)));
        let text = text_at(&hook, MOST).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let is_program = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
        };
        let words = text.split(BETWEEN).filter(|word| !word.is_empty());
        named.extend(words.map(|word| top.join(word.trim_start_matches('/'))).filter(is_program));
        let used = RUNNERS.iter().filter(|(runner, _)| text.contains(runner));
        named.extend(used.flat_map(|(_, files)| files.iter().map(|file| top.join(file))));
    }
    named
}

fn is_sample(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "sample")
}

/// The folder whose settings and hooks count for the repository in `data`.
pub(super) fn common_folder(data: &Path) -> PathBuf {
    match text_at(&data.join("commondir"), MOST) {
        Some(text) => {
            let folder = data.join(first_line(&text));
            folder.canonicalize().unwrap_or_else(|_| plain(&folder))
        }
        None => data.to_owned(),
    }
}

/// A path that is all there is in a file, as git reads it: without the ends of lines behind it, and up to
/// the first NUL.
pub(in super::super) fn first_line(text: &[u8]) -> &Path {
    let end = text.iter().rposition(|letter| !b"\r\n".contains(letter)).map_or(0, |at| at + 1);
    let text = &text[..end];
    let end = text.iter().position(|letter| *letter == 0).unwrap_or(end);
    Path::new(OsStr::from_bytes(&text[..end]))
}

/// The path without `.` and `..`, as its text says.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_without_a_folder_is_none_of_the_checkout() {
        for (line, expected) in [
            ("store", vec![]),
            ("delta --dark", vec!["--dark"]),
            ("!npm test", vec!["test"]),
            ("!test -f a && run b | less; (sh c)", vec!["-f", "a", "b", "c"]),
            ("tools/x y", vec!["tools/x", "y"]),
            ("!./x; a/b", vec!["./x", "a/b"]),
            ("sh < x", vec!["x"]),
            ("python -c 'exec(open(\"x.py\").read())'", vec!["-c", "exec", "x.py", ".read"]),
            ("$(git rev-parse)/a.sh b", vec!["rev-parse", "/a.sh", "b"]),
            ("A=b c", vec!["b", "c"]),
            (" 'my tool' x", vec!["my", "tool", "x"]),
            ("", vec![]),
        ] {
            assert_eq!(words(line).collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn what_settings_name_in_a_workspace_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("w"));
        let data = work.join(".git");
        for name in ["home", "w/.git/hooks", "w/tools", "w/clean"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["tools/clean.sh", "tools/diff.py", "tools/hook", "main", "a.sh"] {
            std::fs::write(work.join(name), "x").unwrap();
        }
        std::fs::write(
            home.join(".gitconfig"),
            format!(
                "[core]\nhooksPath = .githooks\n[includeIf \"gitdir:{}\"]\npath = ../w/more\n",
                work.display()
            ),
        )
        .unwrap();
        std::fs::write(work.join("more"), "[include]\npath=missing\n").unwrap();
        std::fs::write(
            data.join("config"),
            "[include]\npath = ../.gitconfig\n[filter \"x\"]\nclean = tools/clean.sh %f\n\
             [diff]\nexternal = \"python tools/diff.py\"\n[branch \"main\"]\nmerge = main\n\
             [alias]\nx = \"!$(git rev-parse --show-toplevel)/a.sh clean\"\n",
        )
        .unwrap();
        symlink("../../tools/hook", data.join("hooks/pre-commit")).unwrap();
        let checkouts = [Checkout { data, top: work.clone() }];
        let found = named(&work, std::slice::from_ref(&home), &checkouts);
        let found: Vec<_> = found.iter().map(|it| it.strip_prefix(&work).unwrap()).collect();
        let expected = [
            ".gitconfig",
            ".githooks",
            "a.sh",
            "missing",
            "more",
            "tools/clean.sh",
            "tools/diff.py",
            "tools/hook",
        ];
        assert_eq!(found, expected.map(Path::new));
    }
}
