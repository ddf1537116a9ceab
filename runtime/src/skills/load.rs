//! Builds a catalog of skills from sources: reads files that changed, and orders all skills.

use super::folders::{self, FILE, Folder};
use super::reading::{self, Form, Written};
use super::source::{Source, Sources};
use super::{Entry, Skill, SkillCatalog};
use crate::config::Config;
use crate::error::quoted;
use crate::files::{Kept, Stamp, read};
use crate::front_matter::FILE_BYTES;
use crate::front_matter::problem::{Findings, Level, Position, Problem};
use crate::trust::{self, TrustStatus, Verdicts};
use posse_protocol::{AgentName, SkillRules};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Reads sources repeatedly, each file only when it has changed.
#[derive(Default)]
pub(crate) struct Reader {
    drafts: Kept<Draft>,
    /// The settings when they were last readable.
    settings: Settings,
    /// The state of the files when they were last read; `None` if a change since may be invisible.
    seen: Option<Seen>,
    verdicts: Verdicts,
}

/// The settings about skills.
#[derive(Clone)]
struct Settings {
    plugins: Vec<PathBuf>,
    extra: Vec<PathBuf>,
    rules: Vec<SkillRules>,
    inherit: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { plugins: Vec::new(), extra: Vec::new(), rules: Vec::new(), inherit: true }
    }
}

/// The files to read, with stamps taken before they are read.
#[derive(PartialEq)]
struct Seen {
    settings: Vec<Option<Stamp>>,
    folders: Vec<Folder>,
    standings: BTreeMap<PathBuf, TrustStatus>,
}

impl Seen {
    fn is_settled(&self, then: SystemTime) -> bool {
        let settings = self.settings.iter().flatten();
        let listed = self.folders.iter().flat_map(|folder| &folder.files);
        settings.chain(listed.map(|(_, stamp)| stamp)).all(|stamp| stamp.is_settled(then))
    }
}

/// The content of one SKILL.md, before its precedence is known.
#[derive(Clone, Default)]
struct Draft {
    /// Its name, if that is known.
    name: Option<String>,
    skill: Option<Skill>,
    findings: Findings,
}

impl Reader {
    /// True when `sources` may have changed since they were last read.
    pub(crate) fn is_stale(&mut self, sources: &Sources) -> bool {
        let folders = folders::find(sources, &self.settings.plugins, &self.settings.extra);
        let standings = self.standings(sources, &folders);
        self.seen.as_ref() != Some(&Seen { settings: stamps(sources), folders, standings })
    }

    /// Returns the trust in the folders that contain skills.
    fn standings(&mut self, sources: &Sources, found: &[Folder]) -> BTreeMap<PathBuf, TrustStatus> {
        let projects = found.iter().filter_map(|folder| match &folder.source {
            Source::Project { path } => Some(trust::folder_of(path)),
            _ => None,
        });
        let standing = |folder: PathBuf| {
            let verdict = self.verdicts.verdict(&sources.settings.trust, &folder);
            (folder, verdict.of_skills())
        };
        projects.map(standing).collect()
    }

    /// Reads the current skills of `sources`.
    pub(crate) fn load(&mut self, sources: &Sources) -> SkillCatalog {
        let began = SystemTime::now();
        let settings = stamps(sources);
        let mut shelf = Shelf::default();
        self.read_settings(sources, &mut shelf.problems);
        let folders = folders::find(sources, &self.settings.plugins, &self.settings.extra);
        let working = sources.working_folder.as_deref().and_then(|it| it.canonicalize().ok());
        shelf.standings = self.standings(sources, &folders);
        let mut drafts = self.drafts.renew(began);
        for folder in &folders {
            shelf.note_cut(folder);
            for (path, stamp) in &folder.files {
                let draft =
                    drafts.get(path, *stamp, || Draft::of_file(path, folder, working.as_deref()));
                shelf.add(&draft, folder, path);
            }
        }
        let seen = Seen { settings, folders, standings: std::mem::take(&mut shelf.standings) };
        self.seen = Some(seen).filter(|seen| seen.is_settled(began));
        let Settings { rules, inherit, .. } = self.settings.clone();
        SkillCatalog::of(shelf.entries, shelf.problems, rules, inherit)
    }

