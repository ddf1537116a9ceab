//! Options of `posse audit`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use posse::audit::AuditKind;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum AuditVerb {
    /// List what was granted, allowed, asked, denied, done and trusted, the newest last
    List(AuditFilters),
    /// Write it as lines of JSON of which none can be changed or left out unseen
    Export {
        #[command(flatten)]
        filters: AuditFilters,
        /// Into this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check that nothing was changed or lost, and name the first record that was
    Verify {
        /// An export [default: all runs of the database, and the log of trust]
        file: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct AuditFilters {
    /// Only of this run: its id, a few of its first or last characters, or its label
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only of runs of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only these; may be repeated
    #[arg(long, value_name = "WHAT", value_parser = kinds())]
    pub decision: Vec<AuditKind>,
    /// Only from then on, such as 7d, 12h or 2026-11-01 (UTC)
    #[arg(long, value_name = "WHEN", value_parser = crate::time::moment)]
    pub since: Option<u64>,
}

fn kinds() -> impl TypedValueParser<Value = AuditKind> {
    let words = AuditKind::ALL.map(AuditKind::as_str);
    PossibleValuesParser::new(words).map(|word| {
        let meant = AuditKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        meant.unwrap_or(AuditKind::Denied)
    })
}
