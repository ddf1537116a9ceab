//! The scenarios: which commands run before, during and after the kills.

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
    /// A session in `posse chat`, left and resumed.
    Chat,
    /// A run that is cancelled from another process while a command sleeps.
    Cancel,
    /// A run that gets a message from another process while it works.
    Steering,
    /// Three processes with a run each, on one database, with one slot each.
    Crowd,
    /// Two runs whose process was killed; the process that resumes them is killed too.
    Recovery,
    /// A run whose process gets SIGTERM.
    Shutdown,
    /// Two runs that have ended: the log of one is removed, the other is archived.
    Archiving,
    /// A tree of three levels, with more leaves than slots.
    Tree,
    /// A tree of three levels with one slot.
    TreeNarrow,
    /// A tree in which a run resumes a child that has ended.
    TreeResume,
    /// A tree whose root is cancelled from another process while leaves work.
    TreeCancel,
    /// A tree whose root was cancelled by processes that died before they told the runs below.
    TreeForsaken,
    /// A tree with children in the background.
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

/// All scenarios without background children.
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

/// Attempts before something counts as stuck: more than there are kills.
pub(crate) const ATTEMPTS: usize = 10;

impl Scenario {
    /// Whether it is in the short form, which leaves out announcements that other scenarios contain.
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

    /// Whether it is a tree of three levels.
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

    /// Messages after the first prompts.
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

    /// About how long its first command takes without kills. Random kills happen within this time.
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

    /// About how many events its first command prints. Other random kills happen after one of them.
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
            // So that the second process does not resume the run of the first.
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
            Scenario::Steering => steer(stage).await?,
            Scenario::Crowd => crowd(stage).await?,
            Scenario::Recovery => recover(stage).await?,
            Scenario::Shutdown => shut_down(stage).await?,
            Scenario::Archiving => put_away(stage).await?,
            Scenario::Cancel | Scenario::TreeCancel | Scenario::TreeAnnounce(Telling::Cancel) => {
                tree::cancel(stage).await?
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

/// Starts the run of a task, again and again until it ends.
pub(crate) async fn start(stage: &mut Stage, task: &str) -> Result<(), Halt> {
    let prompt = format!("task-{task}");
    for _ in 0..ATTEMPTS {
        let acted = stage.act(&run_command(task, &prompt), "", &[0]).await?;
        if acted == Acted::Done {
            return Ok(());
        }
        // The process may have died before it made the database. A missing one is an error.
        if stage.random.one_in(2) && stage.posse.has_database() {
            stage.act(&RESUME_ALL, "", &[0, 1]).await?;
        }
    }
    Err(stage.give_up(Promise::InTime, format!("{prompt} was not done in {ATTEMPTS} attempts")))
}

/// Resumes all unfinished runs until there are none.
pub(crate) async fn settle(stage: &mut Stage) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        if stage.rows().await?.iter().all(|row| row.rests()) {
            return Ok(());
        }
        // Sometimes two processes at once, which must share the work.
        if stage.random.one_in(3) {
            stage.act_together([&RESUME_ALL, &RESUME_ALL], &[0, 1]).await?;
        } else {
            stage.act(&RESUME_ALL, "", &[0, 1]).await?;
        }
    }
    let detail = format!("runs are unfinished after {ATTEMPTS} attempts to resume them");
    Err(stage.give_up(Promise::NoRunStuck, detail))
}

/// The only run, which has ended.
async fn ended_run(stage: &mut Stage) -> Result<String, Halt> {
    match stage.rows().await?.pop() {
        Some(row) => Ok(row.run),
        None => Err(stage.give_up(Promise::NoRunLost, "the run that ended is gone")),
    }
}

/// Starts a run for a scenario that is about the time after its end, and waits for the end. Planned
/// kills come later.
async fn start_and_end(stage: &mut Stage) -> Result<String, Halt> {
    if stage.kill_is_planned() {
        stage.ask(&run_command("a", "task-a")).await?;
    } else {
        start(stage, "a").await?;
    }
    ended_run(stage).await
}

async fn reopen(stage: &mut Stage) -> Result<(), Halt> {
    let run = start_and_end(stage).await?;
    say(stage, &run, &["runs", "send", &run, SECOND, "--json"], SECOND).await?;
    settle(stage).await?;
    say(stage, &run, &["runs", "resume", &run, THIRD], THIRD).await
}

/// Runs the command that sends `text`, again and again until it ends well or the text is in the log.
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
        let session = stage.rows().await?.pop().map(|row| row.run);
        if let Some(session) = &session {
            let log = stage.log(session).await?;
            unsaid.retain(|line| log.heard(line) == 0);
        }
        let command = match &session {
            Some(_) if unsaid.is_empty() => return Ok(()),
            Some(run) => ["chat", "--resume", run],
            None => ["chat", "--model", "anthropic/claude-sonnet-4-5"],
        };
        // A line that was accepted and is not in the log is not sent again: the checker finds the loss.
        if stage.act(&command, &unsaid.join("\n"), &[0]).await? == Acted::Done {
            return Ok(());
        }
    }
    Err(stage.give_up(Promise::InTime, "the chat did not come to its end"))
}

async fn steer(stage: &mut Stage) -> Result<(), Halt> {
    let verb = |run: &str| ["runs", "send", run, SECOND, "--json"].map(str::to_owned).to_vec();
    let run = run_command("a", "task-a");
    let deaths = (stage.next_death(&run), stage.next_death(&["runs"]));
    stage.act_beside(&run, verb, Again::Never, deaths).await?;
    start(stage, "a").await?;
    let run = ended_run(stage).await?;
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
    // Either with `resume`, or with the same command again.
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

/// A run without requests to the fake model, so that the counts of requests are right without its log.
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
    let run = start_and_end(stage).await?;
    // If a process died here before, the run may be archived already.
    until_done(stage, &["runs", "archive", &run], &[0, 1]).await
}

/// Runs a command again and again until it is done.
async fn until_done(stage: &mut Stage, command: &[&str], codes: &[i32]) -> Result<(), Halt> {
    for _ in 0..ATTEMPTS {
        if stage.act(command, "", codes).await? == Acted::Done {
            return Ok(());
        }
    }
    let detail = format!("`posse {}` did not come to its end", command.join(" "));
    Err(stage.give_up(Promise::InTime, detail))
}
