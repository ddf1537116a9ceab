//! Rules that files around a folder set for every run in it: the `deny` and `ask` lists of
//! `posse.toml` and of Claude Code's settings, and the mode of these. They only narrow, so nobody has to trust them. They
//! are read whenever a run starts or goes on, so that a new denial holds at once. A file that
//! cannot be understood stops the run: a fence must not fall silently.

mod claude;
mod translate;

pub use claude::ClaudeSettings;

use crate::config::{ConfigError, project_rules};
use crate::error::Error;
use crate::files::{up_to_outermost_root, up_to_root};
use posse_protocol::{Grant, Mode, Permissions};
use posse_tools::confine::is_placeholder;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Where rules are looked for, beside the folder itself and those above it in its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFiles {
    /// The user's own settings of Claude Code (`~/.claude/settings.json`, or those in
    /// `CLAUDE_CONFIG_DIR`), whether they exist or not.
    pub user: Option<PathBuf>,
}

/// The names of a project's settings of Claude Code.
const NAMES: [&str; 2] = ["settings.json", "settings.local.json"];

/// Files and folders of Claude Code, and of others, that Posse does not read yet.
const UNREAD: [&str; 7] = [
    ".mcp.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    ".claude/CLAUDE.md",
    ".claude/commands",
    ".claude/output-styles",
];

impl RuleFiles {
    /// The rules for runs in `folder`.
    ///
    /// # Errors
    /// When a file cannot be read or understood, or has a rule that could not be enforced.
    pub fn rules(&self, folder: &Path) -> Result<Permissions, ConfigError> {
        self.rules_and_files(folder).map(|(rules, _)| rules)
    }

    /// The strictest mode that Claude Code's settings name for runs in `folder`.
    ///
    /// # Errors
    /// As [`RuleFiles::rules`].
    pub fn mode(&self, folder: &Path) -> Result<Option<Mode>, ConfigError> {
        Ok(self.claude(folder)?.into_iter().filter_map(|settings| settings.mode).min())
    }

    /// The same, and the file that each is from.
    fn rules_and_files(&self, folder: &Path) -> Result<(Permissions, Files), ConfigError> {
        let own = folder.join("posse.toml");
        check_link(&own)?;
        let mut rules = project_rules(&own)?;
        let mut files = Files::new();
        let mut note = |rules: &[String], path: &Path| {
            for rule in rules {
                files.entry(rule.clone()).or_insert_with(|| shown(path, folder));
            }
        };
        note(&rules.deny, &own);
        note(&rules.ask, &own);
        for settings in self.claude(folder)? {
            note(&settings.deny, &settings.path);
            note(&settings.ask, &settings.path);
            rules.deny.extend(settings.deny);
            rules.ask.extend(settings.ask);
        }
        Ok((rules, files))
    }

    /// Claude Code's settings for `folder`: the user's, the project's and those above it, up to the
    /// outermost repository around it. An agent can make a repository within another: it must not
    /// cut off the rules above.
    ///
    /// # Errors
    /// As [`RuleFiles::rules`].
    pub fn claude(&self, folder: &Path) -> Result<Vec<ClaudeSettings>, ConfigError> {
        let mut found = Vec::new();
        for ancestor in up_to_outermost_root(folder) {
            for name in NAMES {
                let path = ancestor.join(".claude").join(name);
                check_link(&ancestor.join(".claude"))?;
                check_link(&path)?;
                found.extend(ClaudeSettings::read(&path, Some(&ancestor), folder)?);
            }
        }
        let Some(user) = &self.user else { return Ok(found) };
        check_link(user)?;
        let Some(of_user) = ClaudeSettings::read(user, None, folder)? else { return Ok(found) };
        // Where the home folder is a repository, they are a project's too, and hold as both.
        match found.iter_mut().find(|settings| settings.path == *user) {
            Some(known) => known.add_rules(of_user),
            None => found.push(of_user),
        }
        Ok(found)
    }

    /// What of Claude Code's files for `folder` has no effect here, a phrase each.
    ///
    /// # Errors
    /// As [`RuleFiles::rules`].
    pub fn unused(&self, folder: &Path) -> Result<Vec<String>, ConfigError> {
        let settings = self.claude(folder)?;
        let settings = settings.iter().filter(|settings| !settings.unused.is_empty());
        let mut unused: Vec<String> = settings
            .map(|settings| {
                let path = shown(&settings.path, folder);
                format!("{path} ({})", settings.unused.join(", "))
            })
            .collect();
        for ancestor in up_to_root(folder) {
            let there = UNREAD.iter().map(|name| ancestor.join(name));
            let there = there.filter(|path| {
                let data = std::fs::metadata(path);
                data.is_ok_and(|data| !is_placeholder(&data))
            });
            unused.extend(there.map(|path| shown(&path, folder)));
        }
        Ok(unused)
    }
}

/// Files, by the rules that are from them.
type Files = HashMap<String, String>;

/// The rules that `files` set for a run with `grant`, and where they are from.
pub(crate) fn of_grant(
    files: Option<&RuleFiles>,
    grant: &Grant,
) -> Result<(Permissions, Files), Error> {
    let Some(files) = files else { return Ok(Default::default()) };
    files.rules_and_files(folder_of(grant)).map_err(|error| Error::InvalidInput(error.to_string()))
}

/// The mode that `files` set for a run with `grant` for which nobody names one.
pub(crate) fn mode_of(files: Option<&RuleFiles>, grant: &Grant) -> Result<Option<Mode>, Error> {
    let Some(files) = files else { return Ok(None) };
    let found = files.mode(folder_of(grant));
    found.map_err(|error| Error::InvalidInput(error.to_string()))
}

/// Where the rules for a run with `grant` are looked for. A worktree is a copy: what holds for the
/// checkout holds for it.
fn folder_of(grant: &Grant) -> &Path {
    let origin = grant.worktree.as_ref().map(|worktree| &worktree.origin);
    Path::new(origin.unwrap_or(&grant.workspace))
}

/// Refuses a link to nothing: somebody meant rules to be there.
fn check_link(path: &Path) -> Result<(), ConfigError> {
    match std::fs::read_link(path) {
        Ok(target) if std::fs::metadata(path).is_err() => Err(ConfigError::Unreadable {
            path: path.to_owned(),
            reason: format!(
                "it is a link to {}, which cannot be reached. Mend the link, or remove it",
                target.display()
            ),
        }),
        _ => Ok(()),
    }
}

fn shown(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
