//! A long-lived process, confined and supervised like a command, with pipes for its input and output.
//!
//! Posse keeps only the end of its error stream. If the host does not read the output, the pipe fills
//! up and the process blocks. Dropping the [`Process`] ends it.

use super::lifeline::Lifeline;
use super::supervisor;
use super::{
    Command, Finished, LATE, LaunchError, Launcher, OUTPUT_SLACK, OwnProxy, Ready,
    SupervisorReport, UserFacts, check_after, finish, forsaken,
};
use crate::workspace::Workspace;
use parking_lot::Mutex;
use posse_agent::Claim;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The first descriptor after standard input, output and error.
const FIRST_OWN: i32 = 3;

/// The command's ends of its pipes.
pub(super) struct Pipes {
    input: OwnedFd,
    output: OwnedFd,
}

impl Pipes {
    /// Opens new pipes. Returns them with the host's ends.
    fn open() -> io::Result<(Pipes, ProcessInput, ProcessOutput)> {
        let (input, writer) = io::pipe()?;
        let (reader, output) = io::pipe()?;
        let pipes = Pipes {
            input: fcntl_dupfd_cloexec(&input, FIRST_OWN)?,
            output: fcntl_dupfd_cloexec(&output, FIRST_OWN)?,
        };
        let input = ProcessInput(pipe::Sender::from_owned_fd(writer.into())?);
        let output = ProcessOutput(pipe::Receiver::from_owned_fd(reader.into())?);
        Ok((pipes, input, output))
    }

    /// The numbers of the descriptors. They are the same in the process that inherits them.
    pub(super) fn numbers(&self) -> [i32; 2] {
        [self.input.as_raw_fd(), self.output.as_raw_fd()]
    }

    /// Lets `process` inherit the descriptors, and no other process.
    pub(super) fn hand_on(self, process: &mut tokio::process::Command) {
        let Pipes { input, output } = self;
        #[expect(unsafe_code, reason = "the standard library hands on three streams only")]
        // SAFETY: between fork and exec, the closure makes only system calls.
        unsafe {
            process.pre_exec(move || {
                fcntl_setfd(&input, FdFlags::empty())?;
                Ok(fcntl_setfd(&output, FdFlags::empty())?)
            });
        }
    }
}

impl Launcher {
    /// Starts `command` and returns it as a [`Process`]. The caller must read its output, which is not
    /// stored. Of its error stream, the last [`Command::output_cap`] bytes are kept. It does not count
    /// towards the limit of commands that run at the same time.
    ///
    /// All its processes end when the value is dropped, at the deadline, when the command ends by
    /// itself, and when this process dies, as with any command.
    ///
    /// # Errors
    /// If it could not be started. A missing program or a failing sandbox shows later: the output ends,
    /// and [`Process::ended`] returns the reason.
    pub async fn hold(
        &self,
        claim: &Claim,
        workspace: &Workspace,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Process, LaunchError> {
        let (pipes, input, output) = Pipes::open().map_err(|error| command.not_started(error))?;
        let ready = self.ready(workspace, command, Some(pipes))?;
        let Ready { process, mut lifeline, order, look, user_facts, proxy } = ready;
        if !claim.holds() {
            return Err(forsaken(process, lifeline).await);
        }
        lifeline.send(&order, cancel).await;
        let lifeline = Arc::new(Mutex::new(lifeline));
        let said = Arc::new(Mutex::new(Tail::new(command.output_cap)));
        let watched = Watched {
            launcher: self.clone(),
            command: command.clone(),
            process,
            lifeline: lifeline.clone(),
            said: said.clone(),
            look,
            user_facts,
            _proxy: proxy,
        };
        let mut ending = JoinSet::new();
        ending.spawn(watched.see_to_the_end());
        let (input, output) = (Some(input), Some(output));
        Ok(Process { lifeline, input, output, unread: Vec::new(), looked_at: 0, said, ending })
    }
}

/// A running process. Dropping the value kills it, and all processes that it started.
pub struct Process {
    lifeline: Arc<Mutex<Lifeline>>,
    input: Option<ProcessInput>,
    output: Option<ProcessOutput>,
    /// Output that was read and does not end with a complete line yet.
    unread: Vec<u8>,
    /// How many bytes of `unread` contain no end of line.
    looked_at: usize,
    said: Arc<Mutex<Tail>>,
    ending: JoinSet<Result<Finished, LaunchError>>,
}

impl Process {
    /// Takes the pipes, for code that reads and writes them itself. Returns them only once.
    pub fn take_pipes(&mut self) -> Option<(ProcessInput, ProcessOutput)> {
        self.input.take().zip(self.output.take())
    }

