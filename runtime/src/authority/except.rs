//! Patterns for all files of a name but some. Rules have no exceptions, so the patterns spell out all else.

use crate::policy::escaped;
use std::collections::{BTreeMap, BTreeSet};

/// Patterns for the files that `name` means in `folder`, which is a pattern itself, and in folders up to `depth`
/// below it, or any. They leave out the paths `meant`, which are relative to `folder`. If such a path ends in
/// `name` itself, they leave out all files in its folder.
pub(super) fn all_but(
    folder: &str,
    depth: Option<usize>,
    name: &str,
    meant: &[&[&str]],
) -> Vec<String> {
    let is_near = |path: &&&[&str]| depth.is_none_or(|depth| path.len() <= depth + 1);
    let (mut files, mut folders) = (BTreeSet::new(), BTreeMap::<&str, Vec<&[&str]>>::new());
    for path in meant.iter().filter(is_near) {
        match path {
            [] => return vec![],
            [file] => _ = files.insert(*file),
            [first, rest @ ..] => folders.entry(first).or_default().push(rest),
        }
    }
    if files.is_empty() && folders.is_empty() {
        return match depth {
            None => vec![format!("{folder}/**/{name}")],
            Some(depth) => {
                let levels = (0..=depth).map(|levels| "*/".repeat(levels));
                levels.map(|folders| format!("{folder}/{folders}{name}")).collect()
            }
        };
    }
    let here = names_but(name, &files).into_iter().map(|it| format!("{folder}/{it}"));
    let mut all: Vec<String> = here.collect();
    if depth == Some(0) {
        return all;
    }
    let depth = depth.map(|depth| depth - 1);
    let known = folders.keys().copied().collect();
    let others = others(&known).into_iter().map(|glob| (glob, vec![]));
    for (first, rest) in others.chain(folders.into_iter().map(|(it, rest)| (escaped(it), rest))) {
        all.extend(all_but(&format!("{folder}/{first}"), depth, name, &rest));
    }
    all
}

/// Patterns for all names that `pattern` means, which has at most one `*`, but `names`.
fn names_but(pattern: &str, names: &BTreeSet<&str>) -> Vec<String> {
    if names.contains(pattern) {
        return vec![];
    }
    let Some((start, end)) = pattern.split_once('*').filter(|_| !names.is_empty()) else {
        return vec![pattern.to_owned()];
    };
    let known = names.iter().filter_map(|name| name.strip_prefix(start)?.strip_suffix(end));
    let known: BTreeSet<&str> = known.collect();
    let empty = (!known.contains("")).then(String::new);
    let all = others(&known).into_iter().chain(empty);
    all.map(|it| format!("{start}{it}{end}")).collect()
}

/// Patterns for all names except `names`. A name that matches is a beginning of one of them, differs from them
/// after a common beginning, or is longer. Characters that a pattern cannot express are denied, too.
fn others(names: &BTreeSet<&str>) -> Vec<String> {
    let starts = names.iter().flat_map(|name| name.char_indices().map(|(at, _)| &name[..at]));
    let starts: BTreeSet<&str> = starts.chain(names.iter().copied()).chain([""]).collect();
    let mut all = Vec::new();
    for start in starts {
        let next = names.iter().filter_map(|name| name.strip_prefix(start)?.chars().next());
        let mut next: Vec<char> = next.filter(|it| !"{}".contains(*it)).collect();
        // In this order, no sign has a special meaning.
        next.sort_by_key(|it| (*it != ']', *it == '[', *it == '-', *it));
        next.dedup();
        let next: String = next.into_iter().collect();
        let written = escaped(start);
        all.push(match next.as_str() {
            "" if start.is_empty() => "*".to_owned(),
            "" => format!("{written}?*"),
            next => format!("{written}[!{next}]*"),
        });
        if !start.is_empty() && !names.contains(start) {
            all.push(written);
        }
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::policy::{Case, PathPattern, Roots};

    /// True if one of `patterns` means `path`.
    fn mean(patterns: &[String], path: &str) -> bool {
        let roots = Roots { workspace: "/w", worktree: None, home: None };
        let names: Vec<&str> = path.split('/').skip(1).collect();
        patterns.iter().any(|it| {
            let pattern = PathPattern::parse(&format!("/{it}"), roots, Case::Folded);
            pattern.unwrap_or_else(|why| panic!("{it}: {why}")).means(&names)
        })
    }

    #[test]
    fn only_what_is_meant_is_left_out() {
        for name in ["certs", "a", "x]-[:y", "!^-", "ä.b*c?", "src"] {
            for (path, stays) in [
                (&[name, "server.key"][..], "/h/a.key"),
                (&[name, "deep", "server.key"], "/h/deep/server.key"),
                (&["server.key"], "/h/server.key.key"),
            ] {
                for depth in [None, Some(2)] {
                    let all = all_but("/h", depth, "*.key", &[path, &["other", "z.key"]]);
                    assert!(!mean(&all, &format!("/h/{}", path.join("/"))), "{path:?}: {all:?}");
                    assert!(!mean(&all, "/h/other/z.key"), "{path:?}: {all:?}");
                    let inside = format!("/h/{name}/x.key");
                    let longer = format!("/h/{name}x/server.key");
                    let shorter = ["/h/c/server.key", "/h/.key", "/h/.x/.y/server.key", stays];
                    for denied in shorter.into_iter().chain([&*inside, &*longer, "/h/other/.key"]) {
                        assert!(mean(&all, denied), "{path:?}: {denied}: {all:?}");
                    }
                    assert_eq!(mean(&all, "/h/a/b/c/server.key"), depth.is_none(), "{path:?}");
                }
            }
        }
        let all = all_but("/h", Some(2), "*.key", &[&["w", "*.key"]]);
        assert!(!mean(&all, "/h/w/x.key") && mean(&all, "/h/w/a/x.key"), "{all:?}");
        assert!(mean(&all, "/h/x.key") && mean(&all, "/h/v/x.key"), "{all:?}");
        assert_eq!(all_but("/h", Some(1), ".env", &[]), ["/h/.env", "/h/*/.env"]);
        assert_eq!(all_but("/h", None, ".env", &[&["a", ".env"], &[]]), [""; 0]);
    }
}
