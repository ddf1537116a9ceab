//! Definitions of agents, from files to a catalog.

use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, seconds, written};
use crate::bench::part::{Process, ready};
use crate::bench::{Part, Result};
use posse::LiveCatalog;
use posse::agents::{Level, Sources};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const FILES: usize = 1_000;
/// Seconds that loading may take.
const MOST: f64 = 0.2;

/// Loads the definitions in a folder.
#[derive(Serialize, Deserialize)]
pub struct Define {
    folder: PathBuf,
}

/// How long it took, in seconds.
#[derive(Serialize, Deserialize)]
pub struct Defined {
    /// Reading the files, and nothing more.
    read: f64,
    /// Loading the catalog.
    loaded: f64,
    /// Looking whether anything has changed, when nothing has.
    looked: f64,
    agents: usize,
}

impl Define {
    pub async fn run(self) -> Result<Defined> {
        ready().await?;
        let began = Instant::now();
        let mut bytes = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            bytes += std::fs::read(entry?.path())?.len();
        }
        std::hint::black_box(bytes);
        let read = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let live = LiveCatalog::load(Sources {
            user_folders: vec![self.folder.clone()],
            ..Sources::default()
        });
        let loaded = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let catalog = live.refresh();
        let looked = began.elapsed().as_secs_f64();
        if let Some(problem) = catalog.problems().iter().find(|it| it.level == Level::Error) {
            return Err(problem.reason.clone().into());
        }
        let agents = catalog.entries().iter().filter(|entry| entry.path.is_some()).count();
        Ok(Defined { read, loaded, looked, agents })
    }
}

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fill(folder.path())?;
    let rounds = effort.rounds(|| {
        let folder = folder.path().to_owned();
        let defined: Defined = Process::report(&Part::Define(Define { folder }))?;
        match defined.agents {
            FILES => Ok(defined),
            found => Err(format!("{found} of {FILES} agents were found").into()),
        }
    })?;
    let line = |what: &str, of: fn(&Defined) -> f64| {
        let rounds: Vec<_> = rounds.iter().map(|round| (of(round), round.read)).collect();
        let name = format!("definitions: {} files, {what}", written(FILES));
        Line::compared(name, &rounds, seconds).against("to read them")
    };
    let median = Samples::new(rounds.iter().map(|round| round.loaded)).median();
    line("loaded", |round| round.loaded).goal("≤ 200 ms", median <= MOST).print();
    line("looked at again", |round| round.looked).print();
    Ok(())
}

/// Fills `folder` with definitions as people write them, about 2 KB each.
fn fill(folder: &Path) -> Result<()> {
    let rule = "- Look at what the change touches, say what you found, and name file and line.\n";
    let instructions = rule.repeat(24);
    // A file that is quite new may change again within the same tick of the clock, so these are older.
    let then = SystemTime::now() - Duration::from_secs(60);
    for number in 0..FILES {
        let path = folder.join(format!("reviewer-{number}.md"));
        std::fs::write(
            &path,
            format!(
                "---\nname: reviewer-{number}\n\
                 description: Reviews part {number} of the code. Examples: after a change, before a merge\n\
                 tools: Read, Grep, Glob, List\nmodel: inherit\nmaxTurns: 30\ncolor: cyan\n---\n\n\
                 You review part {number}.\n\n{instructions}"
            ),
        )?;
        std::fs::File::options().write(true).open(&path)?.set_modified(then)?;
    }
    Ok(())
}
