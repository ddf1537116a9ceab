//! One cycle: a fresh folder, a scenario, its kills, and a check of what is left.

use super::campaign::Kill;
use super::check::{Asked, Effect, Evidence, check};
use super::leftovers::leftovers;
use super::process::Posse;
use super::random::Random;
use super::scenario::Scenario;
use super::script::{END, furnish, nonces, script};
use super::stage::{Halt, Stage};
use super::violation::{Promise, Violation};
use posse_testkit::FakeModel;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long a cycle may take in all.
const LONGEST: Duration = Duration::from_secs(90);
/// The same, with a database on a server.
const LONGEST_ON_SERVER: Duration = Duration::from_secs(240);
/// How long a subagent of a cancelled run may work on after the end of that run, in milliseconds.
const GRACE_MS: u64 = 250;
/// The same, with a database on a server: longer than a dead worker keeps its runs.
const GRACE_ON_SERVER_MS: u64 = 30_000;

/// A cycle to play.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Its place in the campaign. It and the seed decide all random choices.
    pub number: usize,
    /// What posse does.
    pub scenario: Scenario,
    /// How posse is killed.
    pub kill: Kill,
}

/// The result of a cycle.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which cycle.
    pub cycle: Cycle,
    /// Processes that were stopped as planned.
    pub hits: u32,
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// The folder of the cycle; removed if there are no violations.
    pub folder: PathBuf,
    /// How long all of it took.
    pub took: Duration,
}

/// Where and how cycles are played.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) binary: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) seed: u64,
    /// The folder of the server, if runs are kept on one.
    pub(crate) server: Option<PathBuf>,
}

impl Cycle {
    /// Plays the cycle.
    pub(crate) async fn play(self, ground: Ground) -> Ended {
        let began = Instant::now();
        let folder = ground.folder.join(format!("cycle-{}", self.number));
        let mut ended = Ended {
            cycle: self.clone(),
            hits: 0,
            violations: Vec::new(),
            folder: folder.clone(),
            took: Duration::ZERO,
        };
        let fake = match FakeModel::start(script(self.scenario)).await {
            Ok(fake) => fake,
            Err(error) => {
                ended.violations.push(Violation::of(Promise::InTime, error.to_string()));
                return ended;
            }
        };
        if let Err(error) = prepare(self.scenario, &folder) {
            let detail = format!("cannot prepare {}: {error}", folder.display());
            ended.violations.push(Violation::of(Promise::InTime, detail));
            return ended;
        }
        let random = Random::of(ground.seed, self.number);
        let mut posse = Posse::new(&ground.binary, &folder, fake.url());
        if let Some(server) = &ground.server {
            let database = format!("c{}", self.number);
            if let Err(error) = create(server, &database).await {
                let detail = format!("cannot create a database: {error}");
                ended.violations.push(Violation::of(Promise::InTime, detail));
                return ended;
            }
            let (place, name) = (server.display(), database);
            let url = format!("postgres:///{name}?host={place}&user=posse&sslmode=disable");
            posse = posse.with_database(url).with_patience(LONGEST_ON_SERVER / 2);
        }
        let mut stage = Stage::new(posse, self.kill.clone(), random, self.scenario);
        // A killed worker keeps its runs on a server until its lease is over.
        let longest = if ground.server.is_some() { LONGEST_ON_SERVER } else { LONGEST };
        let played = timeout(longest, self.act(&mut stage, &fake)).await;
        if played.is_err() {
            let detail = format!("the cycle did not end within {} s", longest.as_secs());
            stage.violations.push(Violation::of(Promise::InTime, detail));
        }
        for process in leftovers(&folder).await {
            stage.violations.push(Violation::of(Promise::NoProcessLeft, process));
        }
        if fake.refused() > 0 {
            let detail = format!("{} requests were refused", fake.refused());
            stage.violations.push(Violation::of(Promise::ValidRequests, detail));
        }
        if stage.violations.is_empty() {
            // A folder that cannot be removed does no harm.
            let _ = std::fs::remove_dir_all(&folder);
        } else {
            // The violations are reported in any case.
            let _ = stage.posse.write_history();
        }
        ended.hits = stage.hits;
        ended.violations = stage.violations;
        ended.took = began.elapsed();
        ended
    }

