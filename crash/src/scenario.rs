//! The scenarios: what is asked of posse before, while and after it is killed.

use super::announce::{self, TELLINGS, Telling};
use super::process::{Blow, Death, Moment};
use super::stage::{Acted, Again, Halt, Stage};
use super::tree;
use super::violation::Promise;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What posse is used for in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// One run that uses every kind of tool over several turns.
    Tools,
    /// A run whose transcript is compacted.
    Compaction,
    /// A run that is reopened by messages: sent and resumed, then resumed with a text.
    Reopening,
    /// A session in `posse chat`, left and taken up again.
    Chat,
    /// A run that is cancelled from another process while a command sleeps.
    Cancel,
    /// A run that is told something from another process while it is at work.
    Steering,
    /// Three processes with a run each, on one database, with one slot each.
    Crowd,
    /// Two runs whose process was killed before; the one that goes on with them is killed.
    Recovery,
    /// A run whose process is told to end in order.
    Shutdown,
    /// Two runs that have ended: the log of one is removed, the other is archived.
    Archiving,
    /// A tree of three levels, with more leaves than slots.
    Tree,
    /// A tree of three levels with one slot.
    TreeNarrow,
    /// A tree in which a run goes on with a child that has ended.
    TreeResume,
    /// A tree whose root is cancelled from another process while leaves are at work.
    TreeCancel,
    /// A tree whose root was cancelled by processes that died before they could tell anyone below.
    TreeForsaken,
    /// A tree whose runs work in the background.
    TreeAnnounce(Telling),
}

/// All scenarios.
pub const SCENARIOS: [Scenario; FIRST.len() + TELLINGS.len()] = {
    let mut all = [Scenario::Tools; FIRST.len() + TELLINGS.len()];
    let mut next = 0;
    while next < all.len() {
        all[next] = match next {
            old if old < FIRST.len() => FIRST[old],
            new => Scenario::TreeAnnounce(TELLINGS[new - FIRST.len()]),
        };
        next += 1;
    }
    all
};

/// All scenarios but those of runs in the background.
const FIRST: [Scenario; 15] = [
    Scenario::Tools,
    Scenario::Compaction,
    Scenario::Reopening,
    Scenario::Chat,
    Scenario::Cancel,
    Scenario::Steering,
    Scenario::Crowd,
    Scenario::Recovery,
    Scenario::Shutdown,
    Scenario::Archiving,
    Scenario::Tree,
    Scenario::TreeNarrow,
    Scenario::TreeResume,
    Scenario::TreeCancel,
    Scenario::TreeForsaken,
];

/// The scenarios whose names begin with `beginning`.
pub fn scenarios(beginning: &str) -> Vec<Scenario> {
    let begins = |scenario: &Scenario| scenario.to_string().starts_with(beginning);
    SCENARIOS.into_iter().filter(begins).collect()
}

impl fmt::Display for Scenario {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Scenario::TreeAnnounce(telling) => return write!(out, "tree-announce-{telling}"),
            Scenario::Tools => "tools",
            Scenario::Compaction => "compaction",
            Scenario::Reopening => "reopening",
            Scenario::Chat => "chat",
            Scenario::Cancel => "cancel",
            Scenario::Steering => "steering",
            Scenario::Crowd => "crowd",
            Scenario::Recovery => "recovery",
            Scenario::Shutdown => "shutdown",
            Scenario::Archiving => "archiving",
            Scenario::Tree => "tree",
            Scenario::TreeNarrow => "tree-narrow",
            Scenario::TreeResume => "tree-resume",
            Scenario::TreeCancel => "tree-cancel",
            Scenario::TreeForsaken => "tree-forsaken",
        })
    }
}

/// How often something is tried before it counts as stuck: more than there are kills.
pub(crate) const ATTEMPTS: usize = 10;

impl Scenario {
    /// It is among those that the short form plays: of the ways to tell, those that have the others
    /// in them.
    pub(crate) fn is_quick(self) -> bool {
        match self {
            Scenario::TreeAnnounce(telling) => matches!(
                telling,
                Telling::Mixed
                    | Telling::Nested
                    | Telling::Failing
                    | Telling::Idle
                    | Telling::Quiet
            ),
            _ => true,
        }
    }

