//! Reads guidance files: the user's, those of a project, and what they import.

use super::{GuidanceSources, NAMES, imports};
use crate::config::Guidance;
use crate::files::{self, up_to_root};
use crate::redact::Redactor;
use posse_protocol::{Extra, GuidanceFile, hex};
use posse_tools::{PathRules, Reader, TextFile, Unread, Workspace, why_denied};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of one file, and of all together, that an agent gets.
const FILE_BYTES: usize = 32 << 10;
const ALL_BYTES: usize = 64 << 10;
/// The largest file that is read, and the most files.
const READ_BYTES: u64 = 1 << 20;
const FILES: usize = 100;
/// How many imports may lead from one to the next.
const DEEPEST: usize = 5;

/// What a search may use.
pub(crate) struct Limits {
    pub(crate) which: Guidance,
    pub(crate) rules: Option<Arc<dyn PathRules>>,
    pub(crate) redactor: Redactor,
}

/// Returns the guidance files for a run in `folder`: the user's, then those of the project from the
/// top of its checkout down to `folder`, each followed by its imports.
pub(crate) fn read(sources: &GuidanceSources, folder: &Path, limits: Limits) -> Vec<GuidanceFile> {
    let which = limits.which;
    if which == Guidance::Off {
        return Vec::new();
    }
    let folders = if which == Guidance::All { up_to_root(folder) } else { Vec::new() };
    let mut search = Search::below(folders.last().map(PathBuf::as_path), &sources.home, limits);
    for file in &sources.user_files {
        search.add_own(file, 0);
    }
    for folder in folders.iter().rev() {
        search.add_folder(folder);
    }
    search.end()
}

/// A search for guidance files.
pub(super) struct Search {
    /// Reads files of the project; `None` if there is none, or its files are not wanted.
    project: Option<Reader>,
    home: Option<PathBuf>,
    limits: Limits,
    /// The real paths and the hashes of files that were found: each file counts once.
    pub(super) known: HashSet<PathBuf>,
    pub(super) hashes: HashSet<String>,
    found: Vec<GuidanceFile>,
}

impl Search {
    /// Searches in the project whose top is `top`.
    pub(super) fn below(top: Option<&Path>, home: &Option<PathBuf>, limits: Limits) -> Self {
        let top = top.and_then(|top| Workspace::open(top).ok());
        let project = top.map(|top| Reader::new(&top, limits.rules.clone()));
        let (known, hashes) = (HashSet::new(), HashSet::new());
        Search { project, home: home.clone(), limits, known, hashes, found: Vec::new() }
    }

