//! Files of a workspace that settings of git name. Git runs or obeys them, so no agent may change them.

use super::super::aliases::Mounts;
use super::super::home_links::{links_below, way};
use super::on_entry;
use super::path_trace::PathTrace;
use super::programs::{COMPLETERS, WITH_FILE};
use super::settings::{self, MOST, Setting};
use super::spelled::given;
use super::tree::text_at;
use super::words::{Places, WORDS, at_home, words};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The maximum number of bytes of a hook to read.
pub(super) const LARGEST_HOOK: u64 = 8 << 20;

/// The maximum number of settings files to read for one repository: they may include each other.
const FILES: usize = 50;

/// The paths of the user's own settings, below a home folder.
const AT_HOME: [&str; 2] = [".gitconfig", ".config/git/config"];

/// Settings that run a program, by the last part of their names.
const PROGRAMS: [&str; 34] = [
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
    "recentobjectshook",
    "allowedsignersfile",
    "revocationfile",
    "sendmailcmd",
    "headercmd",
    "httpd",
    "smtpserver",
];

/// The files that tell commitizen what to run.
const FOR_COMMITIZEN: [&str; 6] =
    [".cz.json", ".cz.toml", ".cz.yaml", "cz.json", "cz.toml", "cz.yaml"];

/// Programs that manage hooks, and the files at the top of a checkout that tell them what to run.
const RUNNERS: [(&str, &[&str]); 16] = [
    ("trunk", &[".trunk"]),
    ("gitlint", &[".gitlint"]),
    ("commitizen", &FOR_COMMITIZEN),
    ("cz ", &FOR_COMMITIZEN),
    (
        "pre-commit",
        &[".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml"],
    ),
    (PREK, &FOR_PREK),
    ("lefthook", &[".lefthook", ".lefthook-local"]),
    ("overcommit", &[".overcommit.yml", ".local-overcommit.yml", ".git-hooks"]),
    ("captainhook", &["captainhook.json", "captainhook.config.json"]),
    (
        "husky",
        &[
            ".huskyrc",
            ".huskyrc.json",
            ".huskyrc.yaml",
            ".huskyrc.yml",
            ".huskyrc.js",
            ".huskyrc.cjs",
            "husky.config.js",
            "husky.config.cjs",
            ".cargo-husky",
        ],
    ),
    (
        "simple-git-hooks",
        &[
            "simple-git-hooks.js",
            "simple-git-hooks.cjs",
            "simple-git-hooks.json",
            ".simple-git-hooks.js",
            ".simple-git-hooks.cjs",
            ".simple-git-hooks.json",
        ],
    ),
    (
        "lint-staged",
        &[
            ".lintstagedrc",
            ".lintstagedrc.json",
            ".lintstagedrc.yaml",
            ".lintstagedrc.yml",
            ".lintstagedrc.js",
            ".lintstagedrc.cjs",
            ".lintstagedrc.mjs",
            ".lintstagedrc.ts",
            "lint-staged.config.js",
            "lint-staged.config.cjs",
            "lint-staged.config.mjs",
            "lint-staged.config.ts",
        ],
    ),
    (
        "commitlint",
        &[
            ".commitlintrc",
            ".commitlintrc.json",
            ".commitlintrc.yaml",
            ".commitlintrc.yml",
            ".commitlintrc.js",
            ".commitlintrc.cjs",
            ".commitlintrc.mjs",
            ".commitlintrc.ts",
            "commitlint.config.js",
            "commitlint.config.cjs",
            "commitlint.config.mjs",
            "commitlint.config.ts",
        ],
    ),
    ("rusty-hook", &[".rusty-hook.toml"]),
    ("hk", &["hk.pkl", "hk.local.pkl", ".config/hk.pkl"]),
    ("githooks", &[".githooks"]),
];

/// This program obeys its settings in every folder of a checkout.
const PREK: &str = "prek";
const FOR_PREK: [&str; 3] = ["prek.toml", ".pre-commit-config.yaml", ".pre-commit-config.yml"];

/// The maximum number of folders to search for these settings.
const FOLDERS: usize = 200_000;

/// What git runs or obeys in the data of a repository. Each may be a link into a workspace.
const OBEYED: [&str; 4] = ["hooks", "config", "config.worktree", "info/attributes"];

