//! Links in a home folder, and the ways that they lead.
//!
//! Programs obey what is at the end of such a link. Who changes a link on the way, or makes what is
//! missing at its end, decides as well what that is.

use super::git::text_at;
use super::placeholder::is_missing;
use super::protected::PROTECTED;
use super::repository::has_git;
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Folders below a home folder in which programs find what they run or obey, and how deep links are looked
/// for in each. What the links lead to is obeyed.
const THAT_MATTER: [(&str, usize); 25] = [
    (".config/posse", 4),
    (".claude/agents", 4),
    (".claude/skills", 4),
    (".claude/commands", 4),
    (".claude/hooks", 4),
    (".claude/plugins", 4),
    (".codex/skills", 4),
    (".codex/prompts", 4),
    (".gemini/extensions", 4),
    (".ssh", 2),
    (".config/git", 2),
    (".config/fish", 2),
    (".config/systemd", 3),
    (".config/autostart", 1),
    (".config/environment.d", 1),
    (".config/nvim", 4),
    (".vim", 4),
    (".bashrc.d", 1),
    (".bash_profile.d", 1),
    (".bash_completion.d", 1),
    (".profile.d", 1),
    (".zshrc.d", 1),
    (".zshenv.d", 1),
    (".zsh", 2),
    (".oh-my-zsh/custom", 3),
];

/// Folders below a home folder with programs. Links in them count if they lead to a script that nobody builds.
const PROGRAMS: [&str; 7] =
    ["bin", ".bin", "sbin", "scripts", ".local/bin", ".local/sbin", ".cargo/bin"];

/// Folders in which a build, or a package manager, makes programs anew.
const BUILT: [&str; 9] =
    ["target", "build", "dist", "out", "node_modules", "vendor", "venv", ".venv", ".tox"];

/// Folders around them, in which other programs have their settings, and how deep it is looked there.
const OTHERS: [(&str, usize); 4] = [(".config", 2), (".claude", 2), (".codex", 2), (".gemini", 2)];

/// What is in there, may be large, and is obeyed by nobody: records, caches, and profiles of browsers.
const PASSED_OVER: [&str; 20] = [
    ".claude/todos",
    ".claude/projects",
    ".claude/file-history",
    ".claude/statsig",
    ".claude/debug",
    ".claude/session-env",
    ".codex/sessions",
    ".codex/log",
    ".gemini/tmp",
    ".gemini/history",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/Slack",
    ".config/discord",
    ".vim/undo",
    ".vim/swap",
];

/// The same wherever it is.
const PASSED_OVER_EVERYWHERE: [&str; 4] = [".git", "node_modules", "Cache", "CachedData"];

/// Names of one folder that are looked at, at most, and folders in all: where it matters, and elsewhere.
const WHERE_IT_MATTERS: Limits = Limits { names: 100_000, folders: 10_000 };
const ELSEWHERE: Limits = Limits { names: 3_000, folders: 5_000 };

/// How deep it is looked into a folder that a hidden link at the top of the home folder leads to.
const LINKED_AT_TOP: usize = 2;

#[derive(Clone, Copy)]
struct Limits {
    names: usize,
    folders: usize,
}

/// How deep links are looked for in protected places of a workspace and in what links lead to there, and how many
/// names are looked at for each place.
const IN_PROTECTED: (usize, usize) = (4, 100_000);

/// The links at the protected names of `workspace`, those in the folders there, and those in the folders of the workspace
/// that these lead to. Programs follow them, too. What they lead to counts unless a build makes it.
pub(super) fn links_at(workspace: &Path) -> Links {
    links_below(PROTECTED.iter().map(|name| workspace.join(name)), workspace)
}

