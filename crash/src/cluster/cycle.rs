//! One cycle on a cluster: servers, workers, runs, faults, and a check of what is left.

use super::fleet::Fleet;
use super::owners::check_owners;
use super::place::Place;
use super::plan::{KILLED_AT, Plan};
use super::plant::Plant;
use super::site::{Site, Template};
use super::story;
use super::witness::{self, DATABASE};
use crate::check::{Effect, Evidence, check};
use crate::cycle::asked;
use crate::leftovers::leftovers;
use crate::log::RunLog;
use crate::process::{Death, Posse};
use crate::violation::{Promise, Violation};
use posse_testkit::FakeModel;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a cycle may take in all, on a very busy machine and in a debug build.
const LONGEST: Duration = Duration::from_secs(1_800);
/// How long one command may take while the server is away.
const COMMAND: Duration = Duration::from_secs(180);
/// How long nothing may happen while runs are unfinished and nothing is broken any more: much longer
/// than a lease, because a starved machine can stand still for minutes.
const TO_MOVE: Duration = Duration::from_secs(240);
/// How long a subagent of a cancelled run may work on: until its owner can read the request.
const GRACE_MS: u64 = 60_000;
/// The exit code of a command that cannot reach its database.
const NO_DATABASE: i32 = 6;

pub(super) struct ClusterCycle {
    pub(super) plan: Plan,
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) plant: Option<Plant>,
}

/// The result of a cycle on a cluster.
#[derive(Clone, Debug)]
pub struct ClusterEnded {
    /// What was to happen.
    pub plan: Plan,
    /// The kinds of faults that happened while runs were unfinished.
    pub happened: BTreeSet<&'static str>,
    /// The kinds of faults that this machine does not allow.
    pub untested: BTreeSet<&'static str>,
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// Runs that were executed.
    pub runs: usize,
    /// Effects in the ledger.
    pub effects: usize,
    /// Events whose writers were checked.
    pub writes: usize,
    /// Claims that were checked.
    pub claims: usize,
    /// The folder of the cycle; removed if there are no violations.
    pub folder: PathBuf,
    /// How long all of it took.
    pub took: Duration,
}

/// A cycle while it is played.
pub(super) struct Scene {
    pub(super) plan: Plan,
    pub(super) site: Site,
    pub(super) fleet: Fleet,
    pub(super) fake: FakeModel,
    pub(super) happened: BTreeSet<&'static str>,
    pub(super) untested: BTreeSet<&'static str>,
    posse: Arc<Posse>,
    /// Lines of JSON that commands printed.
    printed: Vec<Value>,
    /// Messages that were accepted.
    messages: Vec<String>,
    cancelled: bool,
    began: Instant,
    history: String,
    counted: Counted,
}

#[derive(Default)]
struct Counted {
    runs: usize,
    effects: usize,
    writes: usize,
    claims: usize,
}

