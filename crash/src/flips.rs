//! Bits that flip in a database at rest, or in the write-ahead log that a killed process leaves. Posse
//! must detect each (`posse runs verify` fails, or the database does not open), or the flip must change
//! nothing that can be read.
//!
//! This module uses the binary through its command line only, and treats its files as bytes.

use super::process::{Blow, Death, Exit, Moment, Posse};
use super::random::Random;
use futures_util::stream::{self, StreamExt};
use posse_testkit::{Answer, Conversation, FakeModel, Receiver, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Flips to try, each in a fresh copy of the same database.
#[derive(Clone, Debug)]
pub struct Flips {
    /// The binary.
    pub binary: PathBuf,
    /// An empty folder to work in.
    pub folder: PathBuf,
    /// The seed that chooses the bits.
    pub seed: u64,
    /// How many there are.
    pub count: usize,
    /// How many are tried at the same time.
    pub jobs: usize,
}

/// The result of all flips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flipped {
    /// Flips in the database.
    pub database: Counts,
    /// Flips in the write-ahead log.
    pub log: Counts,
    /// Flips that were neither detected nor harmless, in words for people.
    pub missed: Vec<String>,
}

/// Flips by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Posse detected them.
    pub told: usize,
    /// They changed nothing that can be read.
    pub harmless: usize,
}

const DATABASE: &str = "posse.db";
const LOG: &str = "posse.db-wal";
/// The exit code for a damaged database.
const DAMAGED: i32 = 6;
/// A secret of webhooks.
const SECRET: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2Fu";
/// Turns of the run that is killed.
const TURNS: usize = 12;
/// Events that it prints before the kill.
const SEEN: usize = 40;

/// Files of a folder, with their content.
type Files = Vec<(PathBuf, Vec<u8>)>;

enum Verdict {
    Told,
    Harmless,
    Missed(String),
}

impl Flips {
    /// Makes a database with runs of every kind, and flips bits in copies of it.
    ///
    /// # Errors
    /// When the database cannot be made, or what is read of it is not the same twice.
    pub async fn play(&self) -> io::Result<Flipped> {
        let fake = FakeModel::start(script()).await.map_err(io::Error::other)?;
        let first = self.posse(0, &fake)?;
        let receiver = Receiver::start([Answer::status(204)]).await?;
        let runs = fill(&first, &receiver.url()).await?;
        let killed = Corpus::of(&first, runs.clone()).await?;
        // The process that opened it last has brought the log into the file.
        let rested = Corpus::of(&first, runs).await?;
        let both = Arc::new([rested, killed]);
        // Some at a time, each in a folder of its own.
        let jobs = self.jobs.max(1);
        let work = stream::iter(0..jobs).map(|job| {
            let both = both.clone();
            let posse = self.posse(job + 1, &fake);
            async move {
                let posse = posse?;
                let mut flipped = Flipped::default();
                for number in (job..self.count).step_by(jobs) {
                    let (file, corpus) = [(DATABASE, &both[0]), (LOG, &both[1])][number % 2];
                    let flip = Flip::choose(file, &corpus.files, self.seed, number)?;
                    let verdict = flip.judge(&posse, corpus).await?;
                    flipped.add(&flip, verdict);
                }
                Ok::<_, io::Error>(flipped)
            }
        });
        let mut all = Flipped::default();
        let mut work = work.buffer_unordered(jobs);
        while let Some(flipped) = work.next().await {
            all.merge(flipped?);
        }
        Ok(all)
    }

