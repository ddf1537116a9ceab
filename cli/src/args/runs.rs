//! Options of `posse runs`.

use super::EXIT_CODES;
use super::number::whole;
use super::selection::{Choice, Filters, Targets};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum RunsVerb {
    /// List runs, the newest first, without subagents unless you ask for them
    List(ListOptions),
    /// Show a run and its result
    Show {
        /// The run: id, part of the id, or label
        run: String,
    },
    /// Show a run with all its subagents as a tree
    Tree(TreeOptions),
    /// Print the events of a run
    Log {
        /// The run: id, part of the id, or label
        run: String,
        /// Only events after this position
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
    },
    /// Follow a run until it ends
    #[command(after_help = EXIT_CODES)]
    Watch {
        /// The run: id, part of the id, or label
        run: String,
    },
    /// Send a message to runs, which read it before their next step
    #[command(visible_alias = "steer", override_usage = SEND)]
    Send {
        /// The runs (ids, parts of ids, or labels), then the message
        #[arg(value_names = ["RUN", "TEXT"], num_args = 1.., required = true)]
        words: Vec<String>,
        /// Let them read it after their current turn
        #[arg(long)]
        later: bool,
        #[command(flatten)]
        choice: Choice,
    },
    /// Remove worktrees that ended runs left behind; changes stay on a branch
    Clean(CleanOptions),
    /// List questions that runs are waiting for an answer to
    Questions {
        /// Only questions of this run and the others of its tree
        run: Option<String>,
    },
    /// Answer a question of a run
    Answer(AnswerOptions),
    /// Stop runs and their subagents
    Cancel(Targets),
    /// Pause runs and their subagents after their current step
    Pause {
        #[command(flatten)]
        targets: Targets,
        /// Do not pause their subagents
        #[arg(long)]
        alone: bool,
    },
    /// Continue a run that was paused or interrupted, or that waits or has ended
    #[command(after_help = EXIT_CODES)]
    Resume {
        /// The run: id, part of the id, or label
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// A message for it; required if the run has ended
        text: Option<String>,
        /// Continue every unfinished run that the options below select; paused and interrupted ones
        /// only with `--status paused,interrupted`
        #[arg(long, conflicts_with_all = ["run", "text", "alone"])]
        all: bool,
        /// Leave the subagents of a paused run paused
        #[arg(long)]
        alone: bool,
        #[command(flatten)]
        filters: Filters,
    },
    /// Verify that no event was changed or lost
    Verify {
        /// Only this run: id, part of the id, or label
        run: Option<String>,
    },
    /// Archive finished runs; they can no longer be resumed
    Archive {
        /// The runs: ids, parts of ids, or labels
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Delete the logs of runs that ended long ago; their costs are kept
    Prune(PruneOptions),
    /// Export the events of a run as JSON lines
    Export {
        /// The run: id, part of the id, or label
        run: String,
        /// Write to this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

const SEND: &str = "posse runs send [OPTIONS] <RUN>... <TEXT>
       posse runs send [OPTIONS] --all <TEXT>";

#[derive(Args)]
pub struct PruneOptions {
    /// Only runs that ended at least this long ago, such as 30d, 2w or 12h
    #[arg(long, value_name = "AGE", value_parser = posse::moment::age)]
    pub older_than: std::time::Duration,
    /// Only list them, delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask; without a terminal nothing is asked either
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Args)]
pub struct ListOptions {
    /// Include subagents. Filters by agent, label, model, status or outcome include them, too
    #[arg(long, conflicts_with_all = ["children_of", "tree"])]
    pub all: bool,
    #[command(flatten)]
    pub filters: Filters,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<1, 10_000>)]
    pub limit: u32,
    /// Only runs older than this one, for the next page
    #[arg(long, value_name = "RUN")]
    pub before: Option<String>,
}

#[derive(Args)]
pub struct TreeOptions {
    /// The run: id, part of the id, or label
    pub run: String,
    /// Show at most this many levels of subagents
    #[arg(long, value_name = "N", value_parser = whole::<0, { u32::MAX }>)]
    pub depth: Option<u32>,
    /// At most this many runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<1, { u32::MAX }>)]
    pub limit: u32,
    /// Only runs after this one, for the next page
    #[arg(long, value_name = "RUN")]
    pub after: Option<String>,
}

#[derive(Args)]
pub struct CleanOptions {
    /// Only list them, remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove worktrees with files that are on no branch; these files are lost
    #[arg(long, conflicts_with = "dry_run")]
    pub discard: bool,
}

#[derive(Args)]
#[group(skip)]
pub struct AnswerOptions {
    /// The run: id, part of the id, or label
    pub run: String,
    /// Answer about this call (first characters of its id), if it asks about several
    #[arg(long, value_name = "CALL")]
    pub call: Option<String>,
    /// Answer only if the question still has this digest, as `runs questions` shows it
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Allow it this once
    #[arg(long, group = "answer")]
    pub once: bool,
    /// Allow it, and similar calls for the rest of the run
    #[arg(long, group = "answer")]
    pub for_run: bool,
    /// Allow it, and similar calls from now on: writes a rule to your settings
    #[arg(long, group = "answer")]
    pub always: bool,
    /// Deny it, with an optional reason
    #[arg(long, group = "answer", value_name = "WHY", num_args = 0..=1, default_missing_value = "")]
    pub no: Option<String>,
}
