//! The command line: names, help, values. No logic.

mod audit;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod book;
mod claude;
mod front;
mod later;
mod mcp;
pub mod mistakes;
mod number;
mod runs;
mod selection;
mod trust;

pub use audit::{AuditFilters, AuditVerb};
pub use claude::{ClaudeOptions, ClaudeRunOptions, Earlier, asks, instead_of, keeps_what_it_has};
pub use front::{Input, complete, quoted};
pub use later::Later;
pub use mcp::{McpAddOptions, McpVerb};
pub use runs::{AnswerOptions, CleanOptions, ListOptions, PruneOptions, RunsVerb, TreeOptions};
pub use selection::{Choice, Filters, Targets};
pub use trust::{TrustOptions, TrustVerb};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use number::{whole, whole_or_negative};
use posse::protocol::{Budget, Effort, Instructions, Mode, Network, Profile};
use std::path::PathBuf;

/// The version, and the commit that it was built from where that is known.
const VERSION: &str = env!("POSSE_VERSION");

/// Runs LLM agents on your files, durably
///
/// `posse "what does this project do?"` runs one task. On a terminal, `posse` alone opens a chat.
/// Posse stores every step of a run before it shows it. If Posse dies, `posse runs resume --all`
/// continues its runs. Posse never repeats a tool call that may have changed something.
#[derive(Parser)]
#[command(name = "posse", version = VERSION, max_term_width = 100, override_usage = USAGE, after_help = EXIT_CODES, after_long_help = MORE)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const USAGE: &str = "posse [OPTIONS] <COMMAND>
       posse [OPTIONS] \"PROMPT\"";

const EXIT_CODES: &str = "\
Exit codes:
  0    completed                 4    timed out
  1    failed                    5    stopped at another limit
  2    wrong command line,       6    the database cannot be used or is damaged,
       settings or input              or the disk is full
  3    cancelled                 7    out of budget
                                 130  interrupted or paused; the run is kept";

const MORE: &str = "\
First steps:
  posse demo                                watch an agent work, without an API key
  posse \"what does this project do?\"        one task, one answer (same as: posse run \"…\")
  git diff | posse \"review this change\"     standard input is added to the prompt
  posse                                     chat, on a terminal (same as: posse chat)
  posse agents list                         list the agents
  posse models                              list the models, and which can be used now
  posse runs list                           list the runs
  posse cost --by day                       show the cost of each day
  posse help runs resume                    show the help of one command

Coming from Claude Code:
  posse -p \"…\" is posse run; posse -c continues the last chat of this folder. `posse run --help`
  lists the options that have the same name here.

Environment:
  ANTHROPIC_API_KEY, OPENAI_API_KEY, …      API keys; `posse models` names the variable of each vendor
  ANTHROPIC_BASE_URL, OPENAI_BASE_URL, …    other addresses to send requests to
  POSSE_DB                                  the database, if --db does not name one
  NO_COLOR                                  no colours

Exit codes:
  0    completed                 4    timed out
  1    failed                    5    stopped at another limit
  2    wrong command line,       6    the database cannot be used or is damaged,
       settings or input              or the disk is full
  3    cancelled                 7    out of budget
                                 130  interrupted or paused; the run is kept";

