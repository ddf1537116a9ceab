//! What of a worktree its branch does not hold, and would be lost with its folder.

use super::git::Git;
use posse_protocol::{Extra, Kept};
use std::path::Path;

/// Folders that builds and package managers make again. What is in them is not kept where git ignores
/// it.
const MADE_AGAIN: [&str; 46] = [
    ".angular",
    ".cache",
    ".dart_tool",
    ".direnv",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".kotlin",
    ".mypy_cache",
    ".next",
    ".nox",
    ".npm",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".sass-cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".zig-cache",
    "CMakeFiles",
    "DerivedData",
    "Pods",
    "__pycache__",
    "__pypackages__",
    "_build",
    "bower_components",
    "build",
    "coverage",
    "dist",
    "elm-stuff",
    "htmlcov",
    "node_modules",
    "target",
    "vendor",
    "venv",
    "zig-cache",
    "zig-out",
];

/// Endings of files that are made again.
const ENDINGS: [&str; 7] = [".DS_Store", ".class", ".eslintcache", ".o", ".pyc", ".pyo", ".swp"];

/// How many are named.
const NAMED: usize = 5;

/// The most of a name that is told.
const NAME: usize = 120;

/// What is in the worktree at `folder` and not on its branch, once all else is.
pub(super) async fn kept(git: &Git<'_>, folder: &str) -> Result<Option<Kept>, String> {
    let folders = MADE_AGAIN.map(|name| format!("--exclude={name}/"));
    let endings = ENDINGS.map(|ending| format!("--exclude=*{ending}"));
    let mut all = vec!["ls-files", "--others", "-z"];
    all.extend(folders.iter().chain(&endings).map(String::as_str));
    let listed = git.list(&all).await?;
    let links = git.links().await?;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    let mut found = Found { top: Path::new(folder), files: 0, names: Vec::new() };
    for path in paths.chain(links.iter().map(String::as_str)) {
        // A repository ends with a slash.
        found.look(path.trim_end_matches('/'));
    }
    let Found { files, names, .. } = found;
    let folder = folder.to_owned();
    Ok((files > 0).then(|| Kept { folder, files, names, extra: Extra::default() }))
}

struct Found<'a> {
    top: &'a Path,
    files: u64,
    names: Vec<String>,
}

impl Found<'_> {
    /// Counts what is at `path`; of a folder, what is in it.
    fn look(&mut self, path: &str) {
        let mut ahead = vec![Path::new(path).to_owned()];
        while let Some(path) = ahead.pop() {
            let whole = self.top.join(&path);
            let Ok(data) = whole.symlink_metadata() else { continue };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_made_again = match data.is_file() {
                true => ENDINGS.iter().any(|ending| name.ends_with(ending)),
                // A link to such a folder of another checkout is none to keep either.
                false => MADE_AGAIN.contains(&&*name),
            };
            if is_made_again || name == ".git" {
                continue;
            }
            // What cannot be looked into may hold something.
            match data.is_dir().then(|| std::fs::read_dir(&whole)) {
                Some(Ok(entries)) => {
                    let inside = entries.flatten().map(|entry| path.join(entry.file_name()));
                    let mut inside: Vec<_> = inside.collect();
                    inside.sort_by(|one, other| other.cmp(one));
                    ahead.extend(inside);
                }
                Some(Err(_)) | None => {
                    self.files += 1;
                    if self.names.len() < NAMED {
                        let name = path.to_string_lossy();
                        self.names.push(name.escape_debug().take(NAME).collect());
                    }
                }
            }
        }
    }
}
