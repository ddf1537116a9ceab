//! `posse completions`: for bash, zsh, fish and others.

use crate::args::Arguments;
use crate::exit::{Code, Failure};
use crate::print;
use clap::CommandFactory;
use clap_complete::Shell;

pub fn run(shell: Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "posse", &mut script);
    print::raw(&script);
    Ok(Code::Done)
}
