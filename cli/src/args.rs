//! The command line: names, help, values. No logic.

mod audit;
mod later;
mod runs;
mod selection;
mod trust;
pub mod wrong;

pub use audit::{AuditFilters, AuditVerb};
pub use later::Later;
pub use runs::{AnswerOptions, CleanOptions, ListOptions, PruneOptions, RunsVerb, TreeOptions};
pub use selection::{Choice, Filters, Targets};
pub use trust::{TrustOptions, TrustVerb};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use posse::protocol::{Budget, Effort, Mode, Network, Profile};
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
  posse cost --by day                       what it cost

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

#[derive(Args, Clone)]
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

#[derive(Args, Clone)]
pub struct DoctorOptions {
    /// Try to break out of each confinement, and show what succeeds
    #[arg(long)]
    pub sandbox: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an agent on a task and print its answer
    #[command(after_help = EXIT_CODES)]
    Run(Later<RunOptions>),
    /// Talk with an agent
    Chat(Later<ChatOptions>),
    /// List, follow and control runs
    #[command(subcommand)]
    Runs(Later<RunsVerb>),
    /// Show what model calls cost, by model, run, agent, label or day
    Cost(Later<CostOptions>),
    /// List, check, make and run agents
    #[command(subcommand)]
    Agents(Later<AgentsVerb>),
    /// List, check and show skills
    #[command(subcommand)]
    Skills(Later<SkillsVerb>),
    /// Trust what a folder brings along: agents, skills with scripts, settings
    Trust(Later<TrustOptions>),
    /// List, export and check what was decided and done
    #[command(subcommand)]
    Audit(Later<AuditVerb>),
    /// List and test webhooks; list what they are told, and send it again
    #[command(subcommand)]
    Webhooks(Later<WebhooksVerb>),
    /// List the models there are, those that can be used now first
    Models(Later<ModelsOptions>),
    /// Execute runs in the background, so that they outlive the terminal
    #[command(subcommand)]
    Daemon(Later<DaemonVerb>),
    /// Show the settings in force and where each came from
    Config,
    /// Show what confines the commands of agents here, and what is missing
    Doctor(Later<DoctorOptions>),
    /// Watch a scripted agent work on this folder, without a key
    Demo(Later<DemoOptions>),
    /// Serve a scripted model over HTTP, for tests
    FakeModel(Later<FakeModelOptions>),
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
    #[arg(long, value_name = "N", value_parser = |text: &str| wrong::whole::<u32>(text, 1, u32::MAX.into()))]
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
    /// How calls are decided that no rule decides: plan, dont-ask, ask, accept-edits or bypass
    #[arg(long, value_name = "MODE", value_parser = modes())]
    pub mode: Option<Mode>,
    /// How far commands reach: read-only, workspace-write, or full, which confines nothing
    #[arg(long, value_name = "PROFILE", value_parser = profiles())]
    pub sandbox: Option<Profile>,
    /// Whom commands may talk to: off, open, or hosts such as example.org,*.example.org
    #[arg(long, value_name = "HOSTS", value_parser = network)]
    pub network: Option<Network>,
    /// A rule for calls that need nobody's word, such as 'Bash(git diff:*)'; may be repeated
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// A rule for calls that are refused, such as 'Read(secrets/**)'; may be repeated
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Trust what the folder brings along, as it is now and for this command only
    #[arg(long)]
    pub trust: bool,
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
    /// What it is about, for lists; `posse runs` finds it by that
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Get a free slot before runs with a lower one
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = |text: &str| wrong::whole::<i32>(text, -100, 100))]
    pub priority: i32,
    /// Start only if no run has this key; otherwise follow that run
    #[arg(long, value_name = "KEY", value_parser = key, conflicts_with_all = ["record", "replay"])]
    pub key: Option<String>,
    /// Store the run for the daemon to execute, print its id and return
    #[arg(long, conflicts_with_all = ["stream_json", "record", "replay", "trust"])]
    pub background: bool,
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
        /// Show what a run of it may do here: its grant, as the log would hold it
        #[arg(long)]
        grant: bool,
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

#[derive(Subcommand)]
pub enum WebhooksVerb {
    /// List the webhooks of your settings; neither secrets nor whole addresses are shown
    List,
    /// List what webhooks are told and what came of it, the newest first
    Deliveries(DeliveryOptions),
    /// Send again what was given up, with all attempts before it
    Retry {
        /// Which deliveries, by their ids
        #[arg(required_unless_present = "all_dead", value_name = "ID")]
        ids: Vec<String>,
        /// All that were given up
        #[arg(long, conflicts_with = "ids")]
        all_dead: bool,
    },
    /// Send a signed test event and say what came back; exit code 1 if it was not taken
    Test {
        /// Which webhook
        name: String,
    },
}

#[derive(Args)]
pub struct DeliveryOptions {
    /// Only what was given up
    #[arg(long, conflicts_with_all = ["due", "all"])]
    pub dead: bool,
    /// Only what is to be sent, at once or later
    #[arg(long, conflicts_with = "all")]
    pub due: bool,
    /// Also what has arrived
    #[arg(long)]
    pub all: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = |text: &str| wrong::whole::<u32>(text, 1, 10_000))]
    pub limit: u32,
}

#[derive(Subcommand)]
pub enum DaemonVerb {
    /// Start it: it goes on with every unfinished run of the database
    Start {
        /// Stay here until told to stop, as service managers want it
        #[arg(long)]
        foreground: bool,
        /// Leave the terminal's session: what `start` starts itself with
        #[arg(long, hide = true, requires = "foreground")]
        detached: bool,
    },
    /// Stop it, each run after its present step; they are kept and go on at the next start
    Stop {
        /// Stop in the middle of steps
        #[arg(long)]
        now: bool,
    },
    /// Say whether it runs and what it does; exit code 1 if it does not run
    Status,
    /// Print a unit with which systemd keeps it running
    Unit {
        /// Write it to where systemd looks for units of yours
        #[arg(long)]
        install: bool,
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

#[derive(Args)]
pub struct CostOptions {
    /// One sum for each of these [default: model; with --run: run]
    #[arg(long, value_enum)]
    pub by: Option<CostBy>,
    /// Only of this run and all below it: its id, or a few of its first or last characters
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only calls from then on, such as 7d, 12h or 2026-11-01 (UTC)
    #[arg(long, value_name = "WHEN", value_parser = crate::time::moment)]
    pub since: Option<u64>,
    /// Only calls before then
    #[arg(long, value_name = "WHEN", value_parser = crate::time::moment)]
    pub until: Option<u64>,
    /// Only of runs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// At most this many sums; the total is of all
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = |text: &str| wrong::whole::<u32>(text, 1, 100_000))]
    pub limit: u32,
}

/// What there is one sum for
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostBy {
    Run,
    Tree,
    Agent,
    Model,
    Label,
    Day,
}

fn efforts() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(["low", "medium", "high", "max"]).map(|word| match word.as_str() {
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => Effort::Max,
    })
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    let words = Mode::ALL.map(Mode::as_str);
    PossibleValuesParser::new(words).map(|word| Mode::of(&word).unwrap_or_default())
}

fn profiles() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(["read-only", "workspace-write", "full"]).map(|word| {
        match word.as_str() {
            "full" => Profile::Full,
            "workspace-write" => Profile::WorkspaceWrite,
            _ => Profile::ReadOnly,
        }
    })
}

fn network(text: &str) -> Result<Network, String> {
    Network::of(text)
}

fn key(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("the key is empty; runs that have nothing in common would share it".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("give dollars, more than 0, such as 0.50".to_owned()),
    }
}
