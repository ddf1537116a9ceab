//! `posse man`: manual pages, made from the same definitions as the help.

use super::Common;
use crate::args::Arguments;
use crate::exit::{Code, Failure};
use crate::print;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;

/// The section about files, at the end of every page.
const FILES: &str = ".SH FILES
~/.local/share/posse/posse.db: the database
.br
~/.config/posse/config.toml: your settings
.br
posse.toml: the settings of a project
.SH \"SEE ALSO\"
\\fBposse help\\fR, \\fBposse config path\\fR
";

pub fn run(common: &Common, command: &[String], out: Option<&Path>) -> Result<Code, Failure> {
    let mut top = Arguments::command();
    top.build();
    let top = without_help(top);
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

/// The page of `command`, and the pages of its subcommands.
fn pages(command: &Command, name: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut all = vec![(name.to_owned(), page(command, name)?)];
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    for below in below {
        all.extend(pages(below, &format!("{name}-{}", below.get_name()))?);
    }
    Ok(all)
}

/// `command` without the subcommand `help`, which has no page.
fn without_help(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |below| match name.as_str() {
            "help" => below.hide(true),
            _ => without_help(below),
        })
    })
}

/// The sections after the options, each with its own heading: examples, environment, exit codes.
fn sections(command: &Command) -> String {
    let more = command.get_after_long_help().or_else(|| command.get_after_help());
    let more = more.map(ToString::to_string).unwrap_or_default();
    let mut text = String::new();
    for line in more.lines() {
        let heading = line.strip_suffix(':').filter(|heading| !heading.starts_with(' '));
        match heading {
            Some("Exit codes") => text.push_str(".fi\n.SH \"EXIT STATUS\"\n.nf\n"),
            Some("First steps") => text.push_str(".fi\n.SH EXAMPLES\n.nf\n"),
            Some(heading) => {
                let heading = heading.to_uppercase();
                let heading = match heading.contains(' ') {
                    true => format!("\"{heading}\""),
                    false => heading,
                };
                text.push_str(&format!(".fi\n.SH {heading}\n.nf\n"));
            }
            None if line.is_empty() => {}
            None => {
                // A line that starts with a dot would be a request to the formatter.
                let line = line.strip_prefix("  ").unwrap_or(line).replace('\\', "\\e");
                text.push_str(&format!("\\&{}\n", line.replace('-', "\\-")));
            }
        }
    }
    match text.strip_prefix(".fi\n") {
        Some(text) => format!("{text}.fi\n"),
        None => text,
    }
}

fn page(command: &Command, name: &str) -> Result<String, Failure> {
    let mut text = Vec::new();
    // clap needs a static name.
    let name: &'static str = name.to_owned().leak();
    let more = sections(command);
    let command = command.clone().name(name).after_help("").after_long_help("");
    let written = Man::new(command).render(&mut text);
    written.map_err(|error| Failure::internal(error.to_string()))?;
    let text = String::from_utf8_lossy(&text);
    // Keep the version last.
    let (before, version) = match text.find(".SH VERSION") {
        Some(at) => text.split_at(at),
        None => (&*text, ""),
    };
    let before = before.trim_end().strip_suffix(".SH EXTRA").unwrap_or(before);
    Ok(format!("{before}{more}{FILES}{version}"))
}
