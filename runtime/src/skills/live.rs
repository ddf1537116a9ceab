//! A catalog of skills that follows its files. It checks them on demand, at most twice a second,
//! without a watcher or a thread. A run keeps the skills it started with.

use super::SkillCatalog;
use super::load::Reader;
use super::source::Sources;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a result is used before the files are checked again.
const INTERVAL: Duration = Duration::from_millis(500);

/// The current skills. It is cheap to clone; clones share one cache. By default there are none.
#[derive(Clone, Default)]
pub struct LiveSkills {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Where to look; `None` for an empty catalog.
    sources: Option<Sources>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    catalog: Arc<SkillCatalog>,
    reader: Reader,
    looked: Option<Instant>,
}

impl LiveSkills {
    /// Returns the skills of `sources`. They are read on first use, and again whenever they change.
    /// An unusable skill is a problem of the catalog and does not hide others.
    pub fn load(sources: Sources) -> Self {
        let shared = Shared { sources: Some(sources), state: Mutex::default() };
        LiveSkills { shared: Arc::new(shared) }
    }

    /// Returns the current skills.
    pub fn current(&self) -> Arc<SkillCatalog> {
        self.look(INTERVAL)
    }

    /// Returns the current skills, and always checks the files first.
    pub fn refresh(&self) -> Arc<SkillCatalog> {
        self.look(Duration::ZERO)
    }

    fn look(&self, interval: Duration) -> Arc<SkillCatalog> {
        let mut state = self.shared.state.lock();
        let Some(sources) = &self.shared.sources else { return state.catalog.clone() };
        if state.looked.is_some_and(|looked| looked.elapsed() < interval) {
            return state.catalog.clone();
        }
        if state.looked.is_none() || state.reader.is_stale(sources) {
            state.catalog = Arc::new(state.reader.load(sources));
        }
        state.looked = Some(Instant::now());
        state.catalog.clone()
    }
}

impl fmt::Debug for LiveSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSkills").field("sources", &self.shared.sources).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_picked_up_and_what_did_not_change_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x/SKILL.md");
        std::fs::create_dir(folder.path().join("x")).unwrap();
        std::fs::write(&file, "---\ndescription: first\n---\nDo it.").unwrap();
        let sources =
            Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
        let live = LiveSkills::load(sources);
        let said = |catalog: &SkillCatalog| {
            catalog.iter().map(|skill| skill.description.clone()).collect::<Vec<_>>()
        };
        assert_eq!(said(&live.current()), ["first"]);
        std::fs::write(&file, "---\ndescription: second\n---\nDo it.").unwrap();
        assert_eq!(said(&live.refresh()), ["second"]);
        let past = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
        let settled = live.refresh();
        assert!(Arc::ptr_eq(&settled, &live.refresh()), "nothing changed, nothing was read");
        std::fs::remove_file(&file).unwrap();
        assert!(said(&live.refresh()).is_empty());
    }
}