impl ClusterCycle {
    /// Plays the cycle.
    pub(super) async fn play(self, template: Arc<Template>) -> ClusterEnded {
        let began = Instant::now();
        let mut ended = ClusterEnded {
            plan: self.plan.clone(),
            happened: BTreeSet::new(),
            untested: BTreeSet::new(),
            violations: Vec::new(),
            runs: 0,
            effects: 0,
            writes: 0,
            claims: 0,
            folder: self.folder.clone(),
            took: Duration::ZERO,
        };
        let fail = |promise, error: io::Error| Violation::of(promise, error.to_string());
        let plan = self.plan.clone();
        match Scene::set(plan, &self.binary, &self.folder, &template).await {
            Err(error) => ended.violations.push(fail(Promise::InTime, error)),
            Ok(mut scene) => {
                match timeout(LONGEST, scene.play(self.plant)).await {
                    Ok(Ok(mut found)) => ended.violations.append(&mut found),
                    Ok(Err(error)) => ended.violations.push(fail(Promise::InTime, error)),
                    Err(_) => {
                        let detail = format!("not over after {} s", LONGEST.as_secs());
                        ended.violations.push(Violation::of(Promise::InTime, detail));
                    }
                }
                ended.violations.append(&mut scene.fleet.violations);
                (ended.happened, ended.untested) = (scene.happened.clone(), scene.untested.clone());
                (ended.runs, ended.effects) = (scene.counted.runs, scene.counted.effects);
                (ended.writes, ended.claims) = (scene.counted.writes, scene.counted.claims);
                if !ended.violations.is_empty() {
                    scene.keep_history();
                }
                if let Err(error) = scene.site.close().await {
                    ended.violations.push(fail(Promise::InTime, error));
                }
                // Workers that still live die here.
                drop(scene.fleet);
            }
        }
        for process in leftovers(&self.folder).await {
            ended.violations.push(Violation::of(Promise::NoProcessLeft, process));
        }
        if ended.violations.is_empty() {
            // A folder that cannot be removed does no harm.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
        ended.took = began.elapsed();
        ended
    }
}

impl Scene {
    async fn set(
        plan: Plan,
        binary: &std::path::Path,
        folder: &std::path::Path,
        template: &Template,
    ) -> io::Result<Self> {
        plan.place.furnish(folder, plan.workers).await?;
        // The servers of the cycle are here, too.
        std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
        let fake = FakeModel::start(story::script(plan.trees, plan.place))
            .await
            .map_err(io::Error::other)?;
        let site = Site::open(&plan, template, folder).await?;
        let posse = Posse::new(binary, folder, fake.url()).with_database(site.command_url());
        let posse = Arc::new(posse.with_patience(COMMAND));
        let mut fleet = Fleet::new(plan.slots, plan.place);
        for worker in 0..plan.workers {
            fleet.add(&posse, &site, plan.death_of(worker))?;
        }
        Ok(Scene {
            plan,
            site,
            fleet,
            fake,
            happened: BTreeSet::new(),
            untested: BTreeSet::new(),
            posse,
            printed: Vec::new(),
            messages: Vec::new(),
            cancelled: false,
            began: Instant::now(),
            history: String::new(),
            counted: Counted::default(),
        })
    }

    async fn play(&mut self, plant: Option<Plant>) -> io::Result<Vec<Violation>> {
        let (posse, plan) = (self.posse.clone(), self.plan.clone());
        // Commands and faults happen at the same time.
        let commands = Commands { posse: posse.clone(), plan };
        let (said, faults) = tokio::join!(commands.give(), self.play_faults());
        faults?;
        let said = said?;
        self.printed = said.printed;
        self.messages = said.messages;
        self.cancelled = said.cancelled;
        let mut found = said.violations;
        self.history("all faults are over");
        if !self.end_of_runs().await? {
            let left = "SELECT id, owner, runnable, paused, awaits, expects, note, last_seq \
                FROM posse.runs WHERE outcome IS NULL";
            let left = self.site.node.sql(DATABASE, left).await?;
            let detail = format!("nothing has happened for {} s: {left}", TO_MOVE.as_secs());
            found.push(Violation::of(Promise::NoRunStuck, detail));
        }
        self.history("all runs have ended");
        self.fleet.leave().await?;
        self.history("all workers have left");
        if self.fleet.fell {
            self.happened.insert(KILLED_AT);
        }
        // A command may outlive its owner for a moment, and have its effect then.
        if let Some(plant) = plant {
            self.plant(plant).await?;
        }
        self.inspect(&mut found).await?;
        Ok(found)
    }

    pub(super) fn tend(&mut self) -> io::Result<()> {
        self.fleet.tend(&self.posse, &self.site)
    }

    /// Waits until no run is unfinished. Returns false if nothing happens for too long: the machine
    /// may be slow, but it never stands still.
    async fn end_of_runs(&mut self) -> io::Result<bool> {
        let (mut moved_at, mut last) = (Instant::now(), String::new());
        while moved_at.elapsed() < TO_MOVE {
            self.wait(Duration::from_secs(1)).await?;
            // A full disk may have stopped the server.
            if !self.site.node.is_running() {
                self.site.node.start().await?;
            }
            let open = "SELECT count(*) FILTER (WHERE outcome IS NULL) || ' ' || sum(last_seq) \
                FROM posse.runs";
            let Ok(now) = self.site.node.sql(DATABASE, open).await else { continue };
            if now.starts_with("0 ") {
                return Ok(true);
            }
            let now = format!("{now} {} {}", self.fake.count(), self.effects());
            if now != last {
                (moved_at, last) = (Instant::now(), now);
            }
        }
        Ok(false)
    }

