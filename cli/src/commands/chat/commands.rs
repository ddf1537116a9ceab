//! The commands of a chat. What they print goes to standard error: standard output holds answers.

use super::super::Common;
use super::super::follow::{Followee, Viewer};
use super::super::runs::{cancel, resume, tree};
use super::words::{COMMANDS, Command, names};
use super::{Turn, turn};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family::Family;
use crate::paint::Paint;
use crate::print;
use crate::screen::line::Look;
use crate::spending::Spending;
use crate::terminal::{self, fitted};
use crate::view;
use posse::protocol::CancelScope;
use posse::{Extent, RunId, RunRow, Runtime};
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// Where commands are given.
pub struct Chat<'a> {
    pub common: &'a Common,
    pub runtime: &'a Runtime,
    pub session: RunId,
}

/// Lines of a table of costs.
const MOST: usize = 15;

/// What is shown besides the commands.
const HELP: &str = "\
Type what you want; the agent answers. `//` at the beginning of a line says one slash.
  Ctrl-C              interrupts what it does
  Ctrl-D              leaves
The session is kept: `posse chat --resume` goes on with it.";

impl Chat<'_> {
    /// Does what a command says. What goes wrong is told, and the chat goes on.
    pub async fn obey(&self, command: Command<'_>, viewer: &mut Viewer) -> Result<Turn, Failure> {
        let done = match command {
            Command::Help => {
                help();
                Ok(Turn::Over(Code::Done))
            }
            Command::Agents => {
                self.agents();
                Ok(Turn::Over(Code::Done))
            }
            Command::Quit => Ok(Turn::Leave),
            Command::Runs => self.runs().await,
            Command::Cost => self.cost().await,
            Command::Cancel { run } => self.cancel(run, viewer).await,
            Command::Resume { run, text } => self.resume(run, text, viewer).await,
        };
        done.or_else(|failure| {
            print::failure(&failure, print::Tell::Words);
            Ok(Turn::Over(Code::Done))
        })
    }

    fn look(&self) -> Look {
        let is_terminal = std::io::stderr().is_terminal();
        let paint = Paint { on: is_terminal && !self.common.environment.no_color };
        Look { paint, columns: if is_terminal { terminal::width() } else { usize::MAX } }
    }

    async fn row(&self) -> Result<RunRow, Failure> {
        Ok(self.runtime.find(&self.session.to_string()).await?)
    }

    fn agents(&self) {
        let agents = self.runtime.agents();
        let width = agents.iter().map(|agent| agent.name.as_str().len()).max().unwrap_or(0);
        let look = self.look();
        for agent in agents.iter() {
            let about = clean_line(&agent.description, 400);
            let room = look.columns.saturating_sub(width + 2);
            let name = look.paint.agent(&agent.color, &format!("{:width$}", agent.name.as_str()));
            print::note(format!("{name}  {}", fitted(&about, room)));
        }
    }

    async fn runs(&self) -> Result<Turn, Failure> {
        let row = self.row().await?;
        let family = Family::of(self.runtime, &row).await?;
        for line in tree::lines(&family, &row, self.look()) {
            print::note(line);
        }
        print::note(tree::total(&family, &row));
        Ok(Turn::Over(Code::Done))
    }

    async fn cost(&self) -> Result<Turn, Failure> {
        let row = self.row().await?;
        let family = Family::of(self.runtime, &row).await?;
        let rows: Vec<&RunRow> = std::iter::once(&row).chain(family.below(row.id)).collect();
        let of_run = |row: &RunRow| {
            format!(
                "{} [{}] {}",
                row.id.short(),
                clean_line(&row.agent, 32),
                clean_line(&row.title, 40)
            )
        };
        let mut groups = vec![
            ("by agent", sums(&rows, |row| clean_line(&row.agent, 64))),
            ("by model", sums(&rows, |row| clean_line(&row.model, 64))),
        ];
        if rows.len() > 1 {
            groups.insert(0, ("by run", sums(&rows, of_run)));
        }
        let look = self.look();
        for (title, sums) in groups {
            print::note(look.paint.dim(title));
            for (name, runs, sum) in sums.iter().take(MOST) {
                let line = format!("  {}  {name}{}", spent(sum), times(*runs));
                print::note(fitted(&line, look.columns));
            }
            if sums.len() > MOST {
                let rest = sums.len() - MOST;
                print::note(format!("  … {rest} that cost less; /runs shows all runs"));
            }
        }
        print::note(tree::total(&family, &row));
        Ok(Turn::Over(Code::Done))
    }

    async fn cancel(&self, run: Option<&str>, viewer: &mut Viewer) -> Result<Turn, Failure> {
        let run = match run {
            Some(run) => Some(self.runtime.find(run).await?.id).filter(|run| *run != self.session),
            None => None,
        };
        let stopping = async {
            match run {
                Some(run) => {
                    let (outcome, receipt) = cancel::cancel(self.runtime, run).await?;
                    Ok(cancel::told_line(&outcome, &receipt))
                }
                None => self.cancel_own().await,
            }
        };
        tokio::select! {
            line = stopping => print::note(line?),
            _ = viewer.signals.next() => print::note("it was told to stop, and has not yet"),
        }
        Ok(Turn::Over(Code::Done))
    }

    /// Stops what this session has at work.
    async fn cancel_own(&self) -> Result<String, Failure> {
        let row = self.row().await?;
        let family = Family::of(self.runtime, &row).await?;
        let open = family.below(row.id).into_iter().filter(|row| row.outcome.is_none()).count();
        if open == 0 && !row.runnable && row.awaits == 0 {
            return Ok("nothing is at work; `/cancel RUN` stops another run".to_owned());
        }
        let receipt = self.runtime.cancel(row.id, "the user", CancelScope::Turn).await?;
        let below = receipt.below().count() as u64;
        Ok(format!("{} told to stop", view::count(below, "run")))
    }

    /// Goes on with a run and shows it, as if it were the one that is talked to.
    async fn resume(
        &self,
        run: &str,
        text: Option<&str>,
        viewer: &mut Viewer,
    ) -> Result<Turn, Failure> {
        let row = self.runtime.find(run).await?;
        if row.id == self.session {
            return Err(Failure::usage("that is this session; say it without a command"));
        }
        let family = Family::of(self.runtime, &row).await?;
        let held = resume::is_held(&family, &row, Extent::Subtree);
        if !held {
            resume::check(self.runtime, &family, &row, text, viewer).await?;
        }
        self.runtime.check_model(&row.model)?;
        let own = viewer.turn_to_another(self.common);
        let recalled = viewer.recall(self.runtime, &row).await;
        let turned = async {
            let recalled = recalled?;
            if let Some(text) = text {
                self.runtime.send(row.id, text).await?;
            }
            if held {
                self.runtime.unpause(row.id, "the user", Extent::Subtree).await?;
            }
            let mut followee = Followee::again(self.runtime.resume(row.id), recalled);
            turn(self.runtime, &mut followee, viewer).await
        }
        .await;
        viewer.screen = own;
        turned
    }
}

