//! Loads a catalog from sources: reads the files that changed, and orders all definitions.

use super::change;
use super::draft::{self, Draft};
use super::folders::{self, Folder};
use super::resolve::{self, Trust};
use super::source::{Given, Source, Sources};
use super::{AgentCatalog, Entry};
use crate::budget::smaller;
use crate::config::{AgentTable, Config, Origin, Setting};
use crate::definition::field::Field;
use crate::definition::reading::{Form, Written};
use crate::error::quoted;
use crate::files::{self, Kept, Stamp};
use crate::front_matter::FILE_BYTES;
use crate::front_matter::problem::{Finding, Findings, Level, Position, Problem};
use crate::limits::stricter;
use crate::trust::{self, TrustStatus, Verdict, Verdicts};
use posse_protocol::{AgentName, Budget, Limits};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

/// The maximum size of a map of agents: enough for a few agents of the largest size.
const MAP_BYTES: u64 = 4 * FILE_BYTES;

/// The built-in agents, in display order.
const BUILT_IN: [(&str, &str); 4] = [
    ("general-purpose.md", include_str!("general-purpose.md")),
    ("explore.md", include_str!("explore.md")),
    ("plan.md", include_str!("plan.md")),
    ("code.md", include_str!("code.md")),
];

/// The built-in agents, parsed once: a process makes several catalogs before its first request.
static BUILT_IN_DRAFTS: LazyLock<Vec<Draft>> = LazyLock::new(|| {
    let read = |(name, text): (&str, &str)| {
        let mut draft = Draft::default();
        draft::of_text(text, Path::new(name), Form::Own, &mut draft);
        draft
    };
    BUILT_IN.map(read).into()
});

/// Reads sources repeatedly, each file only when it has changed.
#[derive(Default)]
pub(crate) struct Reader {
    drafts: Kept<Draft>,
    /// The last settings that could be read.
    settings: Settings,
    /// What the last read found; `None` if a file may have changed since without a new stamp.
    seen: Option<Seen>,
    verdicts: Verdicts,
    /// The limits of runs, whatever the settings say. Agents of a project cannot exceed them.
    pub(crate) limits: Limits,
    /// The budget of runs with their subagents. Agents of a project cannot exceed it either.
    pub(crate) budget: Budget,
}

/// The settings about agents.
#[derive(Clone, Default)]
struct Settings {
    tables: Vec<Setting<AgentTable>>,
    limits: Limits,
    budget: Budget,
    max_depth: u32,
    plugins: Vec<PathBuf>,
    /// The agents that runs may start, file by file.
    allowed_agents: Vec<Setting<Vec<String>>>,
    /// Which project folders are trusted.
    verdicts: BTreeMap<PathBuf, Verdict>,
}

impl Settings {
    /// Whether `file` of `source` is trusted; `None` if the source is not a project.
    fn standing(&self, source: &Source, file: Option<&Path>) -> Option<TrustStatus> {
        let Source::Project { path } = source else { return None };
        let verdict = self.verdicts.get(&trust::folder_of(path));
        let of_file = |verdict: &Verdict| match file.filter(|file| file != path) {
            Some(file) => verdict.of_agent(file),
            None => verdict.of_settings(),
        };
        Some(verdict.map_or(TrustStatus::Unknown, of_file))
    }

    /// The trust in a definition whose folder has this standing.
    fn trust<'s>(&'s self, standing: Option<&'s TrustStatus>) -> Trust<'s> {
        match standing {
            Some(standing) => Trust::Project {
                standing,
                limits: &self.limits,
                budget: &self.budget,
                max_depth: self.max_depth,
            },
            None => Trust::User,
        }
    }
}

/// The files to read, with stamps that were taken before reading.
#[derive(PartialEq)]
struct Seen {
    /// Settings and maps of agents.
    files: Vec<(PathBuf, Option<Stamp>)>,
    folders: Vec<Folder>,
    verdicts: BTreeMap<PathBuf, Verdict>,
}

impl Seen {
    fn is_settled(&self, then: SystemTime) -> bool {
        let files = self.files.iter().filter_map(|(_, stamp)| stamp.as_ref());
        let listed = self.folders.iter().flat_map(|folder| &folder.files);
        files.chain(listed.map(|(_, stamp)| stamp)).all(|stamp| stamp.is_settled(then))
    }
}

/// The single files of `sources`.
fn files(sources: &Sources) -> Vec<(PathBuf, Option<Stamp>)> {
    let given = sources.command_line.iter().filter_map(|given| match given {
        Given::File(path) => Some(path),
        Given::Inline(_) => None,
    });
    let settings = [&sources.settings.user, &sources.settings.project];
    let files = given.chain(settings.into_iter().flatten());
    files.map(|path| (path.clone(), Stamp::of(path))).collect()
}

impl Reader {
    /// True when `sources` may have changed since the last read.
    pub(crate) fn is_stale(&mut self, sources: &Sources) -> bool {
        let files = files(sources);
        let folders = folders::find(sources, &self.settings.plugins);
        let verdicts = self.verdicts(sources, &folders);
        self.seen.as_ref() != Some(&Seen { files, folders, verdicts })
    }

