//! Benchmarks: programs that print ratios against a raw client or a bare store that was measured
//! in the same run. Machines are noisy, so nothing here asserts a time.
//!
//! Whatever is measured for its time or memory runs in a process of its own, which is this binary
//! again with a hidden command.

mod appends;
mod background;
mod claim;
mod client;
mod delegation;
mod fill;
mod governor;
mod line;
mod load;
mod memory;
mod meter;
mod model;
mod policy;
mod process;
mod raw;
mod recovery;
mod registry;
mod requests;
mod runs;
mod serve;
mod spine;
mod start;
mod talk;
mod turns;

use std::error::Error;
use std::process::ExitCode;

/// What can go wrong here is only ever shown.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What to measure
#[derive(clap::Subcommand)]
pub enum Bench {
    /// The spine: runs, memory, start, appends, recovery, long transcripts
    Spine(spine::Spine),
    /// Models: streamed replies, allocations, connections, the fake model, the grid, the questions
    Model(model::Model),
    /// Delegation: trees of runs, their memory, who watches them, forks, definitions
    Delegation(delegation::Delegation),
    /// Background: thousands of runs, each told of exactly once, in smooth and in rough weather
    Background(background::Background),
    /// The registry: lists and searches among a million runs
    Registry(registry::Registry),
    /// The governor: many runs against a provider that takes few requests at a time
    Governor(governor::Governor),
    /// Rules: decisions about calls
    Policy(policy::PolicyBench),
    /// A process that a benchmark starts
    #[command(subcommand, hide = true)]
    Part(Part),
}

/// The processes that benchmarks start.
#[derive(clap::Subcommand)]
pub enum Part {
    /// The fake model
    Serve(serve::Serve),
    /// Many conversations by a raw client
    Raw(raw::Raw),
    /// The same conversations by runs
    Load(load::Load),
    /// A main agent and those it calls
    Tree(delegation::Tree),
    /// Their requests by a raw client
    TreeRaw(delegation::TreeRaw),
    /// Definitions of agents, loaded
    Define(delegation::Define),
    /// The fake model of runs in the background
    ServeCrowd(background::ServeCrowd),
    /// Sessions and their children in the background
    Crowd(background::Crowd),
    /// The requests of those children by a raw client
    CrowdRaw(background::CrowdRaw),
    /// A few long conversations by runs
    Talk(talk::Talk),
    /// The requests of long conversations by a raw client
    TalkRaw(talk::TalkRaw),
    /// Fills a database with runs, and dies
    Fill(fill::Fill),
    /// Claims what is unfinished in a database, and dies
    Claim(claim::Claim),
    /// A fake model that always says the same
    SayText(model::SayText),
    /// Replies heard by a model
    Hear(model::Hear),
    /// The same replies heard by a raw client
    HearRaw(model::HearRaw),
    /// As many requests as a server answers
    Flood(model::Flood),
}

impl Bench {
    pub fn run(self) -> ExitCode {
        let result = match self {
            Bench::Spine(spine) => spine.run(),
            Bench::Model(model) => model.run(),
            Bench::Delegation(delegation) => delegation.run(),
            Bench::Background(background) => background.run(),
            Bench::Registry(registry) => registry.run(),
            Bench::Governor(governor) => governor.run(),
            Bench::Policy(policy) => policy.run(),
            Bench::Part(part) => part.run(),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                line::note(&format!("error: {error}"));
                ExitCode::FAILURE
            }
        }
    }
}

impl Part {
    fn run(self) -> Result<()> {
        meter::allow_open_files();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            match self {
                Part::Serve(serve) => serve.run().await,
                Part::Raw(raw) => raw.run().await,
                Part::Load(load) => load.run().await,
                Part::Tree(tree) => tree.run().await,
                Part::TreeRaw(tree) => tree.run().await,
                Part::Define(define) => define.run(),
                Part::ServeCrowd(serve) => serve.run().await,
                Part::Crowd(crowd) => crowd.run().await,
                Part::CrowdRaw(raw) => raw.run().await,
                Part::Talk(talk) => talk.run().await,
                Part::TalkRaw(talk) => talk.run().await,
                Part::Fill(fill) => fill.run().await,
                Part::Claim(claim) => claim.run().await,
                Part::SayText(say) => say.run().await,
                Part::Hear(hear) => hear.run().await,
                Part::HearRaw(hear) => hear.run().await,
                Part::Flood(flood) => flood.run().await,
            }
        });
        // A read of standard input may still wait on its thread.
        runtime.shutdown_background();
        result
    }
}
