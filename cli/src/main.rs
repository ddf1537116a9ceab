//! The `posse` command: the only place that reads the environment, prints and exits.

mod args;
mod clean;
mod commands;
mod environment;
mod exit;
#[cfg(feature = "failpoints")]
mod failpoints;
mod print;
mod screen;
mod signals;
mod view;

use args::{Arguments, Command};
use clap::Parser;
use environment::Environment;
use exit::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: this process may be the supervisor of a command.
    let launcher = posse::launch::init();
    #[cfg(feature = "failpoints")]
    failpoints::arm();
    let arguments = Arguments::parse();
    let environment = Environment::read();
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
            print::failure(&failure);
            failure.code.into()
        }
    }
}

async fn dispatch(
    arguments: Arguments,
    environment: Environment,
    launcher: posse::launch::Launcher,
) -> Result<exit::Code, Failure> {
    let common = commands::Common { global: arguments.global, environment, launcher };
    match arguments.command {
        Command::Run(options) => commands::run::run(common, options).await,
        Command::Chat(options) => commands::chat::run(common, options).await,
        Command::Runs(verb) => commands::runs::run(common, verb).await,
        Command::Config => commands::config::run(&common),
        Command::Demo(options) => commands::demo::run(common, options).await,
        Command::FakeModel(options) => commands::fake_model::run(common, options).await,
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
