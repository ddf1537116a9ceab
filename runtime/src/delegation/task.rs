//! `Task`: starts a child and waits for its result.

use crate::announcement::RunSummary;
use crate::child::Above;
use crate::delegation::arguments::{self, invalid};
use crate::delegation::spawn;
use crate::delegation::target::Family;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::start::StartResult;
use crate::tool_facts::{TASK, own};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::ModelChoice;
use posse_protocol::{
    AgentName, Caller, Delegation, Event, Extra, Message, MessageReceived, Record, RunFinished,
    RunId, RunSpec, RunStarted, Schema, Sender, Seq, ToolOutput, ToolSpec,
};
use posse_store::{Append, Guard, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// The description of the tool, without the list of agents.
const ABOUT: &str = "Hands a task to a specialist agent, which works in its own context, and returns \
    its final report. The agent sees nothing of this conversation: put all it needs into the prompt. \
    To read a known file or find a known symbol, use Read or Grep yourself.";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = |about: &str| json!({"type": "string", "description": about});
    Schema::from(json!({
        "type": "object",
        "properties": {
            "description": text("3 to 5 words"),
            "prompt": {"type": "string"},
            "subagent_type": {"type": "string"},
            "model": {"type": "string"},
            "resume": text("Id of an earlier run to continue"),
            "run_in_background": {"type": "boolean",
                "description": "The result is announced"},
            "output_schema": {"type": "object"},
        },
        "required": ["description", "prompt"],
    }))
});

/// The tool for one run.
pub(crate) struct Task {
    spec: ToolSpec,
    runtime: Runtime,
    caller: Arc<RunStarted>,
}

impl Task {
    /// The tool of a run that began as `caller`. Its description lists the agents of `shown`.
    pub(crate) fn new(runtime: Runtime, caller: Arc<RunStarted>, shown: &Delegation) -> Self {
        let spec = ToolSpec {
            facts: own(TASK),
            description: format!("{ABOUT}\n\nAgents:\n{}", listed(shown)),
            schema: SCHEMA.clone(),
            // A second call finds the child of the first.
            idempotent: true,
        };
        Task { spec, runtime, caller }
    }
}

/// The agents, one per line.
pub(crate) fn listed(delegation: &Delegation) -> String {
    let line = |offer: &posse_protocol::Offer| format!("- {}: {}", offer.name, offer.description);
    delegation.agents.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    description: String,
    #[serde(default)]
    prompt: String,
    #[serde(default, alias = "agent_type", alias = "agent")]
    subagent_type: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    resume: Option<String>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    run_in_background: Option<bool>,
}

#[async_trait]
impl Tool for Task {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let arguments: Arguments = match arguments::read(input) {
            Ok(arguments) => arguments,
            Err(error) => return refused(&error.to_string()),
        };
        let above = Above {
            run: context.run,
            call: Some(context.call.clone()),
            announce: None,
            time: context.time.clone(),
            started: self.caller.clone(),
        };
        let begun = match arguments.resume.as_deref().filter(|id| !id.trim().is_empty()) {
            Some(id) => resume(&self.runtime, &above, id, &arguments).await,
            None => start(&self.runtime, &above, &arguments, context).await,
        };
        match begun {
            Ok(answer) => answer,
            Err(Error::ShuttingDown) => gone(context).await,
            Err(error) => refused(&error.to_string()),
        }
    }
}

pub(crate) fn refused(why: &str) -> Answer {
    ToolOutput::error(format!("no task was started: {why}")).into()
}

/// Waits while the runtime shuts down. The next process finds the call unanswered.
pub(crate) async fn gone(context: &ToolContext) -> Answer {
    context.cancel.cancelled().await;
    refused("the run was told to stop")
}

/// Starts a child, or finds the one that this call started before.
async fn start(
    runtime: &Runtime,
    above: &Above,
    arguments: &Arguments,
    context: &ToolContext,
) -> Result<Answer, Error> {
    if arguments.subagent_type.trim().is_empty() {
        let known = above.started.grant.delegation.as_ref().map(listed).unwrap_or_default();
        return Err(invalid(format!("`subagent_type` is missing; say which agent:\n{known}")));
    }
    let agent = agent_named(&arguments.subagent_type)?;
    let label = label(&arguments.description, &arguments.prompt);
    let model = arguments.model.clone().filter(|model| !model.trim().is_empty());
    let spec = RunSpec {
        models: ModelChoice::of(model),
        output_schema: arguments.output_schema.clone().filter(|schema| !schema.is_null()),
        key: Some(key(context)),
        label: label.clone(),
        ..RunSpec::new(agent, arguments.prompt.clone(), &above.started.grant.workspace)
    };
    let agent = spec.agent.clone();
    if arguments.run_in_background.unwrap_or_else(|| runtime.goes_to_background(above, &agent)) {
        let announce = runtime.announce_of(&above.started, &agent, None);
        let begun = spawn::in_background(runtime, &above.started, spec, announce, context);
        return begun.await.map(Answer::from);
    }
    fail::fail_point!("task.start.before");
    let begun = match runtime.begin_below(RunId::new(), spec, Some(above)).await {
        Ok(begun) => begun,
        // The settings may have changed since a process that died started the child.
        Err(error) => match started_before(runtime, above).await? {
            Some(run) => StartResult::Found(run),
            None => return Err(error),
        },
    };
    fail::fail_point!("task.start.after");
    match begun {
        StartResult::New(run) => Ok(waits_for(&agent.to_string(), &label, run)),
        StartResult::Found(run) => found(runtime, above, run, &agent.to_string(), &label).await,
    }
}