/// The names of lefthook's settings. Each of them can have any of the endings.
const LEFTHOOK: [&str; 6] = [
    "lefthook",
    "lefthook-local",
    ".lefthook",
    ".lefthook-local",
    ".config/lefthook",
    ".config/lefthook-local",
];
const ENDINGS: [&str; 5] = ["yml", "yaml", "toml", "json", "jsonc"];

/// Lefthook's settings that name folders with scripts.
const SCRIPTS: [&str; 2] = ["source_dir", "source_dir_local"];

/// A repository: its data, and the folder with its files.
#[derive(Clone)]
pub(in super::super) struct Checkout {
    pub data: PathBuf,
    pub top: PathBuf,
}

/// What settings name in a workspace.
#[derive(Default)]
pub(super) struct Found {
    /// The paths, there or not, each with the reason.
    pub places: BTreeMap<PathBuf, String>,
    /// Folders that a way to one of them leaves again by `..`. Only where they are matters.
    pub left: BTreeSet<PathBuf>,
    /// True if the workspace is, or is in, a folder of hooks.
    pub is_hooks: bool,
    /// True if one of the paths is a folder with more names than Posse looks at.
    pub are_too_many: bool,
}

/// The paths in `workspace` that the settings of the user and of these repositories name, whether they
/// exist or not, each with the reason. Each path is included as it is named, and with every link on the way.
/// The file `made`, which a tool is about to make, counts as existing.
pub(super) fn named(
    workspace: &Path,
    homes: &[PathBuf],
    checkouts: &[Checkout],
    made: Option<&Path>,
) -> Found {
    let mut users = Vec::new();
    let mut read = 0;
    follow(Path::new("/etc/gitconfig"), homes, &mut read, &mut users);
    for file in homes.iter().flat_map(|home| AT_HOME.map(|name| home.join(name))) {
        follow(&file, homes, &mut read, &mut users);
    }
    // Git copies the settings of a template into every new repository.
    let around = Places { workspace, homes, folders: vec![workspace.to_owned()], made };
    let templates = users.iter().filter(|(_, setting)| is_template(setting));
    let templates = templates.flat_map(|(file, setting)| paths(setting, file, &around));
    for template in templates.collect::<Vec<_>>() {
        follow(&template.join("config"), homes, &mut read, &mut users);
    }
    let mut places: Vec<(PathBuf, String)> = Vec::new();
    let mut hooks: BTreeSet<PathBuf> = BTreeSet::new();
    for Checkout { data, top } in checkouts {
        let (mut own, mut read) = (Vec::new(), 0);
        let common = common_folder(data);
        for file in [data.join("config"), common.join("config"), data.join("config.worktree")] {
            follow(&file, homes, &mut read, &mut own);
        }
        // Git runs some hooks in the folder with the data, and in a bare repository all of them.
        let folders = vec![top.clone(), data.clone(), common.clone()];
        let around = Places { workspace, homes, folders, made };
        places.extend(named_by_hooks(&common.join("hooks"), &around));
        hooks.insert(common.join("hooks"));
        let read = OBEYED.iter().flat_map(|name| [data.join(name), common.join(name)]);
        let links = read.filter(|path| path.is_symlink());
        places.extend(links.map(|link| (link.clone(), format!("git obeys {}", link.display()))));
        for (file, setting) in users.iter().chain(&own) {
            let named = paths(setting, file, &around);
            if setting.section == "core" && setting.name == "hookspath" {
                places.extend(named.iter().flat_map(|folder| named_by_hooks(folder, &around)));
                hooks.extend(named.iter().cloned());
            }
            places.extend(because_of(setting, named));
        }
    }
    // If there is no repository yet, the user's own settings apply all the same.
    for (file, setting) in &users {
        let named = paths(setting, file, &around);
        if is_template(setting) {
            let copied: Vec<PathBuf> = named.iter().map(|folder| folder.join("hooks")).collect();
            places.extend(copied.iter().flat_map(|folder| named_by_hooks(folder, &around)));
            hooks.extend(copied.iter().chain(&named).cloned());
            let settings = named.iter().map(|folder| folder.join("config"));
            places.extend(because_of(setting, copied.into_iter().chain(settings).collect()));
        }
        if setting.section == "core" && setting.name == "hookspath" {
            hooks.extend(named.iter().cloned());
        }
        places.extend(because_of(setting, named));
    }
    places.extend(on_entry::obeyed(workspace, homes, made));
    // The settings files themselves may be links: people keep them in a repository.
    let at_home = homes.iter().flat_map(|home| AT_HOME.map(|name| home.join(name)));
    places.extend(at_home.map(|path| (path, "the user's settings of git are there".to_owned())));
    let inside = |path: &PathBuf| path.starts_with(workspace) && path != workspace;
    // A folder below the workspace does not contain it, and there may be thousands.
    let mut hooks = hooks.iter().filter(|folder| !inside(folder) || folder.is_symlink());
    let mounts = Mounts::now();
    let is_around = |folder: PathBuf| {
        let again = mounts.others(&folder).into_iter().filter(|it| !it.is_part);
        workspace.starts_with(&folder) || again.into_iter().any(|it| workspace.starts_with(it.path))
    };
    let is_hooks = hooks.any(|folder| folder.canonicalize().is_ok_and(is_around));
    let mut found = Found { is_hooks, ..Found::default() };
    // What lies elsewhere may be mounted in the workspace, too.
    let elsewhere = places.iter().filter(|(path, _)| !path.starts_with(workspace));
    let elsewhere = elsewhere.filter(|_| !mounts.are_single());
    let again = elsewhere.flat_map(|(path, why)| {
        let end = way(path).ends.pop();
        let again = end.map_or_else(Vec::new, |end| mounts.others(&end));
        again.into_iter().map(move |alias| (alias.path, why.clone()))
    });
    let again: Vec<(PathBuf, String)> = again.collect();
    places.extend(again);
    // Programs also follow the links in such a folder.
    let folders = places.iter().filter(|(path, _)| inside(path) && path.is_dir());
    let mut linked = Vec::new();
    for (path, why) in folders {
        let links = links_below(std::iter::once(path.clone()), workspace);
        found.are_too_many |= !links.are_all;
        linked.extend(links.found.into_iter().map(|link| (link, why.clone())));
    }
    places.extend(linked);
    for (path, why) in places {
        let way = PathTrace::to(&path, workspace);
        for path in [plain(&path)].into_iter().chain(way.places).filter(inside) {
            found.places.entry(path).or_insert_with(|| why.clone());
        }
        found.left.extend(way.left.into_iter().filter(inside));
    }
    found
}

