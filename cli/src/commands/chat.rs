//! `posse chat`: a session, line by line.

mod commands;
mod completion;
mod lines;
mod picker;
mod recap;
mod words;

use super::cassette::CommandCassette;
use super::follow::{Arrival, Followed, FollowedRun, Form, Until, Viewer};

use super::run::wait_for_below;
use super::{Common, again, folder, reason, spec};
use crate::args::{self, ChatOptions};
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::signals::Signal;
use crate::spending;
use crate::terminal::Restore;
use commands::Chat;
use completion::Completion;
use lines::{Line, Lines};
use posse::config::Config;
use posse::protocol::{CancelScope, MessageOptions, Status};
use posse::views::is_empty_chat;
use posse::{Extent, RunId, RunRow, Runtime};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use words::{Command, Meaning};

pub async fn run(mut common: Common, mut options: ChatOptions) -> Result<Code, Failure> {
    let folder = folder(options.agent.cwd.as_ref())?;
    let mut changed = None;
    match options.agent.trust {
        true => common.trust_for_now(&folder)?,
        false => changed = common.review_changes(&folder, true)?,
    }
    let config = common.config(&folder)?;
    let form = if common.global.json { Form::StreamJson } else { Form::Screen };
    let mut viewer = Viewer::new(&common, form)?;
    viewer.leaves_questions = true;
    let _restore = Restore::later();
    let mut deck = CommandCassette::open(&options.cassette, &folder, &common.environment)?;
    let agents = common.agents(&folder, &options.agent.agents)?;
    let runtime = common.runtime_with(&config, agents, deck.cassette()).await?;
    let result = async {
        let agent = options.agent.agent.as_deref();
        let agent = agent.unwrap_or(config.agent.value.as_str());
        viewer.warn_of_agents(&runtime, agent);
        match &changed {
            Some(changed) => viewer.screen.remark(changed),
            None => viewer.warn_of_trust(&runtime, &config, agent),
        }
        common.tell_unused(&folder, &mut viewer.screen)?;
        deck.announce(&mut viewer.screen);
        let mut lines = None;
        let mut target = asked_for(&common, &runtime, &options, &folder, &mut viewer).await?;
        // The changes before the first answer of an earlier session. A new session starts with the options.
        let mut asks = match target {
            Target::New { .. } => MessageOptions::default(),
            Target::Session(_) => args::asks(&options.agent)?,
        };
        loop {
            let mut session = match target {
                Target::New { model } => {
                    begin(&runtime, &options, model, &config, &folder, &mut viewer).await?
                }
                Target::Session(row) => resume(&runtime, *row, &asks, &mut viewer).await?,
            };
            let is_limited = options.agent.max_cost.is_some();
            let session_id = session.run.id();
            let chat = Chat {
                common: &common,
                runtime: &runtime,
                session: session_id,
                folder: &folder,
                is_limited,
            };
            let open = || {
                let skills = common.skills(Some(folder.clone()));
                Lines::open(history(&common), Completion { folder: folder.clone(), skills })
            };
            let lines = lines.get_or_insert_with(open);
            let asks = std::mem::take(&mut asks);
            let talk = converse(&chat, &mut session, asks, lines, &mut viewer, &deck, &mut changed);
            let next = talk.await?;
            viewer.typing.take_all_back();
            let unsent = viewer.typing.unfinished();
            if !unsent.is_empty() {
                viewer.screen.remark(&format!("not sent: {}", clean(&unsent)));
            }
            let row = session.run.row().await?;
            if !row.about.title.is_empty() {
                let again = format!("To continue: `posse chat --resume {}`", row.id.short());
                viewer.screen.remark(&again);
            }
            target = match next {
                Next::Leave(code) => return Ok(code),
                Next::Go(target) => target,
            };
            // --max-cost limits all conversations of this command together.
            if let (Some(most), Some(drawn)) = (&mut options.agent.max_cost, row.funds.drawn) {
                *most -= drawn.cost.dollars();
                if *most <= 0.0 && matches!(target, Target::New { .. }) {
                    print::note("the money of --max-cost is used up");
                    return Ok(Code::Budget);
                }
            }
            viewer.turn_to_another(&common);
        }
    }
    .await;
    viewer.screen.pause();
    viewer.close(&runtime).await;
    deck.close(result, &mut viewer.screen)
}