#[derive(Args, Clone)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Use this database: a file, or postgres://… [default: ~/.local/share/posse/posse.db]
    #[arg(long, global = true, value_name = "DATABASE")]
    pub db: Option<PathBuf>,
    /// Print JSON; errors go to standard error as {"error", "hint", "code"}
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Args, Clone)]
pub struct DoctorOptions {
    /// Try to break out of each sandbox and show which attempts succeed
    #[arg(long)]
    pub sandbox: bool,
    /// Rebuild the database's indexes, rows and ledger from the logs of its runs
    #[arg(long, conflicts_with = "sandbox")]
    pub rebuild: bool,
    /// Replace the database with this backup
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sandbox", "rebuild"])]
    pub restore: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run an agent on a task and print its answer
    #[command(after_help = EXIT_CODES)]
    Run(Later<RunOptions>),
    /// Chat with an agent
    #[command(after_help = EXIT_CODES)]
    Chat(Later<ChatOptions>),
    /// List, follow and control runs
    #[command(subcommand)]
    Runs(Later<RunsVerb>),
    /// Show what model calls cost, by model, run, agent, label or day
    Cost(Later<CostOptions>),
    /// List, check, create and run agents
    #[command(subcommand)]
    Agents(Later<AgentsVerb>),
    /// List, check and show skills
    #[command(subcommand)]
    Skills(Later<SkillsVerb>),
    /// Trust the agents, the skills with scripts and the settings of a folder
    Trust(Later<TrustOptions>),
    /// List, export and verify the audit log: what agents did and who allowed it
    #[command(subcommand)]
    Audit(Later<AuditVerb>),
    /// List and test webhooks, and list and resend their deliveries
    #[command(subcommand)]
    Webhooks(Later<WebhooksVerb>),
    /// Add, list, test and remove MCP servers, whose tools agents can call
    #[command(subcommand)]
    Mcp(Later<McpVerb>),
    /// List the models; models that you can use now come first
    Models(Later<ModelsOptions>),
    /// Start and stop the daemon, which executes runs after the terminal closes
    #[command(subcommand)]
    Daemon(Later<DaemonVerb>),
    /// Execute the runs of a database, alone or with workers on other machines
    Worker(Later<WorkerOptions>),
    /// List the workers that are alive
    Workers,
    /// Show, migrate or verify the database, or copy its runs to another one
    #[command(subcommand)]
    Db(Later<DbVerb>),
    /// Show the current settings and where each comes from
    Config(Later<ConfigOptions>),
    /// Show how this machine sandboxes the commands of agents; repair the database
    Doctor(Later<DoctorOptions>),
    /// Watch a scripted agent work on this folder, without an API key
    #[command(after_help = EXIT_CODES)]
    Demo(Later<DemoOptions>),
    /// Serve a scripted model over HTTP, for tests
    FakeModel(Later<FakeModelOptions>),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a manual page, or write all manual pages to a folder
    Man {
        /// The command, such as `runs list` [default: posse itself]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
        /// Write the manual pages of all commands to this folder
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        out: Option<PathBuf>,
    },
}

impl Command {
    /// True for commands that only show or stop something. A mistake in the settings must not keep a person
    /// from that.
    pub fn looks_or_stops(&self) -> bool {
        match self {
            Command::Runs(Later(verb)) => !matches!(
                verb,
                RunsVerb::Send { .. }
                    | RunsVerb::Answer(_)
                    | RunsVerb::Resume { .. }
                    | RunsVerb::Archive { .. }
                    | RunsVerb::Clean(_)
                    | RunsVerb::Prune(_)
                    | RunsVerb::Fetch { .. }
            ),
            Command::Daemon(Later(verb)) => {
                matches!(verb, DaemonVerb::Stop { .. } | DaemonVerb::Status)
            }
            Command::Cost(_) | Command::Audit(_) | Command::Workers => true,
            _ => false,
        }
    }
}

