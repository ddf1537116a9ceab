//! A catalog that stays up to date with its files. It checks them when it is used, at most twice a second, without a
//! watcher or a thread. A run keeps the definition it started with.

use super::load::Reader;
use super::source::{Source, Sources};
use super::{AgentCatalog, Entry};
use crate::error::Error;
use crate::tool_facts::ToolFacts;
use crate::trust::{self, TrustStatus};
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{AgentName, AgentSpec, Budget, Limits};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the catalog is used without checking the files again.
const INTERVAL: Duration = Duration::from_millis(500);

/// The current agents. Cheap to clone; clones share one catalog.
#[derive(Clone)]
pub struct LiveCatalog {
    shared: Arc<Shared>,
}

struct Shared {
    current: Mutex<Current>,
    /// Where to look; `None` for a catalog that never changes. The lock is held during a check; a caller of `current`
    /// that finds it held uses the known catalog.
    source_reader: Option<Mutex<SourceReader>>,
    interval: Duration,
}

struct Current {
    catalog: Arc<AgentCatalog>,
    /// When the files were last checked, if ever.
    looked: Option<Instant>,
}

struct SourceReader {
    sources: Sources,
    reader: Reader,
}

impl LiveCatalog {
    /// Reads the agents of `sources` now, and again when they change. Unusable definitions are among the problems of
    /// the catalog, and do not hide others.
    pub fn load(sources: Sources) -> Self {
        LiveCatalog::with_interval(sources, INTERVAL)
    }

    /// Like [`LiveCatalog::load`], but reads the agents on first use. A runtime can configure the catalog before that,
    /// so the files are read only once.
    pub fn unread(sources: Sources) -> Self {
        LiveCatalog::unread_with_interval(sources, INTERVAL)
    }

    fn with_interval(sources: Sources, interval: Duration) -> Self {
        let live = LiveCatalog::unread_with_interval(sources, interval);
        live.refresh();
        live
    }

    fn unread_with_interval(sources: Sources, interval: Duration) -> Self {
        let catalog = Arc::new(AgentCatalog::of(Vec::new(), Vec::new()));
        let current = Mutex::new(Current { catalog, looked: None });
        let source_reader = Some(Mutex::new(SourceReader { sources, reader: Reader::default() }));
        LiveCatalog { shared: Arc::new(Shared { current, source_reader, interval }) }
    }

    /// The current agents.
    pub fn current(&self) -> Arc<AgentCatalog> {
        let mut current = self.lock();
        let Some(source_reader) = &self.shared.source_reader else {
            return current.catalog.clone();
        };
        match current.looked {
            Some(looked) if looked.elapsed() < self.shared.interval => {
                return current.catalog.clone();
            }
            Some(_) => current.looked = Some(Instant::now()),
            None => {
                drop(current);
                return self.refresh();
            }
        }
        let known = current.catalog.clone();
        drop(current);
        match source_reader.try_lock() {
            Some(mut source_reader) => self.look(&mut source_reader, known),
            None => known,
        }
    }

    /// The current agents. Checks the files even if the last check was a moment ago.
    pub fn refresh(&self) -> Arc<AgentCatalog> {
        let Some(source_reader) = &self.shared.source_reader else {
            return self.lock().catalog.clone();
        };
        let mut source_reader = source_reader.lock();
        let known = self.lock().catalog.clone();
        self.look(&mut source_reader, known)
    }

    /// The folder in which the agents were looked for, if any.
    pub fn working_folder(&self) -> Option<PathBuf> {
        let source_reader = self.shared.source_reader.as_ref()?;
        let source_reader = source_reader.lock();
        source_reader.sources.working_folder.clone()
    }

    /// The temporarily trusted folders, each with the hash of its contents that were trusted.
    pub(crate) fn trusted_for_now(&self) -> BTreeMap<String, String> {
        let Some(source_reader) = &self.shared.source_reader else { return BTreeMap::new() };
        source_reader.lock().sources.settings.trust.for_now()
    }

    /// The current agents if these folders are trusted as well, as long as their contents have these hashes.
    pub(crate) fn trusting(&self, trusted: &BTreeMap<String, String>) -> Arc<AgentCatalog> {
        let known = self.current();
        let Some(source_reader) = &self.shared.source_reader else { return known };
        let source_reader = source_reader.lock();
        let Some(trust) = source_reader.sources.settings.trust.and_as(trusted) else {
            return known;
        };
        let mut sources = source_reader.sources.clone();
        let (limits, budget) =
            (source_reader.reader.limits.clone(), source_reader.reader.budget.clone());
        drop(source_reader);
        sources.settings.trust = trust;
        let host = known.entries().iter().filter(|entry| entry.source == Source::Host);
        let mut reader = Reader::default();
        (reader.limits, reader.budget) = (limits, budget);
        Arc::new(reader.load(&sources, host.cloned().collect()))
    }

    /// Whether `folder` is trusted. A changed folder also counts as trusted if its definition of the agent `name` is
    /// still trusted.
    pub(crate) fn standing(&self, folder: &Path, name: &AgentName) -> TrustStatus {
        let Some(source_reader) = &self.shared.source_reader else { return TrustStatus::Unknown };
        let standing = {
            let source_reader = source_reader.lock();
            source_reader.sources.settings.trust.standing(folder)
        };
        let is_of_folder = |entry: &&Entry| match &entry.source {
            Source::Project { path } => trust::folder_of(path) == folder,
            _ => false,
        };
        let trusted = |entry: &Entry| entry.standing == Some(TrustStatus::Trusted);
        match standing {
            TrustStatus::Changed
                if self.refresh().entry(name).filter(is_of_folder).is_some_and(trusted) =>
            {
                TrustStatus::Trusted
            }
            standing => standing,
        }
    }

