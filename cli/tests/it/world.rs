//! A world for the binary: its own home, database, working folder and fake model.

use posse_testkit::{FakeModel, Reply, Script};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

/// An address at which nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:1/v1";

/// The longest anything here may take.
pub const LONGEST: Duration = Duration::from_secs(60);

pub struct World {
    pub folder: TempDir,
    pub fake: FakeModel,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Exit {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Exit {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Exit {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// A command that runs.
pub struct Running {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    out: Heard,
    err: Heard,
    began: Instant,
}

/// What a command has said so far.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    all: JoinHandle<()>,
}

impl Heard {
    fn listen(mut from: impl AsyncRead + Send + Unpin + 'static) -> Heard {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let heard = bytes.clone();
        let all = tokio::spawn(async move {
            let mut piece = vec![0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece).await {
                heard.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Heard { bytes, all }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    async fn end(self) -> String {
        within(self.all).await.unwrap();
        let bytes = self.bytes.lock().unwrap().clone();
        String::from_utf8(bytes).expect("what it says is UTF-8")
    }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id(), signal).unwrap();
    }

    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().expect("it runs") as i32).unwrap()
    }

    /// What standard output holds so far.
    pub fn said(&self) -> String {
        self.out.text()
    }

    /// Waits until standard output holds this.
    pub async fn says(&self, part: &str) {
        eventually(part, async || self.out.text().contains(part)).await;
    }

    /// Waits until standard error holds this.
    pub async fn notes(&self, part: &str) {
        eventually(part, async || self.err.text().contains(part)).await;
    }

    pub async fn type_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it has an input");
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn end(mut self) -> Exit {
        drop(self.stdin.take());
        let status = within(self.child.wait()).await.unwrap();
        let took = self.began.elapsed();
        Exit { code: status.code(), out: self.out.end().await, err: self.err.end().await, took }
    }
}

impl World {
    pub async fn new(script: Script) -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        World { folder, fake: FakeModel::start(script).await.unwrap() }
    }

    /// A world whose model always says this.
    pub async fn saying(text: &str) -> World {
        World::new(Script::always(Reply::text(text))).await
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    pub fn database(&self) -> PathBuf {
        self.home().join("data/posse/posse.db")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// Names and values of the environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let below = |name: &str| self.home().join(name).display().to_string();
        vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", below("")),
            ("XDG_DATA_HOME", below("data")),
            ("XDG_CONFIG_HOME", below("config")),
            ("ANTHROPIC_API_KEY", "sk-test".to_owned()),
            ("ANTHROPIC_BASE_URL", self.fake.url()),
            // What runs on the machine of whoever tests is not asked.
            ("OLLAMA_BASE_URL", NOWHERE.to_owned()),
            ("LMSTUDIO_BASE_URL", NOWHERE.to_owned()),
            ("LLAMACPP_BASE_URL", NOWHERE.to_owned()),
            ("VLLM_BASE_URL", NOWHERE.to_owned()),
        ]
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posse"));
        command.args(arguments);
        self.set_up(command)
    }

    /// A command in this world, whatever program it is.
    pub fn set_up(&self, mut command: Command) -> Command {
        command
            .current_dir(self.work())
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Exit {
        started(self.command(arguments)).end().await
    }

    /// Runs a command to its end on this input.
    pub async fn feed(&self, arguments: &[&str], input: &str) -> Exit {
        let mut running = self.start_with_input(arguments);
        let mut stdin = running.stdin.take().unwrap();
        // A command that does not read its input is no failure here.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        running.end().await
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        started(self.command(arguments))
    }

    /// The same, to be given lines.
    pub fn start_with_input(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        started(command)
    }

    /// The runs there are, the newest first.
    pub async fn list(&self) -> Vec<Value> {
        let list = self.run(&["runs", "list", "--json"]).await.expect(0);
        list.json().as_array().unwrap().clone()
    }

    /// The id of the only run.
    pub async fn only_run(&self) -> String {
        let list = self.list().await;
        assert_eq!(list.len(), 1, "{list:#?}");
        list[0]["run"].as_str().unwrap().to_owned()
    }

    /// Waits until a file in the working folder has this many lines; returns its text.
    pub async fn lines_in(&self, name: &str, count: usize) -> String {
        eventually(name, async || self.read(name).lines().count() >= count).await;
        self.read(name)
    }
}

pub fn started(mut command: Command) -> Running {
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let out = Heard::listen(child.stdout.take().unwrap());
    let err = Heard::listen(child.stderr.take().unwrap());
    Running { stdin: child.stdin.take(), child, out, err, began }
}

/// The result of `work`, which must come in time.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONGEST, work).await.expect("in time")
}

/// Waits until `holds`, which is asked again and again.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < LONGEST, "{what} does not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// True while this process lives: by its number, or, for a command of an agent, whose own number
/// means nothing outside of what confines it, by the scratch folder that its run has to itself.
pub fn lives(pid: &str) -> bool {
    let Ok(number) = pid.trim().parse() else { return any_has(pid.trim()) };
    let pid = Pid::from_raw(number).unwrap();
    let zombie = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
    };
    test_kill_process(pid).is_ok() && !zombie()
}

/// True while a process has `text` in its environment.
fn any_has(text: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

/// Waits until this process is gone.
pub async fn gone(pid: &str) {
    eventually("the end of the process", async || !lives(pid)).await;
}

/// A call of Bash.
pub fn bash(command: &str) -> Reply {
    Reply::tool_call("Bash", json!({"command": command}))
}

/// A command that notes that it began, and its process, and then goes on for long.
pub const LONG: &str = "echo began >> ledger; echo $POSSE_SCRATCH > pid; exec sleep 600";

/// Permissions of a file.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
