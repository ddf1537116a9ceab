//! `posse agents check`: problems in definitions, and their places.

use super::super::{Common, folder};
use crate::args::CatalogOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::agents::{Entry, Given, Level, Problem, Sources};
use posse::config::{self, Config};
use posse::{AgentCatalog, LiveCatalog};
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(common: &Common, paths: &[PathBuf], options: &CatalogOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let config = common.config(&folder)?;
    let catalog = LiveCatalog::load(common.agent_sources(&folder, &options.agents)).current();
    let (mut agents, mut problems) = (0, Vec::new());
    if paths.is_empty() {
        agents = catalog.entries().len();
        problems.extend(catalog.problems().iter().cloned());
        problems.extend(catalog.entries().iter().filter_map(|entry| unknown(entry, &config)));
        problems.extend(of_claude(common, &folder));
    }
    for path in paths {
        let found = look(&catalog, path, &config)?;
        agents += found.0;
        problems.extend(found.1);
    }
    problems.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    tell(common, agents as u64, &problems)?;
    let is_error = |problem: &Problem| problem.level == Level::Error;
    Ok(if problems.iter().any(is_error) { Code::Usage } else { Code::Done })
}

fn tell(common: &Common, agents: u64, problems: &[Problem]) -> Result<(), Failure> {
    let count = |level: Level| problems.iter().filter(|it| it.level == level).count() as u64;
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if common.global.json {
        return print::json_pretty(&json!({
            "definitions": agents, "errors": errors, "warnings": warnings, "problems": problems,
        }));
    }
    for problem in problems {
        print::line(clean_line(&problem.to_string(), 2_000))?;
    }
    if !common.global.quiet {
        print::note(format!(
            "{} checked: {}, {}",
            format::count(agents, "definition"),
            format::count(errors, "error"),
            format::count(warnings, "warning")
        ));
    }
    super::tell_of_trust(common, problems.iter());
    Ok(())
}

/// The number of definitions in a file or folder, and their problems.
fn look(
    catalog: &AgentCatalog,
    path: &Path,
    config: &Config,
) -> Result<(usize, Vec<Problem>), Failure> {
    let real = path.canonicalize().map_err(|error| {
        Failure::usage(format!("cannot check {}: {error}", path.display()))
            .hint("name files that define agents, or folders of them")
    })?;
    let found = within(catalog, &real, config);
    if found.0 > 0 || !found.1.is_empty() {
        return Ok(found);
    }
    // Posse does not read agents from there, so check it like the user's own agents.
    let mut sources = Sources::default();
    match real.extension().and_then(|extension| extension.to_str()) {
        _ if real.is_dir() => sources.user_folders.push(real.clone()),
        Some("json") => sources.command_line.push(Given::File(real.clone())),
        Some("toml") => {
            sources.settings =
                config::Sources { user: Some(real.clone()), ..config::Sources::default() };
        }
        _ => sources.user_folders.extend(real.parent().map(Path::to_owned)),
    }
    let found = within(&LiveCatalog::load(sources).current(), &real, config);
    if found.0 == 0 && found.1.is_empty() {
        return Err(Failure::usage(format!("{} defines no agent", path.display())).hint(
            "a definition is Markdown with front matter; `posse agents new NAME` writes one",
        ));
    }
    Ok(found)
}

/// The number of definitions of `catalog` in the file or folder at `place`, which is canonical, and
/// their problems.
fn within(catalog: &AgentCatalog, place: &Path, config: &Config) -> (usize, Vec<Problem>) {
    let is_there = |path: &Option<PathBuf>| {
        path.as_ref()
            .and_then(|path| path.canonicalize().ok())
            .is_some_and(|path| path.starts_with(place))
    };
    let entries = catalog.entries().iter().filter(|entry| is_there(&entry.path));
    let entries: Vec<&Entry> = entries.collect();
    let problems = catalog.problems().iter().filter(|it| is_there(&it.path)).cloned();
    let unknown = entries.iter().filter_map(|entry| unknown(entry, config));
    (entries.len(), problems.chain(unknown).collect())
}

/// The parts of Claude Code's settings for `folder` that have no effect, and their problems.
fn of_claude(common: &Common, folder: &Path) -> Vec<Problem> {
    let problem = |path: &Path, level: Level, reason: String| Problem {
        path: Some(path.to_owned()),
        line: None,
        column: None,
        level,
        agent: None,
        reason,
    };
    match common.rule_files().claude(folder) {
        Ok(all) => {
            let mut problems = Vec::new();
            for settings in &all {
                let warnings = settings.warnings.iter().cloned();
                let warnings = warnings.map(|it| problem(&settings.path, Level::Warning, it));
                problems.extend(warnings);
                if !settings.unused.is_empty() {
                    let keys = settings.unused.join(", ");
                    let reason = format!("Posse uses the deny and ask rules, and not yet: {keys}");
                    problems.push(problem(&settings.path, Level::NotInForce, reason));
                }
            }
            problems
        }
        Err(error) => {
            let (line, reason) = error.told();
            vec![Problem { line, ..problem(error.path(), Level::Error, reason) }]
        }
    }
}

/// The problem that an agent names an unknown model, if it does.
fn unknown(entry: &Entry, config: &Config) -> Option<Problem> {
    entry.agent.as_ref()?;
    let named = entry.named_models();
    let mut meant = named.iter().filter_map(|model| match config.role(model) {
        Some(role) => role.value.as_ref(),
        None => Some(model),
    });
    let error = meant.find_map(|model| config.catalog().find(model).err())?;
    Some(Problem {
        path: entry.path.clone(),
        line: entry.model_at.map(|(line, _)| line).or(entry.line),
        column: entry.model_at.map(|(_, column)| column),
        level: Level::Error,
        agent: Some(entry.name.to_string()),
        reason: format!("no run of agent `{}` can start: {error}", entry.name),
    })
}