    /// True if not all runs have ended, or if nobody can say.
    pub(super) async fn is_busy(&self) -> bool {
        let open =
            "SELECT count(*) FILTER (WHERE outcome IS NULL) > 0 OR count(*) = 0 FROM posse.runs";
        self.site.node.sql(DATABASE, open).await.map_or(true, |answer| answer == "t")
    }

    pub(super) fn ledger_file(&self) -> PathBuf {
        self.posse.workspace().join(story::LEDGER)
    }

    /// How many effects there are by now. In checkouts, nobody looks while runs work: this is a guess.
    pub(super) fn effects(&self) -> usize {
        match self.plan.place {
            Place::Folder => self.ledger().lines().count(),
            Place::Checkouts | Place::Machines => self.fake.count() / 4,
        }
    }

    /// What commands of agents have written.
    pub(super) fn ledger(&self) -> String {
        std::fs::read_to_string(self.ledger_file()).unwrap_or_default()
    }

    /// Checks what is left.
    async fn inspect(&mut self, found: &mut Vec<Violation>) -> io::Result<()> {
        let mut ask = async |arguments: &[&str]| -> io::Result<String> {
            let exit = self.posse.run(arguments, "", Death::default()).await?;
            if exit.code() != Some(0) {
                let said = exit.stderr.lines().last().unwrap_or_default();
                let detail = format!("`posse {}` says: {said}", arguments.join(" "));
                found.push(Violation::of(Promise::SoundDatabase, detail));
            }
            Ok(exit.stdout)
        };
        ask(&["runs", "verify"]).await?;
        let seen = witness::ask(&self.site.node).await?;
        let logs = self.logs().await?;
        // What the server has is what the binary exports.
        if let Some(log) = logs.first() {
            let text = ask(&["runs", "export", &log.run]).await?;
            let exported = RunLog::parse(&log.run, &text).map_err(io::Error::other)?;
            let event = |record: &Value| record["event"].clone();
            if !exported.records.iter().map(event).eq(log.records.iter().map(event)) {
                let detail = format!("run {} is exported otherwise", log.run);
                found.push(Violation::of(Promise::SoundDatabase, detail));
            }
        }
        if seen.changed > 0 {
            let detail = format!("{} events were changed or deleted", seen.changed);
            found.push(Violation::of(Promise::OrderedLog, detail));
        }
        found.extend(check_owners(&seen.writes, &seen.taken));
        let nonces = story::nonces(self.plan.trees);
        let counts = self.plan.place.seen(&self.posse, &logs, &nonces).await?;
        let effects = nonces.into_iter().zip(counts);
        let effects: Vec<Effect> = effects.map(|(nonce, seen)| Effect { nonce, seen }).collect();
        let all = self.plan.trees * story::RUNS;
        let least = if self.cancelled { all - story::RUNS + 1 } else { all };
        self.counted = Counted {
            runs: logs.len(),
            effects: effects.iter().map(|effect| effect.seen).sum(),
            writes: seen.writes.len(),
            claims: seen.taken.iter().filter(|taken| taken.becomes.is_some()).count(),
        };
        let evidence = Evidence {
            printed: std::mem::take(&mut self.printed),
            expected_runs: least..=all,
            logs,
            effects,
            messages: self.messages.clone(),
            requests: self.fake.count(),
            asked: asked(&self.fake),
            grace_ms: GRACE_MS,
        };
        found.append(&mut check(&evidence));
        if self.fake.refused() > 0 {
            let detail = format!("{} requests were refused", self.fake.refused());
            found.push(Violation::of(Promise::ValidRequests, detail));
        }
        Ok(())
    }

