//! Links that rules deny by their names: what they lead to is denied as well, wherever it is.

use super::path::{Case, fold};
use super::rule::{READING, WRITING};
use super::set::Rules;
use super::subject::{Extent, Target};
use std::fs;
use std::path::Path;

/// A name that no file has, to ask what a rule means of a folder's content.
const SOMETHING: &str = "\u{1}";

/// Where denied links lead.
pub(super) struct Links(Vec<Link>);

struct Link {
    tool: &'static str,
    /// Where it really leads, compared without regard to case.
    target: String,
    rule: String,
}

impl Links {
    /// The links in `folders` that `deny` means.
    pub(super) fn find<'f>(deny: &Rules, folders: impl IntoIterator<Item = &'f str>) -> Self {
        let mut links = Links(Vec::new());
        if deny.have_paths() {
            folders.into_iter().for_each(|folder| links.look(deny, Path::new(folder)));
        }
        links
    }

    /// The rule that denies `tool` a link to this, or to a folder that it is in.
    pub(super) fn rule(&self, tool: &str, target: &Target) -> Option<&String> {
        let found = self.0.iter().find(|link| {
            let below = target.folded.strip_prefix(&link.target);
            link.tool == tool && below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        });
        found.map(|link| &link.rule)
    }

    fn look(&mut self, deny: &Rules, folder: &Path) {
        let target = |path: &Path| Some(Target::new("", path.to_str()?, Extent::File));
        let tools = || READING.into_iter().chain(WRITING);
        let Some(here) = target(folder) else { return };
        if !tools().any(|tool| deny.reach_into(tool, &here)) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                self.look(deny, &path);
            }
            if !kind.is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let (Some(link), Some(inside)) = (target(&path), target(&path.join(SOMETHING))) else {
                continue;
            };
            let Some(real) = path.canonicalize().ok().and_then(|it| it.to_str().map(str::to_owned))
            else {
                continue;
            };
            for tool in tools() {
                let rule = deny.path_rule(tool, &link).or_else(|| deny.path_rule(tool, &inside));
                self.0.extend(rule.map(|rule| Link {
                    tool,
                    target: fold(&real, Case::Folded),
                    rule: rule.clone(),
                }));
            }
        }
    }
}