    /// It is about several runs that belong together.
    fn is_tree(self) -> bool {
        matches!(
            self,
            Scenario::Tree
                | Scenario::TreeNarrow
                | Scenario::TreeResume
                | Scenario::TreeCancel
                | Scenario::TreeForsaken
        )
    }

    /// How many runs there are in the end, at least and at most.
    pub(crate) fn runs(self) -> RangeInclusive<usize> {
        match self {
            Scenario::Crowd => 3..=3,
            Scenario::Recovery => 2..=2,
            Scenario::TreeAnnounce(telling) => telling.runs(),
            tree if tree.is_tree() => tree::runs(tree),
            _ => 1..=1,
        }
    }

    /// What is said besides the first prompts.
    pub(crate) fn messages(self) -> Vec<String> {
        match self {
            Scenario::Reopening => vec![SECOND.to_owned(), THIRD.to_owned()],
            Scenario::Steering => vec![SECOND.to_owned()],
            Scenario::TreeResume => vec![tree::ONCE_MORE.to_owned()],
            Scenario::TreeAnnounce(Telling::Idle) => vec![announce::LINE.to_owned()],
            Scenario::Chat => CHAT.iter().map(|&line| line.to_owned()).collect(),
            _ => Vec::new(),
        }
    }

    /// About how long its first command takes when nobody disturbs it: random kills fall in it.
    pub(crate) fn horizon(self) -> Duration {
        Duration::from_millis(match self {
            Scenario::TreeAnnounce(telling) => return telling.horizon(),
            Scenario::Tools | Scenario::Recovery | Scenario::Shutdown | Scenario::Steering => 700,
            Scenario::Crowd => 900,
            Scenario::Cancel => 250,
            Scenario::TreeCancel | Scenario::TreeForsaken => 450,
            Scenario::Tree | Scenario::TreeResume => 800,
            Scenario::TreeNarrow => 1_000,
            Scenario::Compaction | Scenario::Reopening | Scenario::Chat | Scenario::Archiving => {
                400
            }
        })
    }

    /// About how many events its first command prints: other random kills fall among them.
    pub(crate) fn events(self) -> u64 {
        match self {
            Scenario::Tree => 170,
            Scenario::TreeAnnounce(telling) => telling.events(),
            tree if tree.is_tree() => 90,
            _ => 28,
        }
    }

    /// Settings of the user.
    pub(crate) fn settings(self) -> String {
        match self {
            Scenario::Crowd => "max_concurrent = 1\n".to_owned(),
            // So that the second process does not go on with the run of the first.
            Scenario::Recovery => "max_concurrent = 1\nrecovery = \"wait\"\n".to_owned(),
            Scenario::TreeAnnounce(telling) => telling.settings(),
            tree if tree.is_tree() => tree::settings(tree),
            _ => String::new(),
        }
    }

    /// Plays it to its end.
    pub(crate) async fn play(self, stage: &mut Stage) -> Result<(), Halt> {
        match self {
            Scenario::Tools | Scenario::Compaction => start(stage, "a").await?,
            Scenario::Reopening => reopen(stage).await?,
            Scenario::Chat => chat(stage).await?,
            Scenario::Cancel => cancel(stage).await?,
            Scenario::Steering => steer(stage).await?,
            Scenario::Crowd => crowd(stage).await?,
            Scenario::Recovery => recover(stage).await?,
            Scenario::Shutdown => shut_down(stage).await?,
            Scenario::Archiving => put_away(stage).await?,
            Scenario::TreeCancel | Scenario::TreeAnnounce(Telling::Cancel) => {
                tree::cancel(stage).await?;
            }
            Scenario::TreeAnnounce(Telling::Idle) => announce::talk(stage).await?,
            Scenario::Tree
            | Scenario::TreeNarrow
            | Scenario::TreeResume
            | Scenario::TreeAnnounce(_) => tree::grow(stage).await?,
            Scenario::TreeForsaken => tree::forsake(stage).await?,
        }
        settle(stage).await
    }
}

const SECOND: &str = "and now the second part";
const THIRD: &str = "and the third";
const CHAT: [&str; 2] = ["the first line of a chat", "the second line of a chat"];

const RESUME_ALL: [&str; 4] = ["runs", "resume", "--all", "--json"];

