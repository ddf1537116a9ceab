//! Files of a worktree that its branch lacks, and that would be lost with its folder.

use super::git::Git;
use posse_protocol::{Extra, Kept};
use std::path::Path;

/// Folders that builds and package managers recreate. Their ignored files are not kept.
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

/// Endings of files that are recreated.
const ENDINGS: [&str; 7] = [".DS_Store", ".class", ".eslintcache", ".o", ".pyc", ".pyo", ".swp"];

/// How many files are named.
const NAMED: usize = 5;

/// The most characters of a name that are shown.
const NAME: usize = 120;

/// Returns the files in the worktree at `folder` that its branch lacks after the commit of the
/// rest.
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
        // The path of a repository ends with a slash.
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
    /// Counts the file at `path`, or the files in the folder.
    fn look(&mut self, path: &str) {
        let mut ahead = vec![Path::new(path).to_owned()];
        while let Some(path) = ahead.pop() {
            let whole = self.top.join(&path);
            let Ok(data) = whole.symlink_metadata() else { continue };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_made_again = match data.is_file() {
                true => ENDINGS.iter().any(|ending| name.ends_with(ending)),
                // A link to such a folder of another checkout is not kept either.
                false => MADE_AGAIN.contains(&&*name),
            };
            if is_made_again || name == ".git" {
                continue;
            }
            // A folder that cannot be read may hold files.
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
