//! The launcher: the only code that starts processes.
//!
//! A command is never a direct child of the host. It runs below a supervisor, which is the host's own
//! executable started again (see `supervisor.rs`). When the host dies, or the call is dropped or
//! cancelled, a pipe closes and the supervisor kills every process that the command started. If the
//! command kills its supervisor, a guardian process above the supervisor does the same. There is no
//! global state: code without a [`Launcher`] has no shell.

mod bridge;
mod command;
mod environment;
mod guardian;
mod guardians;
mod lifeline;
mod memory;
mod output;
mod own_proxy;
mod process;
mod root_reasons;
mod supervisor;
mod trial;

pub use command::{Command, Finished, LaunchError, Status};
pub use environment::{Environment, allowed_environment, fetching_environment};
pub use process::{Process, ProcessInput, ProcessOutput};
pub use trial::{SYSTEM_FOLDERS, system_program};

use crate::confine::{
    Backend, Backends, CommandLimits, Confinement, ENTER, Unavailable, enter, is_root,
    usual_commands_at_once,
};
use crate::confine::{CommandSandbox, Link};
use crate::linux;
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use guardians::Guardians;
use lifeline::Lifeline;
use memory::Memory;
use output::{Capture, Meter};
use own_proxy::OwnProxy;
use posse_agent::Claim;
use posse_protocol::{Network, Profile};
use process::Pipes;
use root_reasons::{Places, RootReasons};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use supervisor::{Ending, MARK, Order, Report};
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The first argument that makes an executable a supervisor.
const MARKER: &str = "__posse-supervise";

/// How long a command may take to end after the supervisor asked it to.
const GRACE: Duration = Duration::from_secs(2);

/// How long after deadline and grace the host waits before it treats an idle supervisor as stopped.
const LATE: Duration = Duration::from_secs(1);

/// How often to look whether the commands of a process that is about to exit are over.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How long a trial command, which does nothing, may take on a busy machine.
const LONGEST_TRIAL: Duration = Duration::from_secs(20);

/// How long to wait for the end of the output after the supervisor ended. Only a process that the
/// supervisor could not kill still holds the output open.
const OUTPUT_SLACK: Duration = Duration::from_millis(500);

/// Prepares this process to start commands. Call it first in `main`, before any thread exists and
/// before you parse the arguments.
///
/// If the process was started as a supervisor, this function runs the supervisor and never returns. If
/// it was started inside a sandbox, it becomes the command there and never returns. Otherwise it raises
/// the limit of open files as far as the system permits, because every run that talks to a model has a
/// connection. Commands have their own limit.
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

/// Ensures that programs that this process starts inherit only standard input, output and error. Other
/// descriptors that this process inherited are not for them.
///
/// # Errors
/// If `/proc` cannot be read.
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
    /// Variables besides, for git when it fetches from another machine.
    fetching: Environment,
    grace: Duration,
    backends: Backends,
    limits: CommandLimits,
    /// Paths that the host hides from confined commands.
    hidden: Vec<PathBuf>,
    /// Paths in home folders that confined commands see, besides the default ones.
    shown: Vec<PathBuf>,
    /// A file with the back ends that worked in earlier processes.
    memory: Option<Memory>,
    /// Why commands of a root host run as root. A trial sets it.
    why_root: Arc<OnceLock<String>>,
    /// The same for each set of folders, learned from commands that ran.
    root_reasons: RootReasons,
    /// Limits how many commands of agents run at the same time.
    turns: Arc<Semaphore>,
    /// How many commands have ended.
    ended: Arc<AtomicU64>,
    /// The guardians that may still be at work.
    guardians: Arc<Guardians>,
}

