//! Runs the real binary in a folder of its own, and kills it when the plan says so. No process lives
//! longer than its deadline or than this process.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// How long one command may take, on a busy machine and in a debug build.
const LONGEST: Duration = Duration::from_secs(30);

/// How to kill a process, if at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Death {
    /// It kills itself at this fail-point: `name` or `name:pass`.
    pub(crate) point: Option<String>,
    /// It gets a signal.
    pub(crate) blow: Option<(Moment, Blow)>,
}

/// When a signal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// This long after the start.
    After(Duration),
    /// When it has printed this many stored events.
    Event(usize),
}

/// The signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// SIGKILL.
    Kill,
    /// SIGTERM, for an orderly shutdown.
    Terminate,
}

/// The binary and its surroundings. Everything that it may write to is below one folder.
#[derive(Debug)]
pub(crate) struct Posse {
    binary: PathBuf,
    folder: PathBuf,
    url: String,
    /// The address of the database, if it is not a file in the folder.
    database: Option<String>,
    /// How long one command may take.
    longest: Duration,
    /// The commands so far, for people who look for the cause of a violation.
    history: Mutex<Vec<Exit>>,
}

/// How a command ended and what it printed.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) arguments: Vec<String>,
    pub(crate) death: Death,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Exit {
    /// It was killed as planned.
    pub(crate) fn was_killed(&self) -> bool {
        let kill = matches!(self.death.blow, Some((_, Blow::Kill)));
        (kill || self.death.point.is_some()) && self.signal() == Some(9)
    }

    /// It got SIGTERM, and ended by the signal or in an orderly shutdown.
    pub(crate) fn was_interrupted(&self) -> bool {
        let told = matches!(self.death.blow, Some((_, Blow::Terminate)));
        told && (self.signal() == Some(15) || self.code() == Some(130))
    }

    /// It was stopped before it was done.
    pub(crate) fn was_cut(&self) -> bool {
        self.was_killed() || self.was_interrupted()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }

    /// It had not ended at its deadline.
    pub(crate) fn was_late(&self) -> bool {
        self.status.is_none()
    }
}

impl Posse {
    pub(crate) fn new(binary: &Path, folder: &Path, url: String) -> Self {
        let (binary, folder) = (binary.to_owned(), folder.to_owned());
        let (database, longest, history) = (None, LONGEST, Mutex::default());
        Posse { binary, folder, url, database, longest, history }
    }

    /// The same with a database on a server.
    pub(crate) fn with_database(self, url: String) -> Self {
        Posse { database: Some(url), ..self }
    }

    /// The same with more time for each command.
    pub(crate) fn with_patience(self, longest: Duration) -> Self {
        Posse { longest, ..self }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// True if the database is on a server.
    pub(crate) fn is_on_server(&self) -> bool {
        self.database.is_some()
    }

    /// True if the database exists. A file exists once a run has started.
    pub(crate) fn has_database(&self) -> bool {
        self.database.is_some() || self.file().exists()
    }

    fn file(&self) -> PathBuf {
        self.folder.join("posse.db")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    /// Runs a command to its end.
    pub(crate) async fn run(
        &self,
        arguments: &[&str],
        input: &str,
        death: Death,
    ) -> io::Result<Exit> {
        let began = Instant::now();
        let mut child = self.command(arguments, death.point.as_deref()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A process that dies before it reads needs no input.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let (status, stdout, stderr) = watch(&mut child, &death, self.longest).await?;
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        let exit = Exit { arguments, death, status, stdout, stderr, took: began.elapsed() };
        self.history.lock().push(exit.clone());
        Ok(exit)
    }

    #[expect(clippy::disallowed_methods, reason = "the harness starts the binary it tests")]
    fn command(&self, arguments: &[&str], point: Option<&str>) -> Command {
        let mut command = Command::new(&self.binary);
        if !arguments.contains(&"--db") {
            let file = || self.file();
            command.arg("--db").arg(self.database.as_ref().map_or_else(file, PathBuf::from));
        }
        command
            .args(arguments)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            // Commands of agents inherit it. `leftovers` finds their processes by it.
            .env("HOME", self.folder.join("home"))
            .env("ANTHROPIC_API_KEY", "test")
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("NO_COLOR", "1")
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(point) = point {
            command.env("POSSE_FAILPOINT", point);
        }
        die_with_parent(&mut command);
        command
    }

    /// Starts a process that lives until it is told to end, with the database at `url` and this home
    /// folder. It dies at the fail-point, if there is one, and prints to this file.
    pub(crate) fn start(
        &self,
        url: &str,
        home: &Path,
        arguments: &[&str],
        point: Option<String>,
        printed: &Path,
    ) -> io::Result<Child> {
        let file = std::fs::File::create(printed)?;
        let mut command = self.command(&[&["--db", url], arguments].concat(), point.as_deref());
        command.env("HOME", home);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()
    }

    /// Writes all commands and their output to a file in the folder, for people.
    pub(crate) fn write_history(&self) -> io::Result<()> {
        let mut text = String::new();
        for exit in self.history.lock().iter() {
            text.push_str(&format!(
                "$ posse {}\n# {:?}: {:?} after {} ms\n{}{}\n",
                exit.arguments.join(" "),
                exit.death,
                exit.status,
                exit.took.as_millis(),
                exit.stdout,
                exit.stderr
            ));
        }
        std::fs::write(self.folder.join("history.txt"), text)
    }
}

#[expect(unsafe_code, reason = "the standard library has no safe way to act after the fork")]
fn die_with_parent(command: &mut Command) {
    // SAFETY: the function makes one system call and touches no memory.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Sends a signal to a process that nobody has waited for. Returns false if it has ended.
pub(crate) fn signal(process: &Child, signal: Signal) -> bool {
    let id = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    id.is_some_and(|id| kill_process(id, signal).is_ok())
}

type Said = (Option<ExitStatus>, String, String);

/// Waits for the end of a process, and kills it when its time has come.
async fn watch(child: &mut Child, death: &Death, longest: Duration) -> io::Result<Said> {
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let strike = |blow: Blow| {
        let signal = match blow {
            Blow::Kill => Signal::KILL,
            Blow::Terminate => Signal::TERM,
        };
        // No one has waited for the process yet, so the id still belongs to it.
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
    };
    let (mut out, mut err) = (String::new(), String::new());
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let read_out = async {
        let mut lines = BufReader::new(stdout);
        let mut events = 0;
        let mut line = String::new();
        while lines.read_line(&mut line).await.unwrap_or(0) > 0 {
            // Deltas have no position.
            events += usize::from(line.starts_with("{\"run\"") && line.contains(",\"seq\":"));
            out.push_str(&line);
            line.clear();
            if let Some((Moment::Event(at), blow)) = death.blow
                && at == events
            {
                strike(blow);
            }
        }
    };
    let timer = async {
        if let Some((Moment::After(time), blow)) = death.blow {
            sleep(time).await;
            strike(blow);
        }
        std::future::pending::<()>().await;
    };
    let finished = tokio::select! {
        _ = async { tokio::join!(read_out, stderr.read_to_string(&mut err)) } => true,
        () = timer => false,
        () = sleep(longest) => false,
    };
    if !finished {
        child.start_kill()?;
    }
    let status = child.wait().await?;
    Ok((finished.then_some(status), out, err))
}
