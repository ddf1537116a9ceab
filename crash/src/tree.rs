//! Trees of three levels: the root calls leads, and the leads call leaves. The script of the fake model,
//! and how such a tree is played.

use super::process::Death;
use super::scenario::{ATTEMPTS, Scenario, run_command, settle, start};
use super::script::{bash, paced};
use super::stage::{Again, Halt, Row, Stage};
use super::violation::Promise;
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::{Value, json};

/// How many leads and leaves there are.
#[derive(Clone, Copy)]
struct Shape {
    leads: usize,
    /// Of each lead.
    leaves: usize,
}

impl Shape {
    /// All runs of the tree.
    fn runs(self) -> usize {
        1 + self.leads + self.leads * self.leaves
    }
}

/// More leaves than there are slots.
const WIDE: Shape = Shape { leads: 3, leaves: 3 };
const SMALL: Shape = Shape { leads: 2, leaves: 2 };

/// The message to a lead that has ended.
pub(crate) const ONCE_MORE: &str = "once more.";

/// The tree of `scenario`, and the number of slots.
fn shape(scenario: Scenario) -> (Shape, usize) {
    match scenario {
        Scenario::TreeNarrow => (SMALL, 1),
        Scenario::Tree => (WIDE, 8),
        _ => (SMALL, 8),
    }
}

/// How many runs there are in the end, at least and at most.
pub(crate) fn runs(scenario: Scenario) -> std::ops::RangeInclusive<usize> {
    let (shape, _) = shape(scenario);
    match scenario {
        // A run that is cancelled early has no children yet.
        Scenario::TreeCancel | Scenario::TreeForsaken => 1..=shape.runs(),
        // A resumed lead starts one more leaf.
        Scenario::TreeResume => shape.runs() + 1..=shape.runs() + 1,
        _ => shape.runs()..=shape.runs(),
    }
}

/// Settings of the user.
pub(crate) fn settings(scenario: Scenario) -> String {
    let (_, slots) = shape(scenario);
    format!("max_depth = 2\nmax_concurrent = {slots}\n")
}

/// The nonces of `scenario`: one for each lead, and one for the resumed lead.
pub(crate) fn nonces(scenario: Scenario) -> Vec<String> {
    let (shape, _) = shape(scenario);
    let more = usize::from(scenario == Scenario::TreeResume);
    (1..=shape.leads + more).map(|lead| format!("fx-t{lead}.")).collect()
}

/// The script of the fake model.
pub(crate) fn script(scenario: Scenario) -> Script {
    let (shape, _) = shape(scenario);
    let leads = (1..=shape.leads).map(|lead| task(&format!("lead-{lead}.")));
    let mut root = said_to("task-a").reply(fan_out(leads));
    if scenario == Scenario::TreeResume {
        let again = json!({"description": "go on", "prompt": ONCE_MORE, "resume": "{{last_run}}"});
        root = root.reply(paced(Reply::empty().and_tool_call("Task", again)));
    }
    let mut script = Script::new().conversation(root.reply(paced(Reply::text("All is done."))));
    for lead in 1..=shape.leads {
        let leaves = (1..=shape.leaves).map(|leaf| task(&format!("leaf-{lead}{leaf}.")));
        let last = shape.leads + 1;
        script = script.conversation(
            said_to(&format!("lead-{lead}."))
                .reply(fan_out(leaves))
                .reply(paced(Reply::text("My leaves are done.")))
                .reply(fan_out([task(&format!("leaf-{last}1."))]))
                .reply(paced(Reply::text("One more leaf is done."))),
        );
    }
    for lead in 1..=shape.leads + 1 {
        let nonce = format!("fx-t{lead}.");
        let work = match scenario {
            Scenario::TreeCancel | Scenario::TreeForsaken => sleep(&nonce),
            _ => bash(Reply::empty().and_tool_call("Read", read()), &nonce),
        };
        script = script.conversation(
            said_to(&format!("leaf-{lead}1."))
                .reply(paced(work))
                .reply(paced(Reply::text("This leaf is done."))),
        );
    }
    let look = Reply::empty().and_tool_call("Read", read()).and_tool_call("Read", read());
    script
        .conversation(said_to("leaf-").reply(paced(look)))
        .rule(Rule::when(When::any().turn(1)).reply(paced(Reply::text("I have looked."))))
}

pub(crate) fn said_to(prompt: &str) -> Conversation {
    Conversation::when(When::any().first_user_contains(prompt))
}

/// A call of `Task`.
pub(crate) fn task(prompt: &str) -> Value {
    json!({
        "description": format!("do {prompt}"),
        "prompt": prompt,
        "subagent_type": "general-purpose",
    })
}

fn fan_out(calls: impl IntoIterator<Item = Value>) -> Reply {
    let begin = Reply::text("I hand it on.");
    paced(calls.into_iter().fold(begin, |reply, call| reply.and_tool_call("Task", call)))
}

pub(crate) fn read() -> Value {
    json!({"file_path": "seed.txt"})
}

/// A command that does not end by itself.
pub(crate) fn sleep(nonce: &str) -> Reply {
    let command = format!("printf '%s\\n' '{nonce}' >> ledger; sleep 60 & sleep 61");
    Reply::empty().and_tool_call("Bash", json!({"command": command}))
}

/// Plays a tree until it has ended.
pub(crate) async fn grow(stage: &mut Stage) -> Result<(), Halt> {
    let command = run_command("a", "task-a");
    // Sometimes a second process finds the run of the first, and continues alone if the first dies.
    if !stage.kill_is_planned() && stage.random.one_in(2) {
        let death = stage.next_death(&command);
        let both = [(&command[..], death), (&command[..], Death::default())];
        stage.act_together_under(both, &[0]).await?;
    }
    start(stage, "a").await
}

/// Plays a run that is cancelled while a tool works, with all runs below it.
pub(crate) async fn cancel(stage: &mut Stage) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        let Some(root) = root(stage).await? else {
            let run = run_command("a", "task-a");
            let deaths = (stage.next_death(&run), stage.next_death(&["runs"]));
            stage.act_beside(&run, cancelling, Again::IfCut, deaths).await?;
            continue;
        };
        if root.has_ended() {
            return Ok(());
        }
        stage.act(&["runs", "cancel", &root.run, "--json"], "", &[0]).await?;
    }
    Err(stage.give_up(Promise::InTime, "the run could not be cancelled"))
}

/// Plays a tree whose root is cancelled by a process that dies at once. The process that ends the root
/// dies before it has told the leaves.
pub(crate) async fn forsake(stage: &mut Stage) -> Result<(), Halt> {
    let at = |point: &str| Death { point: Some(point.to_owned()), blow: None };
    let deaths = (at("cascade.begun"), at("cancel.append.after"));
    let run = run_command("a", "task-a");
    stage.act_beside(&run, cancelling, Again::Never, deaths).await?;
    let is_ended = root(stage).await?.is_some_and(|root| root.has_ended());
    if !is_ended || stage.rows().await?.iter().all(Row::has_ended) {
        let detail = "nobody was left below a root that was cancelled";
        return Err(stage.give_up(Promise::PointReached, detail));
    }
    settle(stage).await
}

fn cancelling(run: &str) -> Vec<String> {
    ["runs", "cancel", run, "--json"].map(str::to_owned).to_vec()
}

/// The root, which is the oldest run, if it has started.
async fn root(stage: &mut Stage) -> Result<Option<Row>, Halt> {
    Ok(stage.rows().await?.pop())
}
