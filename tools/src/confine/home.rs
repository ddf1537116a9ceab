//! What commands see of a home folder: the user's programs, the files of these programs, and settings
//! without secrets. Everything else is hidden, because a list of all secrets is impossible.

mod names;

use super::command_sandbox::CommandSandbox;
use super::git::{SETTINGS_BYTES, text_at};
use super::secrets;
use crate::linux::real_path;
use names::SHOWN;
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Folders of the system. A home folder that contains one of them does not belong to a person.
const OF_THE_MACHINE: [&str; 7] = ["/usr", "/bin", "/lib", "/etc", "/nix", "/var", "/opt"];

/// Names of folders with programs whose other files are beside that folder.
const PROGRAMS: [&str; 3] = ["bin", "sbin", "shims"];

/// Names of folders with these other files.
const BESIDE_PROGRAMS: [&str; 9] =
    ["lib", "lib64", "libexec", "share", "pkg", "versions", "include", "jmods", "conf"];

/// Folders that hold more than the files of the programs in them.
const GENERAL: [&str; 4] = [".local", ".local/share", ".config", ".cache"];

/// Folders in a home folder in which links are followed.
const LINKING: [&str; 8] = [
    ".config",
    ".config/git",
    ".cache",
    ".local",
    ".local/bin",
    ".local/share",
    ".local/state",
    ".local/state/nix/profiles",
];

/// The maximum number of names to resolve in one path: links may form a loop.
const STEPS: usize = 400;

/// The maximum number of programs in a folder to check.
const PROGRAMS_CONSIDERED: usize = 2_000;

/// A path in a home folder that commands see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HomePath {
    /// The path as it is named.
    pub path: PathBuf,
    /// The real path. It differs if there is a link.
    pub real: PathBuf,
}

/// The home folders of which commands see little. A home folder that a command may change is fully
/// visible, and so is one that does not belong to a person.
pub(super) fn hidden(sandbox: &CommandSandbox) -> Vec<&PathBuf> {
    let is_persons = |home: &Path| !OF_THE_MACHINE.iter().any(|it| Path::new(it).starts_with(home));
    sandbox.homes.iter().filter(|home| !sandbox.gives(home) && is_persons(home)).collect()
}

