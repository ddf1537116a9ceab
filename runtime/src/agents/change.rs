//! Changes that settings files make to agents: their model, their limits, their tools. A project
//! can only make an agent stricter.

use super::resolve::{self, Trust, common, keep, require_tools};
use crate::budget;
use crate::definition::field::Field;
use crate::definition::reading::Written;
use crate::definition::{AgentDefinition, PermissionMode};
use crate::front_matter::problem::{Findings, Position};
use crate::limits::narrowed;
use crate::tool_facts::filter::allowed;
use crate::tool_facts::{ToolFacts, only_looks};
use posse_protocol::{AgentSpec, ModelChoice};

/// Changes `spec` as `written` says. If the findings contain an error, the agent cannot be used:
/// without the denials of the change, it could do more than it should.
pub(crate) fn apply(
    spec: &mut AgentSpec,
    written: &Written,
    tools: &[ToolFacts],
    trust: Trust<'_>,
    findings: &mut Findings,
) {
    let change = &written.definition;
    // An untrusted folder can only make an agent stricter.
    let is_believed = match trust {
        Trust::User => true,
        Trust::Project { standing, .. } => standing.is_trusted(),
    };
    let models = resolve::models(&change.models);
    if is_believed {
        spec.models = models.over(&spec.models);
    } else if models != ModelChoice::default() {
        let reason = "`model` and `effort` have no effect: this folder is not trusted, so it can only \
                      restrict an agent";
        findings.note(Position::UNKNOWN, reason);
    }
    if let Some(color) = &change.color {
        spec.color.clone_from(color);
    }
    let allow = resolve::allow(written, tools, findings);
    spec.rights.disallowed_tools.extend(resolve::denied(written, tools, findings));
    match trust {
        Trust::User => resolve::replace(spec, change, allow),
        Trust::Project { limits, budget, max_depth, .. } => {
            for field in reserved(change) {
                let reason = format!(
                    "a project may not set `{}` of an agent; it belongs into your own settings",
                    field.name()
                );
                findings.error(Position::UNKNOWN, reason);
            }
            spec.rights.mode = change.rights.mode().into_iter().chain(spec.rights.mode).min();
            spec.limits = narrowed(&change.limits(), &spec.limits, limits);
            spec.budget = budget::narrowed(&change.budget(), &spec.budget, budget);
            if let Some(depth) = change.children.max_depth {
                let most = spec.children.max_depth.unwrap_or(max_depth);
                spec.children.max_depth = Some(depth.min(most));
            }
            if let Some(rules) = allow.tools.as_deref().and_then(crate::policy::scopes) {
                let reason = format!(
                    "a change by a project can name tools, and not with what they may be called \
                     ({}); deny what it must not do, with `disallowed_tools`",
                    rules.join(", ")
                );
                findings.error(written.place(Field::Tools), reason);
            }
            if allow.tools.is_some() {
                let wanted = allowed(tools, allow.tools.as_deref(), &[]);
                keep(&mut spec.rights, tools, |tool| wanted.contains(&tool.name));
            }
            spec.children.agents = common(spec.children.agents.take(), allow.agents);
        }
    }
    if change.rights.permission_mode == Some(PermissionMode::Plan) {
        keep(&mut spec.rights, tools, only_looks);
    }
    require_tools(&mut spec.rights, Position::UNKNOWN, tools, findings);
}

/// Fields that a project may not set: with them, it could instruct an agent with more rights.
fn reserved(change: &AgentDefinition) -> impl Iterator<Item = Field> {
    let AgentDefinition { rights, start, .. } = change;
    let set = [
        (Field::InitialPrompt, start.initial_prompt.is_some()),
        (Field::ForkContext, start.fork_context.is_some()),
        (Field::OutputSchema, change.output_schema.is_some()),
        (Field::Skills, start.skills.is_some()),
        (Field::McpServers, rights.mcp_servers.is_some()),
        (Field::Hooks, rights.hooks.is_some()),
        (Field::Memory, start.memory.is_some()),
        (Field::Network, rights.network.is_some()),
        (Field::Paths, rights.paths.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| field)
}