impl Launcher {
    /// Ends all commands of this launcher, and of those made from it, and waits until what they left has been
    /// inspected: until then, git may run it. For a process that is about to exit. Later commands end at once, too.
    pub async fn end_commands(&self) {
        self.0.guardians.leaving.cancel();
        while self.0.guardians.are_at_work() {
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Returns true while a command, or the inspection after one, is not over.
    pub fn has_commands(&self) -> bool {
        self.0.guardians.are_at_work()
    }

    /// Starts commands through another executable, whose `main` calls [`init`] first. It is for hosts
    /// whose own `main` cannot do that, such as a plugin or a test.
    pub fn through(executable: &Path) -> Launcher {
        let executable = executable.to_owned();
        Launcher(Arc::new(Settings {
            executable,
            environment: Environment::default(),
            fetching: Environment::default(),
            grace: GRACE,
            backends: Backends::default(),
            limits: CommandLimits::usual(),
            hidden: Vec::new(),
            shown: Vec::new(),
            memory: None,
            why_root: Arc::default(),
            root_reasons: RootReasons::default(),
            turns: Arc::new(Semaphore::new(usual_commands_at_once())),
            ended: Arc::default(),
            guardians: Arc::default(),
        }))
    }

    /// Gives commands this environment and nothing else. By default they get no variables.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Launcher {
        Launcher(Arc::new(Settings { environment, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Gives git these variables besides when it fetches a repository from another machine, with the keys of the user
    /// and without confinement. No command of an agent gets them.
    #[must_use]
    pub fn with_environment_for_fetching(self, fetching: Environment) -> Launcher {
        Launcher(Arc::new(Settings { fetching, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Returns the variables that [`Launcher::with_environment_for_fetching`] gave.
    #[must_use]
    pub fn environment_for_fetching(&self) -> &Environment {
        &self.0.fetching
    }

    /// Sets the time between asking a command to end (TERM) and killing it (KILL). The default is two seconds.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Launcher {
        Launcher(Arc::new(Settings { grace, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Sets how much of the machine each command may use.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Launcher {
        Launcher(Arc::new(Settings { limits, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Sets how many commands of agents may run at the same time, over all clones of this launcher. The
    /// minimum is one. The default depends on the machine's cores and memory.
    #[must_use]
    pub fn with_commands_at_once(self, most: usize) -> Launcher {
        let turns = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Launcher(Arc::new(Settings { turns, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Waits until one more command of an agent may run. Calls `queued` once if it has to wait. Returns
    /// `None` if `cancel` fires first.
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

    /// Hides these files and folders from confined commands, such as the host's database and keys.
    /// Secrets at their usual paths are always hidden.
    #[must_use]
    pub fn hiding(self, paths: impl IntoIterator<Item = PathBuf>) -> Launcher {
        let mut settings = Arc::unwrap_or_clone(self.0);
        settings.hidden.extend(paths);
        Launcher(Arc::new(settings))
    }

    /// Shows these files and folders of the user's home folder to confined commands. By default they
    /// see only programs, their caches, and settings without secrets.
    #[must_use]
    pub fn showing(self, paths: impl IntoIterator<Item = PathBuf>) -> Launcher {
        let mut settings = Arc::unwrap_or_clone(self.0);
        settings.shown.extend(paths);
        Launcher(Arc::new(settings))
    }

    /// Uses `home` as the home folder of commands.
    #[must_use]
    pub fn at_home_in(self, home: &Path) -> Launcher {
        let environment = self.0.environment.clone().with("HOME", home.as_os_str());
        self.with_environment(environment)
    }

    /// The paths of the user's home folder that the user shows to confined commands.
    #[must_use]
    pub fn shown(&self) -> &[PathBuf] {
        &self.0.shown
    }

    /// The number of commands that have ended, over all clones of this launcher. It goes on counting.
    pub(crate) fn ended_commands(&self) -> Arc<AtomicU64> {
        self.0.ended.clone()
    }

    /// Uses only these back ends.
    #[must_use]
    pub fn with_backends(self, backends: &[Backend]) -> Launcher {
        let backends = self.0.backends.only(backends);
        Launcher(Arc::new(Settings { backends, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Stores in `file` which back ends work, and trusts that file until the machine reboots. Without
    /// it, every process tries the back ends.
    #[must_use]
    pub fn remembering(self, file: PathBuf) -> Launcher {
        let memory = Some(Memory::in_file(file));
        Launcher(Arc::new(Settings { memory, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Returns the back end that will confine a command. The first call tries the back ends unless a
    /// result is stored. That takes about 20 ms and blocks.
    ///
    /// # Errors
    /// If no back end on this machine can confine like this.
    pub fn backend(&self, confinement: &Confinement) -> Result<Backend, Unavailable> {
        let Confinement { profile, network, .. } = confinement;
        self.0.backends.choose(*profile, network, |backend| self.recall_or_try(backend))
    }

    /// Returns whether to offer an agent commands with this confinement. If a trial would very likely
    /// succeed, returns at once and makes the trial on another thread. So the first command waits for
    /// the result, and the first request to a model does not.
    pub(crate) fn offers(&self, confinement: &Confinement) -> bool {
        let backend = Backend::Bubblewrap;
        let is_open = confinement.profile != Profile::Full
            && self.0.backends.allows(backend)
            && self.0.backends.known(backend).is_none();
        if !is_open || self.is_remembered(backend) || !self.is_likely() {
            return self.backend(confinement).is_ok();
        }
        let (launcher, confinement) = (self.clone(), confinement.clone());
        // Dropped at once: no code waits for the thread, and its command ends with this process.
        drop(std::thread::spawn(move || launcher.backend(&confinement).is_ok()));
        true
    }

    /// Returns why confined commands in `folder` run as root, if they do. It runs a command that does
    /// nothing, with a scratch folder in `scratches`, where the scratch folders of runs are.
    pub async fn why_root(&self, folder: &Path, scratches: &Path) -> Option<String> {
        let workspace = Workspace::open(folder).ok().filter(|_| is_root())?;
        // If no run has existed yet, `scratches` is missing: use a folder on the same file system.
        let around = scratches.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
        let scratch = Scratch::at(&around.join(format!("doctor-{}", std::process::id()))).ok()?;
        let mut confinement = Confinement::default();
        // If these folders cannot be made, run the command without them.
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
            // The command did not run, so there is no reason to report.
            Err(_) => None,
        }
    }

    /// The executable that the launcher starts as a supervisor.
    pub fn executable(&self) -> &Path {
        &self.0.executable
    }

    /// Checks whether a back end works on this machine.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check(&self, backend: Backend) -> Result<(), String> {
        self.0.backends.check(backend, |backend| self.trial(backend))
    }

    /// Runs `command` to its end and returns its output. `progress` gets the output as it arrives, and
    /// only a part of it if there is very much.
    ///
    /// At the deadline, all processes of the command get TERM, and KILL after the grace. The same
    /// happens when `cancel` fires or the future is dropped, with at most half a second of grace. When
    /// the command ends, the supervisor kills all processes that it left running.
    ///
    /// # Errors
    /// If the command could not be started, or its supervisor was lost.
    pub async fn run(
        &self,
        workspace: &Workspace,
        command: &Command,
        cancel: &CancellationToken,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Finished, LaunchError> {
        self.run_while(&Claim::default(), workspace, command, cancel, progress).await
    }

    /// Like [`Launcher::run`], but starts the command only if `claim` still holds when all is ready.
    ///
    /// # Errors
    /// As [`Launcher::run`]. Also if `claim` does not hold.
    pub async fn run_while(
        &self,
        claim: &Claim,
        workspace: &Workspace,
        command: &Command,
        cancel: &CancellationToken,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Finished, LaunchError> {
        let ready = self.ready(workspace, command, None)?;
        let Ready { mut process, mut lifeline, order, look, user_facts, proxy: _proxy } = ready;
        if !claim.holds() {
            return Err(forsaken(process, lifeline).await);
        }
        lifeline.send(&order, cancel).await;
        fail::fail_point!("tool.launch.ordered");
        let mut output = Output {
            capture: Capture::new(command.output_cap),
            meter: Meter::default(),
            progress,
            buffer: vec![0; 16 << 10],
        };
        let late = command.deadline.saturating_add(self.0.grace).saturating_add(LATE);
        let tokens = (cancel, &self.0.guardians.leaving);
        let patience = Patience { late, look };
        let heard = listen(&mut process, &mut lifeline, &mut output, tokens, patience).await;
        // If the supervisor was killed, the guardian is killing the rest. The cut also resumes a stopped one.
        lifeline.cut();
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE + check_after(look);
        if timeout(longest, process.wait()).await.is_err() {
            let _ = process.kill().await;
        }
        lifeline.forget();
        fail::fail_point!("tool.launch.exited");
        self.note(user_facts, finish(command, heard, output.capture.finish()))
    }

    /// Starts a supervisor, which waits for its order. With `pipes`, the command uses them as input and
    /// output. Otherwise it has no input, and the host keeps its output.
    fn ready(
        &self,
        workspace: &Workspace,
        command: &Command,
        pipes: Option<Pipes>,
    ) -> Result<Ready, LaunchError> {
        let mut sandbox = self.sandbox(workspace, &command.confinement)?;
        let recalled = sandbox.as_mut().map(|sandbox| self.0.root_reasons.recall(sandbox));
        let (known_why_root, places) = recalled.unwrap_or_default();
        let mut variables = Vec::new();
        let proxy = match (&mut sandbox, &command.confinement.network) {
            (Some(sandbox), network @ Network::Hosts(_)) if !network.is_off() => {
                let proxy = OwnProxy::open(network)?;
                sandbox.link = Link::Proxy(proxy.socket());
                variables = OwnProxy::variables();
                Some(proxy)
            }
            _ => None,
        };
        let numbers = pipes.as_ref().map(Pipes::numbers);
        let mut process = self.start(workspace, command, variables, pipes)?;
        let lifeline = Lifeline::of(&mut process);
        fail::fail_point!("tool.launch.spawned");
        let confined_by = sandbox.as_ref().map(|sandbox| sandbox.backend);
        let mut limits = self.0.limits;
        limits.disk_bytes = limits.disk_bytes.min(command.writable_bytes.unwrap_or(u64::MAX));
        // The supervisor inspects the folders of such a command, before it and after it.
        let look = match sandbox.as_ref().is_some_and(CommandSandbox::are_looked_through) {
            true => supervisor::LONGEST_LOOK,
            false => Duration::ZERO,
        };
        let order = Order {
            deadline: command.deadline,
            grace: self.0.grace,
            program: command.program.clone(),
            args: command.args.clone(),
            sandbox,
            limits,
            pipes: numbers,
        };
        let order = order.encode().map_err(|error| command.not_started(error))?;
        let user_facts = UserFacts { confined_by, known_why_root, places };
        Ok(Ready { process, lifeline, order, look, user_facts, proxy })
    }

    /// Records what the end of a command reveals about back ends and about root, for later commands.
    fn note(
        &self,
        user_facts: UserFacts,
        finished: Result<Finished, LaunchError>,
    ) -> Result<Finished, LaunchError> {
        self.0.ended.fetch_add(1, Ordering::Release);
        if let (Err(LaunchError::NotConfined { .. }), Some(memory)) = (&finished, &self.0.memory) {
            memory.forget();
        }
        let finished = finished?;
        let UserFacts { confined_by, known_why_root, places } = user_facts;
        if let Some(places) = places {
            self.0.root_reasons.keep(places, &finished.status, finished.why_root.as_deref());
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
            // Only the marker: if the command text were here, a command that kills by name (`pkill -f
            // server`) would match its own supervisor.
            .arg(MARKER)
            .env_clear()
            .envs(self.0.environment.iter())
            .envs(command.variables.iter().map(|(name, value)| (name, value)))
            .envs(more)
            // By handle: the folder may have been moved or replaced since the workspace was opened.
            .current_dir(linux::path_of_handle(&folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(pipes) = pipes {
            pipes.hand_on(&mut process);
        }
        let started = process.spawn().map_err(|source| LaunchError::NoSupervisor {
            executable: self.0.executable.clone(),
            source,
        })?;
        self.0.guardians.add(&started);
        Ok(started)
    }
}

/// A started supervisor that waits for its order.
struct Ready {
    process: Child,
    lifeline: Lifeline,
    order: Vec<u8>,
    /// How long the supervisor may inspect the folders that the command can change.
    look: Duration,
    user_facts: UserFacts,
    /// Must live until the command has ended.
    proxy: Option<OwnProxy>,
}

/// How a command is confined, and what is known about its user.
struct UserFacts {
    confined_by: Option<Backend>,
    known_why_root: Option<String>,
    /// The key under which to store whether it ran as root; `None` if there is nothing to learn.
    places: Option<Places>,
}

/// Ends a supervisor that got no order. This worker was suspended and may have lost its claim. Then the
/// worker that has the run now has already recorded this command as interrupted.
async fn forsaken(mut process: Child, mut lifeline: Lifeline) -> LaunchError {
    lifeline.cut();
    let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE;
    if timeout(longest, process.wait()).await.is_err() {
        let _ = process.kill().await;
    }
    lifeline.forget();
    LaunchError::Forsaken
}

/// Receives the output of a command as it arrives.
struct Output<'a> {
    capture: Capture,
    meter: Meter,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    buffer: Vec<u8>,
}

impl Output<'_> {
    /// Takes the result of a read. Returns false at the end of the output.
    fn take(&mut self, read: io::Result<usize>) -> bool {
        let Ok(count @ 1..) = read else { return false };
        let text = self.capture.push(&self.buffer[..count]);
        if !text.is_empty() && self.meter.allows(text.len()) {
            (self.progress)(&text);
        }
        true
    }
}

/// What the host received from a supervisor.
struct SupervisorReport {
    report: Vec<u8>,
    /// True if the host closed the lifeline because the supervisor did not act at the deadline.
    late: bool,
}

/// How long a supervisor may take.
#[derive(Clone, Copy)]
struct Patience {
    /// From the start of the command until it must be dead.
    late: Duration,
    /// For the inspection of the folders before the command.
    look: Duration,
}

impl Patience {
    /// Returns when to treat the supervisor as stopped, and when as lost, after `marks` marks by `now`.
    fn until(self, marks: usize, now: Instant) -> (Option<Instant>, Option<Instant>) {
        let late = self.late;
        let late = match marks {
            0 => now.checked_add(late.saturating_add(self.look)),
            1 => now.checked_add(late),
            // The command is dead, so there is no deadline to enforce any more.
            _ => {
                let longest = check_after(self.look) + supervisor::CLEAN_UP + LATE;
                return (None, now.checked_add(longest));
            }
        };
        let longest = supervisor::LEAVE + supervisor::CLEAN_UP + LATE;
        (late, late.and_then(|late| late.checked_add(longest)))
    }
}

/// How long the inspection after a command may take, if the one before it may take `look`.
fn check_after(look: Duration) -> Duration {
    if look.is_zero() { look } else { supervisor::LONGEST_CHECK }
}

/// Reads output until the supervisor has reported and ended.
async fn listen(
    process: &mut Child,
    lifeline: &mut Lifeline,
    output: &mut Output<'_>,
    (cancel, leaving): (&CancellationToken, &CancellationToken),
    patience: Patience,
) -> SupervisorReport {
    let mut heard = SupervisorReport { report: Vec::new(), late: false };
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
            () = cancel.cancelled(), if lifeline.holds() => lifeline.cut(),
            () = leaving.cancelled(), if lifeline.holds() => lifeline.cut(),
            () = passed(late_at), if lifeline.holds() => {
                heard.late = true;
                lifeline.cut();
            }
            () = passed(lost_at) => {
                let _ = process.start_kill();
                break;
            }
        }
    }
    // The supervisor is gone: the pipe holds all output that there will be.
    let rest = async {
        while open {
            let read = stream.read(&mut output.buffer).await;
            open = output.take(read);
        }
    };
    let _ = timeout(OUTPUT_SLACK, rest).await;
    heard
}

/// Converts the supervisor's report, the output and the count of omitted bytes into a result.
fn finish(
    command: &Command,
    heard: SupervisorReport,
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
