//! Figure 5: from opening the store to having claimed all that was unfinished, with many and
//! with very many finished runs beside it.

use super::Result;
use super::line::{Goal, Line, Samples, note, seconds, times};
use super::process::Process;
use super::spine::Effort;
use std::path::{Path, PathBuf};

/// Runs that were at work when the process died.
const UNFINISHED: usize = 10_000;

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let some = fill(folder.path(), 100_000)?;
    if effort == Effort::Quick {
        let took = (0..effort.rounds()).map(|_| claim(&some)).collect::<Result<_>>()?;
        Line {
            name: "recovery: 10,000 of 110,000".to_owned(),
            posse: Samples::new(took).shown(seconds),
            raw: "–".to_owned(),
            ratio: "–".to_owned(),
            goal: Goal::None,
        }
        .print();
        return Ok(());
    }
    let many = fill(folder.path(), 1_000_000)?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let few = claim(&some)?;
        rounds.push((claim(&many)?, few));
    }
    let ratio = Samples::ratios(&rounds);
    Line {
        name: "recovery: 10,000 of 1,010,000".to_owned(),
        posse: Samples::new(rounds.iter().map(|round| round.0).collect()).shown(seconds),
        raw: format!(
            "{} of 110,000",
            Samples::new(rounds.iter().map(|round| round.1).collect()).shown(seconds)
        ),
        ratio: ratio.shown(times),
        goal: Goal::at_most("close to 1 (≤ 1.25)", ratio.median(), 1.25),
    }
    .print();
    Ok(())
}

fn fill(folder: &Path, finished: usize) -> Result<PathBuf> {
    let database = folder.join(format!("{finished}.db"));
    // First what has ended, closed well; then what was at work, left behind.
    for (finished, unfinished) in [(finished, 0), (0, UNFINISHED)] {
        let mut filling = Process::part(&[
            "fill".to_owned(),
            format!("--db={}", database.display()),
            format!("--finished={finished}"),
            format!("--unfinished={unfinished}"),
        ])?;
        filling.hear::<String>()?;
        filling.wait()?;
    }
    let size = std::fs::metadata(&database)?.len() >> 20;
    note(&format!("a database with {finished} finished runs: {size} MiB"));
    Ok(database)
}

fn claim(database: &Path) -> Result<f64> {
    let mut claiming = Process::part(&[
        "claim".to_owned(),
        format!("--db={}", database.display()),
        format!("--runs={UNFINISHED}"),
    ])?;
    let took = claiming.hear()?;
    claiming.wait()?;
    Ok(took)
}
