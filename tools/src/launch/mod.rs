//! The one way to start a process.
//!
//! A command never runs as a child of the host. It runs below a supervisor, which is the host's
//! own executable started again (see `supervisor.rs`): when the host dies, or the call is
//! dropped or cancelled, a pipe closes and the supervisor kills all that the command started.
//! A guardian around it does so when the command has killed its supervisor.
//! There is no state outside the values here: who holds no [`Launcher`] has no shell.

mod bridge;
mod command;
mod environment;
mod guardian;
mod leash;
mod lendings;
mod memory;
mod output;
mod process;
mod supervisor;
mod trial;

pub use command::{Command, Finished, LaunchError, Status};
pub use environment::{Environment, allowed_environment};
pub use process::{Process, ProcessInput, ProcessOutput};
pub use trial::{SYSTEM_FOLDERS, system_program};

use crate::confine::{
    Backend, Backends, CommandLimits, Confinement, ENTER, Unavailable, enter, is_root,
    usual_commands_at_once,
};
use crate::confine::{Link, Walls};
use crate::egress::{Listening, Proxy};
use crate::linux;
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use leash::Leash;
use lendings::{Lendings, Places};
use memory::Memory;
use output::{Capture, Meter};
use posse_agent::Claim;
use posse_protocol::{Network, Profile};
use process::Pipes;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use supervisor::{Ending, MARK, Order, Report};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The first argument that makes an executable a supervisor.
const MARKER: &str = "__posse-supervise";

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long after deadline and grace a supervisor that did nothing is taken for stopped.
const LATE: Duration = Duration::from_secs(1);

/// How long a command that does nothing may take, confined, on a machine that is busy.
const LONGEST_TRIAL: Duration = Duration::from_secs(20);

/// How long to wait for the end of the output once the supervisor is gone. Only a process that
/// could not be killed still holds it open.
const OUTPUT_SLACK: Duration = Duration::from_millis(500);

/// Prepares this process to start commands. Call it first thing in `main`, before any thread
/// exists and before the arguments are looked at.
///
/// When the process was started as a supervisor it becomes one and never returns, nor does it when it
/// was started in a box, to become the command there. Else it may have as
/// many files open from here on as the system permits: every run that talks to a model has a
/// connection. Commands have a limit of their own.
pub fn init() -> Launcher {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == MARKER => supervisor::main(),
        Some(first) if first == ENTER => enter(arguments),
        _ => {}
    }
    linux::make_room_for_files();
    Launcher::through(Path::new(linux::OWN_EXECUTABLE))
}

/// Sees to it that a program that this process starts inherits nothing but its standard input,
/// output and error: what this process has inherited itself is not for others.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn keep_descriptors_private() -> io::Result<()> {
    linux::keep_descriptors_private()
}

/// The ability to start commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Launcher(Arc<Settings>);

#[derive(Clone, Debug)]
struct Settings {
    executable: PathBuf,
    environment: Environment,
    grace: Duration,
    backends: Backends,
    limits: CommandLimits,
    /// What no confined command sees.
    hidden: Vec<PathBuf>,
    /// What confined commands see of home folders beside the usual.
    shown: Vec<PathBuf>,
    /// What earlier processes have found out about back ends.
    memory: Option<Memory>,
    /// Why commands are root, though the host is root: found out by a trial.
    why_root: Arc<OnceLock<String>>,
    /// The same by the folders of commands, found out by them.
    lendings: Lendings,
    /// Agents' commands that may run at the same time.
    turns: Arc<Semaphore>,
}

impl Launcher {
    /// Starts commands through another executable, whose `main` calls [`init`] first. For hosts
    /// whose own `main` cannot do that, such as a plugin or a test.
    pub fn through(executable: &Path) -> Launcher {
        let executable = executable.to_owned();
        Launcher(Arc::new(Settings {
            executable,
            environment: Environment::default(),
            grace: GRACE,
            backends: Backends::default(),
            limits: CommandLimits::usual(),
            hidden: Vec::new(),
            shown: Vec::new(),
            memory: None,
            why_root: Arc::default(),
            lendings: Lendings::default(),
            turns: Arc::new(Semaphore::new(usual_commands_at_once())),
        }))
    }

