//! The command line: names, help, values. No logic.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use posse::protocol::{Budget, Effort};
use std::path::PathBuf;

/// Runs LLM agents on your files, durably
///
/// A run is a log: kill posse at any moment, start it again, and the run goes on where it
/// stopped, repeating nothing.
#[derive(Parser)]
#[command(name = "posse", version, max_term_width = 100, after_help = EXIT_CODES, after_long_help = MORE)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    completed                 4    timed out
  1    failed                    5    stopped at another limit
  2    wrong command line,       6    the database cannot be used or is damaged,
       settings or input              or the disk is full
  3    cancelled                 7    out of budget
                                 130  interrupted; the run is kept";

const MORE: &str = "\
First steps:
  posse demo                                an agent at work, without a key
  posse run \"what does this project do?\"    one task, one answer
  posse chat                                line by line
  posse agents list                         who there is to do the work
  posse models                              which models can be used now
  posse runs list                           what there is, and what is unfinished

Environment:
  ANTHROPIC_API_KEY, OPENAI_API_KEY, …      keys; `posse models` names the one of each vendor
  ANTHROPIC_BASE_URL, OPENAI_BASE_URL, …    where to send requests instead
  NO_COLOR                                  no colours

Exit codes:
  0    completed                 4    timed out
  1    failed                    5    stopped at another limit
  2    wrong command line,       6    the database cannot be used or is damaged,
       settings or input              or the disk is full
  3    cancelled                 7    out of budget
                                 130  interrupted; the run is kept";

#[derive(Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Keep runs in this database [default: posse.db in your data folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Print JSON: data, and on standard error {"error", "hint", "code"}
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an agent on a task and print its answer
    #[command(after_help = EXIT_CODES)]
    Run(RunOptions),
    /// Talk with an agent
    Chat(ChatOptions),
    /// List, follow and control runs
    #[command(subcommand)]
    Runs(RunsVerb),
    /// List, check, make and run agents
    #[command(subcommand)]
    Agents(AgentsVerb),
    /// List, check and show skills
    #[command(subcommand)]
    Skills(SkillsVerb),
    /// List the models there are, those that can be used now first
    Models(ModelsOptions),
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
    /// More agents: a map of them in JSON, or a file that holds one
    #[arg(long, value_name = "JSON|FILE")]
    pub agents: Vec<String>,
    /// Which model, as vendor/name or a short name such as `sonnet`; after a comma, those to go
    /// on with when it cannot be had
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub model: Vec<String>,
    /// How hard the model is to think
    #[arg(long, value_name = "EFFORT", value_parser = efforts())]
    pub effort: Option<Effort>,
    /// Stop after this many model calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// Stop before more than this many dollars are spent
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// What the run and all below it may spend together, such as cost=1.50,turns=200; also
    /// tool_calls, tokens, input_tokens, output_tokens and children
    #[arg(long, value_name = "BUDGET", value_parser = posse::config::parse_budget)]
    pub budget: Option<Budget>,
    /// Stop after this much time at work, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = posse::config::parse_duration)]
    pub timeout: Option<u64>,
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct CassetteOptions {
    /// Record what is said to the model and what it answers into this file, keys left out
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Take the model's answers from this recording, offline; fail at the first request that differs
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
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
    /// Hold the answer to the JSON Schema in this file
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Start only if no run has this key; otherwise follow that run
    #[arg(long, value_name = "KEY", conflicts_with_all = ["record", "replay"])]
    pub key: Option<String>,
    #[command(flatten)]
    pub cassette: CassetteOptions,
}

#[derive(Args)]
pub struct ChatOptions {
    /// Go on with this session [default: the newest in the folder]
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with_all = ["agent", "model", "effort", "max_turns", "max_cost", "budget", "timeout", "record", "replay"])]
    pub resume: Option<Option<String>>,
    #[command(flatten)]
    pub agent: AgentOptions,
    #[command(flatten)]
    pub cassette: CassetteOptions,
}