    /// Adds the guidance files of `folder`, which is in the project.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        for name in NAMES {
            let path = folder.join(name);
            match self.add_of_project(&path, 0) {
                Ok(()) | Err(Unread::Missing) => {}
                // Its author expects it to be read, so the run says that it was not.
                Err(why) => self.note_unread(path, &why),
            }
        }
    }

    /// Adds the file at `path`, an absolute path in the project, and what it imports.
    fn add_of_project(&mut self, path: &Path, depth: usize) -> Result<(), Unread> {
        let reader = self.project.as_ref().ok_or(Unread::Outside)?;
        let below = path.strip_prefix(reader.folder()).map_err(|_| Unread::Outside)?;
        let file = reader.read(below, READ_BYTES)?;
        self.take(file, false, depth);
        Ok(())
    }

    /// Adds the file of the user at `path`, and what it imports. It may be anywhere.
    fn add_own(&mut self, path: &Path, depth: usize) {
        let Err(why) = self.read_own(path, depth) else { return };
        if why != Unread::Missing {
            self.note_unread(path.to_owned(), &why);
        }
    }

    fn read_own(&mut self, path: &Path, depth: usize) -> Result<(), Unread> {
        let real = path.canonicalize().map_err(|_| Unread::Missing)?;
        if real.is_dir() {
            return Err(Unread::Missing);
        }
        // An agent may have written a file of the project, whoever imports it.
        if self.project.as_ref().is_some_and(|project| real.starts_with(project.folder())) {
            return self.add_of_project(&real, depth);
        }
        let rules = self.limits.rules.as_deref();
        let denied = |path: &Path| why_denied(rules?, path);
        if let Some(why) = denied(path).or_else(|| denied(&real)) {
            return Err(Unread::Refused(why));
        }
        let text = files::read(&real, READ_BYTES).map_err(Unread::Refused)?;
        let hash = hex(&Sha256::digest(&text));
        self.take(TextFile { path: real, text, hash }, true, depth);
        Ok(())
    }

    /// Adds `file` if it is new, and then its imports.
    fn take(&mut self, file: TextFile, own: bool, depth: usize) {
        let Some(path) = file.path.to_str().map(str::to_owned) else { return };
        if file.text.trim().is_empty()
            || self.found.len() >= FILES
            || !self.known.insert(file.path.clone())
            || !self.hashes.insert(file.hash.clone())
        {
            return;
        }
        let mut text = self.limits.redactor.text(&file.text).into_owned();
        let note = cut(&mut text, FILE_BYTES);
        let imported = imports::of(&text);
        let at = self.found.len();
        let (hash, extra) = (file.hash, Extra::default());
        self.found.push(GuidanceFile { path, hash, text, own, note, extra });
        for import in imported {
            let Err(why) = self.import(&import, &file.path, own, depth + 1) else { continue };
            let note = match why {
                Unread::Missing => continue,
                why => format!("{} was not imported: {}", shown(&import), told(&why)),
            };
            // What was found does not go away, so the file is still at this place.
            if let Some(importing) = self.found.get_mut(at) {
                add_note(importing, &note);
            }
        }
    }

    /// Adds what the file at `from` imports as `import`.
    fn import(&mut self, import: &str, from: &Path, own: bool, depth: usize) -> Result<(), Unread> {
        match self.import_exactly(import, from, own, depth) {
            Err(why) => match imports::shorter(import) {
                Some(shorter) => self.import_exactly(shorter, from, own, depth),
                None => Err(why),
            },
            done => done,
        }
    }

    fn import_exactly(
        &mut self,
        import: &str,
        from: &Path,
        own: bool,
        depth: usize,
    ) -> Result<(), Unread> {
        let folder = from.parent().unwrap_or(from);
        let path = match (import.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            (Some(_), None) => return Err(Unread::Missing),
            (None, _) => folder.join(import),
        };
        if depth > DEEPEST {
            // Missing files are no imports, at any depth.
            let exists = path.is_file();
            let why = format!("imports lead at most {DEEPEST} files deep");
            return Err(if exists { Unread::Refused(why) } else { Unread::Missing });
        }
        match own {
            true => self.read_own(&path, depth),
            false => self.add_of_project(&path, depth),
        }
    }

    /// Notes that the file at `path` was not read. The agent gets nothing of it.
    fn note_unread(&mut self, path: PathBuf, why: &Unread) {
        let (Some(path), note) = (path.to_str(), told(why)) else { return };
        let (path, hash, text) = (path.to_owned(), String::new(), String::new());
        let extra = Extra::default();
        self.found.push(GuidanceFile { path, hash, text, own: false, note, extra });
    }

    /// Returns what was found. If it is too much together, the nearest files are kept.
    pub(super) fn end(mut self) -> Vec<GuidanceFile> {
        let mut left = ALL_BYTES;
        for file in self.found.iter_mut().rev() {
            let note = cut(&mut file.text, left);
            add_note(file, &note);
            left -= file.text.len();
        }
        self.found
    }
}

fn told(why: &Unread) -> String {
    match why {
        Unread::Missing => "it is not there".to_owned(),
        Unread::Outside => "it leads out of the project".to_owned(),
        Unread::Refused(why) => why.clone(),
    }
}

/// Cuts `text` to at most `most` bytes, and says so.
fn cut(text: &mut String, most: usize) -> String {
    if text.len() <= most {
        return String::new();
    }
    let all = text.len();
    text.truncate(text.floor_char_boundary(most));
    match text.is_empty() {
        true => "left out: there is too much guidance".to_owned(),
        false => format!("cut: these are the first {} of {all} bytes", text.len()),
    }
}

fn add_note(file: &mut GuidanceFile, note: &str) {
    if !file.note.is_empty() && !note.is_empty() {
        file.note.push_str("; ");
    }
    file.note.push_str(note);
}

