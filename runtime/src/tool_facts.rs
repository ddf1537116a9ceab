//! Facts about tools: names, aliases, effects, and which tools a list of names allows.
//!
//! Definitions, rules and settings are checked against these facts. The only tools defined here are those of the
//! runtime itself.

pub(crate) mod filter;

use crate::error::quoted;
use filter::{name_denied_to_children, parts};
pub use posse_protocol::ToolFacts;
use posse_protocol::{About, AgentRights, Effect, Grant, NameRules, SourceOffer, near};
use std::borrow::Cow;

/// Starts a subagent and waits for it.
pub(crate) const TASK: &str = "Task";
pub(crate) const TASK_ALIASES: [&str; 2] = ["task", "Agent"];
/// Starts a subagent in the background.
pub(crate) const SPAWN: &str = "spawn_subagent";
/// Shows and controls subagents.
pub(crate) const SUBAGENTS: &str = "subagents";
/// Loads a skill.
pub(crate) const SKILL: &str = "Skill";
pub(crate) const SKILL_ALIASES: [&str; 3] = ["skill", "load_skill", "use_skill"];

/// The tools that start or control subagents, by all their names.
pub(crate) const DELEGATING: [&str; 5] = [TASK, TASK_ALIASES[0], TASK_ALIASES[1], SPAWN, SUBAGENTS];

/// Where people find all tools.
pub(crate) const TOOLS_PAGE: &str = "the page on tools (docs/reference/tools.md) lists all";

/// How a name matched a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    /// By an alias, or in another case.
    Loose,
}

/// Returns the built-in tools, including the shell, delegation and skills.
pub fn built_in_tools() -> Vec<ToolFacts> {
    posse_tools::specs().map(|spec| spec.facts.clone()).chain(of_the_runtime()).collect()
}

/// Returns the tools that the runtime makes for a run: those for subagents, and the one that loads skills.
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

/// Returns an entry for all tools of the source `name`, which are known only when a run is prepared.
pub(crate) fn of_source(name: &str) -> ToolFacts {
    ToolFacts::new(format!("mcp__{name}__*"), Effect::Network)
}

/// Returns the tool of the runtime with this name.
pub(crate) fn own(name: &str) -> ToolFacts {
    let found = of_the_runtime().find(|tool| tool.name == name);
    found.unwrap_or_else(|| ToolFacts::new(name, Effect::Delegate))
}

/// Returns the tools that a run with `grant` may know: built-in tools, tools of its host, and tools that sources
/// offered.
pub fn tools_of(grant: &Grant) -> Vec<ToolFacts> {
    let mut tools = built_in_tools();
    tools.extend(grant.known.iter().cloned());
    let offered = grant.sources.iter().flat_map(|offer| &offer.tools);
    tools.extend(offered.map(|tool| tool.facts.clone()));
    tools
}

/// Returns the tools and the tool sources of a host program that a run with `grant` uses, by their names.
pub(crate) fn tools_of_hosts(grant: &Grant) -> Vec<&str> {
    let known = grant.known.iter().map(|tool| tool.name.as_str()).filter(|it| grant.allows(it));
    // An MCP server is found by its file, whichever host executes the run.
    let is_used = |offer: &&SourceOffer| {
        offer.file.is_none() && offer.tools.iter().any(|it| grant.allows(&it.facts.name))
    };
    let sources = grant.sources.iter().filter(is_used).map(|offer| offer.source.as_str());
    known.chain(sources).collect()
}

/// Returns the names of the `tools` that an agent with `rights` may call, if no parent narrows them.
pub fn granted_tools<'t>(
    tools: impl IntoIterator<Item = &'t ToolFacts>,
    rights: &AgentRights,
) -> Vec<String> {
    filter::allowed(tools, rights.tools.as_deref(), &rights.disallowed_tools)
}

/// Returns what the calls of `tool` are about. Posse has no tool that fetches pages, but rules about such tools of
/// other systems are known.
pub(crate) fn about(tool: &ToolFacts) -> Option<Cow<'_, About>> {
    let fetches = ["WebFetch", "web_fetch"].contains(&tool.name.as_str());
    let usual = || fetches.then(|| Cow::Owned(About::Address("url".to_owned())));
    tool.about.as_ref().map(Cow::Borrowed).or_else(usual)
}

/// True when `tool` changes nothing but the notes of the run.
pub(crate) fn only_looks(tool: &ToolFacts) -> bool {
    tool.effect == Effect::Read
}

/// True for a tool that an untrusted agent may use: it reads the workspace, keeps notes, or loads skills. Tools of the
/// host are not among them.
pub(crate) fn looks_here(tool: &ToolFacts) -> bool {
    only_looks(tool) && (tool.confined || tool.name == SKILL)
}

/// True for a tool that affects only the run: it keeps notes, or loads skills.
pub(crate) fn is_of_the_run(tool: &ToolFacts) -> bool {
    matches!(tool.about, Some(About::Notes(_))) || tool.name == SKILL
}

/// Returns the tool that `name` means: by its name or an alias, in any case.
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

/// Tools of other systems that Posse does not have. Denying one is harmless.
const FOREIGN: [&str; 43] = [
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

/// True when `name` is a tool of other systems that Posse does not have.
pub(crate) fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Checks `list`, the tools that children may have, against the existing `tools`. Returns warnings about names in
/// `allow` that match no tool.
///
/// # Errors
/// When a name in `deny` matches no tool: the rule would deny nothing, against the wish of its author.
pub(crate) fn check_tools(list: &NameRules, tools: &[ToolFacts]) -> Result<Vec<String>, String> {
    // Without a launcher there is no shell; naming it is no mistake.
    let mut all = built_in_tools();
    all.extend_from_slice(tools);
    // A list may deny tools of other systems, and tools that no child has anyway.
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

/// Returns a hint at the tools of `tools` that the entry `name` may mean.
pub(crate) fn suggested(name: &str, tools: &[ToolFacts]) -> String {
    let names = tools.iter().map(|tool| tool.name.as_str());
    near::suggestion(parts(name).0, names, TOOLS_PAGE)
}

/// True when `entry` of a list is a name that no tool has. A pattern with `*`, or a tool of an MCP server, may match a
/// tool that comes later.
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
