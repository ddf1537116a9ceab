//! A workspace in a temporary folder, with something outside that must stay untouched.

use posse_agent::{Answer, Claim, SeenFiles, ToolContext, Toolbox};
use posse_protocol::{CallId, Delta, RunId, ToolOutput};
use posse_tools::launch::{Launcher, allowed_environment};
use posse_tools::{Scratch, Workspace, toolset};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

pub const CANARY: &str = "canary: must never be read or written";

pub struct Fixture {
    pub folder: TempDir,
    pub workspace: Arc<Workspace>,
    pub scratch: Option<Scratch>,
    pub tools: Toolbox,
    pub runtime: Runtime,
    pub cancel: CancellationToken,
    pub shown: Arc<Mutex<String>>,
    pub seen: Mutex<HashMap<usize, SeenFiles>>,
}

impl Fixture {
    /// With the file tools.
    pub fn new() -> Self {
        Fixture::with(None)
    }

    /// With a scratch folder at `path`, beside the workspace `work` and what is `outside`.
    pub fn with_scratch(path: &str) -> Self {
        Fixture::new().and_scratch(path, None)
    }

    /// With a scratch folder and Bash.
    pub fn with_scratch_and_shell(path: &str) -> Self {
        Fixture::new().and_scratch(path, Some(&launcher()))
    }

    fn and_scratch(mut self, path: &str, launcher: Option<&Launcher>) -> Self {
        let scratch = Scratch::at(&self.folder.path().join(path)).unwrap();
        self.tools = Toolbox::new(toolset(&self.workspace, Some(&scratch), launcher));
        self.scratch = Some(scratch);
        self
    }

    /// With Bash too.
    pub fn with_shell() -> Self {
        Fixture::with(Some(launcher()))
    }

    pub fn with(launcher: Option<Launcher>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/canary"), CANARY).unwrap();
        let workspace = Workspace::open(&folder.path().join("work")).unwrap();
        let tools = Toolbox::new(toolset(&workspace, None, launcher.as_ref()));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let cancel = CancellationToken::new();
        Fixture {
            folder,
            workspace,
            scratch: None,
            tools,
            runtime,
            cancel,
            shown: Arc::default(),
            seen: Mutex::default(),
        }
    }

    /// The tools of another run in the same workspace.
    pub fn other_run(&self) -> Toolbox {
        Toolbox::new(toolset(&self.workspace, None, None))
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.workspace.path().join(below)
    }

    /// A path in the scratch folder, or that folder itself when nothing follows.
    pub fn in_scratch(&self, below: &str) -> String {
        let scratch = self.scratch.as_ref().unwrap().path();
        let path = if below.is_empty() { scratch.to_owned() } else { scratch.join(below) };
        path.to_str().unwrap().to_owned()
    }

    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub fn put(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn content(&self, below: &str) -> Vec<u8> {
        std::fs::read(self.path(below)).unwrap()
    }

    pub fn context(&self) -> ToolContext {
        let shown = self.shown.clone();
        ToolContext {
            writable_bytes: None,
            seen: SeenFiles::default(),
            claim: Claim::default(),
            time: Default::default(),
            run: RunId::from_u128(1),
            call: CallId::from("call"),
            turn: 1,
            cancel: self.cancel.clone(),
            deltas: Arc::new(move |delta| {
                if let Delta::ToolProgress { text, .. } = delta {
                    shown.lock().unwrap().push_str(&text);
                }
            }),
        }
    }

    pub async fn call_with(&self, tools: &Toolbox, tool: &str, input: Value) -> ToolOutput {
        // Each run has its own tools.
        let run = Arc::as_ptr(tools.find("Read").unwrap()).addr();
        let seen = self.seen.lock().unwrap().entry(run).or_default().clone();
        let context = ToolContext { seen, ..self.context() };
        match tools.find(tool).unwrap().call(input, &context).await {
            Answer::Done(output) => {
                self.seen.lock().unwrap().entry(run).or_default().note(&output.seen);
                output
            }
            Answer::Pending { .. } => panic!("no tool here waits"),
        }
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolOutput {
        self.runtime.block_on(self.call_with(&self.tools, tool, input))
    }

    /// Expects success and returns the text.
    #[track_caller]
    pub fn ok(&self, tool: &str, input: Value) -> String {
        let output = self.call(tool, input);
        assert!(!output.is_error, "{}", output.joined_text());
        output.joined_text()
    }

    /// Expects an error that holds each of `parts`.
    #[track_caller]
    pub fn refused(&self, tool: &str, input: Value, parts: &[&str]) {
        let output = self.call(tool, input);
        let text = output.joined_text();
        assert!(output.is_error, "not refused: {text}");
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }

    pub fn canary_is_whole(&self) {
        let names: Vec<_> = std::fs::read_dir(self.outside()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "something was created outside: {names:?}");
        assert_eq!(std::fs::read_to_string(self.outside().join("canary")).unwrap(), CANARY);
    }
}

/// The example `host`, which lies beside the folder of this test.
pub fn host() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let host = test.parent().unwrap().parent().unwrap().join("examples/host");
    assert!(host.exists(), "run `cargo build -p posse-tools --example host` first");
    host
}

pub fn launcher() -> Launcher {
    let environment = allowed_environment(std::env::vars_os(), &[]);
    Launcher::through(&host()).with_environment(environment)
}

/// A word that no other process has in its arguments.
pub fn marker() -> String {
    let folder = tempfile::tempdir().unwrap();
    let random = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
    format!("posse-marker-{}-{random}", std::process::id())
}

/// The processes that are alive and have `marker` in their arguments, this one aside.
pub fn processes_with(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let Ok(arguments) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let has_marker = String::from_utf8_lossy(&arguments).contains(marker);
        if has_marker && id != std::process::id() as i32 && state_of(id) != Some('Z') {
            found.push(id);
        }
    }
    found
}

/// The processes that are alive and work in `folder`: what the launcher started there, the
/// supervisor included.
pub fn processes_in(folder: &Path) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let Ok(works_in) = std::fs::read_link(entry.path().join("cwd")) else { continue };
        if works_in.starts_with(folder) && state_of(id) != Some('Z') {
            found.push(id);
        }
    }
    found
}

/// The state letter of a process, if it is there.
pub fn state_of(id: i32) -> Option<char> {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// The children of this process that ended and were not waited for.
pub fn zombies() -> Vec<i32> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        if fields[0] == "Z" && fields[1] == own {
            found.push(entry.file_name().to_string_lossy().parse().unwrap());
        }
    }
    found
}

/// Waits until `condition` holds; fails after ten seconds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