    /// Writes `line` and an end of line to its input. Waits while the pipe is full.
    ///
    /// # Errors
    /// If the process does not read its input any more.
    pub async fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&[line, b"\n"].concat()).await
    }

    /// Returns the next line of its output, of at most `longest` bytes, or `None` at the end. Dropping
    /// the future loses no output.
    ///
    /// # Errors
    /// If a line is longer. The next call continues with the rest of that line.
    pub async fn read_line(&mut self, longest: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            let end = self.unread[self.looked_at..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| end + self.looked_at).filter(|end| *end <= longest) {
                let rest = self.unread.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.unread, rest);
                line.truncate(end);
                self.looked_at = 0;
                return Ok(Some(line));
            }
            if self.unread.len() > longest {
                self.unread.clear();
                self.looked_at = 0;
                let why = format!("a line of its output has more than {longest} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            self.looked_at = self.unread.len();
            let output = self.output.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            if output.read_buf(&mut self.unread).await? == 0 {
                self.looked_at = 0;
                let rest = std::mem::take(&mut self.unread);
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
        }
    }

    /// The end of its error stream up to now.
    pub fn said(&self) -> String {
        self.said.lock().text()
    }

    /// Waits until the process and all processes that it started have ended. The output of the result
    /// is the end of its error stream. Call it only once.
    ///
    /// # Errors
    /// If it never began, or if its result is unknown.
    pub async fn ended(&mut self) -> Result<Finished, LaunchError> {
        self.ending.join_next().await.and_then(Result::ok).unwrap_or_else(|| Err(lost()))
    }

    /// Ends it, and waits until all its processes have ended.
    ///
    /// # Errors
    /// As [`Process::ended`].
    pub async fn stop(mut self) -> Result<Finished, LaunchError> {
        self.lifeline.lock().cut();
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE + supervisor::LONGEST_CHECK;
        timeout(longest, self.ended()).await.unwrap_or_else(|_| Err(lost()))
    }
}

fn lost() -> LaunchError {
    LaunchError::Lost { program: "the process".to_owned() }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lifeline.lock().cut();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}

/// A task that watches a process until its end.
struct Watched {
    launcher: Launcher,
    command: Command,
    process: Child,
    lifeline: Arc<Mutex<Lifeline>>,
    said: Arc<Mutex<Tail>>,
    look: Duration,
    user_facts: UserFacts,
    _proxy: Option<OwnProxy>,
}

impl Watched {
    /// Reads the error stream until the supervisor has reported, so that the process never waits for a reader.
    async fn see_to_the_end(mut self) -> Result<Finished, LaunchError> {
        let mut heard = SupervisorReport { report: Vec::new(), late: false };
        let streams = self.process.stdout.take().zip(self.process.stderr.take());
        if let Some((mut status, mut stream)) = streams {
            let mut buffer = vec![0; 8 << 10];
            let mut open = true;
            let guardians = self.launcher.0.guardians.clone();
            loop {
                let holds = self.lifeline.lock().holds();
                tokio::select! {
                    () = guardians.leaving.cancelled(), if holds => self.lifeline.lock().cut(),
                    read = stream.read(&mut buffer), if open => open = self.hear(&buffer, read),
                    read = status.read_buf(&mut heard.report) => {
                        if !matches!(read, Ok(1..)) {
                            break;
                        }
                    }
                }
            }
            // The supervisor is gone: the pipe holds all output that there will be.
            let rest = async {
                while open {
                    let read = stream.read(&mut buffer).await;
                    open = self.hear(&buffer, read);
                }
            };
            let _ = timeout(OUTPUT_SLACK, rest).await;
        }
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE + check_after(self.look);
        if timeout(longest, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
        self.lifeline.lock().forget();
        let said = self.said.lock().finish();
        self.launcher.note(self.user_facts, finish(&self.command, heard, said))
    }

    /// Keeps the result of a read. Returns false at the end of the stream.
    fn hear(&self, buffer: &[u8], read: io::Result<usize>) -> bool {
        let Ok(count @ 1..) = read else { return false };
        self.said.lock().push(&buffer[..count]);
        true
    }
}

/// The last bytes of a stream.
struct Tail {
    bytes: Vec<u8>,
    cap: usize,
    left_out: u64,
}

impl Tail {
    fn new(cap: usize) -> Tail {
        Tail { bytes: Vec::new(), cap, left_out: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Trimmed only when it has doubled, so that each byte moves about once.
        if self.bytes.len() > self.cap.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.cap);
        self.bytes.drain(..excess);
        self.left_out += excess as u64;
    }

    fn text(&mut self) -> String {
        self.finish().0
    }

    /// Returns the text, and how many bytes came before it.
    fn finish(&mut self) -> (String, u64) {
        self.trim();
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.left_out)
    }
}

/// The input of a process.
#[derive(Debug)]
pub struct ProcessInput(pipe::Sender);

/// The output of a process.
#[derive(Debug)]
pub struct ProcessOutput(pipe::Receiver);

impl AsyncWrite for ProcessInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl AsyncRead for ProcessOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_the_end_is_kept() {
        let mut tail = Tail::new(4);
        for _ in 0..1000 {
            tail.push(b"abcdefgh");
            assert!(tail.bytes.len() <= 16);
        }
        assert_eq!(tail.finish(), ("efgh".to_owned(), 7996));
    }
}
