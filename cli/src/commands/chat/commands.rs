//! The commands of a chat. They print to standard error, because standard output is for answers.

use super::super::Common;
use super::super::follow::{FollowedRun, Viewer};
use super::super::runs::{cancel, resume, tree};
use super::words::{COMMANDS, Command, names};
use super::{Turn, turn};
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::paint::Paint;
use crate::print;
use crate::screen::line::Look;
use crate::screen::wrap;
use crate::spending;
use crate::terminal::{self, fitted};
use posse::protocol::{CancelScope, Event, Seq};
use posse::skills::Skill;
use posse::store::{By, SpendingQuery};
use posse::views::Spending;
use posse::views::Tree;
use posse::{Extent, Receipt, RunId, RunRow, Runtime, SkillCatalog, is_open};
use std::collections::{BTreeMap, HashSet};
use std::io::IsTerminal;
use std::path::Path;

/// The context of a command.
pub struct Chat<'a> {
    pub common: &'a Common,
    pub runtime: &'a Runtime,
    pub session: RunId,
    pub folder: &'a Path,
    /// The cost of this command is limited over all its chats.
    pub is_limited: bool,
}

impl Chat<'_> {
    /// Fails if the cost is limited, because other chats have their own budgets.
    pub fn check_money(&self, root: Option<RunId>) -> Result<(), Failure> {
        if !self.is_limited || root == Some(self.session) {
            return Ok(());
        }
        Err(Failure::usage(
            "this chat was started with --max-cost, and other chats have money of their own",
        )
        .hint("leave with /quit; `posse chat --resume` opens another chat"))
    }
}

/// The most skills in the help, and the widest column of usages.
const SKILLS: usize = 50;
const WIDEST: usize = 40;

/// The most rows of a table of costs.
const MOST: usize = 15;

/// The least number of columns for an explanation.
const NARROW: usize = 16;

/// The keys and what they do.
const KEYS: [(&str, &str); 5] = [
    ("@path", "name a file or folder; Tab completes it"),
    ("\\ or Alt-Enter", "continue on the next line"),
    ("Up, Ctrl-R", "use an earlier message"),
    ("Esc or Ctrl-C", "stop what the agent is doing"),
    ("Ctrl-D", "leave the chat"),
];

/// Further notes.
const NOTES: &str = "\
What you type while the agent works is sent when it has finished.
Start a line with `//` to send a text that begins with `/`.
The chat is kept: `posse chat --resume` continues it.";

