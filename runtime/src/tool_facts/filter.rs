//! Which tools a list of names allows. It is pure: the same answer decides which tools are offered and which calls are
//! dispatched.

use super::{SPAWN, TASK, ToolFacts};
use posse_protocol::Effect;

/// Tools that no child may call, whatever its definition says: they control sessions, schedule, read credentials, or
/// write to memory.
const DENIED_TO_CHILDREN: [&str; 14] = [
    "session_*",
    "sessions_*",
    "agents_list",
    "gateway*",
    "process_control",
    "cron*",
    "schedule_*",
    "credential*",
    "secret*",
    "*_login",
    "memory_write*",
    "memory_save*",
    "memory_delete*",
    "memory_update*",
];

/// Groups of tools by effect.
pub(crate) const GROUPS: [&str; 5] = ["@read", "@write", "@exec", "@net", "@delegate"];

/// Returns the names of the tools in `all` that `allow` and `deny` leave, in their order.
pub(crate) fn allowed<'t>(
    all: impl IntoIterator<Item = &'t ToolFacts>,
    allow: Option<&[String]>,
    deny: &[String],
) -> Vec<String> {
    let left = all.into_iter().filter(|tool| leave(allow, deny, tool));
    left.map(|tool| tool.name.clone()).collect()
}

/// True when `allow` matches `tool` (which it does if it is absent or only `*`) and `deny` does not. Parentheses
/// restrict the arguments of a tool: an entry of `allow` with parentheses still names the tool, an entry of `deny` does
/// not.
pub(crate) fn leave(allow: Option<&[String]>, deny: &[String], tool: &ToolFacts) -> bool {
    // Next to other names, `*` is the name of a tool that does not exist.
    let named = |entry: &String| entry != "*" && fits(parts(entry).0, tool);
    let wanted = match allow {
        None => true,
        Some([one]) if one == "*" => true,
        Some(names) => names.iter().any(named),
    };
    wanted && !deny.iter().any(|entry| denies(entry, tool))
}

/// True when `entry` of a deny list means `tool`. Denying `Task` denies every way to start subagents.
fn denies(entry: &str, tool: &ToolFacts) -> bool {
    fits(entry, tool) || (tool.name == SPAWN && hands_on(entry))
}

/// True when `entry` means the tool `Task`.
fn hands_on(entry: &str) -> bool {
    fits(entry, &super::own(TASK))
}

/// True when no child may call `tool`.
pub(crate) fn denied_to_children(tool: &ToolFacts) -> bool {
    DENIED_TO_CHILDREN.iter().any(|entry| fits(entry, tool))
}

/// True when no child may call a tool with the name `name`.
pub(crate) fn name_denied_to_children(name: &str) -> bool {
    DENIED_TO_CHILDREN.iter().any(|entry| matches(entry, name))
}

/// Returns the first entry of `list` that matches no tool of `all`, if there is one.
pub(crate) fn unknown<'a>(list: &'a [String], all: &[ToolFacts]) -> Option<&'a String> {
    // Which tools a source has is known only when a run starts, and they come and go.
    let exact = |entry: &&String| {
        let name = parts(entry).0;
        !name.contains('*') && !name.starts_with('@') && !name.starts_with("mcp__")
    };
    let means = |entry: &str, tool: &ToolFacts| fits(parts(entry).0, tool);
    list.iter().filter(exact).find(|entry| !all.iter().any(|tool| means(entry, tool)))
}

/// Returns the name of the tool in an entry of a list, and the text in its parentheses.
pub(crate) fn parts(entry: &str) -> (&str, Option<&str>) {
    match entry.split_once('(') {
        Some((name, rest)) => {
            (name.trim(), Some(rest.trim_end().strip_suffix(')').unwrap_or(rest)))
        }
        None => (entry, None),
    }
}

/// True when `entry` (a name, a name with `*`, a group, `mcp__` and the name of a source) matches `tool`.
fn fits(entry: &str, tool: &ToolFacts) -> bool {
    match entry {
        "@read" => tool.effect == Effect::Read,
        "@write" => tool.effect == Effect::Write,
        "@exec" => tool.effect == Effect::Execute,
        "@net" => tool.effect == Effect::Network,
        "@delegate" => tool.effect == Effect::Delegate,
        entry if entry.contains('*') => {
            let names = std::iter::once(&tool.name).chain(&tool.aliases);
            names.into_iter().any(|name| matches(entry, name))
        }
        entry => {
            let is_source = entry.starts_with("mcp__")
                && tool.name.strip_prefix(entry).is_some_and(|rest| rest.starts_with("__"));
            is_source || tool.name == entry || tool.aliases.iter().any(|alias| alias == entry)
        }
    }
}

