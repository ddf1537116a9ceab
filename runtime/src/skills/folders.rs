//! Finds skills, which are folders that contain a SKILL.md, and commands, which are Markdown files.
//! It reads names and times, but no contents, except plugin manifests.

use super::reading::Form;
use super::source::{Source, Sources};
use crate::files::{Home, Owner, Places, Stamp, children};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that makes a folder a skill.
pub(crate) const FILE: &str = "SKILL.md";
/// How deep skills may be in a folder of skills, and how many folders are searched, at most.
const DEPTH: usize = 3;
const FOLDERS: usize = 10_000;

/// A folder of skills or commands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Folder {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    /// The canonical folder that must contain its skills, links resolved; `None` for the user's
    /// folders.
    pub(crate) within: Option<PathBuf>,
    pub(crate) form: Form,
    /// The SKILL.md files, or those of commands, sorted.
    pub(crate) files: Vec<(PathBuf, Stamp)>,
    /// There are more folders or levels than are searched.
    pub(crate) cut: bool,
}

/// Returns the existing folders of `sources`, in order of precedence, with the plugins and further
/// folders that the settings name.
pub(crate) fn find(sources: &Sources, plugins: &[PathBuf], extra: &[PathBuf]) -> Vec<Folder> {
    let places = |user| Places {
        working: sources.working_folder.as_deref(),
        user,
        plugins: &sources.plugin_folders,
        named_plugins: plugins,
    };
    let listed = |form: Form, Home { path, owner, .. }: Home| {
        let (source, within) = match owner {
            Owner::Project { folder, .. } => (Source::Project { path: path.clone() }, Some(folder)),
            Owner::User => (Source::User { path: path.clone() }, None),
            Owner::Plugin { name: plugin, folder: path } => (Source::Plugin { plugin, path }, None),
        };
        match form {
            Form::Skill => list(source, path, within, Top::Around),
            Form::Command => list_commands(source, path, within),
        }
    };
    let skills = places(sources.user_folders.as_slice()).homes("skills").into_iter();
    let mut found: Vec<Folder> = skills.map(|home| listed(Form::Skill, home)).collect();
    for path in extra.iter().chain(&sources.extra_folders).filter(|path| path.is_dir()) {
        found.push(further(path, None));
    }
    // A skill goes before a command of the same name.
    let commands = places(sources.user_commands.as_slice()).homes("commands").into_iter();
    found.extend(commands.map(|home| listed(Form::Command, home)));
    found
}

/// Lists the Markdown files of a folder of commands.
fn list_commands(source: Source, path: PathBuf, within: Option<PathBuf>) -> Folder {
    let (form, files) = (Form::Command, Vec::new());
    let mut folder = Folder { source, path, within, form, files, cut: false };
    let path = folder.path.clone();
    walk_commands(&path, 0, &mut HashSet::new(), &mut folder);
    folder.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    folder
}

fn walk_commands(path: &Path, depth: usize, seen: &mut HashSet<(u64, u64)>, into: &mut Folder) {
    for child in children(path) {
        let Ok(data) = std::fs::metadata(&child) else { continue };
        if into.files.len() >= FOLDERS {
            into.cut = true;
            return;
        }
        let is_markdown = child.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
        if data.is_dir() && depth < DEPTH && seen.insert((data.dev(), data.ino())) {
            walk_commands(&child, depth + 1, seen, into);
        } else if !data.is_dir() && is_markdown {
            into.files.extend(Stamp::of(&child).map(|stamp| (child.clone(), stamp)));
        }
    }
}

/// Returns a further folder of skills, which may also be a skill itself.
pub(crate) fn further(path: &Path, within: Option<PathBuf>) -> Folder {
    let source = Source::Extra { path: path.to_owned() };
    list(source, path.to_owned(), within, Top::MayBeOne)
}

/// Whether the listed folder can be a skill itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Top {
    Around,
    MayBeOne,
}

fn list(source: Source, path: PathBuf, within: Option<PathBuf>, top: Top) -> Folder {
    let (form, files) = (Form::Skill, Vec::new());
    let mut folder = Folder { source, path, within, form, files, cut: false };
    let path = folder.path.clone();
    if top == Top::Around || !add(&path, &mut folder) {
        walk(&path, 0, &mut HashSet::new(), &mut folder);
    }
    folder.files.sort_by(|(one, _), (other, _)| one.cmp(other));
    folder
}

/// Collects the skills below `path`. A folder is entered once, even if links lead back to it.
fn walk(path: &Path, depth: usize, seen: &mut HashSet<(u64, u64)>, into: &mut Folder) {
    for child in children(path) {
        let Ok(data) = std::fs::metadata(&child) else { continue };
        if !data.is_dir() {
            continue;
        }
        if depth >= DEPTH || seen.len() >= FOLDERS {
            into.cut |= seen.len() >= FOLDERS;
            continue;
        }
        if seen.insert((data.dev(), data.ino())) && !add(&child, into) {
            walk(&child, depth + 1, seen, into);
        }
    }
}

/// Adds `folder` if it is a skill. Folders inside a skill belong to that skill.
fn add(folder: &Path, into: &mut Folder) -> bool {
    let file = folder.join(FILE);
    let stamp = Stamp::of(&file);
    let is_skill = stamp.is_some();
    into.files.extend(stamp.map(|stamp| (file, stamp)));
    is_skill
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, path: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    fn found(root: &Path, sources: &Sources) -> Vec<String> {
        let folders = find(sources, &[], &[]);
        let files = folders.iter().flat_map(|folder| &folder.files);
        files.map(|(path, _)| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn skills_are_found_up_to_the_repository_then_the_user_s_then_plugins_then_further_ones() {
        let root = tempfile::tempdir().unwrap();
        let root = &root.path().canonicalize().unwrap();
        for path in [
            ".claude/skills/outside/SKILL.md",
            "repo/.git/HEAD",
            "repo/.claude/skills/top/SKILL.md",
            "repo/.posse/skills/group/top/SKILL.md",
            "repo/.posse/skills/group/top/examples/SKILL.md",
            "repo/.posse/skills/README.md",
            "repo/a/.posse/skills/near/SKILL.md",
            "repo/a/.posse/skills/.hidden/SKILL.md",
            "user/mine/SKILL.md",
            "plugins/p/skills/theirs/SKILL.md",
            "more/one/SKILL.md",
            "single/SKILL.md",
        ] {
            write(root, path);
        }
        let sources = Sources {
            working_folder: Some(root.join("repo/a")),
            user_folders: vec![root.join("user"), root.join("nowhere")],
            plugin_folders: vec![root.join("plugins")],
            extra_folders: vec![root.join("more"), root.join("single")],
            ..Sources::default()
        };
        assert_eq!(
            found(root, &sources),
            [
                "repo/a/.posse/skills/near/SKILL.md",
                "repo/.posse/skills/group/top/SKILL.md",
                "repo/.claude/skills/top/SKILL.md",
                "user/mine/SKILL.md",
                "plugins/p/skills/theirs/SKILL.md",
                "more/one/SKILL.md",
                "single/SKILL.md",
            ]
        );
    }

    #[test]
    fn links_in_circles_end() {
        let root = tempfile::tempdir().unwrap();
        let root = &root.path().canonicalize().unwrap();
        write(root, "s/a/one/SKILL.md");
        symlink(root.join("s"), root.join("s/a/again")).unwrap();
        let sources = Sources { user_folders: vec![root.join("s")], ..Sources::default() };
        assert_eq!(found(root, &sources), ["s/a/one/SKILL.md"]);
    }
}
