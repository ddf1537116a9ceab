//! The `posse` command. Only this crate reads the environment, prints and exits.

mod args;
mod clean;
mod commands;
mod common;
mod contact;
mod daemon;
mod database;
mod environment;
mod exit;
#[cfg(feature = "failpoints")]
mod failpoints;
mod family;
mod format;
mod offline;
mod paint;
mod print;
mod screen;
mod signals;
mod spending;
mod table;
mod terminal;
mod worktree;

use args::{Arguments, Command, Input, Later};
use clap::Parser;
use environment::Environment;
use exit::Failure;
use posse::launch::Launcher;
use print::FailureFormat;
use rustix::process::DumpableBehavior;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Thousands of runs allocate from many threads at once. This allocator needs a quarter less
/// processor time than the system's (`cargo xtask bench spine --only runs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Must be first: this process may be the supervisor of a command.
    posse_probe::init();
    let launcher = posse::launch::init();
    #[cfg(feature = "failpoints")]
    failpoints::arm();
    let arguments = match parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let tell = FailureFormat::as_json(arguments.global.json);
    let environment = Environment::read();
    print::hide(environment.secrets().iter().map(String::as_str));
    // The user's other processes and the commands of agents must not read this process. If this
    // fails, the commands are still confined.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let workers = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = match workers {
        Ok(runtime) => {
            let work = async {
                let result = dispatch(arguments, environment, launcher.clone()).await;
                end_commands(&launcher).await;
                result
            };
            let result = runtime.block_on(work);
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

/// How long to wait for commands to end before saying so.
const QUIET: Duration = Duration::from_secs(1);

/// Waits until the last commands are over, unless a signal says otherwise: until then, git may run what they left.
async fn end_commands(launcher: &Launcher) {
    if !launcher.has_commands() {
        return;
    }
    let told = async {
        tokio::time::sleep(QUIET).await;
        print::note("checking what the last commands left for git; Ctrl-C ends without it");
        std::future::pending::<()>().await
    };
    let signal = async {
        match signals::Signals::listen() {
            Ok(mut signals) => while signals.next().await == signals::Signal::Hangup {},
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = launcher.end_commands() => {}
        () = signal => {}
        () = told => {}
    }
}

/// The note about `--dangerously-skip-permissions`.
const SKIPS: &str = "note: mode bypass: tool calls run without asking. Deny rules still hold, and \
commands stay in the sandbox (--sandbox full turns it off)";

/// Parses the command line. Prints its errors, or the help or version that it asks for.
fn parse(typed: Vec<OsString>) -> Result<Arguments, ExitCode> {
    let tell = FailureFormat::as_json(typed.iter().any(|argument| argument == "--json"));
    let failed = |failure: Failure| {
        print::failure(&failure, tell);
        ExitCode::from(failure.code)
    };
    let input = match std::io::stdin().is_terminal() {
        true if std::io::stdout().is_terminal() => Input::Person,
        false if commands::prompt::is_text(&std::io::stdin()) => Input::Text,
        _ => Input::Nothing,
    };
    let line = args::complete(typed, input).map_err(failed)?;
    let error = match Arguments::try_parse_from(&line) {
        Ok(mut arguments) => {
            arguments.understand();
            let skips = line.iter().any(|argument| argument == "--dangerously-skip-permissions");
            if skips && tell == FailureFormat::Words && !arguments.global.quiet {
                print::note(SKIPS);
            }
            return Ok(arguments);
        }
        Err(error) => error,
    };
    let failure =
        args::keeps_what_it_has(&error).or_else(|| args::mistakes::explain(&error, &line));
    if let Some(failure) = failure {
        return Err(failed(failure));
    }
    if error.use_stderr() && tell == FailureFormat::Json {
        let failure = Failure::usage("the command is not complete");
        return Err(failed(failure.hint("`posse help` lists the commands")));
    }
    // The text contains what was typed, which may have come from elsewhere.
    let plain = error.render().to_string();
    if clean::clean(&plain) != plain {
        print::note(clean::clean(&plain).trim_end());
        return Err(exit::Code::Usage.into());
    }
    // clap chooses the stream. If printing fails, there is no place to report it.
    let _ = error.print();
    Err(if error.use_stderr() { exit::Code::Usage.into() } else { exit::Code::Done.into() })
}

async fn dispatch(
    arguments: Arguments,
    environment: Environment,
    launcher: Launcher,
) -> Result<exit::Code, Failure> {
    let common = common::Common::new(arguments.global, environment, launcher);
    let common = if arguments.command.looks_or_stops() { common.tolerant() } else { common };
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
        Command::Mcp(Later(verb)) => commands::mcp::run(&common, verb).await,
        Command::Models(Later(options)) => commands::models::run(common, options).await,
        Command::Daemon(Later(verb)) => commands::daemon::run(common, verb).await,
        Command::Worker(Later(options)) => commands::worker::run(&common, &options).await,
        Command::Workers => commands::worker::list(&common).await,
        Command::Db(Later(verb)) => commands::db::run(common, verb).await,
        Command::Doctor(Later(options)) => commands::doctor::run(&common, &options).await,
        Command::Config(Later(options)) => commands::config::run(&common, &options).await,
        Command::Demo(Later(options)) => commands::demo::run(common, options).await,
        Command::FakeModel(Later(options)) => commands::fake_model::run(common, options).await,
        Command::Completions { shell } => commands::completions::run(&common, shell),
        Command::Man { command, out } => commands::man::run(&common, &command, out.as_deref()),
    }
}
