//! What is known of the tools there are: names, aliases, effects, and which a list of names allows.
//!
//! Definitions, rules and settings are held against it. It knows no tool itself but those of the
//! runtime.

pub(crate) mod filter;

use crate::error::quoted;
use filter::{name_denied_to_children, parts};
pub use posse_protocol::ToolFacts;
use posse_protocol::{About, AgentRights, Effect, Grant, NameRules, near};
use std::borrow::Cow;

/// Hands work to an agent and waits for it.
pub(crate) const TASK: &str = "Task";
pub(crate) const TASK_ALIASES: [&str; 2] = ["task", "Agent"];
/// Hands work to an agent in the background.
pub(crate) const SPAWN: &str = "spawn_subagent";
/// Shows and controls what was started.
pub(crate) const SUBAGENTS: &str = "subagents";
/// Loads a skill.
pub(crate) const SKILL: &str = "Skill";
pub(crate) const SKILL_ALIASES: [&str; 3] = ["skill", "load_skill", "use_skill"];

/// The tools that hand on work, by all their names.
pub(crate) const DELEGATING: [&str; 5] = [TASK, TASK_ALIASES[0], TASK_ALIASES[1], SPAWN, SUBAGENTS];

/// Where people find all tools.
pub(crate) const TOOLS_PAGE: &str = "the page on tools (docs/reference/tools.md) lists all";

/// How a name means a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    /// By another name or another case.
    Loose,
}

/// The tools that come with Posse, the shell, delegation and skills included.
pub fn built_in_tools() -> Vec<ToolFacts> {
    posse_tools::specs().map(|spec| spec.facts.clone()).chain(of_the_runtime()).collect()
}

/// The tools that the runtime makes for a run: those that hand on work, and the one that loads
/// skills.
pub(crate) fn of_the_runtime() -> impl Iterator<Item = ToolFacts> {
    let tool = |name: &str, aliases: &[&str], effect, shown: &str| ToolFacts {
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        shown: shown.to_owned(),
        ..ToolFacts::new(name, effect)
    };
    let task = tool(TASK, &TASK_ALIASES, Effect::Delegate, "{description}");
    let spawn = tool(SPAWN, &[], Effect::Delegate, "{task}");
    let subagents = tool(SUBAGENTS, &[], Effect::Delegate, "");
    let skill = tool(SKILL, &SKILL_ALIASES, Effect::Read, "{skill}");
    [task, spawn, subagents, skill].into_iter()
}

/// Stands for all tools of the source called `name`, which are known when a run is prepared.
pub(crate) fn of_source(name: &str) -> ToolFacts {
    ToolFacts::new(format!("mcp__{name}__*"), Effect::Network)
}

/// The one of these that is called `name`.
pub(crate) fn own(name: &str) -> ToolFacts {
    let found = of_the_runtime().find(|tool| tool.name == name);
    found.unwrap_or_else(|| ToolFacts::new(name, Effect::Delegate))
}

/// The tools that a run with `grant` may know of: those that come with Posse, those of its host, and
/// those that sources offered.
pub fn tools_of(grant: &Grant) -> Vec<ToolFacts> {
    let mut tools = built_in_tools();
    tools.extend(grant.known.iter().cloned());
    let offered = grant.sources.iter().flat_map(|offer| &offer.tools);
    tools.extend(offered.map(|tool| tool.facts.clone()));
    tools
}

/// Names of those of `tools` that an agent with `rights` may call when nobody above it narrows them.
pub fn granted_tools<'t>(
    tools: impl IntoIterator<Item = &'t ToolFacts>,
    rights: &AgentRights,
) -> Vec<String> {
    filter::allowed(tools, rights.tools.as_deref(), &rights.disallowed_tools)
}

/// What the calls of `tool` are about. Other systems have tools that fetch pages; rules about these
/// are known without them.
pub(crate) fn about(tool: &ToolFacts) -> Option<Cow<'_, About>> {
    let fetches = ["WebFetch", "web_fetch"].contains(&tool.name.as_str());
    let usual = || fetches.then(|| Cow::Owned(About::Address("url".to_owned())));
    tool.about.as_ref().map(Cow::Borrowed).or_else(usual)
}

/// True when `tool` changes nothing but the run's own notes.
pub(crate) fn only_looks(tool: &ToolFacts) -> bool {
    tool.effect == Effect::Read
}

