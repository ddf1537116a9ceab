//! What definitions are held against: the tools there are.

use crate::delegation::{self, filter};
use crate::runtime::RuntimeConfig;
use crate::skills;
use posse_agent::Tool;
use posse_protocol::{AgentSpec, Effect};

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
const BUILT_IN: [(&str, &[&str], Effect); 8] = [
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
];

/// What an agent may use that nobody has said is to be trusted: looking, and its own notes.
pub(crate) const LOOKING: [&str; 6] = ["Read", "Glob", "Grep", "List", "TodoWrite", "Skill"];

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

    /// The tools that come with Posse, the shell, delegation and skills included.
    pub fn built_in() -> Vec<ToolFacts> {
        let facts = BUILT_IN.iter().map(|(name, aliases, effect)| ToolFacts {
            name: (*name).to_owned(),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            effect: *effect,
        });
        facts.chain(delegation::facts()).chain([skills::tool::facts()]).collect()
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

impl RuntimeConfig {
    /// The tools that runs of this runtime can have.
    pub(crate) fn tool_facts(&self) -> Vec<ToolFacts> {
        let mut facts = ToolFacts::built_in();
        facts.retain(|tool| self.launcher.is_some() || tool.effect != Effect::Execute);
        facts.extend(self.tools.iter().map(|tool| ToolFacts::of(tool.as_ref())));
        facts
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
