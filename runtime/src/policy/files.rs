//! Rules about paths for open files. The path in a call may lead through links to another file, and
//! a search finds files that no call names.

use super::links::Links;
use super::rule::{EDIT, READ, WRITING};
use super::set::Rules;
use super::subject::{Extent, Target};
use super::{Policy, links};
use posse_protocol::Mode;
use posse_tools::{PathRules, Reached, TooMuch, Usage};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The rules of a policy about open files.
pub struct FileRules(Arc<Policy>, OnceLock<Links>);

impl FileRules {
    /// Returns the rules of `policy` about files; `None` if it neither restricts paths nor asks
    /// about edits.
    pub fn of(policy: &Arc<Policy>) -> Option<Arc<dyn PathRules>> {
        let sets = [&policy.deny, &policy.ask];
        let about = sets.into_iter().chain(&policy.scopes).any(Rules::have_paths);
        let matters = about || policy.mode < Mode::AcceptEdits;
        matters.then(|| Arc::new(FileRules(policy.clone(), OnceLock::new())) as Arc<dyn PathRules>)
    }

    /// Returns where denied links led when this was first called.
    fn links(&self) -> &Links {
        let policy = &self.0;
        self.1.get_or_init(|| {
            Links::find(
                &policy.deny,
                [&policy.workspace].into_iter().chain(policy.origin()).map(String::as_str),
            )
        })
    }
}

impl FileRules {
    /// Returns the rules that keep files from a command. Posse cannot ask a person while a command
    /// runs, so these include the rules that ask.
    fn of_commands(&self) -> [&Rules; 2] {
        [&self.0.deny, &self.0.ask]
    }

    fn mean(&self, tools: &[&str], path: &Path) -> bool {
        let target = Target::open(path, Extent::File);
        let mean =
            |rules: &Rules| tools.iter().any(|tool| rules.path_rule(tool, &target).is_some());
        self.of_commands().into_iter().any(mean)
    }

    fn reach_into(&self, tools: &[&str], folder: &Path) -> bool {
        let target = Target::open(folder, Extent::File);
        let reach = |rules: &Rules| tools.iter().any(|tool| rules.reach_into(tool, &target));
        self.of_commands().into_iter().any(reach)
    }
}

impl PathRules for FileRules {
    fn refuse(
        &self,
        tool: Option<&str>,
        usage: Usage,
        reached: Reached,
        named: &Path,
        real: &Path,
    ) -> Option<String> {
        let extent = match usage {
            Usage::Read | Usage::Change => Extent::File,
            Usage::List => Extent::Names,
            Usage::Walk | Usage::Tree => Extent::All,
        };
        let tool = tool.unwrap_or(if usage == Usage::Change { EDIT } else { READ });
        let policy = &self.0;
        let target = Target::open(real, extent);
        let text = &target.path;
        if usage == Usage::Tree
            && self.of_commands().iter().any(|rules| rules.reach_into(tool, &target))
        {
            return Some("rules deny some of what is below it: name another folder".to_owned());
        }
        if let Some(rule) = policy.deny.path_rule(tool, &target) {
            return Some(format!("the rule `{rule}` denies it"));
        }
        if let Some(rule) = self.links().rule(tool, &target) {
            return Some(format!("the rule `{rule}` denies a link to it"));
        }
        let judged = reached == Reached::Named && named == real;
        if judged {
            return None;
        }
        if let Some(rule) = policy.ask.path_rule(tool, &target) {
            return Some(format!("a person has to be asked (`{rule}`): use the path {text}"));
        }
        if !policy.is_own(&target, tool) {
            let outside = |scope: &&Rules| {
                scope.are_about(tool) && scope.allowed_path(tool, &target).is_none()
            };
            // The files that a search finds are checked one by one.
            let walks = usage == Usage::Walk;
            if let Some(scope) = policy.scopes.iter().find(outside).filter(|_| !walks) {
                return Some(format!("it is outside of {}", scope.texts().join(", ")));
            }
        }
        // The user allowed one path, and this is another.
        let asks = usage == Usage::Change && policy.mode < Mode::AcceptEdits;
        asks.then(|| format!("it leads through a link to {text}: use that path"))
    }

    fn hide_some_in(&self, folder: &Path) -> bool {
        // Everything outside a scope is refused.
        self.0.scopes.iter().any(|scope| scope.have_paths_for(READ))
            || self.reach_into(&[READ], folder)
    }

    fn checkouts(&self) -> Vec<PathBuf> {
        self.0.origin().into_iter().map(PathBuf::from).collect()
    }

    fn elsewhere(&self) -> Vec<PathBuf> {
        let sets = self.of_commands().into_iter();
        let named = sets.flat_map(|rules| rules.folders_elsewhere(READ));
        // A worktree is a copy, and rules may name the files by their originals.
        let copied = self.0.worktree.iter().flat_map(|worktree| worktree.folders());
        named.chain(copied).map(PathBuf::from).collect()
    }

    fn denies_read(&self, real: &Path) -> bool {
        self.mean(&[READ], real)
    }

    fn denies_some_reads_in(&self, folder: &Path) -> bool {
        self.reach_into(&[READ], folder)
    }

    fn deny_some_changes_in(&self, folder: &Path) -> bool {
        self.reach_into(&WRITING, folder)
    }

    fn denies_change(&self, real: &Path) -> bool {
        self.mean(&WRITING, real)
    }

    fn linked(&self, usage: Usage, link: &Path) -> Result<Vec<PathBuf>, TooMuch> {
        let tools = if usage == Usage::Change { &WRITING[..] } else { &[READ] };
        let mut found = Vec::new();
        for rules in self.of_commands() {
            found.extend(links::behind(rules, tools, link)?.into_iter().map(|link| link.real));
        }
        Ok(found)
    }
}