pub(crate) fn run_command<'a>(key: &'a str, prompt: &'a str) -> [&'a str; 7] {
    ["run", "--stream-json", "--model", "anthropic/claude-sonnet-4-5", "--key", key, prompt]
}

/// Starts the run of a task, again and again until a process has seen it end.
pub(crate) async fn start(stage: &mut Stage, task: &str) -> Result<(), Halt> {
    let prompt = format!("task-{task}");
    for _ in 0..ATTEMPTS {
        let acted = stage.act(&run_command(task, &prompt), "", &[0]).await?;
        if acted == Acted::Done {
            return Ok(());
        }
        // The process may have died before it made the database, and to name one that is not there is
        // an error.
        if stage.random.one_in(2) && stage.posse.database().exists() {
            stage.act(&RESUME_ALL, "", &[0, 1]).await?;
        }
    }
    Err(stage.give_up(Promise::InTime, format!("{prompt} was not done in {ATTEMPTS} attempts")))
}

/// Goes on with what is unfinished until nothing is.
pub(crate) async fn settle(stage: &mut Stage) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        if stage.rows().await?.iter().all(|row| row.rests()) {
            return Ok(());
        }
        // Now and then two processes at once, which must share the work.
        if stage.random.one_in(3) {
            stage.act_together([&RESUME_ALL, &RESUME_ALL], &[0, 1]).await?;
        } else {
            stage.act(&RESUME_ALL, "", &[0, 1]).await?;
        }
    }
    let detail = format!("runs are unfinished after {ATTEMPTS} attempts to resume them");
    Err(stage.give_up(Promise::NoRunStuck, detail))
}

/// The id of the only run, if there is one yet.
async fn only_run(stage: &mut Stage) -> Result<Option<String>, Halt> {
    Ok(stage.rows().await?.pop().map(|row| row.run))
}

async fn reopen(stage: &mut Stage) -> Result<(), Halt> {
    if stage.kill_is_planned() {
        // What matters here comes after the first end.
        stage.ask(&run_command("a", "task-a")).await?;
    } else {
        start(stage, "a").await?;
    }
    let Some(run) = only_run(stage).await? else {
        return Err(stage.give_up(Promise::NoRunLost, "the run that ended is gone"));
    };
    say(stage, &run, &["runs", "send", &run, SECOND, "--json"], SECOND).await?;
    settle(stage).await?;
    say(stage, &run, &["runs", "resume", &run, THIRD], THIRD).await
}

/// Runs the command that says `text`, again and again until it was taken: once it has said so,
/// or, when nobody could say so, once it is in the log.
async fn say(stage: &mut Stage, run: &str, command: &[&str], text: &str) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        let acted = stage.act(command, "", &[0]).await?;
        if acted == Acted::Done || stage.log(run).await?.heard(text) > 0 {
            return Ok(());
        }
    }
    Err(stage.give_up(Promise::InTime, format!("{text:?} was not taken")))
}

async fn chat(stage: &mut Stage) -> Result<(), Halt> {
    let mut unsaid = CHAT.to_vec();
    for _ in 0..ATTEMPTS {
        let session = only_run(stage).await?;
        if let Some(session) = &session {
            let log = stage.log(session).await?;
            unsaid.retain(|line| log.heard(line) == 0);
        }
        let acted = match &session {
            Some(_) if unsaid.is_empty() => return Ok(()),
            Some(run) => stage.act(&["chat", "--resume", run], &unsaid.join("\n"), &[0]).await?,
            None => {
                stage
                    .act(
                        &["chat", "--model", "anthropic/claude-sonnet-4-5"],
                        &unsaid.join("\n"),
                        &[0],
                    )
                    .await?
            }
        };
        // What was taken and is not in the log is not said again: it is missed in the end.
        if acted == Acted::Done {
            return Ok(());
        }
    }
    Err(stage.give_up(Promise::InTime, "the chat did not come to its end"))
}

async fn cancel(stage: &mut Stage) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        let Some(run) = stage.rows().await?.pop() else {
            let verb = |run: &str| ["runs", "cancel", run, "--json"].map(str::to_owned).to_vec();
            let run = run_command("a", "task-a");
            let deaths = (stage.next_death(&run), stage.next_death(&["runs"]));
            stage.act_beside(&run, verb, Again::IfCut, deaths).await?;
            continue;
        };
        if run.rests() {
            return Ok(());
        }
        stage.act(&["runs", "cancel", &run.run, "--json"], "", &[0]).await?;
    }
    Err(stage.give_up(Promise::InTime, "the run could not be cancelled"))
}

