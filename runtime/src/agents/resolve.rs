//! Resolves a definition to an agent: the tools it may call here, its limits, its instructions.

use super::tool_list::{self, Allowed};
use crate::budget;
use crate::definition::field::Field;
use crate::definition::reading::{self, Written};
use crate::definition::{AgentDefinition, DefinedModels};
use crate::definition::{Network, Paths, PermissionMode};
use crate::front_matter::problem::{Findings, Position, Problem};
use crate::limits;
use crate::policy::{EDIT, READ, tool_names};
use crate::tool_facts::check_tools;
use crate::tool_facts::filter::{allowed, parts};
use crate::tool_facts::{ToolFacts, granted_tools, looks_here, only_looks};
use crate::trust::TrustStatus;
use posse_protocol::{AgentName, AgentRights, AgentSpec, Budget, Limits, ModelChoice};
use serde_json::Value;

/// How far Posse trusts the author of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// The user, or a source that the user chose.
    User,
    /// A project. Until the user trusts it, its agents have only tools that read. They never exceed the user's limits.
    Project {
        /// Whether the user trusts it.
        standing: &'a TrustStatus,
        /// The limits of the user.
        limits: &'a Limits,
        /// The budget that the user gives a root.
        budget: &'a Budget,
        /// How many levels of runs the user allows below a run.
        max_depth: u32,
    },
}

/// The agent `name` that `written` defines if these `tools` exist; `None` if the findings contain an error.
pub(crate) fn spec(
    written: &Written,
    name: AgentName,
    tools: &[ToolFacts],
    trust: Trust<'_>,
    findings: &mut Findings,
) -> Option<AgentSpec> {
    let definition = &written.definition;
    let AgentDefinition { rights, start, .. } = definition;
    let mut spec = AgentSpec {
        description: definition.description.clone(),
        instructions: definition.prompt.trim().to_owned(),
        color: definition.color.clone().unwrap_or_default(),
        models: models(&definition.models),
        ..AgentSpec::new(name)
    };
    spec.start.background = start.background.unwrap_or_default();
    spec.start.omit_guidance = start.omit_claude_md.unwrap_or_default();
    (spec.start.announce, spec.start.isolation) = (start.announce, start.isolation);
    spec.children.subagents = definition.children.subagents.clone().unwrap_or_default();
    spec.rights.scopes = path_scopes(rights.paths.as_ref());
    spec.rights.network = network(written, findings);
    check_children(written, tools, findings);
    spec.rights.disallowed_tools = denied(written, tools, findings);
    spec.rights.disallowed_tools.extend(unusable(rights.paths.as_ref(), tools));
    replace(&mut spec, definition, allow(written, tools, findings));
    if rights.permission_mode == Some(PermissionMode::Plan) {
        keep(&mut spec.rights, tools, only_looks);
    }
    if let Trust::Project { standing, limits, budget, .. } = trust {
        spec.limits = limits::stricter(spec.limits, limits);
        spec.budget = budget::narrowed(&spec.budget, &Budget::default(), budget);
        // A project may not decide when runs are archived or their logs removed.
        spec.children.subagents.default_cleanup = None;
        spec.children.subagents.archive_after_minutes = None;
        if !standing.is_trusted() {
            choose_no_model(&mut spec, standing, written.place(Field::Model), findings);
            // Git would follow the configuration of the folder.
            if spec.start.isolation.take().is_some() {
                let reason = format!("{}, so `isolation` has no effect", of_folder(standing));
                findings.note(written.place(Field::Isolation), reason);
            }
            only_look(&mut spec.rights, standing, written.place(Field::Tools), tools, findings);
        }
    }
    require_tools(&mut spec.rights, written.place(Field::Tools), tools, findings);
    findings.first_error().is_none().then_some(spec)
}

/// Replaces the fields of `spec` that `definition` sets and that the user may also change later. `allow` is what the
/// definition allows.
pub(crate) fn replace(spec: &mut AgentSpec, definition: &AgentDefinition, allow: Allowed) {
    let (start, children) = (&definition.start, &mut spec.children);
    spec.rights.mode = definition.rights.mode().or(spec.rights.mode);
    spec.rights.tools = allow.tools.or(spec.rights.tools.take());
    spec.limits = limits::replaced(&definition.limits(), &spec.limits);
    spec.budget = budget::replaced(&definition.budget(), &spec.budget);
    children.agents = allow.agents.or(children.agents.take());
    children.max_depth = definition.children.max_depth.or(children.max_depth);
    spec.start.context = start.fork_context.unwrap_or(spec.start.context);
    if let Some(skills) = &start.skills {
        spec.start.skills.clone_from(skills);
    }
    if let Some(prompt) = &start.initial_prompt {
        spec.start.initial_prompt.clone_from(prompt);
    }
    spec.output_schema = definition.output_schema.clone().or(spec.output_schema.take());
}

