//! The command line: names, help, values. No logic.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Runs LLM agents on your files, durably
///
/// A run is a log: kill posse at any moment, start it again, and the run goes on where it
/// stopped, repeating nothing.
#[derive(Parser)]
#[command(name = "posse", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 completed · 1 failed · 2 bad usage · 3 cancelled · \
4 timed out · 5 stopped at a limit · 6 database unusable or disk full · 130 interrupted (resumable)";

#[derive(Args)]
pub struct Global {
    /// Keep runs in this database [default: posse.db in the user's data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an agent on a task and print its answer
    Run(RunOptions),
    /// Talk with an agent
    Chat(ChatOptions),
    /// List, follow and control runs
    #[command(subcommand)]
    Runs(RunsVerb),
    /// Show the settings in force and where each came from
    Config,
    /// Watch a scripted agent work on this folder, without a key
    Demo(DemoOptions),
    /// Serve a scripted model over HTTP, for tests
    FakeModel(FakeModelOptions),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Args)]
pub struct AgentOptions {
    /// Which agent [default: general-purpose]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Which model, as vendor/name or a short name such as `sonnet`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Stop after this many model calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// Stop before more than this many dollars are spent
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Stop after this much time at work, such as 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = posse::config::parse_duration)]
    pub timeout: Option<u64>,
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct RunOptions {
    /// What to do; `-`, or nothing when piped, reads it from standard input
    #[arg(conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// Read what to do from a file
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    #[command(flatten)]
    pub agent: AgentOptions,
    /// Print every event and delta as a line of JSON while it happens
    #[arg(long, conflicts_with = "json")]
    pub stream_json: bool,
    /// Start only if no run has this key; otherwise follow that run
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

#[derive(Args)]
pub struct ChatOptions {
    /// Go on with this session
    #[arg(long, value_name = "RUN")]
    pub resume: Option<String>,
    #[command(flatten)]
    pub agent: AgentOptions,
}

#[derive(Args)]
pub struct DemoOptions {
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct FakeModelOptions {
    /// What to answer, in TOML
    #[arg(long, value_name = "FILE")]
    pub script: PathBuf,
    /// Where to listen; only loopback addresses are accepted
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
}

#[derive(Subcommand)]
pub enum RunsVerb {
    /// List runs, the newest first
    List {
        /// Only runs that have not ended
        #[arg(long)]
        unfinished: bool,
        /// Only runs in this folder
        #[arg(long, value_name = "FOLDER")]
        cwd: Option<PathBuf>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only runs older than this one: the next page
        #[arg(long, value_name = "RUN")]
        before: Option<String>,
    },
    /// Show a run and its result
    Show {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Print the events of a run
    Log {
        /// Its id, or a few of its first or last characters
        run: String,
        /// Only events after this position
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
    },
    /// Follow a run until it ends
    Watch {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Say something to a run; it reads it before its next step
    Send {
        /// Its id, or a few of its first or last characters
        run: String,
        /// What to say
        text: String,
    },
    /// Stop a run
    Cancel {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Go on with a run that was interrupted, waits or has ended
    Resume {
        /// Its id, or a few of its first or last characters
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// What to say to it; needed when it has ended
        text: Option<String>,
        /// Go on with every unfinished run
        #[arg(long, conflicts_with_all = ["run", "text"])]
        all: bool,
    },
    /// Check that no event of a run, or of any, was changed or lost
    Verify {
        /// Its id, or a few of its first or last characters
        run: Option<String>,
    },
    /// Write the events of a run as lines of JSON
    Export {
        /// Its id, or a few of its first or last characters
        run: String,
        /// Where to [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("give dollars, more than 0, such as 0.50".to_owned()),
    }
}
