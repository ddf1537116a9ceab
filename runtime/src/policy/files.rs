//! Rules about paths, asked by the file tools once a file is open: the path that a call names may lead
//! through links to another, and a search comes by files that no call names.

use super::links::Links;
use super::path::Case;
use super::rule::WRITING;
use super::set::Rules;
use super::subject::{Extent, Target};
use super::{Policy, path};
use posse_protocol::Mode;
use posse_tools::{PathRules, Reached, Usage};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a policy says about files that are open.
pub struct FileRules(Arc<Policy>, OnceLock<Links>);

impl FileRules {
    /// The rules of `policy`, if it says anything about files.
    pub fn of(policy: &Arc<Policy>) -> Option<Arc<dyn PathRules>> {
        let sets = [&policy.deny, &policy.ask];
        let about = sets.into_iter().chain(&policy.scopes).any(Rules::have_paths);
        let matters = about || policy.mode < Mode::AcceptEdits;
        matters.then(|| Arc::new(FileRules(policy.clone(), OnceLock::new())) as Arc<dyn PathRules>)
    }

    /// Where denied links led when it was first asked.
    fn links(&self) -> &Links {
        let policy = &self.0;
        self.1.get_or_init(|| {
            Links::find(
                &policy.deny,
                [Some(&policy.workspace), policy.origin.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(String::as_str),
            )
        })
    }
}

/// What rules about files are asked for, of a path that is text.
fn target(path: &Path) -> Option<Target> {
    let text = path.to_str()?;
    let folded = path::fold(text, Case::Folded);
    Some(Target { path: text.to_owned(), folded, extent: Extent::File })
}

impl PathRules for FileRules {
    fn refuse(&self, usage: Usage, reached: Reached, named: &Path, real: &Path) -> Option<String> {
        let (tool, extent) = match usage {
            Usage::Read => ("Read", Extent::File),
            Usage::Search => ("Grep", Extent::File),
            Usage::Find => ("Glob", Extent::File),
            Usage::Walk => ("Grep", Extent::All),
            Usage::List => ("List", Extent::Names),
            Usage::Change => (WRITING[1], Extent::File),
        };
        let Some(text) = real.to_str() else {
            return Some("its path is not valid UTF-8, and there are rules about paths".to_owned());
        };
        let policy = &self.0;
        let target =
            Target { path: text.to_owned(), folded: path::fold(text, Case::Folded), extent };
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
            // The files that a search comes by are judged one by one.
            let walks = usage == Usage::Walk;
            if let Some(scope) = policy.scopes.iter().find(outside).filter(|_| !walks) {
                return Some(format!("it is outside of {}", scope.texts().join(", ")));
            }
        }
        // What was allowed is a path, and this is another.
        let asks = usage == Usage::Change && policy.mode < Mode::AcceptEdits;
        asks.then(|| format!("it leads through a link to {text}: use that path"))
    }

    fn hide_some_in(&self, folder: &Path) -> bool {
        let Some(target) = target(folder) else { return true };
        let policy = &self.0;
        // Outside of a scope everything is refused.
        policy.scopes.iter().any(|scope| scope.have_paths_for("Read"))
            || policy.deny.reach_into("Read", &target)
    }

    fn checkouts(&self) -> Vec<PathBuf> {
        self.0.origin.iter().map(PathBuf::from).collect()
    }

    fn elsewhere(&self) -> Vec<PathBuf> {
        self.0.deny.folders_elsewhere("Read").map(PathBuf::from).collect()
    }

    fn denies_read(&self, real: &Path) -> bool {
        target(real).is_some_and(|target| self.0.deny.path_rule("Read", &target).is_some())
    }

    fn denies_some_reads_in(&self, folder: &Path) -> bool {
        target(folder).is_some_and(|target| self.0.deny.reach_into("Read", &target))
    }

    fn deny_some_changes_in(&self, folder: &Path) -> bool {
        let Some(target) = target(folder) else { return true };
        let reaches = |rules: &Rules| WRITING.iter().any(|tool| rules.reach_into(tool, &target));
        reaches(&self.0.deny) || reaches(&self.0.ask)
    }

    fn denies_change(&self, real: &Path) -> bool {
        // What cannot be held against the rules is not changed.
        let Some(target) = target(real) else { return true };
        // Nobody can be asked while a command runs, so it may not change what a person is asked
        // about.
        let mean =
            |rules: &Rules| WRITING.iter().any(|tool| rules.path_rule(tool, &target).is_some());
        mean(&self.0.deny) || mean(&self.0.ask)
    }
}