impl Chat<'_> {
    /// Executes a command. Errors are shown, and the chat continues.
    pub async fn obey(&self, command: Command<'_>, viewer: &mut Viewer) -> Result<Turn, Failure> {
        let done = match command {
            Command::Help => {
                help(self.look(), &self.runtime.skills_in(self.folder));
                Ok(Turn::Over(Code::Done))
            }
            Command::Agents => {
                self.agents();
                Ok(Turn::Over(Code::Done))
            }
            Command::Permissions => self.permissions().await,
            // The chat itself handles the commands that change the conversation.
            Command::Quit
            | Command::Switch
            | Command::Clear
            | Command::Compact
            | Command::Model { .. } => Ok(Turn::Leave),
            Command::Runs => self.runs().await,
            Command::Cost => self.cost().await,
            Command::Cancel { run } => self.cancel(run, viewer).await,
            Command::Resume { run, text } => self.resume(run, text, viewer).await,
        };
        done.or_else(|failure| {
            self.complain(&failure);
            Ok(Turn::Over(Code::Done))
        })
    }

    fn look(&self) -> Look {
        let is_terminal = std::io::stderr().is_terminal();
        let paint = Paint { on: is_terminal && !self.common.environment.no_color };
        Look { paint, columns: if is_terminal { terminal::width() } else { usize::MAX } }
    }

    /// Prints a line, wrapped between words.
    pub fn tell(&self, line: &str) {
        print::note(wrap::folded(line, self.look().columns));
    }

    /// Prints an error.
    pub fn complain(&self, failure: &Failure) {
        self.tell(&print::in_words(failure));
    }

    /// True when `line` invokes a skill or a command of the user.
    pub fn is_invocation(&self, line: &str) -> bool {
        self.runtime.skills_in(self.folder).invoked(line).is_some()
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

    /// Prints the present model, and `next`, the model from the next message on.
    pub async fn model(&self, next: Option<&str>) -> Result<(), Failure> {
        let model = clean_line(&self.row().await?.about.model, 100);
        let next =
            next.map(|next| format!(", {} from your next message on", clean_line(next, 100)));
        self.tell(&format!(
            "model: {model}{}; `/model NAME` uses another, `posse models` lists them",
            next.unwrap_or_default()
        ));
        Ok(())
    }

    async fn permissions(&self) -> Result<Turn, Failure> {
        let first = self.runtime.read(self.session, Seq::ZERO, 1).await?;
        let started = first.iter().find_map(|record| match &record.event {
            Event::RunStarted(started) => Some(started.clone()),
            _ => None,
        });
        let Some(started) = started else { return Ok(Turn::Over(Code::Done)) };
        let grant = &started.grant;
        let rules = |rules: &[String]| match rules.is_empty() {
            true => "no rules".to_owned(),
            false => clean_line(&rules.join(", "), 1_000),
        };
        for (name, value) in [
            ("mode", grant.mode.to_string()),
            ("folder", clean_line(&grant.workspace, 400)),
            ("commands", grant.profile().to_string()),
            ("allow", rules(&grant.permissions.allow)),
            ("ask", rules(&grant.permissions.ask)),
            ("deny", rules(&grant.permissions.deny)),
        ] {
            self.tell(&format!("{name:9} {value}"));
        }
        self.tell(
            "These are from the start of the chat. What you allowed since then, and the rules of \
             your settings as they are now (`posse config`), hold too. To change the mode, start a \
             chat with --mode.",
        );
        Ok(Turn::Over(Code::Done))
    }

    async fn runs(&self) -> Result<Turn, Failure> {
        let row = self.row().await?;
        let family = Tree::of(self.runtime, &row).await?;
        for line in tree::lines(&family, &row, self.look()) {
            print::note(line);
        }
        print::note(tree::total(&family, &row));
        Ok(Turn::Over(Code::Done))
    }

    async fn cost(&self) -> Result<Turn, Failure> {
        let row = self.row().await?;
        let family = Tree::of(self.runtime, &row).await?;
        let rows: Vec<&RunRow> = std::iter::once(&row).chain(family.below(row.id)).collect();
        let of_run = |row: &RunRow| {
            format!(
                "{} [{}] {}",
                row.id.short(),
                clean_line(&row.about.agent, 32),
                clean_line(&row.about.title, 40)
            )
        };
        // A run that changed its model has called several.
        let query = SpendingQuery { by: By::Model, tree: Some(row.id), ..SpendingQuery::default() };
        let mut models = self.runtime.costs(&query).await?;
        models.sort_by_key(|sum| std::cmp::Reverse((sum.usage.cost, sum.usage.output_tokens)));
        let of_model = |sum: &posse::store::Spending| {
            (clean_line(&sum.key, 64), sum.runs, Spending::summed(sum))
        };
        let mut groups = vec![
            ("by agent", sums(&rows, |row| clean_line(&row.about.agent, 64))),
            ("by model", models.iter().map(of_model).collect()),
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

    /// Cancels the work of this session: first its subagents, then its turn. The ends of its subagents may
    /// have woken it.
    async fn cancel_own(&self) -> Result<String, Failure> {
        let family = Tree::of(self.runtime, &self.row().await?).await?;
        let (mut told, mut receipts) = (HashSet::new(), Vec::new());
        for below in family.below(self.session).into_iter().filter(|row| is_open(row)) {
            if told.contains(&below.id) {
                continue;
            }
            if let Some(receipt) = self.cancel_open(below.id, CancelScope::Run).await? {
                told.extend(receipt.told.iter().map(|told| told.run));
                receipts.push(receipt);
            }
        }
        for receipt in &receipts {
            cancel::wait(self.runtime, receipt).await?;
        }
        let row = self.row().await?;
        let is_at_work = row.work.runnable || row.family.awaits > 0 || row.state.asks > 0;
        if is_at_work && is_open(&row) {
            self.cancel_open(row.id, CancelScope::Turn).await?;
        }
        Ok(match told.len() as u64 {
            0 if is_at_work => "this chat was told to stop".to_owned(),
            0 => "nothing is at work; `/cancel RUN` stops another run".to_owned(),
            count => format!("{} told to stop", format::count(count, "run")),
        })
    }

    /// Asks `run` to stop. `None` if it has ended meanwhile.
    async fn cancel_open(
        &self,
        run: RunId,
        scope: CancelScope,
    ) -> Result<Option<Receipt>, Failure> {
        match self.runtime.cancel(run, "the user", scope).await {
            Ok(receipt) => Ok(Some(receipt)),
            Err(posse::Error::NotNow { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues a run and shows it like the present chat.
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
        self.check_money(Some(row.family.root))?;
        let family = Tree::of(self.runtime, &row).await?;
        let extent = Extent::Subtree;
        let held = resume::check(self.runtime, &family, &row, text, extent, viewer).await?;
        self.runtime.check_model(&row.about.model)?;
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
            let mut followee = FollowedRun::again(self.runtime.resume(row.id), recalled);
            turn(self.runtime, &mut followee, viewer).await
        }
        .await;
        viewer.screen = own;
        turned
    }
}

fn help(look: Look, skills: &SkillCatalog) {
    let own: Vec<(String, String)> = skills.iter().map(usage).collect();
    let shown = own.iter().take(SKILLS).map(|(usage, about)| (usage.as_str(), about.as_str()));
    let usages =
        COMMANDS.iter().copied().chain(shown.clone()).map(|(usage, _)| usage.chars().count());
    let width = usages.max().unwrap_or(0).min(WIDEST);
    let room = look.columns.saturating_sub(width + 4).max(NARROW);
    let row = |(usage, about): &(&str, &str)| {
        let about = wrap::lines(about, room).join(&format!("\n{}", " ".repeat(width + 4)));
        print::note(format!("  {usage:width$}  {about}"));
    };
    let tell = |text: &str| print::note(wrap::lines(text, look.columns).join("\n"));
    tell("Type a message and press Enter; the agent answers.");
    KEYS.iter().for_each(row);
    tell(NOTES);
    print::note("");
    COMMANDS.iter().for_each(row);
    if !own.is_empty() {
        print::note("");
        tell("Skills and commands of yours and of this project:");
        shown.for_each(|skill| row(&skill));
        if own.len() > SKILLS {
            tell(&format!("  … {} more; `posse skills list` lists all", own.len() - SKILLS));
        }
    }
}

/// The usage of a skill in a chat, and what it does.
fn usage(skill: &Skill) -> (String, String) {
    let hint = clean_line(&skill.argument_hint, 40);
    let usage = clean_line(&format!("/{} {hint}", skill.name), 100);
    (usage.trim().to_owned(), clean_line(&skill.description, 200))
}

/// The error for an unknown command.
pub fn unknown(word: &str) -> String {
    format!("there is no {}; there are: {}", clean_line(word, 40), names())
}

/// The sums over `rows` with the same name, the most expensive first.
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
        format::tokens(sum.input_tokens()),
        format::tokens(sum.output_tokens())
    );
    format!("{:>8}  {tokens:<20}", spending::money(sum))
}

fn times(runs: u64) -> String {
    if runs > 1 { format!(" ({runs} runs)") } else { String::new() }
}