    fn read_settings(&mut self, sources: &Sources, problems: &mut Vec<Problem>) {
        match Config::load(&sources.settings) {
            Ok(config) => {
                self.settings = Settings {
                    plugins: config.plugins.value,
                    extra: config.skills.extra_dirs.value.clone(),
                    rules: config.skills.rules(),
                    inherit: config.skills.inherit.value,
                };
            }
            Err(error) => {
                let (line, reason) = error.told();
                let reason = format!("skills are as these settings said before: {reason}");
                problems
                    .push(Problem { line, ..Problem::of_file(error.path(), Level::Error, reason) });
            }
        }
    }
}

/// Returns the skills in the folder `path`, which must be `within` another, even through links.
pub(crate) fn of_folder(path: &Path, within: Option<PathBuf>, working: &Path) -> SkillCatalog {
    let mut shelf = Shelf::default();
    let folder = folders::further(path, within);
    shelf.note_cut(&folder);
    for (path, _) in &folder.files {
        shelf.add(&Draft::of_file(path, &folder, Some(working)), &folder, path);
    }
    SkillCatalog::of(shelf.entries, shelf.problems, Vec::new(), true)
}

fn stamps(sources: &Sources) -> Vec<Option<Stamp>> {
    let files = [&sources.settings.user, &sources.settings.project];
    files.map(|path| path.as_deref().and_then(Stamp::of)).to_vec()
}

impl Draft {
    /// Reads the SKILL.md or the command at `path`.
    fn of_file(path: &Path, folder: &Folder, working: Option<&Path>) -> Self {
        if folder.form == Form::Command {
            return Draft::of_command(path, folder);
        }
        let mut draft = Draft::default();
        let beside = path.parent().and_then(Path::file_name);
        let beside = beside.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        draft.name = is_name(&beside).then(|| beside.clone());
        let place = real_folder(path, folder.within.as_deref(), working);
        let text = place.and_then(|place| Ok((place, read(path, FILE_BYTES)?)));
        match text {
            Ok((place, text)) => draft.read(&text, place, &beside),
            Err(reason) => draft.findings.error(Position::UNKNOWN, reason),
        }
        draft
    }

    /// Reads the command at `path`. Its name is that of its file, after those of subfolders.
    fn of_command(path: &Path, folder: &Folder) -> Self {
        let mut draft = Draft::default();
        let below = path.strip_prefix(&folder.path).unwrap_or(path).with_extension("");
        let parts = below.iter().map(|part| part.to_string_lossy());
        let name = parts.collect::<Vec<_>>().join(":");
        draft.name = is_whole_name(&name).then(|| name.clone());
        let text = real_command(path, folder.within.as_deref());
        let text = text.and_then(|real| Ok((read(&real, FILE_BYTES)?, real)));
        let (text, file) = match text {
            Ok(read) => read,
            Err(reason) => {
                draft.findings.error(Position::UNKNOWN, reason);
                return draft;
            }
        };
        if draft.name.is_none() {
            let reason = format!(
                "{} is not the name of a command: use letters, digits, `_` and `-` in the names of its \
                 file and folders",
                quoted(&name)
            );
            draft.findings.error(Position::UNKNOWN, reason);
        }
        let Some(written) = reading::read(&text, Form::Command, &mut draft.findings) else {
            return draft;
        };
        if draft.findings.first_error().is_none() {
            let folder = file.parent().unwrap_or(&file).to_owned();
            // Only people invoke a command.
            let written = Written { is_manual: true, ..written };
            draft.skill = Some(Skill { is_command: true, file, ..skill(name, folder, written) });
        }
        draft
    }

    fn read(&mut self, text: &str, folder: PathBuf, beside: &str) {
        let Some(written) = reading::read(text, Form::Skill, &mut self.findings) else { return };
        let first = Position { line: 1, column: 1 };
        let name = match &written.name {
            Some((name, place)) if !is_name(name) => {
                let reason = format!(
                    "{} is not the name of a skill: letters, digits, `_` and `-`, at most 64, the \
                     first a letter or digit",
                    quoted(name)
                );
                self.findings.error(*place, reason);
                return;
            }
            Some((name, place)) => {
                if !name.eq_ignore_ascii_case(beside) {
                    let reason = format!(
                        "it is called `{name}`, its folder {}; others expect them to be the same",
                        quoted(beside)
                    );
                    self.findings.note(*place, reason);
                }
                name.clone()
            }
            None if is_name(beside) => beside.to_owned(),
            None => {
                let reason = format!(
                    "it has no `name`, and its folder's, {}, cannot be one",
                    quoted(beside)
                );
                self.findings.error(first, reason);
                return;
            }
        };
        self.name = Some(name.clone());
        if self.findings.first_error().is_none() {
            self.skill = Some(skill(name, folder, written));
        }
    }
}