/// The same for other protected places of the workspace.
pub(super) fn links_below(places: impl Iterator<Item = PathBuf>, workspace: &Path) -> Links {
    let (depth, most) = IN_PROTECTED;
    let mut links = Links { found: Vec::new(), are_all: true };
    let mut entered = HashSet::new();
    let is_wanted = |name: &OsStr| !PASSED_OVER_EVERYWHERE.iter().any(|it| name == *it);
    for place in places {
        let mut ahead = VecDeque::from([(place, 0)]);
        let mut seen = 0;
        while let Some((path, level)) = ahead.pop_front() {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let mut folder = Some(path.clone()).filter(|_| metadata.is_dir() && level < depth);
            if metadata.is_symlink() {
                let end = way(&path).ends.pop().unwrap_or_default();
                let below = end.strip_prefix(workspace).map(Path::to_owned);
                let mut names = below.iter().flat_map(|below| below.iter());
                // A place that is itself a link counts, wherever it leads: it has no other protection.
                if level > 0 && names.any(|name| BUILT.iter().any(|it| name == *it)) {
                    continue;
                }
                links.found.push(path);
                let is_apart = below.is_ok_and(|below| !below.as_os_str().is_empty());
                folder = Some(end).filter(|it| is_apart && it.is_dir());
            }
            let Some(folder) = folder.filter(|it| entered.insert(it.clone())) else { continue };
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| is_wanted(&entry.file_name())) {
                seen += 1;
                if seen > most {
                    links.are_all = false;
                    ahead.clear();
                    break;
                }
                // Only links and folders are of interest; a folder may hold thousands of files.
                if entry.file_type().is_ok_and(|kind| kind.is_symlink() || kind.is_dir()) {
                    ahead.push_back((entry.path(), level + 1));
                }
            }
        }
    }
    links
}

/// The links in some places.
pub(super) struct Links {
    pub found: Vec<PathBuf>,
    /// False if there are more names than Posse looks at.
    pub are_all: bool,
}

/// The links in `home` that lead to what programs obey: those with hidden names at its top, and all in
/// folders with settings, the shallow ones first. It also looks into folders that such links lead to, if they
/// are in the checkout of `workspace`.
pub(super) fn links_of(home: &Path, workspace: &Path) -> Links {
    let checkout = workspace.ancestors().find(|it| has_git(it) && !home.starts_with(it));
    let checkout = checkout.unwrap_or(workspace);
    let (seen, entered) = (HashSet::new(), HashSet::new());
    let mut search = Search { home, workspace, checkout, seen, entered, found: Vec::new() };
    let mut are_all = search.top();
    for (name, depth) in THAT_MATTER {
        are_all &= search.below(home.join(name), depth, WHERE_IT_MATTERS);
    }
    for (name, depth) in OTHERS {
        search.below(home.join(name), depth, ELSEWHERE);
    }
    for name in PROGRAMS {
        are_all &= search.programs(&home.join(name));
    }
    for link in search.found.clone() {
        if link.parent() == Some(home) && search.enters(&link) {
            search.below(link, LINKED_AT_TOP, ELSEWHERE);
        }
    }
    Links { found: search.found, are_all }
}

struct Search<'h> {
    home: &'h Path,
    workspace: &'h Path,
    /// The checkout that the workspace is in, or the workspace.
    checkout: &'h Path,
    /// Folders that were looked at.
    seen: HashSet<PathBuf>,
    /// Folders that links led to, by their real paths.
    entered: HashSet<PathBuf>,
    found: Vec<PathBuf>,
}

