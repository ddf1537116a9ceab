//! `posse doctor --rebuild` and `--restore`: rebuilds a database from its logs, or replaces it with a backup.

use super::super::Common;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::store::{self, Filter, Mended, Options, StoreError, Unfinished};
use posse::{Error, Extent, LiveCatalog};
use serde_json::json;
use std::path::Path;

/// The name of this command in the logs of the runs that it pauses.
const BY: &str = "posse doctor";

pub async fn rebuild(common: &Common) -> Result<Code, Failure> {
    if !common.has_database()? {
        let database = common.database()?;
        return Err(Failure::usage(format!("there is no database {database} yet")));
    }
    let database = common.database()?;
    let options = Options::new(database.file("posse doctor --rebuild")?);
    let mended = store::rebuild(&options).await.map_err(failure)?;
    let runs = format::count(mended.runs, "run");
    let mut what = format!("rebuilt: {runs} restored from the logs");
    for (count, kind) in [(mended.damaged, "damaged log"), (mended.lost, "unreadable row")] {
        if count > 0 {
            let left = match (kind, count) {
                ("damaged log", 1) => "kept as it was",
                ("damaged log", _) => "kept as they were",
                _ => "left out",
            };
            what = format!("{what}; {} {left}", format::count(count, kind));
        }
    }
    tell(common, &mended, &what).await
}

pub async fn restore(common: &Common, backup: &Path) -> Result<Code, Failure> {
    let database = common.database()?;
    let options = Options::new(database.file("posse doctor --restore")?);
    let mended = store::restore(&options, backup).await.map_err(failure)?;
    tell(common, &mended, &format!("restored from {}", backup.display())).await
}

/// The error for a failed repair, with advice.
fn failure(error: StoreError) -> Failure {
    let hint = match &error {
        StoreError::Unusable { .. } => {
            Some("`posse daemon stop` stops the daemon; check the path of the backup, and of --db")
        }
        _ => None,
    };
    let failure = Failure::from(Error::Store(error));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Prints what was done. If the database has lost events, its runs are paused, because they might
/// repeat what they have done.
async fn tell(common: &Common, mended: &Mended, what: &str) -> Result<Code, Failure> {
    let paused = if mended.forgets { pause(common).await? } else { 0 };
    if common.global.json {
        print::json_pretty(&json!({
            "database": common.database()?.to_string(), "kept": mended.kept, "rebuilt": mended.runs,
            "damaged": mended.damaged, "lost": mended.lost, "paused": paused,
        }))?;
        return Ok(Code::Done);
    }
    print::line(format!("{} {what}", common.database()?))?;
    if let Some(kept) = &mended.kept {
        print::line(format!("the old one is kept: {}", kept.display()))?;
    }
    if paused > 0 {
        print::line(format!(
            "{} paused, because the last steps may be missing. `posse runs log RUN` shows how far a \
             run was; `posse runs resume RUN` continues it",
            format::count(paused, "unfinished run")
        ))?;
    }
    Ok(Code::Done)
}

/// Pauses every run that has not ended, and returns how many.
async fn pause(common: &Common) -> Result<u64, Failure> {
    let agents = LiveCatalog::from(posse::AgentCatalog::built_in());
    let runtime = common.runtime(&common.user_config()?, agents).await?;
    let paused = async {
        let filter = Filter { unfinished: Unfinished::Only, limit: 1_000_000, ..Filter::default() };
        let mut paused = 0;
        for row in runtime.list(&filter).await? {
            match runtime.pause(row.id, BY, Extent::Alone).await {
                Ok(_) => paused += 1,
                // The run is paused already, or cannot continue anyway.
                Err(Error::NotNow { .. } | Error::Store(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(paused)
    };
    let paused = paused.await;
    runtime.shutdown().await;
    Ok(paused?)
}
