//! The `posse` command: the only place that reads the environment, prints and exits.

mod args;
mod clean;
mod commands;
mod daemon;
mod environment;
mod exit;
#[cfg(feature = "failpoints")]
mod failpoints;
mod family;
mod paint;
mod print;
mod screen;
mod signals;
mod spending;
mod terminal;
mod time;
mod view;

use args::{Arguments, Command, Later};
use clap::Parser;
use environment::Environment;
use exit::Failure;
use print::Tell;
use rustix::process::DumpableBehavior;
use std::process::ExitCode;

/// Thousands of runs allocate from many threads at once: a quarter of the processor time less
/// than with the system's allocator (`cargo xtask bench spine --only runs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all: this process may be the supervisor of a command.
    let launcher = posse::launch::init();
    #[cfg(feature = "failpoints")]
    failpoints::arm();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(args::wrong::mended(error)),
    };
    let tell = Tell::as_json(arguments.global.json);
    let environment = Environment::read();
    print::hide(environment.secrets().iter().map(String::as_str));
    // Neither this user's other processes nor what agents run may look into this one. Where that
    // is not to be had, what they run is still confined.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let workers = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = match workers {
        Ok(runtime) => {
            let result = runtime.block_on(dispatch(arguments, environment, launcher));
            // A line editor may still wait for a key on its thread.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::internal(format!("cannot start: {error}"))),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            print::failure(&failure, tell);
            failure.code.into()
        }
    }
}

/// Says what is wrong with the command line, or what it asks for: help, the version.
fn usage(error: clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        let text = error.to_string();
        let failure = Failure::usage(said(&text)).hint("`posse help` shows how it is used");
        print::failure(&failure, Tell::Json);
        return failure.code.into();
    }
    // The text goes where it belongs; if it cannot, there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() { exit::Code::Usage.into() } else { exit::Code::Done.into() }
}

/// What is wrong, in one line: all of `text` up to how it is used, and to what else could be tried.
fn said(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}

async fn dispatch(
    arguments: Arguments,
    environment: Environment,
    launcher: posse::launch::Launcher,
) -> Result<exit::Code, Failure> {
    let common = commands::Common::new(arguments.global, environment, launcher);
    match arguments.command {
        Command::Run(Later(options)) => commands::run::run(common, options).await,
        Command::Chat(Later(options)) => commands::chat::run(common, options).await,
        Command::Runs(Later(verb)) => commands::runs::run(common, verb).await,
        Command::Cost(Later(options)) => commands::cost::run(common, options).await,
        Command::Agents(Later(verb)) => commands::agents::run(common, verb).await,
        Command::Skills(Later(verb)) => commands::skills::run(&common, verb),
        Command::Audit(Later(verb)) => commands::audit::run(common, verb).await,
        Command::Trust(Later(options)) => commands::trust::run(&common, &options),
        Command::Webhooks(Later(verb)) => commands::webhooks::run(&common, verb).await,
        Command::Models(Later(options)) => commands::models::run(common, options).await,
        Command::Daemon(Later(verb)) => commands::daemon::run(common, verb).await,
        Command::Doctor(Later(options)) => commands::doctor::run(&common, &options).await,
        Command::Config => commands::config::run(&common).await,
        Command::Demo(Later(options)) => commands::demo::run(common, options).await,
        Command::FakeModel(Later(options)) => commands::fake_model::run(common, options).await,
        Command::Completions { shell } => commands::completions::run(&common, shell),
    }
}
