//! `posse completions`: completions for bash, zsh, fish and other shells.

use super::Common;
use crate::args::Arguments;
use crate::exit::{Code, Failure};
use crate::print;
use clap::CommandFactory;
use clap_complete::Shell;

pub fn run(common: &Common, shell: Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "posse", &mut script);
    let script = String::from_utf8_lossy(&script);
    match common.global.json {
        true => print::json(&serde_json::json!({"shell": shell.to_string(), "script": script}))?,
        false => print::piece(&script)?,
    }
    Ok(Code::Done)
}