    /// Which of the folders with agents or settings of a project are trusted.
    fn verdicts(&mut self, sources: &Sources, found: &[Folder]) -> BTreeMap<PathBuf, Verdict> {
        let projects = found.iter().filter_map(|folder| match &folder.source {
            Source::Project { path } => Some(path),
            _ => None,
        });
        let folders = projects.chain(&sources.settings.project).map(|path| trust::folder_of(path));
        let trustees = &sources.settings.trust;
        let verdict = |folder: PathBuf| {
            let verdict = self.verdicts.verdict(trustees, &folder);
            (folder, verdict)
        };
        folders.map(verdict).collect()
    }

    /// Loads the agents of `sources`, and adds `host`, the agents of the host.
    pub(crate) fn load(&mut self, sources: &Sources, host: Vec<Entry>) -> AgentCatalog {
        let mut shelf =
            Shelf { sources, entries: Vec::new(), problems: Vec::new(), named: HashMap::new() };
        let began = SystemTime::now();
        let files = files(sources);
        self.read_settings(sources, &mut shelf.problems);
        let mut settings = self.settings.clone();
        settings.limits = stricter(settings.limits, &self.limits);
        settings.budget = smaller(&settings.budget, &self.budget);
        let folders = folders::find(sources, &settings.plugins);
        settings.verdicts = self.verdicts(sources, &folders);
        let seen = Seen { files, folders, verdicts: settings.verdicts.clone() };
        for given in &sources.command_line {
            shelf.add_given(given);
        }
        shelf.entries.extend(host);
        for table in &settings.tables {
            shelf.add_table(table, &settings);
        }
        let mut drafts = self.drafts.renew(began);
        for folder in &seen.folders {
            shelf.note_left_out(folder);
            for (path, stamp) in &folder.files {
                let draft = drafts.get(path, *stamp, || draft::of_file(path, folder.form));
                shelf.add_draft(&draft, &folder.source, Some(path), &settings);
            }
        }
        for draft in BUILT_IN_DRAFTS.iter() {
            shelf.add_draft(draft, &Source::BuiltIn, None, &settings);
        }
        self.seen = Some(seen).filter(|seen| seen.is_settled(began));
        shelf.finish(&settings)
    }

    fn read_settings(&mut self, sources: &Sources, problems: &mut Vec<Problem>) {
        match Config::load(&sources.settings) {
            Ok(config) => {
                self.settings = Settings {
                    limits: config.limits.limits(),
                    budget: config.budget.budget(),
                    max_depth: config.max_depth.value,
                    plugins: config.plugins.value,
                    tables: config.agents,
                    allowed_agents: config.subagents.allowed_agents,
                    verdicts: BTreeMap::new(),
                };
            }
            Err(error) => {
                let (line, reason) = error.told();
                let reason = format!("agents are as these settings said before: {reason}");
                problems
                    .push(Problem { line, ..Problem::of_file(error.path(), Level::Error, reason) });
            }
        }
    }
}

/// The definitions found so far, in order of precedence within each kind of source.
struct Shelf<'s> {
    sources: &'s Sources,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    /// The indexes of the entries, by name.
    named: HashMap<String, Vec<usize>>,
}

