//! Changes that settings files make to agents: their model, their limits, their tools. What a
//! project changes can only narrow.

use super::resolve::{self, Trust, common, keep, require_tools};
use crate::budget;
use crate::definition::field::Field;
use crate::definition::reading::Written;
use crate::definition::{AgentDefinition, PermissionMode};
use crate::front_matter::problem::{Findings, Place};
use crate::limits::{narrowed, replaced};
use crate::tool_facts::filter::allowed;
use crate::tool_facts::{ToolFacts, only_looks};
use posse_protocol::{AgentSpec, ModelChoice};

/// Changes `spec` as `written` says. An error among the findings means that it cannot be used:
/// without what the change was to deny, it could do more than it should.
pub(crate) fn apply(
    spec: &mut AgentSpec,
    written: &Written,
    tools: &[ToolFacts],
    trust: Trust<'_>,
    findings: &mut Findings,
) {
    let change = &written.definition;
    // What nobody trusts can only narrow.
    let is_believed = match trust {
        Trust::User => true,
        Trust::Project { standing, .. } => standing.is_trusted(),
    };
    let models = resolve::models(change);
    if is_believed {
        spec.models = models.over(&spec.models);
    } else if models != ModelChoice::default() {
        let reason = "`model` and `effort` have no effect: this folder is not trusted, so it can only \
                      restrict an agent";
        findings.note(Place::UNKNOWN, reason);
    }
    if let Some(color) = &change.color {
        spec.color.clone_from(color);
    }
    let allow = resolve::allow(written, tools, findings);
    spec.rights.disallowed_tools.extend(resolve::denied(written, tools, findings));
    let mode = change.permission_mode.and_then(PermissionMode::mode);
    match trust {
        Trust::User => {
            spec.rights.mode = mode.or(spec.rights.mode);
            spec.limits = replaced(&change.limits(), &spec.limits);
            spec.budget = budget::replaced(&change.budget(), &spec.budget);
            spec.children.max_depth = change.max_depth.or(spec.children.max_depth);
            spec.rights.tools = allow.tools.or(spec.rights.tools.take());
            spec.children.agents =
                common(allow.agents, change.agents.clone()).or(spec.children.agents.take());
            spec.start.context = change.fork_context.unwrap_or(spec.start.context);
            if let Some(skills) = &change.skills {
                spec.start.skills.clone_from(skills);
            }
            if let Some(prompt) = &change.initial_prompt {
                spec.start.initial_prompt.clone_from(prompt);
            }
            spec.output_schema = change.output_schema.clone().or(spec.output_schema.take());
        }
        Trust::Project { limits, budget, max_depth, .. } => {
            for field in reserved(change) {
                let reason = format!(
                    "a project may not set `{}` of an agent; it belongs into your own settings",
                    field.name()
                );
                findings.error(Place::UNKNOWN, reason);
            }
            spec.rights.mode = mode.into_iter().chain(spec.rights.mode).min();
            spec.limits = narrowed(&change.limits(), &spec.limits, limits);
            spec.budget = budget::narrowed(&change.budget(), &spec.budget, budget);
            spec.children.max_depth = match change.max_depth {
                Some(depth) => Some(depth.min(spec.children.max_depth.unwrap_or(max_depth))),
                None => spec.children.max_depth,
            };
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
            let agents = common(allow.agents, change.agents.clone());
            spec.children.agents = common(spec.children.agents.take(), agents);
        }
    }
    if change.permission_mode == Some(PermissionMode::Plan) {
        keep(&mut spec.rights, tools, only_looks);
    }
    require_tools(&mut spec.rights, Place::UNKNOWN, tools, findings);
}

/// What would let a project speak to an agent that may do more than look.
fn reserved(change: &AgentDefinition) -> impl Iterator<Item = Field> {
    let set = [
        (Field::InitialPrompt, change.initial_prompt.is_some()),
        (Field::ForkContext, change.fork_context.is_some()),
        (Field::OutputSchema, change.output_schema.is_some()),
        (Field::Skills, change.skills.is_some()),
        (Field::McpServers, change.mcp_servers.is_some()),
        (Field::Hooks, change.hooks.is_some()),
        (Field::Memory, change.memory.is_some()),
        (Field::Network, change.network.is_some()),
        (Field::Paths, change.paths.is_some()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| field)
}
