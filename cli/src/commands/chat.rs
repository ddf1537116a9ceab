//! `posse chat`: a session, line by line.

mod commands;
mod lines;
mod words;

use super::cassette::Deck;
use super::follow::{Followed, Followee, Form, Until, Viewer};
use super::rest::busy_below;
use super::run::wait_for_below;
use super::{Common, folder, reason, spec};
use crate::args::ChatOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::signals::Signal;
use crate::terminal::Restore;
use commands::Chat;
use lines::{Line, Lines};
use posse::config::Config;
use posse::protocol::CancelScope;
use posse::store::{Filter, Kin};
use posse::{Extent, RunRow, Runtime};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use words::{Command, Meaning};

pub async fn run(mut common: Common, options: ChatOptions) -> Result<Code, Failure> {
    let folder = folder(options.agent.cwd.as_ref())?;
    let mut changed = None;
    match options.agent.trust {
        true => common.trust_for_now(&folder)?,
        false => changed = common.review_changes(&folder, true)?,
    }
    let config = common.config(&folder)?;
    let form = if common.global.json { Form::StreamJson } else { Form::Screen };
    let mut viewer = Viewer::new(&common, form)?;
    let _restore = Restore::later();
    let mut deck = Deck::open(&options.cassette, &folder, &common.environment)?;
    let agents = common.agents(&folder, &options.agent.agents)?;
    let runtime = common.runtime_with(&config, agents, deck.cassette()).await?;
    let result = async {
        let agent = options.agent.agent.as_deref();
        viewer.warn_of_agents(&runtime, agent.unwrap_or(config.agent.value.as_str()));
        if let Some(changed) = &changed {
            viewer.screen.remark(changed);
        }
        common.tell_unused(&folder, &mut viewer.screen)?;
        deck.announce(&mut viewer.screen);
        let mut session = open(&runtime, &options, &config, &folder, &mut viewer).await?;
        let lines = Lines::open(history(&common));
        let chat = Chat { common: &common, runtime: &runtime, session: session.run.id() };
        let code = converse(&chat, &mut session, lines, &mut viewer, &deck).await?;
        let row = runtime.find(&session.run.id().to_string()).await?;
        if !row.title.is_empty() {
            let again = format!("`posse chat --resume {}` goes on with this", row.id.short());
            viewer.screen.remark(&again);
        }
        Ok(code)
    }
    .await;
    viewer.close(&runtime).await;
    deck.close(result, &mut viewer.screen)
}

/// Where the lines that were typed are kept.
fn history(common: &Common) -> Option<PathBuf> {
    let folder = common.environment.data_folder.as_ref()?;
    // Without it there is no history, which is no reason not to talk.
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    Some(folder.join("history"))
}

async fn open(
    runtime: &Runtime,
    options: &ChatOptions,
    config: &Config,
    folder: &Path,
    viewer: &mut Viewer,
) -> Result<Followee, Failure> {
    let Some(wanted) = &options.resume else {
        let mut spec = spec(&options.agent, config, folder, None)?;
        spec.session = true;
        let selection = runtime.select(&spec).await?;
        let why = reason(&selection, &spec, config);
        viewer.screen.because(&selection.model, why);
        let run = runtime.start(spec).await?;
        return Ok(Followee::new(run));
    };
    let row = match wanted {
        Some(id) => runtime.find(id).await?,
        None => latest(runtime, folder).await?,
    };
    let short = row.id.short();
    if !row.session {
        return Err(Failure::usage(format!("run {short} is not a chat"))
            .hint(format!("`posse runs resume {short} \"…\"` goes on with it")));
    }
    runtime.check_model(&row.model)?;
    let title = clean_line(&row.title, 100);
    viewer.screen.remark(&format!("going on with {short}: {title}"));
    // Whoever comes back to talk does not mean to wait.
    if row.paused && row.outcome.is_none() {
        runtime.unpause(row.id, "the user", Extent::Subtree).await?;
    }
    let recalled = viewer.recall(runtime, &row).await?;
    Ok(Followee::again(runtime.resume(row.id), recalled))
}

/// The newest session in this folder.
async fn latest(runtime: &Runtime, folder: &Path) -> Result<RunRow, Failure> {
    let workspace = Some(folder.display().to_string());
    let filter = Filter { workspace, kin: Kin::Roots, limit: 10_000, ..Filter::default() };
    let rows = runtime.list(&filter).await?;
    let said = |row: &RunRow| row.session && !row.title.is_empty() && row.damaged.is_none();
    rows.into_iter().find(said).ok_or_else(|| {
        Failure::usage(format!("there is no chat in {} yet", folder.display()))
            .hint("`posse chat` begins one; `posse runs list` shows those elsewhere")
    })
}

