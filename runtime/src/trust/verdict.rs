//! The trust in folders, cached until something about them changes.

use super::log::TrustLog;
use super::{Change, FilesToTrust, TrustStatus, TrustedFolders, brought};
use crate::files::Stamp;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The cache. It hashes a folder again only when its stamps have changed. It never hashes a folder without a decision.
#[derive(Default)]
pub(crate) struct Verdicts {
    known: HashMap<PathBuf, Known>,
}

struct Known {
    stamps: Vec<(PathBuf, Stamp)>,
    now: Now,
}

/// The current content of a folder.
#[derive(Clone, Default)]
struct Now {
    digest: String,
    files: BTreeMap<String, String>,
}

/// The trust in a folder and in each of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) standing: TrustStatus,
    /// What has changed since it was trusted, if that is known.
    pub(crate) changes: Vec<Change>,
    /// The hashes of its files when it was trusted; empty if they are unknown.
    trusted: BTreeMap<String, String>,
    folder: PathBuf,
}

impl Verdict {
    /// Returns the trust in the agent definition in `file`. That file alone says what the agent may do, so it stays
    /// trusted when other files change.
    pub(crate) fn of_agent(&self, file: &Path) -> TrustStatus {
        // A path that is not text was never trusted.
        let name = file.strip_prefix(&self.folder).unwrap_or(file).to_str();
        let known = name.filter(|name| self.trusted.contains_key(*name));
        self.unless(|| {
            known.is_some_and(|name| self.changes.iter().all(|change| change.path() != name))
        })
    }

    /// Returns the trust in its skills: in all together, because one may refer to another.
    pub(crate) fn of_skills(&self) -> TrustStatus {
        self.unless(|| !self.changes.iter().any(|change| kind(change.path()) == Kind::Skill))
    }

    /// Returns the trust in its settings.
    pub(crate) fn of_settings(&self) -> TrustStatus {
        self.unless(|| true)
    }