impl Shelf<'_> {
    fn add_given(&mut self, given: &Given) {
        let (text, file) = match given {
            Given::Inline(text) if text.len() as u64 > MAP_BYTES => {
                let reason = format!("the agents given take more than {MAP_BYTES} bytes");
                (Err(reason), None)
            }
            Given::Inline(text) => (Ok(text.clone()), None),
            Given::File(path) => (files::read(path, MAP_BYTES), Some(path.clone())),
        };
        let wrong = |reason| Finding { place: Position::UNKNOWN, level: Level::Error, reason };
        let drafts = text.map_err(wrong).and_then(|text| draft::of_map(&text));
        match drafts {
            Ok(drafts) => {
                let source = Source::CommandLine { file: file.clone() };
                for draft in drafts {
                    self.add_draft(&draft, &source, file.as_deref(), &Settings::default());
                }
            }
            Err(finding) => self.problems.push(finding.problem(file.as_deref(), None)),
        }
    }

    /// Adds the agent that a settings file defines, unless the table only changes another agent.
    fn add_table(&mut self, setting: &Setting<AgentTable>, settings: &Settings) {
        let AgentTable { name, definition, line, findings } = &setting.value;
        let Some((path, source)) = origin(&setting.origin).filter(|_| !setting.value.is_change())
        else {
            return;
        };
        let draft = Draft {
            name: Some(name.clone()),
            line: Some(*line),
            written: Written::without_places(definition.clone()),
            findings: findings.clone(),
        };
        self.add_draft(&draft, &source, Some(&path), settings);
    }

    fn add_draft(
        &mut self,
        draft: &Draft,
        source: &Source,
        path: Option<&Path>,
        settings: &Settings,
    ) {
        let mut findings = draft.findings.clone();
        let name = match (source, &draft.name) {
            (Source::Plugin { plugin, .. }, Some(name)) => scoped(plugin, name, &mut findings),
            (_, name) => name.clone(),
        };
        let Some(name) = name else {
            self.report(&findings, path, draft.line, None);
            return;
        };
        let alike = self.named.entry(name.as_str().to_ascii_lowercase()).or_default();
        let earlier = alike.iter().map(|index| &self.entries[*index]).find(|entry| {
            // All maps on a command line are one source.
            entry.source == *source || entry.source.rank() == 0 && source.rank() == 0
        });
        if let Some(earlier) = earlier {
            let first = earlier
                .path
                .as_ref()
                .map_or_else(|| earlier.source.to_string(), |path| path.display().to_string());
            let reason = format!("there is an agent `{name}` already, in {first}; that one stays");
            findings.error(Position { line: draft.line.unwrap_or(0), column: 0 }, reason);
            self.report(&findings, path, draft.line, Some(&name));
            return;
        }
        alike.push(self.entries.len());
        let standing = settings.standing(source, path);
        let trust = settings.trust(standing.as_ref());
        let tools = &self.sources.tools;
        let agent = resolve::spec(&draft.written, name.clone(), tools, trust, &mut findings);
        self.report(&findings, path, draft.line, Some(&name));
        self.entries.push(Entry {
            name,
            source: source.clone(),
            path: path.map(Path::to_owned),
            line: draft.line,
            model_at: Some(draft.written.place(Field::Model))
                .filter(|place| *place != Position::UNKNOWN)
                .map(|place| (place.line, place.column)),
            definition: Some(Arc::new(draft.written.definition.clone())),
            agent,
            standing,
            shadowed_by: None,
            changed_by: Vec::new(),
        });
    }

    /// Orders the entries, and applies the changes that the settings make.
    fn finish(self, settings: &Settings) -> AgentCatalog {
        let tools = &self.sources.tools;
        let mut catalog = AgentCatalog::of(self.entries, self.problems);
        catalog.note_kept_from_names();
        for setting in settings.tables.iter().filter(|setting| setting.value.is_change()) {
            let AgentTable { name, definition, line, findings } = &setting.value;
            let Some((path, source)) = origin(&setting.origin) else { continue };
            let standing = settings.standing(&source, Some(&path));
            let trust = settings.trust(standing.as_ref());
            let mut findings = findings.clone();
            let written = Written::without_places(definition.clone());
            match catalog.effective_mut(name) {
                Some(entry) => {
                    if let Some(agent) = &mut entry.agent {
                        change::apply(agent, &written, tools, trust, &mut findings);
                    }
                    if findings.first_error().is_some() {
                        entry.agent = None;
                    }
                    entry.changed_by.push(path.clone());
                }
                None => findings.error(
                    Position::UNKNOWN,
                    format!(
                        "there is no agent `{name}` to change; give `description` and \
                         `instructions` to define one"
                    ),
                ),
            }
            catalog.report(&findings, Some(&path), Some(*line), Some(name));
        }
        catalog.check_callees();
        for Setting { value, origin: from } in &settings.allowed_agents {
            let mut findings = Findings::default();
            for name in value.iter().filter(|name| *name != "*" && !catalog.knows(name)) {
                let reason =
                    format!("`subagents.allowed_agents` names {}, who is not there", quoted(name));
                findings.warning(Position::UNKNOWN, reason);
            }
            let path = origin(from).map(|(path, _)| path);
            catalog.report(&findings, path.as_deref(), None, None);
        }
        catalog
    }

    fn report(
        &mut self,
        findings: &Findings,
        path: Option<&Path>,
        line: Option<u32>,
        agent: Option<&AgentName>,
    ) {
        super::report(&mut self.problems, findings, path, line, agent);
    }

    /// Reports the parts of a folder that were not read.
    fn note_left_out(&mut self, folder: &Folder) {
        let cut = "it holds more files or levels than are looked at; not all were read";
        let outward = "it leads out of the repository, so it was not read";
        let cut = folder.cut.then_some((&folder.path, cut));
        let left_out = cut.into_iter().chain(folder.outward.iter().map(|path| (path, outward)));
        self.problems.extend(
            left_out
                .map(|(path, reason)| Problem::of_file(path, Level::Warning, reason.to_owned())),
        );
    }
}

/// The file and the source that a setting comes from.
fn origin(origin: &Origin) -> Option<(PathBuf, Source)> {
    match origin {
        Origin::User(path) => Some((path.clone(), Source::User { path: path.clone() })),
        Origin::Project(path) => Some((path.clone(), Source::Project { path: path.clone() })),
        Origin::Default | Origin::Flag(_) => None,
    }
}

/// The name of a plugin's agent.
fn scoped(plugin: &str, name: &AgentName, findings: &mut Findings) -> Option<AgentName> {
    let own = match name.as_str().split_once(':') {
        Some((prefix, own)) if prefix.eq_ignore_ascii_case(plugin) => own,
        _ => name.as_str(),
    };
    let scoped = format!("{plugin}:{own}").parse::<AgentName>();
    scoped.map_err(|error| findings.error(Position::UNKNOWN, error.to_string())).ok()
}