fn shown(import: &str) -> String {
    let plain: String = import.chars().filter(|char| !char.is_control()).take(80).collect();
    format!("@{plain}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Place(tempfile::tempdir().unwrap());
            place.put("repo/.git/HEAD", "ref: refs/heads/main");
            place
        }

        fn root(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap()
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self, folder: &str, which: Guidance) -> Vec<GuidanceFile> {
            let sources = GuidanceSources {
                user_files: vec![self.root().join("home/CLAUDE.md"), self.root().join("none.md")],
                home: Some(self.root().join("home")),
                projects: true,
                ..GuidanceSources::default()
            };
            let limits = Limits { which, rules: None, redactor: Redactor::default() };
            read(&sources, &self.root().join(folder), limits)
        }

        /// The files by path, each with the beginning of its text.
        fn told(&self, folder: &str) -> Vec<(String, String)> {
            let name = |path: &str| {
                let below = Path::new(path).strip_prefix(self.root()).unwrap();
                below.display().to_string()
            };
            let files = self.read(folder, Guidance::All);
            files.iter().map(|file| (name(&file.path), file.text.clone())).collect()
        }
    }

    fn check(found: &[(String, String)], expected: &[(&str, &str)]) {
        let found: Vec<(&str, &str)> =
            found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_user_s_come_first_and_then_the_project_s_from_the_top_down() {
        let place = Place::new();
        place.put("home/CLAUDE.md", "mine");
        place.put("CLAUDE.md", "above the repository");
        place.put("repo/AGENTS.md", "top");
        place.put("repo/CLAUDE.md", "claude");
        place.put("repo/.claude/CLAUDE.md", "hidden");
        place.put("repo/a/CLAUDE.local.md", "local");
        place.put("repo/a/b/AGENTS.md", "below");
        check(
            &place.told("repo/a"),
            &[
                ("home/CLAUDE.md", "mine"),
                ("repo/AGENTS.md", "top"),
                ("repo/CLAUDE.md", "claude"),
                ("repo/.claude/CLAUDE.md", "hidden"),
                ("repo/a/CLAUDE.local.md", "local"),
            ],
        );
        assert_eq!(place.read("repo/a", Guidance::User).len(), 1);
        assert!(place.read("repo/a", Guidance::Off).is_empty());
    }

    #[test]
    fn a_file_counts_once_whatever_leads_to_it() {
        let place = Place::new();
        place.put("repo/AGENTS.md", "one @CLAUDE.md");
        place.put("repo/CLAUDE.md", "@AGENTS.md");
        place.put("repo/.claude/CLAUDE.md", "one @CLAUDE.md");
        symlink("AGENTS.md", place.root().join("repo/CLAUDE.local.md")).unwrap();
        check(
            &place.told("repo"),
            &[("repo/AGENTS.md", "one @CLAUDE.md"), ("repo/CLAUDE.md", "@AGENTS.md")],
        );
    }

    #[test]
    fn imports_stay_in_the_project_but_for_the_user_s_own_files() {
        let place = Place::new();
        place.put("secret.md", "secret");
        place.put("home/CLAUDE.md", "@~/more.md @../repo/evil.md");
        place.put("home/more.md", "more @../secret.md");
        place.put("repo/evil.md", "evil @../secret2.md @~/key");
        place.put("home/key", "key");
        place.put("secret2.md", "secret2");
        place.put("repo/AGENTS.md", "@docs/x.md, @link @/etc/passwd @nobody");
        place.put("repo/docs/x.md", "x @../y.md.");
        place.put("repo/y.md", "y");
        symlink(place.root().join("secret2.md"), place.root().join("repo/link")).unwrap();
        let files = place.read("repo", Guidance::All);
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "@~/more.md @../repo/evil.md",
                "more @../secret.md",
                "secret",
                "evil @../secret2.md @~/key",
                "@docs/x.md, @link @/etc/passwd @nobody",
                "x @../y.md.",
                "y",
            ]
        );
        assert_eq!(
            files[4].note,
            "@link was not imported: it leads out of the project; @/etc/passwd was not imported: it \
             leads out of the project"
        );
        assert!(files[3].note.contains("@~/key") && files[3].note.contains("@../secret2.md"));
        assert_eq!(files.iter().filter(|file| file.own).count(), 3);
    }

    #[test]
    fn imports_end_and_so_do_files() {
        let place = Place::new();
        for number in 0..9 {
            place.put(&format!("repo/{number}.md"), &format!("{number} @{}.md", number + 1));
        }
        place.put("repo/CLAUDE.md", "@0.md");
        let files = place.read("repo", Guidance::All);
        assert_eq!(files.len(), 1 + DEEPEST);
        assert!(files.last().unwrap().note.contains("at most 5 files deep"), "{files:?}");
        let place = Place::new();
        place.put("repo/AGENTS.md", &"a".repeat(40 << 10));
        place.put("repo/CLAUDE.md", &"é".repeat(20 << 10));
        place.put("repo/CLAUDE.local.md", "last");
        let files = place.read("repo", Guidance::All);
        let sizes: Vec<usize> = files.iter().map(|file| file.text.len()).collect();
        assert_eq!(sizes, [(32 << 10) - 4, 32 << 10, 4]);
        assert_eq!(
            files[0].note,
            "cut: these are the first 32768 of 40960 bytes; cut: these are the first 32764 of 32768 \
             bytes"
        );
        fs::remove_file(place.root().join("repo/AGENTS.md")).unwrap();
        symlink("/etc/passwd", place.root().join("repo/AGENTS.md")).unwrap();
        let files = place.read("repo", Guidance::All);
        assert_eq!((files[0].text.as_str(), files[0].hash.as_str()), ("", ""));
        assert_eq!(files[0].note, "it leads out of the project");
    }
}