    /// Gives commands this environment and nothing else. Without it they get none.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Launcher {
        Launcher(Arc::new(Settings { environment, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Sets the time between asking a command to end (TERM) and killing it (KILL). It is two
    /// seconds unless set.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Launcher {
        Launcher(Arc::new(Settings { grace, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Sets what each command may use of the machine.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Launcher {
        Launcher(Arc::new(Settings { limits, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Sets how many commands of agents run at the same time, those of all clones together; at
    /// least one. Without it, the number follows from the machine's cores and memory.
    #[must_use]
    pub fn with_commands_at_once(self, most: usize) -> Launcher {
        let turns = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Launcher(Arc::new(Settings { turns, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Waits until one more command of an agent may run. `queued` is called once if there is a wait.
    /// Returns `None` when `cancel` fires first.
    pub(crate) async fn turn(
        &self,
        cancel: &CancellationToken,
        queued: impl FnOnce(),
    ) -> Option<OwnedSemaphorePermit> {
        let turns = &self.0.turns;
        if let Ok(turn) = turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        queued();
        tokio::select! {
            turn = turns.clone().acquire_owned() => turn.ok(),
            () = cancel.cancelled() => None,
        }
    }

    /// Hides these files and folders from confined commands, beside the secrets that lie where
    /// they usually do: the host's database and keys.
    #[must_use]
    pub fn hiding(self, paths: impl IntoIterator<Item = PathBuf>) -> Launcher {
        let mut settings = Arc::unwrap_or_clone(self.0);
        settings.hidden.extend(paths);
        Launcher(Arc::new(settings))
    }

    /// Shows these files and folders of the user's home folder to confined commands, which see no
    /// more of it than programs, their caches and settings without secrets.
    #[must_use]
    pub fn showing(self, paths: impl IntoIterator<Item = PathBuf>) -> Launcher {
        let mut settings = Arc::unwrap_or_clone(self.0);
        settings.shown.extend(paths);
        Launcher(Arc::new(settings))
    }

    /// The same for a user whose home folder is another one.
    #[must_use]
    pub fn at_home_in(self, home: &Path) -> Launcher {
        let environment = self.0.environment.clone().with("HOME", home.as_os_str());
        self.with_environment(environment)
    }

    /// What confined commands see of the user's home folder, because the user says so.
    #[must_use]
    pub fn shown(&self) -> &[PathBuf] {
        &self.0.shown
    }

    /// Confines with these back ends only.
    #[must_use]
    pub fn with_backends(self, backends: &[Backend]) -> Launcher {
        let backends = self.0.backends.only(backends);
        Launcher(Arc::new(Settings { backends, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Keeps in `file` which back ends work, and believes what is found there until the machine
    /// starts again. Without it every process tries them out.
    #[must_use]
    pub fn remembering(self, file: PathBuf) -> Launcher {
        let memory = Some(Memory::in_file(file));
        Launcher(Arc::new(Settings { memory, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// What will confine a command that reaches this far. The first call tries it out, which takes
    /// some 20 ms and blocks, unless it is remembered.
    ///
    /// # Errors
    /// When nothing here can.
    pub fn backend(&self, confinement: &Confinement) -> Result<Backend, Unavailable> {
        let Confinement { profile, network, .. } = confinement;
        self.0.backends.choose(*profile, network, |backend| self.recall_or_try(backend))
    }

    /// Whether an agent may be offered commands that reach this far. Answers at once where the trial
    /// would most likely succeed, and makes that trial on a thread of its own meanwhile: the first
    /// command waits for its result, the first request to a model does not.
    pub(crate) fn offers(&self, confinement: &Confinement) -> bool {
        let backend = Backend::Bubblewrap;
        let is_open = confinement.profile != Profile::Full
            && self.0.backends.allows(backend)
            && self.0.backends.known(backend).is_none();
        if !is_open || self.is_remembered(backend) || !self.is_likely() {
            return self.backend(confinement).is_ok();
        }
        let (launcher, confinement) = (self.clone(), confinement.clone());
        // Dropped at once: nobody waits for the thread, and its command ends with this process.
        drop(std::thread::spawn(move || launcher.backend(&confinement).is_ok()));
        true
    }

    /// Why confined commands in `folder` are root, if they are: found out by one that does nothing, with
    /// a scratch folder in `scratches`, where those of runs are.
    pub async fn why_root(&self, folder: &Path, scratches: &Path) -> Option<String> {
        let workspace = Workspace::open(folder).ok().filter(|_| is_root())?;
        // On the same file system, if there were no runs yet.
        let around = scratches.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
        let scratch = Scratch::at(&around.join(format!("doctor-{}", std::process::id()))).ok()?;
        let mut confinement = Confinement::default();
        // Those that cannot be made are none of root's.
        let folders = scratch.open().and_then(|own| Ok((own, scratch.temporary().open()?)));
        if let Ok((own, temporary)) = folders {
            confinement.writable.push(own.path);
            confinement.temporary = Some(temporary.path);
        }
        let command = Command {
            program: "true".into(),
            args: Vec::new(),
            cwd: ".".into(),
            variables: Vec::new(),
            deadline: LONGEST_TRIAL,
            output_cap: 1000,
            writable_bytes: None,
            confinement,
        };
        let finished = self.run(&workspace, &command, &CancellationToken::new(), &|_| {}).await;
        let _ = scratch.remove();
        match finished {
            Ok(finished) if finished.confined_by == Some(Backend::Bubblewrap) => finished.why_root,
            Ok(_) => Some("bubblewrap does not confine them".to_owned()),
            // Then there is none.
            Err(_) => None,
        }
    }

    /// What is started to watch over a command.
    pub fn executable(&self) -> &Path {
        &self.0.executable
    }

    /// Whether a back end works here.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, backend: Backend) -> Result<(), String> {
        self.0.backends.check(backend, |backend| self.trial(backend))
    }

    /// Runs `command` to its end and returns what it said. `progress` gets the output as it
    /// comes; of a flood it gets a part.
    ///
    /// At the deadline the whole tree of processes gets TERM, and KILL after the grace. The same
    /// happens when `cancel` fires or the future is dropped, with half a second of grace at most. When
    /// the command ends, what it left running is killed.
    ///
    /// # Errors
    /// When the command could not be started, or its supervisor was lost.
    pub async fn run(
        &self,
        workspace: &Workspace,
        command: &Command,
        cancel: &CancellationToken,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Finished, LaunchError> {
        self.run_while(&Claim::default(), workspace, command, cancel, progress).await
    }

    /// The same, if `claim` holds when all is ready for the command to start.
    ///
    /// # Errors
    /// As [`Launcher::run`]; or when it does not hold.
    pub async fn run_while(
        &self,
        claim: &Claim,
        workspace: &Workspace,
        command: &Command,
        cancel: &CancellationToken,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Finished, LaunchError> {
        let ready = self.ready(workspace, command, None)?;
        let Ready { mut process, mut leash, order, look, lending, proxy: _proxy } = ready;
        if !claim.holds() {
            return Err(forsaken(process, leash).await);
        }
        leash.send(&order, cancel).await;
        fail::fail_point!("tool.launch.ordered");
        let mut output = Output {
            capture: Capture::new(command.output_cap),
            meter: Meter::default(),
            progress,
            buffer: vec![0; 16 << 10],
        };
        let late = command.deadline.saturating_add(self.0.grace).saturating_add(LATE);
        let heard = listen(&mut process, &mut leash, &mut output, cancel, Patience { late, look });
        let heard = heard.await;
        // What a killed supervisor left is being killed now; nobody must have stopped that.
        leash.cut();
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE + look;
        if timeout(longest, process.wait()).await.is_err() {
            let _ = process.kill().await;
        }
        leash.forget();
        fail::fail_point!("tool.launch.exited");
        self.note(lending, finish(command, heard, output.capture.finish()))
    }

    /// Starts a supervisor, which waits for its order. The command will have `pipes`, if there are some,
    /// in place of no input and an output that is kept.
    fn ready(
        &self,
        workspace: &Workspace,
        command: &Command,
        pipes: Option<Pipes>,
    ) -> Result<Ready, LaunchError> {
        let mut walls = self.walls(workspace, &command.confinement)?;
        let recalled = walls.as_mut().map(|walls| self.0.lendings.recall(walls));
        let (known_why_root, places) = recalled.unwrap_or_default();
        let mut variables = Vec::new();
        let proxy = match (&mut walls, &command.confinement.network) {
            (Some(walls), network @ Network::Hosts(_)) if !network.is_off() => {
                let proxy = OwnProxy::open(network)?;
                walls.link = Link::Proxy(proxy.socket());
                variables = OwnProxy::variables();
                Some(proxy)
            }
            _ => None,
        };
        let numbers = pipes.as_ref().map(Pipes::numbers);
        let mut process = self.start(workspace, command, variables, pipes)?;
        let leash = Leash::of(&mut process);
        fail::fail_point!("tool.launch.spawned");
        let confined_by = walls.as_ref().map(|walls| walls.backend);
        let mut limits = self.0.limits;
        limits.disk_bytes = limits.disk_bytes.min(command.writable_bytes.unwrap_or(u64::MAX));
        // It is seen to what such a command has left.
        let look = match walls.as_ref().is_some_and(Walls::are_looked_through) {
            true => supervisor::LONGEST_LOOK,
            false => Duration::ZERO,
        };
        let order = Order {
            deadline: command.deadline,
            grace: self.0.grace,
            program: command.program.clone(),
            args: command.args.clone(),
            walls,
            limits,
            pipes: numbers,
        };
        let order = order.encode().map_err(|error| command.not_started(error))?;
        let lending = Lending { confined_by, known_why_root, places };
        Ok(Ready { process, leash, order, look, lending, proxy })
    }

    /// Keeps what the end of a command says about other commands in its folders.
    fn note(
        &self,
        lending: Lending,
        finished: Result<Finished, LaunchError>,
    ) -> Result<Finished, LaunchError> {
        if let (Err(LaunchError::NotConfined { .. }), Some(memory)) = (&finished, &self.0.memory) {
            memory.forget();
        }
        let finished = finished?;
        let Lending { confined_by, known_why_root, places } = lending;
        if let Some(places) = places {
            self.0.lendings.keep(places, &finished.status, finished.why_root.as_deref());
        }
        let by_trial = self.0.why_root.get().filter(|_| confined_by == Some(Backend::Bubblewrap));
        let why_root = finished.why_root.clone().or(known_why_root).or_else(|| by_trial.cloned());
        Ok(Finished { confined_by, why_root, ..finished })
    }

    fn start(
        &self,
        workspace: &Workspace,
        command: &Command,
        more: Vec<(String, String)>,
        pipes: Option<Pipes>,
    ) -> Result<Child, LaunchError> {
        let folder = workspace
            .open_folder(&command.cwd)
            .map_err(|error| LaunchError::Folder { reason: error.to_string() })?;
        #[expect(clippy::disallowed_methods, reason = "this is the launcher")]
        let mut process = tokio::process::Command::new(&self.0.executable);
        process
            // Nothing but the marker: a command that kills by name (`pkill -f server`) would
            // meet its own text here.
            .arg(MARKER)
            .env_clear()
            .envs(self.0.environment.iter())
            .envs(command.variables.iter().map(|(name, value)| (name, value)))
            .envs(more)
            // By handle: the folder may have been moved or replaced since it was opened.
            .current_dir(linux::path_of_handle(&folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(pipes) = pipes {
            pipes.hand_on(&mut process);
        }
        process.spawn().map_err(|source| LaunchError::NoSupervisor {
            executable: self.0.executable.clone(),
            source,
        })
    }
}

/// A supervisor that waits for its order.
struct Ready {
    process: Child,
    leash: Leash,
    order: Vec<u8>,
    /// How long it may look at the folders that the command can change.
    look: Duration,
    lending: Lending,
    /// Kept until the command has ended.
    proxy: Option<OwnProxy>,
}

/// What a command is confined by, and as which user.
struct Lending {
    confined_by: Option<Backend>,
    known_why_root: Option<String>,
    /// By which to keep what comes of it, if that is not known.
    places: Option<Places>,
}

/// Ends a supervisor that was given no order. Whoever stood still until now may have lost the run, whose
/// next owner has said that this command was interrupted.
async fn forsaken(mut process: Child, mut leash: Leash) -> LaunchError {
    leash.cut();
    let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE;
    if timeout(longest, process.wait()).await.is_err() {
        let _ = process.kill().await;
    }
    leash.forget();
    LaunchError::Forsaken
}

/// The proxy of one command, at a socket in a folder of its own.
struct OwnProxy {
    folder: TempDir,
    _listening: Listening,
}

impl OwnProxy {
    fn open(network: &Network) -> Result<OwnProxy, LaunchError> {
        let failed = |error: io::Error| LaunchError::NotConfined {
            reason: format!("there is no proxy for the hosts that it may talk to: {error}"),
        };
        // Whatever the umask says: other users of the machine have no business there.
        let mut builder = tempfile::Builder::new();
        builder.prefix("posse-proxy-").permissions(Permissions::from_mode(0o700));
        let folder = builder.tempdir().map_err(failed)?;
        let listening = Proxy::new(network.clone()).listen(&folder.path().join("socket"));
        Ok(OwnProxy { folder, _listening: listening.map_err(failed)? })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// What tells programs where it is.
    fn variables() -> Vec<(String, String)> {
        let address = format!("http://127.0.0.1:{}", bridge::PORT);
        bridge::VARIABLES.map(|name| (name.to_owned(), address.clone())).to_vec()
    }
}

/// Where the output goes as it comes.
struct Output<'a> {
    capture: Capture,
    meter: Meter,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    buffer: Vec<u8>,
}

impl Output<'_> {
    /// Takes what a read gave. False when nothing will follow.
    fn take(&mut self, read: io::Result<usize>) -> bool {
        let Ok(count @ 1..) = read else { return false };
        let text = self.capture.push(&self.buffer[..count]);
        if !text.is_empty() && self.meter.allows(text.len()) {
            (self.progress)(&text);
        }
        true
    }
}

/// What came of listening to a supervisor.
struct Heard {
    report: Vec<u8>,
    /// We had to let go because it did not act at the deadline.
    late: bool,
}

/// How long a supervisor may take.
#[derive(Clone, Copy)]
struct Patience {
    /// From when the command may start until it must have been killed.
    late: Duration,
    /// To look at what there is, before and after.
    look: Duration,
}

impl Patience {
    /// When a supervisor that has marked so many steps by `now` is taken for stopped, and when for lost.
    fn until(self, marks: usize, now: Instant) -> (Option<Instant>, Option<Instant>) {
        let late = self.late;
        let late = match marks {
            0 => now.checked_add(late.saturating_add(self.look)),
            1 => now.checked_add(late),
            // It has nothing to kill any more.
            _ => return (None, now.checked_add(self.look + supervisor::CLEAN_UP + LATE)),
        };
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE;
        (late, late.and_then(|late| late.checked_add(longest)))
    }
}

/// Takes output until the supervisor has reported and is gone.
async fn listen(
    process: &mut Child,
    leash: &mut Leash,
    output: &mut Output<'_>,
    cancel: &CancellationToken,
    patience: Patience,
) -> Heard {
    let mut heard = Heard { report: Vec::new(), late: false };
    let (Some(mut status), Some(mut stream)) = (process.stdout.take(), process.stderr.take())
    else {
        return heard;
    };
    let (mut late_at, mut lost_at) = patience.until(0, Instant::now());
    let mut open = true;
    loop {
        tokio::select! {
            read = stream.read(&mut output.buffer), if open => open = output.take(read),
            read = status.read_buf(&mut heard.report) => match read {
                Ok(1..) => {
                    let marks = heard.report.iter().take_while(|it| **it == MARK).count();
                    if marks == heard.report.len() {
                        (late_at, lost_at) = patience.until(marks, Instant::now());
                    }
                }
                _ => break,
            },
            () = cancel.cancelled(), if leash.holds() => leash.cut(),
            () = passed(late_at), if leash.holds() => {
                heard.late = true;
                leash.cut();
            }
            () = passed(lost_at) => {
                let _ = process.start_kill();
                break;
            }
        }
    }
    // All that was written is in the pipe now.
    let rest = async {
        while open {
            let read = stream.read(&mut output.buffer).await;
            open = output.take(read);
        }
    };
    let _ = timeout(OUTPUT_SLACK, rest).await;
    heard
}

/// How `command` ended, whose output this is, but for so many bytes.
fn finish(
    command: &Command,
    heard: Heard,
    (output, left_out_bytes): (String, u64),
) -> Result<Finished, LaunchError> {
    let report: Report = serde_json::from_slice(&heard.report)
        .map_err(|_| LaunchError::Lost { program: command.program_name() })?;
    let status = match report.ending {
        Ending::Exited(code) => Status::Exited(code),
        Ending::Signalled(signal) => Status::Signalled(signal),
        Ending::TimedOut => Status::TimedOut,
        Ending::Released if heard.late => Status::TimedOut,
        Ending::Released => Status::Cancelled,
        Ending::OverLimit(limit) => Status::OverLimit(limit),
        Ending::NotConfined { reason } => {
            return Err(command.not_confined(reason, output));
        }
        Ending::NotStarted { error } => {
            return Err(command.not_started(io::Error::from_raw_os_error(error)));
        }
    };
    let Report { leftovers, survivors, written_bytes, set_aside, why_root, .. } = report;
    let confined_by = None;
    Ok(Finished {
        status,
        output,
        left_out_bytes,
        leftovers,
        survivors,
        written_bytes,
        why_root,
        confined_by,
        set_aside,
    })
}

async fn passed(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
