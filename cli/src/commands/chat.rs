//! `posse chat`: a session, line by line.

use super::{Common, Pickup, folder, spec};
use crate::args::ChatOptions;
use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::Screen;
use crate::signals::Signals;
use posse::protocol::{CancelScope, Event, Seq, Stop};
use posse::{Events, RunHandle, Runtime, Update};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

const HELP: &str = "Type what you want; the agent answers. Ctrl-C interrupts what it does, Ctrl-D \
leaves. /help shows this, /quit leaves. The session is kept: `posse chat --resume` goes on with it.";

pub async fn run(common: Common, options: ChatOptions) -> Result<Code, Failure> {
    let folder = folder(options.agent.cwd.as_ref())?;
    let config = common.config(&folder)?;
    let mut signals = Signals::listen()?;
    let mut screen = Screen::new(common.global.quiet, common.environment.no_color);
    let runtime = common.runtime(&config, Pickup::Named).await?;
    let session = match open(&runtime, &options, &config, &folder).await {
        Ok(session) => session,
        Err(failure) => {
            runtime.shutdown().await;
            return Err(failure);
        }
    };
    let history = common.environment.data_folder.as_ref().map(|folder| folder.join("history"));
    let result = converse(&runtime, session, history, &mut screen, &mut signals).await;
    runtime.shutdown().await;
    result
}

/// Where a conversation stands.
struct Session {
    run: RunHandle,
    events: Events,
    /// A turn was under way when the session was resumed.
    busy: bool,
}

async fn open(
    runtime: &Runtime,
    options: &ChatOptions,
    config: &posse::config::Config,
    folder: &std::path::Path,
) -> Result<Session, Failure> {
    let Some(id) = &options.resume else {
        let mut spec = spec(&options.agent, config, folder, None)?;
        spec.session = true;
        let run = runtime.start(spec).await?;
        return Ok(Session { events: run.events(Seq::ZERO), run, busy: false });
    };
    let row = runtime.find(id).await?;
    if !row.session {
        return Err(Failure::usage(format!("run {} is not a chat", row.id.short()))
            .hint(format!("`posse runs resume {} \"…\"` goes on with it", row.id)));
    }
    let run = runtime.resume(row.id);
    print::note(format!("going on with: {}", crate::clean::clean_line(&row.title, 100)));
    Ok(Session { events: run.events(row.last_seq), run, busy: row.runnable })
}