impl Runtime {
    /// True when the definition of `agent` makes it a background child.
    fn goes_to_background(&self, above: &Above, agent: &AgentName) -> bool {
        let agents = self.agents_in(above.started.grant.workspace.as_ref());
        above.given(agent).or_else(|| agents.find(agent).ok()).is_some_and(|it| it.start.background)
    }
}

/// Answers for a child that already exists: waits for it, unless it has ended and its result was never delivered.
async fn found(
    runtime: &Runtime,
    above: &Above,
    run: RunId,
    agent: &str,
    label: &str,
) -> Result<Answer, Error> {
    let records = runtime.read(run, Seq::ZERO, usize::MAX).await?;
    let Some(Record { event: Event::RunFinished(finished), .. }) = records.last() else {
        runtime.resume(run);
        return Ok(waits_for(agent, label, run));
    };
    // The child may have ended after this call began. Then its caller has the result.
    let told_before = since_last_reply(runtime, above, |event| match event {
        Event::ToolFinished(answer) => (Some(&answer.call) == above.call.as_ref()).then_some(()),
        _ => None,
    });
    match told_before.await? {
        Some(()) => Ok(waits_for(agent, label, run)),
        None => Ok(told(run, &records, finished).into()),
    }
}

/// The last match of `find` in the log of the caller since its last reply.
async fn since_last_reply<T>(
    runtime: &Runtime,
    above: &Above,
    find: impl Fn(&Event) -> Option<T>,
) -> Result<Option<T>, Error> {
    let log = runtime.read(above.run, Seq::ZERO, usize::MAX).await?;
    let mut turn = log.iter().rev().take_while(|it| !matches!(it.event, Event::ModelReplied(_)));
    Ok(turn.find_map(|record| find(&record.event)))
}

/// The child that this call started or resumed before the process died.
async fn started_before(runtime: &Runtime, above: &Above) -> Result<Option<RunId>, Error> {
    let by_this_call = |event: &Event| match event {
        Event::ChildStarted(child) if child.call == above.call => Some(child.run),
        _ => None,
    };
    since_last_reply(runtime, above, by_this_call).await
}

/// The result of a run with this log.
fn told(run: RunId, records: &[Record], finished: &RunFinished) -> ToolOutput {
    let mut account = RunSummary::default();
    for record in records {
        account.observe(record.seq, &record.event);
    }
    account.output(run, finished)
}

/// Continues a child of this run that has ended.
async fn resume(
    runtime: &Runtime,
    above: &Above,
    id: &str,
    arguments: &Arguments,
) -> Result<Answer, Error> {
    if arguments.prompt.trim().is_empty() {
        return Err(invalid("the prompt is empty; say what to do next"));
    }
    // The run learns nothing about runs outside of its family.
    let family = Family::new(above.run, runtime.descendants(above.run).await?);
    let child = family.find(id)?;
    if child.family.parent != Some(above.run) {
        return Err(invalid(format!("run {} is not one of yours; only those can go on", child.id)));
    }
    let label = label(&arguments.description, &arguments.prompt);
    if started_before(runtime, above).await? == Some(child.id) {
        return found(runtime, above, child.id, &child.about.agent, &label).await;
    }
    if child.state.outcome.is_none() {
        return Err(invalid(format!("run {} is still at work; wait for its result", child.id)));
    }
    let agent = agent_named(&child.about.agent)?;
    let call = above.call.clone();
    let caller = Caller { call, time: above.time.clone(), ..Caller::of_run(above.run) };
    let message = Event::MessageReceived(MessageReceived {
        from: Sender::Run(caller),
        message: Message::user(arguments.prompt.clone()),
        later: false,
        asks: None,
        extra: Extra::default(),
    });
    // Another process may resume the child at the same moment.
    let guard = Guard::Anyone { last: Some(child.log.last_seq) };
    let mut batch = vec![Append { guard, ..Append::by_anyone(child.id, message) }];
    batch.extend(above.beside(child.id, &agent, &label, true));
    fail::fail_point!("task.resume.before");
    match runtime.inner.store.append(batch).await {
        Err(StoreError::Moved { .. }) => {
            return Err(invalid(format!("run {} has just been set to work", child.id)));
        }
        stored => stored?,
    };
    fail::fail_point!("task.resume.after");
    runtime.resume(child.id);
    Ok(waits_for(&child.about.agent, &label, child.id))
}

/// The label of the child.
pub(crate) fn label(description: &str, prompt: &str) -> String {
    let text = match description.trim() {
        "" => prompt.trim().lines().next().unwrap_or_default(),
        description => description,
    };
    text.chars().take(120).collect()
}

/// Parses the name of an agent.
pub(crate) fn agent_named(name: &str) -> Result<AgentName, Error> {
    name.trim().parse().map_err(|error: posse_protocol::InvalidName| invalid(error.to_string()))
}

/// The key by which a call finds its child again. Models choose the ids of calls; with the turn, the key is unique in
/// the run.
pub(crate) fn key(context: &ToolContext) -> String {
    format!("{}/{}/{}", context.run, context.turn, context.call)
}

fn waits_for(agent: &str, label: &str, run: RunId) -> Answer {
    Answer::Pending { waits_for: format!("[{agent}] {label} (run {})", run.short()) }
}