/// True when `pattern`, in which `*` is any text, matches `name`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == name };
    // Most patterns fail here. This matters: it runs for every tool of every child.
    let Some(rest) = name.strip_prefix(first) else { return false };
    let (inner, last) = others.rsplit_once('*').unwrap_or(("", others));
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    inner.split('*').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_facts::own;

    fn tool(name: &str, effect: Effect) -> ToolFacts {
        ToolFacts::new(name, effect)
    }

    fn check(allow: Option<&[&str]>, deny: &[&str], expected: &[&str]) {
        let all = [
            tool("Read", Effect::Read),
            tool("Write", Effect::Write),
            ToolFacts { aliases: vec!["task".to_owned()], ..tool("Task", Effect::Delegate) },
            tool("web_fetch", Effect::Network),
            tool("mcp__files__read", Effect::Network),
            tool("mcp__files__drop", Effect::Network),
        ];
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let allow = allow.map(owned);
        let found = allowed(&all, allow.as_deref(), &owned(deny));
        assert_eq!(found, expected, "allow {allow:?}, deny {deny:?}");
    }

    #[test]
    fn d1_denied_tools_are_taken_away() {
        check(Some(&["Read", "Write", "Task"]), &["Write", "Task"], &["Read"]);
        check(Some(&["Read", "task"]), &["Task"], &["Read"]);
    }

    #[test]
    fn whoever_may_not_hand_on_work_may_not_spawn_either() {
        let all = [own(TASK), tool(SPAWN, Effect::Delegate), tool("Read", Effect::Read)];
        for denied in ["Task", "task", "Agent", "Ta*", "@delegate"] {
            assert_eq!(allowed(&all, None, &[denied.to_owned()]), ["Read"], "{denied}");
        }
        assert_eq!(allowed(&all, None, &[SPAWN.to_owned()]), ["Task", "Read"]);
        assert_eq!(allowed(&all, Some(&["Task".to_owned()]), &[]), ["Task"], "it is not granted");
    }

    #[test]
    fn d2_nothing_or_a_star_allows_all_and_an_empty_list_none() {
        let all = ["Read", "Write", "Task", "web_fetch", "mcp__files__read", "mcp__files__drop"];
        check(None, &[], &all);
        check(Some(&["*"]), &["@net", "Write"], &["Read", "Task"]);
        check(Some(&[]), &[], &[]);
    }

    #[test]
    fn d3_a_star_beside_names_is_a_name() {
        check(Some(&["*", "Read"]), &[], &["Read"]);
    }

    #[test]
    fn d4_what_is_allowed_and_denied_is_denied() {
        check(Some(&["Read", "Write"]), &["Write"], &["Read"]);
        check(None, &["*"], &[]);
    }

    #[test]
    fn d5_names_may_have_wildcards_and_groups_stand_for_names() {
        check(Some(&["web_*"]), &[], &["web_fetch"]);
        check(Some(&["mcp__files__*"]), &["mcp__*__drop"], &["mcp__files__read"]);
        check(Some(&["@read", "@delegate"]), &[], &["Read", "Task"]);
        check(Some(&["mcp*files*d*p"]), &[], &["mcp__files__drop"]);
        check(Some(&["web_*fetching", "*x*"]), &[], &[]);
    }

    #[test]
    fn what_stands_in_parentheses_names_a_tool_and_denies_none() {
        check(Some(&["Read(src/**)", "Task(explore)"]), &["Read(secrets/**)"], &["Read", "Task"]);
    }

    #[test]
    fn names_that_mean_nothing_are_found() {
        let all = [tool("Read", Effect::Read)];
        let list = ["Read", "mcp__*", "@net", "Raed"].map(str::to_owned);
        assert_eq!(unknown(&list, &all).map(String::as_str), Some("Raed"));
        assert!(denied_to_children(&tool("cron_add", Effect::Execute)));
        assert!(!denied_to_children(&tool("Read", Effect::Read)));
    }
}