#[derive(Args)]
pub struct AgentOptions {
    /// The agent to run [default: general-purpose]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Define more agents: JSON, or the path of a JSON file
    #[arg(long, value_name = "JSON|FILE")]
    pub agents: Vec<String>,
    /// Model: vendor/name or a short name such as `sonnet`; fallbacks follow, comma-separated
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = model_name)]
    pub model: Vec<String>,
    /// Reasoning effort
    #[arg(long, value_name = "EFFORT", value_parser = efforts())]
    pub effort: Option<Effort>,
    /// Stop after this many model calls; the count starts again when a message wakes the run
    #[arg(long, value_name = "N", value_parser = whole::<1, { u32::MAX }>)]
    pub max_turns: Option<u32>,
    /// Stop before the cost of the run and its subagents exceeds this many dollars
    #[arg(
        long,
        alias = "max-budget-usd",
        value_name = "DOLLARS",
        value_parser = dollars,
        allow_negative_numbers = true
    )]
    pub max_cost: Option<f64>,
    /// Budget of the run and all its subagents together, such as cost=1.50,turns=200; also
    /// tool_calls, tokens, input_tokens, output_tokens and children
    #[arg(long, value_name = "BUDGET", value_parser = posse::config::parse_budget)]
    pub budget: Option<Budget>,
    /// Stop after this much working time, such as 90s, 10m or 2h; counted like --max-turns
    #[arg(long, value_name = "TIME", value_parser = posse::config::parse_duration)]
    pub timeout: Option<u64>,
    /// Permission mode for tool calls that no rule covers [default: accept-edits]
    #[arg(long, value_name = "MODE", value_parser = modes())]
    pub mode: Option<Mode>,
    /// Sandbox for commands; `full` means no sandbox
    #[arg(long, value_name = "PROFILE", value_parser = profiles())]
    pub sandbox: Option<Profile>,
    /// Network for commands: `off`, hosts (`example.org,*.example.org`), `*` (all public hosts) or
    /// `open` (no restriction) [default: off]
    #[arg(long, value_name = "HOSTS", value_parser = network)]
    pub network: Option<Network>,
    /// Run matching tool calls without asking, such as 'Bash(git diff:*)'; may be repeated
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Refuse matching tool calls, such as 'Read(secrets/**)'; may be repeated
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Trust the agents, skills and settings of the folder for this command only
    #[arg(long)]
    pub trust: bool,
    #[command(flatten)]
    pub claude: ClaudeOptions,
    /// What `--system-prompt` and `--append-system-prompt` say.
    #[arg(skip)]
    pub instructions: Instructions,
    // Fallbacks after those of --model, or after the default model.
    #[arg(skip)]
    pub fallback: Vec<String>,
}

#[derive(Args)]
pub struct CassetteOptions {
    /// Record all model requests and replies to this file, without API keys
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Replay the replies from a file that --record wrote; fail at the first request that differs
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
}

#[derive(Args)]
pub struct RunOptions {
    /// The task. Posse adds piped standard input to it. Without PROMPT, or if it is `-`, standard
    /// input is the task
    #[arg(conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// What follows a task that was not quoted.
    #[arg(hide = true)]
    pub more: Vec<String>,
    /// Read the task from a file
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    #[command(flatten)]
    pub agent: AgentOptions,
    /// Print every event and piece of text as a line of JSON as it happens
    #[arg(long, conflicts_with = "json")]
    pub stream_json: bool,
    /// Require an answer that matches the JSON Schema in this file
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Name the run; other commands accept this name instead of its id
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub label: Option<String>,
    /// Let only a worker with this label execute the run (`posse worker --label LABEL`)
    #[arg(long, value_name = "LABEL", value_parser = worker_name)]
    pub needs: Option<String>,
    /// Work in a checkout of this git repository, on any machine: https, ssh or file URL, or folder,
    /// with `@` and a commit or a branch after it; `posse runs fetch` brings the changes
    #[arg(long, value_name = "URL[@COMMIT]", conflicts_with = "no_files")]
    pub repo: Option<String>,
    /// Work without files, on any machine: no file tools and no shell
    #[arg(long)]
    pub no_files: bool,
    /// Priority in the queue, -100 to 100; higher goes first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = whole_or_negative::<100>)]
    pub priority: i32,
    /// Name this start: if a run with this KEY exists, follow that run and start no other
    #[arg(long, value_name = "KEY", value_parser = key, conflicts_with_all = ["record", "replay"])]
    pub key: Option<String>,
    /// Let the daemon or another worker execute the run; print its id and return
    #[arg(long, conflicts_with_all = ["stream_json", "record", "replay", "trust"])]
    pub background: bool,
    #[command(flatten)]
    pub cassette: CassetteOptions,
    #[command(flatten)]
    pub claude: ClaudeRunOptions,
}

