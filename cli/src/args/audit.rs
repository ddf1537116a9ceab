//! Options of `posse audit`.

use super::number::whole;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use posse::audit::AuditKind;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum AuditVerb {
    /// List grants, allowed, asked and denied calls, results and trust decisions, newest last
    List {
        #[command(flatten)]
        filters: AuditFilters,
        /// At most this many, the newest [default: 100; with --json: all]
        #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000>)]
        limit: Option<u32>,
    },
    /// Export the audit log as tamper-evident JSON lines
    Export {
        #[command(flatten)]
        filters: AuditFilters,
        /// Write to this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Verify that no entry was changed or lost; name the first one that was
    Verify {
        /// An exported file [default: all runs of the database and the trust log]
        file: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct AuditFilters {
    /// Only this run: id, 4 or more characters of it, or label
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only entries of this kind; may be repeated
    #[arg(long, value_name = "WHAT", value_parser = kinds())]
    pub decision: Vec<AuditKind>,
    /// Only entries since this time: 7d, 12h, 2026-11-01 or 2026-11-01T08:00, local time
    #[arg(long, value_name = "WHEN", value_parser = posse::moment::moment)]
    pub since: Option<u64>,
}

fn kinds() -> impl TypedValueParser<Value = AuditKind> {
    let words = AuditKind::ALL.map(AuditKind::as_str);
    PossibleValuesParser::new(words).map(|word| {
        let meant = AuditKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        meant.unwrap_or(AuditKind::Denied)
    })
}
