//! What is thought of folders, remembered until something about them changes.

use super::log::TrustLog;
use super::{Brought, Standing, Trustees, brought};
use crate::agents::folders::Stamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What was found out so far. Hashes a folder again only when its stamps have changed, and one of
/// which nobody has said anything not at all.
#[derive(Default)]
pub(crate) struct Verdicts {
    known: HashMap<PathBuf, Known>,
}

struct Known {
    stamps: Vec<(PathBuf, Stamp)>,
    digest: String,
}

impl Verdicts {
    /// What `trustees` think of `folder`, which is canonical.
    pub(crate) fn standing(&mut self, trustees: &Trustees, folder: &Path) -> Standing {
        let recorded =
            match trustees.log.as_deref().map(|path| TrustLog::at(path).digest_of(folder)) {
                Some(Err(error)) => return Standing::Unsure(error.to_string()),
                Some(Ok(recorded)) => recorded,
                None => None,
            };
        let expected: Vec<&String> = recorded.iter().chain(trustees.once.get(folder)).collect();
        if expected.is_empty() {
            return Standing::Unknown;
        }
        match self.digest(folder) {
            Err(why) => Standing::Unsure(why),
            Ok(digest) if expected.contains(&&digest) => Standing::Trusted,
            Ok(_) => Standing::Changed,
        }
    }

    fn digest(&mut self, folder: &Path) -> Result<String, String> {
        let began = SystemTime::now();
        let stamps = brought::stamps(folder)?;
        if let Some(known) = self.known.get(folder).filter(|known| known.stamps == stamps) {
            return Ok(known.digest.clone());
        }
        let digest = Brought::by(folder)?.map(|brought| brought.digest).unwrap_or_default();
        // What was changed just now may change again without its time showing it.
        if stamps.iter().all(|(_, stamp)| stamp.is_settled(began)) {
            let known = Known { stamps, digest: digest.clone() };
            self.known.insert(folder.to_owned(), known);
        }
        Ok(digest)
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
        let trustees = Trustees::of_log(root.path().join("state/trust.jsonl"));
        let mut verdicts = Verdicts::default();
        assert_eq!(verdicts.standing(&trustees, &folder), Standing::Unknown);
        let log = TrustLog::at(trustees.log.as_ref().unwrap());
        let brought = Brought::by(&folder).unwrap().unwrap();
        log.record(Act::Trusted, &brought.folder, &brought.digest, &[]).unwrap();
        assert_eq!(verdicts.standing(&trustees, &folder), Standing::Trusted);
        std::fs::write(agents.join("a.md"), "two").unwrap();
        assert_eq!(verdicts.standing(&trustees, &folder), Standing::Changed);
        std::fs::write(agents.join("a.md"), "one").unwrap();
        assert_eq!(verdicts.standing(&trustees, &folder), Standing::Trusted, "as it was");
        log.record(Act::Removed, &folder, "", &[]).unwrap();
        assert_eq!(verdicts.standing(&trustees, &folder), Standing::Unknown);
        let for_now = trustees.and_for_now(&folder).unwrap();
        assert_eq!(verdicts.standing(&for_now, &folder), Standing::Trusted);
        std::fs::write(agents.join("a.md"), "three").unwrap();
        assert_eq!(verdicts.standing(&for_now, &folder), Standing::Changed);
    }

    #[test]
    fn a_log_that_was_changed_trusts_nobody() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trust.jsonl");
        std::fs::create_dir_all(root.path().join(".posse/agents")).unwrap();
        std::fs::write(root.path().join("posse.toml"), "").unwrap();
        let brought = Brought::by(root.path()).unwrap().unwrap();
        let log = TrustLog::at(&path);
        log.record(Act::Trusted, root.path(), &brought.digest, &[]).unwrap();
        let trustees = Trustees::of_log(&path);
        assert!(trustees.standing(root.path()).is_trusted());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"at\":1", "\"at\":2")).unwrap();
        let standing = trustees.standing(root.path());
        assert!(
            matches!(&standing, Standing::Unsure(why) if why.contains("record 1")),
            "{standing}"
        );
    }
}
