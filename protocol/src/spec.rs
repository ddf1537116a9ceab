//! What is asked for: agents and runs.

use crate::{
    AgentName, Announce, Budget, Caller, Cleanup, Context, DelegationStrategy, Extra, Isolation,
    Limits, Mode, Network, Permissions, Place, Profile, SkillRules, SubagentRules,
};
use serde::{Deserialize, Serialize};

/// The definition of an agent. It is data; only a run executes it. In JSON, the fields of the groups
/// stand beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// What it is called by.
    pub name: AgentName,
    /// What it is for, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The colour it is shown in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub color: String,
    /// Which models answer; those of its caller if it names none.
    #[serde(flatten)]
    pub models: ModelChoice,
    /// The JSON Schema that its final answer follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// What it may do.
    #[serde(flatten)]
    pub rights: AgentRights,
    /// How far it may go.
    #[serde(default)]
    pub limits: Limits,
    /// How much it and everything below it may spend together.
    #[serde(default, skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// How its runs start.
    #[serde(flatten)]
    pub start: AgentStart,
    /// Whom its runs may start.
    #[serde(flatten)]
    pub children: AgentChildren,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an agent may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRights {
    /// The tools it may call, by name or with what they may be called with: `Read(src/**)`. `None`
    /// is all. A list without any is refused at start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that it may not call, or calls that it may not make: `Bash(rm:*)`. Whatever `tools` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// What its tools may be called with besides: lists of rules, as in [`crate::Grant::scopes`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Vec<String>>,
    /// How its calls are decided that no rule decides; `None` is as its caller's. Never laxer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whom its processes may talk to, and those of the runs below it; `None` is as its caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

impl AgentRights {
    /// The right to call these tools, and no others.
    pub fn to_call(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        AgentRights { tools: Some(tools), ..AgentRights::default() }
    }
}

/// How the runs of an agent start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStart {
    /// Names of the skills that it knows from the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// How much of its caller's conversation it begins with.
    #[serde(skip_serializing_if = "Context::is_fresh")]
    pub context: Context,
    /// What is said to it before its task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub initial_prompt: String,
    /// Its caller goes on meanwhile, unless it says otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// How its end is told if no call waits for it, unless its caller says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// Where it works apart from its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Its runs get no guidance files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omit_guidance: bool,
}

/// Whom the runs of an agent may start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentChildren {
    /// Names of the agents it may hand work to; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Levels of runs that may stand below its own; `None` is as the settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// What its runs may start, and how.
    #[serde(skip_serializing_if = "SubagentRules::is_empty")]
    pub subagents: SubagentRules,
}

impl AgentSpec {
    /// An agent of which nothing but its name is said.
    pub fn new(name: AgentName) -> Self {
        AgentSpec {
            name,
            description: String::new(),
            instructions: String::new(),
            color: String::new(),
            models: ModelChoice::default(),
            output_schema: None,
            rights: AgentRights::default(),
            limits: Limits::default(),
            budget: Budget::default(),
            start: AgentStart::default(),
            children: AgentChildren::default(),
            extra: Extra::default(),
        }
    }
}

/// Names of roles for the models of the settings `small_model` and `plan_model`. If the settings name
/// no such model, they mean the caller's model.
pub const ROLES: [&str; 2] = ["small", "plan"];

/// Reasoning effort of a model. Its effect depends on the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Hardly.
    Low,
    /// As much as is usual.
    Medium,
    /// Well.
    High,
    /// As hard as it can.
    Max,
}

/// Which tools the caller lets a run have. It can only remove tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolRules {
    /// Whether what its agent may call stands; if not, only what `allow` names.
    pub inherit: Option<bool>,
    /// Names of those that it may call; `None` is all that its agent may.
    pub allow: Option<Vec<String>>,
    /// Names of those that it may not call, whatever else is said.
    pub deny: Vec<String>,
}

/// The system prompt of a run. In JSON: `"own"`, `{"append": "…"}` or `{"replace": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instructions {
    /// The agent's own.
    #[default]
    Own,
    /// The agent's own, and then this.
    Append(String),
    /// This, in place of the agent's own.
    Replace(String),
}

