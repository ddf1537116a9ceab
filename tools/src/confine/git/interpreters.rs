//! Programs that the first lines of scripts name, and files that environment variables name.

use super::named::plain;
use super::tree::text_at;
use super::words::{Places, WORDS, at_home, words};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The maximum number of bytes of a first line: more than the kernel reads.
const LINE: u64 = 1_024;

/// The maximum number of files whose first lines are read for one text.
const FILES: usize = 10_000;

/// Words of make before the files that it includes.
const INCLUDES: [&str; 3] = ["-include", "include", "sinclude"];

/// Variables that name files which programs run or obey.
const VARIABLES: [&str; 23] = [
    "BASH_ENV",
    "EDITOR",
    "ENV",
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LD_PRELOAD",
    "MAKEFILES",
    "NODE_OPTIONS",
    "PAGER",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SSH_ASKPASS",
    "VISUAL",
];

impl Places<'_> {
    /// These files, which `text` names, with what their first lines name, with what the first lines of that name,
    /// and so on: the kernel and `env` run all of it. Files outside the workspace lead back into it.
    pub(super) fn with_interpreters(&self, text: &str, named: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut ahead = named.clone();
        ahead.extend(self.elsewhere(text));
        let mut named: BTreeSet<PathBuf> = named.into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(path) = ahead.pop().filter(|_| seen.len() < FILES) {
            if !seen.insert(path.clone()) {
                continue;
            }
            let start = text_at(&path, LINE).unwrap_or_default();
            let Some(start) = start.strip_prefix(b"#!") else { continue };
            let line = start.split(|it| *it == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            let next = self.run_by_text(&line);
            ahead.extend(self.elsewhere(&line).into_iter().chain(next.iter().cloned()));
            named.extend(next);
        }
        named.into_iter().collect()
    }

    /// The files outside the workspace that the text names by whole paths.
    fn elsewhere(&self, text: &str) -> Vec<PathBuf> {
        if text.contains('\0') {
            return Vec::new();
        }
        let mut found = BTreeSet::new();
        for word in words(text, WORDS) {
            // A variable before it may be the home folder.
            let below = word.text.strip_prefix('/').filter(|_| word.is_joined);
            found.extend(
                below.into_iter().flat_map(|it| self.homes.iter().map(move |at| at.join(it))),
            );
            found.extend(at_home(word.text, self.homes));
            found.extend(word.text.starts_with('/').then(|| PathBuf::from(word.text)));
        }
        let is_meant = |path: &PathBuf| !plain(path).starts_with(self.workspace) && path.is_file();
        found.into_iter().filter(is_meant).collect()
    }

    /// The files that a makefile includes.
    pub(super) fn included(&self, text: &str) -> Vec<PathBuf> {
        let folders = self.folders_of(text);
        let mut found = Vec::new();
        for line in text.lines() {
            let mut names = line.split_whitespace();
            if !names.next().is_some_and(|word| INCLUDES.contains(&word)) {
                continue;
            }
            for name in names {
                let places = self.places(name, &folders).into_iter();
                found.extend(places.filter(|path| self.is_file(path)));
                found.extend(self.matching(name, &folders));
            }
        }
        found
    }

    /// The files that the values of such variables name, if the text sets any.
    pub(super) fn set_by(&self, text: &str, folders: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut found = BTreeSet::new();
        for (at, _) in text.match_indices('=') {
            let before = &text[..at];
            let name = before.rfind(|it| !is_name(it)).map_or(before, |start| {
                let length = before[start..].chars().next().map_or(0, char::len_utf8);
                &before[start + length..]
            });
            if !VARIABLES.contains(&name) {
                continue;
            }
            let value = &text[at + 1..];
            let value = match value.chars().next().filter(|it| "'\"".contains(*it)) {
                Some(quote) => value[1..].split(quote).next().unwrap_or_default(),
                None => {
                    value.split([' ', '\t', '\n', '\r', ';', '&', '|']).next().unwrap_or_default()
                }
            };
            // `-rx.rb`, and lists with `:`.
            let parts = words(value, WORDS).into_iter().flat_map(|word| word.text.split(':'));
            let parts =
                parts.flat_map(|it| [Some(it), it.get(2..).filter(|_| it.starts_with('-'))]);
            let places = parts.flatten().flat_map(|it| self.places(it, folders));
            found.extend(places.filter(|path: &PathBuf| self.is_file(path)));
        }
        found.into_iter().collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn first_lines_are_followed_from_file_to_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let work = root.join("home/w");
        fs::create_dir_all(work.join("s")).unwrap();
        let deep = format!("#!{}/s/x.sh\n", work.display());
        for (name, text) in [
            ("home/run", &*deep),
            ("home/w/s/a", "#!s/b\n"),
            ("home/w/s/b", "#!/usr/bin/env -S sh s/c\n"),
            ("home/w/s/c", "#! s/d -x"),
            ("home/w/s/d", "#!s/e\n"),
            ("home/w/s/e", "#!s/a\n"),
            ("home/w/s/up", "#!/usr/bin/env ../run\n"),
            ("home/w/s/x.sh", "#!/bin/sh\ns/e\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let homes = [root.join("home")];
        let places =
            Places { workspace: &work, homes: &homes, folders: vec![work.clone()], made: None };
        let absolute = format!("#!{}/home/run\n", root.display());
        for (text, expected) in [
            ("#!s/c\n", vec!["s/a", "s/b", "s/c", "s/d", "s/e"]),
            ("#!/bin/sh\n./s/a\n", vec!["s/a", "s/b", "s/c", "s/d", "s/e"]),
            ("#!/bin/sh\n~/run\n", vec!["s/x.sh"]),
            ("#!/bin/sh\nexec \"$HOME/run\" y\n", vec!["s/x.sh"]),
            (&*absolute, vec!["s/x.sh"]),
            ("#!/bin/sh\ncat s/a\n", vec![]),
        ] {
            let found = places.run_by_script(text);
            let found: Vec<_> = found.iter().map(|it| it.strip_prefix(&work).unwrap()).collect();
            assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn files_that_variables_name_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        fs::create_dir_all(work.join("s")).unwrap();
        for name in ["s/x", "s/y.js", "production"] {
            fs::write(work.join(name), "").unwrap();
        }
        let places =
            Places { workspace: &work, homes: &[], folders: vec![work.clone()], made: None };
        for (text, expected) in [
            ("ENV=s/x sh -i", vec!["s/x"]),
            ("#!/usr/bin/env -S ENV=s/x sh -i", vec!["s/x"]),
            ("export BASH_ENV=\"$ROOT/s/x\"; bash y", vec!["s/x"]),
            ("NODE_OPTIONS='--enable-source-maps --require ./s/y.js' node", vec!["s/y.js"]),
            ("NODE_OPTIONS=-r./s/y.js node", vec!["s/y.js"]),
            ("PYTHONSTARTUP=s/x python3 -i", vec!["s/x"]),
            ("MY_ENV=s/x deploy; MODE=s/y.js", vec![]),
            ("é=s/x; ENV=", vec![]),
        ] {
            let found = places.run_by_script(text);
            let found: Vec<_> = found.iter().map(|it| it.strip_prefix(&work).unwrap()).collect();
            assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>(), "{text}");
        }
    }
}
