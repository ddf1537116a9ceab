//! Files that programs of the user's shell obey when the user changes into the workspace: direnv, mise and asdf.

use super::super::repository::folders_with;
use super::named::LARGEST_HOOK;
use super::tree::text_at;
use super::words::{Places, WORDS, words};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file that direnv loads. No agent can change it at the top of the workspace.
const ENVRC: &str = ".envrc";

/// The maximum number of bytes of it to read.
const MOST: u64 = LARGEST_HOOK;

/// What a `.envrc` calls, and the files that these programs obey.
const CALLED: [(&str, &[&str]); 6] = [
    ("use flake", &["flake.nix", "flake.lock", ".direnv"]),
    ("print-dev-env", &["flake.nix", "flake.lock"]),
    ("use nix", &["shell.nix", "default.nix", ".direnv"]),
    ("use guix", &["guix.scm", "manifest.scm"]),
    ("devenv", &["devenv.nix", "devenv.local.nix", "devenv.yaml", "devenv.local.yaml", ".devenv"]),
    ("devbox", &["devbox.json", "devbox.lock", ".devbox"]),
];

/// Files that mise and asdf obey. [`PROTECTED`](super::super::protected::PROTECTED) has the others.
const MISE: [&str; 7] = [
    ".tool-versions",
    ".miserc.toml",
    ".config/miserc.toml",
    ".config/mise",
    ".config/mise.toml",
    "mise/config.toml",
    "mise/conf.d",
];

/// Where mise has further files for an environment, such as `mise.test.toml`, and how their names begin.
const OF_ENVIRONMENTS: [(&str, &str); 4] =
    [("", "mise."), ("", ".mise."), (".config", "mise."), ("mise", "config.")];

/// The paths in the workspace that these programs obey, there or not, each with the reason.
pub(super) fn obeyed(
    workspace: &Path,
    homes: &[PathBuf],
    made: Option<&Path>,
) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for folder in folders_with(ENVRC, workspace) {
        let Some(text) = text_at(&folder.join(ENVRC), MOST) else { continue };
        let text = String::from_utf8_lossy(&text);
        let places = Places { workspace, homes, folders: vec![folder.to_owned()], made };
        let why = format!("direnv loads it for {}", folder.join(ENVRC).display());
        all.extend(loaded(&text, &places).into_iter().map(|path| (path, why.clone())));
    }
    let of_mise = MISE.iter().map(|name| workspace.join(name));
    let of_mise = of_mise.chain(of_environments(workspace, made));
    all.extend(of_mise.map(|path| (path, "mise or asdf obeys it".to_owned())));
    all
}

/// The files that the `.envrc` with this text loads.
fn loaded(text: &str, places: &Places) -> Vec<PathBuf> {
    let mut all = places.run_by_script(text);
    // Both `use flake` and `use_flake` are right, with any blanks between.
    let spaced: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let text = spaced.join("\n").replace("use_", "use ");
    let called = CALLED.iter().filter(|(call, _)| text.contains(call));
    let names: Vec<&str> = called.flat_map(|(_, names)| names.iter().copied()).collect();
    if names.is_empty() {
        return all;
    }
    // `use flake ./nix` and `use nix dev.nix`.
    let mut folders = places.folders_of(&text);
    // Nix also writes `path:./nix#shell`.
    let words = words(&text, WORDS).into_iter().map(|word| {
        let word = word.text.strip_prefix("path:").unwrap_or(word.text);
        word.split(['#', '?']).next().unwrap_or(word)
    });
    let named = words.flat_map(|word| places.places(word, &folders));
    let named: Vec<PathBuf> = named.collect();
    let is_nix = |path: &&PathBuf| path.extension() == Some(OsStr::new("nix"));
    all.extend(named.iter().filter(is_nix).cloned());
    folders.extend(named.into_iter().filter(|path| path.is_dir()));
    all.extend(folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))));
    all
}

/// The files for environments, and `made` if it is about to be one of them.
fn of_environments(workspace: &Path, made: Option<&Path>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for (folder, start) in OF_ENVIRONMENTS {
        let folder = if folder.is_empty() { workspace.to_owned() } else { workspace.join(folder) };
        let there = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let made = made.filter(|it| it.parent() == Some(folder.as_path())).map(Path::to_owned);
        let is_meant = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with(start) && name.ends_with(".toml")
        };
        all.extend(there.map(|entry| entry.path()).chain(made).filter(is_meant));
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    /// Names in the workspace that exist and are obeyed, if the user has this `.envrc` at `at`.
    fn obeyed_with(at: &str, text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let work = root.join("w");
        fs::create_dir_all(work.join("sub/nix")).unwrap();
        fs::create_dir_all(work.join(".config/mise")).unwrap();
        for name in
            ["x.sh", "sub/.envrc", "sub/y", ".env", "flake.nix", "sub/nix/flake.nix", "d.nix"]
        {
            fs::write(work.join(name), "a").unwrap();
        }
        fs::write(root.join(at), text).unwrap();
        let found = obeyed(&work, &[], None).into_iter().map(|(path, _)| path);
        let found: BTreeSet<PathBuf> = found.filter(|path| path.is_file()).collect();
        let below = found.iter().filter_map(|path| path.strip_prefix(&work).ok());
        below.map(|it| it.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_an_envrc_loads_is_obeyed_and_what_it_reads_is_not() {
        for (text, expected) in [
            ("source_env x.sh", vec!["x.sh"]),
            ("source_env_if_exists ./x.sh", vec!["x.sh"]),
            ("source_env sub", vec!["sub/.envrc"]),
            (". sub/y; source x.sh", vec!["sub/y", "x.sh"]),
            ("use flake", vec!["flake.nix"]),
            ("use_flake ./sub/nix", vec!["flake.nix", "sub/nix/flake.nix"]),
            ("use flake path:./sub/nix", vec!["flake.nix", "sub/nix/flake.nix"]),
            ("use flake \"./sub/nix#dev\"", vec!["flake.nix", "sub/nix/flake.nix"]),
            ("use  flake\t./sub/nix?dir=a", vec!["flake.nix", "sub/nix/flake.nix"]),
            ("eval \"$(nix print-dev-env ./sub/nix)\"", vec!["flake.nix", "sub/nix/flake.nix"]),
            ("use nix d.nix", vec!["d.nix"]),
            ("dotenv; dotenv_if_exists .env; watch_file x.sh; layout python3", vec![]),
            ("PATH_add sub; export A=x.sh B=$(cat sub/y)", vec![]),
        ] {
            assert_eq!(obeyed_with("w/.envrc", text), expected, "{text}");
        }
        assert_eq!(obeyed_with(".envrc", "source_env w/x.sh"), ["x.sh"]);
    }

    #[test]
    fn files_of_mise_are_obeyed_wherever_mise_looks_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        fs::create_dir_all(work.join(".config")).unwrap();
        let names = ["mise.test.toml", ".mise.test.local.toml", ".config/mise.test.toml"];
        for name in names.iter().chain(&["mise.md", ".config/nextest.toml"]) {
            fs::write(work.join(name), "").unwrap();
        }
        let made = work.join("mise/config.new.toml");
        let found = of_environments(&work, Some(&made));
        let expected: Vec<PathBuf> = names.iter().map(|name| work.join(name)).collect();
        assert_eq!(found, [expected, vec![made]].concat());
    }
}
