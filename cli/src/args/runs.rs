//! Options of `posse runs`.

use super::EXIT_CODES;
use super::number::whole;
use super::selection::{Choice, Filters, Targets};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum RunsVerb {
    /// List runs, newest first, without subagents
    #[command(alias = "ls")]
    List(ListOptions),
    /// Show a run and its result
    Show {
        /// The run: id, 4 or more characters of it, or label
        run: String,
    },
    /// Show a run and all its subagents as a tree
    Tree(TreeOptions),
    /// Print the events of a run
    Log {
        /// The run: id, 4 or more characters of it, or label
        run: String,
        /// Only events after this position
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
    },
    /// Follow a run until it ends, without executing it
    #[command(after_help = EXIT_CODES)]
    Watch {
        /// The run: id, 4 or more characters of it, or label
        run: String,
    },
    /// Send a message to runs; they read it before their next step
    #[command(visible_alias = "steer", override_usage = SEND)]
    Send {
        /// The runs, each by id, 4 or more characters of it, or label; then the message
        #[arg(value_names = ["RUN", "TEXT"], num_args = 1.., required = true)]
        words: Vec<String>,
        /// Deliver the message when the run would otherwise wait or end
        #[arg(long)]
        later: bool,
        #[command(flatten)]
        choice: Choice,
    },
    /// List the open questions of runs, and how to answer each
    Questions {
        /// Only questions of this run and of the other runs of its tree
        run: Option<String>,
    },
    /// Answer an open question of a run
    Answer(AnswerOptions),
    /// Cancel runs and their subagents
    #[command(override_usage = CANCEL)]
    Cancel(Targets),
    /// Pause runs and their subagents after their current step
    #[command(override_usage = PAUSE)]
    Pause {
        #[command(flatten)]
        targets: Targets,
        /// Do not pause their subagents
        #[arg(long)]
        alone: bool,
    },
    /// Continue a run that crashed or was paused or interrupted; with TEXT, also one that waits or
    /// has ended
    #[command(after_help = EXIT_CODES, override_usage = RESUME)]
    Resume {
        /// The run: id, 4 or more characters of it, or label
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// A message for the run; required if it waits or has ended
        text: Option<String>,
        /// Continue all unfinished runs; the options below select some of them. To continue paused and
        /// interrupted runs, add `--status paused,interrupted`
        #[arg(long, conflicts_with_all = ["run", "text", "alone"])]
        all: bool,
        /// Leave the subagents of a paused run paused
        #[arg(long)]
        alone: bool,
        #[command(flatten)]
        filters: Filters,
    },
    /// Archive ended runs; you can no longer resume them
    Archive {
        /// The runs, each by id, 4 or more characters of it, or label
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Delete the logs of runs that ended long ago; keep their costs
    Prune(PruneOptions),
    /// Remove worktrees of ended runs; changes stay on a branch
    Clean(CleanOptions),
    /// Verify that no event was changed or lost
    Verify {
        /// Only this run: id, 4 or more characters of it, or label
        run: Option<String>,
    },
    /// Bring the changes of a run that was started with --repo into a branch of the repository here
    Fetch {
        /// The run: id, 4 or more characters of it, or label
        run: String,
        /// The name of the branch; it must be new here [default: posse/RUN]
        #[arg(long, value_name = "NAME")]
        branch: Option<String>,
    },
    /// Export the events of a run as JSON lines
    Export {
        /// The run: id, 4 or more characters of it, or label
        run: String,
        /// Write to this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

const CANCEL: &str = "posse runs cancel [OPTIONS] <RUN>...
       posse runs cancel [OPTIONS] --all";

const PAUSE: &str = "posse runs pause [OPTIONS] <RUN>...
       posse runs pause [OPTIONS] --all";

const RESUME: &str = "posse runs resume [OPTIONS] <RUN> [TEXT]
       posse runs resume [OPTIONS] --all";

const SEND: &str = "posse runs send [OPTIONS] <RUN>... <TEXT>
       posse runs send [OPTIONS] --all <TEXT>";

#[derive(Args)]
pub struct PruneOptions {
    /// Only runs that ended at least this long ago, such as 30d, 2w or 12h
    #[arg(long, value_name = "AGE", value_parser = posse::moment::age)]
    pub older_than: std::time::Duration,
    /// List the runs, but delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation; required without a terminal
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Args)]
pub struct ListOptions {
    /// Include subagents; so do the filters --agent, --label, --model, --status, --outcome and
    /// --background
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
    /// The run: id, 4 or more characters of it, or label
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
    /// List the worktrees, but remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove worktrees with files that are on no branch; these files are lost
    #[arg(long, conflicts_with = "dry_run")]
    pub discard: bool,
}

#[derive(Args)]
#[group(skip)]
pub struct AnswerOptions {
    /// The run: id, 4 or more characters of it, or label
    pub run: String,
    /// The call that you answer for, by the first characters of its id; needed if the run asks about
    /// several
    #[arg(long, value_name = "CALL")]
    pub call: Option<String>,
    /// Answer only if the question still has this digest; `runs questions` shows it
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Allow this call once
    #[arg(long, group = "answer")]
    pub once: bool,
    /// Allow this call, and similar calls for the rest of the run
    #[arg(long, group = "answer")]
    pub for_run: bool,
    /// Allow this call, and similar calls from now on: adds a rule to your settings
    #[arg(long, group = "answer")]
    pub always: bool,
    /// Deny this call, with an optional reason
    #[arg(long, group = "answer", value_name = "WHY", num_args = 0..=1, default_missing_value = "")]
    pub no: Option<String>,
}