impl Instructions {
    /// What becomes of the instructions of an agent.
    pub fn applied(&self, own: String) -> String {
        match self {
            Instructions::Own => own,
            Instructions::Append(more) if own.is_empty() => more.clone(),
            Instructions::Append(more) => format!("{own}\n\n{more}"),
            Instructions::Replace(other) => other.clone(),
        }
    }
}

/// A run to start: its agent, its task and its options. It can be read from JSON. `agent` and
/// `workspace` are required, and an unknown field is an error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Which agent.
    pub agent: AgentName,
    /// The first message. A session may start without one.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The folder to work in.
    pub workspace: std::path::PathBuf,
    /// Which models answer, in place of the agent's own.
    #[serde(default)]
    pub models: ModelChoice,
    /// The JSON Schema of the answer, in place of the agent's own.
    #[serde(default)]
    pub output_schema: Option<serde_json::Value>,
    /// The system prompt.
    #[serde(default)]
    pub instructions: Instructions,
    /// Limits, each in place of the agent's own where it is set.
    #[serde(default)]
    pub limits: Limits,
    /// How much the run and all runs below it may spend together, each in place of what its agent
    /// says where it is set.
    #[serde(default)]
    pub budget: Budget,
    /// What the run may do.
    #[serde(default)]
    pub rights: RunRights,
    /// The run waits for the next message after each answer, instead of finishing.
    #[serde(default)]
    pub session: bool,
    /// A second start with the same key finds the first run.
    #[serde(default)]
    pub key: Option<String>,
    /// On whose behalf it runs; without one it is a root. JSON cannot set it.
    #[serde(skip)]
    pub parent: Option<Caller>,
    /// How much of its parent's conversation it begins with, in place of what the agent says.
    #[serde(default)]
    pub context: Option<Context>,
    /// What it is about, in a few words.
    #[serde(default)]
    pub label: String,
    /// How the agent delegates work, in place of what the runtime says.
    #[serde(default)]
    pub strategy: Option<DelegationStrategy>,
    /// Runs with a higher priority get a slot first; 0 is usual.
    #[serde(default)]
    pub priority: i32,
    /// What becomes of its log after its end is announced; `None` is as the settings say.
    #[serde(default)]
    pub cleanup: Option<Cleanup>,
    /// The label that its worker must have; empty for that of its caller, or none.
    #[serde(default)]
    pub needs: String,
    /// Where it works instead of in the folder. A run with a parent is where its parent is, unless it
    /// works without files.
    #[serde(default)]
    pub place: Option<Place>,
}

/// Which models answer: those of an agent, or in a run, in place of its agent's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelChoice {
    /// The model: `vendor/name`, a short name, or one of [`ROLES`]. That of a run also replaces the
    /// fallbacks of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models to continue with if that one fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// The reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl ModelChoice {
    /// This model if there is one, without fallbacks.
    pub fn of(model: impl Into<Option<String>>) -> Self {
        ModelChoice { model: model.into(), ..ModelChoice::default() }
    }

    /// This choice where it says something, else `other`. A model comes with its own fallbacks.
    pub fn over(self, other: &ModelChoice) -> ModelChoice {
        let named = if self.model.is_some() { &self } else { other }.clone();
        ModelChoice { effort: self.effort.or(other.effort), ..named }
    }
}

/// What a run may do, as whoever starts it says. For a run with a parent, it only narrows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunRights {
    /// Which skills it may have.
    pub skills: SkillRules,
    /// Which tools it may have.
    pub tools: ToolRules,
    /// How Posse decides calls that no rule covers. It is never laxer than what the settings and its
    /// caller say, except that a run without a caller may be told otherwise.
    pub mode: Option<Mode>,
    /// The widest sandbox of its processes; the workspace if it is not set.
    pub reach: Option<Profile>,
    /// The hosts that its processes may talk to; none if it is not set.
    pub network: Option<Network>,
    /// Rules about its calls and those of the runs below it.
    pub permissions: Permissions,
    /// There is a person whom Posse can ask.
    pub attended: bool,
}

