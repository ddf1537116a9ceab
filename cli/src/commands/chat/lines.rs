//! Lines from a person, with editing and a history, or from a pipe.

use crate::exit::Failure;
use crate::signals::{Signal, Signals};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, ExternalPrinter};
use std::io::{BufRead, BufReader, IsTerminal, Stdin};
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot};

pub enum Line {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    /// The input cannot be read, and why.
    Unreadable(String),
    /// A signal other than Ctrl-C.
    Killed,
}

/// Read on a thread of their own, because reading blocks.
pub struct Lines {
    wanted: mpsc::Sender<oneshot::Sender<Line>>,
    /// The line that is being read.
    reading: Option<oneshot::Receiver<Line>>,
    /// Writes above the line that a person types.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl Lines {
    pub fn open(history: Option<PathBuf>) -> Self {
        let (wanted, mut requests) = mpsc::channel::<oneshot::Sender<Line>>(1);
        let mut source = Source::open(history);
        let printer = source.printer();
        std::thread::spawn(move || {
            while let Some(reply) = requests.blocking_recv() {
                if reply.send(source.read()).is_err() {
                    break;
                }
            }
        });
        Lines { wanted, reading: None, printer }
    }

    /// The next line. May be dropped while it waits: what is being typed is not lost.
    pub async fn next(&mut self, signals: &mut Signals) -> Result<Line, Failure> {
        let gone = || Failure::internal("the input is gone");
        let line = match &mut self.reading {
            Some(line) => line,
            none => {
                let (reply, line) = oneshot::channel();
                self.wanted.send(reply).await.map_err(|_| gone())?;
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
                    // The editor sees the key itself; a pipe has nothing to interrupt.
                    Signal::Interrupt if is_interactive() => {}
                    _ => return Ok(Line::Killed),
                },
            }
        }
    }
}

impl Lines {
    /// Says something above the line that a person types. A pipe has nobody who types.
    pub fn say(&mut self, text: &str) {
        if let Some(printer) = &mut self.printer {
            // A terminal that is gone ends the input, too.
            let _ = printer.print(format!("{text}\n"));
        }
    }
}

/// A person types, and sees the prompt.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

enum Source {
    Editor(Box<Editor<(), FileHistory>>, Option<PathBuf>),
    Pipe(BufReader<Stdin>),
}

impl Source {
    fn open(history: Option<PathBuf>) -> Self {
        let pipe = || Source::Pipe(BufReader::new(std::io::stdin()));
        if !is_interactive() {
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

    fn printer(&mut self) -> Option<Box<dyn ExternalPrinter + Send>> {
        match self {
            Source::Editor(editor, _) => {
                let printer = editor.create_external_printer().ok()?;
                Some(Box::new(printer))
            }
            Source::Pipe(_) => None,
        }
    }

    fn read(&mut self) -> Line {
        match self {
            Source::Pipe(input) => {
                let mut line = String::new();
                match input.read_line(&mut line) {
                    Ok(0) => Line::End,
                    Ok(_) => Line::Text(line.trim_end_matches(['\r', '\n']).to_owned()),
                    Err(error) => Line::Unreadable(error.to_string()),
                }
            }
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
