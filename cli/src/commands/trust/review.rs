//! The agents, skills and settings of folders, and what trusting them would change.

use super::super::Common;
use crate::clean::clean_line;
use crate::exit::Failure;
use crate::{format, print};
use posse::LiveCatalog;
use posse::agents::{Source, built_in_tools, granted_tools};
use posse::config::{Config, Sources};
use posse::mcp::FoundServer;
use posse::mcp_settings::MCP_JSON;
use posse::skills::Source as SkillSource;
use posse::trust::{Change, FilesToTrust, TrustedFolders};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub struct Review {
    pub folders: Vec<Shown>,
}

/// The content of one folder in the output of `--json`.
#[derive(Serialize)]
pub struct Shown {
    folder: PathBuf,
    digest: String,
    agents: Vec<ShownAgent>,
    skills: Vec<ShownSkill>,
    servers: Vec<ShownServer>,
    /// The keys of its settings that would take effect.
    settings: Vec<&'static str>,
    /// Why its settings cannot be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    /// The changes since it was trusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<Change>,
    /// Settings of Claude Code: those in force without trust, and those not used.
    claude: Vec<String>,
    /// All files that the trust covers.
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct ShownAgent {
    name: String,
    path: PathBuf,
    /// The tools it would have.
    tools: Vec<String>,
    /// The tools it has without trust.
    tools_now: Vec<String>,
}

#[derive(Serialize)]
struct ShownSkill {
    name: String,
    path: PathBuf,
    scripts: Vec<String>,
}

/// A program that runs would start, outside of any call.
#[derive(Serialize)]
struct ShownServer {
    name: String,
    command: String,
    /// Its variables. A value is shown only if it comes from a variable of the user: the log of trust keeps these lines.
    variables: Vec<String>,
}

impl ShownServer {
    fn of(server: &FoundServer) -> Self {
        let settings = &server.settings;
        let shown = |(name, value): (&String, &String)| match value.contains("${") {
            true => format!("{name}={value}"),
            false => name.clone(),
        };
        ShownServer {
            name: settings.name.clone(),
            command: settings.command_line(),
            variables: settings.env.iter().map(shown).collect(),
        }
    }
}

impl Review {
    /// What trusting `found`, which are around `folder`, would change.
    pub fn of(common: &Common, folder: &Path, found: &[&FilesToTrust]) -> Result<Self, Failure> {
        let untrusted = Sources { trust: TrustedFolders::default(), ..common.sources(folder) };
        common.user_config()?;
        // A file that cannot be read has no effect, and is reported.
        let (held_back, unreadable) = match Config::load(&untrusted) {
            Ok(config) => (config.held_back, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let mut trusting = common.clone();
        trusting.trust_for_now(folder)?;
        let now = LiveCatalog::load(common.agent_sources(folder, &[])).current();
        let then = LiveCatalog::load(trusting.agent_sources(folder, &[])).current();
        let skills = common.skills(Some(folder.to_owned())).current();
        let claude = common.rule_files().claude(folder)?;
        let servers = common.mcp_servers(&common.user_config()?).around(folder).servers;
        let tools = built_in_tools();
        let granted = |entry: &posse::agents::Entry| {
            entry.agent.as_ref().map_or_else(Vec::new, |agent| granted_tools(&tools, &agent.rights))
        };
        let shown = |brought: &&FilesToTrust| {
            let agents = then.entries().iter().filter_map(|entry| {
                let Source::Project { path } = &entry.source else { return None };
                let path = entry.path.as_ref().filter(|_| is_of(path, &brought.folder))?;
                let same =
                    |it: &&posse::agents::Entry| it.source == entry.source && it.name == entry.name;
                let before = now.entries().iter().find(same);
                Some(ShownAgent {
                    name: entry.name.to_string(),
                    path: below(path, &brought.folder),
                    tools: granted(entry),
                    tools_now: before.map_or_else(Vec::new, granted),
                })
            });
            let skills = skills.entries().iter().filter_map(|entry| {
                let SkillSource::Project { path } = &entry.source else { return None };
                let skill = entry.skill.as_ref().filter(|_| is_of(path, &brought.folder))?;
                let scripts = skill.scripts();
                (!scripts.is_empty()).then(|| ShownSkill {
                    name: entry.name.clone(),
                    path: below(&skill.folder, &brought.folder),
                    scripts,
                })
            });
            Shown {
                folder: brought.folder.clone(),
                digest: brought.digest.clone(),
                agents: agents.collect(),
                skills: skills.collect(),
                servers: servers
                    .iter()
                    .filter(|server| server.file.parent() == Some(brought.folder.as_path()))
                    .filter(|server| server.is_of_project)
                    .map(ShownServer::of)
                    .collect(),
                settings: match brought.folder == folder {
                    true => held_back.iter().map(|key| key.value).collect(),
                    false => Vec::new(),
                },
                unreadable: unreadable.clone().filter(|_| brought.folder == folder),
                changed: common.trust.changes(&brought.folder),
                claude: claude
                    .iter()
                    .filter(|settings| settings.path.starts_with(&brought.folder))
                    .map(|settings| {
                        let rules = settings.deny.len() + settings.ask.len();
                        let rules = format::count(rules as u64, "rule");
                        let path = below(&settings.path, &brought.folder);
                        let path = path.display();
                        match settings.unused.is_empty() {
                            true => format!("{path}: {rules} in effect, trusted or not"),
                            false => format!(
                                "{path}: {rules} in effect, trusted or not; Posse does not use yet: {}",
                                settings.unused.join(", ")
                            ),
                        }
                    })
                    .collect(),
                files: brought.files.clone(),
            }
        };
        Ok(Review { folders: found.iter().map(shown).collect() })
    }

    pub fn print(&self) -> Result<(), Failure> {
        for shown in &self.folders {
            let folder = clean_line(&shown.folder.display().to_string(), 400);
            let changes = shown.changes();
            if !changes.is_empty() {
                print::line(format!(
                    "{folder}: changed since you trusted it (+ new, ~ changed, - removed):"
                ))?;
                for change in changes {
                    print::line(format!("  {change}"))?;
                }
            }
            print::line(format!("{folder} contains:"))?;
            for line in shown.lines() {
                print::line(format!("  {line}"))?;
            }
            let files = format::count(shown.files.len() as u64, "file");
            print::line(format!("  {files} in all; Posse asks again when one changes"))?;
        }
        Ok(())
    }
}

impl Shown {
    /// The changes since it was trusted, and what each would grant, one per line.
    pub fn changes(&self) -> Vec<String> {
        let line = |change: &Change| {
            let path = Path::new(change.path());
            let agents = self.agents.iter().filter(|agent| agent.path == path);
            let tools = agents.flat_map(ShownAgent::more).collect::<Vec<_>>();
            let told = match tools.as_slice() {
                [] => change.to_string(),
                tools => format!("{change} ({})", tools.join(", ")),
            };
            clean_line(&told, 400)
        };
        self.changed.iter().map(line).collect()
    }

    /// Its content, one item per line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for agent in &self.agents {
            let ShownAgent { name, path, .. } = agent;
            let more: Vec<&str> = agent.more().collect();
            let effect = match more.as_slice() {
                [] => "no additional tools".to_owned(),
                more => format!("would also get {}", more.join(", ")),
            };
            lines.push(format!("agent {name} ({}): {effect}", path.display()));
        }
        for ShownSkill { name, path, scripts } in &self.skills {
            let scripts = scripts.join(", ");
            let path = path.display();
            lines.push(format!(
                "skill {name} ({path}): agents could load it; it has scripts: {scripts}"
            ));
        }
        for ShownServer { name, command, variables } in &self.servers {
            let with = match variables.as_slice() {
                [] => String::new(),
                variables => format!(", with {}", variables.join(" ")),
            };
            lines.push(format!("MCP server {name} ({MCP_JSON}): would start {command}{with}"));
        }
        if !self.settings.is_empty() {
            let keys = self.settings.join(", ");
            lines.push(format!("settings (posse.toml): {keys} would take effect"));
        }
        if let Some(why) = &self.unreadable {
            lines.push(format!("settings that cannot be read: {why}"));
        }
        lines.extend(self.claude.iter().cloned());
        let is_told = |file: &PathBuf| {
            let is_settings = file.as_path() == Path::new("posse.toml");
            self.agents.iter().any(|agent| agent.path == *file)
                || self.skills.iter().any(|skill| file.starts_with(&skill.path))
                || file.as_path() == Path::new(MCP_JSON) && !self.servers.is_empty()
                || is_settings && (!self.settings.is_empty() || self.unreadable.is_some())
                || self.claude.iter().any(|line| {
                    line.strip_prefix(&*file.to_string_lossy())
                        .is_some_and(|it| it.starts_with(':'))
                })
        };
        let others = self.files.iter().filter(|file| !is_told(file));
        let (unused, plain): (Vec<&PathBuf>, Vec<_>) = others.partition(|file| is_unused(file));
        for (what, files) in
            [("Posse does not use these yet", unused), ("in effect without trust", plain)]
        {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            if !files.is_empty() {
                lines.push(format!("{what}: {}", files.join(", ")));
            }
        }
        lines.iter().map(|line| clean_line(line, 1_000)).collect()
    }
}

impl ShownAgent {
    /// The additional tools that it would have.
    fn more(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter(|it| !self.tools_now.contains(it)).map(String::as_str)
    }
}

/// True when no part of Posse uses the file at `path` below a folder.
fn is_unused(path: &Path) -> bool {
    let mut names = path.iter().filter_map(|name| name.to_str());
    match (names.next(), names.next()) {
        (Some(".claude" | ".posse"), Some("agents" | "commands" | "skills")) => false,
        (Some(".claude" | ".posse"), _) => true,
        _ => false,
    }
}

/// True when the agent or skill at `path` belongs to `folder`.
fn is_of(path: &Path, folder: &Path) -> bool {
    path.parent() == Some(folder) || path.parent().and_then(Path::parent) == Some(folder)
}

fn below(path: &Path, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}