    fn posse(&self, job: usize, fake: &FakeModel) -> io::Result<Posse> {
        let folder = self.folder.join(job.to_string());
        for name in ["workspace", "home/.config/posse"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        Ok(Posse::new(&self.binary, &folder, fake.url()))
    }
}

/// A database, and what can be read of it.
struct Corpus {
    files: Files,
    runs: Vec<String>,
    expected: Vec<String>,
}

impl Corpus {
    /// The database in the folder of `posse`, which must be sound.
    async fn of(posse: &Posse, runs: Vec<String>) -> io::Result<Self> {
        let files = files(posse.folder())?;
        let expected = readings(posse, &runs).await?;
        put_back(posse.folder(), &files)?;
        if expected != readings(posse, &runs).await? {
            return Err(io::Error::other("what is read is not the same twice"));
        }
        put_back(posse.folder(), &files)?;
        expect(&posse.run(&["runs", "verify"], "", Death::default()).await?, 0)?;
        Ok(Corpus { files, runs, expected })
    }
}

impl Flipped {
    fn add(&mut self, flip: &Flip, verdict: Verdict) {
        let counts = if flip.file == LOG { &mut self.log } else { &mut self.database };
        match verdict {
            Verdict::Told => counts.told += 1,
            Verdict::Harmless => counts.harmless += 1,
            Verdict::Missed(why) => {
                let Flip { number, file, at, bit } = flip;
                self.missed.push(format!("flip {number}: bit {bit} of byte {at} of {file}: {why}"));
            }
        }
    }

    fn merge(&mut self, other: Flipped) {
        for (mine, its) in [(&mut self.database, other.database), (&mut self.log, other.log)] {
            mine.told += its.told;
            mine.harmless += its.harmless;
        }
        self.missed.extend(other.missed);
    }
}

/// A bit that flips.
struct Flip {
    number: usize,
    file: &'static str,
    at: usize,
    bit: u32,
}

impl Flip {
    fn choose(file: &'static str, files: &Files, seed: u64, number: usize) -> io::Result<Self> {
        let mut random = Random::of(seed, number);
        let found = files.iter().find(|(path, _)| path.ends_with(file));
        let length = found.map_or(0, |(_, bytes)| bytes.len());
        if length == 0 {
            return Err(io::Error::other(format!("{file} is empty")));
        }
        let (at, bit) = (random.below(length as u64) as usize, random.below(8) as u32);
        Ok(Flip { number, file, at, bit })
    }

    fn make(&self, folder: &Path, files: &Files) -> io::Result<()> {
        put_back(folder, files)?;
        let path = folder.join(self.file);
        let mut bytes = std::fs::read(&path)?;
        if let Some(byte) = bytes.get_mut(self.at) {
            *byte ^= 1 << self.bit;
        }
        std::fs::write(path, bytes)
    }

    async fn judge(&self, posse: &Posse, corpus: &Corpus) -> io::Result<Verdict> {
        let Corpus { files, runs, expected } = corpus;
        self.make(posse.folder(), files)?;
        let verify = posse.run(&["runs", "verify"], "", Death::default()).await?;
        match verify.code() {
            Some(DAMAGED) => return Ok(Verdict::Told),
            Some(0) => {}
            code => return Ok(Verdict::Missed(format!("verify ends with {code:?}"))),
        }
        self.make(posse.folder(), files)?;
        let found = readings(posse, runs).await?;
        let differs = expected.iter().zip(&found).find(|(one, other)| one != other);
        Ok(match differs {
            None => Verdict::Harmless,
            Some((one, other)) => Verdict::Missed(difference(one, other)),
        })
    }
}

/// The first place where two texts differ.
fn difference(one: &str, other: &str) -> String {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let part = |text: &str| {
        let bytes = text.as_bytes();
        let from = same.saturating_sub(60).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..bytes.len().min(same + 60)]).into_owned()
    };
    format!("expected …{}…, found …{}…", part(one), part(other))
}

/// All that can be read through the command line.
async fn readings(posse: &Posse, runs: &[String]) -> io::Result<Vec<String>> {
    let all: [&[&str]; 8] = [
        &["runs", "list", "--all", "--json"],
        &["runs", "list", "--unfinished", "--json"],
        &["runs", "questions", "--json"],
        &["cost", "--by", "run", "--json"],
        &["cost", "--by", "label", "--json"],
        &["cost", "--by", "model", "--json"],
        &["audit", "list", "--json"],
        &["webhooks", "deliveries", "--all", "--json"],
    ];
    let mut readings = Vec::new();
    for arguments in all {
        readings.push(reading(posse, arguments).await?);
    }
    for run in runs {
        readings.push(reading(posse, &["runs", "show", run, "--json"]).await?);
        readings.push(reading(posse, &["runs", "export", run]).await?);
    }
    Ok(readings)
}

async fn reading(posse: &Posse, arguments: &[&str]) -> io::Result<String> {
    let Exit { status, stdout, .. } = posse.run(arguments, "", Death::default()).await?;
    Ok(format!("{arguments:?} {status:?}\n{stdout}"))
}