fn skill(name: String, folder: PathBuf, written: Written) -> Skill {
    Skill {
        name,
        description: written.description,
        file: folder.join(FILE),
        is_command: false,
        folder,
        allowed_tools: written.allowed_tools,
        arguments: written.arguments,
        argument_hint: written.argument_hint,
        is_manual: written.is_manual,
        license: written.license,
        bytes: written.body.len() as u64,
    }
}

/// Returns the real folder of the skill with the SKILL.md at `path`. Links are followed, but must
/// not lead out of the folder that must contain it.
fn real_folder(
    path: &Path,
    within: Option<&Path>,
    working: Option<&Path>,
) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| format!("it cannot be read: {error}"))?;
    if real.file_name().is_none_or(|name| name != FILE) {
        return Err(format!("it is a link to {}, which is no {FILE}", real.display()));
    }
    check_within(&real, within)?;
    let folder = real.parent().unwrap_or(&real).to_owned();
    if working.is_some_and(|working| working.starts_with(&folder)) {
        return Err(format!(
            "its folder {} holds all that is worked on; give it a folder of its own",
            folder.display()
        ));
    }
    match folder.to_str() {
        Some(_) => Ok(folder),
        None => Err("the path of its folder is not valid UTF-8".to_owned()),
    }
}

/// Returns the real path of the command at `path`, which must be `within` the project.
fn real_command(path: &Path, within: Option<&Path>) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| format!("it cannot be read: {error}"))?;
    check_within(&real, within)?;
    Ok(real)
}

/// Refuses a file that is not `within` the folder that must contain it.
fn check_within(real: &Path, within: Option<&Path>) -> Result<(), String> {
    match within.filter(|within| !real.starts_with(within)) {
        None => Ok(()),
        Some(within) => Err(format!(
            "it leads to {}, out of {}; a skill of a project lies in it",
            real.display(),
            within.display()
        )),
    }
}

/// The skills found so far, in order of precedence.
#[derive(Default)]
struct Shelf {
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    standings: BTreeMap<PathBuf, TrustStatus>,
}

impl Shelf {
    fn add(&mut self, draft: &Draft, folder: &Folder, file: &Path) {
        let (source, mut findings) = (&folder.source, draft.findings.clone());
        let name = match (source, &draft.name) {
            (Source::Plugin { plugin, .. }, Some(name)) => Some(format!("{plugin}:{name}")),
            (_, name) => name.clone(),
        };
        let mut skill = draft.skill.clone();
        if let (Some(skill), Some(name)) = (&mut skill, &name) {
            skill.name.clone_from(name);
        }
        // A plugin may have any name, but the names of its skills begin with it.
        let wrong = name.as_ref().filter(|name| !is_whole_name(name));
        if let Some(wrong) = wrong {
            let reason = format!(
                "{} cannot name a skill; give the plugin a name of letters, digits, `_` and `-`",
                quoted(wrong)
            );
            findings.error(Position::UNKNOWN, reason);
        } else if let Some(name) = name {
            let same =
                |entry: &&Entry| entry.source == *source && entry.name.eq_ignore_ascii_case(&name);
            match self.entries.iter().find(same) {
                Some(first) => {
                    let first = first.file.display();
                    let reason =
                        format!("there is a skill `{name}` already, in {first}; that one stays");
                    findings.error(Position::UNKNOWN, reason);
                }
                None => self.entries.push(Entry {
                    name,
                    source: source.clone(),
                    file: file.to_owned(),
                    skill,
                    shadowed_by: None,
                    is_denied: false,
                    standing: match source {
                        Source::Project { path } => {
                            self.standings.get(&trust::folder_of(path)).cloned()
                        }
                        _ => None,
                    },
                }),
            }
        }
        self.problems.extend(findings.0.iter().map(|it| it.problem(Some(file), None)));
    }

    fn note_cut(&mut self, folder: &Folder) {
        if folder.cut {
            let reason = "it holds more folders than are looked at; not all were".to_owned();
            self.problems.push(Problem::of_file(&folder.path, Level::Warning, reason));
        }
    }
}

/// A whole name has parts with colons between them: of a plugin, of the folders of a command.
fn is_whole_name(text: &str) -> bool {
    text.split(':').all(is_name)
}

/// Names of skills follow the rules for names of agents, but have no colon.
fn is_name(text: &str) -> bool {
    !text.contains(':') && text.parse::<AgentName>().is_ok()
}
