//! `spawn_subagent`: starts a background child. Its result is announced.

use crate::child::Above;
use crate::delegation::arguments::{self, invalid};
use crate::delegation::task;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::start::StartResult;
use crate::tool_facts::{SPAWN, own};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::ModelChoice;
use posse_protocol::RunRights;
use posse_protocol::{
    Announce, Budget, Cleanup, Extra, Limits, RunId, RunSpec, RunStarted, Schema, SkillRules,
    ToolOutput, ToolRules, ToolSpec, Usd,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

const ABOUT: &str = "Starts an agent in the background and returns at once. Put all it needs into the \
    task. Its result is announced to you and wakes you: do not poll.";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = |about: &str| json!({"type": "string", "description": about});
    Schema::from(json!({
        "type": "object",
        "properties": {
            "task": {"type": "string"},
            "label": {"type": "string"},
            "agentId": text("Default: one like you"),
            "model": {"type": "string"},
            "thinking": text("low, medium, high or max"),
            "runTimeoutSeconds": {"type": "number"},
            "cleanup": {"type": "string", "enum": ["delete", "keep"]},
            "announce": {"type": "string", "enum": ["steer", "followup", "collect", "silent"],
                "description": "You see the result before your next step, after your turn, \
                    with the others', never"},
            "context": {"type": "string", "enum": ["isolated", "fork"],
                "description": "fork: starts with this conversation"},
            "output_schema": {"type": "object"},
            "budget": {"type": "object",
                "description": "{cost, turns, toolCalls, inputTokens, outputTokens, children}"},
            "tools": {"type": "object", "description": "{allow: [], deny: [], inherit: bool}"},
            "skills": {"type": "object",
                "description": "{allow: [], deny: [], inherit: bool, extraDirs: []}"},
        },
        "required": ["task"],
    }))
});

/// The tool for one run.
pub(crate) struct Spawn {
    spec: ToolSpec,
    runtime: Runtime,
    caller: Arc<RunStarted>,
}

impl Spawn {
    pub(crate) fn new(runtime: Runtime, caller: Arc<RunStarted>) -> Self {
        let spec = ToolSpec {
            facts: own(SPAWN),
            description: ABOUT.to_owned(),
            schema: SCHEMA.clone(),
            // A second call finds the child of the first.
            idempotent: true,
        };
        Spawn { spec, runtime, caller }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    #[serde(default, alias = "prompt")]
    task: String,
    #[serde(default, alias = "description")]
    label: String,
    #[serde(default, alias = "agent_id", alias = "agent", alias = "subagent_type")]
    agent_id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(
        default,
        alias = "run_timeout_seconds",
        alias = "timeoutSeconds",
        deserialize_with = "arguments::number"
    )]
    run_timeout_seconds: Option<f64>,
    #[serde(default)]
    cleanup: Option<Cleanup>,
    #[serde(default)]
    announce: Option<String>,
    #[serde(default)]
    context: Option<Value>,
    #[serde(default, alias = "output_schema")]
    output_schema: Option<Value>,
    #[serde(default)]
    budget: BudgetInput,
    #[serde(default)]
    tools: ToolRules,
    #[serde(default)]
    skills: SkillRules,
}

/// A budget in the form that models write.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct BudgetInput {
    #[serde(alias = "input_tokens")]
    input_tokens: Option<u64>,
    #[serde(alias = "output_tokens")]
    output_tokens: Option<u64>,
    cost: Option<f64>,
    turns: Option<u64>,
    #[serde(alias = "tool_calls")]
    tool_calls: Option<u64>,
    children: Option<u64>,
}

impl TryFrom<BudgetInput> for Budget {
    type Error = Error;

    fn try_from(input: BudgetInput) -> Result<Self, Error> {
        let BudgetInput { input_tokens, output_tokens, cost, turns, tool_calls, children } = input;
        if cost.is_some_and(|dollars| !dollars.is_finite() || dollars <= 0.0) {
            return Err(invalid("`budget.cost` is in dollars, and more than 0"));
        }
        let cost = cost.map(Usd::from_dollars);
        let extra = Extra::default();
        Ok(Budget { input_tokens, output_tokens, cost, turns, tool_calls, children, extra })
    }
}

