//! The dispatcher: finds the tool for a call and checks that the run may call it. This check is what
//! enforces the grant; the list of tools in the request only informs the model.

use crate::{Answer, SeenFiles, Tool, ToolContext, Toolbox, capped};
use futures_util::FutureExt;
use posse_protocol::{Effect, Grant, ToolCall, ToolOutput};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The name of the grant as the reason of a refusal.
pub(crate) const GRANT: &str = "the grant";

/// How many characters of a panic message the model sees.
const PANIC_CHARS: usize = 200;

/// The tool for `call`, or the error for the model.
pub(crate) fn resolve<'a>(
    toolbox: &'a Toolbox,
    grant: &Grant,
    call: &ToolCall,
) -> Result<&'a Arc<dyn Tool>, String> {
    let allowed = || grant.tools.join(", ");
    let Some(tool) = toolbox.find(&call.name) else {
        let name: String = call.name.chars().take(80).collect();
        let what = match toolbox.why_absent(&call.name) {
            Some(why) => format!("`{name}` cannot be called: {why}"),
            None => format!("there is no tool named `{name}`"),
        };
        return Err(format!("{what}; the tools you may call are: {}", allowed()));
    };
    let name = &tool.spec().name;
    if !grant.allows(name) {
        return Err(format!(
            "`{name}` is outside what this agent was granted; the tools you may call are: {}",
            allowed()
        ));
    }
    if !call.input.is_object() {
        return Err(format!(
            "the arguments of `{name}` are not a JSON object; send the call again, complete"
        ));
    }
    Ok(tool)
}

/// The result of a call that was not made because another process may own the run now.
const STOOD_STILL: &str = "not done: this process stood still for too long, and another may have taken the \
    run over; call it again if it is still needed";

/// Runs one call. If the tool panics, the panic becomes its result and the run continues. A long
/// result is cut to the largest size a result may have.
pub(crate) async fn invoke(tool: &dyn Tool, call: ToolCall, context: ToolContext) -> Answer {
    let acts = matches!(tool.spec().effect, Effect::Write | Effect::Execute | Effect::Network);
    if acts && !context.claim.holds() {
        return ToolOutput::error(STOOD_STILL).into();
    }
    let work = AssertUnwindSafe(async { tool.call(call.input, &context).await }).catch_unwind();
    let answer = work.await.unwrap_or_else(|panic| told_of(&*panic, &tool.spec().name).into());
    match answer {
        Answer::Done(output) => Answer::Done(capped(output)),
        pending => pending,
    }
}

/// The result of a call whose tool `name` panicked, with the panic message in one line.
fn told_of(panic: &(dyn Any + Send), name: &str) -> ToolOutput {
    let words: Vec<&str> = panic_text(panic).unwrap_or_default().split_whitespace().collect();
    let said: String = words.join(" ").chars().take(PANIC_CHARS).collect();
    let said = if said.is_empty() { said } else { format!(" ({said})") };
    ToolOutput::error(format!("`{name}` failed inside itself{said}; its effect is not known"))
}

/// The message of a panic, if it is text.
pub fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

/// What a tool says about a call before Posse asks a person.
pub(crate) enum Preview {
    /// The tool would refuse the call, for this reason.
    Refused(String),
    /// A preview of what the call would do.
    Shown(String),
    /// Nothing beyond the arguments.
    Plain,
}

/// Asks `tool` about `call` before it runs. `seen` are the files that the run has read or written by
/// then. A tool that panics counts as [`Preview::Plain`].
pub(crate) async fn foresee(tool: &dyn Tool, call: &ToolCall, seen: Option<&SeenFiles>) -> Preview {
    let work = async {
        if let Some(why) = tool.refusal(&call.input, seen).await {
            return Preview::Refused(why);
        }
        tool.preview(&call.input).await.map_or(Preview::Plain, Preview::Shown)
    };
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or(Preview::Plain)
}

/// Splits `calls` into groups. Groups run one after the other; the calls of one group run in parallel.
pub(crate) fn groups<T>(calls: Vec<(T, &Arc<dyn Tool>)>) -> Vec<Vec<(T, &Arc<dyn Tool>)>> {
    let mut groups: Vec<Vec<(T, &Arc<dyn Tool>)>> = Vec::new();
    for (call, tool) in calls {
        let beside = tool.spec().effect.side_by_side();
        match groups.last_mut() {
            Some(group)
                if beside && group.iter().all(|(_, tool)| tool.spec().effect.side_by_side()) =>
            {
                group.push((call, tool));
            }
            _ => groups.push(vec![(call, tool)]),
        }
    }
    groups
}