async fn converse(
    runtime: &Runtime,
    mut session: Session,
    history: Option<PathBuf>,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Code, Failure> {
    let mut lines = Lines::open(history);
    let id = session.run.id();
    if session.busy {
        turn(runtime, &mut session, screen, signals).await?;
    }
    loop {
        let line = match lines.next(signals).await? {
            Line::Text(line) => line,
            Line::Interrupted => {
                print::note("(Ctrl-D or /quit leaves)");
                continue;
            }
            Line::End => break,
            Line::Killed => return Ok(Code::Interrupted),
        };
        match line.trim() {
            "" => continue,
            "/quit" | "/exit" => break,
            "/help" => {
                print::note(HELP);
                continue;
            }
            command if command.starts_with('/') && !command.contains(' ') => {
                print::note(format!("there is no {command}; /help shows what there is"));
                continue;
            }
            _ => {}
        }
        runtime.send(id, line).await?;
        if turn(runtime, &mut session, screen, signals).await? == Turn::Leave {
            return Ok(Code::Interrupted);
        }
    }
    print::note(format!("`posse chat --resume {}` goes on with this session", id.short()));
    Ok(Code::Done)
}

#[derive(PartialEq)]
enum Turn {
    Over,
    Leave,
}

/// Shows a turn until the session waits again. Ctrl-C interrupts the turn, other signals leave.
async fn turn(
    runtime: &Runtime,
    session: &mut Session,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<Turn, Failure> {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        let update = tokio::select! {
            update = session.events.next() => update,
            _ = ticks.tick() => { screen.tick(); continue; }
            signal = signals.next() => {
                if signal != "Ctrl-C" {
                    return Ok(Turn::Leave);
                }
                // Nothing to interrupt any more is fine.
                let _ = runtime.cancel(session.run.id(), "the user", CancelScope::Turn).await;
                continue;
            }
        };
        let Some(update) = update else { return Ok(Turn::Over) };
        let update = update?;
        screen.show(&update);
        let Update::Event(record) = &update else { continue };
        let over = match &record.event {
            Event::ModelReplied(replied) => replied.message.tool_calls().next().is_none(),
            Event::ModelFailed(failed) => failed.kind == posse::protocol::FailureKind::Cancelled,
            Event::RunFinished(finished) => {
                if !finished.outcome.is_completed() {
                    screen.note(&crate::clean::clean_line(&finished.outcome.to_string(), 400));
                }
                true
            }
            _ => false,
        };
        let stopped = matches!(&record.event, Event::ModelReplied(replied) if replied.stop == Stop::Cancelled);
        if over || stopped || session_waits(runtime, session).await? {
            screen.end_turn();
            return Ok(Turn::Over);
        }
    }
}

/// True when the session has been put to rest without a last word: a turn cut short in a tool.
async fn session_waits(runtime: &Runtime, session: &Session) -> Result<bool, Failure> {
    if runtime.executing() > 0 {
        return Ok(false);
    }
    let row = runtime.find(&session.run.id().to_string()).await?;
    Ok(!row.runnable)
}

enum Line {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    /// A signal other than Ctrl-C.
    Killed,
}

/// Lines from a person, or from a pipe. Read on a thread of their own, because reading blocks.
struct Lines {
    wanted: mpsc::Sender<oneshot::Sender<Line>>,
}

impl Lines {
    fn open(history: Option<PathBuf>) -> Self {
        let (wanted, mut requests) = mpsc::channel::<oneshot::Sender<Line>>(1);
        std::thread::spawn(move || {
            let mut source = Source::open(history);
            while let Some(reply) = requests.blocking_recv() {
                if reply.send(source.read()).is_err() {
                    break;
                }
            }
        });
        Lines { wanted }
    }

    async fn next(&mut self, signals: &mut Signals) -> Result<Line, Failure> {
        let (reply, line) = oneshot::channel();
        let gone = || Failure::internal("the input is gone");
        self.wanted.send(reply).await.map_err(|_| gone())?;
        let mut line = line;
        loop {
            tokio::select! {
                line = &mut line => return line.map_err(|_| gone()),
                signal = signals.next() => if signal != "Ctrl-C" { return Ok(Line::Killed) },
            }
        }
    }
}

enum Source {
    Editor(Box<Editor<(), FileHistory>>, Option<PathBuf>),
    Pipe(std::io::Lines<std::io::BufReader<std::io::Stdin>>),
}

impl Source {
    fn open(history: Option<PathBuf>) -> Self {
        use std::io::BufRead;
        let pipe = || Source::Pipe(std::io::BufReader::new(std::io::stdin()).lines());
        if !std::io::stdin().is_terminal() {
            return pipe();
        }
        let config = Config::builder().auto_add_history(true).max_history_size(1_000);
        let editor = config.map(|config| Editor::<(), FileHistory>::with_config(config.build()));
        match editor {
            Ok(Ok(mut editor)) => {
                if let Some(path) = &history {
                    // No history yet is fine.
                    let _ = editor.load_history(path);
                }
                Source::Editor(Box::new(editor), history)
            }
            _ => pipe(),
        }
    }

    fn read(&mut self) -> Line {
        match self {
            Source::Pipe(lines) => match lines.next() {
                Some(Ok(line)) => Line::Text(line),
                _ => Line::End,
            },
            Source::Editor(editor, history) => match editor.readline("› ") {
                Ok(line) => {
                    if let Some(path) = history {
                        // Rustyline makes the file readable by its owner only.
                        let _ = editor.save_history(path);
                    }
                    Line::Text(line)
                }
                Err(ReadlineError::Interrupted) => Line::Interrupted,
                Err(_) => Line::End,
            },
        }
    }
}
