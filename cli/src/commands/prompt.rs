//! The task of a run: from the command line, a file or standard input.

use crate::args::{RunOptions, quoted};
use crate::exit::Failure;
use crate::print;
use posse::protocol::piped;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{File, FileType};
use std::io::{IsTerminal, Read, Stdin, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

/// The most bytes of a task, standard input included.
const MAX_PROMPT: usize = 4 << 20;
/// How long to wait for the first byte or the end of a pipe. Programs often leave their children a
/// pipe that is never written to or closed.
const FIRST_BYTE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

const SAY: &str = "name the task: posse run \"what does this project do?\"";

/// The task in `options`, with the piped input.
pub fn prompt(options: &RunOptions) -> Result<String, Failure> {
    if !options.more.is_empty() {
        let words: Vec<String> = options.prompt.iter().chain(&options.more).cloned().collect();
        let count = words.len();
        return Err(Failure::usage(format!("the task must be one argument, not {count}"))
            .hint(quoted(&words)));
    }
    let given = match (&options.prompt, &options.prompt_file) {
        (Some(text), _) if text != "-" => Some(text.clone()),
        (_, Some(path)) => {
            let name = path.display().to_string();
            let file = File::open(path);
            let file = file.map_err(|e| Failure::usage(format!("cannot read {name}: {e}")))?;
            Some(read(file, &name, MAX_PROMPT)?)
        }
        _ => None,
    };
    let text = match given {
        Some(text) if text.trim().is_empty() => text,
        Some(text) => with_standard_input(text)?,
        None if options.prompt.is_none() && stdin().is_terminal() => {
            return Err(Failure::usage("there is no task").hint(SAY));
        }
        None => read(stdin(), "standard input", MAX_PROMPT)?,
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint(SAY));
    }
    Ok(text)
}

/// `text` followed by standard input, if that is a file, a pipe or a socket. A terminal or a device
/// such as /dev/null is not read.
fn with_standard_input(text: String) -> Result<String, Failure> {
    let stdin = stdin();
    let is_there = kind_of(&stdin).is_some_and(|kind| kind.is_file() || has_begun(&stdin));
    if !is_there {
        return Ok(text);
    }
    let input = read(stdin, "standard input", MAX_PROMPT.saturating_sub(text.len()))?;
    Ok(if input.trim().is_empty() { text } else { piped::joined(&text, &input) })
}

/// True when standard input is a file, a pipe or a socket.
pub fn is_text(stdin: &Stdin) -> bool {
    kind_of(stdin).is_some()
}

/// The kind of standard input, if it is a file, a pipe or a socket.
fn kind_of(stdin: &Stdin) -> Option<FileType> {
    let file = File::from(stdin.as_fd().try_clone_to_owned().ok()?);
    let kind = file.metadata().ok()?.file_type();
    (kind.is_file() || kind.is_fifo() || kind.is_socket()).then_some(kind)
}

/// True when a pipe sends a byte or ends soon.
fn has_begun(stdin: &Stdin) -> bool {
    let mut events = [PollFd::new(stdin, PollFlags::IN)];
    let has_begun = poll(&mut events, Some(&FIRST_BYTE)).map_or(true, |ready| ready > 0);
    if !has_begun {
        print::note(
            "note: nothing came from standard input within 3 seconds, so it is left out; \
             `posse run -` waits for it, `< /dev/null` says that there is none",
        );
    }
    has_begun
}

fn read(from: impl Read, name: &str, most: usize) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() > most {
        return Err(Failure::usage(format!("the prompt in {name} is larger than 4 MiB"))
            .hint("put it into a file in the folder, and name that file in the prompt"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage(format!("the prompt in {name} is not valid UTF-8"))
            .hint("it may be a binary file; name the file in the prompt in place of piping it")
    })
}