/// The file with the history of typed lines.
fn history(common: &Common) -> Option<PathBuf> {
    let folder = common.environment.data_folder.as_ref()?;
    // A chat works without a history, too.
    let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    Some(folder.join("history"))
}

/// The session to talk to.
enum Target {
    /// A new session with this model, or with the model of the options or settings.
    New {
        model: Option<String>,
    },
    Session(Box<RunRow>),
}

/// What happens after a session.
enum Next {
    Leave(Code),
    Go(Target),
}

/// The session that `options` select. A person chooses if there are several.
async fn asked_for(
    common: &Common,
    runtime: &Runtime,
    options: &ChatOptions,
    folder: &Path,
    viewer: &mut Viewer,
) -> Result<Target, Failure> {
    let row = match &options.resume {
        None if !options.continues => return Ok(Target::New { model: None }),
        Some(Some(id)) => runtime.find(id).await?,
        None | Some(None) => {
            let mut rows = picker::sessions(runtime, folder).await?;
            let can_pick = viewer.screen.is_live() && lines::is_interactive();
            if rows.len() > 1 && !options.continues && can_pick {
                let picked = picker::pick(common, &rows, &mut viewer.signals).await;
                let place = picked.ok_or_else(|| Failure {
                    code: Code::Interrupted,
                    message: "no chat was chosen".to_owned(),
                    hint: None,
                })?;
                rows.swap_remove(place)
            } else {
                match again::last_talked_to(runtime, rows).await? {
                    Some(last) => last,
                    None => return Err(picker::none(runtime, folder).await?),
                }
            }
        }
    };
    Ok(Target::Session(Box::new(row)))
}

async fn begin(
    runtime: &Runtime,
    options: &ChatOptions,
    model: Option<String>,
    config: &Config,
    folder: &Path,
    viewer: &mut Viewer,
) -> Result<FollowedRun, Failure> {
    let mut spec = spec(&options.agent, config, folder, None)?;
    spec.session = true;
    // The budget limits the cost of the whole chat and ends it. A limit per message would only repeat it.
    if config.limits.cost.value.is_none() {
        spec.limits.cost = None;
    }
    if model.is_some() {
        (spec.models.model, spec.models.fallbacks) = (model, Vec::new());
    }
    let selection = runtime.select(&spec).await?;
    viewer.warn_of_models(runtime, &selection);
    let why = reason(&selection, &spec, config);
    viewer.screen.because(&selection.model, why);
    Ok(FollowedRun::new(runtime.start(spec).await?))
}

async fn resume(
    runtime: &Runtime,
    row: RunRow,
    asks: &MessageOptions,
    viewer: &mut Viewer,
) -> Result<FollowedRun, Failure> {
    let short = row.id.short();
    if !row.about.session {
        return Err(Failure::usage(format!("run {short} is not a chat"))
            .hint(format!("`posse runs resume {short} \"…\"` continues it")));
    }
    runtime.check_can_work().await?;
    match &asks.model {
        Some(model) => runtime.check_model_for(row.id, model).await.map(drop)?,
        None => runtime.check_model(&row.about.model)?,
    }
    let title = clean_line(&row.about.title, 100);
    viewer.screen.remark(&format!("continuing {short}: {title}"));
    if viewer.form == Form::Screen && lines::is_interactive() {
        recap::show(runtime, &row, viewer).await?;
    }
    // A person who returns to a paused chat wants to talk, so resume it.
    if row.state.paused && row.state.outcome.is_none() {
        runtime.unpause(row.id, "the user", Extent::Subtree).await?;
    }
    let recalled = viewer.recall(runtime, &row).await?;
    Ok(FollowedRun::again(runtime.resume(row.id), recalled))
}

