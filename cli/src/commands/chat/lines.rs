//! Lines from a person, with editing and a history, or from a pipe.

use super::completion::Completion;
use crate::exit::Failure;
use crate::signals::{Signal, Signals};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, CompletionType, Config, Editor, EventHandler, ExternalPrinter, KeyEvent, Modifiers,
};
use std::io::{BufRead, BufReader, IsTerminal, Stdin};
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot};

pub enum Line {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    /// The input cannot be read, for this reason.
    Unreadable(String),
    /// A signal other than Ctrl-C.
    Killed,
}

/// Reads lines on a separate thread, because reading blocks.
pub struct Lines {
    wanted: mpsc::Sender<Wanted>,
    /// The beginning of the next line.
    draft: String,
    /// Lines that were typed elsewhere, for the history.
    typed: Vec<String>,
    /// The line that the thread is reading.
    reading: Option<oneshot::Receiver<Line>>,
    /// Prints above the line that a person types.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

/// A request for a line.
struct Wanted {
    draft: String,
    typed: Vec<String>,
    reply: oneshot::Sender<Line>,
}

impl Lines {
    /// Opens the input for a chat.
    pub fn open(history: Option<PathBuf>, completion: Completion) -> Self {
        let (wanted, mut requests) = mpsc::channel::<Wanted>(1);
        let mut source = Source::open(history, completion);
        let printer = source.printer();
        std::thread::spawn(move || {
            while let Some(Wanted { draft, typed, reply }) = requests.blocking_recv() {
                typed.iter().for_each(|line| source.remember(line));
                if reply.send(source.read(&draft)).is_err() {
                    break;
                }
            }
        });
        Lines { wanted, draft: String::new(), typed: Vec::new(), reading: None, printer }
    }

    /// Starts the next line with `draft`, for the person to continue.
    pub fn begin_with(&mut self, draft: String) {
        if !draft.is_empty() {
            self.draft = draft;
        }
    }

    /// Adds a line that was typed elsewhere to the history.
    pub fn remember(&mut self, line: &str) {
        self.typed.push(line.to_owned());
    }

    /// The next line. The future may be dropped while it waits: typed text is not lost.
    pub async fn next(&mut self, signals: &mut Signals) -> Result<Line, Failure> {
        let gone = || Failure::internal("the input is gone");
        let line = match &mut self.reading {
            Some(line) => line,
            none => {
                let (reply, line) = oneshot::channel();
                let (draft, typed) =
                    (std::mem::take(&mut self.draft), std::mem::take(&mut self.typed));
                let wanted = Wanted { draft, typed, reply };
                self.wanted.send(wanted).await.map_err(|_| gone())?;
                none.insert(line)
            }
        };
        loop {
            tokio::select! {
                line = &mut *line => {
                    self.reading = None;
                    return line.map_err(|_| gone());
                }
                signal = signals.next() => match signal {
                    // The editor sees the key itself. A pipe has nothing to interrupt.
                    Signal::Interrupt if is_interactive() => {}
                    _ => return Ok(Line::Killed),
                },
            }
        }
    }
}

impl Lines {
    /// Prints a text above the line that a person types. Does nothing for a pipe.
    pub fn say(&mut self, text: &str) {
        if let Some(printer) = &mut self.printer {
            // If the terminal is gone, the input ends, too.
            let _ = printer.print(format!("{text}\n"));
        }
    }
}

/// True when a person types and sees the prompt.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// How long the rest of a key may take after its Esc.
const KEYS_BELONG_TOGETHER_MS: u16 = 100;

enum Source {
    Editor(Box<Editor<Completion, FileHistory>>, Option<PathBuf>),
    Pipe(BufReader<Stdin>),
}

impl Source {
    fn open(history: Option<PathBuf>, completion: Completion) -> Self {
        let pipe = || Source::Pipe(BufReader::new(std::io::stdin()));
        if !is_interactive() {
            return pipe();
        }
        let config = Config::builder()
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            // The bytes of one key arrive together, so Esc alone is a key of its own.
            .keyseq_timeout(Some(KEYS_BELONG_TOGETHER_MS))
            .max_history_size(1_000);
        let editor = config.map(|config| Editor::with_config(config.build()));
        match editor {
            Ok(Ok(mut editor)) => {
                if let Some(path) = &history {
                    // There may be no history yet.
                    let _ = editor.load_history(path);
                }
                editor.set_helper(Some(completion));
                for enter in ['\r', '\n'] {
                    let alt_enter = KeyEvent::new(enter, Modifiers::ALT);
                    editor.bind_sequence(alt_enter, EventHandler::Simple(Cmd::Newline));
                }
                Source::Editor(Box::new(editor), history)
            }
            _ => pipe(),
        }
    }

    fn printer(&mut self) -> Option<Box<dyn ExternalPrinter + Send>> {
        match self {
            Source::Editor(editor, _) => {
                let printer = editor.create_external_printer().ok()?;
                Some(Box::new(printer))
            }
            Source::Pipe(_) => None,
        }
    }

    fn remember(&mut self, line: &str) {
        if let Source::Editor(editor, _) = self {
            // The line then cannot be recalled, but the chat works.
            let _ = editor.add_history_entry(line);
        }
    }

    fn read(&mut self, draft: &str) -> Line {
        match self {
            Source::Pipe(input) => {
                let mut line = String::new();
                match input.read_line(&mut line) {
                    Ok(0) => Line::End,
                    Ok(_) => Line::Text(line.trim_end_matches(['\r', '\n']).to_owned()),
                    Err(error) => Line::Unreadable(error.to_string()),
                }
            }
            Source::Editor(editor, history) => {
                match editor.readline_with_initial("› ", (draft, "")) {
                    Ok(line) => {
                        if let Some(path) = history {
                            // Rustyline makes the file readable by its owner only.
                            let _ = editor.save_history(path);
                        }
                        // A backslash continued the line.
                        Line::Text(line.replace("\\\n", "\n"))
                    }
                    Err(ReadlineError::Interrupted) => Line::Interrupted,
                    Err(_) => Line::End,
                }
            }
        }
    }
}