/// These paths, each with the reason that `setting` names it.
fn because_of(setting: &Setting, paths: Vec<PathBuf>) -> impl Iterator<Item = (PathBuf, String)> {
    let key = setting.key();
    paths.into_iter().map(move |path| (path, format!("the git setting {key} names it")))
}

/// Collects the settings in `file` and in all files that it includes, each with the folder of its file.
fn follow(file: &Path, homes: &[PathBuf], read: &mut usize, all: &mut Vec<(PathBuf, Setting)>) {
    *read += 1;
    if *read > FILES {
        return;
    }
    let Some(text) = text_at(file, MOST) else { return };
    let around = file.parent().unwrap_or(file).to_owned();
    for setting in settings::read(&text).unwrap_or_default() {
        if is_include(&setting) {
            for path in included(&setting, &around, homes) {
                follow(&path, homes, read, all);
            }
        }
        // An alias that passes a setting to git.
        if setting.section == "alias" {
            let line = setting.value.as_deref().unwrap_or_default();
            all.extend(given(line).into_iter().map(|given| (around.clone(), given)));
        }
        all.push((around.clone(), setting));
    }
}

/// Returns true for the setting that names a folder which git copies into every new repository.
fn is_template(setting: &Setting) -> bool {
    setting.section == "init" && setting.name == "templatedir"
}

fn is_include(setting: &Setting) -> bool {
    ["include", "includeif"].contains(&setting.section.as_str()) && setting.name == "path"
}

/// The files that `setting`, from a file in `around`, includes.
fn included(setting: &Setting, around: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    let value = setting.value.as_deref().filter(|value| !value.is_empty());
    value.map_or_else(Vec::new, |value| [at_home(value, homes), vec![around.join(value)]].concat())
}

