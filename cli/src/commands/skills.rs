//! `posse skills`: lists skills, where each comes from, and their problems.

use super::{Common, folder};
use crate::args::SkillsVerb;
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::table::{Column, Table};
use posse::agents::{Level, Problem};
use posse::protocol::near;
use posse::skills::{Entry, Skill, Source, Sources};
use posse::trust::TrustStatus;
use posse::{LiveSkills, SkillCatalog};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn run(common: &Common, verb: SkillsVerb) -> Result<Code, Failure> {
    match verb {
        SkillsVerb::List(options) => list(common, &folder(options.cwd.as_ref())?),
        SkillsVerb::Show { name, arguments, options } => {
            show(common, &name, &arguments.join(" "), &folder(options.cwd.as_ref())?)
        }
        SkillsVerb::Check { paths, options } => {
            check(common, &paths, &folder(options.cwd.as_ref())?)
        }
    }
}

fn list(common: &Common, folder: &Path) -> Result<Code, Failure> {
    let catalog = common.skills(Some(folder.to_owned())).current();
    let mut entries: Vec<&Entry> = catalog.entries().iter().collect();
    // The skills by name, each followed by the ones it shadows.
    entries.sort_by_key(|entry| entry.name.to_ascii_lowercase());
    if common.global.json {
        let entries: Vec<EntryView<'_>> = entries.into_iter().map(EntryView::of).collect();
        print::json_pretty(&entries)?;
        return Ok(Code::Done);
    }
    let rows: Vec<[String; 3]> = entries.into_iter().map(row).collect();
    let table = Table { columns: COLUMNS, rows };
    table.print(common)?;
    if !common.global.quiet {
        if table.rows.is_empty() {
            print::note("no skills: put a folder with a SKILL.md into .posse/skills");
        }
        let wrong = catalog.problems().iter().filter(|it| it.level <= Level::Warning).count();
        if wrong > 0 {
            let problems = format::count(wrong as u64, "problem");
            print::note(format!("{problems} with skills; `posse skills check` shows them"));
        }
    }
    Ok(Code::Done)
}

const COLUMNS: [Column; 3] = [
    Column::text("SKILL"),
    Column::text("FROM").cut(24, 8).leaves(1),
    Column::text("DESCRIPTION").cut(30, 10),
];

/// The name, the source, and the purpose or the reason why it is not used.
fn row(entry: &Entry) -> [String; 3] {
    let name = clean_line(&entry.name, 80);
    let source = clean_line(&entry.source.to_string(), 200);
    let about = match (&entry.shadowed_by, &entry.skill) {
        (Some(by), _) => {
            let by = clean_line(&by.to_string(), 200);
            return [format!("  {name}"), source, format!("(shadowed by {by})")];
        }
        (None, _) if entry.is_denied => "(denied by the settings)".to_owned(),
        (None, Some(skill)) if is_inert(entry) => {
            format!("(listed only: {}, with scripts) {}", standing(entry), skill.description)
        }
        (None, Some(skill)) if skill.is_manual => format!("(not offered) {}", skill.description),
        (None, Some(skill)) => skill.description.clone(),
        (None, None) => "cannot be used: see `posse skills check`".to_owned(),
    };
    [name, source, clean_line(&about, 400)]
}

/// True when the folder of the skill is not trusted and the skill has scripts.
fn is_inert(entry: &Entry) -> bool {
    entry.is_untrusted() && entry.skill.as_ref().is_some_and(|skill| !skill.scripts().is_empty())
}

/// The trust status of the folder that the skill comes from.
fn standing(entry: &Entry) -> String {
    entry.standing.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// A skill in the output of `--json`.
#[derive(Serialize)]
struct EntryView<'a> {
    name: &'a str,
    source: &'a Source,
    path: &'a Path,
    usable: bool,
    denied: bool,
    /// The trust status of the folder that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<&'a TrustStatus>,
    shadowed_by: Option<&'a Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<&'a Skill>,
}

impl<'a> EntryView<'a> {
    fn of(entry: &'a Entry) -> Self {
        EntryView {
            name: &entry.name,
            source: &entry.source,
            path: &entry.file,
            usable: entry.skill.is_some()
                && !entry.is_denied
                && entry.shadowed_by.is_none()
                && !is_inert(entry),
            standing: entry.standing.as_ref(),
            denied: entry.is_denied,
            shadowed_by: entry.shadowed_by.as_ref(),
            skill: entry.skill.as_ref(),
        }
    }
}