    /// The logs of all runs, as the server has them.
    async fn logs(&self) -> io::Result<Vec<RunLog>> {
        let all = "SELECT json_build_object('run', run, 'seq', seq, 'at', at, 'event', body::json) \
            FROM posse.events ORDER BY run, seq";
        let mut logs: Vec<RunLog> = Vec::new();
        for record in witness::rows(&self.site.node, all).await? {
            let run = record["run"].as_str().unwrap_or_default();
            match logs.last_mut().filter(|log| log.run == run) {
                Some(log) => log.records.push(record),
                None => logs.push(RunLog { run: run.to_owned(), records: vec![record] }),
            }
        }
        Ok(logs)
    }

    pub(super) fn history(&mut self, what: &str) {
        let at = self.began.elapsed().as_millis();
        let (requests, effects) = (self.fake.count(), self.effects());
        self.history += &format!("{at:6} ms, {requests} requests, {effects} effects: {what}\n");
    }

    /// Writes what happened to files in the folder, for people.
    fn keep_history(&self) {
        // The violations are reported in any case.
        let _ = self.posse.write_history();
        let text = format!("{}\n{}", self.plan, self.history);
        let _ = std::fs::write(self.posse.folder().join("faults.txt"), text);
    }
}

/// What people do meanwhile: they start runs, send a message, and cancel.
struct Commands {
    posse: Arc<Posse>,
    plan: Plan,
}

#[derive(Default)]
struct Said {
    printed: Vec<Value>,
    messages: Vec<String>,
    violations: Vec<Violation>,
    cancelled: bool,
}

impl Commands {
    async fn give(self) -> io::Result<Said> {
        let mut said = Said::default();
        let mut roots = Vec::new();
        for tree in 0..self.plan.trees {
            let (key, prompt) = (format!("tree-{tree}"), story::prompt(tree));
            let model = "anthropic/claude-sonnet-4-5";
            let start = ["run", "--background", "--json", "--model", model, "--key", &key];
            let place = self.plan.place.arguments(&self.posse);
            let place = place.iter().map(String::as_str);
            let start: Vec<&str> = start.into_iter().chain(place).chain([&*prompt]).collect();
            // The key makes a repeated start find the first run.
            while !self.run(&start, &mut said).await? {
                sleep(Duration::from_millis(300)).await;
            }
            match said.printed.last().and_then(|told| told["run"].as_str()) {
                Some(root) => roots.push(root.to_owned()),
                None => return Err(io::Error::other("a run began, and its id was not printed")),
            }
        }
        if self.plan.sends
            && let Some(root) = roots.first()
            // Nobody knows whether a message was stored if the answer is lost.
            && self.run(&["runs", "send", root, story::MESSAGE, "--json"], &mut said).await?
        {
            said.messages.push(story::MESSAGE.to_owned());
        }
        if self.plan.cancels
            && let Some(root) = roots.last()
        {
            said.cancelled = true;
            sleep(Duration::from_millis(900)).await;
            self.run(&["runs", "cancel", root, "--json"], &mut said).await?;
        }
        Ok(said)
    }

    /// Returns false if the command could not reach the server.
    async fn run(&self, command: &[&str], said: &mut Said) -> io::Result<bool> {
        let exit = self.posse.run(command, "", Death::default()).await?;
        // A command prints one object, on one line or on many.
        said.printed.extend(serde_json::from_str::<Value>(&exit.stdout).ok());
        let told = |promise, what: &str| {
            let last = exit.stderr.lines().last().unwrap_or_default();
            Violation::of(promise, format!("`posse {}` {what}: {last}", command.join(" ")))
        };
        if exit.stderr.contains("panicked at") {
            said.violations.push(told(Promise::NoPanic, "panicked"));
        }
        match exit.code() {
            Some(0) => return Ok(true),
            Some(NO_DATABASE) => {}
            None => said.violations.push(told(Promise::InTime, "did not end")),
            Some(code) => {
                said.violations.push(told(Promise::RightExit, &format!("ended with {code}")));
            }
        }
        Ok(false)
    }
}
