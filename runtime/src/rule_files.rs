//! Rules that files around a folder set for every run in it: the `deny` and `ask` lists of
//! `posse.toml` and of the settings of Claude Code, and the mode of the latter. They only narrow,
//! so they need no trust. Posse reads them whenever a run starts or resumes, so that a new denial
//! applies at once. An invalid file stops the run, so that no rule is lost unnoticed.

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

/// Where to look for rules, in addition to the folder itself and its parents in its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFiles {
    /// The Claude Code settings of the user (`~/.claude/settings.json`, or in `CLAUDE_CONFIG_DIR`),
    /// which need not exist.
    pub user: Option<PathBuf>,
}

/// The file names of Claude Code settings in a project.
const NAMES: [&str; 2] = ["settings.json", "settings.local.json"];

/// Files and folders of Claude Code, and of others, that Posse does not read yet.
const UNREAD: [&str; 1] = [".claude/output-styles"];

impl RuleFiles {
    /// Returns the rules for runs in `folder`.
    ///
    /// # Errors
    /// When a file cannot be read or is invalid, or has a rule that cannot be enforced.
    pub fn rules(&self, folder: &Path) -> Result<Permissions, ConfigError> {
        self.rules_and_files(folder).map(|(rules, _)| rules)
    }

    /// Returns the strictest mode that the settings of Claude Code name for runs in `folder`.
    ///
    /// # Errors
    /// As [`RuleFiles::rules`].
    pub fn mode(&self, folder: &Path) -> Result<Option<Mode>, ConfigError> {
        Ok(self.claude(folder)?.into_iter().filter_map(|settings| settings.mode).min())
    }

    /// Returns the rules, and the file that each is from.
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

    /// Returns the settings of Claude Code for `folder`: those of the user, of the project and of
    /// the folders above, up to the outermost repository. An agent can make a repository inside
    /// another: this must not cut off the rules above.
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
        // If the home folder is a repository, its settings also apply as those of a project.
        match found.iter_mut().find(|settings| settings.path == *user) {
            Some(known) => known.add_rules(of_user),
            None => found.push(of_user),
        }
        Ok(found)
    }

    /// Returns the parts of Claude Code files for `folder` without effect in Posse, a phrase each.
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

/// The files that rules are from, by rule.
type Files = HashMap<String, String>;

/// Returns the rules that `files` set for a run with `grant`, and where they are from.
pub(crate) fn of_grant(
    files: Option<&RuleFiles>,
    grant: &Grant,
) -> Result<(Permissions, Files), Error> {
    let Some(files) = files else { return Ok(Default::default()) };
    files.rules_and_files(folder_of(grant)).map_err(|error| Error::InvalidInput(error.to_string()))
}

/// Returns the mode that `files` set for a run with `grant` that names none.
pub(crate) fn mode_of(files: Option<&RuleFiles>, grant: &Grant) -> Result<Option<Mode>, Error> {
    let Some(files) = files else { return Ok(None) };
    let found = files.mode(folder_of(grant));
    found.map_err(|error| Error::InvalidInput(error.to_string()))
}

/// Returns where to look for the rules of a run with `grant`. A worktree is a copy, so the rules of
/// the original checkout apply. A checkout of a repository has its own.
fn folder_of(grant: &Grant) -> &Path {
    let worktree = grant.worktree.as_ref().filter(|_| grant.site.repository().is_none());
    let origin = worktree.map(|worktree| &worktree.origin);
    Path::new(origin.unwrap_or(&grant.workspace))
}

/// Refuses a broken link: its author meant rules to be there.
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
