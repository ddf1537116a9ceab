//! `posse trust`: the folders that you trust, and their trusted content.

mod changed;
mod review;

use super::asking::agrees;
use super::{Common, folder};
use crate::args::{TrustOptions, TrustVerb};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::table::{Column, Table};
use crate::{format, print};
use posse::trust::{Act, FilesToTrust, TrustError, TrustLog, TrustStatus};
use review::Review;
use serde::Serialize;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

pub fn run(common: &Common, options: &TrustOptions) -> Result<Code, Failure> {
    match &options.verb {
        None => trust(common, options),
        Some(TrustVerb::List) => list(common),
        Some(TrustVerb::Remove { folder }) => remove(common, folder.as_ref()),
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        let message = error.to_string();
        match error {
            TrustError::Unusable { .. } => Failure { code: Code::Store, message, hint: None },
            TrustError::Damaged { .. } => Failure { code: Code::Store, message, hint: None }
                .hint("if you do not know why, remove the file and the one beside it that ends in `.head`, and trust your folders again"),
        }
    }
}

impl Common {
    /// The log of trust decisions.
    pub fn trust_log(&self) -> Result<TrustLog, Failure> {
        let path = self.trust.log.as_ref().ok_or_else(|| {
            Failure::usage("no folder for trust decisions: neither HOME nor XDG_STATE_HOME is set")
        })?;
        Ok(TrustLog::at(path))
    }
}

fn trust(common: &Common, options: &TrustOptions) -> Result<Code, Failure> {
    let folder = folder(options.folder.as_ref())?;
    let log = common.trust_log()?;
    let found = FilesToTrust::around(&folder)
        .map_err(|why| Failure::usage(format!("{} cannot be trusted: {why}", folder.display())))?;
    log.decisions()?;
    let new: Vec<&FilesToTrust> = found
        .iter()
        .filter(|brought| !common.trust.standing(&brought.folder).is_trusted())
        .collect();
    let review = Review::of(common, &folder, &new)?;
    let is_agreed = !new.is_empty() && (options.yes || asked(common, &review)?);
    if is_agreed {
        for (brought, shown) in new.iter().zip(&review.folders) {
            log.trust(brought, &shown.lines())?;
        }
    }
    if common.global.json {
        let is_trusted = is_agreed || new.is_empty() && !found.is_empty();
        print::json_pretty(&json!({"trusted": is_trusted, "folders": review.folders}))?;
    }
    let told = folder.display();
    match (is_agreed, new.is_empty(), found.is_empty()) {
        (true, ..) => note(common, "trusted; Posse asks again after the next change"),
        (_, true, true) => note(common, format!("{told} contains nothing that needs trust")),
        (_, true, _) => note(common, format!("{told} is trusted already, as it is")),
        _ if options.yes || std::io::stdin().is_terminal() => note(common, "not trusted"),
        _ => {
            return Err(Failure::usage(
                "not trusted: this needs a confirmation, and there is no terminal",
            )
            .hint("review the list above, then run again with --yes"));
        }
    }
    Ok(Code::Done)
}

/// Shows what would be trusted, and asks for confirmation if a person can answer.
fn asked(common: &Common, review: &Review) -> Result<bool, Failure> {
    if !common.global.json {
        review.print()?;
    }
    if !std::io::stdin().is_terminal() || common.global.json {
        return Ok(false);
    }
    agrees("Trust exactly this?")
        .map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))
}

/// A trusted folder in the output of `--json`.
#[derive(Serialize)]
struct Listed {
    folder: PathBuf,
    standing: TrustStatus,
    at: String,
    digest: String,
    brought: Vec<String>,
}

fn list(common: &Common) -> Result<Code, Failure> {
    let trusted = common.trust_log()?.trusted()?;
    let listed: Vec<Listed> = trusted
        .into_values()
        .map(|decision| Listed {
            standing: common.trust.standing(&decision.folder),
            folder: decision.folder,
            at: format::timestamp(decision.at),
            digest: decision.digest,
            brought: decision.brought,
        })
        .collect();
    if common.global.json {
        print::json_pretty(&listed)?;
        return Ok(Code::Done);
    }
    let row = |Listed { folder, standing, at, .. }: &Listed| {
        let folder = clean_line(&folder.display().to_string(), 400);
        [at.clone(), standing.to_string(), folder]
    };
    let columns = [
        Column::text("SINCE").leaves(1),
        Column::text("STATE"),
        Column::text("FOLDER").cut(30, 10),
    ];
    Table { columns, rows: listed.iter().map(row).collect() }.print(common)?;
    if listed.is_empty() {
        note(common, "you trust no folder; `posse trust FOLDER` shows what a folder contains");
    }
    Ok(Code::Done)
}

fn remove(common: &Common, named: Option<&PathBuf>) -> Result<Code, Failure> {
    let log = common.trust_log()?;
    let trusted = log.trusted()?;
    // For a deleted folder, use the recorded path.
    let folder = folder(named).or_else(|failure| match named {
        Some(path) if trusted.contains_key(path) => Ok(path.clone()),
        _ => Err(failure),
    })?;
    let around = posse::trust::repository(&folder);
    let removed: Vec<&Path> =
        around.iter().map(PathBuf::as_path).filter(|it| trusted.contains_key(*it)).collect();
    if removed.is_empty() {
        return Err(Failure::usage(format!("{} is not trusted", folder.display()))
            .hint("`posse trust list` shows which folders are"));
    }
    for folder in &removed {
        log.record(Act::Removed, folder, "", &[])?;
    }
    if common.global.json {
        print::json_pretty(&json!({"removed": removed}))?;
    }
    for folder in removed {
        note(
            common,
            format!("{} is no longer trusted", clean_line(&folder.display().to_string(), 400)),
        );
    }
    Ok(Code::Done)
}

fn note(common: &Common, text: impl std::fmt::Display) {
    if !common.global.quiet && !common.global.json {
        print::note(text);
    }
}