#[derive(Args)]
pub struct ChatOptions {
    /// Continue this chat [default: choose a chat of the folder]
    #[arg(long, short, value_name = "RUN", num_args = 0..=1, conflicts_with_all = claude::NEW_CHAT)]
    pub resume: Option<Option<String>>,
    /// Continue the newest chat of the folder
    #[arg(long = "continue", short = 'c', hide_short_help = true, conflicts_with_all = claude::NEW_CHAT)]
    pub continues: bool,
    #[command(flatten)]
    pub agent: AgentOptions,
    #[command(flatten)]
    pub cassette: CassetteOptions,
}

#[derive(Subcommand)]
pub enum AgentsVerb {
    /// List the agents, where each comes from and what each is for
    List(CatalogOptions),
    /// Show an agent: where it comes from, its tools, its prompt
    Show {
        /// The agent
        name: String,
        /// Show what a run of this agent may do here (its grant)
        #[arg(long)]
        grant: bool,
        #[command(flatten)]
        options: CatalogOptions,
    },
    /// Check the definitions of agents; exit code 2 if one cannot be used
    Check {
        /// Check only these files and folders [default: all places of agents]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        options: CatalogOptions,
    },
    /// Create the file of a new agent
    New {
        /// The name of the agent
        name: String,
        /// Create it in your own folder instead of the project's .posse/agents
        #[arg(long)]
        user: bool,
        /// The project's folder [default: the current one]
        #[arg(long, value_name = "FOLDER", conflicts_with = "user")]
        cwd: Option<PathBuf>,
    },
    /// Run an agent on a task: same as `posse run --agent NAME`
    #[command(after_help = EXIT_CODES, mut_arg("agent", |agent| agent.hide(true).conflicts_with("name")))]
    Run {
        /// The agent
        name: String,
        #[command(flatten)]
        options: Box<RunOptions>,
    },
}

#[derive(Subcommand)]
pub enum SkillsVerb {
    /// List the skills, where each comes from and what each is for
    List(SkillOptions),
    /// Show a skill: where it comes from, its files, its text
    Show {
        /// The skill
        name: String,
        /// Values for its arguments
        arguments: Vec<String>,
        #[command(flatten)]
        options: SkillOptions,
    },
    /// Check skills; exit code 2 if one cannot be used
    Check {
        /// Check only these files and folders [default: all places of skills]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        options: SkillOptions,
    },
}

#[derive(Subcommand)]
pub enum WebhooksVerb {
    /// List the webhooks of your settings; secrets and paths are hidden
    List,
    /// List deliveries and their state, newest first
    Deliveries(DeliveryOptions),
    /// Retry deliveries that Posse gave up
    Retry {
        /// The ids of the deliveries
        #[arg(required_unless_present = "all_dead", value_name = "ID")]
        ids: Vec<String>,
        /// Retry all deliveries that Posse gave up
        #[arg(long, conflicts_with = "ids")]
        all_dead: bool,
    },
    /// Send a signed test event and show the response; exit code 1 if it was not accepted
    Test {
        /// The webhook
        name: String,
    },
}

#[derive(Subcommand)]
pub enum DbVerb {
    /// Show the engine, the version of the schema and the size; changes nothing
    Status,
    /// Bring the tables to the version of this program; other commands do so when they need them
    Migrate,
    /// Check all runs against their hashes, and the database itself
    Verify,
    /// Copy all runs to another database and verify them; runs that it already has are skipped
    Copy {
        /// The database to copy from: a file, or postgres://…
        from: PathBuf,
        /// The database to copy to
        to: PathBuf,
    },
}

#[derive(Args)]
pub struct DeliveryOptions {
    /// Only deliveries that Posse gave up
    #[arg(long, conflicts_with_all = ["due", "all"])]
    pub dead: bool,
    /// Only deliveries that Posse will still try to send
    #[arg(long, conflicts_with = "all")]
    pub due: bool,
    /// Include deliveries that have arrived
    #[arg(long)]
    pub all: bool,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<1, 10_000>)]
    pub limit: u32,
}

