//! Figure 5: definitions of agents, from files to a catalog.

use super::written;
use crate::bench::Result;
use crate::bench::line::{Goal, Line, Samples, say, seconds, times};
use crate::bench::process::Process;
use crate::bench::spine::Effort;
use posse::LiveCatalog;
use posse::agents::{Level, Sources};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

const FILES: usize = 1_000;
/// Seconds that it may take.
const MOST: f64 = 0.2;

/// Loads the definitions in a folder
#[derive(clap::Args)]
pub struct Define {
    /// The folder
    #[arg(long)]
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
    pub fn run(self) -> Result<()> {
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
        say(&serde_json::to_string(&Defined { read, loaded, looked, agents })?);
        Ok(())
    }
}

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fill(folder.path())?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let mut part =
            Process::part(&["define".to_owned(), format!("--folder={}", folder.path().display())])?;
        let defined: Defined = part.hear()?;
        part.wait()?;
        if defined.agents != FILES {
            return Err(format!("{} of {FILES} agents were found", defined.agents).into());
        }
        rounds.push(defined);
    }
    for (what, goal) in [("loaded", Some(MOST)), ("looked at again", None)] {
        let of = |round: &Defined| if goal.is_some() { round.loaded } else { round.looked };
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|round| (of(round), round.read)).collect();
        let samples = Samples::new(pairs.iter().map(|pair| pair.0).collect());
        let goal =
            goal.map_or(Goal::None, |most| Goal::at_most("≤ 200 ms", samples.median(), most));
        Line {
            name: format!("definitions: {} files, {what}", written(FILES)),
            posse: samples.shown(seconds),
            raw: format!(
                "{} to read them",
                Samples::new(pairs.iter().map(|pair| pair.1).collect()).shown(seconds)
            ),
            ratio: Samples::ratios(&pairs).shown(times),
            goal,
        }
        .print();
    }
    Ok(())
}

/// Fills `folder` with definitions as people write them, about 2 KB each.
fn fill(folder: &Path) -> Result<()> {
    let rule = "- Look at what the change touches, say what you found, and name file and line.\n";
    let instructions = rule.repeat(24);
    // Written a while ago: what is quite new may change within the same tick of the clock.
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
