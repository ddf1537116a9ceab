//! Options of `posse runs`.

use super::EXIT_CODES;
use super::selection::{Choice, Filters, Targets};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum RunsVerb {
    /// List runs, the newest first; those that other runs have started only when asked for
    List(ListOptions),
    /// Show a run and its result
    Show {
        /// Its id, a few of its first or last characters, or its label
        run: String,
    },
    /// Show a run with all that stand below it
    Tree(TreeOptions),
    /// Print the events of a run
    Log {
        /// Its id, a few of its first or last characters, or its label
        run: String,
        /// Only events after this position
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
    },
    /// Follow a run until it ends
    #[command(after_help = EXIT_CODES)]
    Watch {
        /// Its id, a few of its first or last characters, or its label
        run: String,
    },
    /// Say something to runs, which read it before their next step
    #[command(visible_alias = "steer", override_usage = SEND)]
    Send {
        /// Which: ids, a few of their first or last characters, or labels; then what to say
        #[arg(value_names = ["RUN", "TEXT"], num_args = 1.., required = true)]
        words: Vec<String>,
        /// They read it when their present turn is over
        #[arg(long)]
        later: bool,
        #[command(flatten)]
        choice: Choice,
    },
    /// Remove worktrees that crashes have left of ended runs; what was changed stays on a branch
    Clean(CleanOptions),
    /// Show what runs ask a person
    Questions {
        /// Only of this run and the others of its tree
        run: Option<String>,
    },
    /// Answer what a run asks
    Answer(AnswerOptions),
    /// Stop runs and all below them, and say whom that reached
    Cancel(Targets),
    /// Let runs and all below them rest after their present step, until they are resumed
    Pause {
        #[command(flatten)]
        targets: Targets,
        /// Not those below them
        #[arg(long)]
        alone: bool,
    },
    /// Go on with a run that was paused or interrupted, waits or has ended
    #[command(after_help = EXIT_CODES)]
    Resume {
        /// Its id, a few of its first or last characters, or its label
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// What to say to it; needed when it has ended
        text: Option<String>,
        /// Go on with every unfinished run that the options below select; with paused and interrupted
        /// ones only if `--status paused,interrupted` says so
        #[arg(long, conflicts_with_all = ["run", "text", "alone"])]
        all: bool,
        /// Of a paused run: those below it stay paused
        #[arg(long)]
        alone: bool,
        #[command(flatten)]
        filters: Filters,
    },
    /// Check that no event was changed or lost
    Verify {
        /// Only of this run: its id, a few of its first or last characters, or its label
        run: Option<String>,
    },
    /// Put runs away that have ended: nothing can be said to them any more
    Archive {
        /// Their ids, or a few of their first or last characters
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Remove the logs of runs that ended long ago; what they cost is kept
    Prune(PruneOptions),
    /// Write the events of a run as lines of JSON
    Export {
        /// Its id, a few of its first or last characters, or its label
        run: String,
        /// Into this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

const SEND: &str = "posse runs send [OPTIONS] <RUN>... <TEXT>
       posse runs send [OPTIONS] --all <TEXT>";

#[derive(Args)]
pub struct PruneOptions {
    /// Only of runs that ended so long ago, such as 30d, 2w or 12h
    #[arg(long, value_name = "AGE", value_parser = crate::time::age_with_unit)]
    pub older_than: std::time::Duration,
    /// Say which, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub struct ListOptions {
    /// Also runs that other runs have started; they are listed as well when an agent, a label, a
    /// model, a status or an outcome is asked for
    #[arg(long, conflicts_with_all = ["children_of", "tree"])]
    pub all: bool,
    #[command(flatten)]
    pub filters: Filters,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Only runs older than this one: the next page
    #[arg(long, value_name = "RUN")]
    pub before: Option<String>,
}

#[derive(Args)]
pub struct TreeOptions {
    /// Its id, a few of its first or last characters, or its label
    pub run: String,
    /// Only so many levels below it
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// At most this many runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Only runs that stand after this one: the next page
    #[arg(long, value_name = "RUN")]
    pub after: Option<String>,
}

#[derive(Args)]
pub struct CleanOptions {
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
#[group(skip)]
pub struct AnswerOptions {
    /// Its id, a few of its first or last characters, or its label
    pub run: String,
    /// Which call, by the first characters of its id, if it asks about several
    #[arg(long, value_name = "CALL")]
    pub call: Option<String>,
    /// Only if this is what is asked: the beginning of the digest that `runs questions` shows
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Let it run, this once
    #[arg(long, group = "answer")]
    pub once: bool,
    /// Let it run, and what is like it for the rest of the run
    #[arg(long, group = "answer")]
    pub for_run: bool,
    /// Let it run, and what is like it from now on: the rule is written to your settings
    #[arg(long, group = "answer")]
    pub always: bool,
    /// Do not let it run; may say why
    #[arg(long, group = "answer", value_name = "WHY", num_args = 0..=1, default_missing_value = "")]
    pub no: Option<String>,
}
