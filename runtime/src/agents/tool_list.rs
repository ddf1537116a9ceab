//! Lists of tools: what each entry means, and whether Posse can enforce it. An entry that allows
//! nothing is reported and skipped. An entry that would deny nothing, or that Posse could not
//! enforce, is an error.

use crate::error::quoted;
use crate::front_matter::problem::{Findings, Position};
use crate::policy;
use crate::tool_facts::filter::{GROUPS, allowed, parts};
use crate::tool_facts::{Match, TOOLS_PAGE, ToolFacts, find, is_foreign};
use posse_protocol::{AgentName, Effect, near};

/// What a list allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Allowed {
    /// Names, groups and patterns; `None` is everything.
    pub(crate) tools: Option<Vec<String>>,
    /// The agents it may call; `None` is all agents. If the tool is listed both with names and
    /// without, the names apply.
    pub(crate) agents: Option<Vec<String>>,
}

/// An entry of a list.
enum Rule<'r> {
    /// `*`.
    Star,
    Group(&'static str),
    /// A name with `*` in it.
    Pattern(&'r str),
    /// `Task(explore, plan)`: the tool's name and the agents.
    Delegate(String, Vec<&'r str>),
    /// A tool with a scope.
    Specified(&'r str),
    Name(&'r str),
}

impl<'r> Rule<'r> {
    fn parse(text: &'r str, tools: &[ToolFacts]) -> Rule<'r> {
        if text == "*" {
            return Rule::Star;
        }
        if let Some(group) = GROUPS.iter().find(|group| group.eq_ignore_ascii_case(text)) {
            return Rule::Group(group);
        }
        if let Some((name, rest)) = text.split_once('(') {
            let delegate = find(tools, name.trim())
                .filter(|(tool, _)| tool.effect == Effect::Delegate)
                .zip(rest.strip_suffix(')'));
            return match delegate {
                Some(((tool, _), agents)) => {
                    let agents = agents.split(',').map(str::trim);
                    let agents = agents.filter(|agent| !agent.is_empty());
                    Rule::Delegate(tool.name.clone(), agents.collect())
                }
                None => Rule::Specified(name.trim()),
            };
        }
        // A pattern of stars alone would match everything; only a single `*` may.
        match text.contains('*') && text.chars().any(|char| char != '*') {
            true => Rule::Pattern(text),
            false => Rule::Name(text),
        }
    }
}

/// What `rules` allow, given the `tools` that exist. `place` gives the place of a rule.
pub(crate) fn allow(
    rules: &[String],
    place: impl Fn(usize) -> Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) -> Allowed {
    if matches!(rules, [only] if only == "*") {
        return Allowed::default();
    }
    let mut kept: Vec<String> = Vec::new();
    let mut agents: Option<Vec<String>> = None;
    for (index, text) in rules.iter().enumerate() {
        let place = place(index);
        let shown = quoted(text);
        let keep = match Rule::parse(text, tools) {
            Rule::Star => {
                let reason = "`*` beside other names is itself a name, and no tool has it; for all \
                              tools, let it stand alone";
                findings.warning(place, reason);
                None
            }
            Rule::Specified(name) => specified(name, text, place, tools, findings),
            Rule::Group(group) => Some(group.to_owned()),
            Rule::Delegate(tool, named) => {
                if named != ["*"] {
                    delegates(&named, &shown, place, &mut agents, findings);
                }
                Some(tool)
            }
            // Which servers and tools there are is known only when a run starts.
            Rule::Pattern(name) | Rule::Name(name) if is_mcp(name) => Some(name.to_owned()),
            Rule::Pattern(pattern) => {
                let pattern = [pattern.to_owned()];
                let meant = allowed(tools, Some(&pattern), &[]);
                if meant.is_empty() {
                    let reason = format!("{shown} means no tool that exists here");
                    findings.warning(place, reason);
                }
                pattern.into_iter().find(|_| !meant.is_empty())
            }
            Rule::Name(name) => named(name, place, tools, findings),
        };
        if let Some(keep) = keep.filter(|keep| !kept.contains(keep)) {
            kept.push(keep);
        }
    }
    if kept.is_empty() && findings.first_error().is_none() {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let reason = format!("none of its `tools` exists here; there are: {}", known.join(", "));
        findings.error(place(0), reason);
    }
    Allowed { tools: Some(kept), agents }
}

/// What `rules` deny, given the `tools` that exist.
pub(crate) fn deny(
    rules: &[String],
    place: impl Fn(usize) -> Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) -> Vec<String> {
    let mut denied: Vec<String> = Vec::new();
    for (index, text) in rules.iter().enumerate() {
        let place = place(index);
        let shown = quoted(text);
        match Rule::parse(text, tools) {
            Rule::Star => denied.push(text.clone()),
            Rule::Group(group) => denied.push(group.to_owned()),
            Rule::Specified(name) => {
                denied.extend(specified(name, text, place, tools, findings));
            }
            Rule::Delegate(tool, _) => {
                denied.extend(specified(&tool, text, place, tools, findings));
            }
            Rule::Pattern(pattern) => {
                denied.push(pattern.to_owned());
                if allowed(tools, Some(&[pattern.to_owned()]), &[]).is_empty() {
                    let reason = format!("{shown} denies nothing that exists here yet");
                    findings.note(place, reason);
                }
            }
            Rule::Name(name) if is_mcp(name) => {
                // Stored as a pattern: at the start, a plain name that no tool has would be
                // refused. The name of a server denies all its tools.
                denied.push(format!("{name}*"));
            }
            Rule::Name(name) => match find(tools, name) {
                Some((tool, how)) => {
                    if how == Match::Loose {
                        findings.note(place, format!("{shown} is read as `{}`", tool.name));
                    }
                    denied.push(tool.name.clone());
                }
                None if is_foreign(name) => {
                    findings.note(place, format!("{shown} does not exist here; no agent has it"));
                }
                None => {
                    let reason = format!(
                        "`disallowedTools` names {shown}, which is not a tool, so that nothing \
                         would be denied; {}",
                        suggested(name, tools)
                    );
                    findings.error(place, reason);
                }
            },
        }
    }
    denied.dedup();
    denied
}

/// The tool that `name` means.
fn named(
    name: &str,
    place: Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) -> Option<String> {
    let shown = quoted(name);
    match find(tools, name) {
        Some((tool, Match::Exact)) => Some(tool.name.clone()),
        Some((tool, Match::Loose)) => {
            findings.note(place, format!("{shown} is read as `{}`", tool.name));
            Some(tool.name.clone())
        }
        None if is_foreign(name) => {
            let reason = format!("{shown} does not exist here; the agent does without it");
            findings.warning(place, reason);
            None
        }
        None => {
            let reason = format!(
                "there is no tool {shown}, and the agent does without it; {}",
                suggested(name, tools)
            );
            findings.warning(place, reason);
            None
        }
    }
}

/// A suggestion of existing tools that `name` may mean.
fn suggested(name: &str, tools: &[ToolFacts]) -> String {
    let names = tools.iter().map(|tool| tool.name.as_str());
    near::suggestion(name, names, TOOLS_PAGE)
}

/// Adds the agents that `Task(…)` names.
fn delegates(
    named: &[&str],
    shown: &str,
    place: Position,
    agents: &mut Option<Vec<String>>,
    findings: &mut Findings,
) {
    if named.is_empty() {
        let reason = format!("{shown} names no agent; name agents, or leave the parentheses out");
        findings.error(place, reason);
    }
    let agents = agents.get_or_insert_default();
    for name in named {
        match name.parse::<AgentName>() {
            Ok(_) => agents.push((*name).to_owned()),
            Err(error) => findings.error(place, error.to_string()),
        }
    }
}

/// True when `name`, which may contain `*`, means tools of MCP servers.
fn is_mcp(name: &str) -> bool {
    name.starts_with("mcp__")
}

/// The rule `text` about the tool `name`, with the name that the tool has here. A rule that Posse
/// could not enforce is an error.
fn specified(
    name: &str,
    text: &str,
    place: Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) -> Option<String> {
    let rule = match find(tools, name) {
        Some((tool, _)) => text.trim().replacen(name, &tool.name, 1),
        None => text.trim().to_owned(),
    };
    let shown = quoted(text);
    match policy::Rule::parse_among(&rule, tools) {
        Err(error) => {
            findings.error(place, error.to_string());
            None
        }
        Ok(_) if find(tools, name).is_none() => {
            findings
                .warning(place, format!("{shown} does not exist here; the agent does without it"));
            None
        }
        Ok(rule) if rule.is_specific() => Some(rule.text().to_owned()),
        // `Bash(*)` matches every call, so it is the same as `Bash`.
        Ok(rule) => Some(parts(rule.text()).0.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_matter::problem::Level;
    use crate::tool_facts::{built_in_tools, of_source};

    fn rules(list: &[&str]) -> Vec<String> {
        list.iter().map(|rule| (*rule).to_owned()).collect()
    }

    /// Checks what a list allows, and the levels of the findings.
    fn check_allow(list: &[&str], expected: Option<&[&str]>, levels: &[Level]) -> Allowed {
        let mut findings = Findings::default();
        let tools = built_in_tools();
        let allowed = allow(&rules(list), |_| Position::UNKNOWN, &tools, &mut findings);
        let found: Vec<Level> = findings.0.iter().map(|finding| finding.level).collect();
        assert_eq!(allowed.tools, expected.map(rules), "{list:?}");
        assert_eq!(found, levels, "{list:?}: {findings:?}");
        allowed
    }

    fn check_deny(list: &[&str], expected: &[&str], levels: &[Level]) {
        let mut findings = Findings::default();
        let tools = built_in_tools();
        let denied = deny(&rules(list), |_| Position::UNKNOWN, &tools, &mut findings);
        let found: Vec<Level> = findings.0.iter().map(|finding| finding.level).collect();
        assert_eq!(denied, expected, "{list:?}");
        assert_eq!(found, levels, "{list:?}: {findings:?}");
    }

    #[test]
    fn tools_that_a_source_may_offer_are_kept_and_can_be_denied() {
        let mut tools = built_in_tools();
        tools.push(of_source("files"));
        let list =
            rules(&["Read", "mcp__files", "mcp__files__drop", "mcp__*__get", "mcp__web__get"]);
        let mut findings = Findings::default();
        let allowed = allow(&list, |_| Position::UNKNOWN, &tools, &mut findings);
        assert_eq!(allowed.tools.unwrap_or_default(), list);
        assert!(findings.0.is_empty(), "{findings:?}");
        let mut findings = Findings::default();
        let denied = deny(&list[1..3], |_| Position::UNKNOWN, &tools, &mut findings);
        assert_eq!(denied, rules(&["mcp__files*", "mcp__files__drop*"]));
        assert!(findings.0.is_empty(), "{findings:?}");
    }

    #[test]
    fn d2_a_star_alone_is_everything() {
        check_allow(&["*"], None, &[]);
    }

    #[test]
    fn d3_a_star_beside_names_is_a_name_that_no_tool_has() {
        check_allow(&["*", "Read"], Some(&["Read"]), &[Level::Warning]);
        check_allow(&["**", "Read"], Some(&["Read"]), &[Level::Warning]);
        check_allow(&["**"], Some(&[]), &[Level::Warning, Level::Error]);
    }

    #[test]
    fn d5_patterns_and_groups_stand_for_names() {
        check_allow(&["@read", "@Write"], Some(&["@read", "@write"]), &[]);
        check_allow(&["Gr*"], Some(&["Gr*"]), &[]);
        check_allow(&["web_*", "Read"], Some(&["Read"]), &[Level::Warning]);
        check_deny(&["*"], &["*"], &[]);
        check_deny(&["web_*"], &["web_*"], &[Level::Note]);
    }

    #[test]
    fn a_tool_is_found_by_other_names_and_in_any_case() {
        check_allow(
            &["read", "BASH", "LS"],
            Some(&["Read", "Bash", "List"]),
            &[Level::Note, Level::Note, Level::Note],
        );
        check_deny(&["bash"], &["Bash"], &[Level::Note]);
    }

    #[test]
    fn a_tool_that_does_not_exist_is_left_out_of_what_is_allowed_and_may_not_be_denied() {
        check_allow(&["Raed", "Read"], Some(&["Read"]), &[Level::Warning]);
        check_allow(&["WebFetch", "Read"], Some(&["Read"]), &[Level::Warning]);
        check_allow(&["WebFetch"], Some(&[]), &[Level::Warning, Level::Error]);
        check_deny(&["Raed"], &[], &[Level::Error]);
        check_deny(&["WebFetch"], &[], &[Level::Note]);
        check_deny(&["@all"], &[], &[Level::Error]);
    }

    #[test]
    fn tools_of_mcp_servers_can_be_allowed_and_denied_before_they_are_known() {
        let both = ["Read", "mcp__files__*", "mcp__web__get"];
        check_allow(&both, Some(&both), &[]);
        check_deny(&["mcp__files"], &["mcp__files*"], &[]);
        check_deny(&["mcp__files__drop"], &["mcp__files__drop*"], &[]);
    }

    #[test]
    fn rules_with_specifiers_are_kept_under_the_tool_s_own_name() {
        let kept = ["Bash(git diff:*)", "Read(src/**)", "Edit(docs/*.md)"];
        check_allow(&kept, Some(&kept), &[]);
        check_allow(&["bash(ls:*)", "Bash(*)"], Some(&["Bash(ls:*)", "Bash"]), &[]);
        check_allow(&["Read", "WebFetch(domain:x.org)"], Some(&["Read"]), &[Level::Warning]);
        check_deny(&["shell(rm:*)", "Read(.env)"], &["Bash(rm:*)", "Read(.env)"], &[]);
        check_deny(&["Task(explore)"], &["Task(explore)"], &[]);
    }

    #[test]
    fn a_rule_that_cannot_be_enforced_is_an_error() {
        for rule in ["Bash(a && b)", "Read(../x)", "TodoWrite(x)", "Task(explore", "Raed(x)"] {
            check_allow(&[rule, "Read"], Some(&["Read"]), &[Level::Error]);
            check_deny(&[rule], &[], &[Level::Error]);
        }
    }

    #[test]
    fn task_with_names_may_call_only_those() {
        let allowed = check_allow(&["Read", "Task(explore, plan)"], Some(&["Read", "Task"]), &[]);
        assert_eq!(allowed.agents, Some(rules(&["explore", "plan"])));
        let allowed = check_allow(&["Agent(explore)", "Task"], Some(&["Task"]), &[]);
        assert_eq!(allowed.agents, Some(rules(&["explore"])), "the names hold");
        assert_eq!(check_allow(&["Task(*)"], Some(&["Task"]), &[]).agents, None);
        check_allow(&["Task()"], Some(&["Task"]), &[Level::Error]);
        check_allow(&["Task(../x)"], Some(&["Task"]), &[Level::Error]);
    }
}