/// A label of a worker.
fn worker_name(text: &str) -> Result<String, String> {
    match posse::store::is_worker_name(text) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits, `.`, `_` and `-`, at most 64".to_owned()),
    }
}

#[derive(Args)]
pub struct WorkerOptions {
    /// Also take runs that need this label (`posse run --needs LABEL`); may be repeated
    #[arg(long, value_name = "LABEL", value_parser = worker_name)]
    pub label: Vec<String>,
    /// Take only runs of this agent; may be repeated
    #[arg(long, value_name = "NAME")]
    pub agent: Vec<String>,
    /// Execute this many runs at the same time [default: max_concurrent of your settings]
    #[arg(long, value_name = "N", value_parser = whole::<1, 1_000_000>)]
    pub slots: Option<u32>,
}

#[derive(Subcommand)]
pub enum DaemonVerb {
    /// Start the daemon, which continues every unfinished run of the database
    Start {
        /// Stay in the foreground, for service managers
        #[arg(long)]
        foreground: bool,
        /// Leave the terminal's session: what `start` starts itself with
        #[arg(long, hide = true, requires = "foreground")]
        detached: bool,
    },
    /// Stop the daemon after the current step of each run; the next start continues them
    Stop {
        /// Do not wait for the current steps
        #[arg(long)]
        now: bool,
    },
    /// Show the state of the daemon; exit code 1 if it does not run
    Status,
    /// Print a systemd unit for the daemon
    Unit {
        /// Install it as a systemd user unit
        #[arg(long)]
        install: bool,
    },
}

#[derive(Args)]
pub struct SkillOptions {
    /// Use this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct CatalogOptions {
    /// Define more agents: JSON, or the path of a JSON file
    #[arg(long, value_name = "JSON|FILE")]
    pub agents: Vec<String>,
    /// Use this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsOptions {
    /// Only models whose name or short name contains this
    pub filter: Option<String>,
    #[command(subcommand)]
    pub verb: Option<ModelsVerb>,
}

#[derive(Subcommand)]
pub enum ModelsVerb {
    /// Call a model once and report the result
    Test {
        /// The model: vendor/name or a short name
        model: String,
    },
}

#[derive(Args)]
pub struct ConfigOptions {
    #[command(subcommand)]
    pub verb: Option<ConfigVerb>,
}

#[derive(Subcommand)]
pub enum ConfigVerb {
    /// List the files and folders that Posse reads settings, agents and skills from
    Path,
}

#[derive(Args)]
pub struct DemoOptions {
    /// Work in this folder [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

#[derive(Args)]
pub struct FakeModelOptions {
    /// The script of replies, in TOML
    #[arg(long, value_name = "FILE")]
    pub script: PathBuf,
    /// Loopback address to listen on; port 0 means any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
}

#[derive(Args)]
pub struct CostOptions {
    /// Group the costs [default: by model; with --run: by run]
    #[arg(long, value_enum)]
    pub by: Option<CostBy>,
    /// Only this run and its subagents: id, 4 or more characters of it, or label
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only calls since this time: 7d, 12h, 2026-11-01 or 2026-11-01T08:00, local time
    #[arg(long, value_name = "WHEN", value_parser = posse::moment::moment)]
    pub since: Option<u64>,
    /// Only calls before this time
    #[arg(long, value_name = "WHEN", value_parser = posse::moment::moment)]
    pub until: Option<u64>,
    /// Only runs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// At most this many rows; the total covers all [default: 50, with --json all]
    #[arg(long, value_name = "N", value_parser = whole::<1, 100_000>)]
    pub limit: Option<u32>,
}

/// What costs are grouped by
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
        true => Err("the key is empty; all runs without a key would share it".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn model_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name of a model is missing; `posse models` lists the models".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn label(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("the label is empty; give the run a name, or leave --label out".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("give dollars, more than 0, such as 0.50".to_owned()),
    }
}