async fn converse(
    chat: &Chat<'_>,
    session: &mut FollowedRun,
    mut asks: MessageOptions,
    lines: &mut Lines,
    viewer: &mut Viewer,
    deck: &CommandCassette,
    changed: &mut Option<String>,
) -> Result<Next, Failure> {
    let runtime = chat.runtime;
    // A new session prints what it is. A resumed one may be in the middle of a turn.
    let Turn::Over(mut code) = turn(runtime, session, viewer).await? else {
        return Ok(Next::Leave(Code::Interrupted));
    };
    // An event arrived that is not shown yet.
    let mut waiting = false;
    // The model that was chosen in this session. The next new session keeps it.
    let mut chosen = None;
    loop {
        let next = match viewer.typing.next() {
            Some(text) => {
                lines.remember(&text);
                viewer.screen.note(&format!("› {}", clean(&text).replace('\n', "\n  ")));
                Line::Text(text)
            }
            None => {
                lines.begin_with(viewer.typing.unfinished());
                tokio::select! {
                    next = lines.next(&mut viewer.signals) => next?,
                    told = session.told() => {
                        let what = match told? {
                            Arrival::Recorded => continue,
                            Arrival::End => "a task in the background has ended; Enter shows what comes of it",
                            Arrival::Message => "this chat got a message from elsewhere; Enter shows what comes of it",
                            Arrival::Question => "a task in the background asks you something; Enter shows the question",
                        };
                        if lines::is_interactive() && !std::mem::replace(&mut waiting, true) {
                            lines.say(&format!("◇ {what}"));
                        }
                        continue;
                    }
                }
            }
        };
        let line = match next {
            Line::Text(line) => line,
            Line::Interrupted => {
                print::note("(Ctrl-D or /quit leaves)");
                continue;
            }
            Line::End => return leave(chat, session, viewer, code).await.map(Next::Leave),
            Line::Unreadable(reason) => {
                return Err(Failure::usage(format!("cannot read the input: {reason}")));
            }
            Line::Killed => return Ok(Next::Leave(Code::Interrupted)),
        };
        let text = match Meaning::of(&line) {
            Meaning::Nothing if std::mem::take(&mut waiting) || session.may_ask() => {
                match turn(runtime, session, viewer).await? {
                    Turn::Over(_) => continue,
                    Turn::Leave => return Ok(Next::Leave(Code::Interrupted)),
                }
            }
            Meaning::Nothing => continue,
            Meaning::Say(text) => text,
            Meaning::Command(Command::Quit) => {
                return leave(chat, session, viewer, code).await.map(Next::Leave);
            }
            Meaning::Command(Command::Clear) => {
                return Ok(Next::Go(Target::New { model: chosen }));
            }
            Meaning::Command(Command::Switch) => match switch(chat, viewer).await {
                Ok(Some(target)) => return Ok(Next::Go(target)),
                Ok(None) => continue,
                Err(failure) => {
                    chat.complain(&failure);
                    continue;
                }
            },
            Meaning::Command(Command::Resume { run, text: None })
                if let Some(row) = another_chat(chat, run).await =>
            {
                return Ok(Next::Go(Target::Session(Box::new(row))));
            }
            Meaning::Command(Command::Compact) => {
                asks.compact = true;
                chat.tell("the conversation is summarised before your next message is answered");
                continue;
            }
            Meaning::Command(Command::Model { name: Some(name) }) => {
                match runtime.check_model_for(chat.session, name).await {
                    Ok(_) => {
                        asks.model = Some(name.to_owned());
                        chosen.clone_from(&asks.model);
                        chat.tell(&format!("{} answers your next message", clean_line(name, 100)));
                    }
                    Err(error) => chat.complain(&error.into()),
                }
                continue;
            }
            Meaning::Command(Command::Model { name: None }) => {
                chat.model(asks.model.as_deref()).await?;
                continue;
            }
            // Show at once what has stopped.
            Meaning::Command(command @ Command::Cancel { run: None }) => {
                chat.obey(command, viewer).await?;
                waiting = false;
                match turn(runtime, session, viewer).await? {
                    Turn::Over(_) => continue,
                    Turn::Leave => return Ok(Next::Leave(Code::Interrupted)),
                }
            }
            Meaning::Command(command) => match chat.obey(command, viewer).await? {
                Turn::Over(_) => continue,
                Turn::Leave => return Ok(Next::Leave(Code::Interrupted)),
            },
            Meaning::Unknown(_) if chat.is_invocation(&line) => line.trim(),
            Meaning::Unknown(word) => {
                chat.tell(&commands::unknown(word));
                continue;
            }
            Meaning::Misused(usage) => {
                chat.tell(&format!("usage: {usage}"));
                continue;
            }
        };
        waiting = false;
        tell_changes(chat, changed, viewer);
        // Store the message first: while pending events are shown, Posse may ask the person something,
        // and they may leave.
        runtime.send_with(chat.session, text, std::mem::take(&mut asks)).await?;
        if session.run.row().await?.state.paused {
            viewer.screen.remark("this chat was paused; it continues with your message");
            runtime.unpause(chat.session, "the user", Extent::Subtree).await?;
        }
        code = match turn(runtime, session, viewer).await? {
            Turn::Over(code) => code,
            Turn::Leave => return Ok(Next::Leave(Code::Interrupted)),
        };
        deck.check()?;
        // Another line would only reach the budget again.
        if code == Code::Budget {
            tell_unsent(lines, viewer).await;
            return leave(chat, session, viewer, code).await.map(Next::Leave);
        }
    }
}