#[async_trait]
impl Tool for Spawn {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        match start(&self.runtime, &self.caller, input, context).await {
            Ok(output) => output.into(),
            Err(Error::ShuttingDown) => task::gone(context).await,
            Err(error) => task::refused(&error.to_string()),
        }
    }
}

async fn start(
    runtime: &Runtime,
    caller: &Arc<RunStarted>,
    input: Value,
    context: &ToolContext,
) -> Result<ToolOutput, Error> {
    let arguments: Arguments = arguments::read(input)?;
    let rules = runtime.rules(&caller.agent);
    let named = arguments.agent_id.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let agent = match named {
        Some(name) => task::agent_named(name)?,
        None if rules.require_agent() => {
            let known = caller.grant.delegation.as_ref().map(task::listed).unwrap_or_default();
            return Err(invalid(format!(
                "`agentId` is missing, and `subagents.require_agent` asks for it; say which \
                 agent:\n{known}"
            )));
        }
        None => caller.agent.name.clone(),
    };
    let asked = arguments::announce(arguments.announce.as_deref())?;
    let announce = runtime.announce_of(caller, &agent, asked);
    let wall_ms = arguments.run_timeout_seconds.map(arguments::milliseconds);
    let label: String = task::label(&arguments.label, &arguments.task);
    let spec = RunSpec {
        models: ModelChoice {
            model: arguments.model.filter(|model| !model.trim().is_empty()),
            effort: arguments::thinking(arguments.thinking.as_deref())?,
            ..ModelChoice::default()
        },

        context: arguments::context(arguments.context.as_ref())?,
        output_schema: arguments.output_schema.filter(|schema| !schema.is_null()),
        limits: Limits { wall_ms, ..Limits::default() },
        cleanup: arguments.cleanup,
        rights: RunRights {
            tools: arguments.tools,
            skills: arguments.skills,
            ..RunRights::default()
        },

        budget: arguments.budget.try_into()?,
        key: Some(task::key(context)),
        label: label.clone(),
        ..RunSpec::new(agent, arguments.task, &caller.grant.workspace)
    };
    in_background(runtime, caller, spec, announce, context).await
}

/// Starts a background child, or finds the one that the same call started before.
pub(crate) async fn in_background(
    runtime: &Runtime,
    caller: &Arc<RunStarted>,
    spec: RunSpec,
    announce: Announce,
    context: &ToolContext,
) -> Result<ToolOutput, Error> {
    let above = Above {
        run: context.run,
        call: None,
        announce: Some(announce),
        time: context.time.clone(),
        started: caller.clone(),
    };
    let (agent, label) = (spec.agent.clone(), spec.label.clone());
    fail::fail_point!("spawn.start.before");
    let begun = runtime.begin_below(RunId::new(), spec, Some(&above)).await?;
    fail::fail_point!("spawn.start.after");
    let child = match begun {
        StartResult::New(child) => child,
        StartResult::Found(child) => {
            runtime.resume(child);
            child
        }
    };
    Ok(ToolOutput::text(started(child, agent.as_str(), &label, announce)))
}

/// The text for the caller of a child that was started.
fn started(run: RunId, agent: &str, label: &str, announce: Announce) -> String {
    let when = match announce {
        Announce::Steer => "You see its result before your next step.",
        Announce::Followup => "You see its result when your turn ends, or it wakes you.",
        Announce::Collect => "You see its result together with the others'.",
        Announce::Silent => "You do not see its result; `subagents` shows it.",
    };
    format!("started run {run} [{agent}] {label}\n{when}")
}

impl Runtime {
    /// How the result of a child of `caller` is announced: as `asked`, else as its agent, the rules of its caller or
    /// the settings say.
    pub(crate) fn announce_of(
        &self,
        caller: &RunStarted,
        agent: &posse_protocol::AgentName,
        asked: Option<Announce>,
    ) -> Announce {
        let agents = self.agents_in(caller.grant.workspace.as_ref());
        let own = || agents.find(agent).ok().and_then(|agent| agent.start.announce);
        asked.or_else(own).unwrap_or_else(|| self.rules(&caller.agent).announce())
    }
}
