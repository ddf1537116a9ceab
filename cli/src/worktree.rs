//! Words for the state of a run's worktree.

use crate::clean::clean_line;
use crate::format;
use posse::protocol::Kept;
use posse::views::Left;

/// What a run has left in its worktree, for people.
pub fn told(left: &Left) -> String {
    if let Some(problem) = &left.problem {
        let problem = clean_line(problem, 600);
        return format!("what was changed could not be put on a branch: {problem}");
    }
    let kept = left.kept.as_ref().map(kept);
    let Some(branch) = &left.branch else {
        return kept.unwrap_or_else(|| "nothing was changed in its worktree".to_owned());
    };
    let Left { files, added, removed, stored, .. } = left;
    let (files, branch) = (format::count(*files, "file"), clean_line(branch, 200));
    let taken_by = match (stored, branch.strip_prefix("posse/")) {
        (true, Some(run)) => format!("posse runs fetch {run}"),
        _ => format!("git merge {branch}"),
    };
    let kept = kept.map_or_else(String::new, |kept| format!("; {kept}"));
    format!("{files} changed, +{added} -{removed}, on the branch {branch}: `{taken_by}`{kept}")
}

/// The files that are on no branch, for people.
pub fn kept(kept: &Kept) -> String {
    let names = kept.names.iter().map(|name| clean_line(name, 200)).collect::<Vec<_>>().join(", ");
    let more = match kept.files.saturating_sub(kept.names.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}: {names}{more}", clean_line(&kept.to_string(), 600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_told_whole() {
        let left = Left { branch: Some("posse/1".into()), files: 2, added: 3, ..Left::default() };
        assert_eq!(
            told(&left),
            "2 files changed, +3 -0, on the branch posse/1: `git merge posse/1`"
        );
        assert_eq!(told(&Left::default()), "nothing was changed in its worktree");
        let left = Left { problem: Some("git cannot; it still is in /w".into()), ..left };
        assert!(left.is_stuck() && told(&left).ends_with("it still is in /w"));
    }
}