fn show(common: &Common, name: &str, arguments: &str, folder: &Path) -> Result<Code, Failure> {
    let catalog = common.skills(Some(folder.to_owned())).current();
    let Some(entry) = catalog.entry(name) else {
        let known = catalog.iter().map(|skill| skill.name.as_str());
        let suggestion = near::suggestion(name, known, "`posse skills list` lists all");
        return Err(Failure::usage(format!("there is no skill `{name}`; {suggestion}")));
    };
    let problems: Vec<&Problem> = catalog
        .problems()
        .iter()
        .filter(|problem| problem.path.as_deref() == Some(&entry.file))
        .collect();
    let Some(skill) = &entry.skill else {
        let error = problems.iter().find(|problem| problem.level == Level::Error);
        let why = error.map_or_else(String::new, ToString::to_string);
        return Err(Failure::usage(format!("the skill `{name}` cannot be used: {why}")));
    };
    let body = skill.body(arguments).map_err(|why| {
        Failure::usage(format!("the skill `{name}` cannot be read: {why}"))
            .hint("it has just changed; try again")
    })?;
    let files = skill.files();
    if common.global.json {
        print::json_pretty(&json!({
            "entry": EntryView::of(entry), "body": body, "files": files, "problems": problems,
        }))?;
        return Ok(Code::Done);
    }
    for (name, value) in facts(entry, skill, &files) {
        print::line(format!("{name:11} {value}"))?;
    }
    print::line(format!("\n{}", clean(&body)))?;
    for problem in problems {
        print::note(clean_line(&problem.to_string(), 600));
    }
    Ok(Code::Done)
}

fn facts(entry: &Entry, skill: &Skill, files: &[String]) -> Vec<(&'static str, String)> {
    let state = match entry.is_denied {
        true => "denied by the settings".to_owned(),
        false if is_inert(entry) => format!("listed only: {}, with scripts", standing(entry)),
        false if skill.is_command => {
            format!("a command: only people invoke it, with `/{}`", skill.name)
        }
        false if skill.is_manual => "not offered to models (disable-model-invocation)".to_owned(),
        false => String::new(),
    };
    let from = format!("{}: {}", entry.source.kind(), entry.file.display());
    let facts = [
        ("skill", clean_line(&skill.name, 200)),
        ("from", clean_line(&from, 400)),
        ("about", clean_line(&skill.description, 2_000)),
        ("state", state),
        ("scripts", clean_line(&skill.scripts().join(", "), 2_000)),
        ("arguments", clean_line(&skill.arguments.join(", "), 400)),
        ("hint", clean_line(&skill.argument_hint, 400)),
        ("asks for", clean_line(&skill.allowed_tools.join(", "), 400)),
        ("licence", clean_line(&skill.license, 200)),
        ("files", clean_line(&files.join(", "), 2_000)),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn check(common: &Common, paths: &[PathBuf], folder: &Path) -> Result<Code, Failure> {
    let catalog = common.skills(Some(folder.to_owned())).current();
    let (mut skills, mut problems) = (0, Vec::new());
    if paths.is_empty() {
        skills = catalog.entries().len();
        problems.extend(catalog.problems().iter().cloned());
        let agents = posse::LiveCatalog::load(common.agent_sources(folder, &[]));
        problems.extend(catalog.check_agents(&agents.current()));
    }
    for path in paths {
        let found = look(&catalog, path)?;
        skills += found.0;
        problems.extend(found.1);
    }
    problems.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    let count = |level: Level| problems.iter().filter(|it| it.level == level).count() as u64;
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if common.global.json {
        print::json_pretty(&json!({
            "skills": skills, "errors": errors, "warnings": warnings, "problems": problems,
        }))?;
    } else {
        for problem in &problems {
            print::line(clean_line(&problem.to_string(), 2_000))?;
        }
        if !common.global.quiet {
            print::note(format!(
                "{} checked: {}, {}",
                format::count(skills as u64, "skill"),
                format::count(errors, "error"),
                format::count(warnings, "warning")
            ));
        }
    }
    Ok(if errors > 0 { Code::Usage } else { Code::Done })
}

/// The number of skills in a file or folder, and their problems.
fn look(catalog: &SkillCatalog, path: &Path) -> Result<(usize, Vec<Problem>), Failure> {
    let real = path.canonicalize().map_err(|error| {
        Failure::usage(format!("cannot check {}: {error}", path.display()))
            .hint("name folders of skills, or a SKILL.md")
    })?;
    let found = within(catalog, &real);
    if found.0 > 0 || !found.1.is_empty() {
        return Ok(found);
    }
    // Posse does not read skills from there, so check it like a folder of the settings.
    let folder = if real.is_dir() { Some(real.as_path()) } else { real.parent() };
    let extra_folders = folder.map(Path::to_owned).into_iter().collect();
    let sources = Sources { extra_folders, ..Sources::default() };
    let found = within(&LiveSkills::load(sources).current(), &real);
    if found.0 == 0 && found.1.is_empty() {
        return Err(Failure::usage(format!("{} holds no skill", path.display()))
            .hint("a skill is a folder with a SKILL.md"));
    }
    Ok(found)
}

/// The number of skills of `catalog` in the file or folder at `place`, which is canonical, and
/// their problems.
fn within(catalog: &SkillCatalog, place: &Path) -> (usize, Vec<Problem>) {
    let is_there = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(place));
    let entries = catalog.entries().iter().filter(|entry| is_there(&entry.file)).count();
    let problems = catalog.problems().iter();
    let problems = problems.filter(|it| it.path.as_deref().is_some_and(is_there));
    (entries, problems.cloned().collect())
}
