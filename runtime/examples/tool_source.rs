//! A tool source: a program that tells, when a run is prepared, which tools it offers.
//!
//! `ANTHROPIC_API_KEY=… cargo run --example tool_source`

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

mod line_source;

use line_source::LineSource;
use posse::{Catalog, Keys, Program, RunSpec, Runtime, launch};
use std::error::Error;

/// What the source runs. It could be in any language.
const SERVER: &str = r#"
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
        *'"ask":"tools"'*) printf '{"id":%s,"tools":[{"name":"count",
            "description":"Counts the text files of the working folder.",
            "schema":{"type":"object"},"effect":"read","idempotent":true}]}' "$id" | tr -d '\n' ;;
        *) printf '{"id":%s,"text":"%s text files"}' "$id" "$(ls *.txt | wc -l)" ;;
    esac
    echo
done
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // First of all, before any thread: processes run below this same program.
    let launcher = launch::init();
    let environment = launch::allowed_environment(std::env::vars_os(), &[]);
    let launcher = launcher.with_environment(environment);
    tokio::runtime::Runtime::new()?.block_on(work(launcher))
}

async fn work(launcher: launch::Launcher) -> Result<(), Box<dyn Error>> {
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    let (state, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for name in ["one.txt", "two.txt"] {
        std::fs::write(folder.path().join(name), name)?;
    }
    let args = vec!["-c".into(), SERVER.into()];
    let program = Program { program: "sh".into(), args, ..Program::default() };
    let source = LineSource { name: "folder".to_owned(), program };
    let builder = Runtime::builder(state.path().join("runs.db")).keys(keys);
    let builder = builder.default_model("haiku").launcher(launcher).tool_source(source);
    let runtime = builder.open().await?;
    let prompt = "Count the text files of this folder.";
    let spec = RunSpec::new("general-purpose".parse()?, prompt, folder.path());
    let outcome = runtime.start(spec).await?.outcome().await?;
    println!("{outcome}: {}", outcome.text());
    runtime.shutdown().await;
    Ok(())
}