    /// Sets the existing tools, in place of the tools in the sources, and the limits and the budget that agents of
    /// projects cannot exceed. Has no effect on a catalog that was built from an [`AgentCatalog`].
    pub fn configure(&self, tools: Vec<ToolFacts>, limits: &Limits, budget: &Budget) {
        let Some(source_reader) = &self.shared.source_reader else { return };
        let mut source_reader = source_reader.lock();
        let same = (&source_reader.reader.limits, &source_reader.reader.budget) == (limits, budget);
        if source_reader.sources.tools != tools || !same {
            source_reader.sources.tools = tools;
            (source_reader.reader.limits, source_reader.reader.budget) =
                (limits.clone(), budget.clone());
            let current = self.lock();
            let known = current.looked.map(|_| current.catalog.clone());
            drop(current);
            if let Some(known) = known {
                self.read(&mut source_reader, &known);
            }
        }
    }

    /// Adds an agent of the host.
    ///
    /// # Errors
    /// When the host already added an agent of this name. The first one stays.
    pub fn add(&self, agent: AgentSpec) -> Result<(), Error> {
        self.edit(|catalog| catalog.add(agent))
    }

    /// Adds an agent of the host, or replaces the one of the same name that the host added before.
    pub fn set(&self, agent: AgentSpec) {
        self.edit(|catalog| catalog.set(agent));
    }

    fn edit<T>(&self, change: impl FnOnce(&mut AgentCatalog) -> T) -> T {
        // The lock keeps a concurrent check from restoring the catalog without this change.
        let _desk = self.shared.source_reader.as_ref().map(|source_reader| source_reader.lock());
        change(Arc::make_mut(&mut self.lock().catalog))
    }

    fn look(
        &self,
        source_reader: &mut SourceReader,
        known: Arc<AgentCatalog>,
    ) -> Arc<AgentCatalog> {
        let is_read = self.lock().looked.is_some();
        match !is_read || source_reader.reader.is_stale(&source_reader.sources) {
            true => self.read(source_reader, &known),
            false => known,
        }
    }

    fn read(&self, source_reader: &mut SourceReader, known: &AgentCatalog) -> Arc<AgentCatalog> {
        let host = known.entries().iter().filter(|entry| entry.source == Source::Host);
        let host: Vec<Entry> = host.cloned().collect();
        let catalog = Arc::new(source_reader.reader.load(&source_reader.sources, host));
        let mut current = self.lock();
        current.catalog = catalog.clone();
        current.looked = Some(Instant::now());
        catalog
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.shared.current.lock()
    }
}

impl From<AgentCatalog> for LiveCatalog {
    /// Makes a catalog that never changes by itself.
    fn from(catalog: AgentCatalog) -> Self {
        let current =
            Mutex::new(Current { catalog: Arc::new(catalog), looked: Some(Instant::now()) });
        LiveCatalog {
            shared: Arc::new(Shared { current, source_reader: None, interval: INTERVAL }),
        }
    }
}

impl fmt::Debug for LiveCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveCatalog").field(&self.lock().catalog).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tool_facts::built_in_tools;

    fn names(catalog: &AgentCatalog) -> Vec<String> {
        catalog.iter().map(|agent| agent.name.to_string()).collect()
    }

    #[test]
    fn files_are_looked_at_when_the_time_has_come_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let sources =
            || Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
        let always = LiveCatalog::with_interval(sources(), Duration::ZERO);
        let rarely = LiveCatalog::with_interval(sources(), Duration::from_secs(3600));
        let file = folder.path().join("new.md");
        std::fs::write(&file, "---\nname: new\ndescription: d\n---\nDo it.").unwrap();
        assert!(names(&always.current()).contains(&"new".to_owned()));
        assert!(!names(&rarely.current()).contains(&"new".to_owned()));
        assert!(names(&rarely.refresh()).contains(&"new".to_owned()));
        assert!(names(&rarely.current()).contains(&"new".to_owned()));
    }

    #[test]
    fn what_did_not_change_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.md");
        std::fs::write(&file, "---\nname: old\ndescription: d\n---\nDo it.").unwrap();
        let past = std::time::SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
        let sources =
            Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
        let live = LiveCatalog::load(sources);
        let first = live.refresh();
        assert!(Arc::ptr_eq(&first, &live.refresh()), "nothing changed, nothing was read");
    }

    #[test]
    fn agents_that_are_unread_are_read_when_somebody_asks() {
        let folder = tempfile::tempdir().unwrap();
        let sources =
            Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
        let live = LiveCatalog::unread(sources);
        live.add(AgentSpec::new("hosted".parse().unwrap())).unwrap();
        let limits = Limits { turns: Some(3), ..Limits::default() };
        live.configure(built_in_tools(), &limits, &Budget::default());
        std::fs::write(folder.path().join("x.md"), "---\ndescription: d\n---\nDo it.").unwrap();
        let all = names(&live.current());
        assert!(all.contains(&"hosted".to_owned()) && all.contains(&"x".to_owned()), "{all:?}");
        assert!(all.contains(&"explore".to_owned()), "{all:?}");
    }

    #[test]
    fn agents_of_the_program_stay_when_files_change() {
        let folder = tempfile::tempdir().unwrap();
        let sources =
            Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
        let live = LiveCatalog::load(sources);
        live.add(AgentSpec::new("hosted".parse().unwrap())).unwrap();
        assert!(live.add(AgentSpec::new("Hosted".parse().unwrap())).is_err());
        std::fs::write(folder.path().join("x.md"), "---\ndescription: d\n---\nDo it.").unwrap();
        let all = names(&live.refresh());
        assert!(all.contains(&"hosted".to_owned()) && all.contains(&"x".to_owned()), "{all:?}");
    }
}