impl Search<'_> {
    /// Looks at the home folder itself. False if there is more than was looked at.
    fn top(&mut self) -> bool {
        let mut entries = std::fs::read_dir(self.home).into_iter().flatten().flatten();
        for entry in entries.by_ref().take(WHERE_IT_MATTERS.names) {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_hidden && entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.found.push(entry.path());
            }
        }
        entries.next().is_none()
    }

    /// Looks at this folder, and those below it. False if there is more than was looked at.
    fn below(&mut self, folder: PathBuf, depth: usize, limits: Limits) -> bool {
        let mut folders = VecDeque::from([(folder, depth)]);
        let (mut looked_at, mut are_all) = (0, true);
        while let Some((folder, levels)) = folders.pop_front() {
            if !self.seen.insert(folder.clone()) {
                continue;
            }
            looked_at += 1;
            if looked_at > limits.folders {
                return false;
            }
            let mut entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.by_ref().take(limits.names) {
                let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
                if kind.is_symlink() {
                    self.found.push(path.clone());
                }
                let is_entered = levels > 0
                    && !self.passes_over(&path)
                    && (kind.is_dir() || kind.is_symlink() && self.enters(&path));
                if is_entered {
                    folders.push_back((path, levels - 1));
                }
            }
            are_all &= entries.next().is_none();
        }
        are_all
    }

    /// Looks at a folder of programs. False if there is more than was looked at.
    fn programs(&mut self, folder: &Path) -> bool {
        let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.by_ref().take(WHERE_IT_MATTERS.names) {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link && self.is_script(&entry.path()) {
                self.found.push(entry.path());
            }
        }
        entries.next().is_none()
    }

    /// Returns true for a link to a script in the workspace that no build makes.
    fn is_script(&self, link: &Path) -> bool {
        let Ok(real) = link.canonicalize() else { return false };
        let Ok(below) = real.strip_prefix(self.workspace) else { return false };
        let is_built = below.iter().any(|name| BUILT.iter().any(|it| name == *it));
        !is_built && text_at(&real, 2).is_some_and(|start| start == b"#!")
    }

    /// Returns true for a link to a folder of the checkout where it was not looked yet. The folder is not the
    /// workspace, nor around it: who works in such a folder makes and changes links there.
    fn enters(&mut self, link: &Path) -> bool {
        let Ok(real) = link.canonicalize() else { return false };
        let is_apart = real.starts_with(self.checkout) && !self.workspace.starts_with(&real);
        is_apart && real.is_dir() && self.entered.insert(real)
    }

    fn passes_over(&self, folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default();
        PASSED_OVER_EVERYWHERE.iter().any(|it| name == *it)
            || folder
                .strip_prefix(self.home)
                .is_ok_and(|below| PASSED_OVER.iter().any(|it| below == Path::new(it)))
    }
}

/// Links on the way to a place, at most: as many as the kernel follows. They may go round in circles.
const LINKS: usize = 40;

/// The way to a place, step by step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PathTrace {
    /// Where it leads, there or not; last, after what is missing on a way that goes back from there: made as a
    /// link, it would lead to what is beside something else.
    pub ends: Vec<PathBuf>,
    /// The links that it leads through, each where it really is.
    pub links: Vec<PathBuf>,
    /// The folders that it leaves again by `..`. A link in the place of one would lead it elsewhere.
    pub left: Vec<PathBuf>,
}