/// Reports the names in `subagents.tools` of a definition that match no tool.
fn check_children(written: &Written, tools: &[ToolFacts], findings: &mut Findings) {
    let Some(rules) = &written.definition.children.subagents else { return };
    let place = written.place(Field::Subagents);
    match check_tools(&rules.tools, tools) {
        Ok(odd) => odd.into_iter().for_each(|reason| findings.warning(place, reason)),
        Err(reason) => findings.error(place, reason),
    }
}

/// The network access that a definition gives its commands.
fn network(written: &Written, findings: &mut Findings) -> Option<posse_protocol::Network> {
    let network = match written.definition.rights.network.as_ref()? {
        Network::Any(true) => return Some(posse_protocol::Network::Open),
        Network::Any(false) => return Some(posse_protocol::Network::Off),
        Network::Hosts(hosts) if hosts.is_empty() => return Some(posse_protocol::Network::Off),
        Network::Hosts(hosts) => posse_protocol::Network::of(&hosts.join(",")),
    };
    network.map_err(|reason| findings.error(written.place(Field::Network), reason)).ok()
}

/// The scopes of the file tools that follow from the paths of a definition.
fn path_scopes(paths: Option<&Paths>) -> Vec<Vec<String>> {
    let Some(paths) = paths else { return Vec::new() };
    let rules = |tool: &str, paths: &Option<Vec<String>>| -> Vec<String> {
        paths.iter().flatten().map(|path| format!("{tool}({path})")).collect()
    };
    let both = [rules(READ, &paths.read), rules(EDIT, &paths.write)];
    both.into_iter().filter(|rules| !rules.is_empty()).collect()
}

/// The tools that are useless because their list of paths is empty.
fn unusable(paths: Option<&Paths>, tools: &[ToolFacts]) -> Vec<String> {
    let Some(paths) = paths else { return Vec::new() };
    let is_empty = |paths: &Option<Vec<String>>| paths.as_ref().is_some_and(Vec::is_empty);
    let (read, write) = (is_empty(&paths.read), is_empty(&paths.write));
    let unusable = |tool: &&ToolFacts| read && tool.reads_files() || write && tool.writes_files();
    tools.iter().filter(unusable).map(|tool| tool.name.clone()).collect()
}

/// The models that a definition names, without `inherit`.
pub(crate) fn models(defined: &DefinedModels) -> ModelChoice {
    let mut names = defined.model.iter().filter(|name| !name.eq_ignore_ascii_case("inherit"));
    let model = names.next().cloned();
    ModelChoice { model, fallbacks: names.cloned().collect(), effort: defined.effort }
}

/// What `tools` and `agents` of a definition allow.
pub(crate) fn allow(written: &Written, tools: &[ToolFacts], findings: &mut Findings) -> Allowed {
    let mut allow = match &written.definition.rights.tools {
        None => Allowed::default(),
        Some(rules) => tool_list::allow(rules, at(&written.tools), tools, findings),
    };
    let servers = servers(written, findings);
    if let Some(named) = &mut allow.tools {
        named.extend(
            servers.into_iter().filter(|server| !named.contains(server)).collect::<Vec<_>>(),
        );
    }
    allow.agents = common(allow.agents, written.definition.children.agents.clone());
    allow
}

/// The MCP servers that a definition names: all their tools. An agent without a list of tools has them anyway.
fn servers(written: &Written, findings: &mut Findings) -> Vec<String> {
    let listed = match &written.definition.rights.mcp_servers {
        Some(Value::Array(listed)) => listed.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => return Vec::new(),
    };
    if listed.iter().any(|server| !server.is_string()) {
        findings.not_in_force(
            written.place(Field::McpServers),
            "`mcpServers` describes a server: name it here, and describe it in `.mcp.json` or in your settings",
        );
    }
    listed.iter().filter_map(Value::as_str).map(|name| format!("mcp__{name}")).collect()
}

/// What `disallowedTools` of a definition denies.
pub(crate) fn denied(
    written: &Written,
    tools: &[ToolFacts],
    findings: &mut Findings,
) -> Vec<String> {
    let rules = written.definition.rights.disallowed_tools.as_deref().unwrap_or_default();
    tool_list::deny(rules, at(&written.disallowed_tools), tools, findings)
}

fn at(places: &[Position]) -> impl Fn(usize) -> Position {
    |index| places.get(index).copied().unwrap_or_default()
}