/// The paths that `setting`, from a file in the folder `file`, names in these places.
fn paths(setting: &Setting, file: &Path, around: &Places) -> Vec<PathBuf> {
    let Some(value) = setting.value.as_deref().filter(|value| !value.is_empty()) else {
        return Vec::new();
    };
    let is_folder = matches!(
        (setting.section.as_str(), setting.name.as_str()),
        ("core", "hookspath") | ("init", "templatedir")
    );
    if is_include(setting) {
        return included(setting, file, around.homes);
    }
    if is_folder {
        let folders = around.folders.iter().map(|folder| folder.join(value));
        let mut folders: Vec<PathBuf> = folders.chain(at_home(value, around.homes)).collect();
        let beside: Vec<PathBuf> = folders.iter().filter_map(|it| run_by_husky(it)).collect();
        folders.extend(beside);
        return folders;
    }
    let runs = match setting.section.as_str() {
        // An alias that passes a setting or a folder of programs to git names what git then runs.
        "alias" => value.starts_with('!') || value.contains(['=', '/']),
        "pager" => true,
        _ => PROGRAMS.contains(&setting.name.as_str()),
    };
    // An address that names a program, as the value or as what stands in place of another.
    let programs = [value, &setting.part].map(|address| address.strip_prefix("ext::"));
    let programs = programs.into_iter().flatten();
    let mut named: Vec<PathBuf> = programs.flat_map(|line| around.run_by_script(line)).collect();
    // Of the words of a command, only files matter.
    if !runs {
        return named;
    }
    named.extend(around.named_by_line(value));
    named.extend(around.imported_by(value));
    // A shell runs what begins with `!`. Elsewhere, an interpreter may complete the name of a file, and it may be
    // joined to an option, as in `awk -fx`.
    let line = value.strip_prefix('!');
    let is_version = |letter: char| letter.is_ascii_digit() || letter == '.';
    let completes = |word: &str| {
        COMPLETERS.contains(&word.trim_end_matches(is_version)) || WITH_FILE.contains(&word)
    };
    let completes = value.split([' ', '/']).any(completes);
    if line.is_some() || completes {
        named.extend(around.run_by_script(line.unwrap_or(value)));
    }
    around.with_interpreters(value, named)
}

/// The files that the hooks in `folder` run, as far as their text shows: targets of links, programs and
/// scripts, and the settings of programs that manage hooks, with the files that these settings name.
fn named_by_hooks(folder: &Path, around: &Places) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.map(|entry| entry.path());
    let hooks: Vec<PathBuf> = entries.filter(|path| !is_sample(path)).collect();
    // There may be thousands of repositories, and resolving their paths takes time.
    if hooks.is_empty() {
        return Vec::new();
    }
    let real = folder.canonicalize().ok();
    let folders = around.folders.iter().cloned().chain([folder.to_owned()]).chain(real);
    let Places { workspace, homes, made, .. } = *around;
    let mut places = Places { workspace, homes, folders: folders.collect(), made };
    let mut named = Vec::new();
    for hook in hooks {
        let shown = hook.strip_prefix(workspace).unwrap_or(&hook).display().to_string();
        let mut add = |path: PathBuf| named.push((path, format!("the git hook {shown} runs it")));
        if let Ok(target) = hook.read_link() {
            add(folder.join(target));
            // It may look for others beside the file that it really is.
            let real = hook.canonicalize().ok();
            places.folders.extend(real.and_then(|it| it.parent().map(Path::to_owned)));
        }
        let text = text_at(&hook, LARGEST_HOOK).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        places.run_by_script(&text).into_iter().for_each(&mut add);
        places.imported_by(&text).into_iter().for_each(&mut add);
        let given = given(&text).into_iter().flat_map(|given| paths(&given, folder, &places));
        given.for_each(&mut add);
        let mut settings = told_by_files(&text, &places);
        let mut seen = BTreeSet::new();
        let entered = || places.folders_of(&text).into_iter().collect::<Vec<_>>();
        let entered = if settings.is_empty() { Vec::new() } else { entered() };
        while let Some(file) = settings.pop() {
            let read = text_at(&file, MOST).filter(|_| seen.insert(file.clone()));
            if let Some(text) = read {
                let text = String::from_utf8_lossy(&text);
                let beside = file.parent().map(Path::to_owned);
                let folders = entered.iter().cloned().chain(beside).collect();
                let places = Places { workspace, homes, folders, made };
                folders_of_scripts(&text, &places).into_iter().for_each(&mut add);
                if text.contains("extends") {
                    let named = places.named_by_line(&text).into_iter();
                    settings.extend(named.filter(|path| is_settings(path)));
                }
                places.run_by_settings(&text).into_iter().for_each(&mut add);
                places.imported_by(&text).into_iter().for_each(&mut add);
            }
            add(file);
        }
    }
    named
}

/// The folder of the hooks that husky runs, if `folder` has husky's own hooks.
fn run_by_husky(folder: &Path) -> Option<PathBuf> {
    let is_husky = folder.file_name() == Some(OsStr::new("_"));
    folder.parent().filter(|_| is_husky).map(Path::to_owned)
}

