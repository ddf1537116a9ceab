//! What a child takes over from the conversation of its parent.

use crate::child::Above;
use crate::error::Error;
use crate::prompt::system_prompt;
use crate::runtime::Runtime;
use crate::tool_facts::SKILL;
use posse_agent::{Form, Transcript, fork};
use posse_protocol::{BorrowedPrompt, Context, Extra, Forked, RunStarted, Seq, SkillOffer};

/// What was taken over, or a note that says why nothing was.
pub(crate) struct Taken {
    pub(crate) forked: Option<Forked>,
    pub(crate) note: Option<String>,
}

/// The note for a child whose context window is too small for the conversation.
const TOO_LONG: &str = "[The conversation so far is too long to be handed over; you begin without \
    it. Say so if the task cannot be done without it.]";

/// Takes over the part of the conversation of `above` that `context` names, for the child `child`.
pub(crate) async fn take_over(
    runtime: &Runtime,
    above: &Above,
    child: &RunStarted,
    context: Context,
) -> Result<Taken, Error> {
    let records = runtime.read(above.run, Seq::ZERO, usize::MAX).await?;
    let transcript = Transcript::of(&records);
    let parent = &*above.started;
    let alike = same_but_for_its_task(parent, child) && transcript.model() == Some(&child.model);
    let form = if alike { Form::Verbatim } else { Form::Normalised };
    let turns = match context {
        Context::ForkTurns(turns) => Some(turns),
        Context::Fork | Context::Fresh => None,
    };
    let taken = fork(&transcript, form, turns, &child.grant.tools);
    let window = runtime.models().resolve(&child.model)?.info().context_window;
    if !taken.fits(window) {
        return Ok(Taken { forked: None, note: Some(TOO_LONG.to_owned()) });
    }
    let (from, at) = (above.run, taken.at);
    let (messages, seen) = (taken.messages, taken.seen);
    let guise = alike.then(|| Box::new(guise(parent)));
    let forked = Forked { from, at, messages, seen, guise, extra: Extra::default() };
    Ok(Taken { forked: Some(forked), note: None })
}

/// True when both have the same agent, in the same version, and differ only in their task.
fn same_but_for_its_task(parent: &RunStarted, child: &RunStarted) -> bool {
    let (one, other) = (&parent.agent, &child.agent);
    one.name == other.name
        && one.instructions == other.instructions
        && one.models.effort == other.models.effort
        && one.output_schema == other.output_schema
        && parent.grant.workspace == child.grant.workspace
        && skills(parent) == skills(child)
}

/// The skills that the model of a run sees.
fn skills(started: &RunStarted) -> &[SkillOffer] {
    let grant = &started.grant;
    if grant.allows(SKILL) { &grant.skills } else { &[] }
}

/// The prompt that a run which began as `started` sends to its model.
fn guise(started: &RunStarted) -> BorrowedPrompt {
    let own = || BorrowedPrompt {
        system: system_prompt(started),
        tools: started.grant.tools.clone(),
        delegation: started.grant.delegation.clone(),
        extra: Extra::default(),
    };
    let borrowed = started.forked.as_ref().and_then(|forked| forked.guise.as_deref());
    borrowed.cloned().unwrap_or_else(own)
}