async fn converse(
    chat: &Chat<'_>,
    session: &mut Followee,
    mut lines: Lines,
    viewer: &mut Viewer,
    deck: &Deck,
) -> Result<Code, Failure> {
    let runtime = chat.runtime;
    // A new session says what it is; a resumed one may be in the middle of a turn.
    let Turn::Over(mut code) = turn(runtime, session, viewer).await? else {
        return Ok(Code::Interrupted);
    };
    // Something has come that was not shown yet.
    let mut waiting = false;
    loop {
        let next = tokio::select! {
            next = lines.next(&mut viewer.signals) => next?,
            told = session.told() => {
                told?;
                if lines::is_interactive() {
                    lines.say("◇ a task in the background has ended; Enter shows what comes of it");
                    waiting = true;
                }
                continue;
            }
        };
        let line = match next {
            Line::Text(line) => line,
            Line::Interrupted => {
                print::note("(Ctrl-D or /quit leaves)");
                continue;
            }
            Line::End => return leave(chat, session, viewer, code).await,
            Line::Unreadable(reason) => {
                return Err(Failure::usage(format!("cannot read the input: {reason}")));
            }
            Line::Killed => return Ok(Code::Interrupted),
        };
        let text = match Meaning::of(&line) {
            Meaning::Nothing if std::mem::take(&mut waiting) => {
                match turn(runtime, session, viewer).await? {
                    Turn::Over(_) => continue,
                    Turn::Leave => return Ok(Code::Interrupted),
                }
            }
            Meaning::Nothing => continue,
            Meaning::Say(text) => text,
            Meaning::Command(Command::Quit) => return leave(chat, session, viewer, code).await,
            Meaning::Command(command) => match chat.obey(command, viewer).await? {
                Turn::Over(_) => continue,
                Turn::Leave => return Ok(Code::Interrupted),
            },
            Meaning::Unknown(word) => {
                print::note(commands::unknown(word));
                continue;
            }
            Meaning::Misused(usage) => {
                print::note(format!("it is used like this: {usage}"));
                continue;
            }
        };
        waiting = false;
        runtime.send(chat.session, text).await?;
        code = match turn(runtime, session, viewer).await? {
            Turn::Over(code) => code,
            Turn::Leave => return Ok(Code::Interrupted),
        };
        deck.check()?;
    }
}

/// The input has ended. A pipe waits for what is at work in the background: nobody could ask for it
/// later, and ends with the `code` of its last turn. A person has read how each turn ended, and is
/// told that what is at work goes on when the chat does.
async fn leave(
    chat: &Chat<'_>,
    session: &mut Followee,
    viewer: &mut Viewer,
    mut code: Code,
) -> Result<Code, Failure> {
    loop {
        let row = chat.runtime.find(&chat.session.to_string()).await?;
        if lines::is_interactive() {
            tell_who_goes_on(chat, &row, viewer).await?;
            return Ok(Code::Done);
        }
        if row.expects == 0 {
            wait_for_below(chat.common, chat.runtime, chat.session, viewer).await?;
            return Ok(code);
        }
        tokio::select! {
            told = session.told() => told?,
            _ = viewer.signals.next() => return Ok(Code::Interrupted),
        }
        code = match turn(chat.runtime, session, viewer).await? {
            Turn::Over(code) => code,
            Turn::Leave => return Ok(Code::Interrupted),
        };
    }
}

/// Tells a person who leaves that some are at work for the session, whether it waits for them or not.
async fn tell_who_goes_on(
    chat: &Chat<'_>,
    row: &RunRow,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let busy = busy_below(chat.runtime, chat.session).await?.len() as u64;
    let at_work = busy.max(row.expects.into());
    let tasks = if at_work == 1 { "task is" } else { "tasks are" };
    if at_work > 0 {
        viewer.screen.remark(&format!(
            "{at_work} {tasks} still at work in the background, and will go on with this chat"
        ));
    }
    Ok(())
}

enum Turn {
    /// It ended, with this code.
    Over(Code),
    /// The chat is to be left.
    Leave,
}

/// Shows a turn until the session waits again. Ctrl-C interrupts the turn, other signals leave.
async fn turn(
    runtime: &Runtime,
    session: &mut Followee,
    viewer: &mut Viewer,
) -> Result<Turn, Failure> {
    let mut interrupted = false;
    let code = loop {
        match viewer.follow(runtime, session, Until::Rest).await? {
            Followed::Rests(_) => break Code::Done,
            Followed::Ended(outcome) => {
                if !outcome.is_completed() && viewer.form == Form::Screen {
                    viewer.screen.end_turn()?;
                    print::note(format!("✗ {}", clean_line(&outcome.to_string(), 600)));
                }
                break Code::of(&outcome);
            }
            Followed::Signal(Signal::Interrupt) if interrupted => {
                viewer.screen.remark("still stopping; Ctrl-D leaves when it has");
            }
            Followed::Signal(Signal::Interrupt) => {
                interrupted = true;
                let id = session.run.id();
                tokio::select! {
                    // Nothing to interrupt any more is fine.
                    _ = runtime.cancel(id, "the user", CancelScope::Turn) => {}
                    _ = viewer.signals.next() => return Ok(Turn::Leave),
                }
            }
            Followed::Signal(_) => return Ok(Turn::Leave),
        }
    };
    viewer.end_turn()?;
    Ok(Turn::Over(code))
}
