//! Lists of tools that may contain rules, as in definitions and calls: the tools they name, the
//! scopes, and the denials.

use crate::tool_facts::filter::parts;
use crate::tool_facts::{SPAWN, TASK, TASK_ALIASES};

/// Returns the tools that `entries` name, without the text in parentheses. It decides which tools a
/// run has.
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

/// Returns the scopes in `entries` (the `tools` of a definition or of a call): a list for
/// [`Grant::scopes`](posse_protocol::Grant::scopes), or `None`. If a tool is listed both with and
/// without parentheses, the parentheses count. The agents in `Task(…)` are no scope: they belong to
/// the delegation of the grant.
pub fn scopes(entries: &[String]) -> Option<Vec<String>> {
    let is_rule = |entry: &&String| match parts(entry) {
        (name, Some(specifier)) => specifier.trim() != "*" && !is_delegation(name),
        (_, None) => false,
    };
    let rules: Vec<String> = entries.iter().filter(is_rule).cloned().collect();
    (!rules.is_empty()).then_some(rules)
}

/// Returns the entries with parentheses in `entries` (the `disallowedTools` of a definition, the
/// `deny` of a call): rules for [`Permissions::deny`](posse_protocol::Permissions::deny). An entry
/// without parentheses removes the tool itself, and is left out.
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