/// The way to the absolute `path`.
pub(super) fn way(path: &Path) -> PathTrace {
    let mut ahead: Vec<OsString> = path.iter().rev().map(OsStr::to_owned).collect();
    let mut way = PathTrace::default();
    let mut real = PathBuf::new();
    let mut followed = 0;
    loop {
        let Some(name) = ahead.pop() else {
            way.ends.push(real);
            break;
        };
        if name == ".." {
            let left = if is_missing(&real) { &mut way.ends } else { &mut way.left };
            left.push(real.clone());
            real.pop();
            continue;
        }
        if name == "." {
            continue;
        }
        let next = real.join(&name);
        match next.read_link() {
            Ok(target) => {
                way.links.push(next);
                followed += 1;
                if followed > LINKS {
                    break;
                }
                ahead.extend(target.iter().rev().map(OsStr::to_owned));
            }
            Err(_) => real = next,
        }
    }
    for paths in [&mut way.links, &mut way.left] {
        paths.sort();
        paths.dedup();
    }
    way
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_way_has_every_link_and_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("dot/v1")).unwrap();
        symlink("v1", at("dot/cur")).unwrap();
        symlink("dot/cur/rc", at("rc")).unwrap();
        symlink("rc.linux", at("dot/v1/rc")).unwrap();
        let expected = vec![at("dot/cur"), at("dot/v1/rc"), at("rc")];
        let ends = vec![at("dot/v1/rc.linux")];
        assert_eq!(way(&at("rc")), PathTrace { ends, links: expected, left: vec![] });
        symlink("no/../dot/x", at("back")).unwrap();
        assert_eq!(way(&at("back")).ends, [at("no"), at("dot/x")]);
        // A placeholder is there while a command runs, and changes nothing.
        std::fs::create_dir(at("no")).unwrap();
        std::fs::set_permissions(at("no"), PermissionsExt::from_mode(0o1555)).unwrap();
        assert_eq!(way(&at("back")).ends, [at("no"), at("dot/x")]);
        symlink("dot/v1/../x", at("up")).unwrap();
        let (ends, links, left) = (vec![at("dot/x")], vec![at("up")], vec![at("dot/v1")]);
        assert_eq!(way(&at("up")), PathTrace { ends, links, left });
        symlink("round", at("round")).unwrap();
        assert_eq!(
            way(&at("round")),
            PathTrace { links: vec![at("round")], ..PathTrace::default() }
        );
    }

    #[test]
    fn links_are_found_however_much_is_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        for name in [".claude/todos", ".claude/agents", ".config/a", ".config/posse/skills/x"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        for number in 0..3_200 {
            std::fs::write(home.join(format!(".config/a/{number}")), "").unwrap();
        }
        let links = [".config/posse/skills/x/SKILL.md", ".claude/agents/a.md", ".claude/a"];
        for link in links {
            symlink("nowhere", home.join(link)).unwrap();
        }
        let found = links_of(home, Path::new("/nowhere"));
        assert!(found.are_all);
        assert_eq!(found.found, links.map(|link| home.join(link)));
    }

    #[test]
    fn links_to_scripts_are_found_in_folders_of_programs_but_none_to_what_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("work"));
        for name in ["home/bin", "home/.local/bin", "home/.bashrc.d", "work/bin", "work/target"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, text) in [("bin/x", "#!/bin/sh"), ("bin/elf", "\x7fELF"), ("target/x", "#!")] {
            std::fs::write(work.join(name), text).unwrap();
        }
        let links = [
            ("bin/x", "bin/x", true),
            ("bin/x", ".local/bin/y", true),
            ("rc", ".bashrc.d/rc", true),
            ("bin/elf", "bin/elf", false),
            ("target/x", "bin/built", false),
            ("nowhere", "bin/nowhere", false),
        ];
        for (target, link, _) in links {
            symlink(work.join(target), home.join(link)).unwrap();
        }
        let found: HashSet<PathBuf> = links_of(&home, &work).found.into_iter().collect();
        let expected = links.iter().filter(|(.., is_found)| *is_found);
        let expected: HashSet<PathBuf> = expected.map(|(_, link, _)| home.join(link)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn linked_folders_are_entered_once_and_only_where_an_agent_does_not_work() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("dot/work"));
        for name in ["home/.vim", "dot/.git", "dot/work/plugin", "dot/beside", "else"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("dot/.git/HEAD"), "").unwrap();
        let links = [
            ("dot/work/plugin", "home/.vim/plugin"),
            ("dot/beside", "home/.vim/beside"),
            ("dot/work", "home/.vim/work"),
            ("dot", "home/.vim/dot"),
            ("else", "home/.vim/else"),
            ("dot/work/plugin", "dot/work/plugin/round"),
            ("nowhere", "dot/beside/x"),
            ("nowhere", "dot/work/x"),
            ("nowhere", "else/x"),
        ];
        for (target, link) in links {
            symlink(root.join(target), root.join(link)).unwrap();
        }
        let mut found = links_of(&home, &work).found;
        found.sort();
        let names = ["beside", "beside/x", "dot", "else", "plugin", "plugin/round", "work"];
        assert_eq!(found, names.map(|name| home.join(".vim").join(name)));
    }
}
