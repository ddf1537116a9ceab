//! What is known of the tools there are: names, aliases, effects, and which a list of names allows.
//!
//! Definitions, rules and settings are held against it. It knows no tool itself.

pub(crate) mod filter;

use crate::error::quoted;
use filter::{name_denied_to_children, parts};
use posse_agent::Tool;
use posse_protocol::{AgentSpec, Effect, NameRules, ToolSpec, near};

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

/// What definitions, lists and rules need to know of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Its name, as models see it.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it does to the world.
    pub effect: Effect,
}

/// The tools that come with Posse. A test holds this to the tools themselves.
const BUILT_IN: [(&str, &[&str], Effect); 12] = [
    (
        "Read",
        &["read", "read_file", "ReadFile", "view", "view_file", "open_file", "cat"],
        Effect::Read,
    ),
    ("Write", &["write", "write_file", "WriteFile", "create_file"], Effect::Write),
    (
        "Edit",
        &["edit", "edit_file", "EditFile", "str_replace", "replace", "replace_in_file"],
        Effect::Write,
    ),
    ("Glob", &["glob", "find_files", "find", "FindFiles", "file_search"], Effect::Read),
    (
        "Grep",
        &["grep", "search", "rg", "ripgrep", "search_files", "grep_search", "SearchText"],
        Effect::Read,
    ),
    (
        "List",
        &["LS", "list", "ls", "list_dir", "list_files", "list_directory", "ListDir"],
        Effect::Read,
    ),
    (
        "Bash",
        &["bash", "shell", "Shell", "sh", "run_command", "run_shell_command", "execute_command"],
        Effect::Execute,
    ),
    ("TodoWrite", &["todo_write", "todowrite"], Effect::Read),
    (TASK, &TASK_ALIASES, Effect::Delegate),
    (SPAWN, &[], Effect::Delegate),
    (SUBAGENTS, &[], Effect::Delegate),
    (SKILL, &SKILL_ALIASES, Effect::Read),
];

/// What an agent may use that nobody has said is to be trusted: looking, and its own notes.
pub(crate) const LOOKING: [&str; 6] = ["Read", "Glob", "Grep", "List", "TodoWrite", SKILL];

/// How a name means a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    /// By another name or another case.
    Loose,
}

impl ToolFacts {
    /// What `tool` says of itself.
    pub fn of(tool: &dyn Tool) -> Self {
        ToolFacts {
            name: tool.spec().name.clone(),
            aliases: tool.aliases().iter().map(|alias| (*alias).to_owned()).collect(),
            effect: tool.spec().effect,
        }
    }

    /// What `spec` says of a tool that has no other names.
    pub(crate) fn of_spec(spec: &ToolSpec) -> Self {
        ToolFacts { name: spec.name.clone(), aliases: Vec::new(), effect: spec.effect }
    }

    /// Stands for all tools of the source called `name`, which are known when a run is prepared.
    pub(crate) fn of_source(name: &str) -> Self {
        ToolFacts { name: format!("mcp__{name}__*"), aliases: Vec::new(), effect: Effect::Network }
    }

    /// The tools that come with Posse, the shell, delegation and skills included.
    pub fn built_in() -> Vec<ToolFacts> {
        let facts = BUILT_IN.iter().map(|(name, aliases, effect)| ToolFacts {
            name: (*name).to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            effect: *effect,
        });
        facts.collect()
    }

    /// The tools that the runtime makes for a run: those that hand on work, and the one that loads
    /// skills.
    pub(crate) fn of_the_runtime() -> impl Iterator<Item = ToolFacts> {
        let own = |tool: &ToolFacts| tool.effect == Effect::Delegate || tool.name == SKILL;
        ToolFacts::built_in().into_iter().filter(own)
    }

    /// Names of those of `tools` that `agent` may call when nobody above it narrows them.
    pub fn granted(tools: &[ToolFacts], agent: &AgentSpec) -> Vec<String> {
        filter::allowed(tools, agent.tools.as_deref(), &agent.disallowed_tools)
    }

    /// True when it changes nothing but the run's own notes.
    pub(crate) fn only_looks(&self) -> bool {
        self.effect == Effect::Read || self.name == "TodoWrite"
    }
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
    let mut all = ToolFacts::built_in();
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
    fn the_tools_that_come_with_posse_are_as_they_say() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = posse_tools::Workspace::open(folder.path()).unwrap();
        let tools = posse_tools::toolset(&workspace, None, None);
        let known = ToolFacts::built_in();
        for tool in &tools {
            let facts = ToolFacts::of(tool.as_ref());
            assert!(known.contains(&facts), "{facts:?}");
        }
    }

    #[test]
    fn a_name_means_a_tool_exactly_by_alias_or_in_another_case() {
        let tools = ToolFacts::built_in();
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