/// The names in both lists. `None` means everything.
pub(crate) fn common(one: Option<Vec<String>>, other: Option<Vec<String>>) -> Option<Vec<String>> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.retain(|name| other.iter().any(|known| known.eq_ignore_ascii_case(name)));
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// Keeps the tools that `wanted` selects, with their scopes.
pub(crate) fn keep(
    rights: &mut AgentRights,
    tools: &[ToolFacts],
    wanted: impl Fn(&ToolFacts) -> bool,
) {
    let mut kept = granted_tools(tools, rights);
    kept.retain(|name| tools.iter().any(|tool| tool.name == *name && wanted(tool)));
    let before = rights.tools.take().unwrap_or_default();
    let rules = |name: String| {
        let of_tool = |entry: &&String| matches!(parts(entry), (tool, Some(_)) if tool == name);
        let rules: Vec<String> = before.iter().filter(of_tool).cloned().collect();
        if rules.is_empty() { vec![name] } else { rules }
    };
    rights.tools = Some(kept.into_iter().flat_map(rules).collect());
}

/// Keeps the tools that only read, and reports which others the definition named.
fn only_look(
    rights: &mut AgentRights,
    standing: &TrustStatus,
    place: Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) {
    let before = granted_tools(tools, rights);
    keep(rights, tools, looks_here);
    let kept = tool_names(rights.tools.as_deref().unwrap_or_default());
    let lost: Vec<&str> =
        before.iter().filter(|name| !kept.contains(name)).map(String::as_str).collect();
    if !lost.is_empty() && !kept.is_empty() {
        let reason = format!(
            "read-only: {}, so the agent does not get {}",
            of_folder(standing),
            lost.join(", ")
        );
        findings.note(place, reason);
    } else if !lost.is_empty() && findings.first_error().is_none() {
        let looking: Vec<String> =
            tools.iter().filter(|tool| looks_here(tool)).map(|tool| tool.name.clone()).collect();
        let reason = format!(
            "{}, so the agent does not get {}, and it names no read-only tool. Trust the folder, or \
             give the agent tools of {}",
            of_folder(standing),
            lost.join(", "),
            looking.join(", ")
        );
        findings.error(place, reason);
    }
}

/// Removes the choice of a model: the user decides where requests go and what they cost.
fn choose_no_model(
    spec: &mut AgentSpec,
    standing: &TrustStatus,
    place: Position,
    findings: &mut Findings,
) {
    let chosen = std::mem::take(&mut spec.models);
    if chosen.effort.is_some() || chosen.model.is_some() {
        let reason = format!("{}, so `model` and `effort` have no effect", of_folder(standing));
        findings.note(place, reason);
    }
}

/// Why an agent of a folder with this standing is restricted.
fn of_folder(standing: &TrustStatus) -> String {
    match standing {
        TrustStatus::Changed => "this changed since you trusted the folder".to_owned(),
        TrustStatus::Trusted | TrustStatus::Unknown => "this folder is not trusted".to_owned(),
        TrustStatus::Unsure(why) => format!("this folder is not trusted ({why})"),
    }
}

/// Removes denied tools from the allowed ones, and reports an error if no tool is left.
pub(crate) fn require_tools(
    rights: &mut AgentRights,
    place: Position,
    tools: &[ToolFacts],
    findings: &mut Findings,
) {
    let denied = &rights.disallowed_tools;
    // Which tools servers have is known only when a run starts.
    let is_of_server = |rule: &String| rule.starts_with("mcp__");
    if let Some(rules) = &mut rights.tools {
        rules.retain(|rule| {
            is_of_server(rule)
                || !allowed(tools, Some(std::slice::from_ref(rule)), denied).is_empty()
        });
    }
    let may_have = rights.tools.iter().flatten().any(is_of_server);
    let left = granted_tools(tools, rights);
    if left.is_empty() && !may_have && findings.first_error().is_none() {
        let reason = "no tool is left to it, and without any an agent can do nothing; name more, \
                      or deny less";
        findings.error(place, reason);
    }
}

impl AgentDefinition {
    /// Resolves the definition, given the `tools` that exist. Returns the agent and the problems in the definition; if
    /// there is no agent, one of the problems is an error. The definition needs a name.
    pub fn resolve(&self, tools: &[ToolFacts]) -> (Option<AgentSpec>, Vec<Problem>) {
        let mut findings = Findings::default();
        reading::require(self, Position::UNKNOWN, &mut findings);
        let Some(name) = &self.name else {
            findings.error(Position::UNKNOWN, "it has no name; give it one");
            return (None, problems(&findings, None));
        };
        let written = reading::Written::without_places(self.clone());
        let spec = spec(&written, name.clone(), tools, Trust::User, &mut findings);
        (spec, problems(&findings, Some(name.as_str())))
    }
}

fn problems(findings: &Findings, agent: Option<&str>) -> Vec<Problem> {
    findings.0.iter().map(|finding| finding.problem(None, agent)).collect()
}
