//! `posse agents list`.

use super::super::{Common, folder};
use super::{model, tools};
use crate::args::CatalogOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::table::{Column, Table};
use posse::agents::{Entry, Level, Source};
use posse::trust::TrustStatus;
use posse::{AgentCatalog, LiveCatalog};
use serde::Serialize;

pub fn run(common: &Common, options: &CatalogOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let catalog = LiveCatalog::load(common.agent_sources(&folder, &options.agents)).current();
    if common.global.json {
        let entries: Vec<EntryView<'_>> = in_order(&catalog).map(EntryView::of).collect();
        print::json_pretty(&entries)?;
        return Ok(Code::Done);
    }
    Table { columns: COLUMNS, rows: in_order(&catalog).map(row).collect() }.print(common)?;
    let wrong = catalog.problems().iter().filter(|it| it.level <= Level::Warning).count() as u64;
    if wrong > 0 && !common.global.quiet {
        let problems = format::count(wrong, "problem");
        print::note(format!("{problems} with definitions; `posse agents check` shows them"));
    }
    Ok(Code::Done)
}

/// The agents in the order in which models see them, each followed by the ones it shadows; then the
/// ones that cannot be used.
fn in_order(catalog: &AgentCatalog) -> impl Iterator<Item = &Entry> {
    let usable = catalog.iter().map(|agent| &agent.name);
    let unusable = catalog.entries().iter().filter(|entry| entry.agent.is_none());
    let names = usable.chain(unusable.map(|entry| &entry.name));
    let mut seen = Vec::new();
    let names = names.filter(move |name| {
        let is_new = !seen.iter().any(|known: &String| known.eq_ignore_ascii_case(name.as_str()));
        seen.push(name.to_string());
        is_new
    });
    names.flat_map(|name| {
        let same = |entry: &&Entry| entry.name.as_str().eq_ignore_ascii_case(name.as_str());
        catalog.entries().iter().filter(same)
    })
}

const COLUMNS: [Column; 5] = [
    Column::text("AGENT"),
    Column::text("MODEL").cut(20, 8).leaves(2),
    Column::text("FROM").cut(24, 8).leaves(3),
    Column::text("DESCRIPTION").cut(30, 10),
    Column::text("TOOLS").cut(20, 8).leaves(1),
];

fn row(entry: &Entry) -> [String; 5] {
    let name = clean_line(entry.name.as_str(), 80);
    let source = clean_line(&entry.source.to_string(), 200);
    match (&entry.shadowed_by, &entry.agent) {
        (Some(by), _) => {
            let by = format!("(shadowed by {})", clean_line(&by.to_string(), 200));
            [format!("  {name}"), String::new(), source, by, String::new()]
        }
        (None, Some(agent)) => {
            let about = format!("{} {}", standing(entry), agent.description);
            [name, model(agent), source, clean_line(&about, 120), tools(agent)]
        }
        (None, None) => {
            let why = "cannot be used: see `posse agents check`".to_owned();
            [name, String::new(), source, why, String::new()]
        }
    }
}

/// A note that the agent is read-only, if its folder is not trusted.
pub fn standing(entry: &Entry) -> String {
    match entry.standing.as_ref().filter(|standing| !standing.is_trusted()) {
        Some(standing) => format!("({}: read-only)", clean_line(&standing.to_string(), 200)),
        None => String::new(),
    }
}

/// A definition in the output of `--json`.
#[derive(Serialize)]
pub struct EntryView<'a> {
    name: &'a str,
    source: &'a Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a std::path::Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    usable: bool,
    /// The trust status of the folder that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<&'a TrustStatus>,
    shadowed_by: Option<&'a Source>,
    #[serde(skip_serializing_if = "<[std::path::PathBuf]>::is_empty")]
    changed_by: &'a [std::path::PathBuf],
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a posse::AgentSpec>,
}

impl<'a> EntryView<'a> {
    /// Its source, file and line.
    pub fn place(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| format!(":{line}"));
        let file = self.path.map(|path| format!(": {}{line}", path.display()));
        clean_line(&format!("{}{}", self.source.kind(), file.unwrap_or_default()), 400)
    }

    pub fn of(entry: &'a Entry) -> Self {
        EntryView {
            name: entry.name.as_str(),
            source: &entry.source,
            path: entry.path.as_deref(),
            line: entry.line,
            usable: entry.agent.is_some(),
            standing: entry.standing.as_ref(),
            shadowed_by: entry.shadowed_by.as_ref(),
            changed_by: &entry.changed_by,
            agent: entry.agent.as_ref(),
        }
    }
}