/// Says what has changed in the folder since it was trusted, unless `told` says so already.
fn tell_changes(chat: &Chat<'_>, told: &mut Option<String>, viewer: &mut Viewer) {
    match chat.common.review_changes(chat.folder, false) {
        Ok(changed) => {
            if let Some(line) = changed.as_ref().filter(|_| changed != *told) {
                viewer.screen.remark(line);
            }
            *told = changed;
        }
        Err(failure) => chat.complain(&failure),
    }
}

/// Says that the remaining lines of a pipe are not sent.
async fn tell_unsent(lines: &mut Lines, viewer: &mut Viewer) {
    if lines::is_interactive() {
        return;
    }
    let next = tokio::time::timeout(A_MOMENT, lines.next(&mut viewer.signals)).await;
    if let Ok(Ok(Line::Text(line))) = next {
        let line = clean_line(&line, 100);
        viewer.screen.remark(&format!("the rest of the input was not sent, from \"{line}\" on"));
    }
}

/// Lets the person choose another chat of this folder. `None` if they choose none.
async fn switch(chat: &Chat<'_>, viewer: &mut Viewer) -> Result<Option<Target>, Failure> {
    chat.check_money(None)?;
    if !lines::is_interactive() || !viewer.screen.is_live() {
        return Err(Failure::usage("there is no terminal to choose a chat on")
            .hint("usage: /resume RUN [TEXT]"));
    }
    let mut rows = picker::sessions(chat.runtime, chat.folder).await?;
    rows.retain(|row| row.id != chat.session);
    if rows.is_empty() {
        return Err(Failure::usage("there is no other chat in this folder"));
    }
    let picked = picker::pick(chat.common, &rows, &mut viewer.signals).await;
    Ok(picked.map(|place| Target::Session(Box::new(rows.swap_remove(place)))))
}

/// The other chat that `run` names, if it can be continued instead of this one.
async fn another_chat(chat: &Chat<'_>, run: &str) -> Option<RunRow> {
    let row = chat.runtime.find(run).await.ok()?;
    let is_open = row.about.session && row.id != chat.session && row.log.damaged.is_none();
    let can_go_on = is_open
        && chat.check_money(Some(row.family.root)).is_ok()
        && chat.runtime.check_model(&row.about.model).is_ok();
    can_go_on.then_some(row)
}

/// How long to wait for an empty session to end after the person left.
const A_MOMENT: Duration = Duration::from_secs(2);

/// How long to wait for children that are told to stop. Their commands are killed after some seconds.
const STOPPING: Duration = Duration::from_secs(10);

/// Leaves the chat at the end of the input. A pipe waits for background children, because no person
/// could ask for their results later, and ends with the `code` of its last turn. A person has seen how
/// each turn ended. Without a daemon, leaving interrupts the background children: they continue with the chat.
async fn leave(
    chat: &Chat<'_>,
    session: &mut FollowedRun,
    viewer: &mut Viewer,
    mut code: Code,
) -> Result<Code, Failure> {
    loop {
        let row = chat.runtime.find(&chat.session.to_string()).await?;
        // A chat without messages is of no use, so end it.
        if is_empty_chat(&row) {
            chat.runtime.cancel(row.id, "the user", CancelScope::Run).await?;
            let ended = chat.runtime.handle(row.id);
            // If it cannot end now, later commands skip it.
            let _ = tokio::time::timeout(A_MOMENT, ended.outcome()).await;
            return Ok(code);
        }
        if lines::is_interactive() {
            tell_who_goes_on(chat, &row, viewer).await?;
            return Ok(Code::Done);
        }
        if row.family.expects == 0 {
            wait_for_below(chat.common, chat.runtime, chat.session, viewer).await?;
            return Ok(code);
        }
        tokio::select! {
            told = session.told() => {
                told?;
            }
            signal = viewer.signal() => {
                if signal == Signal::Interrupt {
                    viewer.interrupt(chat.runtime).await?;
                }
                return Ok(Code::Interrupted);
            }
        }
        code = match turn(chat.runtime, session, viewer).await? {
            Turn::Over(code) => code,
            Turn::Leave => return Ok(Code::Interrupted),
        };
    }
}