fn is_settings(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|end| ENDINGS.contains(&end))
}

/// The settings of the hook managers that the text of a hook mentions: the files at their usual paths, and the
/// files that the text names.
fn told_by_files(text: &str, places: &Places) -> Vec<PathBuf> {
    let used = RUNNERS.iter().filter(|(runner, _)| text.contains(runner));
    let mut names: Vec<String> =
        used.flat_map(|(_, files)| files.iter().map(|&file| file.to_owned())).collect();
    if text.contains("lefthook") {
        let all = LEFTHOOK.iter().flat_map(|name| ENDINGS.map(|end| format!("{name}.{end}")));
        names.extend(all);
    }
    if names.is_empty() {
        return Vec::new();
    }
    let named = places.named_by_line(text).into_iter().filter(|path| is_settings(path));
    let folders = places.folders_of(text);
    let usual = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let below = if text.contains(PREK) { below(places, &FOR_PREK) } else { Vec::new() };
    usual.chain(named).chain(below).collect()
}

/// All files in the workspace with one of these names.
fn below(places: &Places, names: &[&str]) -> Vec<PathBuf> {
    let is_named = |name: &OsStr| names.iter().any(|it| name == *it);
    let made = places.made.filter(|path| path.file_name().is_some_and(is_named));
    let mut found: Vec<PathBuf> = made.map(Path::to_owned).into_iter().collect();
    let mut folders = vec![places.workspace.to_owned()];
    let mut searched = 0;
    while let Some(folder) = folders.pop().filter(|_| searched < FOLDERS) {
        searched += 1;
        // By their names, because a folder may be open to programs but not listable.
        let here = names.iter().map(|name| folder.join(name));
        found.extend(here.filter(|path| path.symlink_metadata().is_ok()));
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && entry.file_name() != ".git" {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// The folders in which lefthook's settings say that its scripts are.
fn folders_of_scripts(text: &str, places: &Places) -> Vec<PathBuf> {
    let words = words(text, WORDS);
    let words: Vec<&str> = words.iter().map(|it| it.text).filter(|it| *it != ":").collect();
    let is_key = |word: &str| SCRIPTS.contains(&word.trim_end_matches(':'));
    let values = words.windows(2).filter(|pair| is_key(pair[0])).map(|pair| pair[1]);
    values.flat_map(|value| places.folders.iter().map(move |it| it.join(value))).collect()
}

fn is_sample(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "sample")
}

/// The folder with the settings and hooks that apply to the repository in `data`.
pub(super) fn common_folder(data: &Path) -> PathBuf {
    match text_at(&data.join("commondir"), MOST) {
        Some(text) => {
            let folder = data.join(first_line(&text));
            folder.canonicalize().unwrap_or_else(|_| plain(&folder))
        }
        None => data.to_owned(),
    }
}

/// The path that a file consists of, as git reads it: up to the first NUL, and without line ends at the end.
pub(in super::super) fn first_line(text: &[u8]) -> &Path {
    let end = text.iter().rposition(|letter| !b"\r\n".contains(letter)).map_or(0, |at| at + 1);
    let text = &text[..end];
    let end = text.iter().position(|letter| *letter == 0).unwrap_or(end);
    Path::new(OsStr::from_bytes(&text[..end]))
}

/// Removes `.` and `..` from the path without resolving links.
pub(in super::super) fn plain(path: &Path) -> PathBuf {
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
    fn what_settings_name_in_a_workspace_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("w"));
        let data = work.join(".git");
        for name in ["home", "w/.git/hooks", "w/tools", "w/clean"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in
            ["tools/clean.sh", "tools/diff.py", "tools/hook", "tools/run.js", "main", "a.sh"]
        {
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
             [alias]\nx = \"!$(git rev-parse --show-toplevel)/a.sh clean\"\ny = !node tools/run\n",
        )
        .unwrap();
        symlink("../../tools/hook", data.join("hooks/pre-commit")).unwrap();
        let checkouts = [Checkout { data, top: work.clone() }];
        let found = named(&work, std::slice::from_ref(&home), &checkouts, None).places;
        let by_git = found.iter().filter(|(_, why)| why.contains("git"));
        let found: Vec<_> = by_git.map(|(it, _)| it.strip_prefix(&work).unwrap()).collect();
        let expected = [
            ".git/.githooks",
            ".gitconfig",
            ".githooks",
            "a.sh",
            "missing",
            "more",
            "tools/clean.sh",
            "tools/diff.py",
            "tools/hook",
            "tools/run.js",
        ];
        assert_eq!(found, expected.map(Path::new));
    }

    /// Names, relative to `work`, that the hook `text` leads to, if `made` are the files there.
    fn led_to(work: &Path, workspace: &Path, text: &str, made: &[(&str, &str)]) -> Vec<String> {
        let data = work.join(".git");
        std::fs::create_dir_all(data.join("hooks")).unwrap();
        std::fs::write(data.join("hooks/pre-commit"), text).unwrap();
        for (name, content) in made {
            std::fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
            std::fs::write(work.join(name), content).unwrap();
        }
        let checkouts = [Checkout { data, top: work.to_owned() }];
        let found = named(workspace, &[], &checkouts, None).places;
        let below = found.keys().map(|path| path.strip_prefix(work).unwrap());
        below
            .map(|it| it.to_str().unwrap().to_owned())
            .filter(|it| work.join(it).exists() && !it.starts_with(".git"))
            .collect()
    }

    #[test]
    fn settings_of_hook_managers_count_wherever_a_hook_says_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        let settings = "- id: x\n  entry: python3\n  args: [s/x.py]\n  files: package.json\n";
        let made =
            [("tools/pc.yaml", settings), ("s/x.py", ""), ("s/y.py", ""), ("package.json", "")];
        let text =
            "#!/bin/sh\nARGS=(hook-impl --config=tools/pc.yaml)\nexec pre-commit \"${ARGS[@]}\"\n";
        assert_eq!(led_to(&work, &work, text, &made), ["s/x.py", "tools/pc.yaml"]);
        let made = [
            ("web/lefthook.yml", "extends: [more.yml]\npre-commit:\n  run: uv run s/y.py\n"),
            ("web/more.yml", "pre-commit:\n  run: sh s/z\n"),
            ("web/s/y.py", ""),
            ("web/s/z", ""),
        ];
        let text = "#!/bin/sh\ncd web && lefthook run pre-commit\n";
        // Nobody knows from where the scripts are named.
        let expected = ["s/y.py", "web/lefthook.yml", "web/more.yml", "web/s/y.py", "web/s/z"];
        assert_eq!(led_to(&work, &work, text, &made), expected);
    }

    #[test]
    fn lefthook_says_where_its_scripts_are_and_where_its_commands_run() {
        let yaml = "source_dir: tools/lh\nsource_dir_local: mine\npre-commit:\n  commands:\n    x:\n      root: web/\n      run: python3 s/a\n";
        let json = "{\"source_dir\": \"tools/lh\", \"source_dir_local\": \"mine\"}";
        for (name, text, expected) in [
            ("lefthook.yml", yaml, vec!["lefthook.yml", "mine", "tools/lh", "web/s/a"]),
            ("lefthook.json", json, vec!["lefthook.json", "mine", "tools/lh"]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().canonicalize().unwrap();
            let made = [(name, text), ("tools/lh/x", ""), ("mine/y", ""), ("web/s/a", "")];
            let found = led_to(&work, &work, "#!/bin/sh\nlefthook run pre-commit\n", &made);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn settings_that_a_hook_gives_to_git_count_as_settings() {
        for (text, expected) in [
            ("git -c core.hooksPath=tools/h commit", vec!["tools/h"]),
            ("git -c 'alias.z=!sh tools/h/x' z", vec!["tools/h/x"]),
            ("git -c 'remote.o.url=ext::sh tools/h/x' fetch o", vec!["tools/h/x"]),
            ("git -c user.name=tools/h commit; sh -c 'echo a.b=tools'", vec![]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().canonicalize().unwrap();
            let made = [("tools/h/x", ":")];
            let found = led_to(&work, &work, &format!("#!/bin/sh\n{text}\n"), &made);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_hook_may_enter_a_workspace_that_is_below_its_top() {
        for text in [
            "cd web && sh scripts/x",
            "(cd \"$(git rev-parse --show-toplevel)/web\" && . ./scripts/x)",
            "D=\"$ROOT/web\"; sh \"$D/scripts/x\"",
            "sh web/scripts/x",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().canonicalize().unwrap();
            let made = [("web/scripts/x", ":"), ("web/a", "")];
            let found = led_to(&work, &work.join("web"), &format!("#!/bin/sh\n{text}\n"), &made);
            assert_eq!(found, ["web/scripts/x"], "{text}");
        }
    }
}