impl RunSpec {
    /// A run of `agent` on `prompt` in `workspace`, everything else as the agent says.
    pub fn new(
        agent: AgentName,
        prompt: impl Into<String>,
        workspace: impl Into<std::path::PathBuf>,
    ) -> Self {
        RunSpec {
            agent,
            prompt: Some(prompt.into()),
            workspace: workspace.into(),
            models: ModelChoice::default(),
            output_schema: None,
            instructions: Instructions::Own,
            limits: Limits::default(),
            budget: Budget::default(),
            rights: RunRights::default(),
            session: false,
            key: None,
            parent: None,
            context: None,
            label: String::new(),
            strategy: None,
            priority: 0,
            cleanup: None,
            needs: String::new(),
            place: None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_agent_is_stored_without_its_groups() {
        let all = json!({
            "name": "all", "description": "d", "instructions": "i", "color": "red",
            "model": "m", "fallbacks": ["f"], "effort": "low", "output_schema": {"type": "object"},
            "tools": ["Read"], "disallowed_tools": ["Bash"], "scopes": [["Read(a)"]], "mode": "plan",
            "network": ["example.org"], "limits": {"turns": 1}, "budget": {"turns": 2},
            "skills": ["s"], "context": "fork", "initial_prompt": "p", "background": true,
            "announce": "steer", "isolation": "worktree", "omit_guidance": true, "agents": ["b"], "max_depth": 1,
            "subagents": {"enabled": true}, "later": {"x": 1},
        });
        let agent: AgentSpec = serde_json::from_value(all.clone()).unwrap();
        assert_eq!(agent.extra.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["later"]);
        assert_eq!(serde_json::to_value(&agent).unwrap(), all);
        let least = AgentSpec::new("all".parse().unwrap());
        assert_eq!(serde_json::to_value(&least).unwrap(), json!({"name": "all", "limits": {}}));
        assert_eq!(serde_json::from_value::<AgentSpec>(json!({"name": "all"})).unwrap(), least);
    }

    #[test]
    fn a_spec_is_read_from_json_and_says_what_it_does_not_know() {
        let least: RunSpec =
            serde_json::from_value(json!({"agent": "explore", "workspace": "/src"})).unwrap();
        let mut expected = RunSpec::new("explore".parse().unwrap(), "", "/src");
        expected.prompt = None;
        assert_eq!(least, expected);
        let more = json!({
            "agent": "explore", "workspace": "/src", "prompt": "Look.",
            "models": {"model": "small", "effort": "high"},
            "limits": {"turns": 3}, "budget": {"turns": 9},
            "instructions": {"append": "Be brief."},
            "rights": {"mode": "plan", "network": ["example.org"], "tools": {"deny": ["Bash"]},
                       "permissions": {"deny": ["Read(.env)"]}},
        });
        let spec: RunSpec = serde_json::from_value(more).unwrap();
        assert_eq!(spec.models.model.as_deref(), Some("small"));
        assert_eq!((spec.limits.turns, spec.budget.turns), (Some(3), Some(9)));
        assert_eq!(spec.rights.mode, Some(Mode::Plan));
        assert_eq!(spec.rights.tools.deny, ["Bash"]);
        assert_eq!(spec.rights.permissions.deny, ["Read(.env)"]);
        assert_eq!(spec.instructions, Instructions::Append("Be brief.".to_owned()));
        for (wrong, named) in [
            (json!({"workspace": "/"}), "agent"),
            (json!({"agent": "x", "workspace": "/", "modle": "y"}), "modle"),
            (json!({"agent": "x", "workspace": "/", "rights": {"mod": "plan"}}), "mod"),
            (json!({"agent": "x", "workspace": "/", "parent": {"run": "y"}}), "parent"),
        ] {
            let error = serde_json::from_value::<RunSpec>(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("`{named}`")), "{error}");
        }
    }
}