    async fn act(&self, stage: &mut Stage, fake: &FakeModel) {
        let played = self.scenario.play(stage).await;
        if let Kill::Point { name, pass } = &self.kill
            && !stage.reached
            && played.is_ok()
        {
            let detail = format!("nobody passed {name} {pass} times");
            stage.violations.push(Violation::of(Promise::PointReached, detail));
        }
        // The reason of a halt is among the violations. The rest is inspected all the same.
        let _: Result<(), Halt> = self.inspect(stage, fake).await;
    }

    /// Checks what is left.
    async fn inspect(&self, stage: &mut Stage, fake: &FakeModel) -> Result<(), Halt> {
        let mut logs = Vec::new();
        for row in stage.rows().await? {
            logs.push(stage.log(&row.run).await?);
        }
        stage.ask(&["runs", "verify"]).await.map_err(|Halt| {
            stage.give_up(Promise::SoundDatabase, "`posse runs verify` does not pass")
        })?;
        // A command may outlive its owner for a moment, and have its effect then.
        leftovers(stage.posse.folder()).await;
        let workspace = stage.posse.workspace();
        let (effects, torn) = match look(&workspace, self.scenario) {
            Ok(seen) => seen,
            Err(error) => {
                return Err(stage.give_up(Promise::WholeFiles, error.to_string()));
            }
        };
        for file in torn {
            let detail = format!("{file} is there in part");
            stage.violations.push(Violation::of(Promise::WholeFiles, detail));
        }
        let evidence = Evidence {
            printed: std::mem::take(&mut stage.printed),
            expected_runs: self.scenario.runs(),
            logs,
            effects,
            messages: self.scenario.messages(),
            requests: fake.count(),
            asked: asked(fake),
            grace_ms: if stage.posse.is_on_server() { GRACE_ON_SERVER_MS } else { GRACE_MS },
        };
        stage.violations.append(&mut check(&evidence));
        Ok(())
    }
}

/// Creates a database on a server.
async fn create(server: &Path, database: &str) -> io::Result<()> {
    let create = format!("CREATE DATABASE {database} STRATEGY file_copy");
    posse_testkit::postgres::ask(server, "postgres", &create).await.map(|_| ())
}

/// What was in every request.
pub(crate) fn asked(fake: &FakeModel) -> Vec<Asked> {
    let requests = fake.requests().into_iter();
    requests.map(|request| Asked::of(request.first_user(), &request.texts())).collect()
}

fn prepare(scenario: Scenario, folder: &Path) -> io::Result<()> {
    let (workspace, settings) = (folder.join("workspace"), folder.join("home/.config/posse"));
    std::fs::create_dir_all(&workspace)?;
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join("config.toml"), scenario.settings())?;
    furnish(scenario, &workspace)
}

/// How often each nonce is in the workspace, and which files are not whole.
fn look(workspace: &Path, scenario: Scenario) -> io::Result<(Vec<Effect>, Vec<String>)> {
    let mut texts = Vec::new();
    let mut torn = Vec::new();
    for entry in std::fs::read_dir(workspace)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A killed process leaves the file it was writing under a temporary name.
        if name.starts_with(".posse-") {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
        if name.ends_with(".whole") && !text.ends_with(END) {
            torn.push(name);
        }
        texts.push(text);
    }
    let seen = |nonce: &str| texts.iter().map(|text| text.matches(nonce).count()).sum();
    let effects = nonces(scenario).into_iter();
    let effects = effects.map(|nonce| Effect { seen: seen(&nonce), nonce }).collect();
    Ok((effects, torn))
}