/// The paths in these home folders that commands see.
pub(super) fn shown(sandbox: &CommandSandbox) -> Vec<HomePath> {
    let homes = hidden(sandbox);
    if homes.is_empty() {
        return Vec::new();
    }
    let named = homes.iter().flat_map(|home| SHOWN.iter().map(|name| home.join(name)));
    let mut paths: Vec<PathBuf> = named.chain(sandbox.toolchains.iter().cloned()).collect();
    for folder in sandbox.programs.iter().filter_map(|folder| led_to(folder, sandbox)) {
        paths.push(with_what_belongs_to_it(&folder, sandbox));
        paths.extend(linked_from(&folder, sandbox));
        paths.push(folder);
    }
    paths.extend(homes.iter().flat_map(|home| named_by_git(home)));
    let mut secret = secrets::hidden(sandbox);
    // The home folder of root may be inside a folder with those of other people.
    secret.retain(|it| !homes.iter().any(|home| home.starts_with(it)));
    let is_secret = |place: &HomePath| secret.iter().any(|it| place.real.starts_with(it));
    let found = paths.into_iter().filter_map(|path| place(path, &homes, sandbox));
    let mut places: Vec<HomePath> = found.filter(|place| !is_secret(place)).collect();
    // The home folder may be named through a link. Only the user can show a path that holds secrets.
    let said = sandbox.shown.iter().flat_map(|path| [Some(path.clone()), led_to(path, sandbox)]);
    places.extend(said.flatten().filter_map(|path| place(path, &homes, sandbox)));
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns `path` if it exists in one of `homes` and leads only to a part of it.
fn place(path: PathBuf, homes: &[&PathBuf], sandbox: &CommandSandbox) -> Option<HomePath> {
    let is_part = |path: &Path| !homes.iter().any(|home| home.starts_with(path));
    let is_inside = homes.iter().any(|home| path.starts_with(home));
    let real =
        led_to(&path, sandbox).filter(|real| is_inside && is_part(real) && is_part(&path))?;
    Some(HomePath { path, real })
}

/// Resolves the absolute `path`, link by link. Returns `None` if the way goes through a folder that a command
/// may change: a link there could lead anywhere, and that folder is visible anyway. In home folders it follows
/// only links where people and installers put them. Elsewhere, an earlier command may have left the link.
fn led_to(path: &Path, sandbox: &CommandSandbox) -> Option<PathBuf> {
    let may_hold_links = |folder: &Path| {
        let mut homes = sandbox.homes.iter().filter(|home| folder.starts_with(home));
        homes.all(|home| {
            let below = folder.strip_prefix(home).unwrap_or(folder);
            below.as_os_str().is_empty() || LINKING.iter().any(|name| below == Path::new(name))
        }) || sandbox.programs.iter().any(|programs| programs == folder)
    };
    let mut ahead: Vec<OsString> = path.iter().rev().map(OsStr::to_owned).collect();
    let mut real = PathBuf::new();
    for _ in 0..STEPS {
        let Some(name) = ahead.pop() else { return real.is_absolute().then_some(real) };
        match name.to_str() {
            Some("..") => {
                real.pop();
                continue;
            }
            Some(".") => continue,
            _ => {}
        }
        let next = real.join(&name);
        if sandbox.gives(&next) {
            return None;
        }
        match next.symlink_metadata().ok()?.is_symlink() {
            true if !may_hold_links(&real) => return None,
            true => ahead.extend(next.read_link().ok()?.iter().rev().map(OsStr::to_owned)),
            false => real = next,
        }
    }
    None
}

/// Returns true for a path in a hidden home folder. Other paths are visible without a mount.
pub(super) fn is_hidden_otherwise(real: &Path, sandbox: &CommandSandbox) -> bool {
    hidden(sandbox).iter().any(|home| real.starts_with(home))
}

/// Returns the folder of an installation around `programs`, or just `programs`.
fn with_what_belongs_to_it(programs: &Path, sandbox: &CommandSandbox) -> PathBuf {
    let is_home = |folder: &Path| sandbox.homes.iter().any(|home| home == folder);
    let is_installed = |around: &Path| {
        let is_general =
            |home: &PathBuf| around == home || GENERAL.iter().any(|name| home.join(name) == around);
        PROGRAMS.iter().any(|name| programs.ends_with(name))
            && BESIDE_PROGRAMS.iter().any(|name| around.join(name).is_dir())
            && !sandbox.homes.iter().any(is_general)
            && !sandbox.workspace.starts_with(around)
            && !around.ancestors().take_while(|it| !is_home(it)).any(|it| it.join(".git").exists())
            && !secrets::in_homes(&sandbox.homes).any(|secret| around.starts_with(secret))
    };
    let around = programs.parent().filter(|around| is_installed(around));
    around.unwrap_or(programs).to_owned()
}

/// The targets of links in a folder of programs, because installers often link programs there.
fn linked_from(programs: &Path, sandbox: &CommandSandbox) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(programs).into_iter().flatten().flatten();
    let links = entries
        .take(PROGRAMS_CONSIDERED)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let homes = hidden(sandbox);
    // The system's own links are many, and their targets are visible anyway.
    let leads_home = |link: &Path| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let target = rustix::fs::open(link, flags, Mode::empty()).ok();
        let real = target.and_then(|target| real_path(target).ok());
        real.is_some_and(|real| homes.iter().any(|home| real.starts_with(home)))
    };
    let links = links.map(|link| link.path()).filter(|link| leads_home(link));
    let targets = links.filter_map(|link| led_to(&link, sandbox));
    let mut found: Vec<PathBuf> = targets
        .filter(|target| target.is_file() && !target.starts_with(programs))
        .map(|target| {
            let folder = target.parent().map(|folder| with_what_belongs_to_it(folder, sandbox));
            folder.filter(|folder| Some(folder.as_path()) != target.parent()).unwrap_or(target)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Files and folders that the user's git settings name. Git ignores those that it does not find.
fn named_by_git(home: &Path) -> Vec<PathBuf> {
    const SETTINGS: [&str; 2] = [".gitconfig", ".config/git/config"];
    const KEYS: [&str; 7] = [
        "path",
        "hookspath",
        "excludesfile",
        "attributesfile",
        "template",
        "templatedir",
        "allowedsignersfile",
    ];
    const MOST: usize = 20;
    let mut files: Vec<PathBuf> = SETTINGS.map(|name| home.join(name)).to_vec();
    let mut named = Vec::new();
    let mut read = 0;
    while let Some(file) = files.pop().filter(|_| read < MOST) {
        read += 1;
        let text = text_at(&file, SETTINGS_BYTES).and_then(|text| String::from_utf8(text).ok());
        let Some(text) = text else { continue };
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            // A section may be on the same line.
            let key = key.rsplit(']').next().unwrap_or_default().trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            let path = match (value.strip_prefix("~/"), file.parent()) {
                (Some(below), _) => home.join(below),
                (None, Some(around)) if key == "path" => around.join(value),
                _ => PathBuf::from(value),
            };
            if KEYS.contains(&key.as_str()) && path.is_absolute() {
                files.extend((key == "path").then(|| path.clone()));
                named.push(path);
            }
        }
    }
    named
}

/// The first path in a home folder that `text`, the output of a command, mentions and that the command
/// does not see. It is written as people write it: `~/data`.
pub(crate) fn missed(text: &str, sandbox: &CommandSandbox) -> Option<String> {
    let places = shown(sandbox);
    let given = [&sandbox.workspace].into_iter().chain(&sandbox.writable).chain(&sandbox.readable);
    let seen: Vec<&PathBuf> =
        given.chain(places.iter().flat_map(|place| [&place.path, &place.real])).collect();
    // A path that would be shown if it existed is not hidden.
    let usual: Vec<PathBuf> =
        hidden(sandbox).iter().flat_map(|home| SHOWN.iter().map(|name| home.join(name))).collect();
    let seen: Vec<&PathBuf> = seen.into_iter().chain(&usual).collect();
    let is_seen = |path: &Path| seen.iter().any(|it| path.starts_with(it) || it.starts_with(path));
    let is_secret = |path: &Path| secrets::in_homes(&sandbox.homes).any(|it| path.starts_with(it));
    let ends = |character: char| character.is_whitespace() || "'\"`:;,()[]<>".contains(character);
    for home in hidden(sandbox) {
        let prefix = format!("{}/", home.display());
        for (at, _) in text.match_indices(&prefix) {
            let rest = text.get(at + prefix.len()..).unwrap_or_default();
            let name = rest.trim_start_matches('/').split(ends).next().unwrap_or_default();
            let path = home.join(name);
            // Posse's own message contains the name, so only a plain name is allowed.
            let first = name.split('/').next().unwrap_or_default();
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            let is_name = first.bytes().all(is_plain) && (1..=60).contains(&first.len());
            if is_name && first != ".." && !is_seen(&path) && !is_secret(&path) {
                return Some(format!("~/{first}"));
            }
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Backend;
    use super::super::command_sandbox::Link;
    use super::*;
    use posse_protocol::Profile;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn sandbox(home: &Path, workspace: &str) -> CommandSandbox {
        CommandSandbox {
            backend: Backend::Bubblewrap,
            bubblewrap: PathBuf::new(),
            lends: false,
            must_lend: false,
            profile: Profile::WorkspaceWrite,
            link: Link::None,
            workspace: home.join(workspace),
            identity: None,
            is_own: false,
            state: None,
            repository: None,
            writable: Vec::new(),
            temporary: None,
            readable: Vec::new(),
            hidden: Vec::new(),
            fixed: Vec::new(),
            homes: vec![home.to_owned()],
            programs: Vec::new(),
            toolchains: Vec::new(),
            shown: Vec::new(),
        }
    }

    fn home_with(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for file in files {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        (folder, home)
    }

    fn names(sandbox: &CommandSandbox, home: &Path) -> Vec<String> {
        let below = |place: HomePath| place.path.strip_prefix(home).unwrap().display().to_string();
        shown(sandbox).into_iter().map(below).collect()
    }

    #[test]
    fn what_programs_need_is_shown_and_the_rest_is_not() {
        let (_folder, home) = home_with(&[
            "w/a",
            "other/.env",
            "notes.txt",
            ".cargo/bin/cargo",
            "opt/jdk/bin/java",
            "opt/jdk/lib/rt",
            "opt/secret.txt",
            "work/bin/tool",
            "work/plan.txt",
            ".docker/bin/docker",
            ".docker/lib/x",
            "apps/black/bin/black",
            "apps/black/lib/x",
            "one/program",
            "one/other",
        ]);
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        symlink(home.join("apps/black/bin/black"), home.join(".local/bin/black")).unwrap();
        symlink(home.join("one/program"), home.join(".local/bin/program")).unwrap();
        symlink(&home, home.join(".local/bin/everything")).unwrap();
        let mut sandbox = sandbox(&home, "w");
        assert_eq!(names(&sandbox, &home), [".cargo", ".local/bin"]);
        let folders = ["opt/jdk/bin", "work/bin", ".docker/bin", ".local/bin"];
        sandbox.programs = folders.map(|it| home.join(it)).to_vec();
        sandbox.shown = vec![home.join("notes.txt"), home.clone(), home.join("absent")];
        let expected = [
            ".cargo",
            ".local/bin",
            "apps/black",
            "notes.txt",
            "one/program",
            "opt/jdk",
            "opt/jdk/bin",
            "work/bin",
        ];
        assert_eq!(names(&sandbox, &home), expected);
    }

    #[test]
    fn links_are_followed_but_not_to_the_whole_folder() {
        let (_folder, home) = home_with(&["dotfiles/gitconfig", "w/a"]);
        symlink(home.join("dotfiles/gitconfig"), home.join(".gitconfig")).unwrap();
        symlink(&home, home.join(".cargo")).unwrap();
        let places = shown(&sandbox(&home, "w"));
        let (path, real) = (home.join(".gitconfig"), home.join("dotfiles/gitconfig"));
        assert_eq!(places, [HomePath { path, real }]);
    }

    #[test]
    fn nothing_is_shown_that_a_command_could_have_led_there() {
        let (_folder, home) = home_with(&["w/a", "private/x", ".ssh/id", "bare/y"]);
        let mut sandbox = sandbox(&home, "w");
        // As an agent could leave them in its workspace.
        for name in ["venv", "bin", "env"] {
            symlink(home.join("private"), home.join("w").join(name)).unwrap();
        }
        symlink(home.join(".ssh/id"), home.join("w/key")).unwrap();
        // As the user has them: links that lead through the workspace, or to secrets.
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        symlink(home.join("w/key"), home.join(".local/bin/key")).unwrap();
        symlink(home.join("w/venv"), home.join(".rustup")).unwrap();
        symlink(home.join(".ssh"), home.join(".gitconfig")).unwrap();
        // Links that earlier commands left in folders where they worked.
        fs::create_dir_all(home.join("go")).unwrap();
        symlink(home.join("private"), home.join("go/pkg")).unwrap();
        sandbox.toolchains =
            vec![home.join("w/venv"), "env".into(), "".into(), home.join(".ssh/id")];
        sandbox.programs = vec![home.join("w/bin"), "bin".into(), home.join(".local/bin")];
        assert_eq!(names(&sandbox, &home), [".local/bin"]);
        sandbox.shown = vec![home.join("w/venv"), home.join("bare")];
        assert_eq!(names(&sandbox, &home), [".local/bin", "bare"]);
    }

    #[test]
    fn what_lies_on_another_disk_is_linked_to() {
        let (_folder, home) = home_with(&["w/a"]);
        let elsewhere = tempfile::tempdir().unwrap();
        let real = elsewhere.path().canonicalize().unwrap();
        symlink(&real, home.join(".cargo")).unwrap();
        let path = home.join(".cargo");
        let sandbox = sandbox(&home, "w");
        assert_eq!(shown(&sandbox), [HomePath { path, real: real.clone() }]);
        assert!(!is_hidden_otherwise(&real, &sandbox));
    }

    #[test]
    fn what_the_settings_of_git_name_is_shown() {
        let (_folder, home) = home_with(&["w/a", "dots/more", "hooks/pre-commit", "ign", "x"]);
        let text = "[include] path = dots/more\n[core]\n\thooksPath = ~/hooks\n\tpager = ~/x\n";
        fs::write(home.join(".gitconfig"), text).unwrap();
        let more = format!("[core]\n\texcludesFile = \"{}/ign\"\n", home.display());
        fs::write(home.join("dots/more"), more).unwrap();
        let expected = [".gitconfig", "dots/more", "hooks", "ign"];
        assert_eq!(names(&sandbox(&home, "w"), &home), expected);
    }

    #[test]
    fn a_home_folder_that_can_be_changed_is_not_hidden() {
        let (_folder, home) = home_with(&["w/a"]);
        assert_eq!(hidden(&sandbox(&home, "w")).len(), 1);
        assert_eq!(hidden(&sandbox(&home, "")).len(), 0);
        assert_eq!(hidden(&sandbox(Path::new("/usr"), "w")).len(), 0);
    }

    #[test]
    fn what_is_missed_is_named_by_its_first_part() {
        let (_folder, home) = home_with(&["w/a", ".cargo/x"]);
        let sandbox = sandbox(&home, "w");
        let missed = |text: &str| missed(&text.replace('~', home.to_str().unwrap()), &sandbox);
        assert_eq!(missed("open '~/data/x y.csv': No such file").as_deref(), Some("~/data"));
        assert_eq!(missed("~/a\u{1b}[2Jb/c ~/../x"), None);
        assert_eq!(missed("~/w/b ~/.cargo/y ~/.m2 ~/go/pkg/a ~/.ssh/id ~/ ~ /elsewhere"), None);
    }
}
