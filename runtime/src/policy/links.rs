//! Links that rules deny by name, and files that rules deny because of the name of a link above
//! them. Their targets are denied as well, wherever they are.

use super::path::{Case, fold};
use super::set::Rules;
use super::subject::{Extent, Target};
use posse_tools::TooMuch;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A name that no file has, for testing whether a rule matches the content of a folder.
const SOMETHING: &str = "\u{1}";

/// The most files and folders below one link that are searched.
const LOOKED_AT: usize = 50_000;

/// The targets of denied links: by the tool, and by the path in lower case.
pub(super) struct Links(HashMap<(String, String), String>);

/// A file behind a link that a rule denies because of the link.
pub(super) struct Link {
    tool: String,
    rule: String,
    /// Its real path.
    pub(super) real: PathBuf,
}

impl Links {
    /// Finds the links in `folders` that `deny` matches.
    pub(super) fn find<'f>(deny: &Rules, folders: impl IntoIterator<Item = &'f str>) -> Self {
        let mut links = Links(HashMap::new());
        if deny.have_paths() {
            folders.into_iter().for_each(|folder| links.look(deny, Path::new(folder)));
        }
        links
    }

    /// Returns the rule that denies `tool` a link to this file, or to a folder that contains it.
    pub(super) fn rule(&self, tool: &str, target: &Target) -> Option<&String> {
        if self.0.is_empty() {
            return None;
        }
        let folders = Path::new(&target.folded).ancestors().filter_map(Path::to_str);
        folders.into_iter().find_map(|folder| self.0.get(&(tool.to_owned(), folder.to_owned())))
    }

    fn look(&mut self, deny: &Rules, folder: &Path) {
        let tools: Vec<&str> = deny.tools_with_paths().collect();
        let here = Target::open(folder, Extent::File);
        if !tools.iter().any(|tool| deny.reach_into(tool, &here)) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
                self.look(deny, &path);
            }
            if kind.is_ok_and(|kind| kind.is_symlink()) {
                // Behind a link with too many files, only the own names of the files count.
                let found = behind(deny, &tools, &path).unwrap_or_default();
                self.0.extend(found.into_iter().map(|link| {
                    let place = fold(&link.real.to_string_lossy(), Case::Folded);
                    ((link.tool, place), link.rule)
                }));
            }
        }
    }
}

/// Returns the files behind `link` that `rules` match for `tools` because of its name: its target,
/// or files below the target.
///
/// # Errors
/// When there is too much to search.
pub(super) fn behind(rules: &Rules, tools: &[&str], link: &Path) -> Result<Vec<Link>, TooMuch> {
    let Ok(real) = link.canonicalize() else { return Ok(Vec::new()) };
    let mut walk = Walk { rules, found: Vec::new(), seen: HashSet::new(), looked_at: 0 };
    walk.visit(tools, link, real)?;
    Ok(walk.found)
}

struct Walk<'r> {
    rules: &'r Rules,
    found: Vec<Link>,
    /// Folders that were searched: links may form cycles.
    seen: HashSet<PathBuf>,
    looked_at: usize,
}

impl Walk<'_> {
    /// Searches the path `real` under the name `named`.
    fn visit(&mut self, tools: &[&str], named: &Path, real: PathBuf) -> Result<(), TooMuch> {
        let target = Target::open(named, Extent::File);
        let inside = Target::open(&named.join(SOMETHING), Extent::File);
        let mut left = Vec::new();
        for tool in tools.iter().copied() {
            let whole = self.rules.path_rule(tool, &target);
            match whole.or_else(|| self.rules.path_rule(tool, &inside)) {
                Some(rule) => {
                    let (tool, rule) = (tool.to_owned(), rule.clone());
                    self.found.push(Link { tool, rule, real: real.clone() });
                }
                None => left.push(tool),
            }
        }
        let place = Target::open(&real, Extent::File);
        left.retain(|tool| self.rules.mean_more_below(tool, &target, &place));
        if left.is_empty() || !real.is_dir() || !self.seen.insert(real.clone()) {
            return Ok(());
        }
        for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT {
                return Err(TooMuch { at_most: LOOKED_AT });
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let path = entry.path();
            let Some(real) = (if is_link { path.canonicalize().ok() } else { Some(path) }) else {
                continue;
            };
            self.visit(&left, &named.join(entry.file_name()), real)?;
        }
        Ok(())
    }
}