/// Fills the database with runs of every kind, and leaves it as a killed process does. Returns the runs.
async fn fill(posse: &Posse, receiver: &str) -> io::Result<Vec<String>> {
    let hook = |name: &str, url: &str, schedule: &str| {
        format!(
            "[[webhooks]]\nname = \"{name}\"\nurl = \"{url}\"\nallow_private = true\n\
             secret = \"{SECRET}\"\nschedule = {schedule}\n"
        )
    };
    // One delivery succeeds, one is to be retried, and one was given up.
    let nowhere = "http://127.0.0.1:1/";
    let settings = [
        hook("hears", receiver, "[]"),
        hook("later", nowhere, "[\"24h\"]"),
        hook("never", nowhere, "[]"),
    ];
    let path = posse.folder().join("home/.config/posse/config.toml");
    std::fs::write(&path, settings.concat())?;
    let done = |arguments: &'static [&'static str], input: &'static str| async move {
        expect(&posse.run(arguments, input, Death::default()).await?, 0)
    };
    done(&["run", "--key", "once", "--label", "first", "task-a"], "").await?;
    done(&["run", "--budget", "cost=1", "tree"], "").await?;
    done(&["chat"], "hello\n").await?;
    done(&["run", "--background", "--priority", "3", "task-b"], "").await?;
    let kill = Death { blow: Some((Moment::Event(SEEN), Blow::Kill)), ..Death::default() };
    let killed = posse.run(&["run", "--stream-json", "--timeout", "10m", "long"], "", kill).await?;
    if !killed.was_killed() {
        return Err(io::Error::other(format!("it was not killed: {killed:?}")));
    }
    // Without webhooks, so that what is read stays the same.
    std::fs::write(path, "")?;
    let files = files(posse.folder())?;
    let list = posse.run(&["runs", "list", "--all", "--json"], "", Death::default()).await?;
    put_back(posse.folder(), &files)?;
    let list: Value = serde_json::from_str(&list.stdout).map_err(io::Error::other)?;
    let runs = list.as_array().into_iter().flatten();
    Ok(runs.filter_map(|run| run["run"].as_str().map(str::to_owned)).collect())
}

fn expect(exit: &Exit, code: i32) -> io::Result<()> {
    match exit.code() {
        Some(found) if found == code => Ok(()),
        _ => Err(io::Error::other(format!("expected {code}: {exit:?}"))),
    }
}

fn script() -> Script {
    let bash = |command: &str| Reply::tool_call("Bash", json!({"command": command}));
    let task = json!({"description": "d", "prompt": "look", "subagent_type": "explore"});
    let mut long = Conversation::when(When::any().first_user_contains("long"));
    for turn in 0..TURNS {
        long = long.reply(bash(&format!("echo turn {turn}")));
    }
    Script::new()
        .conversation(long.reply(bash("sleep 600")))
        .conversation(
            Conversation::when(When::any().first_user_contains("task-a"))
                .reply(bash("echo one; echo two"))
                .reply(Reply::text("The answer is 42.")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("tree"))
                .reply(Reply::tool_call("Task", task))
                .reply(Reply::text("It has looked.")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("Nothing to do.")))
}

/// The files of the database.
fn files(folder: &Path) -> io::Result<Files> {
    let mut files = Vec::new();
    for path in database_files(folder)? {
        let relative = path.strip_prefix(folder).map_err(io::Error::other)?.to_owned();
        files.push((relative, std::fs::read(&path)?));
    }
    Ok(files)
}

fn database_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if !name.is_some_and(|name| name.starts_with(DATABASE) && !name.ends_with("-scratch")) {
            continue;
        }
        match path.is_dir() {
            true => {
                for inner in std::fs::read_dir(path)? {
                    files.push(inner?.path());
                }
            }
            false => files.push(path),
        }
    }
    Ok(files)
}

/// Puts everything back as it was.
fn put_back(folder: &Path, files: &Files) -> io::Result<()> {
    for path in database_files(folder)? {
        std::fs::remove_file(path)?;
    }
    for (relative, bytes) in files {
        let path = folder.join(relative);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}
