//! Posse executes LLM agents durably, in parallel, and within granted permissions.
//!
//! A [`Runtime`] executes runs. A run is one execution of an agent. Its whole state is a log in a
//! store. If the process dies, the next runtime that opens the database continues its runs. It
//! never repeats a tool call that may have changed something.
//!
//! ```no_run
//! use posse::{Keys, Runtime, RuntimeConfig, RunSpec};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = Keys::default().with("ANTHROPIC_API_KEY", "sk-…");
//! let mut config = RuntimeConfig::new("runs.db", keys);
//! config.models.model = Some("sonnet".into());
//! let runtime = Runtime::open(config).await?;
//! let spec = RunSpec::new("general-purpose".parse()?, "What does this project do?", ".");
//! let run = runtime.start(spec).await?;
//! println!("{}", run.outcome().await?.text());
//! runtime.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! Two modules need less code: [`fn@query`] asks one question and returns a stream of messages, and
//! [`subagents`] executes agents by name.
//!
//! Models come from a catalog of vendors, from local servers, and from the host program, which can
//! add any [`Model`] to [`ModelConfig::host`]. The feature `offline`, which is on by default, adds
//! `offline/planner`, a model that needs no API key and no network.
//!
//! To let agents run shell commands, call [`launch::init`] first in `main` and pass the launcher to
//! [`RuntimeConfig::launcher`]. Without a launcher, agents have no shell.

mod active;
pub mod agents;
mod announcement;
mod approvals;
mod archive;
pub mod audit;
mod authority;
mod budget;
mod builder;
mod built_in;
mod chain;
mod child;
pub mod config;
mod control;
mod definition;
mod delegation;
mod deliveries;
mod error;
mod execute;
mod feed;
mod files;
mod find;
mod front_matter;
pub mod guidance;
mod handle;
mod home;
mod host_tools;
mod journal;
mod lanes;
mod limits;
pub mod mcp;
pub mod mcp_settings;
pub mod moment;
mod named_files;
mod open;
mod place;
pub mod policy;
mod preparation;
mod prompt;
pub mod query;
mod quiet;
pub mod redact;
mod rest;
pub mod rule_files;
mod run_trust;
mod runtime;
mod runtime_config;
mod selection;
pub mod skills;
mod stall;
mod start;
pub mod subagents;
mod supervisor;
mod surroundings;
mod tool_facts;
mod tool_sources;
mod toolset;
mod tree;
pub mod trust;
mod verify;
pub mod views;
pub mod webhooks;
mod worktree;

pub use agents::{AgentCatalog, LiveCatalog};
pub use approvals::Question;
pub use archive::{LeftoverWorktree, Prune, Sweep};
pub use builder::Builder;
pub use built_in::built_in_models;
pub use config::Lifecycle;
pub use control::{Asked, ControlledRun, Extent, Receipt};
pub use error::{Error, ErrorKind, RepositoryError};
pub use feed::Update;
pub use handle::{Events, RunHandle};
pub use home::Home;
pub use lanes::{LaneCaps, Shares};
pub use place::Fetched;
pub use posse_agent::{Answer, Model, ModelError, Patience, Tool, ToolContext, Transcript, Waits};
pub use posse_model as model;
pub use posse_model::{Catalog, HostModel, Keys, Pacing, Provider, ResolveError};
#[cfg(feature = "offline")]
pub use posse_offline as offline;
pub use posse_protocol as protocol;
pub use posse_protocol::{
    AgentChildren, AgentName, AgentRights, AgentSpec, AgentStart, Budget, Limits, ModelChoice,
    Outcome, RunId, RunRights, RunSpec, Seq, Status,
};
pub use posse_store as store;
pub use posse_store::RunRow;
pub use posse_tools::{OpenSource, Program, SourceContext, SourceError, ToolSource};
pub use posse_tools::{confine, launch, todo};
pub use query::query;
pub use rest::is_open;
pub use runtime::Runtime;
pub use runtime_config::{
    Definitions, DelegationConfig, ModelConfig, OpenStore, PermissionConfig, Recovery,
    RuntimeConfig, Scheduling, Storage,
};
pub use selection::{NamedBy, Selection};
pub use skills::{LiveSkills, SkillCatalog};
pub use start::StartResult;
pub use surroundings::{ByFolder, Surroundings};
pub use tree::{Page, TreeEvents};
pub use verify::{Damage, Verified};
pub use webhooks::Webhook;
pub use worktree::WorktreeError;

/// Compiles the Rust code of the guides, and runs it where possible.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/guides/facades.md")]
    struct Facades;
    #[doc = include_str!("../../docs/guides/embed.md")]
    struct Embed;
    #[doc = include_str!("../../docs/guides/own-tools.md")]
    struct OwnTools;
    #[doc = include_str!("../../docs/guides/fake-model.md")]
    struct FakeModel;
    #[doc = include_str!("../../docs/guides/record-and-replay.md")]
    struct RecordAndReplay;
}