async fn steer(stage: &mut Stage) -> Result<(), Halt> {
    let verb = |run: &str| ["runs", "send", run, SECOND, "--json"].map(str::to_owned).to_vec();
    let run = run_command("a", "task-a");
    let deaths = (stage.next_death(&run), stage.next_death(&["runs"]));
    stage.act_beside(&run, verb, Again::Never, deaths).await?;
    start(stage, "a").await?;
    let Some(run) = only_run(stage).await? else {
        return Err(stage.give_up(Promise::NoRunLost, "the run that ended is gone"));
    };
    if stage.log(&run).await?.heard(SECOND) == 0 && !stage.has_printed("sent") {
        say(stage, &run, &["runs", "send", &run, SECOND, "--json"], SECOND).await?;
    }
    Ok(())
}

async fn crowd(stage: &mut Stage) -> Result<(), Halt> {
    let tasks = ["a", "b", "c"];
    let prompts = tasks.map(|task| format!("task-{task}"));
    let [a, b, c] = [0, 1, 2].map(|index| run_command(tasks[index], &prompts[index]));
    stage.act_together([&a, &b, &c], &[0]).await?;
    for task in tasks {
        start(stage, task).await?;
    }
    Ok(())
}

async fn recover(stage: &mut Stage) -> Result<(), Halt> {
    for (task, point) in [("a", "loop.tool.started:2"), ("b", "loop.model.called")] {
        let death = Death { point: Some(point.to_owned()), blow: None };
        let prompt = format!("task-{task}");
        if stage.act_under(&run_command(task, &prompt), death).await? == Acted::Done {
            let detail = format!("{point} was not passed, so there is nothing to recover");
            return Err(stage.give_up(Promise::PointReached, detail));
        }
    }
    // Either by command, or by asking for the same again.
    if stage.kill_is_planned() || stage.random.one_in(2) {
        settle(stage).await?;
    }
    for task in ["a", "b"] {
        start(stage, task).await?;
    }
    Ok(())
}

async fn shut_down(stage: &mut Stage) -> Result<(), Halt> {
    let event = stage.event_for_a_signal();
    let blow = Some((Moment::Event(event), Blow::Terminate));
    let death = Death { blow, ..stage.next_death_at_a_point() };
    stage.act_under(&run_command("a", "task-a"), death).await?;
    start(stage, "a").await
}

/// A run whose model is asked by nobody outside, so that its log is missed by nobody who counts.
const UNWANTED: [&str; 4] = ["run", "--model", "offline/planner", "what is here?"];
const PRUNE: [&str; 5] = ["runs", "prune", "--older-than", "0d", "--yes"];

async fn put_away(stage: &mut Stage) -> Result<(), Halt> {
    stage.ask(&UNWANTED).await?;
    let before = stage.ask(&["cost", "--json"]).await?;
    until_done(stage, &PRUNE, &[0]).await?;
    if !stage.rows().await?.is_empty() {
        return Err(stage.give_up(Promise::NoRunStuck, "a log is left that was to be removed"));
    }
    if stage.ask(&["cost", "--json"]).await? != before {
        return Err(stage.give_up(Promise::NoRunLost, "what a removed log cost is forgotten"));
    }
    if stage.kill_is_planned() {
        stage.ask(&run_command("a", "task-a")).await?;
    } else {
        start(stage, "a").await?;
    }
    let Some(run) = only_run(stage).await? else {
        return Err(stage.give_up(Promise::NoRunLost, "the run that ended is gone"));
    };
    // Whoever comes after one that died may find it archived.
    until_done(stage, &["runs", "archive", &run], &[0, 1]).await
}

/// Runs a command again and again until it comes to its end.
async fn until_done(stage: &mut Stage, command: &[&str], codes: &[i32]) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        if stage.act(command, "", codes).await? == Acted::Done {
            return Ok(());
        }
    }
    let detail = format!("`posse {}` did not come to its end", command.join(" "));
    Err(stage.give_up(Promise::InTime, detail))
}
