//! A settings file as it is written.

use super::agents::FileAgent;
use super::budget::FileBudget;
use super::command::FileCommand;
use super::lanes::FileLanes;
use super::limits::FileLimits;
use super::patience::FilePatience;
use super::permissions::FilePermissions;
use super::skills::FileSkills;
use super::webhooks::FileWebhook;
use super::{ConfigError, words};
use crate::definition::subagents::FileSubagents;
use posse_model::catalog::{Additions, ModelRow, VendorRow};
use posse_protocol::{AgentName, DelegationStrategy, Effort};
use posse_store::Durability;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The largest settings file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Whether unfinished runs go on by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoResume {
    /// They go on.
    Continue,
    /// They wait for `posse runs resume`.
    Wait,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    #[serde(deserialize_with = "one_or_more")]
    pub(super) model: Vec<String>,
    pub(super) small_model: Option<String>,
    pub(super) plan_model: Option<String>,
    pub(super) effort: Option<Effort>,
    pub(super) agent: Option<AgentName>,
    pub(super) max_concurrent: Option<usize>,
    pub(super) max_depth: Option<u32>,
    pub(super) strategy: Option<DelegationStrategy>,
    pub(super) plugins: Option<Vec<PathBuf>>,
    pub(super) recovery: Option<AutoResume>,
    pub(super) stall_after: Option<String>,
    durability: Option<DurabilityWord>,
    #[serde(alias = "archiveAfterMinutes")]
    pub(super) archive_after_minutes: Option<u64>,
    pub(super) retention_days: Option<u64>,
    pub(super) lanes: FileLanes,
    pub(super) limits: FileLimits,
    pub(super) command: FileCommand,
    pub(super) budget: FileBudget,
    pub(super) patience: FilePatience,
    pub(super) permissions: FilePermissions,
    pub(super) skills: FileSkills,
    pub(super) subagents: FileSubagents,
    pub(super) webhooks: Vec<FileWebhook>,
    pub(super) agents: BTreeMap<AgentName, Spanned<FileAgent>>,
    vendors: BTreeMap<String, VendorRow>,
    models: BTreeMap<String, ModelRow>,
    aliases: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DurabilityWord {
    Power,
    Process,
}

impl File {
    pub(super) fn durability(&self) -> Option<Durability> {
        self.durability.map(|word| match word {
            DurabilityWord::Power => Durability::Power,
            DurabilityWord::Process => Durability::Process,
        })
    }

    /// What it adds to the catalog of vendors and models.
    pub(super) fn additions(&mut self) -> Additions {
        Additions {
            vendors: std::mem::take(&mut self.vendors),
            models: std::mem::take(&mut self.models),
            aliases: std::mem::take(&mut self.aliases),
        }
    }

    /// Takes away what can do more than narrow, and says which keys those were.
    pub(super) fn hold_back(&mut self) -> Vec<&'static str> {
        let mut held_back = Vec::new();
        let mut note = |key: &'static str, was_set: bool| {
            held_back.extend(was_set.then_some(key));
        };
        note("model", !std::mem::take(&mut self.model).is_empty());
        note("small_model", self.small_model.take().is_some());
        note("plan_model", self.plan_model.take().is_some());
        note("effort", self.effort.take().is_some());
        note("agent", self.agent.take().is_some());
        note("strategy", self.strategy.take().is_some());
        held_back.extend(self.subagents.hold_back());
        held_back
    }

    /// The keys it sets that are not a project's to set: what reaches beyond the project, and
    /// what says where keys are sent.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let reserved = [
            ("max_concurrent", self.max_concurrent.is_some()),
            ("lanes", !self.lanes.is_empty()),
            ("recovery", self.recovery.is_some()),
            ("stall_after", self.stall_after.is_some()),
            ("durability", self.durability.is_some()),
            ("archive_after_minutes", self.archive_after_minutes.is_some()),
            ("retention_days", self.retention_days.is_some()),
            ("plugins", self.plugins.is_some()),
            ("patience", !self.patience.is_empty()),
            ("command.variables", self.command.variables.is_some()),
            ("command.readable", self.command.readable.is_some()),
            ("permissions.allow", self.permissions.allow.is_some()),
            ("permissions.mode", self.permissions.mode.is_some()),
            ("skills.extra_dirs", self.skills.extra_dirs.is_some()),
            ("skills.inherit", self.skills.inherit.is_some()),
            ("subagents.max_concurrent", self.subagents.max_concurrent.is_some()),
            ("subagents.archive_after_minutes", self.subagents.archive_after_minutes.is_some()),
            ("subagents.default_cleanup", self.subagents.default_cleanup.is_some()),
            ("webhooks", !self.webhooks.is_empty()),
            ("vendors", !self.vendors.is_empty()),
            ("models", !self.models.is_empty()),
            ("aliases", !self.aliases.is_empty()),
        ];
        reserved.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

/// The text of the settings at `path`, if there are any.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_owned(), reason };
    match std::fs::metadata(path) {
        // A file in the place of a folder on the way, and a folder that is not there.
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
        // While commands run in this folder, this holds the place of a file that must not appear.
        Ok(data) if posse_tools::confine::is_placeholder(&data) => return Ok(None),
        Ok(data) if !data.is_file() => return Err(unreadable("it is not a file".to_owned())),
        Ok(data) if data.len() > MAX_BYTES => {
            return Err(unreadable(format!("it is larger than {MAX_BYTES} bytes")));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| unreadable(error.to_string()))
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The file at `path` and its text, if there is one.
pub(super) fn read(path: &Path) -> Result<Option<(File, String)>, ConfigError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    match toml::from_str(&text) {
        Ok(file) => Ok(Some((file, text))),
        Err(error) => Err(words::unreadable(path, &text, &error)),
    }
}

/// Reads a text or a list of them. An empty list is refused: it would say nothing.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a model or a list of models")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    match OneOrMore::deserialize(from)? {
        OneOrMore::One(one) => Ok(vec![one]),
        OneOrMore::More(more) if more.is_empty() => {
            Err(serde::de::Error::custom("the list of models is empty; name one, or leave it out"))
        }
        OneOrMore::More(more) => Ok(more),
    }
}