    /// Returns trusted if only agents, commands and skills have changed and `holds` is true. If settings, hooks or
    /// servers have changed or were removed, nothing is trusted, because they say what the others may do.
    fn unless(&self, holds: impl FnOnce() -> bool) -> TrustStatus {
        let is_partial = self.standing == TrustStatus::Changed && !self.changes.is_empty();
        let alone = |change: &Change| kind(change.path()) != Kind::Other;
        match is_partial && self.changes.iter().all(alone) && holds() {
            true => TrustStatus::Trusted,
            false => self.standing.clone(),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Definition,
    Skill,
    Other,
}

/// Returns the kind of the file at `path`, relative to the folder.
fn kind(path: &str) -> Kind {
    let mut names = path.split('/').skip(1);
    match names.next() {
        Some("agents" | "commands") if path.ends_with(".md") => Kind::Definition,
        Some("skills") => Kind::Skill,
        _ => Kind::Other,
    }
}

/// Returns the differences between two sets of files.
fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (path, digest) in now {
        match before.get(path) {
            None => changes.push(Change::Added(path.clone())),
            Some(known) if known != digest => changes.push(Change::Changed(path.clone())),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    changes.extend(gone.map(|path| Change::Removed(path.clone())));
    changes
}

impl Verdicts {
    /// Returns the trust of `trustees` in `folder`, a canonical path.
    pub(crate) fn verdict(&mut self, trustees: &TrustedFolders, folder: &Path) -> Verdict {
        let mut verdict = Verdict {
            standing: TrustStatus::Unknown,
            changes: Vec::new(),
            trusted: BTreeMap::new(),
            folder: folder.to_owned(),
        };
        let recorded = trustees.log.as_deref().map(|path| TrustLog::at(path).decision_of(folder));
        let recorded = match recorded.transpose() {
            Err(error) => {
                verdict.standing = TrustStatus::Unsure(error.to_string());
                return verdict;
            }
            Ok(recorded) => recorded.flatten(),
        };
        let digest = recorded.as_ref().map(|decision| &decision.digest);
        let expected: Vec<&String> = digest.into_iter().chain(trustees.once.get(folder)).collect();
        if expected.is_empty() {
            return verdict;
        }
        verdict.standing = match self.now(folder) {
            Err(why) => TrustStatus::Unsure(why),
            Ok(now) if expected.contains(&&now.digest) => TrustStatus::Trusted,
            Ok(now) => {
                verdict.trusted = recorded.map(|decision| decision.files).unwrap_or_default();
                if !verdict.trusted.is_empty() {
                    verdict.changes = changes(&verdict.trusted, &now.files);
                }
                TrustStatus::Changed
            }
        };
        verdict
    }

    fn now(&mut self, folder: &Path) -> Result<Now, String> {
        let began = SystemTime::now();
        let stamps = brought::stamps(folder)?;
        if let Some(known) = self.known.get(folder).filter(|known| known.stamps == stamps) {
            return Ok(known.now.clone());
        }
        let now = FilesToTrust::by(folder)?
            .map(|brought| Now { digest: brought.digest, files: brought.digests })
            .unwrap_or_default();
        // A file that was changed just now may change again without a new time stamp.
        if stamps.iter().all(|(_, stamp)| stamp.is_settled(began)) {
            let known = Known { stamps, now: now.clone() };
            self.known.insert(folder.to_owned(), known);
        }
        Ok(now)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::log::Act;
    use super::*;

    #[test]
    fn trust_is_for_what_was_seen_and_ends_with_the_next_change() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("work");
        let agents = folder.join(".posse/agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("a.md"), "one").unwrap();
        let trustees = TrustedFolders::of_log(root.path().join("state/trust.jsonl"));
        let mut verdicts = Verdicts::default();
        assert_eq!(verdicts.verdict(&trustees, &folder).standing, TrustStatus::Unknown);
        let log = TrustLog::at(trustees.log.as_ref().unwrap());
        let brought = FilesToTrust::by(&folder).unwrap().unwrap();
        log.record(Act::Trusted, &brought.folder, &brought.digest, &[]).unwrap();
        assert_eq!(verdicts.verdict(&trustees, &folder).standing, TrustStatus::Trusted);
        std::fs::write(agents.join("a.md"), "two").unwrap();
        assert_eq!(verdicts.verdict(&trustees, &folder).standing, TrustStatus::Changed);
        std::fs::write(agents.join("a.md"), "one").unwrap();
        assert_eq!(
            verdicts.verdict(&trustees, &folder).standing,
            TrustStatus::Trusted,
            "as it was"
        );
        log.record(Act::Removed, &folder, "", &[]).unwrap();
        assert_eq!(verdicts.verdict(&trustees, &folder).standing, TrustStatus::Unknown);
        let for_now = trustees.and_for_now(&folder).unwrap();
        assert_eq!(verdicts.verdict(&for_now, &folder).standing, TrustStatus::Trusted);
        std::fs::write(agents.join("a.md"), "three").unwrap();
        assert_eq!(verdicts.verdict(&for_now, &folder).standing, TrustStatus::Changed);
    }

    #[test]
    fn a_log_that_was_changed_trusts_nobody() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trust.jsonl");
        std::fs::create_dir_all(root.path().join(".posse/agents")).unwrap();
        std::fs::write(root.path().join("posse.toml"), "").unwrap();
        let brought = FilesToTrust::by(root.path()).unwrap().unwrap();
        let log = TrustLog::at(&path);
        log.record(Act::Trusted, root.path(), &brought.digest, &[]).unwrap();
        let trustees = TrustedFolders::of_log(&path);
        assert!(trustees.standing(root.path()).is_trusted());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"at\":1", "\"at\":2")).unwrap();
        let standing = trustees.standing(root.path());
        assert!(
            matches!(&standing, TrustStatus::Unsure(why) if why.contains("record 1")),
            "{standing}"
        );
    }

    #[test]
    fn what_did_not_change_stays_trusted_unless_settings_did() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("work");
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".posse/agents/a.md", "one");
        write(".claude/skills/s/run.sh", "echo");
        write("posse.toml", "");
        let trustees = TrustedFolders::of_log(root.path().join("trust.jsonl"));
        let log = TrustLog::at(trustees.log.as_ref().unwrap());
        log.trust(&FilesToTrust::by(&folder).unwrap().unwrap(), &[]).unwrap();
        let verdict = || Verdicts::default().verdict(&trustees, &folder);
        let agent = |name: &str| verdict().of_agent(&folder.join(".posse/agents").join(name));
        write(".posse/agents/b.md", "two");
        assert_eq!(verdict().changes, [Change::Added(".posse/agents/b.md".to_owned())]);
        assert_eq!((agent("a.md"), agent("b.md")), (TrustStatus::Trusted, TrustStatus::Changed));
        assert!(verdict().of_skills().is_trusted() && verdict().of_settings().is_trusted());
        write(".claude/skills/s/run.sh", "evil");
        assert!(agent("a.md").is_trusted() && !verdict().of_skills().is_trusted());
        write(".posse/agents/a.md", "three");
        assert!(!agent("a.md").is_trusted());
        write(".posse/agents/a.md", "one");
        std::fs::remove_file(folder.join("posse.toml")).unwrap();
        assert!(!agent("a.md").is_trusted() && !verdict().of_settings().is_trusted());
        assert!(verdict().changes.contains(&Change::Removed("posse.toml".to_owned())));
    }
}