#[derive(Subcommand)]
pub enum AgentsVerb {
    /// List the agents there are, where each comes from, and whom it shadows
    List(CatalogOptions),
    /// Show an agent as it is used: where it comes from, its tools, its prompt
    Show {
        /// Which agent
        name: String,
        #[command(flatten)]
        options: CatalogOptions,
    },
    /// Say what is wrong with definitions of agents, and where; exit code 2 if one cannot be used
    Check {
        /// Only in these files and folders [default: wherever agents are looked for]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        options: CatalogOptions,
    },
    /// Write a file to begin an agent with
    New {
        /// What it is called
        name: String,
        /// Into your own folder, in place of the project's .posse/agents
        #[arg(long)]
        user: bool,
        /// The project's folder [default: the current one]
        #[arg(long, value_name = "FOLDER", conflicts_with = "user")]
        cwd: Option<PathBuf>,
    },
    /// Run an agent on a task: what `posse run --agent NAME` does
    #[command(after_help = EXIT_CODES, mut_arg("agent", |agent| agent.hide(true).conflicts_with("name")))]
    Run {
        /// Which agent
        name: String,
        #[command(flatten)]
        options: Box<RunOptions>,
    },
}

#[derive(Subcommand)]
pub enum SkillsVerb {
    /// List the skills there are, where each comes from, and whom it shadows
    List(SkillOptions),
    /// Show a skill as an agent is given it: where it comes from, its files, its text
    Show {
        /// Which
        name: String,
        /// What to fill in for its arguments
        arguments: Vec<String>,
        #[command(flatten)]
        options: SkillOptions,
    },
    /// Say what is wrong with skills, and where; exit code 2 if one cannot be used
    Check {
        /// Only in these files and folders [default: wherever skills are looked for]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        options: SkillOptions,
    },
}

#[derive(Args)]
pub struct SkillOptions {
    /// As they are for work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct CatalogOptions {
    /// More agents: a map of them in JSON, or a file that holds one
    #[arg(long, value_name = "JSON|FILE")]
    pub agents: Vec<String>,
    /// As they are for work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsOptions {
    /// Only models whose name or short name holds this
    pub filter: Option<String>,
    #[command(subcommand)]
    pub verb: Option<ModelsVerb>,
}

#[derive(Subcommand)]
pub enum ModelsVerb {
    /// Call a model once and say how it went
    Test {
        /// Which model, as vendor/name or a short name
        model: String,
    },
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
    /// Listen here, on a loopback address; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
}

#[derive(Subcommand)]
pub enum RunsVerb {
    /// List runs, the newest first; those that other runs have started only when asked for
    List(ListOptions),
    /// Show a run and its result
    Show {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Show a run with all that stand below it
    Tree {
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
    #[command(after_help = EXIT_CODES)]
    Watch {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Say something to a run, which reads it before its next step
    Send {
        /// Its id, or a few of its first or last characters
        run: String,
        /// What to say
        text: String,
    },
    /// Stop a run and all below it
    Cancel {
        /// Its id, or a few of its first or last characters
        run: String,
    },
    /// Go on with a run that was interrupted, waits or has ended
    #[command(after_help = EXIT_CODES)]
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
    /// Check that no event was changed or lost
    Verify {
        /// Only of this run: its id, or a few of its first or last characters
        run: Option<String>,
    },
    /// Write the events of a run as lines of JSON
    Export {
        /// Its id, or a few of its first or last characters
        run: String,
        /// Into this file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct ListOptions {
    /// Also runs that other runs have started
    #[arg(long, conflicts_with = "children_of")]
    pub all: bool,
    /// Only runs that this one has started
    #[arg(long, value_name = "RUN")]
    pub children_of: Option<String>,
    /// Only runs that have not ended
    #[arg(long)]
    pub unfinished: bool,
    /// Only runs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Only runs older than this one: the next page
    #[arg(long, value_name = "RUN")]
    pub before: Option<String>,
}

fn efforts() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(["low", "medium", "high", "max"]).map(|word| match word.as_str() {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => Effort::Max,
    })
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("give dollars, more than 0, such as 0.50".to_owned()),
    }
}
