//! Lists of tools with rules among them, as definitions and calls have them: which tools they name,
//! what they narrow these to, what they deny.

use crate::tool_facts::filter::parts;
use crate::tool_facts::{SPAWN, TASK, TASK_ALIASES};

/// The tools that `entries` name, without what stands in parentheses: for whoever decides which
/// tools a run has.
pub fn tool_names(entries: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = parts(entry).0.to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What `entries` (the `tools` of a definition or of a call) narrow the tools to that they name: a
/// list for [`Grant::scopes`](posse_protocol::Grant::scopes), or nothing. Where a tool stands both
/// with parentheses and without, what stands in them holds. Whom `Task(…)` names is no scope: that
/// is the grant's delegation.
pub fn scopes(entries: &[String]) -> Option<Vec<String>> {
    let is_rule = |entry: &&String| match parts(entry) {
        (name, Some(specifier)) => specifier.trim() != "*" && !is_delegation(name),
        (_, None) => false,
    };
    let rules: Vec<String> = entries.iter().filter(is_rule).cloned().collect();
    (!rules.is_empty()).then_some(rules)
}

/// What `entries` (the `disallowedTools` of a definition, the `deny` of a call) deny with
/// parentheses: rules for [`Permissions::deny`](posse_protocol::Permissions::deny). Entries without
/// take the tool itself away, and are not among them.
pub fn denials(entries: &[String]) -> Vec<String> {
    entries.iter().filter(|entry| parts(entry).1.is_some()).cloned().collect()
}

fn is_delegation(name: &str) -> bool {
    [TASK, "agent", SPAWN].contains(&name) || TASK_ALIASES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_tools_and_narrows_those_that_stand_with_parentheses() {
        let list = |entries: &[&str]| entries.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let entries = list(&["Read(src/**)", "Grep", "Bash", "Bash(git diff:*)", "Task(explore)"]);
        assert_eq!(tool_names(&entries), ["Read", "Grep", "Bash", "Task"]);
        assert_eq!(scopes(&entries), Some(list(&["Read(src/**)", "Bash(git diff:*)"])));
        assert_eq!(scopes(&list(&["Read", "Task(a)", "Bash(*)"])), None);
        assert_eq!(denials(&list(&["Bash(rm:*)", "Write"])), ["Bash(rm:*)"]);
    }
}