/// Tells a person who leaves that subagents are still at work for the session, awaited or not.
async fn tell_who_goes_on(
    chat: &Chat<'_>,
    row: &RunRow,
    viewer: &mut Viewer,
) -> Result<(), Failure> {
    let busy = chat.runtime.busy_below(chat.session).await?;
    let at_work = (busy.len() as u64).max(row.family.expects.into());
    if at_work > 0 {
        let tasks = format::count(at_work, "background task");
        let who = match chat.common.daemon().await {
            _ if row.state.outcome.is_some() => {
                wait_for_cancelled(chat.runtime, &busy, viewer).await;
                "cancelled with this chat, which has ended"
            }
            Some(_) => "the daemon continues",
            None => {
                viewer.interrupt(chat.runtime).await?;
                "stopped now, until you resume this chat"
            }
        };
        viewer.screen.remark(&format!("{tasks} not done: {who}"));
    }
    Ok(())
}

/// Waits until `runs`, which are told to stop, have ended. If that takes too long, or a signal arrives, a
/// later command or the daemon ends them.
async fn wait_for_cancelled(runtime: &Runtime, runs: &[RunId], viewer: &mut Viewer) {
    let ends = async {
        for run in runs {
            let _ = runtime.handle(*run).at_rest().await;
        }
    };
    tokio::select! {
        () = ends => {}
        () = tokio::time::sleep(STOPPING) => {}
        _ = viewer.signal() => {}
    }
}

enum Turn {
    /// It ended with this exit code.
    Over(Code),
    /// The person leaves the chat.
    Leave,
}

/// A turn that takes longer than this ends with a bell, because the person may look at something else.
const LONG_TURN: Duration = Duration::from_secs(10);

/// Shows a turn until the session waits again. Lines typed meanwhile are kept for the next turn.
async fn turn(
    runtime: &Runtime,
    session: &mut FollowedRun,
    viewer: &mut Viewer,
) -> Result<Turn, Failure> {
    let began = Instant::now();
    let is_watched =
        viewer.form == Form::Screen && lines::is_interactive() && viewer.screen.is_live();
    if is_watched {
        viewer.typing.listen();
    }
    let over = turn_to_its_end(runtime, session, viewer).await;
    viewer.typing.stop();
    viewer.screen.yield_terminal();
    if is_watched && began.elapsed() >= LONG_TURN {
        print::note_piece("\x07");
    }
    over
}

/// True when the session waits for nothing but a message.
async fn is_idle(session: &FollowedRun) -> Result<bool, Failure> {
    let row = session.run.row().await?;
    Ok(row.status == Status::Waiting && row.family.awaits == 0 && row.state.asks == 0)
}

/// Ctrl-C interrupts the turn, other signals leave.
async fn turn_to_its_end(
    runtime: &Runtime,
    session: &mut FollowedRun,
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
                    let spent = viewer.screen.spending();
                    let hints = spending::hint(&outcome, session.run.id(), spent);
                    hints.into_iter().for_each(print::note);
                }
                break Code::of(&outcome);
            }
            Followed::Signal(Signal::Interrupt)
                if session.may_ask() && is_idle(session).await? =>
            {
                // A task in the background asked. The chat itself has nothing to stop.
                viewer.typing.take_all_back();
                viewer.screen.remark("the question stays open; Enter shows it again");
                break Code::Done;
            }
            Followed::Signal(Signal::Interrupt) if interrupted => {
                viewer.screen.remark("still stopping; Ctrl-D leaves when it has");
            }
            Followed::Signal(Signal::Interrupt) => {
                interrupted = true;
                viewer.typing.take_all_back();
                let id = session.run.id();
                tokio::select! {
                    // It is fine if there is nothing left to interrupt.
                    _ = runtime.cancel(id, "the user", CancelScope::Turn) => {}
                    signal = viewer.signal() => {
                        // The cancel request may not be stored, and the turn must not continue by itself.
                        if signal == Signal::Interrupt {
                            viewer.interrupt(runtime).await?;
                        }
                        return Ok(Turn::Leave);
                    }
                }
            }
            Followed::Signal(_) => return Ok(Turn::Leave),
        }
    };
    viewer.end_turn()?;
    Ok(Turn::Over(code))
}
