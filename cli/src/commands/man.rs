//! `posse man`: manual pages, from the same definitions as the help.

use super::Common;
use crate::args::Arguments;
use crate::exit::{Code, Failure};
use crate::print;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;

pub fn run(common: &Common, command: &[String], out: Option<&Path>) -> Result<Code, Failure> {
    let mut top = Arguments::command();
    top.build();
    if let Some(folder) = out {
        let pages = pages(&top, "posse")?;
        let cannot = |error: std::io::Error| {
            Failure::usage(format!("cannot write manual pages to {}: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(cannot)?;
        for (name, text) in &pages {
            std::fs::write(folder.join(format!("{name}.1")), text).map_err(cannot)?;
        }
        if common.global.json {
            let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
            print::json(&serde_json::json!({"folder": folder, "pages": names}))?;
        } else if !common.global.quiet {
            print::note(format!("{} manual pages in {}", pages.len(), folder.display()));
        }
        return Ok(Code::Done);
    }
    let mut name = "posse".to_owned();
    let mut found = &top;
    for word in command {
        found = found.find_subcommand(word).ok_or_else(|| {
            Failure::usage(format!("`{}` is not a command", command.join(" ")))
                .hint("`posse help` lists the commands")
        })?;
        name = format!("{name}-{}", found.get_name());
    }
    let text = page(found, &name)?;
    match common.global.json {
        true => print::json(&serde_json::json!({"name": name, "page": text}))?,
        false => print::piece(&text)?,
    }
    Ok(Code::Done)
}

/// The page of `command`, and those of all commands below it.
fn pages(command: &Command, name: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut all = vec![(name.to_owned(), page(command, name)?)];
    let below = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
    for below in below {
        all.extend(pages(below, &format!("{name}-{}", below.get_name()))?);
    }
    Ok(all)
}

fn page(command: &Command, name: &str) -> Result<String, Failure> {
    let mut text = Vec::new();
    // Names are kept for as long as the program runs.
    let name: &'static str = name.to_owned().leak();
    let written = Man::new(command.clone().name(name)).render(&mut text);
    written.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