/// True for what an agent may use that nobody has said is to be trusted: looking at the workspace,
/// notes of its own, and skills. What a host offers is none of a project's.
pub(crate) fn looks_here(tool: &ToolFacts) -> bool {
    only_looks(tool) && (tool.confined || tool.name == SKILL)
}

/// True for what concerns the run alone: notes of its own, and skills.
pub(crate) fn is_of_the_run(tool: &ToolFacts) -> bool {
    matches!(tool.about, Some(About::Notes(_))) || tool.name == SKILL
}

/// The tool that `name` means: by its name, by another name for it, or by either in another case.
pub(crate) fn find<'t>(tools: &'t [ToolFacts], name: &str) -> Option<(&'t ToolFacts, Match)> {
    let by = |fits: &dyn Fn(&str) -> bool| {
        let by_name = tools.iter().find(|tool| fits(&tool.name));
        by_name.or_else(|| tools.iter().find(|tool| tool.aliases.iter().any(|alias| fits(alias))))
    };
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Some((tool, Match::Exact));
    }
    let found =
        by(&|known| known == name).or_else(|| by(&|known| known.eq_ignore_ascii_case(name)));
    found.map(|tool| (tool, Match::Loose))
}

/// Tools of other systems that do not exist here. To deny one is harmless.
const FOREIGN: [&str; 44] = [
    "AgentOutputTool",
    "ApplyPatch",
    "AskUserQuestion",
    "BashOutput",
    "Computer",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "KillBash",
    "KillShell",
    "LSP",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "ReadMcpResource",
    "ReadMcpResourceTool",
    "SendMessage",
    "SlashCommand",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "PowerShell",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "apply_patch",
    "update_plan",
    "web_fetch",
    "web_search",
    "view_image",
];

/// True when `name` is a tool of other systems that does not exist here.
pub(crate) fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What is odd about `list`, which says what tools children may have where `tools` exist: which names
/// in `allow` mean none.
///
/// # Errors
/// When a name in `deny` means none: it would deny nothing, and whoever wrote it believes that it does.
pub(crate) fn check_tools(list: &NameRules, tools: &[ToolFacts]) -> Result<Vec<String>, String> {
    // Without a launcher there is no shell; to name it is no slip.
    let mut all = built_in_tools();
    all.extend_from_slice(tools);
    // What other systems have, and what no child has anyway, may be denied again.
    let is_denied = |name: &str| is_foreign(name) || name_denied_to_children(name);
    if let Some(name) = list.deny.iter().find(|it| means_nothing(it, &all) && !is_denied(it)) {
        return Err(format!(
            "`subagents.tools.deny` names {}, which is not a tool, so that nothing would be \
             denied; {}",
            quoted(name),
            suggested(name, &all)
        ));
    }
    let allow = list.allow.as_deref().unwrap_or_default();
    let nobody = matches!(allow, [one] if one == "*");
    let odd = allow.iter().filter(|it| !nobody && means_nothing(it, &all));
    let told = |name: &String| {
        let shown = quoted(name);
        let suggestion = suggested(name, &all);
        format!("`subagents.tools.allow` names {shown}, which is not a tool; {suggestion}")
    };
    Ok(odd.map(told).collect())
}

/// Which of `tools` the entry `name` may mean.
pub(crate) fn suggested(name: &str, tools: &[ToolFacts]) -> String {
    let names = tools.iter().map(|tool| tool.name.as_str());
    near::suggestion(parts(name).0, names, TOOLS_PAGE)
}

/// True when `entry` of a list is a name, and no tool has it. What has `*` in it may mean a tool that
/// comes later, and so may one of an MCP server.
fn means_nothing(entry: &String, tools: &[ToolFacts]) -> bool {
    let name = parts(entry).0;
    if name.starts_with('@') {
        return !filter::GROUPS.contains(&name);
    }
    !name.starts_with("mcp__") && filter::unknown(std::slice::from_ref(entry), tools).is_some()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_tool_exactly_by_alias_or_in_another_case() {
        let tools = built_in_tools();
        let check = |name: &str, expected: Option<(&str, Match)>| {
            let found = find(&tools, name).map(|(tool, how)| (tool.name.as_str(), how));
            assert_eq!(found, expected, "{name}");
        };
        check("Read", Some(("Read", Match::Exact)));
        check("LS", Some(("List", Match::Loose)));
        check("READ", Some(("Read", Match::Loose)));
        check("agent", Some(("Task", Match::Loose)));
        check("Raed", None);
        check("*", None);
    }
}