fn help() {
    let width = COMMANDS.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let line = |(usage, about): &(&str, &str)| format!("  {usage:width$}  {about}");
    let commands: Vec<String> = COMMANDS.iter().map(line).collect();
    print::note(format!("{HELP}\n\n{}", commands.join("\n")));
}

/// What is told of a command that there is not.
pub fn unknown(word: &str) -> String {
    format!("there is no {}; there are: {}", clean_line(word, 40), names())
}

/// Sums over those of `rows` that have the same name, the dearest first.
fn sums(rows: &[&RunRow], name: impl Fn(&RunRow) -> String) -> Vec<(String, u64, Spending)> {
    let mut groups: BTreeMap<String, (u64, Spending)> = BTreeMap::new();
    for row in rows {
        let (runs, sum) = groups.entry(name(row)).or_default();
        *runs += 1;
        sum.add(&Spending::of(row));
    }
    let mut sums: Vec<(String, u64, Spending)> =
        groups.into_iter().map(|(name, (runs, sum))| (name, runs, sum)).collect();
    sums.sort_by_key(|(_, _, sum)| std::cmp::Reverse((sum.cost(), sum.tokens())));
    sums
}

fn spent(sum: &Spending) -> String {
    let tokens = format!(
        "{} in / {} out",
        view::tokens(sum.input_tokens()),
        view::tokens(sum.output_tokens())
    );
    format!("{:>8}  {tokens:<20}", sum.money())
}

fn times(runs: u64) -> String {
    if runs > 1 { format!(" ({runs} runs)") } else { String::new() }
}
